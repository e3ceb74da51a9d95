//! Many threads at once. Writers publish their progress, which determines what a reader must see.

use std::collections::BTreeSet;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use cairn_vfs::thread;

use super::*;
use crate::memtable::lock::tests::shake_this_thread;

const KEYS_EACH: usize = 4_000;

/// The keys of one writer in the order of insertion, and the number inserted so far.
struct Writer {
    keys: Vec<Vec<u8>>,
    done: AtomicUsize,
}

impl Writer {
    fn new(keys: Vec<Vec<u8>>) -> Self {
        Writer { keys, done: AtomicUsize::new(0) }
    }

    fn write(&self, memtable: &Memtable, number: usize) {
        shake_this_thread(number as u64);
        for (at, key) in self.keys.iter().enumerate() {
            memtable.insert(key, seqno(number, at), Kind::Put, key).unwrap();
            self.done.store(at + 1, Ordering::Release);
        }
    }

    fn done(&self) -> &[Vec<u8>] {
        &self.keys[..self.done.load(Ordering::Acquire)]
    }
}

fn seqno(writer: usize, at: usize) -> Seqno {
    (writer * 1_000_000 + at) as Seqno
}

/// Runs all writers with a reader and a scanner beside them, and checks the content at the end.
fn run(writers: &[Writer], seed: u64) {
    let (memtable, finished) = (Arc::new(Memtable::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        let running: Vec<_> = (0..).zip(writers).map(|(n, w)| (n, w, Arc::clone(&memtable))).collect();
        let running: Vec<_> =
            running.into_iter().map(|(n, w, memtable)| scope.spawn(move || w.write(&memtable, n))).collect();
        let (memtable, finished) = (&memtable, &finished);
        scope.spawn(move || read(memtable, writers, finished, SeededRng::new(seed)));
        scope.spawn(move || walk(memtable, writers, finished, SeededRng::new(seed + 1)));
        running.into_iter().for_each(|writer| writer.join().unwrap());
        finished.store(true, Ordering::Release);
    });
    let mut model = Model::default();
    for (number, writer) in writers.iter().enumerate() {
        for (at, key) in writer.keys.iter().enumerate() {
            model.insert(key, seqno(number, at), Kind::Put, key);
        }
    }
    check_content(&memtable, &model);
    for key in writers.iter().flat_map(|writer| &writer.keys) {
        assert_eq!(versions(&memtable, key, Seqno::MAX), model.versions(key, Seqno::MAX));
    }
}

/// Looks up previously inserted keys until all writers have finished.
fn read(memtable: &Memtable, writers: &[Writer], finished: &AtomicBool, mut rng: SeededRng) {
    shake_this_thread(rng.next_u64());
    while !finished.load(Ordering::Acquire) {
        let writer = rng.below(writers.len() as u64) as usize;
        let done = writers[writer].done();
        if !done.is_empty() {
            let at = rng.below(done.len() as u64) as usize;
            let found =
                memtable.versions(&done[at], Seqno::MAX).find(|found| found.seqno == seqno(writer, at));
            assert_eq!(found.expect("an inserted key is found").value, done[at]);
        }
    }
}

/// Scans in both directions, from the ends and from inserted keys, until all writers have finished.
fn walk(memtable: &Arc<Memtable>, writers: &[Writer], finished: &AtomicBool, mut rng: SeededRng) {
    shake_this_thread(rng.next_u64());
    while !finished.load(Ordering::Acquire) {
        let before: BTreeSet<&[u8]> =
            writers.iter().flat_map(|w| w.done().iter().map(Vec::as_slice)).collect();
        let from = before.iter().nth(rng.below(before.len() as u64 + 1) as usize).copied();
        let mut cursor = memtable.cursor();
        let (backwards, mut seen) = (rng.chance(0.5), Vec::<Shown>::new());
        match (from, backwards) {
            (None, false) => cursor.seek_first().unwrap(),
            (None, true) => cursor.seek_last().unwrap(),
            (Some(key), false) => cursor.seek(key, Seqno::MAX).unwrap(),
            (Some(key), true) => cursor.seek_back(key, true).unwrap(),
        }
        while let Some(entry) = shown(&cursor) {
            seen.push(entry);
            if backwards { cursor.prev().unwrap() } else { cursor.next().unwrap() }
        }
        if backwards {
            seen.reverse();
        }
        assert!(seen.is_sorted_by_key(|(key, seqno, ..)| (key, Reverse(seqno))));
        assert!(
            seen.windows(2).all(|pair| (&pair[0].0, pair[0].1) != (&pair[1].0, pair[1].1)),
            "an entry twice"
        );
        let keys: BTreeSet<&[u8]> = seen.iter().map(|entry| entry.0.as_slice()).collect();
        let expected = before.iter().filter(|key| match (from, backwards) {
            (None, _) => true,
            (Some(from), false) => **key >= from,
            (Some(from), true) => **key <= from,
        });
        for key in expected {
            assert!(keys.contains(key), "{key:?} was inserted before the walk began and is missing");
        }
    }
}

fn decimal(number: usize) -> Vec<u8> {
    format!("{number:012}").into_bytes()
}

