//! Keys of a packed leaf: search and reconstruction.

use std::cmp::Ordering;

use cairn_pool::Changed;

use super::read::{Ends, Packed};
use super::{KEYS, STREAMS, bits};
use crate::storage::source::Source;

/// Number of positions that fit in two words.
pub(super) const MOST_POSITIONS: usize = 16;
const _: () = assert!(MOST_POSITIONS == 2 * size_of::<u64>());

/// Keys of one length that differ in few positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) len: u16,
    /// Offset of a key from which the common bytes are taken.
    pub(super) template: u16,
    pub(super) positions: [u8; MOST_POSITIONS],
    pub(super) count: usize,
    pub(super) low: Word,
    pub(super) high: Word,
}

/// One of the two words of each key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) bits: u8,
    pub(super) place: u16,
    pub(super) base: u64,
}

impl Word {
    #[inline]
    pub(super) fn get<S: Source + ?Sized>(&self, from: &S, at: usize) -> Result<u64, Changed> {
        Ok(self.base.wrapping_add(bits::get(from, self.place, self.bits, at)?))
    }
}

/// Keys of any length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts {
    pub(super) prefix: u16,
    pub(super) prefix_len: u16,
    pub(super) heap: u16,
    pub(super) ends: Ends,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Keys {
    Words(Words),
    Texts(Texts),
}

/// The words to search for.
struct Wanted {
    high: u64,
    low: u64,
    /// Whether to find the first key above the words, rather than the first one not below them.
    is_above: bool,
    /// Whether the words represent the key exactly, rather than the nearest possible key.
    is_exact: bool,
}

