//! Measures the store's own calls in nanoseconds, without a peer, for work on the engine. `cairn
//! bench kv` compares engines.
//!
//! `cargo bench -p cairn-kv --bench db -- [entries] [single|batch|threads|sync|recovery] [-rand]
//! [t=THREADS] [m=MEMTABLE_MIB]`
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::time::Instant;

use cairn_kv::{Background, Db, Durability, Options, WriteBatch};

fn report(name: &str, count: usize, start: Instant) {
    let nanos = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{name:<28} {nanos:>9.1} ns   {:>7.2} M/s", 1e3 / nanos);
}

fn keys(count: usize, shuffled: bool) -> Vec<[u8; 16]> {
    let mut keys: Vec<[u8; 16]> =
        (0..count).map(|n| format!("key{n:013}").as_bytes().try_into().unwrap()).collect();
    if shuffled {
        let mut state = 12345u64;
        for at in (1..count).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            keys.swap(at, (state >> 33) as usize % (at + 1));
        }
    }
    keys
}

fn open(dir: &std::path::Path, memtable: u64) -> Db {
    Db::builder(dir)
        .memtable_bytes(memtable)
        .cache_bytes(1 << 30)
        .background(Background::Threads(2))
        .open()
        .unwrap()
}

fn gets(db: &Db, keys: &[[u8; 16]], name: &str) {
    let start = Instant::now();
    let mut sum = 0usize;
    for key in keys {
        sum += db.get(key).unwrap().unwrap().len();
    }
    assert_eq!(sum, keys.len() * 8);
    report(name, keys.len(), start);
}

fn main() {
    let count = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(1_000_000);
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| PARTS.contains(&arg.as_str())).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let orders: Vec<_> = [("seq", false), ("rand", true)]
        .into_iter()
        .filter(|(order, _)| std::env::args().all(|arg| arg != format!("-{order}")))
        .collect();
    for (order, shuffled) in orders {
        let keys = keys(count, shuffled);
        if wants("single") {
            single(&keys, order);
        }
        if wants("batch") {
            batch(&keys, order);
        }
        if wants("threads") {
            threads(&keys, order);
        }
    }
    if wants("sync") {
        sync();
    }
    if wants("recovery") {
        recovery();
    }
}

/// Rounds of each measurement; the median is reported.
const ROUNDS: usize = 7;

/// The parts that the command line can select by name.
const PARTS: [&str; 5] = ["single", "batch", "threads", "sync", "recovery"];

fn single(keys: &[[u8; 16]], order: &str) {
    let count = keys.len();
    {
        for (name, durability) in [("memory", Durability::Memory), ("buffered", Durability::Buffered)] {
            let dir = tempfile::tempdir().unwrap();
            let db = open(dir.path(), 256 << 20);
            let start = Instant::now();
            for key in keys {
                db.put_with(key, b"12345678", durability).unwrap();
            }
            report(&format!("{order} put {name}"), count, start);
            gets(&db, keys, &format!("{order} get memtable"));
            let start = Instant::now();
            for key in keys {
                db.put_with(key, b"87654321", durability).unwrap();
            }
            report(&format!("{order} update {name}"), count, start);
            let start = Instant::now();
            db.flush().unwrap();
            db.wait_idle().unwrap();
            report("flush and compact", count, start);
            gets(&db, keys, &format!("{order} get table, cold"));
            gets(&db, keys, &format!("{order} get table"));
            let start = Instant::now();
            let mut cursor = db.cursor().unwrap();
            cursor.seek_first().unwrap();
            let mut seen = 0;
            while cursor.valid() {
                seen += 1;
                cursor.next().unwrap();
            }
            assert_eq!(seen, count);
            report("scan table", count, start);
            let start = Instant::now();
            for key in keys {
                db.delete_with(key, durability).unwrap();
            }
            report(&format!("{order} delete {name}"), count, start);
        }
    }
}

