//! Operand and result types of operators.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::cast::rank;
use super::functions::{Kind, operators};
use super::operator::Operator;
use super::{Compiler, Failure, Node, Typed};
use crate::error::Error;
use crate::sqlstate::UNDEFINED_FUNCTION;
use crate::types::name_of;

/// Returns the common type in which values of two types are compared and computed.
pub(super) fn common(a: &ColumnType, b: &ColumnType) -> Option<ColumnType> {
    if a.kind == b.kind {
        let decimal = match (a.decimal, b.decimal) {
            (Some((_, m)), Some((_, n))) => Some((38, m.max(n))),
            _ => None,
        };
        let is_json = a.is_json && b.is_json;
        let length = if a.length == b.length { a.length } else { None };
        let mut kind = ColumnType::new(a.kind);
        (kind.decimal, kind.is_json, kind.length) = (decimal, is_json, length);
        kind.is_zoned = a.is_zoned || b.is_zoned;
        return Some(kind);
    }
    match (a.kind, b.kind) {
        (Type::Date, Type::Timestamp) => return Some(b.clone()),
        (Type::Timestamp, Type::Date) => return Some(a.clone()),
        (Type::Time, Type::Interval) | (Type::Interval, Type::Time) => return Some(Type::Interval.into()),
        _ => {}
    }
    let (m, n) = (rank(a.kind)?, rank(b.kind)?);
    let (higher, lower) = if m > n { (a, b) } else { (b, a) };
    Some(match higher.kind {
        // A real with another numeric type is computed in double precision.
        Type::Real | Type::Double => Type::Double.into(),
        Type::Decimal => {
            let (_, scale) = higher.decimal.unwrap_or((38, 0));
            debug_assert!(lower.decimal.is_none());
            ColumnType::decimal(38, scale)
        }
        kind => kind.into(),
    })
}

/// Returns the error for an operator that two types do not have; `None` if both convert to a common
/// type.
pub(crate) fn undefined_operator(symbol: &str, left: &ColumnType, right: &ColumnType) -> Option<Error> {
    common(left, right).is_none().then(|| no_operator(symbol, left, right))
}

/// Returns the error for an operator that does not exist for two types.
pub(crate) fn no_operator(symbol: &str, left: &ColumnType, right: &ColumnType) -> Error {
    let what = format!("operator does not exist: {} {symbol} {}", name_of(left), name_of(right));
    let hint =
        "No operator matches the given name and argument types. You might need to add explicit type casts.";
    Error::new(UNDEFINED_FUNCTION, what).with_hint(hint)
}

pub(super) fn undefined(symbol: &str, left: &ColumnType, right: &ColumnType) -> Failure {
    no_operator(symbol, left, right).into()
}

