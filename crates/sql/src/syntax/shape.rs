//! Properties of queries.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, GroupByExpr, Select};

use super::last_name;
use crate::syntax::walk::visit_expressions;

/// Whether a select groups its rows.
pub(crate) fn groups(select: &Select) -> bool {
    match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(by, _) => !by.is_empty(),
    }
}

const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "first_value",
    "last_value",
    "stddev",
    "stddev_samp",
    "stddev_pop",
    "variance",
    "var_samp",
    "var_pop",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "median",
];

/// Whether an expression is an aggregate.
pub(crate) fn is_call_of_aggregate(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function)
        if function.over.is_none() && AGGREGATES.contains(&last_name(&function.name).as_str()))
}

/// Whether an expression contains an aggregate.
pub(crate) fn is_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    let _ = visit_expressions(expr, |expr| {
        found |= is_call_of_aggregate(expr);
        ControlFlow::<()>::Continue(())
    });
    found
}
