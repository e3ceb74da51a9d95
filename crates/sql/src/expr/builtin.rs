//! The functions of the direct path, by name and types of arguments.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::analytic::Analytic;
use super::cast::rank;

/// A function. It is PostgreSQL's of the same name, unless a comment says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Age,
    /// A function of one floating-point number.
    Analytic(Analytic),
    /// `atan2`, or `atan2d`.
    Angle {
        in_degrees: bool,
    },
    Ascii,
    BitLength,
    Ceil,
    Chr,
    ClockTime,
    /// `gcd`.
    CommonDivisor,
    /// `lcm`.
    CommonMultiple,
    Concat,
    ConcatWith,
    CurrentDate,
    CurrentTime,
    CurrentValue,
    DateBin,
    DatePart,
    DateTrunc,
    Digest,
    Extract,
    Factorial,
    Floor,
    Format,
    Greatest,
    InitCap,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
    IsFinite,
    /// Joins the items of an array. This path knows arrays only in their text form.
    JoinItems,
    LastValue,
    Least,
    Left,
    Length,
    /// With backslash as the escape character.
    Like {
        insensitive: bool,
    },
    /// `log` with a base.
    Logarithm,
    Lower,
    MakeDate,
    MakeInterval,
    MakeTime,
    /// `make_timestamp`.
    MakeMoment,
    NewUuid,
    NextValue,
    OctetLength,
    Overlay,
    PadLeft,
    PadRight,
    Position,
    Quotient,
    QuoteIdent,
    QuoteLiteral,
    QuoteNullable,
    Random,
    /// `a ~ b` and its variants.
    RegularMatch {
        insensitive: bool,
        negated: bool,
    },
    RegularCount,
    RegularInstr,
    RegularLike,
    /// `substring(a FROM b)`.
    RegularPart,
    RegularReplace,
    RegularSubstr,
    Repeat,
    Replace,
    Reverse,
    Right,
    Round,
    SetValue,
    Setting,
    Sign,
    /// `substring(a SIMILAR b ESCAPE c)`.
    SimilarPart,
    SplitPart,
    StartsWith,
    StatementTime,
    Substr,
    /// `to_char` of a timestamp without a time zone, or an interval.
    TextOf,
    TextOfNumber,
    /// `to_char` of a timestamp with a time zone.
    TextOfZoned,
    ToDate,
    ToNumber,
    /// With a pattern, or from seconds since 1970.
    ToTimestamp,
    /// `transaction_timestamp`, `now`.
    TransactionTime,
    Translate,
    Trim,
    TrimEnd,
    TrimStart,
    Trunc,
    Upper,
    WidthBucket,
    /// The text of a timestamp with a time zone.
    ZonedText,
}

impl Function {
    /// Whether each call may return another value.
    pub fn is_volatile(self) -> bool {
        use Function as F;
        matches!(
            self,
            F::ClockTime
                | F::CurrentValue
                | F::LastValue
                | F::NewUuid
                | F::NextValue
                | F::Random
                | F::SetValue
        )
    }

    /// Whether the value is constant within a statement.
    pub fn is_stable(self) -> bool {
        use Function as F;
        matches!(self, F::TransactionTime | F::StatementTime | F::CurrentDate | F::CurrentTime | F::Setting)
    }

    /// Whether the result is NULL if an argument is.
    pub fn is_strict(self) -> bool {
        !self.takes_any_number() && self != Function::QuoteNullable
    }

    pub fn takes_any_number(self) -> bool {
        use Function as F;
        matches!(self, F::Concat | F::ConcatWith | F::Format | F::Greatest | F::JoinItems | F::Least)
    }
}

/// A function with the types of its arguments and of its result.
pub(super) struct Signature {
    pub function: Function,
    pub arguments: Vec<ColumnType>,
    pub result: ColumnType,
}

