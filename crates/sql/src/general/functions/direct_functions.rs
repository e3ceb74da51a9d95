//! The direct path's functions, casts and date arithmetic for the general path, where DataFusion's
//! differ from PostgreSQL's: `concat(1.0::float8)` would be `1.0`, `lpad(s, -1)` would panic, a
//! date minus an interval would be a date, `to_char` would use other patterns.
//!
//! They are evaluated row by row.

use std::hash::{Hash, Hasher};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, OnceLock};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use sqlparser::ast::BinaryOperator;

use crate::batch::{BatchReader, Columns, data_type, field, kind_of};
use crate::datum::{Datum, rescale};
use crate::error::Error;
use crate::expr::{Input, Operation, Operator, no_operator, scale_of_pattern, undefined_operator};
use crate::general::errors::external;
use crate::general::functions::{RowFunction, text_of};
use crate::general::markers::{MOMENT, SPAN, TIME, VARCHAR};
use crate::general::tree::expression_types::type_of;
use crate::sqlstate::UNDEFINED_FUNCTION;
use crate::types::name_of;

/// The function whose result type depends on its pattern argument.
const TO_NUMBER: &str = "to_number";

/// The computation on the values of a row.
#[derive(Debug)]
enum Kind {
    /// A function of the direct path, chosen by the types of its arguments.
    Function,
    /// A cast to a type. The second argument, if any, is its length.
    To(ColumnType),
    /// An operator, with the types of its operands.
    Operation(Operation, Vec<ColumnType>),
}

/// A function of ours in DataFusion's form.
#[derive(Debug)]
struct DirectFunction {
    name: String,
    signature: Signature,
    kind_of_call: Kind,
}

impl PartialEq for DirectFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for DirectFunction {}

impl Hash for DirectFunction {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.name.hash(to);
    }
}

fn direct_function(name: &str, kind_of_call: Kind) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::from(DirectFunction { name: name.to_owned(), signature, kind_of_call })
}

/// Returns a function of the direct path.
pub(crate) fn function(name: &str) -> ScalarUDF {
    direct_function(name, Kind::Function)
}

/// Returns a cast to a type, under the given name.
pub(crate) fn to(name: &str, kind: ColumnType) -> ScalarUDF {
    direct_function(name, Kind::To(kind))
}

/// `x::varchar(n)`: DataFusion's text types have no length.
pub(crate) fn to_varchar() -> ScalarUDF {
    to(VARCHAR, Type::Text.into())
}

/// `x::time` and `x::time(n)`: DataFusion's type has nanoseconds.
pub(crate) fn to_time() -> ScalarUDF {
    to(TIME, Type::Time.into())
}

/// `x::timestamp(n)`.
pub(crate) fn to_moment() -> ScalarUDF {
    to(MOMENT, Type::Timestamp.into())
}

/// Returns the function for the length of an interval as it is compared: a month has thirty days, a
/// day 24 hours.
///
/// There is a single instance, because equality of expressions compares functions by identity.
pub(crate) fn span() -> Arc<ScalarUDF> {
    static SPAN_OF: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made = || {
        RowFunction::new(SPAN, &[1], DataType::Decimal128(38, 0), |values| {
            let length = values.first().and_then(length_of_span);
            Ok(ScalarValue::Decimal128(length, 38, 0))
        })
    };
    Arc::clone(SPAN_OF.get_or_init(|| Arc::new(made())))
}

/// Returns the length of an interval in microseconds; `None` for NULL.
pub(crate) fn length_of_span(value: &ScalarValue) -> Option<i128> {
    let ScalarValue::IntervalMonthDayNano(Some(span)) = value else { return None };
    let days = i128::from(span.months) * 30 + i128::from(span.days);
    Some(days * 86_400_000_000 + i128::from(span.nanoseconds / 1_000))
}

fn kind_given(field: &FieldRef) -> Option<ColumnType> {
    (!field.data_type().is_null()).then(|| kind_of(field))
}

/// Like [`kind_given`], for an argument: an untyped literal, which is `Utf8`, has no type yet.
/// Texts of tables and of our functions are `Utf8View`.
fn kind_of_argument(field: &FieldRef) -> Option<ColumnType> {
    kind_given(field).filter(|_| *field.data_type() != DataType::Utf8)
}

impl DirectFunction {
    /// `second` is the second argument, if it is constant.
    fn operation(&self, fields: &[FieldRef], second: Option<&ScalarValue>) -> Result<Operation> {
        let kinds: Vec<Option<ColumnType>> = fields.iter().map(kind_given).collect();
        let from = || kinds.first().cloned().flatten().unwrap_or_else(|| Type::Text.into());
        match &self.kind_of_call {
            Kind::Operation(operation, _) => Ok(operation.clone()),
            Kind::To(kind) => {
                let mut kind = kind.clone();
                kind.length = length_of(second);
                Ok(Operation::cast(&from(), &kind))
            }
            Kind::Function => {
                let kinds: Vec<_> = fields.iter().map(kind_of_argument).collect();
                let mut operation = self.function(&kinds)?;
                if self.name == TO_NUMBER
                    && let Some(scale) = second.and_then(text_of).and_then(|text| scale_of_pattern(&text))
                {
                    operation.result = ColumnType::decimal(38, scale);
                }
                Ok(operation)
            }
        }
    }

