//! Appends to a file by storing into memory, from many threads at once and without a system call
//! per record.
//!
//! A range of the file is allocated on disk and, where the file system allows it, mapped. A single
//! owner, the [`AppendMap`], hands out [`Slot`]s in ascending order of offset. Holders fill and
//! commit their slots in parallel. Bytes stored in a shared mapping are in the page cache: like
//! bytes passed to `write`, they survive a crash of the process. They survive a power loss only
//! after [`File::sync_data`].
//!
//! ```text
//!   start            committed                reserved        ready                          end
//!     |  all committed   |  some still filling    |   in memory   |  allocated, not in memory  |
//! ```
//!
//! Committing takes no lock and needs no read-modify-write. A slot stores its end offset into its
//! place of a ring, and a reader that needs the committed offset walks the ring. On file systems
//! without mappings (the simulated ones, and those whose allocations do not hold), a slot is a heap
//! buffer, and its commit writes the buffer to the file.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::NonNull;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, CacheAligned, Mutex, OnceLock, lock};
use crate::{Error, File, Operation, Result, thread};

mod region;

use region::Present;
pub use region::Region;

/// The maximum number of open slots. A power of two. The ring takes 4 KiB of memory.
const RING: u64 = 512;
const _: () = assert!(RING.is_power_of_two());
const _: () = assert!(RING as usize * size_of::<u64>() == 4 << 10);

/// Zeros are written in pieces of this size where pages are going to be written back one by one.
/// The kernel keeps each write together as a unit and writes the whole unit back for one dirty
/// page, so larger pieces would cost more.
const SMALL_PIECE_BYTES: usize = 4 << 10;

/// The piece size where pages are not written back one by one. Faulting in a page of a large piece
/// costs a fifth as much.
const LARGE_PIECE_BYTES: usize = 64 << 10;
const _: () = assert!(LARGE_PIECE_BYTES.is_multiple_of(SMALL_PIECE_BYTES));
const _: () = assert!(SMALL_PIECE_BYTES.is_multiple_of(4096));

/// How [`AppendProgress::prepare`] treats the existing bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeros {
    /// Leaves them, because they read as zeros already or their content does not matter.
    Keep,
    /// Overwrites them with zeros in large pieces. Later stores that are not synced are cheapest in
    /// this mode.
    Large,
    /// Overwrites them with zeros in small pieces. A later sync then writes back only the pages
    /// that were touched, and writes no metadata once the zeros are on disk. Expects a sync before
    /// the memory is stored into.
    Small,
}

/// The append end of a file, from which one owner hands out slots. See the [module](self).
///
/// Nothing else may write to the range, and the file must not be truncated while it is mapped: on
/// the real disk, that kills the process with `SIGBUS`.
pub struct AppendMap {
    shared: Arc<SharedInner>,
    /// File offset of the next slot.
    next: u64,
    /// Number of the next slot.
    index: u64,
    /// Slots below this number are known to be committed.
    done: u64,
    /// The last value seen of [`Inner::ready`].
    ready: u64,
}

/// A shared view of an [`AppendMap`]: how far it is committed, and how much memory is ready.
#[derive(Clone)]
pub struct AppendProgress {
    shared: Arc<SharedInner>,
}

/// A piece of the file that only its holder may write. Dropping a slot without committing it fails
/// the whole [`AppendMap`], because its bytes are then unknown and later slots come after it.
pub struct Slot {
    inner: NonNull<Inner>,
    memory: Memory,
    index: u64,
    /// File offset of the first byte.
    start: u64,
    /// File offset past the last byte.
    end: u64,
}

enum Memory {
    Mapped { start: NonNull<u8>, len: usize },
    Heap(Box<[u8]>),
}

/// Keeps [`Inner`] alive until its last user is gone.
struct SharedInner(NonNull<Inner>);

struct Inner {
    file: Arc<dyn File>,
    range: Range<u64>,
    region: Option<Region>,
    /// The first failure. Set before the failed slot counts as committed.
    failure: OnceLock<Arc<Error>>,
    /// Called with each failure.
    listener: OnceLock<Listener>,
    ready: CacheAligned<AtomicU64>,
    /// Serialises [`AppendProgress::prepare`], which must never write zeros over a slot that was
    /// handed out. The value is the offset up to which memory was released by
    /// [`AppendProgress::release_memory`].
    preparing: Mutex<u64>,
    /// Written by the owner only.
    reserved: CacheAligned<Reserved>,
    walked: CacheAligned<Mutex<Walked>>,
    /// Entry `index % RING` holds the end of slot `index` once that slot is committed. Before that
    /// it holds the end of an earlier slot.
    ring: [AtomicU64; RING as usize],
}

