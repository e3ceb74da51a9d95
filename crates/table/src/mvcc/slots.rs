//! Running transactions: the snapshot of each, and the log position since which each writer has
//! been writing.

use std::sync::atomic::AtomicUsize as StdAtomicUsize;

use cairn_pool::Lsn;
use cairn_vfs::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use cairn_vfs::sync::{Arc, CacheAligned};

use crate::{Error, Result};

/// Maximum number of simultaneous snapshots, and of simultaneous writers.
const SLOTS: usize = 2048;
const FREE: u64 = u64::MAX;
/// The value of a slot that is taken but not yet set. As the least value it holds everything back.
const TAKEN: u64 = 0;
/// The last commit that the snapshots of a new database see.
const FIRST_CSN: u64 = 1;
/// The position of a snapshot without a slot. No slot has this number, so setting it does nothing.
const NO_SLOT: usize = usize::MAX;
const _: () = assert!(NO_SLOT > SLOTS);
/// A slot that is being taken holds everything back, and a free one nothing.
const _: () = assert!(TAKEN < FIRST_CSN && FIRST_CSN < FREE);

static THREADS: StdAtomicUsize = StdAtomicUsize::new(0);

thread_local! {
    /// A number of the thread, so that threads do not all try the same slot first.
    static HINT: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug)]
struct Table {
    values: Box<[CacheAligned<AtomicU64>]>,
    /// Slots from here on were never used.
    used: AtomicUsize,
}

impl Table {
    fn new() -> Self {
        let values = (0..SLOTS).map(|_| CacheAligned(AtomicU64::new(FREE))).collect();
        Table { values, used: AtomicUsize::new(0) }
    }

    /// Takes a slot: usually the one that this thread had before, which is in its CPU cache.
    fn take(&self) -> Option<usize> {
        let hint = HINT.with(|hint| *hint);
        let used = self.used.load(Ordering::Relaxed);
        let take = |at: usize| {
            let slot = self.values.get(at)?;
            let is_free = slot.load(Ordering::Relaxed) == FREE;
            (is_free && slot.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::Relaxed).is_ok())
                .then_some(at)
        };
        if used > 0
            && let Some(at) = take(hint % used)
        {
            return Some(at);
        }
        let at = (0..SLOTS).find_map(take)?;
        debug_assert!(at < self.values.len(), "slot {at} of {} was taken", self.values.len());
        self.used.fetch_max(at + 1, Ordering::SeqCst);
        Some(at)
    }

    /// Changes the value of a slot that the caller has taken. A thread that sees the value also
    /// sees everything done before. ORDER: later loads may execute before other threads see the
    /// value. A caller that must prevent this puts a fence in between.
    fn set(&self, at: usize, value: u64) {
        debug_assert!(at == NO_SLOT || at < self.values.len(), "slot {at} does not exist");
        if let Some(slot) = self.values.get(at) {
            debug_assert!(
                slot.load(Ordering::Relaxed) != FREE,
                "slot {at} is set to {value}, but was not taken"
            );
            slot.store(value, Ordering::Release);
        }
    }

    fn least(&self) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        debug_assert!(used <= self.values.len(), "{used} slots of {} are used", self.values.len());
        self.values.iter().take(used).map(|slot| slot.load(Ordering::SeqCst)).min().unwrap_or(FREE)
    }

    fn count(&self) -> usize {
        let used = self.used.load(Ordering::SeqCst);
        debug_assert!(used <= self.values.len(), "{used} slots of {} are used", self.values.len());
        self.values.iter().take(used).filter(|slot| slot.load(Ordering::SeqCst) != FREE).count()
    }
}

