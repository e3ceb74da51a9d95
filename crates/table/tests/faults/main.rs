//! Fault tests of the storage: power loss at every disk operation, also during recovery, and failed
//! operations.
//!
//! `CAIRN_SEED=n` replays a seed, `CAIRN_SOAK=1` selects the long form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod creation;
mod file_match;
mod free_page_damage;
mod full_disk;
mod harness;
mod log;
mod missing_log;
mod transactions;
mod vacuum;

use std::collections::BTreeMap;
use std::env;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use cairn_table::Result;
use cairn_table::storage::{Direction, Store, StoreOptions, Tree};
use cairn_vfs::fault::Fault;
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Fs, Rng, SeededRng};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The first tree of a database has its root on the page after page 0.
const ROOT: u32 = 1;

fn seed() -> u64 {
    let seed = env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    seed
}

fn rounds(short: u64, long: u64) -> u64 {
    if env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0") { long } else { short }
}

fn open(disk: &FaultFs, frames: usize) -> Result<Store> {
    let fs: Arc<dyn Fs> = Arc::new(disk.clone());
    let mut options = StoreOptions::default();
    options.page_size = 4096;
    options.frames = frames;
    options.background = false;
    options.log = cairn_wal::Options::default().segment_bytes(64 << 10).window_bytes(16 << 10);
    // Recovery must not draw the same random numbers as the run.
    Store::open_seeded(
        &fs,
        Path::new("/db"),
        &options,
        &mut SeededRng::new(disk.operation_count()).fork("salt"),
    )
}

fn content(store: &Store) -> Result<Map> {
    let tree = Tree::open(store.space(), ROOT);
    let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    let mut map = Map::new();
    while let Some((key, value)) = cursor.next()? {
        map.insert(key.to_vec(), value.to_vec());
    }
    assert_eq!(tree.check()?.records, map.len() as u64);
    Ok(map)
}

/// A database with one tree, and its history: the contents after each change.
struct Run {
    store: Store,
    tree: Tree,
    rng: SeededRng,
    /// The states, oldest first, from the oldest that a crash may restore.
    states: Vec<Map>,
    /// The position of the oldest one allowed after a power loss.
    durable: usize,
}

impl harness::Run for Run {
    type State = Map;

    fn new(disk: &FaultFs, seed: u64) -> Result<Run> {
        let store = open(disk, 8 + 4 * seed as usize % 12)?;
        let tree = Tree::create(store.space())?;
        assert_eq!(tree.root(), ROOT);
        store.sync()?;
        Ok(Run { store, tree, rng: SeededRng::new(seed).fork("run"), states: vec![Map::new()], durable: 0 })
    }

    fn step(&mut self) -> Result<()> {
        let number = self.rng.below(120);
        let key = format!("{number:04}{}", "k".repeat((number % 50) as usize)).into_bytes();
        let mut map = self.states.last().unwrap().clone();
        match self.rng.below(20) {
            0..13 => {
                let value = vec![self.rng.below(256) as u8; self.rng.below(400) as usize];
                map.insert(key.clone(), value.clone());
                self.states.push(map);
                self.tree.put(&key, &value)?;
            }
            13..17 => {
                map.remove(&key);
                self.states.push(map);
                self.tree.remove(&key)?;
            }
            kind => {
                if kind == 19 {
                    self.store.checkpoint(cairn_pool::Lsn(u64::MAX))?;
                } else {
                    self.store.sync()?;
                }
                self.durable = self.states.len() - 1;
            }
        }
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        // A failed change was not made; its result is not a state, unless it is in the log.
        let Ok(found) = content(&self.store) else { return false };
        if self.states.last() != Some(&found) {
            self.states.push(found);
        }
        true
    }

    fn retries(&self) -> u64 {
        0
    }

    fn finish(self, context: &str) {
        let found = content(&self.store).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(self.states.last() == Some(&found), "{context}");
    }

    fn states(&self) -> (&[Map], usize) {
        (&self.states, self.durable)
    }

    fn open(disk: &FaultFs) -> Result<()> {
        open(disk, 10).map(|_| ())
    }

    fn check(disk: &FaultFs, states: &[Map], durable: usize, context: &str) {
        let store = open(disk, 12).unwrap_or_else(|error| panic!("{context}: {error}"));
        let found = content(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(
            states.iter().skip(durable).any(|state| *state == found),
            "{context}: no state from {durable} of {} on is what was found",
            states.len()
        );
        // The database can be used further.
        let tree = Tree::open(store.space(), ROOT);
        tree.put(b"after", b"wards").unwrap();
        let mut value = Vec::new();
        assert!(tree.get(b"after", &mut value).unwrap() && value == b"wards");
    }

    fn check_unmade(disk: &FaultFs, context: &str) {
        let store = open(disk, 12).unwrap_or_else(|error| panic!("{context}: {error}"));
        if store.space().pages().unwrap() > ROOT {
            assert!(content(&store).unwrap_or_else(|error| panic!("{context}: {error}")).is_empty());
        } else {
            assert_eq!(Tree::create(store.space()).unwrap().root(), ROOT);
        }
    }
}

/// Goal: a database is locked for as long as any part of it can be written, including a tree that
/// outlives its store; too small a pool is refused.
#[test]
fn database_is_locked_while_open() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    assert_eq!(open(&disk, 7).unwrap_err().kind(), ErrorKind::Invalid);
    let store = open(&disk, 8).unwrap();
    let tree = Tree::create(store.space()).unwrap();
    assert_eq!(open(&disk, 8).unwrap_err().kind(), ErrorKind::Busy);
    drop(store);
    tree.put(b"key", b"value").unwrap();
    assert_eq!(open(&disk, 8).unwrap_err().kind(), ErrorKind::Busy);
    drop(tree);
    let tree = Tree::open(open(&disk, 8).unwrap().space(), ROOT);
    assert!(tree.contains(b"key").unwrap());
}

/// Goal: a database without its log is not opened as if it never had one.
#[test]
fn removed_log_is_refused() {
    let disk = FaultFs::new(FaultOptions::seeded(1));
    let store = open(&disk, 8).unwrap();
    let tree = Tree::create(store.space()).unwrap();
    (0..200u8).for_each(|at| assert!(tree.insert(&[at], &[at; 300]).unwrap()));
    store.checkpoint(cairn_pool::Lsn(u64::MAX)).unwrap();
    drop((tree, store));
    drop(open(&disk, 8).unwrap());
    for name in disk.read_dir(Path::new("/db-log")).unwrap() {
        disk.remove(&Path::new("/db-log").join(name)).unwrap();
    }
    assert_eq!(open(&disk, 8).unwrap_err().kind(), ErrorKind::Corruption);
}

/// Goal: pages and trees survive everything that a database must survive. Method: runs of changes,
/// syncs and checkpoints in pools that hold a part of the tree; splits and merges are complete or
/// absent.
#[test]
fn power_loss_at_every_operation() {
    let images = harness::power_loss_at_every_operation::<Run>(rounds(3, 100), 220);
    assert!(images > 1_000, "{images}");
}

#[test]
fn power_loss_in_recoveries() {
    let interrupted =
        harness::power_loss_in_recoveries::<Run>(rounds(80, 5_000), |round| 60 + round % 80, 40);
    assert!(interrupted > 60, "{interrupted}");
}

#[test]
fn every_operation_fails() {
    let found =
        harness::every_operation_fails::<Run>(&[Fault::Io, Fault::Full, Fault::Short], rounds(60, 120));
    assert!(found.struck > 100 && found.told > 30 && found.went_on > 5, "{found:?}");
}
