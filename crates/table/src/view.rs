//! Views: the data that a transaction sees, readable from any thread.

use std::fmt;
use std::ops::Bound;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::blocks::packed_columns;
use crate::catalog::{Catalog, GHOST, Place, RowRef, Table, WIDE};
use crate::inner::Inner;
use crate::mvcc::{Canceller, ReadSet, Seen, Snapshot, State};
use crate::storage::{ColumnSet, Cursor, Direction, LONG, Tree};
use crate::{Error, Result};

/// An owned range of keys.
pub type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Marks that a view exists which must not see later changes of its transaction.
#[derive(Debug, Default)]
pub(crate) struct Fixed;

/// The database at one moment: the commits before it, and the changes of its transaction since. It
/// can be cloned, sent to other threads and kept. While it exists, old versions are kept for it,
/// and schema changes wait.
#[derive(Clone)]
pub struct View {
    pub(crate) db: Arc<Inner>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// The transaction whose uncommitted changes are visible.
    pub(crate) own: Option<Arc<State>>,
    /// The last of its savepoints whose changes are visible; `u32::MAX` for all its changes.
    pub(crate) own_until: u32,
    /// Set if the view is fixed at `own_until` although its transaction may continue.
    pub(crate) fixed: Option<Arc<Fixed>>,
    /// The read set in which reads are recorded, if there is one.
    pub(crate) reads: Option<Arc<Mutex<ReadSet>>>,
    pub(crate) canceller: Canceller,
}

/// A buffer for a row that was read, reusable for further rows.
#[derive(Debug, Default, Clone)]
pub struct RowBuf {
    key: Vec<u8>,
    bytes: Vec<u8>,
}

impl RowBuf {
    /// Returns the row that was read into the buffer. If there is none, or it is of another table,
    /// its columns are NULL.
    pub fn row<'a>(&'a self, table: &'a Table) -> RowRef<'a> {
        const EMPTY: &[u8] = &[0];
        let bytes = if self.bytes.is_empty() { EMPTY } else { &self.bytes[..] };
        table.row(&self.key, bytes).unwrap_or_else(|| table.no_row(&self.key))
    }

    pub(crate) fn set(&mut self, key: &[u8], bytes: &[u8]) {
        self.clear();
        self.key.extend(key);
        self.bytes.extend(bytes);
    }

    fn clear(&mut self) {
        self.key.clear();
        self.bytes.clear();
    }
}

/// Whether a record of a tree represents a row.
pub(crate) enum Found {
    Row,
    Nothing,
}

impl View {
    /// Returns the catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Returns the same view with another canceller.
    #[must_use]
    pub fn with_canceller(self, canceller: Canceller) -> View {
        View { canceller, ..self }
    }

    /// Reads the row with a key in the format of [`Table::key_format`]. Returns false if there is
    /// none. Cost: a descent without latches, some hundred nanoseconds. Errors:
    /// [`Error::Corruption`], the pool's.
    pub fn get(&self, table: &Table, key: &[u8], row: &mut RowBuf) -> Result<bool> {
        self.get_wanted(table, key, ColumnSet::ALL, row)
    }

    /// Like [`View::get`], for callers that need only some columns of the row, besides its key:
    /// others may be NULL. Cost: in a packed leaf, the data of other columns is not read.
    pub fn get_columns(
        &self,
        table: &Table,
        key: &[u8],
        columns: &[usize],
        row: &mut RowBuf,
    ) -> Result<bool> {
        let own = columns.iter().filter_map(|column| match table.place(None, *column) {
            Some(Place::Row(at)) => Some(at),
            _ => None,
        });
        self.get_wanted(table, key, ColumnSet::of(own), row)
    }

    fn get_wanted(&self, table: &Table, key: &[u8], wanted: ColumnSet, row: &mut RowBuf) -> Result<bool> {
        row.clear();
        let found = self.read_wanted(&table.tree, key, wanted, &mut row.bytes)?;
        debug_assert!(!found || !row.bytes.is_empty(), "a row of table {} has no flags", table.def().name);
        if found {
            row.key.extend(key);
        }
        Ok(found)
    }

    /// Reads the visible record at a key of any tree. Returns false if there is none.
    pub(crate) fn read(&self, tree: &Tree, key: &[u8], bytes: &mut Vec<u8>) -> Result<bool> {
        self.read_wanted(tree, key, ColumnSet::ALL, bytes)
    }

