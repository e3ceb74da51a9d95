//! Tables of symbols: texts as codes of a byte, each of which stands for up to eight.

use cairn_pool::Changed;

use super::ESCAPE;
use crate::storage::source::Source;

/// The longest symbol.
const LONGEST: usize = 8;

/// A table as a page has it, to be read symbol by symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Of each length from 1 to 8: the first code, and where its symbol is.
    first: [u16; LONGEST],
    places: [u16; LONGEST],
    count: u16,
}

impl Table {
    /// Reads the head of the table at a place.
    #[inline]
    pub(super) fn read<S: Source + ?Sized>(from: &S, place: u16) -> Result<Table, Changed> {
        let counts = from.u64(place.into())?.to_le_bytes();
        let mut table = Table { first: [0; LONGEST], places: [0; LONGEST], count: 0 };
        let mut at = place.checked_add(LONGEST as u16).ok_or(Changed)?;
        let places = table.first.iter_mut().zip(&mut table.places);
        for ((first, symbols), (count, len)) in places.zip(counts.into_iter().map(u16::from).zip(1..)) {
            (*first, *symbols) = (table.count, at);
            table.count += count;
            at = at.checked_add(count * len).ok_or(Changed)?;
        }
        if table.count > u16::from(ESCAPE) { Err(Changed) } else { Ok(table) }
    }

    /// How many symbols there are.
    pub(super) fn count(&self) -> u8 {
        // Not above 255 by `read`.
        self.count as u8
    }

    /// The bytes that a code stands for, the first one lowest, and how many they are. Above those there may be others.
    #[inline]
    pub(super) fn symbol<S: Source + ?Sized>(&self, from: &S, code: u8) -> Result<(u64, usize), Changed> {
        let code = u16::from(code);
        if code >= self.count {
            return Err(Changed);
        }
        // Symbols are in the order of their lengths: as many lengths begin at or before the code.
        let len = self.first.iter().filter(|first| **first <= code).count();
        let nth = len.checked_sub(1).ok_or(Changed)?;
        let (Some(first), Some(place)) = (self.first.get(nth), self.places.get(nth)) else {
            return Err(Changed);
        };
        let at = usize::from(*place) + usize::from(code - first) * len;
        Ok((from.u64(at)?, len))
    }
}

/// A table whose symbols lie one by one: for many texts.
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
        let lasts = table.first.iter().skip(1).copied().chain([table.count]);
        for ((len, place), (first, last)) in (1..).zip(table.places).zip(table.first.into_iter().zip(lasts)) {
            let start = usize::from(place);
            let bytes = from.get(start..start + len * usize::from(last - first) + LONGEST).ok_or(Changed)?;
            for ((word, own_len), nth) in own.by_ref().take((last - first).into()).zip(0..) {
                let bytes = bytes.get(nth * len..).and_then(<[u8]>::first_chunk).ok_or(Changed)?;
                (*word, *own_len) = (u64::from_le_bytes(*bytes), len as u8);
            }
        }
        Ok(symbols)
    }

    /// Writes the text of some codes at a place, where there has to be room for eight bytes for each. Gives where it ends.
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
                // Codes without a symbol have no length, and neither has the one for a byte that is none.
                place[0] = *codes.next().filter(|_| code == ESCAPE).ok_or(Changed)?;
                end += 1;
            }
        }
        Ok(end)
    }
}

/// Symbols that were found to be good for some texts: the first byte lowest, and how many.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) symbols: Vec<(u64, u8)>,
}

impl Found {
    /// Bytes of the table that has the symbols of these codes.
    pub(super) fn len(&self, used: &[bool; 256]) -> usize {
        let lens = self.symbols.iter().zip(used).filter(|(_, used)| **used);
        LONGEST + lens.map(|((_, len), _)| usize::from(*len)).sum::<usize>()
    }

    /// Appends the table that has the symbols of these codes. Gives the new code of each.
    pub(super) fn write(&self, used: &[bool; 256], to: &mut Vec<u8>) -> [u8; 256] {
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

/// Appends codes, each as its new one.
pub(super) fn renumber(codes: &[u8], new: &[u8; 256], to: &mut Vec<u8>) {
    let mut codes = codes.iter();
    while let Some(&code) = codes.next() {
        if code == ESCAPE {
            to.push(ESCAPE);
            to.extend(codes.next());
        } else {
            to.push(new[usize::from(code)]);
        }
    }
}
