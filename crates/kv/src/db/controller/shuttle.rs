//! Stop and go under schedules that follow from a seed: see `testing/schedules.rs`.

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize};
use cairn_vfs::{ManualClock, thread};

use super::*;
use crate::schedules::explore;

/// A store's worth of debt: what is due, and who pays.
struct Store {
    controller: Controller,
    /// Work that is due.
    debt: AtomicUsize,
    due: Mutex<usize>,
    changed: Condvar,
    failed: AtomicBool,
    clock: ManualClock,
}

impl Store {
    fn new() -> Arc<Store> {
        Arc::new(Store {
            controller: Controller::new(),
            debt: AtomicUsize::new(0),
            due: Mutex::new(0),
            changed: Condvar::new(),
            failed: AtomicBool::new(false),
            clock: ManualClock::new(Duration::ZERO),
        })
    }

    /// As a store does it whenever work becomes due, or is done.
    fn update(&self) {
        let _measuring = lock(&self.controller.measuring);
        let debt = self.debt.load(SeqCst) as f64;
        let memtables = Pressure::between(StallCause::Memtables, debt, 1.0, 2.0);
        let level_zero = Pressure::between(StallCause::LevelZero, debt, 2.0, 9.0);
        self.controller.set(&[memtables, level_zero]);
    }

    fn write(&self) {
        let abandon = || self.failed.load(SeqCst);
        self.controller.admit(1 << 20, &self.clock, abandon);
        self.debt.fetch_add(1, SeqCst);
        self.update();
        *lock(&self.due) += 1;
        self.changed.notify_all();
    }

    /// Pays once, when there is something to pay.
    fn work(&self) {
        let mut due = lock(&self.due);
        while *due == 0 {
            due = wait(&self.changed, due);
        }
        *due -= 1;
        drop(due);
        self.debt.fetch_sub(1, SeqCst);
        self.update();
    }
}

/// Goal: writers that were stopped always go on when the work is done: the gate's last word is about the last state, and
/// no waiter misses it. Method: three writers run into the limit, two threads pay; a schedule in which a writer stays
/// stopped is a deadlock.
#[test]
fn stop_and_go() {
    explore(4_000, || {
        let store = Store::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..3).for_each(|_| store.write()));
            }
            scope.spawn(|| (0..5).for_each(|_| store.work()));
            scope.spawn(|| (0..4).for_each(|_| store.work()));
        });
        assert!(!store.controller.is_stopped());
    });
}

/// Goal: a failure releases stopped writers although nobody will ever pay. Method: the limit is reached, then the store
/// fails.
#[test]
fn failure_opens_the_gate() {
    explore(1_000, || {
        let store = Store::new();
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
