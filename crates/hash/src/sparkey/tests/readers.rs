//! Readers: modes, batches, loads, threads.

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{FaultFs, FaultOptions, Load, Operation, StdFs};

use super::*;

/// Goal: batches of every size around the group size answer every key once, in every mode. Method:
/// present, absent and repeated keys.
#[test]
fn batches_of_any_size() {
    let ops: Vec<Op> = (0..500).map(|n| put(&format!("key {n}"), &"v".repeat(n))).collect();
    for compression in [Compression::None, Compression::ZSTD] {
        let log = LogOptions::default().compression(compression).block_bytes(600);
        let store = Store::build(&ops, &log, &IndexOptions::default());
        for (mode, cache) in [(Mode::Mmap, 0), (Mode::Mmap, 1 << 20), (Mode::Pread, 0)] {
            let options = ReaderOptions::default().mode(mode).block_cache_bytes(cache);
            let reader = store.open(&options).unwrap();
            for size in [0, 1, 2, 31, 32, 33, 64, 100] {
                let keys: Vec<String> = (0..size).map(|n| format!("key {}", (n * 37) % 700)).collect();
                let mut answers = vec![0; size];
                reader
                    .get_many(&keys, |number, value| {
                        answers[number] += 1;
                        let id = (number * 37) % 700;
                        assert_eq!(value.map(<[u8]>::len), (id < 500).then_some(id));
                    })
                    .unwrap();
                assert!(answers.iter().all(|&count| count == 1), "{size}: {answers:?}");
            }
        }
    }
}

/// Goal: keys with equal hashes are distinguished, one by one and in batches. Method: keys whose
/// 32-bit hashes collide, found by search.
#[test]
fn colliding_hashes() {
    let mut by_hash = std::collections::HashMap::new();
    let mut pairs = Vec::new();
    for n in 0u32.. {
        let key = n.to_string();
        let hash = cairn_codec::murmur3::hash32(key.as_bytes(), 1);
        if let Some(other) = by_hash.insert(hash, key.clone()) {
            pairs.push((other, key));
            if pairs.len() == 3 {
                break;
            }
        }
    }
    // Only one key of the last pair is present.
    let present: Vec<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).take(5).collect();
    let ops: Vec<Op> = present.iter().map(|key| put(key, &format!("value of {key}"))).collect();
    let store = Store::build(
        &ops,
        &LogOptions::default(),
        &IndexOptions::default().seed(1).hash_width(HashWidth::Bits32),
    );
    let reader = store.reader();
    assert_eq!(reader.info().index.collisions, 2);
    let keys: Vec<&String> = pairs.iter().flat_map(|(a, b)| [a, b]).collect();
    for key in &keys {
        assert_eq!(
            reader.get(key.as_bytes()).unwrap().as_deref(),
            store.live.get(key.as_bytes()).map(|v| &v[..])
        );
    }
    reader
        .get_many(&keys, |number, value| {
            assert_eq!(value, store.live.get(keys[number].as_bytes()).map(|v| &v[..]))
        })
        .unwrap();
    reader.verify().unwrap();
}

/// Goal: an absent key is not found in a full table, whatever its hash. Method: a table of one
/// slot, and two keys with equal 32-bit hashes; every kind of query, in every mode.
#[test]
fn absent_key_in_a_full_table() {
    let hash = |key: &[u8]| cairn_codec::murmur3::hash32(key, 1);
    let (present, absent) = (b"aaaaaaaa", b"0013H&Q|");
    assert_eq!(hash(present), hash(absent));
    for compression in [Compression::None, Compression::Snappy] {
        let ops = [Op::Put(present.to_vec(), b"x".to_vec())];
        let log = LogOptions::default().compression(compression);
        let store = Store::build(&ops, &log, &IndexOptions::default().seed(1));
        assert_eq!(store.reader().info().index.capacity, NonZeroU64::MIN);
        for mode in [Mode::Mmap, Mode::Heap, Mode::Pread] {
            let reader = store.open(&ReaderOptions::default().mode(mode)).unwrap();
            assert_eq!(reader.get(present).unwrap().as_deref(), Some(&b"x"[..]));
            assert_eq!(reader.get(absent).unwrap(), None, "{mode:?}");
            assert!(!reader.get_into(absent, &mut Vec::new()).unwrap());
            assert!(!reader.contains(absent).unwrap());
            assert!(reader.value_reader(absent).unwrap().is_none());
            reader.get_many(&[absent], |_, value| assert_eq!(value, None)).unwrap();
            reader.verify().unwrap();
        }
    }
}

/// Goal: values are borrowed where possible: mapped and uncompressed, or from a cached block.
/// Method: check the variant that a lookup returns.
#[test]
fn uncompressed_values_are_borrowed() {
    use std::borrow::Cow::{Borrowed, Owned};
    let ops = [put("a", "1"), put("b", "2"), Op::Put(b"long".to_vec(), vec![b'x'; 5000])];
    let plain = Store::build(&ops, &LogOptions::default(), &IndexOptions::default());
    assert!(matches!(plain.reader().get(b"long"), Ok(Some(Borrowed(_)))));
    let pread = plain.open(&ReaderOptions::default().mode(Mode::Pread)).unwrap();
    assert!(matches!(pread.get(b"a"), Ok(Some(Owned(_)))));
    let log = LogOptions::default().compression(Compression::Snappy).block_bytes(1000);
    let packed = Store::build(&ops, &log, &IndexOptions::default());
    let reader = packed.reader();
    assert_eq!(reader.info().block_cache_bytes, 0);
    assert!(matches!(reader.get(b"b"), Ok(Some(Borrowed(_)))));
    assert!(reader.info().block_cache_bytes > 0);
    assert!(matches!(reader.get(b"a"), Ok(Some(Borrowed(_)))));
    assert!(matches!(reader.get(b"long"), Ok(Some(Owned(_)))));
    let uncached = packed.open(&ReaderOptions::default().block_cache_bytes(0)).unwrap();
    assert!(matches!(uncached.get(b"a"), Ok(Some(Owned(_)))));
}

