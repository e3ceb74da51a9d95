//! The write-ahead rule, on which recovery depends: no page reaches the disk before the log record
//! of its last change.

use std::error::Error;
use std::fmt;

/// A position in the log, as defined by the owner of the log: later records have larger positions.
/// 0 comes before all records and stands for unlogged changes.
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

/// The part of a file's log that the pool uses.
pub trait WriteAhead: fmt::Debug + Send + Sync {
    /// Returns once the log is durable up to and including the record at `lsn`. Called before pages
    /// are written, from any thread. The thread may hold the page being written (as in an eviction)
    /// and others, so this must not wait for pages.
    ///
    /// Errors: those of the log; the pages stay dirty and in memory.
    fn make_durable(&self, lsn: Lsn) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Returns a position up to which the log is known to be durable, without waiting. The double
    /// write records it. The default implementation returns [`Lsn::NONE`].
    fn durable(&self) -> Lsn {
        Lsn::NONE
    }

    /// Returns the end of the log if the log never reached `lsn`. A page with such an LSN is
    /// rejected: by the write-ahead rule, the log has lost records or is a different one. Called
    /// when pages are read; must not wait. The default implementation returns `None`.
    fn end_before(&self, lsn: Lsn) -> Option<Lsn> {
        let _ = lsn;
        None
    }
}
