//! The frames: their bytes, and one header each.
//!
//! ```text
//!   bytes     frame 0 | frame 1 | ...      page_size each, one reservation for the maximum size
//!   headers   64 bytes each, the cache line that a hit touches
//!
//!   0       8       16      24          32          40     41     42 ...          64
//!   | latch | page  | LSN   | first LSN | next LSN  | mark | state | -            |
//! ```
#![allow(unsafe_code)]

use std::io;
#[cfg(not(any(cairn_shuttle, cairn_loom)))]
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;

use cairn_vfs::memory::{Reservation, ZeroIsValid, Zeroed};
use cairn_vfs::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

use crate::latch::Latch;
use crate::page::{Frame, PageId};
use crate::write_ahead::Lsn;

/// The size of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// The pool's state of a frame.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Header {
    pub(crate) latch: Latch,
    /// The page in the frame. Changes only under the exclusive latch.
    page: AtomicU64,
    /// LSN of the last change. The log must be durable up to it before the page is written.
    lsn: AtomicU64,
    /// LSN of the first change since the page was read or written. Recovery must begin no later.
    first_lsn: AtomicU64,
    /// The first LSN of the changes made since the current write began; 0 for none.
    next_lsn: AtomicU64,
    /// For the policy: the number of requests since the policy last looked, or [`READ_AHEAD`].
    pub(crate) mark: AtomicU8,
    /// The flags [`DIRTY`] and [`WRITING`].
    state: AtomicU8,
}

// SAFETY: made of atomics, for which all zero bits are valid and which need no drop.
unsafe impl ZeroIsValid for Header {}

/// The frame has changes that no current write includes.
pub(crate) const DIRTY: u8 = 1;
/// A copy of the page is being written. The page must not be evicted before the write ends.
pub(crate) const WRITING: u8 = 2;

/// The mark of a page that was read ahead and not requested since. Adding one gives 0, because the
/// first request is the one the page was read for and does not count as a hit for the policy.
pub(crate) const READ_AHEAD: u8 = u8::MAX;

const _: () = assert!(DIRTY & WRITING == 0);
const _: () = assert!(READ_AHEAD.wrapping_add(1) == 0);
// The hit path assumes that a header is exactly one cache line.
#[cfg(not(any(cairn_shuttle, cairn_loom)))]
const _: () = assert!(size_of::<Header>() == 64 && align_of::<Header>() == 64);
#[cfg(not(any(cairn_shuttle, cairn_loom)))]
const _: () = assert!(offset_of!(Header, page) == 8 && offset_of!(Header, lsn) == 16);
#[cfg(not(any(cairn_shuttle, cairn_loom)))]
const _: () = assert!(offset_of!(Header, mark) == 40 && offset_of!(Header, state) == 41);
#[cfg(target_arch = "x86_64")]
const _: () = assert!(crate::options::MIN_PAGE_SIZE.is_multiple_of(LINE));

impl Header {
    #[inline]
    pub(crate) fn page(&self) -> PageId {
        PageId::from_u64(self.page.load(Relaxed))
    }

    /// Requires the exclusive latch.
    pub(crate) fn set_page(&self, page: PageId) {
        debug_assert!(self.latch.is_exclusive(), "{page} moves into or out of a frame that is not latched");
        self.page.store(page.as_u64(), Relaxed);
    }

    /// Records that the frame now holds a page whose last change is the log record at `lsn`.
    /// Requires the exclusive latch.
    pub(crate) fn set_page_and_lsn(&self, page: PageId, lsn: Lsn) {
        debug_assert!(page != PageId::NONE);
        assert!(self.page() == PageId::NONE, "{page} is loaded into the frame of {}", self.page());
        assert!(self.state() == 0, "{page} is loaded into a frame in state {}", self.state());
        self.set_page(page);
        self.lsn.store(lsn.0, Relaxed);
    }

    #[inline]
    pub(crate) fn state(&self) -> u8 {
        self.state.load(Acquire)
    }