    fn read_wanted(&self, tree: &Tree, key: &[u8], wanted: ColumnSet, bytes: &mut Vec<u8>) -> Result<bool> {
        self.db.check()?;
        if let Some(reads) = &self.reads {
            lock(reads).key(tree.root(), key);
        }
        let Some(lsn) = tree.get_with_lsn(key, wanted, bytes)? else { return Ok(false) };
        if lsn > self.snapshot.all_visible {
            self.apply_visible_version(tree.root(), key, bytes);
        }
        Ok(matches!(self.resolve(bytes)?, Found::Row))
    }

    /// Replaces a record that was read by its visible version. No record becomes no bytes.
    pub(crate) fn apply_visible_version(&self, tree: u32, key: &[u8], bytes: &mut Vec<u8>) {
        debug_assert!(self.snapshot.csn != 0, "a view is read without a snapshot");
        let mut before = Vec::new();
        let own = self.own.as_ref().map(|own| (own, self.own_until));
        match self.db.rows.visible_version(tree, key, self.snapshot.csn, own, &mut before) {
            Seen::InPlace => {}
            Seen::Before => *bytes = before,
            Seen::Absent => bytes.clear(),
        }
    }

    /// Distinguishes ghosts from rows, and fetches long rows.
    pub(crate) fn resolve(&self, bytes: &mut Vec<u8>) -> Result<Found> {
        match bytes.first() {
            None => Ok(Found::Nothing),
            Some(flags) if flags & GHOST != 0 => Ok(Found::Nothing),
            Some(flags) if flags & LONG != 0 => {
                *bytes = self.db.store.read_long_record(bytes)?;
                debug_assert!(
                    bytes.first().is_some_and(|flags| flags & (LONG | GHOST) == 0),
                    "a long row is read as its record"
                );
                Ok(Found::Row)
            }
            Some(_) => Ok(Found::Row),
        }
    }

