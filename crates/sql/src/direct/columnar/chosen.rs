//! The set of chosen rows of a block, as a bitmap.

use cairn_table::Validity;

const BITS: usize = u64::BITS as usize;

/// Rows of a block. The lowest bit of the first word is the first row; the bits after the last row
/// are zero.
#[derive(Debug, Default, Clone)]
pub(crate) struct Chosen {
    words: Vec<u64>,
}

impl Chosen {
    /// Chooses all of `rows` rows.
    pub fn all(&mut self, rows: usize) {
        self.words.clear();
        self.words.resize(rows / BITS, u64::MAX);
        if !rows.is_multiple_of(BITS) {
            self.words.push((1 << (rows % BITS)) - 1);
        }
    }

    /// Removes all rows.
    pub fn none(&mut self) {
        self.words.fill(0);
    }

    /// The number of chosen rows.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether any row is chosen.
    pub fn any(&self) -> bool {
        self.words.iter().any(|word| *word != 0)
    }

    /// The bitmap, for readers of blocks.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bitmap, for callers that clear bits.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Removes rows whose value does not hold. Words without a chosen row are skipped. In the
    /// others all values are tested, which the compiler vectorizes.
    pub fn keep<T: Copy>(&mut self, values: &[T], holds: impl Fn(T) -> bool) {
        for (word, values) in self.words.iter_mut().zip(values.chunks(BITS)).filter(|(word, _)| **word != 0) {
            let mut mask = 0;
            for (at, value) in values.iter().enumerate() {
                mask |= u64::from(holds(*value)) << at;
            }
            *word &= mask;
        }
    }

    /// Like [`Chosen::keep`], for a condition on the values of two columns.
    pub fn keep_pairs<T: Copy>(&mut self, left: &[T], right: &[T], holds: impl Fn(T, T) -> bool) {
        let columns = left.chunks(BITS).zip(right.chunks(BITS));
        for (word, (left, right)) in self.words.iter_mut().zip(columns).filter(|(word, _)| **word != 0) {
            let mut mask = 0;
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                mask |= u64::from(holds(*left, *right)) << at;
            }
            *word &= mask;
        }
    }

    /// Like [`Chosen::keep`], for conditions that cost more than testing a bit.
    pub fn keep_each(&mut self, mut holds: impl FnMut(usize) -> bool) {
        for (nth, word) in self.words.iter_mut().enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                if !holds(nth * BITS + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Removes rows that `of_chosen` does not choose. Its rows are the chosen rows of `self`.
    pub fn keep_those(&mut self, of_chosen: &Chosen) {
        let mut nth = 0;
        self.keep_each(|_| {
            let word = of_chosen.words.get(nth / BITS).copied().unwrap_or_default();
            let holds = word >> (nth % BITS) & 1 == 1;
            nth += 1;
            holds
        });
    }

    /// Removes rows that are NULL, or those that are not.
    pub fn keep_null(&mut self, validity: &Validity, wants_null: bool) {
        let Some(bits) = validity.bits() else {
            if wants_null {
                self.none();
            }
            return;
        };
        for (word, bits) in self.words.iter_mut().zip(bits.chunks(BITS / 8)) {
            let mut valid = [0; BITS / 8];
            valid.iter_mut().zip(bits).for_each(|(to, from)| *to = *from);
            let valid = u64::from_le_bytes(valid);
            *word &= if wants_null { !valid } else { valid };
        }
    }

    /// Calls `take` with the number of each chosen row.
    #[inline]
    pub fn each(&self, mut take: impl FnMut(usize)) {
        for (nth, word) in self.words.iter().enumerate() {
            let first = nth * BITS;
            if *word == u64::MAX {
                (first..first + BITS).for_each(&mut take);
                continue;
            }
            let mut left = *word;
            while left != 0 {
                take(first + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    /// Calls `take` with the value of each chosen row.
    #[inline]
    pub fn each_of<T: Copy>(&self, values: &[T], mut take: impl FnMut(T)) {
        for (word, values) in self.words.iter().zip(values.chunks(BITS)) {
            if *word == u64::MAX {
                values.iter().for_each(|value| take(*value));
                continue;
            }
            let mut left = *word;
            while left != 0 {
                if let Some(value) = values.get(left.trailing_zeros() as usize) {
                    take(*value);
                }
                left &= left - 1;
            }
        }
    }

    /// Calls `take` with the values of each chosen row in two columns.
    #[inline]
    pub fn each_pair<A: Copy, B: Copy>(&self, first: &[A], second: &[B], mut take: impl FnMut(A, B)) {
        let columns = first.chunks(BITS).zip(second.chunks(BITS));
        for (word, (first, second)) in self.words.iter().zip(columns) {
            if *word == u64::MAX {
                first.iter().zip(second).for_each(|(a, b)| take(*a, *b));
                continue;
            }
            let mut left = *word;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                if let (Some(a), Some(b)) = (first.get(at), second.get(at)) {
                    take(*a, *b);
                }
                left &= left - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: choosing, counting and visiting rows agree, also at the ends of words. Method: all
    /// lengths around two words, a condition on values, and one on positions.
    #[test]
    fn rows_are_chosen() {
        for rows in [0, 1, 63, 64, 65, 127, 128, 130] {
            let values: Vec<i64> = (0..rows as i64).collect();
            let mut chosen = Chosen::default();
            chosen.all(rows);
            assert_eq!(chosen.count(), rows);
            chosen.keep(&values, |value| value % 3 != 0);
            chosen.keep_each(|at| at % 5 != 0);
            let expected: Vec<usize> = (0..rows).filter(|at| at % 3 != 0 && at % 5 != 0).collect();
            let (mut places, mut found, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
            chosen.each(|at| places.push(at));
            chosen.each_of(&values, |value| found.push(value as usize));
            chosen.each_pair(&values, &values, |a, b| pairs.push((a + b) as usize / 2));
            assert_eq!((places, found, pairs), (expected.clone(), expected.clone(), expected.clone()));
            assert_eq!((chosen.count(), chosen.any()), (expected.len(), !expected.is_empty()));
            let mut of_chosen = Chosen::default();
            of_chosen.all(expected.len());
            of_chosen.keep_each(|at| at % 2 == 1);
            chosen.keep_those(&of_chosen);
            let mut left = Vec::new();
            chosen.each(|at| left.push(at));
            assert_eq!(left, expected.iter().copied().skip(1).step_by(2).collect::<Vec<_>>());
            chosen.none();
            assert!(!chosen.any());
        }
    }
}
