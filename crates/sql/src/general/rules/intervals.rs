//! Comparisons of intervals by length: a month counts as thirty days, as in PostgreSQL. Arrow
//! orders intervals by months, then days, then nanoseconds.

use arrow::datatypes::{DataType, IntervalUnit};
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, JoinConstraint, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList, ScalarFunction, Sort};
use datafusion::logical_expr::{
    Aggregate, Cast, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    WindowFunctionDefinition, when,
};

use crate::error::Error;
use crate::general::aggregates::interval_extremes::{extreme, extreme_of};
use crate::general::errors::external;
use crate::general::functions::direct_functions::span_of;
use crate::general::tree::expression_types::type_of;

const SPAN: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

fn is_interval(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_))
}

fn is_span(expr: &Expr, schema: &DFSchema) -> bool {
    type_of(expr, schema).is_some_and(|kind| is_interval(&kind))
}

fn refused(what: &str) -> DataFusionError {
    external(Error::unsupported(format_args!("{what} of intervals in general queries")))
}

/// Replaces intervals in sort keys by their lengths.
pub(crate) fn in_order(order: &mut [Sort], schema: &DFSchema) {
    for sort in order {
        if is_span(&sort.expr, schema) {
            sort.expr = span_of(std::mem::take(&mut sort.expr));
        }
    }
}

/// Rewrites the sort keys and join keys of a plan.
pub(crate) fn in_plan(plan: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            in_order(&mut sort.expr, schema);
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_span(left, schema) && is_span(right, schema) {
                    *left = span_of(std::mem::take(left));
                    *right = span_of(std::mem::take(right));
                    // USING requires plain columns. Its names have been resolved by now.
                    join.join_constraint = JoinConstraint::On;
                }
            }
            LogicalPlan::Join(join)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            for by in &mut on.on_expr {
                if is_span(by, schema) {
                    *by = span_of(std::mem::take(by));
                }
            }
            in_order(on.sort_expr.as_deref_mut().unwrap_or_default(), schema);
            LogicalPlan::Distinct(Distinct::On(on))
        }
        other => other,
    }
}

/// Groups by the lengths of intervals, and removes duplicates by them. A group shows the interval
/// of one of its rows.
///
/// Errors: 0A000 for grouping sets.
pub(crate) fn in_groups(plan: LogicalPlan) -> Result<LogicalPlan> {
    let aggregate = match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate,
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let has_spans = input.schema().fields().iter().any(|field| is_interval(field.data_type()));
            if !has_spans {
                return Ok(LogicalPlan::Distinct(Distinct::All(input)));
            }
            let all = input.schema().columns().into_iter().map(Expr::Column).collect();
            Aggregate::try_new(input, all, Vec::new())?
        }
        other => return Ok(other),
    };
    let schema = Arc::clone(aggregate.input.schema());
    if let [Expr::GroupingSet(sets)] = aggregate.group_expr.as_slice() {
        return match sets.distinct_expr().into_iter().any(|by| is_span(by, &schema)) {
            true => Err(refused("grouping sets")),
            false => Ok(LogicalPlan::Aggregate(aggregate)),
        };
    }
    if !aggregate.group_expr.iter().any(|by| is_span(by, &schema)) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let Aggregate { input, group_expr, aggr_expr, schema: shown, .. } = aggregate;
    // Duplicate grouping columns are output only once.
    let group_expr = distinct(group_expr);
    let (mut groups, mut firsts, mut results) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = shown.iter();
    for (at, (by, (table, field))) in group_expr.into_iter().zip(fields.by_ref()).enumerate() {
        if is_span(&by, &schema) {
            let first = format!("cairn span {at}");
            let of_one = first_value_udaf().call(vec![by.clone()]).alias(&first);
            firsts.push(of_one);
            let result = Expr::Column(Column::new_unqualified(first));
            results.push(result.alias_qualified(table.cloned(), field.name()));
            groups.push(span_of(by).alias(format!("cairn length {at}")));
        } else {
            groups.push(by);
            results.push(Expr::Column(Column::new(table.cloned(), field.name())));
        }
    }
    results.extend(fields.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))));
    let all = aggr_expr.into_iter().chain(firsts).collect();
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(input, groups, all)?);
    Ok(LogicalPlan::Projection(Projection::try_new(results, Arc::new(grouped))?))
}

fn distinct(all: Vec<Expr>) -> Vec<Expr> {
    let mut each: Vec<Expr> = Vec::with_capacity(all.len());
    for expr in all {
        if !each.contains(&expr) {
            each.push(expr);
        }
    }
    each
}