/// Resolves a call with arguments of these types; a type is `None` if it is still open. Returns
/// `None` if this path has no such function.
pub(super) fn resolve(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    by_text(name, given)
        .or_else(|| by_pattern(name, given))
        .or_else(|| by_number(name, given))
        .or_else(|| by_regular(name, given))
        .or_else(|| made(name, given))
        .or_else(|| by_time(name, given))
        .or_else(|| of_session(name, given))
}

fn signature(function: Function, arguments: &[Type], result: Type) -> Option<Signature> {
    let arguments = arguments.iter().map(|&kind| kind.into()).collect();
    Some(Signature { function, arguments, result: result.into() })
}

fn text_like(kind: &Option<ColumnType>) -> bool {
    kind.as_ref().is_none_or(|kind| kind.kind == Type::Text)
}

fn whole(kind: &Option<ColumnType>) -> bool {
    kind.as_ref().is_none_or(|kind| matches!(kind.kind, Type::SmallInt | Type::Int))
}

fn by_text(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Blob, Boolean, Int, Text};
    let texts = given.iter().all(text_like);
    let is_bytes = |kind: &Option<ColumnType>| kind.as_ref().is_some_and(|kind| kind.kind == Blob);
    let is_blob = matches!(given, [kind] if is_bytes(kind));
    let text_then_numbers = |numbers: usize| {
        given.len() == numbers + 1 && given.first().is_some_and(text_like) && given.iter().skip(1).all(whole)
    };
    match (name, given.len()) {
        ("lower", 1) if texts => signature(Function::Lower, &[Text], Text),
        ("upper", 1) if texts => signature(Function::Upper, &[Text], Text),
        ("initcap", 1) if texts => signature(Function::InitCap, &[Text], Text),
        ("reverse", 1) if texts => signature(Function::Reverse, &[Text], Text),
        ("ascii", 1) if texts => signature(Function::Ascii, &[Text], Int),
        ("chr", 1) if given.iter().all(whole) => signature(Function::Chr, &[Int], Text),
        ("length" | "char_length" | "character_length", 1) if texts => {
            signature(Function::Length, &[Text], Int)
        }
        ("length" | "octet_length", 1) if is_blob => signature(Function::OctetLength, &[Blob], Int),
        ("octet_length", 1) if texts => signature(Function::OctetLength, &[Text], Int),
        ("bit_length", 1) if is_blob => signature(Function::BitLength, &[Blob], Int),
        ("bit_length", 1) if texts => signature(Function::BitLength, &[Text], Int),
        ("translate", 3) if texts => signature(Function::Translate, &[Text, Text, Text], Text),
        ("overlay", 3 | 4) if given.iter().take(2).all(text_like) && given.iter().skip(2).all(whole) => {
            signature(Function::Overlay, [Text, Text, Int, Int].get(..given.len())?, Text)
        }
        ("overlay", 3 | 4) if given.iter().take(2).all(is_bytes) && given.iter().skip(2).all(whole) => {
            signature(Function::Overlay, [Blob, Blob, Int, Int].get(..given.len())?, Blob)
        }
        ("trim" | "btrim", 1) if texts => signature(Function::Trim, &[Text], Text),
        ("btrim", 2) if texts => signature(Function::Trim, &[Text, Text], Text),
        ("ltrim", 1) if texts => signature(Function::TrimStart, &[Text], Text),
        ("ltrim", 2) if texts => signature(Function::TrimStart, &[Text, Text], Text),
        ("rtrim", 1) if texts => signature(Function::TrimEnd, &[Text], Text),
        ("rtrim", 2) if texts => signature(Function::TrimEnd, &[Text, Text], Text),
        ("replace", 3) if texts => signature(Function::Replace, &[Text, Text, Text], Text),
        ("strpos", 2) if texts => signature(Function::Position, &[Text, Text], Int),
        ("starts_with", 2) if texts => signature(Function::StartsWith, &[Text, Text], Boolean),
        ("left", 2) if text_then_numbers(1) => signature(Function::Left, &[Text, Int], Text),
        ("right", 2) if text_then_numbers(1) => signature(Function::Right, &[Text, Int], Text),
        ("repeat", 2) if text_then_numbers(1) => signature(Function::Repeat, &[Text, Int], Text),
        // Untyped literals are patterns.
        ("substr" | "substring", 2)
            if text_then_numbers(1)
                && !(name == "substring" && given.get(1).is_some_and(Option::is_none)) =>
        {
            signature(Function::Substr, &[Text, Int], Text)
        }
        ("substr" | "substring", 3)
            if text_then_numbers(2)
                && !(name == "substring" && given.iter().skip(1).all(Option::is_none)) =>
        {
            signature(Function::Substr, &[Text, Int, Int], Text)
        }
        ("lpad" | "rpad", 2 | 3) => {
            let function = if name == "lpad" { Function::PadLeft } else { Function::PadRight };
            let fits =
                text_like(given.first()?) && whole(given.get(1)?) && given.get(2).is_none_or(text_like);
            let arguments = [Text, Int, Text];
            fits.then(|| signature(function, arguments.get(..given.len())?, Text))?
        }
        ("split_part", 3) => {
            let fits = text_like(given.first()?) && text_like(given.get(1)?) && whole(given.get(2)?);
            fits.then(|| signature(Function::SplitPart, &[Text, Text, Int], Text))?
        }
        ("substr" | "substring", 2 | 3)
            if given.first().is_some_and(is_bytes) && given.iter().skip(1).all(whole) =>
        {
            signature(Function::Substr, [Blob, Int, Int].get(..given.len())?, Blob)
        }
        // An array is its text here.
        ("array_to_string", 2 | 3) if texts => {
            signature(Function::JoinItems, [Text, Text, Text].get(..given.len())?, Text)
        }
        ("md5", 1) if texts => signature(Function::Digest, &[Text], Text),
        ("md5", 1) if is_blob => signature(Function::Digest, &[Blob], Text),
        ("quote_ident", 1) if texts => signature(Function::QuoteIdent, &[Text], Text),
        ("quote_literal", 1) => signature(Function::QuoteLiteral, &[Text], Text),
        ("quote_nullable", 1) => signature(Function::QuoteNullable, &[Text], Text),
        // Booleans are written as their columns are, not as a cast would.
        ("concat", 1..) | ("format" | "concat_ws", 1..) if name == "concat" || text_like(given.first()?) => {
            Some(Signature {
                function: match name {
                    "concat" => Function::Concat,
                    "format" => Function::Format,
                    _ => Function::ConcatWith,
                },
                arguments: given
                    .iter()
                    .map(
                        |kind| {
                            if kind.as_ref().is_some_and(|kind| kind.kind == Boolean) {
                                Boolean
                            } else {
                                Text
                            }
                        },
                    )
                    .map(ColumnType::new)
                    .collect(),
                result: Text.into(),
            })
        }
        _ => None,
    }
}

