use std::io::Write;

use cairn_vfs::MemFs;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::event::Kind;
use crate::reader::{Ending, Trace};

const OPERATIONS: &[u8] = include_bytes!("../../../../testing/compat/rocksdb-traces/operations.trace");
const BLOCK_CACHE: &[u8] = include_bytes!("../../../../testing/compat/rocksdb-traces/block_cache.trace");

fn imported(input: &[u8], options: &ImportOptions) -> Result<(Imported, Trace)> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let path = Path::new("/t");
    let imported = import(&fs, "input", &mut &input[..], path, options)?;
    Ok((imported, Trace::open(&*fs, path)?))
}

fn plain(input: &[u8]) -> (Imported, Trace) {
    imported(input, &ImportOptions::default()).unwrap()
}

fn refused(input: &[u8]) -> String {
    imported(input, &ImportOptions::default()).unwrap_err().to_string()
}

/// Returns for each event its kind, its key as text, and whether it is joined to the event before.
fn shown(trace: &Trace) -> Vec<(Kind, String, bool)> {
    let shown = trace.events().map(|event| event.unwrap());
    shown.map(|event| (event.kind(), String::from_utf8_lossy(event.key).into_owned(), event.joined)).collect()
}

/// Goal: the trace that RocksDB 7.8 recorded is imported as the operations that ran. Method: its
/// trace of the workload in `make.cc`.
#[test]
fn rocksdb_operations() {
    let (imported, trace) = plain(OPERATIONS);
    assert_eq!(
        (imported.format, imported.skipped.len(), imported.cut),
        (Format::RocksdbOperations, 0, false)
    );
    // 100 puts and gets, 11 deletes, a merge, a range deletion, three operations of a batch, two
    // seeks, three lookups of a multi-get.
    assert_eq!(imported.records, 100 + 100 + 11 + 1 + 1 + 3 + 2 + 3);
    let events = shown(&trace);
    let count = |kind: Kind| events.iter().filter(|(of, ..)| *of == kind).count();
    let kinds = [Kind::Put, Kind::Get, Kind::Delete, Kind::Merge, Kind::DeleteRange, Kind::Scan];
    assert_eq!(kinds.map(count), [102, 103, 12, 1, 1, 2]);
    assert_eq!(events[1], (Kind::Put, "key00007".to_owned(), false));
    let batch: Vec<_> = events.iter().skip(213).take(3).cloned().collect();
    let expected =
        [(Kind::Put, "key00200", false), (Kind::Delete, "key00030", true), (Kind::Put, "key00201", true)];
    assert_eq!(batch, expected.map(|(kind, key, joined)| (kind, key.to_owned(), joined)));
    let details: Vec<Detail<'_>> = trace.events().map(|event| event.unwrap().detail).collect();
    assert_eq!((details[0], details[1]), (Detail::Put(20), Detail::Put(21)));
    // The first lookup is of key 0, which the trace itself writes. Lookups of key 100 and above are
    // of keys that it never writes.
    assert_eq!(details[100], Detail::Get(Some(Some(20))));
    assert!(details[100..200].contains(&Detail::Get(None)));
    assert!(details.contains(&Detail::DeleteRange { end: b"key00070", end_bytes: 8 }));
    assert!(details.contains(&Detail::Scan { entries: 1, backwards: true }));
    // Key 1 of the multi-get was deleted before.
    assert_eq!(details[218], Detail::Get(Some(None)));
    assert!(trace.header().started_ns > 1_700_000_000_000_000_000 && trace.last_ns() < 1_000_000_000);
}

