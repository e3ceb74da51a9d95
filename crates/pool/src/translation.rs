//! Maps page numbers to frames with a segmented array.
//!
//! ```text
//!   segment 0          segment 1          segment 2
//!   pages 0..4096      4096..12288        12288..28672        each twice as long as the one before
//!   +----+----+---     +----+----+---
//!   | u32| u32| ...    | u32| u32| ...    allocated when one of its pages is first requested
//!   +----+----+---     +----+----+---
//!      |
//!      0: not resident | frame + 1 | LOADING | LOADING, and a thread waits
//! ```
//!
//! Segments are zeroed memory that takes up space only where it was touched. They live as long as
//! the file is open.

use std::io;

use cairn_vfs::memory::Zeroed;
use cairn_vfs::sync::OnceLock;
use cairn_vfs::sync::atomic::{AtomicU32, Ordering::*};

use crate::page::Frame;

/// log2 of the length of the first segment.
const FIRST: u32 = if cfg!(cairn_shuttle) { 1 } else { 12 };
const SEGMENTS: usize = (33 - FIRST) as usize;

const EMPTY: u32 = 0;
const LOADING: u32 = u32::MAX;
const LOADING_AWAITED: u32 = u32::MAX - 1;

/// The maximum number of frames that entries can name.
pub(crate) const MAX_FRAMES: usize = (u32::MAX - 2) as usize;

// Entries hold the frame plus one, and the largest of them is not taken for a state.
const _: () = assert!(MAX_FRAMES < LOADING_AWAITED as usize && LOADING_AWAITED < LOADING);
const _: () = assert!(locate(0).0 == 0 && locate(0).1 == 0);
const _: () = assert!(locate((1 << FIRST) - 1).0 == 0 && locate(1 << FIRST).0 == 1);
const _: () =
    assert!(locate(u32::MAX).0 == SEGMENTS - 1 && locate(u32::MAX).1 < 1 << (SEGMENTS as u32 - 1 + FIRST));

/// The entries of one file's pages.
#[derive(Debug)]
pub(crate) struct Translation {
    segments: [OnceLock<Zeroed<AtomicU32>>; SEGMENTS],
}

/// The state of a page in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resident {
    /// It is not in memory.
    No,
    /// A thread is reading it in.
    Loading,
    /// It was in this frame when the table was read.
    In(Frame),
}

/// Returns the segment of a page and the index in it. The pages of segment k begin at `(2^k - 1) *
/// 2^FIRST`.
#[inline]
const fn locate(page: u32) -> (usize, usize) {
    let shifted = page as u64 + (1 << FIRST);
    let log = 63 - shifted.leading_zeros();
    ((log - FIRST) as usize, (shifted - (1 << log)) as usize)
}

