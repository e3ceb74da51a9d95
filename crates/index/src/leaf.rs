//! One page of rows: row ids and columns, each in its own encoding.
//!
//! ```text
//!   0  version u8, 1 | columns u8 | rows u16 | radix u16 | bytes of all u16
//!   8  end of the row ids u16
//!      for each column: kind u8, 0 integers, 1 byte strings
//!                       | ends of its NULLs, its integers, its strings, u16 each
//!      row ids | for each column: NULLs | integers, or codes of strings | strings
//! ```
//!
//! Ends are offsets from the start of the page. A row id is stored as `block * radix + offset - 1`
//! if rows are in blocks of a heap, and unchanged if the radix is 0. NULLs are a stream of 0 and 1,
//! absent if there are none; the value stored for a NULL repeats that of its neighbour. Opening a
//! page reads only the directory and the heads of the streams. The writer is `Packer`.

use crate::cursor::Cursor;
use crate::damage::{Checked, Damage};
use crate::stream::{Extremes, Stream};
use crate::strings::Strings;

/// The version that is written, and the only one that is read.
pub const VERSION: u8 = 1;
/// Maximum number of rows in a page.
pub const MAX_ROWS: usize = 65_535;
/// Maximum number of columns in a page.
pub const MAX_COLUMNS: usize = 64;

const _: () = assert!(MAX_ROWS == u16::MAX as usize, "the number of rows has two bytes");
const _: () = assert!(directory_bytes(MAX_COLUMNS) < 512, "the smallest page has room for rows");

pub(crate) const fn directory_bytes(columns: usize) -> usize {
    10 + 7 * columns
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers of up to 64 bits, stored as signed integers.
    Integers,
    /// Byte strings.
    Bytes,
}

/// A page opened for reading. It borrows the bytes, and holds only the locations of the parts.
#[derive(Default)]
pub struct Leaf<'a> {
    rows: usize,
    radix: u16,
    /// 2^64 / radix, rounded up. A multiplication by it divides row ids below 2^48 exactly.
    reciprocal: u64,
    ids: Option<Stream<'a>>,
    columns: Vec<Column<'a>>,
}

#[derive(Clone, Copy)]
struct Column<'a> {
    kind: Kind,
    nulls: Option<Stream<'a>>,
    integers: Stream<'a>,
    strings: Option<Strings<'a>>,
    bytes: usize,
}

/// The space and encoding of a column in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnStats {
    /// The encoding of the integers, or of the codes of the strings.
    pub encoding: &'static str,
    /// Size of the column in bytes, NULLs and strings included.
    pub bytes: usize,
    /// Number of linear runs in which it is stored; 0 for encodings without runs.
    pub runs: usize,
    /// Number of distinct strings.
    pub strings: usize,
    /// Whether it has NULLs.
    pub has_nulls: bool,
}

impl<'a> Leaf<'a> {
    /// Opens a page. Takes 20 ns, and about 15 ns more per column.
    pub fn open(page: &'a [u8]) -> Checked<Leaf<'a>> {
        let mut leaf = Leaf::default();
        leaf.reopen(page)?;
        Ok(leaf)
    }

    /// Does the same as [`Leaf::open`] without a new allocation. After an error the leaf has no
    /// rows.
    pub fn reopen(&mut self, page: &'a [u8]) -> Checked<()> {
        self.rows = 0;
        self.ids = None;
        self.columns.clear();
        let mut head = Cursor::new(page, 0, page.len())?;
        match head.u8()? {
            VERSION => self.read_v1(page, head),
            _ => Err(Damage::at(0, "version 1 of a page of rows")),
        }
    }

    /// Reads a page after its version, at which `head` stands.
    fn read_v1(&mut self, page: &'a [u8], mut head: Cursor<'a>) -> Checked<()> {
        let columns = usize::from(head.u8()?);
        let rows = usize::from(head.u16()?);
        self.radix = head.u16()?;
        let all = usize::from(head.u16()?);
        if columns > MAX_COLUMNS || all > page.len() {
            return Err(Damage::at(1, "at most 64 columns, and no more bytes than the page has"));
        }
        self.reciprocal = if self.radix > 1 { u64::MAX / u64::from(self.radix) + 1 } else { 0 };
        let mut at = directory_bytes(columns);
        let mut next = |end: usize| {
            let part = if end > all {
                Err(Damage::at(at, "parts within the page"))
            } else {
                Cursor::new(page, at, end)
            };
            at = end;
            part
        };
        let ids = Stream::parse(next(usize::from(head.u16()?))?, rows)?;
        for _ in 0..columns {
            let kind = if head.u8()? == 0 { Kind::Integers } else { Kind::Bytes };
            let nulls = next(usize::from(head.u16()?))?;
            let integers = next(usize::from(head.u16()?))?;
            let strings = next(usize::from(head.u16()?))?;
            let bytes = strings.end() - nulls.at();
            let nulls = if nulls.at() < nulls.end() { Some(Stream::parse(nulls, rows)?) } else { None };
            let strings = if kind == Kind::Bytes { Some(Strings::parse(strings)?) } else { None };
            self.columns.push(Column {
                kind,
                nulls,
                integers: Stream::parse(integers, rows)?,
                strings,
                bytes,
            });
        }
        debug_assert_eq!(self.columns.len(), columns);
        self.ids = Some(ids);
        self.rows = rows;
        Ok(())
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the type of a column.
    pub fn kind(&self, column: usize) -> Checked<Kind> {
        Ok(self.column(column)?.kind)
    }

    fn column(&self, column: usize) -> Checked<&Column<'a>> {
        self.columns.get(column).ok_or_else(|| Damage::at(1, "as many columns as the index has"))
    }

    /// Returns `column`, for a read of rows up to `to`.
    fn column_to(&self, column: usize, to: usize) -> Checked<&Column<'a>> {
        if to > self.rows {
            return Err(Damage::at(2, "as many rows as are asked for"));
        }
        self.column(column)
    }

