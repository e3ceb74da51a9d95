//! Log records: the changes, the transaction that made them, and how to undo them.
//!
//! ```text
//!   pages      1 | page changes (change.rs)
//!   row        2 | transaction u64 | tree u32 | before u8 | key length u16 | value length u16
//!                | key | value | page changes
//!                  before: 0 the transaction has changed this key earlier
//!                          1 there was no record
//!                          2 there was a record with this value
//!   commit     3 | transaction u64
//!   abort      4 | transaction u64              all its changes were undone
//!   made       5 | transaction u64 | root u32   a tree to free unless the transaction commits
//!   dropped    6 | transaction u64 | root u32   a tree to free when it commits
//!   freed      7 | root u32                     freeing of its pages has begun
//!   dropped    8 | transaction u64 | root u32   as 6, including the chains of its long rows
//! ```
//!
//! Numbers are little endian. Undoing a transaction restores every key of its row records to the
//! value in the first, oldest record of the key. No other transaction has changed the key since,
//! because the transaction holds it until its end. So undoing is idempotent, and its own records
//! need no undo.

use super::change::PAGES;

const ROW: u8 = 2;
const COMMIT: u8 = 3;
const ABORT: u8 = 4;
const MADE: u8 = 5;
const DROPPED: u8 = 6;
const FREED: u8 = 7;
const DROPPED_WITH_CHAINS: u8 = 8;
/// No kind of record is taken for another.
const _: () = assert!(PAGES < ROW && ROW < COMMIT && COMMIT < ABORT && ABORT < MADE);
const _: () = assert!(MADE < DROPPED && DROPPED < FREED && FREED < DROPPED_WITH_CHAINS);

/// A tree to be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DroppedTree {
    pub(crate) root: u32,
    /// Whether its long rows are freed with it. A tree that never became visible may have lost its
    /// long rows earlier, and their pages may be reused by now; then its creator frees them.
    pub(crate) with_chains: bool,
}

/// The contents of a key before a transaction changed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before<'a> {
    /// Known from an earlier record of the transaction.
    Known,
    /// The record did not exist.
    Absent,
    /// This value.
    Value(&'a [u8]),
}

/// A record, without the page changes that may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Pages,
    Row { transaction: u64, tree: u32, key: &'a [u8], before: Before<'a> },
    Commit { transaction: u64 },
    Abort { transaction: u64 },
    Made { transaction: u64, root: u32 },
    Dropped { transaction: u64, tree: DroppedTree },
    Freed { root: u32 },
}

impl<'a> Record<'a> {
    /// Appends the record: all of it, or for a row the part before the page changes.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        let start = to.len();
        let mut plain = |kind: u8, transaction: Option<u64>, root: Option<u32>| {
            to.push(kind);
            to.extend(transaction.into_iter().flat_map(u64::to_le_bytes));
            to.extend(root.into_iter().flat_map(u32::to_le_bytes));
        };
        match *self {
            Record::Pages => {}
            Record::Commit { transaction } => plain(COMMIT, Some(transaction), None),
            Record::Abort { transaction } => plain(ABORT, Some(transaction), None),
            Record::Made { transaction, root } => plain(MADE, Some(transaction), Some(root)),
            Record::Dropped { transaction, tree: DroppedTree { root, with_chains } } => {
                let kind = if with_chains { DROPPED_WITH_CHAINS } else { DROPPED };
                plain(kind, Some(transaction), Some(root));
            }
            Record::Freed { root } => plain(FREED, None, Some(root)),
            Record::Row { transaction, tree, key, before } => {
                plain(ROW, Some(transaction), Some(tree));
                let (kind, value): (u8, &[u8]) = match before {
                    Before::Known => (0, &[]),
                    Before::Absent => (1, &[]),
                    Before::Value(value) => (2, value),
                };
                to.push(kind);
                // Both are part of a page, so their lengths fit.
                debug_assert!(
                    u16::try_from(key.len()).is_ok() && u16::try_from(value.len()).is_ok(),
                    "a record of {} + {} bytes is logged",
                    key.len(),
                    value.len()
                );
                to.extend((key.len() as u16).to_le_bytes());
                to.extend((value.len() as u16).to_le_bytes());
                to.extend(key);
                to.extend(value);
            }
        }
        debug_assert!(
            *self == Record::Pages
                || Record::decode(to.get(start..).unwrap_or_default()) == Some((*self, &[][..])),
            "{self:?} is not decoded as it was encoded"
        );
    }

    /// Decodes a record, and returns it with the bytes of its page changes, if it has any. Returns
    /// `None` for bytes that are not a record.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
        let (&kind, mut rest) = bytes.split_first()?;
        let rest = &mut rest;
        let record = match kind {
            PAGES => return Some((Record::Pages, bytes)),
            ROW => {
                let (transaction, tree) = (u64(rest)?, u32(rest)?);
                let kind = *take(rest, 1)?.first()?;
                let (key, value) = (u16(rest)?, u16(rest)?);
                let (key, value) = (take(rest, key.into())?, take(rest, value.into())?);
                let before = match kind {
                    0 if value.is_empty() => Before::Known,
                    1 if value.is_empty() => Before::Absent,
                    2 => Before::Value(value),
                    _ => return None,
                };
                return Some((Record::Row { transaction, tree, key, before }, rest));
            }
            COMMIT => Record::Commit { transaction: u64(rest)? },
            ABORT => Record::Abort { transaction: u64(rest)? },
            MADE => Record::Made { transaction: u64(rest)?, root: u32(rest)? },
            DROPPED | DROPPED_WITH_CHAINS => {
                let (transaction, root) = (u64(rest)?, u32(rest)?);
                Record::Dropped {
                    transaction,
                    tree: DroppedTree { root, with_chains: kind == DROPPED_WITH_CHAINS },
                }
            }
            FREED => Record::Freed { root: u32(rest)? },
            _ => return None,
        };
        rest.is_empty().then_some((record, *rest))
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn u16(rest: &mut &[u8]) -> Option<u16> {
    take(rest, 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32(rest: &mut &[u8]) -> Option<u32> {
    take(rest, 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64(rest: &mut &[u8]) -> Option<u64> {
    take(rest, 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: records decode to the same records, and truncated ones are refused.
    #[test]
    fn encodings() {
        let records = [
            Record::Row { transaction: 1 << 40, tree: 7, key: b"key", before: Before::Known },
            Record::Row { transaction: 1, tree: 7, key: b"", before: Before::Absent },
            Record::Row { transaction: 1, tree: 7, key: b"key", before: Before::Value(b"") },
            Record::Row { transaction: 1, tree: 7, key: b"key", before: Before::Value(b"value") },
            Record::Commit { transaction: 3 },
            Record::Abort { transaction: 4 },
            Record::Made { transaction: 5, root: 6 },
            Record::Dropped { transaction: 7, tree: DroppedTree { root: 8, with_chains: false } },
            Record::Dropped { transaction: 7, tree: DroppedTree { root: 8, with_chains: true } },
            Record::Freed { root: 9 },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Some((record, &[][..])));
            (0..bytes.len())
                .for_each(|cut| assert_eq!(Record::decode(&bytes[..cut]), None, "{record:?} {cut}"));
            bytes.extend(b"more");
            let more = Record::decode(&bytes);
            assert_eq!(more.is_some(), matches!(record, Record::Row { .. }), "{record:?}");
        }
        assert_eq!(Record::decode(&[1, 2]), Some((Record::Pages, &[1, 2][..])));
        assert_eq!(Record::decode(&[99]), None);
    }
}
