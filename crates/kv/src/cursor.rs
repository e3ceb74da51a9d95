//! The common interface of everything that is iterated in key order: memtables, blocks, tables,
//! levels and merges.

use crate::Result;
use crate::kind::{Kind, Seqno};

/// Iterates over entries in ascending order of keys and, within a key, in descending order of
/// sequence numbers, so that the newest version comes first.
///
/// A cursor is either positioned on an entry or invalid. It starts invalid and is positioned by
/// `seek*`. `next` and `prev` require a valid cursor and make it invalid when they pass either end.
/// After an error the cursor is invalid until the next seek. Keys and values are borrowed from the
/// cursor and end with its next move.
pub(crate) trait Cursor {
    /// Returns true if the cursor is positioned on an entry.
    fn valid(&self) -> bool;

    /// Moves to the first entry.
    fn seek_first(&mut self) -> Result<()>;

    /// Moves to the last entry.
    fn seek_last(&mut self) -> Result<()>;

    /// Moves to the first entry at or after (`key`, `seqno`). Versions of `key` itself that are
    /// newer than `seqno` are skipped.
    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()>;

    /// Moves to the last entry whose key is less than `key`, or, if `inclusive`, less than or equal
    /// to it. That entry is the oldest version of its key.
    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()>;

    /// Moves to the next entry.
    fn next(&mut self) -> Result<()>;

    /// Moves to the previous entry.
    fn prev(&mut self) -> Result<()>;

    /// Returns the user key.
    fn key(&self) -> &[u8];

    /// Returns the sequence number of the entry.
    fn seqno(&self) -> Seqno;

    /// Returns the type of the entry.
    fn kind(&self) -> Kind;

    /// Returns the value bytes of the entry.
    fn value(&self) -> &[u8];
}
