//! Snapshots and flushes under schedules that follow from a seed: see `testing/schedules.rs`.

use std::collections::BTreeSet;

use cairn_vfs::thread;

use super::*;
use crate::schedules::explore;

/// Goal: a flush knows every snapshot that sees an entry it drops. Method: a writer writes versions
/// of one key, a flush drops those that are neither the newest it knows nor in the list of
/// snapshots, and readers take snapshots. The version that a reader sees is never dropped.
#[test]
fn flushes_know_of_snapshots() {
    explore(4_000, || {
        let (order, snapshots) = (VisibilityOrder::new(1), Arc::<Snapshots>::default());
        let left_out = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            scope.spawn(|| (2..=4).for_each(|number| assert!(order.publish(number, number))));
            scope.spawn(|| {
                for _ in 0..2 {
                    // The newest version in the memtables so far.
                    let newest = order.visible();
                    let kept = snapshots.list();
                    lock(&left_out).extend((1..newest).filter(|number| !kept.contains(number)));
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let guard = snapshots.take(&order);
                    let other = guard.clone();
                    drop(guard);
                    assert!(!lock(&left_out).contains(&other.seqno()), "{} is gone", other.seqno());
                });
            }
        });
        assert_eq!((snapshots.len(), snapshots.list()), (0, Vec::new()));
    });
}
