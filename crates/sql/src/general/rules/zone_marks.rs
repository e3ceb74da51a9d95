//! Restores the time zone property of timestamps where DataFusion loses it.
//!
//! The property is in the field metadata, which DataFusion's functions and CASE drop. If one of the
//! possible results of such an expression has a time zone, as in `greatest(moment_with_zone,
//! moment)`, so has the expression. It is wrapped in an identity function whose field has the
//! metadata.

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, OnceLock};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::batch::{field, kind_of};
use crate::general::tree::expression_types::type_of;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::walk::{Walk, WalkPlan};

/// The rule.
#[derive(Debug)]
pub(crate) struct ZoneMarks;

impl AnalyzerRule for ZoneMarks {
    fn name(&self) -> &str {
        "cairn_zone_marks"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.walk_up_with_subqueries(in_plan)?.data)
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = operand_schema(&plan)?;
    // Most plans have no timestamps, and computing types walks whole expressions.
    let has_moments = schema.fields().iter().any(|field| has_moment(field.data_type()));
    if !has_moments && !plan.expressions().iter().any(makes_moments) {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    let changed = plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.walk_up(|expr| Ok(marked(expr, &schema)))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    // The operators above must see the time zones, whatever has changed here or below.
    if matches!(changed.data, LogicalPlan::Union(_) | LogicalPlan::RecursiveQuery(_) | LogicalPlan::Values(_))
    {
        return Ok(changed);
    }
    let recomputed = changed.data.recompute_schema()?;
    Ok(Transformed::new(recomputed, changed.transformed, changed.tnr))
}

fn is_moment(kind: &DataType) -> bool {
    matches!(kind, DataType::Timestamp(_, None))
}

fn has_moment(kind: &DataType) -> bool {
    is_moment(kind) || item(kind).is_some()
}

/// Whether an expression produces timestamps from texts, numbers or the clock.
fn makes_moments(expr: &Expr) -> bool {
    let is_one = |expr: &Expr| {
        Ok(match expr {
            Expr::Literal(value, _) => has_moment(&value.data_type()),
            Expr::Cast(Cast { field, .. }) => has_moment(field.data_type()),
            Expr::ScalarFunction(call) => MAKES.contains(&call.name()),
            Expr::ScalarSubquery(_) | Expr::Placeholder(_) => true,
            _ => false,
        })
    };
    expr.holds(is_one).unwrap_or(true)
}

/// Functions that return timestamps for arguments of other types.
const MAKES: [&str; 11] = [
    "cairn_moment",
    "cairn_timestamptz",
    "clock_timestamp",
    "date_bin",
    "date_trunc",
    "make_timestamp",
    "make_timestamptz",
    "now",
    "statement_timestamp",
    "timezone",
    "to_timestamp",
];

/// Returns the item of a list of timestamps.
fn item(kind: &DataType) -> Option<&FieldRef> {
    match kind {
        DataType::List(item) if is_moment(item.data_type()) => Some(item),
        _ => None,
    }
}

/// Whether a timestamp, or each item of a list of timestamps, has a time zone.
fn is_zoned(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    let Ok((_, field)) = expr.to_field(schema) else { return false };
    let is_known = is_moment(field.data_type()) || item(field.data_type()).is_some();
    is_known && kind_of(&field).is_zoned
}

/// Functions that return one of their arguments, a list of them, or an item of a list.
const PASSES_ON: [&str; 17] = [
    "array_append",
    "array_concat",
    "array_element",
    "array_prepend",
    "array_remove_all",
    "array_replace_all",
    "array_slice",
    "cairn_maybe",
    "cairn_one",
    "coalesce",
    "greatest",
    "least",
    "make_array",
    "nullif",
    "nvl",
    "nvl2",
    "generate_series",
];

/// Whether a function is one of our date and time operators, which were chosen before their
/// operands were marked (`direct_functions.rs`).
fn is_operator(name: &str) -> bool {
    name.starts_with("cairn(")
}

fn marked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let gives = match &expr {
        Expr::Case(Case { when_then_expr, else_expr, .. }) => {
            let mut values = when_then_expr.iter().map(|(_, then)| &**then).chain(else_expr.as_deref());
            values.any(|value| is_zoned(value, schema))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if PASSES_ON.contains(&func.name()) => {
            args.iter().any(|value| is_zoned(value, schema))
        }
        // A timestamp plus or minus an interval.
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            is_zoned(left, schema) || is_zoned(right, schema)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if is_operator(func.name()) => {
            args.iter().any(|value| is_zoned(value, schema))
        }
        _ => false,
    };
    // `x::timestamp` has no time zone, whatever `x` is. Even a date may carry the metadata of the
    // timestamp that it was cast from.
    if let Expr::Cast(Cast { field, .. }) = &expr
        && is_moment(field.data_type())
        && field.metadata().is_empty()
        && is_zoned(&expr, schema)
    {
        let call = ScalarFunction::new_udf(unmark(), vec![expr]);
        return Transformed::yes(Expr::ScalarFunction(call));
    }
    let is_of_moments = type_of(&expr, schema).is_some_and(|kind| is_moment(&kind) || item(&kind).is_some());
    if !gives || !is_of_moments || is_zoned(&expr, schema) {
        return Transformed::no(expr);
    }
    let call = ScalarFunction::new_udf(mark(), vec![expr]);
    Transformed::yes(Expr::ScalarFunction(call))
}

/// Returns the single instance of the function: comparisons of expressions check functions for
/// identity.
fn mark() -> Arc<ScalarUDF> {
    static MARK: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    Arc::clone(MARK.get_or_init(|| Arc::new(ScalarUDF::from(Mark::new(true)))))
}

/// Removes the metadata of the operand from a cast that the statement has. DataFusion's casts pass
/// it on: the text of a uuid would be a uuid, and the timestamp of a timestamptz a timestamptz.
pub(crate) fn of_cast(cast: Expr, schema: &dyn ExprSchema) -> Expr {
    let Ok((_, field)) = cast.to_field(schema) else { return cast };
    let (given, bare) = (kind_of(&field), kind_of(&Field::new("", field.data_type().clone(), true)));
    // Lengths do not matter, since a text stays a text. Precision is part of the Arrow type.
    if given.kind == bare.kind && given.is_json == bare.is_json && given.is_zoned == bare.is_zoned {
        return cast;
    }
    plain(cast)
}

/// Returns an expression without its metadata.
pub(crate) fn plain(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(unmark(), vec![expr]))
}

/// The function that wraps the casts of the statement, so that nothing of the operand's type
/// remains.
pub(crate) const PLAIN: &str = "cairn_plain";

/// Returns the function [`PLAIN`].
pub(crate) fn unmark() -> Arc<ScalarUDF> {
    static UNMARK: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    Arc::clone(UNMARK.get_or_init(|| Arc::new(ScalarUDF::from(Mark::new(false)))))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Mark {
    is_zoned: bool,
    signature: Signature,
}

impl Mark {
    fn new(is_zoned: bool) -> Self {
        Mark { is_zoned, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &str {
        if self.is_zoned { "cairn_zoned" } else { PLAIN }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(kinds.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(of) = args.arg_fields.first() else {
            return Err(DataFusionError::Internal("a zone of nothing".to_owned()));
        };
        let kind = if self.is_zoned { ColumnType::zoned() } else { cairn_table::row::Type::Timestamp.into() };
        let zoned = field("", &kind, true);
        Ok(Arc::new(of.as_ref().clone().with_metadata(zoned.metadata().clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = args.args.into_iter().next();
        given.ok_or_else(|| DataFusionError::Internal("a zone of nothing".to_owned()))
    }
}
