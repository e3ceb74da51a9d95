//! The tail of a value that is hashed word by word.

/// Reads at most 8 bytes as a little-endian integer.
///
/// Uses two overlapping 4-byte loads, or up to three single bytes, instead of a loop, because every
/// short key ends here.
#[inline(always)]
pub fn short_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    debug_assert!(len <= 8, "{len} bytes do not fit a word");
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let low = u64::from(u32::from_le_bytes(*first));
            let high = u64::from(u32::from_le_bytes(*last));
            low | high << (8 * (len - 4))
        }
        _ => match *bytes {
            [] => 0,
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, ..] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a tail byte by byte, like the reference's fall-through switch.
    fn little_endian_slowly(bytes: &[u8]) -> u64 {
        bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: the overlapping loads equal the plain loop. Method: all lengths from 0 to 8,
        /// random bytes.
        #[test]
        fn tails(bytes in prop::collection::vec(any::<u8>(), 0..=8)) {
            prop_assert_eq!(short_word(&bytes), little_endian_slowly(&bytes));
        }
    }
}
