//! Block scans: the rows of a leaf at once, column by column, for queries that read many rows and
//! few of their columns.
//!
//! A row scan looks up the place and the type of every value. Here both are known for a whole leaf,
//! and the rest is a loop over numbers.

mod buffer;
mod packed;
mod rows;

use std::fmt;
use std::ops::{Bound, Range};

use cairn_pool::Changed;
use cairn_vfs::sync::Arc;

pub use self::buffer::{ByteValues, ColumnBuf, ColumnValues, Validity};
use self::packed::PackedRows;
pub(crate) use self::packed::columns as packed_columns;
use self::rows::{Place, Rows, Unsound};
use crate::catalog::{GHOST, Table};
use crate::row::Type;
use crate::storage::{Cursor, Direction, Packed};
use crate::view::{Found, View};
use crate::{Error, Result};

/// If a block has more than this many rows per selected row, numbers are extracted one by one.
/// Extracting all of them together takes a third of the time per number.
const FEW: usize = 3;
const _: () = assert!(FEW > 1 && GATHERED > 0);

/// Size of the rows gathered one by one before they form a block. This bounds the memory for the
/// long rows of a leaf.
const GATHERED: usize = 1 << 20;

/// If a tree has fewer leaves, counting all of them is faster than looking at the indexes.
const MIN_LEAVES_TO_COMPARE: u64 = 16;

/// A scan of a range in blocks, each of which is a leaf or a part of one. It holds a copy of the
/// data, so no other thread waits for it.
pub struct BlockScan {
    view: View,
    table: Arc<Table>,
    index: Option<usize>,
    cursor: Cursor,
    /// Columns that blocks may be asked for.
    columns: Vec<usize>,
    /// Records of the leaf that have not been in a block yet.
    left: Range<usize>,
    places: Vec<Place>,
    prefix: Vec<u8>,
    /// Records whose visible version is not the one in the leaf.
    gathered: Vec<u8>,
    is_gathered: bool,
    is_plain: bool,
    /// Records of a packed leaf, which have no places.
    packed: Range<usize>,
}

impl View {
    /// Scans the rows of a range, like [`View::scan`], leaf by leaf. Nothing is read before the
    /// first call of [`BlockScan::next`]. `columns` are the columns that the blocks will be asked
    /// for: where columns are stored separately, only these are read. The number after the table's
    /// last column stands for the row's key.
    pub fn blocks(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        columns: &[usize],
    ) -> Result<BlockScan> {
        if let Some(column) = columns.iter().find(|column| **column > table.def().columns.len()) {
            return Err(no_column(table, *column));
        }
        let mut cursor = self.cursor(table, index, range, direction)?;
        if let Some(own) = packed_columns(table, index, columns) {
            cursor.read_only(own, false, self.snapshot.all_visible);
        }
        Ok(BlockScan {
            cursor,
            view: self.clone(),
            table: Arc::clone(table),
            index,
            columns: columns.to_vec(),
            left: 0..0,
            places: Vec::new(),
            prefix: Vec::new(),
            gathered: Vec::new(),
            is_gathered: false,
            is_plain: true,
            packed: 0..0,
        })
    }

    /// Counts the rows of a range. Cost: reads the header of each leaf whose changes are all
    /// visible, and every record of other leaves. All rows of a table are counted in its smallest
    /// tree, which may be an index, as in SQLite. Errors: as [`View::scan`].
    pub fn count(
        &self,
        table: &Arc<Table>,
        index: Option<usize>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<u64> {
        let index = match (index, range) {
            (None, (Bound::Unbounded, Bound::Unbounded)) => smallest(table)?,
            (index, _) => index,
        };
        let mut scan = self.blocks(table, index, range, Direction::Forward, &[])?;
        let mut rows = 0;
        loop {
            if scan.left.is_empty() {
                let is_cancelled = || self.canceller.is_cancelled();
                rows += scan.cursor.count_leaves(self.snapshot.all_visible, &is_cancelled)?;
            }
            match scan.next()? {
                Some(block) => rows += block.rows() as u64,
                None => return Ok(rows),
            }
        }
    }
}

/// Returns the index whose tree has the fewest leaves; `None` if the row tree has. Every index has
/// an entry for each row, including NULLs.
fn smallest(table: &Table) -> Result<Option<usize>> {
    let (mut best, mut leaves) = (None, table.tree.estimate_leaves()?);
    if leaves < MIN_LEAVES_TO_COMPARE {
        return Ok(best);
    }
    for (at, index) in table.indexes.iter().enumerate() {
        let of_index = index.tree.estimate_leaves()?;
        debug_assert!(of_index > 0, "index {} has no leaf", index.def.name);
        if of_index < leaves {
            (best, leaves) = (Some(at), of_index);
        }
    }
    Ok(best)
}

fn no_column(table: &Table, column: usize) -> Error {
    Error::Invalid { what: format!("table {} has no column {column}", table.def().name) }
}

impl BlockScan {
    /// Returns the next rows, at least one; `None` after the last one. Errors: as
    /// [`Scan::next`](crate::Scan::next).
    #[allow(clippy::should_implement_trait, reason = "the block borrows from the scan")]
    pub fn next(&mut self) -> Result<Option<Block<'_>>> {
        self.places.clear();
        self.packed = 0..0;
        while self.places.is_empty() && self.packed.is_empty() {
            if self.view.canceller.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if self.left.is_empty() {
                if !self.cursor.advance_leaf()? {
                    return Ok(None);
                }
                self.left = self.cursor.records();
            }
            let is_visible = self.cursor.lsn() <= self.view.snapshot.all_visible;
            if is_visible && self.cursor.is_packed() {
                // A packed leaf has neither ghosts nor long rows.
                self.packed = std::mem::take(&mut self.left);
                break;
            }
            self.cursor.leaf().prefix(&mut self.prefix).map_err(|_| self.damaged())?;
            self.is_gathered = false;
            self.is_plain = true;
            if is_visible && self.place_all()? {
                self.left = 0..0;
            } else {
                self.gather(is_visible)?;
            }
        }
        debug_assert!(
            self.places.is_empty() || self.packed.is_empty(),
            "a block has {} rows and {:?} of a packed leaf",
            self.places.len(),
            self.packed
        );
        debug_assert!(!self.places.is_empty() || !self.packed.is_empty(), "a block has no rows");
        Ok(Some(Block { scan: self }))
    }