/// Goal: no entry is lost, and no reader misses an entry that existed before its lookup, while
/// threads insert interleaved keys. Method: 2 to 8 writers, a reader and a scanner; random,
/// ascending and descending orders.
#[test]
fn disjoint_keys() {
    let mut rng = SeededRng::new(21);
    for threads in [2, 4, 8] {
        for order in 0..4 {
            println!("{threads} threads, order {order}");
            let writers: Vec<_> = (0..threads)
                .map(|thread| {
                    // Interleaved, except in the last order, where each thread has a contiguous
                    // range of keys.
                    let number =
                        |at| if order == 3 { thread * KEYS_EACH + at } else { at * threads + thread };
                    let mut keys: Vec<_> =
                        (0..KEYS_EACH / threads * 2).map(|at| decimal(number(at))).collect();
                    match order {
                        0 => shuffle(&mut keys, &mut rng),
                        1 => keys.reverse(),
                        _ => {}
                    }
                    Writer::new(keys)
                })
                .collect();
            run(&writers, order as u64);
        }
    }
}

/// Goal: the same if all threads insert the same keys, so that they meet at each record.
#[test]
fn same_keys() {
    let mut rng = SeededRng::new(22);
    for threads in [2, 4, 8] {
        for is_random in [false, true] {
            println!("{threads} threads, random {is_random}");
            let writers: Vec<_> = (0..threads)
                .map(|_| {
                    let mut keys: Vec<_> = (0..KEYS_EACH / threads).map(decimal).collect();
                    if is_random {
                        shuffle(&mut keys, &mut rng);
                    }
                    Writer::new(keys)
                })
                .collect();
            run(&writers, threads as u64);
        }
    }
}

/// Goal: a shortened prefix and the shifted heads are never seen half done. Method: writers of keys
/// that stress both, some of them equal.
#[test]
fn hard_keys() {
    for round in 0..8 {
        println!("round {round}");
        let rng = SeededRng::new(round);
        let writers: Vec<_> = (0..4)
            .map(|thread| {
                let mut rng = rng.fork(&format!("writer {thread}"));
                let keys: BTreeSet<_> = (0..2_000).map(|_| hard_key(&mut rng)).collect();
                let mut keys: Vec<_> = keys.into_iter().collect();
                shuffle(&mut keys, &mut rng);
                Writer::new(keys)
            })
            .collect();
        run(&writers, round);
    }
}

/// Goal: versions of one key from many threads are complete and in order, and a reader sees each
/// version written before its lookup. Method: eight threads push to one chain, with towers and late
/// arrivals.
#[test]
fn one_key() {
    const THREADS: usize = 8;
    let (memtable, next) = (Arc::new(Memtable::new()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let (memtable, next) = (&memtable, &next);
            scope.spawn(move || {
                shake_this_thread(thread);
                let mut own = Vec::new();
                loop {
                    let seqno = next.fetch_add(1, Ordering::Relaxed) as Seqno;
                    if seqno >= 20_000 {
                        break;
                    }
                    memtable.insert(b"hot", seqno, Kind::Merge, &seqno.to_le_bytes()).unwrap();
                    own.push(seqno);
                    let old = own[own.len() / 3];
                    let found = memtable.versions(b"hot", old).next().unwrap();
                    assert_eq!((found.seqno, found.value), (old, &old.to_le_bytes()[..]));
                }
            });
        }
    });
    let all: Vec<_> = memtable.versions(b"hot", Seqno::MAX).map(|version| version.seqno).collect();
    assert!(all.into_iter().eq((0..20_000).rev()));
    assert_eq!(memtable.entries(), 20_000);
}

/// Goal: a range tombstone is visible to every thread once its insertion has returned. Method:
/// writers that each query all of their own tombstones, and occasionally all tombstones.
#[test]
fn range_tombstones() {
    let memtable = Memtable::new();
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let memtable = &memtable;
            scope.spawn(move || {
                for at in 0..150 {
                    let (seqno, start) = (at * 4 + thread + 1, [thread as u8, at as u8]);
                    memtable.delete_range(&start, &[thread as u8, at as u8, 0], seqno).unwrap();
                    for old in 0..=at {
                        let key = [thread as u8, old as u8];
                        assert_eq!(memtable.newest_covering(&key, Seqno::MAX), Some(old * 4 + thread + 1));
                    }
                    if at % 13 == 0 {
                        assert!(memtable.range_tombstones().len() > at as usize);
                    }
                }
            });
        }
    });
    assert_eq!(memtable.range_tombstones().len(), 600);
    assert_eq!(memtable.seqnos(), Some((1, 600)));
}

/// Goal: if writers overwrite the same keys repeatedly in order, no version is lost. Method: three
/// writers with sixteen keys each, in a tree of few leaves, so that they meet while leaves are
/// split; many trees.
#[test]
fn the_same_keys_again() {
    const WRITERS: usize = 3;
    const KEYS: usize = 16;
    const TURNS: usize = 12;
    let number = |writer, turn, key| ((turn * WRITERS + writer) * KEYS + key + 1) as Seqno;
    let key = |writer: usize, key: usize| format!("{writer} {key:03}").into_bytes();
    for round in 0..2_000 {
        let memtable = Memtable::new();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let memtable = &memtable;
                scope.spawn(move || {
                    shake_this_thread((round * WRITERS + writer) as u64);
                    for (turn, at) in (0..TURNS).flat_map(|turn| (0..KEYS).map(move |at| (turn, at))) {
                        let seqno = number(writer, turn, at);
                        memtable.insert(&key(writer, at), seqno, Kind::Put, &[turn as u8; 20]).unwrap();
                    }
                });
            }
        });
        for (writer, at) in (0..WRITERS).flat_map(|writer| (0..KEYS).map(move |at| (writer, at))) {
            let found: Vec<_> =
                memtable.versions(&key(writer, at), Seqno::MAX).map(|version| version.seqno).collect();
            let expected: Vec<_> = (0..TURNS).rev().map(|turn| number(writer, turn, at)).collect();
            assert_eq!(found, expected, "round {round}, writer {writer}, key {at}");
        }
    }
}
