//! How queries share the memory that they may take.
//!
//! DataFusion's `FairSpillPool` gives whoever can go to the disk an equal share, and what is left
//! to the others, first come, first served. A sort is both: its rows go to the disk, but what it
//! merges them with is among the others, and comes last. Then the rows have everything, and merging
//! them ends with an error, though there is a disk for it. Here a sort's rows take less than half
//! of its share, the rest is for merging, and whoever has nothing yet gets what it asks for: it has
//! a batch in its hands already, which is not smaller for being refused.
//!
//! ```text
//!   limit ─┬─ what cannot go to the disk, as a join's hash table: as much as is left; more is an error
//!          ├─ batches on their way between threads: a quarter of such a share each, what is more goes to the disk
//!          └─ the rest, in equal shares of those who can, 8 MiB each at least ─┬─ a sort: rows (2/5) ◄─► merging the rest
//!                                                                             └─ groups, sorted joins
//! ```
//!
//! So the limit is where operators go to the disk, not what the process has at most: who was alone
//! keeps its share when others come, and each operator of a small limit may have 8 MiB.

use std::fmt;

use cairn_vfs::sync::{Mutex, lock};
use datafusion::common::human_readable_size;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// An operator may have this much, in bytes, whatever the limit is: two runs cannot be merged
/// without two batches of each.
const LEAST: usize = 8 << 20;

/// Memory that is shared by all queries of a database.
#[derive(Debug)]
pub(super) struct Memory {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    /// How many share what can go to the disk.
    sharers: usize,
    /// Bytes that cannot go to the disk, and stay.
    fixed: usize,
    /// All bytes.
    all: usize,
}

/// What memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A sort's rows.
    Rows,
    /// What a sort merges.
    Merging,
    /// Batches that go from thread to thread.
    Passing,
    /// What is put in order as it comes: a batch of each.
    Ordering,
    /// Whatever else can go to the disk.
    Shared,
    /// What cannot.
    Fixed,
}

impl Use {
    /// DataFusion says no more of it than a name.
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

    /// Whether one that has so much may have more.
    fn grants(&self, taken: &Taken, used: Use, has: usize, more: usize) -> bool {
        let wanted = has.saturating_add(more);
        let share = (self.limit.saturating_sub(taken.fixed) / taken.sharers.max(1)).max(LEAST);
        let is_left = || taken.all.saturating_add(more) <= self.limit;
        match used {
            Use::Passing => wanted <= (share / 4).max(LEAST),
            Use::Ordering => true,
            Use::Rows => has == 0 || wanted <= share / 5 * 2,
            // It may have what the rows have not taken yet, too: they are on the disk by then.
            Use::Merging => has == 0 || wanted <= share || is_left(),
            Use::Shared => has == 0 || wanted <= share,
            Use::Fixed => wanted <= LEAST || is_left(),
        }
    }

    fn refused(&self, name: &str, more: usize, has: usize, taken: usize) -> DataFusionError {
        let [more, has, taken, limit] = [more, has, taken, self.limit].map(human_readable_size);
        // Operators look for this kind, and go to the disk.
        DataFusionError::ResourcesExhausted(format!(
            "{name} has {has} and asks for {more} more; of memory_limit, which is {limit} for all queries together, {taken} are taken"
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