/// Functions that parse or format values by patterns.
fn by_pattern(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Date, Double, Interval, Text, Timestamp};
    match (name, given) {
        ("to_char", [Some(kind), pattern]) if text_like(pattern) => {
            let (function, argument) = match kind.kind {
                Timestamp if !kind.is_zoned => (Function::TextOf, kind.clone()),
                Timestamp | Date => (Function::TextOfZoned, ColumnType::zoned()),
                Interval => (Function::TextOf, kind.clone()),
                number => {
                    rank(number)?;
                    (Function::TextOfNumber, kind.clone())
                }
            };
            Some(Signature { function, arguments: vec![argument, Text.into()], result: Text.into() })
        }
        ("to_date", [text, pattern]) if text_like(text) && text_like(pattern) => {
            signature(Function::ToDate, &[Text, Text], Date)
        }
        ("to_timestamp", [text, pattern]) if text_like(text) && text_like(pattern) => Some(Signature {
            function: Function::ToTimestamp,
            arguments: vec![Text.into(), Text.into()],
            result: ColumnType::zoned(),
        }),
        ("to_timestamp", [Some(seconds)]) if rank(seconds.kind).is_some() => Some(Signature {
            function: Function::ToTimestamp,
            arguments: vec![Double.into()],
            result: ColumnType::zoned(),
        }),
        // The pattern determines the number of fractional digits. Ten suffice for most.
        ("to_number", [text, pattern]) if text_like(text) && text_like(pattern) => Some(Signature {
            function: Function::ToNumber,
            arguments: vec![Text.into(), Text.into()],
            result: ColumnType::decimal(38, 10),
        }),
        _ => None,
    }
}