    /// Records the places of a leaf's rows, all of which are visible as they are. Returns false,
    /// and records none, if a row is not stored in the leaf, or is not laid out like the others.
    fn place_all(&mut self) -> Result<bool> {
        let leaf = self.cursor.leaf();
        self.places.reserve(self.left.len());
        for at in self.left.clone() {
            let (key, value) = leaf.record(at).map_err(|_| self.damaged())?;
            match leaf.0.get(value.start).filter(|_| !value.is_empty()) {
                Some(0) => self.places.push(Place {
                    key: key.start as u32,
                    value: value.start as u32,
                    end: value.end as u32,
                }),
                Some(flags) if flags & GHOST != 0 => {}
                _ => {
                    self.places.clear();
                    return Ok(false);
                }
            }
        }
        if self.cursor.direction() == Direction::Backward {
            self.places.reverse();
        }
        debug_assert!(
            self.places.len() <= self.left.len(),
            "{} of {:?} rows have places",
            self.places.len(),
            self.left
        );
        Ok(true)
    }

    /// Gathers the visible versions of rows one by one, until the leaf is finished, or they take
    /// many bytes.
    fn gather(&mut self, is_visible: bool) -> Result<()> {
        let root = self.cursor.root();
        self.gathered.clear();
        (self.is_gathered, self.is_plain) = (true, true);
        self.prefix.clear();
        let mut bytes = Vec::new();
        while self.gathered.len() < GATHERED {
            let at = match self.cursor.direction() {
                Direction::Forward => self.left.next(),
                Direction::Backward => self.left.next_back(),
            };
            let Some(at) = at else { break };
            let (key, value) = self.cursor.record(at)?;
            bytes.clear();
            bytes.extend_from_slice(value);
            if !is_visible {
                self.view.apply_visible_version(root, key, &mut bytes);
            }
            if let Found::Nothing = self.view.resolve(&mut bytes)? {
                continue;
            }
            self.is_plain &= bytes.first() == Some(&0);
            let start = self.gathered.len();
            self.gathered.extend_from_slice(key);
            let middle = self.gathered.len();
            self.gathered.extend_from_slice(&bytes);
            let place = |at: usize| {
                u32::try_from(at).map_err(|_| Error::Invalid {
                    what: "a row is longer than 4 GiB and cannot be read in a block".to_owned(),
                })
            };
            let (key, value, end) = (place(start)?, place(middle)?, place(self.gathered.len())?);
            self.places.push(Place { key, value, end });
        }
        debug_assert!(self.places.is_sorted_by(|a, b| a.end <= b.key), "rows that were gathered overlap");
        Ok(())
    }

    fn damaged(&self) -> Error {
        self.view.db.damaged_record(self.cursor.root())
    }

    /// Returns the table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl fmt::Debug for BlockScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockScan").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

/// Some consecutive rows.
#[derive(Debug)]
pub struct Block<'s> {
    scan: &'s BlockScan,
}

