//! The direct path's functions, casts and arithmetic of dates in general queries, where DataFusion's give something else than PostgreSQL's:
//! `concat(1.0::float8)` would be `1.0`, `lpad(s, -1)` end in a panic, a date less an interval be a date, `to_char` read other patterns.
//!
//! They work on one row at a time.

use std::hash::{Hash, Hasher};

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, RecordBatchOptions};
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
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::errors::external;
use super::functions::{RowFunction, text_of};
use super::rewrite::{MOMENT, PART, SPAN, TIME, VARCHAR};
use crate::batch::{BatchReader, Columns, data_type, field, kind_of};
use crate::datum::{Datum, rescale};
use crate::error::Error;
use crate::expr::{Deed, Operator, extract, scale_of_pattern};
use crate::sqlstate::UNDEFINED_FUNCTION;
use crate::types::name_of;

/// Functions that are the direct path's in general queries too.
pub(super) const FUNCTIONS: [&str; 38] = [
    "age",
    "ascii",
    "btrim",
    "chr",
    "concat",
    "div",
    "format",
    "initcap",
    "justify_days",
    "justify_hours",
    "justify_interval",
    "left",
    LENGTH,
    "lpad",
    "ltrim",
    "md5",
    "octet_length",
    "pg_typeof",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "sign",
    "split_part",
    "strpos",
    "substr",
    "substring",
    "to_char",
    "to_date",
    "to_number",
    "to_timestamp",
    "trim",
    "width_bucket",
];

/// How many characters a text has, or bytes a blob.
const LENGTH: &str = "length";

/// The function whose type follows from a pattern.
const TO_NUMBER: &str = "to_number";

/// What is done to a row's values.
#[derive(Debug)]
enum Work {
    /// A function of the direct path, by the types of its arguments.
    Function,
    /// A cast to a type, whose length the second argument says where there is one.
    To(ColumnType),
    /// What an operator does.
    Made(Deed, Vec<ColumnType>),
}

/// A function of ours, as DataFusion knows them.
#[derive(Debug)]
struct Own {
    name: String,
    signature: Signature,
    work: Work,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Own {}

impl Hash for Own {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.name.hash(to);
    }
}

fn own(name: &str, work: Work) -> ScalarUDF {
    let signature = Signature::variadic_any(Volatility::Immutable);
    ScalarUDF::from(Own { name: name.to_owned(), signature, work })
}

/// A function of the direct path.
pub(super) fn function(name: &str) -> ScalarUDF {
    own(name, Work::Function)
}

/// A cast to a type, under a name.
pub(super) fn to(name: &str, kind: ColumnType) -> ScalarUDF {
    own(name, Work::To(kind))
}

/// `x::varchar(n)`: DataFusion knows of no lengths.
pub(super) fn to_varchar() -> ScalarUDF {
    to(VARCHAR, Type::Text.into())
}

/// `x::time` and `x::time(n)`: DataFusion's has nanoseconds.
pub(super) fn to_time() -> ScalarUDF {
    to(TIME, Type::Time.into())
}

/// `x::timestamp(n)`.
pub(super) fn to_moment() -> ScalarUDF {
    to(MOMENT, Type::Timestamp.into())
}

/// A part of a moment or a span of time with its fraction: `cairn_part('second', x)`.
pub(super) fn part() -> ScalarUDF {
    const DIGITS: u8 = 6;
    RowFunction::new(PART, &[2], DataType::Decimal128(38, DIGITS as i8), |values| {
        let [field, of] = values else {
            return Err(DataFusionError::Internal(format!("{PART} has {} arguments", values.len())));
        };
        let none = Ok(ScalarValue::Decimal128(None, 38, DIGITS as i8));
        let Some(field) = text_of(field) else { return none };
        if of.is_null() {
            return none;
        }
        let datum = match of {
            ScalarValue::Date32(Some(days)) => Datum::Date(*days),
            ScalarValue::Time64Microsecond(Some(micros)) => Datum::Time(*micros),
            ScalarValue::TimestampMicrosecond(Some(micros), _) => Datum::Timestamp(*micros),
            ScalarValue::TimestampNanosecond(Some(nanos), _) => Datum::Timestamp(nanos.div_euclid(1000)),
            ScalarValue::IntervalMonthDayNano(Some(span)) => {
                Datum::Interval { months: span.months, days: span.days, micros: span.nanoseconds / 1000 }
            }
            other => {
                let kind = other.data_type();
                let message = format!("function extract({field} from {kind}) does not exist");
                return Err(external(Error::new(UNDEFINED_FUNCTION, message)));
            }
        };
        match extract(&field, datum.borrow()).map_err(external)? {
            Datum::Decimal { unscaled, scale } => {
                Ok(ScalarValue::Decimal128(rescale(unscaled, scale, DIGITS), 38, DIGITS as i8))
            }
            _ => none,
        }
    })
}