    /// Returns true if `column` has NULLs in this page.
    pub fn has_nulls(&self, column: usize) -> Checked<bool> {
        Ok(self.column(column)?.nulls.is_some())
    }

    /// Returns true if `column` of `row` is NULL.
    pub fn is_null(&self, column: usize, row: usize) -> Checked<bool> {
        match &self.column_to(column, row + 1)?.nulls {
            Some(nulls) => Ok(nulls.get(row)? != 0),
            None => Ok(false),
        }
    }

    /// Reads the NULLs of rows `start..start + out.len()`, 1 for a NULL.
    pub fn nulls(&self, column: usize, start: usize, out: &mut [u64]) -> Checked<()> {
        match &self.column_to(column, start + out.len())?.nulls {
            Some(nulls) => nulls.decode(start, out),
            None => {
                out.fill(0);
                Ok(())
            }
        }
    }

    /// Returns the integer in `column` of `row`, or the code of its string.
    pub fn integer(&self, column: usize, row: usize) -> Checked<u64> {
        self.column_to(column, row + 1)?.integers.get(row)
    }

    /// Returns how many rows of `range` come before `value` in a column that is sorted ascending in
    /// that range (with `descends`, descending) and has no NULLs there. With `or_equal`, equal rows
    /// count too. Takes some hundred nanoseconds.
    pub fn count_before(
        &self,
        column: usize,
        range: std::ops::Range<usize>,
        value: i64,
        or_equal: bool,
        descends: bool,
    ) -> Checked<usize> {
        let start = range.start;
        let is_before = |found: u64| {
            let found = found as i64;
            (if descends { found > value } else { found < value }) || (or_equal && found == value)
        };
        let end = self.column_to(column, range.end)?.integers.partition(range, is_before)?;
        Ok(end.saturating_sub(start))
    }

    /// Reads the integers, or the codes of strings, of rows `start..start + out.len()`. Takes 0.3
    /// to 2 ns each.
    pub fn integers(&self, column: usize, start: usize, out: &mut [u64]) -> Checked<()> {
        self.column_to(column, start + out.len())?.integers.decode(start, out)
    }

    /// Replaces the content of `out` with the string of `code`.
    pub fn string(&self, column: usize, code: u64, out: &mut Vec<u8>) -> Checked<()> {
        match &self.column(column)?.strings {
            Some(strings) => strings.read(code, out),
            None => Err(Damage::at(1, "a column of byte strings")),
        }
    }

    /// Reads the row ids of rows `start..start + out.len()`: `block << 16 | offset` if rows are in
    /// a heap.
    pub fn ids(&self, start: usize, out: &mut [u64]) -> Checked<()> {
        let Some(ids) = self.ids.as_ref().filter(|_| start + out.len() <= self.rows) else {
            return Err(Damage::at(2, "as many rows as are asked for"));
        };
        ids.decode(start, out)?;
        if self.radix != 0 {
            out.iter_mut().for_each(|id| *id = self.place(*id));
        }
        Ok(())
    }

    /// Returns the first and the last heap block that rows `from..to` refer to; `None` if there are
    /// no rows. Runs take some nanoseconds each.
    pub fn blocks(&self, from: usize, to: usize) -> Checked<Option<(u64, u64)>> {
        let Some(ids) = self.ids.as_ref().filter(|_| to <= self.rows) else {
            return Err(Damage::at(2, "as many rows as are asked for"));
        };
        let found = ids.extremes(from, to, None)?;
        Ok(found.map(|ids| {
            let block = |id: i64| if self.radix == 0 { id as u64 } else { self.place(id as u64) } >> 16;
            (block(ids.least), block(ids.most))
        }))
    }

