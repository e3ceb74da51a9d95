//! Divides the memory limit among queries.
//!
//! DataFusion's `FairSpillPool` gives each consumer that can spill an equal share, and the rest to
//! the others, first come, first served. A sort is both: its rows can spill, but the memory in
//! which it merges them cannot, and is requested last. By then the rows have taken everything, and
//! the merge fails although there is a disk. Here the rows of a sort take less than half of its
//! share, and the rest is for merging. The first request of a sort or another consumer with a share
//! is always granted: it already holds a batch, which a refusal would not make smaller.
//!
//! ```text
//!   limit ─┬─ memory that cannot spill, as a join's hash table: as much as is left, then an error
//!          ├─ batches between threads: a quarter of such a share each; the excess spills
//!          └─ the rest, in equal shares of at least 8 MiB ─┬─ a sort: rows (2/5) ◄─► merging
//!                                                          └─ groups, sorted joins
//! ```
//!
//! So the limit decides when operators spill. It does not bound the memory of the process: a query
//! that was alone keeps its share when others arrive, and even under a small limit each operator
//! may have 8 MiB.

use std::fmt;

use cairn_vfs::sync::{Mutex, lock};
use datafusion::common::human_readable_size;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// Bytes that an operator may have whatever the limit is: merging two runs takes two batches of
/// each.
const LEAST: usize = 8 << 20;

/// The memory shared by all queries of a database.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// Number of consumers with a share of the memory that can spill.
    sharers: usize,
    /// Bytes that cannot spill.
    fixed: usize,
    /// All reserved bytes.
    all: usize,
}

/// The purpose of a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The rows of a sort.
    Rows,
    /// The merge phase of a sort.
    Merging,
    /// Batches passed between threads.
    Passing,
    /// Merging sorted streams: one batch of each.
    Ordering,
    /// Other memory that can spill.
    Shared,
    /// Memory that cannot spill.
    Fixed,
}

impl Use {
    /// Derives the purpose from the name of the consumer, since DataFusion provides nothing else.
    fn of(consumer: &MemoryConsumer) -> Use {
        let name = consumer.name();
        match consumer.can_spill() {
            true if name.starts_with("RepartitionExec[") => Use::Passing,
            false if name.starts_with("RepartitionExec[") => Use::Ordering,
            false if name.starts_with("SortPreservingMergeExec[") => Use::Ordering,
            true if name.starts_with("ExternalSorter[") => Use::Rows,
            true => Use::Shared,
            false if name.starts_with("ExternalSorterMerge[") => Use::Merging,
            false => Use::Fixed,
        }
    }

    fn has_share(self) -> bool {
        matches!(self, Use::Rows | Use::Shared)
    }
}

impl Taken {
    fn add(&mut self, used: Use, bytes: usize) {
        self.all = self.all.saturating_add(bytes);
        if used == Use::Fixed {
            self.fixed = self.fixed.saturating_add(bytes);
        }
    }
}

impl Memory {
    /// `limit` in bytes.
    pub fn new(limit: usize) -> Self {
        Memory { limit, taken: Mutex::new(Taken::default()) }
    }

    /// Whether a consumer that has `has` bytes may have `more`.
    fn grants(&self, taken: &Taken, used: Use, has: usize, more: usize) -> bool {
        let wanted = has.saturating_add(more);
        let share = (self.limit.saturating_sub(taken.fixed) / taken.sharers.max(1)).max(LEAST);
        let is_left = || taken.all.saturating_add(more) <= self.limit;
        match used {
            Use::Passing => wanted <= (share / 4).max(LEAST),
            Use::Ordering => true,
            Use::Rows => has == 0 || wanted <= share / 5 * 2,
            // The merge may also use the part for the rows: they have spilled by then.
            Use::Merging => has == 0 || wanted <= share || is_left(),
            Use::Shared => has == 0 || wanted <= share,
            Use::Fixed => wanted <= LEAST || is_left(),
        }
    }

    fn refused(&self, name: &str, more: usize, has: usize, taken: usize) -> DataFusionError {
        let [more, has, taken, limit] = [more, has, taken, self.limit].map(human_readable_size);
        // Operators react to this kind of error by spilling.
        DataFusionError::ResourcesExhausted(format!(
            "{name} has {has} and asks for {more} more; \
             memory_limit is {limit} for all queries, of which {taken} are in use"
        ))
    }
}

impl MemoryPool for Memory {
    fn name(&self) -> &str {
        "memory of queries"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if Use::of(consumer).has_share() {
            lock(&self.taken).sharers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if Use::of(consumer).has_share() {
            let mut taken = lock(&self.taken);
            taken.sharers = taken.sharers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        lock(&self.taken).add(Use::of(reservation.consumer()), additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(shrink);
        if Use::of(reservation.consumer()) == Use::Fixed {
            taken.fixed = taken.fixed.saturating_sub(shrink);
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let (used, has) = (Use::of(reservation.consumer()), reservation.size());
        let mut taken = lock(&self.taken);
        if self.grants(&taken, used, has, additional) {
            taken.add(used, additional);
            return Ok(());
        }
        Err(self.refused(reservation.consumer().name(), additional, has, taken.all))
    }

    fn reserved(&self) -> usize {
        lock(&self.taken).all
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (limit: {})", self.name(), human_readable_size(self.limit))
    }
}
