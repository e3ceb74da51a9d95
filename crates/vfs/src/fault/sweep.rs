//! Crashes a workload at every operation, or fails each of its operations in turn.

use super::FaultFs;
use super::crash::CrashImage;
use super::options::{Fault, FaultOptions, Rule};
use super::state::CrashPoint;

/// Runs `workload` once on a new machine, and passes to `check` the disks that a crash could leave
/// before each of its operations and after the last: two fixed images and `random` drawn ones for
/// every state of the disk.
///
/// Returns the number of images checked. The check derives from [`CrashPoint::operation`] which
/// changes must have survived: everything acknowledged to the workload while
/// [`FaultFs::operation_count`] was at most that.
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
        debug_assert!(point.operation() <= fs.operation_count());
        for (image, after) in point.images(random) {
            check(&point, image, after);
            images += 1;
        }
    }
    images
}

/// Calls `run` repeatedly, each time on a new machine whose k-th operation fails, for k = 0, 1, 2
/// and so on, until a run ends before its k-th operation (like SQLite's I/O error tests).
///
/// Returns the number of runs that the fault hit. It does not hit runs whose k-th operation cannot
/// have this fault.
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
        debug_assert!(struck <= index + 1, "{struck} of {} runs were hit", index + 1);
        if fs.operation_count() <= index {
            break;
        }
    }
    struck
}