struct Reserved {
    offset: AtomicU64,
    slots: AtomicU64,
}

/// See [`AppendMap::on_failure`].
type Listener = Box<dyn Fn(&Arc<Error>) + Send + Sync>;

/// How far the ring has been walked: all slots below `index` are committed, and they end at
/// `offset`.
#[derive(Clone, Copy)]
struct Walked {
    index: u64,
    offset: u64,
}

impl AppendMap {
    /// Allocates `range` of `file` on disk, extends the file to that length, and maps the range
    /// where that is safe.
    ///
    /// `range.start` must be a multiple of 4096. No slot can be reserved before
    /// [`AppendProgress::prepare`]. The new length is not durable before a sync. Errors: `Allocate`
    /// or `SetLen` when the disk is full, `Map`.
    pub fn new(file: Arc<dyn File>, range: Range<u64>) -> Result<AppendMap> {
        if range.is_empty() || !range.start.is_multiple_of(4096) {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "the range is empty or begins inside a page");
            return Err(Error::new(Operation::Map, file.path(), source).at(range.start));
        }
        free_orphans(None);
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
            ready: CacheAligned(AtomicU64::new(start)),
            preparing: Mutex::new(start),
            reserved: CacheAligned(Reserved { offset: AtomicU64::new(start), slots: AtomicU64::new(0) }),
            walked: CacheAligned(Mutex::new(Walked { index: 0, offset: start })),
            ring: std::array::from_fn(|_| AtomicU64::new(0)),
        });
        let shared = Arc::new(SharedInner(NonNull::from(Box::leak(inner))));
        let map = AppendMap { shared, next: start, index: 0, done: 0, ready: start };
        debug_assert!(map.progress().committed() == start && map.progress().reserved() == start);
        Ok(map)
    }

    /// Registers a callback for failed slots. `callback` is called with the error, in the thread
    /// where the slot fails and before the slot counts as committed. It serves callers that must
    /// not wait for their next call of [`AppendProgress::failure`]. Set it once, before the first
    /// slot; later callbacks are ignored.
    pub fn on_failure(&mut self, callback: impl Fn(&Arc<Error>) + Send + Sync + 'static) {
        _ = self.shared.inner().listener.set(Box::new(callback));
    }

    /// Reserves the next `len` bytes for exclusive use. Returns `None` when fewer bytes are ready
    /// or `len` is 0. Costs about ten nanoseconds and no system call.
    ///
    /// When 512 slots are open, waits for the oldest of them.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<Slot> {
        let end = self.next.checked_add(len as u64)?;
        if (end > self.ready && !self.is_ready(end)) || len == 0 {
            return None;
        }
        if self.index - self.done >= RING {
            self.await_place();
        }
        debug_assert!(self.index - self.done < RING, "slot {} takes an open slot's place", self.index);
        debug_assert!(
            end <= self.ready && self.ready <= self.end(),
            "{end} is not ready, only {}",
            self.ready
        );
        let inner = self.shared.inner();
        debug_assert!(
            inner.reserved.0.offset.load(Ordering::Relaxed) == self.next
                && inner.reserved.0.slots.load(Ordering::Relaxed) == self.index,
            "someone else has handed out slot {}",
            self.index
        );
        let memory = match &inner.region {
            Some(region) => Memory::Mapped { start: region.at(self.next), len },
            None => Memory::Heap(vec![0; len].into_boxed_slice()),
        };
        let slot = Slot { inner: self.shared.0, memory, index: self.index, start: self.next, end };
        debug_assert!(slot.end > slot.start && slot.end - slot.start == len as u64);
        self.next = end;
        self.index += 1;
        inner.reserved.0.offset.store(end, Ordering::Release);
        inner.reserved.0.slots.store(self.index, Ordering::Release);
        Some(slot)
    }

    /// Returns the file offset of the next slot.
    pub fn position(&self) -> u64 {
        debug_assert!(self.next <= self.ready, "{} was handed out, but {} is ready", self.next, self.ready);
        self.next
    }

    /// Returns the end of the range.
    pub fn end(&self) -> u64 {
        self.shared.inner().range.end
    }

    /// Returns true when slots lie in a kernel mapping, and false when they are heap buffers that
    /// are written at commit.
    pub fn is_mapped(&self) -> bool {
        self.shared.inner().region.is_some()
    }

    /// Returns a handle with which other threads follow the progress.
    pub fn progress(&self) -> AppendProgress {
        AppendProgress { shared: Arc::clone(&self.shared) }
    }

    #[cold]
    fn is_ready(&mut self, end: u64) -> bool {
        let before = self.ready;
        self.ready = self.shared.inner().ready.0.load(Ordering::Acquire);
        debug_assert!(
            before <= self.ready,
            "memory that was ready up to {before} is so up to {}",
            self.ready
        );
        end <= self.ready
    }

    /// Waits until the next slot's place in the ring is free.
    #[cold]
    fn await_place(&mut self) {
        loop {
            self.done = self.shared.inner().walk().index;
            debug_assert!(self.done <= self.index, "{} slots are committed of {}", self.done, self.index);
            if self.index - self.done < RING {
                return;
            }
            thread::yield_now();
        }
    }
}