impl Translation {
    pub(crate) fn new() -> Self {
        Translation { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// Returns the frame of a page, if it is resident. Costs three dependent loads, the last of
    /// which is the entry.
    #[inline]
    pub(crate) fn frame(&self, page: u32) -> Option<Frame> {
        match self.resident(page) {
            Resident::In(frame) => Some(frame),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn resident(&self, page: u32) -> Resident {
        let (segment, index) = locate(page);
        let Some(entries) = self.segments.get(segment).and_then(OnceLock::get) else { return Resident::No };
        // ORDER: acquire, pairs with the release in `end_loading`, so that the frame's header is
        // seen as it was then, or later.
        match entries.get(index).map_or(EMPTY, |entry| entry.load(Acquire)) {
            EMPTY => Resident::No,
            LOADING | LOADING_AWAITED => Resident::Loading,
            frame => Resident::In(frame - 1),
        }
    }

    /// Returns the entry of a page, and allocates its segment if missing. Errors: `OutOfMemory`.
    fn entry(&self, page: u32) -> io::Result<&AtomicU32> {
        let (segment, index) = locate(page);
        let slot = self.segments.get(segment).ok_or(io::ErrorKind::InvalidInput)?;
        if slot.get().is_none() {
            // Another thread may be first; then this segment is dropped untouched.
            let _ = slot.set(Zeroed::new(1 << (segment as u32 + FIRST))?);
        }
        slot.get().and_then(|entries| entries.get(index)).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Makes the caller the thread that loads the page. Returns false when the page is resident or
    /// being loaded. Errors: `OutOfMemory`.
    pub(crate) fn begin_loading(&self, page: u32) -> io::Result<bool> {
        Ok(self.entry(page)?.compare_exchange(EMPTY, LOADING, Acquire, Relaxed).is_ok())
    }

    /// Ends a loading begun by [`Translation::begin_loading`]: the page is in `frame`, or not
    /// resident after all. Returns true when a thread waits.
    pub(crate) fn end_loading(&self, page: u32, frame: Option<Frame>) -> bool {
        match self.entry(page) {
            // ORDER: release, so that a thread that sees the frame also sees its header; and
            // SeqCst, together with `is_loading_awaited`.
            Ok(entry) => {
                debug_assert!(frame.is_none_or(|frame| (frame as usize) < MAX_FRAMES));
                let before = entry.swap(frame.map_or(EMPTY, |frame| frame + 1), SeqCst);
                assert!(
                    before == LOADING || before == LOADING_AWAITED,
                    "the loading of page {page} ends, which did not begin: its entry was {before}"
                );
                before == LOADING_AWAITED
            }
            Err(error) => {
                debug_assert!(false, "page {page} has no entry, although its loading began: {error}");
                false
            }
        }
    }

    /// Returns true while the page is being loaded. The loading thread then learns at the end that
    /// a thread waits.
    pub(crate) fn is_loading_awaited(&self, page: u32) -> bool {
        let Ok(entry) = self.entry(page) else { return false };
        loop {
            match entry.load(SeqCst) {
                LOADING_AWAITED => return true,
                // Retry if the entry changed: one loading may have ended and another begun.
                LOADING => _ = entry.compare_exchange(LOADING, LOADING_AWAITED, SeqCst, Relaxed),
                _ => return false,
            }
        }
    }

    /// Marks the page as not resident. Requires the frame's exclusive latch.
    pub(crate) fn clear(&self, page: u32) {
        debug_assert!(self.frame(page).is_some(), "page {page} is cleared, which is not resident");
        if let Ok(entry) = self.entry(page) {
            entry.store(EMPTY, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every page has its own entry, in a segment that contains it.
    #[test]
    fn places() {
        let mut last = (0, usize::MAX);
        for page in 0..100_000 {
            let (segment, index) = locate(page);
            assert!(index < 1 << (segment as u32 + FIRST));
            let follows = (segment == last.0 && index == last.1.wrapping_add(1))
                || (segment == last.0 + 1 && index == 0 && last.1 + 1 == 1 << (last.0 as u32 + FIRST));
            assert!(follows, "{page}");
            last = (segment, index);
        }
        let (segment, index) = locate(u32::MAX);
        assert!(segment == SEGMENTS - 1 && index < 1 << (segment as u32 + FIRST));
    }

    /// Goal: an entry goes through its states, also for distant pages, and reports waiting threads
    /// to the loading one.
    #[cfg(not(cairn_shuttle))]
    #[test]
    fn states() {
        let table = Translation::new();
        for page in [0, 1, 4095, 4096, 1 << 20, u32::MAX] {
            assert_eq!(table.resident(page), Resident::No);
            assert!(table.begin_loading(page).unwrap() && !table.begin_loading(page).unwrap());
            assert_eq!((table.resident(page), table.frame(page)), (Resident::Loading, None));
            assert!(!table.end_loading(page, None));
            assert!(table.begin_loading(page).unwrap());
            assert!(table.is_loading_awaited(page) && table.is_loading_awaited(page));
            assert_eq!(table.resident(page), Resident::Loading);
            assert!(table.end_loading(page, Some(7)));
            assert!(!table.is_loading_awaited(page));
            assert_eq!((table.frame(page), table.begin_loading(page).unwrap()), (Some(7), false));
            table.clear(page);
            assert_eq!(table.resident(page), Resident::No);
        }
    }
}
