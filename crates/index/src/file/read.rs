//! Reads an index file.

use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::{Bug, Fs, Map, OpenOptions};

use super::sort::take_cell;
use super::{Cell, FILE_VERSION, MAGIC, Row, SUM_BYTES, compare_prefix};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::{Checked, Extremes, Kind, Leaf, MAX_COLUMNS};

/// An open index. Threads share it by reference. Pages are verified when they are read.
pub struct Index {
    path: PathBuf,
    map: Map,
    page_bytes: usize,
    kinds: Vec<Kind>,
    keys: usize,
    rows: u64,
    first_keys: Vec<Vec<Cell>>,
}

/// The rows with one value of the first column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The value.
    pub key: Cell,
    /// Number of rows with this value.
    pub count: u64,
}

/// Reads one cell of a page.
pub(super) fn cell(leaf: &Leaf<'_>, column: usize, row: usize) -> Checked<Cell> {
    if leaf.is_null(column, row)? {
        return Ok(Cell::Null);
    }
    let integer = leaf.integer(column, row)?;
    if leaf.kind(column)? == Kind::Integers {
        return Ok(Cell::Integer(integer as i64));
    }
    let mut bytes = Vec::new();
    leaf.string(column, integer, &mut bytes)?;
    Ok(Cell::Bytes(bytes))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        eight.copy_from_slice(found);
    }
    u64::from_le_bytes(eight)
}

/// The decoded header.
struct Header {
    page_bytes: usize,
    kinds: Vec<Kind>,
    keys: usize,
    rows: u64,
    pages: u64,
    directory: std::ops::Range<usize>,
    directory_sum: u64,
}

fn read_header(path: &Path, bytes: &[u8]) -> Result<Header> {
    let damaged = |offset: u64, what: &str| Error::corruption(path, offset, what);
    if bytes.len() < 512 || &bytes[..8] != MAGIC {
        return Err(damaged(0, "expected the magic CAIRNIDX and a header of at least 512 bytes"));
    }
    match word(bytes, 8) as u32 {
        FILE_VERSION => read_header_v1(path, bytes),
        version => {
            let what = format!("version {version}; this build reads version {FILE_VERSION}");
            Err(Error::Unsupported { file: path.to_owned(), what })
        }
    }
}

fn read_header_v1(path: &Path, bytes: &[u8]) -> Result<Header> {
    let damaged = |offset: u64, what: &str| Error::corruption(path, offset, what);
    let page_bytes = (word(bytes, 8) >> 32) as usize;
    if !page_bytes.is_power_of_two() || !(512..=32_768).contains(&page_bytes) || bytes.len() < page_bytes {
        return Err(damaged(12, "expected a page size from 512 to 32768"));
    }
    let end = page_bytes - SUM_BYTES;
    if word(bytes, end) != xxh3_64(&bytes[..end]) {
        return Err(damaged(end as u64, "the header's checksum does not match"));
    }
    let (columns, keys) = (usize::from(bytes[16]), usize::from(bytes[17]));
    if columns == 0 || columns > MAX_COLUMNS || keys == 0 || keys > columns {
        return Err(damaged(16, "expected 1 to 64 columns, and keys among them"));
    }
    let kinds =
        bytes[18..18 + columns].iter().map(|k| if *k == 0 { Kind::Integers } else { Kind::Bytes }).collect();
    let [rows, pages, at, len, directory_sum] = [0, 1, 2, 3, 4].map(|index| word(bytes, 96 + 8 * index));
    let want = pages.checked_add(1).and_then(|pages| pages.checked_mul(page_bytes as u64));
    if want != Some(at) || at.checked_add(len) != Some(bytes.len() as u64) {
        return Err(damaged(104, "expected pages, a directory and nothing else"));
    }
    let directory = at as usize..bytes.len();
    Ok(Header { page_bytes, kinds, keys, rows, pages, directory, directory_sum })
}

