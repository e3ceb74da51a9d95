//! Bit-packed numbers: a fixed number of bits each, without gaps.

use std::ops::Range;

use cairn_pool::Changed;

use crate::storage::source::Source;

/// Returns the number of bits for numbers up to `most`. Never 57 to 63, because a number must lie
/// within the eight bytes from the byte in which it begins.
pub(super) fn width(most: u64) -> u8 {
    let bits = match (u64::BITS - most.leading_zeros()) as u8 {
        57.. => 64,
        bits => bits,
    };
    debug_assert!(mask(bits).is_ok_and(|mask| most <= mask), "{bits} bits do not hold {most}");
    bits
}

/// Returns the number of bytes that `count` numbers take.
pub(super) fn len(count: usize, bits: u8) -> usize {
    (count * usize::from(bits)).div_ceil(8)
}

/// Appends numbers, none of which needs more than `bits` bits.
pub(super) fn put(numbers: impl Iterator<Item = u64>, bits: u8, to: &mut Vec<u8>) {
    debug_assert!(mask(bits).is_ok(), "numbers of {bits} bits cannot be read");
    let (mut waiting, mut filled) = (0u128, 0u32);
    for number in numbers {
        debug_assert!(bits == 64 || number >> bits == 0, "{number} has more than {bits} bits");
        waiting |= u128::from(number) << filled;
        filled += u32::from(bits);
        if filled >= 64 {
            to.extend_from_slice(&(waiting as u64).to_le_bytes());
            waiting >>= 64;
            filled -= 64;
        }
    }
    debug_assert!(filled < 64, "{filled} bits are left over");
    let rest = (waiting as u64).to_le_bytes();
    to.extend_from_slice(rest.get(..filled.div_ceil(8) as usize).unwrap_or_default());
}

#[inline]
fn mask(bits: u8) -> Result<u64, Changed> {
    match bits {
        0 => Ok(0),
        1..=56 | 64 => Ok(u64::MAX >> (64 - bits)),
        _ => Err(Changed),
    }
}

/// Returns the number at position `at`.
#[inline]
pub(super) fn get<S: Source + ?Sized>(from: &S, place: u16, bits: u8, at: usize) -> Result<u64, Changed> {
    let mask = mask(bits)?;
    if mask == 0 {
        return Ok(0);
    }
    let bit = at * usize::from(bits);
    debug_assert!(bit % 8 + usize::from(bits) <= 64, "a number of {bits} bits begins at bit {bit}");
    Ok(from.u64(usize::from(place) + bit / 8)? >> (bit % 8) & mask)
}

/// Number of values that are unpacked together.
const GROUP: usize = 64;
/// A group consists of groups of eight, and is one word of a bitmap.
const _: () = assert!(GROUP.is_multiple_of(8) && GROUP == u64::BITS as usize);

/// Unpacks groups of eight numbers. Each group begins at a byte boundary, because eight numbers
/// take as many bytes as one has bits. Returns false if the bytes end before the last word loaded.
type Unpack = fn(&[u8], &mut [[u64; 8]]) -> bool;

/// A constant width makes all offsets and shifts constants: a third of the instructions.
fn unpack<const BITS: usize>(from: &[u8], to: &mut [[u64; 8]]) -> bool {
    // A number must lie within the word that begins at its first byte.
    const { assert!(BITS > 0 && BITS <= 56) };
    for (nth, to) in to.iter_mut().enumerate() {
        let Some(from) = from.get(nth * BITS..nth * BITS + BITS + 8) else { return false };
        for (nth, to) in to.iter_mut().enumerate() {
            let bit = nth * BITS;
            let word = from.get(bit / 8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            *to = u64::from_le_bytes(word) >> (bit % 8) & (u64::MAX >> (64 - BITS));
        }
    }
    true
}

macro_rules! unpackers {
    ($($bits:literal)*) => { [$(unpack::<$bits>),*] };
}

/// Unpackers for numbers of 1 bit, 2 bits, and so on.
static UNPACKERS: [Unpack; 56] = unpackers! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
    29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56
};

/// Returns the bytes from `place` onwards, which must cover the word loaded for the last number.
fn bytes(from: &[u8], place: u16, bits: usize, last: usize) -> Result<&[u8], Changed> {
    debug_assert!((1..=64).contains(&bits), "numbers of {bits} bits are read");
    let from = from.get(usize::from(place)..).ok_or(Changed)?;
    // One bounds check here, so that none in the loop can fail.
    if from.len() < last * bits / 8 + 8 { Err(Changed) } else { Ok(from) }
}

