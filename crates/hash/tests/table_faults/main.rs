//! Cairn's own tables on a disk that loses power, fails, fills up, lies and rots.
//!
//! The invariants: a reader finds the complete old table or the complete new one; a `finish` that
//! returned is never undone; damage in a table is reported as damage; no failed build leaves a file
//! that the next build does not remove. `docs/src/reliability-log.md` lists the bugs that were
//! planted to see whether these tests detect them.
//!
//! `CAIRN_SOAK=1` runs the long form, with more images and more rounds. All randomness derives from
//! fixed seeds; `CAIRN_SEED` selects others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cairn_hash::table::{BuildOptions, BuildSummary, Builder, Compression, Mode, Reader, ReaderOptions};
use cairn_hash::{Error, Result};
use cairn_vfs::{FaultFs, Fs, MemFs, OpenOptions, SeededRng};

mod corruption;
mod crash;
mod errors;
mod generations;
mod readers;

const TABLE: &str = "t.cairn";
const MODES: [Mode; 3] = [Mode::Mmap, Mode::Heap, Mode::Pread];

type Record = (Vec<u8>, Vec<u8>);
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The records and options of a table.
#[derive(Debug, Clone)]
struct Content {
    name: &'static str,
    records: Vec<Record>,
    /// Deleted after all records were put.
    deleted: Vec<Vec<u8>>,
    options: BuildOptions,
}

impl Content {
    fn new(name: &'static str, records: Vec<Record>, compression: Compression) -> Content {
        // One thread, so that the order of operations is the same each time, unless records are
        // spilled.
        let options = BuildOptions::default().seed(7).id(9).threads(1).memory_bytes(16 << 20);
        Content { name, records, deleted: Vec::new(), options: options.compression(compression) }
    }

    fn model(&self) -> Model {
        let mut model: Model = self.records.iter().cloned().collect();
        self.deleted.iter().for_each(|key| _ = model.remove(key));
        model
    }

    /// Puts all records and publishes the table.
    fn build(&self, fs: &Arc<dyn Fs>) -> Result<BuildSummary> {
        let mut builder =
            Builder::create_in(fs, Path::new(TABLE), self.options.clone(), &mut SeededRng::new(1))?;
        for (key, value) in &self.records {
            builder.put(key, value)?;
        }
        for key in &self.deleted {
            builder.delete(key)?;
        }
        builder.finish()
    }

    /// Returns the bytes of the table on a sound disk.
    fn bytes(&self) -> Vec<u8> {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        self.build(&fs).unwrap();
        fs.open(Path::new(TABLE), OpenOptions::read()).unwrap().map().unwrap().to_vec()
    }
}

fn numbered(count: u32, value: &str) -> Vec<Record> {
    (0..count).map(|n| (format!("key {n}").into_bytes(), format!("{value} {n}").into_bytes())).collect()
}

/// Returns the content of the table that is replaced: some keys of the later contents, with other
/// values.
fn old() -> Content {
    Content::new("old", numbered(150, "old value"), Compression::None)
}

/// Returns one content for each shape of file: with stored lengths, fixed widths, each compression,
/// and values outside the records.
fn contents() -> Vec<Content> {
    let mut plain = Content::new("plain", numbered(300, "new value"), Compression::None);
    plain.deleted = vec![b"key 5".to_vec(), b"absent".to_vec()];
    let widths: Vec<Record> =
        (0..500u32).map(|n| (n.to_be_bytes().to_vec(), u64::from(n * 7).to_le_bytes().to_vec())).collect();
    let mut fixed = Content::new("fixed widths", widths, Compression::None);
    fixed.deleted = vec![3u32.to_be_bytes().to_vec(), b"of another length".to_vec()];
    let json: Vec<Record> = (0..400u32)
        .map(|n| (n.to_le_bytes().to_vec(), format!("{{\"name\":\"entry {n}\",\"size\":{n}}}").into_bytes()))
        .collect();
    let repetitive =
        (0..200u32).map(|n| (n.to_le_bytes().to_vec(), format!("{n},").repeat(20).into_bytes())).collect();
    let mut blobs = numbered(20, "small");
    blobs.extend((0..12u8).map(|n| (vec![b'b', n], vec![n; 40_000 + usize::from(n)])));
    vec![
        plain,
        fixed,
        Content::new("zstd", json, Compression::zstd()),
        Content::new("snappy", repetitive, Compression::Snappy),
        Content::new("blobs", blobs, Compression::None),
    ]
}

/// Returns more records than the minimum memory of a build holds, in several partitions and writes.
fn spilling() -> Content {
    let records = (0..345u32).map(|n| (n.to_le_bytes().to_vec(), vec![n as u8; 30_000])).collect();
    Content::new("spilling", records, Compression::None)
}

fn shared(fs: &FaultFs) -> Arc<dyn Fs> {
    Arc::new(fs.clone())
}

fn open(fs: &Arc<dyn Fs>, mode: Mode) -> Result<Reader> {
    Reader::open_in(fs, Path::new(TABLE), ReaderOptions::default().mode(mode))
}

/// Returns all entries of a scan.
fn scanned(reader: &Reader) -> Result<Model> {
    reader.scan().map(|entry| entry.map(|entry| (entry.key.into_owned(), entry.value.into_owned()))).collect()
}

/// Asserts that the table is sound and agrees with `model`, by a scan and key by key.
fn assert_holds(reader: &Reader, model: &Model, context: &str) {
    let report = reader.verify().unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(report.entries, model.len() as u64, "{context}");
    for (key, value) in model {
        let found = reader.get(key).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(found.as_deref() == Some(value), "{context}: {key:?}");
    }
    assert_eq!(reader.get(b"absent").unwrap(), None, "{context}");
    assert!(scanned(reader).unwrap() == *model, "{context}");
}

/// Returns the file names on the disk.
fn names(fs: &FaultFs) -> Vec<String> {
    fs.files().iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Returns true for the errors that a reader may report for a damaged file.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corruption { .. } | Error::Unsupported { .. } | Error::Foreign { .. })
}

fn soak() -> bool {
    std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0")
}

/// Returns `short`, or `long` in the long form.
fn rounds(short: u64, long: u64) -> u64 {
    if soak() { long } else { short }
}

/// Returns the seed of a test: its own, modified by `CAIRN_SEED`. Prints both.
fn seed(own: u64) -> u64 {
    let moved = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(0);
    println!("CAIRN_SEED={moved} (own seed {own})");
    own ^ moved.rotate_left(17)
}
