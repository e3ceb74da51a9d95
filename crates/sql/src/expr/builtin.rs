//! The functions that the direct path knows, by name and types of arguments.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::cast::rank;

/// A function. Those of PostgreSQL with the same name, unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Age,
    Ascii,
    Ceil,
    Chr,
    ClockTime,
    Concat,
    CurrentDate,
    CurrentTime,
    CurrentValue,
    DatePart,
    DateTrunc,
    Digest,
    Exp,
    Extract,
    Floor,
    Format,
    Greatest,
    InitCap,
    JustifyDays,
    JustifyHours,
    JustifyInterval,
    LastValue,
    Least,
    Left,
    Length,
    Ln,
    Lower,
    NewUuid,
    NextValue,
    OctetLength,
    PadLeft,
    PadRight,
    Position,
    Quotient,
    QuoteIdent,
    QuoteLiteral,
    QuoteNullable,
    Random,
    Repeat,
    Replace,
    Reverse,
    Right,
    Round,
    SetValue,
    Setting,
    Sign,
    SplitPart,
    Sqrt,
    StartsWith,
    StatementTime,
    Substr,
    /// Of a moment or a span.
    TextOf,
    TextOfNumber,
    /// Of a moment whose type has a time zone.
    TextOfZoned,
    ToDate,
    ToNumber,
    /// By a pattern, or from seconds since 1970.
    ToTimestamp,
    /// `transaction_timestamp`, `now`.
    TransactionTime,
    Trim,
    TrimEnd,
    TrimStart,
    Trunc,
    Upper,
    WidthBucket,
    /// The text of a moment whose type has a time zone.
    ZonedText,
}

impl Function {
    /// Another value each time.
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

    /// The same within a statement.
    pub fn is_stable(self) -> bool {
        use Function as F;
        matches!(self, F::TransactionTime | F::StatementTime | F::CurrentDate | F::CurrentTime | F::Setting)
    }

    /// NULL where an argument is.
    pub fn is_strict(self) -> bool {
        !self.takes_any_number() && self != Function::QuoteNullable
    }

    pub fn takes_any_number(self) -> bool {
        matches!(self, Function::Concat | Function::Format | Function::Greatest | Function::Least)
    }
}

/// A function with the types that its arguments are to have, and its own.
pub(super) struct Signature {
    pub function: Function,
    pub arguments: Vec<ColumnType>,
    pub result: ColumnType,
}

/// The function that a call with arguments of these types means; `None` for a type that is still open. `None` where this path has no such function.
pub(super) fn resolve(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    by_text(name, given)
        .or_else(|| by_pattern(name, given))
        .or_else(|| by_number(name, given))
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
        ("substr" | "substring", 2) if text_then_numbers(1) => {
            signature(Function::Substr, &[Text, Int], Text)
        }
        ("substr" | "substring", 3) if text_then_numbers(2) => {
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
        ("md5", 1) if texts => signature(Function::Digest, &[Text], Text),
        ("md5", 1) if is_blob => signature(Function::Digest, &[Blob], Text),
        ("quote_ident", 1) if texts => signature(Function::QuoteIdent, &[Text], Text),
        ("quote_literal", 1) => signature(Function::QuoteLiteral, &[Text], Text),
        ("quote_nullable", 1) => signature(Function::QuoteNullable, &[Text], Text),
        // Truth is written as columns of it are, not as a cast does it.
        ("concat" | "format", 1..) if name == "concat" || text_like(given.first()?) => Some(Signature {
            function: if name == "concat" { Function::Concat } else { Function::Format },
            arguments: given
                .iter()
                .map(
                    |kind| {
                        if kind.as_ref().is_some_and(|kind| kind.kind == Boolean) { Boolean } else { Text }
                    },
                )
                .map(ColumnType::new)
                .collect(),
            result: Text.into(),
        }),
        _ => None,
    }
}

/// Values by patterns, and patterns by values.
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
        // How many digits there are after the point is the pattern's to say: ten are room for most.
        ("to_number", [text, pattern]) if text_like(text) && text_like(pattern) => Some(Signature {
            function: Function::ToNumber,
            arguments: vec![Text.into(), Text.into()],
            result: ColumnType::decimal(38, 10),
        }),
        _ => None,
    }
}

/// Spans of time.
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

fn by_number(name: &str, given: &[Option<ColumnType>]) -> Option<Signature> {
    use Type::{Decimal, Double, Int};
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
    let double = |function| if first.kind == Decimal { None } else { signature(function, &[Double], Double) };
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
        ("sqrt", 1) => double(Function::Sqrt),
        ("exp", 1) => double(Function::Exp),
        ("ln", 1) => double(Function::Ln),
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
            matches!(kind, Timestamp | Date | Time | Type::Interval)
                .then(|| signature(Function::DatePart, &[Text, kind], Double))?
        }
        _ => None,
    }
}
