//! The row that a transaction has locked last.

use crate::mvcc::Key;

/// A locked row and its contents. A transaction that locks a row usually changes it next, and need
/// not look it up again.
#[derive(Debug)]
pub(super) struct LockedRow {
    pub(super) tree: u32,
    pub(super) key: Key,
    pub(super) record: Vec<u8>,
}
