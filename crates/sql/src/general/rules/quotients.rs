//! Numerics in expressions with other numbers, as in PostgreSQL: quotients have enough digits and
//! are rounded, `avg` of integers is a numeric, and a number beside a floating-point number is
//! converted to one.
//!
//! DataFusion truncates quotients four digits after their operands', computes floating-point
//! averages of integers, and compares a floating-point number with a numeric by converting it to a
//! numeric: `0.1::float8 + 0.2 = 0.3` is true, and no number above 10^15 can be compared at all.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use cairn_table::row::Type;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Aggregate, Cast, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Union, Window,
    WindowFunctionDefinition,
};
use sqlparser::ast::BinaryOperator;

use super::numbers::digits_in_expr;
use super::wide_sums::widened;
use crate::batch::{data_type, kind_of};
use crate::datum::{Datum, OPEN};
use crate::general::aggregates::sum;
use crate::general::functions::direct_functions::cast;
use crate::general::functions::exact_functions::Exact;
use crate::general::tree::expression_types::type_of;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::walk::{Walk, WalkPlan};

/// The least and the largest scale of a quotient; it has the largest one where there is room.
/// PostgreSQL's has sixteen significant digits, which a single type for all rows cannot express.
const DIGITS: (u8, u8) = (18, 20);

/// Digits before the point that a result has room for, if need be at the cost of its scale.
const BEFORE: u8 = 10;

/// Plans numeric arithmetic for whose results DataFusion has no type. DataFusion would fail before
/// there is a plan that a rule could rewrite.
#[derive(Debug)]
pub(crate) struct Untyped;

impl ExprPlanner for Untyped {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_long = |expr: &Expr| match type_of(expr, schema) {
            Some(DataType::Decimal128(_, scale)) => u8::try_from(scale).is_ok_and(|scale| scale > DIGITS.1),
            _ => false,
        };
        if !is_long(&expr.left) && !is_long(&expr.right) {
            return Ok(PlannerResult::Original(expr));
        }
        let (left, right) = (Box::new(expr.left.clone()), Box::new(expr.right.clone()));
        let has_type = Expr::BinaryExpr(BinaryExpr { left, op, right }).get_type(schema).is_ok();
        Ok(match exact(&expr.left, op, &expr.right, schema) {
            Some(exact) if !has_type => PlannerResult::Planned(exact),
            _ => PlannerResult::Original(expr),
        })
    }
}

/// Rewrites a plan in which the types of sums are final, before DataFusion's type coercion.
pub(crate) fn exactly(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan.walk_up_with_subqueries(in_plan)?.data)
}

/// Rewrites a single expression, where its type must be known before the plan around it exists.
pub(crate) fn exactly_expr(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(in_tree(expr, schema)?.data)
}

fn in_tree(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.walk_up(|expr| Ok(in_expr(expr, schema)?.update_data(|expr| of_one_type(expr, schema))))
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Union(union) = plan {
        // Rebuilt, because the union would keep its old types.
        let union = Union::try_new_with_loose_types(union.inputs)?;
        return Ok(Transformed::yes(LogicalPlan::Union(union)));
    }
    let schema = operand_schema(&plan)?;
    let names = NamePreserver::new(&plan);
    let changed = plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        Ok(in_tree(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    let plan = match changed.data {
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_mixed(left, right, &schema) {
                    *left = double(std::mem::take(left), &schema);
                    *right = double(std::mem::take(right), &schema);
                }
            }
            LogicalPlan::Join(join)
        }
        plan => plan,
    };
    let plan = averages(plan.recompute_schema()?, &schema)?;
    Ok(Transformed::yes(plan))
}

/// Whether one operand is a floating-point number that DataFusion would convert to the type of the
/// other.
fn is_mixed(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    match (type_of(left, schema), type_of(right, schema)) {
        (Some(left), Some(right)) => are_mixed(&left, &right),
        _ => false,
    }
}

/// Like [`is_mixed`], for two types.
fn are_mixed(left: &DataType, right: &DataType) -> bool {
    let mixed = |one: &DataType, other: &DataType| match one {
        DataType::Float64 => other.is_decimal(),
        // An integer beside a real: both become double precision, which holds both.
        DataType::Float32 => other.is_decimal() || other.is_integer(),
        _ => false,
    };
    mixed(left, right) || mixed(right, left)
}

