//! Locks and deadlocks, and the cleanup after a transaction.

use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*};
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{ManualClock, MemFs, Rng, SeededRng, SystemClock, thread};

use super::lock_table::{LockTable, Mode, Target, TransactionId};
use crate::iter::visible::Bounds;
use crate::options::Background;
use crate::version::KeyspaceId;
use crate::{Db, Error, Result, TransactionOptions};

const KEYSPACE: KeyspaceId = KeyspaceId(0);
const LONG: Duration = Duration::from_secs(3600);

fn bounds(lower: &str, upper: &str) -> Bounds {
    Bounds { lower: Some(lower.into()), upper: Some(upper.into()) }
}

/// Acquires a lock without waiting, or fails.
fn attempt(locks: &LockTable, id: TransactionId, target: Target<'_>, mode: Mode) -> Result<()> {
    locks.acquire(id, KEYSPACE, target, mode, Duration::ZERO, &ManualClock::new(Duration::ZERO))
}

fn wait_for(locks: &LockTable, id: TransactionId, key: &str, mode: Mode) -> Result<()> {
    locks.acquire(id, KEYSPACE, Target::Key(key.as_bytes()), mode, LONG, &ManualClock::new(Duration::ZERO))
}

/// Returns once `id` waits for a lock.
fn until_waiting(locks: &LockTable, id: TransactionId) {
    while !locks.is_waiting(id) {
        thread::yield_now();
    }
}

/// Goal: exactly the compatible locks can be held together. Method: each pair of a held and a
/// requested lock, on keys and ranges that do and do not overlap; the table is empty after their
/// release.
#[test]
fn what_excludes_what() {
    use Mode::{Exclusive, Shared};
    let (range, other) = (bounds("b", "d"), bounds("d", "f"));
    let key = Target::Key;
    let cases = [
        ((key(b"k"), Shared), (key(b"k"), Shared), true),
        ((key(b"k"), Shared), (key(b"k"), Exclusive), false),
        ((key(b"k"), Exclusive), (key(b"k"), Shared), false),
        ((key(b"k"), Exclusive), (key(b"k"), Exclusive), false),
        ((key(b"k"), Exclusive), (key(b"l"), Exclusive), true),
        ((Target::Range(&range), Shared), (key(b"b"), Shared), true),
        ((Target::Range(&range), Shared), (key(b"b"), Exclusive), false),
        ((Target::Range(&range), Shared), (key(b"czz"), Exclusive), false),
        ((Target::Range(&range), Shared), (key(b"d"), Exclusive), true),
        ((Target::Range(&range), Shared), (key(b"a"), Exclusive), true),
        ((Target::Range(&range), Shared), (Target::Range(&range), Shared), true),
        ((key(b"c"), Exclusive), (Target::Range(&range), Shared), false),
        ((key(b"c"), Shared), (Target::Range(&range), Shared), true),
        ((key(b"c"), Exclusive), (Target::Range(&other), Shared), true),
    ];
    for (held, wanted, is_fine) in cases {
        let locks = LockTable::default();
        let (first, second) = (locks.begin(), locks.begin());
        attempt(&locks, first, held.0, held.1).unwrap();
        // Acquiring the same lock again is allowed.
        attempt(&locks, first, held.0, held.1).unwrap();
        let result = attempt(&locks, second, wanted.0, wanted.1);
        assert_eq!(result.is_ok(), is_fine, "{held:?} {wanted:?}");
        assert!(is_fine || matches!(result, Err(Error::Busy { .. })), "{result:?}");
        locks.release(first);
        attempt(&locks, second, wanted.0, wanted.1).unwrap();
        locks.release(second);
        assert!(locks.is_empty());
    }
}

/// Goal: locks of one keyspace do not affect the others.
#[test]
fn keyspaces_are_apart() {
    let locks = LockTable::default();
    let clock = ManualClock::new(Duration::ZERO);
    let all = Bounds::default();
    for id in [1, 2] {
        locks
            .acquire(id, KeyspaceId(id as u32), Target::Key(b"k"), Mode::Exclusive, Duration::ZERO, &clock)
            .unwrap();
    }
    locks.acquire(3, KeyspaceId(0), Target::Range(&all), Mode::Shared, Duration::ZERO, &clock).unwrap();
    let busy = locks.acquire(3, KeyspaceId(1), Target::Range(&all), Mode::Shared, Duration::ZERO, &clock);
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    (1..=3).for_each(|id| locks.release(id));
    assert!(locks.is_empty());
}

