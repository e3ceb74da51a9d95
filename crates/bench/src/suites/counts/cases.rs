//! The counted operations: small loops over each engine, all in memory.

use std::path::Path;
use std::sync::Arc;

use cairn_hash::table::{BuildOptions, Builder, Reader, ReaderOptions};
use cairn_kv::{Background, Compression, Db, Durability, KeyspaceOptions};
use cairn_trace::{Options as TraceOptions, Recorder, Sample};
use cairn_vfs::{Fs, MemFs, SeededRng};
use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::workload::Permutation;

pub(super) const VALUE_BYTES: usize = 100;
/// Number of entries in stores that are only read.
const ENTRIES: u64 = 20_000;
const SCAN: usize = 100;

/// One loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountCase {
    /// `kv`: logged puts of random keys, with flushes and compactions on the same thread.
    KvPut,
    /// `kv`: lookups in tables.
    KvGet,
    /// `kv`: scans of a hundred entries each, counted by entries.
    KvScan,
    /// `hash`: a build, counted by entries.
    HashBuild,
    /// `hash`: lookups.
    HashGet,
    /// Recording a lookup.
    TraceRecord,
}

impl CountCase {
    /// All cases.
    pub const ALL: [CountCase; 6] = [
        CountCase::KvPut,
        CountCase::KvGet,
        CountCase::KvScan,
        CountCase::HashBuild,
        CountCase::HashGet,
        CountCase::TraceRecord,
    ];

    /// Returns the case's name in results.
    pub fn name(self) -> &'static str {
        match self {
            CountCase::KvPut => "kv put",
            CountCase::KvGet => "kv get",
            CountCase::KvScan => "kv scan",
            CountCase::HashBuild => "hash build",
            CountCase::HashGet => "hash get",
            CountCase::TraceRecord => "trace record",
        }
    }
}

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key0000000000000";
    let mut rest = number;
    for digit in key.iter_mut().rev().take(13) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

pub(super) fn carry_out(case: CountCase, operations: u64) -> Result<()> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    match case {
        CountCase::KvPut => {
            let db = open(&fs)?;
            let order = Permutation::new(operations, 1);
            (0..operations)
                .try_for_each(|at| db.put(key(order.apply(at)), [1; VALUE_BYTES]))
                .map_err(engine)?;
            expect(db.get(key(0)).map_err(engine)?.is_some())
        }
        CountCase::KvGet => {
            let db = filled(&fs)?;
            let order = Permutation::new(ENTRIES, 1);
            for at in 0..operations {
                expect(db.get(key(order.apply(at % ENTRIES))).map_err(engine)?.is_some())?;
            }
            Ok(())
        }
        CountCase::KvScan => scans(&filled(&fs)?, operations),
        CountCase::HashBuild => build(&fs, operations),
        CountCase::HashGet => {
            build(&fs, ENTRIES)?;
            let reader = Reader::open_in(&fs, Path::new("/table"), ReaderOptions::default())?;
            let order = Permutation::new(ENTRIES, 1);
            for at in 0..operations {
                expect(reader.get(&key(order.apply(at % ENTRIES)))?.is_some())?;
            }
            Ok(())
        }
        CountCase::TraceRecord => {
            let options =
                TraceOptions { hash_seed: Some(1), sample: Sample::OneIn(1), ..TraceOptions::default() };
            let recorder = Recorder::create_in(&fs, Path::new("/trace"), options)?;
            (0..operations).for_each(|at| recorder.get(0, &key(at), Some(VALUE_BYTES)));
            expect(recorder.finish()?.records == operations)
        }
    }
}

fn engine(error: cairn_kv::Error) -> Error {
    Error::engine("cairn", error)
}

fn expect(right: bool) -> Result<()> {
    if right { Ok(()) } else { Err(Error::engine("cairn", "an answer is wrong")) }
}

fn open(fs: &Arc<dyn Fs>) -> Result<Db> {
    let keyspace = KeyspaceOptions {
        memtable_bytes: 1 << 20,
        compression: vec![Compression::None],
        ..KeyspaceOptions::default()
    };
    Db::builder("/store")
        .fs(Arc::clone(fs))
        .seed(1)
        .background(Background::Inline)
        .durability(Durability::Buffered)
        .default_keyspace(keyspace)
        .open()
        .map_err(engine)
}

fn filled(fs: &Arc<dyn Fs>) -> Result<Db> {
    let db = open(fs)?;
    (0..ENTRIES).try_for_each(|number| db.put(key(number), [1; VALUE_BYTES])).map_err(engine)?;
    db.compact_range(..).map_err(engine)?;
    Ok(db)
}

fn scans(db: &Db, operations: u64) -> Result<()> {
    let mut left = operations;
    let mut at = 0;
    while left > 0 {
        let mut cursor = db.cursor().map_err(engine)?;
        cursor.seek(key(at % (ENTRIES - SCAN as u64))).map_err(engine)?;
        for _ in 0..left.min(SCAN as u64) {
            expect(cursor.valid())?;
            std::hint::black_box((cursor.key(), cursor.value()));
            cursor.next().map_err(engine)?;
        }
        left -= left.min(SCAN as u64);
        at += 7_919;
    }
    Ok(())
}

fn build(fs: &Arc<dyn Fs>, entries: u64) -> Result<()> {
    let options = BuildOptions::default().threads(1);
    let mut builder = Builder::create_in(fs, Path::new("/table"), options, &mut SeededRng::new(1))?;
    (0..entries).try_for_each(|number| builder.put(&key(number), &[1; VALUE_BYTES]))?;
    builder.finish()?;
    Ok(())
}
