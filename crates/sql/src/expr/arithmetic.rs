//! Arithmetic operators.

use super::cast::{as_double, as_integer};
use super::operator::Operator;
use super::time;
use crate::datum::{Datum, DatumRef, pow10, quotient, rescale};
use crate::error::{Error, Result};
use crate::sqlstate::{
    DIVISION_BY_ZERO, INTERNAL_ERROR, INVALID_ARGUMENT_FOR_POWER, NUMERIC_VALUE_OUT_OF_RANGE,
};
use crate::types::name_of;

/// The least number of significant digits of a quotient of decimals.
const QUOTIENT_DIGITS: u8 = 16;
const MAX_SCALE: u8 = 38;

fn overflow(kind: &str) -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range"))
}

/// Returns the error for an overflow in floating-point arithmetic.
pub(crate) fn too_large() -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

pub(super) fn underflow() -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

pub(super) fn by_zero() -> Error {
    Error::new(DIVISION_BY_ZERO, "division by zero")
}

/// Applies an operator to two values that are not NULL, and that the compiler has converted to
/// types that the operator takes.
///
/// Errors: 22003 and 22012.
pub(super) fn binary(operator: Operator, left: DatumRef<'_>, right: DatumRef<'_>) -> Result<Datum> {
    use DatumRef as D;
    match (left, right) {
        (D::Text(a), D::Text(b)) if operator == Operator::Concat => Ok(Datum::Text([a, b].concat())),
        (D::Blob(a), D::Blob(b)) if operator == Operator::Concat => Ok(Datum::Blob([a, b].concat())),
        (D::SmallInt(_), D::SmallInt(_) | D::Int(_)) => {
            let value = integers(operator, left, right, "smallint")?;
            value.try_into().map(Datum::SmallInt).map_err(|_| overflow("smallint"))
        }
        (D::Int(_), D::Int(_)) => {
            let value = integers(operator, left, right, "integer")?;
            value.try_into().map(Datum::Int).map_err(|_| overflow("integer"))
        }
        (D::BigInt(_), D::BigInt(_) | D::Int(_)) => {
            let value = integers(operator, left, right, "bigint")?;
            value.try_into().map(Datum::BigInt).map_err(|_| overflow("bigint"))
        }
        (D::Decimal { unscaled: a, scale: m }, D::Decimal { unscaled: b, scale: n }) => {
            decimals(operator, (a, m), (b, n))
        }
        (D::Real(a), D::Real(b)) => reals(operator, a, b).map(Datum::Real),
        (D::Double(a), D::Double(b)) => doubles(operator, a, b).map(Datum::Double),
        _ => time::binary(operator, left, right),
    }
}

/// Returns the error for operands that the compiler did not convert, which is a bug.
pub(super) fn unexpected(operator: Operator, takes: &str, got: [DatumRef<'_>; 2]) -> Error {
    let [left, right] = got.map(|value| value.type_of().map_or("NULL", |kind| name_of(&kind.into())));
    let message = format!("internal error: {operator:?} takes {takes}, got {left} and {right}");
    Error::new(INTERNAL_ERROR, message)
}

/// Computes with integers. The caller checks that the result fits the type; only shifts are
/// truncated here.
fn integers(operator: Operator, left: DatumRef<'_>, right: DatumRef<'_>, kind: &str) -> Result<i128> {
    let (Some(a), Some(b)) = (as_integer(left), as_integer(right)) else {
        return Err(unexpected(operator, "integers", [left, right]));
    };
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a.checked_div(b).ok_or_else(by_zero)?,
        Operator::Modulo => a.checked_rem(b).ok_or_else(by_zero)?,
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        // The shift count wraps around at the width of the type (at 32 for smallint). Bits shifted
        // out are lost.
        Operator::ShiftLeft | Operator::ShiftRight => {
            let width = match kind {
                "smallint" => 16,
                "integer" => 32,
                _ => 64,
            };
            let by = (b as u32) & (width.max(32) - 1);
            if operator == Operator::ShiftRight {
                return Ok(a >> by);
            }
            let shifted = (a << by) as u64 as i64;
            match width {
                16 => i128::from(shifted as i16),
                32 => i128::from(shifted as i32),
                _ => i128::from(shifted),
            }
        }
        Operator::Power => return Err(unexpected(operator, "double precision", [left, right])),
        Operator::Concat => return Err(unexpected(operator, "texts or bytes", [left, right])),
    })
}

fn decimals(operator: Operator, (a, m): (i128, u8), (b, n): (i128, u8)) -> Result<Datum> {
    let too_large = || overflow("numeric");
    let at = |value: i128, from: u8, to: u8| rescale(value, from, to).ok_or_else(too_large);
    let scale = m.max(n);
    let (unscaled, scale) = match operator {
        Operator::Add => (at(a, m, scale)?.checked_add(at(b, n, scale)?), scale),
        Operator::Subtract => (at(a, m, scale)?.checked_sub(at(b, n, scale)?), scale),
        Operator::Modulo if b == 0 => return Err(by_zero()),
        Operator::Modulo => (at(a, m, scale)?.checked_rem(at(b, n, scale)?), scale),
        Operator::Multiply => {
            let product = a.checked_mul(b);
            let scale = m + n;
            if scale <= MAX_SCALE {
                (product, scale)
            } else {
                (product.and_then(|p| rescale(p, scale, MAX_SCALE)), MAX_SCALE)
            }
        }
        Operator::Divide if b == 0 => return Err(by_zero()),
        Operator::Divide => return divide((a, m), (b, n)).ok_or_else(too_large),
        _ => {
            let got = [(a, m), (b, n)].map(|(unscaled, scale)| DatumRef::Decimal { unscaled, scale });
            return Err(unexpected(operator, "values of another type", got));
        }
    };
    Ok(Datum::Decimal { unscaled: unscaled.ok_or_else(too_large)?, scale })
}