impl AppendProgress {
    /// Returns the offset up to which every slot is committed. Failed slots count as committed, so
    /// callers must check [`AppendProgress::failure`] after this call.
    pub fn committed(&self) -> u64 {
        self.shared.inner().walk().offset
    }

    /// Waits until every slot below `offset` is committed, and returns
    /// [`AppendProgress::committed`]. `offset` must have been handed out. Spins and yields instead
    /// of sleeping, since the holders only fill memory.
    pub fn wait(&self, offset: u64) -> u64 {
        debug_assert!(offset <= self.reserved(), "{offset} was not handed out, only {}", self.reserved());
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

    /// Returns the offset up to which slots have been handed out.
    pub fn reserved(&self) -> u64 {
        let inner = self.shared.inner();
        let reserved = inner.reserved.0.offset.load(Ordering::Acquire);
        debug_assert!(
            inner.range.start <= reserved && reserved <= inner.range.end,
            "slots end at {reserved}, outside of {:?}",
            inner.range
        );
        reserved
    }

    /// Returns the offset up to which memory is ready to be handed out.
    pub fn ready(&self) -> u64 {
        let inner = self.shared.inner();
        let ready = inner.ready.0.load(Ordering::Acquire);
        debug_assert!(
            inner.range.start <= ready && ready <= inner.range.end,
            "memory is ready up to {ready}, outside of {:?}",
            inner.range
        );
        ready
    }

    /// Returns the error of the first failed slot: its write failed, or it was dropped without a
    /// commit. The bytes from that slot on are unknown.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.shared.inner().failure.get().cloned()
    }

    /// Makes memory ready up to `to` (rounded up to 4096 and capped at the end of the range).
    /// Stores there then need no disk read and no allocation and, except with [`Zeros::Small`],
    /// take no page fault. Does nothing when the memory is ready already. Concurrent calls wait for
    /// each other.
    ///
    /// Costs 0.3 to 3 microseconds per 4 KiB. Errors: a failed write of the zeros; `Map` when the
    /// kernel cannot provide the pages, which a store would otherwise meet as a signal.
    pub fn prepare(&self, to: u64, zeros: Zeros) -> Result<()> {
        let inner = self.shared.inner();
        let to = to.checked_next_multiple_of(4096).unwrap_or(u64::MAX).min(inner.range.end);
        let _alone = lock(&inner.preparing);
        let from = inner.ready.0.load(Ordering::Acquire);
        if from >= to {
            return Ok(());
        }
        debug_assert!(from.is_multiple_of(4096), "memory is ready up to {from}, inside a page");
        // Zeros must not overwrite a slot.
        let reserved = inner.reserved.0.offset.load(Ordering::Acquire);
        assert!(reserved <= from, "slots up to {reserved} were handed out, but only {from} was ready");
        inner.fill(from..to, zeros)?;
        if let Some(region) = &inner.region {
            // With `Zeros::Small`, a sync comes before the first store. It would make writable
            // pages read-only again, one by one, each with an interrupt to all processors (a TLB
            // shootdown).
            let present = if zeros == Zeros::Small { Present::Readable } else { Present::Writable };
            region
                .populate(from..to, present)
                .map_err(|source| Error::new(Operation::Map, inner.file.path(), source).at(from))?;
        }
        let before = inner.ready.0.swap(to, Ordering::Release);
        debug_assert!(before == from, "two threads prepare memory at once");
        Ok(())
    }

