//! LZ4 blocks, which decompress faster than any alternative with similar savings.
//!
//! A block is raw: without a frame and without its length. That is why this module is separate from
//! [`compress`](crate::compress): the caller has to store the uncompressed length of a block, and
//! supply a buffer of exactly that length.

use std::fmt;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use crate::{Error, Result};

/// Compresses one block after another. Owns the match table (8 KiB, or 16 KiB for blocks of 64 KiB
/// and more), so reuse it.
#[derive(Default)]
pub struct Lz4Compressor {
    small: Option<CompressTable>,
    large: Option<CompressTable>,
}

impl Lz4Compressor {
    /// Creates a compressor without allocating.
    pub fn new() -> Self {
        Lz4Compressor::default()
    }

    /// Appends the compressed form of `input` to `out` and returns its length. On an error, `out`
    /// is unchanged.
    ///
    /// Errors: [`Error::Compress`] for inputs of 2 GiB and more.
    pub fn compress(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize> {
        let failed = |what: String| Error::Compress { format: "lz4", len: input.len(), what };
        if input.len() > i32::MAX as usize {
            return Err(failed("a block holds less than 2 GiB".to_owned()));
        }
        let table = if input.len() < usize::from(u16::MAX) {
            self.small.get_or_insert_with(CompressTable::small)
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        let start = out.len();
        out.resize(start + get_maximum_output_size(input.len()), 0);
        let done = compress_into_with_table(input, &mut out[start..], table);
        if let Ok(len) = done {
            debug_assert!(len <= out.len() - start, "{len} bytes, at most {}", out.len() - start);
            debug_assert!(input.len() as u64 <= expansion_max(len), "{} bytes in {len}", input.len());
        }
        out.truncate(start + done.as_ref().copied().unwrap_or(0));
        done.map_err(|error| failed(error.to_string()))
    }
}

impl fmt::Debug for Lz4Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lz4Compressor").finish_non_exhaustive()
    }
}

/// Decompresses the block `input` into the front of `output` and returns the number of bytes. Never
/// writes past the end of `output`.
///
/// Errors: [`Error::Decompress`] when the block is invalid or does not fit. The content of `output`
/// is then unspecified.
pub fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    let done = decompress_into(input, output);
    debug_assert!(done.is_err() || done.as_ref().is_ok_and(|len| *len <= output.len()));
    done.map_err(|error| Error::Decompress { format: "lz4", len: input.len(), what: error.to_string() })
}

/// Returns the maximum decompressed size of `len` compressed bytes: each continuation byte of a
/// length adds 255.
pub fn expansion_max(len: usize) -> u64 {
    (len as u64).saturating_mul(255).saturating_add(64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compressed(input: &[u8]) -> Vec<u8> {
        let mut out = b"kept".to_vec();
        let len = Lz4Compressor::new().compress(input, &mut out).unwrap();
        assert_eq!((out.len(), &out[..4]), (4 + len, &b"kept"[..]));
        out.split_off(4)
    }

    /// Goal: both tables work in turn and the expansion bound holds. Method: zeros of lengths
    /// around 64 KiB, with one compressor.
    #[test]
    fn lengths_around_the_tables() {
        let mut compressor = Lz4Compressor::new();
        for len in [0, 1, 12, 13, 65_534, 65_535, 65_536, 300_000, 7] {
            let input = vec![0; len];
            let mut block = Vec::new();
            compressor.compress(&input, &mut block).unwrap();
            assert!(len as u64 <= expansion_max(block.len()), "{len} in {}", block.len());
            let mut output = vec![1; len];
            assert_eq!(decompress(&block, &mut output), Ok(len));
            assert_eq!(output, input);
        }
    }

    /// Goal: the decoder follows the published format. Method: a handwritten block with literals
    /// and a match.
    #[test]
    fn known_block() {
        // token 4 literals, match of 4 + 4; distance 4; last token 5 literals
        let block = [0x44, b'a', b'b', b'c', b'd', 4, 0, 0x50, b'v', b'w', b'x', b'y', b'z'];
        let mut output = [0; 17];
        assert_eq!(decompress(&block, &mut output), Ok(17));
        assert_eq!(&output, b"abcdabcdabcdvwxyz");
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(128))]

        /// Goal: round trip, and a buffer one byte too short is an error. Method: random bytes from
        /// a small alphabet.
        #[test]
        fn round_trip(input in prop::collection::vec(0u8..4, 0..3000)) {
            let block = compressed(&input);
            let mut output = vec![0; input.len()];
            prop_assert_eq!(decompress(&block, &mut output), Ok(input.len()));
            prop_assert_eq!(&output, &input);
            if let Some((_, short)) = output.split_last_mut() {
                prop_assert!(decompress(&block, short).is_err());
            }
        }

        /// Goal: garbage is harmless. Method: random bytes into buffers of random size.
        #[test]
        fn garbage(block in prop::collection::vec(any::<u8>(), 0..200), room in 0usize..1000) {
            let mut output = vec![0; room];
            if let Ok(used) = decompress(&block, &mut output) {
                prop_assert!(used <= room);
            }
        }
    }
}