/// Goal: RocksDB's block cache trace is imported in both forms, binary and text. Method: the trace
/// of `make.cc`; a line in the analyzer's format.
#[test]
fn rocksdb_block_cache() {
    let (imported, trace) = plain(BLOCK_CACHE);
    assert_eq!(imported.format, Format::RocksdbBlockCache);
    let blocks: Vec<_> =
        trace.events().map(|event| event.unwrap()).map(|event| (event.key.to_vec(), event.detail)).collect();
    assert!(blocks.len() > 60 && blocks.iter().all(|(key, _)| key.len() == 16));
    let distinct: std::collections::BTreeSet<_> = blocks.iter().map(|(key, _)| key).collect();
    assert!((3..20).contains(&distinct.len()), "{}", distinct.len());
    assert_eq!(blocks[0].1, Detail::Block { bytes: 1088, hit: Some(false) });
    assert_eq!(blocks[1].1, Detail::Block { bytes: 1088, hit: Some(true) });
    let text = "1000,17,9,4096,0,default,2,5,1,0,3,9,120,1,1,30,0,0,16,24,8192\n\
                1500,18,7,512,0,default,2,5,1,0,0,0,0,0,0,0,0,0,16,0,0\n";
    let (imported, trace) = plain(text.as_bytes());
    assert_eq!((imported.format, imported.records), (Format::RocksdbBlockCacheText, 2));
    let last = trace.events().last().unwrap().unwrap();
    assert_eq!((last.time_ns, last.detail), (500_000, Detail::Block { bytes: 512, hit: Some(false) }));
    assert!(refused(format!("{text}1,2,3\n").as_bytes()).contains("line 3: 3 fields"));
}

/// Goal: truncated or damaged RocksDB traces never cause a panic. Method: both traces truncated at
/// every length, and with every byte changed.
#[test]
fn damaged_rocksdb_traces() {
    for input in [OPERATIONS, BLOCK_CACHE] {
        let whole = plain(input).0.records;
        let format = Format::guess(input);
        for cut in (31..input.len()).step_by(211) {
            if let Ok((imported, _)) =
                imported(&input[..cut], &ImportOptions { format, ..ImportOptions::default() })
            {
                assert!(imported.records <= whole);
            }
        }
        for at in (0..input.len()).step_by(5).take(500) {
            let mut bad = input.to_vec();
            bad[at] ^= 0x81;
            let _ = imported(&bad, &ImportOptions { format, ..ImportOptions::default() });
        }
    }
}

/// Goal: lists of pages are imported, plain and compressed. Method: a small list; a list with a
/// line that is not a number.
#[test]
fn pages() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"7\n8\n7\n\n").unwrap();
    let packed = packed.finish().unwrap();
    for input in [&b"# a list\n7\n8\r\n7\n*\n"[..], &packed] {
        let options = ImportOptions { format: Some(Format::Pages), ..ImportOptions::default() };
        let (imported, trace) = imported(input, &options).unwrap();
        assert_eq!((imported.records, trace.header().timed), (3, false));
        let ids: Vec<u64> = trace.events().map(|event| event.unwrap().id()).collect();
        assert!(ids[0] == ids[2] && ids[0] != ids[1]);
    }
    assert_eq!(plain(&packed).0.format, Format::Pages);
    assert!(refused(b"7\nseven\n").contains("line 2: \"seven\" is not a page number"));
    assert!(refused(&packed[..packed.len() - 3]).contains("gzip"));
}

