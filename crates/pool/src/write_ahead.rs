//! The rule that makes recovery possible: no page reaches the disk before the log record that
//! describes its last change.

use std::error::Error;
use std::fmt;

/// A position in the log, as the owner of the log counts: later records have larger ones. 0 is
/// before all of them, and stands for changes that no record describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// For changes that are not logged.
    pub const NONE: Lsn = Lsn(0);
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LSN {}", self.0)
    }
}

/// The log of a file, as far as the pool has to know it.
pub trait WriteAhead: fmt::Debug + Send + Sync {
    /// Returns when the log is on stable storage up to and with the record at `lsn`. Called before
    /// pages are written, from any thread, which may hold the page that is written (an eviction
    /// does) and others: it must not wait for pages.
    ///
    /// Errors: the log's; the pages stay dirty and in memory.
    fn make_durable(&self, lsn: Lsn) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Up to where the log is on stable storage by now, as far as it knows without waiting: what a
    /// double write remembers of it. The default knows nothing.
    fn durable(&self) -> Lsn {
        Lsn::NONE
    }

    /// Where the log ends, if it has never reached `lsn`. A page with such a change is not
    /// believed: by the rule above the log has lost what it had, or is another one. Called when
    /// pages are read; must not wait. The default knows of no end.
    fn end_before(&self, lsn: Lsn) -> Option<Lsn> {
        let _ = lsn;
        None
    }
}