impl Compiler<'_> {
    /// Converts two expressions to a common type, for a comparison.
    pub(super) fn unify(
        &mut self,
        left: Typed,
        right: Typed,
        symbol: &str,
    ) -> Result<(Typed, Typed), Failure> {
        match (&left.kind, &right.kind) {
            (None, None) => {
                let text = Type::Text.into();
                Ok((self.coerce(left, &text)?, self.coerce(right, &text)?))
            }
            (Some(kind), None) => {
                let kind = kind.clone();
                Ok((left, self.coerce(right, &kind)?))
            }
            (None, Some(kind)) => {
                let kind = kind.clone();
                Ok((self.coerce(left, &kind)?, right))
            }
            (Some(a), Some(b)) if a.kind == b.kind => Ok((left, right)),
            (Some(a), Some(b)) => {
                // A constant that fits takes the type of the other operand, so that an index of
                // that type can be used.
                if let Some(right) = narrowed(&right, a) {
                    return Ok((left, right));
                }
                if let Some(left) = narrowed(&left, b) {
                    return Ok((left, right));
                }
                let Some(kind) = common(a, b) else { return Err(undefined(symbol, a, b)) };
                if kind.kind == Type::Decimal {
                    // Numerics of different scales can be compared directly. An integer might
                    // overflow at the scale of the other operand.
                    let own = |kind: &ColumnType| match kind.kind {
                        Type::Decimal => kind.clone(),
                        _ => ColumnType::decimal(38, 0),
                    };
                    let (a, b) = (own(a), own(b));
                    return Ok((self.coerce(left, &a)?, self.coerce(right, &b)?));
                }
                Ok((self.coerce(left, &kind)?, self.coerce(right, &kind)?))
            }
        }
    }

    /// Compiles an operator over two expressions.
    pub(super) fn operator(
        &mut self,
        operator: Operator,
        symbol: &str,
        left: Typed,
        right: Typed,
    ) -> Result<Typed, Failure> {
        if operator == Operator::Concat {
            return self.concat(left, right);
        }
        let (left, right) = self.settle(operator, left, right)?;
        let (Some(a), Some(b)) = (left.kind.clone(), right.kind.clone()) else {
            return Err(Failure::Unknown);
        };
        if rank(a.kind).is_none() || rank(b.kind).is_none() {
            return self.temporal(operator, symbol, left, right);
        }
        let mut kind = common(&a, &b).ok_or(Failure::Unknown)?;
        if matches!(operator, Operator::ShiftLeft | Operator::ShiftRight) {
            // The shift count is an integer, whatever type is shifted.
            if !a.kind.is_integer() || !matches!(b.kind, Type::SmallInt | Type::Int) {
                return Err(undefined(symbol, &a, &b));
            }
            let pair = [left.node, self.coerce(right, &Type::Int.into())?.node];
            return Ok(Typed::new(Node::Binary(operator, Box::new(pair)), a));
        }
        // Numerics too are computed as doubles.
        if operator == Operator::Power {
            kind = Type::Double.into();
        }
        if !operators::computes_in(operator, Kind::of(&kind)) {
            return Err(undefined(symbol, &a, &b));
        }
        let scales = (a.decimal.map_or(0, |(_, m)| m), b.decimal.map_or(0, |(_, n)| n));
        let pair = if kind.kind == Type::Decimal {
            // Decimals keep their own scales; integers become decimals.
            let own = |kind: &ColumnType| {
                kind.decimal.map_or(ColumnType::decimal(38, 0), |(_, scale)| ColumnType::decimal(38, scale))
            };
            [self.coerce(left, &own(&a))?.node, self.coerce(right, &own(&b))?.node]
        } else {
            [self.coerce(left, &kind)?.node, self.coerce(right, &kind)?.node]
        };
        if kind.kind == Type::Decimal {
            kind = ColumnType::decimal(
                38,
                match operator {
                    Operator::Multiply => (scales.0 + scales.1).min(38),
                    Operator::Divide => scales.0.max(scales.1).max(16),
                    _ => scales.0.max(scales.1),
                },
            );
        }
        Ok(Typed::new(Node::Binary(operator, Box::new(pair)), kind))
    }

    /// Gives a type to the untyped operand: that of the other operand, or interval if it is added
    /// to a time.
    fn settle(&mut self, operator: Operator, left: Typed, right: Typed) -> Result<(Typed, Typed), Failure> {
        let other = |kind: &ColumnType| match (kind.kind, operator) {
            (Type::Timestamp | Type::Time, Operator::Add) => Some(Type::Interval.into()),
            (Type::Date, _) | (Type::Interval, Operator::Multiply | Operator::Divide) => None,
            _ => Some(kind.clone()),
        };
        Ok(match (&left.kind, &right.kind) {
            (Some(kind), None) => {
                let kind = other(kind).ok_or(Failure::Unknown)?;
                (left, self.coerce(right, &kind)?)
            }
            (None, Some(kind)) => {
                let kind = other(kind).ok_or(Failure::Unknown)?;
                (self.coerce(left, &kind)?, right)
            }
            (None, None) => return Err(Failure::Unknown),
            _ => (left, right),
        })
    }

    fn concat(&mut self, left: Typed, right: Typed) -> Result<Typed, Failure> {
        let is = |typed: &Typed, kind: Type| typed.kind.as_ref().is_some_and(|of| of.kind == kind);
        let kind = if is(&left, Type::Blob) || is(&right, Type::Blob) { Type::Blob } else { Type::Text };
        let open = |typed: &Typed| typed.kind.is_none();
        let any = is(&left, kind) || is(&right, kind) || open(&left) || open(&right);
        let both = (is(&left, kind) || open(&left)) && (is(&right, kind) || open(&right));
        if !any || (kind == Type::Blob && !both) {
            return Err(Failure::Unknown);
        }
        let kind = kind.into();
        let pair = [self.coerce(left, &kind)?.node, self.coerce(right, &kind)?.node];
        Ok(Typed::new(Node::Binary(Operator::Concat, Box::new(pair)), kind))
    }

    /// Compiles an operator of which an operand is a date, time or interval.
    fn temporal(
        &mut self,
        operator: Operator,
        symbol: &str,
        left: Typed,
        right: Typed,
    ) -> Result<Typed, Failure> {
        let (Some(a), Some(b)) = (left.kind.clone(), right.kind.clone()) else {
            return Err(Failure::Unknown);
        };
        let found = operators::find(operator, Kind::of(&a), Kind::of(&b));
        let found = found.ok_or_else(|| undefined(symbol, &a, &b))?;
        let (to_left, to_right) = found.computed_as();
        let left = self.coerce(left, &to_left.column_type())?.node;
        let right = self.coerce(right, &to_right.column_type())?.node;
        Ok(Typed::new(Node::Binary(operator, Box::new([left, right])), found.result.column_type()))
    }
}

/// Converts a numeric constant to another type; `None` if that changes its value.
fn narrowed(constant: &Typed, to: &ColumnType) -> Option<Typed> {
    let Node::Const(datum) = &constant.node else { return None };
    rank(to.kind)?;
    rank(constant.kind.as_ref()?.kind)?;
    if matches!(to.kind, Type::Real | Type::Double) {
        return None;
    }
    let value = super::cast(datum.borrow(), to).ok()?.into_datum();
    let same = match (&value, datum) {
        (_, Datum::Real(_) | Datum::Double(_)) => false,
        _ => {
            let wide = ColumnType::decimal(38, 10);
            let (a, b) = (super::cast(value.borrow(), &wide).ok()?, super::cast(datum.borrow(), &wide).ok()?);
            a.get() == b.get() && exact(datum)
        }
    };
    same.then(|| Typed::new(Node::Const(value), to.clone()))
}

use crate::datum::Datum;

/// Whether ten fractional digits represent the number exactly.
fn exact(datum: &Datum) -> bool {
    !matches!(datum, Datum::Decimal { scale, .. } if *scale > 10)
}
