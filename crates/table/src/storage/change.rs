//! Changes to several pages that happen together or not at all: one log record.
//!
//! ```text
//!   [header] | 1 | pages u16 | page u32 | bytes of operations u32 | operations ... | page ...
//! ```
//!
//! The header says on whose behalf it is, and how to undo it; structure changes have none. See
//! `record.rs`.

use cairn_pool::Exclusive;

use super::log::Log;
use super::ops::Op;
use crate::{Error, Result};

/// What a record begins with that holds page changes.
pub(crate) const PAGES: u8 = 1;

/// Pages that are held alone, with what is going to be done to each. Nothing is until
/// [`Change::commit`]; dropping it lets go of all.
#[derive(Debug, Default)]
pub(crate) struct Change<'p> {
    pages: Vec<Planned<'p>>,
}

#[derive(Debug)]
struct Planned<'p> {
    guard: Exclusive<'p>,
    ops: Vec<u8>,
}

/// Does some operations on one page: as a [`Change`] of it, with less to do. The record is made
/// behind the `header`, in its memory. Errors: as [`Change::commit`].
#[inline]
pub(crate) fn change_page<'o>(
    mut guard: Exclusive<'_>,
    ops: impl Iterator<Item = Op<'o>> + Clone,
    header: &mut Vec<u8>,
    log: &dyn Log,
    file: &std::path::Path,
) -> Result<()> {
    let number = guard.id().page();
    let (start, record) = (header.len(), header);
    record.reserve(16 + ops.clone().map(|op| 16 + op.len()).sum::<usize>());
    record.extend([PAGES, 1, 0]);
    record.extend(number.to_le_bytes());
    record.extend([0; 4]);
    ops.clone().for_each(|op| op.encode(record));
    let len = (record.len() - start - 11) as u32;
    if let Some(place) = record.get_mut(start + 7..start + 11) {
        place.copy_from_slice(&len.to_le_bytes());
    }
    // ORDER: as in `Change::commit`.
    _ = guard.payload_mut(log.end());
    let lsn = log.append(record)?;
    let (payload, mut ops) = (guard.payload_mut(lsn), ops);
    ops.try_for_each(|op| {
        op.apply(payload).map_err(|_| Error::Corruption {
            file: file.to_owned(),
            page: number,
            what: format!("it has no room for {op:?}"),
        })
    })
}

impl<'p> Change<'p> {
    /// Takes a page in.
    pub(crate) fn hold(&mut self, guard: Exclusive<'p>) -> usize {
        self.pages.push(Planned { guard, ops: Vec::new() });
        self.pages.len() - 1
    }

    /// Plans an operation on a page that was taken in.
    pub(crate) fn plan(&mut self, page: usize, op: Op<'_>) {
        if let Some(page) = self.pages.get_mut(page) {
            op.encode(&mut page.ops);
        }
    }

    /// Logs everything, and does it. Errors: the log's, and then nothing was done;
    /// [`Error::Corruption`] when a page is not what it seemed to be.
    pub(crate) fn commit(mut self, log: &dyn Log, file: &std::path::Path) -> Result<()> {
        let mut record =
            Vec::with_capacity(3 + self.pages.iter().map(|page| 8 + page.ops.len()).sum::<usize>());
        record.push(PAGES);
        record.extend((self.pages.len() as u16).to_le_bytes());
        for page in &self.pages {
            record.extend(page.guard.id().page().to_le_bytes());
            record.extend((page.ops.len() as u32).to_le_bytes());
            record.extend(&page.ops);
        }
        // ORDER: the pages are marked before the record is in the log. A checkpoint that finds a
        // page unmarked may then give the log back up to where it ended before the look, since the
        // page's record comes behind that.
        let end = log.end();
        self.pages.iter_mut().for_each(|page| _ = page.guard.payload_mut(end));
        let lsn = log.append(&record)?;
        for mut page in self.pages {
            let number = page.guard.id().page();
            let payload = page.guard.payload_mut(lsn);
            let mut rest = &page.ops[..];
            while let Some((op, left)) = Op::decode(rest) {
                op.apply(payload).map_err(|_| Error::Corruption {
                    file: file.to_owned(),
                    page: number,
                    what: format!("it has no room for {op:?}"),
                })?;
                rest = left;
            }
        }
        Ok(())
    }
}
