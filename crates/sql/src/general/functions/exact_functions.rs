//! Exact arithmetic of numerics: products, sums and rounded quotients with a given scale.

use std::hash::Hash;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, i256};
use cairn_vfs::sync::Arc;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::datum::{pow10, quotient, wide_quotient};
use crate::error::Error;
use crate::general::errors::external;
use crate::general::tree::expression_types::{full_name, short_name, type_of};
use crate::sqlstate::{DIVISION_BY_ZERO, NUMERIC_VALUE_OUT_OF_RANGE};

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Exact {
    Quotient,
    Product,
    Sum,
    Difference,
}

impl Exact {
    /// Builds the call for two operands with their precisions and scales.
    pub fn of(self, scale: u8, of: [(Expr, (u8, u8)); 2], schema: &DFSchema) -> Expr {
        let args = of.map(|(expr, (precision, scale))| match type_of(&expr, schema) {
            Some(kind) if kind.is_integer() => {
                Expr::Cast(Cast::new(Box::new(expr), DataType::Decimal128(precision, scale as i8)))
            }
            _ => expr,
        });
        let signature = Signature::any(2, Volatility::Immutable);
        let mut function = ExactFunction { exact: self, scale, short_name: None, signature };
        function.short_name = short_name(function.name(), &args);
        let function = ScalarUDF::from(function);
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), args.to_vec()))
    }

    /// Computes the result for `a / 10^m` and `b / 10^n`.
    fn value(self, (a, m): (i128, i32), (b, n): (i128, i32), scale: u8) -> Result<i128> {
        let value = match self {
            Exact::Quotient if b == 0 => {
                return Err(external(Error::new(DIVISION_BY_ZERO, "division by zero")));
            }
            Exact::Quotient => quotient(a, b, i32::from(scale) + n - m),
            Exact::Product => product(a, b, i32::from(scale) - m - n),
            Exact::Sum => sum_of((a, m), (b, n), scale),
            Exact::Difference => b.checked_neg().and_then(|b| sum_of((a, m), (b, n), scale)),
        };
        value.ok_or_else(|| {
            let error = Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range");
            let before = DECIMAL128_MAX_PRECISION.saturating_sub(scale);
            external(error.with_detail(format!(
                "What is computed here is numeric({DECIMAL128_MAX_PRECISION},{scale}), which has {before} digits before the point."
            )))
        })
    }
}

/// Returns `a` * `b` * 10^`exponent`, rounded; `None` where it has more than 38 digits.
fn product(a: i128, b: i128, exponent: i32) -> Option<i128> {
    match a.checked_mul(b) {
        Some(product) => quotient(product, 1, exponent),
        None => wide_quotient(i256::from_i128(a).checked_mul(i256::from_i128(b))?, i256::ONE, exponent),
    }
}

/// Returns `a / 10^m + b / 10^n`, times 10^`scale` and rounded; `None` where it has more than 38
/// digits.
fn sum_of((a, m): (i128, i32), (b, n): (i128, i32), scale: u8) -> Option<i128> {
    let most = m.max(n);
    let raised = |value: i128, by: i32| {
        let by = pow10(u32::try_from(by).ok()?)?;
        i256::from_i128(value).checked_mul(i256::from_i128(by))
    };
    let sum = raised(a, most - m)?.checked_add(raised(b, most - n)?)?;
    wide_quotient(sum, i256::ONE, i32::from(scale) - most)
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExactFunction {
    exact: Exact,
    scale: u8,
    short_name: Option<String>,
    signature: Signature,
}

impl ExactFunction {
    fn result(&self) -> DataType {
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, self.scale as i8)
    }
}

/// Returns the result type of one of these functions; `None` for other functions.
pub(crate) fn result_of(function: &ScalarUDF) -> Option<DataType> {
    function.inner().downcast_ref::<ExactFunction>().map(ExactFunction::result)
}

/// Returns the short name of a call of one of these functions.
pub(crate) fn name_of(function: &ScalarUDF) -> Option<&str> {
    function.inner().downcast_ref::<ExactFunction>()?.short_name.as_deref()
}

/// Whether a function divides by its last argument.
pub(crate) fn divides(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<ExactFunction>().is_some_and(|function| function.exact == Exact::Quotient)
}

impl ScalarUDFImpl for ExactFunction {
    fn name(&self) -> &str {
        match self.exact {
            Exact::Quotient => "cairn_quotient",
            Exact::Product => "cairn_product",
            Exact::Sum => "cairn_sum",
            Exact::Difference => "cairn_difference",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(self.short_name.clone().unwrap_or_else(|| full_name(self.name(), arguments)))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.result())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{} of {} numbers", self.name(), args.args.len())));
        };
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let result: ArrayRef = match (left.data_type(), right.data_type()) {
            (DataType::Decimal128(_, m), DataType::Decimal128(_, n)) => {
                let (m, n) = (i32::from(*m), i32::from(*n));
                let both = left.as_primitive::<Decimal128Type>().iter();
                let both = both.zip(right.as_primitive::<Decimal128Type>());
                let value = |(a, b): (Option<i128>, Option<i128>)| match a.zip(b) {
                    Some((a, b)) => self.exact.value((a, m), (b, n), self.scale).map(Some),
                    None => Ok(None),
                };
                let values = both.map(value).collect::<Result<Decimal128Array>>()?;
                Arc::new(values.with_precision_and_scale(DECIMAL128_MAX_PRECISION, self.scale as i8)?)
            }
            // A constant NULL may have lost its type.
            _ => arrow::array::new_null_array(&args.return_field.data_type().clone(), rows),
        };
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)),
            false => Ok(ColumnarValue::Array(result)),
        }
    }
}
