//! Reading many records of a packed leaf at once.

use std::ops::Range;

use cairn_pool::Changed;

use super::keys::{Keys, Words};
use super::read::{Packed, Stream};
use super::symbols::Symbols;
use super::{ALL_NULL, CODES, HIGH, LOW, NO_NULLS, NUMBERS, PLAIN, TEXTS, VALUES, bits};
use crate::storage::node::max_record;

/// Maximum size of a short text, which is copied as one fixed-size block.
const WIDE: usize = 16;

/// A text padded with zeros, and its length.
type Short = ([u8; WIDE], usize);

/// Returns the texts of a dictionary, if all of them are short and there are at most `wanted`.
fn short_texts(heap: &[u8], table: &[[u8; 2]], wanted: usize) -> Result<Option<Vec<Short>>, Changed> {
    if table.len() > wanted {
        return Ok(None);
    }
    let (mut known, mut start) = (Vec::with_capacity(table.len()), 0);
    for end in table {
        let end = usize::from(u16::from_le_bytes(*end));
        let text = heap.get(start..end).ok_or(Changed)?;
        let mut wide = [0; WIDE];
        match wide.get_mut(..text.len()) {
            Some(place) => place.copy_from_slice(text),
            None => return Ok(None),
        }
        known.push((wide, text.len()));
        start = end;
    }
    Ok(Some(known))
}

/// Bytes, and the end of each value in them.
type Bytes<'t> = (&'t mut Vec<u8>, &'t mut Vec<usize>);

