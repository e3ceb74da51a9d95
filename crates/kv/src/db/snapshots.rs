//! Which sequence numbers readers hold on to.

use std::collections::BTreeMap;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::db::order::Order;
use crate::kind::Seqno;

#[cfg(all(test, cairn_shuttle))]
mod shuttle;

/// All live snapshots of a store, counted by number.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    counts: Mutex<BTreeMap<Seqno, usize>>,
}

impl Snapshots {
    /// Holds on to what is visible now. Compactions that list the snapshots later know it; those
    /// that did so before keep the newest version of everything they merge, which is the one that
    /// this snapshot sees.
    pub(crate) fn take(self: &Arc<Self>, order: &Order) -> SnapshotGuard {
        let mut counts = lock(&self.counts);
        let seqno = order.visible();
        *counts.entry(seqno).or_default() += 1;
        SnapshotGuard { seqno, snapshots: Arc::clone(self) }
    }

    /// The numbers held, ascending, each once.
    pub(crate) fn list(&self) -> Vec<Seqno> {
        lock(&self.counts).keys().copied().collect()
    }

    /// How many snapshots there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.counts).values().sum()
    }

    fn release(&self, seqno: Seqno) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&seqno) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&seqno);
            }
        }
    }
}

/// Keeps one number in the list.
#[derive(Debug)]
pub(crate) struct SnapshotGuard {
    seqno: Seqno,
    snapshots: Arc<Snapshots>,
}

impl SnapshotGuard {
    /// True when it is one of these.
    pub(crate) fn is_of(&self, snapshots: &Arc<Snapshots>) -> bool {
        Arc::ptr_eq(&self.snapshots, snapshots)
    }

    /// The number held.
    pub(crate) fn seqno(&self) -> Seqno {
        self.seqno
    }
}

impl Clone for SnapshotGuard {
    fn clone(&self) -> Self {
        *lock(&self.snapshots.counts).entry(self.seqno).or_default() += 1;
        SnapshotGuard { seqno: self.seqno, snapshots: Arc::clone(&self.snapshots) }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.snapshots.release(self.seqno);
    }
}