/// Rewrites calls that compare their arguments.
fn in_call(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut call = call;
    Ok(match call.name() {
        "nullif" => {
            let mut args = call.args.into_iter();
            let (of, other) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
            let same = length(of.clone(), schema).eq(length(other, schema));
            Transformed::yes(when(same, Expr::Literal(ScalarValue::Null, None)).otherwise(of)?)
        }
        "greatest" | "least" => {
            let (is_max, count) = (call.name() == "greatest", call.args.len());
            let args = call.args.into_iter().map(|arg| as_span(arg, schema)).collect();
            call.args = args;
            call.func = Arc::new(extreme_of(is_max, count));
            Transformed::yes(Expr::ScalarFunction(call))
        }
        _ => Transformed::no(Expr::ScalarFunction(call)),
    })
}

/// Rewrites comparisons.
///
/// Errors: 0A000 for functions that would compare intervals by other rules.
pub(crate) fn in_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is = |expr: &Expr| is_span(expr, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) && (is(&left) || is(&right)) => {
            let (left, right) = (Box::new(length(*left, schema)), Box::new(length(*right, schema)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is(&expr) || is(&low) || is(&high) => {
            let [expr, low, high] = [expr, low, high].map(|expr| Box::new(length(*expr, schema)));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if is(&expr) => {
            let list = list.into_iter().map(|item| length(item, schema)).collect();
            Transformed::yes(Expr::InList(InList { expr: Box::new(span_of(*expr)), list, negated }))
        }
        Expr::Case(Case { expr: Some(of), when_then_expr, else_expr }) if is(&of) => {
            let when = when_then_expr.into_iter().map(|(when, then)| (Box::new(length(*when, schema)), then));
            let when_then_expr = when.collect();
            Transformed::yes(Expr::Case(Case {
                expr: Some(Box::new(span_of(*of))),
                when_then_expr,
                else_expr,
            }))
        }
        Expr::InSubquery(mut within) if is(&within.expr) => {
            let plan = Arc::unwrap_or_clone(within.subquery.subquery);
            let lengths =
                plan.schema().columns().into_iter().map(|column| length(Expr::Column(column), plan.schema()));
            let lengths: Vec<Expr> = lengths.collect();
            within.subquery.subquery = Arc::new(LogicalPlanBuilder::from(plan).project(lengths)?.build()?);
            within.expr = Box::new(span_of(*within.expr));
            Transformed::yes(Expr::InSubquery(within))
        }
        Expr::ScalarFunction(call) if call.args.iter().any(is) => in_call(call, schema)?,
        Expr::AggregateFunction(mut function) if function.params.args.first().is_some_and(is) => {
            match function.func.name() {
                name @ ("min" | "max") => function.func = Arc::new(extreme(name == "max")),
                "count" if function.params.distinct => {
                    let args = std::mem::take(&mut function.params.args);
                    function.params.args = args.into_iter().map(|arg| length(arg, schema)).collect();
                }
                _ if function.params.distinct => return Err(refused("aggregates of distinct values")),
                _ => {}
            }
            Transformed::yes(Expr::AggregateFunction(function))
        }
        Expr::WindowFunction(mut function) => {
            let by = std::mem::take(&mut function.params.partition_by);
            function.params.partition_by =
                by.into_iter().map(|by| if is(&by) { span_of(by) } else { by }).collect();
            if let WindowFunctionDefinition::AggregateUDF(of) = &function.fun
                && let name @ ("min" | "max") = of.name()
                && function.params.args.first().is_some_and(is)
            {
                let extreme = Arc::new(extreme(name == "max"));
                function.fun = WindowFunctionDefinition::AggregateUDF(extreme);
            }
            Transformed::yes(Expr::WindowFunction(function))
        }
        other => Transformed::no(other),
    })
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Casts an untyped expression to an interval.
fn as_span(expr: Expr, schema: &DFSchema) -> Expr {
    let is_open =
        matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_));
    if is_open && !is_span(&expr, schema) { Expr::Cast(Cast::new(Box::new(expr), SPAN)) } else { expr }
}

/// Returns the length of an interval or untyped expression; other expressions stay unchanged.
fn length(expr: Expr, schema: &DFSchema) -> Expr {
    let expr = as_span(expr, schema);
    if is_span(&expr, schema) { span_of(expr) } else { expr }
}