impl Index {
    /// Opens the index at `path`: maps it, and verifies the header and the directory. Reads no page
    /// of rows. Memory: one key per page.
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<Index> {
        let map = fs.open(path, OpenOptions::read())?.map()?;
        let header = read_header(path, &map)?;
        let offset = header.directory.start as u64;
        let directory = &map[header.directory];
        if xxh3_64(directory) != header.directory_sum {
            return Err(Error::corruption(path, offset, "the directory's checksum does not match"));
        }
        let damaged = |damage| Error::damage(path, offset, damage);
        let mut cursor = Cursor::new(directory, 0, directory.len()).map_err(damaged)?;
        let mut first_keys = Vec::new();
        for _ in 0..header.pages {
            let key: Checked<Vec<Cell>> = (0..header.keys).map(|_| take_cell(&mut cursor)).collect();
            first_keys.push(key.map_err(damaged)?);
        }
        let Header { page_bytes, kinds, keys, rows, .. } = header;
        Ok(Index { path: path.to_owned(), page_bytes, kinds, keys, rows, first_keys, map })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of pages of rows.
    pub fn pages(&self) -> usize {
        self.first_keys.len()
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    fn page_offset(&self, page: usize) -> usize {
        (page + 1) * self.page_bytes
    }

    fn fail(&self, page: usize) -> impl Fn(crate::Damage) -> Error + '_ {
        move |damage| Error::damage(&self.path, self.page_offset(page) as u64, damage)
    }

    /// Returns a page after verifying its checksum. Takes about a microsecond for 8 KiB.
    fn leaf(&self, page: usize) -> Result<Leaf<'_>> {
        debug_assert!(page < self.pages(), "page {page} of {}", self.pages());
        let at = self.page_offset(page);
        let bytes = self.map.get(at..at + self.page_bytes).unwrap_or_default();
        let Some((body, sum)) = bytes.split_last_chunk::<SUM_BYTES>() else {
            return Err(Error::corruption(&self.path, at as u64, "the file ends before the page"));
        };
        if u64::from_le_bytes(*sum) != xxh3_64_seeded(body, page as u64 + 1) {
            return Err(Error::corruption(&self.path, at as u64, "the page's checksum does not match"));
        }
        let leaf = Leaf::open(body).map_err(self.fail(page))?;
        let same = leaf.columns() == self.kinds.len()
            && self.kinds.iter().enumerate().all(|(column, kind)| leaf.kind(column) == Ok(*kind));
        if !same {
            return Err(Error::corruption(&self.path, at as u64, "expected the columns of the header"));
        }
        Ok(leaf)
    }

