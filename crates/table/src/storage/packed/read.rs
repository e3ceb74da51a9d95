//! Reading single records of a packed leaf from any source of bytes.

use cairn_pool::Changed;

use super::symbols::Table;
use super::{
    ALL_NULL, BYTES, CODES, HEADER, HIGH, LOW, NO_NULLS, NUMBERS, PLAIN, STREAM, STREAMS, TEXTS, VALUES, bits,
};
use crate::storage::node::max_record;
use crate::storage::source::Source;

/// A packed leaf to read. Nothing in its bytes is trusted unchecked: offsets and lengths may have
/// any value.
#[derive(Debug)]
pub(crate) struct Packed<'a, S: ?Sized>(pub(crate) &'a S);

impl<S: ?Sized> Clone for Packed<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: ?Sized> Copy for Packed<'_, S> {}

/// The ends of consecutive byte strings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) bits: u8,
    pub(super) place: u16,
    pub(super) slope: u32,
    pub(super) base: i32,
}

impl Ends {
    /// Returns the end of a value from its packed number.
    #[inline]
    pub(super) fn end(&self, at: usize, number: u64) -> Result<usize, Changed> {
        let steady = ((at as u64 + 1) * u64::from(self.slope)) >> 8;
        let end = i64::from(self.base).wrapping_add_unsigned(steady).wrapping_add_unsigned(number);
        // No page is longer.
        usize::try_from(end).ok().filter(|end| *end <= usize::from(u16::MAX)).ok_or(Changed)
    }

    /// Returns the start and the end of a value.
    #[inline]
    pub(super) fn range<S: Source + ?Sized>(&self, from: &S, at: usize) -> Result<(usize, usize), Changed> {
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => self.end(before, bits::get(from, self.place, self.bits, before)?)?,
        };
        let end = self.end(at, bits::get(from, self.place, self.bits, at)?)?;
        if start <= end { Ok((start, end)) } else { Err(Changed) }
    }
}

/// A column, or one half of a 16-byte column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) width: u8,
    pub(super) form: u8,
    pub(super) bits: u8,
    pub(super) place: u16,
    pub(super) nulls: u16,
    /// The base of numbers. For bytes, the line of their ends.
    pub(super) base: i64,
    pub(super) heap: u16,
    pub(super) len: u16,
    pub(super) table: u16,
}

impl Stream {
    pub(super) fn ends(&self) -> Ends {
        Ends { bits: self.bits, place: self.place, slope: self.base as u32, base: (self.base >> 32) as i32 }
    }
}

/// The row columns that a reader uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnSet(u64);

impl ColumnSet {
    /// All columns.
    pub(crate) const ALL: ColumnSet = ColumnSet(u64::MAX);

    /// Creates a set. Columns after the first 64 of a row are always included.
    pub(crate) fn of(columns: impl Iterator<Item = usize>) -> ColumnSet {
        ColumnSet(columns.filter(|column| *column < 64).fold(0, |mask, column| mask | 1 << column))
    }

    #[inline]
    fn has(self, column: usize) -> bool {
        column >= 64 || self.0 >> column & 1 == 1
    }
}

/// Forms of the lead.
pub(super) const LENGTH: u8 = 1;
pub(super) const LENGTH_AND_BYTES: u8 = 2;
const _: () = assert!(LENGTH != LENGTH_AND_BYTES && LENGTH > 0);

