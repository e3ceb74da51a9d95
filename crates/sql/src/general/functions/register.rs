//! Registers our functions, replacing DataFusion's of the same names.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::ScalarUDF;

use super::texts::{encode, list_of_texts, patterns};
use super::{
    LOCAL, NOW, RowFunction, STATEMENT, direct_functions, empty_batches, fields, list_casts, list_markers,
    ranks, single_value, time_zones,
};
use crate::datum::Datum;
use crate::expr::{first_match, names_for_general_path, split};
use crate::general::aggregates::string_agg::string_agg;
use crate::general::aggregates::{self, keeping, statistics_of};
use crate::general::markers::INTERVAL;
use crate::general::operators::shared_cte;
use crate::general::plan::recursion;
use crate::general::rules::{quotients, text_casts, zone_marks};

/// Registers all functions.
///
/// Errors: none known.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    replace_failing(state)?;
    for function in times().into_iter().chain(markers()).chain(casts()).chain(texts()) {
        state.register_udf(Arc::new(function))?;
    }
    for name in names_for_general_path() {
        state.register_udf(Arc::new(direct_functions::function(name)))?;
    }
    for function in fields::functions().chain(list_casts::functions()).chain(list_casts::measures()) {
        state.register_udf(Arc::new(function))?;
    }
    state.register_udf(direct_functions::span())?;
    state.register_udf(zone_marks::unmark())?;
    state.register_expr_planner(Arc::new(direct_functions::Times))?;
    state.register_expr_planner(Arc::new(quotients::Untyped))?;
    register_aggregates(state)
}

/// Replaces DataFusion's functions that fail on an empty batch.
fn replace_failing(state: &mut SessionState) -> Result<()> {
    for name in empty_batches::FUNCTIONS {
        if let Some(function) = state.scalar_functions().get(name).cloned() {
            state.register_udf(Arc::new(empty_batches::tolerant(function)))?;
        }
    }
    Ok(())
}

/// Aggregates and window functions.
fn register_aggregates(state: &mut SessionState) -> Result<()> {
    for name in ["min", "max", "array_agg"] {
        let of = state.udaf(name)?;
        state.register_udaf(Arc::new(keeping(of)))?;
    }
    state.register_udaf(aggregates::sum())?;
    state.register_udaf(Arc::new(string_agg()))?;
    for name in aggregates::STATISTICS {
        let of = state.udaf(name)?;
        state.register_udaf(Arc::new(statistics_of(of)))?;
    }
    for (name, kind) in ranks::RANKS {
        let of = state.udwf(name)?;
        state.register_udwf(Arc::new(ranks::rank(of, kind)))?;
    }
    Ok(())
}

/// The clock, and time zones.
fn times() -> Vec<ScalarUDF> {
    let names = ["current_timestamp", "transaction_timestamp"];
    vec![
        RowFunction::moment(NOW, true).with_aliases(names),
        RowFunction::moment(STATEMENT, true),
        RowFunction::moment(LOCAL, false),
        time_zones::at_zone(),
    ]
}

/// Functions that a rewritten statement calls.
fn markers() -> Vec<ScalarUDF> {
    vec![
        list_markers::list_marker(),
        single_value::single_value(),
        shared_cte::marker(),
        recursion::branch(),
        single_value::nullable(),
        single_value::without_metadata(),
        list_casts::has(),
    ]
}

/// Casts.
fn casts() -> Vec<ScalarUDF> {
    vec![
        text_casts::zoned(),
        text_casts::numeric(),
        direct_functions::to_time(),
        direct_functions::to_moment(),
        direct_functions::to_varchar(),
        direct_functions::to("cairn_uuid", Type::Uuid.into()),
        direct_functions::to("cairn_bytea", Type::Blob.into()),
        direct_functions::to(INTERVAL, Type::Interval.into()),
        direct_functions::to("cairn_to_json", ColumnType::json()),
        direct_functions::to("cairn_text", Type::Text.into()),
    ]
}

/// Functions of texts.
fn texts() -> Vec<ScalarUDF> {
    let matches = list_of_texts("regexp_match", &[2, 3], |given| match given {
        [text, pattern, flags @ ..] => first_match(text, pattern, flags.first().map_or("", String::as_str)),
        _ => Ok(Datum::Null),
    });
    let parts = list_of_texts("regexp_split_to_array", &[2, 3], |given| match given {
        [text, pattern, flags @ ..] => split(text, pattern, flags.first().map_or("", String::as_str)),
        _ => Ok(Datum::Null),
    });
    let [escaped, similar] = patterns();
    vec![encode(), escaped, similar, matches, parts]
}
