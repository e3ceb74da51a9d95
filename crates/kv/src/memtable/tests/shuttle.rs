//! Threads in one memtable under schedules that follow from a seed.
//!
//! `RUSTFLAGS="--cfg cairn_shuttle" cargo test -p cairn-kv --lib shuttle`, with a target folder of
//! its own; see `testing/schedules.rs` for what that does and does not show. Nodes then have four
//! keys, every second update has a tower, and a reader paints range tombstones as soon as it sees
//! three recent ones, so that a dozen inserts split leaves and inner nodes.

use std::collections::BTreeSet;

use cairn_vfs::sync::atomic::{AtomicUsize, Ordering};
use cairn_vfs::thread;

use super::*;
use crate::schedules::explore;

/// The keys of a writer in order, and the number inserted so far. Values equal the keys, so that a
/// lookup which finds the record of another key is noticed.
struct Writer {
    keys: Vec<Vec<u8>>,
    done: AtomicUsize,
}

impl Writer {
    fn done(&self) -> &[Vec<u8>] {
        &self.keys[..self.done.load(Ordering::Acquire)]
    }
}

fn seqno(writer: usize, at: usize) -> Seqno {
    (writer * 1000 + at + 1) as Seqno
}

/// Runs one inserting thread for each list of keys, one that looks keys up, and one that scans in
/// one direction.
fn run(keys: Vec<Vec<Vec<u8>>>, lookups: usize, backwards: bool) {
    run_after(&[], keys, lookups, backwards);
}

/// Like [`run`], in a memtable that initially has some keys.
fn run_after(before: &[&[u8]], keys: Vec<Vec<Vec<u8>>>, lookups: usize, backwards: bool) {
    let writers: Vec<_> = keys.into_iter().map(|keys| Writer { keys, done: AtomicUsize::new(0) }).collect();
    let (memtable, mut model) = (Arc::new(Memtable::new()), Model::default());
    for (at, key) in before.iter().enumerate() {
        memtable.insert(key, seqno(9, at), Kind::Put, key).unwrap();
        model.insert(key, seqno(9, at), Kind::Put, key);
    }
    thread::scope(|scope| {
        let (memtable, writers) = (&memtable, &writers);
        for (number, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for (at, key) in writer.keys.iter().enumerate() {
                    memtable.insert(key, seqno(number, at), Kind::Put, key).unwrap();
                    writer.done.store(at + 1, Ordering::Release);
                }
            });
        }
        if lookups > 0 {
            scope.spawn(move || look_up(memtable, writers, lookups));
            scope.spawn(move || walk(memtable, writers, backwards));
        }
    });
    for (number, writer) in writers.iter().enumerate() {
        for (at, key) in writer.keys.iter().enumerate() {
            model.insert(key, seqno(number, at), Kind::Put, key);
        }
    }
    check_content(&memtable, &model);
    for key in writers.iter().flat_map(|writer| &writer.keys) {
        assert_eq!(versions(&memtable, key, Seqno::MAX), model.versions(key, Seqno::MAX), "{key:?}");
    }
}

/// Looks up the last inserted keys, the next ones to be inserted, and a key that never exists.
fn look_up(memtable: &Memtable, writers: &[Writer], lookups: usize) {
    for round in 0..lookups {
        let number = round % writers.len();
        let writer = &writers[number];
        let done = writer.done().len();
        let from = done.saturating_sub(2);
        for (at, key) in writer.keys.iter().enumerate().skip(from).take(3) {
            let found = versions(memtable, key, Seqno::MAX);
            assert!(found.iter().all(|(_, _, value)| value == key), "{key:?} has {found:?}");
            let is_found = found.iter().any(|(found, ..)| *found == seqno(number, at));
            assert!(is_found || at >= done, "{key:?} was inserted before and has {found:?}");
        }
        assert!(versions(memtable, b"5 nowhere", Seqno::MAX).is_empty());
    }
}

/// Scans from one end to the other. Asserts that entries are in order, none is repeated, and none
/// that existed before is missing.
fn walk(memtable: &Arc<Memtable>, writers: &[Writer], is_back: bool) {
    let before: BTreeSet<&[u8]> = writers.iter().flat_map(|w| w.done().iter().map(Vec::as_slice)).collect();
    let mut cursor = memtable.cursor();
    let seen = if is_back {
        let mut seen = backwards(&mut cursor);
        seen.reverse();
        seen
    } else {
        forwards(&mut cursor)
    };
    let places: Vec<_> = seen.iter().map(|(key, seqno, ..)| (key, Reverse(seqno))).collect();
    assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "out of order, or twice: {places:?}");
    assert!(seen.iter().all(|(key, _, _, value)| key == value));
    let keys: BTreeSet<&[u8]> = seen.iter().map(|entry| entry.0.as_slice()).collect();
    assert!(before.is_subset(&keys), "{before:?} was there before the walk, which saw {keys:?}");
}

