//! Types, operators and patterns in DataFusion's notation.

use std::ops::DerefMut;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, BinaryOperator, DataType, ExactNumberInfo, Expr, TimezoneInfo};

use crate::error::{Error, Result};
use crate::general::markers::{ESCAPED, MATCHES, SIMILAR};
use crate::sqlstate::INVALID_ESCAPE_SEQUENCE;
use crate::syntax::build::{call, nested, string, take, text, with_type};
use crate::syntax::{column_type, last_name};

/// Returns an operator by its symbol, as in `OPERATOR(pg_catalog.~)`.
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
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "^" => BinaryOperator::PGExp,
        "%" => BinaryOperator::Modulo,
        other => return Err(Error::unsupported(format_args!("the operator {other}"))),
    })
}

/// Replaces the escape character of a LIKE pattern by backslashes.
///
/// Errors: those of [`escaped`], for constant patterns.
pub(super) fn escape(pattern: &mut Expr, character: &str) -> Result<()> {
    *pattern = match string(pattern) {
        Some(given) => text(&escaped(given, character)?),
        None => call(ESCAPED, vec![take(pattern), text(character)]),
    };
    Ok(())
}

/// Returns a LIKE pattern with its escape character replaced by backslashes; without an escape
/// character, no character is special.
///
/// Errors: 22025 for more than one character.
pub(in crate::general) fn escaped(pattern: &str, escape: &str) -> Result<String> {
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
            // A trailing escape character is an error once a text is matched up to it.
            escaped.push('\\');
            escaped.extend(characters.next());
        } else if character == '\\' {
            escaped.push_str("\\\\");
        } else {
            escaped.push(character);
        }
    }
    Ok(escaped)
}

/// Whether DataFusion treats a pattern differently than PostgreSQL: one that is not constant, or
/// one that ends in an incomplete escape, which is an error once a text is matched up to it.
pub(super) fn is_computed(pattern: &Expr) -> bool {
    match string(pattern) {
        Some(text) => text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1,
        None => !matches!(pattern, Expr::Value(_)),
    }
}

/// Rewrites LIKE and ILIKE to our own implementation.
pub(super) fn like(expr: &mut Expr) -> Expr {
    let (name, of, pattern, negated) = match expr {
        Expr::Like { expr: of, pattern, negated, .. } => ("cairn_like", of, pattern, *negated),
        Expr::ILike { expr: of, pattern, negated, .. } => ("cairn_ilike", of, pattern, *negated),
        other => return take(other),
    };
    let found = call(name, vec![take(of), take(pattern)]);
    match negated {
        true => nested(Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(found) }),
        false => found,
    }
}

/// Rewrites `a SIMILAR TO 'b'` as a regular expression match.
///
/// Errors: those of [`similar`], for constant patterns.
pub(super) fn similar_to(place: &mut Expr) -> Result<()> {
    let Expr::SimilarTo { negated, expr: of, pattern, escape_char } = place else { return Ok(()) };
    let escape = match escape_char.take() {
        Some(escape) => escape.value.into_string().unwrap_or_default(),
        None => "\\".to_owned(),
    };
    let pattern = match string(pattern) {
        Some(given) => text(&similar(given, &escape)?),
        None => call(SIMILAR, vec![take(pattern), text(&escape)]),
    };
    *place = matches(take(of), pattern, false, *negated);
    Ok(())
}

/// Rewrites `a ~ b` and its variants; `None` for other operators.
pub(super) fn matched(expr: &mut Expr) -> Option<Expr> {
    let Expr::BinaryOp { left, op, right } = expr else { return None };
    let (insensitive, negated) = match op {
        BinaryOperator::PGRegexMatch => (false, false),
        BinaryOperator::PGRegexIMatch => (true, false),
        BinaryOperator::PGRegexNotMatch => (false, true),
        BinaryOperator::PGRegexNotIMatch => (true, true),
        _ => return None,
    };
    Some(matches(take(left), take(right), insensitive, negated))
}

