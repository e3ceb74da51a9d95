//! Aggregates over all rows of an access path.

use std::cmp::Ordering;

use cairn_table::row::{Order, Type};
use cairn_table::schema::ColumnType;
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, SelectItem,
};

use super::Binder;
use super::source::name_of;
use crate::column::Column;
use crate::datum::{Datum, DatumRef};
use crate::error::Error;
use crate::expr::{Env, Failure, Node, Scope, compare, one_nan, too_large};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;
use crate::syntax::{ident, last_name};

/// An aggregate.
#[derive(Debug, Clone)]
pub(crate) struct Aggregate {
    pub(super) kind: Kind,
    /// `None` for `count(*)`.
    pub input: Option<Node>,
    /// The first row that is not NULL decides the result.
    pub first_is_enough: bool,
}

/// The function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Count,
    Min,
    Max,
    Sum,
}

/// Aggregates and their result columns.
type Found = (Vec<Aggregate>, Vec<Column>);

/// The state of an aggregate.
#[derive(Debug)]
pub(crate) struct Accumulator {
    count: i64,
    sum: i128,
    scale: u8,
    double: f64,
    best: Datum,
}

impl Aggregate {
    /// Returns the aggregates of a select list; `None` if it has anything else.
    pub fn all(
        items: &[SelectItem],
        scope: &Scope,
        binder: &mut Binder<'_>,
    ) -> Result<Option<Found>, Failure> {
        let (mut aggregates, mut columns) = (Vec::new(), Vec::new());
        for item in items {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, name_of(expr)),
                SelectItem::ExprWithAlias { expr, alias } => (expr, ident(alias)),
                _ => return Ok(None),
            };
            let Expr::Function(function) = expr else { return Ok(None) };
            let Some((aggregate, kind)) = one(function, scope, binder)? else { return Ok(None) };
            aggregates.push(aggregate);
            columns.push(Column::new(name, kind));
        }
        Ok(Some((aggregates, columns)))
    }

    /// Returns the column and order whose first value is the result.
    pub fn end_of(&self) -> Option<(usize, Order)> {
        let Some(Node::Slot { slot, .. }) = self.input else { return None };
        match self.kind {
            Kind::Min => Some((slot, Order { descending: false, nulls_first: false })),
            Kind::Max => Some((slot, Order { descending: true, nulls_first: true })),
            _ => None,
        }
    }

    pub fn begin(&self) -> Accumulator {
        Accumulator { count: 0, sum: 0, scale: 0, double: 0.0, best: Datum::Null }
    }

    /// Adds a row. Returns true if no further row can change the result.
    pub fn add(&self, to: &mut Accumulator, env: &Env<'_>) -> Result<bool, Error> {
        let Some(input) = &self.input else {
            to.count += 1;
            return Ok(false);
        };
        let value = input.eval(env)?;
        let datum = value.get();
        if datum.is_null() {
            return Ok(false);
        }
        to.count += 1;
        match self.kind {
            Kind::Count => {}
            Kind::Sum => to.sum(datum)?,
            Kind::Min | Kind::Max => {
                let wanted = if self.kind == Kind::Min { Ordering::Less } else { Ordering::Greater };
                if to.best.is_null() || compare(datum, to.best.borrow()) == Some(wanted) {
                    to.best = datum.to_owned();
                }
            }
        }
        Ok(self.first_is_enough)
    }

    /// Returns the result row.
    ///
    /// Errors: sums out of range of their type.
    pub fn end_all(aggregates: &[Aggregate], totals: Vec<Accumulator>) -> Result<Vec<Datum>, Error> {
        aggregates.iter().zip(totals).map(|(aggregate, total)| aggregate.end(total)).collect()
    }

    fn end(&self, of: Accumulator) -> Result<Datum, Error> {
        Ok(match self.kind {
            Kind::Count => Datum::BigInt(of.count),
            Kind::Min | Kind::Max => of.best,
            Kind::Sum if of.count == 0 => Datum::Null,
            Kind::Sum => match of.best {
                Datum::Double(_) => Datum::Double(one_nan(of.double)),
                Datum::Decimal { .. } => Datum::Decimal { unscaled: of.sum, scale: of.scale },
                _ => Datum::BigInt(
                    i64::try_from(of.sum)
                        .map_err(|_| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
                ),
            },
        })
    }
}

/// Whether adding two finite doubles overflowed to infinity. An infinite operand is no overflow. As
/// in PostgreSQL, the result depends on the order of the additions.
#[inline]
pub(crate) fn leaves_doubles(sum: f64, (a, b): (f64, f64)) -> bool {
    sum.is_infinite() && a.is_finite() && b.is_finite()
}

impl Accumulator {
    fn sum(&mut self, datum: DatumRef<'_>) -> Result<(), Error> {
        let overflow = || Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range");
        let whole = match datum {
            DatumRef::SmallInt(value) => value.into(),
            DatumRef::Int(value) => value.into(),
            DatumRef::BigInt(value) => {
                self.best = Datum::Decimal { unscaled: 0, scale: 0 };
                value.into()
            }
            DatumRef::Decimal { unscaled, scale } => {
                self.scale = scale;
                self.best = Datum::Decimal { unscaled: 0, scale };
                unscaled
            }
            DatumRef::Double(value) => {
                let sum = self.double + value;
                if leaves_doubles(sum, (self.double, value)) {
                    return Err(too_large());
                }
                self.double = sum;
                self.best = Datum::Double(0.0);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.sum = self.sum.checked_add(whole).ok_or_else(overflow)?;
        Ok(())
    }
}

/// Returns the aggregate of a function call; `None` for other functions.
pub(super) fn one(
    function: &Function,
    scope: &Scope,
    binder: &mut Binder<'_>,
) -> Result<Option<(Aggregate, ColumnType)>, Failure> {
    let kind = match last_name(&function.name).as_str() {
        "count" => Kind::Count,
        "min" => Kind::Min,
        "max" => Kind::Max,
        "sum" => Kind::Sum,
        _ => return Ok(None),
    };
    let FunctionArguments::List(list) = &function.args else { return Err(Failure::Unknown) };
    let distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
    if distinct
        || !list.clauses.is_empty()
        || function.over.is_some()
        || function.filter.is_some()
        || !function.within_group.is_empty()
    {
        return Err(Failure::Unknown);
    }
    let expr = match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if kind == Kind::Count => {
            return Ok(Some((Aggregate { kind, input: None, first_is_enough: false }, Type::BigInt.into())));
        }
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => expr,
        _ => return Err(Failure::Unknown),
    };
    let (input, of) = binder.compiler(scope).output(expr)?;
    let of_kind = of.kind;
    let result = match (kind, of.kind) {
        (Kind::Count, _) => Type::BigInt.into(),
        (Kind::Min | Kind::Max, Type::Boolean | Type::Uuid | Type::Interval | Type::Blob) => {
            return Err(Failure::Unknown);
        }
        (Kind::Min | Kind::Max, _) => of,
        (Kind::Sum, Type::SmallInt | Type::Int) => Type::BigInt.into(),
        // The sum may exceed a bigint.
        (Kind::Sum, Type::BigInt) => ColumnType::decimal(38, 0),
        (Kind::Sum, Type::Double | Type::Decimal) => of,
        _ => return Err(Failure::Unknown),
    };
    // A sum of decimals has the scale of its input. A computed input may have a larger scale, and
    // is left to the general path.
    if kind == Kind::Sum && of_kind == Type::Decimal && !matches!(input, Node::Slot { .. }) {
        return Err(Failure::Unknown);
    }
    Ok(Some((Aggregate { kind, input: Some(input), first_is_enough: false }, result)))
}
