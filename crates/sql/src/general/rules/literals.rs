//! Assigns PostgreSQL's types to literals, before DataFusion's type coercion.
//!
//! A number without a decimal point is an integer if it fits, and a bigint otherwise. DataFusion
//! makes all of them bigint, so that `i * 2` would be a bigint. An untyped literal is parsed by our
//! rules as the type of the other operand, if that has one. DataFusion would compare both as texts,
//! or parse the literal by Arrow's rules, which apply UTC offsets even to types without a time
//! zone.

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    Between, BinaryExpr, Case, Cast, InList, ScalarFunction, Sort, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::other::get_coerce_type_for_case_expression;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Union, Values, WindowFrame,
    WindowFrameBound, WindowFrameUnits, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::intervals;
use super::outer_types::reference;
use super::quotients;
use super::zone_marks;
use crate::batch::kind_of;
use crate::datum::Datum;
use crate::error::Error;
use crate::general::errors::external;
use crate::general::functions::series;
use crate::general::tree::expression_types::type_of;
use crate::general::tree::operand_schema::operand_schema;
use crate::general::tree::values::scalar;
use crate::general::tree::walk::{Walk, WalkPlan};
use crate::sqlstate::CANNOT_COERCE;
use crate::types::name_of;

/// The rule.
#[derive(Debug)]
pub(crate) struct Literals;

impl AnalyzerRule for Literals {
    fn name(&self) -> &str {
        "cairn_literals"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        in_plan(plan, &[])
    }
}

/// Rewrites a plan and its inputs. `outer` holds the schemas of the enclosing queries, innermost
/// last.
fn in_plan(plan: LogicalPlan, outer: &[DFSchema]) -> Result<LogicalPlan> {
    // The work table that the recursive term reads already has its types.
    if matches!(plan, LogicalPlan::RecursiveQuery(_) | LogicalPlan::Limit(_)) {
        return match plan {
            LogicalPlan::Limit(_) => {
                Ok(plan.walk_children(|child| in_plan(child, outer).map(Transformed::yes))?.data)
            }
            other => Ok(other),
        };
    }
    if let LogicalPlan::Values(Values { values, schema }) = &plan
        && values.iter().flatten().any(has_subquery)
    {
        return in_plan(selected(values, schema, outer.is_empty())?, outer);
    }
    if let LogicalPlan::Values(Values { values, schema }) = plan {
        let is_computed =
            values.iter().flatten().any(|expr| is_computed_numeric(expr, &schema) || has_case(expr));
        let item = |expr: Expr| {
            let expr = match is_computed {
                true => quotients::exactly_expr(narrow_in(uncast(expr))?, &schema),
                false => narrow_in(expr),
            };
            Ok(expr?.walk_up(|expr| intervals::in_expr(expr, &schema))?.data)
        };
        let rows = values.into_iter().map(|row| row.into_iter().map(item).collect::<Result<Vec<Expr>>>());
        return LogicalPlanBuilder::values(rows.collect::<Result<Vec<_>>>()?)?.build();
    }
    let plan = plan.walk_children(|child| in_plan(child, outer).map(Transformed::yes))?.data;
    if let LogicalPlan::Union(union) = plan {
        // Rebuilt, because the union would keep its old types.
        let inputs = with_one_type(union.inputs)?;
        return Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?));
    }
    let schema = operand_schema(&plan)?;
    let around: Vec<DFSchema> = outer.iter().cloned().chain([schema.clone()]).collect();
    let plan = plan.walk_subqueries(|plan| subquery(plan, &around).map(Transformed::yes))?.data;
    let plan = intervals::in_plan(plan, &schema);
    let names = NamePreserver::new(&plan);
    let changed = plan.walk_expressions(|expr| {
        let name = names.save(&expr);
        let done = expr.walk_up(|expr| in_expr(expr, &schema, outer))?;
        Ok(done.update_data(|expr| name.restore(expr)))
    })?;
    intervals::in_groups(changed.data.recompute_schema()?)
}

fn has_subquery(expr: &Expr) -> bool {
    let is_one = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
        ))
    };
    expr.holds(is_one).unwrap_or(true)
}