    /// Returns how many rows of a page sort before `key`, a prefix of the key columns. With
    /// `or_equal`, rows equal to `key` count too.
    fn count_before(&self, page: usize, leaf: &Leaf<'_>, key: &[Cell], or_equal: bool) -> Result<usize> {
        debug_assert!(key.len() <= self.keys, "a prefix of {} key columns", self.keys);
        let (mut low, mut high) = (0, leaf.rows());
        while low < high {
            let middle = low + (high - low) / 2;
            let found: Checked<Vec<Cell>> = (0..key.len()).map(|column| cell(leaf, column, middle)).collect();
            let order = compare_prefix(&found.map_err(self.fail(page))?, key);
            if order.is_lt() || (or_equal && order.is_eq()) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Returns the page and row of the first row that does not sort before `key`. With `or_equal`,
    /// rows equal to `key` are skipped too.
    fn locate(&self, key: &[Cell], or_equal: bool) -> Result<(usize, usize)> {
        let before = self.first_keys.partition_point(|first| {
            let order = compare_prefix(first, key);
            order.is_lt() || (or_equal && order.is_eq())
        });
        let Some(page) = before.checked_sub(1) else { return Ok((0, 0)) };
        let leaf = self.leaf(page)?;
        let row = self.count_before(page, &leaf, key, or_equal)?;
        Ok(if row == leaf.rows() { (page + 1, 0) } else { (page, row) })
    }

    fn check_key(&self, key: &[Cell]) -> Result<()> {
        if key.len() > self.keys {
            return Err(Error::invalid(format!(
                "a key of {} columns, expected at most {}",
                key.len(),
                self.keys
            )));
        }
        Ok(())
    }

    /// Returns the rows between two boundaries, each a prefix of the key columns:
    /// `(Bound::Included(&[k]), Bound::Included(&[k]))` gives those whose first column is `k`. Does
    /// two searches of a microsecond or two each.
    pub fn range<'k>(&self, bounds: impl RangeBounds<&'k [Cell]>) -> Result<Range<'_>> {
        let start = match bounds.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.check_key(key).and_then(|()| self.locate(key, false))?,
            Bound::Excluded(key) => self.check_key(key).and_then(|()| self.locate(key, true))?,
        };
        let end = match bounds.end_bound() {
            Bound::Unbounded => (self.pages(), 0),
            Bound::Included(key) => self.check_key(key).and_then(|()| self.locate(key, true))?,
            Bound::Excluded(key) => self.check_key(key).and_then(|()| self.locate(key, false))?,
        };
        debug_assert!(start.0 <= self.pages() && end.0 <= self.pages(), "{start:?} to {end:?}");
        Ok(Range { index: self, start, end: end.max(start) })
    }

    /// Reads every page and verifies checksums, values and order. Errors name the damaged page.
    pub fn verify(&self) -> Result<()> {
        let mut last: Option<Row> = None;
        let mut rows = 0;
        for page in 0..self.pages() {
            let leaf = self.leaf(page)?;
            leaf.verify().map_err(self.fail(page))?;
            rows += leaf.rows() as u64;
            let at = self.page_offset(page) as u64;
            for row in 0..leaf.rows() {
                let found = self.row(page, &leaf, row)?;
                if row == 0 && found.cells[..self.keys] != self.first_keys[page][..] {
                    return Err(Error::corruption(
                        &self.path,
                        at,
                        "expected the directory's key in the first row",
                    ));
                }
                let ascends = last.as_ref().is_none_or(|last| {
                    compare_prefix(&last.cells[..self.keys], &found.cells[..self.keys])
                        .then(last.id.cmp(&found.id))
                        .is_le()
                });
                if !ascends {
                    return Err(Error::corruption(
                        &self.path,
                        at,
                        format!("row {row} sorts before the row before it"),
                    ));
                }
                last = Some(found);
            }
        }
        if rows != self.rows {
            return Err(Error::corruption(
                &self.path,
                96,
                format!("{} rows, but the pages have {rows}", self.rows),
            ));
        }
        Ok(())
    }

    fn row(&self, page: usize, leaf: &Leaf<'_>, row: usize) -> Result<Row> {
        let mut id = [0];
        leaf.ids(row, &mut id).map_err(self.fail(page))?;
        let cells: Checked<Vec<Cell>> = (0..self.kinds.len()).map(|column| cell(leaf, column, row)).collect();
        Ok(Row { id: id[0], cells: cells.map_err(self.fail(page))? })
    }
}

/// A range of rows, which can be iterated, or aggregated without materializing rows.
#[derive(Clone, Copy)]
pub struct Range<'i> {
    index: &'i Index,
    start: (usize, usize),
    end: (usize, usize),
}

/// A double-ended iterator over the rows of a range.
pub struct Rows<'i> {
    index: &'i Index,
    start: (usize, usize),
    end: (usize, usize),
    open: Option<(usize, Leaf<'i>)>,
    failed: bool,
}

impl<'i> IntoIterator for Range<'i> {
    type Item = Result<Row>;
    type IntoIter = Rows<'i>;

    fn into_iter(self) -> Rows<'i> {
        Rows { index: self.index, start: self.start, end: self.end, open: None, failed: false }
    }
}