    pub(crate) fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Relaxed))
    }

    /// Returns the LSN before which no record is needed to recover the page; `None` when the page
    /// is clean or its changes were not logged.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        let first = Lsn(self.first_lsn.load(Acquire));
        (self.state() != 0 && first != Lsn::NONE).then_some(first)
    }

    /// Records a change by the log record at `lsn`. Requires the exclusive latch. Returns true when
    /// the frame was clean before.
    #[inline]
    pub(crate) fn change(&self, lsn: Lsn) -> bool {
        debug_assert!(self.latch.is_exclusive(), "{} changes without its latch", self.page());
        let before = self.state.load(Relaxed);
        debug_assert!(before & !(DIRTY | WRITING) == 0, "unknown state {before}");
        if lsn > self.lsn() {
            self.lsn.store(lsn.0, Relaxed);
        }
        if before == DIRTY {
            // The first change may have been an unlogged one.
            if lsn != Lsn::NONE && self.first_lsn.load(Relaxed) == 0 {
                self.lower_first_lsn(lsn.0);
            }
            return false;
        }
        self.change_first(lsn)
    }

    #[cold]
    fn change_first(&self, lsn: Lsn) -> bool {
        // ORDER: the LSNs are stored before the flag, so that a thread that sees the flag sees
        // them. They are only set under the exclusive latch.
        if self.next_lsn.load(Relaxed) == 0 {
            self.next_lsn.store(lsn.0, Release);
        }
        let before = self.state.fetch_or(DIRTY, AcqRel);
        match before {
            0 => self.first_lsn.store(self.next_lsn.swap(0, AcqRel), Release),
            // A write ended after the state was read, and left unwritten changes. The first of
            // those counts, not this one.
            DIRTY => self.lower_first_lsn(self.next_lsn.swap(0, AcqRel)),
            _ => {}
        }
        before == 0
    }

    /// Lowers the first LSN to that of an unwritten change, unless `lsn` is 0.
    fn lower_first_lsn(&self, lsn: u64) {
        let lower = |first: u64| (lsn != 0 && (first == 0 || lsn < first)).then_some(lsn);
        let _ = self.first_lsn.fetch_update(AcqRel, Acquire, lower);
    }

    /// Begins a write of the current page. Requires the latch. Returns false when the page is clean
    /// or already being written.
    pub(crate) fn begin_write(&self) -> bool {
        debug_assert!(self.latch.is_held(), "a write of {} begins without its latch", self.page());
        self.state.compare_exchange(DIRTY, WRITING, AcqRel, Relaxed).is_ok()
    }

    /// Ends the write. Returns true when the frame is clean now.
    pub(crate) fn end_write(&self, is_written: bool) -> bool {
        if !is_written {
            self.state.fetch_or(DIRTY, AcqRel);
        }
        let before = self.state.fetch_and(!WRITING, SeqCst);
        assert!(before & WRITING != 0, "a write of {} ends that did not begin", self.page());
        assert!(is_written || before & DIRTY != 0, "a failed write of {} leaves it clean", self.page());
        if before & DIRTY != 0 {
            // ORDER: a concurrent change takes the LSN out of this field as well. Only one of the
            // two gets it.
            let next = self.next_lsn.swap(0, AcqRel);
            if !is_written {
                // If the unwritten changes were logged, the first of them came before any change
                // that was made during the failed write, and stays the first.
                self.lower_first_lsn(next);
            } else if next != 0 {
                self.first_lsn.store(next, Release);
            }
        }
        before & DIRTY == 0
    }

    /// Discards changes, because the page is dropped. Requires the exclusive latch, with no write
    /// in progress. Returns true when there were any changes.
    pub(crate) fn discard(&self) -> bool {
        debug_assert!(
            self.latch.is_exclusive(),
            "changes of {} are discarded without its latch",
            self.page()
        );
        self.next_lsn.store(0, Relaxed);
        let before = self.state.swap(0, AcqRel);
        assert!(before & WRITING == 0, "{} is dropped while it is being written", self.page());
        before & DIRTY != 0
    }
}

/// Bytes and headers for the maximum number of frames of the pool.
#[derive(Debug)]
pub(crate) struct Arena {
    bytes: Reservation,
    headers: Zeroed<Header>,
    page_size: usize,
}

