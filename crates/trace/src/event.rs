//! One operation, as it is recorded and as it is read.

use cairn_codec::checksum::xxh3_64_seeded;
use serde::Serialize;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A lookup of one key.
    Get,
    /// A key was set.
    Put,
    /// A key was removed.
    Delete,
    /// An operand for a merge operator.
    Merge,
    /// Entries in order from a key on.
    Scan,
    /// All keys between two were removed.
    DeleteRange,
    /// A statement of SQL.
    Statement,
    /// A block or page was asked of a cache.
    Block,
}

impl Kind {
    /// All of them, in the order of their numbers in the format.
    pub const ALL: [Kind; 8] = [
        Kind::Get,
        Kind::Put,
        Kind::Delete,
        Kind::Merge,
        Kind::Scan,
        Kind::DeleteRange,
        Kind::Statement,
        Kind::Block,
    ];

    /// Its name in tables and in CSV.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Get => "get",
            Kind::Put => "put",
            Kind::Delete => "delete",
            Kind::Merge => "merge",
            Kind::Scan => "scan",
            Kind::DeleteRange => "delete_range",
            Kind::Statement => "statement",
            Kind::Block => "block",
        }
    }

    /// The kind of a name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True for what changes the store. Of statements the kind does not say it.
    pub fn is_write(self) -> bool {
        matches!(self, Kind::Put | Kind::Delete | Kind::Merge | Kind::DeleteRange)
    }

    /// True for what reads the store or a cache.
    pub fn is_read(self) -> bool {
        matches!(self, Kind::Get | Kind::Scan | Kind::Block)
    }
}

/// What is known of an operation beside its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// [`Kind::Get`]: the value's bytes. `None` where nobody said what came of it; `Some(None)` where there was no
    /// value.
    Get(Option<Option<u64>>),
    /// [`Kind::Put`]: the value's bytes.
    Put(u64),
    /// [`Kind::Delete`].
    Delete,
    /// [`Kind::Merge`]: the operand's bytes.
    Merge(u64),
    /// [`Kind::Scan`]: entries read, and whether in descending order.
    Scan {
        /// How many entries were read.
        entries: u64,
        /// From the key downwards.
        backwards: bool,
    },
    /// [`Kind::DeleteRange`]: the end, exclusive, in the same form as the key, and its real length.
    DeleteRange {
        /// The end; its hash where keys are hashed.
        end: &'a [u8],
        /// Bytes of the end.
        end_bytes: u32,
    },
    /// [`Kind::Statement`]: rows returned or changed.
    Statement(u64),
    /// [`Kind::Block`]: its bytes, and whether the cache had it, where that is known.
    Block {
        /// Bytes of the block.
        bytes: u64,
        /// Whether the cache that was traced had it.
        hit: Option<bool>,
    },
}

/// One operation of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Nanoseconds since the trace began. Where the trace has no times, a number that only grows.
    pub time_ns: u64,
    /// The thread, or several that share a lane.
    pub lane: u32,
    /// Belongs to the event before: one batch, one multi-get.
    pub joined: bool,
    /// The keyspace (column family), 0 for the default one.
    pub keyspace: u32,
    /// The key; its hash in 8 bytes, little-endian, where keys are hashed.
    pub key: &'a [u8],
    /// Bytes of the real key.
    pub key_bytes: u32,
    /// The rest.
    pub detail: Detail<'a>,
}

impl Event<'_> {
    /// What was done.
    pub fn kind(&self) -> Kind {
        match self.detail {
            Detail::Get(_) => Kind::Get,
            Detail::Put(_) => Kind::Put,
            Detail::Delete => Kind::Delete,
            Detail::Merge(_) => Kind::Merge,
            Detail::Scan { .. } => Kind::Scan,
            Detail::DeleteRange { .. } => Kind::DeleteRange,
            Detail::Statement(_) => Kind::Statement,
            Detail::Block { .. } => Kind::Block,
        }
    }

    /// A number for the key that other keys have with a chance of about 2^-64: keyspaces are apart.
    #[inline]
    pub fn id(&self) -> u64 {
        xxh3_64_seeded(self.key, u64::from(self.keyspace))
    }

    /// Bytes of the value, operand or block, where there is one and its size is known.
    pub fn value_bytes(&self) -> Option<u64> {
        match self.detail {
            Detail::Get(Some(found)) => found,
            Detail::Put(bytes) | Detail::Merge(bytes) | Detail::Block { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}
