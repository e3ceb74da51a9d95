//! The sequence numbers that live snapshots hold.

use std::collections::BTreeMap;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::db::visibility_order::VisibilityOrder;
use crate::kind::Seqno;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;

/// All live snapshots of a store, counted by sequence number.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    counts: Mutex<BTreeMap<Seqno, usize>>,
}

impl Snapshots {
    /// Takes a snapshot of everything visible now. A compaction that lists the snapshots afterwards
    /// respects it. A compaction that listed them before keeps the newest version of each key that
    /// it merges, which is the one that this snapshot sees.
    pub(crate) fn take(self: &Arc<Self>, order: &VisibilityOrder) -> SnapshotGuard {
        let mut counts = lock(&self.counts);
        let seqno = order.visible();
        debug_assert!(
            counts.last_key_value().is_none_or(|(newest, _)| *newest <= seqno),
            "a snapshot sees more than {seqno}, which is visible"
        );
        *counts.entry(seqno).or_default() += 1;
        SnapshotGuard { seqno, snapshots: Arc::clone(self) }
    }

    /// Returns the numbers held, in ascending order and each once.
    pub(crate) fn list(&self) -> Vec<Seqno> {
        lock(&self.counts).keys().copied().collect()
    }

    /// Returns the number of snapshots.
    pub(crate) fn len(&self) -> usize {
        let counts = lock(&self.counts);
        debug_assert!(counts.values().all(|count| *count > 0), "a number is listed for nobody: {counts:?}");
        counts.values().sum()
    }

    fn release(&self, seqno: Seqno) {
        let mut counts = lock(&self.counts);
        debug_assert!(counts.get(&seqno).is_some_and(|count| *count > 0), "no snapshot of {seqno} is held");
        if let Some(count) = counts.get_mut(&seqno) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&seqno);
            }
        }
    }
}

/// Holds one sequence number in the list.
#[derive(Debug)]
pub(crate) struct SnapshotGuard {
    seqno: Seqno,
    snapshots: Arc<Snapshots>,
}

impl SnapshotGuard {
    /// Returns true if the guard belongs to `snapshots`.
    pub(crate) fn is_of(&self, snapshots: &Arc<Snapshots>) -> bool {
        Arc::ptr_eq(&self.snapshots, snapshots)
    }

    /// Returns the sequence number held.
    pub(crate) fn seqno(&self) -> Seqno {
        self.seqno
    }
}

impl Clone for SnapshotGuard {
    fn clone(&self) -> Self {
        let mut counts = lock(&self.snapshots.counts);
        debug_assert!(counts.contains_key(&self.seqno), "the snapshot of {} is not held", self.seqno);
        *counts.entry(self.seqno).or_default() += 1;
        drop(counts);
        SnapshotGuard { seqno: self.seqno, snapshots: Arc::clone(&self.snapshots) }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.snapshots.release(self.seqno);
    }
}
