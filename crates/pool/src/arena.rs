//! The frames: their bytes, and a header each.
//!
//! ```text
//!   bytes     frame 0 | frame 1 | ...      page_size each, one reservation for the largest size of the pool
//!   headers   64 bytes each, a cache line: what a hit touches
//!
//!   0       8       16      24          32          40     41     42 ...          64
//!   | latch | page  | LSN   | first LSN | next LSN  | mark | state | -            |
//! ```
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use cairn_vfs::memory::{Reservation, ZeroIsValid, Zeroed};
use cairn_vfs::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

use crate::latch::Latch;
use crate::page::{Frame, PageId};
use crate::write_ahead::Lsn;

/// Bytes that come from memory together.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// What the pool knows of a frame.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Header {
    pub(crate) latch: Latch,
    /// The page that it holds. Changes under the exclusive latch.
    page: AtomicU64,
    /// Of the last change: the log must be durable up to here before the page is written.
    lsn: AtomicU64,
    /// Of the first change since the page was read or written: recovery must begin no later.
    first_lsn: AtomicU64,
    /// The same of the changes since the write that is under way was begun; 0 for none.
    next_lsn: AtomicU64,
    /// For the policy: how often it was asked for since the policy has looked; or [`READ_AHEAD`].
    pub(crate) mark: AtomicU8,
    /// [`DIRTY`], [`WRITING`].
    state: AtomicU8,
}

// SAFETY: made of atomics, whose zero is all zero bits, and which nothing has to drop.
unsafe impl ZeroIsValid for Header {}

/// The frame holds changes that no write under way has.
pub(crate) const DIRTY: u8 = 1;
/// A copy of the page is being written: it must not be evicted before that has ended.
pub(crate) const WRITING: u8 = 2;

/// The mark of a page that was read ahead and not asked for since. One more is 0: the first who
/// asks is who it was read for, and no hit of the policy.
pub(crate) const READ_AHEAD: u8 = u8::MAX;

impl Header {
    #[inline]
    pub(crate) fn page(&self) -> PageId {
        PageId::from_u64(self.page.load(Relaxed))
    }

    /// Only under the exclusive latch.
    pub(crate) fn set_page(&self, page: PageId) {
        self.page.store(page.as_u64(), Relaxed);
    }

    /// A page has come, which a log record at `lsn` changed last. Only under the exclusive latch.
    pub(crate) fn hold_page(&self, page: PageId, lsn: Lsn) {
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

    /// No record before this is needed to make the page what it is; `None` when it is clean, or its
    /// changes were not logged.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        let first = Lsn(self.first_lsn.load(Acquire));
        (self.state() != 0 && first != Lsn::NONE).then_some(first)
    }

    /// The page is changed by the record at `lsn`. Only under the exclusive latch. True when the
    /// frame needs writing now and did not before.
    #[inline]
    pub(crate) fn change(&self, lsn: Lsn) -> bool {
        let before = self.state.load(Relaxed);
        if lsn > self.lsn() {
            self.lsn.store(lsn.0, Relaxed);
        }
        if before == DIRTY {
            // A first change may have been one that is not logged.
            if lsn != Lsn::NONE && self.first_lsn.load(Relaxed) == 0 {
                self.lower_first_lsn(lsn.0);
            }
            return false;
        }
        self.change_first(lsn)
    }

    #[cold]
    fn change_first(&self, lsn: Lsn) -> bool {
        // ORDER: the numbers first, so that who sees the mark sees them. Only under the exclusive
        // latch are they set.
        if self.next_lsn.load(Relaxed) == 0 {
            self.next_lsn.store(lsn.0, Release);
        }
        let before = self.state.fetch_or(DIRTY, AcqRel);
        match before {
            0 => self.first_lsn.store(self.next_lsn.swap(0, AcqRel), Release),
            // A write has ended since the state was looked at, and left changes: the first of them
            // counts, not this one.
            DIRTY => self.lower_first_lsn(self.next_lsn.swap(0, AcqRel)),
            _ => {}
        }
        before == 0
    }

