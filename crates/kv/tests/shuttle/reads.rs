//! Tests of reads concurrent with writes, sealing, flushes and compactions.

use cairn_kv::{Operation, Snapshot, WriteBatch};
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// Returns options with memtables so large that nothing is flushed automatically.
fn large_memtables() -> KeyspaceOptions {
    KeyspaceOptions { memtable_bytes: 1 << 20, ..keyspace() }
}

const WRITERS: usize = 2;
const KEYS: u8 = 2;

/// A store in which each writer keeps all its keys, in both keyspaces, at one number: every write
/// is a batch over all of them. A reader that sees two numbers at once has seen a partial batch.
struct Numbers {
    db: Db,
    /// The last acknowledged number of each writer.
    acknowledged: [AtomicU64; WRITERS],
}

impl Numbers {
    fn new(db: Db) -> Numbers {
        Numbers { db, acknowledged: Default::default() }
    }

    fn write(&self, writer: usize, number: u64) {
        let mut batch = WriteBatch::new();
        let value = number.to_be_bytes();
        for keyspace in self.db.keyspaces() {
            for key in 0..KEYS {
                batch
                    .add(keyspace.id(), Operation::Put { key: &[writer as u8, key], value: &value })
                    .unwrap();
            }
        }
        self.db.write_with(&batch, Durability::Buffered).unwrap();
        self.acknowledged[writer].store(number, Ordering::Release);
    }

    fn acknowledged(&self) -> [u64; WRITERS] {
        std::array::from_fn(|writer| self.acknowledged[writer].load(Ordering::Acquire))
    }

    /// Returns the one number of each writer, read with lookups or with scans.
    fn read(&self, snapshot: &Snapshot, by_scan: bool) -> [u64; WRITERS] {
        std::array::from_fn(|writer| {
            let mut found = Vec::new();
            for keyspace in self.db.keyspaces() {
                if by_scan {
                    let pairs: Vec<_> =
                        keyspace.range_at([writer as u8]..[writer as u8 + 1], snapshot).collect();
                    assert!(pairs.is_empty() || pairs.len() == usize::from(KEYS), "{pairs:?}");
                    found.push(number(pairs.first().map(|pair| &*pair.as_ref().unwrap().1)));
                    found.extend(pairs.into_iter().map(|pair| number(Some(&pair.unwrap().1))));
                } else {
                    let keys: Vec<_> = (0..KEYS).map(|key| [writer as u8, key]).collect();
                    let values = keys.iter().map(|key| keyspace.get_at(key, snapshot).unwrap());
                    found.extend(values.map(|value| number(value.as_deref())));
                }
            }
            assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {found:?}");
            found[0]
        })
    }

    /// Checks that no acknowledged write is missing, no batch is partially visible, and the view of
    /// a snapshot does not change.
    fn look(&self, by_scan: bool) {
        let before = self.acknowledged();
        let snapshot = self.db.snapshot();
        let seen = self.read(&snapshot, by_scan);
        assert!(seen.iter().zip(&before).all(|(seen, before)| seen >= before), "{seen:?}, before {before:?}");
        let newest = number(self.db.get([0, 0]).unwrap().as_deref());
        assert!(newest >= seen[0], "{newest} after {seen:?}");
        assert_eq!(self.read(&snapshot, !by_scan), seen, "a snapshot has moved");
    }
}

/// Goal: a lookup never misses an acknowledged write, whatever is flushed between its steps.
/// Method: a value in a table, a newer one in the memtable; a third is written and flushes the
/// second, while others look up the key.
#[test]
fn gets_beside_a_flush() {
    explore(600, || {
        let fs = memory();
        let db = builder(&fs, 0, &large_memtables()).open().unwrap();
        db.put("key", "0").unwrap();
        db.flush().unwrap();
        db.put("key", "1").unwrap();
        thread::scope(|scope| {
            let db = &db;
            for _ in 0..2 {
                scope.spawn(move || {
                    (0..6).for_each(|_| assert_ne!(db.get("key").unwrap().as_deref(), Some(&b"0"[..])))
                });
            }
            scope.spawn(move || {
                db.put("key", "2").unwrap();
                db.flush().unwrap();
            });
        });
    });
}