/// How long a span of time is, as it is compared: a month has thirty days, a day 24 hours.
///
/// There is one of it: who compares two expressions with it looks whether it is the same.
pub(super) fn span() -> Arc<ScalarUDF> {
    static SPAN_OF: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made = || {
        RowFunction::new(SPAN, &[1], DataType::Decimal128(38, 0), |values| {
            let length = values.first().and_then(length_of_span);
            Ok(ScalarValue::Decimal128(length, 38, 0))
        })
    };
    Arc::clone(SPAN_OF.get_or_init(|| Arc::new(made())))
}

/// The length of a span of time in microseconds; `None` for NULL.
pub(super) fn length_of_span(value: &ScalarValue) -> Option<i128> {
    let ScalarValue::IntervalMonthDayNano(Some(span)) = value else { return None };
    let days = i128::from(span.months) * 30 + i128::from(span.days);
    Some(days * 86_400_000_000 + i128::from(span.nanoseconds / 1_000))
}

fn kind_given(field: &FieldRef) -> Option<ColumnType> {
    (!field.data_type().is_null()).then(|| kind_of(field))
}

impl Own {
    /// `second` is the second argument, where that is a constant.
    fn deed(&self, fields: &[FieldRef], second: Option<&ScalarValue>) -> Result<Deed> {
        let kinds: Vec<Option<ColumnType>> = fields.iter().map(kind_given).collect();
        let from = || kinds.first().cloned().flatten().unwrap_or_else(|| Type::Text.into());
        match &self.work {
            Work::Made(deed, _) => Ok(deed.clone()),
            Work::To(kind) => {
                let mut kind = kind.clone();
                kind.length = length_of(second);
                Ok(Deed::cast(&from(), &kind))
            }
            Work::Function => {
                let mut deed = self.function(&kinds)?;
                if self.name == TO_NUMBER
                    && let Some(scale) = second.and_then(text_of).and_then(|text| scale_of_pattern(&text))
                {
                    deed.result = ColumnType::decimal(38, scale);
                }
                Ok(deed)
            }
        }
    }

    fn function(&self, kinds: &[Option<ColumnType>]) -> Result<Deed> {
        Deed::function(&self.name, kinds).ok_or_else(|| {
            let name = |kind: &Option<ColumnType>| kind.as_ref().map_or("unknown", name_of);
            let kinds: Vec<&str> = kinds.iter().map(name).collect();
            let what = format!("function {}({}) does not exist", self.name, kinds.join(", "));
            external(Error::new(UNDEFINED_FUNCTION, what))
        })
    }

    /// The types that its arguments are read as.
    fn kinds(&self, fields: &[FieldRef]) -> Vec<ColumnType> {
        match &self.work {
            Work::Made(_, kinds) => kinds.clone(),
            _ => fields.iter().map(|field| kind_of(field)).collect(),
        }
    }
}

/// Whatever is of no use for it goes in and comes out as a whole number.
fn length_of(value: Option<&ScalarValue>) -> Option<u32> {
    match value {
        Some(ScalarValue::Int64(Some(length))) => u32::try_from(*length).ok(),
        Some(ScalarValue::Int32(Some(length))) => u32::try_from(*length).ok(),
        _ => None,
    }
}

