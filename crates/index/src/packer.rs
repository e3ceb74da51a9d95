//! Packs sorted rows into pages, as many per page as fit.
//!
//! Rows wait in columns. The number of rows that fill a page is found by measurement: the first
//! guess is the number in the previous page, and the next ones follow from the measured bytes per
//! row, until a page is 97 % full or no better number is likely. A page takes two or three
//! measurements of some nanoseconds per value.

mod buffer;

use crate::leaf::{Kind, Leaf, MAX_COLUMNS, MAX_ROWS, VERSION, directory_bytes};
use crate::stream;
use buffer::ColumnBuffer;

/// A value for a [`Packer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A value of an integer column, as the bits of a signed integer.
    Integer(u64),
    /// A value of a byte string column.
    Bytes(&'a [u8]),
}

/// Rows and shapes that cannot be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A single row is larger than a page.
    #[error("a row takes {bytes} bytes, but a page has {capacity}")]
    RowTooLarge {
        /// The size of the row.
        bytes: usize,
        /// The capacity of a page.
        capacity: usize,
    },
    /// A row with another number of columns, or a value of another type than its column.
    #[error("the row does not match the columns of the packer")]
    WrongColumns,
    /// A packer with more columns than a page can have, or with pages larger than 64 KiB.
    #[error("a page has at most 64 columns and 65535 bytes")]
    WrongShape,
}

/// Holds waiting rows and cuts pages from them.
pub struct Packer {
    capacity: usize,
    max_rows: usize,
    in_heap: bool,
    ids: Vec<u64>,
    columns: Vec<ColumnBuffer>,
    /// Number of rows in the previous page.
    guess: usize,
    /// Number of rows to collect before a page is tried.
    wanted: usize,
    linear: Vec<u64>,
}

struct Layout {
    rows: usize,
    ids: stream::Plan,
    columns: Vec<buffer::Plan>,
    bytes: usize,
}

impl Packer {
    /// Creates a packer for pages of up to `capacity` bytes and `max_rows` rows. With `in_heap`,
    /// row ids are `block << 16 | offset`.
    pub fn new(kinds: &[Kind], capacity: usize, max_rows: usize, in_heap: bool) -> Result<Packer, PackError> {
        if kinds.len() > MAX_COLUMNS || capacity > usize::from(u16::MAX) {
            return Err(PackError::WrongShape);
        }
        let columns = kinds.iter().map(|kind| ColumnBuffer::new(*kind)).collect();
        let max_rows = max_rows.clamp(1, MAX_ROWS);
        let guess = 1024.min(max_rows);
        Ok(Packer {
            capacity,
            max_rows,
            in_heap,
            ids: Vec::new(),
            columns,
            guess,
            wanted: guess,
            linear: Vec::new(),
        })
    }

    /// Returns the number of waiting rows.
    pub fn waiting(&self) -> usize {
        self.ids.len()
    }

