//! Tests of whole stores: against golden bytes and models, with damage and with crashes.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, MemFs, OpenOptions};
use proptest::prelude::*;

use super::*;
use crate::test_config::cases;

mod append;
mod bit_flips;
mod blocks;
mod build;
mod concurrent_writers;
mod crash;
mod golden;
mod headers;
mod large;
mod model;
mod random_damage;
mod readers;
mod rewrite;
mod verify;

/// An operation on a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Flush,
}

/// Makes a put of text.
pub(super) fn put(key: &str, value: &str) -> Op {
    Op::Put(key.into(), value.into())
}

/// Makes a delete of text.
pub(super) fn delete(key: &str) -> Op {
    Op::Delete(key.into())
}

/// Generates random operations with few keys, so that overwrites and deletes hit, and an occasional
/// value that spans several blocks.
pub(super) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    let key = prop_oneof![
        8 => (0u8..40).prop_map(|n| format!("key{n}").into_bytes()),
        1 => (0u8..3, 100usize..400).prop_map(|(n, len)| vec![n; len]),
        1 => Just(Vec::new()),
    ];
    let value = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..20),
        2 => (any::<u8>(), 0usize..3000).prop_map(|(byte, len)| vec![byte; len]),
        1 => prop::collection::vec(any::<u8>(), 100..600),
    ];
    let op = prop_oneof![
        6 => (key.clone(), value).prop_map(|(key, value)| Op::Put(key, value)),
        2 => key.prop_map(Op::Delete),
        1 => Just(Op::Flush),
    ];
    prop::collection::vec(op, 0..most)
}

/// Generates log options with a compression and a block size.
pub(super) fn compressions() -> impl Strategy<Value = LogOptions> {
    let compression =
        prop_oneof![Just(Compression::None), Just(Compression::Snappy), Just(Compression::ZSTD)];
    let block_bytes = prop_oneof![Just(16u32), Just(64), Just(300), Just(4096)];
    (compression, block_bytes).prop_map(|(compression, block_bytes)| {
        LogOptions::default().compression(compression).block_bytes(block_bytes).identifier(7)
    })
}

/// A store in memory, and its expected content.
#[derive(Debug)]
pub(super) struct Store {
    pub fs: Arc<dyn Fs>,
    pub live: BTreeMap<Vec<u8>, Vec<u8>>,
}

pub(super) const LOG: &str = "x.spl";
pub(super) const INDEX: &str = "x.spi";

impl Store {
    /// Writes a log and its index.
    pub fn build(ops: &[Op], log: &LogOptions, index: &IndexOptions) -> Store {
        let mut store = Store::log_only(ops, log);
        build_index_in(&store.fs, LOG, index).unwrap();
        store.live = live(ops);
        store
    }

    /// Writes a log.
    pub fn log_only(ops: &[Op], options: &LogOptions) -> Store {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut writer = LogWriter::create_in(&fs, LOG, options).unwrap();
        apply(&mut writer, ops);
        writer.close().unwrap();
        Store { fs, live: live(ops) }
    }

    /// Creates a store with the given bytes.
    pub fn from_bytes(log: &[u8], index: &[u8]) -> Store {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let store = Store { fs, live: BTreeMap::new() };
        store.write(LOG, log);
        store.write(INDEX, index);
        store
    }

    pub fn open(&self, options: &ReaderOptions) -> crate::Result<SparkeyReader> {
        SparkeyReader::open_in(&self.fs, LOG, options)
    }

    pub fn reader(&self) -> SparkeyReader {
        self.open(&ReaderOptions::default()).unwrap()
    }

    /// Returns the bytes of a file.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let file = self.fs.open(Path::new(name), OpenOptions::read()).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    /// Replaces the content of a file.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        let file = self.fs.open(Path::new(name), OpenOptions::create()).unwrap();
        file.set_len(0).unwrap();
        file.write_all_at(bytes, 0).unwrap();
    }
}

pub(super) fn apply(writer: &mut LogWriter, ops: &[Op]) {
    for op in ops {
        match op {
            Op::Put(key, value) => writer.put(key, value).unwrap(),
            Op::Delete(key) => _ = writer.delete(key).unwrap(),
            Op::Flush => writer.flush().unwrap(),
        }
    }
}

/// Returns the entries that remain after `ops`.
pub(super) fn live(ops: &[Op]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut live = BTreeMap::new();
    for op in ops {
        match op {
            Op::Put(key, value) => _ = live.insert(key.clone(), value.clone()),
            Op::Delete(key) => _ = live.remove(key),
            Op::Flush => {}
        }
    }
    live
}

/// Returns all live entries of a scan, and asserts that no key occurs twice.
pub(super) fn scanned(reader: &SparkeyReader) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut scan = reader.scan();
    while let Some(mut entry) = scan.next_entry().unwrap() {
        let value = entry.value().unwrap().into_owned();
        assert_eq!(found.insert(entry.key().to_vec(), value), None, "a key came twice");
    }
    found
}

/// Returns a header of an index with the given widths, for unit tests.
pub(super) fn header(hash_bytes: u32, address_bytes: u32) -> IndexHeader {
    IndexHeader {
        identifier: 7,
        seed: 1,
        data_end: 84,
        key_bytes_max: 0,
        value_bytes_max: 0,
        puts: 0,
        garbage_bytes: 0,
        entries: 0,
        address_bytes,
        hash_bytes,
        capacity: NonZeroU64::MIN,
        displacement_max: 0,
        entry_bits: 0,
        collisions: 0,
        displacement_total: 0,
    }
}
