//! Tests of whole files: options, range tombstones, dictionaries, prefixes, direct reads, large
//! tables.

use cairn_vfs::StdFs;

use super::*;
use crate::kind::SEQNO_MAX;
use crate::range_del::{RangeTombstone, RangeTombstones};

/// Goal: entries out of order and options out of range are refused with a message that names them.
/// Method: one of each.
#[test]
fn misuse_is_an_error() {
    let fs = disk();
    let writer = |options| TableWriter::new(create(&fs, "t"), 1, options);
    let mut table = writer(TableOptions::default()).unwrap();
    table.add(b"b", 5, Kind::Put, b"").unwrap();
    for (key, seqno) in [(&b"a"[..], 9), (b"b", 5), (b"b", 6), (b"", 0)] {
        let error = table.add(key, seqno, Kind::Put, b"").unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    }
    table.add(b"b", 4, Kind::Put, b"").unwrap();
    assert!(table.add(b"c", SEQNO_MAX + 1, Kind::Put, b"").is_err());
    assert!(writer(TableOptions::default()).unwrap().finish().is_err(), "an empty table");
    let default = TableOptions::default;
    let bad = [
        TableOptions { block_bytes: 10, ..default() },
        TableOptions { partition_bytes: 1 << 30, ..default() },
        TableOptions { restart_interval: 0, ..default() },
        TableOptions { filter: Some(FilterPolicy::bloom(99.0)), ..default() },
        TableOptions { prefix: Some(PrefixExtractor::Fixed(0)), ..default() },
        TableOptions { compression: Compression::Zstd { level: 99, dictionary_bytes: 0 }, ..default() },
        TableOptions { compression: Compression::Zstd { level: 1, dictionary_bytes: 1 << 30 }, ..default() },
    ];
    for options in bad {
        let error = writer(options.clone()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{options:?}: {error:?}");
    }
}

/// Goal: range tombstones are read back and widen the key range.
/// Method: tables with and without entries.
#[test]
fn range_tombstones() {
    let fs = disk();
    for with_entries in [false, true] {
        let mut writer = TableWriter::new(create(&fs, "t"), 4, TableOptions::default()).unwrap();
        if with_entries {
            writer.add(b"m", 20, Kind::Put, b"v").unwrap();
        }
        let tombstone = |start: &[u8], end: &[u8], seqno| RangeTombstone {
            start: start.to_vec(),
            end: end.to_vec(),
            seqno,
        };
        let set = RangeTombstones::new(vec![tombstone(b"c", b"n", 10), tombstone(b"k", b"x", 30)]);
        let mut encoded = Vec::new();
        set.encode(&mut encoded);
        writer.add_range_tombstones(&encoded, 2, (b"c", b"x"), (10, 30)).unwrap();
        assert!(writer.add_range_tombstones(&encoded, 2, (b"c", b"x"), (10, 30)).is_err());
        let meta = writer.finish().unwrap();
        assert_eq!((&meta.smallest[..], &meta.largest[..]), (&b"c"[..], &b"x"[..]));
        assert_eq!((meta.seqnos, meta.tombstones, meta.entries), ((10, 30), 2, 2 + u64::from(with_entries)));
        let table = open(&fs, "t", 4).unwrap();
        assert_eq!(**table.range_tombstones(), set);
        table.verify(Some(meta.checksum)).unwrap();
        assert_eq!(scan(&table).unwrap().len(), usize::from(with_entries));
        assert_eq!(versions(&table, b"m", 99).unwrap().len(), usize::from(with_entries));
        assert!(versions(&table, b"z", 99).unwrap().is_empty());
        assert_eq!(table.approximate_offset(b"z").unwrap(), table.properties().data_bytes);
        drop(table);
        fs.remove(Path::new("t")).unwrap();
    }
}

/// Goal: a dictionary saves space where values are small and similar.
/// Method: compare the size of the data with and without.
#[test]
fn dictionaries_help() {
    let mut model = Model::new();
    for n in 0..5000u64 {
        let value =
            format!("{{\"id\":{n},\"country\":\"SE\",\"plan\":\"premium\",\"seen\":{}}}", n * 7919 % 100_003);
        model.insert((n.to_be_bytes().to_vec(), Reverse(n)), (Kind::Put, value.into_bytes()));
    }
    let size = |dictionary_bytes| {
        let fs = disk();
        let compression = Compression::Zstd { level: 3, dictionary_bytes };
        let options = TableOptions { compression, block_bytes: 1024, ..TableOptions::default() };
        let meta = write(&fs, "t", 1, &options, &model);
        let table = open(&fs, "t", 1).unwrap();
        table.verify(Some(meta.checksum)).unwrap();
        assert_eq!(table.properties().dictionary_block.is_some(), dictionary_bytes > 0);
        table.properties().data_bytes
    };
    let (without, with) = (size(0), size(8192));
    println!("{without} bytes of data without, {with} with a dictionary");
    assert!(with * 10 < without * 9, "{with} against {without}");
}

/// Goal: prefix filters avoid reads for absent prefixes, and never hide a present one.
/// Method: look up a thousand prefixes in a table, then as many absent ones.
#[test]
fn prefix_filters() {
    for prefix in [PrefixExtractor::Fixed(5), PrefixExtractor::UpTo(b':')] {
        let mut model = Model::new();
        for n in (0..1000u64).step_by(2) {
            for item in 0..9 {
                model.insert((format!("{n:04}:{item}").into_bytes(), Reverse(0)), (Kind::Put, vec![7; 30]));
            }
        }
        let fs = disk();
        let options = TableOptions {
            prefix: Some(prefix),
            partition_bytes: 256,
            block_bytes: 512,
            ..TableOptions::default()
        };
        write(&fs, "t", 1, &options, &model);
        let table = open(&fs, "t", 1).unwrap();
        assert!(table.properties().partitions > 5);
        let mut passed = 0;
        for n in 0..1000u64 {
            let asked = format!("{n:04}:").into_bytes();
            let may = table.may_contain_prefix(&asked).unwrap();
            assert!(may || n % 2 == 1, "{n} is hidden");
            passed += u64::from(may && n % 2 == 1);
            let mut cursor = table.cursor(&CursorOptions { prefix: Some(asked), ..CursorOptions::default() });
            cursor.seek_first().unwrap();
            let mut count = 0;
            while cursor.valid() {
                count += 1;
                cursor.next().unwrap();
            }
            assert_eq!(count, if n % 2 == 0 { 9 } else { 0 });
        }
        assert!(passed < 30, "{passed} of 500 absent prefixes pass");
        assert!(table.may_contain_prefix(b"0001").unwrap(), "what is no whole prefix is not known");
    }
}

/// Goal: the filters of a table have the false positive rate of their policy.
/// Method: 20,000 keys, 100,000 absent ones.
#[test]
fn filters_filter() {
    let model = numbered(20_000, 8);
    for policy in [FilterPolicy::bloom(10.0), FilterPolicy::ribbon(7.2), FilterPolicy::bloom(4.5)] {
        let fs = disk();
        write(&fs, "t", 1, &TableOptions { filter: Some(policy), ..TableOptions::default() }, &model);
        let table = open(&fs, "t", 1).unwrap();
        let absent = (0..100_000u64).map(|n| format!("key{:08}x", n % 60_000).into_bytes());
        let passed = absent.filter(|key| table.may_contain(key, hash_key(key)).unwrap()).count();
        let (rate, expected) = (passed as f64 / 100_000.0, policy.false_positive_rate());
        println!("{policy:?}: {rate:.5} measured, {expected:.5} expected");
        assert!(rate < expected * 1.3 && rate > expected * 0.7, "{policy:?}: {rate} against {expected}");
    }
}

/// Goal: approximate offsets grow with keys.
/// Method: the offsets of every thousandth key.
#[test]
fn approximate_offsets() {
    let model = numbered(20_000, 30);
    let fs = disk();
    write(&fs, "t", 1, &TableOptions::default(), &model);
    let table = open(&fs, "t", 1).unwrap();
    let offsets: Vec<_> =
        model.keys().step_by(1000).map(|(key, _)| table.approximate_offset(key).unwrap()).collect();
    assert!(offsets.is_sorted() && offsets[0] == 0, "{offsets:?}");
    let (middle, end) = (offsets[offsets.len() / 2], table.properties().data_bytes);
    assert!(middle > end * 2 / 5 && middle < end * 3 / 5, "{middle} of {end}");
}

/// Goal: direct reads return the same data.
/// Method: on the real disk, if its file system supports them, with and without readahead.
#[test]
fn direct_reads() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = folder.path().join("t");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let model = numbered(20_000, 20);
    let meta = write(&fs, path.to_str().unwrap(), 1, &TableOptions::default(), &model);
    let cache = Arc::new(Cache::new(1 << 16));
    let options = OpenOptions { direct: true, ..OpenOptions::default() };
    let table = match Table::open(&fs, &path, 1, &cache, options) {
        Err(error) if error.kind() == cairn_vfs::ErrorKind::Unsupported => {
            println!("no direct I/O here: {error}");
            return;
        }
        table => table.unwrap(),
    };
    assert!(scan(&table).unwrap() == model.iter().map(entry).collect::<Vec<_>>());
    for ((key, seqno), (kind, value)) in model.iter().step_by(97) {
        assert_eq!(versions(&table, key, seqno.0).unwrap()[0], (seqno.0, *kind, value.clone()));
    }
    table.verify(Some(meta.checksum)).unwrap();
}

