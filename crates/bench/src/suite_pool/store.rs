//! What a contender has to be able to do: get pages of a file by number, with room for some of them
//! in memory.

use std::fmt;
use std::time::Duration;

use super::pages::{self, PageFile};
use crate::engine::Settings;
use crate::error::Result;

/// What is done with each page that is asked for. Each reads the page's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// The page is held with others, read, and let go. For a cache: looked up, read through a
    /// counted reference, let go.
    Shared,
    /// As [`Access::Shared`], but the next page's number is known only when this one has been read:
    /// no two overlap in the processor.
    SharedChained,
    /// The page is read without being held.
    Optimistic,
    /// As [`Access::Optimistic`], each after the one before.
    OptimisticChained,
    /// The page is held alone, read, and let go.
    Exclusive,
    /// The page is held alone and changed.
    Dirty,
    /// The pages, which follow each other, are scanned: read ahead, where there is such a thing.
    Scan,
}

/// What a contender is opened with.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// The pages.
    pub file: &'a PageFile,
    /// How many of them may be in memory.
    pub frames: usize,
    /// Pages from this one on will not be asked for.
    pub reach: u32,
    /// Whether pages will be changed.
    pub writes: bool,
}

/// A contender.
pub trait PageStore: Send + Sync {
    /// Unique among contenders.
    fn name(&self) -> &str;
    /// The family it is drawn with.
    fn family(&self) -> &str;
    /// Of the library.
    fn version(&self) -> String;
    /// One of Cairn's.
    fn ours(&self) -> bool {
        false
    }
    /// What it is opened with, and what it cannot do.
    fn settings(&self, setup: &Setup<'_>) -> Settings;
    /// Whether it can do that, with so many threads at a time.
    fn can(&self, access: Access, threads: u32) -> bool;
    /// Opens it over the file, with nothing in memory.
    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>>;
}

/// An open contender.
pub trait Pages: Sync {
    /// For one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
    /// Pages that had to be read so far; `None` when it does not tell. Called while nobody works.
    fn misses(&self) -> Option<u64>;
    /// How long it took until `waiting` threads had a page each, from the moment when all pages of
    /// a pool that was pinned whole were let go. `None` where nothing can be pinned.
    fn starvation(&self, _frames: usize, _waiting: usize) -> Result<Option<Duration>> {
        Ok(None)
    }
    /// Writes what is dirty and closes it.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// One thread's way to the pages.
pub trait Session {
    /// Asks for the pages one after the other, and says the sum of their stamps. The loop is inside
    /// so that nothing dynamic is in it.
    fn run(&mut self, access: Access, order: &[u32]) -> Result<u64>;
}

impl fmt::Debug for dyn PageStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The loop of a [`Session`]: `read` gives the stamp of a page.
#[inline(always)]
pub fn each(order: &[u32], mut read: impl FnMut(u32) -> Result<u64>) -> Result<u64> {
    let mut sum = 0_u64;
    for &page in order {
        sum = sum.wrapping_add(read(page)?);
    }
    Ok(sum)
}

/// As [`each`], each page's number known only when the one before has been read.
#[inline(always)]
pub fn chained(order: &[u32], mut read: impl FnMut(u32) -> Result<u64>) -> Result<u64> {
    let (mut sum, mut last) = (0_u64, 0_u64);
    for &page in order {
        // A stamp's highest bit is 0, which the compiler does not know.
        last = read(page.wrapping_add((last >> 63) as u32))?;
        sum = sum.wrapping_add(last);
    }
    Ok(sum)
}

/// What [`Session::run`] has to return.
pub fn expected(order: &[u32]) -> u64 {
    order.iter().fold(0, |sum, &page| sum.wrapping_add(pages::stamp(page)))
}
