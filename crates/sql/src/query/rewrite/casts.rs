//! Types: what is cast to them, what is written with them, and parameters of them.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{self, ArrayElemTypeDef, DataType, Expr, TimezoneInfo, Value};

use super::{INTERVAL, MOMENT, TIME, VARCHAR, notation};
use crate::datum::{Item, nested_items, parse_decimal};
use crate::error::{Error, Result};
use crate::query::list_casts::name_for;
use crate::query::read::{NUMERIC, ZONED};
use crate::query::zone_marks::PLAIN;
use crate::sqlstate::UNDEFINED_OBJECT;
use crate::syntax::build::{call, null, number, string, take, text, with_type};
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
        kind if kind.kind == Type::Uuid => Some("cairn_uuid"),
        _ => None,
    };
    if let Some(name) = name {
        *place = call(name, vec![take(place)]);
    } else if kind.kind == Type::Blob && !kind.is_list {
        *place = with_type(take(place), DataType::Bytea);
    } else if let Some(data_type) = notation::sql_type(kind) {
        *place = with_type(take(place), data_type);
    }
}

fn is_time(kind: &DataType) -> bool {
    matches!(kind, DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone))
}

/// The function that a cast to a type of times is, where DataFusion has none: with a zone, without
/// a date, of fewer digits.
fn of_times(kind: &DataType) -> Option<&'static str> {
    if notation::is_zoned(kind) {
        return Some(ZONED);
    }
    if is_time(kind) {
        return Some(TIME);
    }
    let kind = column_type(kind).ok()?;
    match kind.kind {
        Type::Timestamp if kind.length.is_some() => Some(MOMENT),
        Type::Interval if kind.length.is_some() => Some(INTERVAL),
        _ => None,
    }
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

/// Whether the query engine has other types of ours in a type as well: uuids and JSON are texts
/// there, and moments with a time zone are timestamps. Numerics among them, as the query engine
/// itself puts casts to those around items of VALUES.
fn is_plain(kind: &DataType) -> bool {
    column_type(kind).is_ok_and(|kind| matches!(kind.kind, Type::Text | Type::Timestamp | Type::Decimal))
}

/// The literal that an expression is.
fn notation_value(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Nested(inner) => notation_value(inner),
        Expr::Value(value) => Some(&value.value),
        _ => None,
    }
}

/// What an array is of: dimensions are no matter of its type.
fn item_of(of: &ArrayElemTypeDef) -> Option<DataType> {
    let (ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) = of else {
        return None;
    };
    match &**item {
        DataType::Array(inner) => item_of(inner),
        other => Some(other.clone()),
    }
}

/// A cast to an array of such items; `None` where DataFusion does it.
///
/// Errors: 22P02 for an array in quotes that is none.
fn list(expr: &mut Expr, item: &DataType) -> Result<Option<Expr>> {
    let element = column_type(item)?;
    let Some(name) = name_for(&element) else { return Ok(None) };
    let mut limit = element.length;
    if element.kind == Type::Decimal {
        limit = element.decimal.filter(|_| !notation::is_open_numeric(item)).map(|(_, scale)| scale.into());
    }
    if let Some(given) = string(expr) {
        let items = nested_items(given)?;
        if items.iter().any(|item| matches!(item, Item::List(_))) {
            return spelt(items, item).map(Some);
        }
        let digits = |item: &Item| match item {
            Item::Text(text) => parse_decimal(text.trim()).map(|(_, scale)| u32::from(scale)),
            _ => None,
        };
        if element.kind == Type::Decimal && limit.is_none() {
            limit = Some(items.iter().filter_map(digits).max().unwrap_or(0));
        }
    }
    let limit = limit.map(|limit| number(limit.into()));
    Ok(Some(call(name, std::iter::once(take(expr)).chain(limit).collect())))
}

/// An array of arrays in quotes, item by item.
fn spelt(items: Vec<Item>, kind: &DataType) -> Result<Expr> {
    let one = |item: Item| match item {
        Item::List(items) => spelt(items, kind),
        Item::Null => Ok(with_type(null(), kind.clone())),
        Item::Text(item) => {
            let mut item = with_type(text(&item), kind.clone());
            cast(&mut item)?;
            Ok(item)
        }
    };
    let elem = items.into_iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(Expr::Array(ast::Array { elem, named: true }))
}

/// `CAST(a AS type)`.
///
/// Errors: 42704 for a type that is not there, 0A000 for one that is not there but elsewhere.
pub(super) fn cast(place: &mut Expr) -> Result<()> {
    let Expr::Cast { expr, data_type, .. } = place else { return Ok(()) };
    if let DataType::Array(of) = data_type {
        if !matches!(notation_value(expr), Some(Value::Placeholder(_)))
            && let Some(item) = item_of(of)
            && let Some(list) = list(expr, &item)?
        {
            *place = list;
        } else {
            notation::plain_type(data_type);
        }
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
    // A row's text, and spans of what is no text: the query engine has neither.
    if matches!(data_type, DataType::Text) && super::rows::columns_of(expr).is_some() {
        *place = call("cairn_text", vec![take(expr)]);
        return Ok(());
    }
    if matches!(data_type, DataType::Interval { .. }) && notation_value(expr).is_none() {
        *place = call(INTERVAL, vec![take(expr)]);
        return Ok(());
    }
    notation::plain_type(data_type);
    let name = match data_type {
        DataType::Custom(name, _) => last_name(name),
        DataType::Uuid => "uuid".to_owned(),
        DataType::JSON | DataType::JSONB => "json".to_owned(),
        DataType::Bytea => "bytea".to_owned(),
        _ => {
            // Of a value whose type has more to it than what the query engine has for it.
            if is_plain(data_type) && notation_value(expr).is_none() {
                *place = call(PLAIN, vec![take(place)]);
            }
            return Ok(());
        }
    };
    let inner = take(expr);
    *place = match (name.as_str(), string(&inner)) {
        ("bpchar", _) => with_type(inner, DataType::Text),
        ("uuid", _) => call("cairn_uuid", vec![inner]),
        ("bytea", _) if !matches!(notation_value(&inner), Some(Value::Placeholder(_))) => {
            call("cairn_bytea", vec![inner])
        }
        ("bytea", _) => with_type(inner, DataType::Bytea),
        ("json", _) if !matches!(notation_value(&inner), Some(Value::Placeholder(_))) => {
            call("cairn_to_json", vec![inner])
        }
        ("json", _) => with_type(inner, DataType::Text),
        (other, _) => {
            column_type(data_type)?;
            return Err(Error::new(UNDEFINED_OBJECT, format!("type \"{other}\" does not exist")));
        }
    };
    Ok(())
}
