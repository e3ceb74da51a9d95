//! Builds an index file on a disk that loses power and fails.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::fault::{Fault, FaultOptions, crash_sweep, fault_sweep};
use cairn_vfs::{FaultFs, Fs};

use super::*;
use crate::{Kind, Result};

const FILE: &str = "i";

/// Builds an index with enough rows for several pages of 512 bytes, and too many for the memory, so
/// that they spill.
fn on(fs: &Arc<dyn Fs>, generation: i64) -> Result<()> {
    let mut options = BuildOptions::new(vec![Kind::Integers, Kind::Bytes], 1);
    (options.page_bytes, options.memory_bytes) = (512, 3000);
    let mut builder = Builder::create(fs, Path::new(FILE), options)?;
    for row in 0..120u64 {
        let text = format!("{} of {generation}", row * 7919 % 31);
        builder.add(row, &[Value::Integer(row * 37 % 101), Value::Bytes(text.as_bytes())])?;
    }
    builder.finish()
}

/// Returns the generation of the index on a disk, and asserts that all rows are of the same one.
fn generation(fs: &dyn Fs) -> i64 {
    let index = Index::open(fs, Path::new(FILE)).unwrap();
    index.verify().unwrap();
    let rows: Vec<Row> = index.range(..).unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 120);
    let of = |row: &Row| match &row.cells[1] {
        Cell::Bytes(text) => i64::from(text.last().unwrap() - b'0'),
        _ => panic!("{row:?}"),
    };
    assert!(rows.iter().all(|row| of(row) == of(&rows[0])));
    of(&rows[0])
}

/// Goal: an index is replaced atomically wherever the power fails, and an acknowledged build
/// persists. Method: a crash before every operation of a build over an older index, with every
/// possible state of the disk.
#[test]
fn power_loss() {
    let acknowledged = std::cell::Cell::new(u64::MAX);
    let workload = |fs: &FaultFs| {
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        on(&shared, 1).unwrap();
        let before = fs.operation_count();
        on(&shared, 2).unwrap();
        acknowledged.set(fs.operation_count());
        assert!(before > 0);
    };
    let first = {
        let fs = FaultFs::new(FaultOptions::seeded(5));
        on(&(Arc::new(fs.clone()) as Arc<dyn Fs>), 1).unwrap();
        fs.operation_count()
    };
    let images = crash_sweep(FaultOptions::seeded(5), 4, workload, |point, image, after| {
        let operation = point.operation();
        if operation < first {
            // No build was acknowledged yet, but an existing file must be complete.
            if after.exists(Path::new(FILE)).unwrap() {
                assert_eq!(generation(&after), 1, "{operation} {image:?}");
            }
            return;
        }
        let found = generation(&after);
        assert!(found == 2 || operation < acknowledged.get() && found == 1, "{operation} {image:?}: {found}");
        // The leftovers of a crashed build do not prevent the next one.
        on(&(Arc::new(after.clone()) as Arc<dyn Fs>), 3).unwrap();
        assert_eq!(generation(&after), 3);
    });
    assert!(images > 100, "{images}");
}

/// Goal: a build on a failing disk reports the error, and leaves the previous index intact. Method:
/// every operation of a build fails in turn, in four ways, once and from then on.
#[test]
fn failing_disk() {
    let mut struck = 0;
    for fault in [Fault::Io, Fault::Full, Fault::Short, Fault::Interrupted] {
        for persistent in [false, true] {
            struck += fault_sweep(&FaultOptions::seeded(9), fault, persistent, |fs, index| {
                let shared: Arc<dyn Fs> = Arc::new(fs.clone());
                let older = on(&shared, 1).is_ok();
                let newer = on(&shared, 2).is_ok();
                fs.clear_rules();
                if older || newer {
                    let found = generation(&*shared);
                    assert!(found == 2 || !newer && found == 1, "{fault:?} at {index}: {found}");
                }
            });
        }
    }
    assert!(struck > 100, "{struck}");
}