    /// Returns the block and the offset of a row id. Offsets begin at 1.
    #[inline]
    fn place(&self, id: u64) -> u64 {
        let radix = u64::from(self.radix);
        debug_assert!(radix > 0, "rows that are not in a heap keep their ids");
        let block =
            if radix == 1 { id } else { ((u128::from(id) * u128::from(self.reciprocal)) >> 64) as u64 };
        debug_assert!(id >> 48 != 0 || block == id / radix, "{id} / {radix} = {block}");
        (block << 16) | id.wrapping_sub(block.wrapping_mul(radix)).wrapping_add(1) & 0xffff
    }

    /// Clears the bits of the rows in `from..to` whose integer is NULL or not within
    /// `least..=most`. Bit 0 of the mask is row `from`. Returns false if it is certain that no row
    /// is left. Runs take some nanoseconds each, other encodings less than one per row.
    pub fn filter(
        &self,
        column: usize,
        from: usize,
        to: usize,
        least: i64,
        most: i64,
        mask: &mut [u64],
    ) -> Checked<bool> {
        let found = self.column_to(column, to)?;
        if from > to || mask.len() < (to - from).div_ceil(64) {
            return Err(Damage::at(2, "a mask with a bit for each row"));
        }
        if let Some(nulls) = &found.nulls {
            nulls.filter(from, to, 0, 0, mask)?;
        }
        found.integers.filter(from, to, least, most, mask)
    }

    /// Clears the bits of the rows that are not NULL, or, with `keep_values`, of those that are
    /// NULL.
    pub fn filter_nulls(
        &self,
        column: usize,
        from: usize,
        to: usize,
        keep_values: bool,
        mask: &mut [u64],
    ) -> Checked<()> {
        let found = self.column_to(column, to)?;
        if from > to || mask.len() < (to - from).div_ceil(64) {
            return Err(Damage::at(2, "a mask with a bit for each row"));
        }
        match &found.nulls {
            Some(nulls) if keep_values => nulls.filter(from, to, 0, 0, mask).map(|_| ()),
            Some(nulls) => nulls.filter(from, to, 1, i64::MAX, mask).map(|_| ()),
            None if keep_values => Ok(()),
            None => {
                mask.fill(0);
                Ok(())
            }
        }
    }

    /// Returns the sum of the integers of rows `from..to`. With a mask, sums only the rows in it;
    /// the caller has cleared it of NULLs.
    pub fn sum(&self, column: usize, from: usize, to: usize, mask: Option<&[u64]>) -> Checked<i128> {
        let integers = &self.column_to(column, to)?.integers;
        match mask {
            None => integers.sum(from, to),
            Some(mask) if from <= to && mask.len() >= (to - from).div_ceil(64) => {
                integers.sum_masked(from, to, mask)
            }
            Some(_) => Err(Damage::at(2, "a mask with a bit for each row")),
        }
    }

    /// Returns the least and the greatest integer of rows `from..to`, with a mask as for
    /// [`Leaf::sum`].
    pub fn extremes(
        &self,
        column: usize,
        from: usize,
        to: usize,
        mask: Option<&[u64]>,
    ) -> Checked<Option<Extremes>> {
        let integers = &self.column_to(column, to)?.integers;
        if mask.is_some_and(|mask| from > to || mask.len() < (to - from).div_ceil(64)) {
            return Err(Damage::at(2, "a mask with a bit for each row"));
        }
        integers.extremes(from, to, mask)
    }

    /// Returns the space and encoding of the row ids.
    pub fn id_stats(&self) -> Option<ColumnStats> {
        let ids = self.ids.as_ref()?;
        let bytes = ids.bytes();
        Some(ColumnStats {
            encoding: ids.encoding(),
            bytes,
            runs: ids.run_count(),
            strings: 0,
            has_nulls: false,
        })
    }

    /// Returns the space and encoding of a column.
    pub fn column_stats(&self, column: usize) -> Checked<ColumnStats> {
        let found = self.column(column)?;
        Ok(ColumnStats {
            encoding: found.integers.encoding(),
            bytes: found.bytes,
            runs: found.integers.run_count(),
            strings: found.strings.as_ref().map_or(0, Strings::count),
            has_nulls: found.nulls.is_some(),
        })
    }

    /// Reads every value of the page. Detects damage that [`Leaf::open`] does not check for.
    pub fn verify(&self) -> Checked<()> {
        let mut block = [0; 256];
        let mut string = Vec::new();
        for start in (0..self.rows).step_by(block.len()) {
            let out = &mut block[..(self.rows - start).min(256)];
            self.ids(start, out)?;
            for column in 0..self.columns.len() {
                self.nulls(column, start, out)?;
                let strings = self.columns[column].strings.is_some();
                let all_null = out.iter().all(|null| *null != 0);
                self.integers(column, start, out)?;
                if strings && !all_null {
                    let mut last = None;
                    for code in out.iter().filter(|code| last.replace(**code) != Some(**code)) {
                        self.string(column, *code, &mut string)?;
                    }
                }
            }
        }
        Ok(())
    }
}