impl Arena {
    /// Reserves address space for `frames` frames. Errors: `OutOfMemory`.
    pub(crate) fn new(frames: usize, page_size: usize) -> io::Result<Self> {
        debug_assert!(page_size.is_power_of_two() && frames <= crate::translation::MAX_FRAMES);
        let bytes = frames.checked_mul(page_size).ok_or(io::ErrorKind::OutOfMemory)?;
        let bytes = Reservation::new(bytes)?;
        bytes.prefer_huge_pages();
        Ok(Arena { bytes, headers: Zeroed::new(frames)?, page_size })
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    /// Returns the header of a frame. Frame numbers come from the pool's own tables and are always
    /// in range.
    #[inline]
    pub(crate) fn header(&self, frame: Frame) -> &Header {
        // SAFETY: frame numbers originate in one place, `PoolState::grow`, and are below the number
        // of frames that the arena was created for. They are only passed through tables and
        // policies of this crate, never from outside or from disk.
        unsafe { self.headers.at(frame as usize) }
    }

    /// Returns the first byte of a frame.
    #[inline]
    pub(crate) fn start(&self, frame: Frame) -> NonNull<u8> {
        debug_assert!((frame as usize) < self.headers.len());
        // SAFETY: as above, the frame is within the reservation.
        unsafe { self.bytes.start().add(frame as usize * self.page_size) }
    }

    /// Prefetches the beginning of a frame's bytes into the processor cache while the caller reads
    /// the frame's header. Usually neither is cached.
    #[inline]
    pub(crate) fn prefetch(&self, frame: Frame) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = self.start(frame).as_ptr().cast_const().cast::<i8>();
            // SAFETY: a prefetch has no effect on the program, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = frame;
    }