/// All running snapshots and writers.
#[derive(Debug)]
pub(crate) struct Slots {
    /// For each snapshot, the last commit that it sees.
    snapshots: Table,
    /// For each writer, a log position that precedes all of its records.
    writers: Table,
    /// Snapshots taken from now on see commits up to this one.
    last: CacheAligned<AtomicU64>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        // Not 0, which marks a slot that is being taken and holds everything back.
        Slots {
            snapshots: Table::new(),
            writers: Table::new(),
            last: CacheAligned(AtomicU64::new(FIRST_CSN)),
        }
    }

    /// Returns the last commit that a new snapshot sees.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// Makes one more commit visible to new snapshots.
    pub(crate) fn publish(&self, csn: u64) {
        let last = self.last();
        assert!(csn == last + 1, "commit {csn} becomes visible after commit {last}");
        self.last.store(csn, Ordering::SeqCst);
    }

    /// Returns the last commit that all snapshots see, including those being taken.
    pub(crate) fn horizon(&self) -> u64 {
        // ORDER: this load comes first. A snapshot that the scan of the slots misses reads `last`
        // again after it has set its slot, and gets a value that is not less.
        let last = self.last();
        fence(Ordering::SeqCst);
        debug_assert!(last >= FIRST_CSN, "the last visible commit is {last}");
        self.snapshots.least().min(last)
    }

    /// Returns a log position that precedes the records of all running writers, or `None` if there
    /// are none.
    pub(crate) fn oldest_writer(&self) -> Option<Lsn> {
        let least = self.writers.least();
        (least != FREE).then_some(Lsn(least))
    }

    /// Returns the number of snapshots.
    pub(crate) fn snapshots(&self) -> usize {
        self.snapshots.count()
    }
}

/// A snapshot: it sees all commits up to one, and nothing else. It holds back the horizon from the
/// moment it is taken until it is released.
#[derive(Debug)]
pub(crate) struct Snapshot {
    slots: Arc<Slots>,
    /// [`NO_SLOT`] once released.
    at: usize,
    /// The last commit that the snapshot sees.
    pub(crate) csn: u64,
    /// Pages whose last change is at or before this position contain only changes that the snapshot
    /// sees.
    pub(crate) all_visible: Lsn,
}

impl Snapshot {
    /// Creates a snapshot that sees nothing yet and must not be read with.
    pub(crate) fn unset(slots: &Arc<Slots>) -> Snapshot {
        Snapshot { slots: Arc::clone(slots), at: NO_SLOT, csn: 0, all_visible: Lsn::default() }
    }

    /// Takes the snapshot again and releases the previous one. `end` returns the end of the log.
    /// Cost: some ten nanoseconds, and one per running writer. Errors: [`Error::Busy`].
    pub(crate) fn take(&mut self, end: impl FnOnce() -> Lsn) -> Result<()> {
        self.release();
        debug_assert!(self.at == NO_SLOT, "a snapshot holds slot {} after its release", self.at);
        let slots = &*self.slots;
        let at = slots.snapshots.take().ok_or(Error::Busy { what: "snapshots", most: SLOTS })?;
        self.at = at;
        // ORDER: load the end of the log before the writers, and both before the commits; these
        // loads are not reordered. A writer that the scan misses appends after that end, because a
        // thread that sees its record in the log sees its slot. A writer that has ended by then is
        // among the commits.
        let end = end();
        self.all_visible = slots.oldest_writer().map_or(end, |oldest| oldest.min(end));
        let mut csn = slots.last();
        debug_assert!(csn >= self.csn, "a snapshot of commit {} is followed by one of {csn}", self.csn);
        loop {
            slots.snapshots.set(at, csn);
            fence(Ordering::SeqCst);
            let again = slots.last();
            if again == csn {
                break;
            }
            debug_assert!(again > csn, "the last visible commit went from {csn} back to {again}");
            csn = again;
        }
        debug_assert!((FIRST_CSN..FREE).contains(&csn), "a snapshot sees commit {csn}");
        self.csn = csn;
        Ok(())
    }

    /// Releases the snapshot. It holds nothing back then, and must not be read with until taken
    /// again.
    pub(crate) fn release(&mut self) {
        self.slots.snapshots.set(self.at, FREE);
        self.at = NO_SLOT;
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.release();
    }
}

/// Registers a transaction as a writer.
#[derive(Debug)]
pub(crate) struct WriterSlot {
    slots: Arc<Slots>,
    at: usize,
}

impl WriterSlot {
    /// Registers a writer, before its first record. Errors: [`Error::Busy`].
    pub(crate) fn take(slots: &Arc<Slots>, end: impl FnOnce() -> Lsn) -> Result<WriterSlot> {
        let at = slots.writers.take().ok_or(Error::Busy { what: "transactions that write", most: SLOTS })?;
        let end = end().0;
        debug_assert!(end != FREE, "the end of the log is the value of a free slot");
        slots.writers.set(at, end);
        fence(Ordering::SeqCst);
        Ok(WriterSlot { slots: Arc::clone(slots), at })
    }
}

impl Drop for WriterSlot {
    fn drop(&mut self) {
        self.slots.writers.set(self.at, FREE);
    }
}
