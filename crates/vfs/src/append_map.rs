//! Appending to a file by storing into memory: many threads at once, no system call for each
//! record.
//!
//! A range of the file is allocated on disk and, where the file system can, mapped. One owner, the
//! [`AppendMap`], hands out pieces of it in ascending order; whoever holds a [`Slot`] fills it and
//! commits it, in parallel with the holders of others. What was stored in a shared mapping belongs
//! to the kernel: it outlives the process, as after `write`. It does not outlive the power before
//! [`File::sync_data`].
//!
//! ```text
//!   start            committed                reserved        ready                          end
//!     |  all committed   |  some still filling    |   in memory   |  allocated, not in memory  |
//! ```
//!
//! Committing takes no lock and no read-modify-write: a slot stores its end into its place of a
//! ring, and whoever wants to know how far everything is committed walks the ring. On a file system
//! without mappings (the simulated ones, and those whose allocations do not hold) a slot is memory
//! on the heap, and its commit writes it.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::NonNull;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Line, Mutex, OnceLock, lock};
use crate::{Error, File, Operation, Result, thread};

mod region;

use region::Present;
pub use region::Region;

/// How many slots may be open at once. A power of two; 4 KiB of memory.
const RING: u64 = 512;

/// Zeros are written in pieces of this size where the pages are going to be written back one by
/// one. What is written together the kernel keeps together, and writes back together: a page of a
/// large piece costs the piece.
const SMALL_PIECE_BYTES: usize = 4 << 10;

/// And in pieces of this size where they are not: a page of a large piece costs a fifth to bring
/// in.
const LARGE_PIECE_BYTES: usize = 64 << 10;

/// What [`AppendProgress::prepare`] does about the bytes that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeros {
    /// Leaves them: they read as zeros already, or may be anything.
    Keep,
    /// Overwrites them with zeros. Cheapest to write later without a sync.
    Large,
    /// Overwrites them with zeros, such that a later sync writes back no more than the pages that
    /// were touched, and has no metadata to write once the zeros are on the disk. A sync is to be
    /// expected before the memory is stored into.
    Small,
}

/// The end of a file at which one owner hands out pieces to write. See the [module](self).
///
/// Nobody else may write the range, and nobody may cut the file short while it is mapped: on the
/// real disk that ends the process with `SIGBUS`.
pub struct AppendMap {
    shared: Arc<Held>,
    /// Offset in the file of the next slot.
    next: u64,
    /// Number of the next slot.
    index: u64,
    /// Slots below this number are committed, for sure.
    done: u64,
    /// [`Inner::ready`], as last seen.
    ready: u64,
}

/// What is known of an [`AppendMap`] by everybody: how far it is committed, and how far its memory
/// is there.
#[derive(Clone)]
pub struct AppendProgress {
    shared: Arc<Held>,
}

/// A piece of a file that its holder alone may write. Dropped without a commit, it fails the whole
/// [`AppendMap`]: what its bytes are then is unknown, and later slots stand behind them.
pub struct Slot {
    inner: NonNull<Inner>,
    memory: Memory,
    index: u64,
    /// Offset in the file of its first byte.
    start: u64,
    /// And behind its last.
    end: u64,
}

enum Memory {
    Mapped { start: NonNull<u8>, len: usize },
    Heap(Box<[u8]>),
}

/// Keeps [`Inner`] until nobody needs it.
struct Held(NonNull<Inner>);

struct Inner {
    file: Arc<dyn File>,
    range: Range<u64>,
    region: Option<Region>,
    /// The first failure. Set before the slot that failed counts as committed.
    failure: OnceLock<Arc<Error>>,
    /// Who is told of each failure.
    listener: OnceLock<Listener>,
    ready: Line<AtomicU64>,
    /// Serialises [`AppendProgress::prepare`]: zeros must never be written where a slot was handed
    /// out. The offset up to which the process has let go of the memory.
    preparing: Mutex<u64>,
    /// Written by the owner only.
    reserved: Line<Reserved>,
    walked: Line<Mutex<Walked>>,
    /// Place `index % RING` holds the end of slot `index` once that is committed, and before that
    /// of an earlier one.
    ring: [AtomicU64; RING as usize],
}

struct Reserved {
    offset: AtomicU64,
    slots: AtomicU64,
}

/// See [`AppendMap::on_failure`].
type Listener = Box<dyn Fn(&Arc<Error>) + Send + Sync>;

/// How far the ring has been walked: slots below `index` are committed, they end at `offset`.
#[derive(Clone, Copy)]
struct Walked {
    index: u64,
    offset: u64,
}

