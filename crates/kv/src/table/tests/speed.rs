//! Measurements. Ignored in the ordinary run; they need a quiet machine and an optimized build:
//!
//! `cargo test -p cairn-kv --profile bench table::tests::speed -- --ignored --nocapture
//! --test-threads 1`
//!
//! The results are minima of several rounds. Each round checks the data it reads.

use std::hint::black_box;

use cairn_vfs::{Clock, Rng, SeededRng, StdFs, SystemClock};

use super::*;
use crate::kind::SEQNO_MAX;

const KEYS: u64 = 1_000_000;
const ROUNDS: usize = 7;

fn key(n: u64) -> [u8; 16] {
    let mut key = *b"0000000000000000";
    let mut rest = n;
    for byte in key.iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Measures nanoseconds per operation, for `count` operations: the minimum over the rounds.
fn measure(what: &str, count: u64, mut round: impl FnMut() -> u64) {
    let clock = SystemClock::new();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = clock.now();
        let done = round();
        assert_eq!(done, count, "{what}");
        best = best.min((clock.now() - start).as_nanos() as f64 / count as f64);
    }
    println!("{what:44} {best:8.1} ns");
}

fn write_keys(fs: &Arc<dyn Fs>, path: &Path, options: &TableOptions, value: &[u8]) -> TableMeta {
    let _ = fs.remove(path);
    let file = fs.open(path, cairn_vfs::OpenOptions::create_new()).unwrap();
    let mut writer = TableWriter::new(Arc::from(file), 1, options.clone()).unwrap();
    for n in 0..KEYS {
        writer.add(&key(n * 2), 0, Kind::Put, value).unwrap();
    }
    writer.finish().unwrap()
}

fn get(table: &Table, key: &[u8]) -> u64 {
    let mut found = 0;
    let done = table.get(key, hash_key(key), SEQNO_MAX, |version, _| {
        found += version.value.len() as u64;
        black_box(version.value);
        ControlFlow::Break(())
    });
    done.unwrap();
    found
}

fn reads(table: &Arc<Table>) {
    let mut rng = SeededRng::new(1);
    let order: Vec<u64> = (0..KEYS).map(|_| rng.below(KEYS)).collect();
    let present: Vec<_> = order.iter().map(|n| key(n * 2)).collect();
    let absent: Vec<_> = order.iter().map(|n| key(n * 2 + 1)).collect();
    measure("get, present, random", KEYS, || present.iter().map(|key| get(table, key) / 8).sum());
    measure("get, absent, random", KEYS, || absent.iter().map(|key| u64::from(get(table, key) == 0)).sum());
    measure("get, present, ascending", KEYS, || (0..KEYS).map(|n| get(table, &key(n * 2)) / 8).sum());
    measure("get_many of 64, present, random", KEYS, || {
        let mut found = 0;
        for keys in present.chunks(64) {
            let queries: Vec<_> = keys.iter().map(|key| Query { key, hash: hash_key(key) }).collect();
            let visit = |_: usize, version: crate::kind::Version<'_>, _: &BlockRef| {
                found += version.value.len() as u64 / 8;
                ControlFlow::Break(())
            };
            table.get_many(&queries, SEQNO_MAX, visit).unwrap();
        }
        found
    });
    let mut cursor = table.cursor(&CursorOptions::default());
    measure("cursor: seek, random", 200_000, || {
        let mut found = 0;
        for key in &present[..200_000] {
            cursor.seek(key, SEQNO_MAX).unwrap();
            found += u64::from(cursor.key() == key);
        }
        found
    });
    measure("scan forwards", KEYS, || {
        let mut count = 0;
        cursor.seek_first().unwrap();
        while cursor.valid() {
            count += u64::from(black_box(cursor.key().len() + cursor.value().len()) == 24);
            cursor.next().unwrap();
        }
        count
    });
    measure("scan backwards", KEYS, || {
        let mut count = 0;
        cursor.seek_last().unwrap();
        while cursor.valid() {
            count += u64::from(black_box(cursor.key().len() + cursor.value().len()) == 24);
            cursor.prev().unwrap();
        }
        count
    });
}

/// Cached lookups in 1 M keys of 16 bytes with values of 8, with filters of both kinds, pinned and
/// not.
#[test]
#[ignore = "a measurement"]
fn cached_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    for (name, filter, pin, restart_interval) in [
        ("bloom, restarts 8", Some(FilterPolicy::bloom(10.0)), false, 8),
        ("bloom, restarts 16", Some(FilterPolicy::bloom(10.0)), false, 16),
        ("bloom, pinned, restarts 8", Some(FilterPolicy::bloom(10.0)), true, 8),
        ("ribbon, restarts 16", Some(FilterPolicy::ribbon(7.2)), false, 16),
        ("no filter, restarts 16", None, false, 16),
    ] {
        let options = TableOptions { filter, restart_interval, ..TableOptions::default() };
        let meta = write_keys(&fs, &path, &options, b"12345678");
        println!("-- {name}: {} bytes", meta.bytes);
        let cache = Arc::new(Cache::new(256 << 20));
        let table =
            Table::open(&fs, &path, 1, &cache, OpenOptions { pin, ..OpenOptions::default() }).unwrap();
        assert_eq!(scan(&table).unwrap().len() as u64, KEYS);
        reads(&table);
    }
}

/// The cost for a compaction of writing and cold reading 1 M entries of 16 + 100 bytes, half of
/// them compressible.
#[test]
#[ignore = "a measurement"]
fn writing_and_cold_scans() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    let mut value = [7; 100];
    SeededRng::new(1).fill(&mut value[..50]);
    for compression in compressions() {
        for filter in [FilterPolicy::bloom(10.0), FilterPolicy::ribbon(7.2)] {
            let options = TableOptions { compression, filter: Some(filter), ..TableOptions::default() };
            let name = format!("write, {compression:?}, {:?}", filter.kind);
            measure(&name, KEYS, || write_keys(&fs, &path, &options, &value).entries);
        }
        let cache = Arc::new(Cache::new(0));
        let table = Table::open(&fs, &path, 1, &cache, OpenOptions::default()).unwrap();
        println!("{} bytes", table.bytes());
        measure("   scan, not cached", KEYS, || {
            let mut cursor = table.cursor(&CursorOptions { fill_cache: false, ..CursorOptions::default() });
            let mut count = 0;
            cursor.seek_first().unwrap();
            while cursor.valid() {
                count += 1;
                black_box(cursor.value());
                cursor.next().unwrap();
            }
            count
        });
    }
}

/// The cost of sharing: lookups in one table by two threads compared with one.
#[test]
#[ignore = "a measurement"]
fn threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
    write_keys(&fs, &path, &TableOptions::default(), b"12345678");
    let cache = Arc::new(Cache::new(256 << 20));
    let table = Table::open(&fs, &path, 1, &cache, OpenOptions::default()).unwrap();
    scan(&table).unwrap();
    for threads in [1, 2] {
        measure(&format!("get, {threads} threads, each"), KEYS, || {
            let found: u64 = cairn_vfs::thread::scope(|scope| {
                let run = |thread| {
                    let table = &table;
                    move || {
                        let mut rng = SeededRng::new(thread);
                        (0..KEYS).map(|_| get(table, &key(rng.below(KEYS) * 2)) / 8).sum::<u64>()
                    }
                };
                let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
                workers.into_iter().map(|worker| worker.join().unwrap()).sum()
            });
            found / threads
        });
    }
}