    /// Like [`Arena::prefetch`], for the frame's header.
    #[inline]
    pub(crate) fn prefetch_header(&self, frame: Frame) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let header = std::ptr::from_ref(self.header(frame)).cast::<i8>();
            // SAFETY: a prefetch has no effect on the program, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(header) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = frame;
    }

    /// Like [`Arena::prefetch`], for a range of bytes.
    #[inline]
    pub(crate) fn prefetch_range(&self, frame: Frame, bytes: std::ops::Range<usize>) {
        debug_assert!(bytes.end <= self.page_size, "bytes {bytes:?} are beyond the page");
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = self.start(frame).as_ptr().cast_const();
            for offset in bytes.step_by(LINE) {
                // SAFETY: a prefetch has no effect on the program, whatever the address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast::<i8>()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, bytes);
    }

    /// Returns the bytes of a frame for reading.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, for the lifetime of the slice.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: Frame) -> &[u8] {
        debug_assert!(self.header(frame).latch.is_held(), "frame {frame} is read without its latch");
        // SAFETY: within the reservation, and the caller guarantees that nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.start(frame).as_ptr(), self.page_size) }
    }

    /// Returns the bytes of a frame for writing.
    ///
    /// # Safety
    /// The caller holds the frame's exclusive latch for the lifetime of the slice, and creates no
    /// second slice of the frame.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the latch makes it exclusive")]
    pub(crate) unsafe fn bytes_mut(&self, frame: Frame) -> &mut [u8] {
        debug_assert!(self.header(frame).latch.is_exclusive(), "frame {frame} is written without its latch");
        // SAFETY: within the reservation, and the caller guarantees exclusive access. Optimistic
        // readers may load bytes with volatile loads and discard the result: see `optimistic`.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame).as_ptr(), self.page_size) }
    }

    /// Faults in the memory of frames. Errors: `OutOfMemory`.
    pub(crate) fn populate(&self, frames: Range<usize>) -> io::Result<()> {
        debug_assert!(frames.start <= frames.end && frames.end <= self.headers.len(), "no frames {frames:?}");
        self.bytes.populate(frames.start * self.page_size..frames.end * self.page_size)
    }

    /// Returns the memory of unused frames to the system. The caller holds their exclusive latches
    /// and keeps them.
    pub(crate) fn release_latched(&self, frames: Range<usize>) {
        assert!(frames.start <= frames.end && frames.end <= self.headers.len(), "no frames {frames:?}");
        let are_held = frames.clone().all(|frame| self.header(frame as Frame).latch.version().is_none());
        if !are_held {
            debug_assert!(false, "frames {frames:?} are not all held");
            return;
        }
        // SAFETY: the check above found every latch held exclusively, by the caller, which has no
        // slice of the frames. So nobody has one.
        unsafe { self.bytes.release(frames.start * self.page_size..frames.end * self.page_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latched() -> Header {
        let header = Header::default();
        assert!(header.latch.try_exclusive());
        header
    }

    /// Goal: LSNs and state of a frame stay correct through changes, successful and failed writes,
    /// and changes during a write.
    #[test]
    fn changes_and_writes() {
        let header = latched();
        assert!(!header.begin_write() && header.first_lsn().is_none());
        assert!(header.change(Lsn(5)) && !header.change(Lsn(7)));
        assert_eq!((header.lsn(), header.first_lsn(), header.state()), (Lsn(7), Some(Lsn(5)), DIRTY));
        assert!(header.begin_write() && !header.begin_write());
        assert_eq!((header.first_lsn(), header.state()), (Some(Lsn(5)), WRITING));
        assert!(!header.change(Lsn(9)) && !header.change(Lsn(11)));
        assert_eq!((header.first_lsn(), header.state()), (Some(Lsn(5)), WRITING | DIRTY));
        assert!(!header.end_write(true));
        assert_eq!((header.first_lsn(), header.lsn(), header.state()), (Some(Lsn(9)), Lsn(11), DIRTY));
        assert!(header.begin_write() && !header.end_write(false));
        assert_eq!((header.first_lsn(), header.state()), (Some(Lsn(9)), DIRTY));
        assert!(header.begin_write() && !header.change(Lsn(13)) && !header.end_write(false));
        assert_eq!(header.first_lsn(), Some(Lsn(9)));
        assert!(header.begin_write() && header.end_write(true) && header.first_lsn().is_none());
        assert!(header.change(Lsn::NONE) && header.first_lsn().is_none());
        assert!(!header.change(Lsn(20)));
        assert_eq!(header.first_lsn(), Some(Lsn(20)));
        assert!(header.discard() && !header.discard() && header.state() == 0);
    }

    /// Goal: a change that reads the state before a write ends, and continues after it, does not
    /// make recovery begin too late. Method: the second half of such a change, after a successful
    /// and after a failed write.
    #[test]
    fn changes_while_a_write_ends() {
        for is_written in [true, false] {
            let header = latched();
            assert!(header.change(Lsn(5)) && header.begin_write() && !header.change(Lsn(9)));
            assert!(!header.end_write(is_written));
            let first = Some(Lsn(if is_written { 9 } else { 5 }));
            assert!(!header.change_first(Lsn(11)));
            assert_eq!((header.first_lsn(), header.state()), (first, DIRTY), "written: {is_written}");
            // Any leftover LSN does no harm later.
            assert!(header.begin_write() && !header.change(Lsn(13)) && !header.end_write(true));
            assert_eq!(header.first_lsn(), Some(Lsn(13)));
        }
        let header = latched();
        assert!(header.change(Lsn(5)) && header.begin_write() && !header.end_write(false));
        assert!(!header.change_first(Lsn(9)));
        assert_eq!(header.first_lsn(), Some(Lsn(5)));
        // The only logged change was made during a write, and the write failed.
        let header = latched();
        assert!(header.change(Lsn::NONE) && header.begin_write() && !header.change(Lsn(9)));
        assert!(!header.end_write(false));
        assert_eq!(header.first_lsn(), Some(Lsn(9)));
    }

    /// Goal: a header fills exactly one cache line, as the hit path assumes.
    #[test]
    fn header_fills_one_cache_line() {
        #[cfg(not(cairn_shuttle))]
        assert_eq!((size_of::<Header>(), align_of::<Header>()), (64, 64));
    }
}
