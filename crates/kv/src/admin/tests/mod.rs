#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod backup;
mod checkpoint;
mod hook_fs;
mod ingest;
mod inspect;
mod keyspaces;
mod list;
mod read_only;
mod repair;
mod verify;

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, OpenOptions};

use crate::db::{Builder, Keyspace};
use crate::strategy::{LeveledOptions, StrategyOptions};
use crate::{Background, Db, KeyspaceOptions, Options};

const STORE: &str = "/store";

/// Returns options with which little data makes several tables and levels.
fn small() -> KeyspaceOptions {
    let leveled = LeveledOptions {
        table_bytes: 2048,
        level_zero_runs_min: 2,
        level_zero_runs_max: 4,
        level_zero_bytes: 8192,
        base_bytes: 8192,
        multiplier: 4.0,
        levels: 4,
        ..LeveledOptions::default()
    };
    let compaction = StrategyOptions::Leveled(leveled);
    KeyspaceOptions { memtable_bytes: 16 << 10, block_bytes: 512, compaction, ..KeyspaceOptions::default() }
}

/// Returns a builder of a small store that does all work in the calling thread.
fn builder(fs: &Arc<dyn Fs>) -> Builder {
    let options =
        Options { background: Background::Inline, wal_segment_bytes: 64 << 10, ..Options::default() };
    Db::builder(STORE).fs(Arc::clone(fs)).seed(7).options(options).default_keyspace(small())
}

fn open(fs: &Arc<dyn Fs>) -> Db {
    builder(fs).open().unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Returns a value that names its key and round.
fn value(number: u32, round: u32) -> Vec<u8> {
    format!("value {number} of round {round} {}", "x".repeat(number as usize % 40)).into_bytes()
}

fn fill(keyspace: &Keyspace, numbers: std::ops::Range<u32>, round: u32) {
    for number in numbers {
        keyspace.put(key(number), value(number, round)).unwrap();
    }
}

/// Returns the number of entries in the tables of the default keyspace.
fn entries(db: &Db) -> u64 {
    db.stats().keyspaces[0].levels.iter().map(|level| level.entries).sum()
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(keyspace: &Keyspace) -> Pairs {
    keyspace.iter().map(Result::unwrap).collect()
}

/// Returns the pairs that [`fill`] writes.
fn expected(numbers: std::ops::Range<u32>, round: u32) -> Pairs {
    numbers.map(|number| (key(number), value(number, round))).collect()
}

/// Returns the files in a directory with this ending.
fn files(fs: &Arc<dyn Fs>, dir: &str, ending: &str) -> Vec<PathBuf> {
    let all = fs.read_dir(Path::new(dir)).unwrap();
    all.into_iter().filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// Returns the contents of a file.
fn contents(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenOptions::read()).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Creates a file or replaces its contents. The contents are durable, the name is not.
fn write_file(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) {
    let file = fs.open(path, OpenOptions::create()).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
}
