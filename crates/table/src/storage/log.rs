//! What the storage asks of a log.

use std::fmt;

use cairn_pool::Lsn;

use crate::Result;

/// Takes records of page changes. The records of one page are in the log in the order in which they
/// were applied to it: whoever appends holds the page.
pub trait Log: fmt::Debug + Send + Sync {
    /// No record that is appended from now on gets a number that is not above this.
    fn end(&self) -> Lsn;

    /// Appends a record. Its number is larger than those of all records before. Errors: the log's;
    /// then nothing was changed.
    fn append(&self, record: &[u8]) -> Result<Lsn>;

    /// Frees a part of the reserve if this thread's work gives space back (`giving.rs`), so that an
    /// append that failed for a full disk can be tried again. False if there was nothing to free.
    fn give_up_reserve(&self) -> bool {
        false
    }

    /// Whether the reserve was given up and has not been allocated again.
    fn is_short(&self) -> bool {
        false
    }

    /// Whether the main file may grow by `bytes`: growth out of a reserve that was given up is
    /// bounded.
    fn lets_grow(&self, _bytes: u64) -> bool {
        true
    }

    /// Makes all of it durable, where it can be made so, and says up to where it is and the random
    /// number of its segment there. `None` where there is no such thing.
    fn settle(&self) -> Option<(Lsn, u64)> {
        None
    }
}

/// For trees whose pages need not outlive a crash: temporary tables, and tests.
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
