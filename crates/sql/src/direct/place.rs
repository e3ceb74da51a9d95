//! Positions of values among those that a column can have.
//!
//! A key is looked up by values of other types: an integer by one of another width or by a numeric,
//! a date by a timestamp, a real by a double. A value that the column's type lacks lies between two
//! of its values, or beyond all of them. No row equals it, and ranges end at the nearest value.

use cairn_table::row::{Type, Value};
use cairn_table::schema::ColumnType;

use crate::datum::{DatumRef, pow10, rescale_exact};

const DAY: i64 = 86_400_000_000;

/// The position of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place<'v> {
    /// It is one of the column's values.
    At(Value<'v>),
    /// Between this value and the next.
    Above(Value<'v>),
    BelowAll,
    AboveAll,
    /// It is NULL, or cannot be compared with the column's values.
    Nowhere,
}

/// Whether values of a column can be compared without converting them to another type. Each of them
/// must equal exactly one value of that type, the order must be the same, and [`Place::of`] must
/// support the type.
pub(crate) fn keeps_values(from: &ColumnType, to: &ColumnType) -> bool {
    use Type::{BigInt, Date, Decimal, Double, Int, Real, SmallInt, Timestamp};
    if from.is_list || to.is_list {
        return false;
    }
    match (from.kind, to.kind) {
        (SmallInt, Int | BigInt | Decimal | Real | Double)
        | (Int, BigInt | Decimal | Double)
        | (BigInt, Decimal)
        | (Real, Double) => true,
        // Casts may round timestamps to the precision of their type, but that does not affect
        // dates.
        (Date, Timestamp) => true,
        _ => false,
    }
}

impl<'v> Place<'v> {
    /// Returns the position among the values of a column of this type.
    pub fn of(value: DatumRef<'v>, kind: &ColumnType) -> Place<'v> {
        match value {
            DatumRef::Null => Place::Nowhere,
            DatumRef::SmallInt(value) => Place::of_whole(value.into(), kind),
            DatumRef::Int(value) => Place::of_whole(value.into(), kind),
            DatumRef::BigInt(value) => Place::of_whole(value.into(), kind),
            DatumRef::Decimal { unscaled, scale } => Place::of_decimal(unscaled, scale, kind),
            DatumRef::Real(number) => match kind.kind {
                Type::Real => Place::At(value.to_value()),
                _ => Place::of_double(number.into(), kind),
            },
            DatumRef::Double(number) => Place::of_double(number, kind),
            DatumRef::Timestamp(micros) if kind.kind == Type::Date => {
                let (day, is_exact) = (micros.div_euclid(DAY), micros.rem_euclid(DAY) == 0);
                // The range of timestamps lies within that of dates.
                match i32::try_from(day) {
                    Ok(day) if is_exact => Place::At(Value::Date(day)),
                    Ok(day) => Place::Above(Value::Date(day)),
                    Err(_) => Place::beyond(day > 0),
                }
            }
            DatumRef::Date(day) if kind.kind == Type::Timestamp => match i64::from(day).checked_mul(DAY) {
                Some(micros) => Place::At(Value::Timestamp(micros)),
                None => Place::beyond(day > 0),
            },
            value if value.type_of() == Some(kind.kind) => Place::At(value.to_value()),
            _ => Place::Nowhere,
        }
    }

    fn beyond(is_above: bool) -> Self {
        if is_above { Place::AboveAll } else { Place::BelowAll }
    }

    fn of_whole(whole: i128, kind: &ColumnType) -> Self {
        match kind.kind {
            Type::Decimal => Place::of_decimal(whole, 0, kind),
            // All other numbers were converted to the column's type when the statement was planned.
            Type::Double => Place::At(Value::Double(whole as f64)),
            Type::Real => Place::At(Value::Real(whole as f32)),
            _ => Place::of_floor(whole, true, kind),
        }
    }

    /// Returns the position of a number, given the largest integer that is not above it.
    fn of_floor(floor: i128, is_exact: bool, kind: &ColumnType) -> Self {
        let value = match kind.kind {
            Type::SmallInt => i16::try_from(floor).ok().map(Value::SmallInt),
            Type::Int => i32::try_from(floor).ok().map(Value::Int),
            Type::BigInt => i64::try_from(floor).ok().map(Value::BigInt),
            _ => return Place::Nowhere,
        };
        match value {
            Some(value) if is_exact => Place::At(value),
            Some(value) => Place::Above(value),
            None => Place::beyond(floor > 0),
        }
    }

    fn of_decimal(unscaled: i128, scale: u8, kind: &ColumnType) -> Self {
        let to = match (kind.kind, kind.decimal) {
            (Type::Decimal, Some((_, to))) => to,
            (Type::Decimal, None) => return Place::At(Value::Decimal(unscaled)),
            (Type::SmallInt | Type::Int | Type::BigInt, _) => 0,
            _ => return Place::Nowhere,
        };
        let place = |unscaled: i128, is_exact| match (kind.kind, is_exact) {
            (Type::Decimal, true) => Place::At(Value::Decimal(unscaled)),
            (Type::Decimal, false) => Place::Above(Value::Decimal(unscaled)),
            _ => Place::of_floor(unscaled, is_exact, kind),
        };
        if scale > to {
            let unit = pow10((scale - to).into()).unwrap_or(i128::MAX);
            return place(unscaled.div_euclid(unit), unscaled.rem_euclid(unit) == 0);
        }
        match rescale_exact(unscaled, scale, to) {
            Some(unscaled) => place(unscaled, true),
            // Farther from zero than any value of the column.
            None => Place::beyond(unscaled > 0),
        }
    }

    fn of_double(number: f64, kind: &ColumnType) -> Self {
        match kind.kind {
            Type::Double => Place::At(Value::Double(number)),
            Type::Real => {
                let near = number as f32;
                match f64::from(near).partial_cmp(&number) {
                    // NaN is NaN in both types.
                    None | Some(std::cmp::Ordering::Equal) => Place::At(Value::Real(near)),
                    Some(std::cmp::Ordering::Less) => Place::Above(Value::Real(near)),
                    Some(std::cmp::Ordering::Greater) => Place::Above(Value::Real(near.next_down())),
                }
            }
            // NaN is above all numbers. The conversion to i128 saturates, so that larger numbers
            // are beyond all values.
            _ if number.is_nan() => Place::AboveAll,
            _ => Place::of_floor(number.floor() as i128, number.floor() == number, kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a value of another type has the position of its number or timestamp. Method: values
    /// at, between and beyond those of each type.
    #[test]
    fn places() {
        use DatumRef as D;
        let (small, int, big): (ColumnType, ColumnType, ColumnType) =
            (Type::SmallInt.into(), Type::Int.into(), Type::BigInt.into());
        let decimal = |unscaled, scale| D::Decimal { unscaled, scale };
        for (value, kind, place) in [
            (D::BigInt(7), &int, Place::At(Value::Int(7))),
            (D::BigInt(1 << 40), &int, Place::AboveAll),
            (D::BigInt(-1 << 40), &int, Place::BelowAll),
            (D::Int(40_000), &small, Place::AboveAll),
            (D::SmallInt(-3), &big, Place::At(Value::BigInt(-3))),
            (decimal(150, 2), &int, Place::Above(Value::Int(1))),
            (decimal(-150, 2), &int, Place::Above(Value::Int(-2))),
            (decimal(200, 2), &int, Place::At(Value::Int(2))),
            (decimal(10_i128.pow(30), 0), &big, Place::AboveAll),
            (D::Double(-0.5), &int, Place::Above(Value::Int(-1))),
            (D::Double(3.0), &int, Place::At(Value::Int(3))),
            (D::Double(f64::NAN), &int, Place::AboveAll),
            (D::Double(f64::NEG_INFINITY), &int, Place::BelowAll),
            (D::Double(1e300), &small, Place::AboveAll),
            (D::Timestamp(-1), &Type::Date.into(), Place::Above(Value::Date(-1))),
            (D::Timestamp(DAY), &Type::Date.into(), Place::At(Value::Date(1))),
            (D::Date(1), &Type::Timestamp.into(), Place::At(Value::Timestamp(DAY))),
            (D::Date(i32::MIN), &Type::Timestamp.into(), Place::BelowAll),
            (D::Double(0.5), &Type::Real.into(), Place::At(Value::Real(0.5))),
            (D::Double(0.1), &Type::Real.into(), Place::Above(Value::Real(0.1_f32.next_down()))),
            (D::Double(-1e300), &Type::Real.into(), Place::Above(Value::Real(f32::NEG_INFINITY))),
            (D::Double(1e300), &Type::Real.into(), Place::Above(Value::Real(f32::MAX))),
            (decimal(15, 1), &ColumnType::decimal(9, 0), Place::Above(Value::Decimal(1))),
            (D::Int(2), &ColumnType::decimal(9, 2), Place::At(Value::Decimal(200))),
            (D::Null, &int, Place::Nowhere),
            (D::Text("1"), &int, Place::Nowhere),
        ] {
            assert_eq!(Place::of(value, kind), place, "{value:?} among {kind:?}");
        }
    }
}
