//! The interface of a contender: it returns pages of a file by number, with space for some of them
//! in memory.

use std::fmt;
use std::time::Duration;

use super::page_file::{self, PageFile};
use crate::core::error::Result;
use crate::core::settings::Settings;

/// The access to each requested page. Each kind reads the page's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// The page is pinned and latched shared, read, and released. For a cache: it is looked up,
    /// read through a counted reference, and released.
    Shared,
    /// Like [`Access::Shared`], but the number of the next page is known only after this one has
    /// been read. So no two requests overlap in the processor.
    SharedChained,
    /// The page is read without a pin.
    Optimistic,
    /// Like [`Access::Optimistic`], each request after the previous one.
    OptimisticChained,
    /// The page is latched exclusively, read, and released.
    Exclusive,
    /// The page is latched exclusively and changed.
    Dirty,
    /// The consecutive pages are scanned, with read-ahead if there is any.
    Scan,
}

/// The parameters for opening a contender.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The file of pages.
    pub file: &'a PageFile,
    /// Number of pages that may be in memory.
    pub frames: usize,
    /// Pages from this one on will not be requested.
    pub reach: u32,
    /// Whether pages will be changed.
    pub writes: bool,
}

/// A contender.
pub trait PageStore: Send + Sync {
    /// Returns a name that is unique among contenders.
    fn name(&self) -> &str;
    /// Returns the family under which the report draws it.
    fn family(&self) -> &str;
    /// Returns the version of the library.
    fn version(&self) -> String;
    /// Returns true for Cairn's contenders.
    fn ours(&self) -> bool {
        false
    }
    /// Describes the settings with which it is opened, and its limitations.
    fn settings(&self, setup: &Setup<'_>) -> Settings;
    /// Returns whether it supports an access by this many threads.
    fn can(&self, access: Access, threads: u32) -> bool;
    /// Opens the contender over the file, with nothing in memory.
    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>>;
}

/// An open contender.
pub trait Pages: Sync {
    /// Creates a session for one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
    /// Returns the number of pages read so far; `None` if it is not counted. Called while no thread
    /// works.
    fn misses(&self) -> Option<u64>;
    /// Pins all pages of a pool, releases them, and returns the time until each of `waiting`
    /// threads has a page. `None` if the contender has no pins.
    fn starvation(&self, _frames: usize, _waiting: usize) -> Result<Option<Duration>> {
        Ok(None)
    }
    /// Writes dirty pages and closes the contender.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// The access of one thread to the pages.
pub trait Session {
    /// Requests the pages one after another, and returns the sum of their stamps. The loop is
    /// inside this function so that it contains no dynamic calls.
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64>;
}

impl fmt::Debug for dyn PageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The loop of a [`Session`]. `read` returns the stamp of a page.
#[inline(always)]
pub fn each(order: &[u32], mut read: impl FnMut(u32) -> Result<u64>) -> Result<u64> {
    let mut sum = 0_u64;
    for &page in order {
        sum = sum.wrapping_add(read(page)?);
    }
    Ok(sum)
}

/// Like [`each`], but the number of each page is known only after the previous page has been read.
#[inline(always)]
pub fn chained(order: &[u32], mut read: impl FnMut(u32) -> Result<u64>) -> Result<u64> {
    let (mut sum, mut last) = (0_u64, 0_u64);
    for &page in order {
        // The highest bit of a stamp is 0, but the compiler does not know that.
        last = read(page.wrapping_add((last >> 63) as u32))?;
        sum = sum.wrapping_add(last);
    }
    Ok(sum)
}

/// Returns the expected result of [`Session::run`].
pub fn expected(order: &[u32]) -> u64 {
    order.iter().fold(0, |sum, &page| sum.wrapping_add(page_file::stamp(page)))
}
