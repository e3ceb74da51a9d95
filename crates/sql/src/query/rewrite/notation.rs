//! Types, operators and lists as DataFusion has them.

use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{BinaryOperator, DataType, ExactNumberInfo, Expr, TimezoneInfo};

use crate::error::{Error, Result};
use crate::sqlstate::INVALID_ESCAPE_SEQUENCE;
use crate::syntax::build::{call, string, take, text};
use crate::syntax::last_name;

/// What puts backslashes into patterns that are known when the query runs.
pub(in crate::query) const ESCAPED: &str = "cairn_like_pattern";

/// `x = ANY(list)`.
pub(super) fn member(left: Expr, right: Expr) -> Expr {
    let inner = match right {
        Expr::Nested(inner) => *inner,
        Expr::Cast { expr, data_type: DataType::Array(_), .. } => *expr,
        other => other,
    };
    if let Some(list) =
        string(&inner).and_then(|list| list.strip_prefix('{')).and_then(|list| list.strip_suffix('}'))
    {
        let list = list
            .split(',')
            .filter(|item| !item.is_empty())
            .map(|item| text(item.trim_matches('"')))
            .collect();
        return Expr::InList { expr: Box::new(left), list, negated: false };
    }
    match inner {
        Expr::Array(array) => Expr::InList { expr: Box::new(left), list: array.elem, negated: false },
        array => call("array_has", vec![array, left]),
    }
}

/// An operator by its symbol, as `OPERATOR(pg_catalog.~)` has it.
pub(super) fn operator(symbol: &str) -> Result<BinaryOperator> {
    Ok(match symbol {
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        other => return Err(Error::unsupported(format_args!("the operator {other}"))),
    })
}

/// Puts backslashes in the place of another escape character of LIKE.
///
/// Errors: as [`escaped`], of patterns that are known.
pub(super) fn escape(pattern: &mut Expr, character: &str) -> Result<()> {
    *pattern = match string(pattern) {
        Some(given) => text(&escaped(given, character)?),
        None => call(ESCAPED, vec![take(pattern), text(character)]),
    };
    Ok(())
}

/// A pattern of LIKE with backslashes in the place of another escape character; none where there is none.
///
/// Errors: 22025 for more than one character, and for one with nothing behind it.
pub(in crate::query) fn escaped(pattern: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, rest) = (characters.next(), characters.next());
    if rest.is_some() {
        return Err(Error::new(INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut escaped = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            let Some(plain) = characters.next() else {
                let what = "LIKE pattern must not end with escape character";
                return Err(Error::new(INVALID_ESCAPE_SEQUENCE, what));
            };
            escaped.extend(['\\', plain]);
        } else if character == '\\' {
            escaped.push_str("\\\\");
        } else {
            escaped.push(character);
        }
    }
    Ok(escaped)
}

/// Whether a type is that of timestamps in UTC.
pub(super) fn is_zoned(kind: &DataType) -> bool {
    match kind {
        DataType::Timestamp(_, zone) => matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz),
        DataType::Custom(name, _) => last_name(name) == "timestamptz",
        _ => false,
    }
}

/// Whether a type is a numeric that says nothing of its digits.
pub(super) fn is_open_numeric(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    )
}

/// A numeric with so many digits after the point.
pub(super) fn numeric(scale: u8) -> DataType {
    DataType::Numeric(ExactNumberInfo::PrecisionAndScale(38, scale.into()))
}

/// Times in microseconds, without zones.
pub(super) fn plain_type(kind: &mut DataType) {
    match kind {
        DataType::Timestamp(precision, zone) => (*precision, *zone) = (Some(6), TimezoneInfo::None),
        DataType::Datetime(_) => *kind = DataType::Timestamp(Some(6), TimezoneInfo::None),
        DataType::Time(precision, zone) => (*precision, *zone) = (Some(6), TimezoneInfo::None),
        _ => {}
    }
}

/// The name of a type in SQL, for parameters of it.
pub(super) fn sql_type(kind: &ColumnType) -> Option<DataType> {
    use cairn_table::row::Type;
    Some(match kind.kind {
        Type::Boolean => DataType::Boolean,
        Type::SmallInt => DataType::SmallInt(None),
        Type::Int => DataType::Int(None),
        Type::BigInt => DataType::BigInt(None),
        Type::Real => DataType::Real,
        Type::Double => DataType::DoublePrecision,
        Type::Date => DataType::Date,
        Type::Timestamp => DataType::Timestamp(Some(6), TimezoneInfo::None),
        Type::Time => DataType::Time(Some(6), TimezoneInfo::None),
        Type::Text => DataType::Text,
        _ => return None,
    })
}