/// Goal: one reader serves many threads. Method: four threads look up all keys through one small
/// block cache.
#[test]
fn shared_by_threads() {
    let ops: Vec<Op> = (0..2000).map(|n| put(&format!("key {n}"), &format!("value {n}"))).collect();
    let log = LogOptions::default().compression(Compression::Snappy).block_bytes(300);
    let store = Store::build(&ops, &log, &IndexOptions::default());
    for cache in [0, 20_000, 1 << 20] {
        let reader = store.open(&ReaderOptions::default().block_cache_bytes(cache)).unwrap();
        cairn_vfs::thread::scope(|scope| {
            for start in 0..4 {
                let (reader, live) = (&reader, &store.live);
                scope.spawn(move || {
                    for (key, value) in live.iter().skip(start * 500).chain(live.iter().take(start * 500)) {
                        assert_eq!(reader.get(key).unwrap().as_deref(), Some(&value[..]));
                    }
                });
            }
        });
    }
}

/// Goal: loads report how much they achieved, on the real file system. Method: prefetch and lock
/// both files of a small store.
#[test]
fn load_summary_reports_both_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    let mut writer = LogWriter::create(&path, &LogOptions::default()).unwrap();
    apply(&mut writer, &(0..1000).map(|n| put(&n.to_string(), "value")).collect::<Vec<_>>());
    writer.close().unwrap();
    build_index(&path, &IndexOptions::default()).unwrap();
    for mode in [Mode::Mmap, Mode::Heap] {
        let options = ReaderOptions::default().mode(mode).index_load(Load::Prefetch).log_load(Load::Lock);
        let reader = SparkeyReader::open(&path, &options).unwrap();
        let (info, load) = (reader.info(), reader.load_summary());
        assert_eq!(load.index.requested_bytes as u64, info.index_bytes);
        assert_eq!(load.log.requested_bytes as u64, info.log.data_end - 84, "the records");
        assert_eq!(load.index.resident_bytes, load.index.requested_bytes);
        assert_eq!(load.log.resident_bytes, load.log.requested_bytes);
    }
    let options = ReaderOptions::default().mode(Mode::Pread).index_load(Load::Prefetch);
    let reader = SparkeyReader::open(&path, &options).unwrap();
    assert!(reader.load_summary().index.problem.is_some());
    assert!(reader.load_summary().log.problem.is_none());
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let (index, log) = (index_path(&path), log_path(&path));
    assert!(SparkeyReader::open_pair_in(&fs, index, log, &ReaderOptions::default()).is_ok());
}

/// Goal: a log that is copied to memory is read only up to the end of its records, because a writer
/// may truncate the rest meanwhile.
/// Method: garbage after `data_end`, as an interrupted writer leaves it; check the reads of an
/// open.
#[test]
fn heap_copies_only_records() {
    use cairn_vfs::fault::LoggedOperation;
    use cairn_vfs::{FaultFs, FaultOptions};
    let store = Store::build(&[put("a", "1")], &LogOptions::default(), &IndexOptions::default());
    let mut log = store.read(LOG);
    let data_end = log.len() as u64;
    log.resize(log.len() + (1 << 20), 0xff);
    let fault = FaultFs::new(FaultOptions { record: true, ..FaultOptions::default() });
    fault.install(Path::new(LOG), &log).unwrap();
    fault.install(Path::new(INDEX), &store.read(INDEX)).unwrap();
    let fs: Arc<dyn Fs> = Arc::new(fault.clone());
    let options = ReaderOptions::default().log_mode(Mode::Heap);
    let reader = SparkeyReader::open_in(&fs, LOG, &options).unwrap();
    assert_eq!(reader.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    let operations = fault.log();
    let read_to = operations.iter().filter_map(|operation| match operation {
        // Only the header of the index, of 112 bytes, is read here.
        LoggedOperation::Read { offset, len, .. } if *len != 112 => Some(offset + len),
        _ => None,
    });
    assert_eq!(read_to.max(), Some(data_end));
}

/// Goal: a scan of the live entries ends at its first error. Method: the index is read
/// positionally, and its first read fails; later reads would succeed.
#[test]
fn live_scans_end_at_their_first_error() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    let mut writer = LogWriter::create_in(&fs, LOG, &LogOptions::default()).unwrap();
    apply(&mut writer, &[put("a", "1"), put("b", "2")]);
    writer.close().unwrap();
    build_index_in(&fs, LOG, &IndexOptions::default()).unwrap();
    let options = ReaderOptions::default().index_mode(Mode::Pread).log_mode(Mode::Heap);
    let reader = SparkeyReader::open_in(&fs, LOG, &options).unwrap();
    disk.inject(Rule::nth(Operation::Read, disk.operation_count_of(Operation::Read), Fault::Io));
    let mut scan = reader.scan();
    scan.next_entry().map(|_| ()).unwrap_err();
    assert!(scan.next_entry().unwrap().is_none());
    assert_eq!((disk.injected_count(), scanned(&reader).len()), (1, 2));
}
