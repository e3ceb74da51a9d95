//! Packed integers of `width` bits each, one after the other, the lowest bits first.
//!
//! ```text
//!   width 3:  value 0 | value 1 | value 2        byte 0 = v2(2 low bits) v1 v0,
//!                                                byte 1 = … v3 v2(high bit)
//! ```
//!
//! 64 values of `width` bits fill exactly `width` words, so the unpacker works on groups of 64: see
//! `group`.

mod group;

pub(crate) use group::{any_within, extremes};
use group::{sum_group, unpack_group};

/// Number of values in a group of the unpacker.
pub(crate) const GROUP: usize = 64;

/// Fewer values than this are unpacked faster one by one than as a group.
const FEW: usize = 12;
/// The sum of 64 values of at most this width fits 64 bits.
const SUM_WIDTH: u32 = 58;

const _: () = assert!(SUM_WIDTH + GROUP.ilog2() == 64, "so many values of this width cannot overflow");
const _: () = assert!(GROUP == u64::BITS as usize, "a group of any width fills whole words");
const _: () = assert!(FEW < GROUP);

/// Returns the number of bytes that `count` values of `width` bits take.
pub(crate) const fn packed_bytes(count: usize, width: u32) -> usize {
    debug_assert!(width <= 64);
    (count * width as usize).div_ceil(8)
}

/// Returns the smallest width that holds `value`.
pub(crate) const fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Appends `values`, none of which needs more than `width` bits, to `out`.
pub(crate) fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let before = out.len();
    let (mut pending, mut held, mut count) = (0u128, 0u32, 0);
    for value in values {
        debug_assert!(width == 64 || value >> width == 0, "{value} in {width} bits");
        count += 1;
        pending |= u128::from(value) << held;
        held += width;
        while held >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            held -= 8;
        }
    }
    debug_assert!(held < 8, "{held} bits wait");
    if held > 0 {
        out.push(pending as u8);
    }
    debug_assert_eq!(out.len() - before, packed_bytes(count, width), "the size that was planned");
}

/// Returns a word with the lowest `width` bits set.
pub(crate) const fn mask(width: u32) -> u64 {
    debug_assert!(width <= 64);
    if width == 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Returns value `index` of `bytes`. The caller has checked that `bytes` holds it; beyond the end,
/// values are zero.
#[inline]
pub(crate) fn get(bytes: &[u8], index: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    debug_assert!(packed_bytes(index + 1, width) <= bytes.len(), "value {index} of {} bytes", bytes.len());
    let bit = index * width as usize;
    let (at, shift) = (bit / 8, (bit % 8) as u32);
    if let Some(word) = bytes.get(at..at + 8)
        && shift + width <= 64
    {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        return (u64::from_le_bytes(eight) >> shift) & mask(width);
    }
    get_slow(bytes, at, shift, width)
}

/// Does the same as [`get`] near the end of the bytes, and for a value that spans nine bytes.
#[cold]
fn get_slow(bytes: &[u8], at: usize, shift: u32, width: u32) -> u64 {
    debug_assert!(shift < 8 && width <= 64, "{width} bits from bit {shift}");
    let mut sixteen = [0; 16];
    let tail = bytes.get(at..).unwrap_or_default();
    let have = tail.len().min(16);
    sixteen[..have].copy_from_slice(&tail[..have]);
    (u128::from_le_bytes(sixteen) >> shift) as u64 & mask(width)
}

/// Unpacks values `start..start + out.len()` of `bytes` into `out`. Takes 0.3 to 0.7 ns per value.
pub(crate) fn unpack(bytes: &[u8], start: usize, width: u32, out: &mut [u64]) {
    if width == 0 {
        out.fill(0);
        return;
    }
    debug_assert!(packed_bytes(start + out.len(), width) <= bytes.len(), "{} bytes", bytes.len());
    let mut done = 0;
    while done < out.len() {
        let index = start + done;
        let skip = index % GROUP;
        let count = (GROUP - skip).min(out.len() - done);
        if count < FEW {
            for (step, value) in out[done..done + count].iter_mut().enumerate() {
                *value = get(bytes, index + step, width);
            }
        } else if count == GROUP {
            with_group(bytes, index / GROUP, width, |group| {
                unpack_group(group, width, &mut out[done..done + GROUP])
            });
        } else {
            // A part of a group costs as much as the whole group, which is still less than
            // unpacking the values one by one.
            let mut values = [0; GROUP];
            with_group(bytes, index / GROUP, width, |group| unpack_group(group, width, &mut values));
            out[done..done + count].copy_from_slice(&values[skip..skip + count]);
        }
        done += count;
    }
    debug_assert_eq!(done, out.len());
}

/// Returns the sum of values `start..end` of `bytes` as unsigned numbers.
pub(crate) fn sum(bytes: &[u8], start: usize, end: usize, width: u32) -> u128 {
    let mut sum = 0u128;
    let mut index = start;
    while index < end && width > 0 {
        if index.is_multiple_of(GROUP) && end - index >= GROUP && width <= SUM_WIDTH {
            with_group(bytes, index / GROUP, width, |group| sum += u128::from(sum_group(group, width)));
            index += GROUP;
        } else {
            sum += u128::from(get(bytes, index, width));
            index += 1;
        }
    }
    sum
}

/// Calls `body` with the bytes of a group. If the last group is incomplete, it is padded with
/// zeros.
fn with_group(bytes: &[u8], group: usize, width: u32, body: impl FnOnce(&[u8])) {
    debug_assert!((1..=64).contains(&width), "{width} bits");
    let group_bytes = 8 * width as usize;
    let at = group * group_bytes;
    match bytes.get(at..at + group_bytes) {
        Some(group) => body(group),
        None => {
            let mut filled = [0; 8 * 64];
            let rest = bytes.get(at..).unwrap_or_default();
            filled[..rest.len()].copy_from_slice(rest);
            body(&filled[..group_bytes]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(crate::test_config::cases(256))]

        /// Goal: packed values are unpacked unchanged, one by one and in ranges, at every width.
        /// Method: random values truncated to a random width, compared with the values themselves.
        #[test]
        fn round_trip(width in 0u32..=64, values in prop::collection::vec(any::<u64>(), 0..400), from: usize, len: usize) {
            let values: Vec<u64> = values.into_iter().map(|v| v & if width == 0 { 0 } else { mask(width) }).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_bytes(values.len(), width));
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(get(&bytes, index, width), value);
            }
            let from = from % (values.len() + 1);
            let len = len % (values.len() - from + 1);
            let mut out = vec![1; len];
            unpack(&bytes, from, width, &mut out);
            prop_assert_eq!(&out[..], &values[from..from + len]);
            prop_assert_eq!(sum(&bytes, from, from + len, width), out.iter().map(|v| u128::from(*v)).sum::<u128>());
        }
    }
}
