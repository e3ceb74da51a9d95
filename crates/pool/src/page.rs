//! Identifiers of pages and frames.

use std::fmt;

/// A page of an open file: the file's number in its pool, and the page's number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(u64);

impl PageId {
    /// No page; the value for a free frame.
    pub(crate) const NONE: PageId = PageId(u64::MAX);

    /// Creates the id of page `page` in file `file`.
    pub const fn new(file: u32, page: u32) -> Self {
        PageId((file as u64) << 32 | page as u64)
    }

    /// Returns the file's number in its pool.
    pub const fn file(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the page's number in its file, from 0.
    pub const fn page(self) -> u32 {
        self.0 as u32
    }

    /// Returns both as one number, in which pages of one file are adjacent.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Converts a number from [`PageId::as_u64`] back.
    pub const fn from_u64(number: u64) -> Self {
        PageId(number)
    }
}

const _: () = assert!(PageId::new(7, 9).file() == 7 && PageId::new(7, 9).page() == 9);
const _: () = assert!(PageId::from_u64(PageId::new(7, 9).as_u64()).0 == PageId::new(7, 9).0);
// The last page of the last possible file has the same number, so no file may have that number.
const _: () = assert!(PageId::NONE.0 == PageId::new(u32::MAX, u32::MAX).0);

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.page())
    }
}

/// The number of a frame, from 0. A frame holds one page in memory.
pub type Frame = u32;
