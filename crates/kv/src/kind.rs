//! Types of entries, and the order of the versions of a key.

/// The sequence number of a write. Later writes have higher numbers, and numbers are unique in the
/// whole store, across keyspaces.
///
/// A batch takes as many consecutive numbers as it has operations. An entry with number 0 is
/// visible to every reader: compaction assigns 0 to entries that no snapshot can tell apart any
/// more.
pub type Seqno = u64;

/// The highest sequence number: 56 bits, so that number and kind fit into one word.
pub const SEQNO_MAX: Seqno = (1 << 56) - 1;

const _: () = assert!(SEQNO_MAX.leading_zeros() == 8, "number and kind share a word");
// Files store kinds as these numbers.
const _: () = assert!(Kind::Delete as u8 == 0 && Kind::Put as u8 == 1);
const _: () = assert!(Kind::Merge as u8 == 2 && Kind::Blob as u8 == 3);

/// The effect of an entry on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Removes the key: a tombstone. The value is empty.
    Delete = 0,
    /// Sets the value.
    Put = 1,
    /// An operand for the keyspace's merge operator.
    Merge = 2,
    /// Sets the value. The entry stores the value's location in a blob file.
    Blob = 3,
}

impl Kind {
    /// Returns the kind encoded as `byte`, or `None` for an invalid byte.
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

/// One version of a key, as returned by lookups and cursors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version<'a> {
    /// The sequence number of the write.
    pub seqno: Seqno,
    /// The effect of the version on the key.
    pub kind: Kind,
    /// The value; empty for a tombstone.
    pub value: &'a [u8],
}
