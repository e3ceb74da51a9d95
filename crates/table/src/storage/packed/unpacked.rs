//! Unpacking many records of a packed leaf at once, column by column.

use std::ops::Range;

use cairn_pool::Changed;

use super::columns::Column;
use super::read::{LENGTH, Packed, Stream};
use super::{ALL_NULL, BYTES, HIGH, NO_NULLS};
use crate::storage::node::max_record;

/// Unpacked records of a packed leaf.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// Keys and values, back to back, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
    range: Range<usize>,
}

impl Unpacked {
    /// Returns the positions of the records on the page.
    pub(crate) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Forgets the records.
    pub(crate) fn clear(&mut self) {
        self.range = 0..0;
    }

    /// Returns the key and the value of a record by its position on the page.
    #[inline]
    pub(crate) fn record(&self, at: usize) -> Option<(&[u8], &[u8])> {
        debug_assert!(
            self.range.is_empty() || self.ends.len() == self.range.len(),
            "{} of {:?} records are unpacked",
            self.ends.len(),
            self.range
        );
        let nth = at.checked_sub(self.range.start)?;
        let start = nth.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|ends| ends.1))?;
        let &(key, value) = self.ends.get(nth)?;
        Some((self.bytes.get(start..key)?, self.bytes.get(key..value)?))
    }

    /// Unpacks a range of records: first lays out their positions, then fills in column by column.
    /// With `wanted`, only these row columns are filled in; the others become NULL.
    pub(crate) fn fill(
        &mut self,
        page: Packed<'_, [u8]>,
        range: Range<usize>,
        wanted: Option<&[usize]>,
    ) -> Result<(), Changed> {
        self.range = 0..0;
        self.bytes.clear();
        self.ends.clear();
        if range.end > page.count()? || range.is_empty() {
            return Err(Changed);
        }
        let (streams, lead) = page.shape()?;
        let mut streams: Vec<Stream> = (0..streams).map(|nth| page.stream(nth)).collect::<Result<_, _>>()?;
        if let Some(wanted) = wanted {
            exclude_unwanted(streams.get_mut(usize::from(lead > 0)..).ok_or(Changed)?, wanted);
        }
        let texts = streams.iter().filter(|stream| stream.width == BYTES);
        let texts = texts.map(|stream| Texts::of(page, stream, range.clone()));
        let mut texts: Vec<Texts> = texts.collect::<Result<_, _>>()?;
        let (first, own) = streams.split_at_checked(usize::from(lead > 0)).ok_or(Changed)?;
        let columns = own.iter().filter(|stream| stream.width != HIGH).count();
        let fixed: usize = own.iter().map(|stream| usize::from(stream.width).min(8)).sum();
        let variable = own.iter().filter(|stream| stream.width == BYTES).count();
        let body = columns.div_ceil(8) + fixed + 2 * variable;
        self.place(page, range.clone(), 1 + 2 * first.len() + body, &texts)?;
        let mut starts: Vec<usize> = self.ends.iter().map(|ends| ends.0 + 1).collect();
        if let Some(stream) = first.first() {
            self.put_lead(page, stream, lead, range.clone(), &mut texts, &mut starts)?;
        }
        let (mut column, mut offset, mut end) = (0, columns.div_ceil(8), columns.div_ceil(8) + fixed);
        let (mut nulls, mut is_absent) = (Vec::new(), false);
        let mut absent = vec![0; columns.div_ceil(8)];
        let mut texts = texts.into_iter();
        let mut bodies: Vec<usize> = starts.iter().map(|start| start + body).collect();
        for stream in own {
            if stream.width != HIGH {
                nulls.clear();
                is_absent = stream.nulls == ALL_NULL;
                if is_absent {
                    *absent.get_mut(column / 8).ok_or(Changed)? |= 1 << (column % 8);
                } else if stream.nulls != NO_NULLS {
                    let column = Column { stream: *stream, high: None };
                    page.nulls(&column, range.clone(), |is_null| nulls.push(is_null))?;
                }
                self.put_nulls(column, &nulls, &starts)?;
                column += 1;
            }
            if stream.width == BYTES {
                let text = texts.next().ok_or(Changed)?;
                self.put_texts(&text, end, body, &starts, &mut bodies)?;
                end += 2;
                continue;
            }
            let width = usize::from(stream.width).min(8);
            if !is_absent {
                self.put_numbers(page, stream, range.clone(), offset, width, &nulls, &starts)?;
            }
            offset += width;
        }
        debug_assert!(texts.next().is_none(), "a column of texts was not unpacked");
        debug_assert!(offset <= body && end <= body, "columns are unpacked to {offset} and {end} of {body}");
        self.put_absent(&absent, &starts)?;
        self.range = range;
        Ok(())
    }

    /// Allocates the values, whose size besides texts is `fixed`, and writes the keys.
    fn place(
        &mut self,
        page: Packed<'_, [u8]>,
        range: Range<usize>,
        fixed: usize,
        texts: &[Texts],
    ) -> Result<(), Changed> {
        let (mut keys, mut key_ends) = (Vec::new(), Vec::with_capacity(range.len()));
        page.keys_of(range.clone(), (&mut keys, &mut key_ends))?;
        let most = max_record(page.0.len());
        let mut lens = vec![fixed; range.len()];
        for text in texts {
            let starts = std::iter::once(&0).chain(&text.ends);
            let own = text.ends.iter().zip(starts).map(|(end, start)| end - start);
            lens.iter_mut().zip(own).for_each(|(len, own)| *len += own);
        }
        if lens.iter().any(|len| *len > most) {
            return Err(Changed);
        }
        self.bytes.resize(keys.len() + lens.iter().sum::<usize>(), 0);
        let (mut key, mut at) = (0, 0);
        for (&key_end, len) in key_ends.iter().zip(lens) {
            let own = keys.get(key..key_end).ok_or(Changed)?;
            self.bytes.get_mut(at..at + own.len()).ok_or(Changed)?.copy_from_slice(own);
            self.ends.push((at + own.len(), at + own.len() + len));
            at += own.len() + len;
            key = key_end;
        }
        debug_assert!(at == self.bytes.len(), "{at} of {} bytes are laid out", self.bytes.len());
        debug_assert!(self.ends.len() == range.len(), "{} of {range:?} are laid out", self.ends.len());
        Ok(())
    }

    /// Writes the lead, and advances the starts of the columns past it.
    fn put_lead(
        &mut self,
        page: Packed<'_, [u8]>,
        stream: &Stream,
        lead: u8,
        range: Range<usize>,
        texts: &mut Vec<Texts>,
        starts: &mut [usize],
    ) -> Result<(), Changed> {
        if lead == LENGTH && stream.width != BYTES {
            self.put_numbers(page, stream, range, 0, 2, &[], starts)?;
            starts.iter_mut().for_each(|start| *start += 2);
            return Ok(());
        }
        if lead == LENGTH || stream.width != BYTES || texts.is_empty() {
            return Err(Changed);
        }
        let text = texts.remove(0);
        for (nth, start) in starts.iter_mut().enumerate() {
            let own = text.get(nth)?;
            let place = self.bytes.get_mut(*start..*start + 2 + own.len()).ok_or(Changed)?;
            let (len, place) = place.split_at_mut(2);
            len.copy_from_slice(&u16::try_from(own.len()).map_err(|_| Changed)?.to_le_bytes());
            place.copy_from_slice(own);
            *start += 2 + own.len();
        }
        Ok(())
    }

    fn put_nulls(&mut self, column: usize, nulls: &[bool], starts: &[usize]) -> Result<(), Changed> {
        debug_assert!(
            nulls.is_empty() || nulls.len() == starts.len(),
            "{} of {} records may be NULL",
            nulls.len(),
            starts.len()
        );
        for (start, _) in starts.iter().zip(nulls).filter(|(_, is_null)| **is_null) {
            *self.bytes.get_mut(start + column / 8).ok_or(Changed)? |= 1 << (column % 8);
        }
        Ok(())
    }

    /// Sets the NULL bits of columns that are NULL in all records.
    fn put_absent(&mut self, absent: &[u8], starts: &[usize]) -> Result<(), Changed> {
        for (at, mask) in absent.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            for start in starts {
                *self.bytes.get_mut(start + at).ok_or(Changed)? |= mask;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "values to put, and their place")]
    fn put_numbers(
        &mut self,
        page: Packed<'_, [u8]>,
        stream: &Stream,
        range: Range<usize>,
        offset: usize,
        width: usize,
        nulls: &[bool],
        starts: &[usize],
    ) -> Result<(), Changed> {
        let (bytes, mut is_sound, count) = (&mut self.bytes, true, range.len());
        let (mut starts, mut nth) = (starts.iter(), 0);
        let mut put = |number: i64, width: usize| {
            let number = if nulls.get(nth) == Some(&true) { 0 } else { number }.to_le_bytes();
            nth += 1;
            let start = starts.next().map_or(usize::MAX / 2, |start| start + offset);
            match (bytes.get_mut(start..start + width), number.get(..width)) {
                (Some(place), Some(number)) => place.copy_from_slice(number),
                _ => is_sound = false,
            }
        };
        // A constant width is copied with one instruction.
        match width {
            8 => page.numbers_of(stream, range, |number| put(number, 8))?,
            4 => page.numbers_of(stream, range, |number| put(number, 4))?,
            width => page.numbers_of(stream, range, |number| put(number, width))?,
        }
        debug_assert!(nth == count, "{nth} of {count} numbers were put");
        if is_sound { Ok(()) } else { Err(Changed) }
    }

    fn put_texts(
        &mut self,
        text: &Texts,
        end: usize,
        body: usize,
        starts: &[usize],
        bodies: &mut [usize],
    ) -> Result<(), Changed> {
        debug_assert!(
            text.ends.len() == starts.len() && starts.len() == bodies.len(),
            "{} texts are put into {} records",
            text.ends.len(),
            starts.len()
        );
        for (nth, (start, place)) in starts.iter().zip(bodies).enumerate() {
            let own = text.get(nth)?;
            self.bytes.get_mut(*place..*place + own.len()).ok_or(Changed)?.copy_from_slice(own);
            *place += own.len();
            let len = u16::try_from(*place - start - body).map_err(|_| Changed)?;
            let field = self.bytes.get_mut(start + end..start + end + 2).ok_or(Changed)?;
            field.copy_from_slice(&len.to_le_bytes());
        }
        Ok(())
    }
}

/// Marks all columns that are not wanted as NULL, so that they are not read.
fn exclude_unwanted(streams: &mut [Stream], wanted: &[usize]) {
    let (mut column, mut is_wanted) = (0, false);
    for stream in streams {
        if stream.width != HIGH {
            is_wanted = wanted.contains(&column);
            column += 1;
        }
        if !is_wanted {
            stream.nulls = ALL_NULL;
        }
    }
}

/// The texts of a stream, back to back, and the end of each.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn of(page: Packed<'_, [u8]>, stream: &Stream, range: Range<usize>) -> Result<Texts, Changed> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(range.len()));
        page.texts_of(stream, range, (&mut bytes, &mut ends))?;
        debug_assert!(
            ends.last().is_none_or(|last| *last == bytes.len()),
            "{} bytes of texts end at {:?}",
            bytes.len(),
            ends.last()
        );
        Ok(Texts { bytes, ends })
    }

    fn get(&self, nth: usize) -> Result<&[u8], Changed> {
        let start = nth.checked_sub(1).map_or(Some(&0), |before| self.ends.get(before)).ok_or(Changed)?;
        self.bytes.get(*start..*self.ends.get(nth).ok_or(Changed)?).ok_or(Changed)
    }
}
