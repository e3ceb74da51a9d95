//! What an entry is, and where it stands among the versions of its key.

/// The number of a write. Later writes have higher ones; every entry of the store has its own,
/// keyspaces included.
///
/// A batch takes as many as it has operations, in order. 0 is an entry that everybody sees:
/// compaction gives it to what no snapshot can tell apart any more.
pub type Seqno = u64;

/// The highest sequence number: 56 bits, so that number and kind fit one word.
pub const SEQNO_MAX: Seqno = (1 << 56) - 1;

/// What an entry does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Removes the key: a tombstone. Its value is empty.
    Delete = 0,
    /// Sets the value.
    Put = 1,
    /// An operand for the keyspace's merge operator.
    Merge = 2,
    /// Sets the value; what is stored here says where in a blob file it is.
    Blob = 3,
}

impl Kind {
    /// The kind that `byte` stands for. `None` for bytes that no writer writes.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Kind> {
        match byte {
            0 => Some(Kind::Delete),
            1 => Some(Kind::Put),
            2 => Some(Kind::Merge),
            3 => Some(Kind::Blob),
            _ => None,
        }
    }
}

/// One version of a key, as lookups and cursors show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// When it was written.
    pub seqno: Seqno,
    /// What it does.
    pub kind: Kind,
    /// Its bytes; empty for a tombstone.
    pub value: &'a [u8],
}
