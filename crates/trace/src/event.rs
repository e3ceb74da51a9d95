//! A single operation of a trace, in the form in which it is recorded and read.

use cairn_codec::checksum::xxh3_64_seeded;
use serde::Serialize;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A lookup of one key.
    Get,
    /// A write of one key.
    Put,
    /// A deletion of one key.
    Delete,
    /// A write of a merge operand.
    Merge,
    /// A scan: entries in key order, starting at a key.
    Scan,
    /// A deletion of all keys in a range.
    DeleteRange,
    /// An SQL statement.
    Statement,
    /// A request to a cache for a block or page.
    Block,
}

impl Kind {
    /// All kinds, in the order of their numbers in the file format.
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

    /// Returns the name that tables and CSV files use for this kind.
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

    /// Returns the kind with this name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if the operation changes the store. Always false for [`Kind::Statement`],
    /// because the kind does not tell whether a statement writes.
    pub fn is_write(self) -> bool {
        matches!(self, Kind::Put | Kind::Delete | Kind::Merge | Kind::DeleteRange)
    }

    /// Returns true if the operation reads the store or a cache.
    pub fn is_read(self) -> bool {
        matches!(self, Kind::Get | Kind::Scan | Kind::Block)
    }
}

/// The properties of an operation apart from its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail<'a> {
    /// [`Kind::Get`]: the value's size in bytes. `None` if the outcome is unknown; `Some(None)` if
    /// there was no value.
    Get(Option<Option<u64>>),
    /// [`Kind::Put`]: the value's size in bytes.
    Put(u64),
    /// [`Kind::Delete`].
    Delete,
    /// [`Kind::Merge`]: the operand's size in bytes.
    Merge(u64),
    /// [`Kind::Scan`]: the number of entries read, and the direction.
    Scan {
        /// The number of entries read.
        entries: u64,
        /// True for a scan in descending order from the key.
        backwards: bool,
    },
    /// [`Kind::DeleteRange`]: the exclusive end in the same form as the key, and its original
    /// length.
    DeleteRange {
        /// The end key, or its hash if keys are hashed.
        end: &'a [u8],
        /// Length in bytes of the original end key.
        end_bytes: u32,
    },
    /// [`Kind::Statement`]: the number of rows returned or changed.
    Statement(u64),
    /// [`Kind::Block`]: the block's size, and whether the cache held it, if that is known.
    Block {
        /// Size of the block in bytes.
        bytes: u64,
        /// Whether the traced cache held the block.
        hit: Option<bool>,
    },
}

/// One operation of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Nanoseconds since the trace began. In a trace without times, an increasing number.
    pub time_ns: u64,
    /// The recording thread, or several threads that share a lane.
    pub lane: u32,
    /// True if this event belongs to the same batch or multi-get as the event before.
    pub joined: bool,
    /// The keyspace (column family); 0 is the default one.
    pub keyspace: u32,
    /// The key. If keys are hashed: the key's hash as 8 bytes, little-endian.
    pub key: &'a [u8],
    /// Length in bytes of the original key.
    pub key_bytes: u32,
    /// The properties that depend on the kind.
    pub detail: Detail<'a>,
}

impl Event<'_> {
    /// Returns the kind of the operation.
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

    /// Returns a number that identifies the key within its keyspace. Two keys collide with a
    /// probability of about 2^-64; the same key in two keyspaces has two numbers.
    #[inline]
    pub fn id(&self) -> u64 {
        xxh3_64_seeded(self.key, u64::from(self.keyspace))
    }

    /// Returns the size in bytes of the value, operand or block, if there is one and its size is
    /// known.
    pub fn value_bytes(&self) -> Option<u64> {
        match self.detail {
            Detail::Get(Some(found)) => found,
            Detail::Put(bytes) | Detail::Merge(bytes) | Detail::Block { bytes, .. } => Some(bytes),
            _ => None,
        }
    }
}