/// Whether an item of VALUES is a numeric computed by arithmetic. Its scale here differs from the
/// one in DataFusion's type.
fn is_computed_numeric(expr: &Expr, schema: &DFSchema) -> bool {
    let is_arithmetic =
        |expr: &Expr| Ok(matches!(expr, Expr::BinaryExpr(BinaryExpr { op, .. }) if is_arithmetic(*op)));
    expr.holds(is_arithmetic).unwrap_or(true) && expr.get_type(schema).is_ok_and(|kind| kind.is_decimal())
}

/// Whether an expression has a CASE. DataFusion takes the type of its first result for that of a
/// VALUES item.
fn has_case(expr: &Expr) -> bool {
    expr.holds(|expr| Ok(matches!(expr, Expr::Case(_)))).unwrap_or(true)
}

/// Removes the cast of a VALUES item to the type of its column, which DataFusion derives from its
/// own rules on scales and on CASE. Casts of the statement itself are wrapped in a call of
/// [`zone_marks::PLAIN`].
fn uncast(expr: Expr) -> Expr {
    match expr {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_decimal() || has_case(&expr) => *expr,
        other => other,
    }
}

/// The column with the position of a VALUES row. No statement can name it.
const PLACE: &str = "place of the row";

/// Turns each row of VALUES into a SELECT. DataFusion evaluates VALUES before any subquery has run,
/// and types its items before the results of subqueries have a type.
///
/// The parts of a UNION come in any order, but rows of VALUES must come in the written order,
/// because INSERT numbers them by it. The order within a subquery does not matter; `is_ordered`
/// says whether this is the top level.
fn selected(rows: &[Vec<Expr>], schema: &DFSchema, is_ordered: bool) -> Result<LogicalPlan> {
    let is_ordered = is_ordered && rows.len() > 1;
    let mut parts = (0_i64..).zip(rows).map(|(place, row)| {
        let named = row.iter().zip(schema.fields());
        let named = named.map(|(expr, field)| uncast(expr.clone()).alias(field.name()));
        let place = is_ordered.then(|| lit(place).alias(PLACE));
        let items = named.chain(place).collect::<Vec<Expr>>();
        LogicalPlanBuilder::empty(true).project(items)?.build().map(Arc::new)
    });
    if rows.len() == 1 {
        return parts
            .next()
            .map_or_else(|| LogicalPlanBuilder::empty(false).build(), |row| row.map(Arc::unwrap_or_clone));
    }
    let union = LogicalPlan::Union(Union::try_new_with_loose_types(parts.collect::<Result<_>>()?)?);
    if !is_ordered {
        return Ok(union);
    }
    let shown = schema.fields().iter().map(|field| Expr::Column(Column::new_unqualified(field.name())));
    let shown = shown.collect::<Vec<Expr>>();
    let by = Expr::Column(Column::new_unqualified(PLACE)).sort(true, false);
    LogicalPlanBuilder::from(union).sort([by])?.project(shown)?.build()
}

/// Returns a column of a query if it is an untyped literal.
fn quoted(plan: &LogicalPlan, at: usize) -> Option<&Expr> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    let item = projection.expr.get(at)?;
    let plain = match item {
        Expr::Alias(alias) => &*alias.expr,
        other => other,
    };
    matches!(plain, Expr::Literal(ScalarValue::Utf8(Some(_)), _)).then_some(plain)
}

/// Gives an untyped literal the type of the same column in another part of the UNION.
fn with_one_type(mut inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
    let columns = inputs.first().map_or(0, |input| input.schema().fields().len());
    for at in 0..columns {
        let typed_by = |input: &Arc<LogicalPlan>| match quoted(input, at) {
            Some(_) => None,
            None => known_kind(input.schema().fields().get(at)?),
        };
        let Some(kind) = inputs.iter().find_map(typed_by) else { continue };
        for input in &mut inputs {
            let Some(value) = quoted(input, at).cloned() else { continue };
            let LogicalPlan::Projection(projection) = &**input else { continue };
            let name = input.schema().field(at).name().clone();
            let mut items = projection.expr.clone();
            if let Some(item) = items.get_mut(at) {
                *item = typed(Box::new(value), &kind)?.alias(name);
            }
            let projection = Projection::try_new(items, Arc::clone(&projection.input))?;
            *input = Arc::new(LogicalPlan::Projection(projection));
        }
    }
    Ok(inputs)
}

