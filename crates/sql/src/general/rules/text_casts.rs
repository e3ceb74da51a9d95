//! Conversion of texts to other types as in PostgreSQL. Arrow's casts accept fewer forms, and apply
//! UTC offsets where PostgreSQL ignores them.

use std::hash::{Hash, Hasher};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::batch::kind_of;
use crate::datum::Datum;
use crate::general::errors::external;
use crate::general::tree::expression_types::type_of;
use crate::general::tree::values::scalar;
use crate::general::tree::walk::{Walk, WalkPlan};
use crate::types::name_of;

/// The name of the cast from text to a timestamp in UTC.
pub(crate) const ZONED: &str = "cairn_timestamptz";

/// Parses texts as one type.
#[derive(Debug)]
struct Read {
    name: String,
    kind: ColumnType,
    result: DataType,
    signature: Signature,
}

impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.result == other.result
    }
}

impl Eq for Read {}

impl Hash for Read {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.kind.hash(to);
        self.result.hash(to);
    }
}

impl Read {
    fn function(name: &str, kind: ColumnType, result: DataType) -> ScalarUDF {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::from(Read { name: name.to_owned(), kind, result, signature })
    }

    /// Arrays of other types use Arrow's cast.
    fn array(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if !array.data_type().is_string() {
            return Ok(cast(array, &self.result)?);
        }
        let texts = cast(array, &DataType::Utf8View)?;
        let value = |text: Option<&str>| {
            let datum = match text {
                None => Datum::Null,
                Some(text) => Datum::parse(text, &self.kind).map_err(external)?,
            };
            scalar(datum.borrow(), &self.kind)?.cast_to(&self.result)
        };
        let values = texts.as_string_view().iter().map(value).collect::<Result<Vec<ScalarValue>>>()?;
        if values.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.result));
        }
        ScalarValue::iter_to_array(values)
    }
}

/// Whether a function parses texts, which may fail.
pub(crate) fn reads(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Read>().is_some()
}

impl ScalarUDFImpl for Read {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(ColumnarValue::Scalar(value)) => {
                let array = self.array(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(self.array(array)?)),
            None => Err(DataFusionError::Internal("a cast of nothing".to_owned())),
        }
    }
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

/// `x::timestamptz`.
pub(crate) fn zoned() -> ScalarUDF {
    crate::general::functions::direct_functions::to(ZONED, ColumnType::zoned())
}

/// The name of the cast to numeric without precision.
pub(crate) const NUMERIC: &str = "cairn_numeric";

/// `x::numeric`: exact numbers keep their scale. Types without a fixed scale get ten digits after
/// the point.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Numeric {
    signature: Signature,
}

/// See [`NUMERIC`].
pub(crate) fn numeric() -> ScalarUDF {
    ScalarUDF::from(Numeric { signature: Signature::any(1, Volatility::Immutable) })
}