impl Packed<'_, [u8]> {
    /// Returns the stream of a row column if its width matches the width of the column's type,
    /// which is 0 for bytes. A column of 16 bytes has two streams, the low and the high half.
    pub(crate) fn column(&self, column: usize, width: u8) -> Result<Column, Changed> {
        let (streams, lead) = self.shape()?;
        let mut left = column;
        let mut nth = usize::from(lead > 0);
        while nth < streams {
            let stream = self.stream(nth)?;
            if left == 0 {
                let high = match stream.width {
                    LOW => Some(self.stream(nth + 1)?).filter(|high| high.width == HIGH),
                    _ => None,
                };
                let is_it = stream.width == width && (width == LOW) == high.is_some();
                return if is_it { Ok(Column { stream, high }) } else { Err(Changed) };
            }
            left -= 1;
            nth += if stream.width == LOW { 2 } else { 1 };
        }
        Err(Changed)
    }

    /// Passes the numbers of a column of up to 8 bytes to `each`. The number for a NULL is
    /// arbitrary.
    #[inline]
    pub(crate) fn numbers(
        &self,
        column: &Column,
        range: Range<usize>,
        each: impl FnMut(i64),
    ) -> Result<(), Changed> {
        self.numbers_of(&column.stream, range, each)
    }

    /// Passes the numbers of a column of 16 bytes to `each`.
    pub(crate) fn long_numbers(
        &self,
        column: &Column,
        range: Range<usize>,
        mut each: impl FnMut(i128),
    ) -> Result<(), Changed> {
        let high = column.high.as_ref().ok_or(Changed)?;
        if self.is_narrow(column)? {
            return self.numbers_of(&column.stream, range, |number| each(number.into()));
        }
        let mut highs = Vec::with_capacity(range.len());
        self.numbers_of(high, range.clone(), |number| highs.push(number))?;
        debug_assert!(highs.len() == range.len(), "{} of {range:?} high halves were read", highs.len());
        let mut highs = highs.into_iter();
        self.numbers_of(&column.stream, range, |low| {
            let high = highs.next().unwrap_or_default();
            each(i128::from(high) << 64 | i128::from(low as u64));
        })
    }

    #[inline]
    pub(super) fn numbers_of(
        &self,
        stream: &Stream,
        range: Range<usize>,
        mut each: impl FnMut(i64),
    ) -> Result<(), Changed> {
        match stream.form {
            NUMBERS => bits::each(self.0, stream.place, stream.bits, range, |number| {
                each(stream.base.wrapping_add_unsigned(number));
            }),
            VALUES => {
                let (start, len) = (usize::from(stream.heap), 8 * usize::from(stream.len));
                let values = self.0.get(start..start + len).ok_or(Changed)?.as_chunks::<8>().0;
                let mut is_sound = true;
                bits::each(self.0, stream.place, stream.bits, range, |number| {
                    let value = values.get(number as usize);
                    is_sound &= value.is_some();
                    each(i64::from_le_bytes(value.copied().unwrap_or_default()));
                })?;
                if is_sound { Ok(()) } else { Err(Changed) }
            }
            _ => Err(Changed),
        }
    }

    /// Returns whether a column has NULLs.
    pub(crate) fn has_nulls(&self, column: &Column) -> bool {
        column.stream.nulls != NO_NULLS
    }

    /// Passes to `each` whether each value is NULL.
    pub(crate) fn nulls(
        &self,
        column: &Column,
        range: Range<usize>,
        mut each: impl FnMut(bool),
    ) -> Result<(), Changed> {
        match column.stream.nulls {
            NO_NULLS => range.for_each(|_| each(false)),
            ALL_NULL => range.for_each(|_| each(true)),
            place => {
                for at in range {
                    let bits = self.0.get(usize::from(place) + at / 8).ok_or(Changed)?;
                    each(bits >> (at % 8) & 1 == 1);
                }
            }
        }
        Ok(())
    }

    /// Appends the values of a column of bytes. A NULL is empty.
    pub(crate) fn texts(&self, column: &Column, range: Range<usize>, to: Bytes<'_>) -> Result<(), Changed> {
        self.texts_of(&column.stream, range, to)
    }

    pub(super) fn texts_of(
        &self,
        stream: &Stream,
        range: Range<usize>,
        to: Bytes<'_>,
    ) -> Result<(), Changed> {
        let (bytes, ends) = to;
        let (before, count) = (ends.len(), range.len());
        if stream.nulls == ALL_NULL {
            ends.extend(range.map(|_| bytes.len()));
            return Ok(());
        }
        // Corrupt bytes must not expand to more than a valid page could have held.
        let most = bytes.len() + range.len() * max_record(self.0.len());
        if stream.form == TEXTS {
            return self.texts_of_dictionary(stream, range, most, (bytes, ends));
        }
        let places = self.ends(stream, range)?;
        let heap = self.0.get(stream.heap.into()..).ok_or(Changed)?;
        let mut start = places.first().copied().ok_or(Changed)?;
        let last = places.last().copied().ok_or(Changed)?;
        if last < start {
            return Err(Changed);
        }
        let symbols = match stream.form {
            PLAIN => None,
            CODES => Some(Symbols::read(self.0, stream.table)?),
            _ => return Err(Changed),
        };
        let mut written = bytes.len();
        if symbols.is_some() {
            // Each code stands for at most eight bytes; the surplus is removed again.
            bytes.resize(written + 8 * (last - start), 0);
        }
        for &end in places.get(1..).unwrap_or_default() {
            let own = heap.get(start..end).ok_or(Changed)?;
            written = match &symbols {
                None => {
                    bytes.extend_from_slice(own);
                    bytes.len()
                }
                Some(symbols) => symbols.write(own, bytes, written)?,
            };
            if written > most {
                return Err(Changed);
            }
            ends.push(written);
            start = end;
        }
        debug_assert!(ends.len() == before + count, "{} of {count} texts were read", ends.len() - before);
        debug_assert!(written <= bytes.len(), "{written} bytes of {} were decoded", bytes.len());
        bytes.truncate(written);
        Ok(())
    }

    /// Appends texts by their dictionary numbers, to a buffer that may take `most` bytes.
    fn texts_of_dictionary(
        &self,
        stream: &Stream,
        range: Range<usize>,
        most: usize,
        (bytes, ends): Bytes<'_>,
    ) -> Result<(), Changed> {
        let (before, count) = (ends.len(), range.len());
        let heap = self.0.get(stream.heap.into()..).ok_or(Changed)?;
        let (table, len) = (usize::from(stream.table), 2 * usize::from(stream.len));
        let table = self.0.get(table..table + len).ok_or(Changed)?.as_chunks::<2>().0;
        if let Some(known) = short_texts(heap, table, count)? {
            return self.copies_of(&known, stream, range, (bytes, ends));
        }
        let end = |nth: usize| table.get(nth).map(|end| usize::from(u16::from_le_bytes(*end)));
        let mut is_sound = true;
        bits::each(self.0, stream.place, stream.bits, range, |nth| {
            let nth = nth as usize;
            let start = if nth == 0 { Some(0) } else { end(nth - 1) };
            let text = start.zip(end(nth)).and_then(|(start, end)| heap.get(start..end));
            is_sound &= text.is_some() && bytes.len() <= most;
            if let Some(text) = text.filter(|_| is_sound) {
                bytes.extend_from_slice(text);
            }
            ends.push(bytes.len());
        })?;
        debug_assert!(ends.len() == before + count, "{} of {count} texts were read", ends.len() - before);
        if is_sound { Ok(()) } else { Err(Changed) }
    }

    /// Appends short texts by their dictionary numbers. Each is copied as one zero-padded block;
    /// the next one overwrites the padding.
    fn copies_of(
        &self,
        known: &[Short],
        stream: &Stream,
        range: Range<usize>,
        (bytes, ends): Bytes<'_>,
    ) -> Result<(), Changed> {
        let longest = known.iter().map(|(_, len)| *len).max().unwrap_or_default();
        let (before, count) = (ends.len(), range.len());
        let mut at = bytes.len();
        bytes.resize(at + range.len() * longest + WIDE, 0);
        ends.reserve(range.len());
        let mut is_sound = true;
        bits::each(self.0, stream.place, stream.bits, range, |nth| {
            let place = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut);
            match (known.get(nth as usize), place) {
                (Some((text, len)), Some(place)) => {
                    *place = *text;
                    at += len;
                }
                _ => is_sound = false,
            }
            ends.push(at);
        })?;
        debug_assert!(at <= bytes.len(), "{at} bytes of {} were copied", bytes.len());
        debug_assert!(ends.len() == before + count, "{} of {count} texts were copied", ends.len() - before);
        bytes.truncate(at);
        if is_sound { Ok(()) } else { Err(Changed) }
    }

    /// Returns the start of the first value and the end of each.
    fn ends(&self, stream: &Stream, range: Range<usize>) -> Result<Vec<usize>, Changed> {
        let ends = stream.ends();
        let mut places = Vec::with_capacity(range.len() + 1);
        let mut at = match range.start.checked_sub(1) {
            Some(before) => before,
            None => {
                places.push(0);
                0
            }
        };
        let mut is_sound = true;
        bits::each(self.0, ends.place, ends.bits, at..range.end, |number| {
            let end = ends.end(at, number);
            is_sound &= end.is_ok();
            places.push(end.unwrap_or_default());
            at += 1;
        })?;
        debug_assert!(at == range.end, "ends up to {at} of {range:?} were read");
        if is_sound { Ok(places) } else { Err(Changed) }
    }

    /// Appends whole keys.
    pub(crate) fn keys_of(&self, range: Range<usize>, to: Bytes<'_>) -> Result<(), Changed> {
        let (bytes, ends) = to;
        let (before, count) = (ends.len(), range.len());
        match self.keys()? {
            Keys::Words(words) => {
                let template = usize::from(words.template);
                let template = self.0.get(template..template + usize::from(words.len)).ok_or(Changed)?;
                let mut highs = self.word(&words, true, range.clone())?.into_iter();
                for low in self.word(&words, false, range)? {
                    let start = bytes.len();
                    bytes.extend_from_slice(template);
                    let high = highs.next().unwrap_or(words.high.base);
                    words.put(high, low, bytes.get_mut(start..).ok_or(Changed)?)?;
                    ends.push(bytes.len());
                }
            }
            Keys::Texts(_) => {
                let mut key = Vec::new();
                for at in range {
                    self.key(at, &mut key)?;
                    bytes.extend_from_slice(&key);
                    ends.push(bytes.len());
                }
            }
        }
        debug_assert!(ends.len() == before + count, "{} of {count} keys were read", ends.len() - before);
        Ok(())
    }

    fn word(&self, words: &Words, is_high: bool, range: Range<usize>) -> Result<Vec<u64>, Changed> {
        let word = if is_high { words.high } else { words.low };
        let count = range.len();
        let mut numbers = Vec::with_capacity(count);
        if is_high && word.bits == 0 {
            return Ok(numbers);
        }
        bits::each(self.0, word.place, word.bits, range, |number| {
            numbers.push(word.base.wrapping_add(number));
        })?;
        debug_assert!(numbers.len() == count, "{} of {count} words were read", numbers.len());
        Ok(numbers)
    }

    /// Returns how to compute the big-endian number at some bytes of the keys from their words.
    /// `None` if the keys vary in length, or if the bytes that differ within the number are not
    /// adjacent.
    pub(crate) fn key_words(&self, start: usize, width: usize) -> Result<Option<KeyWords>, Changed> {
        let Keys::Words(words) = self.keys()? else { return Ok(None) };
        let end = start + width;
        if end > words.len.into() || width > 8 {
            return Ok(None);
        }
        let mut fixed = [0; 8];
        self.0
            .get(usize::from(words.template) + start..usize::from(words.template) + end)
            .ok_or(Changed)
            .map(|bytes| fixed.iter_mut().rev().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from))?;
        let positions = words.positions.get(..words.count).ok_or(Changed)?;
        let position = |position: &u8| usize::from(*position);
        let before = positions.iter().filter(|at| position(at) < start).count();
        let own = positions.iter().filter(|at| (start..end).contains(&position(at))).count();
        // The last positions are the lowest bytes of the combined words. All positions of the
        // number must be in the low word.
        let behind = words.count - before - own;
        let (first, last) = (positions.get(before), positions.get((before + own).saturating_sub(1)));
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(Some(KeyWords {
                words,
                fixed: u64::from_be_bytes(fixed),
                skip: 0,
                mask: 0,
                shift: 0,
            }));
        };
        if own == 0 {
            return Ok(Some(KeyWords {
                words,
                fixed: u64::from_be_bytes(fixed),
                skip: 0,
                mask: 0,
                shift: 0,
            }));
        }
        if position(last) + 1 - position(first) != own || behind + own > 8 {
            return Ok(None);
        }
        let shift = 8 * (end - 1 - position(last)) as u32;
        debug_assert!(
            own > 0 && behind < 8 && shift + 8 * own as u32 <= 64,
            "{own} bytes of a number of {width} are shifted by {shift}, with {behind} behind them"
        );
        let mask = u64::MAX >> (64 - 8 * own as u32);
        let fixed = u64::from_be_bytes(fixed) & !(mask << shift);
        Ok(Some(KeyWords { words, fixed, skip: 8 * behind as u32, mask, shift }))
    }

    /// Passes the numbers described by `key` to `each`.
    #[inline]
    pub(crate) fn key_numbers(
        &self,
        key: &KeyWords,
        range: Range<usize>,
        mut each: impl FnMut(u64),
    ) -> Result<(), Changed> {
        debug_assert!(key.skip < 64 && key.shift < 64, "{key:?} cannot be computed");
        debug_assert!(key.fixed & (key.mask << key.shift) == 0, "{key:?} has bytes that are also fixed");
        let low = key.words.low;
        bits::each(self.0, low.place, low.bits, range, |number| {
            let word = low.base.wrapping_add(number);
            // `skip` is below 64, because at least one of the eight bytes belongs to the number.
            each(key.fixed | (word >> key.skip & key.mask) << key.shift);
        })
    }

    /// Returns the byte at this offset if it is the same in all keys.
    pub(crate) fn key_byte(&self, at: usize) -> Result<Option<u8>, Changed> {
        let Keys::Words(words) = self.keys()? else { return Ok(None) };
        let varies = words.positions.iter().take(words.count).any(|position| usize::from(*position) == at);
        if varies || at >= words.len.into() {
            return Ok(None);
        }
        self.0.get(usize::from(words.template) + at).copied().map(Some).ok_or(Changed)
    }
}

/// A column of the rows, as opposed to the keys or the lead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(super) stream: Stream,
    pub(super) high: Option<Stream>,
}

/// A number within keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyWords {
    words: Words,
    /// The bits that are the same in all keys.
    fixed: u64,
    skip: u32,
    mask: u64,
    shift: u32,
}
