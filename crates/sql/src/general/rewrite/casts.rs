//! Types in the text of a statement: casts, typed literals, and parameters of known type.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, ArrayElemTypeDef, DataType, Expr, TimezoneInfo, Value};

use super::notation;
use crate::datum::{Item, nested_items, parse_decimal};
use crate::error::{Error, Result};
use crate::general::functions::list_casts::name_for;
use crate::general::markers::{INTERVAL, MOMENT, TIME, VARCHAR};
use crate::general::rules::text_casts::{NUMERIC, ZONED};
use crate::general::rules::zone_marks::PLAIN;
use crate::sqlstate::UNDEFINED_OBJECT;
use crate::syntax::build::{call, null, number, string, take, text, with_type};
use crate::syntax::{column_type, last_name};

/// Rewrites a typed literal such as `date '2024-02-29'`.
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

/// Casts a parameter to its known type.
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

/// Returns the cast function for a date or time type that DataFusion lacks: with a time zone,
/// without a date, or with reduced precision.
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

/// Returns the arguments of a cast function: the value, and the length if the type has one.
fn with_length(value: Expr, kind: &DataType) -> Vec<Expr> {
    let length = column_type(kind).ok().and_then(|kind| kind.length);
    std::iter::once(value).chain(length.map(|length| number(length.into()))).collect()
}

/// Whether a type is a text type with a length.
fn is_limited(kind: &DataType) -> bool {
    column_type(kind).is_ok_and(|kind| kind.kind == Type::Text && kind.length.is_some())
}

/// Whether DataFusion represents several of our types by this type: uuids and JSON are texts there,
/// and timestamps with time zone are timestamps. Numerics are included, because DataFusion itself
/// wraps items of VALUES in casts to them.
fn is_plain(kind: &DataType) -> bool {
    column_type(kind).is_ok_and(|kind| matches!(kind.kind, Type::Text | Type::Timestamp | Type::Decimal))
}

/// Returns the literal in an expression that consists of one.
fn notation_value(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Nested(inner) => notation_value(inner),
        Expr::Value(value) => Some(&value.value),
        _ => None,
    }
}

/// Returns the item type of an array type. The number of dimensions is not part of it.
fn item_of(of: &ArrayElemTypeDef) -> Option<DataType> {
    let (ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) = of else {
        return None;
    };
    match &**item {
        DataType::Array(inner) => item_of(inner),
        other => Some(other.clone()),
    }
}

/// Rewrites a cast to an array of such items; `None` where DataFusion supports it.
///
/// Errors: 22P02 for an invalid array literal.
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

/// Converts a literal of nested arrays to array constructors.
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

/// Returns the cast to a type that DataFusion does not have.
///
/// Errors: 42704 for an undefined type.
fn to_named(name: &str, inner: Expr, data_type: &DataType) -> Result<Expr> {
    Ok(match (name, string(&inner)) {
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
    })
}

/// Rewrites `CAST(a AS type)`.
///
/// Errors: 42704 for an undefined type, 0A000 for a PostgreSQL type that is not supported.
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
        // A literal determines its scale.
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
    // Casts of a row to text, and of a non-literal to interval: DataFusion has neither.
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
            // Marks the cast, because the operand's type may be one that DataFusion does not
            // distinguish from the target type.
            if is_plain(data_type) && notation_value(expr).is_none() {
                *place = call(PLAIN, vec![take(place)]);
            }
            return Ok(());
        }
    };
    *place = to_named(&name, take(expr), data_type)?;
    Ok(())
}
