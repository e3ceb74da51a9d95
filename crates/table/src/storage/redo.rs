//! Doing again what the log says.

use cairn_pool::{Exclusive, Lsn, PoolFile};

use super::change::PAGES;
use super::ops::Op;
use crate::catalog::GHOST;
use crate::{Error, Result};

/// Pages and the bytes of their operations, out of a record.
fn pages(record: &[u8]) -> Option<Vec<(u32, &[u8])>> {
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

/// Whether the changes of a row's record leave a ghost.
pub(crate) fn leaves_ghost(record: &[u8]) -> bool {
    let op = pages(record).and_then(|pages| pages.first().and_then(|(_, ops)| Op::decode(ops)));
    matches!(op, Some((Op::Replace { value: &[GHOST], .. }, _)))
}

/// A page as it is on the disk, or a new one: where the file ends before it, and where it is
/// damaged and what is done first makes all of it.
fn page<'f>(file: &'f PoolFile, number: u32, ops: &[u8]) -> Result<Exclusive<'f>> {
    match file.write(number) {
        Ok(guard) => Ok(guard),
        Err(cairn_pool::Error::NotThere { .. }) => Ok(file.create(number)?),
        Err(cairn_pool::Error::Corruption { .. }) if Op::decode(ops).is_some_and(|(op, _)| op.is_whole()) => {
            Ok(file.create(number)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Does the page changes of a record again, if it has any, on pages that do not have it yet.
/// Errors: [`Error::Corruption`] for a record that nobody has written, or a page that it does not
/// fit; the pool's.
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
            let what = || format!("the log record at {lsn} does not fit it");
            let (op, left) = Op::decode(rest).ok_or_else(|| damaged(number, what()))?;
            op.apply(payload).map_err(|_| damaged(number, what()))?;
            rest = left;
        }
    }
    Ok(())
}
