//! Atomic changes to several pages, as one log record.
//!
//! ```text
//!   [header] | 1 | pages u16 | page u32 | bytes of operations u32 | operations ... | page ...
//! ```
//!
//! The header names the transaction and how to undo the change; structure changes have none. See
//! `record.rs`.

use cairn_pool::Exclusive;

use super::log::Log;
use super::node::{INNER, LEAF, Node};
use super::ops::Op;
use crate::{Error, Result};

/// The first byte of a record of page changes.
pub(crate) const PAGES: u8 = 1;

/// Pages held exclusively, and the operations planned on each. Nothing is changed before
/// [`Change::commit`]; dropping it releases all pages.
#[derive(Debug, Default)]
pub(crate) struct Change<'p> {
    pages: Vec<Planned<'p>>,
}

#[derive(Debug)]
struct Planned<'p> {
    guard: Exclusive<'p>,
    ops: Vec<u8>,
}

/// Applies operations to one page, like a [`Change`] but cheaper. The record is built after
/// `header`, in the same buffer. Errors: as [`Change::commit`].
#[inline]
pub(crate) fn change_page<'o>(
    mut guard: Exclusive<'_>,
    ops: impl Iterator<Item = Op<'o>> + Clone,
    header: &mut Vec<u8>,
    log: &dyn Log,
    file: &std::path::Path,
) -> Result<()> {
    let number = guard.id().page();
    let was_sound = cfg!(debug_assertions) && is_sampled(&guard) && Node(&*guard).is_sound();
    let (start, record) = (header.len(), header);
    record.reserve(16 + ops.clone().map(|op| 16 + op.len()).sum::<usize>());
    record.extend([PAGES, 1, 0]);
    record.extend(number.to_le_bytes());
    record.extend([0; 4]);
    ops.clone().for_each(|op| op.encode(record));
    debug_assert!(
        record.get(start) == Some(&PAGES) && record.len() > start + 11,
        "the record of a change of page {number} has no operations"
    );
    let len = (record.len() - start - 11) as u32;
    if let Some(place) = record.get_mut(start + 7..start + 11) {
        place.copy_from_slice(&len.to_le_bytes());
    }
    debug_assert!(
        is_record(record.get(start..).unwrap_or_default()),
        "the record of a change of page {number} cannot be replayed"
    );
    // ORDER: as in `Change::commit`.
    _ = guard.payload_mut(log.end());
    let lsn = log.append(record)?;
    debug_assert!(
        lsn == cairn_pool::Lsn::NONE || lsn > guard.lsn(),
        "page {number} is changed at {lsn}, and was at {}",
        guard.lsn()
    );
    let (payload, mut ops) = (guard.payload_mut(lsn), ops);
    ops.try_for_each(|op| {
        op.apply(payload).map_err(|_| Error::Corruption {
            file: file.to_owned(),
            page: number,
            what: format!("it has no room for {op:?}"),
        })
    })?;
    debug_assert!(!was_sound || Node(&*payload).is_sound(), "a change damages page {number}");
    Ok(())
}

/// Returns whether a change of a page is checked in tests: each of them if there are few records,
/// and some otherwise.
fn is_sampled(page: &[u8]) -> bool {
    const FEW: usize = 32;
    Node(page).count().is_ok_and(|count| count < FEW || count.is_multiple_of(FEW))
}

/// Returns whether a page is a node, and not free or a part of a long value by now.
fn is_node(page: &[u8]) -> bool {
    page.first().is_some_and(|kind| [LEAF, INNER].contains(kind))
}

/// Returns whether page changes decode to operations, as recovery needs them.
fn is_record(record: &[u8]) -> bool {
    super::redo::pages(record).is_some_and(|pages| {
        pages.into_iter().all(|(_, mut ops)| {
            while let Some((_, rest)) = Op::decode(ops) {
                ops = rest;
            }
            ops.is_empty()
        })
    })
}

impl<'p> Change<'p> {
    /// Adds a page.
    pub(crate) fn hold(&mut self, guard: Exclusive<'p>) -> usize {
        debug_assert!(
            self.pages.iter().all(|page| page.guard.id() != guard.id()),
            "a change holds page {} twice",
            guard.id().page()
        );
        self.pages.push(Planned { guard, ops: Vec::new() });
        self.pages.len() - 1
    }

    /// Plans an operation on an added page.
    pub(crate) fn plan(&mut self, page: usize, op: Op<'_>) {
        debug_assert!(page < self.pages.len(), "{op:?} is planned for a page that is not held");
        if let Some(page) = self.pages.get_mut(page) {
            op.encode(&mut page.ops);
        }
    }

    /// Logs and applies all operations. Errors: the log's, with nothing changed;
    /// [`Error::Corruption`] if an operation does not fit its page.
    pub(crate) fn commit(mut self, log: &dyn Log, file: &std::path::Path) -> Result<()> {
        debug_assert!(
            !self.pages.is_empty() && u16::try_from(self.pages.len()).is_ok(),
            "a change is of {} pages",
            self.pages.len()
        );
        debug_assert!(
            self.pages.iter().all(|page| !page.ops.is_empty()),
            "a change holds a page and does not change it: {self:?}"
        );
        let mut record =
            Vec::with_capacity(3 + self.pages.iter().map(|page| 8 + page.ops.len()).sum::<usize>());
        record.push(PAGES);
        record.extend((self.pages.len() as u16).to_le_bytes());
        for page in &self.pages {
            record.extend(page.guard.id().page().to_le_bytes());
            record.extend((page.ops.len() as u32).to_le_bytes());
            record.extend(&page.ops);
        }
        // ORDER: the pages are marked dirty before the record is in the log. A checkpoint that
        // finds a page clean may release the log up to the end that it read before the check,
        // because the page's record comes after that.
        let end = log.end();
        self.pages.iter_mut().for_each(|page| _ = page.guard.payload_mut(end));
        debug_assert!(is_record(&record), "the record of a change cannot be replayed: {record:?}");
        let lsn = log.append(&record)?;
        for mut page in self.pages {
            let number = page.guard.id().page();
            let was_sound = cfg!(debug_assertions) && Node(&*page.guard).is_sound();
            let payload = page.guard.payload_mut(lsn);
            let is_written = cfg!(debug_assertions)
                && Op::decode(&page.ops).is_some_and(|(op, _)| matches!(op, Op::Image { .. }));
            let mut rest = &page.ops[..];
            while let Some((op, left)) = Op::decode(rest) {
                op.apply(payload).map_err(|_| Error::Corruption {
                    file: file.to_owned(),
                    page: number,
                    what: format!("it has no room for {op:?}"),
                })?;
                rest = left;
            }
            debug_assert!(
                !was_sound || is_written || !is_node(payload) || Node(&*payload).is_sound(),
                "a change damages page {number}"
            );
        }
        Ok(())
    }
}