impl AppendMap {
    /// Allocates `range` of `file` on disk, makes the file that long, and maps the range where that
    /// is safe.
    ///
    /// `range.start` must be a multiple of 4096. Nothing can be reserved before
    /// [`AppendProgress::prepare`]. The new length is not durable before a sync. Errors: `Allocate`
    /// or `SetLen` when the disk is full, `Map`.
    pub fn new(file: Arc<dyn File>, range: Range<u64>) -> Result<AppendMap> {
        if range.is_empty() || !range.start.is_multiple_of(4096) {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "the range is empty or begins inside a page");
            return Err(Error::new(Operation::Map, file.path(), source).at(range.start));
        }
        bury(None);
        file.allocate(range.start, range.end - range.start)?;
        if file.len()? < range.end {
            file.set_len(range.end)?;
        }
        let region = file.append_region(range.clone())?;
        if region.as_ref().is_some_and(|region| *region.range() != range) {
            let source = io::Error::other("the file mapped a different range from the requested one");
            return Err(Error::new(Operation::Map, file.path(), source).at(range.start));
        }
        let start = range.start;
        let inner = Box::new(Inner {
            file,
            range,
            region,
            failure: OnceLock::new(),
            listener: OnceLock::new(),
            ready: Line(AtomicU64::new(start)),
            preparing: Mutex::new(start),
            reserved: Line(Reserved { offset: AtomicU64::new(start), slots: AtomicU64::new(0) }),
            walked: Line(Mutex::new(Walked { index: 0, offset: start })),
            ring: std::array::from_fn(|_| AtomicU64::new(0)),
        });
        let shared = Arc::new(Held(NonNull::from(Box::leak(inner))));
        Ok(AppendMap { shared, next: start, index: 0, done: 0, ready: start })
    }

    /// Has `tell` called with the error of each slot that fails, in the thread that it fails in and
    /// before the slot counts as committed: for who must not wait until he asks
    /// [`AppendProgress::failure`]. To be set before there are slots, and once: later ones are not
    /// taken.
    pub fn on_failure(&mut self, tell: impl Fn(&Arc<Error>) + Send + Sync + 'static) {
        _ = self.shared.inner().listener.set(Box::new(tell));
    }

    /// The next `len` bytes, for their holder alone; `None` when fewer are ready, or `len` is 0.
    /// Costs some ten nanoseconds and no system call.
    ///
    /// Waits when 512 slots are open, for the oldest of them.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<Slot> {
        let end = self.next.checked_add(len as u64)?;
        if (end > self.ready && !self.is_ready(end)) || len == 0 {
            return None;
        }
        if self.index - self.done >= RING {
            self.await_place();
        }
        let inner = self.shared.inner();
        let memory = match &inner.region {
            Some(region) => Memory::Mapped { start: region.at(self.next), len },
            None => Memory::Heap(vec![0; len].into_boxed_slice()),
        };
        let slot = Slot { inner: self.shared.0, memory, index: self.index, start: self.next, end };
        self.next = end;
        self.index += 1;
        inner.reserved.0.offset.store(end, Ordering::Release);
        inner.reserved.0.slots.store(self.index, Ordering::Release);
        Some(slot)
    }

    /// The offset in the file of the next slot.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The end of the range.
    pub fn end(&self) -> u64 {
        self.shared.inner().range.end
    }

    /// True when slots are memory of a kernel mapping, false when they are on the heap and written
    /// at their commit.
    pub fn is_mapped(&self) -> bool {
        self.shared.inner().region.is_some()
    }

    /// What others need to know.
    pub fn progress(&self) -> AppendProgress {
        AppendProgress { shared: Arc::clone(&self.shared) }
    }

    #[cold]
    fn is_ready(&mut self, end: u64) -> bool {
        self.ready = self.shared.inner().ready.0.load(Ordering::Acquire);
        end <= self.ready
    }

    /// Returns when the place of the next slot in the ring is free.
    #[cold]
    fn await_place(&mut self) {
        loop {
            self.done = self.shared.inner().walk().index;
            if self.index - self.done < RING {
                return;
            }
            thread::yield_now();
        }
    }
}

impl AppendProgress {
    /// The offset up to which every slot is committed. Slots that failed count: see
    /// [`AppendProgress::failure`], which must be asked after this.
    pub fn committed(&self) -> u64 {
        self.shared.inner().walk().offset
    }

