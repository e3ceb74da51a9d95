//! Rewriting.

use cairn_vfs::ErrorKind;

use super::*;
use crate::Error;

proptest! {
    #![proptest_config(cases(80))]

    /// Goal: a rewrite keeps the live entries in their order, drops the rest and changes the
    /// format. Method: random stores from and to every format, to another path and onto themselves.
    #[test]
    fn keeps_what_is_alive(ops in ops(100), from in compressions(), to in compressions(), in_place: bool) {
        let store = Store::build(&ops, &from, &IndexOptions::default());
        let target = if in_place { "x" } else { "y" };
        let reader = store.reader();
        let mut order = Vec::new();
        let mut scan = reader.scan();
        while let Some(entry) = scan.next_entry().unwrap() {
            order.push(entry.key().to_vec());
        }
        let to = to.identifier(9);
        reader.rewrite_in(&store.fs, target, &to, &IndexOptions::default()).unwrap();
        prop_assert_eq!(scanned(&reader), live(&ops), "the old files live on under their reader");
        let new = SparkeyReader::open_in(&store.fs, target, &ReaderOptions::default()).unwrap();
        let report = new.verify().unwrap();
        prop_assert_eq!((report.deletes, report.garbage_bytes), (0, 0));
        prop_assert_eq!(new.info().log.identifier, 9);
        let mut scan = new.scan_log();
        for key in order {
            let entry = scan.next_entry().unwrap().unwrap();
            prop_assert_eq!(entry.key(), &key[..]);
        }
        prop_assert!(scan.next_entry().unwrap().is_none());
        prop_assert_eq!(scanned(&new), live(&ops));
    }
}

/// Goal: large values are streamed. Method: a value of 3 MB between two small ones, compressed to
/// uncompressed.
#[test]
fn large_values() {
    let big: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let ops = [put("a", "1"), Op::Put(b"big".to_vec(), big), put("z", "2")];
    let from = LogOptions::default().compression(Compression::ZSTD);
    let store = Store::build(&ops, &from, &IndexOptions::default());
    store.reader().rewrite_in(&store.fs, "y.spi", &LogOptions::default(), &IndexOptions::default()).unwrap();
    let new = SparkeyReader::open_in(&store.fs, "y", &ReaderOptions::default()).unwrap();
    assert!(scanned(&new) == live(&ops));
}

/// Returns a store of a few entries whose log has the identifier 7.
fn small() -> Store {
    let ops = [put("a", "1"), put("b", "2"), delete("a")];
    Store::build(&ops, &LogOptions::default().identifier(7), &IndexOptions::default())
}

fn rewrite(reader: &SparkeyReader, store: &Store, target: &str, log: &LogOptions) -> crate::Result<()> {
    reader.rewrite_in(&store.fs, target, log, &IndexOptions::default()).map(|_| ())
}

/// Goal: a log with an open writer is not replaced, because the records flushed by that writer
/// would be lost. Method: a rewrite while a writer is open, onto the same store and onto another;
/// then the writer continues.
#[test]
fn rewrite_is_refused_while_a_writer_is_open() {
    let (store, other) = (small(), Store::log_only(&[put("x", "y")], &LogOptions::default()));
    let reader = store.reader();
    for target in [&store, &other] {
        let before = target.read(LOG);
        let mut writer = LogWriter::append_in(&target.fs, LOG, &LogOptions::default()).unwrap();
        let error = rewrite(&reader, target, LOG, &LogOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert_eq!(target.read(LOG), before);
        writer.put(b"new", b"kept").unwrap();
        writer.close().unwrap();
        build_index_in(&target.fs, LOG, &IndexOptions::default()).unwrap();
        assert_eq!(target.reader().get(b"new").unwrap().as_deref(), Some(&b"kept"[..]));
    }
}

/// Goal: a rewrite does not lose records that the index does not cover, nor records of a newer log.
/// Method: append to the log, or replace it, while a reader is open; then open it again and
/// rewrite.
#[test]
fn rewrite_keeps_a_newer_log() {
    let store = small();
    let reader = store.reader();
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    writer.put(b"new", b"kept").unwrap();
    writer.close().unwrap();
    let error = rewrite(&reader, &store, INDEX, &LogOptions::default()).unwrap_err();
    assert!(
        matches!(error, Error::Invalid { .. }) && error.to_string().contains("build the index first (`cairn"),
        "{error}"
    );
    build_index_in(&store.fs, LOG, &IndexOptions::default()).unwrap();
    rewrite(&store.reader(), &store, LOG, &LogOptions::default()).unwrap();
    let error = rewrite(&reader, &store, LOG, &LogOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }) && error.to_string().contains("replaced"), "{error}");
    let expected: BTreeMap<Vec<u8>, Vec<u8>> =
        [("b", "2"), ("new", "kept")].map(|(key, value)| (key.into(), value.into())).into();
    assert_eq!(scanned(&store.reader()), expected);
}

/// Goal: an old index is never accepted as one of the new log. Method: request the identifier of
/// the rewritten store, and that of the replaced one.
#[test]
fn rewritten_log_gets_a_new_identifier() {
    let store = small();
    LogWriter::create_in(&store.fs, "y", &LogOptions::default().identifier(8)).unwrap().close().unwrap();
    let reader = store.reader();
    for (target, identifier) in [("x", 7), ("y", 7), ("y", 8), ("z", 7)] {
        let error =
            rewrite(&reader, &store, target, &LogOptions::default().identifier(identifier)).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{target} {identifier}: {error}");
        assert_eq!(store.fs.exists(&index_path(target)).unwrap(), target == "x");
    }
    for target in ["x", "y", "z"] {
        rewrite(&reader, &store, target, &LogOptions::default().identifier(9)).unwrap();
    }
}

/// Goal: damage in a streamed value is reported as damage of the store that it is read from.
/// Method: a block in the middle of a value of 3 MB set to zeros.
#[test]
fn damage_in_a_large_value_is_corruption() {
    let big: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let from = LogOptions::default().compression(Compression::Snappy);
    let store = Store::build(&[Op::Put(b"big".to_vec(), big)], &from, &IndexOptions::default());
    let mut log = store.read(LOG);
    let middle = log.len() / 2;
    log[middle..middle + 10_000].fill(0);
    store.write(LOG, &log);
    let error = rewrite(&store.reader(), &store, "y", &LogOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if file == Path::new(LOG)), "{error}");
}