/// Functions on intervals.
fn by_time(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Date, Interval, Timestamp};
    let is_moment =
        |kind: &Option<ColumnType>| kind.as_ref().is_none_or(|kind| matches!(kind.kind, Timestamp | Date));
    let is_span = |kind: &Option<ColumnType>| kind.as_ref().is_none_or(|kind| kind.kind == Interval);
    let function = match (name, given) {
        ("age", [later, earlier]) if is_moment(later) && is_moment(earlier) => {
            return signature(Function::Age, &[Timestamp, Timestamp], Interval);
        }
        ("justify_days", [span]) if is_span(span) => Function::JustifyDays,
        ("justify_hours", [span]) if is_span(span) => Function::JustifyHours,
        ("justify_interval", [span]) if is_span(span) => Function::JustifyInterval,
        _ => return None,
    };
    signature(function, &[Interval], Interval)
}

/// Whether values of a type can be converted to double.
fn numeric(kind: &Option<ColumnType>) -> bool {
    kind.as_ref().is_none_or(|kind| rank(kind.kind).is_some())
}

fn by_number(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{BigInt, Decimal, Double, Int};
    if let ([kind], Some(function)) = (given, Analytic::named(name)) {
        return numeric(kind).then(|| signature(Function::Analytic(function), &[Double], Double))?;
    }
    match (name, given) {
        ("atan2" | "atan2d", [y, x]) if numeric(y) && numeric(x) => {
            let function = Function::Angle { in_degrees: name == "atan2d" };
            return signature(function, &[Double, Double], Double);
        }
        ("log", [base, of]) if numeric(base) && numeric(of) => {
            return signature(Function::Logarithm, &[Double, Double], Double);
        }
        ("factorial", [of]) if whole(of) || of.as_ref().is_some_and(|kind| kind.kind == BigInt) => {
            return signature(Function::Factorial, &[BigInt], Decimal);
        }
        ("gcd" | "lcm", [Some(a), Some(b)]) => {
            let kind =
                super::operators::common(a, b).filter(|kind| !matches!(kind.kind, Type::Real | Double))?;
            rank(kind.kind)?;
            let kind = if kind.kind == Type::SmallInt { Int.into() } else { kind };
            let function = if name == "gcd" { Function::CommonDivisor } else { Function::CommonMultiple };
            return Some(Signature { function, arguments: vec![kind.clone(), kind.clone()], result: kind });
        }
        _ => {}
    }
    let first = given.first()?.clone()?;
    rank(first.kind)?;
    let same = |function| Some(Signature { function, arguments: vec![first.clone()], result: first.clone() });
    let rounding = |function| {
        if first.kind == Decimal {
            let result = ColumnType::decimal(38, 0);
            return Some(Signature { function, arguments: vec![first.clone()], result });
        }
        signature(function, &[Double], Double)
    };
    match (name, given.len()) {
        ("abs", 1) => same(Function::Abs),
        ("round", 1) => rounding(Function::Round),
        ("floor", 1) => rounding(Function::Floor),
        ("ceil" | "ceiling", 1) => rounding(Function::Ceil),
        ("trunc", 1) => rounding(Function::Trunc),
        ("sign", 1) => rounding(Function::Sign),
        ("round" | "trunc", 2) if whole(given.get(1)?) && !matches!(first.kind, Type::Real | Double) => {
            let function = if name == "round" { Function::Round } else { Function::Trunc };
            let kind = if first.kind == Decimal { first.clone() } else { ColumnType::decimal(38, 0) };
            Some(Signature { function, arguments: vec![kind.clone(), Int.into()], result: kind })
        }
        ("div", 2) => {
            let number = |kind: &Option<ColumnType>| kind.clone().filter(|kind| rank(kind.kind).is_some());
            let (left, right) = (number(given.first()?)?, number(given.get(1)?)?);
            let numeric = |kind: ColumnType| match kind.kind {
                Decimal => Some(kind),
                Type::Real | Double => None,
                _ => Some(ColumnType::decimal(38, 0)),
            };
            let arguments = vec![numeric(left)?, numeric(right)?];
            Some(Signature { function: Function::Quotient, arguments, result: ColumnType::decimal(38, 0) })
        }
        ("width_bucket", 4) if whole(given.get(3)?) => {
            signature(Function::WidthBucket, &[Double, Double, Double, Int], Int)
        }
        _ => None,
    }
}

