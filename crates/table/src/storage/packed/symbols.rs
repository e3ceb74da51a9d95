//! Symbol tables: texts as one-byte codes, each of which stands for up to eight bytes.

use cairn_pool::Changed;

use super::ESCAPE;
use crate::storage::source::Source;

/// The longest symbol in bytes.
const LONGEST: usize = 8;
/// A symbol is read and written as a word.
const _: () = assert!(LONGEST == size_of::<u64>());

/// A symbol table in a page, read symbol by symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// The first code of each length from 1 to 8, that of length 1 in the lowest byte. They never
    /// decrease.
    first: u64,
    /// Offset of the symbols of each length.
    places: [u16; LONGEST],
    count: u16,
}

impl Table {
    /// Reads the header of the table at an offset.
    #[inline]
    pub(super) fn read<S: Source + ?Sized>(from: &S, place: u16) -> Result<Table, Changed> {
        let counts = from.u64(place.into())?.to_le_bytes();
        let (mut first, mut places, mut count) = ([0; LONGEST], [0; LONGEST], 0u16);
        let mut at = place.checked_add(LONGEST as u16).ok_or(Changed)?;
        for ((first, symbols), (own, len)) in
            first.iter_mut().zip(&mut places).zip(counts.into_iter().map(u16::from).zip(1..))
        {
            (*first, *symbols) = (count as u8, at);
            count += own;
            at = at.checked_add(own * len).ok_or(Changed)?;
        }
        // This also means that each first code fits in a byte.
        if count > u16::from(ESCAPE) {
            return Err(Changed);
        }
        debug_assert!(
            first.is_sorted() && places.is_sorted(),
            "the first codes are {first:?}, at {places:?}"
        );
        Ok(Table { first: u64::from_le_bytes(first), places, count })
    }

    /// Returns the number of symbols.
    pub(super) fn count(&self) -> u8 {
        debug_assert!(self.count <= u16::from(ESCAPE), "a table has {} symbols", self.count);
        self.count as u8
    }

    /// Returns the bytes that a code stands for, the first one lowest, and their number. Bytes
    /// above those are arbitrary.
    #[inline]
    pub(super) fn symbol<S: Source + ?Sized>(&self, from: &S, code: u8) -> Result<(u64, usize), Changed> {
        if u16::from(code) >= self.count {
            return Err(Changed);
        }
        // Symbols are sorted by length, so the length is the number of first codes up to this code.
        let len = bytes_up_to(self.first, code);
        let nth = len.checked_sub(1).ok_or(Changed)?;
        let (first, place) = ((self.first >> (8 * nth)) as u8, *self.places.get(nth).ok_or(Changed)?);
        debug_assert!(first <= code, "code {code} is before the first one of its length, {first}");
        let at = usize::from(place) + usize::from(code - first) * len;
        Ok((from.u64(at)?, len))
    }

    /// Appends the decoded text of the codes in a range of offsets.
    #[inline]
    pub(super) fn append<S: Source + ?Sized>(
        &self,
        from: &S,
        (mut place, last): (usize, usize),
        to: &mut Vec<u8>,
    ) -> Result<(), Changed> {
        if last > from.len() {
            return Err(Changed);
        }
        let mut end = to.len();
        // Reserves room for the longest possible text. Each symbol is written as a whole word, and
        // the next one overwrites the excess.
        to.resize(end + LONGEST * last.saturating_sub(place), 0);
        while place < last {
            let word = to.get_mut(end..).and_then(<[u8]>::first_chunk_mut::<LONGEST>).ok_or(Changed)?;
            let code = from.u8(place)?;
            place += 1;
            if code == ESCAPE {
                word[0] = from.u8(place)?;
                (place, end) = (place + 1, end + 1);
                continue;
            }
            let (symbol, len) = self.symbol(from, code)?;
            *word = symbol.to_le_bytes();
            end += len;
        }
        debug_assert!(end <= to.len(), "a text ends at {end}, behind the room of {}", to.len());
        to.truncate(end);
        Ok(())
    }
}

/// Returns how many of eight bytes are at most `most`.
#[inline]
fn bytes_up_to(bytes: u64, most: u8) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let most = u64::from(most) * ONES;
    // With the highest bits handled separately, no difference borrows from the next byte.
    let low = (most | HIGH) - (bytes & !HIGH);
    let is_up_to = (most & !bytes | !(most ^ bytes) & low) & HIGH;
    let count = ((is_up_to >> 7).wrapping_mul(ONES) >> 56) as usize;
    debug_assert!(count <= LONGEST, "{count} of eight bytes are at most {most}");
    count
}

/// A symbol table expanded to one entry per symbol, for decoding many texts.
#[derive(Debug, Clone)]
pub(super) struct Symbols {
    words: [u64; 256],
    lens: [u8; 256],
}

