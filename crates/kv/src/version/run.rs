//! A sorted run: tables in key order that do not overlap, and the search within it.

use std::ops::Bound;

use cairn_vfs::sync::Arc;

use super::fences::Fences;
use super::handle::TableFile;

/// Tables in key order with disjoint ranges: all versions of a key in this run are in one table.
/// Immutable and never empty.
///
/// A table whose range tombstones were cut at the next table's first key *touches* that table: its
/// largest key equals that first key. It has no entry with that key, and the tombstone excludes it,
/// so lookups of that key go to the later table.
#[derive(Debug)]
pub(crate) struct Run {
    id: u64,
    bytes: u64,
    fences: Fences,
    tables: Vec<Arc<TableFile>>,
}

impl Run {
    /// Creates a run of `tables` in any order. Returns a description of the error when they overlap
    /// or there are none.
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
        let smallest = tables.iter().map(|table| &table.meta.smallest);
        debug_assert!(smallest.is_sorted_by(|a, b| a <= b), "the fences search ascending tables");
        Ok(Run { id, bytes, fences, tables })
    }

    /// Returns its id. Within a level, a run with a higher id is newer.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Returns the total bytes of its tables.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the tables in key order.
    pub(crate) fn tables(&self) -> &[Arc<TableFile>] {
        &self.tables
    }

    /// Returns the first key of the run.
    pub(crate) fn smallest(&self) -> &[u8] {
        debug_assert!(!self.tables.is_empty(), "run {} has no tables", self.id);
        self.tables.first().map_or(&[], |table| &table.meta.smallest)
    }

    /// Returns the last key of the run.
    pub(crate) fn largest(&self) -> &[u8] {
        self.tables.last().map_or(&[], |table| &table.meta.largest)
    }

    /// Returns the one table that may contain `key`.
    ///
    /// Reads one cache line per step of a binary search over eight bytes per table, and full keys
    /// of tables only where these eight bytes are equal.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&Arc<TableFile>> {
        let head = self.fences.head(key)?;
        let at = self.fences.last_starting_by(head, |at| self.starts_by(at, key))?;
        let table = self.tables.get(at)?;
        let ends_before = self.fences.ends_before(at, head, || table.meta.largest.as_slice() < key);
        debug_assert!(table.meta.smallest.as_slice() <= key, "the last table that starts by the key");
        debug_assert_eq!(ends_before, table.meta.largest.as_slice() < key, "heads contradict the keys");
        (!ends_before).then_some(table)
    }

    /// Returns the index of the first table that may have an entry at or after `key`, or the number
    /// of tables if none does. Costs as much as [`Run::find`].
    pub(crate) fn seek(&self, key: &[u8]) -> usize {
        let Some(head) = self.fences.head(key) else {
            return if self.fences.all_after(key) { 0 } else { self.tables.len() };
        };
        let Some(at) = self.fences.last_starting_by(head, |at| self.starts_by(at, key)) else { return 0 };
        let ends_before = self.fences.ends_before(at, head, || {
            self.tables.get(at).is_none_or(|table| table.meta.largest.as_slice() < key)
        });
        let found = at + usize::from(ends_before);
        debug_assert!(found <= self.tables.len(), "table {found} of {}", self.tables.len());
        debug_assert!(
            self.tables.get(found).is_none_or(|table| table.meta.largest.as_slice() >= key)
                && self.tables[..found].iter().all(|table| table.meta.largest.as_slice() <= key),
            "table {found} is not the first that may have an entry at or after the key"
        );
        found
    }

    /// Returns the tables that may have entries between the bounds.
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