/// Goal: readers see complete batches across keyspaces and all writes acknowledged before, and a
/// snapshot does not change; threads that flush and compact meanwhile end; after reopening,
/// everything is there.
/// Method: two writers whose every batch seals memtables, a reader, two background threads.
#[test]
fn everything_at_once() {
    explore(300, || {
        const UNTIL: u64 = 3;
        let fs = memory();
        let numbers = Numbers::new(builder(&fs, 2, &keyspace()).open().unwrap());
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let numbers = &numbers;
                scope.spawn(move || (1..=UNTIL).for_each(|number| numbers.write(writer, number)));
            }
            scope.spawn(|| [false, true].into_iter().for_each(|by_scan| numbers.look(by_scan)));
        });
        numbers.db.wait_idle().unwrap();
        assert_eq!(numbers.read(&numbers.db.snapshot(), false), [UNTIL; WRITERS]);
        drop(numbers);
        let numbers = Numbers::new(builder(&fs, 0, &keyspace()).open().unwrap());
        assert_eq!(numbers.read(&numbers.db.snapshot(), true), [UNTIL; WRITERS]);
    });
}

/// Goal: a flush never drops an entry that some reader sees, however and whenever it reads.
/// Method: one key is overwritten and flushed while a reader looks it up, with a snapshot or
/// without. The run is short and has no other threads, so most of its schedules differ in the
/// critical part.
#[test]
fn one_reader_and_a_flush() {
    for way in 0..5 {
        explore(1_000, move || {
            let fs = memory();
            let db = builder(&fs, 0, &large_memtables()).open().unwrap();
            db.put("key", 1u64.to_be_bytes()).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    db.put("key", 2u64.to_be_bytes()).unwrap();
                    db.flush().unwrap();
                });
                scope.spawn(|| {
                    let found = match way {
                        0 => db.get("key").unwrap().map(|value| number(Some(&value))),
                        1 => db.multi_get(&["key"]).unwrap()[0].as_deref().map(|value| number(Some(value))),
                        2 => db.iter().next().map(|pair| number(Some(&pair.unwrap().1))),
                        3 => db.iter().next_back().map(|pair| number(Some(&pair.unwrap().1))),
                        _ => {
                            let snapshot = db.snapshot();
                            let found = db.get_at("key", &snapshot).unwrap();
                            assert_eq!(db.get_at("key", &snapshot).unwrap(), found);
                            found.map(|value| number(Some(&value)))
                        }
                    };
                    assert!(found == Some(1) || found == Some(2), "{found:?}");
                });
            });
            assert_eq!(number(db.get("key").unwrap().as_deref()), 2);
        });
    }
}

/// Goal: a writer sees its own writes, whatever is sealed meanwhile.
/// Method: a memtable is sealed and flushed beside a writer of single writes and one of batches,
/// which look up their own writes.
#[test]
fn a_writer_and_a_flush() {
    for is_batch in [false, true] {
        explore(1_000, move || {
            let fs = memory();
            let db = builder(&fs, 0, &large_memtables()).open().unwrap();
            db.put("first", "value").unwrap();
            thread::scope(|scope| {
                scope.spawn(|| db.flush().unwrap());
                scope.spawn(|| {
                    if is_batch {
                        let mut batch = WriteBatch::new();
                        batch.put("second", "value").unwrap();
                        db.write(&batch).unwrap();
                    } else {
                        db.put("second", "value").unwrap();
                    }
                    assert!(db.get("second").unwrap().is_some());
                });
            });
            assert_eq!(db.iter().count(), 2);
            drop(db);
            let db = builder(&fs, 0, &large_memtables()).open().unwrap();
            assert_eq!(db.iter().count(), 2);
        });
    }
}

