//! The names of pages and frames.

use std::fmt;

/// A page of an open file: the file's number in its pool, and the page's number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(u64);

impl PageId {
    /// No page: what a free frame holds.
    pub(crate) const NONE: PageId = PageId(u64::MAX);

    /// Page `page` of file `file`.
    pub const fn new(file: u32, page: u32) -> Self {
        PageId((file as u64) << 32 | page as u64)
    }

    /// The file's number in its pool.
    pub const fn file(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The page's number in its file, from 0.
    pub const fn page(self) -> u32 {
        self.0 as u32
    }

    /// Both in one number; pages of one file are neighbours.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The page that [`PageId::as_u64`] gave this number.
    pub const fn from_u64(number: u64) -> Self {
        PageId(number)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.page())
    }
}

/// A place for one page in memory, by its number from 0.
pub type Frame = u32;