    /// A change that no write has, at `lsn`, unless it is 0: the first of them is what counts.
    fn lower_first_lsn(&self, lsn: u64) {
        let lower = |first: u64| (lsn != 0 && (first == 0 || lsn < first)).then_some(lsn);
        let _ = self.first_lsn.fetch_update(AcqRel, Acquire, lower);
    }

    /// Begins a write of what the page is now. Only with the latch held; false when it is clean, or
    /// being written already.
    pub(crate) fn begin_write(&self) -> bool {
        self.state.compare_exchange(DIRTY, WRITING, AcqRel, Relaxed).is_ok()
    }

    /// Ends the write. True when the frame is clean now.
    pub(crate) fn end_write(&self, is_written: bool) -> bool {
        if !is_written {
            self.state.fetch_or(DIRTY, AcqRel);
        }
        let before = self.state.fetch_and(!WRITING, SeqCst);
        if before & DIRTY != 0 {
            // ORDER: a change that is being made right now takes its number out of here as well.
            // Only one of the two gets it.
            let next = self.next_lsn.swap(0, AcqRel);
            if !is_written {
                // What changed meanwhile began later than what is still unwritten, if that is
                // logged.
                self.lower_first_lsn(next);
            } else if next != 0 {
                self.first_lsn.store(next, Release);
            }
        }
        before & DIRTY == 0
    }

    /// Forgets changes: the page is dropped. Only under the exclusive latch and not while it is
    /// being written. True when there were any.
    pub(crate) fn discard(&self) -> bool {
        self.next_lsn.store(0, Relaxed);
        self.state.swap(0, AcqRel) & DIRTY != 0
    }
}

/// Bytes and headers of all frames that the pool may ever have.
#[derive(Debug)]
pub(crate) struct Arena {
    bytes: Reservation,
    headers: Zeroed<Header>,
    page_size: usize,
}

impl Arena {
    /// Room for `frames` frames. Costs address space. Errors: `OutOfMemory`.
    pub(crate) fn new(frames: usize, page_size: usize) -> io::Result<Self> {
        let bytes = frames.checked_mul(page_size).ok_or(io::ErrorKind::OutOfMemory)?;
        let bytes = Reservation::new(bytes)?;
        bytes.prefer_huge_pages();
        Ok(Arena { bytes, headers: Zeroed::new(frames)?, page_size })
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    /// The header of a frame. Frames come from the pool's own tables and are within its size,
    /// always.
    #[inline]
    pub(crate) fn header(&self, frame: Frame) -> &Header {
        // SAFETY: frame numbers are made in one place, `Inner::grow`, below the number of frames
        // that the arena was made for. They come back from tables and policies of this crate, and
        // are never taken from outside or from a disk.
        unsafe { self.headers.at(frame as usize) }
    }

    /// The first byte of a frame.
    #[inline]
    pub(crate) fn start(&self, frame: Frame) -> NonNull<u8> {
        debug_assert!((frame as usize) < self.headers.len());
        // SAFETY: as above, the frame is within the reservation.
        unsafe { self.bytes.start().add(frame as usize * self.page_size) }
    }

    /// Has the processor fetch the beginning of a frame's bytes while it looks at the frame's
    /// header: both are far from the caches as a rule.
    #[inline]
    pub(crate) fn prefetch(&self, frame: Frame) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = self.start(frame).as_ptr().cast_const().cast::<i8>();
            // SAFETY: a prefetch reads nothing as far as the program goes, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = frame;
    }