/// Functions on regular expressions.
fn by_regular(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Boolean, Int, Text};
    let fits = |kinds: &[Type]| {
        let fits = |(given, kind): (&Option<ColumnType>, &Type)| match kind {
            Int => whole(given),
            _ => text_like(given),
        };
        given.len() <= kinds.len() && given.iter().zip(kinds).all(fits)
    };
    let some = |function, kinds: &[Type], result| {
        fits(kinds).then(|| signature(function, kinds.get(..given.len())?, result))?
    };
    match (name, given.len()) {
        ("regexp_like", 2 | 3) => some(Function::RegularLike, &[Text, Text, Text], Boolean),
        ("regexp_count", 2..=4) => some(Function::RegularCount, &[Text, Text, Int, Text], Int),
        ("regexp_instr", 2..=7) => some(Function::RegularInstr, &[Text, Text, Int, Int, Int, Text, Int], Int),
        ("regexp_substr", 2..=6) => some(Function::RegularSubstr, &[Text, Text, Int, Int, Text, Int], Text),
        ("regexp_replace", 3 | 4) if fits(&[Text, Text, Text, Text]) => {
            some(Function::RegularReplace, &[Text, Text, Text, Text], Text)
        }
        ("regexp_replace", 4..=6) => {
            some(Function::RegularReplace, &[Text, Text, Text, Int, Int, Text], Text)
        }
        ("substring", 2) if fits(&[Text, Text]) => some(Function::RegularPart, &[Text, Text], Text),
        ("substring", 3) if fits(&[Text, Text, Text]) => {
            some(Function::SimilarPart, &[Text, Text, Text], Text)
        }
        ("cairn_like" | "cairn_ilike", 2) => {
            some(Function::Like { insensitive: name == "cairn_ilike" }, &[Text, Text], Boolean)
        }
        ("cairn_matches" | "cairn_matches_i", 2) => {
            let function = Function::RegularMatch { insensitive: name == "cairn_matches_i", negated: false };
            some(function, &[Text, Text], Boolean)
        }
        _ => None,
    }
}

