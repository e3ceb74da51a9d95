//! Types: what is cast to them, what is written with them, and parameters of them.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{DataType, Expr, TimezoneInfo, Value};

use super::{MOMENT, TIME, VARCHAR, notation};
use crate::error::{Error, Result};
use crate::query::read::{NUMERIC, ZONED};
use crate::sqlstate::UNDEFINED_OBJECT;
use crate::syntax::build::{call, number, string, take, text, with_type};
use crate::syntax::{column_type, last_name};

/// `date '2024-02-29'`: what is in quotes, behind its type.
pub(super) fn typed(place: &mut Expr) {
    let Expr::TypedString(typed) = place else { return };
    let quoted = match &typed.value.value {
        Value::SingleQuotedString(value) => Some(text(value)),
        _ => None,
    };
    if let Some(name) = of_times(&typed.data_type) {
        if let Some(value) = quoted {
            *place = call(name, with_length(value, &typed.data_type));
        }
        return;
    }
    notation::plain_type(&mut typed.data_type);
    *place = match (&typed.data_type, quoted) {
        (DataType::Uuid, Some(value)) => call("cairn_uuid", vec![value]),
        (DataType::JSON | DataType::JSONB, Some(value)) => value,
        _ => return,
    };
}

/// A parameter whose type is known.
pub(super) fn parameter(place: &mut Expr, kind: &ColumnType) {
    let name = match kind {
        kind if kind.is_list => None,
        kind if kind.is_zoned => Some(ZONED),
        kind if kind.kind == Type::Time => Some(TIME),
        _ => None,
    };
    if let Some(name) = name {
        *place = call(name, vec![take(place)]);
    } else if let Some(data_type) = notation::sql_type(kind) {
        *place = with_type(take(place), data_type);
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone))
}

/// The function that a cast to a type of times is, where DataFusion has none: with a zone, without a date, of fewer digits.
fn of_times(kind: &DataType) -> Option<&'static str> {
    if notation::is_zoned(kind) {
        return Some(ZONED);
    }
    if is_time(kind) {
        return Some(TIME);
    }
    let kind = column_type(kind).ok()?;
    (kind.kind == Type::Timestamp && kind.length.is_some()).then_some(MOMENT)
}

/// An argument, and behind it the length of a type that says one.
fn with_length(value: Expr, kind: &DataType) -> Vec<Expr> {
    let length = column_type(kind).ok().and_then(|kind| kind.length);
    std::iter::once(value).chain(length.map(|length| number(length.into()))).collect()
}

/// Whether a type is that of texts that say how long they are at most.
fn is_limited(kind: &DataType) -> bool {
    column_type(kind).is_ok_and(|kind| kind.kind == Type::Text && kind.length.is_some())
}

/// `CAST(a AS type)`.
///
/// Errors: 42704 for a type that is not there, 0A000 for one that is not there but elsewhere.
pub(super) fn cast(place: &mut Expr) -> Result<()> {
    let Expr::Cast { expr, data_type, .. } = place else { return Ok(()) };
    if let DataType::Array(_) = data_type {
        notation::plain_type(data_type);
        return Ok(());
    }
    if let Some(name) = of_times(data_type) {
        *place = call(name, with_length(take(expr), data_type));
        return Ok(());
    }
    if notation::is_open_numeric(data_type) {
        // A literal says how many digits it has.
        *place = match string(expr).and_then(crate::datum::parse_decimal) {
            Some((_, scale)) => with_type(take(expr), notation::numeric(scale)),
            None => call(NUMERIC, vec![take(expr)]),
        };
        return Ok(());
    }
    if is_limited(data_type) {
        *place = call(VARCHAR, with_length(take(expr), data_type));
        return Ok(());
    }
    notation::plain_type(data_type);
    let name = match data_type {
        DataType::Custom(name, _) => last_name(name),
        DataType::Uuid => "uuid".to_owned(),
        DataType::JSON | DataType::JSONB => "json".to_owned(),
        DataType::Bytea => "bytea".to_owned(),
        _ => return Ok(()),
    };
    let inner = take(expr);
    *place = match (name.as_str(), string(&inner)) {
        ("bpchar", _) => with_type(inner, DataType::Text),
        ("uuid", _) => call("cairn_uuid", vec![inner]),
        ("bytea", Some(_)) => call("cairn_bytea", vec![inner]),
        ("bytea", None) => with_type(inner, DataType::Bytea),
        ("json", _) => with_type(inner, DataType::Text),
        (other, _) => {
            column_type(data_type)?;
            return Err(Error::new(UNDEFINED_OBJECT, format!("type \"{other}\" does not exist")));
        }
    };
    Ok(())
}
