//! Arithmetic and rounding of numbers on whole arrays, with PostgreSQL's errors.

use std::hash::Hash;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::datum::pow10;
use crate::error::Error;
use crate::expr::{doubles, reals};
use crate::general::errors::external;
use crate::general::tree::expression_types::{full_name, short_name};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Arithmetic {
    /// Whether the operator needs our version for a type. DataFusion itself detects integer
    /// division by zero.
    pub fn is_ours(self, kind: &DataType) -> bool {
        match kind {
            DataType::Float32 | DataType::Float64 => true,
            kind => kind.is_signed_integer() && self != Arithmetic::Divide,
        }
    }

    /// The operator of the direct path.
    pub fn operator(self) -> crate::expr::Operator {
        match self {
            Arithmetic::Add => crate::expr::Operator::Add,
            Arithmetic::Subtract => crate::expr::Operator::Subtract,
            Arithmetic::Multiply => crate::expr::Operator::Multiply,
            Arithmetic::Divide => crate::expr::Operator::Divide,
        }
    }
}

/// An operation on numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Number {
    /// On two numbers of one type.
    Arithmetic(Arithmetic),
    /// Rounds to the nearest integer of a type. Halves go to the even neighbour for floating-point
    /// numbers, away from zero for decimals.
    Rounded(DataType),
    /// `round` of floating-point numbers.
    RoundedToEven,
}

/// Whether a function divides by its last argument.
pub(crate) fn divides(function: &ScalarUDF) -> bool {
    let number = function.inner().downcast_ref::<NumberFunction>().map(|function| &function.number);
    matches!(number, Some(Number::Arithmetic(Arithmetic::Divide)))
}

/// Returns the result type of one of these functions; `None` for other functions.
pub(crate) fn result_of(function: &ScalarUDF) -> Option<DataType> {
    function.inner().downcast_ref::<NumberFunction>()?.result.clone()
}

/// Returns the short name of a call of one of these functions.
pub(crate) fn name_of(function: &ScalarUDF) -> Option<&str> {
    function.inner().downcast_ref::<NumberFunction>()?.short_name.as_deref()
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NumberFunction {
    number: Number,
    /// The result type, if known.
    result: Option<DataType>,
    short_name: Option<String>,
    signature: Signature,
}

impl NumberFunction {
    /// `of`: the type of the first argument.
    pub fn new(number: Number, of: Option<DataType>, arguments: &[Expr]) -> Self {
        let count = if matches!(number, Number::Arithmetic(_)) { 2 } else { 1 };
        let signature = Signature::any(count, Volatility::Immutable);
        let mut function = NumberFunction { number, result: None, short_name: None, signature };
        function.result = match &function.number {
            Number::Rounded(to) => Some(to.clone()),
            _ => of,
        };
        function.short_name = short_name(function.name(), arguments);
        function
    }
}

impl ScalarUDFImpl for NumberFunction {
    fn name(&self) -> &str {
        match self.number {
            Number::Arithmetic(Arithmetic::Add) => "add",
            Number::Arithmetic(Arithmetic::Subtract) => "subtract",
            Number::Arithmetic(Arithmetic::Multiply) => "multiply",
            Number::Arithmetic(Arithmetic::Divide) => "divide",
            Number::Rounded(DataType::Int16) => "rounded_to_smallint",
            Number::Rounded(DataType::Int32) => "rounded_to_integer",
            Number::Rounded(_) => "rounded_to_bigint",
            Number::RoundedToEven => "round_to_even",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(self.short_name.clone().unwrap_or_else(|| full_name(self.name(), arguments)))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &self.number {
            Number::Rounded(to) => Ok(to.clone()),
            _ => Ok(arguments.first().cloned().unwrap_or(DataType::Null)),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // A constant NULL may have lost its type.
        if args.args.iter().any(|value| value.data_type().is_null()) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let result = match (&self.number, args.args.as_slice()) {
            (Number::Arithmetic(arithmetic), [left, right]) => {
                let scalar = matches!((left, right), (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)));
                let rows = if scalar { 1 } else { args.number_rows };
                let result = match left.data_type() {
                    DataType::Float32 => floats::<Float32Type>(*arithmetic, left, right, rows, reals)?,
                    DataType::Float64 => floats::<Float64Type>(*arithmetic, left, right, rows, doubles)?,
                    _ => computed(*arithmetic, left, right)?,
                };
                return as_given(result, scalar);
            }
            (Number::Rounded(to), [of]) => {
                let array = of.to_array(1.max(args.number_rows))?;
                (rounded(&array, to)?, matches!(of, ColumnarValue::Scalar(_)))
            }
            (Number::RoundedToEven, [of]) => {
                let array = of.to_array(1.max(args.number_rows))?;
                let even: ArrayRef = match array.data_type() {
                    DataType::Float32 => Arc::new(
                        array.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::round_ties_even),
                    ),
                    _ => Arc::new(
                        array.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::round_ties_even),
                    ),
                };
                (even, matches!(of, ColumnarValue::Scalar(_)))
            }
            _ => {
                return Err(DataFusionError::Internal(format!(
                    "{} was called otherwise than planned",
                    self.name()
                )));
            }
        };
        as_given(result.0, result.1)
    }
}

