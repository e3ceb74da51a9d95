//! The log on disks that are sound, lose power, fail, fill up and rot, and under many threads.
//!
//! The invariants: a recovery finds a prefix of the appended records that includes everything a
//! sync acknowledged, without holes and without invented records; damage to synced records is
//! reported as such; a failed sync is never taken back.
//!
//! `CAIRN_SOAK=1` runs the long form. Everything random derives from fixed seeds; `CAIRN_SEED`
//! selects others.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_vfs::{FaultFs, Fs, MemFs, OpenOptions, Rng, SeededRng};
use cairn_wal::{Appender, Damage, Error, Log, Lsn, Mode, Options, Recovery, RecoveryOptions, Result, Tail};

mod abandoned_segments;
mod basics;
mod corruption;
mod crash;
mod errors;
mod hardening;
mod interleaving;
mod known_state;
mod process;
mod segments;
mod threads;
mod torn_writes;

const DIR: &str = "log";
/// The smallest segment size, so that small tests have many segments.
const SMALL: u32 = 8192;

/// Without a helper, so that behaviour depends only on the calls.
fn small() -> Options {
    Options::default().segment_bytes(SMALL).window_bytes(4096).background(false)
}

/// Returns the payload of record `number`: the number, and bytes derived from it. Most payloads are
/// short, some long, and a few longer than a segment.
fn payload(number: u64) -> Vec<u8> {
    let mut rng = SeededRng::new(number);
    let len = match number {
        n if n % 331 == 330 => 9000 + rng.below(9000),
        n if n % 17 == 0 => 700 + rng.below(900),
        _ => rng.below(120),
    };
    let mut bytes = vec![0; 8 + len as usize];
    rng.fill(&mut bytes);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Returns the number of a record, and asserts that its payload is unchanged.
fn number_of(bytes: &[u8]) -> u64 {
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(bytes == payload(number), "record {number} is not what was appended");
    number
}

/// The result of a recovery.
#[derive(Debug)]
struct Recovered {
    records: Vec<(Lsn, Vec<u8>)>,
    damage: Vec<Damage>,
    tail: Tail,
}

impl Recovered {
    fn numbers(&self) -> Vec<u64> {
        self.records.iter().map(|(_, bytes)| number_of(bytes)).collect()
    }
}

/// Reads everything after `from`, with a window smaller than some records.
fn recover(fs: &Arc<dyn Fs>, from: Lsn, mode: Mode) -> Result<Recovered> {
    let options = RecoveryOptions::default().mode(mode).read_bytes(4096);
    let mut recovery = Recovery::open(fs, Path::new(DIR), from, &options)?;
    let mut records = Vec::new();
    while let Some(record) = recovery.next()? {
        records.push((record.lsn, record.payload.to_vec()));
    }
    let damage = recovery.damage().to_vec();
    Ok(Recovered { records, damage, tail: recovery.finish()? })
}

/// Recovers everything and opens the log for writing.
fn open(fs: &Arc<dyn Fs>, options: &Options, seed: u64) -> Result<(Log, Appender, Vec<u64>)> {
    let found = recover(fs, Lsn::ZERO, Mode::TolerateTornTail)?;
    let numbers = found.numbers();
    let (log, appender) = Log::open(fs, options, found.tail, &mut SeededRng::new(seed))?;
    Ok((log, appender, numbers))
}

/// Appends the records with these numbers and returns their positions.
fn append(appender: &mut Appender, numbers: std::ops::Range<u64>) -> Result<Vec<Lsn>> {
    numbers.map(|number| appender.append(&[&payload(number)])).collect()
}

fn shared(fs: &FaultFs) -> Arc<dyn Fs> {
    Arc::new(fs.clone())
}

fn memory() -> Arc<dyn Fs> {
    Arc::new(MemFs::new())
}

/// Returns the log's files with their content.
fn files(fs: &dyn Fs) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs.read_dir(Path::new(DIR)).unwrap();
    paths.into_iter().map(|path| (path.clone(), bytes_of(fs, &path))).collect()
}

fn bytes_of(fs: &dyn Fs, path: &Path) -> Vec<u8> {
    fs.open(path, OpenOptions::read()).unwrap().map().unwrap().to_vec()
}

/// Creates a disk with these files.
fn disk(files: &[(PathBuf, Vec<u8>)]) -> Arc<dyn Fs> {
    let fs = memory();
    fs.create_dir_all(Path::new(DIR)).unwrap();
    for (path, bytes) in files {
        fs.open(path, OpenOptions::create()).unwrap().write_all_at(bytes, 0).unwrap();
    }
    fs
}

/// Returns the file names in the log's directory.
fn names(fs: &dyn Fs) -> Vec<String> {
    let paths = fs.read_dir(Path::new(DIR)).unwrap();
    paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn is_corruption(error: &Error) -> bool {
    matches!(error, Error::Corruption { .. })
}

/// Returns `short`, or `long` in the long form.
fn rounds(short: u64, long: u64) -> u64 {
    if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { long } else { short }
}

/// Returns the seed of a test and prints it: its own seed, changed by `CAIRN_SEED`.
fn seed(own: u64) -> u64 {
    let moved = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(0);
    println!("CAIRN_SEED={moved} (own seed {own})");
    own ^ moved.rotate_left(17)
}
