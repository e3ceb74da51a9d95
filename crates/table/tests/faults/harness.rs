//! What is done to each kind of database: power loss at every operation, from the first on; power
//! loss in its recoveries; and every operation failing once, after which it goes on as far as it
//! can.

use std::fmt::Debug;

use cairn_table::Result;
use cairn_vfs::fault::{Fault, Rule, SyncFailure};
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Rng, SeededRng};

use super::{rounds, seed};

/// A database, what is done to it, and everything that it was.
pub trait Run: Sized {
    /// What there is in it.
    type State: Clone + Debug;

    /// Makes one.
    fn new(disk: &FaultFs, seed: u64) -> Result<Self>;

    /// Does one thing. What a change that fails would have made is among the states all the same:
    /// it may have come to the log.
    fn step(&mut self) -> Result<()>;

    /// After a step that failed: whether it can go on.
    fn goes_on(&mut self) -> bool;

    /// Statements that were tried again.
    fn retries(&self) -> u64;

    /// At the end of a run that went on: it must be the last of its states.
    fn finish(self, context: &str);

    /// The contents, oldest first, as far back as a crash may lead, and the one that a power loss
    /// must leave at least.
    fn states(&self) -> (&[Self::State], usize);

    /// Opens it.
    fn open(disk: &FaultFs) -> Result<()>;

    /// What a disk holds must be one of the states from the durable one on, sound, and something to
    /// go on from.
    fn check(disk: &FaultFs, states: &[Self::State], durable: usize, context: &str);

    /// The same of one whose making was cut off: nothing, or the beginning.
    fn check_unmade(disk: &FaultFs, context: &str);
}

/// Goal: power loss at any moment, the first ones of its making included, leaves a sound database
/// with some state, none before the last one that was promised to last. Gives the number of images.
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

/// Goal: the same when the power goes during recovery, again and again. Method: crash, crash at a
/// drawn operation of the opening, up to four times, then open. Gives how many openings were
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
            // One that was over before the power went is no interrupted one, and must have worked.
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

/// What came of operations that fail.
#[derive(Debug, Default)]
pub struct Failures {
    /// So many failed.
    pub struck: u64,
    /// Steps that told so.
    pub told: u64,
    /// Statements that were taken back and tried again.
    pub retried: u64,
    /// Runs that went on to their end after that.
    pub went_on: u64,
}

/// Goal: an operation of the disk that fails is told, costs nothing that was promised to last, and
/// leaves a database that goes on or says that it cannot. Method: fail every operation of a run in
/// turn, those of its making included, once; go on for as long as it works; look at it; then lose
/// power.
pub fn every_operation_fails<R: Run>(faults: &[Fault], steps: u64) -> Failures {
    let own = seed();
    let mut failures = Failures::default();
    for (round, &fault) in faults.iter().enumerate() {
        for index in 0.. {
            let seed = own.wrapping_add(round as u64);
            let context = format!("{fault:?} at {index}");
            // What a failed sync wrote is none of it, or a part: by turns, so that two faults have
            // both of each operation.
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