/// Goal: no schedule loses an entry, shows one twice, or makes a reader miss one that existed
/// before its lookup, while nodes on all levels split. Method: two threads insert interleaved keys,
/// neither in ascending nor in descending order, beside a reader and a scanner.
#[test]
fn splits() {
    for backwards in [false, true] {
        explore(1_000, move || {
            let keys = |writer: usize| {
                (0..9).map(|at| format!("{:02}", at * 5 % 9 * 2 + writer).into_bytes()).collect()
            };
            run(vec![keys(0), keys(1)], 4, backwards);
        });
    }
}

/// Goal: the same around a single split, from all sides. Method: eight keys, four for each of two
/// writers, divided in all ways, ascending and descending; a short run, so that most of its
/// schedules differ where it matters.
#[test]
fn one_split() {
    // By symmetry, the last key can always go to the first writer.
    for shares in (0..128_u8).filter(|shares| shares.count_ones() == 4) {
        for backwards in [false, true] {
            explore(60, move || {
                let keys = |writer: u8| {
                    let mut keys: Vec<_> =
                        (0..8).filter(|at| shares >> at & 1 == writer).map(|at| vec![b'0' + at]).collect();
                    if backwards {
                        keys.reverse();
                    }
                    keys
                };
                run(vec![keys(0), keys(1)], 0, backwards);
            });
        }
    }
}

/// Goal: a thread that continues at its last insert position does not put keys into a leaf that no
/// longer covers them. Method: in a leaf that is not the last one, a thread inserts twice, which
/// makes it try that leaf first, while another thread splits it. Then the same with a split that
/// starts after the two inserts, followed by a key for the new leaf.
#[test]
fn fingers() {
    let key = |byte: u8| vec![byte];
    for (own, other) in [(b"cef", b"bd"), (b"bce", b"df"), (b"bcd", b"ef")] {
        explore(1_500, move || {
            let keys = vec![own.map(key).to_vec(), other.map(key).to_vec()];
            run_after(&[b"w", b"x", b"y", b"z", b"a"], keys, 0, false);
        });
    }
    explore(1_500, || {
        let memtable = Memtable::new();
        let insert = |key: &[u8], seqno| memtable.insert(key, seqno, Kind::Put, key).unwrap();
        // Two leaves, the first one half full.
        for (at, key) in [b"m", b"n", b"y", b"z", b"yy".as_slice()].into_iter().enumerate() {
            insert(key, 1 + at as Seqno);
        }
        let turn = AtomicUsize::new(0);
        let wait_for = |wanted| {
            while turn.load(Ordering::Acquire) != wanted {
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                insert(b"o", 11);
                insert(b"p", 12);
                turn.store(1, Ordering::Release);
                wait_for(2);
                insert(b"v", 13);
            });
            scope.spawn(|| {
                wait_for(1);
                turn.store(2, Ordering::Release);
                insert(b"nn", 21);
            });
        });
        for key in [b"m", b"n", b"nn".as_slice(), b"o", b"p", b"v", b"y", b"yy", b"z"] {
            assert_eq!(versions(&memtable, key, Seqno::MAX).len(), 1, "{key:?}");
        }
    });
}

/// Goal: the same for the shortcuts: after the last key, and at the thread's last position. Method:
/// ascending keys, first with both writers at the end, then each writer with a contiguous range of
/// keys, of which one follows the other's leaf.
#[test]
fn ascending_keys() {
    for is_apart in [false, true] {
        explore(600, move || {
            let number = |writer, at| if is_apart { writer * 100 + at } else { at * 2 + writer };
            let keys = |writer| (0..9).map(|at| format!("{:03}", number(writer, at)).into_bytes()).collect();
            run(vec![keys(0), keys(1)], 3, is_apart);
        });
    }
}

/// Goal: the same where leaves are split at the front and `prev` leads to a leaf split meanwhile.
/// Method: descending keys and a backward scan.
#[test]
fn descending_keys() {
    explore(600, || {
        let keys = |writer| (0..8).rev().map(|at| format!("{:02}", at * 2 + writer).into_bytes()).collect();
        run(vec![keys(0), keys(1)], 3, true);
    });
}

