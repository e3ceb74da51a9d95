//! Disk operations that fail, each in turn.

use cairn_vfs::fault::{Fault, Rule, SyncFailure};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Operation, SeededRng};

use super::model::{Run, Shape, Step, is_poisoned};
use super::{rounds, seed};

const STEPS: usize = 60;

#[derive(Debug, Default)]
struct Tally {
    runs: u64,
    struck: u64,
    told: u64,
    poisoned: u64,
}

fn steps(seed: u64, shape: &Shape) -> Vec<Step> {
    let mut rng = SeededRng::new(seed).fork("steps");
    (0..STEPS).map(|_| Step::draw(&mut rng, shape)).collect()
}

/// Returns the number of disk operations of a run without faults.
fn length(seed: u64, shape: &Shape) -> u64 {
    let fs = FaultFs::new(FaultOptions::seeded(seed));
    let mut run = Run::new(&fs, shape);
    let before = fs.operation_count();
    steps(seed, shape).into_iter().for_each(|step| run.step(step).unwrap());
    let count = fs.operation_count() - before;
    run.check_all();
    count
}

/// Executes one run with one fault.
fn run(seed: u64, shape: &Shape, index: u64, fault: Fault, persistent: bool, tally: &mut Tally) {
    let fs = FaultFs::new(FaultOptions::seeded(seed));
    let mut run = Run::new(&fs, shape);
    fs.inject(Rule { persistent, ..Rule::at(fs.operation_count() + index, fault) });
    let context = format!("seed {seed}, {fault:?} at {index}, persistent: {persistent}, {shape:?}");
    let mut told = 0;
    for step in steps(seed, shape) {
        let Err(error) = run.step(step) else { continue };
        told += 1;
        assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{context}: {step:?}: {error}");
        assert!(error.to_string().contains('/'), "{context}: {error}");
        if persistent && told == 6 {
            break;
        }
    }
    tally.runs += 1;
    tally.told += told;
    tally.struck += u64::from(fs.injected_count() > 0);
    // The device works again: no page written to the pool is missing, unless a sync failed, which
    // cannot be repaired.
    fs.clear_rules();
    match run.file.sync() {
        Ok(()) => run.check_all(),
        Err(error) => {
            tally.poisoned += 1;
            assert!(is_poisoned(&error), "{context}: {error}");
            // Nothing is written any more.
            let error = run.step(Step::Write(0)).and_then(|()| run.step(Step::Flush)).unwrap_err();
            assert!(is_poisoned(&error), "{context}: {error}");
        }
    }
}

fn every_operation(double_write: bool) {
    let own = seed();
    let mut tally = Tally::default();
    for round in 0..rounds(2, 40) {
        let seed = own.wrapping_add(round);
        let shape = Shape::new(seed, double_write);
        let length = length(seed, &shape);
        for fault in [Fault::Io, Fault::Full, Fault::Short] {
            for (persistent, index) in
                [false, true].into_iter().flat_map(|persistent| (0..length).map(move |at| (persistent, at)))
            {
                run(seed, &shape, index, fault, persistent, &mut tally);
            }
        }
    }
    println!("double write: {double_write}: {tally:?}");
    assert!(tally.struck > 300 && tally.told > 100 && tally.poisoned > 5, "{tally:?}");
}

/// Goal: after a failed sync, data that may be lost is never read in a stale version. Method:
/// version 2 of a page is lost by a failing sync and evicted; the disk holds version 1, whole.
#[test]
fn nothing_stale_is_read_after_a_failed_sync() {
    for double_write in [false, true] {
        let options = FaultOptions { sync_failure: SyncFailure::Lost, ..FaultOptions::seeded(1) };
        let fs = FaultFs::new(options);
        let shape = Shape { frames: 2, pages: 6, ..Shape::new(1, double_write) };
        let mut run = Run::new(&fs, &shape);
        run.step(Step::Write(0)).and_then(|()| run.step(Step::Flush)).unwrap();
        fs.inject(Rule::nth(Operation::SyncData, fs.operation_count_of(Operation::SyncData), Fault::Io));
        let failed = (0..8).map(|at| run.step(if at == 0 { Step::Sync } else { Step::Read(at % 6) }));
        assert!(failed.filter(Result::is_err).count() > 0);
        fs.clear_rules();
        // In memory it has version 2, as in the model; otherwise it is refused.
        for page in (0..6).chain(0..6) {
            match run.step(Step::Read(page)) {
                Ok(()) => {}
                Err(error) => assert!(is_poisoned(&error), "{error}"),
            }
        }
        assert!(!run.file.is_resident(0) || run.step(Step::Read(0)).is_ok());
        assert!((0..6).any(|page| run.step(Step::Read(page)).is_err()));
        assert_eq!(run.file.prefetch(0..6), 0);
    }
}

/// Goal: an error of any disk operation reaches the requesting guard or call, typed, and loses
/// nothing: no dirty page is lost or counted as clean. Method: fail every operation of a run in
/// turn, in three ways, once and persistently; when the device works again, all pages match the
/// model, in the pool and on disk.
#[test]
fn every_operation_fails() {
    every_operation(false);
}

/// Goal and method: as above, through the double write.
#[test]
fn every_operation_fails_with_double_write() {
    every_operation(true);
}
