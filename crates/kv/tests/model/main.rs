//! Compares the whole store with a sorted map, over many sets of options, with reopening in
//! between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;
mod options;
mod takeover;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_kv::{Db, Snapshot, WriteBatch};
use cairn_vfs::{Fs, ManualClock, MemFs, SeededRng};

use model::{Key, Model, Step, Value};

/// Returns the number of steps for each set of options.
fn steps() -> usize {
    if std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { 40_000 } else { 2_500 }
}

struct Run {
    fs: Arc<dyn Fs>,
    seed: u64,
    /// How often the store was opened, which determines its options.
    opened: u64,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    rng: SeededRng,
}

impl Run {
    fn new(seed: u64) -> Run {
        let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
        let mut run = Run {
            fs,
            seed,
            opened: 0,
            db: None,
            model: Model::default(),
            snapshots: Vec::new(),
            rng: SeededRng::new(seed).fork("steps"),
        };
        run.open();
        run
    }

    /// Opens the store, each time with different options.
    fn open(&mut self) {
        self.snapshots.clear();
        self.db = None;
        let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000_000)));
        let builder = options::swarm(self.seed, self.opened, Db::builder("/store"));
        let seed = self.seed ^ self.opened << 40;
        self.db = Some(builder.fs(Arc::clone(&self.fs)).clock(clock).seed(seed).open().unwrap());
        self.opened += 1;
    }

    /// Checks that the files are consistent.
    fn verify(&self, what: &str) {
        let report = self.db().verify().unwrap();
        assert!(report.is_sound(), "seed {}, opening {}, after {what}: {report}", self.seed, self.opened);
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn step(&mut self) {
        let step = Step::draw(&mut self.rng);
        let db = self.db.clone().unwrap();
        match step {
            Step::Put(key, value) => {
                db.put(&key, &value).unwrap();
                self.model.put(key, value);
            }
            Step::Delete(key) => {
                db.delete(&key).unwrap();
                self.model.delete(&key);
            }
            Step::Merge(key, value) => {
                db.merge(&key, &value).unwrap();
                self.model.merge(key, &value);
            }
            Step::DeleteRange(start, end) => {
                db.delete_range(&start, &end).unwrap();
                self.model.delete_range(&start, &end);
            }
            Step::Batch(pairs) => {
                let mut batch = WriteBatch::new();
                for (key, value) in pairs {
                    match value {
                        Some(value) => {
                            batch.put(&key, &value).unwrap();
                            self.model.put(key, value);
                        }
                        None => {
                            batch.delete(&key).unwrap();
                            self.model.delete(&key);
                        }
                    }
                }
                db.write(&batch).unwrap();
            }
            Step::Get(key) => {
                assert_eq!(db.get(&key).unwrap().map(Value::from), self.model.get(&key), "{key:?}");
            }
            Step::MultiGet(keys) => {
                let values: Vec<_> =
                    db.multi_get(&keys).unwrap().into_iter().map(|v| v.map(Value::from)).collect();
                assert_eq!(values, keys.iter().map(|key| self.model.get(key)).collect::<Vec<_>>());
            }
            Step::Scan(from, to, backwards) => self.scan(&db, &from, &to, backwards),
            Step::Snapshot => {
                if self.snapshots.len() > 3 {
                    self.snapshots.remove(0);
                }
                self.snapshots.push((db.snapshot(), self.model.clone()));
            }
            Step::Look(key) => {
                for (snapshot, model) in &self.snapshots {
                    assert_eq!(db.get_at(&key, snapshot).unwrap().map(Value::from), model.get(&key));
                }
            }
            Step::Flush => {
                db.flush().unwrap();
                self.verify("a flush");
            }
            Step::Compact(from, to) => {
                db.compact_range(from..to).unwrap();
                self.verify("a compaction");
            }
            Step::Reopen => {
                drop(db);
                self.open();
                self.verify("reopening");
                self.check_all();
                self.db().wait_idle().unwrap();
                self.verify("what another strategy had to do");
                self.check_all();
            }
        }
    }

    fn scan(&self, db: &Db, from: &Key, to: &Key, backwards: bool) {
        let expected = self.model.range(from, to);
        let range = db.range(from.clone()..to.clone());
        let found: Vec<_> = if backwards {
            let mut all: Vec<_> = range.rev().map(Result::unwrap).collect();
            all.reverse();
            all
        } else {
            range.map(Result::unwrap).collect()
        };
        assert_eq!(found, expected);
    }

    /// Compares everything in both directions, at the newest sequence number and at each snapshot.
    fn check_all(&self) {
        let all = self.model.range(&Key::new(), &vec![0xff; 8]);
        assert_eq!(self.db().iter().map(Result::unwrap).collect::<Vec<_>>(), all);
        let mut back: Vec<_> = self.db().iter().rev().map(Result::unwrap).collect();
        back.reverse();
        assert_eq!(back, all);
        for (snapshot, model) in &self.snapshots {
            let found: Vec<_> = self.db().range_at(.., snapshot).map(Result::unwrap).collect();
            assert_eq!(found, model.range(&Key::new(), &vec![0xff; 8]));
        }
    }
}

/// Goal: with any options, and any change of options between openings, the store is a sorted map
/// with snapshots, across flushes, compactions and reopening.
/// Method: the same random steps on the store and a map; all options are redrawn at each opening;
/// the files are verified after each step that changes them; everything is compared at intervals
/// and at the end.
fn swarm(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        println!("seed {seed}");
        let mut run = Run::new(seed);
        for step in 0..steps() {
            run.step();
            if step % 500 == 499 {
                run.check_all();
            }
        }
        run.open();
        run.check_all();
        run.db().compact_range(..).unwrap();
        run.check_all();
        run.db = None;
        // No files are left besides those that the manifest refers to.
        run.open();
        let names = run.fs.read_dir(Path::new("/store")).unwrap();
        assert!(names.len() < 60, "{names:?}");
    }
}

#[test]
fn swarm_0_to_10() {
    swarm(0..10);
}

#[test]
fn swarm_10_to_20() {
    swarm(10..20);
}

#[test]
fn swarm_20_to_30() {
    swarm(20..30);
}