/// Converts a number to double precision; other expressions stay unchanged.
fn double(expr: Expr, schema: &DFSchema) -> Expr {
    if let Expr::Literal(ScalarValue::Decimal128(Some(unscaled), _, scale), metadata) = &expr
        && let Ok(value) = match u8::try_from(*scale) {
            Ok(scale) => Datum::Decimal { unscaled: *unscaled, scale }.to_string().parse(),
            Err(_) => format!("{unscaled}e{}", -i32::from(*scale)).parse(),
        }
    {
        return Expr::Literal(ScalarValue::Float64(Some(value)), metadata.clone());
    }
    match expr.to_field(schema) {
        Ok((_, field)) if field.data_type().is_decimal() => cast(expr, kind_of(&field), Type::Double.into()),
        Ok((_, field)) if field.data_type().is_integer() || *field.data_type() == DataType::Float32 => {
            Expr::Cast(Cast::new(Box::new(expr), data_type(&Type::Double.into())))
        }
        _ => expr,
    }
}

fn in_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let boxed = |expr: Box<Expr>| Box::new(double(*expr, schema));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if op.is_numerical_operators() || op.supports_propagation() =>
        {
            // Types are computed only once, because that walks the whole expression below.
            let kinds = type_of(&left, schema).zip(type_of(&right, schema));
            if kinds.as_ref().is_some_and(|(left, right)| are_mixed(left, right)) {
                let (left, right) = (boxed(left), boxed(right));
                return Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            }
            let is_decimal = kinds.is_some_and(|(left, right)| left.is_decimal() || right.is_decimal());
            match is_decimal.then(|| exact(&left, op, &right, schema)).flatten() {
                Some(exact) => Transformed::yes(exact),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Between(Between { expr, negated, low, high })
            if is_mixed(&expr, &low, schema) || is_mixed(&expr, &high, schema) =>
        {
            let (expr, low, high) = (boxed(expr), boxed(low), boxed(high));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated })
            if list.iter().any(|item| is_mixed(&expr, item, schema)) =>
        {
            let list = list.into_iter().map(|item| double(item, schema)).collect();
            Transformed::yes(Expr::InList(InList { expr: boxed(expr), list, negated }))
        }
        Expr::Case(Case { expr: Some(of), when_then_expr, else_expr })
            if when_then_expr.iter().any(|(when, _)| is_mixed(&of, when, schema)) =>
        {
            let when_then_expr = when_then_expr.into_iter().map(|(when, then)| (boxed(when), then)).collect();
            Transformed::yes(Expr::Case(Case { expr: Some(boxed(of)), when_then_expr, else_expr }))
        }
        call @ Expr::ScalarFunction(_) => digits_in_expr(call, schema),
        other => Transformed::no(other),
    })
}

/// Casts the results of a CASE that are numbers or times of several types to the type that holds
/// all of them. Until type coercion, DataFusion takes the type of the first result for the CASE,
/// and sums, quotients and columns of VALUES on it would be planned with that type. The results
/// already have their final scales, in particular quotients have those of this module.
fn of_one_type(expr: Expr, schema: &DFSchema) -> Expr {
    let kind = if matches!(expr, Expr::Case(_)) { type_of(&expr, schema) } else { None };
    let is_known =
        |kind: &DataType| kind.is_numeric() || matches!(kind, DataType::Date32 | DataType::Timestamp(..));
    let Some(kind) = kind.filter(is_known) else { return expr };
    let Expr::Case(mut case) = expr else { return expr };
    let results = case.when_then_expr.iter_mut().map(|(_, then)| then).chain(case.else_expr.as_mut());
    for result in results {
        let is_other = type_of(result, schema).is_some_and(|own| !own.is_null() && own != kind);
        if is_other {
            **result = Expr::Cast(Cast::new(std::mem::take(result), kind.clone()));
        }
    }
    Expr::Case(case)
}

