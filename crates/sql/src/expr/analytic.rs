//! Functions on floating-point numbers: roots, powers, logarithms and trigonometry, with
//! PostgreSQL's errors outside their domains.
//!
//! A numeric is computed as a double.

use crate::error::{Error, Result};
use crate::sqlstate::{
    INVALID_ARGUMENT_FOR_LOGARITHM, INVALID_ARGUMENT_FOR_POWER, NUMERIC_VALUE_OUT_OF_RANGE,
};

/// A function of one number. Those that end in `D` take or return degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Analytic {
    Acos,
    AcosD,
    Acosh,
    Asin,
    AsinD,
    Asinh,
    Atan,
    AtanD,
    Atanh,
    Cbrt,
    Cos,
    CosD,
    Cosh,
    Cot,
    CotD,
    Degrees,
    Exp,
    Ln,
    Log,
    Radians,
    Sin,
    SinD,
    Sinh,
    Sqrt,
    Tan,
    TanD,
    Tanh,
}

impl Analytic {
    /// Returns the function of a name; `None` for other names.
    pub fn named(name: &str) -> Option<Analytic> {
        use Analytic as A;
        Some(match name {
            "acos" => A::Acos,
            "acosd" => A::AcosD,
            "acosh" => A::Acosh,
            "asin" => A::Asin,
            "asind" => A::AsinD,
            "asinh" => A::Asinh,
            "atan" => A::Atan,
            "atand" => A::AtanD,
            "atanh" => A::Atanh,
            "cbrt" => A::Cbrt,
            "cos" => A::Cos,
            "cosd" => A::CosD,
            "cosh" => A::Cosh,
            "cot" => A::Cot,
            "cotd" => A::CotD,
            "degrees" => A::Degrees,
            "exp" => A::Exp,
            "ln" => A::Ln,
            "log" | "log10" => A::Log,
            "radians" => A::Radians,
            "sin" => A::Sin,
            "sind" => A::SinD,
            "sinh" => A::Sinh,
            "sqrt" => A::Sqrt,
            "tan" => A::Tan,
            "tand" => A::TanD,
            "tanh" => A::Tanh,
            _ => return None,
        })
    }

    /// Computes the function.
    ///
    /// Errors: 2201F for an undefined root and 2201E for an undefined logarithm; 22003 for other
    /// numbers outside the domain, and for results that are too large or too small.
    pub fn of(self, value: f64) -> Result<f64> {
        use Analytic as A;
        if value.is_nan() {
            return Ok(value);
        }
        self.check(value)?;
        Ok(match self {
            A::Acos => value.acos(),
            A::Acosh => value.acosh(),
            A::Asin => value.asin(),
            A::Asinh => value.asinh(),
            A::Atan => value.atan(),
            A::Atanh => value.atanh(),
            A::Cbrt => value.cbrt(),
            A::Cos => value.cos(),
            A::Cosh => value.cosh(),
            A::Cot => 1.0 / value.tan(),
            A::Exp => return bounded(value.exp(), value.is_finite()),
            A::Ln => value.ln(),
            A::Log => value.log10(),
            A::Sin => value.sin(),
            A::Sinh => value.sinh(),
            A::Sqrt => value.sqrt(),
            A::Tan => value.tan(),
            A::Tanh => value.tanh(),
            A::Degrees => return bounded(value.to_degrees(), value.is_finite() && value != 0.0),
            A::Radians => return bounded(value.to_radians(), value.is_finite() && value != 0.0),
            A::SinD => sine(value),
            A::CosD => sine(90.0 - value.abs() % 360.0),
            A::TanD => tangent(value),
            A::CotD => 1.0 / tangent(value),
            A::AsinD => in_degrees(value.asin()),
            A::AcosD => in_degrees(value.acos()),
            A::AtanD => in_degrees(value.atan()),
        })
    }

    /// Errors: as [`Analytic::of`], for numbers outside the domain.
    fn check(self, value: f64) -> Result<()> {
        use Analytic as A;
        match self {
            A::Sqrt if value < 0.0 => {
                Err(Error::new(INVALID_ARGUMENT_FOR_POWER, "cannot take square root of a negative number"))
            }
            A::Ln | A::Log if value == 0.0 => {
                Err(Error::new(INVALID_ARGUMENT_FOR_LOGARITHM, "cannot take logarithm of zero"))
            }
            A::Ln | A::Log if value < 0.0 => {
                let what = "cannot take logarithm of a negative number";
                Err(Error::new(INVALID_ARGUMENT_FOR_LOGARITHM, what))
            }
            A::Acos | A::AcosD | A::Asin | A::AsinD | A::Atanh if value.abs() > 1.0 => Err(undefined()),
            A::Acosh if value < 1.0 => Err(undefined()),
            A::Cos | A::CosD | A::Cot | A::CotD | A::Sin | A::SinD | A::Tan | A::TanD
                if value.is_infinite() =>
            {
                Err(undefined())
            }
            _ => Ok(()),
        }
    }
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
    in_degrees(y.atan2(x))
}

/// Converts to degrees, and rounds to an integer within the error of the angle.
fn in_degrees(angle: f64) -> f64 {
    let degrees = angle.to_degrees();
    let whole = degrees.round();
    if (degrees - whole).abs() < 1e-13 * whole.abs().max(1.0) { whole } else { degrees }
}

/// Returns the sine of an angle in degrees. It is exact for 30 degrees and for multiples of 90.
fn sine(degrees: f64) -> f64 {
    let (sign, degrees) = if degrees < 0.0 { (-1.0, -degrees) } else { (1.0, degrees) };
    let degrees = degrees % 360.0;
    let (sign, degrees) = if degrees > 180.0 { (-sign, degrees - 180.0) } else { (sign, degrees) };
    let degrees = if degrees > 90.0 { 180.0 - degrees } else { degrees };
    sign * match degrees {
        30.0 => 0.5,
        90.0 => 1.0,
        60.0.. => (90.0 - degrees).to_radians().cos(),
        _ => degrees.to_radians().sin(),
    }
}

/// Returns the tangent of an angle in degrees. It is exact for 45 degrees.
fn tangent(degrees: f64) -> f64 {
    let turned = degrees % 180.0;
    let (sign, turned) = if turned < 0.0 { (-1.0, -turned) } else { (1.0, turned) };
    match turned {
        0.0 => 0.0 * sign,
        45.0 => sign,
        90.0 => f64::INFINITY * sign,
        135.0 => -sign,
        _ => sign * sine(turned) / sine(90.0 - turned),
    }
}

/// Returns the logarithm of `value` to a base.
///
/// Errors: 2201E for numbers that have none, 22012 for base 1.
pub(super) fn logarithm(base: f64, value: f64) -> Result<f64> {
    let (base, value) = (Analytic::Ln.of(base)?, Analytic::Ln.of(value)?);
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