    fn function(&self, kinds: &[Option<ColumnType>]) -> Result<Operation> {
        Operation::function(&self.name, kinds).ok_or_else(|| {
            let name = |kind: &Option<ColumnType>| kind.as_ref().map_or("unknown", name_of);
            let kinds: Vec<&str> = kinds.iter().map(name).collect();
            let what = format!("function {}({}) does not exist", self.name, kinds.join(", "));
            external(Error::new(UNDEFINED_FUNCTION, what))
        })
    }

    /// Returns the types as which the arguments are read.
    fn kinds(&self, fields: &[FieldRef]) -> Vec<ColumnType> {
        match &self.kind_of_call {
            Kind::Operation(_, kinds) => kinds.clone(),
            _ => fields.iter().map(|field| kind_of(field)).collect(),
        }
    }
}

/// Returns an integer argument as a length; `None` for other values.
fn length_of(value: Option<&ScalarValue>) -> Option<u32> {
    match value {
        Some(ScalarValue::Int64(Some(length))) => u32::try_from(*length).ok(),
        Some(ScalarValue::Int32(Some(length))) => u32::try_from(*length).ok(),
        _ => None,
    }
}

impl ScalarUDFImpl for DirectFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> =
            kinds.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        Ok(data_type(&self.operation(&fields, None)?.result))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let second = args.scalar_arguments.get(1).copied().flatten();
        let mut kind = self.operation(args.arg_fields, second)?.result;
        // Rows of VALUES may have different lengths, but DataFusion wants one type for all of them.
        kind.length = None;
        Ok(Arc::new(field(&self.name, &kind, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let second = match args.args.get(1) {
            Some(ColumnarValue::Scalar(value)) => Some(value),
            _ => None,
        };
        let operation = self.operation(&args.arg_fields, second)?;
        let inputs: Vec<Input<'_>> = args.args.iter().map(input).collect();
        if let Some(column) = operation.column(&inputs).map_err(external)? {
            return Ok(ColumnarValue::Array(column));
        }
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = computed(&operation, &self.kinds(&args.arg_fields), arrays, rows)?;
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// Returns an argument as the functions on columns take it.
fn input(value: &ColumnarValue) -> Input<'_> {
    match value {
        ColumnarValue::Array(column) => Input::Column(column),
        ColumnarValue::Scalar(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
        ) => Input::Text(text),
        ColumnarValue::Scalar(_) => Input::Constant,
    }
}

fn computed(
    operation: &Operation,
    kinds: &[ColumnType],
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<ArrayRef> {
    let fields: Vec<Field> =
        arrays.iter().map(|array| Field::new("", array.data_type().clone(), true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
    let reader = BatchReader::new(&batch, kinds)?;
    let schema = Arc::new(Schema::new(vec![field("", &operation.result, true)]));
    let mut results = Columns::new(schema, std::slice::from_ref(&operation.result), rows);
    let scale = operation.result.decimal.map_or(0, |(_, scale)| scale);
    let mut values = Vec::with_capacity(kinds.len());
    for row in 0..rows {
        values.clear();
        values.extend((0..kinds.len()).map(|column| reader.get(row, column).to_owned()));
        let mut value = operation.of(&values).map_err(external)?;
        if let Datum::Decimal { unscaled, scale: own } = &mut value
            && let Some(same) = rescale(*unscaled, *own, scale)
        {
            (*unscaled, *own) = (same, scale);
        }
        results.push(|_| value.borrow().to_value());
    }
    let batch = results.finish()?;
    batch.columns().first().cloned().ok_or_else(|| DataFusionError::Internal("no column was made".to_owned()))
}

/// Returns a cast with the semantics of the direct path.
pub(crate) fn cast(expr: Expr, from: ColumnType, kind: ColumnType) -> Expr {
    let name = format!("cairn_cast({from} as {kind})");
    let operation = Operation::cast(&from, &kind);
    let function = direct_function(&name, Kind::Operation(operation, vec![from]));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

/// Returns the length of an interval, for comparison.
pub(crate) fn span_of(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(span(), vec![expr]))
}

/// Plans date and time arithmetic, and comparisons of intervals.
#[derive(Debug)]
pub(crate) struct Times;

fn is_time(kind: &ColumnType) -> bool {
    matches!(kind.kind, Type::Date | Type::Time | Type::Timestamp | Type::Interval)
}

/// Returns the type of an operand, if it has one. Integer literals are integers if they fit.
fn operand(expr: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) if i32::try_from(*value).is_ok() => {
            Some(Type::Int.into())
        }
        Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_) => None,
        // The result of an operator has no metadata, and its field would carry a name that spells
        // out the whole expression below it.
        Expr::BinaryExpr(_) => {
            let field = Arc::new(Field::new("", type_of(expr, schema)?, true));
            kind_given(&field)
        }
        _ => {
            let (_, field) = expr.to_field(schema).ok()?;
            kind_given(&field)
        }
    }
}

impl ExprPlanner for Times {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let kinds = (operand(&expr.left, schema), operand(&expr.right, schema));
        let (operator, symbol) = match expr.op {
            BinaryOperator::Plus => (Operator::Add, '+'),
            BinaryOperator::Minus => (Operator::Subtract, '-'),
            BinaryOperator::Multiply => (Operator::Multiply, '*'),
            BinaryOperator::Divide => (Operator::Divide, '/'),
            BinaryOperator::PGBitwiseShiftLeft => (Operator::ShiftLeft, '<'),
            BinaryOperator::PGBitwiseShiftRight => (Operator::ShiftRight, '>'),
            BinaryOperator::PGExp => (Operator::Power, '^'),
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                if let (Some(left), Some(right)) = &kinds
                    && (left.kind == Type::Text) != (right.kind == Type::Text)
                    && !is_number_of_system(&expr.left)
                    && !is_number_of_system(&expr.right)
                    && let Some(error) = undefined_operator(&expr.op.to_string(), left, right)
                {
                    return Err(external(error));
                }
                return Ok(compared(expr, kinds));
            }
            BinaryOperator::StringConcat => return bytes_joined(expr, kinds),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let (Some(left), Some(right)) = kinds else { return Ok(PlannerResult::Original(expr)) };
        let is_ours = matches!(operator, Operator::ShiftLeft | Operator::ShiftRight | Operator::Power);
        if !is_ours && !is_time(&left) && !is_time(&right) {
            return Ok(PlannerResult::Original(expr));
        }
        let Some(operation) = Operation::operator(operator, &left, &right) else {
            // DataFusion would convert the operands until it finds an operator.
            return match is_time(&left) && is_time(&right) {
                true => Err(external(no_operator(&expr.op.to_string(), &left, &right))),
                false => Ok(PlannerResult::Original(expr)),
            };
        };
        let name = format!("cairn({left} {symbol} {right})");
        let function = direct_function(&name, Kind::Operation(operation, vec![left, right]));
        let arguments = vec![expr.left, expr.right];
        let call = ScalarFunction::new_udf(Arc::new(function), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

/// Whether an expression is an object id of the system catalogs, which may be compared with a name.
fn is_number_of_system(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name().starts_with("cairn_reg"))
}

/// Concatenation of bytea values. An untyped literal next to one is read as bytea.
fn bytes_joined(
    expr: RawBinaryExpr,
    kinds: (Option<ColumnType>, Option<ColumnType>),
) -> Result<PlannerResult<RawBinaryExpr>> {
    let is_blob = |kind: &Option<ColumnType>| kind.as_ref().is_some_and(|kind| kind.kind == Type::Blob);
    let is_open = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _));
    let blob = || ColumnType::from(Type::Blob);
    let (left, right) = match (is_blob(&kinds.0), is_blob(&kinds.1)) {
        (true, true) => (expr.left, expr.right),
        (true, false) if is_open(&expr.right) => (expr.left, cast(expr.right, Type::Text.into(), blob())),
        (false, true) if is_open(&expr.left) => (cast(expr.left, Type::Text.into(), blob()), expr.right),
        _ => return Ok(PlannerResult::Original(expr)),
    };
    let Some(operation) = Operation::operator(Operator::Concat, &blob(), &blob()) else {
        return Ok(PlannerResult::Original(RawBinaryExpr { op: expr.op, left, right }));
    };
    let function = direct_function("cairn(bytea || bytea)", Kind::Operation(operation, vec![blob(), blob()]));
    let call = ScalarFunction::new_udf(Arc::new(function), vec![left, right]);
    Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
}

/// Compares intervals by their lengths: thirty days equal a month.
fn compared(
    expr: RawBinaryExpr,
    kinds: (Option<ColumnType>, Option<ColumnType>),
) -> PlannerResult<RawBinaryExpr> {
    let is_span = |kind: &Option<ColumnType>| kind.as_ref().is_some_and(|kind| kind.kind == Type::Interval);
    let is_open = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _));
    let (left, right) = (is_span(&kinds.0), is_span(&kinds.1));
    // One side is an interval, and the other is one too or is untyped.
    let both = (left && (right || is_open(&expr.right))) || (right && is_open(&expr.left));
    if !both {
        return PlannerResult::Original(expr);
    }
    let span = |expr: Expr, known: bool| {
        let kind = data_type(&Type::Interval.into());
        span_of(if known { expr } else { Expr::Cast(Cast::new(Box::new(expr), kind)) })
    };
    let (left, right) = (span(expr.left, left), span(expr.right, right));
    // The next planner, and finally DataFusion, plans the comparison itself.
    PlannerResult::Original(RawBinaryExpr { op: expr.op, left, right })
}