impl ScalarUDFImpl for Own {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> =
            kinds.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        Ok(data_type(&self.deed(&fields, None)?.result))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let second = args.scalar_arguments.get(1).copied().flatten();
        let mut kind = self.deed(args.arg_fields, second)?.result;
        // Rows of VALUES may have different lengths, and DataFusion wants one type for all.
        kind.length = None;
        Ok(Arc::new(field(&self.name, &kind, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let second = match args.args.get(1) {
            Some(ColumnarValue::Scalar(value)) => Some(value),
            _ => None,
        };
        let deed = self.deed(&args.arg_fields, second)?;
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = match (self.name.as_str(), arrays.as_slice()) {
            (LENGTH, [texts]) if *texts.data_type() == DataType::Utf8View => characters(texts),
            _ => computed(&deed, &self.kinds(&args.arg_fields), arrays, rows)?,
        };
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}

/// The lengths of texts of a table, which are asked for often enough not to go through values.
fn characters(texts: &ArrayRef) -> ArrayRef {
    let count = |text: &str| i32::try_from(text.chars().count()).unwrap_or(i32::MAX);
    Arc::new(texts.as_string_view().iter().map(|text| text.map(count)).collect::<Int32Array>())
}

fn computed(deed: &Deed, kinds: &[ColumnType], arrays: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    let fields: Vec<Field> =
        arrays.iter().map(|array| Field::new("", array.data_type().clone(), true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
    let reader = BatchReader::new(&batch, kinds)?;
    let schema = Arc::new(Schema::new(vec![field("", &deed.result, true)]));
    let mut results = Columns::new(schema, std::slice::from_ref(&deed.result), rows);
    let scale = deed.result.decimal.map_or(0, |(_, scale)| scale);
    let mut values = Vec::with_capacity(kinds.len());
    for row in 0..rows {
        values.clear();
        values.extend((0..kinds.len()).map(|column| reader.get(row, column).to_owned()));
        let mut value = deed.of(&values).map_err(external)?;
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

/// A cast as the direct path does it.
pub(super) fn cast(expr: Expr, from: ColumnType, kind: ColumnType) -> Expr {
    let name = format!("cairn_cast({from} as {kind})");
    let deed = Deed::cast(&from, &kind);
    let function = own(&name, Work::Made(deed, vec![from]));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr]))
}

/// The length of a span of time, to be compared.
pub(super) fn span_of(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(span(), vec![expr]))
}

/// Arithmetic with dates and times, and comparing spans of them.
#[derive(Debug)]
pub(super) struct Times;

fn is_time(kind: &ColumnType) -> bool {
    matches!(kind.kind, Type::Date | Type::Time | Type::Timestamp | Type::Interval)
}

/// The type of an operand, where it has one; numbers are integers where they fit.
fn operand(expr: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) if i32::try_from(*value).is_ok() => {
            Some(Type::Int.into())
        }
        Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _) | Expr::Placeholder(_) => None,
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
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => return Ok(compared(expr, kinds)),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let (Some(left), Some(right)) = kinds else { return Ok(PlannerResult::Original(expr)) };
        if !is_time(&left) && !is_time(&right) {
            return Ok(PlannerResult::Original(expr));
        }
        let Some(deed) = Deed::operator(operator, &left, &right) else {
            return Ok(PlannerResult::Original(expr));
        };
        let name = format!("cairn({left} {symbol} {right})");
        let function = own(&name, Work::Made(deed, vec![left, right]));
        let arguments = vec![expr.left, expr.right];
        let call = ScalarFunction::new_udf(Arc::new(function), arguments);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

/// Spans of time by their lengths: thirty days are a month.
fn compared(
    expr: RawBinaryExpr,
    kinds: (Option<ColumnType>, Option<ColumnType>),
) -> PlannerResult<RawBinaryExpr> {
    let is_span = |kind: &Option<ColumnType>| kind.as_ref().is_some_and(|kind| kind.kind == Type::Interval);
    let is_open = |expr: &Expr| matches!(expr, Expr::Literal(ScalarValue::Utf8(_) | ScalarValue::Null, _));
    let (left, right) = (is_span(&kinds.0), is_span(&kinds.1));
    // One side is, and the other too or nothing yet.
    let both = (left && (right || is_open(&expr.right))) || (right && is_open(&expr.left));
    if !both {
        return PlannerResult::Original(expr);
    }
    let span = |expr: Expr, known: bool| {
        let kind = data_type(&Type::Interval.into());
        span_of(if known { expr } else { Expr::Cast(Cast::new(Box::new(expr), kind)) })
    };
    let (left, right) = (span(expr.left, left), span(expr.right, right));
    // Back for whoever comes next, and in the end the planner itself.
    PlannerResult::Original(RawBinaryExpr { op: expr.op, left, right })
}