impl<'i> Range<'i> {
    /// Calls `each` with each page and its rows that are in the range.
    fn pages(&self, mut each: impl FnMut(usize, &Leaf<'i>, usize, usize) -> Checked<()>) -> Result<()> {
        let mut page = self.start.0;
        while (page, 0) < self.end && page < self.index.pages() {
            let leaf = self.index.leaf(page)?;
            let from = if page == self.start.0 { self.start.1 } else { 0 };
            let to = if page == self.end.0 { self.end.1 } else { leaf.rows() };
            each(page, &leaf, from.min(to), to).map_err(self.index.fail(page))?;
            page += 1;
        }
        Ok(())
    }

    fn integers(&self, column: usize) -> Result<()> {
        match self.index.kinds.get(column) {
            Some(Kind::Integers) => Ok(()),
            _ => Err(Error::invalid(format!("column {column} does not hold integers"))),
        }
    }

    /// Returns a mask of the rows that are not NULL in `column`; `None` if the page has no NULLs.
    fn values(leaf: &Leaf<'_>, column: usize, from: usize, to: usize) -> Checked<Option<Vec<u64>>> {
        if !leaf.has_nulls(column)? {
            return Ok(None);
        }
        let mut mask = vec![u64::MAX; (to - from).div_ceil(64)];
        leaf.filter_nulls(column, from, to, true, &mut mask)?;
        Ok(Some(mask))
    }

    /// Returns the number of rows. Opens each page but unpacks none.
    pub fn count(&self) -> Result<u64> {
        let mut count = 0;
        self.pages(|_, _, from, to| {
            count += (to - from) as u64;
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns the sum of an integer column without NULLs. Takes some nanoseconds per run, or less
    /// than one per row.
    pub fn sum(&self, column: usize) -> Result<i128> {
        self.integers(column)?;
        let mut sum = 0;
        self.pages(|_, leaf, from, to| {
            let mask = Range::values(leaf, column, from, to)?;
            sum += leaf.sum(column, from, to, mask.as_deref())?;
            Ok(())
        })?;
        Ok(sum)
    }

    fn extremes(&self, column: usize) -> Result<Option<Extremes>> {
        self.integers(column)?;
        let mut found: Option<Extremes> = None;
        self.pages(|_, leaf, from, to| {
            let mask = Range::values(leaf, column, from, to)?;
            if let Some(here) = leaf.extremes(column, from, to, mask.as_deref())? {
                let old = found.unwrap_or(here);
                found = Some(Extremes { least: old.least.min(here.least), most: old.most.max(here.most) });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the least value of an integer column; `None` if there are no values.
    pub fn min(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.extremes(column)?.map(|found| found.least))
    }

    /// Returns the greatest value of an integer column; `None` if there are no values.
    pub fn max(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.extremes(column)?.map(|found| found.most))
    }

    /// Returns the values of the first column and the number of rows with each, in order. Does a
    /// binary search per group and page.
    pub fn groups(&self) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        self.pages(|_, leaf, from, to| {
            let mut row = from;
            while row < to {
                let key = cell(leaf, 0, row)?;
                let (mut low, mut high) = (row + 1, to);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if cell(leaf, 0, middle)? == key { low = middle + 1 } else { high = middle }
                }
                let count = (low - row) as u64;
                match groups.last_mut() {
                    Some(last) if last.key == key => last.count += count,
                    _ => groups.push(Group { key, count }),
                }
                row = low;
            }
            Ok(())
        })?;
        Ok(groups)
    }

    /// Iterates over the rows, in order or from the end.
    pub fn iter(&self) -> Rows<'i> {
        self.into_iter()
    }
}

impl Rows<'_> {
    /// Opens `page` unless it is open already, and returns its number of rows.
    fn enter(&mut self, page: usize) -> Result<usize> {
        let rows = match &self.open {
            Some((open, leaf)) if *open == page => leaf.rows(),
            _ => {
                let leaf = self.index.leaf(page)?;
                let rows = leaf.rows();
                self.open = Some((page, leaf));
                rows
            }
        };
        Ok(rows)
    }

    fn read(&mut self, page: usize, row: usize) -> Result<Row> {
        let rows = self.enter(page)?;
        debug_assert!(row < rows, "row {row} of {rows}");
        match &self.open {
            Some((open, leaf)) if *open == page => self.index.row(page, leaf, row),
            _ => Err(Bug::new(format!("page {page} was entered and is not open")).into()),
        }
    }

    fn step(&mut self) -> Result<Option<Row>> {
        while self.start < self.end && self.start.0 < self.index.pages() {
            let (page, row) = self.start;
            if row < self.enter(page)? {
                self.start.1 += 1;
                return self.read(page, row).map(Some);
            }
            self.start = (page + 1, 0);
        }
        Ok(None)
    }

    fn step_back(&mut self) -> Result<Option<Row>> {
        while self.start < self.end {
            if self.end.1 > 0 {
                self.end.1 -= 1;
                return self.read(self.end.0, self.end.1).map(Some);
            }
            let Some(page) = self.end.0.checked_sub(1) else { return Ok(None) };
            self.end = (page, self.enter(page)?);
        }
        Ok(None)
    }

    /// Ends the iterator after the first error.
    fn fuse(&mut self, result: Result<Option<Row>>) -> Option<Result<Row>> {
        self.failed |= result.is_err();
        result.transpose()
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.fuse(step)
    }
}

impl DoubleEndedIterator for Rows<'_> {
    fn next_back(&mut self) -> Option<Result<Row>> {
        if self.failed {
            return None;
        }
        let step = self.step_back();
        self.fuse(step)
    }
}
