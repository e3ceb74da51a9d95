//! The latch under every thread schedule, and every order of loads and stores that the memory model
//! allows.
//!
//! Run `RUSTFLAGS="--cfg cairn_loom" cargo test -p cairn-pool --lib models`, with a target
//! directory of its own. `LOOM_MAX_PREEMPTIONS=3` searches deeper than the default of two
//! preemptions, which these tests use because an unlimited search would take too long.

#![allow(unsafe_code, clippy::unwrap_used, reason = "tests; they check the cells")]

use std::time::Duration;

use cairn_vfs::ManualClock;
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::thread;

use super::{Latch, Released};
use crate::parking::Parking;

/// Plain memory behind a latch. The checker reports concurrent accesses.
#[derive(Default)]
struct Page {
    latch: Latch,
    bytes: UnsafeCell<u64>,
    /// Data for optimistic readers: two halves that writers keep equal.
    halves: [AtomicU64; 2],
}

fn explore(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(test);
}

/// Goal: an exclusive holder excludes all others, and its writes are visible to the next holder.
/// Method: two threads change plain memory under the exclusive latch and read it under the shared
/// one, whenever they get the latch.
#[test]
fn holds_exclude_each_other() {
    explore(|| {
        let page = Arc::new(Page::default());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let page = Arc::clone(&page);
                thread::spawn(move || {
                    let mut raised = 0;
                    if page.latch.try_exclusive() {
                        // SAFETY: under the exclusive latch, which is the property being checked.
                        page.bytes.with_mut(|bytes| unsafe { *bytes += 1 });
                        raised = 1;
                        let _ = page.latch.downgrade();
                        // SAFETY: under the shared latch.
                        page.bytes.with(|bytes| assert!(unsafe { *bytes } >= 1));
                        let _ = page.latch.release_shared();
                    } else if page.latch.try_shared().is_ok() {
                        // SAFETY: under the shared latch.
                        page.bytes.with(|bytes| assert!(unsafe { *bytes } <= 1));
                        let _ = page.latch.release_shared();
                    }
                    raised
                })
            })
            .collect();
        let raised: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(page.latch.try_exclusive());
        // SAFETY: under the exclusive latch.
        page.bytes.with(|bytes| assert_eq!(unsafe { *bytes }, raised));
    });
}

/// Goal: values read optimistically are from one moment if the version confirms it. Method: a
/// writer changes two halves, twice; a reader reads both with relaxed loads, in the order in which
/// they are written and in the reverse order.
#[test]
fn version_detects_changes() {
    explore(|| {
        let page = Arc::new(Page::default());
        let writer = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                for value in 1..3 {
                    if page.latch.try_exclusive() {
                        page.halves.iter().for_each(|half| half.store(value, Relaxed));
                        let _ = page.latch.release_exclusive();
                    }
                }
            })
        };
        for (first, second) in [(0, 1), (1, 0)] {
            if let Some(version) = page.latch.version() {
                let pair = (page.halves[first].load(Relaxed), page.halves[second].load(Relaxed));
                if page.latch.is_at(version) {
                    assert_eq!(pair.0, pair.1);
                }
            }
        }
        writer.join().unwrap();
    });
}

/// Goal: if the exclusive latch is taken at a version, the data has not changed since that version
/// was read. Method: two threads increment a value that they read before they take the latch.
#[test]
fn upgrade_needs_an_unchanged_version() {
    explore(|| {
        let page = Arc::new(Page::default());
        let raise = |page: &Page| {
            let Some(version) = page.latch.version() else { return 0 };
            let value = page.halves[0].load(Relaxed);
            if !page.latch.try_exclusive_at(version) {
                return 0;
            }
            page.halves[0].store(value + 1, Relaxed);
            let _ = page.latch.release_exclusive();
            1
        };
        let other = {
            let page = Arc::clone(&page);
            thread::spawn(move || raise(&page))
        };
        let own = raise(&page);
        let other = other.join().unwrap();
        assert_eq!(page.halves[0].load(Relaxed), own + other);
    });
}

/// Goal: no thread sleeps through the release of the latch. Method: one thread holds it, shared or
/// exclusive, and another waits; loom reports a thread that is never woken. A reader with a failing
/// try is visible for a moment in between.
#[test]
fn sleepers_are_woken() {
    for is_shared in [false, true] {
        explore(move || {
            let shared = Arc::new((Page::default(), Parking::new()));
            let latch = &shared.0.latch;
            let leave = |shared: &(Page, Parking), left: Released| {
                if left == Released::HasWaiters {
                    shared.1.wake(7, || shared.0.latch.forget_waiters());
                }
            };
            assert!(if is_shared { latch.try_shared().is_ok() } else { latch.try_exclusive() });
            let waiter = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let latch = &shared.0.latch;
                    let clock = ManualClock::new(Duration::ZERO);
                    let announce = || latch.announce_waiter();
                    let attempt = || latch.try_exclusive().then_some(());
                    shared.1.wait(7, &clock, Duration::from_secs(1), announce, attempt).unwrap();
                    leave(&shared, latch.release_exclusive());
                })
            };
            let passer = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let left = match shared.0.latch.try_shared() {
                        Ok(()) => shared.0.latch.release_shared(),
                        Err(left) => left,
                    };
                    leave(&shared, left);
                })
            };
            leave(&shared, if is_shared { latch.release_shared() } else { latch.release_exclusive() });
            waiter.join().unwrap();
            passer.join().unwrap();
        });
    }
}

/// Goal: no thread keeps sleeping at the latch of a frame whose page has left while the latch stays
/// held. Method: a holder clears a stand-in for the table entry and wakes waiters; another thread
/// waits for either event.
#[test]
fn sleepers_wake_when_the_page_leaves() {
    explore(|| {
        let shared = Arc::new((Latch::default(), AtomicU64::new(1), Parking::new()));
        assert!(shared.0.try_exclusive());
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (latch, entry, parking) = &*shared;
                let clock = ManualClock::new(Duration::ZERO);
                let announce = || latch.announce_waiter();
                let attempt = || (latch.try_exclusive() || entry.load(Acquire) == 0).then_some(());
                parking.wait(7, &clock, Duration::from_secs(1), announce, attempt).unwrap();
            })
        };
        let (latch, entry, parking) = &*shared;
        entry.store(0, Release);
        if latch.has_waiters() {
            parking.wake(7, || latch.forget_waiters());
        }
        waiter.join().unwrap();
    });
}
