//! Keys of one length, and sequences of them that are prepared before the clock starts.
//!
//! ```text
//!   key 1234 of 16 bytes    k e y 0 0 0 0 0 0 0 0 0 1 2 3 4      sorts like its number
//!   tape of 3               [key 7][key 0][key 7]                consecutive, in the order of use
//! ```

use cairn_vfs::{Rng, SeededRng};

use crate::core::error::{Error, Result};

const PREFIX: &[u8; 3] = b"key";

/// The longest key that every store accepts (LMDB's limit is 511).
pub const KEY_BYTES_MAX: usize = 511;

/// Makes keys from numbers: the prefix `key`, then the number in decimal, padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyMaker {
    width: usize,
}

impl KeyMaker {
    /// Creates a maker of keys of `width` bytes for the numbers below `count`.
    ///
    /// Errors: [`Error::Invalid`] if the numbers do not fit.
    pub fn new(width: usize, count: u64) -> Result<KeyMaker> {
        let digits = count.max(1).saturating_sub(1).max(1).ilog10() as usize + 1;
        if !(PREFIX.len() + digits..=KEY_BYTES_MAX).contains(&width) {
            return Err(Error::invalid(format!(
                "key size {width}: expected {} to {KEY_BYTES_MAX}, `key` and {digits} digits at least",
                PREFIX.len() + digits
            )));
        }
        Ok(KeyMaker { width })
    }

    /// Returns the length of every key.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns a key with space for any number, to be overwritten.
    pub fn blank(&self) -> Vec<u8> {
        let mut key = vec![b'0'; self.width];
        key[..PREFIX.len()].copy_from_slice(PREFIX);
        key
    }

    /// Writes the digits of `number` into a key that [`KeyMaker::blank`] made. Costs about five
    /// nanoseconds.
    #[inline]
    pub fn write(&self, number: u64, key: &mut [u8]) {
        let mut rest = number;
        for digit in key[PREFIX.len()..].iter_mut().rev() {
            if rest == 0 && *digit == b'0' {
                // Above the highest digit, the key may still contain digits of the previous number,
                // so the loop continues.
                continue;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Returns the number in a key, or `None` for bytes that are not a key of this maker.
    pub fn number(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.width {
            return None;
        }
        let digits = key.strip_prefix(PREFIX)?;
        digits.iter().try_fold(0_u64, |number, digit| {
            let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
            number.checked_mul(10)?.checked_add(u64::from(digit))
        })
    }
}

/// The order in which a phase uses the numbers of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From `first` upwards.
    Sequential {
        /// The first number.
        first: u64,
    },
    /// Each drawn independently from the numbers below `below`: some occur more than once, others
    /// never.
    Drawn {
        /// One more than the largest number.
        below: u64,
        /// Seed of the draws.
        seed: u64,
    },
}

impl Order {
    /// Returns the first `count` numbers.
    pub fn numbers(self, count: u64) -> Vec<u64> {
        match self {
            Order::Sequential { first } => (first..first + count).collect(),
            Order::Drawn { below, seed } => {
                let mut rng = SeededRng::new(seed);
                (0..count).map(|_| rng.below(below)).collect()
            }
        }
    }
}

/// Prepared keys, consecutive in memory, with their numbers.
#[derive(Debug, Clone)]
pub struct Tape {
    width: usize,
    bytes: Vec<u8>,
    numbers: Vec<u64>,
}

impl Tape {
    /// Creates the keys of `numbers`. Each takes the width of a key and eight bytes of memory.
    pub fn new(maker: KeyMaker, numbers: Vec<u64>) -> Tape {
        let width = maker.width();
        let mut bytes = Vec::with_capacity(numbers.len() * width);
        let mut key = maker.blank();
        for &number in &numbers {
            maker.write(number, &mut key);
            bytes.extend_from_slice(&key);
        }
        Tape { width, bytes, numbers }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Iterates over numbers and keys in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, &[u8])> {
        self.numbers.iter().copied().zip(self.bytes.chunks_exact(self.width))
    }

    /// Iterates over numbers and keys in order, in batches of at most `size`.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = impl ExactSizeIterator<Item = (u64, &[u8])>> {
        let size = size.max(1);
        let keys = self.bytes.chunks(size * self.width);
        self.numbers
            .chunks(size)
            .zip(keys)
            .map(|(numbers, keys)| numbers.iter().copied().zip(keys.chunks_exact(self.width)))
    }

    /// Returns the numbers.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: keys sort like their numbers, contain them, and keep nothing of the previous key.
    /// Method: numbers of all lengths, up and down, through one buffer.
    #[test]
    fn keys_are_numbers() {
        let maker = KeyMaker::new(16, 1 << 40).unwrap();
        let mut key = maker.blank();
        for number in [0, 9, 10, 99_999, 1 << 39, 3, 1 << 20, 0, 100] {
            maker.write(number, &mut key);
            assert_eq!(key, format!("key{number:013}").as_bytes());
            assert_eq!(maker.number(&key), Some(number));
        }
        for foreign in [&b"key12"[..], b"kez0000000000001", b"key000000000000x", b""] {
            assert_eq!(maker.number(foreign), None);
        }
    }

    /// Goal: a width without enough space is refused before any work, and the tightest sufficient
    /// one is accepted.
    #[test]
    fn widths_are_checked() {
        assert!(KeyMaker::new(9, 1_000_000).is_ok());
        for (width, count) in [(9, 1_000_001), (3, 1), (512, 10)] {
            let error = KeyMaker::new(width, count).unwrap_err().to_string();
            assert!(error.contains(&format!("key size {width}")), "{error}");
        }
        assert!(KeyMaker::new(4, 10).is_ok());
    }

    /// Goal: tapes contain the keys of their numbers, also in batches whose size does not divide
    /// their number.
    #[test]
    fn tapes_hold_keys() {
        let maker = KeyMaker::new(8, 1000).unwrap();
        let numbers = Order::Drawn { below: 1000, seed: 3 }.numbers(25);
        assert_eq!(numbers, Order::Drawn { below: 1000, seed: 3 }.numbers(25));
        let tape = Tape::new(maker, numbers.clone());
        let read: Vec<u64> = tape
            .iter()
            .map(|(number, key)| {
                assert_eq!(maker.number(key), Some(number));
                number
            })
            .collect();
        assert_eq!(read, numbers);
        let batched: Vec<Vec<u64>> =
            tape.batches(10).map(|batch| batch.map(|(number, _)| number).collect()).collect();
        assert_eq!(batched.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
        assert_eq!(batched.concat(), numbers);
        assert_eq!(Order::Sequential { first: 5 }.numbers(3), [5, 6, 7]);
    }
}