/// Goal: if transactions wait for one another in a cycle, the one that closes the cycle is refused
/// at once and the others continue.
/// Method: cycles of two to six transactions on threads, each of which holds its key and requests
/// that of the next.
#[test]
fn circles_are_refused() {
    for size in 2..=6 {
        let locks = LockTable::default();
        let ids: Vec<_> = (0..size).map(|_| locks.begin()).collect();
        let keys: Vec<_> = (0..size).map(|at| format!("key {at}")).collect();
        for (id, key) in ids.iter().zip(&keys) {
            wait_for(&locks, *id, key, Mode::Exclusive).unwrap();
        }
        thread::scope(|scope| {
            for at in 1..size {
                let (locks, id, key) = (&locks, ids[at], &keys[(at + 1) % size]);
                let work = move || {
                    wait_for(locks, id, key, Mode::Exclusive).unwrap();
                    locks.release(id);
                };
                thread::spawn_scoped(scope, "waiter", work).unwrap();
                until_waiting(locks, id);
            }
            let error = wait_for(&locks, ids[0], &keys[1], Mode::Exclusive).unwrap_err();
            assert!(error.is_conflict() && error.to_string().contains("deadlock"), "{error}");
            locks.release(ids[0]);
        });
        assert!(locks.is_empty());
    }
}

/// Goal: two readers of a key that both request to write it are also a deadlock.
#[test]
fn upgrades_that_cross() {
    let locks = LockTable::default();
    let (first, second) = (locks.begin(), locks.begin());
    wait_for(&locks, first, "k", Mode::Shared).unwrap();
    wait_for(&locks, second, "k", Mode::Shared).unwrap();
    thread::scope(|scope| {
        let work = || wait_for(&locks, first, "k", Mode::Exclusive);
        let waiter = thread::spawn_scoped(scope, "upgrade", work).unwrap();
        until_waiting(&locks, first);
        assert!(wait_for(&locks, second, "k", Mode::Exclusive).unwrap_err().is_conflict());
        locks.release(second);
        waiter.join().unwrap().unwrap();
    });
    locks.release(first);
    assert!(locks.is_empty());
}

/// Goal: an exclusive lock is exclusive, whatever is requested in whatever order, and no lock is
/// left over. Method: threads lock random keys and ranges and record which of them are inside; a
/// conflict releases everything.
#[test]
fn nobody_is_inside_twice() {
    const KEYS: u64 = 6;
    let (locks, clock) = (LockTable::default(), SystemClock::new());
    // For each key: the number of readers, or 1000 for a writer.
    let inside: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let (granted, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for index in 0..4 {
            let (locks, clock, inside, granted, refused) = (&locks, &clock, &inside, &granted, &refused);
            let work = move || {
                let mut rng = SeededRng::new(index);
                for _ in 0..400 {
                    let id = locks.begin();
                    let mut held: Vec<(u64, bool)> = Vec::new();
                    for _ in 0..1 + rng.below(3) {
                        let at = rng.below(KEYS);
                        let is_write = rng.chance(0.5);
                        if held.iter().any(|(other, _)| *other == at) {
                            continue;
                        }
                        let key = [b'a' + at as u8];
                        let single = Bounds { lower: Some(key.to_vec()), upper: Some(vec![key[0] + 1]) };
                        let (target, mode) = match (is_write, rng.chance(0.3)) {
                            (true, _) => (Target::Key(&key), Mode::Exclusive),
                            (false, true) => (Target::Range(&single), Mode::Shared),
                            (false, false) => (Target::Key(&key), Mode::Shared),
                        };
                        if locks.acquire(id, KEYSPACE, target, mode, LONG, clock).is_err() {
                            refused.fetch_add(1, Relaxed);
                            break;
                        }
                        granted.fetch_add(1, Relaxed);
                        let before = inside[at as usize].fetch_add(if is_write { 1000 } else { 1 }, SeqCst);
                        assert!(if is_write { before == 0 } else { before < 1000 }, "{before} inside");
                        held.push((at, is_write));
                        thread::yield_now();
                    }
                    for (at, is_write) in held {
                        inside[at as usize].fetch_sub(if is_write { 1000 } else { 1 }, SeqCst);
                    }
                    locks.release(id);
                }
            };
            thread::spawn_scoped(scope, "locker", work).unwrap();
        }
    });
    assert!(locks.is_empty());
    assert!(granted.into_inner() > 1000);
    println!("{} refused", refused.into_inner());
}

