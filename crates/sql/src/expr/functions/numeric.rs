//! Functions on numbers that are exact for integers and numerics.

use cairn_table::schema::ColumnType;

use super::Kind::{BigInt, Double, Integer, Numeric, Real, SmallInt};
use super::{Body, Kind};
use super::{Call, Form, Function, function};
use crate::datum::{Datum, DatumRef, pow10, rescale};
use crate::error::{Error, Result};
use crate::expr::cast::as_double;
use crate::expr::operator::Operator;
use crate::expr::{analytic, arithmetic};
use crate::sqlstate::{INVALID_ARGUMENT_FOR_WIDTH_BUCKET, NUMERIC_VALUE_OUT_OF_RANGE};

pub(super) static ROWS: &[Function] = &[
    abs(SmallInt).doc("Absolute value.", &[("abs((-5)::smallint)", "5")]),
    abs(Integer).doc("Absolute value.", &[("abs(-17)", "17"), ("abs((-2147483648)::integer)", "22003")]),
    abs(BigInt).doc("Absolute value.", &[("abs((-17)::bigint)", "17")]),
    abs(Numeric).refined(first).doc("Absolute value.", &[("abs(-17.4)", "17.4")]),
    abs(Real).doc("Absolute value.", &[("abs((-1.5)::real)", "1.5")]),
    abs(Double).doc("Absolute value.", &[("abs((-17.4)::float8)", "17.4")]),
    rounding("ceil", Numeric, |c| round(c, Round::Up)).aliases(&["ceiling"]).doc(
        "Nearest integer that is not smaller.",
        &[("ceil(42.2)", "43"), ("ceil(-42.8)", "-42"), ("ceiling(95.3)", "96")],
    ),
    rounding("ceil", Double, |c| round(c, Round::Up))
        .aliases(&["ceiling"])
        .doc("Nearest integer that is not smaller.", &[("ceil((-42.8)::float8)", "-42")]),
    function("div", &[Numeric, Numeric], Numeric, div).doc(
        "Quotient without its fraction.",
        &[("div(9, 4)", "2"), ("div(-7.5, 2)", "-3"), ("div(1, 0)", "22012")],
    ),
    function("factorial", &[BigInt], Numeric, |c| {
        Ok(Datum::Decimal { unscaled: analytic::factorial(c.int(0))?, scale: 0 })
    })
    .doc("Factorial.", &[("factorial(5)", "120"), ("factorial(-1)", "22003")]),
    rounding("floor", Numeric, |c| round(c, Round::Down))
        .doc("Nearest integer that is not larger.", &[("floor(42.8)", "42"), ("floor(-42.8)", "-43")]),
    rounding("floor", Double, |c| round(c, Round::Down))
        .doc("Nearest integer that is not larger.", &[("floor((-42.8)::float8)", "-43")]),
    divisor("gcd", Integer, gcd).doc("Greatest common divisor.", &[("gcd(1071, 462)", "21")]),
    divisor("gcd", BigInt, gcd).doc("Greatest common divisor.", &[("gcd(1071::bigint, 462)", "21")]),
    divisor("gcd", Numeric, gcd)
        .refined(larger_scale)
        .doc("Greatest common divisor.", &[("gcd(1.5, 2.25)", "0.75")]),
    divisor("lcm", Integer, lcm).doc(
        "Least common multiple.",
        &[("lcm(1071, 462)", "23562"), ("lcm(2147483647, 2147483646)", "22003")],
    ),
    divisor("lcm", BigInt, lcm).doc("Least common multiple.", &[("lcm(1071::bigint, 462)", "23562")]),
    divisor("lcm", Numeric, lcm)
        .refined(larger_scale)
        .doc("Least common multiple.", &[("lcm(1.5, 2.25)", "4.50")]),
    modulo(SmallInt).doc("Remainder.", &[("mod(9::smallint, 4::smallint)", "1")]),
    modulo(Integer)
        .doc("Remainder, with the sign of the dividend.", &[("mod(9, 4)", "1"), ("mod(-9, 4)", "-1")]),
    modulo(BigInt).doc("Remainder.", &[("mod(9::bigint, 4)", "1")]),
    modulo(Numeric).doc("Remainder.", &[("mod(9.5, 4)", "1.5"), ("mod(1, 0)", "22012")]),
    rounding("round", Numeric, |c| round(c, Round::Nearest))
        .doc("Nearest integer; halves away from zero.", &[("round(42.4)", "42"), ("round(-2.5)", "-3")]),
    rounding("round", Double, |c| round(c, Round::Nearest)).doc(
        "Nearest integer; halves to the even one.",
        &[("round(2.5::float8)", "2"), ("round(3.5::float8)", "4")],
    ),
    function("round", &[Numeric, Integer], Numeric, |c| round(c, Round::Nearest))
        .refined(first)
        .native()
        .doc(
            "Rounds to digits after the point; a negative number of them rounds to tens, hundreds and so on.",
            &[("round(42.4382, 2)", "42.44"), ("round(1234.56, -1)", "1230")],
        ),
    rounding("sign", Numeric, |c| round(c, Round::Sign)).own().doc("-1, 0 or 1.", &[("sign(-8.4)", "-1")]),
    rounding("sign", Double, |c| round(c, Round::Sign))
        .own()
        .doc("-1, 0 or 1.", &[("sign(8.4::float8)", "1"), ("sign('nan'::float8)", "0")]),
    rounding("trunc", Numeric, |c| round(c, Round::TowardsZero))
        .doc("Without the fraction.", &[("trunc(42.8)", "42"), ("trunc(-42.8)", "-42")]),
    rounding("trunc", Double, |c| round(c, Round::TowardsZero))
        .doc("Without the fraction.", &[("trunc((-42.8)::float8)", "-42")]),
    function("trunc", &[Numeric, Integer], Numeric, |c| round(c, Round::TowardsZero))
        .refined(first)
        .native()
        .doc("Cuts digits after the point.", &[("trunc(42.4382, 2)", "42.43"), ("trunc(1289, -2)", "1200")]),
    function("width_bucket", &[Double, Double, Double, Integer], Integer, |c| {
        Ok(Datum::Int(width_bucket([c.double(0), c.double(1), c.double(2)], c.int(3))?))
    })
    .doc(
        "Number of the bucket of a value, of equal ones between two bounds; 0 before them, n + 1 after them.",
        &[("width_bucket(5.35, 0.024, 10.06, 5)", "3"), ("width_bucket(1, 0, 1, 0)", "2201G")],
    ),
];