/// Returns a regular expression match by our own implementation: DataFusion's regular expressions
/// have other rules.
fn matches(text: Expr, pattern: Expr, insensitive: bool, negated: bool) -> Expr {
    let name = if insensitive { "cairn_matches_i" } else { MATCHES };
    let found = call(name, vec![text, pattern]);
    match negated {
        true => nested(Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(found) }),
        false => found,
    }
}

pub(in crate::general) use crate::expr::similar;

/// Gives untyped literals in VALUES the type that another row states for the column.
pub(super) fn one_type(rows: &mut [impl DerefMut<Target = Vec<Expr>>]) {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    for column in 0..columns {
        let Some(kind) = rows.iter().find_map(|row| said(row.get(column)?)) else { continue };
        for expr in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            if string(expr).is_some() {
                *expr = with_type(take(expr), kind.clone());
            }
        }
    }
}

/// Returns the type that an expression states.
fn said(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Cast { data_type, .. } => Some(data_type.clone()),
        Expr::TypedString(typed) => Some(typed.data_type.clone()),
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::Nested(inner) => said(inner),
        _ => None,
    }
}

/// Whether a type is timestamp with time zone.
pub(super) fn is_zoned(kind: &DataType) -> bool {
    match kind {
        DataType::Timestamp(_, zone) => matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz),
        DataType::Custom(name, _) => last_name(name) == "timestamptz",
        _ => false,
    }
}

/// Whether a type is numeric without precision and scale.
pub(super) fn is_open_numeric(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    )
}

/// Returns a numeric type with the given scale.
pub(super) fn numeric(scale: u8) -> DataType {
    DataType::Numeric(ExactNumberInfo::PrecisionAndScale(38, scale.into()))
}

/// Converts a type to DataFusion's terms: timestamps in microseconds without a zone, and floats of
/// the size that PostgreSQL gives them. DataFusion's FLOAT is a real.
pub(super) fn plain_type(kind: &mut DataType) {
    match kind {
        DataType::Float(_) if column_type(kind).is_ok_and(|kind| kind.kind == Type::Double) => {
            *kind = DataType::DoublePrecision;
        }
        DataType::Array(ast::ArrayElemTypeDef::SquareBracket(item, _)) => match &**item {
            // DataFusion represents a uuid as text.
            DataType::Uuid => **item = DataType::Text,
            _ => plain_type(item),
        },
        DataType::Timestamp(precision, zone) => (*precision, *zone) = (Some(6), TimezoneInfo::None),
        DataType::Datetime(_) => *kind = DataType::Timestamp(Some(6), TimezoneInfo::None),
        _ => {}
    }
}

/// Returns the SQL type for parameters of a type.
pub(super) fn sql_type(kind: &ColumnType) -> Option<DataType> {
    if let Some(element) = kind.element() {
        // DataFusion represents a uuid as text.
        let item = if element.kind == Type::Uuid { DataType::Text } else { sql_type(&element)? };
        return Some(DataType::Array(ast::ArrayElemTypeDef::SquareBracket(Box::new(item), None)));
    }
    Some(match kind.kind {
        Type::Boolean => DataType::Boolean,
        Type::SmallInt => DataType::SmallInt(None),
        Type::Int => DataType::Int(None),
        Type::BigInt => DataType::BigInt(None),
        Type::Real => DataType::Real,
        Type::Double => DataType::DoublePrecision,
        Type::Date => DataType::Date,
        Type::Timestamp => DataType::Timestamp(Some(6), TimezoneInfo::None),
        Type::Text => DataType::Text,
        Type::Decimal => {
            let (precision, scale) = kind.decimal?;
            DataType::Numeric(ExactNumberInfo::PrecisionAndScale(precision.into(), scale.into()))
        }
        Type::Interval => DataType::Interval { fields: None, precision: None },
        _ => return None,
    })
}
