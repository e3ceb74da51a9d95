//! Stop and go under schedules that follow from a seed: see `testing/schedules.rs`.

use cairn_vfs::sync::atomic::AtomicBool;
use cairn_vfs::{ManualClock, thread};

use super::*;
use crate::schedules::explore;

/// What a store has of this: work that is due, and who does it.
struct Store {
    controller: Controller,
    due: Mutex<usize>,
    changed: Condvar,
    failed: AtomicBool,
    clock: ManualClock,
    /// Work that writers run into.
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

    /// As a store does it whenever work becomes due, or is done.
    fn update(&self) {
        let _measuring = lock(&self.controller.measuring);
        let due = *lock(&self.due) as f64;
        let worst = Pressure::between(StallCause::LevelZero, due, self.limit - 0.5, self.limit);
        self.controller.set(&[Pressure::between(StallCause::Memtables, due, 8.0, 9.0), worst]);
    }

    fn write(&self) {
        let abandon = || self.failed.load(SeqCst);
        self.controller.admit(1 << 20, &self.clock, abandon);
        // The work can be found, and be done, before it is measured.
        *lock(&self.due) += 1;
        self.changed.notify_all();
        self.update();
    }

    /// Does one piece of work, when there is one.
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

/// Goal: writers that were stopped always go on when the work is done: the gate's last word is
/// about the last state, and no waiter misses it. Method: three writers run into a limit of one or
/// two, two threads work; a schedule in which a writer stays stopped is a deadlock.
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

/// Goal: a failure releases stopped writers although nobody works any more. Method: the limit is
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

/// Goal: what writers who pay beside each other owe is paid once and by somebody: what was slept
/// and what is still owed are what was written. Nobody pays for ever, also when the pressure ends
/// in the middle. Method: two writers of five seconds' worth each at the slowest speed and a small
/// one, whose sleeps move the clock; then the same with a thread that takes the pressure away.
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
                // Each cost is cut to whole nanoseconds.
                assert!((cost - 3..=cost).contains(&(paid + owed)), "{paid} and {owed} of {cost}");
                assert!(u128::from(owed) <= OWED_MAX.as_nanos(), "{owed} left to later writers");
            }
        });
    }
}
