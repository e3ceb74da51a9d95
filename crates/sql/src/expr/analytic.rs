//! Functions on floating-point numbers: roots, powers, logarithms and trigonometry, with
//! PostgreSQL's errors outside their domains.
//!
//! A numeric is computed as a double. NaN gives NaN. Functions whose names end in `d` take or
//! return degrees. Errors: 22003 for numbers outside the domain, and for results that are too large
//! or too small.

use super::{degrees, hyperbolic};
use crate::error::{Error, Result};
use crate::sqlstate::{
    INVALID_ARGUMENT_FOR_LOGARITHM, INVALID_ARGUMENT_FOR_POWER, NUMERIC_VALUE_OUT_OF_RANGE,
};

/// Defines functions that are defined for all numbers, of the methods of `f64`.
macro_rules! total {
    ($($name:ident),+) => { $(pub(super) fn $name(x: f64) -> Result<f64> { Ok(x.$name()) })+ };
}

total!(atan, cbrt, cosh, sinh, tanh);

pub(super) fn acos(x: f64) -> Result<f64> {
    unit(x).map(f64::acos)
}

pub(super) fn acosd(x: f64) -> Result<f64> {
    unit(x).map(degrees::arc_cosine)
}

pub(super) fn acosh(x: f64) -> Result<f64> {
    if x < 1.0 { Err(undefined()) } else { Ok(hyperbolic::acosh(x)) }
}

pub(super) fn asin(x: f64) -> Result<f64> {
    unit(x).map(f64::asin)
}

pub(super) fn asind(x: f64) -> Result<f64> {
    unit(x).map(degrees::arc_sine)
}

pub(super) fn asinh(x: f64) -> Result<f64> {
    Ok(hyperbolic::asinh(x))
}

pub(super) fn atand(x: f64) -> Result<f64> {
    Ok(degrees::arc_tangent(x))
}

pub(super) fn atanh(x: f64) -> Result<f64> {
    unit(x).map(hyperbolic::atanh)
}

pub(super) fn cos(x: f64) -> Result<f64> {
    finite(x).map(f64::cos)
}

pub(super) fn cosd(x: f64) -> Result<f64> {
    finite(x).map(degrees::cosine)
}

pub(super) fn cot(x: f64) -> Result<f64> {
    finite(x).map(|x| 1.0 / x.tan())
}

pub(super) fn cotd(x: f64) -> Result<f64> {
    finite(x).map(degrees::cotangent)
}

pub(super) fn degrees(x: f64) -> Result<f64> {
    bounded(degrees::to_degrees(x), x.is_finite() && x != 0.0)
}

pub(super) fn exp(x: f64) -> Result<f64> {
    bounded(x.exp(), x.is_finite())
}

pub(super) fn ln(x: f64) -> Result<f64> {
    positive(x).map(f64::ln)
}

pub(super) fn log10(x: f64) -> Result<f64> {
    positive(x).map(f64::log10)
}

pub(super) fn radians(x: f64) -> Result<f64> {
    bounded(degrees::to_radians(x), x.is_finite() && x != 0.0)
}

pub(super) fn sin(x: f64) -> Result<f64> {
    finite(x).map(f64::sin)
}

pub(super) fn sind(x: f64) -> Result<f64> {
    finite(x).map(degrees::sine)
}

/// Errors: 2201F for a negative number.
pub(super) fn sqrt(x: f64) -> Result<f64> {
    if x < 0.0 {
        let message = "cannot take square root of a negative number";
        return Err(Error::new(INVALID_ARGUMENT_FOR_POWER, message));
    }
    Ok(x.sqrt())
}

pub(super) fn tan(x: f64) -> Result<f64> {
    finite(x).map(f64::tan)
}

pub(super) fn tand(x: f64) -> Result<f64> {
    finite(x).map(degrees::tangent)
}

/// Returns a number that has an arc sine. NaN is one.
///
/// Errors: 22003.
fn unit(x: f64) -> Result<f64> {
    if x.abs() > 1.0 { Err(undefined()) } else { Ok(x) }
}

/// Returns a number that has a sine. NaN is one.
///
/// Errors: 22003.
fn finite(x: f64) -> Result<f64> {
    if x.is_infinite() { Err(undefined()) } else { Ok(x) }
}

/// Returns a number that has a logarithm. NaN is one.
///
/// Errors: 2201E.
fn positive(x: f64) -> Result<f64> {
    let invalid = |message: &str| Err(Error::new(INVALID_ARGUMENT_FOR_LOGARITHM, message));
    if x == 0.0 {
        return invalid("cannot take logarithm of zero");
    }
    if x < 0.0 {
        return invalid("cannot take logarithm of a negative number");
    }
    Ok(x)
}

fn undefined() -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// Errors: 22003 if a finite operand gives an infinite result or underflows to zero.
fn bounded(result: f64, is_finite: bool) -> Result<f64> {
    match result {
        _ if !is_finite => Ok(result),
        _ if result.is_infinite() => Err(super::too_large()),
        0.0 => Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")),
        result => Ok(result),
    }
}

/// Returns the angle whose tangent is `y` / `x`, in radians.
pub(super) fn angle(y: f64, x: f64) -> f64 {
    y.atan2(x)
}

/// Like [`angle`], in degrees.
pub(super) fn angle_in_degrees(y: f64, x: f64) -> f64 {
    degrees::angle(y, x)
}

/// Returns the logarithm of `value` to a base.
///
/// Errors: 2201E for numbers that have none, 22012 for base 1.
pub(super) fn logarithm(base: f64, value: f64) -> Result<f64> {
    let (base, value) = (ln(base)?, ln(value)?);
    if base == 0.0 { Err(super::arithmetic::by_zero()) } else { Ok(value / base) }
}

/// Returns the greatest common divisor.
///
/// Errors: 22003 if it does not fit between `least` and its opposite.
pub(super) fn common_divisor(a: i128, b: i128, kind: &str, least: i128) -> Result<i128> {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    fits(i128::try_from(a).ok(), kind, least)
}

/// Returns the least common multiple.
///
/// Errors: as [`common_divisor`].
pub(super) fn common_multiple(a: i128, b: i128, kind: &str, least: i128) -> Result<i128> {
    if a == 0 || b == 0 {
        return Ok(0);
    }
    let divisor = common_divisor(a, b, kind, i128::MIN)?;
    fits((a / divisor).checked_mul(b).and_then(i128::checked_abs), kind, least)
}

fn fits(value: Option<i128>, kind: &str, least: i128) -> Result<i128> {
    let fits = value.filter(|value| least == i128::MIN || *value < -least);
    fits.ok_or_else(|| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range")))
}

/// Returns the factorial.
///
/// Errors: 22003 for a negative number, and for results of more than 38 digits.
pub(super) fn factorial(of: i64) -> Result<i128> {
    if of < 0 {
        let what = "factorial of a negative number is undefined";
        return Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, what));
    }
    let product = (2..=i128::from(of)).try_fold(1_i128, |product, by| product.checked_mul(by));
    product.ok_or_else(|| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format"))
}
