//! One checksum over bytes that come in pieces, for what a build writes to a temporary file and
//! reads back.

use cairn_codec::checksum::xxh3_64_seeded;

/// The sum does not depend on how the bytes were cut; this is where it cuts them itself.
const PIECE_BYTES: usize = 64 * 1024;

/// xxh3-64 of each 64 KiB under the sum of those before as the seed.
#[derive(Debug, Default)]
pub(crate) struct RunningSum {
    sum: u64,
    /// Less than a piece.
    rest: Vec<u8>,
}

impl RunningSum {
    /// Takes the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        if !self.rest.is_empty() {
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
    }

    /// The sum of all bytes so far, and a new start.
    pub fn take(&mut self) -> u64 {
        let sum = xxh3_64_seeded(&self.rest, self.sum);
        self.sum = 0;
        self.rest.clear();
        sum
    }
}

/// The sum of `bytes`, as [`RunningSum`] has it.
pub(crate) fn sum_of(bytes: &[u8]) -> u64 {
    let mut sum = RunningSum::default();
    sum.update(bytes);
    sum.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sum is of the bytes and not of the pieces, and tells bytes apart. Method: lengths
    /// around a piece, cut in two everywhere that matters; every length has another sum.
    #[test]
    fn pieces_do_not_matter() {
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
