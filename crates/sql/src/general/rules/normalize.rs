//! Normalizes zeros and NaNs where floating-point numbers are compared by their bits.
//!
//! PostgreSQL treats `-0` as equal to `0`, and NaN as equal to NaN. So do DataFusion's comparisons
//! and groups, but not its sorts, window keys, IN lists and sets of distinct values. Their operands
//! pass through a function that normalizes these values and changes nothing else.
//!
//! The last sort key stays unchanged: equal rows may come in any order there, and an index can
//! still provide the order.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use cairn_vfs::sync::{Arc, OnceLock};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Case, InList, ScalarFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::general::tree::expression_types::type_of;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::walk::{Walk, WalkPlan};

/// The rule.
#[derive(Debug)]
pub(crate) struct NormalizeFloats;

impl AnalyzerRule for NormalizeFloats {
    fn name(&self) -> &str {
        "cairn_zeros"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.walk_up_with_subqueries(in_plan)?.data)
    }
}

fn in_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = operand_schema(&plan)?;
    let names = NamePreserver::new(&plan);
    let changed = plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.walk_up(|expr| Ok(in_expr(expr, &schema)))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    Ok(changed.update_data(|plan| in_orders(plan, &schema)))
}

/// Normalizes the sort keys of an operator.
fn in_orders(plan: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            in_order(&mut sort.expr, schema);
            LogicalPlan::Sort(sort)
        }
        // The first sort keys of DISTINCT ON must stay identical to its expressions.
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            for by in &mut on.on_expr {
                normalize(by, schema);
            }
            for by in on.sort_expr.iter_mut().flatten() {
                normalize(&mut by.expr, schema);
            }
            LogicalPlan::Distinct(Distinct::On(on))
        }
        plan => plan,
    }
}

/// Normalizes sort keys. Returns whether one was changed.
fn in_order(order: &mut [Sort], schema: &DFSchema) -> bool {
    let Some((_, before_last)) = order.split_last_mut() else { return false };
    let mut is_changed = false;
    for by in before_last {
        is_changed |= normalize(&mut by.expr, schema);
    }
    is_changed
}

/// Wraps an expression in the function where needed. Returns whether it did.
fn normalize(expr: &mut Expr, schema: &DFSchema) -> bool {
    match normalized(expr, schema) {
        Some(one) => {
            *expr = one;
            true
        }
        None => false,
    }
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(type_of(expr, schema), Some(DataType::Float32 | DataType::Float64))
}

/// Returns the normalized expression; `None` if it is not a floating-point number, or already
/// normalized.
fn normalized(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_normalized = matches!(expr, Expr::ScalarFunction(call) if call.name() == NORMALIZED);
    let is_other = is_normalized || !is_float(expr, schema);
    let call = || ScalarFunction::new_udf(function(), vec![expr.clone()]);
    (!is_other).then(|| Expr::ScalarFunction(call()))
}

fn in_expr(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::WindowFunction(mut window) => {
            let mut is_changed = false;
            let params = &mut window.params;
            let keys = params.order_by.iter_mut().map(|sort| &mut sort.expr);
            for key in params.partition_by.iter_mut().chain(keys) {
                if let Some(one) = normalized(key, schema) {
                    (*key, is_changed) = (one, true);
                }
            }
            let window = Expr::WindowFunction(window);
            if is_changed { Transformed::yes(window) } else { Transformed::no(window) }
        }
        Expr::AggregateFunction(mut aggregate) if aggregate.params.distinct => {
            let mut is_changed = false;
            let keys = aggregate.params.order_by.iter_mut().map(|sort| &mut sort.expr);
            for arg in aggregate.params.args.iter_mut().chain(keys) {
                is_changed |= normalize(arg, schema);
            }
            let aggregate = Expr::AggregateFunction(aggregate);
            if is_changed { Transformed::yes(aggregate) } else { Transformed::no(aggregate) }
        }
        Expr::AggregateFunction(mut aggregate) => {
            let is_changed = in_order(&mut aggregate.params.order_by, schema);
            Transformed::new_transformed(Expr::AggregateFunction(aggregate), is_changed)
        }
        Expr::InList(InList { expr, list, negated }) => match normalized(&expr, schema) {
            Some(one) => {
                let list = list.into_iter().map(|item| normalized(&item, schema).unwrap_or(item)).collect();
                Transformed::yes(Expr::InList(InList { expr: Box::new(one), list, negated }))
            }
            None => Transformed::no(Expr::InList(InList { expr, list, negated })),
        },
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "nullif" => {
            let normalized: Option<Vec<Expr>> = args.iter().map(|arg| normalized(arg, schema)).collect();
            match (normalized.as_deref(), args.first()) {
                (Some([left, right]), Some(value)) => {
                    let kind = value.get_type(schema).unwrap_or(DataType::Float64);
                    let null = ScalarValue::try_from(&kind).unwrap_or(ScalarValue::Float64(None));
                    let never = Box::new(Expr::Literal(null, None));
                    let pair = (Box::new(left.clone().eq(right.clone())), never);
                    let otherwise = Some(Box::new(value.clone()));
                    Transformed::yes(Expr::Case(Case::new(None, vec![pair], otherwise)))
                }
                _ => Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })),
            }
        }
        Expr::Case(Case { expr: Some(of), when_then_expr, else_expr }) => match normalized(&of, schema) {
            Some(one) => {
                let pair = |(when, then): (Box<Expr>, Box<Expr>)| {
                    (normalized(&when, schema).map_or(when, Box::new), then)
                };
                let pairs = when_then_expr.into_iter().map(pair).collect();
                Transformed::yes(Expr::Case(Case::new(Some(Box::new(one)), pairs, else_expr)))
            }
            None => Transformed::no(Expr::Case(Case { expr: Some(of), when_then_expr, else_expr })),
        },
        other => Transformed::no(other),
    }
}

const NORMALIZED: &str = "cairn_settled";

/// Returns the single instance of the function: comparisons of expressions check functions for
/// identity.
fn function() -> Arc<ScalarUDF> {
    static FUNCTION: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made =
        || Arc::new(ScalarUDF::from(Normalized { signature: Signature::any(1, Volatility::Immutable) }));
    Arc::clone(FUNCTION.get_or_init(made))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Normalized {
    signature: Signature,
}

impl ScalarUDFImpl for Normalized {
    fn name(&self) -> &str {
        NORMALIZED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(kinds.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(one_zero(array))),
            Some(ColumnarValue::Scalar(value)) => {
                let array = one_zero(&value.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            None => Err(DataFusionError::Internal("a zero of nothing".to_owned())),
        }
    }
}

fn one_zero(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => {
            let normalize = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(normalize))
        }
        DataType::Float64 => {
            let normalize = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(normalize))
        }
        _ => Arc::clone(array),
    }
}