/// Returns the number at a bit position that is known to be in bounds.
#[inline]
fn number(from: &[u8], bit: usize, mask: u64) -> u64 {
    debug_assert!(from.len() >= bit / 8 + 8, "bit {bit} is beyond {} bytes", from.len());
    let word = from.get(bit / 8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    u64::from_le_bytes(word) >> (bit % 8) & mask
}

/// Passes a range of numbers to `each`, in order.
#[inline]
pub(super) fn each(
    from: &[u8],
    place: u16,
    bits: u8,
    range: Range<usize>,
    mut each: impl FnMut(u64),
) -> Result<(), Changed> {
    let mask = mask(bits)?;
    if mask == 0 {
        range.for_each(|_| each(0));
        return Ok(());
    }
    let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else { return Ok(()) };
    let bits = usize::from(bits);
    let from = bytes(from, place, bits, last)?;
    let mut at = range.start;
    let whole = at.next_multiple_of(8).min(range.end);
    while at < whole {
        each(number(from, at * bits, mask));
        at += 1;
    }
    if let Some(unpack) = UNPACKERS.get(bits - 1) {
        let mut group = [[0; 8]; GROUP / 8];
        while at + 8 <= range.end {
            debug_assert!((at * bits).is_multiple_of(8), "number {at} of {bits} bits begins inside a byte");
            let eights = ((range.end - at) / 8).min(GROUP / 8);
            let (Some(from), Some(group)) = (from.get(at * bits / 8..), group.get_mut(..eights)) else {
                break;
            };
            if !unpack(from, group) {
                break;
            }
            group.iter().flatten().for_each(|number| each(*number));
            at += 8 * eights;
        }
    }
    while at < range.end {
        each(number(from, at * bits, mask));
        at += 1;
    }
    debug_assert!(at == range.end, "numbers up to {at} of {range:?} were read");
    Ok(())
}

/// Clears the bits in `rows` of numbers outside `least..=least + span`. Bits correspond to numbers
/// in order, from the lowest bit of the first word. Words that are zero are skipped.
pub(super) fn keep_within(
    from: &[u8],
    place: u16,
    bits: u8,
    range: Range<usize>,
    (least, span): (u64, u64),
    rows: &mut [u64],
) -> Result<(), Changed> {
    let mask = mask(bits)?;
    if mask == 0 {
        if 0u64.wrapping_sub(least) > span {
            rows.fill(0);
        }
        return Ok(());
    }
    let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else { return Ok(()) };
    let bits = usize::from(bits);
    let from = bytes(from, place, bits, last)?;
    let unpack = UNPACKERS.get(bits - 1).filter(|_| range.start.is_multiple_of(8));
    let mut group = [[0; 8]; GROUP / 8];
    for (rows, start) in rows.iter_mut().zip(range.clone().step_by(GROUP)).filter(|(rows, _)| **rows != 0) {
        let count = GROUP.min(range.end - start);
        debug_assert!(count > 0, "a word of a selection stands for no number");
        let mut kept = 0;
        let bytes = from.get(start * bits / 8..).unwrap_or_default();
        let is_unpacked = count == GROUP && unpack.is_some_and(|unpack| unpack(bytes, &mut group));
        if is_unpacked {
            for (nth, number) in group.as_flattened().iter().enumerate() {
                kept |= u64::from(number.wrapping_sub(least) <= span) << nth;
            }
        } else {
            for nth in 0..count {
                let number = number(from, (start + nth) * bits, mask);
                kept |= u64::from(number.wrapping_sub(least) <= span) << nth;
            }
        }
        *rows &= kept;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cairn_vfs::{Rng, SeededRng};

    use super::*;

    /// Goal: numbers of all widths are returned one by one, all together, and as a selection within
    /// bounds, for all starts and ends of ranges, including the end of the bytes. Method: random
    /// numbers.
    #[test]
    fn numbers_round_trip() {
        let mut rng = SeededRng::new(5);
        for bits in (0..=56).chain([64]) {
            let most = mask(bits).unwrap();
            let numbers: Vec<u64> = (0..300).map(|_| rng.next_u64() & most).collect();
            let mut bytes = vec![0xee; 3];
            put(numbers.iter().copied(), bits, &mut bytes);
            bytes.extend([0xff; 7]);
            if bits == 0 || bits == 64 {
                bytes.push(0xff);
            }
            for (start, end) in [(0, 300), (0, 64), (8, 136), (5, 291), (63, 65), (7, 7), (299, 300)] {
                let bytes = if end == 300 { &bytes[..] } else { &bytes[..bytes.len() - 1] };
                let expected = &numbers[start..end];
                let mut found = Vec::new();
                each(bytes, 3, bits, start..end, |number| found.push(number)).unwrap();
                assert_eq!(found, expected, "{bits} bits, {start}..{end}");
                let alone = (start..end).map(|at| get(bytes, 3, bits, at).unwrap());
                assert_eq!(alone.collect::<Vec<_>>(), expected);
                let (least, span) = (most / 4, most / 2);
                let mut rows = vec![u64::MAX; (end - start).div_ceil(64)];
                keep_within(bytes, 3, bits, start..end, (least, span), &mut rows).unwrap();
                for (at, number) in expected.iter().enumerate() {
                    let is_kept = rows[at / 64] >> (at % 64) & 1 == 1;
                    assert_eq!(is_kept, number.wrapping_sub(least) <= span, "{bits} bits, {at}: {number}");
                }
            }
            assert!(
                each(&bytes[..bytes.len().saturating_sub(9)], 3, bits.max(1), 0..300, |_| ()).is_err()
                    || bits == 0
            );
        }
    }
}