/// Goal: CSV columns are found by their names, and times count from the first row. Method: a file
/// with every kind; other tools' names; invalid rows.
#[test]
fn csv() {
    let text = "time_ms,op,key,value_size,found,count,end,color\n\
                100,put,\"a,b\",10,,,,red\n\
                101.5,get,x,,false,,,\n\
                102,get,x,5,true,,,\n\
                102,get,x,,,,,\n\
                103,scan,a,,,7,,\n\
                104,delete_range,a,,,,b,\n\
                105,delete,a,,,,,\n";
    let (read, trace) = plain(text.as_bytes());
    assert_eq!((read.format, read.records), (Format::Csv, 7));
    assert_eq!(read.skipped, [("column color".to_owned(), 1)]);
    let events: Vec<_> = trace.events().map(|event| event.unwrap()).collect();
    assert_eq!((events[0].key, events[0].detail, events[0].time_ns), (&b"a,b"[..], Detail::Put(10), 0));
    assert_eq!((events[1].detail, events[1].time_ns), (Detail::Get(Some(None)), 1_500_000));
    assert_eq!((events[2].detail, events[3].detail), (Detail::Get(Some(Some(5))), Detail::Get(None)));
    assert_eq!(events[4].detail, Detail::Scan { entries: 7, backwards: false });
    assert_eq!(events[5].detail, Detail::DeleteRange { end: b"b", end_bytes: 1 });
    let twitter = "timestamp,anonymized key,key size,value size,client id,operation,TTL\n0,q:q:1:8WTfj,54,100,94,set,0\n";
    let hashed = ImportOptions { keys: KeyForm::Hashed, ..ImportOptions::default() };
    let (_, trace) = imported(twitter.as_bytes(), &hashed).unwrap();
    let event = trace.events().next().unwrap().unwrap();
    assert_eq!((event.kind(), event.key_bytes, event.value_bytes()), (Kind::Put, 54, Some(100)));
    assert!(!plain(b"key\na\nb\n").1.header().timed);
    for (text, word) in [
        ("key,op\na,fly\n", "line 2: operation \"fly\""),
        ("key,time\na,x\n", "line 2: time \"x\""),
        ("key,found\na,maybe\n", "line 2: found"),
        ("key,value_size\na,-1\n", "line 2: value_size"),
        ("key,op\na,delete_range\n", "without an end"),
        ("name,op\na,put\n", "matches no known format"),
        ("", "matches no known format"),
    ] {
        assert!(refused(text.as_bytes()).contains(word), "{}", refused(text.as_bytes()));
    }
}

/// Goal: keys are hashed and sampled on demand, and an existing file is left alone.
#[test]
fn imports_hash_and_sample_keys() {
    let rows: String = (0..1_000).map(|key| format!("key-{key}\nkey-{key}\n")).collect();
    let input = format!("key\n{rows}");
    let options =
        ImportOptions { keys: KeyForm::Hashed, sample: 5, hash_seed: Some(1), ..ImportOptions::default() };
    let (imported, trace) = imported(input.as_bytes(), &options).unwrap();
    assert!(imported.records % 2 == 0 && (300..500).contains(&imported.records), "{imported:?}");
    assert_eq!(
        (trace.header().keys, trace.header().sample, trace.ending()),
        (KeyForm::Hashed, 5, Ending::Complete { dropped: 0 })
    );
    assert!(trace.events().all(|event| event.unwrap().key.len() == 8));
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    for expected in [true, false] {
        let made = import(&fs, "input", &mut &b"1\n2\n"[..], Path::new("/t"), &ImportOptions::default());
        assert_eq!(made.is_ok(), expected);
    }
}

/// Goal: a sample never joins the remains of two batches. Method: one key in three of 500 batches
/// of four keys, each of which names its batch.
#[test]
fn samples_keep_batches_apart() {
    let rows: String = (0..2_000).map(|row| format!("{}-{row},put,{}\n", row / 4, row % 4 > 0)).collect();
    let options = ImportOptions { sample: 3, hash_seed: Some(1), ..ImportOptions::default() };
    let (_, trace) = imported(format!("key,op,joined\n{rows}").as_bytes(), &options).unwrap();
    let (mut before, mut joined) = (String::new(), 0);
    for (_, key, belongs) in shown(&trace) {
        let batch = key.split('-').next().unwrap_or_default().to_owned();
        assert_eq!(belongs, batch == before, "{key} after one of batch {before}");
        joined += usize::from(belongs);
        before = batch;
    }
    assert!(joined > 100, "{joined}");
}

