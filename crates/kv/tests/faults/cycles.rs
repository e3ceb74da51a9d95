//! Tests of repeated crashes: during work, during recovery, and again.

use cairn_vfs::{CrashImage, FaultOptions, Rng, SeededRng};

use super::workload::Mix;
use super::*;

fn draw_image(rng: &mut SeededRng) -> CrashImage {
    match rng.below(6) {
        0 => CrashImage::None,
        1 => CrashImage::All,
        _ => CrashImage::Random(rng.next_u64()),
    }
}

/// Returns the state of the disk of a machine that has just restarted, determined on a copy.
fn peek(disk: &FaultFs, shape: &Shape, context: &str) -> State {
    let copy = disk.crash_point().image(CrashImage::All);
    let db = open(&copy, shape).unwrap_or_else(|error| panic!("{context}: {error}"));
    scan(&db).unwrap_or_else(|error| panic!("{context}: {error}"))
}

/// Runs one disk through `cycles` lives, most of them ended by a crash, and most recoveries too. A
/// wide shape is redrawn for each life. Returns the number of crashes, and how many of them were
/// during a recovery.
fn lives(shape: &Shape, cycles: u64) -> (u64, u64) {
    let mut shape = shape.clone();
    let mut rng = SeededRng::new(shape.seed).fork("lives");
    let mut disk = FaultFs::new(FaultOptions::seeded(shape.seed));
    let mut state = State::default();
    let (mut crashes, mut in_recovery) = (0, 0);
    for cycle in 0..cycles {
        if shape.is_wide {
            shape = Shape::drawn(rng.next_u64());
        }
        let shape = &shape;
        let context = format!("shape {}, cycle {cycle}", shape.seed);
        let mut run = Run::new(&disk, shape, state, Mix::All, SeededRng::new(rng.next_u64()));
        disk.crash_at(disk.operation_count() + 10 + rng.below(400));
        let result = run.open().and_then(|()| run.steps(rng.below(60)));
        assert!(result.is_ok() || disk.is_powered_off(), "{context}: {result:?}");
        let accepted = run.history.accepted(disk.operation_count(), None);
        disk = disk.crash(draw_image(&mut rng));
        drop(run.db.take());
        crashes += 1;
        state = peek(&disk, shape, &context);
        assert!(accepted.contains(&state), "{context}: {}", run.history.explain(&accepted, &state));
        // Whatever changes an interrupted recovery has made, the next one finds the same state.
        for depth in 0..rng.below(5) {
            disk.crash_at(disk.operation_count() + rng.below(40));
            let opened = open(&disk, shape).map(drop);
            assert!(opened.is_ok() || disk.is_powered_off(), "{context}: {opened:?}");
            disk = disk.crash(draw_image(&mut rng));
            (crashes, in_recovery) = (crashes + 1, in_recovery + u64::from(opened.is_err()));
            let found = peek(&disk, shape, &context);
            for (old, new) in state.iter().zip(&found) {
                assert!(old == new, "{context}, depth {depth}: {}", old.difference(new));
            }
        }
        assert!(disk.used_bytes() < 4 << 20, "{context}: {} bytes in {:?}", disk.used_bytes(), names(&disk));
        let db = open(&disk, shape).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert_no_leaks(&disk, &db, &context);
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{context}: {report}");
    }
    (crashes, in_recovery)
}

/// Goal: machines that crash repeatedly, also during recoveries, lose nothing durable, find the
/// same state after each attempt, and accumulate no garbage.
/// Method: one disk for each pair of strategies; the power fails at a random operation of each life
/// and of up to four recoveries in a row.
#[test]
fn crashes_in_recovery() {
    let own = seed(2);
    let (mut crashes, mut in_recovery) = (0, 0);
    for round in 0..rounds(4, 40) {
        let (all, inside) = lives(&Shape::new(own.wrapping_add(round)), rounds(110, 4000));
        (crashes, in_recovery) = (crashes + all, in_recovery + inside);
    }
    println!("crashes in recovery: {crashes} crashes, {in_recovery} of them in a recovery");
    assert!(crashes > 1000 && in_recovery > 300, "{crashes} {in_recovery}");
}

/// Goal: the same holds when all options change from life to life.
/// Method: the same, with strategies, compression, blocks, filters and thresholds of large values
/// redrawn each time the disk restarts; all files are verified after each life.
#[test]
fn options_drawn_anew_in_each_life() {
    let own = seed(4);
    let mut crashes = 0;
    for round in 0..rounds(4, 40) {
        crashes += lives(&Shape::drawn(own.wrapping_add(round)), rounds(50, 4000)).0;
    }
    println!("options drawn anew: {crashes} crashes");
    assert!(crashes > 400, "{crashes}");
}

/// Goal: a recovery that is interrupted at any operation leaves the state that it began with,
/// whatever part of it reaches the disk.
/// Method: crash images at every operation of recoveries with much work: replay, flush, remove.
#[test]
fn power_loss_at_every_operation_of_a_recovery() {
    let own = seed(3);
    let mut images = 0;
    for round in 0..rounds(4, 200) {
        let mut shape = Shape::new(own.wrapping_add(round));
        let context = format!("shape {}", shape.seed);
        let fs = FaultFs::new(FaultOptions::seeded(shape.seed));
        let mut run =
            Run::new(&fs, &shape, State::default(), Mix::All, SeededRng::new(shape.seed).fork("recovery"));
        run.open().unwrap();
        run.steps(100).unwrap();
        let mut rng = SeededRng::new(shape.seed).fork("images");
        let disk = fs.crash(draw_image(&mut rng));
        // Half of them are opened with memtables so small that the replay has to flush.
        if round % 2 == 1 {
            shape.memtable_bytes = Some(4096);
        }
        let before = peek(&disk, &shape, &context);
        disk.capture_crash_points();
        drop(open(&disk, &shape).unwrap());
        for point in disk.take_crash_points() {
            for (image, after) in point.images(rounds(1, 6)) {
                let found = peek(&after, &shape, &context);
                for (old, new) in before.iter().zip(&found) {
                    let at = point.operation();
                    assert!(old == new, "{context}, {image} at {at}: {}", old.difference(new));
                }
                images += 1;
            }
        }
    }
    println!("power loss at every operation of a recovery: {images} crash images");
    assert!(images > 300, "{images}");
}