/// Rewrites a subquery, and its references to enclosing queries.
fn subquery(plan: LogicalPlan, around: &[DFSchema]) -> Result<LogicalPlan> {
    let LogicalPlan::Subquery(mut subquery) = plan else { return in_plan(plan, around) };
    subquery.subquery = Arc::new(in_plan(Arc::unwrap_or_clone(subquery.subquery), around)?);
    let references = std::mem::take(&mut subquery.outer_ref_columns).into_iter();
    subquery.outer_ref_columns = references.map(|expr| reference(expr, around)).collect();
    Ok(LogicalPlan::Subquery(subquery))
}

/// Narrows the literals of an expression to integer where they fit.
pub(crate) fn narrow_in(expr: Expr) -> Result<Expr> {
    Ok(expr.walk_up(|expr| Ok(narrow(expr)))?.data)
}

/// Narrows a literal to integer if it fits.
fn narrow(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
            Ok(value) => Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(value)), metadata)),
            Err(_) => Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata)),
        },
        other => Transformed::no(other),
    }
}

fn in_expr(expr: Expr, schema: &DFSchema, outer: &[DFSchema]) -> Result<Transformed<Expr>> {
    let typed = with_types(expr, schema, outer)?;
    typed.transform_data(|expr| intervals::in_expr(expr, schema))
}

/// Types the literals of a comparison.
fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            // Types are computed only where needed, because that walks the whole expression below.
            let of = |expr: &Expr| type_beside(expr, op, schema);
            let (left, right) = match (is_quoted(&left), is_quoted(&right)) {
                (false, true) => match of(&left) {
                    Some(kind) => (left, typed(right, &kind)?),
                    None => (left, right),
                },
                (true, false) => match of(&right) {
                    Some(kind) => (typed(left, &kind)?, right),
                    None => (left, right),
                },
                _ => (left, right),
            };
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high }) => match (is_quoted(&low) || is_quoted(&high))
            .then(|| type_beside(&expr, Operator::Eq, schema))
            .flatten()
        {
            Some(kind) => {
                let (low, high) = (typed(low, &kind)?, typed(high, &kind)?);
                Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
            }
            None => Transformed::no(Expr::Between(Between { expr, negated, low, high })),
        },
        Expr::InList(InList { expr, list, negated }) => {
            let has_quoted = list.iter().any(is_quoted);
            match has_quoted.then(|| type_beside(&expr, Operator::Eq, schema)).flatten() {
                Some(kind) => {
                    let list = list.into_iter().map(|item| Ok(*typed(Box::new(item), &kind)?));
                    let list = list.collect::<Result<Vec<Expr>>>()?;
                    Transformed::yes(Expr::InList(InList { expr, list, negated }))
                }
                None => Transformed::no(Expr::InList(InList { expr, list, negated })),
            }
        }
        other => Transformed::no(other),
    })
}

/// Types the literals of a CASE.
fn in_case(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Case { expr: of, mut when_then_expr, mut else_expr } = case;
    if let Some(kind) = of.as_ref().and_then(|of| type_beside(of, Operator::Eq, schema)) {
        let whens = when_then_expr.into_iter().map(|(when, then)| Ok((typed(when, &kind)?, then)));
        when_then_expr = whens.collect::<Result<Vec<_>>>()?;
    }
    let results = when_then_expr.iter().map(|(_, then)| &**then).chain(else_expr.as_deref());
    let kind = type_among(results.clone(), schema);
    // DataFusion takes the type of the first result, so a literal must have that of the others.
    let has_text = results.clone().any(|result| type_of(result, schema) == Some(DataType::Utf8View));
    let result = |result: Box<Expr>| match &kind {
        Some(kind) => typed(result, kind),
        None if has_text && is_quoted(&result) => Ok(Box::new(as_text(*result))),
        None => Ok(result),
    };
    let pairs = when_then_expr.into_iter().map(|(when, then)| Ok((when, result(then)?)));
    let when_then_expr = pairs.collect::<Result<Vec<_>>>()?;
    else_expr = else_expr.map(result).transpose()?;
    Ok(Transformed::yes(Expr::Case(Case { expr: of, when_then_expr, else_expr })))
}

/// Gives an untyped literal the type of texts of tables and functions.
fn as_text(literal: Expr) -> Expr {
    match literal {
        Expr::Literal(ScalarValue::Utf8(text), metadata) => {
            Expr::Literal(ScalarValue::Utf8View(text), metadata)
        }
        other => other,
    }
}

