//! One page of rows: row ids and columns, each in its own encoding.
//!
//! ```text
//!   0  version u8, 1 | columns u8 | rows u16 | radix u16 | bytes of all u16
//!   8  end of the row ids u16
//!      for each column: kind u8, 0 integers, 1 byte strings | ends of its NULLs, its integers, its strings, u16 each
//!      row ids | for each column: NULLs | integers, or codes of strings | strings
//! ```
//!
//! Ends count from the start of the page. A row id is `block * radix + offset - 1` where rows live
//! in blocks of a heap, and as it is where the radix is 0. NULLs are a stream of 0 and 1, absent
//! where there are none; a NULL's own value repeats its neighbour's. Writer: `Packer`. Nothing but
//! the directory is read when a page is opened.

use crate::cursor::Cursor;
use crate::damage::{Checked, Damage};
use crate::stream::{Extremes, Stream};
use crate::strings::Strings;

/// The version that is written, and the only one read.
pub const VERSION: u8 = 1;
/// Rows that a page holds at most.
pub const MAX_ROWS: usize = 65_535;
/// Columns that a page holds at most.
pub const MAX_COLUMNS: usize = 64;

pub(crate) const fn directory_bytes(columns: usize) -> usize {
    10 + 7 * columns
}

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Up to 64 bits, held as a signed integer.
    Integers,
    /// Byte strings.
    Bytes,
}

/// A page opened for reading. It borrows the bytes and keeps none of its own but the places of its
/// parts.
#[derive(Default)]
pub struct Leaf<'a> {
    rows: usize,
    radix: u16,
    /// 2^64 / radix, rounded up: a multiplication by it divides row ids below 2^48 exactly.
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

/// What a page spends on a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnStats {
    /// How the integers, or the codes of the strings, are encoded.
    pub encoding: &'static str,
    /// Bytes of the column, NULLs and strings included.
    pub bytes: usize,
    /// Runs on a line that it is stored as, 0 if it is not.
    pub runs: usize,
    /// Distinct strings.
    pub strings: usize,
    /// Whether there are NULLs.
    pub has_nulls: bool,
}

impl<'a> Leaf<'a> {
    /// Opens a page. 20 ns and about 15 more a column.
    pub fn open(page: &'a [u8]) -> Checked<Leaf<'a>> {
        let mut leaf = Leaf::default();
        leaf.reopen(page)?;
        Ok(leaf)
    }

    /// [`Leaf::open`] without a new allocation. After an error the leaf has no rows.
    pub fn reopen(&mut self, page: &'a [u8]) -> Checked<()> {
        self.rows = 0;
        self.ids = None;
        self.columns.clear();
        let mut head = Cursor::new(page, 0, page.len())?;
        if head.u8()? != VERSION {
            return Err(Damage::at(0, "version 1 of a page of rows"));
        }
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
        self.ids = Some(ids);
        self.rows = rows;
        Ok(())
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns it has.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// What a column holds.
    pub fn kind(&self, column: usize) -> Checked<Kind> {
        Ok(self.column(column)?.kind)
    }

    fn column(&self, column: usize) -> Checked<&Column<'a>> {
        self.columns.get(column).ok_or_else(|| Damage::at(1, "as many columns as the index has"))
    }

    /// `column`, of which rows up to `to` are going to be read.
    fn column_to(&self, column: usize, to: usize) -> Checked<&Column<'a>> {
        if to > self.rows {
            return Err(Damage::at(2, "as many rows as are asked for"));
        }
        self.column(column)
    }

    /// Whether `column` has NULLs in this page.
    pub fn has_nulls(&self, column: usize) -> Checked<bool> {
        Ok(self.column(column)?.nulls.is_some())
    }

    /// Whether `column` of `row` is NULL.
    pub fn is_null(&self, column: usize, row: usize) -> Checked<bool> {
        match &self.column_to(column, row + 1)?.nulls {
            Some(nulls) => Ok(nulls.get(row)? != 0),
            None => Ok(false),
        }
    }

    /// NULLs of rows `start..start + out.len()`, 1 for a NULL.
    pub fn nulls(&self, column: usize, start: usize, out: &mut [u64]) -> Checked<()> {
        match &self.column_to(column, start + out.len())?.nulls {
            Some(nulls) => nulls.decode(start, out),
            None => {
                out.fill(0);
                Ok(())
            }
        }
    }

    /// The integer in `column` of `row`, or the code of its string.
    pub fn integer(&self, column: usize, row: usize) -> Checked<u64> {
        self.column_to(column, row + 1)?.integers.get(row)
    }

    /// How many of rows `from..to` come before `value` in a column that ascends over them
    /// (`descends`: the other way round) and has no NULLs there; with `or_equal`, those equal to it
    /// too. Some hundred nanoseconds.
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

    /// The integers, or codes of strings, of rows `start..start + out.len()`. 0.3 to 2 ns each.
    pub fn integers(&self, column: usize, start: usize, out: &mut [u64]) -> Checked<()> {
        self.column_to(column, start + out.len())?.integers.decode(start, out)
    }

    /// Puts the string of `code` into `out`.
    pub fn string(&self, column: usize, code: u64, out: &mut Vec<u8>) -> Checked<()> {
        match &self.column(column)?.strings {
            Some(strings) => strings.read(code, out),
            None => Err(Damage::at(1, "a column of byte strings")),
        }
    }

    /// The row ids of rows `start..start + out.len()`: `block << 16 | offset` where rows live in a
    /// heap.
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

    /// The first and the last heap block that rows `from..to` point into; `None` of no rows. Runs
    /// cost some nanoseconds each.
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

    /// Block and offset of a row id. Offsets begin at 1.
    #[inline]
    fn place(&self, id: u64) -> u64 {
        let radix = u64::from(self.radix);
        let block =
            if radix == 1 { id } else { ((u128::from(id) * u128::from(self.reciprocal)) >> 64) as u64 };
        (block << 16) | id.wrapping_sub(block.wrapping_mul(radix)).wrapping_add(1) & 0xffff
    }

    /// Clears the bits of those of rows `from..to` whose integer is not within `least..=most`; bit
    /// 0 is row `from`. NULLs are cleared. False where it is plain that none is left. Runs cost
    /// some nanoseconds each, other encodings under one a row.
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

    /// Clears the bits of the rows that are NULL, or, without `keep_values`, of those that are not.
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

    /// The sum of the integers of rows `from..to`, of those in `mask` if there is one, which the
    /// caller has cleared of NULLs.
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

    /// Least and greatest integer of rows `from..to`, with a mask as for [`Leaf::sum`].
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

    /// What the row ids take, as a column.
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

    /// What a column takes.
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

    /// Reads every value of the page. Finds what [`Leaf::open`] leaves to later.
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
