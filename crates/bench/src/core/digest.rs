//! Digests of the answers of a batch of lookups, in three numbers. They detect a store that returns
//! nothing, too little or wrong data, at a cost of about a nanosecond per short value.

use std::fmt;

use cairn_codec::short_word::short_word;
use serde::{Deserialize, Serialize};

/// The first 64 bits of the golden ratio. The number is odd, so that multiplication by it is
/// invertible.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The digest of the answers of a batch of lookups.
///
/// Each value is weighted by its position in the batch, so that correct values under wrong keys do
/// not cancel out. The sum is commutative, so that a store may answer a batch in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Digest {
    /// Number of keys that were found.
    pub found: u64,
    /// Sum of the lengths of their values.
    pub bytes: u64,
    /// Sum of the checksums of their values, each multiplied by 2 x position + 1.
    pub checksum: u64,
}

impl Digest {
    /// Adds the value found for the key at `position` of the batch.
    #[inline]
    pub fn add(&mut self, position: usize, value: &[u8]) {
        self.found += 1;
        self.bytes += value.len() as u64;
        let weight = 2 * position as u64 + 1;
        self.checksum = self.checksum.wrapping_add(checksum(value).wrapping_mul(weight));
    }

    /// Adds the answer for the key at `position`, found or not.
    #[inline]
    pub fn add_answer(&mut self, position: usize, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.add(position, value);
        }
    }

    /// Returns the digest of both batches together.
    #[must_use]
    pub fn merge(self, other: Digest) -> Digest {
        Digest {
            found: self.found + other.found,
            bytes: self.bytes.wrapping_add(other.bytes),
            checksum: self.checksum.wrapping_add(other.checksum),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} found, {} bytes, checksum {:016x}", self.found, self.bytes, self.checksum)
    }
}

/// The digest that the Java process computes over a whole read order before timing. It is simpler
/// than a [`Digest`] because it is implemented a second time, in Java.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outline {
    /// Number of keys that were found.
    pub found: u64,
    /// Sum over non-empty values of length + 31 * first byte + 17 * last byte.
    pub sum: u64,
}

impl Outline {
    /// Adds a value that was found.
    pub fn add(&mut self, value: &[u8]) {
        self.found += 1;
        if let (Some(&first), Some(&last)) = (value.first(), value.last()) {
            let weighted = value.len() as u64 + 31 * u64::from(first) + 17 * u64::from(last);
            self.sum = self.sum.wrapping_add(weighted);
        }
    }

    /// Returns the outline of both together.
    #[must_use]
    pub fn merge(self, other: Outline) -> Outline {
        Outline { found: self.found + other.found, sum: self.sum.wrapping_add(other.sum) }
    }
}

impl fmt::Display for Outline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} found with the digest {}", self.found, self.sum)
    }
}

/// Returns a checksum of every byte of `value`, read eight at a time. It is weaker than a hash
/// because it has to cost less than a lookup.
#[inline]
pub fn checksum(value: &[u8]) -> u64 {
    let (words, tail) = value.as_chunks::<8>();
    let mut sum = value.len() as u64;
    for word in words {
        sum = sum.rotate_left(7) ^ u64::from_le_bytes(*word);
    }
    (sum.rotate_left(7) ^ short_word(tail)).wrapping_mul(GOLDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every bit of a value of any length affects the checksum. Method: flip each bit of
    /// values of 0 to 40 bytes, and extend them by a zero byte; the checksum must change each time.
    #[test]
    fn checksum_sees_every_bit() {
        for len in 0..40_usize {
            let value: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8).collect();
            let sum = checksum(&value);
            for bit in 0..8 * len {
                let mut other = value.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(checksum(&other), sum, "length {len}, bit {bit}");
            }
            let longer: Vec<u8> = value.iter().copied().chain([0]).collect();
            assert_ne!(checksum(&longer), sum, "length {len}");
        }
    }

    /// Goal: the order of answers does not matter, the pairing of keys and values does.
    #[test]
    fn digest_ties_values_to_positions() {
        let (mut forward, mut backward, mut swapped) =
            (Digest::default(), Digest::default(), Digest::default());
        forward.add(0, b"one");
        forward.add(1, b"two");
        backward.add(1, b"two");
        backward.add_answer(0, Some(b"one"));
        backward.add_answer(2, None);
        swapped.add(0, b"two");
        swapped.add(1, b"one");
        assert_eq!(forward, backward);
        assert_ne!(forward, swapped);
        assert_eq!((forward.found, forward.bytes), (2, 6));
    }
}
