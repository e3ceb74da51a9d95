//! The limit on the total memory of all active memtables: see
//! [`crate::Options::memtable_bytes_max`].
//!
//! A memtable allocates memory in chunks, so most writes change nothing here and only compare two
//! numbers. A writer that made a memtable grow re-sorts it among the others under a lock; the
//! largest is the last of them.

use std::collections::BTreeSet;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering::*};
use cairn_vfs::sync::{Mutex, lock};

use crate::memtable::Memtable;
use crate::version::KeyspaceId;

/// The sizes of the active memtables that were written to.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The limit in bytes.
    allowed: u64,
    total: AtomicU64,
    /// Sorted by size, as noted in each memtable.
    sizes: Mutex<BTreeSet<(u64, KeyspaceId)>>,
}

impl Budget {
    /// Creates a budget of `allowed` bytes.
    pub(crate) fn new(allowed: u64) -> Self {
        debug_assert!(allowed > 0, "no memtable fits into a budget of 0 bytes");
        Budget { allowed, total: AtomicU64::new(0), sizes: Mutex::default() }
    }

    /// Registers a write to `memtable` of keyspace `id`. Returns true if all memtables together
    /// exceed the limit. Costs three loads unless the memtable has grown.
    #[inline]
    pub(crate) fn written(&self, id: KeyspaceId, memtable: &Memtable) -> bool {
        if memtable.budgeted_bytes() != Some(memtable.allocated_bytes() as u64) {
            self.grown(id, memtable);
        }
        self.total.load(Relaxed) > self.allowed
    }

    #[cold]
    fn grown(&self, id: KeyspaceId, memtable: &Memtable) {
        let mut sizes = lock(&self.sizes);
        let bytes = memtable.allocated_bytes() as u64;
        // The memtable was sealed meanwhile, so it no longer counts.
        let Some(noted) = memtable.budgeted_bytes() else { return };
        debug_assert!(bytes >= noted, "a memtable of {noted} bytes shrank to {bytes}");
        debug_assert!(bytes > 0, "a size of 0 stands for a memtable that is not listed");
        let was_listed = sizes.remove(&(noted, id));
        debug_assert_eq!(was_listed, noted > 0, "a memtable of keyspace {} with {noted} bytes", id.0);
        sizes.insert((bytes, id));
        memtable.set_budgeted_bytes(Some(bytes));
        // Never underflows: the noted size was added under this lock.
        self.total.fetch_add(bytes.wrapping_sub(noted), Relaxed);
        self.assert_sound(&sizes);
    }

    /// Asserts that the total is that of the listed sizes, with one memtable per keyspace. For
    /// debug builds.
    fn assert_sound(&self, sizes: &BTreeSet<(u64, KeyspaceId)>) {
        debug_assert_eq!(
            self.total.load(Relaxed),
            sizes.iter().map(|(bytes, _)| bytes).sum::<u64>(),
            "the total of {} memtables",
            sizes.len()
        );
        debug_assert_eq!(
            sizes.iter().map(|(_, id)| *id).collect::<BTreeSet<_>>().len(),
            sizes.len(),
            "a keyspace has two active memtables: {sizes:?}"
        );
    }

    /// Removes the sealed `memtable` of keyspace `id` from the budget.
    pub(crate) fn sealed(&self, id: KeyspaceId, memtable: &Memtable) {
        let mut sizes = lock(&self.sizes);
        let Some(noted) = memtable.budgeted_bytes() else { return };
        let was_listed = sizes.remove(&(noted, id));
        debug_assert_eq!(was_listed, noted > 0, "a memtable of keyspace {} with {noted} bytes", id.0);
        memtable.set_budgeted_bytes(None);
        self.total.fetch_sub(noted, Relaxed);
        self.assert_sound(&sizes);
    }

    /// Returns the keyspace of the largest memtable.
    pub(crate) fn largest(&self) -> Option<KeyspaceId> {
        lock(&self.sizes).last().map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{Rng, SeededRng};

    use super::*;
    use crate::kind::Kind;

    /// Goal: total and largest match the memtables that were written to and not sealed. Method:
    /// random writes and seals of several memtables, including late writes to sealed ones, compared
    /// with a sum over all.
    #[test]
    fn as_a_sum_over_all() {
        let mut rng = SeededRng::new(11);
        let budget = Budget::new(60_000);
        let mut active: Vec<Memtable> = (0..5).map(|_| Memtable::new()).collect();
        for seqno in 1..3000 {
            let at = rng.below(5) as usize;
            let id = KeyspaceId(at as u32);
            if rng.below(40) == 0 {
                budget.sealed(id, &active[at]);
                let old = std::mem::replace(&mut active[at], Memtable::new());
                old.insert(b"late", seqno, Kind::Put, &[7; 5000]).unwrap();
                budget.written(id, &old);
                budget.sealed(id, &old);
            } else {
                active[at].insert(&seqno.to_be_bytes(), seqno, Kind::Put, &[7; 100]).unwrap();
                let is_over = budget.written(id, &active[at]);
                let written = active.iter().filter(|memtable| !memtable.is_empty());
                let sum: u64 = written.clone().map(|memtable| memtable.allocated_bytes() as u64).sum();
                assert_eq!(is_over, sum > 60_000, "{sum}");
                let largest = written.map(|memtable| memtable.allocated_bytes()).max();
                let found = budget.largest().map(|id| active[id.0 as usize].allocated_bytes());
                assert_eq!(found, largest);
            }
        }
    }
}