impl<S: Source + ?Sized> Packed<'_, S> {
    /// Returns the number of streams, and the form of the lead.
    #[inline]
    pub(super) fn shape(&self) -> Result<(usize, u8), Changed> {
        let [streams, lead] = self.0.u16(STREAMS)?.to_le_bytes();
        if lead > LENGTH_AND_BYTES || lead > 0 && streams == 0 {
            return Err(Changed);
        }
        Ok((streams.into(), lead))
    }

    #[inline]
    pub(super) fn stream(&self, nth: usize) -> Result<Stream, Changed> {
        let at = HEADER + nth * STREAM;
        let (head, base, tail) = (self.0.u64(at)?, self.0.u64(at + 8)?, self.0.u64(at + 16)?);
        let width = head as u8;
        if !matches!(width, BYTES | 1 | 2 | 4 | 8 | LOW | HIGH) {
            return Err(Changed);
        }
        Ok(Stream {
            width,
            form: (head >> 8) as u8,
            bits: (head >> 16) as u8,
            place: (head >> 32) as u16,
            nulls: (head >> 48) as u16,
            base: base as i64,
            heap: tail as u16,
            len: (tail >> 16) as u16,
            table: (tail >> 32) as u16,
        })
    }

    #[inline]
    fn is_null(&self, stream: &Stream, at: usize) -> Result<bool, Changed> {
        match stream.nulls {
            NO_NULLS => Ok(false),
            ALL_NULL => Ok(true),
            place => Ok(self.0.u8(usize::from(place) + at / 8)? >> (at % 8) & 1 == 1),
        }
    }

    #[inline]
    fn number(&self, stream: &Stream, at: usize) -> Result<i64, Changed> {
        let number = bits::get(self.0, stream.place, stream.bits, at)?;
        match stream.form {
            NUMBERS => Ok(stream.base.wrapping_add_unsigned(number)),
            VALUES if number < stream.len.into() => {
                self.0.u64(usize::from(stream.heap) + 8 * number as usize).map(|number| number as i64)
            }
            _ => Err(Changed),
        }
    }

    /// Appends a value of a stream of bytes. A NULL is empty.
    #[inline]
    fn bytes(&self, stream: &Stream, at: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        if stream.nulls == ALL_NULL {
            return Ok(());
        }
        let heap = usize::from(stream.heap);
        match stream.form {
            PLAIN => {
                let (start, end) = stream.ends().range(self.0, at)?;
                self.0.append_to(heap + start, end - start, to)
            }
            TEXTS => {
                let nth = bits::get(self.0, stream.place, stream.bits, at)?;
                if nth >= stream.len.into() {
                    return Err(Changed);
                }
                let ends = usize::from(stream.table) + 2 * nth as usize;
                let start = if nth == 0 { 0 } else { self.0.u16(ends - 2)? };
                let len = self.0.u16(ends)?.checked_sub(start).ok_or(Changed)?;
                self.0.append_to(heap + usize::from(start), len.into(), to)
            }
            CODES => {
                let (start, end) = stream.ends().range(self.0, at)?;
                Table::read(self.0, stream.table)?.append(self.0, (heap + start, heap + end), to)
            }
            _ => Err(Changed),
        }
    }

    /// Touches one byte of each part of a record. The parts are on different cache lines, and this
    /// way their cache misses overlap instead of following one another.
    fn prefetch(&self, streams: usize, first: usize, at: usize, wanted: ColumnSet) {
        let (mut column, mut is_wanted) = (0, true);
        for nth in 0..streams {
            let Ok(stream) = self.stream(nth) else { continue };
            if nth >= first && stream.width != HIGH {
                is_wanted = wanted.has(column);
                column += 1;
            }
            if !is_wanted {
                continue;
            }
            let _ = self.0.u8(usize::from(stream.place) + at * usize::from(stream.bits) / 8);
            if stream.width == BYTES {
                let steady = (at as u64 * u64::from(stream.ends().slope)) >> 8;
                let _ = self.0.u8(usize::from(stream.heap) + steady as usize);
                let _ = self.0.u8(usize::from(stream.table));
            }
        }
    }

    /// Appends the value of a record, reconstructed from its columns. Columns that are not wanted
    /// become NULL.
    pub(crate) fn value(&self, at: usize, wanted: ColumnSet, to: &mut Vec<u8>) -> Result<(), Changed> {
        if at >= self.count()? {
            return Err(Changed);
        }
        let (streams, lead) = self.shape()?;
        self.prefetch(streams, usize::from(lead > 0), at, wanted);
        let (begin, most) = (to.len(), max_record(self.0.len()));
        to.push(0);
        if lead > 0 {
            self.lead(lead, at, to)?;
        }
        let (start, first) = (to.len(), usize::from(lead > 0));
        let nulls = self.columns(first..streams)?.div_ceil(8);
        to.resize(start + nulls, 0);
        let (mut column, mut is_null, mut variable) = (0, false, 0);
        for nth in first..streams {
            let stream = self.stream(nth)?;
            if stream.width != HIGH {
                is_null = !wanted.has(column) || self.is_null(&stream, at)?;
                let bits = to.get_mut(start + column / 8).ok_or(Changed)?;
                *bits |= u8::from(is_null) << (column % 8);
                column += 1;
            }
            if stream.width == BYTES {
                variable += 1;
                continue;
            }
            let number = if is_null { 0 } else { self.number(&stream, at)? }.to_le_bytes();
            to.extend_from_slice(number.get(..usize::from(stream.width).min(8)).ok_or(Changed)?);
        }
        let mut end = to.len();
        to.resize(end + 2 * variable, 0);
        let (body, mut column) = (to.len(), 0);
        for nth in first..streams {
            let stream = self.stream(nth)?;
            column += usize::from(stream.width != HIGH);
            if stream.width == BYTES {
                // A NULL is empty.
                if wanted.has(column - 1) {
                    self.bytes(&stream, at, to)?;
                }
                let len = u16::try_from(to.len() - body).map_err(|_| Changed)?;
                to.get_mut(end..end + 2).ok_or(Changed)?.copy_from_slice(&len.to_le_bytes());
                end += 2;
            }
            if to.len() - begin > most {
                return Err(Changed);
            }
        }
        Ok(())
    }

    /// Appends the lead, which follows the flags.
    fn lead(&self, lead: u8, at: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        let stream = self.stream(0)?;
        if lead == LENGTH {
            let number = self.number(&stream, at)?;
            to.extend_from_slice(&(number as u16).to_le_bytes());
            return Ok(());
        }
        let start = to.len();
        to.extend_from_slice(&[0; 2]);
        self.bytes(&stream, at, to)?;
        let len = u16::try_from(to.len() - start - 2).map_err(|_| Changed)?;
        to.get_mut(start..start + 2).ok_or(Changed)?.copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    /// Returns how many columns a range of streams represents.
    #[inline]
    fn columns(&self, streams: std::ops::Range<usize>) -> Result<usize, Changed> {
        let mut columns = 0;
        for nth in streams {
            columns += usize::from(self.0.u8(HEADER + nth * STREAM)? != HIGH);
        }
        Ok(columns)
    }

    #[inline]
    pub(super) fn count(&self) -> Result<usize, Changed> {
        self.0.u16(2).map(usize::from)
    }
}
