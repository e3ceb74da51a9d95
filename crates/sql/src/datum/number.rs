//! Decimals: whole numbers with a point in them.

use crate::error::{Error, Result};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// Digits in all and after the point of a column that says nothing about them: PostgreSQL keeps as many as there are, here a column has a fixed number.
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

/// A number that somebody has written, as a column of so many digits keeps it. A type that says how many are after the point rounds to them; where it says nothing, none is lost without
/// a word.
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