    /// Scans the rows of a range, in the order of the table's key or of an index. Nothing is read
    /// before the first call of [`Scan::next`].
    pub fn scan(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Scan> {
        let cursor = self.cursor(table, index, range, direction)?;
        let table = Arc::clone(table);
        Ok(Scan { view: self.clone(), table, index, cursor, bytes: Vec::new(), count: 0 })
    }

    /// Returns a cursor over a range of a table or an index, and records the range as read.
    pub(crate) fn cursor(
        &self,
        table: &Table,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
    ) -> Result<Cursor> {
        debug_assert!(self.fixed.is_none() || self.own_until != u32::MAX, "a view is fixed at no savepoint");
        let tree = tree_of(table, index)?;
        if let Some(reads) = &self.reads {
            lock(reads).range(tree.root(), range);
        }
        Ok(tree.scan(range, direction))
    }

    /// Like [`View::scan`], for callers that need only some columns of the rows, besides their
    /// keys: others may be NULL. Cost: in a packed leaf, the data of other columns is neither
    /// copied nor unpacked.
    pub fn scan_columns(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        columns: &[usize],
    ) -> Result<Scan> {
        let mut scan = self.scan(table, index, range, direction)?;
        if let Some(own) = packed_columns(table, index, columns) {
            scan.cursor.read_only(own, true, self.snapshot.all_visible);
        }
        Ok(scan)
    }

    /// Estimates the number of rows in a range, for choosing between access paths. Ranges of up to
    /// some thousand rows are counted; for others the positions of the ends are looked up. Cost:
    /// some microseconds. Errors: as [`View::get`].
    pub fn estimate_rows(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<u64> {
        let guess = (tree_of(table, index)?.fraction(range)? * table.rows() as f64).ceil() as u64;
        if guess <= ROWS_COUNTED { self.count(table, index, range) } else { Ok(guess) }
    }

    /// Splits a range into parts of similar size, to be scanned by as many threads. There may be
    /// fewer parts. Cost: reads one or two nodes. Errors: as [`View::get`].
    pub fn split(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: KeyRange,
        parts: usize,
    ) -> Result<Vec<KeyRange>> {
        let tree = tree_of(table, index)?;
        let mut keys = tree.separators(parts.saturating_mul(8))?;
        keys.retain(|key| is_behind(&range.0, key) && is_before(key, &range.1));
        let count = parts.min(keys.len() + 1).max(1);
        let mut ranges = Vec::with_capacity(count);
        let mut start = range.0;
        for part in 1..count {
            let Some(key) = keys.get(part * keys.len() / count) else { break };
            ranges.push((start, Bound::Included(key.clone())));
            start = Bound::Excluded(key.clone());
        }
        ranges.push((start, range.1));
        debug_assert!(ranges.len() == count, "a range is split into {} parts of {count}", ranges.len());
        debug_assert!(
            ranges.windows(2).all(|pair| match pair {
                [(_, Bound::Included(end)), (Bound::Excluded(start), _)] => end == start,
                _ => false,
            }),
            "the parts of a range overlap, or leave a gap"
        );
        Ok(ranges)
    }
}

fn is_behind(start: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match start {
        Bound::Unbounded => true,
        Bound::Included(start) | Bound::Excluded(start) => **start < *key,
    }
}

fn is_before(key: &[u8], end: &Bound<Vec<u8>>) -> bool {
    match end {
        Bound::Unbounded => true,
        Bound::Included(end) | Bound::Excluded(end) => *key < **end,
    }
}

pub(crate) fn tree_of(table: &Table, index: Option<usize>) -> Result<&Tree> {
    let Some(at) = index else { return Ok(&table.tree) };
    table.indexes.get(at).map(|index| &index.tree).ok_or_else(|| Error::Invalid {
        what: format!("table {} has {} indexes, none of them at {at}", table.def().name, table.indexes.len()),
    })
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

/// A scan of rows in order. It holds a copy of one leaf at a time, so no other thread waits for it.
#[derive(Debug)]
pub struct Scan {
    view: View,
    table: Arc<Table>,
    index: Option<usize>,
    cursor: Cursor,
    /// The visible record, if it differs from the one in the tree.
    bytes: Vec<u8>,
    count: u32,
}

/// Up to this estimate, rows are counted.
const ROWS_COUNTED: u64 = 2_000;

/// Number of records between two checks of the canceller.
const CANCEL_CHECK_INTERVAL: u32 = 64;

impl Scan {
    /// Returns the next row; `None` after the last one. A scan of an index returns the columns that
    /// the index contains ([`Table::index_covers`]), and the row's key. Errors:
    /// [`Error::Cancelled`], [`Error::Corruption`], the pool's.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "the row borrows from the scan")]
    pub fn next(&mut self) -> Result<Option<RowRef<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        self.row().map(Some)
    }

    /// Moves to the next row. Returns false after the last one. For loops that return the row at
    /// which they stop. Errors: as [`Scan::next`].
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            self.count = self.count.wrapping_add(1);
            if self.count.is_multiple_of(CANCEL_CHECK_INTERVAL) && self.view.canceller.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if !self.cursor.advance()? {
                return Ok(false);
            }
            let is_plain = self.cursor.lsn() <= self.view.snapshot.all_visible;
            match self.cursor.value().first() {
                Some(&(0 | WIDE)) if is_plain => {
                    self.bytes.clear();
                    return Ok(true);
                }
                Some(flags) if is_plain && flags & GHOST != 0 => continue,
                _ => {}
            }
            debug_assert!(
                self.cursor.root() == tree_of(&self.table, self.index)?.root(),
                "another tree is scanned"
            );
            self.bytes.clear();
            self.bytes.extend(self.cursor.value());
            if !is_plain {
                let tree = tree_of(&self.table, self.index)?.root();
                self.view.apply_visible_version(tree, self.cursor.key(), &mut self.bytes);
            }
            if let Found::Row = self.view.resolve(&mut self.bytes)? {
                return Ok(true);
            }
        }
    }

    /// Returns the row that [`Scan::advance`] moved to. Errors: [`Error::Corruption`].
    #[inline]
    pub fn row(&self) -> Result<RowRef<'_>> {
        let (key, own) = (self.cursor.key(), &self.bytes[..]);
        let bytes = if own.is_empty() { self.cursor.value() } else { own };
        let row = match self.index {
            None => self.table.row(key, bytes),
            Some(index) => self.table.entry(index, key, bytes),
        };
        match row {
            Some(row) => Ok(row),
            None => Err(self.view.db.damaged_record(tree_of(&self.table, self.index)?.root())),
        }
    }

    /// Returns the table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}
