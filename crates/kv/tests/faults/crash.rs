//! Tests of power loss at every operation.

use cairn_vfs::fault::SyncFailure;
use cairn_vfs::{CrashImage, FaultOptions, SeededRng};

use super::workload::Mix;
use super::*;

/// Recovers a disk after a crash and checks that its state is one that the crash may leave, that
/// opening it again changes nothing, that no files are left over, and that the store remains
/// usable. Returns the recovered state.
pub fn check(
    disk: &FaultFs,
    shape: &Shape,
    history: &History,
    accepted: &Accepted,
    then: u64,
    context: &str,
) -> State {
    let db = open(disk, shape).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = scan(&db).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert!(accepted.contains(&found), "{context}: {}", history.explain(accepted, &found));
    assert_no_leaks(disk, &db, context);
    drop(db);
    go_on(disk, shape, &found, then, context);
    found
}

/// Opens the store, which must contain `state`, and performs random steps that are compared with
/// the model.
pub fn go_on(disk: &FaultFs, shape: &Shape, state: &State, steps: u64, context: &str) {
    let rng = SeededRng::new(disk.operation_count() ^ shape.seed).fork("then");
    let mut run = Run::new(disk, shape, state.clone(), Mix::Logged, rng);
    run.open().unwrap_or_else(|error| panic!("{context}: {error}"));
    run.assert_reads(context);
    if steps > 0 {
        run.steps(steps).unwrap_or_else(|error| panic!("{context}: {error}"));
        run.assert_reads(context);
        assert_no_leaks(disk, run.db(), context);
    }
}

/// Runs a store for `steps` steps and crashes it at every operation of its disk. Returns the number
/// of crash images. The short form takes one of the two fixed images at each operation,
/// alternately.
fn sweep(shape: &Shape, is_killed: bool, steps: u64, random: u64) -> u64 {
    let fs =
        FaultFs::new(FaultOptions { sync_failure: SyncFailure::Kept, ..FaultOptions::seeded(shape.seed) });
    fs.capture_crash_points();
    let mut run = Run::new(&fs, shape, State::default(), Mix::All, SeededRng::new(shape.seed).fork("steps"));
    run.is_killed = is_killed;
    run.open().unwrap();
    run.steps(steps).unwrap();
    run.assert_reads("before any crash");
    run.close();
    assert!(run.work.0 > 8 && run.work.1 > 3, "{:?} {:?}", shape.strategies, run.work);
    let mut accepted = None;
    let mut images = 0;
    for point in fs.take_crash_points() {
        let now = run.history.accepted(point.operation(), accepted.take());
        for (image, disk) in point.images(random) {
            let is_odd = point.operation() % 2 == 1;
            if !soak() && image == if is_odd { CrashImage::None } else { CrashImage::All } {
                continue;
            }
            let context = format!("shape {}, {image} at {}", shape.seed, point.operation());
            let then = if image == CrashImage::None || image == CrashImage::All { 2 } else { 50 };
            check(&disk, shape, &run.history, &now, then, &context);
            images += 1;
        }
        accepted = Some(now);
    }
    images
}

/// Goal: a power loss during the replay of a killed process's log loses nothing durable and tears
/// no batch, although the replay flushes and much of the log was only in the page cache.
/// Method: a store that is left with everything in its log and opened with small memtables; crash
/// images at every operation of the opening.
#[test]
fn power_loss_after_a_kill() {
    let own = seed(6);
    let mut images = 0;
    for round in 0..rounds(3, 60) {
        let mut shape = Shape { memtable_bytes: Some(1 << 20), ..Shape::new(own.wrapping_add(round)) };
        let fs = FaultFs::new(FaultOptions {
            sync_failure: SyncFailure::Kept,
            ..FaultOptions::seeded(shape.seed)
        });
        let mut run =
            Run::new(&fs, &shape, State::default(), Mix::All, SeededRng::new(shape.seed).fork("killed"));
        run.open().unwrap();
        run.steps(150).unwrap();
        run.kill();
        shape.memtable_bytes = Some(4096);
        fs.capture_crash_points();
        drop(open(&fs, &shape).unwrap());
        let mut accepted = None;
        for point in fs.take_crash_points() {
            let now = run.history.accepted(point.operation(), accepted.take());
            for (image, disk) in point.images(rounds(1, 4)) {
                let context = format!("shape {}, {image} at {}", shape.seed, point.operation());
                check(&disk, &shape, &run.history, &now, 2, &context);
                images += 1;
            }
            accepted = Some(now);
        }
    }
    println!("power loss after a kill: {images} crash images");
    assert!(images > 200, "{images}");
}

/// Goal: after power loss at any moment the store contains a prefix of the logged writes, at least
/// those acknowledged as durable, with batches complete across keyspaces, and `Memory` writes as
/// far as flushed; and it remains usable.
/// Method: a run with all kinds of operations for each pair of strategies, closed or killed before
/// it is reopened, crashed at every operation of the disk.
#[test]
fn power_loss_at_every_operation() {
    let own = seed(1);
    let mut images = 0;
    for round in 0..rounds(4, 80) {
        let shape = Shape::new(own.wrapping_add(round));
        images += sweep(&shape, round % 2 == 1, 160, rounds(1, 8));
    }
    println!("power loss at every operation: {images} crash images");
    assert!(images > 4500, "{images}");
}
