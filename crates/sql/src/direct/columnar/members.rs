//! A set of integers that are close together: a bitmap from the least to the greatest.
//!
//! Keys of a table usually are such numbers. Compared with a hash table, a bitmap has no hashing
//! and no collisions, and a lookup is one load, mostly from a cache.

/// Bits of a word.
const BITS: i64 = u64::BITS as i64;

/// The most words of a set: 4 MiB, for keys within 33 million of each other.
const WORDS_MAX: usize = 1 << 19;

/// A set of integers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Members {
    /// The number of the first word. The word of a value is the value without its lowest six bits.
    base: i64,
    words: Vec<u64>,
}

/// The numbers are too far apart for a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooWide;

impl Members {
    /// Inserts a number. Cost: a store, or doubling the set if it grows.
    pub fn insert(&mut self, value: i64) -> Result<(), TooWide> {
        let word = value.div_euclid(BITS);
        let at = word.wrapping_sub(self.base);
        let found = usize::try_from(at).ok().and_then(|at| self.words.get_mut(at));
        let place = match found {
            Some(place) => place,
            None => self.grow(word)?,
        };
        *place |= 1 << value.rem_euclid(BITS);
        Ok(())
    }

    /// Inserts all numbers of another set.
    pub fn insert_all(&mut self, other: &Members) -> Result<(), TooWide> {
        for (at, bits) in (other.base..).zip(&other.words).filter(|(_, bits)| **bits != 0) {
            let place = usize::try_from(at.wrapping_sub(self.base)).ok();
            let place = match place.and_then(|place| self.words.get_mut(place)) {
                Some(place) => place,
                None => self.grow(at)?,
            };
            *place |= bits;
        }
        Ok(())
    }

    /// Makes room for a word, and returns it.
    fn grow(&mut self, word: i64) -> Result<&mut u64, TooWide> {
        if self.words.is_empty() {
            self.base = word;
        }
        let end = self.base + self.words.len() as i64;
        let (low, high) = (self.base.min(word), end.max(word + 1));
        let count = usize::try_from(high.abs_diff(low)).map_err(|_| TooWide)?;
        if count > WORDS_MAX {
            return Err(TooWide);
        }
        if low < self.base {
            // Reserves more than needed, because keys in descending order would grow the set again
            // and again.
            let spare = self.words.len().min(WORDS_MAX - count);
            let low = low.saturating_sub(spare as i64).max(i64::MIN / BITS);
            let front = usize::try_from(self.base.abs_diff(low)).map_err(|_| TooWide)?;
            self.words.splice(0..0, std::iter::repeat_n(0, front));
            self.base = low;
        } else {
            self.words.resize(count, 0);
        }
        let at = usize::try_from(word.abs_diff(self.base)).map_err(|_| TooWide)?;
        self.words.get_mut(at).ok_or(TooWide)
    }

    /// Whether the set contains a number.
    #[inline]
    pub fn holds(&self, value: i64) -> bool {
        let at = value.div_euclid(BITS).wrapping_sub(self.base);
        let word = usize::try_from(at).ok().and_then(|at| self.words.get(at));
        word.is_some_and(|word| word >> value.rem_euclid(BITS) & 1 == 1)
    }

    /// The number of members. Cost: reads all words.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns all members, in order.
    pub fn values(&self) -> impl Iterator<Item = i64> {
        (self.base..).zip(&self.words).filter(|(_, word)| **word != 0).flat_map(|(at, &word)| {
            let bits = (0..BITS).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| at * BITS + bit)
        })
    }

    /// The least and the greatest member; `None` for an empty set.
    pub fn range(&self) -> Option<(i64, i64)> {
        let first = self.words.iter().position(|word| *word != 0)?;
        let last = self.words.iter().rposition(|word| *word != 0)?;
        let least = i64::from(self.words.get(first)?.trailing_zeros());
        let most = BITS - 1 - i64::from(self.words.get(last)?.leading_zeros());
        Some(((self.base + first as i64) * BITS + least, (self.base + last as i64) * BITS + most))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: a set contains exactly the numbers inserted, in any order. Method: numbers around a
    /// place in ascending, descending and shuffled order, compared with a set of the standard
    /// library, and two halves merged; also at both ends of the integers.
    #[test]
    fn a_set_has_what_was_put_into_it() {
        let ends = [i64::MIN, i64::MIN + 500, -700, 0, 3, i64::MAX - 2000, i64::MAX - 999];
        for from in ends {
            let near = |at: i64| from.saturating_add(at * 37 % 1000);
            let rising: Vec<i64> = (0..27).map(near).collect();
            let mut falling = rising.clone();
            falling.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
            for order in [&rising, &falling] {
                let (mut all, mut halves) = (Members::default(), [Members::default(), Members::default()]);
                let mut expected = BTreeSet::new();
                for (nth, value) in order.iter().enumerate() {
                    all.insert(*value).unwrap();
                    halves[nth % 2].insert(*value).unwrap();
                    expected.insert(*value);
                }
                let [mut both, other] = halves;
                both.insert_all(&other).unwrap();
                for found in [&all, &both] {
                    assert_eq!(found.range(), Some((*expected.first().unwrap(), *expected.last().unwrap())));
                    assert_eq!(found.count(), expected.len());
                    assert!(found.values().eq(expected.iter().copied()), "{found:?}");
                    for at in -200..1300 {
                        let value = from.saturating_add(at);
                        assert_eq!(found.holds(value), expected.contains(&value), "{value} around {from}");
                    }
                    for value in ends {
                        assert_eq!(found.holds(value), expected.contains(&value), "{value}");
                    }
                }
            }
        }
    }

    /// Goal: excessive width is detected before memory is allocated, and the set stays unchanged.
    /// Method: both ends of the integers, and numbers just within and just beyond the limit.
    #[test]
    fn what_is_too_wide_is_told() {
        let most = WORDS_MAX as i64 * BITS;
        for (first, second, fits) in [
            (i64::MIN, i64::MAX, false),
            (i64::MAX, i64::MIN, false),
            (0, most - 1, true),
            (0, most, false),
            (most - 1, 0, true),
            (most, 0, false),
        ] {
            let mut members = Members::default();
            members.insert(first).unwrap();
            assert_eq!(members.insert(second).is_ok(), fits, "{first} {second}");
            assert!(members.holds(first) && members.holds(second) == fits);
            let mut other = Members::default();
            other.insert(second).unwrap();
            assert_eq!(other.insert_all(&members).is_ok(), fits || members == other);
        }
        assert_eq!(Members::default().range(), None);
        assert!(!Members::default().holds(0));
    }
}