/// Goal: no writer mistakes the record of another key for its own, whatever mixture of prefix and
/// records it sees. Method: writers whose keys differ only in the first byte, each of which inserts
/// its own repeatedly and in order.
#[test]
fn the_same_keys_again() {
    explore(1_000, || {
        let keys = |writer: usize| {
            (0..12).map(|at| format!("{writer} {:03}", at % 4).into_bytes()).collect::<Vec<_>>()
        };
        run(vec![keys(0), keys(1), keys(2)], 0, false);
    });
    explore(500, || {
        let keys = |writer: usize| {
            (0..8).map(|at| format!("{writer} {:03}", at % 4).into_bytes()).collect::<Vec<_>>()
        };
        run(vec![keys(0), keys(1)], 6, false);
    });
}

/// Goal: prefixes that shorten and lengthen, inline and beyond, and heads that shift are never seen
/// half done. Method: keys with long common prefixes, and some that share little with them.
#[test]
fn prefixes_that_change() {
    const LONG: &str = "a beginning of more than twenty-four bytes";
    explore(1_000, || {
        let keys = |writer: usize| {
            let deep = |at: usize| format!("{LONG} {at}{writer}");
            let short = |len: usize| format!("{}{writer}", &LONG[..len]);
            [deep(0), deep(3), short(22), deep(1), short(3), deep(4), format!("b{writer}"), deep(2)]
                .map(String::into_bytes)
                .to_vec()
        };
        run(vec![keys(0), keys(1).into_iter().rev().collect()], 3, false);
    });
}

/// Goal: if all threads insert the same keys and meet at each record, each entry is counted once.
/// Method: three writers with the same order.
#[test]
fn same_keys() {
    explore(1_000, || {
        let keys = || (0..5).map(|at| format!("{}", at * 2 % 5).into_bytes()).collect::<Vec<_>>();
        run(vec![keys(), keys(), keys()], 0, false);
    });
}

/// Goal: versions of one key are complete and in order, and a reader finds each version written
/// before its lookup. Method: three threads draw numbers and then push, so that many versions
/// arrive late; every second one has a tower.
#[test]
fn one_key() {
    explore(2_000, || {
        const ALL: usize = 12;
        let (memtable, next) = (Arc::new(Memtable::new()), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                let (memtable, next) = (&memtable, &next);
                scope.spawn(move || {
                    let mut own = Vec::new();
                    loop {
                        let seqno = next.fetch_add(1, Ordering::Relaxed) as Seqno;
                        if seqno >= ALL as Seqno {
                            break;
                        }
                        memtable.insert(b"hot", seqno, Kind::Merge, &seqno.to_le_bytes()).unwrap();
                        own.push(seqno);
                        for old in [own[0], seqno] {
                            let found = memtable.versions(b"hot", old).next().unwrap();
                            assert_eq!((found.seqno, found.value), (old, &old.to_le_bytes()[..]));
                        }
                    }
                });
            }
        });
        let mut model = Model::default();
        (0..ALL as Seqno).for_each(|seqno| model.insert(b"hot", seqno, Kind::Merge, &seqno.to_le_bytes()));
        check_content(&memtable, &model);
        for at in 0..ALL as Seqno {
            assert_eq!(versions(&memtable, b"hot", at), model.versions(b"hot", at));
        }
    });
}

/// Goal: a range tombstone is visible to every thread once its insertion has returned, while others
/// are added and painted. Method: two writers that query all of their own tombstones, and a thread
/// that queries all.
#[test]
fn range_tombstones() {
    explore(2_000, || {
        let memtable = Memtable::new();
        thread::scope(|scope| {
            for thread in 0..2_u8 {
                let memtable = &memtable;
                scope.spawn(move || {
                    for at in 0..4_u8 {
                        let (seqno, start) = (u64::from(at * 2 + thread + 1), [thread, at]);
                        memtable.delete_range(&start, &[thread, at, 0], seqno).unwrap();
                        for old in 0..=at {
                            let covering = memtable.newest_covering(&[thread, old], Seqno::MAX);
                            assert_eq!(covering, Some(u64::from(old * 2 + thread + 1)));
                        }
                    }
                });
            }
            scope.spawn(|| {
                let (first, second) = (memtable.range_tombstones().len(), memtable.range_tombstones().len());
                assert!(first <= second);
            });
        });
        assert_eq!((memtable.range_tombstones().len(), memtable.seqnos()), (8, Some((1, 8))));
    });
}
