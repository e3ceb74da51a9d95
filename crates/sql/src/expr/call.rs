//! Calls functions.

use std::cmp::Ordering;

use super::cast::as_double;
use super::eval::{Context, Val};
use super::{Function, age, analytic, arithmetic, letters, logic, made, pattern, regular, texts, time};
use crate::datum::{Datum, DatumRef, pow10, rescale, zoned_text};
use crate::error::{Error, Result};
use crate::sqlstate::{
    INTERNAL_ERROR, INVALID_ARGUMENT_FOR_WIDTH_BUCKET, INVALID_PARAMETER_VALUE, NUMERIC_VALUE_OUT_OF_RANGE,
    PROGRAM_LIMIT_EXCEEDED, SUBSTRING_ERROR, UNDEFINED_OBJECT,
};
use crate::syntax::quote_ident;

/// The longest text that a function may produce, in bytes.
const LONGEST: usize = 64 << 20;

/// Calls a function. Its arguments have the types of its signature. For a strict function, none of
/// them is NULL.
pub(super) fn call(function: Function, arguments: &[Val<'_>], context: &dyn Context) -> Result<Datum> {
    let value = |at: usize| arguments.get(at).map_or(DatumRef::Null, Val::get);
    let text = |at: usize| match value(at) {
        DatumRef::Text(text) => text,
        _ => "",
    };
    let int = |at: usize| match value(at) {
        DatumRef::Int(value) => i64::from(value),
        DatumRef::BigInt(value) => value,
        _ => 0,
    };
    let int_or = |at: usize, otherwise: i64| if arguments.len() > at { int(at) } else { otherwise };
    use Function as F;
    Ok(match function {
        F::Lower => Datum::Text(letters::lower(text(0))),
        F::Upper => Datum::Text(letters::upper(text(0))),
        F::InitCap => Datum::Text(letters::capitals(text(0))),
        F::Reverse => Datum::Text(text(0).chars().rev().collect()),
        F::Ascii => Datum::Int(text(0).chars().next().map_or(0, |c| c as i32)),
        F::Chr => match u32::try_from(int(0)).ok().filter(|&code| code != 0).and_then(char::from_u32) {
            Some(c) => Datum::Text(c.to_string()),
            None => return Err(Error::new(PROGRAM_LIMIT_EXCEEDED, "requested character not valid")),
        },
        F::Length => Datum::Int(text(0).chars().count() as i32),
        F::OctetLength => Datum::Int(match value(0) {
            DatumRef::Blob(bytes) => bytes.len() as i32,
            _ => text(0).len() as i32,
        }),
        F::BitLength => Datum::Int(match value(0) {
            DatumRef::Blob(bytes) => (bytes.len() * 8) as i32,
            _ => (text(0).len() * 8) as i32,
        }),
        F::Translate => Datum::Text(translate(text(0), text(1), text(2))),
        F::Overlay => overlay(value(0), value(1), int(2), arguments.get(3).map(|_| int(3)))?,
        F::RegularMatch { insensitive, negated } => {
            let regular = regular::Regular::of(text(1), regular::Options::insensitive(insensitive))?;
            Datum::Boolean(regular.is_match(text(0)) != negated)
        }
        F::SimilarPart => regular::similar_part(text(0), text(1), text(2))?,
        F::Like { insensitive } => {
            Datum::Boolean(super::like::like(text(0), text(1), Some('\\'), insensitive)?)
        }
        F::RegularLike => regular::like(text(0), text(1), text(2))?,
        F::RegularPart => regular::part(text(0), text(1))?,
        F::RegularCount => regular::count(text(0), text(1), int_or(2, 1), text(3))?,
        F::RegularSubstr => {
            regular::substr(text(0), text(1), (int_or(2, 1), int_or(3, 1)), text(4), int_or(5, 0))?
        }
        F::RegularInstr => {
            let places = (int_or(2, 1), int_or(3, 1), int_or(4, 0));
            regular::instr(text(0), text(1), places, text(5), int_or(6, 0))?
        }
        F::RegularReplace => match value(3) {
            DatumRef::Text(flags) => regular::replace(text(0), text(1), text(2), (1, None), flags)?,
            _ => {
                let n = if arguments.len() > 4 { Some(int(4)) } else { (arguments.len() > 3).then_some(1) };
                regular::replace(text(0), text(1), text(2), (int_or(3, 1), n), text(5))?
            }
        },
        F::JoinItems => made::join_items(arguments)?,
        F::ConcatWith => match arguments.split_first() {
            Some((separator, rest)) if !separator.is_null() => {
                let mut all = String::new();
                for (at, value) in rest.iter().filter(|value| !value.is_null()).enumerate() {
                    let (between, text) = (if at > 0 { separator.text() } else { "".into() }, value.text());
                    check_length(all.len().saturating_add(between.len()).saturating_add(text.len()))?;
                    all += &between;
                    all += &text;
                }
                Datum::Text(all)
            }
            _ => Datum::Null,
        },
        F::MakeDate => Datum::Date(made::date(int(0), int(1), int(2))?),
        F::MakeTime => Datum::Time(made::time(int(0), int(1), as_double(value(2)))?),
        F::MakeMoment => {
            let (day, time) = ((int(0), int(1), int(2)), (int(3), int(4), as_double(value(5))));
            Datum::Timestamp(made::moment(day, time)?)
        }
        F::MakeInterval => {
            let seconds = arguments.get(6).map_or(0.0, |_| as_double(value(6)));
            made::interval(std::array::from_fn(int), seconds)?
        }
        F::DateBin => made::bin(value(0), value(1), value(2))?,
        F::IsFinite => Datum::Boolean(true),
        F::Trim | F::TrimStart | F::TrimEnd => {
            Datum::Text(trim(function, text(0), arguments.get(1).map(|_| text(1))).to_owned())
        }
        F::Replace if text(1).is_empty() => Datum::Text(text(0).to_owned()),
        F::Replace => {
            let (from, to) = (text(1), text(2));
            if to.len() > from.len() {
                let longer = text(0).matches(from).count().saturating_mul(to.len() - from.len());
                check_length(text(0).len().saturating_add(longer))?;
            }
            Datum::Text(text(0).replace(from, to))
        }
        F::Position => Datum::Int(
            text(0)
                .find(text(1))
                .map_or(0, |at| text(0).get(..at).map_or(0, |before| before.chars().count()) as i32 + 1),
        ),
        F::StartsWith => Datum::Boolean(text(0).starts_with(text(1))),
        F::Left | F::Right => Datum::Text(side(function, text(0), int(1))),
        F::Repeat => {
            let times = usize::try_from(int(1)).unwrap_or(0);
            check_length(text(0).len().saturating_mul(times))?;
            Datum::Text(text(0).repeat(times))
        }
        F::Substr if matches!(value(0), DatumRef::Blob(_)) => {
            let DatumRef::Blob(bytes) = value(0) else { return Ok(Datum::Null) };
            let part = part(int(1), arguments.get(2).map(|_| int(2)))?;
            Datum::Blob(bytes.iter().copied().skip(part.0).take(part.1).collect())
        }
        F::Substr => substring(text(0), int(1), arguments.get(2).map(|_| int(2)))?,
        F::PadLeft | F::PadRight => {
            pad(function, text(0), int(1), arguments.get(2).map_or(" ", |_| text(2)))?
        }
        F::SplitPart => split_part(text(0), text(1), int(2))?,
        F::Concat => {
            let mut all = String::new();
            for value in arguments.iter().filter(|value| !value.is_null()) {
                let text = value.text();
                check_length(all.len().saturating_add(text.len()))?;
                all += &text;
            }
            Datum::Text(all)
        }
        F::Format => match texts::format(arguments)? {
            Some(text) => Datum::Text(text),
            None => Datum::Null,
        },
        F::Digest => Datum::Text(texts::md5(match value(0) {
            DatumRef::Blob(bytes) => bytes,
            _ => text(0).as_bytes(),
        })),
        F::QuoteIdent => Datum::Text(quote_ident(text(0))),
        F::QuoteNullable if value(0).is_null() => Datum::Text("NULL".to_owned()),
        F::QuoteLiteral | F::QuoteNullable => Datum::Text(texts::quote_literal(text(0))),
        F::TextOf | F::TextOfZoned => Datum::Text(match value(0) {
            DatumRef::Timestamp(at) => pattern::moment_text(at, function == F::TextOfZoned, text(1))?,
            DatumRef::Interval { months, days, micros } => pattern::span_text(months, days, micros, text(1))?,
            _ => {
                return Err(Error::new(
                    INTERNAL_ERROR,
                    "internal error: to_char got a value of an unexpected type",
                ));
            }
        }),
        F::TextOfNumber => Datum::Text(pattern::number_text(value(0), text(1))?),
        F::ToNumber => {
            let (unscaled, scale) = pattern::number_from(text(0), text(1))?;
            Datum::Decimal { unscaled, scale }
        }
        F::ToDate => Datum::Date(pattern::moment_from(text(0), text(1))?.div_euclid(time::DAY) as i32),
        F::ToTimestamp => Datum::Timestamp(match value(0) {
            DatumRef::Text(text) => pattern::moment_from(text, text_of(value(1)))?,
            seconds => time::from_seconds(as_double(seconds))?,
        }),
        F::ZonedText => Datum::Text(zoned_text(value(0))),
        F::Age => match (value(0), value(1)) {
            (DatumRef::Timestamp(later), DatumRef::Timestamp(earlier)) => age::age(later, earlier)?,
            _ => {
                return Err(Error::new(
                    INTERNAL_ERROR,
                    "internal error: age got a value of an unexpected type",
                ));
            }
        },
        F::JustifyDays | F::JustifyHours | F::JustifyInterval => match value(0) {
            DatumRef::Interval { months, days, micros } => match function {
                F::JustifyDays => age::justify_days(months, days, micros)?,
                F::JustifyHours => age::justify_hours(months, days, micros)?,
                _ => age::justify_interval(months, days, micros)?,
            },
            _ => return Err(Error::new(INTERNAL_ERROR, "no interval to be justified")),
        },
        F::Quotient => quotient(value(0), value(1))?,
        F::WidthBucket => {
            let numbers = [as_double(value(0)), as_double(value(1)), as_double(value(2))];
            Datum::Int(width_bucket(numbers, int(3))?)
        }
        F::Abs => match negative(value(0)) {
            true => arithmetic::negate(value(0))?,
            false => value(0).to_owned(),
        },
        F::Round | F::Floor | F::Ceil | F::Trunc | F::Sign => {
            round(function, value(0), arguments.get(1).map(|_| int(1)))?
        }
        F::Analytic(function) => Datum::Double(function.of(as_double(value(0)))?),
        F::Angle { in_degrees } => {
            let (y, x) = (as_double(value(0)), as_double(value(1)));
            Datum::Double(if in_degrees { analytic::angle_in_degrees(y, x) } else { analytic::angle(y, x) })
        }
        F::Logarithm => Datum::Double(analytic::logarithm(as_double(value(0)), as_double(value(1)))?),
        F::Factorial => Datum::Decimal { unscaled: analytic::factorial(int(0))?, scale: 0 },
        F::CommonDivisor | F::CommonMultiple => common(function, value(0), value(1))?,
        F::Greatest | F::Least => extreme(function, arguments),
        F::TransactionTime => Datum::Timestamp(context.transaction_time()),
        F::StatementTime => Datum::Timestamp(context.statement_time()),
        F::ClockTime => Datum::Timestamp(context.clock_time()),
        F::CurrentDate => Datum::Date(context.transaction_time().div_euclid(time::DAY) as i32),
        F::CurrentTime => Datum::Time(context.transaction_time().rem_euclid(time::DAY)),
        F::Random => Datum::Double((context.random() >> 11) as f64 / (1u64 << 53) as f64),
        F::NewUuid => Datum::Uuid(uuid(context)),
        F::NextValue => Datum::BigInt(context.next_value(text(0))?),
        F::CurrentValue => Datum::BigInt(context.current_value(Some(text(0)))?),
        F::LastValue => Datum::BigInt(context.current_value(None)?),
        F::SetValue => {
            Datum::BigInt(context.set_value(text(0), int(1), value(2) != DatumRef::Boolean(false))?)
        }
        F::Setting => match context.setting(text(0)) {
            Some(value) => Datum::Text(value),
            None => {
                let what = format!("unrecognized configuration parameter \"{}\"", text(0));
                return Err(Error::new(UNDEFINED_OBJECT, what));
            }
        },
        F::Extract => time::extract(text(0), value(1))?,
        F::DatePart => Datum::Double(as_double(time::extract(&text(0).to_lowercase(), value(1))?.borrow())),
        F::DateTrunc => match value(1) {
            DatumRef::Timestamp(at) => Datum::Timestamp(time::truncate(&text(0).to_lowercase(), at)?),
            DatumRef::Interval { months, days, micros } => {
                time::truncate_span(&text(0).to_lowercase(), months, days, micros)?
            }
            _ => {
                return Err(Error::new(
                    INTERNAL_ERROR,
                    "internal error: date_trunc got a value of an unexpected type",
                ));
            }
        },
    })
}

fn text_of(value: DatumRef<'_>) -> &str {
    match value {
        DatumRef::Text(text) => text,
        _ => "",
    }
}

/// Returns the integer part of a quotient.
fn quotient(left: DatumRef<'_>, right: DatumRef<'_>) -> Result<Datum> {
    let (DatumRef::Decimal { unscaled: a, scale: of_a }, DatumRef::Decimal { unscaled: b, scale: of_b }) =
        (left, right)
    else {
        return Err(Error::new(INTERNAL_ERROR, "internal error: div got a value of an unexpected type"));
    };
    if b == 0 {
        return Err(arithmetic::by_zero());
    }
    let scale = of_a.max(of_b);
    let whole = rescale(a, of_a, scale).zip(rescale(b, of_b, scale)).and_then(|(a, b)| a.checked_div(b));
    let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range");
    Ok(Datum::Decimal { unscaled: whole.ok_or_else(overflow)?, scale: 0 })
}

/// Divides a range into `count` equal buckets, and returns the number of the one that contains
/// `operand`: 0 before the range, `count` + 1 after it.
fn width_bucket([operand, low, high]: [f64; 3], count: i64) -> Result<i32> {
    let invalid = |what: &str| Err(Error::new(INVALID_ARGUMENT_FOR_WIDTH_BUCKET, what));
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
    i32::try_from(bucket).map_err(|_| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))
}