/// Returns precision and scale of a number; `None` for what is neither numeric nor integer.
fn digits(expr: &Expr, schema: &DFSchema) -> Option<(u8, u8)> {
    let of = |value: u64| value.checked_ilog10().map_or(1, |log| log as u8 + 1);
    match expr {
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => {
            return Some((of(value.unsigned_abs().into()), 0));
        }
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => return Some((of(value.unsigned_abs()), 0)),
        _ => {}
    }
    Some(match type_of(expr, schema)? {
        DataType::Int16 => (5, 0),
        DataType::Int32 => (10, 0),
        DataType::Int64 => (19, 0),
        DataType::Decimal128(precision, scale) => (precision, u8::try_from(scale).ok()?),
        _ => return None,
    })
}

/// Returns the scale of a quotient with `before` digits before the point and operands of scale
/// `behind`.
fn places(before: u8, behind: u8) -> u8 {
    let (least, most) = DIGITS;
    let room = DECIMAL128_MAX_PRECISION.saturating_sub(before);
    room.clamp(least, most).max(kept(behind, room))
}

/// Returns how much of the scale `behind` can be kept, with room for `room` digits after the point.
/// It is kept whole where enough digits remain before the point. Where the room is too small, the
/// result is 0 and the caller's minimum applies.
fn kept(behind: u8, room: u8) -> u8 {
    match behind <= room.max(DECIMAL128_MAX_PRECISION - BEFORE) {
        true => behind,
        false if room > DIGITS.1 => room,
        false => 0,
    }
}

/// Returns the scale of an average. Numbers that may have more digits before the point than there
/// is room for keep the scale that DataFusion gives them: four digits more than their own.
fn places_of_average((precision, scale): (u8, u8)) -> u8 {
    let before = precision.saturating_sub(scale);
    let room = DECIMAL128_MAX_PRECISION.saturating_sub(before);
    match scale > 0 && room < OPEN.1 {
        true => room.max(scale + 4).min(DECIMAL128_MAX_PRECISION),
        false => places(before, scale),
    }
}

/// Returns the digits before the point of a number with this precision and scale.
fn before((precision, scale): (u8, u8)) -> u8 {
    precision.saturating_sub(scale)
}

/// Returns a quotient of numerics, or another result whose scale in DataFusion would leave no room
/// before the point.
fn exact(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_decimal = |expr| type_of(expr, schema).is_some_and(|kind| kind.is_decimal());
    if !is_decimal(left) && !is_decimal(right) {
        return None;
    }
    let (a, b) = (digits(left, schema)?, digits(right, schema)?);
    let (exact, scale) = match op {
        Operator::Divide => (Exact::Quotient, places(before(a).saturating_add(b.1), a.1.max(b.1))),
        Operator::Multiply if a.1.saturating_add(b.1) > DIGITS.1 => {
            let room = DECIMAL128_MAX_PRECISION.saturating_sub(before(a).saturating_add(before(b)));
            (Exact::Product, DIGITS.1.max(kept(a.1.max(b.1), room)))
        }
        Operator::Plus | Operator::Minus => {
            let room = DECIMAL128_MAX_PRECISION.saturating_sub(before(a).max(before(b)));
            let behind = a.1.max(b.1);
            // DataFusion rescales one operand to the scale of the other, for which there may be no
            // room.
            if kept(behind, room) == behind {
                return None;
            }
            let exact = if op == Operator::Plus { Exact::Sum } else { Exact::Difference };
            (exact, DIGITS.1.max(kept(behind, room)))
        }
        _ => return None,
    };
    Some(exact.of(scale, [(left.clone(), a), (right.clone(), b)], schema))
}

