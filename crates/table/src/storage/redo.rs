//! Replaying page changes from the log.

use cairn_pool::{Exclusive, Lsn, PoolFile};

use super::change::PAGES;
use super::node::GHOST;
use super::ops::Op;
use crate::{Error, Result};

/// Splits a record into pages and the bytes of their operations.
pub(super) fn pages(record: &[u8]) -> Option<Vec<(u32, &[u8])>> {
    let (&kind, rest) = record.split_first()?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    if kind != PAGES {
        return None;
    }
    let mut pages = Vec::with_capacity(u16::from_le_bytes(*count).into());
    for _ in 0..u16::from_le_bytes(*count) {
        let (number, tail) = rest.split_first_chunk::<4>()?;
        let (len, tail) = tail.split_first_chunk::<4>()?;
        let (ops, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        pages.push((u32::from_le_bytes(*number), ops));
        rest = tail;
    }
    rest.is_empty().then_some(pages)
}

/// Returns whether the page changes of a row record leave a ghost.
pub(crate) fn leaves_ghost(record: &[u8]) -> bool {
    let op = pages(record).and_then(|pages| pages.first().and_then(|(_, ops)| Op::decode(ops)));
    matches!(op, Some((Op::Replace { value: &[GHOST], .. }, _)))
}

/// Returns a page from the disk, or a new one. The page is new if the file ends before it, or if it
/// is damaged and its first operation overwrites the whole page.
fn page<'f>(file: &'f PoolFile, number: u32, ops: &[u8]) -> Result<Exclusive<'f>> {
    match file.write(number) {
        Ok(guard) => Ok(guard),
        Err(cairn_pool::Error::BeyondEnd { .. }) => Ok(file.create(number)?),
        Err(cairn_pool::Error::Corruption { .. }) if Op::decode(ops).is_some_and(|(op, _)| op.is_whole()) => {
            Ok(file.create(number)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Replays the page changes of a record, if it has any, on pages that lack them. Errors:
/// [`Error::Corruption`] for a record that is invalid or does not fit a page; the pool's.
pub(crate) fn redo(file: &PoolFile, lsn: Lsn, record: &[u8]) -> Result<()> {
    let damaged = |page, what: String| Error::Corruption { file: file.path().to_owned(), page, what };
    if record.is_empty() {
        return Ok(());
    }
    let pages = pages(record)
        .ok_or_else(|| damaged(0, format!("the log record at {lsn} is not a record of a database")))?;
    for (number, mut rest) in pages {
        let mut guard = page(file, number, rest)?;
        if guard.lsn() >= lsn {
            continue;
        }
        let payload = guard.payload_mut(lsn);
        while !rest.is_empty() {
            let what = || format!("the log record at {lsn} does not fit this page");
            let (op, left) = Op::decode(rest).ok_or_else(|| damaged(number, what()))?;
            debug_assert!(left.len() < rest.len(), "an operation of the record at {lsn} has no bytes");
            op.apply(payload).map_err(|_| damaged(number, what()))?;
            rest = left;
        }
    }
    Ok(())
}
