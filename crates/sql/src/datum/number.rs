//! Decimals: whole numbers with a point in them.

use arrow::datatypes::i256;

use crate::error::{Error, Result};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// Digits in all and after the point of a column that says nothing about them: PostgreSQL keeps as
/// many as there are, here a column has a fixed number.
pub(crate) const OPEN: (u8, u8) = (38, 10);

/// 10^`exponent`; `None` where that has more than 38 digits.
pub(crate) fn pow10(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent)
}

/// The same number with another scale, rounded half away from zero. `None` where it does not fit.
pub(crate) fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(pow10((to - from).into())?);
    }
    let Some(unit) = pow10((from - to).into()) else { return Some(0) };
    let (quotient, rest) = (unscaled / unit, unscaled % unit);
    let up = rest.unsigned_abs() >= (unit / 2).unsigned_abs();
    Some(if up { quotient + unscaled.signum() } else { quotient })
}

/// The same number with another scale, where none of its digits is lost.
pub(crate) fn rescale_exact(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return unscaled.checked_mul(pow10((to - from).into())?);
    }
    let unit = pow10((from - to).into())?;
    (unscaled % unit == 0).then_some(unscaled / unit)
}

/// `numerator` / `denominator` * 10^`exponent`, rounded half away from zero. `None` where it has
/// more than 38 digits, and for a denominator of zero. What is not within 128 bits on the way is
/// computed with twice as many.
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

/// As [`quotient`], of numbers of 256 bits.
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

/// Whether a number has no more than 38 digits.
const fn fits(value: i128) -> bool {
    value.unsigned_abs() < 10_u128.pow(38)
}

/// A number that somebody has written, as a column of so many digits keeps it. A type that says how
/// many are after the point rounds to them; where it says nothing, none is lost without a word.
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

/// There are more digits than are kept.
pub(crate) fn too_fine() -> Error {
    let what = format!("numeric field overflow: more than {} digits after the point", OPEN.1);
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what)
        .with_detail(format!(
            "A numeric that does not say how many digits it has keeps {} after the point.",
            OPEN.1
        ))
        .with_hint("Round the value, or say how many digits there are: numeric(precision, scale).")
}