    /// Waits until every slot below `offset`, which must have been handed out, is committed;
    /// returns [`AppendProgress::committed`]. Their holders are filling memory, so it does not
    /// sleep.
    pub fn wait(&self, offset: u64) -> u64 {
        let mut spins = 0;
        loop {
            let committed = self.committed();
            if committed >= offset {
                return committed;
            }
            spins += 1;
            if spins < 64 {
                thread::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }

    /// The offset up to which slots have been handed out.
    pub fn reserved(&self) -> u64 {
        self.shared.inner().reserved.0.offset.load(Ordering::Acquire)
    }

    /// The offset up to which memory is there to hand out.
    pub fn ready(&self) -> u64 {
        self.shared.inner().ready.0.load(Ordering::Acquire)
    }

    /// Why a slot failed: its write did, or it was dropped without a commit. The bytes from there
    /// on are unknown.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.shared.inner().failure.get().cloned()
    }

    /// Makes memory ready up to `to` (rounded up to 4096, cut to the range), so that stores there
    /// read nothing from the disk and allocate nothing, and but for [`Zeros::Small`] take no page
    /// fault. Does nothing when it is ready already; concurrent calls wait for each other.
    ///
    /// Costs 0.3 to 3 microseconds for each 4 KiB. Errors: of writing the zeros; `Map` when pages
    /// cannot be had, which a store would meet as a signal.
    pub fn prepare(&self, to: u64, zeros: Zeros) -> Result<()> {
        let inner = self.shared.inner();
        let to = to.checked_next_multiple_of(4096).unwrap_or(u64::MAX).min(inner.range.end);
        let _alone = lock(&inner.preparing);
        let from = inner.ready.0.load(Ordering::Acquire);
        if from >= to {
            return Ok(());
        }
        inner.fill(from..to, zeros)?;
        if let Some(region) = &inner.region {
            // What is synced before it is stored into would be made read-only again, page by page,
            // with an interruption of all processors for each.
            let present = if zeros == Zeros::Small { Present::Readable } else { Present::Writable };
            region
                .populate(from..to, present)
                .map_err(|source| Error::new(Operation::Map, inner.file.path(), source).at(from))?;
        }
        inner.ready.0.store(to, Ordering::Release);
        Ok(())
    }

    /// Takes what is committed out of the process's resident memory, if that is `bytes_min` or
    /// more, whole pages only. It is the kernel's to keep and to write back, as after `write`. Does
    /// nothing while somebody else prepares memory or lets go of it.
    ///
    /// Costs a system call and one interruption of the other processors for all pages; a sync
    /// interrupts them for each page that is still mapped. Errors: `Map`.
    pub fn let_go(&self, bytes_min: u64) -> Result<()> {
        let inner = self.shared.inner();
        let Some(region) = &inner.region else { return Ok(()) };
        let Ok(mut gone) = inner.preparing.try_lock() else { return Ok(()) };
        // The last page may have the beginning of a slot that is still being filled.
        let to = region.page_start(self.committed());
        if to < gone.saturating_add(bytes_min.max(1)) {
            return Ok(());
        }
        region
            .let_go(*gone..to)
            .map_err(|source| Error::new(Operation::Map, inner.file.path(), source).at(*gone))?;
        *gone = to;
        Ok(())
    }
}

impl Slot {
    /// The bytes. Zeros, but may be anything if they were prepared with [`Zeros::Keep`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            // SAFETY: the region is mapped, writable and at least this long (`reserve` checked that
            // the slot ends below `ready`), and stays so until this slot is marked as committed,
            // which ends its life. Each byte was handed out once, to this slot, which is borrowed
            // uniquely.
            Memory::Mapped { start, len } => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), *len) },
            Memory::Heap(bytes) => bytes,
        }
    }

    /// The offset in the file of the first byte.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The offset in the file behind the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Gives the bytes to the kernel. Infallible in a mapping; otherwise errors as
    /// [`File::write_all_at`], and the whole [`AppendMap`] has failed.
    #[inline]
    pub fn commit(self) -> std::result::Result<(), Arc<Error>> {
        // Marked here, instead of by the destructor.
        let mut this = ManuallyDrop::new(self);
        let result = match std::mem::replace(&mut this.memory, Memory::Heap(Box::default())) {
            Memory::Mapped { .. } => Ok(()),
            Memory::Heap(bytes) => this.write(&bytes),
        };
        this.mark_done();
        result
    }

    #[cold]
    fn write(&self, bytes: &[u8]) -> std::result::Result<(), Arc<Error>> {
        let inner = self.inner();
        inner.file.write_all_at(bytes, self.start).map_err(|error| inner.fail(error))
    }

    fn inner(&self) -> &Inner {
        // SAFETY: `Held` does not free what has slots that are not marked, and this one is not:
        // marking is the last that it does.
        unsafe { self.inner.as_ref() }
    }

    /// Marks the slot as committed, after which `inner` may be gone.
    #[inline]
    fn mark_done(&self) {
        let place = &self.inner().ring[(self.index % RING) as usize];
        // ORDER: release, so that whoever sees the mark sees the bytes and the failure.
        place.store(self.end, Ordering::Release);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let source = io::Error::other("a range that was reserved here was never written");
        let inner = self.inner();
        inner.fail(Error::new(Operation::Write, inner.file.path(), source).at(self.start));
        self.mark_done();
    }
}