impl<S: Source + ?Sized> Packed<'_, S> {
    #[inline]
    pub(super) fn keys(&self) -> Result<Keys, Changed> {
        let (head, places) = (self.0.u64(KEYS)?, self.0.u64(KEYS + 8)?);
        let (low, high) = (self.0.u64(KEYS + 16)?, self.0.u64(KEYS + 24)?);
        let (len, template) = (head as u16, (head >> 16) as u16);
        let (low_bits, low_place) = ((head >> 48) as u8, places as u16);
        match self.0.u8(STREAMS + 2)? {
            0 => {
                let count = usize::from((head >> 32) as u8);
                let mut positions = [0; MOST_POSITIONS];
                let used = positions.get_mut(..count).ok_or(Changed)?;
                self.0.copy_to((places >> 32) as u16 as usize, used)?;
                // Positions ascend and lie within the key.
                let is_sound =
                    used.is_sorted_by(|a, b| a < b) && used.last().is_none_or(|last| u16::from(*last) < len);
                if !is_sound {
                    return Err(Changed);
                }
                Ok(Keys::Words(Words {
                    len,
                    template,
                    positions,
                    count,
                    low: Word { bits: low_bits, place: low_place, base: low },
                    high: Word { bits: (head >> 40) as u8, place: (places >> 16) as u16, base: high },
                }))
            }
            1 => Ok(Keys::Texts(Texts {
                prefix: template,
                prefix_len: len,
                heap: (places >> 48) as u16,
                ends: Ends { bits: low_bits, place: low_place, slope: low as u32, base: (low >> 32) as i32 },
            })),
            _ => Err(Changed),
        }
    }

    /// Reconstructs the key of a record in a buffer.
    pub(crate) fn key(&self, at: usize, to: &mut Vec<u8>) -> Result<(), Changed> {
        to.clear();
        match self.keys()? {
            Keys::Words(words) => {
                let (low, high) = (words.low.get(self.0, at)?, words.high.get(self.0, at)?);
                self.0.append_to(words.template.into(), words.len.into(), to)?;
                words.put(high, low, to)
            }
            Keys::Texts(texts) => {
                self.0.append_to(texts.prefix.into(), texts.prefix_len.into(), to)?;
                let (start, end) = texts.ends.range(self.0, at)?;
                self.0.append_to(usize::from(texts.heap) + start, end - start, to)
            }
        }
    }

    /// Returns the first record whose key is not below `key`, and whether its key equals `key`.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<(usize, bool), Changed> {
        let count = self.count()?;
        match self.keys()? {
            Keys::Words(words) => {
                let wanted = self.wanted(&words, key)?;
                let (at, is_equal) = self.search_words(&words, &wanted, count)?;
                Ok((at, is_equal && wanted.is_exact))
            }
            Keys::Texts(texts) => self.search_texts(&texts, key, count),
        }
    }

    /// Returns the words of a key, or those next to the place where the key would be.
    fn wanted(&self, words: &Words, key: &[u8]) -> Result<Wanted, Changed> {
        let len = usize::from(words.len);
        let (mut word, mut at, mut found) = (0u128, 0, Ordering::Equal);
        let mut seen = 0;
        for &position in words.positions.iter().take(words.count) {
            let position = usize::from(position);
            found = self.compare_with(words, key, at, position)?;
            if found != Ordering::Equal {
                break;
            }
            let Some(byte) = key.get(position) else {
                found = Ordering::Less;
                break;
            };
            word = word << 8 | u128::from(*byte);
            (at, seen) = (position + 1, seen + 1);
        }
        if seen == words.count {
            found = self.compare_with(words, key, at, len)?;
            if found == Ordering::Equal && key.len() > len {
                found = Ordering::Greater;
            }
        }
        // The remaining positions do not matter: zeros sort before, and ones after, all keys with
        // these first bytes.
        debug_assert!(
            seen <= words.count && words.count <= MOST_POSITIONS,
            "{seen} of {} positions were compared",
            words.count
        );
        let rest = 8 * (words.count - seen) as u32;
        let is_above = found == Ordering::Greater;
        word = word.checked_shl(rest).unwrap_or(0);
        if is_above {
            word |= 1u128.checked_shl(rest).unwrap_or(0).wrapping_sub(1);
        }
        Ok(Wanted {
            high: (word >> 64) as u64,
            low: word as u64,
            is_above,
            is_exact: found == Ordering::Equal,
        })
    }

    /// Compares a part of a key with the bytes that all keys have there. A key that ends within the
    /// part is less.
    fn compare_with(&self, words: &Words, key: &[u8], start: usize, end: usize) -> Result<Ordering, Changed> {
        if start >= end {
            return Ok(if key.len() < end { Ordering::Less } else { Ordering::Equal });
        }
        let own = key.get(start..end.min(key.len())).unwrap_or_default();
        // The comparison takes the bytes of the page as its left operand.
        Ok(self.0.compare(usize::from(words.template) + start, end - start, own)?.reverse())
    }

    fn search_words(&self, words: &Words, wanted: &Wanted, count: usize) -> Result<(usize, bool), Changed> {
        let (mut low, mut high) = (0, count);
        let mut middle = self.guess(words, wanted, count)?;
        let mut is_equal = false;
        while low < high {
            let order = match words.high.bits {
                0 => words.high.base.cmp(&wanted.high),
                _ => words.high.get(self.0, middle)?.cmp(&wanted.high),
            };
            let order = match order {
                Ordering::Equal => words.low.get(self.0, middle)?.cmp(&wanted.low),
                order => order,
            };
            is_equal |= order == Ordering::Equal;
            if order == Ordering::Less || order == Ordering::Equal && wanted.is_above {
                low = middle + 1;
            } else {
                high = middle;
                if order == Ordering::Equal {
                    // Keys are unique.
                    return Ok((middle, true));
                }
            }
            middle = low.midpoint(high);
        }
        debug_assert!(low == high && low <= count, "a search in {count} records ends at {low} and {high}");
        Ok((low, is_equal && !wanted.is_above))
    }

    /// Returns the position of the words if they are evenly spread, as consecutive numbers are.
    #[inline]
    fn guess(&self, words: &Words, wanted: &Wanted, count: usize) -> Result<usize, Changed> {
        let Some(last) = count.checked_sub(1).filter(|_| words.high.bits == 0) else {
            return Ok(count / 2);
        };
        let all = bits::get(self.0, words.low.place, words.low.bits, last)?;
        let guess = match wanted.low.checked_sub(words.low.base) {
            None => 0,
            Some(skip) if skip < all => (u128::from(skip) * last as u128 / u128::from(all)) as usize,
            Some(_) => last,
        };
        debug_assert!(guess < count, "record {guess} of {count} is guessed");
        Ok(guess)
    }

    fn search_texts(&self, texts: &Texts, key: &[u8], count: usize) -> Result<(usize, bool), Changed> {
        let prefix = usize::from(texts.prefix_len);
        let own = key.get(..prefix.min(key.len())).unwrap_or_default();
        match self.0.compare(texts.prefix.into(), prefix, own)? {
            Ordering::Less => return Ok((count, false)),
            Ordering::Greater => return Ok((0, false)),
            Ordering::Equal => {}
        }
        let rest = key.get(prefix..).ok_or(Changed)?;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            let (start, end) = texts.ends.range(self.0, middle)?;
            match self.0.compare(usize::from(texts.heap) + start, end - start, rest)? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok((middle, true)),
            }
        }
        debug_assert!(low == high && low <= count, "a search in {count} records ends at {low} and {high}");
        Ok((low, false))
    }
}

impl Words {
    /// Writes the bytes of the words to their positions in a key.
    #[inline]
    pub(super) fn put(&self, high: u64, low: u64, key: &mut [u8]) -> Result<(), Changed> {
        debug_assert!(self.count <= MOST_POSITIONS, "a key has words of {} bytes", self.count);
        let mut word = u128::from(high) << 64 | u128::from(low);
        for &position in self.positions.iter().take(self.count).rev() {
            *key.get_mut(usize::from(position)).ok_or(Changed)? = word as u8;
            word >>= 8;
        }
        Ok(())
    }
}