impl Symbols {
    pub(super) fn read(from: &[u8], place: u16) -> Result<Symbols, Changed> {
        let table = Table::read(from, place)?;
        let mut symbols = Symbols { words: [0; 256], lens: [0; 256] };
        let mut own = symbols.words.iter_mut().zip(&mut symbols.lens).take(table.count().into());
        let first = table.first.to_le_bytes();
        let lasts = first.into_iter().skip(1).chain([table.count()]);
        for ((len, place), (first, last)) in (1..).zip(table.places).zip(first.into_iter().zip(lasts)) {
            let start = usize::from(place);
            let bytes = from.get(start..start + len * usize::from(last - first) + LONGEST).ok_or(Changed)?;
            for ((word, own_len), nth) in own.by_ref().take((last - first).into()).zip(0..) {
                let bytes = bytes.get(nth * len..).and_then(<[u8]>::first_chunk).ok_or(Changed)?;
                (*word, *own_len) = (u64::from_le_bytes(*bytes), len as u8);
            }
        }
        debug_assert!(own.next().is_none(), "a symbol of a table has no length");
        Ok(symbols)
    }

    /// Writes the decoded text of some codes at an offset with room for eight bytes per code.
    /// Returns the end.
    #[inline]
    pub(super) fn write(&self, codes: &[u8], to: &mut [u8], start: usize) -> Result<usize, Changed> {
        let mut end = start;
        let mut codes = codes.iter();
        while let Some(&code) = codes.next() {
            let place = to.get_mut(end..).and_then(<[u8]>::first_chunk_mut::<LONGEST>).ok_or(Changed)?;
            let len = usize::from(self.lens[usize::from(code)]);
            if len > 0 {
                *place = self.words[usize::from(code)].to_le_bytes();
                end += len;
            } else {
                // Codes without a symbol, including the escape code, have length 0.
                place[0] = *codes.next().filter(|_| code == ESCAPE).ok_or(Changed)?;
                end += 1;
            }
        }
        debug_assert!(end <= to.len(), "a text ends at {end}, behind the room of {}", to.len());
        Ok(end)
    }
}

/// Symbols that suit some texts: each with its first byte lowest, and its length.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) symbols: Vec<(u64, u8)>,
}

impl Found {
    /// Returns the size of a table of the symbols of these codes.
    pub(super) fn len(&self, used: &[bool; 256]) -> usize {
        let lens = self.symbols.iter().zip(used).filter(|(_, used)| **used);
        LONGEST + lens.map(|((_, len), _)| usize::from(*len)).sum::<usize>()
    }

    /// Appends a table of the symbols of these codes. Returns the new code of each.
    pub(super) fn write(&self, used: &[bool; 256], to: &mut Vec<u8>) -> [u8; 256] {
        debug_assert!(
            self.symbols.len() <= usize::from(ESCAPE),
            "{} symbols leave no code for other bytes",
            self.symbols.len()
        );
        let mut codes = [ESCAPE; 256];
        let mut counts = [0u8; LONGEST];
        let head = to.len();
        to.extend_from_slice(&counts);
        let mut next = 0;
        for (len, count) in (1u8..).zip(&mut counts) {
            let symbols = self.symbols.iter().zip(used).zip(&mut codes);
            for (((word, own), _), code) in symbols.filter(|(((_, own), used), _)| *own == len && **used) {
                to.extend_from_slice(word.to_le_bytes().get(..usize::from(*own)).unwrap_or_default());
                (*code, *count) = (next, *count + 1);
                next += 1;
            }
        }
        if let Some(place) = to.get_mut(head..head + LONGEST) {
            place.copy_from_slice(&counts);
        }
        debug_assert!(
            to.len() - head == self.len(used),
            "a table of {} bytes was planned with {}",
            to.len() - head,
            self.len(used)
        );
        codes
    }
}

/// Marks the codes that occur.
pub(super) fn mark(codes: &[u8], used: &mut [bool; 256]) {
    let mut codes = codes.iter();
    while let Some(&code) = codes.next() {
        if code == ESCAPE {
            let _ = codes.next();
        } else {
            used[usize::from(code)] = true;
        }
    }
}

/// Appends the codes with their new numbers.
pub(super) fn renumber(codes: &[u8], new: &[u8; 256], to: &mut Vec<u8>) {
    let end = to.len() + codes.len();
    let mut codes = codes.iter();
    while let Some(&code) = codes.next() {
        if code == ESCAPE {
            to.push(ESCAPE);
            to.extend(codes.next());
        } else {
            debug_assert!(new[usize::from(code)] != ESCAPE, "code {code} has no new number");
            to.push(new[usize::from(code)]);
        }
    }
    debug_assert!(to.len() == end, "codes with new numbers end at {}, expected {end}", to.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the computed length of a code is the number of first codes up to it. Method: every
    /// byte against many groups of eight bytes, compared with a one-by-one count.
    #[test]
    fn bytes_are_compared_without_sign() {
        let rows = [
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0, 1, 2, 3, 5, 8, 13, 21],
            [0, 0, 126, 127, 128, 129, 254, 255],
            [0, 255, 255, 255, 255, 255, 255, 255],
            [255, 128, 127, 0, 1, 129, 64, 200],
        ];
        for row in rows {
            for most in 0..=u8::MAX {
                let expected = row.iter().filter(|byte| **byte <= most).count();
                assert_eq!(bytes_up_to(u64::from_le_bytes(row), most), expected, "{row:?}, {most}");
            }
        }
    }
}
