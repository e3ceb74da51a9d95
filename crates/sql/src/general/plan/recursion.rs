//! Column types of recursive queries.
//!
//! The non-recursive term decides, in PostgreSQL as in DataFusion. An unconstrained numeric has a
//! scale per value in PostgreSQL, but a plan has a single scale for all rows. Where the recursive
//! term has a larger scale (`s + 0.25` of `0::numeric`), the query is planned again with that scale
//! in both terms, until it suffices. Where the scale grows with each step (`n * 1.1`), the query
//! gets the scale of an unconstrained numeric. A recursive term of another type is rejected as in
//! PostgreSQL, while DataFusion would convert it to an integer.

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, RecursiveQuery, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sqlparser::ast::Statement as Tree;

use crate::error::Error;
use crate::general::errors::external;
use crate::general::internal_names::shown;
use crate::general::markers::BRANCH;
use crate::general::rewrite::retype;
use crate::general::tree::walk::{Walk, WalkPlan};
use crate::sqlstate::DATATYPE_MISMATCH;

/// Plans of a statement that may ask for other types. One more plan is taken as it is.
const MOST_PLANS: usize = 4;

/// The scale of an unconstrained numeric.
const OPEN_SCALE: i8 = 10;

/// Plans a statement, repeatedly if necessary, until both terms of each recursive query can hold
/// the values of the other.
pub(crate) fn plan(tree: Tree, plan: impl Fn(Tree) -> Result<LogicalPlan>) -> Result<LogicalPlan> {
    let mut tree = tree;
    for round in 1.. {
        let planned = plan(tree.clone())?;
        if !is_marked(&planned)? {
            return Ok(planned);
        }
        let wanted = wanted(&planned, round == MOST_PLANS)?;
        if wanted.is_empty() || round > MOST_PLANS {
            return without_marks(planned);
        }
        for wanted in wanted {
            retype(&mut tree, &wanted.query, &wanted.names, &wanted.types);
        }
    }
    plan(tree)
}

/// The types that the non-recursive term of a query needs.
#[derive(Debug)]
struct Wanted {
    query: String,
    names: Vec<String>,
    /// The SQL name of each type; `None` where it stays.
    types: Vec<Option<String>>,
}

fn is_mark(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.name() == BRANCH)
}

fn is_marked(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.look_with_subqueries(|plan| {
        plan.look_at_expressions(|expr| {
            found |= expr.holds(|expr| Ok(is_mark(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Returns the changes that the recursive queries of a plan need. `last`: only one more plan
/// follows.
fn wanted(plan: &LogicalPlan, last: bool) -> Result<Vec<Wanted>> {
    let mut all = Vec::new();
    plan.look_with_subqueries(|plan| {
        if let LogicalPlan::RecursiveQuery(query) = plan {
            all.extend(of_query(query, last)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(all)
}

fn of_query(query: &RecursiveQuery, last: bool) -> Result<Option<Wanted>> {
    let LogicalPlan::Projection(projection) = &*query.recursive_term else { return Ok(None) };
    let schema = query.static_term.schema();
    let mut types = vec![None; schema.fields().len()];
    for (at, (expr, field)) in projection.expr.iter().zip(schema.fields()).enumerate() {
        let Some(given) = before_cast(expr) else { continue };
        let given = given.get_type(projection.input.schema())?;
        let kind = field.data_type();
        let place = types.get_mut(at);
        match (kind, &given) {
            (DataType::Decimal128(_, scale), DataType::Decimal128(_, more)) if more > scale => {
                let wider = if last { OPEN_SCALE.max(*scale) } else { *more };
                if wider != *scale {
                    place.into_iter().for_each(|place| *place = Some(format!("numeric(38, {wider})")));
                }
            }
            _ => check(query, at, kind, &given)?,
        }
    }
    let names = schema.fields().iter().map(|field| shown(field.name()).to_owned()).collect();
    let wanted = Wanted { query: query.name.clone(), names, types };
    Ok(wanted.types.iter().any(Option::is_some).then_some(wanted))
}

/// Returns a marked expression without its cast to the type of the other term.
fn before_cast(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Alias(Alias { expr, .. }) => before_cast(expr),
        // All expressions of the statement are marked. A plain column comes from `*`, or from a
        // nested query.
        Expr::Cast(Cast { expr, .. }) if is_mark(expr) || matches!(**expr, Expr::Column(_)) => Some(expr),
        expr if is_mark(expr) => Some(expr),
        _ => None,
    }
}

/// Returns the family of a type, and its position in the order of implicit casts; `None` for types
/// without implicit casts.
fn rank(kind: &DataType) -> Option<(u8, u8)> {
    Some(match kind {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => (0, 0),
        DataType::Decimal128(..) => (0, 1),
        DataType::Float32 => (0, 2),
        DataType::Float64 => (0, 3),
        DataType::Date32 => (1, 0),
        DataType::Timestamp(_, None) => (1, 1),
        DataType::Timestamp(_, Some(_)) => (1, 2),
        _ => return None,
    })
}

/// Checks that the recursive term does not need a wider type.
fn check(query: &RecursiveQuery, at: usize, kind: &DataType, given: &DataType) -> Result<()> {
    match (rank(kind), rank(given)) {
        (Some((one, least)), Some((other, most))) if one == other && most > least => {
            let name = |kind: &DataType| match kind {
                DataType::Int16 => "smallint",
                DataType::Int32 => "integer",
                DataType::Int64 => "bigint",
                DataType::Decimal128(..) => "numeric",
                DataType::Float32 => "real",
                DataType::Float64 => "double precision",
                DataType::Date32 => "date",
                DataType::Timestamp(_, None) => "timestamp without time zone",
                _ => "timestamp with time zone",
            };
            // A number without a decimal point is an integer; at this stage it has not been
            // narrowed yet.
            let own = if *kind == DataType::Int64 { "integer" } else { name(kind) };
            let what = format!(
                "recursive query \"{}\" column {} has type {own} in non-recursive term but type {} overall",
                query.name,
                at + 1,
                name(given)
            );
            let error = Error::new(DATATYPE_MISMATCH, what);
            Err(external(error.with_hint("Cast the output of the non-recursive term to the correct type.")))
        }
        _ => Ok(()),
    }
}

fn without_marks(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.walk_up_with_subqueries(|plan| {
        let names = NamePreserver::new(&plan);
        plan.walk_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.walk_up(|expr| match expr {
                Expr::ScalarFunction(ScalarFunction { func, mut args })
                    if func.name() == BRANCH && args.len() == 1 =>
                {
                    Ok(Transformed::yes(args.pop().unwrap_or_default()))
                }
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(changed.data)
}

/// The marker of a column of a recursive term. It is removed before the plan runs.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Branch {
    signature: Signature,
}

/// See [`BRANCH`].
pub(crate) fn branch() -> ScalarUDF {
    ScalarUDF::from(Branch { signature: Signature::any(1, Volatility::Immutable) })
}

impl ScalarUDFImpl for Branch {
    fn name(&self) -> &str {
        BRANCH
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = args.arg_fields.first();
        let none = || Field::new(BRANCH, DataType::Null, true);
        Ok(Arc::new(of.map_or_else(none, |field| field.as_ref().clone()).with_name(BRANCH)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("a column without a value".to_owned()))
    }
}
