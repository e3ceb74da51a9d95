//! The one interface of everything that can be walked in key order: memtables, blocks, tables,
//! levels, merges.

use crate::Result;
use crate::kind::{Kind, Seqno};

/// Walks entries by key ascending, and within a key by sequence number descending: the newest
/// version comes first.
///
/// A cursor stands on an entry or is not valid. It starts invalid; `seek*` places it. `next` and
/// `prev` may only be called on a valid one, and make it invalid past either end. After an error it
/// is invalid until a seek. Keys and values are borrowed from the cursor: they are gone at its next
/// move.
pub(crate) trait Cursor {
    /// True when it stands on an entry.
    fn valid(&self) -> bool;

    /// Moves to the first entry.
    fn seek_first(&mut self) -> Result<()>;

    /// Moves to the last entry.
    fn seek_last(&mut self) -> Result<()>;

    /// Moves to the first entry at or after (`key`, `seqno`): of `key` itself, versions written
    /// after `seqno` are skipped.
    fn seek(&mut self, key: &[u8], seqno: Seqno) -> Result<()>;

    /// Moves to the last entry whose key is less than `key`, or less than or equal when
    /// `inclusive`: its oldest version.
    fn seek_back(&mut self, key: &[u8], inclusive: bool) -> Result<()>;

    /// Moves to the next entry.
    fn next(&mut self) -> Result<()>;

    /// Moves to the entry before.
    fn prev(&mut self) -> Result<()>;

    /// The user's key.
    fn key(&self) -> &[u8];

    /// When the entry was written.
    fn seqno(&self) -> Seqno;

    /// What the entry does.
    fn kind(&self) -> Kind;

    /// The entry's bytes.
    fn value(&self) -> &[u8];
}