impl Block<'_> {
    /// Returns the number of rows, which is never 0.
    pub fn rows(&self) -> usize {
        let rows = self.scan.places.len() + self.scan.packed.len();
        debug_assert!(rows > 0, "a block has no rows");
        rows
    }

    /// Appends the values of a column of the table, one per row. In an index scan, columns that the
    /// index does not contain ([`Table::index_covers`]) are NULL. The number after the last column
    /// appends the rows' keys, as bytes. Errors: [`Error::Invalid`] for a column that does not
    /// exist, was not announced at the start, or is not of the buffer's type;
    /// [`Error::Corruption`].
    pub fn column(&self, column: usize, to: &mut ColumnBuf) -> Result<()> {
        let scan = self.scan;
        if !scan.columns.contains(&column) {
            return Err(no_column(&scan.table, column));
        }
        let def = scan.table.def().columns.get(column);
        if !to.fits(def.map_or(Type::Blob, |def| def.kind.kind)) {
            let what = format!("column {column} of table {} is of another type", scan.table.def().name);
            return Err(Error::Invalid { what });
        }
        let before = to.len();
        if !scan.packed.is_empty() {
            self.packed_column(column, def.is_some(), to).map_err(|Changed| scan.damaged())?;
            self.assert_has_all(before, to);
            return Ok(());
        }
        let rows = Rows {
            table: &scan.table,
            index: scan.index,
            prefix: &scan.prefix,
            bytes: if scan.is_gathered { &scan.gathered } else { scan.cursor.leaf().0 },
            places: &scan.places,
            is_plain: scan.is_plain,
        };
        let read = if def.is_some() { rows.column(column, to) } else { rows.keys(to) };
        read.map_err(|Unsound| scan.damaged())?;
        self.assert_has_all(before, to);
        Ok(())
    }

    /// Checks that a buffer has got a value for each row.
    fn assert_has_all(&self, before: usize, to: &ColumnBuf) {
        debug_assert!(
            to.len() == before + self.rows(),
            "a block of {} rows has appended {} values",
            self.rows(),
            to.len() - before
        );
        to.assert_invariants();
    }

    /// Deselects rows whose value in a column of integers, decimals, dates or times is NULL or
    /// outside the inclusive bounds, in the unit that the column is stored in. `rows` has a bit for
    /// each row of the block, from the lowest of the first word on, and none after the last.
    /// Returns false, and changes nothing, if this requires [`Block::column`]. Cost: less than
    /// decoding the column. Errors: as [`Block::column`].
    pub fn keep_within(&self, column: usize, bounds: (i128, i128), rows: &mut [u64]) -> Result<bool> {
        match self.packed_rows(column)? {
            Some((packed, kind)) => {
                packed.keep_within((column, kind), bounds, rows).map_err(|Changed| self.scan.damaged())
            }
            None => Ok(false),
        }
    }

    /// Deselects rows whose value in a column of texts or bytes is NULL or fails `holds`, with
    /// `rows` as in [`Block::keep_within`]. Returns false, and changes nothing, if this requires
    /// [`Block::column`]. Cost: `holds` is called once for each of the few distinct values. Errors:
    /// as [`Block::column`].
    pub fn keep_texts(
        &self,
        column: usize,
        holds: impl FnMut(&[u8]) -> bool,
        rows: &mut [u64],
    ) -> Result<bool> {
        match self.packed_rows(column)? {
            Some((packed, kind)) => {
                packed.keep_texts((column, kind), holds, rows).map_err(|Changed| self.scan.damaged())
            }
            None => Ok(false),
        }
    }

    /// Like [`Block::column`], for the selected rows, with bits as in [`Block::keep_within`]. Cost:
    /// for a few packed numbers, that of these rows; otherwise that of all rows. Errors: as
    /// [`Block::column`].
    pub fn column_of(&self, column: usize, rows: &[u64], to: &mut ColumnBuf) -> Result<()> {
        let count: usize = rows.iter().map(|word| word.count_ones() as usize).sum();
        let before = to.len();
        if count * FEW < self.rows()
            && let Some((packed, kind)) = self.packed_rows(column)?
            && packed.chosen((column, kind), rows, to).map_err(|Changed| self.scan.damaged())?
        {
            debug_assert!(to.len() == before + count, "{count} rows have {} values", to.len() - before);
            return Ok(());
        }
        self.column(column, to)?;
        to.keep_from(before, rows);
        Ok(())
    }

    /// Returns the rows of a packed leaf, if scanned forward, and the type of a column.
    fn packed_rows(&self, column: usize) -> Result<Option<(PackedRows<'_>, Type)>> {
        let scan = self.scan;
        if !scan.columns.contains(&column) {
            return Err(no_column(&scan.table, column));
        }
        let Some(def) = scan.table.def().columns.get(column) else { return Ok(None) };
        if scan.packed.is_empty() || scan.cursor.direction() == Direction::Backward {
            return Ok(None);
        }
        let (page, range) = (Packed(scan.cursor.leaf().0), scan.packed.clone());
        Ok(Some((PackedRows { table: &scan.table, index: scan.index, page, range }, def.kind.kind)))
    }

    fn packed_column(
        &self,
        column: usize,
        is_column: bool,
        to: &mut ColumnBuf,
    ) -> std::result::Result<(), Changed> {
        let (scan, start) = (self.scan, to.len());
        let rows = PackedRows {
            table: &scan.table,
            index: scan.index,
            page: Packed(scan.cursor.leaf().0),
            range: scan.packed.clone(),
        };
        if is_column {
            rows.column(column, to)?
        } else {
            rows.keys(to)?
        };
        if scan.cursor.direction() == Direction::Backward {
            to.reverse_from(start);
        }
        Ok(())
    }
}
