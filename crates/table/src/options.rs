//! Options of a database, and the guarantees that a transaction can ask for.

use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, SystemClock};

use crate::storage::StoreOptions;

/// The durability that a commit guarantees when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// In the page cache: survives a crash of the process, but not a power loss.
    Buffered,
    /// On stable storage.
    #[default]
    Sync,
}

/// The isolation level of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees the commits before it began.
    #[default]
    ReadCommitted,
    /// All statements see the commits before the first one. If two transactions change the same
    /// row, the second one fails.
    Snapshot,
    /// As if transactions had run one after another. A transaction fails if it has read data that
    /// another has changed meanwhile.
    Serializable,
}

/// Options for opening a database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Pages and log.
    pub store: StoreOptions,
    /// Amount of log after which a checkpoint follows. Recovery has to read at most about twice as
    /// much. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Memory for sorting: the entries of a new index, and the rows of a bulk load or a backup that
    /// do not arrive in order. The rest spills to a temporary file beside the database. Default 64
    /// MiB.
    pub sort_bytes: usize,
    /// How long a transaction waits for a row that another one holds. `None`, the default, for no
    /// limit; deadlocks are detected at once, not by a timeout.
    pub lock_timeout: Option<Duration>,
    /// Whether bulk-built trees, for bulk inserts into empty tables and for new indexes, get packed
    /// leaves where these save at least a quarter of the bytes. Default true. The first change of a
    /// row in a packed leaf costs more, because the leaf must be unpacked. Files may contain both
    /// kinds in any case.
    pub pack: bool,
    /// The clock for the timeout.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            store: StoreOptions::default(),
            checkpoint_bytes: 256 << 20,
            sort_bytes: 64 << 20,
            lock_timeout: None,
            pack: true,
            clock: Arc::new(SystemClock::new()),
        }
    }
}
