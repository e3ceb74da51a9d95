//! Concurrent writers, readers, scanners, snapshots, flushes and compactions, checked against
//! invariants.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cairn_kv::{Background, Durability, Keyspace, Operation, Snapshot, WriteBatch};
use cairn_vfs::{MemFs, Rng, SeededRng, thread};

use super::*;

const WRITERS: u64 = 3;
const KEYS: u64 = 16;

/// A store in which each writer keeps all its keys, in both keyspaces, at one number: every write
/// is a batch over all of them. A reader that sees two numbers at once has seen a partial batch.
struct Stress {
    db: Db,
    other: Keyspace,
    /// The last acknowledged number of each writer.
    acknowledged: [AtomicU64; WRITERS as usize],
    over: AtomicBool,
}

fn key(writer: u64, at: u64) -> String {
    format!("{writer} {at:03}")
}

impl Stress {
    fn new(own: u64) -> Stress {
        let shape = Shape { background: Background::Threads(3), ..Shape::new(own) };
        let clock = Arc::new(cairn_vfs::SystemClock::new());
        let db = shape.builder(Arc::new(MemFs::new())).clock(clock).open().unwrap();
        let other = db.keyspace(KEYSPACES[1]).unwrap();
        Stress { db, other, acknowledged: Default::default(), over: AtomicBool::new(false) }
    }

    fn write(&self, writer: u64, rng: &mut SeededRng) {
        let at = &self.acknowledged[writer as usize];
        let number = at.load(Ordering::Acquire) + 1;
        let mut batch = WriteBatch::new();
        let mut value = number.to_be_bytes().to_vec();
        value.resize(8 + rng.below(40) as usize, b'.');
        if number.is_multiple_of(7) {
            // Deleted and rewritten in the same batch, so the deletion is never visible.
            for keyspace in [self.db.id(), self.other.id()] {
                let (start, end) = (key(writer, 0), key(writer, 999));
                batch
                    .add(keyspace, Operation::DeleteRange { start: start.as_bytes(), end: end.as_bytes() })
                    .unwrap();
            }
        }
        for index in 0..KEYS {
            for keyspace in [self.db.id(), self.other.id()] {
                let key = key(writer, index);
                batch.add(keyspace, Operation::Put { key: key.as_bytes(), value: &value }).unwrap();
            }
        }
        let durability =
            [Durability::Memory, Durability::Buffered, Durability::Sync][(number % 16 / 7) as usize];
        self.db.write_with(&batch, durability).unwrap();
        at.store(number, Ordering::Release);
    }

    fn number_of(value: &[u8]) -> u64 {
        u64::from_be_bytes(value[..8].try_into().unwrap())
    }

    /// Returns the one number that all keys of a writer have, in a scan of each keyspace at one
    /// snapshot.
    fn scan(&self, writer: u64, snapshot: &Snapshot, backwards: bool) -> u64 {
        let mut numbers = std::collections::BTreeSet::new();
        for keyspace in [&*self.db, &self.other] {
            let range = keyspace.range_at(key(writer, 0)..key(writer, 999), snapshot);
            let pairs: Vec<_> = if backwards { range.rev().collect() } else { range.collect() };
            assert!(pairs.is_empty() || pairs.len() as u64 == KEYS, "{} of {KEYS} keys", pairs.len());
            numbers.insert(pairs.first().map_or(0, |pair| Self::number_of(&pair.as_ref().unwrap().1)));
            numbers.extend(pairs.iter().map(|pair| Self::number_of(&pair.as_ref().unwrap().1)));
        }
        if numbers.len() != 1 {
            self.report_half(writer, snapshot, backwards);
        }
        assert_eq!(numbers.len(), 1, "writer {writer}: half a batch: {numbers:?}");
        numbers.into_iter().next().unwrap()
    }

    /// Prints details of a partial batch: each key as seen by scans and by lookups.
    fn report_half(&self, writer: u64, snapshot: &Snapshot, backwards: bool) {
        let number = |value: Option<&[u8]>| value.map_or(0, Self::number_of);
        println!("backwards {backwards}, snapshot {snapshot:?}\n{}", self.db.stats());
        for keyspace in [&*self.db, &self.other] {
            let again =
                keyspace.range_at(key(writer, 0)..key(writer, 999), snapshot).map(|pair| pair.unwrap().1);
            println!("scan {:?}", again.map(|value| Self::number_of(&value)).collect::<Vec<_>>());
            let gets = (0..KEYS).map(|at| keyspace.get_at(key(writer, at), snapshot).unwrap());
            println!("gets {:?}", gets.map(|value| number(value.as_deref())).collect::<Vec<_>>());
        }
    }