// SAFETY: a slot is the only way to its bytes, and what it shares with others are atomics and
// locks.
unsafe impl Send for Slot {}
// SAFETY: shared access to a slot reads its offsets only.
unsafe impl Sync for Slot {}

impl Inner {
    fn fail(&self, error: Error) -> Arc<Error> {
        let error = Arc::new(error);
        _ = self.failure.set(Arc::clone(&error));
        if let Some(tell) = self.listener.get() {
            tell(&error);
        }
        error
    }

    /// Walks the ring as far as slots are committed.
    fn walk(&self) -> Walked {
        let mut walked = lock(&self.walked.0);
        let slots = self.reserved.0.slots.load(Ordering::Acquire);
        while walked.index < slots {
            // What stands here is the end of this slot, or that of an earlier one, which lies at or
            // below `offset`: the owner hands out slot `index + RING` only after this walk has
            // passed `index`.
            let end = self.ring[(walked.index % RING) as usize].load(Ordering::Acquire);
            if end <= walked.offset {
                break;
            }
            *walked = Walked { index: walked.index + 1, offset: end };
        }
        *walked
    }

    fn has_open_slots(&self) -> bool {
        self.walk().index < self.reserved.0.slots.load(Ordering::Acquire)
    }

    /// Writes zeros to a range of which no slot was handed out.
    fn fill(&self, range: Range<u64>, zeros: Zeros) -> Result<()> {
        static ZEROS: [u8; LARGE_PIECE_BYTES] = [0; LARGE_PIECE_BYTES];
        let piece = match (zeros, &self.region) {
            (Zeros::Keep, _) => return Ok(()),
            (Zeros::Small, Some(_)) => SMALL_PIECE_BYTES,
            _ => LARGE_PIECE_BYTES,
        };
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(piece as u64);
            self.file.write_all_at(&ZEROS[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

impl Held {
    fn inner(&self) -> &Inner {
        // SAFETY: freed by the destructor of this, or after it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        bury(Some(Grave(self.0)));
    }
}

// SAFETY: `Inner` is `Sync` by its fields, and freed by whoever comes last.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

/// An [`Inner`] without owner. It may have open slots, which hold no count, so that commits need
/// not change one.
struct Grave(NonNull<Inner>);

// SAFETY: as `Held`.
unsafe impl Send for Grave {}

/// Frees what has no open slots; keeps the rest, `grave` included, until the next call.
fn bury(grave: Option<Grave>) {
    // Never held while anything else is done, other locks taken among it; and so of the standard
    // library always.
    static GRAVES: std::sync::Mutex<Vec<Grave>> = std::sync::Mutex::new(Vec::new());
    let all = || GRAVES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut graves = std::mem::take(&mut *all());
    graves.extend(grave);
    // SAFETY: what is in a list was not freed, and is in one list only.
    let is_open = |grave: &Grave| unsafe { grave.0.as_ref() }.has_open_slots();
    let (open, idle): (Vec<Grave>, Vec<Grave>) = graves.into_iter().partition(is_open);
    for grave in idle {
        // SAFETY: made by `Box::leak`; owner and observers are gone (`Held` was dropped), every
        // slot has marked itself, and this list alone has it.
        drop(unsafe { Box::from_raw(grave.0.as_ptr()) });
    }
    all().extend(open);
}

impl fmt::Debug for AppendMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.shared.inner().file.path();
        f.debug_struct("AppendMap").field("file", &file).field("next", &self.next).finish_non_exhaustive()
    }
}

impl fmt::Debug for AppendProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.shared.inner().file.path();
        f.debug_struct("AppendProgress").field("file", &file).finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("start", &self.start).field("end", &self.end).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
