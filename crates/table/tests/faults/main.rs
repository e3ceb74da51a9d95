//! What the storage must survive: power loss at every operation of the disk, in recoveries too, and operations that fail.
//!
//! `CAIRN_SEED=n` replays a seed, `CAIRN_SOAK=1` asks for the long form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod creation;
mod log;
mod transactions;

use std::collections::BTreeMap;
use std::env;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use cairn_table::Result;
use cairn_table::storage::{Direction, Store, StoreOptions, Tree};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, Rng, SeededRng};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The first tree of a database has its root on the first page after page 0.
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
    // What recoveries draw must not be what the run drew.
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

/// A database with one tree, and everything that it was: the content after each change.
struct Run {
    store: Store,
    tree: Tree,
    rng: SeededRng,
    /// The contents, oldest first, as far back as a crash may lead.
    states: Vec<Map>,
    /// The one that a power loss must leave at least.
    durable: usize,
}

impl Run {
    fn new(disk: &FaultFs, frames: usize, seed: u64) -> Run {
        let store = open(disk, frames).unwrap();
        let tree = Tree::create(store.space()).unwrap();
        assert_eq!(tree.root(), ROOT);
        store.sync().unwrap();
        Run { store, tree, rng: SeededRng::new(seed).fork("run"), states: vec![Map::new()], durable: 0 }
    }

    /// Does one thing. What a change that fails would have made is among the states all the same: it may have come to the log.
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
                    self.store.checkpoint(cairn_pool::Lsn(u64::MAX))?
                } else {
                    self.store.sync()?
                }
                self.durable = self.states.len() - 1;
            }
        }
        Ok(())
    }
}

/// What a disk holds must be one of the states from the durable one on. Gives which.
fn check(disk: &FaultFs, states: &[Map], durable: usize, context: &str) -> usize {
    let store = open(disk, 12).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = content(&store).unwrap_or_else(|error| panic!("{context}: {error}"));
    let at = states.iter().skip(durable).position(|state| *state == found);
    let at = at.unwrap_or_else(|| {
        panic!("{context}: no state from {durable} of {} on is what was found", states.len())
    });
    // It goes on from there.
    let tree = Tree::open(store.space(), ROOT);
    tree.put(b"after", b"wards").unwrap();
    let mut value = Vec::new();
    assert!(tree.get(b"after", &mut value).unwrap() && value == b"wards");
    durable + at
}

/// Goal: a database is nobody else's as long as anything of it can be written, a tree that has outlived its store included; and too small a pool is refused.
#[test]
fn one_at_a_time() {
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

/// Goal: a database without its log is not opened as if it had never had one.
#[test]
fn logs_that_were_removed() {
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

/// Goal: power loss at any moment leaves a sound tree with every change up to some moment, none later than what was not synced, none missing that was; splits and
/// merges are there whole or not at all. Method: crash images at every operation of runs in pools that hold a part of the tree.
#[test]
fn power_loss_at_every_operation() {
    let own = seed();
    let mut images = 0;
    for round in 0..rounds(3, 100) {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        let mut run = Run::new(&disk, 8 + 4 * round as usize % 12, seed);
        disk.capture_crash_points();
        let mut marks = Vec::new();
        for _ in 0..220 {
            run.step().unwrap();
            marks.push((disk.operation_count(), run.durable));
        }
        for point in disk.take_crash_points() {
            let ended = marks.partition_point(|mark| mark.0 <= point.operation());
            let durable = ended.checked_sub(1).map_or(0, |at| marks[at].1);
            for (image, crashed) in point.images(rounds(1, 6)) {
                images += 1;
                check(
                    &crashed,
                    &run.states,
                    durable,
                    &format!("seed {seed}, {image} at {}", point.operation()),
                );
            }
        }
    }
    println!("{images} images");
    assert!(images > 1_000);
}

/// Goal: the same when the power goes during recovery, again and again. Method: crash, crash at a drawn operation of the opening, up to four times, then open.
#[test]
fn power_loss_in_recoveries() {
    let own = seed();
    let mut recoveries = 0;
    for round in 0..rounds(60, 5_000) {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        let mut run = Run::new(&disk, 10, seed);
        (0..60 + round % 80).for_each(|_| run.step().unwrap());
        let (durable, states) = (run.durable, run.states.clone());
        let mut rng = SeededRng::new(seed).fork("crashes");
        let mut crashed = disk.crash(CrashImage::Random(rng.next_u64()));
        for _ in 0..rng.below(5) {
            crashed.crash_at(crashed.operation_count() + rng.below(40));
            let _ = open(&crashed, 10);
            crashed = crashed.crash(CrashImage::Random(rng.next_u64()));
            recoveries += 1;
        }
        check(&crashed, &states, durable, &format!("seed {seed}"));
    }
    println!("{recoveries} interrupted recoveries");
    assert!(recoveries > 50);
}

/// Goal: an operation of the disk that fails is told, and costs nothing that was durable. Method: fail every operation of a run in turn, once, then lose power.
#[test]
fn every_operation_fails() {
    let own = seed();
    let (mut struck, mut told) = (0, 0);
    for (round, fault) in [Fault::Io, Fault::Full, Fault::Short].into_iter().enumerate() {
        for index in 0.. {
            let seed = own.wrapping_add(round as u64);
            let disk = FaultFs::new(FaultOptions::seeded(seed));
            let mut run = Run::new(&disk, 8, seed);
            let before = disk.operation_count();
            disk.inject(Rule::at(before + index, fault));
            let mut failed = None;
            for _ in 0..120 {
                if let Err(error) = run.step() {
                    assert!(
                        matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned),
                        "{fault:?} at {index}: {error}"
                    );
                    told += 1;
                    failed = Some(error);
                    break;
                }
            }
            struck += disk.injected_count();
            let is_over = disk.operation_count() - before <= index;
            let crashed = disk.crash(CrashImage::Random(seed ^ index));
            let context = format!("{fault:?} at {index}, then a power loss, after {failed:?}");
            check(&crashed, &run.states, run.durable, &context);
            if is_over {
                break;
            }
        }
    }
    println!("{struck} faults, {told} told");
    assert!(struck > 100 && told > 30);
}