impl ScalarUDFImpl for Numeric {
    fn name(&self) -> &str {
        NUMERIC
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match args.first() {
            Some(kind) if kind.is_integer() => DataType::Decimal128(38, 0),
            Some(kind @ DataType::Decimal128(..)) => kind.clone(),
            _ => DataType::Decimal128(38, 10),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type().clone();
        let of = args.args.first();
        let array = of.ok_or_else(|| DataFusionError::Internal("a cast of nothing".to_owned()))?;
        let array = array.to_array(args.number_rows)?;
        if array.data_type().is_string() {
            let kind = ColumnType::decimal(38, 10);
            let read = Read { name: NUMERIC.to_owned(), kind, result: to, signature: self.signature.clone() };
            return Ok(ColumnarValue::Array(read.array(&array)?));
        }
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        Ok(ColumnarValue::Array(cast_with_options(&array, &to, &strict)?))
    }
}

/// Returns the type as which texts are parsed for one of Arrow's types; `None` where Arrow parses
/// them as PostgreSQL does.
fn read_as(to: &DataType) -> Option<ColumnType> {
    Some(match to {
        DataType::Timestamp(TimeUnit::Microsecond, None) => Type::Timestamp.into(),
        DataType::Date32 => Type::Date.into(),
        DataType::Time64(TimeUnit::Microsecond) => Type::Time.into(),
        DataType::Boolean => Type::Boolean.into(),
        DataType::Int16 => Type::SmallInt.into(),
        DataType::Int32 => Type::Int.into(),
        DataType::Int64 => Type::BigInt.into(),
        DataType::Float64 => Type::Double.into(),
        DataType::Float32 => Type::Real.into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => Type::Interval.into(),
        // An untyped literal beside a bytea value is bytea.
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Blob.into(),
        DataType::Decimal128(precision, scale @ 0..=38) => ColumnType::decimal(*precision, *scale as u8),
        _ => return None,
    })
}

/// Replaces Arrow's conversion of texts by ours, once all casts have been added.
#[derive(Debug)]
pub(crate) struct TextCasts;

impl AnalyzerRule for TextCasts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            plan.inputs().iter().for_each(|input| schema.merge(input.schema()));
            let names = NamePreserver::new(&plan);
            plan.walk_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.walk_down(|expr| Ok(beside_zoned(expr, &schema)))?;
                let changed = changed.transform_data(|expr| expr.walk_up(|expr| Ok(read(expr, &schema))))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_read_texts"
    }
}

fn called(function: ScalarUDF, arg: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![arg]))
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    type_of(expr, schema).is_some_and(|kind| kind.is_string())
}

/// Returns the type of an expression that Arrow would print differently than PostgreSQL; `None`
/// where both agree.
fn printed(expr: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    let (_, field) = expr.to_field(schema).ok()?;
    let is_other = matches!(
        field.data_type(),
        DataType::Float32
            | DataType::Float64
            | DataType::Date32
            | DataType::Timestamp(..)
            | DataType::Time64(_)
            | DataType::Interval(_)
            | DataType::Duration(_)
            | DataType::Binary
            | DataType::BinaryView
            | DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::Struct(_)
    );
    is_other.then(|| kind_of(&field))
}

/// Replaces casts from text by our parser, and casts to text by our printer.
fn read(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr, field }) = expr else { return Transformed::no(expr) };
    match read_as(field.data_type()).filter(|_| is_text(&expr, schema)) {
        Some(kind) => {
            let name = format!("cairn_{}", name_of(&kind));
            Transformed::yes(called(Read::function(&name, kind, field.data_type().clone()), *expr))
        }
        None if field.data_type().is_string() => match printed(&expr, schema) {
            Some(kind) => {
                let text = crate::general::functions::direct_functions::cast(*expr, kind, Type::Text.into());
                let text = match field.data_type() {
                    DataType::Utf8View => text,
                    other => Expr::Cast(Cast::new(Box::new(text), other.clone())),
                };
                Transformed::yes(text)
            }
            None => Transformed::no(Expr::Cast(Cast { expr, field })),
        },
        None => Transformed::no(Expr::Cast(Cast { expr, field })),
    }
}

/// Makes the offsets of texts count where they are compared with timestamps in UTC.
fn beside_zoned(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_zoned = |expr: &Expr| {
        matches!(expr, Expr::Column(_))
            && matches!(expr.to_field(schema), Ok((_, field)) if kind_of(&field).is_zoned)
    };
    let zoned_text = |expr: Box<Expr>| match *expr {
        Expr::Cast(Cast { expr, field }) if is_text(&expr, schema) && *field.data_type() == timestamp() => {
            Box::new(called(zoned(), *expr))
        }
        other => Box::new(other),
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_zoned(&left) || is_zoned(&right) => {
            let (left, right) = (zoned_text(left), zoned_text(right));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_zoned(&expr) => {
            let (low, high) = (zoned_text(low), zoned_text(high));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(InList { expr, list, negated }) if is_zoned(&expr) => {
            let list = list.into_iter().map(|item| *zoned_text(Box::new(item))).collect();
            Transformed::yes(Expr::InList(InList { expr, list, negated }))
        }
        other => Transformed::no(other),
    }
}
