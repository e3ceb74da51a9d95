//! Scans that give the rows of a leaf at once, column by column: for who looks at many rows and few
//! of their columns.
//!
//! A scan row by row asks of each value where it is and what type it has. Here both are known for a
//! whole leaf, and what is left is a loop over numbers.

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

/// Of a block with more than so many rows for each that is wanted, numbers are taken out one by
/// one: all of them together take a third of that each.
const FEW: usize = 3;

/// Bytes of rows that are gathered one by one before they make a block: rows that are long are not
/// all in memory because they are on one leaf.
const GATHERED: usize = 1 << 20;

/// Of a tree with fewer leaves all are counted sooner than the indexes are looked at.
const WORTH_A_LOOK: u64 = 16;

/// The rows of a range, a block at a time: those of a leaf, or a part of them. It has a copy of
/// what it shows, so nobody waits for it.
pub struct BlockScan {
    view: View,
    table: Arc<Table>,
    index: Option<usize>,
    cursor: Cursor,
    /// What blocks may be asked for.
    columns: Vec<usize>,
    /// Records of the leaf that were in no block yet.
    left: Range<usize>,
    places: Vec<Place>,
    prefix: Vec<u8>,
    /// Records that are not as the leaf has them.
    gathered: Vec<u8>,
    is_gathered: bool,
    is_plain: bool,
    /// Records of a packed leaf, which have no places.
    packed: Range<usize>,
}

impl View {
    /// The rows of a range as [`View::scan`] gives them, leaf by leaf. Nothing is read before the
    /// first call of [`BlockScan::next`]. `columns` are those that will be asked of the blocks:
    /// only they are read where columns lie apart. The number behind the table's last column is the
    /// row's key.
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

    /// How many rows a range has. Cost: a look at the head of each leaf whose changes everybody
    /// sees, and at each record of the others. All rows of a table are counted in its smallest
    /// tree, which may be an index's, as SQLite does. Errors: as [`View::scan`].
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

/// The index whose tree has the fewest leaves; `None` where the rows' own has. Each row has an
/// entry in every index, NULLs too.
fn smallest(table: &Table) -> Result<Option<usize>> {
    let (mut best, mut leaves) = (None, table.tree.leaves_about()?);
    if leaves < WORTH_A_LOOK {
        return Ok(best);
    }
    for (at, index) in table.indexes.iter().enumerate() {
        let of_index = index.tree.leaves_about()?;
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
    /// The next rows, never none; `None` after the last. Errors: as
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
                // None of its records is a ghost, or long.
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
        Ok(Some(Block { scan: self }))
    }

    /// Notes where the rows of a leaf are, all of which are as they are seen. False, and nothing,
    /// when one is not in the leaf or not laid out as others.
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
        Ok(true)
    }

    /// Takes rows one by one, as they are seen: until the leaf is through, or they are many bytes.
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
                self.view.look_back(root, key, &mut bytes);
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
        Ok(())
    }

    fn damaged(&self) -> Error {
        self.view.db.damaged_record(self.cursor.root())
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl fmt::Debug for BlockScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockScan").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

/// Some rows that follow each other.
#[derive(Debug)]
pub struct Block<'s> {
    scan: &'s BlockScan,
}

impl Block<'_> {
    /// How many there are; never 0.
    pub fn rows(&self) -> usize {
        self.scan.places.len() + self.scan.packed.len()
    }

    /// Appends the values of a column of the table, one for each row. In a scan of an index those
    /// of a column that it does not have ([`Table::index_covers`]) are NULL. The number behind the
    /// last column gives the rows' keys, as bytes. Errors: [`Error::Invalid`] for a column that is
    /// not there, or was not said at the start, or not of the buffer's type; [`Error::Corruption`].
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
        if !scan.packed.is_empty() {
            return self.packed_column(column, def.is_some(), to).map_err(|Changed| scan.damaged());
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
        read.map_err(|Unsound| scan.damaged())
    }

    /// Takes rows out whose value in a column of whole numbers, decimals, dates or times is NULL or
    /// not from the first bound to the second, in the unit that the column is kept in. `rows` has a
    /// bit for each row of the block, from the lowest of the first word on, and none behind the
    /// last. False, and nothing, where [`Block::column`] has to be asked for that. Cost: less than
    /// decoding the column. Errors: as [`Block::column`].
    pub fn keep_within(&self, column: usize, bounds: (i128, i128), rows: &mut [u64]) -> Result<bool> {
        match self.packed_rows(column)? {
            Some((packed, kind)) => {
                packed.keep_within((column, kind), bounds, rows).map_err(|Changed| self.scan.damaged())
            }
            None => Ok(false),
        }
    }

    /// Takes rows out whose value in a column of texts or bytes is NULL or does not hold, with
    /// `rows` as [`Block::keep_within`] has them. False, and nothing, where [`Block::column`] has
    /// to be asked for that. Cost: `holds` is called for each of the few different values that
    /// there are. Errors: as [`Block::column`].
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

    /// As [`Block::column`], of some rows, with bits as [`Block::keep_within`] has them. Cost: of a
    /// few packed numbers, that of these rows; else that of all of them. Errors: as
    /// [`Block::column`].
    pub fn column_of(&self, column: usize, rows: &[u64], to: &mut ColumnBuf) -> Result<()> {
        let count: usize = rows.iter().map(|word| word.count_ones() as usize).sum();
        if count * FEW < self.rows()
            && let Some((packed, kind)) = self.packed_rows(column)?
            && packed.chosen((column, kind), rows, to).map_err(|Changed| self.scan.damaged())?
        {
            return Ok(());
        }
        let start = to.len();
        self.column(column, to)?;
        to.keep_from(start, rows);
        Ok(())
    }

    /// The rows of a packed leaf, forward, and the type of a column.
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