/// Goal: times that go back are counted and reported, and later times are unchanged. Method: rows
/// with times before the last row and before the first; block cache text.
#[test]
fn decreasing_times_are_reported() {
    let times = |trace: &Trace| -> Vec<u64> { trace.events().map(|event| event.unwrap().time_ns).collect() };
    let (imported, trace) = plain(b"time_us,key\n5,a\n7,a\n6,a\n2,a\n7,a\n9,a\n");
    assert_eq!(imported.skipped, [(BACK_IN_TIME.to_owned(), 2)]);
    assert_eq!(times(&trace), [0, 2_000, 2_000, 2_000, 2_000, 4_000]);
    let (imported, _) = plain(b"time_us,key\n9,a\n8,a\n7,a\n");
    assert_eq!(imported.skipped, [(BACK_IN_TIME.to_owned(), 2)], "before the first one");
    let line = |micros: u64| format!("{micros},17,9,4096,0,default,2,5,1,0,3,9,120,1,1,30,0,0,16,24,8192\n");
    let (imported, trace) = plain([1_000, 1_500, 1_200, 1_600].map(line).concat().as_bytes());
    assert_eq!(imported.skipped, [(BACK_IN_TIME.to_owned(), 1)]);
    assert_eq!(times(&trace), [0, 500_000, 500_000, 600_000]);
}

/// Goal: each column of bytes is decoded as its own name says. Method: hexadecimal in one of two
/// columns; digits with a sign, which numbers may have and bytes may not.
#[test]
fn columns_are_hexadecimal_by_themselves() {
    for (head, row) in
        [("key,end_hex", "ab,6364"), ("key_hex,end", "6162,cd"), ("key_hex,end_hex", "6162,6364")]
    {
        let (_, trace) = plain(format!("op,{head}\ndelete_range,{row}\n").as_bytes());
        let event = trace.events().next().unwrap().unwrap();
        assert_eq!((event.key, event.detail), (&b"ab"[..], Detail::DeleteRange { end: b"cd", end_bytes: 2 }));
    }
    for text in ["key_hex\n+f\n", "key_hex\n6\n", "op,key,end_hex\ndelete_range,a,-1\n"] {
        let told = refused(text.as_bytes());
        assert!(told.contains("line 2: ") && told.contains("hexadecimal"), "{told}");
    }
}

/// A reader that returns at most three bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = buf.len().min(3);
        self.0.read(&mut buf[..most])
    }
}

/// Goal: an input may arrive in pieces of any size, and is processed before its end arrives.
/// Method: one input per format in pieces of three bytes; an endless input with an invalid row.
#[test]
fn inputs_are_read_as_they_come() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"key,op\na,put\nb,get\n").unwrap();
    let packed = packed.finish().unwrap();
    for input in [OPERATIONS, BLOCK_CACHE, &packed[..], &b"1\n2\n3"[..]] {
        let (whole, trace) = plain(input);
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let path = Path::new("/pieces");
        let pieces = import(&fs, "input", &mut Trickle(input), path, &ImportOptions::default()).unwrap();
        assert_eq!(pieces, whole);
        assert_eq!(shown(&Trace::open(&*fs, path).unwrap()), shown(&trace));
    }
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let mut endless = (&b"key,op\na,put\nb,fly\n"[..]).chain(io::repeat(b'x'));
    let error = import(&fs, "input", &mut endless, Path::new("/t"), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("line 3: operation \"fly\""), "{error}");
}

/// Goal: keys that are too long for a trace are truncated, and so are the ends of ranges. Method: a
/// range with two such keys, raw and hashed, and a lookup of the truncated end.
#[test]
fn long_ends_are_cut_as_keys_are() {
    let long = |key: char, bytes: usize| key.to_string().repeat(bytes);
    let (key, end) = (long('a', 70_000), long('b', 70_000));
    let text = format!("key,op,end\n{key},delete_range,{end}\n{},get,\n", long('b', KEY_BYTES_MAX));
    for keys in [KeyForm::Raw, KeyForm::Hashed] {
        let options = ImportOptions { keys, ..ImportOptions::default() };
        let (_, trace) = imported(text.as_bytes(), &options).unwrap();
        let events: Vec<_> = trace.events().map(|event| event.unwrap()).collect();
        let Detail::DeleteRange { end, .. } = events[0].detail else { panic!("{:?}", events[0]) };
        assert!(end == events[1].key && (keys == KeyForm::Hashed || end.len() == KEY_BYTES_MAX));
    }
}
