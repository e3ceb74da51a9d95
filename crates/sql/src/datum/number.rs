//! Decimals: integers with a decimal point.

use arrow::datatypes::i256;

use crate::error::{Error, Result};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// The precision and scale of a column declared without them. PostgreSQL stores any number of
/// digits; here the scale of a column is fixed.
pub(crate) const OPEN: (u8, u8) = (38, 10);

/// Returns 10^`exponent`; `None` if that exceeds an i128.
pub(crate) fn pow10(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

/// Changes the scale of a number, rounding half away from zero; `None` if it does not fit.
pub(crate) fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(pow10((to - from).into())?);
    }
    let Some(unit) = pow10((from - to).into()) else { return Some(0) };
    let (quotient, rest) = (unscaled / unit, unscaled % unit);
    let up = rest.unsigned_abs() >= (unit / 2).unsigned_abs();
    Some(if up { quotient + unscaled.signum() } else { quotient })
}

/// Changes the scale of a number; `None` if a digit other than zero would be lost.
pub(crate) fn rescale_exact(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(pow10((to - from).into())?);
    }
    let unit = pow10((from - to).into())?;
    (unscaled % unit == 0).then_some(unscaled / unit)
}

/// Computes `numerator` / `denominator` * 10^`exponent`, rounded half away from zero; `None` if the
/// result has more than 38 digits, or the denominator is zero. Intermediate results that exceed 128
/// bits are computed in 256 bits.
pub(crate) fn quotient(numerator: i128, denominator: i128, exponent: i32) -> Option<i128> {
    let narrow = pow10(exponent.unsigned_abs()).and_then(|unit| match exponent >= 0 {
        true => Some((numerator.checked_mul(unit)?, denominator)),
        false => Some((numerator, denominator.checked_mul(unit)?)),
    });
    let value = match narrow {
        Some((numerator, denominator)) => {
            let quotient = numerator.checked_div(denominator)?;
            let rest = numerator.checked_rem(denominator)?.unsigned_abs();
            let up = rest != 0 && rest >= denominator.unsigned_abs() - rest;
            let sign = if (numerator < 0) == (denominator < 0) { 1 } else { -1 };
            quotient.checked_add(if up { sign } else { 0 })?
        }
        None => wide_quotient(i256::from_i128(numerator), i256::from_i128(denominator), exponent)?,
    };
    fits(value).then_some(value)
}

/// Like [`quotient`], for numbers of 256 bits.
pub(crate) fn wide_quotient(numerator: i256, denominator: i256, exponent: i32) -> Option<i128> {
    let unit = i256::from_i128(10).checked_pow(exponent.unsigned_abs())?;
    let (numerator, denominator) = match exponent >= 0 {
        true => (numerator.checked_mul(unit)?, denominator),
        false => (numerator, denominator.checked_mul(unit)?),
    };
    let (quotient, rest) = (numerator.checked_div(denominator)?, numerator.checked_rem(denominator)?);
    let (is_below, is_by_less) = (numerator < i256::ZERO, denominator < i256::ZERO);
    let positive = |value: i256| if value < i256::ZERO { value.wrapping_neg() } else { value };
    let (rest, whole) = (positive(rest), positive(denominator));
    let up = rest != i256::ZERO && rest >= whole.wrapping_sub(rest);
    let sign = if is_below == is_by_less { 1 } else { -1 };
    let value = quotient.to_i128()?.checked_add(if up { sign } else { 0 })?;
    fits(value).then_some(value)
}

/// Whether a number has at most 38 digits.
const fn fits(value: i128) -> bool {
    value.unsigned_abs() < 10_u128.pow(38)
}

/// Converts a number to the precision and scale of a column. A declared scale rounds. Without one,
/// losing a digit is an error.
///
/// Errors: 22003.
pub(crate) fn kept(unscaled: i128, scale: u8, digits: (u8, u8)) -> Result<i128> {
    let (precision, to) = digits;
    let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
    let own = match digits == OPEN && to < scale {
        true => Some(rescale_exact(unscaled, scale, to).ok_or_else(too_fine)?),
        false => rescale(unscaled, scale, to),
    };
    let fits =
        |value: &i128| pow10(precision.into()).is_none_or(|most| value.unsigned_abs() < most.unsigned_abs());
    own.filter(fits).ok_or_else(overflow)
}

/// Returns the error for digits beyond [`OPEN`]'s scale.
pub(crate) fn too_fine() -> Error {
    let what = format!("numeric field overflow: more than {} digits after the point", OPEN.1);
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what)
        .with_detail(format!(
            "A numeric without a declared scale keeps at most {} digits after the point.",
            OPEN.1
        ))
        .with_hint("Round the value, or declare precision and scale: numeric(precision, scale).")
}
