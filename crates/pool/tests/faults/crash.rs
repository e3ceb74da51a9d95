//! Power loss at every operation of the disk.

use std::path::Path;

use cairn_pool::{Error, Lsn};
use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{CrashImage, FaultFs, FaultOptions, Operation, SeededRng};

use super::model::{Run, Shape, Step, open, put, version};
use super::{rounds, seed};

/// Runs a workload, crashes at every operation, and opens the resulting disks. Returns the numbers
/// of images and of damaged pages.
fn sweep(seed: u64, double_write: bool, random: u64) -> (u64, u64) {
    let fs = FaultFs::new(FaultOptions::seeded(seed));
    let shape = Shape::new(seed, double_write);
    let mut run = Run::new(&fs, &shape);
    fs.capture_crash_points();
    let mut rng = SeededRng::new(seed).fork("steps");
    // For each step: the operation count at its end, the durable versions, and the latest versions.
    let mut states = Vec::new();
    for _ in 0..50 {
        run.step(Step::draw(&mut rng, &shape)).unwrap();
        states.push((fs.operation_count(), run.durable.clone(), run.versions.clone()));
    }
    let (mut images, mut damaged) = (0, 0);
    for point in fs.take_crash_points() {
        // Steps that had ended by then count as durable if they reported so. The step in progress
        // may have written.
        let ended = states.partition_point(|state| state.0 <= point.operation());
        let durable = ended.checked_sub(1).map_or(vec![1; shape.pages as usize], |at| states[at].1.clone());
        let latest = &states[ended.min(states.len() - 1)].2;
        for (image, disk) in point.images(random) {
            images += 1;
            let context = format!("seed {seed}, {image} at {}, {shape:?}", point.operation());
            damaged += check(&disk, &shape, &durable, latest, &context);
        }
    }
    (images, damaged)
}

/// Asserts that pages are whole and no older than their durable version. Without a double write
/// they may be damaged, which must be reported. Returns the number of damaged pages.
fn check(disk: &FaultFs, shape: &Shape, durable: &[u32], latest: &[u32], context: &str) -> u64 {
    let (_pool, file) = open(disk, shape).unwrap_or_else(|error| panic!("{context}: {error}"));
    let mut damaged = 0;
    for page in 0..shape.pages {
        match file.read(page) {
            Ok(guard) => {
                let found = version(&guard, page);
                let (least, most) = (durable[page as usize], latest[page as usize]);
                assert!(
                    (least..=most).contains(&found),
                    "{context}: page {page} is {found}, {least}..={most} was expected"
                );
            }
            Err(Error::Corruption { .. }) if !shape.double_write => damaged += 1,
            Err(error) => panic!("{context}: page {page}: {error}"),
        }
    }
    if shape.double_write {
        // Nothing is left to restore, so opening again writes nothing.
        drop(file);
        let bytes = || ["/pages", "/double"].map(|path| disk.bytes_of(Path::new(path)));
        let before = bytes();
        drop(open(disk, shape).unwrap());
        assert!(bytes() == before, "{context}");
    }
    damaged
}

fn every_operation(double_write: bool) -> (u64, u64) {
    let own = seed();
    let (mut images, mut damaged) = (0, 0);
    for round in 0..rounds(16, 300) {
        let (more, bad) = sweep(own.wrapping_add(round), double_write, rounds(3, 8));
        images += more;
        damaged += bad;
    }
    println!("double write: {double_write}: {images} images, {damaged} damaged pages");
    (images, damaged)
}

/// Goal: with a double write, a power loss at any moment leaves every page whole and no older than
/// its last sync. Method: crash images at every operation of random runs, opened and read.
#[test]
fn power_loss_with_double_write() {
    let (images, damaged) = every_operation(true);
    assert!(images > 1_000 && damaged == 0, "{images} images");
}

/// Goal: without a double write, pages may be torn, and readers get an error; no page is silently
/// wrong.
#[test]
fn torn_pages_are_errors_without_a_double_write() {
    let (images, damaged) = every_operation(false);
    assert!(images > 1_000 && damaged > 20, "{images} images, {damaged} damaged pages");
}