fn batch(keys: &[[u8; 16]], order: &str) {
    let count = keys.len();
    {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), 256 << 20);
        let start = Instant::now();
        let mut batch = WriteBatch::new();
        for chunk in keys.chunks(50_000) {
            batch.clear();
            for key in chunk {
                batch.put(key, b"12345678").unwrap();
            }
            db.write(&batch).unwrap();
        }
        report(&format!("{order} batch put"), count, start);
    }
}

/// Threads that each put a part of the keys. Reports the median of interleaved rounds, because the
/// speed of a machine drifts.
fn threads(keys: &[[u8; 16]], order: &str) {
    let asked: Vec<usize> = std::env::args().filter_map(|arg| arg.strip_prefix("t=")?.parse().ok()).collect();
    let asked = if asked.is_empty() { vec![1, 2, 8] } else { asked };
    let memtable =
        std::env::args().find_map(|arg| arg.strip_prefix("m=")?.parse::<u64>().ok()).unwrap_or(256) << 20;
    let mut rounds = vec![Vec::new(); asked.len()];
    for _ in 0..ROUNDS {
        for (threads, nanos) in asked.iter().zip(&mut rounds) {
            let dir = tempfile::tempdir().unwrap();
            let db = open(dir.path(), memtable);
            let start = Instant::now();
            std::thread::scope(|scope| {
                for part in keys.chunks(keys.len().div_ceil(*threads)) {
                    let db = &db;
                    scope.spawn(move || part.iter().for_each(|key| db.put(key, b"12345678").unwrap()));
                }
            });
            nanos.push(start.elapsed().as_nanos() as f64 / keys.len() as f64);
        }
    }
    for (threads, mut nanos) in asked.iter().zip(rounds) {
        nanos.sort_by(f64::total_cmp);
        let (best, middle) = (nanos[0], nanos[ROUNDS / 2]);
        let name = format!("{order} put, {threads} threads");
        println!("{name:<28} best {best:>7.1} ns   middle {middle:>7.1} ns   {:>7.2} M/s", 1e3 / middle);
    }
}

/// Durable puts by one writer and by sixteen.
fn sync() {
    for writers in [1, 16] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), 64 << 20);
        let keys = keys(writers * 2000, false);
        let mut nanos: Vec<f64> = (0..ROUNDS).map(|_| sync_round(&db, &keys, writers)).collect();
        nanos.sort_by(f64::total_cmp);
        let name = format!("sync put, {writers} writers");
        println!("{name:<28} best {:>7.1} us   middle {:>7.1} us", nanos[0] / 1e3, nanos[ROUNDS / 2] / 1e3);
    }
}

fn sync_round(db: &Db, keys: &[[u8; 16]], writers: usize) -> f64 {
    let start = Instant::now();
    let put = |key| db.put_with(key, b"12345678", Durability::Sync).unwrap();
    std::thread::scope(|scope| {
        for part in keys.chunks(keys.len() / writers) {
            scope.spawn(move || part.iter().for_each(put));
        }
    });
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

/// Opens a store whose log holds 1 GiB that is not in any table, in a fresh process. Reports the
/// time and the peak memory.
fn recovery() {
    const RECORDS: u32 = 1 << 20;
    if let Some(dir) = std::env::args().find_map(|arg| Some(arg.strip_prefix("dir=")?.to_owned())) {
        let start = Instant::now();
        let db = Db::builder(dir).open().unwrap();
        let took = start.elapsed();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        println!("recovery of 1 GiB: {took:.2?}, {}", peak.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(db.iter().count(), RECORDS as usize);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options { wal_bytes_max: 4 << 30, ..Options::default() };
    let writing = Db::builder(dir.path()).options(options).memtable_bytes(4 << 30).open().unwrap();
    let value = vec![b'v'; 1000];
    for number in 0..RECORDS {
        // Scattered keys, as in most logs.
        writing.put(number.wrapping_mul(2_654_435_761).to_be_bytes(), &value).unwrap();
    }
    drop(writing);
    let path = format!("dir={}", dir.path().display());
    let child =
        std::process::Command::new(std::env::current_exe().unwrap()).args(["recovery", &path]).status();
    assert!(child.unwrap().success());
}
