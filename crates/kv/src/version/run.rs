//! A sorted run: tables in key order that do not overlap, and the search among them.

use std::ops::Bound;

use cairn_vfs::sync::Arc;

use super::fences::Fences;
use super::handle::TableFile;

/// Tables in key order, disjoint: a key has all its versions of this run in one table. Never empty,
/// immutable.
///
/// A table whose range tombstones were cut at the next table's first key *touches* it: its largest
/// key equals that first key. It has no entry of its own there and the tombstone does not reach it,
/// so lookups of that key go to the later table.
#[derive(Debug)]
pub(crate) struct Run {
    id: u64,
    bytes: u64,
    fences: Fences,
    tables: Vec<Arc<TableFile>>,
}

impl Run {
    /// A run of `tables` in any order. Says what is wrong when they overlap or there are none.
    pub(crate) fn new(id: u64, mut tables: Vec<Arc<TableFile>>) -> Result<Run, String> {
        if tables.is_empty() {
            return Err(format!("run {id} has no tables"));
        }
        tables
            .sort_by(|a, b| a.meta.smallest.cmp(&b.meta.smallest).then(a.meta.largest.cmp(&b.meta.largest)));
        for pair in tables.windows(2) {
            let [a, b] = pair else { continue };
            let may_touch = a.meta.tombstones > 0 && a.meta.smallest < b.meta.smallest;
            if a.meta.largest > b.meta.smallest || (a.meta.largest == b.meta.smallest && !may_touch) {
                let (a, b) = (a.number(), b.number());
                return Err(format!("tables {a} and {b} of run {id} overlap"));
            }
        }
        let bytes = tables.iter().map(|table| table.meta.bytes).fold(0, u64::saturating_add);
        let fences =
            Fences::new(tables.iter().map(|table| (&table.meta.smallest[..], &table.meta.largest[..])));
        Ok(Run { id, bytes, fences, tables })
    }

    /// Where it stands among the runs of its level: a higher one is newer.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Bytes of all tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The tables in key order.
    pub(crate) fn tables(&self) -> &[Arc<TableFile>] {
        &self.tables
    }

    /// The first key of all.
    pub(crate) fn smallest(&self) -> &[u8] {
        self.tables.first().map_or(&[], |table| &table.meta.smallest)
    }

    /// The last key of all.
    pub(crate) fn largest(&self) -> &[u8] {
        self.tables.last().map_or(&[], |table| &table.meta.largest)
    }

    /// The one table that may have `key`.
    ///
    /// Touches one cache line for each step of a binary search over eight bytes a table, and a
    /// table's own keys only where those eight bytes tie.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Arc<TableFile>> {
        let head = self.fences.head(key)?;
        let at = self.fences.last_starting_by(head, |at| self.starts_by(at, key))?;
        let table = self.tables.get(at)?;
        let ends_before = self.fences.ends_before(at, head, || table.meta.largest.as_slice() < key);
        (!ends_before).then_some(table)
    }

    /// The position of the first table that may have an entry at or after `key`; the number of
    /// tables when none does. Costs as much as [`Run::find`].
    pub(crate) fn seek(&self, key: &[u8]) -> usize {
        let Some(head) = self.fences.head(key) else {
            return if self.fences.all_after(key) { 0 } else { self.tables.len() };
        };
        let Some(at) = self.fences.last_starting_by(head, |at| self.starts_by(at, key)) else { return 0 };
        let ends_before = self.fences.ends_before(at, head, || {
            self.tables.get(at).is_none_or(|table| table.meta.largest.as_slice() < key)
        });
        at + usize::from(ends_before)
    }

    /// The tables that may have entries between the bounds.
    pub(crate) fn overlapping(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> &[Arc<TableFile>] {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.seek(key),
            Bound::Excluded(key) => self.tables.partition_point(|table| table.meta.largest.as_slice() <= key),
        };
        let to = match upper {
            Bound::Unbounded => self.tables.len(),
            Bound::Included(key) => {
                self.tables.partition_point(|table| table.meta.smallest.as_slice() <= key)
            }
            Bound::Excluded(key) => self.tables.partition_point(|table| table.meta.smallest.as_slice() < key),
        };
        self.tables.get(from..to).unwrap_or(&[])
    }

    fn starts_by(&self, at: usize, key: &[u8]) -> bool {
        self.tables.get(at).is_some_and(|table| table.meta.smallest.as_slice() <= key)
    }
}