const fn abs(kind: Kind) -> Function {
    let arguments: &'static [Kind] = match kind {
        SmallInt => &[SmallInt],
        Integer => &[Integer],
        BigInt => &[BigInt],
        Numeric => &[Numeric],
        Real => &[Real],
        _ => &[Double],
    };
    let body = |c: &Call<'_>| match is_negative(c.value(0)) {
        true => arithmetic::negate(c.value(0)),
        false => Ok(c.value(0).to_owned()),
    };
    function("abs", arguments, kind, body).native()
}

const fn rounding(name: &'static str, kind: Kind, body: fn(&Call<'_>) -> Result<Datum>) -> Function {
    let arguments: &'static [Kind] = match kind {
        Numeric => &[Numeric],
        _ => &[Double],
    };
    function(name, arguments, kind, body).native()
}

const fn divisor(name: &'static str, kind: Kind, body: fn(&Call<'_>) -> Result<Datum>) -> Function {
    let arguments: &'static [Kind] = match kind {
        Integer => &[Integer, Integer],
        BigInt => &[BigInt, BigInt],
        _ => &[Numeric, Numeric],
    };
    function(name, arguments, kind, body)
}

/// `mod(a, b)` is compiled as `a % b`, on the general path as well.
const fn modulo(kind: Kind) -> Function {
    let arguments: &'static [Kind] = match kind {
        SmallInt => &[SmallInt, SmallInt],
        Integer => &[Integer, Integer],
        BigInt => &[BigInt, BigInt],
        _ => &[Numeric, Numeric],
    };
    Function::new("mod", arguments, kind, Body::Form(Form::Operator(Operator::Modulo, "%"))).native()
}

impl Function {
    /// The opposite of [`Function::native`].
    const fn own(self) -> Self {
        Function { general: super::General::Own, ..self }
    }
}

/// The result has the type of the first argument.
fn first(arguments: &[ColumnType]) -> ColumnType {
    arguments.first().cloned().unwrap_or(ColumnType::decimal(38, 0))
}

fn larger_scale(arguments: &[ColumnType]) -> ColumnType {
    let scales = arguments.iter().filter_map(|kind| kind.decimal).map(|(_, scale)| scale);
    ColumnType::decimal(38, scales.max().unwrap_or(0))
}

fn out_of_range(kind: &str) -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range"))
}

