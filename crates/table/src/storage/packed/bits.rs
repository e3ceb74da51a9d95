//! Numbers of a few bits each, one behind the other.

use std::ops::Range;

use cairn_pool::Changed;

use crate::storage::source::Source;

/// Bits for numbers up to `most`. Not 57 to 63: a number is within eight bytes from the one that it begins in.
pub(super) fn width(most: u64) -> u8 {
    match (u64::BITS - most.leading_zeros()) as u8 {
        57.. => 64,
        bits => bits,
    }
}

/// Bytes that so many numbers take.
pub(super) fn len(count: usize, bits: u8) -> usize {
    (count * usize::from(bits)).div_ceil(8)
}

/// Appends numbers, of which none needs more bits.
pub(super) fn put(numbers: impl Iterator<Item = u64>, bits: u8, to: &mut Vec<u8>) {
    let (mut waiting, mut filled) = (0u128, 0u32);
    for number in numbers {
        waiting |= u128::from(number) << filled;
        filled += u32::from(bits);
        if filled >= 64 {
            to.extend_from_slice(&(waiting as u64).to_le_bytes());
            waiting >>= 64;
            filled -= 64;
        }
    }
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

/// The number at a place in the row.
#[inline]
pub(super) fn get<S: Source + ?Sized>(from: &S, place: u16, bits: u8, at: usize) -> Result<u64, Changed> {
    let mask = mask(bits)?;
    if mask == 0 {
        return Ok(0);
    }
    let bit = at * usize::from(bits);
    Ok(from.u64(usize::from(place) + bit / 8)? >> (bit % 8) & mask)
}

/// Gives some numbers, in order.
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
    let (place, bits) = (usize::from(place), usize::from(bits));
    // One look at the end, so that there is none in the loop that could fail.
    let from = from.get(place..place + last * bits / 8 + 8).ok_or(Changed)?;
    let mut bit = range.start * bits;
    for _ in range {
        let word = from.get(bit / 8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        each(u64::from_le_bytes(word) >> (bit % 8) & mask);
        bit += bits;
    }
    Ok(())
}

/// Takes bits out of `rows`, one for each number from the lowest of the first word on: those of numbers that are not within `span` above `least`. Words without a bit are passed over.
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
    let (place, bits) = (usize::from(place), usize::from(bits));
    let from = from.get(place..place + last * bits / 8 + 8).ok_or(Changed)?;
    for (rows, start) in rows.iter_mut().zip(range.clone().step_by(64)).filter(|(rows, _)| **rows != 0) {
        let (mut kept, mut bit) = (0, start * bits);
        for nth in 0..64.min(range.end - start) {
            let word = from.get(bit / 8..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            let number = u64::from_le_bytes(word) >> (bit % 8) & mask;
            kept |= u64::from(number.wrapping_sub(least) <= span) << nth;
            bit += bits;
        }
        *rows &= kept;
    }
    Ok(())
}
