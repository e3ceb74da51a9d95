//! Writers: appending, locking, poisoning, and refused operations.

use std::io::{self, Read};

use super::*;
use crate::Error;

proptest! {
    #![proptest_config(cases(100))]

    /// Goal: closing and reopening a log anywhere makes no difference. Method: the same operations
    /// written in one go and in two pieces; uncompressed bytes are equal, compressed logs hold the
    /// same records.
    #[test]
    fn pieces_equal_the_whole(ops in ops(80), options in compressions(), cut in 0usize..80) {
        let cut = cut.min(ops.len());
        let whole = Store::log_only(&ops, &options);
        let pieces = Store::log_only(&ops[..cut], &options);
        let mut writer = LogWriter::append_in(&pieces.fs, LOG, &options).unwrap();
        apply(&mut writer, &ops[cut..]);
        writer.close().unwrap();
        if LogReader::open_in(&whole.fs, LOG, Mode::Mmap).unwrap().header().compression == Format::None {
            prop_assert!(whole.read(LOG) == pieces.read(LOG));
        }
        build_index_in(&pieces.fs, LOG, &IndexOptions::default()).unwrap();
        prop_assert_eq!(scanned(&pieces.reader()), live(&ops));
        pieces.reader().verify().unwrap();
    }
}

/// Goal: the remains of an interrupted writer after the last commit are truncated. Method: garbage
/// after `data_end`; a writer that is dropped without a flush.
#[test]
fn garbage_tail_is_cut() {
    let ops = [put("a", "1"), put("b", "2")];
    let store = Store::log_only(&ops, &LogOptions::default());
    let committed = store.read(LOG);
    let mut garbled = committed.clone();
    garbled.extend([0xff; 1000]);
    store.write(LOG, &garbled);
    build_index_in(&store.fs, LOG, &IndexOptions::default()).unwrap();
    assert_eq!(scanned(&store.reader()), live(&ops), "readers ignore the tail");
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    assert_eq!(store.read(LOG), committed);
    writer.put(b"lost", b"never flushed").unwrap();
    drop(writer);
    assert_eq!(store.read(LOG)[32..40], committed[32..40]);
}

/// Goal: a log has one writer at a time. Method: open a second one while the first is open, and
/// after it is closed.
#[test]
fn second_writer_is_busy() {
    let store = Store::log_only(&[], &LogOptions::default());
    let first = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    for options in [LogOptions::default(), LogOptions::default().replace(true)] {
        let error = LogWriter::append_in(&store.fs, LOG, &options).unwrap_err();
        assert_eq!(error.kind(), cairn_vfs::ErrorKind::Busy, "{error}");
        let error = LogWriter::create_in(&store.fs, LOG, &options).unwrap_err();
        assert!(
            matches!(error.kind(), cairn_vfs::ErrorKind::Busy | cairn_vfs::ErrorKind::Conflict),
            "{error}"
        );
    }
    drop(first);
    LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
}

/// Goal: creating a log never destroys an existing one by accident, and replaces it, index
/// included, on request. Method: both.
#[test]
fn create_replaces_an_existing_log() {
    let store = Store::build(&[put("a", "1")], &LogOptions::default(), &IndexOptions::default());
    let error = LogWriter::create_in(&store.fs, LOG, &LogOptions::default()).unwrap_err();
    assert_eq!(error.kind(), cairn_vfs::ErrorKind::Conflict);
    let reader = store.reader();
    LogWriter::create_in(&store.fs, LOG, &LogOptions::default().replace(true)).unwrap().close().unwrap();
    assert!(!store.fs.exists(Path::new(INDEX)).unwrap());
    assert_eq!(store.read(LOG).len(), 84);
    assert_eq!(reader.get(b"a").unwrap().as_deref(), Some(&b"1"[..]), "an open reader keeps the old files");
}

/// Goal: a delete of a key longer than any put is dropped; others are kept. Method: the counts in
/// the header.
#[test]
fn long_deletes_are_dropped() {
    let store = Store::log_only(&[], &LogOptions::default());
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    assert!(!writer.delete(b"a").unwrap());
    assert!(writer.delete(b"").unwrap());
    writer.put(b"ab", b"").unwrap();
    assert!(writer.delete(b"cd").unwrap());
    assert!(!writer.delete(b"abc").unwrap());
    assert_eq!((writer.header().puts, writer.header().deletes), (1, 2));
    writer.close().unwrap();
}