    /// Removes committed whole pages from the process's resident memory when they amount to at
    /// least `bytes_min`. The kernel keeps them and writes them back, as after `write`. Does
    /// nothing while another thread prepares or releases memory.
    ///
    /// Costs one system call and one interrupt of the other processors for all pages together.
    /// Without it, a sync interrupts them once for each page that is still mapped. Errors: `Map`.
    pub fn release_memory(&self, bytes_min: u64) -> Result<()> {
        let inner = self.shared.inner();
        let Some(region) = &inner.region else { return Ok(()) };
        let Ok(mut gone) = inner.preparing.try_lock() else { return Ok(()) };
        // The last page may hold the beginning of a slot that is still being filled.
        let to = region.page_start(self.committed());
        if to < gone.saturating_add(bytes_min.max(1)) {
            return Ok(());
        }
        region
            .release_memory(*gone..to)
            .map_err(|source| Error::new(Operation::Map, inner.file.path(), source).at(*gone))?;
        debug_assert!(to <= inner.ready.0.load(Ordering::Acquire));
        *gone = to;
        Ok(())
    }
}

impl Slot {
    /// Returns the bytes of the slot. They are zeros, or arbitrary if they were prepared with
    /// [`Zeros::Keep`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            // SAFETY: the region is mapped, writable and long enough (`reserve` checked that the
            // slot ends at or below `ready`). It stays mapped until this slot is marked as
            // committed, which ends the slot's life. Each byte was handed out once, to this slot,
            // which is borrowed uniquely.
            Memory::Mapped { start, len } => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), *len) },
            Memory::Heap(bytes) => bytes,
        }
    }

    /// Returns the file offset of the first byte.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the file offset past the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Hands the bytes to the kernel. Infallible in a mapping. Otherwise it fails like
    /// [`File::write_all_at`], and then the whole [`AppendMap`] has failed.
    #[inline]
    pub fn commit(self) -> std::result::Result<(), Arc<Error>> {
        // The slot is marked below; the destructor must not fail it.
        let mut this = ManuallyDrop::new(self);
        debug_assert!(this.bytes_mut().len() as u64 == this.end - this.start);
        debug_assert!(this.inner().range.start <= this.start && this.end <= this.inner().range.end);
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
        debug_assert!(inner.region.is_none(), "a slot of mapped memory is on the heap");
        inner.file.write_all_at(bytes, self.start).map_err(|error| inner.fail(error))
    }

    fn inner(&self) -> &Inner {
        // SAFETY: `Inner` is not freed while it has unmarked slots. This slot is unmarked, since
        // marking is the last access it makes.
        unsafe { self.inner.as_ref() }
    }

    /// Marks the slot as committed. `inner` may be freed at any time after that.
    #[inline]
    fn mark_done(&self) {
        let place = &self.inner().ring[(self.index % RING) as usize];
        debug_assert!(
            self.index < self.inner().reserved.0.slots.load(Ordering::Relaxed),
            "slot {} was never handed out",
            self.index
        );
        // ORDER: release, so that a thread that sees the mark also sees the bytes and the failure.
        debug_assert!(
            place.load(Ordering::Relaxed) <= self.start,
            "slot {} is committed already",
            self.index
        );
        place.store(self.end, Ordering::Release);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let source = io::Error::other("a reserved range was dropped without being written");
        let inner = self.inner();
        inner.fail(Error::new(Operation::Write, inner.file.path(), source).at(self.start));
        self.mark_done();
    }
}

// SAFETY: a slot has exclusive access to its bytes, and shares only atomics and locks with other
// threads.
unsafe impl Send for Slot {}
// SAFETY: shared access to a slot only reads its offsets.
unsafe impl Sync for Slot {}