fn with_types(expr: Expr, schema: &DFSchema, outer: &[DFSchema]) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::Literal(..) => narrow(expr),
        Expr::OuterReferenceColumn(..) => Transformed::yes(reference(expr, outer)),
        Expr::BinaryExpr(BinaryExpr { op, .. }) if !takes_type(op) => Transformed::no(expr),
        Expr::BinaryExpr(_) | Expr::Between(_) | Expr::InList(_) => compared(expr, schema)?,
        Expr::Case(case) => in_case(case, schema)?,
        Expr::InSubquery(mut within) => {
            let kind = within.subquery.subquery.schema().fields().first().and_then(|field| known_kind(field));
            match kind {
                Some(kind) => {
                    within.expr = typed(within.expr, &kind)?;
                    Transformed::yes(Expr::InSubquery(within))
                }
                None => Transformed::no(Expr::InSubquery(within)),
            }
        }
        Expr::ScalarFunction(ScalarFunction { func, args })
            if matches!(func.name(), "coalesce" | "greatest" | "least") =>
        {
            let Some(kind) = type_among(args.iter(), schema) else {
                return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
            };
            let args = args.into_iter().map(|arg| Ok(*typed(Box::new(arg), &kind)?));
            let args = args.collect::<Result<Vec<Expr>>>()?;
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        // The cast inside has been checked already.
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if func.name() == zone_marks::PLAIN && args.first().is_some_and(is_cast) =>
        {
            Transformed::yes(args.pop().unwrap_or_default())
        }
        Expr::ScalarFunction(function) if function.func.name() == series::NAME => {
            Transformed::yes(series::call(function, schema))
        }
        Expr::Cast(Cast { expr: of, field }) => {
            check_cast(&of, &field, schema)?;
            Transformed::yes(zone_marks::of_cast(Expr::Cast(Cast { expr: of, field }), schema))
        }
        Expr::WindowFunction(function) => window(function, schema)?,
        other => Transformed::no(other),
    })
}

/// Rejects casts between numbers and times, which DataFusion would treat as counts of days or
/// microseconds.
///
/// Errors: 42846.
fn check_cast(of: &Expr, to: &FieldRef, schema: &DFSchema) -> Result<()> {
    let Ok((_, from)) = of.to_field(schema) else { return Ok(()) };
    let (from, to) = (kind_of(&from), kind_of(to));
    let is_number = |kind: &ColumnType| {
        matches!(
            kind.kind,
            Type::SmallInt | Type::Int | Type::BigInt | Type::Real | Type::Double | Type::Decimal
        )
    };
    let is_time =
        |kind: &ColumnType| matches!(kind.kind, Type::Date | Type::Time | Type::Timestamp | Type::Interval);
    let is_none = |a: &ColumnType, b: &ColumnType| {
        is_number(a) && is_time(b)
            || a.kind == Type::Boolean
                && (is_time(b) || matches!(b.kind, Type::Real | Type::Double | Type::Decimal))
    };
    if !is_none(&from, &to) && !is_none(&to, &from) {
        return Ok(());
    }
    let from = match narrow(of.clone()).data.get_type(schema) {
        Ok(DataType::Int32) => Type::Int.into(),
        _ => from,
    };
    let what = format!("cannot cast type {} to {}", name_of(&from), name_of(&to));
    Err(external(Error::new(CANNOT_COERCE, what)))
}

/// Replaces a RANGE frame without offsets by the equivalent GROUPS frame, which DataFusion supports
/// for all types.
fn window(mut function: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    intervals::in_order(&mut function.params.order_by, schema);
    if matches!(function.fun.name(), "lag" | "lead") {
        with_type_of_default(&mut function.params.args, schema)?;
    }
    let open = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => by.is_null(),
    };
    let has_ranges = |sort: &Sort| {
        let kind = sort.expr.get_type(schema);
        !matches!(kind, Ok(DataType::Time64(_) | DataType::Binary | DataType::BinaryView))
    };
    let frame = &function.params.window_frame;
    if frame.units == WindowFrameUnits::Range
        && open(&frame.start_bound)
        && open(&frame.end_bound)
        && !function.params.order_by.iter().all(has_ranges)
    {
        let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
        let bound = |bound| match bound {
            WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        };
        function.params.window_frame =
            WindowFrame::new_bounds(WindowFrameUnits::Groups, bound(start), bound(end));
    }
    Ok(Transformed::yes(Expr::WindowFunction(function)))
}