/// Returns a quotient with at least 16 significant digits, or as many as fit, rounded.
fn divide((a, m): (i128, u8), (b, n): (i128, u8)) -> Option<Datum> {
    // PostgreSQL's choice of the scale, which gives at least sixteen significant digits.
    let weight = |value: i128, scale: u8| {
        value.unsigned_abs().checked_ilog10().map_or(0, |log| log as i32 - i32::from(scale))
    };
    let (wa, wb) = (weight(a, m).div_euclid(4), weight(b, n).div_euclid(4));
    let leading = |value: i128, scale: u8, weight: i32| {
        let shift = i32::from(scale) + weight * 4;
        let unit = pow10(shift.unsigned_abs())?;
        if shift >= 0 { value.checked_div(unit) } else { value.checked_mul(unit) }
    };
    let lower = leading(a, m, wa)?.unsigned_abs() <= leading(b, n, wb)?.unsigned_abs();
    let weight = wa - wb - i32::from(lower);
    let digits =
        (i32::from(QUOTIENT_DIGITS) - weight * 4).max(m.into()).max(n.into()).clamp(0, MAX_SCALE.into());
    (0..=digits as u8).rev().find_map(|scale| {
        // a / 10^m / (b / 10^n) * 10^scale
        let unscaled = quotient(a, b, i32::from(n) + i32::from(scale) - i32::from(m))?;
        Some(Datum::Decimal { unscaled, scale })
    })
}

/// Computes with reals. Errors: 22003 if the result is too large or too small, 22012.
pub(crate) fn reals(operator: Operator, a: f32, b: f32) -> Result<f32> {
    let exact = floats(operator, a.into(), b.into())?;
    let value = exact as f32;
    if value == 0.0 && exact != 0.0 {
        return Err(underflow());
    }
    if value.is_infinite() && a.is_finite() && b.is_finite() { Err(too_large()) } else { Ok(value) }
}

/// Computes with doubles. Errors: as [`reals`].
pub(crate) fn doubles(operator: Operator, a: f64, b: f64) -> Result<f64> {
    let value = floats(operator, a, b)?;
    if value.is_infinite() && a.is_finite() && b.is_finite() { Err(too_large()) } else { Ok(value) }
}

/// Removes the sign of a computed NaN. Processors may return one with a sign, which the general
/// path's comparisons would take for the least number of all.
pub(crate) fn one_nan(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<f64> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide | Operator::Modulo if b == 0.0 && !a.is_nan() => return Err(by_zero()),
        Operator::Divide => a / b,
        Operator::Modulo => a % b,
        Operator::Power if a == 0.0 && b < 0.0 => {
            let message = "zero raised to a negative power is undefined";
            return Err(Error::new(INVALID_ARGUMENT_FOR_POWER, message));
        }
        Operator::Power if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 => {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(Error::new(INVALID_ARGUMENT_FOR_POWER, message));
        }
        Operator::Power => a.powf(b),
        _ => {
            let got = [DatumRef::Double(a), DatumRef::Double(b)];
            return Err(unexpected(operator, "integers, texts or bytes", got));
        }
    };
    if result.is_nan() {
        return Ok(one_nan(result));
    }
    let is_nothing = result == 0.0 && a != 0.0 && a.is_finite() && b.is_finite();
    let vanished = match operator {
        Operator::Multiply => is_nothing && b != 0.0,
        Operator::Divide | Operator::Power => is_nothing,
        _ => false,
    };
    if vanished {
        return Err(underflow());
    }
    Ok(result)
}

/// Negates a value.
///
/// Errors: 22003 for the least number of a type.
pub(super) fn negate(datum: DatumRef<'_>) -> Result<Datum> {
    Ok(match datum {
        DatumRef::Null => Datum::Null,
        DatumRef::SmallInt(value) => {
            Datum::SmallInt(value.checked_neg().ok_or_else(|| overflow("smallint"))?)
        }
        DatumRef::Int(value) => Datum::Int(value.checked_neg().ok_or_else(|| overflow("integer"))?),
        DatumRef::BigInt(value) => Datum::BigInt(value.checked_neg().ok_or_else(|| overflow("bigint"))?),
        DatumRef::Real(value) => Datum::Real(if value.is_nan() { value } else { -value }),
        DatumRef::Decimal { unscaled, scale } => Datum::Decimal { unscaled: -unscaled, scale },
        DatumRef::Interval { months, days, micros } => time::negate(months, days, micros)?,
        other => {
            let value = as_double(other);
            Datum::Double(if value.is_nan() { value } else { -value })
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::i256;

    use super::*;
    use crate::datum::wide_quotient;

    /// Goal: every quotient of at most 38 digits is computed, and rounded. Method: numbers with all
    /// scales, compared with 256-bit arithmetic.
    #[test]
    fn quotients() {
        let numbers = [1, -3, 7, 125, 10_i128.pow(19), -(10_i128.pow(37)) - 1, 10_i128.pow(38) - 1];
        for (m, n) in (0..=38).flat_map(|m| (0..=38).map(move |n| (m, n))) {
            for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
                let wide = |scale: u8| {
                    let exponent = i32::from(n) + i32::from(scale) - i32::from(m);
                    wide_quotient(i256::from_i128(a), i256::from_i128(b), exponent)
                };
                match divide((a, m), (b, n)) {
                    Some(Datum::Decimal { unscaled, scale }) => {
                        assert_eq!(Some(unscaled), wide(scale), "{a}, {m} / {b}, {n} with {scale} digits");
                    }
                    found => assert_eq!((found, wide(0)), (None, None), "{a}, {m} / {b}, {n}"),
                }
            }
        }
    }
}
