//! The interface of the log to the storage.

use std::fmt;

use cairn_pool::Lsn;

use crate::Result;

/// A log of page changes. The records of a page are in the log in the order in which they were
/// applied, because the appender holds the page.
pub trait Log: fmt::Debug + Send + Sync {
    /// Returns a lower bound: every record appended from now on gets a greater LSN.
    fn end(&self) -> Lsn;

    /// Appends a record and returns its LSN, which is greater than those of all earlier records.
    /// Errors: the log's; nothing is changed then.
    fn append(&self, record: &[u8]) -> Result<Lsn>;

    /// Frees a part of the reserve if this thread's work gives space back (`reclaiming.rs`), so
    /// that an append that failed for a full disk can be tried again. Returns false if there is
    /// nothing to free.
    fn give_up_reserve(&self) -> bool {
        false
    }

    /// Returns whether the reserve was given up and has not been allocated again.
    fn is_short(&self) -> bool {
        false
    }

    /// Returns whether the main file may grow by `bytes`. Once the reserve has been given up,
    /// growth is limited.
    fn may_grow(&self, _bytes: u64) -> bool {
        true
    }

    /// Makes the whole log durable if possible. Returns the position up to which it is durable, and
    /// the salt of the segment there, or `None` if there is no durable log.
    fn settle(&self) -> Option<(Lsn, u64)> {
        None
    }
}

/// No log, for trees whose pages need not survive a crash: temporary tables, and tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlogged;

impl Log for Unlogged {
    fn end(&self) -> Lsn {
        Lsn::NONE
    }

    fn append(&self, _record: &[u8]) -> Result<Lsn> {
        Ok(Lsn::NONE)
    }
}
