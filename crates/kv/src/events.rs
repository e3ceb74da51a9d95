//! What happens in a store, as it happens.

use std::fmt;
use std::time::Duration;

use crate::Error;
use crate::file::FileNumber;

/// Why writes wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallCause {
    /// As many sealed memtables as allowed wait for their flush.
    Memtables,
    /// Level 0 holds too many tables: each costs every read a look.
    LevelZero,
    /// Too many bytes wait for compaction.
    PendingCompaction,
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StallCause::Memtables => "sealed memtables wait for their flush",
            StallCause::LevelZero => "level 0 has too many tables",
            StallCause::PendingCompaction => "too many bytes wait for compaction",
        })
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A memtable was written to a table.
    Flushed {
        /// The keyspace's name.
        keyspace: String,
        /// The table; `None` when nothing survived.
        table: Option<FileNumber>,
        /// Its bytes.
        bytes: u64,
        /// How long it took.
        took: Duration,
    },
    /// Tables were merged.
    Compacted {
        /// The keyspace's name.
        keyspace: String,
        /// The strategy's reason.
        reason: String,
        /// The level written to.
        level: usize,
        /// Tables and bytes read.
        input: (usize, u64),
        /// Tables and bytes written.
        output: (usize, u64),
        /// How long it took.
        took: Duration,
    },
    /// A writer was held up for longer than a millisecond.
    Stalled {
        /// The keyspace's name.
        keyspace: String,
        /// Why.
        cause: StallCause,
        /// How long.
        waited: Duration,
    },
    /// A compaction was given up because code of the user's panicked. Its input stays, and it is
    /// tried again after later flushes of the keyspace, after fewer and fewer of them as it goes on
    /// to fail.
    GivenUp {
        /// The keyspace's name.
        keyspace: String,
        /// The [`Error::Panicked`], which names the key.
        error: Error,
    },
    /// A flush or a compaction failed; the store does not write any more.
    Failed {
        /// The failure.
        error: Error,
    },
}

/// Hears of events. Called on the thread where they happen: be quick, and do not call the store. A
/// panic there is caught and changes nothing: what the event is of has happened.
pub trait EventListener: fmt::Debug + Send + Sync + 'static {
    /// `event` has happened.
    fn on_event(&self, event: &Event);
}
