//! Compiles literals.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::Value;

use super::{Failure, Node, Typed};
use crate::datum::{Datum, parse_decimal_exactly};
use crate::error::Error;
use crate::sqlstate::{NUMERIC_VALUE_OUT_OF_RANGE, SYNTAX_ERROR, UNDEFINED_PARAMETER};

/// The largest number of parameters of a statement, a limit of the wire protocol.
pub(crate) const MAX_PARAMETERS: usize = 65_535;

/// Compiles a literal. Quoted ones and NULL are untyped.
pub(super) fn literal(value: &Value) -> Result<Typed, Failure> {
    Ok(match value {
        Value::Number(digits, _) => number(digits)?,
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text)
        | Value::NationalStringLiteral(text) => Typed::unknown(Node::Const(Datum::Text(text.clone()))),
        Value::DollarQuotedString(text) => Typed::unknown(Node::Const(Datum::Text(text.value.clone()))),
        Value::HexStringLiteral(hex) => {
            let bytes = Datum::parse(&format!("\\x{hex}"), &Type::Blob.into())?;
            Typed::new(Node::Const(bytes), Type::Blob.into())
        }
        Value::Boolean(value) => Typed::new(Node::Const(Datum::Boolean(*value)), Type::Boolean.into()),
        Value::Null => Typed::unknown(Node::Const(Datum::Null)),
        _ => return Err(Failure::Unknown),
    })
}

/// Parses a number as the smallest of integer, bigint and decimal that holds it.
fn number(digits: &str) -> Result<Typed, Failure> {
    if let Ok(value) = digits.parse::<i32>() {
        return Ok(Typed::new(Node::Const(Datum::Int(value)), Type::Int.into()));
    }
    if let Ok(value) = digits.parse::<i64>() {
        return Ok(Typed::new(Node::Const(Datum::BigInt(value)), Type::BigInt.into()));
    }
    let Some((unscaled, scale)) = parse_decimal_exactly(digits) else {
        if !digits.contains(['e', 'E']) {
            // More digits than a decimal holds. Its target determines how many of them are kept.
            return Ok(Typed::unknown(Node::Const(Datum::Text(digits.to_owned()))));
        }
        let value = double(digits)?.ok_or(Failure::Unknown)?;
        return Ok(Typed::new(Node::Const(Datum::Double(value)), Type::Double.into()));
    };
    Ok(Typed::new(Node::Const(Datum::Decimal { unscaled, scale }), ColumnType::decimal(38, scale)))
}

/// Returns a number in exponent notation that is out of range for decimals; `None` for others.
///
/// Errors: 22003 if it is out of range for doubles too.
pub(crate) fn double(digits: &str) -> Result<Option<f64>, Error> {
    if !digits.contains(['e', 'E']) || parse_decimal_exactly(digits).is_some() {
        return Ok(None);
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_infinite() => {
            Err(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("the number {digits} is out of range")))
        }
        value => Ok(value.ok()),
    }
}

/// Returns the number of a placeholder; `$1` is 0.
pub(crate) fn parameter(placeholder: &str) -> Result<usize, Error> {
    let number = placeholder.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    match number {
        Some(number @ 1..=MAX_PARAMETERS) => Ok(number - 1),
        Some(_) => Err(Error::new(UNDEFINED_PARAMETER, format!("there is no parameter {placeholder}"))),
        None => Err(Error::new(SYNTAX_ERROR, format!("parameters are $1, $2 and so on, not {placeholder}"))),
    }
}
