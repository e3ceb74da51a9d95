//! Headers: encoding, decoding, and every check at open.

use super::*;
use crate::Error;

/// Returns a small store whose headers the tests change.
fn store(compression: Compression) -> Store {
    let ops = [put("alpha", "1"), put("beta", "22"), put("gamma", "333"), delete("beta")];
    let log = LogOptions::default().compression(compression).identifier(7);
    Store::build(&ops, &log, &IndexOptions::default().seed(1))
}

/// Opens a store after `change` was applied to one of its files.
fn open_changed(
    compression: Compression,
    name: &str,
    change: impl Fn(&mut Vec<u8>),
) -> crate::Result<SparkeyReader> {
    let store = store(compression);
    let mut bytes = store.read(name);
    change(&mut bytes);
    store.write(name, &bytes);
    store.open(&ReaderOptions::default())
}

fn set(at: usize, field: &[u8]) -> impl Fn(&mut Vec<u8>) + '_ {
    move |bytes| bytes[at..at + field.len()].copy_from_slice(field)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Corruption(u64),
    Foreign,
    Unsupported,
    Mismatch,
}

fn check(detail: &str, name: &str, result: crate::Result<SparkeyReader>, expected: Expected) {
    let error = result.expect_err(detail);
    let (file, found) = match &error {
        Error::Corruption { file, offset, .. } => (file, Expected::Corruption(*offset)),
        Error::Foreign { file, .. } => (file, Expected::Foreign),
        Error::Unsupported { file, .. } => (file, Expected::Unsupported),
        Error::Mismatch { file, .. } => (file, Expected::Mismatch),
        other => panic!("{detail}: {other}"),
    };
    let expected_file = if expected == Expected::Mismatch { INDEX } else { name };
    assert_eq!((file.as_path(), found), (Path::new(expected_file), expected), "{detail}: {error}");
}

/// Goal: an invalid field in the header of a log causes an error that names the field. Method:
/// change one field at a time.
#[test]
fn log_header_checks() {
    use Expected::{Corruption, Foreign, Mismatch, Unsupported};
    let huge = u64::MAX.to_le_bytes();
    let cases: [(&str, usize, &[u8], Expected); 24] = [
        ("magic", 0, b"\0", Foreign),
        ("an index's magic", 0, &[0x8f, 0x31, 0x11, 0x9a], Foreign),
        ("major too new", 4, &[2], Unsupported),
        ("major too old", 4, &[0], Unsupported),
        ("minor too new", 8, &[1], Unsupported),
        ("another identifier", 12, &[8], Mismatch),
        ("absurd puts", 16, &huge, Corruption(16)),
        ("more puts than fit", 16, &[30, 0], Corruption(16)),
        ("absurd deletes", 24, &huge, Corruption(24)),
        ("data_end before the data", 32, &[83], Corruption(32)),
        ("data_end after the file", 32, &[0, 1], Corruption(32)),
        ("data_end before the index's", 32, &[112], Corruption(72)),
        ("fewer puts than their bytes call for", 16, &[1], Corruption(72)),
        ("no puts, but bytes of them", 16, &[0], Corruption(16)),
        ("deletes without bytes", 56, &[0], Corruption(24)),
        ("more deletes than their bytes allow", 24, &[4], Corruption(24)),
        ("bytes that are not there", 72, &[27], Corruption(72)),
        ("a key longer than all puts", 40, &[25], Corruption(72)),
        ("absurd key", 40, &huge, Corruption(40)),
        ("absurd value", 48, &huge, Corruption(48)),
        ("absurd size of deletes", 56, &huge, Corruption(56)),
        ("absurd size of puts", 72, &huge, Corruption(72)),
        ("unknown compression", 64, &[3], Unsupported),
        ("absurd entries a block", 80, &[255; 4], Corruption(80)),
    ];
    for (detail, at, field, expected) in cases {
        check(detail, LOG, open_changed(Compression::None, LOG, set(at, field)), expected);
    }
    for block_bytes in [0u32, 9, (1 << 30) + 1] {
        let result = open_changed(Compression::Snappy, LOG, set(68, &block_bytes.to_le_bytes()));
        check("block size", LOG, result, Corruption(68));
    }
    // An index detects changes in the log that it covers.
    check("a longer key", LOG, open_changed(Compression::None, LOG, set(40, &[6])), Mismatch);
    check("a longer value", LOG, open_changed(Compression::None, LOG, set(48, &[4])), Mismatch);
    check("a shorter key", LOG, open_changed(Compression::None, LOG, set(40, &[4])), Mismatch);
}

