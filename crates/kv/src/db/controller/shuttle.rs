//! Stopping and releasing writers under schedules that follow from a seed: see
//! `testing/schedules.rs`.

use cairn_vfs::sync::atomic::AtomicBool;
use cairn_vfs::{ManualClock, thread};

use super::*;
use crate::schedules::explore;

/// A model of the store's part: due work and the threads that do it.
struct Store {
    controller: Controller,
    due: Mutex<usize>,
    changed: Condvar,
    failed: AtomicBool,
    clock: ManualClock,
    /// The amount of due work at which writers stop.
    limit: f64,
}

impl Store {
    fn new(limit: f64) -> Store {
        Store {
            controller: Controller::new(),
            due: Mutex::new(0),
            changed: Condvar::new(),
            failed: AtomicBool::new(false),
            clock: ManualClock::new(Duration::ZERO),
            limit,
        }
    }

    /// Updates the pressure, as a store does whenever work becomes due or is done.
    fn update(&self) {
        let _measuring = lock(&self.controller.measuring);
        let due = *lock(&self.due) as f64;
        let worst = Pressure::between(StallCause::LevelZero, due, self.limit - 0.5, self.limit);
        self.controller.set(&[Pressure::between(StallCause::Memtables, due, 8.0, 9.0), worst]);
    }

    fn write(&self) {
        let abandon = || self.failed.load(SeqCst);
        self.controller.admit(1 << 20, &self.clock, abandon);
        // The work can be found and done before it is measured.
        *lock(&self.due) += 1;
        self.changed.notify_all();
        self.update();
    }

    /// Does one piece of work, waiting for it if necessary.
    fn work(&self) {
        let mut due = lock(&self.due);
        while *due == 0 {
            due = wait(&self.changed, due);
        }
        *due -= 1;
        drop(due);
        self.update();
    }
}

/// Goal: stopped writers always continue once the work is done, because the last speed set reflects
/// the last state and no waiter misses the wakeup. Method: three writers reach a limit of one or
/// two, and two threads work. A schedule in which a writer stays stopped is a deadlock.
#[test]
fn stop_and_go() {
    for limit in [1.0, 2.0] {
        explore(3_000, move || {
            let store = Store::new(limit);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| (0..2).for_each(|_| store.write()));
                }
                for _ in 0..2 {
                    scope.spawn(|| (0..3).for_each(|_| store.work()));
                }
            });
            assert!(!store.controller.is_stopped());
        });
    }
}

/// Goal: a failure releases stopped writers although no thread works any more. Method: the limit is
/// reached, then the store fails.
#[test]
fn failure_opens_the_gate() {
    explore(2_000, || {
        let store = Store::new(2.0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..2).for_each(|_| store.write()));
            }
            scope.spawn(|| {
                store.failed.store(true, SeqCst);
                store.controller.wake();
            });
        });
        assert!(store.controller.is_stopped());
    });
}

/// Goal: the debt of concurrent writers is paid exactly once: the time slept plus the remaining
/// debt equals the cost of the writes. No writer pays forever, even if the pressure ends in the
/// middle. Method: at the slowest speed, two writers with more than a second's worth each and a
/// small one, whose sleeps advance the clock; then the same with a thread that removes the
/// pressure.
#[test]
fn writers_pay_beside_each_other() {
    for ends in [false, true] {
        explore(100, move || {
            let store = Store::new(1.0);
            store.controller.set(&[Pressure { cause: StallCause::LevelZero, speed: SPEED_MIN }]);
            let bytes = [5 << 20, 5 << 20, 1 << 16];
            thread::scope(|scope| {
                for bytes in bytes {
                    let store = &store;
                    scope.spawn(move || store.controller.admit(bytes, &store.clock, || false));
                }
                if ends {
                    scope.spawn(|| {
                        let free = Pressure::between(StallCause::LevelZero, 0.0, 1.0, 2.0);
                        store.controller.set(&[free]);
                    });
                }
            });
            let cost = (bytes.iter().sum::<usize>() as f64 / SPEED_MIN * 1e9) as u64;
            let owed = store.controller.owed.load(Relaxed);
            let paid = store.clock.now().as_nanos() as u64;
            if ends {
                assert!(paid + owed <= cost, "{paid} and {owed} of {cost}");
            } else {
                // Each cost is truncated to whole nanoseconds.
                assert!((cost - 3..=cost).contains(&(paid + owed)), "{paid} and {owed} of {cost}");
                assert!(u128::from(owed) <= OWED_MAX.as_nanos(), "{owed} left to later writers");
            }
        });
    }
}