/// Returns a scalar if all arguments were scalars.
fn as_given(array: ArrayRef, is_scalar: bool) -> Result<ColumnarValue> {
    match is_scalar {
        true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
        false => Ok(ColumnarValue::Array(array)),
    }
}

/// Computes on floating-point numbers as the direct path does: division by zero, overflow and
/// underflow are errors.
fn floats<T: ArrowPrimitiveType>(
    arithmetic: Arithmetic,
    left: &ColumnarValue,
    right: &ColumnarValue,
    rows: usize,
    compute: impl Fn(crate::expr::Operator, T::Native, T::Native) -> crate::Result<T::Native>,
) -> Result<ArrayRef> {
    let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
    let operator = arithmetic.operator();
    // The optimizer evaluates expressions with NULLs in place of columns, whose type may be another
    // one.
    let (Some(left), Some(right)) = (left.as_primitive_opt::<T>(), right.as_primitive_opt::<T>()) else {
        let (left, right) = (left.data_type(), right.data_type());
        return Err(DataFusionError::Internal(format!("arithmetic of {left} and {right}")));
    };
    let pairs = left.iter().zip(right);
    let values = pairs.map(|pair| match pair {
        (Some(left), Some(right)) => compute(operator, left, right).map(Some).map_err(external),
        _ => Ok(None),
    });
    Ok(Arc::new(values.collect::<Result<PrimitiveArray<T>>>()?))
}

fn computed(arithmetic: Arithmetic, left: &ColumnarValue, right: &ColumnarValue) -> Result<ArrayRef> {
    let apply = match arithmetic {
        Arithmetic::Add => numeric::add,
        Arithmetic::Subtract => numeric::sub,
        Arithmetic::Multiply => numeric::mul,
        Arithmetic::Divide => numeric::div,
    };
    let result = match (left, right) {
        (ColumnarValue::Array(left), ColumnarValue::Array(right)) => apply(left, right),
        (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => apply(left, &right.to_scalar()?),
        (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => apply(&left.to_scalar()?, right),
        (ColumnarValue::Scalar(left), ColumnarValue::Scalar(right)) => {
            apply(&left.to_array()?, &right.to_array()?)
        }
    };
    result.map_err(|error| match error {
        ArrowError::ArithmeticOverflow(_) => out_of_range(&left.data_type()),
        other => other.into(),
    })
}

fn out_of_range(kind: &DataType) -> DataFusionError {
    let name = match kind {
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        _ => "bigint",
    };
    external(Error::new(NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range")))
}

fn rounded(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match to {
        DataType::Int16 => rounded_to::<Int16Type>(array, to),
        DataType::Int32 => rounded_to::<Int32Type>(array, to),
        _ => rounded_to::<Int64Type>(array, to),
    }
}

fn rounded_to<T>(array: &ArrayRef, to: &DataType) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i128>,
{
    let fits = |value: Option<i128>| {
        value.and_then(|value| T::Native::try_from(value).ok()).ok_or_else(|| out_of_range(to))
    };
    let whole = |value: f64| {
        let even = value.round_ties_even();
        // Every 64-bit integer is far below this bound.
        (even.abs() < 1e30).then_some(even as i128)
    };
    let result: PrimitiveArray<T> = match array.data_type() {
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().try_unary(|value| fits(whole(value.into())))?
        }
        DataType::Float64 => array.as_primitive::<Float64Type>().try_unary(|value| fits(whole(value)))?,
        DataType::Decimal128(_, scale) => {
            let scale = *scale;
            let by = pow10(scale.unsigned_abs().into());
            array.as_primitive::<Decimal128Type>().try_unary(|value| {
                fits(match (by, scale < 0) {
                    (Some(by), true) => value.checked_mul(by),
                    (Some(by), false) => {
                        let up = 2 * (value % by).unsigned_abs() >= by.unsigned_abs();
                        Some(value / by + if up { value.signum() } else { 0 })
                    }
                    (None, _) => None,
                })
            })?
        }
        other => return Err(DataFusionError::Internal(format!("{other} is no number to be rounded"))),
    };
    Ok(Arc::new(result))
}
