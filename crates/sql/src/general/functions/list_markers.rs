//! `x = ANY ($1)`, where the list is a parameter.
//!
//! DataFusion treats such a list as a single value, ignores NULL items, and scans cannot look its
//! items up. Therefore the plan has a marker instead. When the statement runs, `x IN (...)` with
//! the actual items replaces the marker, before optimization.

use std::collections::HashMap;

use arrow::datatypes::{DataType, FieldRef};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{InList, Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use crate::batch::{field, kind_of};
use crate::datum::{Datum, DatumRef};
use crate::error::Error;
use crate::expr::{cast, undefined_operator};
use crate::general::errors::external;
use crate::general::markers::LIST_MARKER;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::values::scalar;
use crate::general::tree::walk::{Walk, WalkPlan};
use crate::sqlstate::{INDETERMINATE_DATATYPE, WRONG_OBJECT_TYPE};

/// A list that is a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListUse {
    /// The number of the parameter.
    pub parameter: usize,
    /// The type that its items are cast to.
    pub cast: Option<ColumnType>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ListMarker {
    signature: Signature,
}

/// Returns the marker as a function. It is never evaluated.
pub(crate) fn list_marker() -> ScalarUDF {
    ScalarUDF::from(ListMarker { signature: Signature::any(2, Volatility::Volatile) })
}

impl ScalarUDFImpl for ListMarker {
    fn name(&self) -> &str {
        LIST_MARKER
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(DataFusionError::Internal("a list was not put into its place".to_owned()))
    }
}

/// Returns the operand of a marker and the number of its list.
fn marked(expr: &Expr) -> Option<(&Expr, usize)> {
    let Expr::ScalarFunction(function) = expr else { return None };
    let [operand, Expr::Literal(place, _)] = function.args.as_slice() else { return None };
    if function.func.name() != LIST_MARKER {
        return None;
    }
    let place = match place {
        ScalarValue::Int64(Some(place)) => usize::try_from(*place).ok()?,
        ScalarValue::Int32(Some(place)) => usize::try_from(*place).ok()?,
        _ => return None,
    };
    Some((operand, place))
}

/// Rewrites every expression of a plan, given the schema of its input.
fn each(
    plan: LogicalPlan,
    change: &mut dyn FnMut(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let changed = plan.walk_up_with_subqueries(|plan| {
        let schema = operand_schema(&plan)?;
        // Keep the names of expressions, because others refer to them.
        let names = NamePreserver::new(&plan);
        let changed = plan.walk_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.walk_up(|expr| change(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    })?;
    Ok(changed.data)
}

/// Infers the types of list parameters without a declared type from the operands compared with
/// them.
///
/// Errors: 42883 where operand and items cannot be compared, 42P18 where neither has a type, 42809
/// for parameters that are not lists.
pub(crate) fn types(
    plan: LogicalPlan,
    lists: &[ListUse],
    given: &[Option<ColumnType>],
) -> Result<(LogicalPlan, Vec<Option<ColumnType>>)> {
    let mut types = given.to_vec();
    if lists.is_empty() && plan.get_parameter_fields()?.is_empty() {
        return Ok((plan, types));
    }
    let plan = each(plan, &mut |expr, schema| {
        if let Expr::Cast(_) = expr {
            return Ok(cast_list(expr));
        }
        let Some((operand, place)) = marked(&expr) else { return Ok(Transformed::no(expr)) };
        let Some(list) = lists.get(place) else { return Ok(Transformed::no(expr)) };
        let kind = known(operand, schema);
        if types.len() <= list.parameter {
            types.resize(list.parameter + 1, None);
        }
        let Some(known) = types.get_mut(list.parameter) else { return Ok(Transformed::no(expr)) };
        let element = match (&list.cast, &known) {
            (Some(cast), _) => cast.clone(),
            (None, Some(known)) => known.element().ok_or_else(no_list)?,
            (None, None) => match &kind {
                Some(kind) => {
                    let mut kind = kind.clone();
                    (kind.length, kind.decimal) = (None, None);
                    kind
                }
                None => return Err(indeterminate(list.parameter)),
            },
        };
        if let Some(kind) = &kind
            && let Some(error) = undefined_operator("=", kind, &element)
        {
            return Err(external(error));
        }
        let field = Arc::new(field("", &element, true));
        known.get_or_insert_with(|| element.list_of());
        Ok(with_operand(expr, field))
    })?;
    Ok((plan, types))
}

/// Types a parameter without a declared type that is cast to a list as that list.
fn cast_list(expr: Expr) -> Transformed<Expr> {
    let Expr::Cast(mut cast) = expr else { return Transformed::no(expr) };
    let mut is_open = false;
    if let Expr::Placeholder(Placeholder { field: field @ None, .. }) = &mut *cast.expr
        && matches!(cast.field.data_type(), DataType::List(_))
    {
        *field = Some(Arc::clone(&cast.field));
        is_open = true;
    }
    let expr = Expr::Cast(cast);
    if is_open { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// Returns the marker; its operand, if it is an untyped parameter, takes the type of the items.
fn with_operand(expr: Expr, item: FieldRef) -> Transformed<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = expr else { return Transformed::no(expr) };
    let mut is_open = false;
    if let Some(Expr::Placeholder(Placeholder { field: field @ None, .. })) = args.first_mut() {
        *field = Some(item);
        is_open = true;
    }
    let expr = Expr::ScalarFunction(ScalarFunction { func, args });
    if is_open { Transformed::yes(expr) } else { Transformed::no(expr) }
}

fn no_list() -> DataFusionError {
    external(Error::new(WRONG_OBJECT_TYPE, "op ANY/ALL (array) requires array on right side"))
}

fn indeterminate(parameter: usize) -> DataFusionError {
    let what = format!("could not determine data type of parameter ${}", parameter + 1);
    external(Error::new(INDETERMINATE_DATATYPE, what))
}

/// Returns the type of an expression; `None` for untyped literals, NULL and parameters.
fn known(expr: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    if matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_)) {
        return None;
    }
    let (_, field) = expr.to_field(schema).ok()?;
    (!field.data_type().is_null()).then(|| kind_of(&field))
}

/// Replaces the markers of a plan by the items of their lists.
///
/// Errors: those of casting items.
pub(crate) fn spell_out(plan: LogicalPlan, lists: &[ListUse], params: &[Datum]) -> Result<LogicalPlan> {
    if lists.is_empty() {
        return Ok(plan);
    }
    let mut cast: HashMap<usize, Option<Vec<Datum>>> = HashMap::new();
    each(plan, &mut |expr, schema| {
        let Some((operand, place)) = marked(&expr) else { return Ok(Transformed::no(expr)) };
        let Some(list) = lists.get(place) else { return Ok(Transformed::no(expr)) };
        if let std::collections::hash_map::Entry::Vacant(entry) = cast.entry(place) {
            entry.insert(items_of(list, params).map_err(external)?);
        }
        let Some(Some(items)) = cast.get(&place) else {
            return Ok(Transformed::yes(Expr::Literal(ScalarValue::Boolean(None), None)));
        };
        let is_float =
            known(operand, schema).is_some_and(|kind| matches!(kind.kind, Type::Real | Type::Double));
        let list = items.iter().map(|item| literal(item, is_float)).collect::<Result<Vec<Expr>>>()?;
        if list.is_empty() {
            // Even NULL is not in an empty list: the result is false.
            return Ok(Transformed::yes(Expr::Literal(ScalarValue::Boolean(Some(false)), None)));
        }
        let operand = match (operand, items.iter().find_map(Datum::type_of)) {
            // An untyped literal takes the type of the items.
            (Expr::Literal(ScalarValue::Utf8(Some(text)), _), Some(kind)) => {
                literal(&Datum::parse(text, &kind.into()).map_err(external)?, false)?
            }
            (operand, _) => operand.clone(),
        };
        Ok(Transformed::yes(Expr::InList(InList::new(Box::new(operand), list, false))))
    })
}

/// Returns the items of a list; `None` where the list is NULL.
fn items_of(list: &ListUse, params: &[Datum]) -> crate::error::Result<Option<Vec<Datum>>> {
    let value = params.get(list.parameter).map_or(DatumRef::Null, Datum::borrow);
    let value = match &list.cast {
        Some(to) => cast(value, &to.clone().list_of())?.into_datum(),
        None => value.to_owned(),
    };
    Ok(match value {
        Datum::List(items) => Some(items),
        _ => None,
    })
}

/// Returns an item as a literal; a floating-point number if the operand is one.
fn literal(item: &Datum, is_float: bool) -> Result<Expr> {
    let value = match item {
        Datum::Null => ScalarValue::Null,
        Datum::Decimal { .. } if is_float => {
            let double = cast(item.borrow(), &Type::Double.into()).map_err(external)?.into_datum();
            scalar(double.borrow(), &Type::Double.into())?
        }
        Datum::Decimal { unscaled, scale } => {
            let digits = unscaled.unsigned_abs().checked_ilog10().map_or(1, |most| most as u8 + 1);
            scalar(item.borrow(), &ColumnType::decimal(digits.max(*scale).max(1), *scale))?
        }
        item => scalar(item.borrow(), &item.type_of().map_or(Type::Text.into(), ColumnType::new))?,
    };
    Ok(Expr::Literal(value, None))
}