/// A value whose source fails after some bytes.
struct Failing(usize, bool);

impl Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // An interruption is not a failure.
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = buf.len().min(self.0);
        buf[..count].fill(b'x');
        self.0 -= count;
        Ok(count)
    }
}

/// Goal: a streamed value equals a whole one; one that ends early poisons the writer and leaves the
/// last commit unchanged.
/// Method: both, with each compression.
#[test]
fn streamed_values() {
    for compression in [Compression::None, Compression::Snappy, Compression::ZSTD] {
        let options = LogOptions::default().compression(compression).block_bytes(1000).identifier(1);
        let whole = Store::log_only(&[Op::Put(b"k".to_vec(), vec![b'x'; 200_000])], &options);
        let store = Store::log_only(&[], &options);
        let mut writer = LogWriter::append_in(&store.fs, LOG, &options).unwrap();
        writer.put_stream(b"k", 200_000, &mut Failing(200_000, false)).unwrap();
        writer.flush().unwrap();
        assert_eq!(store.read(LOG), whole.read(LOG));
        let error = writer.put_stream(b"short", 200_000, &mut Failing(100_000, false)).unwrap_err();
        assert!(error.to_string().contains("100000 bytes short"), "{error}");
        assert!(matches!(writer.put(b"x", b""), Err(Error::Poisoned { .. })));
        assert!(matches!(writer.delete(b""), Err(Error::Poisoned { .. })));
        assert!(matches!(writer.close(), Err(Error::Poisoned { .. })));
        let mut writer = LogWriter::append_in(&store.fs, LOG, &options).unwrap();
        assert_eq!(store.read(LOG), whole.read(LOG));
        writer.put(b"x", b"").unwrap();
        writer.close().unwrap();
    }
}

/// Goal: lengths that no file can hold are refused and have no effect. Method: a stream that claims
/// 2^63 bytes.
#[test]
fn absurd_lengths_are_refused() {
    let store = Store::log_only(&[], &LogOptions::default());
    let mut writer = LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap();
    for bytes in [u64::MAX, i64::MAX as u64 - 80] {
        let error = writer.put_stream(b"k", bytes, &mut io::empty()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
    writer.put(b"k", b"v").unwrap();
    writer.close().unwrap();
    assert_eq!(store.read(LOG).len(), 84 + 4);
}

/// Goal: appending to a Java log makes its header safe for all readers. Method: the entries per
/// block change from 1 to 0.
#[test]
fn java_header_is_made_safe() {
    let store = Store::log_only(&[put("a", "1")], &LogOptions::default());
    let mut log = store.read(LOG);
    log[0x50] = 1;
    store.write(LOG, &log);
    LogWriter::append_in(&store.fs, LOG, &LogOptions::default()).unwrap().close().unwrap();
    assert_eq!(store.read(LOG)[0x50], 0);
}

/// Goal: the remains of an interrupted creation do not prevent a new one, and a log is never
/// mistaken for them.
/// Method: an empty file and files of zeros; then one zero too many, a log without records, and a
/// file of another type.
#[test]
fn empty_log_files_are_taken_over() {
    let unborn = [vec![], vec![0; 10], vec![0; 84]];
    for bytes in unborn {
        let store = Store::from_bytes(&bytes, &[]);
        LogWriter::create_in(&store.fs, LOG, &LogOptions::default()).unwrap().close().unwrap();
        assert_eq!(LogReader::open_in(&store.fs, LOG, Mode::Pread).unwrap().header().puts, 0);
    }
    let empty_log = Store::log_only(&[], &LogOptions::default()).read(LOG);
    for bytes in [vec![0; 85], empty_log, b"notes".to_vec()] {
        let store = Store::from_bytes(&bytes, &[]);
        let error = LogWriter::create_in(&store.fs, LOG, &LogOptions::default()).unwrap_err();
        assert_eq!(error.kind(), cairn_vfs::ErrorKind::Conflict, "{error}");
        assert_eq!(store.read(LOG), bytes);
    }
}