/// Goal: an invalid field in the header of an index causes an error that names the field. Method:
/// change one field at a time.
#[test]
fn index_header_checks() {
    use Expected::{Corruption, Foreign, Mismatch, Unsupported};
    let huge = u64::MAX.to_le_bytes();
    let cases: [(&str, usize, &[u8], Expected); 19] = [
        ("magic", 0, b"\0", Foreign),
        ("a log's magic", 0, &[0x95, 0x9c, 0xb3, 0x49], Foreign),
        ("major", 4, &[2], Unsupported),
        ("minor too new", 8, &[2], Unsupported),
        ("another identifier", 12, &[8], Mismatch),
        ("data_end in the header", 20, &[83], Corruption(20)),
        ("data_end after the log's", 20, &[0, 1], Mismatch),
        ("a longer key", 28, &[200], Mismatch),
        ("a longer value", 36, &[200], Mismatch),
        ("more puts", 44, &[200], Mismatch),
        ("more entries than puts", 60, &[4], Corruption(60)),
        ("address of 5 bytes", 68, &[5], Corruption(68)),
        ("hash of 0 bytes", 72, &[0], Corruption(72)),
        ("no slots", 76, &[0; 8], Corruption(76)),
        ("too many slots", 76, &[9], Corruption(76)),
        ("absurdly many slots", 76, &huge, Corruption(76)),
        ("absurd displacement", 84, &huge, Corruption(84)),
        ("absurd entry bits", 92, &[63], Corruption(92)),
        ("absurd collisions", 96, &huge, Corruption(96)),
    ];
    for (detail, at, field, expected) in cases {
        check(detail, INDEX, open_changed(Compression::None, INDEX, set(at, field)), expected);
    }
    assert!(open_changed(Compression::None, INDEX, set(8, &[0])).is_ok(), "index version 1.0 is read as 1.1");
    let longer = open_changed(Compression::None, INDEX, |bytes| bytes.push(0));
    check("a byte too many", INDEX, longer, Corruption(76));
}

/// Goal: swapped and foreign files are distinguished from the expected ones. Method: the log as the
/// index and the reverse, empty files, text.
#[test]
fn foreign_files_are_refused() {
    let store = store(Compression::None);
    let (log, index) = (store.read(LOG), store.read(INDEX));
    let swapped = Store::from_bytes(&index, &log).open(&ReaderOptions::default()).unwrap_err();
    assert!(
        swapped.to_string().contains("is not a Sparkey index: it begins like a Sparkey log"),
        "{swapped}"
    );
    for foreign in [&b""[..], b"short", &b"#!/bin/sh\n".repeat(30)] {
        for (log, index) in [(foreign, &index[..]), (&log, foreign)] {
            let error = Store::from_bytes(log, index).open(&ReaderOptions::default()).unwrap_err();
            let is_cut = foreign.len() < 84;
            assert_eq!(matches!(error, Error::Corruption { offset: 0, .. }), is_cut, "{error}");
            assert_eq!(matches!(error, Error::Foreign { .. }), !is_cut, "{error}");
        }
    }
    let error = SparkeyReader::open_in(&store.fs, "missing", &ReaderOptions::default()).unwrap_err();
    assert_eq!(error.kind(), cairn_vfs::ErrorKind::NotFound);
}

/// Goal: an index that covers a part of the log shows the store as it was, and an index that covers
/// more than the log is refused.
/// Method: append after indexing; then combine the older log with the newer index.
#[test]
fn index_of_an_older_log_state() {
    let store = store(Compression::None);
    let (old_log, old_index) = (store.read(LOG), store.read(INDEX));
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    apply(
        &mut writer,
        &[put("beta", "new"), delete("alpha"), put("a longer key than any", &"x".repeat(100))],
    );
    writer.close().unwrap();
    let reader = store.reader();
    assert_eq!(scanned(&reader), store.live);
    reader.verify().unwrap();
    build_index_in(&store.fs, LOG, &IndexOptions::default()).unwrap();
    assert_eq!(store.reader().get(b"beta").unwrap().as_deref(), Some(&b"new"[..]));
    let newer = Store::from_bytes(&old_log, &store.read(INDEX)).open(&ReaderOptions::default());
    assert!(matches!(newer, Err(Error::Mismatch { .. })));
    assert!(Store::from_bytes(&store.read(LOG), &old_index).open(&ReaderOptions::default()).is_ok());
}
