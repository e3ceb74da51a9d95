//! Decimals: whole numbers with a point in them.

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