impl Inner {
    fn fail(&self, error: Error) -> Arc<Error> {
        let error = Arc::new(error);
        _ = self.failure.set(Arc::clone(&error));
        debug_assert!(self.failure.get().is_some());
        if let Some(callback) = self.listener.get() {
            callback(&error);
        }
        error
    }

    /// Walks the ring over all committed slots.
    fn walk(&self) -> Walked {
        let mut walked = lock(&self.walked.0);
        let slots = self.reserved.0.slots.load(Ordering::Acquire);
        while walked.index < slots {
            // This entry holds the end of this slot or of an earlier one. The end of an earlier
            // slot is at most `offset`, because the owner hands out slot `index + RING` only after
            // this walk has passed `index`.
            let end = self.ring[(walked.index % RING) as usize].load(Ordering::Acquire);
            if end <= walked.offset {
                break;
            }
            *walked = Walked { index: walked.index + 1, offset: end };
        }
        debug_assert!(walked.index <= slots, "{} slots are committed of {slots}", walked.index);
        debug_assert!(
            walked.offset >= self.range.start
                && walked.offset <= self.reserved.0.offset.load(Ordering::Relaxed),
            "slots are committed up to {}, which was not handed out",
            walked.offset
        );
        *walked
    }

    fn has_open_slots(&self) -> bool {
        let (done, slots) = (self.walk().index, self.reserved.0.slots.load(Ordering::Acquire));
        debug_assert!(done <= slots && slots - done <= RING, "{done} slots are committed of {slots}");
        done < slots
    }

    /// Writes zeros to a range in which no slot was handed out.
    fn fill(&self, range: Range<u64>, zeros: Zeros) -> Result<()> {
        static ZEROS: [u8; LARGE_PIECE_BYTES] = [0; LARGE_PIECE_BYTES];
        let piece = match (zeros, &self.region) {
            (Zeros::Keep, _) => return Ok(()),
            (Zeros::Small, Some(_)) => SMALL_PIECE_BYTES,
            _ => LARGE_PIECE_BYTES,
        };
        debug_assert!(range.start.is_multiple_of(4096), "zeros from {} on, inside a page", range.start);
        debug_assert!(
            self.range.start <= range.start && range.end <= self.range.end,
            "zeros in {range:?}, outside of {:?}",
            self.range
        );
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(piece as u64);
            self.file.write_all_at(&ZEROS[..len as usize], at)?;
            at += len;
        }
        debug_assert!(at == range.end);
        Ok(())
    }
}

impl SharedInner {
    fn inner(&self) -> &Inner {
        // SAFETY: `Inner` is freed in or after the destructor of `self`.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedInner {
    fn drop(&mut self) {
        free_orphans(Some(Orphan(self.0)));
    }
}

// SAFETY: `Inner` is `Sync` by its fields, and its last user frees it.
unsafe impl Send for SharedInner {}
// SAFETY: as above.
unsafe impl Sync for SharedInner {}

/// An [`Inner`] whose owner is gone. It may still have open slots: these hold no reference count,
/// so that a commit need not decrement one.
struct Orphan(NonNull<Inner>);

// SAFETY: as `SharedInner`.
unsafe impl Send for Orphan {}

/// Frees every orphan without open slots. Keeps the others, `orphan` included, until the next call.
fn free_orphans(orphan: Option<Orphan>) {
    // Never held while anything else happens, such as taking other locks. It is therefore always a
    // mutex of the standard library.
    static ORPHANS: std::sync::Mutex<Vec<Orphan>> = std::sync::Mutex::new(Vec::new());
    let all = || ORPHANS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut orphans = std::mem::take(&mut *all());
    orphans.extend(orphan);
    // SAFETY: an entry of a list has not been freed, and it is in one list only.
    let is_open = |orphan: &Orphan| unsafe { orphan.0.as_ref() }.has_open_slots();
    let (open, idle): (Vec<Orphan>, Vec<Orphan>) = orphans.into_iter().partition(is_open);
    for orphan in idle {
        // SAFETY: allocated by a `Box` and leaked. Owner and observers are gone (`SharedInner` was
        // dropped), every slot has marked itself, and only this list holds the pointer.
        drop(unsafe { Box::from_raw(orphan.0.as_ptr()) });
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