    /// Adds a row after the waiting ones. Returns true if [`Packer::cut`] may produce a page. A
    /// refused row has no effect.
    pub fn push<'v>(&mut self, id: u64, values: impl Iterator<Item = Value<'v>>) -> Result<bool, PackError> {
        if let Err(error) = self.push_values(values) {
            let rows = self.ids.len();
            self.columns.iter_mut().for_each(|column| column.truncate(rows));
            debug_assert!(self.has_whole_rows());
            return Err(error);
        }
        self.ids.push(id);
        debug_assert!(self.has_whole_rows());
        Ok(self.ids.len() >= self.wanted)
    }

    /// Returns true if every column has a value for each waiting row.
    fn has_whole_rows(&self) -> bool {
        self.columns.iter().all(|column| column.rows() == self.ids.len())
    }

    /// Adds a value to each column. After an error, some columns may have one value more than
    /// others.
    fn push_values<'v>(&mut self, values: impl Iterator<Item = Value<'v>>) -> Result<(), PackError> {
        let mut columns = self.columns.iter_mut();
        for value in values {
            columns.next().ok_or(PackError::WrongColumns)?.push(value)?;
        }
        match columns.next() {
            Some(_) => Err(PackError::WrongColumns),
            None => Ok(()),
        }
    }

    /// Writes the next page to `out` and returns its number of rows; 0 if more rows are needed to
    /// fill a page. With `last`, no more rows will come: call it until it returns 0.
    pub fn cut(&mut self, last: bool, out: &mut Vec<u8>) -> Result<usize, PackError> {
        let waiting = self.ids.len();
        if waiting == 0 || (!last && waiting < self.wanted) {
            return Ok(0);
        }
        let radix = self.radix();
        self.linear.clear();
        if radix == 0 {
            self.linear.extend_from_slice(&self.ids);
        } else {
            // Offset 0 is not valid in a heap. It wraps here, and reading restores it.
            let radix = u64::from(radix);
            self.linear.extend(
                self.ids.iter().map(|id| ((id >> 16) * radix).wrapping_add((id & 0xffff).wrapping_sub(1))),
            );
        }
        debug_assert_eq!(self.linear.len(), waiting);
        let most = waiting.min(self.max_rows);
        let mut layout = self.fit(most)?;
        if layout.rows == waiting && !last && layout.rows < self.max_rows {
            self.wanted = (waiting * 2).min(self.max_rows);
            return Ok(0);
        }
        // The last two pages share the remaining rows, so that neither is nearly empty.
        if last && layout.rows < waiting && waiting < layout.rows + layout.rows / 2 {
            let half = self.measure(waiting / 2);
            if half.bytes <= self.capacity {
                layout = half;
            }
        }
        self.emit(&layout, radix, out);
        // The rows are dropped below, so a page that does not fit would lose some of them.
        assert!(out.len() <= self.capacity, "a page of {} bytes, at most {}", out.len(), self.capacity);
        debug_assert!((1..=waiting).contains(&layout.rows), "{} of {waiting} rows", layout.rows);
        self.guess = layout.rows;
        self.wanted = (layout.rows + layout.rows / 4 + 64).min(self.max_rows);
        self.ids.drain(..layout.rows);
        self.columns.iter_mut().for_each(|column| column.drop_front(layout.rows));
        debug_assert!(self.has_whole_rows());
        debug_assert!(self.wanted > 0 && self.wanted <= self.max_rows);
        Ok(layout.rows)
    }

    /// Writes a page without rows to `out`. Waiting rows are kept.
    pub fn empty_page(&self, out: &mut Vec<u8>) {
        self.emit(&self.measure(0), 0, out);
    }

    /// Returns the radix of the row ids: the largest offset in any block, which is the smallest
    /// radix for which blocks do not overlap. 0 if rows are not in a heap.
    fn radix(&self) -> u16 {
        if !self.in_heap {
            return 0;
        }
        self.ids.iter().map(|id| (id & 0xffff) as u16).max().unwrap_or(0).max(1)
    }

    /// Returns a layout of up to `most` rows that fits a page and is close to the largest one.
    fn fit(&self, most: usize) -> Result<Layout, PackError> {
        let mut best: Option<Layout> = None;
        let mut too_many = most + 1;
        let mut next = self.guess.clamp(1, most);
        for _ in 0..24 {
            debug_assert!((1..=most).contains(&next), "{next} rows of {most}");
            let layout = self.measure(next);
            let per_row = (layout.bytes as f64 / next as f64).max(1e-6);
            if layout.bytes <= self.capacity {
                let full = layout.bytes * 100 >= self.capacity * 97;
                let room = (self.capacity - layout.bytes) as f64;
                best = Some(layout);
                if full {
                    break;
                }
                next += ((room * 0.98 / per_row) as usize).max(1);
            } else {
                too_many = next;
                next = ((self.capacity as f64 * 0.985 / per_row) as usize).min(next - 1);
            }
            let fits = best.as_ref().map_or(0, |layout| layout.rows);
            debug_assert!(fits < too_many, "{fits} rows fit, but {too_many} do not");
            if fits + 1 >= too_many || (fits > 0 && (too_many - fits) * 100 < fits) {
                break;
            }
            // If the estimate is outside the known bounds, the middle between them is a better
            // guess.
            if next <= fits || next >= too_many {
                next = if too_many > most && next >= too_many {
                    most
                } else {
                    fits + (too_many - fits).div_ceil(2)
                };
            }
        }
        best.ok_or_else(|| PackError::RowTooLarge { bytes: self.measure(1).bytes, capacity: self.capacity })
    }

    fn measure(&self, rows: usize) -> Layout {
        debug_assert!(rows <= self.linear.len(), "{rows} rows of {}", self.linear.len());
        let ids = stream::plan(&self.linear[..rows]);
        let columns: Vec<buffer::Plan> = self.columns.iter().map(|column| column.plan(rows)).collect();
        let bytes =
            directory_bytes(columns.len()) + ids.bytes + columns.iter().map(|plan| plan.bytes).sum::<usize>();
        Layout { rows, ids, columns, bytes }
    }

    fn emit(&self, layout: &Layout, radix: u16, out: &mut Vec<u8>) {
        debug_assert!(layout.rows <= MAX_ROWS && layout.columns.len() == self.columns.len());
        out.clear();
        out.extend_from_slice(&[VERSION, self.columns.len() as u8]);
        out.extend_from_slice(&(layout.rows as u16).to_le_bytes());
        out.extend_from_slice(&radix.to_le_bytes());
        out.resize(directory_bytes(self.columns.len()), 0);
        layout.ids.emit(&self.linear[..layout.rows], out);
        put_end(out, 8);
        for (index, (column, plan)) in self.columns.iter().zip(&layout.columns).enumerate() {
            let at = 10 + 7 * index;
            out[at] = u8::from(column.kind() == Kind::Bytes);
            column.emit(plan, layout.rows, out, |out, part| put_end(out, at + 1 + 2 * part));
        }
        put_end(out, 6);
        debug_assert!(out.len() <= layout.bytes, "{} bytes, at most {} measured", out.len(), layout.bytes);
        debug_assert_eq!(Leaf::open(out).map(|leaf| leaf.rows()), Ok(layout.rows), "a reader accepts it");
    }
}

/// Writes the current length at `at`.
fn put_end(out: &mut [u8], at: usize) {
    debug_assert!(out.len() <= usize::from(u16::MAX), "a page of {} bytes", out.len());
    let end = (out.len() as u16).to_le_bytes();
    out[at..at + 2].copy_from_slice(&end);
}
