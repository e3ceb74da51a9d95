//! A checksum over bytes that arrive in pieces, for spill files that a build writes and reads back.

use cairn_codec::checksum::xxh3_64_seeded;

/// The checksum is computed over pieces of this size, so it does not depend on how the bytes
/// arrive.
const PIECE_BYTES: usize = 64 * 1024;

/// The xxh3-64 of each 64 KiB, seeded with the checksum of the bytes before.
#[derive(Debug, Default)]
pub(crate) struct RunningSum {
    sum: u64,
    /// The bytes of an incomplete piece.
    rest: Vec<u8>,
}

impl RunningSum {
    /// Adds the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        if !self.rest.is_empty() {
            debug_assert!(self.rest.len() < PIECE_BYTES, "{} bytes wait", self.rest.len());
            let (head, tail) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.rest.len()));
            self.rest.extend_from_slice(head);
            bytes = tail;
            if self.rest.len() < PIECE_BYTES {
                return;
            }
            self.sum = xxh3_64_seeded(&self.rest, self.sum);
            self.rest.clear();
        }
        let pieces = bytes.chunks_exact(PIECE_BYTES);
        self.rest.extend_from_slice(pieces.remainder());
        self.sum = pieces.fold(self.sum, |sum, piece| xxh3_64_seeded(piece, sum));
        debug_assert!(self.rest.len() < PIECE_BYTES, "{} bytes wait", self.rest.len());
    }

    /// Returns the checksum of all bytes so far and starts anew.
    pub fn take(&mut self) -> u64 {
        let sum = xxh3_64_seeded(&self.rest, self.sum);
        self.sum = 0;
        self.rest.clear();
        sum
    }
}

/// Returns the checksum of `bytes`, as [`RunningSum`] computes it.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    let mut sum = RunningSum::default();
    sum.update(bytes);
    sum.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the checksum depends on the bytes and not on the pieces, and differs for different
    /// bytes. Method: lengths around the piece size, cut in two at every relevant place; every
    /// length gives another checksum.
    #[test]
    fn checksum_is_independent_of_piece_sizes() {
        let bytes: Vec<u8> = (0..3 * PIECE_BYTES + 5).map(|n| (n * 7 % 251) as u8).collect();
        let edges = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, bytes.len()];
        let mut sums = Vec::new();
        let mut sum = RunningSum::default();
        for end in edges {
            let whole = sum_of(&bytes[..end]);
            assert!(!sums.contains(&whole), "{end}");
            sums.push(whole);
            for cut in edges.into_iter().filter(|cut| *cut <= end) {
                sum.update(&bytes[..cut]);
                sum.update(&bytes[cut..end]);
                assert_eq!(sum.take(), whole, "{cut} of {end}");
            }
        }
    }
}
