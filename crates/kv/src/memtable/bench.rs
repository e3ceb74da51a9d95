//! Benchmarks of the memtable's operations, in nanoseconds each. Not part of a test run; to start
//! them:
//!
//! ```text
//! cargo test -p cairn-kv --profile bench --lib memtable::bench -- \
//!     --ignored --nocapture --test-threads=1
//! ```
//!
//! Keys have 16 bytes and values 8, as in `db_bench` and DKV's driver. `decimal` keys are dense
//! numbers with leading zeros, in random order; `binary` keys are random bytes. Each figure is the
//! best of several rounds, because other work on the machine only ever slows a round down.
//! `MEMTABLE_BENCH=random` runs the cases whose names contain `random`.

use std::hint::black_box;
use std::ops::ControlFlow;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, Rng, SeededRng, SystemClock, thread};

use super::Memtable;
use crate::cursor::Cursor;
use crate::kind::{Kind, Seqno};

const KEY_BYTES: usize = 16;
const ENTRIES: usize = 1_000_000;
const ROUNDS: usize = 5;
const VALUE: [u8; 8] = *b"8 bytes.";

type Key = [u8; KEY_BYTES];

/// Returns `count` keys in random order.
fn decimal(count: usize) -> Vec<Key> {
    let mut numbers: Vec<usize> = (0..count).collect();
    let mut rng = SeededRng::new(1);
    for at in (1..count).rev() {
        numbers.swap(at, rng.below(at as u64 + 1) as usize);
    }
    numbers.iter().map(|number| key_of(*number)).collect()
}

fn binary(count: usize) -> Vec<Key> {
    let mut rng = SeededRng::new(2);
    (0..count)
        .map(|_| {
            let mut key = [0; KEY_BYTES];
            rng.fill(&mut key);
            key
        })
        .collect()
}

fn ascending(count: usize) -> Vec<Key> {
    (0..count).map(key_of).collect()
}

fn key_of(number: usize) -> Key {
    format!("{number:016}").into_bytes().try_into().unwrap()
}

/// Inserts `keys` with sequence numbers starting at `first`.
fn fill(memtable: &Memtable, keys: &[Key], first: Seqno) {
    for (seqno, key) in (first..).zip(keys) {
        memtable.insert(key, seqno, Kind::Put, &VALUE).unwrap();
    }
}

fn filled(keys: &[Key]) -> Arc<Memtable> {
    let memtable = Arc::new(Memtable::new());
    fill(&memtable, keys, 1);
    memtable
}

/// Prints the best time per operation of [`ROUNDS`] runs of `run`, each on a fresh result of
/// `prepare`.
fn case<T>(name: &str, operations: usize, mut prepare: impl FnMut() -> T, mut run: impl FnMut(&mut T)) {
    if std::env::var("MEMTABLE_BENCH").is_ok_and(|wanted| !name.contains(&wanted)) {
        return;
    }
    let clock = SystemClock::new();
    let best = (0..ROUNDS)
        .map(|_| {
            let mut prepared = prepare();
            let start = clock.now();
            run(&mut prepared);
            clock.now() - start
        })
        .min()
        .unwrap_or_default();
    println!("{name:<36} {:>8.1} ns", best.as_nanos() as f64 / operations as f64);
}

fn get_all(memtable: &Memtable, keys: &[Key]) {
    let mut hits = 0;
    for key in keys {
        memtable.get(key, Seqno::MAX, |version| {
            hits += usize::from(version.value.len() == VALUE.len());
            ControlFlow::Break(())
        });
    }
    assert_eq!(hits, keys.len());
}

/// Inserts with `threads` threads at once, each with its share of the keys.
fn fill_threads(memtable: &Memtable, keys: &[Key], threads: usize) {
    thread::scope(|scope| {
        for (index, part) in keys.chunks(keys.len().div_ceil(threads)).enumerate() {
            scope.spawn(move || fill(memtable, part, (index * ENTRIES) as Seqno));
        }
    });
    assert_eq!(memtable.entries(), keys.len() as u64);
}

/// Prints the cost of single operations.
#[test]
#[ignore = "a benchmark"]
fn costs() {
    let keys = [("seq", ascending(ENTRIES)), ("decimal", decimal(ENTRIES)), ("binary", binary(ENTRIES))];
    for (name, keys) in &keys {
        let new = || Arc::new(Memtable::new());
        case(&format!("{name}: insert"), ENTRIES, new, |memtable| fill(memtable, keys, 1));
        let memtable = filled(keys);
        println!("{name}: {:.1} bytes an entry", memtable.allocated_bytes() as f64 / ENTRIES as f64);
        case(&format!("{name}: get"), ENTRIES, || (), |()| get_all(&memtable, keys));
        case(
            &format!("{name}: overwrite"),
            ENTRIES,
            || filled(keys),
            |memtable| fill(memtable, keys, 2_000_000),
        );
        case(
            &format!("{name}: get overwritten"),
            ENTRIES,
            || {
                let memtable = filled(keys);
                fill(&memtable, keys, 2_000_000);
                memtable
            },
            |memtable| get_all(memtable, keys),
        );
        case(
            &format!("{name}: scan"),
            ENTRIES,
            || memtable.cursor(),
            |cursor| {
                let mut bytes = 0;
                cursor.seek_first().unwrap();
                while cursor.valid() {
                    bytes += cursor.key().len() + cursor.value().len();
                    cursor.next().unwrap();
                }
                assert_eq!(black_box(bytes), ENTRIES * (KEY_BYTES + VALUE.len()));
            },
        );
        case(
            &format!("{name}: scan back"),
            ENTRIES,
            || memtable.cursor(),
            |cursor| {
                let mut count = 0;
                cursor.seek_last().unwrap();
                while cursor.valid() {
                    count += cursor.value().len();
                    cursor.prev().unwrap();
                }
                assert_eq!(black_box(count), ENTRIES * VALUE.len());
            },
        );
        case(
            &format!("{name}: seek"),
            ENTRIES,
            || memtable.cursor(),
            |cursor| {
                for key in keys {
                    cursor.seek(key, Seqno::MAX).unwrap();
                    assert!(cursor.valid());
                }
            },
        );
        for threads in [2, 8] {
            let name = format!("{name}: insert, {threads} threads");
            case(&name, ENTRIES, new, |memtable| fill_threads(memtable, keys, threads));
        }
    }
}
