//! Spans of time beside each other, by their lengths: a month is thirty days, as PostgreSQL has it. Arrow orders them by months, then days, then nanoseconds.

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList, Sort};
use datafusion::logical_expr::{Cast, Distinct, Expr, ExprSchemable, LogicalPlan, Operator};

use super::errors::external;
use super::own::span_of;
use crate::error::Error;

fn is_span(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn refused(what: &str) -> DataFusionError {
    external(Error::unsupported(format_args!("{what} of intervals in general queries")))
}

/// What sorts by spans sorts by their lengths.
pub(super) fn in_order(order: &mut [Sort], schema: &DFSchema) {
    for sort in order {
        if is_span(&sort.expr, schema) {
            sort.expr = span_of(std::mem::take(&mut sort.expr));
        }
    }
}

/// Orders and joins of a plan.
///
/// Errors: 0A000 where rows with equal spans would have to be one: which of them is shown could not be said.
pub(super) fn in_plan(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let has_spans = |plan: &LogicalPlan| {
        plan.schema().fields().iter().any(|field| matches!(field.data_type(), DataType::Interval(_)))
    };
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            for by in &mut sort.expr {
                if is_span(&by.expr, schema) {
                    by.expr = span_of(std::mem::take(&mut by.expr));
                }
            }
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                if is_span(left, schema) && is_span(right, schema) {
                    *left = span_of(std::mem::take(left));
                    *right = span_of(std::mem::take(right));
                }
            }
            LogicalPlan::Join(join)
        }
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.iter().any(|by| is_span(by, schema)) => {
            return Err(refused("GROUP BY"));
        }
        LogicalPlan::Distinct(Distinct::On(on)) if on.on_expr.iter().any(|by| is_span(by, schema)) => {
            return Err(refused("DISTINCT ON"));
        }
        LogicalPlan::Distinct(Distinct::All(input)) if has_spans(&input) => return Err(refused("DISTINCT")),
        other => other,
    })
}

/// Comparisons.
///
/// Errors: 0A000 for functions that would order spans in their own way.
pub(super) fn in_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
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
        Expr::InSubquery(within) if is(&within.expr) => return Err(refused("IN (SELECT ...)")),
        Expr::ScalarFunction(call)
            if matches!(call.name(), "nullif" | "greatest" | "least") && call.args.iter().any(is) =>
        {
            return Err(refused(call.name()));
        }
        Expr::AggregateFunction(function)
            if function.params.args.first().is_some_and(is)
                && (matches!(function.func.name(), "min" | "max") || function.params.distinct) =>
        {
            return Err(refused("min, max and aggregates of distinct values"));
        }
        other => Transformed::no(other),
    })
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// How long something is that is a span, or is to be read as one.
fn length(expr: Expr, schema: &DFSchema) -> Expr {
    let is_open =
        matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_));
    if is_open {
        let span = DataType::Interval(IntervalUnit::MonthDayNano);
        return span_of(Expr::Cast(Cast::new(Box::new(expr), span)));
    }
    if is_span(&expr, schema) { span_of(expr) } else { expr }
}