/// Goal: the writer's size estimate is close, and its memory does not grow with the file.
/// Method: compare estimates while writing with the final size of an uncompressed table.
#[test]
fn estimates() {
    let fs = disk();
    let options = TableOptions { compression: Compression::None, ..TableOptions::default() };
    let mut writer = TableWriter::new(create(&fs, "t"), 1, options).unwrap();
    for n in 0..50_000u64 {
        writer.add(&n.to_be_bytes(), 0, Kind::Put, &[7; 50]).unwrap();
    }
    let estimate = writer.estimated_bytes();
    let bytes = writer.finish().unwrap().bytes;
    assert!(estimate.abs_diff(bytes) < bytes / 50, "{estimate} estimated, {bytes} written");
}

/// Goal: times and blobs are stored as passed to the manifest.
/// Method: set, finish, open.
#[test]
fn notes_are_kept() {
    let fs = disk();
    let options = TableOptions { oldest_secs: 77, newest_secs: 88, ..TableOptions::default() };
    let mut writer = TableWriter::new(create(&fs, "t"), 1, options).unwrap();
    writer.add(b"k", 1, Kind::Blob, b"ref").unwrap();
    writer.note_expiry(500);
    writer.note_expiry(400);
    [(9, 10), (3, 1), (9, 5)].into_iter().for_each(|(number, bytes)| writer.note_blob(number, bytes));
    let meta = writer.finish().unwrap();
    assert_eq!((meta.oldest_secs, meta.newest_secs, meta.expires_secs), (77, 88, 400));
    assert_eq!(meta.blobs, [(3, 1), (9, 15)]);
    let table = open(&fs, "t", 1).unwrap();
    let properties = table.properties();
    let secs = (properties.oldest_secs, properties.newest_secs, properties.expires_secs);
    assert_eq!((secs, &properties.blobs), ((77, 88, 400), &meta.blobs));
    assert!(properties.to_string().contains("entries           1 (0 deletes, 0 merges)"), "{properties}");
}

/// Goal: the format does not change by accident.
/// Method: compare the checksum of an uncompressed table with a recorded one.
#[test]
fn golden() {
    let fs = disk();
    let options =
        TableOptions { compression: Compression::None, block_bytes: 512, ..TableOptions::default() };
    let meta = write(&fs, "t", 42, &options, &numbered(100, 10));
    assert_eq!((meta.bytes, meta.checksum), GOLDEN, "{:#x}", meta.checksum);
}

const GOLDEN: (u64, u64) = (2816, 0x7c1c_d917_2175_310a);
