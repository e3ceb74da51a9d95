//! Binary format of decimal numbers.
//!
//! ```text
//! | digits u16 | weight i16 | sign u16 | scale u16 | digit u16 ... |
//!   digits of base 10 000, the first one times 10 000^weight
//! ```

use cairn_sql::Datum;

use crate::codec::cursor::Cursor;
use crate::error::Failure;
use crate::sqlstate;

const BASE: u128 = 10_000;
const NEGATIVE: u16 = 0x4000;
/// Maximum number of digits of base 10 000 that 39 decimal digits around a point can span.
const DIGITS_MAX: usize = 40;

/// Appends the number `unscaled` / 10^`scale`.
pub fn encode(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    let unit = 10_u128.checked_pow(scale.into());
    let magnitude = unscaled.unsigned_abs();
    let (mut whole, mut fraction) = unit.map_or((0, magnitude), |unit| (magnitude / unit, magnitude % unit));
    let mut digits = [0_u16; DIGITS_MAX];
    let mut before = 0_usize; // digits before the point, the lowest first
    while whole > 0 {
        digits[before] = (whole % BASE) as u16;
        whole /= BASE;
        before += 1;
    }
    digits[..before].reverse();
    let mut count = before;
    // Digits after the point: four decimal digits each, from the left.
    let mut left = usize::from(scale);
    while fraction > 0 && left > 0 {
        let taken = left.min(4);
        let below = 10_u128.checked_pow((left - taken) as u32);
        let (digit, rest) = below.map_or((0, fraction), |below| (fraction / below, fraction % below));
        digits[count] = digit as u16 * 10_u16.pow((4 - taken) as u32);
        count += 1;
        (fraction, left) = (rest, left - taken);
    }
    let mut weight = before as i16 - 1;
    let leading = digits[..count].iter().take_while(|digit| **digit == 0).count();
    let trailing = digits[leading..count].iter().rev().take_while(|digit| **digit == 0).count();
    weight -= leading as i16;
    let kept = &digits[leading..count - trailing];
    if kept.is_empty() {
        weight = 0;
    }
    out.extend_from_slice(&(kept.len() as u16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&(if unscaled < 0 { NEGATIVE } else { 0 }).to_be_bytes());
    out.extend_from_slice(&u16::from(scale).to_be_bytes());
    kept.iter().for_each(|digit| out.extend_from_slice(&digit.to_be_bytes()));
}

/// Returns the number of digits after the point of a value in a client's format; `None` for a value
/// that is not a number, which its decoder reports.
pub fn scale_of(value: &[u8], is_binary: bool) -> Option<u8> {
    if is_binary {
        // The header: count, weight, sign, scale.
        let scale = value.get(6..8)?;
        return u8::try_from(u16::from_be_bytes([*scale.first()?, *scale.get(1)?])).ok();
    }
    let text = std::str::from_utf8(value).ok()?.trim();
    let (number, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let behind = number.find('.').map_or(0, |at| number.len() - at - 1);
    u8::try_from(i32::try_from(behind).ok()?.saturating_sub(exponent).max(0)).ok()
}

/// Decodes a number. Errors: 22P03 for bytes that are not a number; 22003 for NaN, infinity and
/// numbers of more than 38 digits.
pub fn decode(bytes: &[u8]) -> Result<Datum, Failure> {
    let malformed = || Failure::new(sqlstate::INVALID_BINARY_REPRESENTATION, "invalid binary numeric");
    let range =
        || Failure::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, "numeric value does not fit in 38 digits");
    let mut cursor = Cursor::new(bytes, "numeric");
    let mut next = || cursor.u16().map_err(|_| malformed());
    let (count, weight, sign, scale) = (next()?, next()? as i16, next()?, next()?);
    if sign != 0 && sign != NEGATIVE {
        return Err(range());
    }
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= 38).ok_or_else(range)?;
    // The value is the sum of digit * 10 000^(weight - i). In units of 10^-scale, that is digit *
    // 10^(4 * (weight - i) + scale).
    let mut unscaled: i128 = 0;
    for at in 0..count {
        let digit = next()?;
        if digit >= 10_000 {
            return Err(malformed());
        }
        let exponent = 4 * (i32::from(weight) - i32::from(at)) + i32::from(scale);
        let digit = i128::from(digit);
        let part = match u32::try_from(exponent) {
            Ok(exponent) if digit > 0 => {
                10_i128.checked_pow(exponent).and_then(|unit| unit.checked_mul(digit)).ok_or_else(range)?
            }
            Ok(_) => 0,
            // Digits below the sender's own scale are cut off.
            Err(_) => 10_i128.checked_pow(exponent.unsigned_abs()).map_or(0, |unit| digit / unit),
        };
        unscaled = unscaled.checked_add(part).ok_or_else(range)?;
    }
    cursor.finish().map_err(|_| malformed())?;
    if unscaled >= 10_i128.pow(38) {
        return Err(range());
    }
    Ok(Datum::Decimal { unscaled: if sign == NEGATIVE { -unscaled } else { unscaled }, scale })
}