/// Replaces averages by the quotient of a sum and a count.
fn averages(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Aggregate(aggregate) if has_averages(&aggregate.aggr_expr, schema) => {
            let Aggregate { input, group_expr, aggr_expr, schema: shown, .. } = aggregate;
            let before = shown.fields().len().saturating_sub(aggr_expr.len());
            // The internal grouping id is not needed above: `grouping` is computed below.
            let is_shown = |column: &Column| column.name != Aggregate::INTERNAL_GROUPING_ID;
            let kept = shown.columns().into_iter().take(before).filter(is_shown).map(Expr::Column).collect();
            let (totals, results) = split(aggr_expr, schema);
            let plan = LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, totals)?);
            with_quotients(plan, kept, results)
        }
        LogicalPlan::Window(window) if has_averages(&window.window_expr, schema) => {
            let Window { input, window_expr, .. } = window;
            let kept: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
            let (totals, results) = split(window_expr, schema);
            let plan = LogicalPlan::Window(Window::try_new(totals, input)?);
            with_quotients(plan, kept, results)
        }
        plan => Ok(plan),
    }
}

fn has_averages(all: &[Expr], schema: &DFSchema) -> bool {
    all.iter().any(|expr| average(expr, schema).is_some())
}

/// Computes the results from the totals.
fn with_quotients(plan: LogicalPlan, kept: Vec<Expr>, results: Vec<Total>) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let column = |name: String| Expr::Column(Column::new_unqualified(name));
    let computed = results.into_iter().map(|total| match total {
        Total::Same(name) => column(name),
        Total::Average { name, sum, count, scale } => {
            let (sum, count) = (column(sum), column(count));
            let Some(scale) = scale else {
                let (left, right) = (Box::new(sum), Box::new(double(count, &schema)));
                return Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }).alias(name);
            };
            match (digits(&sum, &schema), digits(&count, &schema)) {
                (Some(a), Some(b)) => Exact::Quotient.of(scale, [(sum, a), (count, b)], &schema).alias(name),
                _ => sum.alias(name),
            }
        }
    });
    let all = kept.into_iter().chain(computed).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(all, Arc::new(plan))?))
}

/// How an aggregate is computed from columns, given by name.
enum Total {
    Same(String),
    Average {
        name: String,
        sum: String,
        count: String,
        /// Digits after the point; `None` for floating-point numbers.
        scale: Option<u8>,
    },
}

/// Replaces averages by sums and counts, without duplicates. Also returns how to compute the
/// results.
fn split(all: Vec<Expr>, schema: &DFSchema) -> (Vec<Expr>, Vec<Total>) {
    let mut totals: Vec<Expr> = Vec::with_capacity(all.len());
    let mut put = |expr: Expr| {
        let name = expr.schema_name().to_string();
        if !totals.iter().any(|total| total.schema_name().to_string() == name) {
            totals.push(expr);
        }
        name
    };
    let mut results = Vec::with_capacity(all.len());
    for expr in all {
        let name = expr.schema_name().to_string();
        results.push(match average(&expr, schema) {
            Some((sum, count, scale)) => Total::Average { name, sum: put(sum), count: put(count), scale },
            None => Total::Same(put(expr)),
        });
    }
    (totals, results)
}

/// Returns the sum, the count and the scale of an average, without a scale for floating-point
/// numbers. `None` for other expressions.
fn average(expr: &Expr, schema: &DFSchema) -> Option<(Expr, Expr, Option<u8>)> {
    let scale = |of: &[Expr]| match of {
        [of] => match type_of(of, schema)? {
            DataType::Float32 | DataType::Float64 => Some(None),
            _ => Some(Some(places_of_average(digits(of, schema)?))),
        },
        _ => None,
    };
    match expr {
        Expr::Alias(alias) => average(&alias.expr, schema),
        Expr::AggregateFunction(function) if function.func.name() == "avg" => {
            let scale = scale(&function.params.args)?;
            let (mut total, mut count) = (function.clone(), function.clone());
            (total.func, count.func) = (sum(), count_udaf());
            let total = widened(Expr::AggregateFunction(total), schema).data;
            Some((total, Expr::AggregateFunction(count), scale))
        }
        Expr::WindowFunction(function) if function.fun.name() == "avg" => {
            let scale = scale(&function.params.args)?;
            let (mut total, mut count) = (function.clone(), function.clone());
            total.fun = WindowFunctionDefinition::AggregateUDF(sum());
            count.fun = WindowFunctionDefinition::AggregateUDF(count_udaf());
            let total = widened(Expr::WindowFunction(total), schema).data;
            Some((total, Expr::WindowFunction(count), scale))
        }
        _ => None,
    }
}
