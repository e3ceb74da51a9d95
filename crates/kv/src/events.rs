//! Events of a store and the listener that receives them.

use std::fmt;
use std::time::Duration;

use crate::Error;
use crate::file::FileNumber;

/// The cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StallCause {
    /// The maximum number of sealed memtables is waiting to be flushed.
    Memtables,
    /// Level 0 holds too many tables, each of which every read must search.
    LevelZero,
    /// Too many bytes are waiting for compaction.
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

/// An event in a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A memtable was flushed.
    Flushed {
        /// The keyspace's name.
        keyspace: String,
        /// The table written, or `None` if no entry survived.
        table: Option<FileNumber>,
        /// The size of the table in bytes.
        bytes: u64,
        /// The duration of the flush.
        took: Duration,
    },
    /// A compaction finished.
    Compacted {
        /// The keyspace's name.
        keyspace: String,
        /// The reason that the compaction strategy gave.
        reason: String,
        /// The output level.
        level: usize,
        /// Number of tables and bytes read.
        input: (usize, u64),
        /// Number of tables and bytes written.
        output: (usize, u64),
        /// The duration of the compaction.
        took: Duration,
    },
    /// A write stalled for more than a millisecond.
    Stalled {
        /// The keyspace's name.
        keyspace: String,
        /// The cause of the stall.
        cause: StallCause,
        /// The duration of the stall.
        waited: Duration,
    },
    /// A compaction was abandoned because user code panicked. Its input tables stay. It is retried
    /// after later flushes of the keyspace, less and less often as long as it keeps failing.
    Abandoned {
        /// The keyspace's name.
        keyspace: String,
        /// The [`Error::Panicked`], which names the key.
        error: Error,
    },
    /// A flush or compaction failed, and the store accepts no more writes.
    Failed {
        /// The failure.
        error: Error,
    },
}

/// Receives the events of a store. It is called on the thread where the event occurs, so it must
/// return quickly and must not call the store. A panic in it is caught and has no effect, because
/// the event has already taken place.
pub trait EventListener: fmt::Debug + Send + Sync + 'static {
    /// Called after `event` has taken place.
    fn on_event(&self, event: &Event);
}
