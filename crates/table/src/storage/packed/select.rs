//! Selecting records of a packed leaf by a column, and reading columns of the selected ones,
//! without decoding the others.
//!
//! A selection is a bitmap. The lowest bit of its first word stands for the first record of a
//! range.

use std::ops::Range;

use cairn_pool::Changed;

use super::columns::Column;
use super::read::{Packed, Stream};
use super::{ALL_NULL, NUMBERS, TEXTS, VALUES, bits};

impl Packed<'_, [u8]> {
    /// Deselects records whose number in a column is NULL or outside `least..=most`. Returns false,
    /// and changes nothing, if this would require decoding the numbers. Cost: compares numbers in
    /// packed form, or none at all if the column's range of values lies entirely inside or outside
    /// the bounds.
    pub(crate) fn keep_within(
        &self,
        column: &Column,
        range: Range<usize>,
        (least, most): (i128, i128),
        rows: &mut [u64],
    ) -> Result<bool, Changed> {
        let stream = &column.stream;
        if !self.is_narrow(column)? {
            return Ok(false);
        }
        self.keep_valid(column, range.clone(), rows)?;
        let (Ok(least), Ok(most)) =
            (i64::try_from(least.max(i64::MIN.into())), i64::try_from(most.min(i64::MAX.into())))
        else {
            rows.fill(0);
            return Ok(true);
        };
        if least > most {
            rows.fill(0);
            return Ok(true);
        }
        match stream.form {
            NUMBERS if most < stream.base => rows.fill(0),
            NUMBERS => {
                let from = least.max(stream.base).wrapping_sub(stream.base) as u64;
                let to = most.wrapping_sub(stream.base) as u64;
                debug_assert!(from <= to, "numbers from {from} to {to} are kept");
                let (place, bits) = (stream.place, stream.bits);
                bits::keep_within(self.0, place, bits, range, (from, to - from), rows)?;
            }
            VALUES => {
                let is_within: Vec<bool> = self
                    .values(stream)?
                    .iter()
                    .map(|value| (least..=most).contains(&i64::from_le_bytes(*value)))
                    .collect();
                if is_within.iter().all(|is_within| *is_within) {
                    return Ok(true);
                }
                self.keep_numbered(stream, range, &is_within, rows)?;
            }
            _ => return Err(Changed),
        }
        Ok(true)
    }

    /// Deselects records whose bytes in a column are NULL or fail `holds`. Returns false, and
    /// changes nothing, unless the column has a dictionary. Cost: one call per dictionary value,
    /// and one look at each record's number.
    pub(crate) fn keep_texts(
        &self,
        column: &Column,
        range: Range<usize>,
        mut holds: impl FnMut(&[u8]) -> bool,
        rows: &mut [u64],
    ) -> Result<bool, Changed> {
        let stream = &column.stream;
        if stream.form != TEXTS || stream.nulls == ALL_NULL {
            return Ok(false);
        }
        let heap = self.0.get(stream.heap.into()..).ok_or(Changed)?;
        let (table, len) = (usize::from(stream.table), 2 * usize::from(stream.len));
        let ends = self.0.get(table..table + len).ok_or(Changed)?.as_chunks::<2>().0;
        let mut start = 0;
        let mut are_kept = Vec::with_capacity(ends.len());
        for end in ends {
            let end = usize::from(u16::from_le_bytes(*end));
            are_kept.push(holds(heap.get(start..end).ok_or(Changed)?));
            start = end;
        }
        self.keep_valid(column, range.clone(), rows)?;
        if are_kept.iter().all(|is_kept| *is_kept) {
            return Ok(true);
        }
        if are_kept.iter().any(|is_kept| *is_kept) {
            self.keep_numbered(stream, range, &are_kept, rows)?;
        } else {
            rows.fill(0);
        }
        Ok(true)
    }

    /// Deselects records with a NULL.
    fn keep_valid(&self, column: &Column, range: Range<usize>, rows: &mut [u64]) -> Result<(), Changed> {
        if !self.has_nulls(column) {
            return Ok(());
        }
        let (count, mut at) = (range.len(), 0);
        self.nulls(column, range, |is_null| {
            if let Some(word) = rows.get_mut(at / 64).filter(|_| is_null) {
                *word &= !(1 << (at % 64));
            }
            at += 1;
        })?;
        debug_assert!(at == count, "{at} of {count} records were tested for NULL");
        Ok(())
    }

    /// Deselects records whose dictionary value is not kept.
    fn keep_numbered(
        &self,
        stream: &Stream,
        range: Range<usize>,
        are_kept: &[bool],
        rows: &mut [u64],
    ) -> Result<(), Changed> {
        let (count, mut at) = (range.len(), 0);
        bits::each(self.0, stream.place, stream.bits, range, |nth| {
            let is_kept = are_kept.get(nth as usize) == Some(&true);
            if let Some(word) = rows.get_mut(at / 64) {
                *word &= !(u64::from(!is_kept) << (at % 64));
            }
            at += 1;
        })?;
        debug_assert!(at == count, "{at} of {count} records were tested");
        Ok(())
    }

    /// Passes the numbers of selected records in a column of up to 16 bytes to `each`. Returns
    /// false, and does nothing, if both halves of the numbers vary.
    pub(crate) fn numbers_of_chosen(
        &self,
        column: &Column,
        range: Range<usize>,
        rows: &[u64],
        mut each: impl FnMut(i64),
    ) -> Result<bool, Changed> {
        if !self.is_narrow(column)? {
            return Ok(false);
        }
        let stream = &column.stream;
        let values = if stream.form == VALUES { self.values(stream)? } else { &[] };
        for (word, start) in rows.iter().zip(range.step_by(64)) {
            let mut left = *word;
            while left != 0 {
                let at = start + left.trailing_zeros() as usize;
                left &= left - 1;
                let number = bits::get(self.0, stream.place, stream.bits, at)?;
                each(match stream.form {
                    NUMBERS => stream.base.wrapping_add_unsigned(number),
                    _ => i64::from_le_bytes(*values.get(number as usize).ok_or(Changed)?),
                });
            }
        }
        Ok(true)
    }

    /// Returns whether all possible values of the column on this page fit in a signed 64-bit
    /// number.
    pub(super) fn is_narrow(&self, column: &Column) -> Result<bool, Changed> {
        let stream = &column.stream;
        let Some(high) = &column.high else { return Ok(matches!(stream.form, NUMBERS | VALUES)) };
        if stream.form != NUMBERS || high.form != NUMBERS || high.bits != 0 || stream.bits > 56 {
            return Ok(false);
        }
        // The high half is constant, and only the sign extension of the low half.
        let most = stream.base.checked_add_unsigned((1 << stream.bits) - 1);
        Ok(match high.base {
            0 => stream.base >= 0 && most.is_some(),
            -1 => most.is_some_and(|most| most < 0),
            _ => false,
        })
    }

    /// Returns the dictionary values that the packed numbers index.
    fn values(&self, stream: &Stream) -> Result<&[[u8; 8]], Changed> {
        let (start, len) = (usize::from(stream.heap), 8 * usize::from(stream.len));
        Ok(self.0.get(start..start + len).ok_or(Changed)?.as_chunks::<8>().0)
    }
}
