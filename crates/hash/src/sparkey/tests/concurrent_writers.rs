//! Concurrent operations while a log is created or an index is built.

use std::sync::atomic::{AtomicUsize, Ordering};

use cairn_vfs::fault::{Fault, Rule};
use cairn_vfs::{ErrorKind, FaultFs, FaultOptions, Operation};

use super::*;
use crate::hook_fs::HookFs;

/// Wraps `fs` so that `others` runs once during an index build, after the builder has opened its
/// log.
fn with_others(fs: &Arc<dyn Fs>, others: impl Fn(&Arc<dyn Fs>) + Send + Sync + 'static) -> Arc<dyn Fs> {
    let (inner, calls) = (Arc::clone(fs), AtomicUsize::new(0));
    HookFs::over(fs, move |operation, path| {
        // A build removes the remains of an earlier one after it has opened the log.
        let is_building = operation == Operation::Remove && path == Path::new("x.spi.sort.tmp");
        if is_building && calls.fetch_add(1, Ordering::Relaxed) == 0 {
            others(&inner);
        }
        Ok(())
    })
}

/// Goal: an index of a log that was replaced is not published as that of the new log. Method:
/// another pair is renamed to the same names while the index is built. The build reports that, and
/// the new pair is unchanged.
#[test]
fn an_index_of_a_replaced_log_is_not_published() {
    let store = Store::build(&[put("a", "old")], &LogOptions::default(), &IndexOptions::default());
    let mut writer = LogWriter::create_in(&store.fs, "y.spl", &LogOptions::default()).unwrap();
    apply(&mut writer, &[put("a", "new")]);
    writer.close().unwrap();
    build_index_in(&store.fs, "y", &IndexOptions::default()).unwrap();
    let fs = with_others(&store.fs, |fs| {
        fs.rename(Path::new("y.spl"), Path::new(LOG)).unwrap();
        fs.rename(Path::new("y.spi"), Path::new(INDEX)).unwrap();
    });
    let error = build_index_in(&fs, LOG, &IndexOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert_eq!(store.reader().get(b"a").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(store.fs.read_dir(Path::new(".")).unwrap().len(), 2, "nothing is left of the build");
    build_index_in(&store.fs, LOG, &IndexOptions::default()).unwrap();
}

/// Goal: a log is not replaced while its index is being built, because the new log would get the
/// index of the old one. Method: a writer asks for the replacement during the build, and again
/// afterwards.
#[test]
fn a_log_is_not_replaced_under_an_index_build() {
    let store = Store::log_only(&[put("a", "1")], &LogOptions::default());
    let replace = LogOptions::default().replace(true);
    let meanwhile = replace.clone();
    let fs = with_others(&store.fs, move |fs| {
        let error = LogWriter::create_in(fs, LOG, &meanwhile).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    });
    build_index_in(&fs, LOG, &IndexOptions::default()).unwrap();
    assert_eq!(scanned(&store.reader()), store.live);
    drop(LogWriter::create_in(&store.fs, LOG, &replace).unwrap());
    assert!(!store.fs.exists(Path::new(INDEX)).unwrap());
}

/// Goal: a log whose creation failed is removed while its lock is still held, so that the removal
/// never hits a log that another writer has begun since. Method: each write and sync of a creation
/// fails; the lock is tried before each removal.
#[test]
fn failed_creation_is_removed_under_its_lock() {
    for operation in [Operation::Write, Operation::SyncData, Operation::SyncDir] {
        let disk = FaultFs::new(FaultOptions::seeded(1));
        let inner: Arc<dyn Fs> = Arc::new(disk.clone());
        let removals = Arc::new(AtomicUsize::new(0));
        let (tried, under) = (Arc::clone(&removals), Arc::clone(&inner));
        let fs = HookFs::over(&inner, move |operation, path| {
            if operation == Operation::Remove {
                tried.fetch_add(1, Ordering::Relaxed);
                let error = under.open(path, OpenOptions::write())?.try_lock().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            }
            Ok(())
        });
        disk.inject(Rule::nth(operation, 0, Fault::Io));
        LogWriter::create_in(&fs, LOG, &LogOptions::default().sync(true)).unwrap_err();
        assert_eq!(removals.load(Ordering::Relaxed), 1, "{operation}");
        assert!(!inner.exists(Path::new(LOG)).unwrap());
    }
}