    /// One turn of a reader: no acknowledged write is missing, no batch is partially visible, and
    /// the view of a snapshot does not change.
    fn read(&self, rng: &mut SeededRng, held: &mut Vec<(Snapshot, [u64; WRITERS as usize])>) {
        let before: Vec<_> = self.acknowledged.iter().map(|at| at.load(Ordering::Acquire)).collect();
        let snapshot = self.db.snapshot();
        let seen: [u64; WRITERS as usize] =
            std::array::from_fn(|writer| self.scan(writer as u64, &snapshot, rng.chance(0.3)));
        for (writer, before) in before.iter().enumerate() {
            assert!(seen[writer] >= *before, "writer {writer}: acknowledged {before}, seen {}", seen[writer]);
        }
        let writer = rng.below(WRITERS);
        let keys: Vec<_> = (0..KEYS).map(|index| key(writer, index)).collect();
        let many = self.other.multi_get(&keys).unwrap();
        let numbers: Vec<_> = many.iter().map(|value| value.as_deref().map_or(0, Self::number_of)).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {numbers:?}");
        let one = self.db.get(&keys[0]).unwrap().as_deref().map_or(0, Self::number_of);
        assert!(one >= numbers[0] || one >= before[writer as usize]);
        held.push((snapshot, seen));
        if held.len() > 6 {
            let (snapshot, seen) = held.remove(rng.below(3) as usize);
            for (writer, seen) in seen.iter().enumerate() {
                assert_eq!(
                    self.scan(writer as u64, &snapshot, rng.chance(0.5)),
                    *seen,
                    "a snapshot has moved"
                );
            }
        }
    }

    fn manage(&self, rng: &mut SeededRng) {
        let keyspace = if rng.chance(0.5) { &*self.db } else { &self.other };
        match rng.below(4) {
            0 => keyspace.compact_range(key(0, 5)..key(2, 3)).unwrap(),
            1 => keyspace.compact_range(..).unwrap(),
            2 => self.db.sync().unwrap(),
            _ => keyspace.flush().unwrap(),
        }
        let _ = self.db.stats().to_string();
    }
}

/// Goal: whatever runs concurrently, a reader sees complete batches across keyspaces and all writes
/// acknowledged before it began, and a snapshot does not change; at the end and after reopening,
/// everything is there.
/// Method: writers, readers and a manager on threads, with three background threads, over each pair
/// of strategies.
#[test]
fn everything_at_once() {
    let own = seed(20);
    let mut writes = 0;
    for round in 0..rounds(4, 40) {
        let stress = Stress::new(own.wrapping_add(round));
        let until = rounds(120, 2000);
        thread::scope(|scope| {
            let stress = &stress;
            let mut writers = Vec::new();
            for writer in 0..WRITERS {
                let work = move || {
                    let mut rng = SeededRng::new(own ^ writer);
                    (0..until).for_each(|_| stress.write(writer, &mut rng));
                };
                writers.push(thread::spawn_scoped(scope, "writer", work).unwrap());
            }
            for reader in 0..2 {
                let work = move || {
                    let (mut rng, mut held) = (SeededRng::new(own ^ (100 + reader)), Vec::new());
                    while !stress.over.load(Ordering::Acquire) {
                        stress.read(&mut rng, &mut held);
                    }
                };
                thread::spawn_scoped(scope, "reader", work).unwrap();
            }
            let manager = move || {
                let mut rng = SeededRng::new(own ^ 200);
                while !stress.over.load(Ordering::Acquire) {
                    stress.manage(&mut rng);
                }
            };
            thread::spawn_scoped(scope, "manager", manager).unwrap();
            // Readers and the manager stop even when a writer has failed.
            let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            stress.over.store(true, Ordering::Release);
            results.into_iter().for_each(|result| result.unwrap());
        });
        stress.db.wait_idle().unwrap();
        let snapshot = stress.db.snapshot();
        for writer in 0..WRITERS {
            assert_eq!(stress.scan(writer, &snapshot, false), until);
        }
        writes += WRITERS * until;
    }
    println!("everything at once: {writes} batches of {} operations", KEYS * 2);
}
