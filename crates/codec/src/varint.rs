//! Unsigned integers in 1 to 10 bytes, with short encodings for small values (LEB128, as in
//! protobuf; Sparkey calls it VLQ).
//!
//! ```text
//! 300 = 0b10_0101100   ->   1 0101100   0 0000010      low 7 bits first; bit 7: more follow
//! ```
//!
//! Each value has exactly one encoding, the shortest. The decoder rejects any other. So a decoded
//! value always encodes to the same bytes again, and a file cannot hide padding.

use crate::{Error, Result};

/// The longest encoding of a `u64`, in bytes.
pub const MAX_BYTES: usize = 10;

const _: () = assert!(MAX_BYTES == (u64::BITS as usize).div_ceil(7));
const _: () = assert!(encoded_len(0) == 1 && encoded_len(0x7f) == 1 && encoded_len(0x80) == 2);
const _: () = assert!(encoded_len((1 << 56) - 1) == 8 && encoded_len(1 << 56) == 9);
const _: () = assert!(encoded_len(u64::MAX) == MAX_BYTES);

/// Returns the number of bytes that [`encode`] uses for `value`.
pub const fn encoded_len(value: u64) -> usize {
    // A value of b significant bits takes ceil(b / 7) bytes; zero takes one. With x = b - 1, the
    // index of the top bit, that equals (x * 9 + 73) / 64 for every x in 0..=63, without a division
    // by 7.
    let top_bit = 63 - (value | 1).leading_zeros() as usize;
    (top_bit * 9 + 73) / 64
}

/// Writes `value` to the front of `out` and returns the number of bytes used.
pub fn encode(value: u64, out: &mut [u8; MAX_BYTES]) -> usize {
    let mut rest = value;
    let mut used = 0;
    for byte in out.iter_mut() {
        used += 1;
        if rest < 0x80 {
            *byte = rest as u8;
            break;
        }
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    debug_assert!(used == encoded_len(value), "{value} in {used} bytes");
    used
}

/// Appends `value` to `out`.
pub fn push(value: u64, out: &mut Vec<u8>) {
    let mut buf = [0; MAX_BYTES];
    let used = encode(value, &mut buf);
    out.extend_from_slice(&buf[..used]);
}

/// Decodes the integer at the front of `bytes`. Returns its value and its encoded length.
///
/// Errors: [`Error::VarintTruncated`] when the bytes end first, [`Error::VarintOverlong`] for an
/// encoding that is not the shortest one or exceeds 64 bits.
#[inline(always)]
pub fn decode(bytes: &[u8]) -> Result<(u64, usize)> {
    match *bytes {
        [first, ..] if first < 0x80 => Ok((u64::from(first), 1)),
        [first, second @ 1..0x80, ..] => Ok((u64::from(first & 0x7f) | u64::from(second) << 7, 2)),
        _ => decode_long(bytes),
    }
}

#[cold]
fn decode_long(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut value = 0u64;
    debug_assert!(bytes.first().is_none_or(|&byte| byte >= 0x80), "a single byte is decoded slowly");
    for (index, &byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        // The tenth byte holds only the highest bit of a u64.
        if index == MAX_BYTES - 1 && byte > 1 {
            return Err(Error::VarintOverlong);
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            if byte == 0 && index > 0 {
                return Err(Error::VarintOverlong);
            }
            // No other bytes stand for this value.
            debug_assert!(encoded_len(value) == index + 1, "{value} in {} bytes", index + 1);
            return Ok((value, index + 1));
        }
    }
    debug_assert!(bytes.len() < MAX_BYTES, "ten bytes are never cut off");
    Err(Error::VarintTruncated { have: bytes.len() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        push(value, &mut out);
        out
    }

    /// Goal: the bytes are LEB128. Method: values at each length boundary, compared with encodings
    /// worked out by hand.
    #[test]
    fn known_encodings() {
        assert_eq!(encoded(0), [0]);
        assert_eq!(encoded(127), [0x7f]);
        assert_eq!(encoded(128), [0x80, 1]);
        assert_eq!(encoded(300), [0xac, 2]);
        assert_eq!(encoded(16_383), [0xff, 0x7f]);
        assert_eq!(encoded(16_384), [0x80, 0x80, 1]);
        assert_eq!(encoded(u64::MAX), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    }

    /// Goal: length and round trip hold at every power of two. Method: each 2^k - 1, 2^k, 2^k + 1.
    #[test]
    fn every_power_of_two() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let bytes = encoded(value);
                assert_eq!(bytes.len(), encoded_len(value), "{value}");
                assert_eq!(decode(&bytes), Ok((value, bytes.len())));
            }
        }
    }

    /// Goal: encodings other than the shortest form of a u64 are refused. Method: padded, endless
    /// and too large encodings.
    #[test]
    fn overlong_is_refused() {
        for bytes in [&[0x80, 0][..], &[0xff, 0x80, 0], &[0x80; 11], &[0xff; 10]] {
            assert_eq!(decode(bytes), Err(Error::VarintOverlong), "{bytes:x?}");
        }
        let mut two_to_the_64 = vec![0x80; 9];
        two_to_the_64.push(2);
        assert_eq!(decode(&two_to_the_64), Err(Error::VarintOverlong));
    }

    /// Goal: truncation at any byte is detected. Method: every proper prefix of a ten-byte
    /// encoding.
    #[test]
    fn truncation_is_refused() {
        let bytes = encoded(u64::MAX);
        for have in 0..bytes.len() {
            assert_eq!(decode(&bytes[..have]), Err(Error::VarintTruncated { have }));
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: encode and decode are inverse, and trailing bytes do not matter. Method: random
        /// values of random width with a random tail.
        #[test]
        fn round_trip(raw: u64, shift in 0u32..64, tail: Vec<u8>) {
            let value = raw >> shift;
            let mut bytes = encoded(value);
            let used = bytes.len();
            bytes.extend(&tail);
            prop_assert_eq!(decode(&bytes), Ok((value, used)));
        }

        /// Goal: decoding garbage is canonical. Method: everything that decodes must encode to
        /// exactly the original bytes.
        #[test]
        fn garbage(bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80u8..=0xff], 0..14)) {
            if let Ok((value, used)) = decode(&bytes) {
                prop_assert_eq!(&encoded(value)[..], &bytes[..used]);
            }
        }
    }
}
