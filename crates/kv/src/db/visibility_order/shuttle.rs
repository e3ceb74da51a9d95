//! The order of visibility under schedules that follow from a seed: see `testing/schedules.rs`. In
//! these tests the ring has four cells, and waiters sleep without spinning first.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;

use super::*;
use crate::schedules::explore;

/// The sequence numbers of writes as the commit lock assigns them, and the state of each write.
#[derive(Default)]
struct Writes {
    /// By the first number of each write: its last number, and whether it is done.
    all: Mutex<BTreeMap<Seqno, (Seqno, bool)>>,
}

impl Writes {
    fn begin(&self, len: u64) -> (Seqno, Seqno) {
        let mut all = lock(&self.all);
        let first = all.last_key_value().map_or(1, |(_, (last, _))| last + 1);
        all.insert(first, (first + len - 1, false));
        (first, first + len - 1)
    }

    fn done(&self, first: Seqno) {
        lock(&self.all).entry(first).and_modify(|write| write.1 = true);
    }

    fn last(&self) -> Seqno {
        lock(&self.all).last_key_value().map_or(0, |(_, (last, _))| *last)
    }

    /// Checks the guarantees to a reader that sees everything up to `visible`.
    fn check(&self, visible: Seqno) {
        for (first, (last, is_done)) in lock(&self.all).range(..=visible) {
            assert!(*last <= visible, "{visible} is in the middle of {first}..={last}");
            assert!(is_done, "{visible} is beyond {first}..={last}, which is not done");
        }
    }
}

/// Goal: the mark never passes an unfinished write nor stops within a write, a write is visible
/// once `publish` returns, and no thread waits forever. Method: three writers with writes of one,
/// two and more numbers than the ring has cells, a reader, and a flush that waits for the assigned
/// numbers.
#[test]
fn writers_readers_and_a_flush() {
    explore(4_000, || {
        let (order, writes) = (Arc::new(VisibilityOrder::new(0)), Arc::new(Writes::default()));
        thread::scope(|scope| {
            let (order, writes) = (&order, &writes);
            for lens in [[1, 1, 2], [2, 1, 6], [1, 5, 1]] {
                scope.spawn(move || {
                    for len in lens {
                        let (first, last) = writes.begin(len);
                        writes.done(first);
                        order.publish(first, last);
                        assert!(order.visible() >= last);
                    }
                });
            }
            scope.spawn(move || {
                let mut before = 0;
                for _ in 0..6 {
                    let visible = order.visible();
                    assert!(visible >= before, "the mark went back from {before} to {visible}");
                    writes.check(visible);
                    before = visible;
                }
            });
            scope.spawn(move || {
                for _ in 0..2 {
                    let last = writes.last();
                    order.wait_for(last);
                    writes.check(order.visible().max(last));
                }
            });
        });
        assert_eq!(order.visible(), writes.last());
        assert_eq!(order.sleepers.load(SeqCst), 0);
    });
}

/// Goal: no thread sleeps forever, because a thread about to sleep and one that moves the mark
/// cannot miss each other. Method: two and three writers with one number each, so that no later
/// write can wake them.
#[test]
fn the_last_writers() {
    for writers in [2, 3] {
        explore(4_000, move || {
            let order = VisibilityOrder::new(0);
            thread::scope(|scope| {
                for number in 1..=writers {
                    let order = &order;
                    scope.spawn(move || {
                        order.publish(number, number);
                        assert!(order.visible() >= number);
                    });
                }
            });
            assert_eq!(order.visible(), writers);
        });
    }
}