fn store() -> Db {
    Db::builder("/store").fs(Arc::new(MemFs::new())).background(Background::Inline).seed(1).open().unwrap()
}

/// Goal: however a transaction ends (commit, conflict, rollback, drop, panic of its owner), its
/// locks and its snapshot are released.
#[test]
fn nothing_stays_behind() {
    let db = store();
    for pessimistic in [false, true] {
        let options =
            TransactionOptions { pessimistic, lock_timeout: Duration::ZERO, ..TransactionOptions::default() };
        for end in 0..5 {
            let mut transaction = db.transaction_with(options.clone());
            transaction.put(&db, "a", "1").unwrap();
            transaction.get(&db, "b").unwrap();
            assert_eq!(transaction.range(&db, "c".."f").unwrap().count(), 0);
            match end {
                0 => transaction.commit().unwrap(),
                1 => transaction.rollback(),
                2 => drop(transaction),
                3 => {
                    // A plain write takes no lock; the commit detects it.
                    db.put("b", "2").unwrap();
                    assert!(transaction.commit().unwrap_err().is_conflict());
                }
                _ => {
                    let cell = Mutex::new(Some(transaction));
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        let _mine = lock(&cell).take();
                        std::panic::resume_unwind(Box::new(()));
                    }));
                    assert!(result.is_err());
                }
            }
            assert!(db.core.inner.locks.is_empty(), "pessimistic: {pessimistic}, end {end}");
            assert_eq!(db.stats().snapshots, 0, "pessimistic: {pessimistic}, end {end}");
        }
    }
}

/// Goal: a lock of a pessimistic transaction blocks others until the transaction ends, and no
/// longer. Method: two transactions on one thread.
#[test]
fn locks_last_to_the_end() {
    let db = store();
    let options = TransactionOptions {
        pessimistic: true,
        lock_timeout: Duration::ZERO,
        ..TransactionOptions::default()
    };
    let is_busy = |result: Result<()>| matches!(result, Err(Error::Busy { .. }));
    let mut first = db.transaction_with(options.clone());
    let mut second = db.transaction_with(options.clone());
    first.get(&db, "read").unwrap();
    first.put(&db, "written", "1").unwrap();
    first.get_for_update(&db, "taken").unwrap();
    assert_eq!(first.range(&db, "m".."o").unwrap().count(), 0);
    second.get(&db, "read").unwrap();
    assert!(is_busy(second.put(&db, "read", "2")));
    assert!(is_busy(second.put(&db, "written", "2")));
    assert!(is_busy(second.get(&db, "taken").map(drop)));
    assert!(is_busy(second.put(&db, "nothing yet", "2")));
    second.put(&db, "outside", "2").unwrap();
    first.commit().unwrap();
    second.put(&db, "written", "2").unwrap();
    second.put(&db, "nothing yet", "2").unwrap();
    second.commit().unwrap();
    assert_eq!(db.get("written").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(db.core.inner.locks.is_empty());
}

/// Goal: a transaction may wait without a time limit. Method: a lock that another transaction holds
/// and then releases.
#[test]
fn a_timeout_without_end() {
    let locks = Arc::new(LockTable::default());
    let (first, second) = (locks.begin(), locks.begin());
    // A clock that does not start at zero.
    let clock = ManualClock::new(Duration::ZERO);
    clock.advance(LONG);
    attempt(&locks, first, Target::Key(b"k"), Mode::Exclusive).unwrap();
    let waiter = {
        let locks = Arc::clone(&locks);
        let target = Target::Key(b"k");
        let wait = move || locks.acquire(second, KEYSPACE, target, Mode::Exclusive, Duration::MAX, &clock);
        thread::spawn("waiter", wait).unwrap()
    };
    until_waiting(&locks, second);
    locks.release(first);
    waiter.join().unwrap().unwrap();
    locks.release(second);
    assert!(locks.is_empty());
}