/// Creates a run with a double write, thirty steps from its beginning.
fn in_the_middle(seed: u64) -> (FaultFs, Shape, Run, SeededRng) {
    let fs = FaultFs::new(FaultOptions::seeded(seed));
    let shape = Shape::new(seed, true);
    let mut run = Run::new(&fs, &shape);
    let mut rng = SeededRng::new(seed).fork("steps");
    (0..30).for_each(|_| run.step(Step::draw(&mut rng, &shape)).unwrap());
    (fs, shape, run, rng)
}

/// Goal: the copies of pages that a killed process wrote but did not sync are kept until these are
/// durable. Method: a run is killed and continued by another process, which writes other pages;
/// crash images at every operation of that. The same after a first opening whose sync failed.
#[test]
fn copies_outlive_a_killed_process() {
    let own = seed();
    let mut images = 0;
    for round in 0..rounds(12, 300) {
        let seed = own.wrapping_add(round);
        let (fs, shape, run, mut rng) = in_the_middle(seed);
        if round % 2 == 1 {
            let syncs = fs.operation_count_of(Operation::SyncData);
            fs.inject(Rule::nth(Operation::SyncData, syncs, Fault::Io));
            drop(open(&fs, &shape));
            fs.clear_rules();
        }
        fs.capture_crash_points();
        let mut run = run.killed();
        let mut states = vec![(fs.operation_count(), run.durable.clone(), run.versions.clone())];
        for _ in 0..12 {
            run.step(Step::draw(&mut rng, &shape)).unwrap();
            states.push((fs.operation_count(), run.durable.clone(), run.versions.clone()));
        }
        for point in fs.take_crash_points() {
            let ended = states.partition_point(|state| state.0 <= point.operation());
            let durable = &states[ended.saturating_sub(1)].1;
            let latest = &states[ended.min(states.len() - 1)].2;
            for (image, disk) in point.images(rounds(3, 8)) {
                images += 1;
                check(
                    &disk,
                    &shape,
                    durable,
                    latest,
                    &format!("seed {seed}, {image} at {}, {shape:?}", point.operation()),
                );
            }
        }
    }
    println!("{images} images");
    assert!(images > 200);
}

/// Goal: a power loss while opening restores pages does no harm. Method: crash in the middle of a
/// run, then at every operation of the opening, and open.
#[test]
fn power_loss_while_restoring_pages_is_harmless() {
    let own = seed();
    let mut images = 0;
    for round in 0..rounds(10, 300) {
        let seed = own.wrapping_add(round);
        let (fs, shape, run, _) = in_the_middle(seed);
        let (durable, latest) = (run.durable.clone(), run.versions.clone());
        for image in 0..4 {
            let broken = fs.crash(CrashImage::Random(seed ^ image));
            broken.capture_crash_points();
            drop(open(&broken, &shape).unwrap());
            for point in broken.take_crash_points() {
                for (image, disk) in point.images(2) {
                    images += 1;
                    check(&disk, &shape, &durable, &latest, &format!("seed {seed}, {image}, restoring"));
                }
            }
        }
    }
    println!("{images} images");
    assert!(images > 100);
}

/// Goal: a page that an error left half written keeps its copy until it is whole. Method: a write
/// of page 0 falls short and then fails; another page is written while page 0 is latched, so that
/// page 0 is not in that batch; then the power fails.
#[test]
fn half_written_page_keeps_its_copy() {
    let mut torn = 0;
    for nth in 0..5 {
        let fs = FaultFs::new(FaultOptions::seeded(1));
        let shape = Shape { frames: 2, pages: 4, ..Shape::new(1, true) };
        let run = Run::new(&fs, &shape);
        put(run.file.write(0).unwrap().payload_mut(Lsn::NONE), 0, 2);
        let writes = fs.operation_count_of(Operation::Write);
        fs.inject(Rule::nth(Operation::Write, writes + nth, Fault::Short));
        fs.inject(Rule::nth(Operation::Write, writes + nth + 1, Fault::Io));
        torn += u32::from(run.file.flush().is_err());
        fs.clear_rules();
        let held = run.file.write(0).unwrap();
        put(run.file.write(1).unwrap().payload_mut(Lsn::NONE), 1, 2);
        drop(run.file.read(2).unwrap());
        drop(held);
        for image in [CrashImage::None, CrashImage::All, CrashImage::Random(nth)] {
            let context = format!("write {nth}, {image}");
            check(&fs.crash(image), &shape, &[1; 4], &[2, 2, 1, 1], &context);
        }
    }
    assert!(torn > 1, "{torn}");
}
