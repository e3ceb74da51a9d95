//! Logs in every version of the format that was ever written, from `tests/fixtures`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test program")]

use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::{Fs, MemFs, OpenOptions, SeededRng, StdFs};
use cairn_wal::{Error, Log, Lsn, Mode, Options, Recovery, RecoveryOptions, Result};

/// The log of each fixture.
const DIR: &str = "log";
/// The number of records of each fixture.
const RECORDS: u64 = 150;
/// The versions with a fixture, oldest first, each with the note of its log. The last one is the
/// current version. Version 1 had no notes.
const VERSIONS: [(u32, [u64; 2]); 2] = [(1, [0; 2]), (2, NOTE)];
/// The note that the fixture's log has from the middle on.
const NOTE: [u64; 2] = [3, 5];

fn payload(number: u64) -> Vec<u8> {
    format!("record {number}, ").repeat(number as usize % 4).into_bytes()
}

/// Copies the fixture of a version to a disk in memory, with every file passed through `change`.
fn fixture(version: u32, change: impl Fn(&mut Vec<u8>)) -> Arc<dyn Fs> {
    let disk: Arc<dyn Fs> = Arc::new(MemFs::new());
    disk.create_dir_all(Path::new(DIR)).unwrap();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}"));
    for path in StdFs::new().read_dir(&dir).unwrap() {
        let mut bytes = StdFs::new().open(&path, OpenOptions::read()).unwrap().map().unwrap().to_vec();
        change(&mut bytes);
        let copy = Path::new(DIR).join(path.file_name().unwrap());
        disk.open(&copy, OpenOptions::create()).unwrap().write_all_at(&bytes, 0).unwrap();
    }
    disk
}

fn options() -> Options {
    Options::default().segment_bytes(8192).first_segment_bytes(8192).window_bytes(4096).background(false)
}

/// Returns the records and the note of a closed log, and continues it with another record.
fn read_and_continue(fs: &Arc<dyn Fs>, next: u64) -> Result<(Vec<Vec<u8>>, [u64; 2])> {
    let strict = RecoveryOptions::default().mode(Mode::Strict);
    let mut recovery = Recovery::open(fs, Path::new(DIR), Lsn::ZERO, &strict)?;
    let mut records = Vec::new();
    while let Some(record) = recovery.next()? {
        records.push(record.payload.to_vec());
    }
    let tail = recovery.finish()?;
    let note = tail.note();
    let (log, mut appender) = Log::open(fs, &options(), tail, &mut SeededRng::new(next))?;
    appender.append(&[&payload(next)])?;
    log.close(appender)?;
    Ok((records, note))
}

/// Goal: a log of every version is read completely, with its note, and this build continues it.
/// Method: the fixtures; after a record was appended, all of them are read once more, now from
/// segments of two versions.
#[test]
fn every_version_is_read_and_continued() {
    for (version, note) in VERSIONS {
        let fs = fixture(version, |bytes| assert_eq!(bytes[8..12], version.to_le_bytes()));
        for count in [RECORDS, RECORDS + 1] {
            let (records, found) = read_and_continue(&fs, count).unwrap();
            assert!(records.iter().eq(&(0..count).map(payload).collect::<Vec<_>>()), "version {version}");
            assert_eq!(found, note, "version {version}");
        }
    }
}

/// Goal: a log of a later version is refused by a typed error that names the file, its version and
/// those that this build reads. Method: the newest fixture with its version raised, and checksums
/// to match.
#[test]
fn later_version_is_refused_by_name() {
    let (newest, _) = VERSIONS[VERSIONS.len() - 1];
    let fs = fixture(newest, |bytes| {
        for copy in [0, 2048] {
            bytes[copy + 8..copy + 12].copy_from_slice(&(newest + 1).to_le_bytes());
            for end in [copy + 56, copy + 88] {
                let sum = xxh3_64(&bytes[copy..end]).to_le_bytes();
                bytes[end..end + 8].copy_from_slice(&sum);
            }
        }
    });
    let error = read_and_continue(&fs, 0).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let text = error.to_string();
    let parts = ["log/000001.wal", "version 3 of the format", "reads versions 1 to 2"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

/// Writes the fixture of the current version into the folder that `OUT` names: see
/// `tests/fixtures/README.md`.
#[test]
#[ignore = "writes a fixture"]
fn write_fixture() {
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let dir = std::env::var("OUT").unwrap();
    let recovery = Recovery::open(&fs, Path::new(&dir), Lsn::ZERO, &RecoveryOptions::default()).unwrap();
    let (log, mut appender) =
        Log::open(&fs, &options(), recovery.finish().unwrap(), &mut SeededRng::new(1)).unwrap();
    for number in 0..RECORDS {
        if number == RECORDS / 2 {
            log.set_note(NOTE);
            appender.note().unwrap();
        }
        appender.append(&[&payload(number)]).unwrap();
    }
    log.close(appender).unwrap();
}
