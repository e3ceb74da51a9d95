//! The order of visibility under schedules that follow from a seed: see `testing/schedules.rs`. The
//! ring has four cells then, and who waits goes to sleep at once.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;

use super::*;
use crate::schedules::explore;

/// Writers' numbers as the commit lock gives them out, and what became of each write.
#[derive(Default)]
struct Writes {
    /// Of each write, by its first number: the last one, and whether it is done.
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

    /// What a reader who sees everything up to `visible` relies on.
    fn check(&self, visible: Seqno) {
        for (first, (last, is_done)) in lock(&self.all).range(..=visible) {
            assert!(*last <= visible, "{visible} is in the middle of {first}..={last}");
            assert!(is_done, "{visible} is beyond {first}..={last}, which is not done");
        }
    }
}

/// Goal: the mark never passes a write that is not done, nor stops within one; a write that
/// returned can be seen; and nobody waits for ever. Method: three writers of one, two and more
/// numbers than there are cells, a reader, and a flush that waits for what was given out.
#[test]
fn writers_readers_and_a_flush() {
    explore(4_000, || {
        let (order, writes) = (Arc::new(Order::new(0)), Arc::new(Writes::default()));
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

/// Goal: nobody sleeps for ever: who is about to sleep and who moves the mark do not miss each
/// other. Method: two and three writers of one number each, so that there is no later write to wake
/// anybody.
#[test]
fn the_last_writers() {
    for writers in [2, 3] {
        explore(4_000, move || {
            let order = Order::new(0);
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
