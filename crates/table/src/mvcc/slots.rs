//! Who runs: what each transaction sees, and since when those that write have been writing.

use std::sync::atomic::AtomicUsize as StdAtomicUsize;

use cairn_pool::Lsn;
use cairn_vfs::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use cairn_vfs::sync::{Arc, Line};

use crate::{Error, Result};

/// As many snapshots and as many writers there can be at the same time.
const SLOTS: usize = 2048;
const FREE: u64 = u64::MAX;
/// Of a slot that somebody has and that says nothing yet: holds everything back, as the smallest
/// value.
const TAKEN: u64 = 0;
/// The place of a snapshot that has no slot: there is none, so setting it does nothing.
const NOWHERE: usize = usize::MAX;

static THREADS: StdAtomicUsize = StdAtomicUsize::new(0);

thread_local! {
    /// A number of the thread, so that threads do not all try the same slot first.
    static HINT: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

#[derive(Debug)]
struct Table {
    values: Box<[Line<AtomicU64>]>,
    /// Slots from here on were never used.
    used: AtomicUsize,
}

impl Table {
    fn new() -> Self {
        let values = (0..SLOTS).map(|_| Line(AtomicU64::new(FREE))).collect();
        Table { values, used: AtomicUsize::new(0) }
    }

    /// Takes a slot: the one that this thread had before, as a rule, which is in its caches.
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
        self.used.fetch_max(at + 1, Ordering::SeqCst);
        Some(at)
    }

    /// Says something else in a slot that one has. Whoever sees it sees what was done before.
    /// ORDER: what is read afterwards may be read before others see it; whoever must not has a
    /// fence between.
    fn set(&self, at: usize, value: u64) {
        if let Some(slot) = self.values.get(at) {
            slot.store(value, Ordering::Release);
        }
    }

    fn least(&self) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        self.values.iter().take(used).map(|slot| slot.load(Ordering::SeqCst)).min().unwrap_or(FREE)
    }

    fn count(&self) -> usize {
        let used = self.used.load(Ordering::SeqCst);
        self.values.iter().take(used).filter(|slot| slot.load(Ordering::SeqCst) != FREE).count()
    }
}

/// All that run.
#[derive(Debug)]
pub(crate) struct Slots {
    /// What each snapshot sees: commits up to this.
    snapshots: Table,
    /// For each writer, a position of the log that all of its records are behind.
    writers: Table,
    /// Commits up to this are visible to snapshots taken from now on.
    last: Line<AtomicU64>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        // From 1: a slot that is being taken says 0, and holds everything back.
        Slots { snapshots: Table::new(), writers: Table::new(), last: Line(AtomicU64::new(1)) }
    }

    /// The last commit that everybody sees who comes now.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::SeqCst)
    }

    /// Lets everybody who comes from now on see one commit more.
    pub(crate) fn publish(&self, csn: u64) {
        self.last.store(csn, Ordering::SeqCst);
    }

    /// Commits up to this are seen by all snapshots, those that are being taken included.
    pub(crate) fn horizon(&self) -> u64 {
        // ORDER: first this. Whoever is missed in the look at the slots reads `last` again after it
        // has set its own, and that is not less.
        let last = self.last();
        fence(Ordering::SeqCst);
        self.snapshots.least().min(last)
    }

    /// The position of the log that the records of all running writers are behind; `None` when
    /// nobody writes.
    pub(crate) fn oldest_writer(&self) -> Option<Lsn> {
        let least = self.writers.least();
        (least != FREE).then_some(Lsn(least))
    }

    /// How many snapshots there are.
    pub(crate) fn snapshots(&self) -> usize {
        self.snapshots.count()
    }
}

/// What somebody sees: the first commits, and nothing else. Holds back the horizon from its look on
/// until it is let go of.
#[derive(Debug)]
pub(crate) struct Snapshot {
    slots: Arc<Slots>,
    /// [`NOWHERE`] when it was let go of.
    at: usize,
    /// Commits up to this are seen.
    pub(crate) csn: u64,
    /// Pages whose last change is not behind this hold nothing but changes that are seen.
    pub(crate) all_visible: Lsn,
}

impl Snapshot {
    /// One that sees nothing yet, and is not to be read with.
    pub(crate) fn none(slots: &Arc<Slots>) -> Snapshot {
        Snapshot { slots: Arc::clone(slots), at: NOWHERE, csn: 0, all_visible: Lsn::default() }
    }

    /// Looks. `end` is the log's end. What it saw before is let go of. Cost: some ten nanoseconds,
    /// and one for each writer that runs. Errors: [`Error::Busy`].
    pub(crate) fn take(&mut self, end: impl FnOnce() -> Lsn) -> Result<()> {
        self.let_go();
        let slots = &*self.slots;
        let at = slots.snapshots.take().ok_or(Error::Busy { what: "snapshots", most: SLOTS })?;
        self.at = at;
        // ORDER: the log's end before the look at the writers, and both before the commits; loads
        // stay in their order by themselves. A writer that the look misses appends behind the end,
        // since whoever sees its record in the log sees its slot; one that has ended by then is
        // among the commits.
        let end = end();
        self.all_visible = slots.oldest_writer().map_or(end, |oldest| oldest.min(end));
        let mut csn = slots.last();
        loop {
            slots.snapshots.set(at, csn);
            fence(Ordering::SeqCst);
            let again = slots.last();
            if again == csn {
                break;
            }
            csn = again;
        }
        self.csn = csn;
        Ok(())
    }

    /// Holds nothing back any more, and is not to be read with until it looks again.
    pub(crate) fn let_go(&mut self) {
        self.slots.snapshots.set(self.at, FREE);
        self.at = NOWHERE;
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Says that a transaction writes.
#[derive(Debug)]
pub(crate) struct WriterSlot {
    slots: Arc<Slots>,
    at: usize,
}

impl WriterSlot {
    /// Says so before the first record. Errors: [`Error::Busy`].
    pub(crate) fn take(slots: &Arc<Slots>, end: impl FnOnce() -> Lsn) -> Result<WriterSlot> {
        let at = slots.writers.take().ok_or(Error::Busy { what: "transactions that write", most: SLOTS })?;
        slots.writers.set(at, end().0);
        fence(Ordering::SeqCst);
        Ok(WriterSlot { slots: Arc::clone(slots), at })
    }
}

impl Drop for WriterSlot {
    fn drop(&mut self) {
        self.slots.writers.set(self.at, FREE);
    }
}
