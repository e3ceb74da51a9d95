//! Types: what is cast to them, what is written with them, and parameters of them.

use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{DataType, Expr, TimezoneInfo, Value};

use super::{TIME, VARCHAR, notation};
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
    let (is_zoned, is_time) = (notation::is_zoned(&typed.data_type), is_time(&typed.data_type));
    if !is_zoned && !is_time {
        notation::plain_type(&mut typed.data_type);
    }
    *place = match (&typed.data_type, quoted) {
        (_, Some(value)) if is_zoned => call(ZONED, vec![value]),
        (_, Some(value)) if is_time => call(TIME, vec![value]),
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
        kind if kind.kind == cairn_table::row::Type::Time => Some(TIME),
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

/// How many characters values of a type have at most, where it says so.
fn length_of(kind: &DataType) -> Option<i64> {
    let is_text = matches!(
        kind,
        DataType::Varchar(_)
            | DataType::CharVarying(_)
            | DataType::CharacterVarying(_)
            | DataType::Nvarchar(_)
            | DataType::Char(_)
            | DataType::Character(_)
    );
    is_text.then(|| column_type(kind).ok()?.length).flatten().map(i64::from)
}

/// `CAST(a AS type)`.
///
/// Errors: 42704 for a type that is not there.
pub(super) fn cast(place: &mut Expr) -> Result<()> {
    let Expr::Cast { expr, data_type, .. } = place else { return Ok(()) };
    if let DataType::Array(_) = data_type {
        notation::plain_type(data_type);
        return Ok(());
    }
    if notation::is_zoned(data_type) {
        *place = call(ZONED, vec![take(expr)]);
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
    if is_time(data_type) {
        *place = call(TIME, vec![take(expr)]);
        return Ok(());
    }
    if let Some(length) = length_of(data_type) {
        *place = call(VARCHAR, vec![take(expr), number(length)]);
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
        ("bpchar" | "citext", _) => with_type(inner, DataType::Text),
        ("uuid", _) => call("cairn_uuid", vec![inner]),
        ("bytea", Some(_)) => call("cairn_bytea", vec![inner]),
        ("bytea", None) => with_type(inner, DataType::Bytea),
        ("json", _) => with_type(inner, DataType::Text),
        (other, _) => {
            return Err(Error::new(UNDEFINED_OBJECT, format!("type \"{other}\" does not exist")));
        }
    };
    Ok(())
}