/// Functions that make dates, times and intervals from their parts.
fn made(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Boolean, Date, Double, Int, Interval, Time, Timestamp};
    let parts = |wholes: usize, has_seconds: bool| {
        given.len() <= wholes + usize::from(has_seconds)
            && given.iter().take(wholes).all(whole)
            && given.iter().skip(wholes).all(numeric)
    };
    const PARTS: [Type; 7] = [Int, Int, Int, Int, Int, Int, Double];
    match (name, given.len()) {
        ("make_date", 3) if parts(3, false) => signature(Function::MakeDate, &[Int, Int, Int], Date),
        ("make_time", 3) if parts(2, true) => signature(Function::MakeTime, &[Int, Int, Double], Time),
        ("make_timestamp", 6) if parts(5, true) => {
            signature(Function::MakeMoment, PARTS.get(1..)?, Timestamp)
        }
        ("make_timestamptz", 6) if parts(5, true) => {
            let made = signature(Function::MakeMoment, PARTS.get(1..)?, Timestamp)?;
            Some(Signature { result: ColumnType::zoned(), ..made })
        }
        ("make_interval", 0..=7) if parts(6, true) => {
            signature(Function::MakeInterval, PARTS.get(..given.len())?, Interval)
        }
        ("date_bin", 3) => {
            let is_span = given.first()?.as_ref().is_none_or(|kind| kind.kind == Interval);
            let is_moment = |kind: &Option<ColumnType>| {
                kind.as_ref().is_none_or(|kind| matches!(kind.kind, Timestamp | Date))
            };
            let is_plain = |kind: &Option<ColumnType>| {
                kind.as_ref().is_some_and(|kind| kind.kind == Timestamp && !kind.is_zoned)
            };
            let moments = given.get(1..)?;
            if !is_span || !moments.iter().all(is_moment) {
                return None;
            }
            // Dates and untyped arguments count as timestamps with a time zone.
            let is_zoned =
                !moments.iter().any(is_plain) || moments.iter().flatten().any(|kind| kind.is_zoned);
            let kind = if is_zoned { ColumnType::zoned() } else { Timestamp.into() };
            Some(Signature {
                function: Function::DateBin,
                arguments: vec![Interval.into(), kind.clone(), kind.clone()],
                result: kind,
            })
        }
        ("isfinite", 1) => {
            let kind = given.first()?.as_ref()?;
            matches!(kind.kind, Date | Timestamp | Interval)
                .then(|| signature(Function::IsFinite, &[kind.kind], Boolean))?
        }
        _ => None,
    }
}

fn of_session(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{BigInt, Boolean, Date, Double, Text, Time, Timestamp, Uuid};
    let zoned = |function| Some(Signature { function, arguments: Vec::new(), result: ColumnType::zoned() });
    match (name, given.len()) {
        ("now" | "current_timestamp" | "transaction_timestamp", 0) => zoned(Function::TransactionTime),
        ("statement_timestamp", 0) => zoned(Function::StatementTime),
        ("localtimestamp", 0) => signature(Function::TransactionTime, &[], Timestamp),
        ("clock_timestamp", 0) => zoned(Function::ClockTime),
        ("current_date", 0) => signature(Function::CurrentDate, &[], Date),
        ("current_time" | "localtime", 0) => signature(Function::CurrentTime, &[], Time),
        ("random", 0) => signature(Function::Random, &[], Double),
        ("gen_random_uuid" | "uuid_generate_v4", 0) => signature(Function::NewUuid, &[], Uuid),
        ("nextval", 1) => signature(Function::NextValue, &[Text], BigInt),
        ("currval", 1) => signature(Function::CurrentValue, &[Text], BigInt),
        ("lastval", 0) => signature(Function::LastValue, &[], BigInt),
        ("setval", 2) => signature(Function::SetValue, &[Text, BigInt], BigInt),
        ("setval", 3) => signature(Function::SetValue, &[Text, BigInt, Boolean], BigInt),
        ("current_setting", 1) => signature(Function::Setting, &[Text], Text),
        ("date_trunc", 2) => match given.get(1)?.as_ref()?.kind {
            Type::Interval => signature(Function::DateTrunc, &[Text, Type::Interval], Type::Interval),
            Timestamp | Date => {
                let kind = if given.get(1)?.as_ref()?.kind == Date {
                    ColumnType::zoned()
                } else {
                    given.get(1)?.clone()?
                };
                Some(Signature {
                    function: Function::DateTrunc,
                    arguments: vec![Text.into(), kind.clone()],
                    result: kind,
                })
            }
            _ => None,
        },
        ("date_part", 2) => {
            let kind = given.get(1)?.as_ref()?.kind;
            // A date counts as its midnight.
            let kind = if kind == Date { Timestamp } else { kind };
            matches!(kind, Timestamp | Time | Type::Interval)
                .then(|| signature(Function::DatePart, &[Text, kind], Double))?
        }
        _ => None,
    }
}