/// Errors: 54000 for a text that is too long.
pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes <= LONGEST {
        return Ok(());
    }
    Err(Error::new(PROGRAM_LIMIT_EXCEEDED, "requested length too large"))
}

fn trim<'t>(function: Function, text: &'t str, characters: Option<&str>) -> &'t str {
    let goes = |c: char| characters.map_or(c == ' ', |characters| characters.contains(c));
    match function {
        Function::TrimStart => text.trim_start_matches(goes),
        Function::TrimEnd => text.trim_end_matches(goes),
        _ => text.trim_matches(goes),
    }
}

/// Returns the first or the last `count` characters; for a negative count, all but that many.
fn side(function: Function, text: &str, count: i64) -> String {
    let length = text.chars().count() as i64;
    let count = if count < 0 { (length + count).max(0) } else { count.min(length) } as usize;
    match function {
        Function::Left => text.chars().take(count).collect(),
        _ => text.chars().skip(length as usize - count).collect(),
    }
}

/// Returns the number of characters to skip, and the number to take.
fn part(from: i64, count: Option<i64>) -> Result<(usize, usize)> {
    let end = match count {
        Some(count) if count < 0 => {
            return Err(Error::new(SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(count) => from.saturating_add(count),
        None => i64::MAX,
    };
    let start = from.max(1);
    let skip = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok((skip, usize::try_from(end.saturating_sub(start)).unwrap_or(0)))
}

fn substring(text: &str, from: i64, count: Option<i64>) -> Result<Datum> {
    let (skip, take) = part(from, count)?;
    Ok(Datum::Text(text.chars().skip(skip).take(take).collect()))
}

fn pad(function: Function, text: &str, length: i64, fill: &str) -> Result<Datum> {
    let length = usize::try_from(length).unwrap_or(0);
    // In characters, of up to four bytes.
    check_length(length.saturating_mul(fill.chars().map(char::len_utf8).max().unwrap_or(1)))?;
    let has = text.chars().count();
    if has >= length || fill.is_empty() {
        return Ok(Datum::Text(text.chars().take(length).collect()));
    }
    let fill: String = fill.chars().cycle().take(length - has).collect();
    Ok(Datum::Text(if function == Function::PadLeft { fill + text } else { text.to_owned() + &fill }))
}

fn split_part(text: &str, separator: &str, part: i64) -> Result<Datum> {
    let parts: Vec<&str> = if separator.is_empty() { vec![text] } else { text.split(separator).collect() };
    let at = match part {
        0 => return Err(Error::new(INVALID_PARAMETER_VALUE, "field position must not be zero")),
        1.. => usize::try_from(part - 1).ok(),
        _ => parts.len().checked_sub(part.unsigned_abs() as usize),
    };
    Ok(Datum::Text(at.and_then(|at| parts.get(at)).copied().unwrap_or_default().to_owned()))
}

fn negative(value: DatumRef<'_>) -> bool {
    match value {
        DatumRef::SmallInt(value) => value < 0,
        DatumRef::Int(value) => value < 0,
        DatumRef::BigInt(value) => value < 0,
        DatumRef::Decimal { unscaled, .. } => unscaled < 0,
        other => as_double(other).is_sign_negative(),
    }
}

fn round(function: Function, value: DatumRef<'_>, digits: Option<i64>) -> Result<Datum> {
    let DatumRef::Decimal { unscaled, scale } = value else {
        let value = as_double(value);
        return Ok(Datum::Double(match function {
            Function::Round => value.round_ties_even(),
            Function::Floor => value.floor(),
            Function::Ceil => value.ceil(),
            Function::Trunc => value.trunc(),
            // NaN is neither positive nor negative.
            _ if value > 0.0 => 1.0,
            _ if value < 0.0 => -1.0,
            _ => 0.0,
        }));
    };
    let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range");
    let digits = digits.unwrap_or(0).clamp(-38, 38);
    // A negative number of digits rounds to tens, hundreds and so on.
    let to = digits.max(0) as u8;
    let unit = pow10((-digits).max(0) as u32).ok_or_else(overflow)?;
    let floor = || {
        let unit = pow10(scale.into()).unwrap_or(i128::MAX);
        unscaled.div_euclid(unit)
    };
    let unscaled = match function {
        Function::Sign => unscaled.signum(),
        Function::Floor => floor(),
        Function::Ceil => -(-unscaled).div_euclid(pow10(scale.into()).unwrap_or(i128::MAX)),
        Function::Trunc if to >= scale && unit == 1 => rescale(unscaled, scale, to).ok_or_else(overflow)?,
        Function::Trunc => {
            let cut = pow10(u32::from(scale.saturating_sub(to)))
                .and_then(|cut| cut.checked_mul(unit))
                .ok_or_else(overflow)?;
            unscaled / cut * unit
        }
        _ if unit == 1 => rescale(unscaled, scale, to).ok_or_else(overflow)?,
        _ => match u8::try_from(i64::from(scale) - digits) {
            Ok(from) => {
                rescale(unscaled, from, 0).and_then(|units| units.checked_mul(unit)).ok_or_else(overflow)?
            }
            Err(_) => 0,
        },
    };
    Ok(Datum::Decimal { unscaled, scale: to })
}

/// Computes `gcd` and `lcm`. The result of numerics has the larger scale.
fn common(function: Function, left: DatumRef<'_>, right: DatumRef<'_>) -> Result<Datum> {
    let compute = |a, b, kind, least| match function {
        Function::CommonDivisor => analytic::common_divisor(a, b, kind, least),
        _ => analytic::common_multiple(a, b, kind, least),
    };
    let overflow = |kind: &str| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{kind} out of range"));
    Ok(match (left, right) {
        (DatumRef::Int(a), DatumRef::Int(b)) => {
            let value = compute(a.into(), b.into(), "integer", i32::MIN.into())?;
            Datum::Int(value.try_into().map_err(|_| overflow("integer"))?)
        }
        (DatumRef::BigInt(a), DatumRef::BigInt(b)) => {
            let value = compute(a.into(), b.into(), "bigint", i64::MIN.into())?;
            Datum::BigInt(value.try_into().map_err(|_| overflow("bigint"))?)
        }
        (DatumRef::Decimal { unscaled: a, scale: m }, DatumRef::Decimal { unscaled: b, scale: n }) => {
            let scale = m.max(n);
            let (a, b) = rescale(a, m, scale).zip(rescale(b, n, scale)).ok_or_else(|| overflow("numeric"))?;
            Datum::Decimal { unscaled: compute(a, b, "numeric", i128::MIN)?, scale }
        }
        _ => {
            return Err(Error::new(
                INTERNAL_ERROR,
                "internal error: gcd or lcm got a value of an unexpected type",
            ));
        }
    })
}

/// Replaces each character of `from` by the one at the same position in `to`, or removes it if
/// there is none.
fn translate(text: &str, from: &str, to: &str) -> String {
    let becomes = |c: char| match from.chars().position(|of| of == c) {
        Some(at) => to.chars().nth(at),
        None => Some(c),
    };
    text.chars().filter_map(becomes).collect()
}

/// Replaces a part of a text or of bytes. The part is as long as its replacement, unless `count` is
/// given.
fn overlay(value: DatumRef<'_>, by: DatumRef<'_>, from: i64, count: Option<i64>) -> Result<Datum> {
    if from <= 0 {
        return Err(Error::new(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    // The start of the text after the part. A negative length moves it before the part.
    let rest = |length: usize| from.saturating_add(count.unwrap_or(length as i64)).max(1);
    match (value, by) {
        (DatumRef::Blob(bytes), DatumRef::Blob(by)) => {
            let (skip, rest) = (from as usize - 1, rest(by.len()) as usize - 1);
            let head = bytes.iter().take(skip);
            Ok(Datum::Blob(head.chain(by).chain(bytes.iter().skip(rest)).copied().collect()))
        }
        _ => {
            let (text, by) = (text_of(value), text_of(by));
            let (skip, rest) = (from as usize - 1, rest(by.chars().count()) as usize - 1);
            let head = text.chars().take(skip);
            Ok(Datum::Text(head.chain(by.chars()).chain(text.chars().skip(rest)).collect()))
        }
    }
}

/// Returns the largest or the smallest argument. NULLs are ignored.
fn extreme(function: Function, arguments: &[Val<'_>]) -> Datum {
    let wanted = if function == Function::Greatest { Ordering::Greater } else { Ordering::Less };
    let mut best = DatumRef::Null;
    for value in arguments.iter().map(Val::get).filter(|value| !value.is_null()) {
        if best.is_null() || logic::compare(value, best) == Some(wanted) {
            best = value;
        }
    }
    best.to_owned()
}

/// Returns a random UUID, version 4.
fn uuid(context: &dyn Context) -> [u8; 16] {
    let high = context.random() & !0xf000 | 0x4000;
    let low = context.random() & !(0b11 << 62) | 0b10 << 62;
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}