    /// As [`Arena::prefetch`], of the frame's header.
    #[inline]
    pub(crate) fn prefetch_header(&self, frame: Frame) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let header = std::ptr::from_ref(self.header(frame)).cast::<i8>();
            // SAFETY: a prefetch reads nothing as far as the program goes, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(header) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = frame;
    }

    /// As [`Arena::prefetch`], of some bytes from an offset on.
    #[inline]
    pub(crate) fn prefetch_range(&self, frame: Frame, bytes: std::ops::Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = self.start(frame).as_ptr().cast_const();
            for offset in bytes.step_by(LINE) {
                // SAFETY: a prefetch reads nothing as far as the program goes, whatever the
                // address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast::<i8>()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (frame, bytes);
    }

    /// The bytes of a frame, to read.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, as long as the slice lives.
    #[inline]
    pub(crate) unsafe fn bytes(&self, frame: Frame) -> &[u8] {
        // SAFETY: within the reservation; by the caller's word nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.start(frame).as_ptr(), self.page_size) }
    }

    /// The bytes of a frame, to write.
    ///
    /// # Safety
    /// The caller holds the frame's latch exclusively as long as the slice lives, and makes no
    /// second one of the frame.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "the latch makes it exclusive")]
    pub(crate) unsafe fn bytes_mut(&self, frame: Frame) -> &mut [u8] {
        // SAFETY: within the reservation; by the caller's word nobody else has any of it.
        // Optimistic readers may look at the bytes through volatile loads and throw away what they
        // saw: see `optimistic`.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame).as_ptr(), self.page_size) }
    }

    /// Brings the memory of frames in. Errors: `OutOfMemory`.
    pub(crate) fn populate(&self, frames: Range<usize>) -> io::Result<()> {
        self.bytes.populate(frames.start * self.page_size..frames.end * self.page_size)
    }

    /// Gives the memory of frames back that nobody has any more: the caller holds the latches of
    /// all of them, and keeps them.
    pub(crate) fn release_latched(&self, frames: Range<usize>) {
        let are_held = frames.clone().all(|frame| self.header(frame as Frame).latch.version().is_none());
        if !are_held {
            debug_assert!(false, "frames {frames:?} are not all held");
            return;
        }
        // SAFETY: the latches are held exclusively, as was just seen, by the caller, who has no
        // slice of the frames: nobody has one.
        unsafe { self.bytes.release(frames.start * self.page_size..frames.end * self.page_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers and state of a frame go right through changes, writes that end well or not,
    /// and changes meanwhile.
    #[test]
    fn changes_and_writes() {
        let header = Header::default();
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

    /// Goal: a change that looks at the state before a write ends, and goes on after it, does not
    /// make recovery begin too late. Method: the second half of such a change, after writes that
    /// ended well and not.
    #[test]
    fn changes_while_a_write_ends() {
        for is_written in [true, false] {
            let header = Header::default();
            assert!(header.change(Lsn(5)) && header.begin_write() && !header.change(Lsn(9)));
            assert!(!header.end_write(is_written));
            let first = Some(Lsn(if is_written { 9 } else { 5 }));
            assert!(!header.change_first(Lsn(11)));
            assert_eq!((header.first_lsn(), header.state()), (first, DIRTY), "written: {is_written}");
            // What it may have left behind does no harm later.
            assert!(header.begin_write() && !header.change(Lsn(13)) && !header.end_write(true));
            assert_eq!(header.first_lsn(), Some(Lsn(13)));
        }
        let header = Header::default();
        assert!(header.change(Lsn(5)) && header.begin_write() && !header.end_write(false));
        assert!(!header.change_first(Lsn(9)));
        assert_eq!(header.first_lsn(), Some(Lsn(5)));
        // The only logged change is one that came while a write was under way, which failed.
        let header = Header::default();
        assert!(header.change(Lsn::NONE) && header.begin_write() && !header.change(Lsn(9)));
        assert!(!header.end_write(false));
        assert_eq!(header.first_lsn(), Some(Lsn(9)));
    }

    /// Goal: the header is the line that the hit path counts on.
    #[test]
    fn one_line() {
        #[cfg(not(cairn_shuttle))]
        assert_eq!((size_of::<Header>(), align_of::<Header>()), (64, 64));
    }
}
