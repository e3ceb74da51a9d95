//! Fault tests for each kind of database: power loss at every operation, from the first on; power
//! loss during recovery; and a single failure of every operation, after which the run continues as
//! far as it can.

use std::fmt::Debug;

use cairn_table::Result;
use cairn_vfs::fault::{Fault, Rule, SyncFailure};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Rng, SeededRng};

use super::{rounds, seed};

/// A database under test, the operations on it, and its history of states.
pub trait Run: Sized {
    /// The contents of the database.
    type State: Clone + Debug;

    /// Creates the database.
    fn new(disk: &FaultFs, seed: u64) -> Result<Self>;

    /// Makes one step. The intended result of a failed change is recorded as a state too, because
    /// the change may have been logged.
    fn step(&mut self) -> Result<()>;

    /// Returns whether the run can continue after a failed step.
    fn goes_on(&mut self) -> bool;

    /// Returns the number of statements that were retried.
    fn retries(&self) -> u64;

    /// Checks, at the end of a run that continued, that the database has the last of its states.
    fn finish(self, context: &str);

    /// Returns the states, oldest first, from the oldest that a crash may restore, and the position
    /// of the oldest one allowed after a power loss.
    fn states(&self) -> (&[Self::State], usize);

    /// Opens the database.
    fn open(disk: &FaultFs) -> Result<()>;

    /// Checks that a disk holds one of the states from the durable one on, is sound, and can be
    /// used further.
    fn check(disk: &FaultFs, states: &[Self::State], durable: usize, context: &str);

    /// Checks the same after an interrupted creation: nothing, or the initial state.
    fn check_unmade(disk: &FaultFs, context: &str);
}

/// Goal: power loss at any moment, including the first operations of its creation, leaves a sound
/// database in some state, none before the last durable one. Returns the number of crash images.
pub fn power_loss_at_every_operation<R: Run>(runs: u64, steps: u64) -> u64 {
    let own = seed();
    let mut images = 0;
    for round in 0..runs {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        disk.capture_crash_points();
        let mut run = R::new(&disk, seed).unwrap();
        let made = disk.operation_count();
        let mut marks = vec![(made, run.states().1)];
        for _ in 0..steps {
            run.step().unwrap();
            marks.push((disk.operation_count(), run.states().1));
        }
        for point in disk.take_crash_points() {
            let ended = marks.partition_point(|mark| mark.0 <= point.operation());
            for (image, crashed) in point.images(rounds(1, 6)) {
                images += 1;
                let context = format!("seed {seed}, {image} at {}", point.operation());
                match ended.checked_sub(1) {
                    None => R::check_unmade(&crashed, &context),
                    Some(at) => R::check(&crashed, run.states().0, marks[at].1, &context),
                }
            }
        }
    }
    println!("{images} images");
    images
}

/// Goal: the same for power loss during recovery, repeatedly. Method: crashes, crashes at a random
/// operation of the opening, up to four times, then opens. Returns how many openings were
/// interrupted.
pub fn power_loss_in_recoveries<R: Run>(runs: u64, steps: impl Fn(u64) -> u64, within: u64) -> u64 {
    let own = seed();
    let (mut interrupted, mut openings) = (0, 0);
    for round in 0..runs {
        let seed = own.wrapping_add(round);
        let disk = FaultFs::new(FaultOptions::seeded(seed));
        let mut run = R::new(&disk, seed).unwrap();
        (0..steps(round)).for_each(|_| run.step().unwrap());
        let (states, durable) = run.states();
        let mut rng = SeededRng::new(seed).fork("crashes");
        let mut crashed = disk.crash(CrashImage::Random(rng.next_u64()));
        for _ in 0..rng.below(5) {
            crashed.crash_at(crashed.operation_count() + rng.below(within));
            let opened = R::open(&crashed);
            openings += 1;
            // An opening that ended before the power failed was not interrupted, and must have
            // succeeded.
            if crashed.is_powered_off() {
                interrupted += 1;
            } else {
                opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            crashed = crashed.crash(CrashImage::Random(rng.next_u64()));
        }
        R::check(&crashed, states, durable, &format!("seed {seed}"));
    }
    println!("{interrupted} of {openings} recoveries interrupted");
    interrupted
}

/// Counts of failed operations and their effects.
#[derive(Debug, Default)]
pub struct Failures {
    /// Operations that failed.
    pub struck: u64,
    /// Steps that reported a failure.
    pub told: u64,
    /// Statements that were rolled back and retried.
    pub retried: u64,
    /// Runs that continued to their end afterwards.
    pub went_on: u64,
}

/// Goal: a failed disk operation is reported, loses nothing durable, and leaves a database that
/// continues or reports that it cannot. Method: fails every operation of a run in turn, including
/// its creation, once; continues for as long as that works; checks the contents; then loses power.
pub fn every_operation_fails<R: Run>(faults: &[Fault], steps: u64) -> Failures {
    let own = seed();
    let mut failures = Failures::default();
    for (round, &fault) in faults.iter().enumerate() {
        for index in 0.. {
            let seed = own.wrapping_add(round as u64);
            let context = format!("{fault:?} at {index}");
            // A failed sync writes nothing or a part: alternating, so that two faults cover both
            // for each operation.
            let is_partial = (index + round as u64) % 2 == 1;
            let sync_failure = if is_partial { SyncFailure::Partial } else { SyncFailure::CacheOnly };
            let disk = FaultFs::new(FaultOptions { sync_failure, ..FaultOptions::seeded(seed) });
            disk.inject(Rule::at(index, fault));
            let mut told = Vec::new();
            let mut run = R::new(&disk, seed).map_err(|error| told.push(error)).ok();
            for _ in 0..steps {
                let Some(Err(error)) = run.as_mut().map(R::step) else { continue };
                let is_failure = matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned);
                assert!(is_failure, "{context}: {error}");
                told.push(error);
                if told.len() > 3 || !run.as_mut().is_some_and(R::goes_on) {
                    break;
                }
            }
            failures.struck += disk.injected_count();
            failures.told += told.len() as u64;
            let is_over = disk.operation_count() <= index;
            let went_on = told.len() < 3 && run.as_mut().is_some_and(R::goes_on);
            failures.went_on += u64::from(went_on && !told.is_empty());
            let context = format!("{context}, after {told:?}");
            let point = disk.crash_point();
            let crashed = point.image(CrashImage::Random(seed ^ index));
            match run {
                Some(run) => {
                    failures.retried += run.retries();
                    let (states, durable) = run.states();
                    R::check(&crashed, states, durable, &format!("{context}, then a power loss"));
                    if went_on {
                        disk.clear_rules();
                        run.finish(&context);
                    }
                }
                None => R::check_unmade(&crashed, &context),
            }
            if is_over {
                break;
            }
        }
    }
    println!("{failures:?}");
    failures
}