fn is_negative(value: DatumRef<'_>) -> bool {
    match value {
        DatumRef::SmallInt(value) => value < 0,
        DatumRef::Int(value) => value < 0,
        DatumRef::BigInt(value) => value < 0,
        DatumRef::Decimal { unscaled, .. } => unscaled < 0,
        other => as_double(other).is_sign_negative(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Nearest,
    Up,
    Down,
    TowardsZero,
    Sign,
}

/// Rounds a number, to a number of fractional digits if one is given.
fn round(c: &Call<'_>, how: Round) -> Result<Datum> {
    let DatumRef::Decimal { unscaled, scale } = c.value(0) else {
        return Ok(Datum::Double(round_double(c.double(0), how)));
    };
    let overflow = || out_of_range("numeric");
    let digits = c.int_or(1, 0).clamp(-38, 38);
    // A negative number of digits rounds to tens, hundreds and so on.
    let to = digits.max(0) as u8;
    let unit = pow10((-digits).max(0) as u32).ok_or_else(overflow)?;
    let one = || pow10(scale.into()).unwrap_or(i128::MAX);
    let unscaled = match how {
        Round::Sign => unscaled.signum(),
        Round::Down => unscaled.div_euclid(one()),
        Round::Up => -(-unscaled).div_euclid(one()),
        Round::TowardsZero if to >= scale && unit == 1 => {
            rescale(unscaled, scale, to).ok_or_else(overflow)?
        }
        Round::TowardsZero => {
            let cut = pow10(u32::from(scale.saturating_sub(to)))
                .and_then(|cut| cut.checked_mul(unit))
                .ok_or_else(overflow)?;
            unscaled / cut * unit
        }
        Round::Nearest if unit == 1 => rescale(unscaled, scale, to).ok_or_else(overflow)?,
        Round::Nearest => match u8::try_from(i64::from(scale) - digits) {
            Ok(from) => {
                rescale(unscaled, from, 0).and_then(|units| units.checked_mul(unit)).ok_or_else(overflow)?
            }
            Err(_) => 0,
        },
    };
    Ok(Datum::Decimal { unscaled, scale: to })
}

fn round_double(value: f64, how: Round) -> f64 {
    match how {
        Round::Nearest => value.round_ties_even(),
        Round::Down => value.floor(),
        Round::Up => value.ceil(),
        Round::TowardsZero => value.trunc(),
        // NaN is neither positive nor negative.
        Round::Sign if value > 0.0 => 1.0,
        Round::Sign if value < 0.0 => -1.0,
        Round::Sign => 0.0,
    }
}

/// Returns the integer part of a quotient.
fn div(c: &Call<'_>) -> Result<Datum> {
    let (DatumRef::Decimal { unscaled: a, scale: m }, DatumRef::Decimal { unscaled: b, scale: n }) =
        (c.value(0), c.value(1))
    else {
        return Err(c.unexpected("div"));
    };
    if b == 0 {
        return Err(arithmetic::by_zero());
    }
    let scale = m.max(n);
    let whole = rescale(a, m, scale).zip(rescale(b, n, scale)).and_then(|(a, b)| a.checked_div(b));
    Ok(Datum::Decimal { unscaled: whole.ok_or_else(|| out_of_range("numeric"))?, scale: 0 })
}

/// Divides a range into `count` equal buckets, and returns the number of the one that contains
/// `operand`: 0 before the range, `count` + 1 after it.
fn width_bucket([operand, low, high]: [f64; 3], count: i64) -> Result<i32> {
    let invalid = |message: &str| Err(Error::new(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message));
    if count <= 0 {
        return invalid("count must be greater than zero");
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return invalid("operand, lower bound, and upper bound cannot be NaN");
    }
    if !low.is_finite() || !high.is_finite() {
        return invalid("lower and upper bounds must be finite");
    }
    if low == high {
        return invalid("lower bound cannot equal upper bound");
    }
    let (before, behind) =
        if low < high { (operand < low, operand >= high) } else { (operand > low, operand <= high) };
    let bucket = match (before, behind) {
        (true, _) => 0,
        (_, true) => count + 1,
        // Computed with halves, because the width of the range may exceed a double.
        _ => {
            let share = (operand / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            ((share * count as f64) as i64).min(count - 1) + 1
        }
    };
    i32::try_from(bucket).map_err(|_| out_of_range("integer"))
}

fn gcd(c: &Call<'_>) -> Result<Datum> {
    common(c, analytic::common_divisor)
}

fn lcm(c: &Call<'_>) -> Result<Datum> {
    common(c, analytic::common_multiple)
}

/// Computes on integers of any width, and on numerics, whose result has the larger scale. `compute`
/// takes the numbers, the name of their type and its least value.
fn common(c: &Call<'_>, compute: fn(i128, i128, &str, i128) -> Result<i128>) -> Result<Datum> {
    Ok(match (c.value(0), c.value(1)) {
        (DatumRef::Int(a), DatumRef::Int(b)) => {
            let value = compute(a.into(), b.into(), "integer", i32::MIN.into())?;
            Datum::Int(value.try_into().map_err(|_| out_of_range("integer"))?)
        }
        (DatumRef::BigInt(a), DatumRef::BigInt(b)) => {
            let value = compute(a.into(), b.into(), "bigint", i64::MIN.into())?;
            Datum::BigInt(value.try_into().map_err(|_| out_of_range("bigint"))?)
        }
        (DatumRef::Decimal { unscaled: a, scale: m }, DatumRef::Decimal { unscaled: b, scale: n }) => {
            let scale = m.max(n);
            let same = rescale(a, m, scale).zip(rescale(b, n, scale));
            let (a, b) = same.ok_or_else(|| out_of_range("numeric"))?;
            Datum::Decimal { unscaled: compute(a, b, "numeric", i128::MIN)?, scale }
        }
        _ => return Err(c.unexpected("gcd or lcm")),
    })
}
