//! Crashing a workload everywhere, and failing each of its operations in turn.

use super::FaultFs;
use super::crash::CrashImage;
use super::options::{Fault, FaultOptions, Rule};
use super::point::CrashPoint;

/// Runs `workload` once on a new machine, and gives `check` the disks that a crash before each of
/// its operations, and after the last, could leave: two fixed images and `random` drawn ones for
/// every state of the disk.
///
/// Returns how many images were checked. The check learns from [`CrashPoint::operation`] what must
/// have survived: whatever the workload saw acknowledged while [`FaultFs::operation_count`] was at
/// most that.
pub fn crash_sweep(
    options: FaultOptions,
    random: u64,
    workload: impl FnOnce(&FaultFs),
    mut check: impl FnMut(&CrashPoint, CrashImage, FaultFs),
) -> u64 {
    let fs = FaultFs::new(options);
    fs.capture_crash_points();
    workload(&fs);
    let mut images = 0;
    for point in fs.take_crash_points() {
        for (image, after) in point.images(random) {
            check(&point, image, after);
            images += 1;
        }
    }
    images
}

/// Runs `run` again and again, each time on a new machine on which the k-th operation fails, for k
/// = 0, 1, 2 and so on, until it ends before its k-th operation (as SQLite's I/O error tests do).
///
/// Returns in how many runs the fault struck; it does not in those whose k-th operation it cannot
/// befall.
pub fn fault_sweep(
    options: &FaultOptions,
    fault: Fault,
    persistent: bool,
    mut run: impl FnMut(&FaultFs, u64),
) -> u64 {
    let mut struck = 0;
    for index in 0.. {
        let fs = FaultFs::new(options.clone());
        fs.inject(Rule { persistent, ..Rule::at(index, fault) });
        run(&fs, index);
        struck += u64::from(fs.injected_count() > 0);
        if fs.operation_count() <= index {
            break;
        }
    }
    struck
}
