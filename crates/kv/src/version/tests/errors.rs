//! Tests of failing operations and full disks.

use cairn_vfs::CrashImage;
use cairn_vfs::fault::{Fault, SyncFailure, fault_sweep};

use super::*;

/// Applies edits until one fails or `count` are done. Returns the allowed states: the acknowledged
/// one and, after a failure, the one with the failed edit. Also returns that edit with its error.
fn run(
    set: &VersionSet,
    edits: &mut Edits,
    count: usize,
) -> (Vec<VersionEdit>, Option<(VersionEdit, Error)>) {
    let mut allowed = vec![set.summary()];
    for _ in 0..count {
        let edit = edits.next(set);
        let mut after = crate::version::state::StoreState::default();
        let base = VersionEdit { next_file: Some(1 << 40), ..set.summary() };
        after.commit(after.prepare(&base).unwrap());
        after.commit(after.prepare(&edit).unwrap());
        let next = VersionEdit { next_file: None, ..after.snapshot() };
        match apply(set, &edit) {
            Ok(()) => allowed = vec![next],
            Err(error) => {
                assert_eq!(vec![set.summary()], allowed, "a failed edit changes nothing in memory");
                allowed.push(next);
                return (allowed, Some((edit, error)));
            }
        }
    }
    (allowed, None)
}

/// Goal: no failed operation loses an acknowledged edit or leaves a store that cannot be opened;
/// after the first failed write or sync nothing more is written.
/// Method: the k-th operation of a run fails, for all k, once or permanently, with each error and
/// each possible effect of a failed sync; then recovery on the same machine, and after power loss.
#[test]
fn every_operation_fails() {
    let seed = seed();
    let mut struck = 0;
    for fault in [Fault::Io, Fault::Full, Fault::Short, Fault::Interrupted] {
        for persistent in [false, true] {
            for sync_failure in
                [SyncFailure::CacheOnly, SyncFailure::Partial, SyncFailure::Lost, SyncFailure::Kept]
            {
                if fault != Fault::Io && sync_failure != SyncFailure::CacheOnly {
                    continue;
                }
                let options = FaultOptions { sync_failure, ..FaultOptions::seeded(seed) };
                struck += fault_sweep(&options, fault, persistent, |fs, index| {
                    let what = format!("{fault:?} {persistent} {sync_failure:?} operation {index}");
                    one_failure(fs, &what);
                });
            }
        }
    }
    println!("{struck} failures");
}

fn one_failure(fs: &FaultFs, what: &str) {
    let shared = shared(fs);
    if fs.create_dir_all(dir()).and_then(|()| fs.sync_dir(Path::new("."))).is_err() {
        return;
    }
    let Ok(set) = new_store(&shared) else {
        fs.clear_rules();
        let exists = VersionSet::exists(&shared, dir()).unwrap();
        let set = if exists { VersionSet::open(&shared, dir(), None) } else { new_store(&shared) };
        set.unwrap_or_else(|error| panic!("{what}: {error}"));
        return;
    };
    let set = set.rewrite_bytes(300);
    let mut edits = Edits::new(11);
    let (mut allowed, failed) = run(&set, &mut edits, 12);
    if let Some((edit, error)) = failed {
        let poisoned = set.check().is_err_and(|error| is_poisoned(&error));
        let is_full = matches!(&error, Error::Vfs(error) if error.is_full());
        assert!(poisoned || is_full || is_poisoned(&error), "{what}: {error}");
        fs.clear_rules();
        if poisoned {
            let before = fs.operation_count();
            assert!(is_poisoned(&apply(&set, &edit).unwrap_err()), "{what}");
            assert_eq!(fs.operation_count(), before, "{what}: files are left alone");
        } else {
            apply(&set, &edit).unwrap_or_else(|error| panic!("{what}: {error}"));
            allowed = vec![set.summary()];
        }
    }
    fs.clear_rules();
    drop(set);
    let state =
        VersionSet::open(&shared, dir(), None).unwrap_or_else(|error| panic!("{what}: {error}")).summary();
    assert!(allowed.contains(&state), "{what}");
    let after = fs.crash(CrashImage::None);
    let again = VersionSet::open(&super::shared(&after), dir(), None)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(again.summary(), state, "{what}: what recovery showed is durable");
}

/// Goal: a full disk refuses edits and loses none, and the set continues when there is space.
/// Method: quotas that leave no space and are lifted, repeatedly, with rewrites.
#[test]
fn a_full_disk_is_survived() {
    let seed = seed();
    let mut refused = 0;
    for round in 0..rounds(20) {
        let mut rng = SeededRng::new(seed ^ round << 8).fork("quota");
        let options = FaultOptions { quota_bytes: Some(1 << 30), ..FaultOptions::seeded(rng.next_u64()) };
        let fs = faulty(options);
        let set = new_store(&shared(&fs)).unwrap().rewrite_bytes(6000);
        let mut edits = Edits::new(rng.next_u64());
        for _ in 0..10 {
            fs.set_quota(Some(4096 * (1 + rng.below(4))));
            let (_, failed) = run(&set, &mut edits, 60);
            set.check().unwrap();
            // A large quota. Without any quota the simulated disk does not track reservations.
            fs.set_quota(Some(1 << 30));
            if let Some((edit, error)) = failed {
                assert!(matches!(&error, Error::Vfs(error) if error.is_full()), "{error}");
                apply(&set, &edit).unwrap();
                refused += 1;
            }
        }
        let state = set.summary();
        drop(set);
        let after = fs.crash(CrashImage::None);
        assert_eq!(VersionSet::open(&shared(&after), dir(), None).unwrap().summary(), state);
    }
    println!("{refused} edits met a full disk");
    assert!(refused > 10);
}