/// Goal: flushes and compactions never drop entries that a snapshot sees.
/// Method: one key is written repeatedly while a thread flushes and compacts it, and readers take
/// snapshots and read twice.
#[test]
fn snapshots_beside_compactions() {
    explore(600, || {
        let fs = memory();
        let db = builder(&fs, 0, &large_memtables()).open().unwrap();
        db.put("key", 1u64.to_be_bytes()).unwrap();
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || (2..=5u64).for_each(|round| db.put("key", round.to_be_bytes()).unwrap()));
            scope.spawn(move || {
                db.flush().unwrap();
                db.compact_range(..).unwrap();
            });
            for _ in 0..2 {
                scope.spawn(move || {
                    let snapshot = db.snapshot();
                    let first = number(db.get_at("key", &snapshot).unwrap().as_deref());
                    assert!((1..=5).contains(&first), "{first} at {snapshot:?}");
                    let pairs: Vec<_> = db.range_at(.., &snapshot).map(Result::unwrap).collect();
                    assert_eq!(number(pairs.first().map(|pair| &*pair.1)), first);
                    assert_eq!(number(db.get_at("key", &snapshot).unwrap().as_deref()), first);
                });
            }
        });
    });
}

/// Goal: readers without a snapshot always find an existing key, whatever happens to the memtables
/// and tables that they read, and never an older value after a newer one.
/// Method: one key is overwritten with a flush for each version and compactions in the background;
/// concurrent lookups, `multi_get` and scans.
#[test]
fn readers_without_snapshots() {
    explore(300, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        db.put("key", 1u64.to_be_bytes()).unwrap();
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || (2..=5u64).for_each(|round| db.put("key", round.to_be_bytes()).unwrap()));
            scope.spawn(move || {
                let mut newest = 1;
                for round in 0..4 {
                    let found = match round % 3 {
                        0 => number(db.get("key").unwrap().as_deref()),
                        1 => number(db.multi_get(&["key"]).unwrap()[0].as_deref()),
                        _ => number(db.iter().next().map(|pair| pair.unwrap().1).as_deref()),
                    };
                    assert!(found >= newest, "{found} after {newest}");
                    newest = found;
                }
            });
        });
        assert_eq!(number(db.get("key").unwrap().as_deref()), 5);
    });
}

/// Goal: a range deletion covers everything written before it and nothing later, in memtables, in
/// tables and during flushes.
/// Method: a writer alternates deletions of everything with a batch that writes everything; readers
/// see all keys or none, and never none after a batch that deletes and rewrites everything.
#[test]
fn range_deletions() {
    explore(300, || {
        let fs = memory();
        let db = builder(&fs, 2, &keyspace()).open().unwrap();
        let write = |round: u64, is_deleted_first: bool| {
            let mut batch = WriteBatch::new();
            if is_deleted_first {
                batch.add(db.id(), Operation::DeleteRange { start: b"a", end: b"z" }).unwrap();
            }
            ["b", "k", "y"].iter().for_each(|key| batch.put(key, round.to_be_bytes()).unwrap());
            db.write(&batch).unwrap();
        };
        write(1, false);
        thread::scope(|scope| {
            let db = &db;
            scope.spawn(move || (2..=4).for_each(|round| write(round, round % 2 == 0)));
            scope.spawn(move || {
                for is_back in [false, true] {
                    let pairs: Vec<_> = if is_back { db.iter().rev().collect() } else { db.iter().collect() };
                    let found: Vec<_> =
                        pairs.into_iter().map(|pair| number(Some(&pair.unwrap().1))).collect();
                    assert!(found.len() == 3 && found.windows(2).all(|two| two[0] == two[1]), "{found:?}");
                    assert!(db.get("k").unwrap().is_some());
                }
            });
        });
    });
}
