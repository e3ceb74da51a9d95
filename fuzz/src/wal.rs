//! The fuzz target of the log, which panics if something is wrong with its input.
//!
//! `crates/wal/tests/fuzz_corpus.rs` includes this module too, and runs it on the committed corpus
//! and on mutations of it.

use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions, SeededRng};
use cairn_wal::{Error, Log, Lsn, Mode, Options, Recovery, RecoveryOptions};

const DIR: &str = "log";
const HEADER_BYTES: usize = 4096;

/// Input: a byte of flags, the length of the first segment in units of 8 (two bytes), that segment,
/// the second one. With flag 1, the checksums are corrected first, because otherwise hardly any
/// record would be accepted.
pub fn wal_segments(data: &[u8]) {
    let Some((head, bytes)) = data.split_at_checked(3) else { return };
    let len = usize::from(u16::from_le_bytes([head[1], head[2]])) * 8;
    let (first, second) = bytes.split_at(len.min(bytes.len()));
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    assert!(fs.create_dir_all(Path::new(DIR)).is_ok());
    for (name, bytes) in [("log/000001.wal", first), ("log/000002.wal", second)] {
        let mut bytes = bytes.to_vec();
        if head[0] & 1 == 1 {
            make_right(&mut bytes);
        }
        let written =
            fs.open(Path::new(name), OpenOptions::create()).and_then(|file| file.write_all_at(&bytes, 0));
        assert!(written.is_ok(), "a disk in memory takes what it is given");
    }
    let strict = records(&fs, Mode::Strict);
    let tolerant = records(&fs, Mode::TolerateTornTail);
    let salvaged = records(&fs, Mode::Salvage);
    if let Ok(strict) = &strict {
        assert!(tolerant.as_ref().is_ok_and(|records| records == strict), "strict sees what tolerant does");
    }
    if let (Ok(tolerant), Ok(salvaged)) = (&tolerant, &salvaged) {
        assert!(salvaged.len() >= tolerant.len(), "a salvage finds no less");
    }
    if let Ok(before) = tolerant {
        goes_on(&fs, before);
    }
}

/// Returns all records that a recovery finds.
fn records(fs: &Arc<dyn Fs>, mode: Mode) -> Result<Vec<Vec<u8>>, ErrorKind> {
    let read = || -> Result<Vec<Vec<u8>>, Error> {
        let options = RecoveryOptions::default().mode(mode).read_bytes(4096);
        let mut recovery = Recovery::open(fs, Path::new(DIR), Lsn::ZERO, &options)?;
        let (mut records, mut last) = (Vec::new(), Lsn::ZERO);
        while let Some(record) = recovery.next()? {
            assert!(record.lsn > last, "positions ascend");
            last = record.lsn;
            records.push(record.payload.to_vec());
        }
        Ok(records)
    };
    read().map_err(|error| {
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Corruption | ErrorKind::Unsupported), "{error}");
        kind
    })
}

/// Checks that a recovered log can be written and recovered again.
fn goes_on(fs: &Arc<dyn Fs>, mut expected: Vec<Vec<u8>>) {
    let open = || -> Result<(), Error> {
        let recovery = Recovery::open(fs, Path::new(DIR), Lsn::ZERO, &RecoveryOptions::default())?;
        let options = Options::default().segment_bytes(8192).window_bytes(4096).background(false);
        let (log, mut appender) = Log::open(fs, &options, recovery.finish()?, &mut SeededRng::new(1))?;
        appender.append(&[b"one more"])?;
        log.sync()
    };
    let opened = open();
    assert!(opened.is_ok(), "{opened:?}");
    expected.push(b"one more".to_vec());
    assert!(records(fs, Mode::TolerateTornTail) == Ok(expected), "recovered once, recovered again");
}

/// Gives headers and records correct checksums, computed from the description of the format and not
/// by the code under test.
fn make_right(segment: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
    if segment.len() < HEADER_BYTES {
        return;
    }
    for at in [0, 2048] {
        let sum = xxh3_64(&segment[at..at + 56]);
        segment[at + 56..at + 64].copy_from_slice(&sum.to_le_bytes());
    }
    let words = [word(segment, 16), word(segment, 24), word(segment, 8) >> 32];
    let seed = xxh3_64(&words.map(u64::to_le_bytes).concat());
    let mut at = HEADER_BYTES;
    while at + 16 <= segment.len() {
        let words = word(segment, at + 8);
        let end = at + 16 + words as u32 as usize;
        if words == 0 || end > segment.len() {
            return;
        }
        let mut hash = words ^ seed.wrapping_add((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^= hash >> 33;
        let sum = hash ^ (xxh3_64(&segment[at + 16..end]) & ((1 << 48) - 1));
        segment[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        at = end.next_multiple_of(8);
    }
}