/// Gives the value and the default of `lag` and `lead` the type that holds both, if they are
/// numbers; an untyped default is parsed as the type of the value. DataFusion converts the default
/// to the type of the value, which may round it.
///
/// Errors: as [`typed`].
fn with_type_of_default(args: &mut [Expr], schema: &DFSchema) -> Result<()> {
    let [value, _, default] = args else { return Ok(()) };
    if is_quoted(default)
        && let Some(kind) = type_beside(value, Operator::Eq, schema)
    {
        *default = *typed(Box::new(std::mem::take(default)), &kind)?;
        return Ok(());
    }
    let (Some(of_value), Some(of_default)) = (type_of(value, schema), type_of(default, schema)) else {
        return Ok(());
    };
    if of_value == of_default || !of_value.is_numeric() || !of_default.is_numeric() {
        return Ok(());
    }
    let Some(kind) = get_coerce_type_for_case_expression(&[of_value], Some(&of_default)) else {
        return Ok(());
    };
    for arg in [value, default] {
        *arg = match std::mem::take(arg) {
            Expr::Literal(literal, metadata) => match literal.cast_to(&kind) {
                Ok(literal) => Expr::Literal(literal, metadata),
                Err(_) => Expr::Literal(literal, metadata),
            },
            other => Expr::Cast(Cast::new(Box::new(other), kind.clone())),
        };
    }
    Ok(())
}

/// Whether an expression is an untyped literal.
fn is_quoted(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// Whether an untyped literal takes the type of the operator's other operand.
fn takes_type(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom) || is_arithmetic(op)
}

/// Whether it is a cast, possibly wrapped in [`zone_marks::PLAIN`].
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(_) => true,
        Expr::ScalarFunction(call) => call.func.name() == zone_marks::PLAIN,
        _ => false,
    }
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}

/// Returns the type as which an untyped literal beside an expression is parsed; `None` for texts
/// and for expressions without a type. A literal added to a date or time has no fixed type, since
/// it may be an interval.
fn type_beside(expr: &Expr, op: Operator, schema: &DFSchema) -> Option<ColumnType> {
    if matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_)) {
        return None;
    }
    let (_, field) = expr.to_field(schema).ok()?;
    let field = match matches!(expr, Expr::Case(_)).then(|| type_of(expr, schema)).flatten() {
        Some(kind) if kind != *field.data_type() => Arc::new(Field::new("", kind, true)),
        _ => field,
    };
    if is_arithmetic(op) && !field.data_type().is_numeric() {
        return None;
    }
    known_kind(&field)
}

/// Returns the type as which untyped literals among other expressions are parsed, which is the type
/// of the result.
fn type_among<'e>(all: impl Iterator<Item = &'e Expr> + Clone, schema: &DFSchema) -> Option<ColumnType> {
    if !all.clone().any(is_quoted) {
        return None;
    }
    let mut all = all;
    all.find_map(|expr| type_beside(expr, Operator::Eq, schema))
}

/// Returns the type of a field, if untyped literals beside it are parsed as that type.
fn known_kind(field: &Field) -> Option<ColumnType> {
    let is_known = matches!(
        field.data_type(),
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::Utf8View
    );
    let mut kind = kind_of(field);
    if !is_known || kind.kind == Type::Text {
        return None;
    }
    // The literal keeps its own scale.
    kind.decimal = None;
    Some(kind)
}

/// Parses an untyped literal as a type; other expressions stay unchanged.
///
/// Errors: 22P02 and similar for an invalid value of the type.
fn typed(expr: Box<Expr>, kind: &ColumnType) -> Result<Box<Expr>> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), metadata) = *expr else { return Ok(expr) };
    let datum = Datum::parse(&text, kind).map_err(external)?;
    let own = match &datum {
        Datum::Decimal { scale, .. } => ColumnType::decimal(38, *scale),
        _ => kind.clone(),
    };
    Ok(Box::new(Expr::Literal(scalar(datum.borrow(), &own)?, metadata)))
}
