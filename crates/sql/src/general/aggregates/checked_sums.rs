//! `sum` over floating-point numbers and numerics. A sum that overflows its type is an error, as in
//! PostgreSQL and on the direct path.
//!
//! DataFusion's numeric sums wrap around. Its floating-point sums become infinite. When rows leave
//! a window frame, it subtracts them again, which restores neither lost digits nor a finite value:
//! `sum(x)` over the current row alone is 0 for a 1 that follows a 1e20, and NaN for every row
//! after an infinite one.
//!
//! An overflow is reported only where adding a finite number to a finite sum gives infinity. Sums
//! of infinite numbers are infinite. Partial sums are added by the same rule.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of_val;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::compute;
use arrow::datatypes::ArrowNativeTypeOp;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator};

use super::groups::{Groups, Step, only};
use super::sliding::{Fold, Queue};
use crate::direct::leaves_doubles;
use crate::error::Error;
use crate::expr::{one_nan, too_large};
use crate::general::errors::external;
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// Returns the accumulator for a sum over all rows; other types keep DataFusion's.
pub(crate) fn accumulator(
    of: &dyn AggregateUDFImpl,
    args: AccumulatorArgs<'_>,
) -> Result<Box<dyn Accumulator>> {
    let kind = args.return_field.data_type().clone();
    let distinct = args.is_distinct;
    Ok(match kind {
        DataType::Float64 if distinct => Box::new(Distinct::<Float64Type>::new(of.accumulator(args)?, kind)),
        DataType::Decimal128(..) if distinct => {
            Box::new(Distinct::<Decimal128Type>::new(of.accumulator(args)?, kind))
        }
        DataType::Float64 => Box::new(Sum::<Float64Type> { sum: None, kind }),
        DataType::Decimal128(..) => Box::new(Sum::<Decimal128Type> { sum: None, kind }),
        _ => of.accumulator(args)?,
    })
}

/// Returns the grouped counterpart of [`accumulator`].
pub(crate) fn groups(
    of: &dyn AggregateUDFImpl,
    args: AccumulatorArgs<'_>,
) -> Result<Box<dyn GroupsAccumulator>> {
    let kind = args.return_field.data_type().clone();
    Ok(match kind {
        DataType::Float64 => Box::new(Groups::<Sums<Float64Type>>::new(kind)),
        DataType::Decimal128(..) => Box::new(Groups::<Sums<Decimal128Type>>::new(kind)),
        _ => of.create_groups_accumulator(args)?,
    })
}

/// Returns the counterpart of [`accumulator`] for window frames that rows leave.
pub(crate) fn sliding(of: &dyn AggregateUDFImpl, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
    let kind = args.return_field.data_type().clone();
    Ok(match kind {
        _ if args.is_distinct => of.create_sliding_accumulator(args)?,
        DataType::Float64 => Box::new(Doubles::default()),
        DataType::Decimal128(..) => Box::new(Decimals { sum: i256::ZERO, count: 0, kind }),
        _ => of.create_sliding_accumulator(args)?,
    })
}

/// A number type with overflow-checked sums.
trait Addend: ArrowPrimitiveType + fmt::Debug + Sized {
    /// Adds a number to a sum. `None` on overflow.
    fn plus(to: Self::Native, value: Self::Native) -> Option<Self::Native>;

    /// Converts a sum to the form in which it is returned.
    fn checked(sum: Self::Native) -> Self::Native {
        sum
    }

    /// Returns the error for an overflow.
    fn out_of_range() -> Error;

    /// Adds all numbers of an array to a sum. `None` on overflow.
    fn plus_all(to: Self::Native, values: &PrimitiveArray<Self>) -> Option<Self::Native> {
        values.iter().flatten().try_fold(to, Self::plus)
    }
}

impl Addend for Float64Type {
    fn plus(to: f64, value: f64) -> Option<f64> {
        let sum = to + value;
        (!leaves_doubles(sum, (to, value))).then_some(sum)
    }

    fn checked(sum: f64) -> f64 {
        one_nan(sum)
    }

    fn out_of_range() -> Error {
        too_large()
    }

    fn plus_all(to: f64, values: &PrimitiveArray<Self>) -> Option<f64> {
        // The vectorized sum adds in any order. A finite total proves that no part was infinite.
        let sum = to + compute::sum(values).unwrap_or_default();
        match sum.is_finite() {
            true => Some(sum),
            false => values.iter().flatten().try_fold(to, Self::plus),
        }
    }
}

impl Addend for Decimal128Type {
    fn plus(to: i128, value: i128) -> Option<i128> {
        to.checked_add(value)
    }

    fn out_of_range() -> Error {
        Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range")
    }
}

fn out_of_range<T: Addend>() -> DataFusionError {
    external(T::out_of_range())
}

/// A sum over all rows.
#[derive(Debug)]
struct Sum<T: Addend> {
    /// `None` before the first number.
    sum: Option<T::Native>,
    kind: DataType,
}

impl<T: Addend> Accumulator for Sum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = only(values)?.as_primitive::<T>();
        if values.null_count() < values.len() {
            let sum = T::plus_all(self.sum.unwrap_or_default(), values);
            self.sum = Some(sum.ok_or_else(out_of_range::<T>)?);
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<T>(self.sum.map(T::checked), &self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// A sum over the distinct values (`sum(DISTINCT x)`).
#[derive(Debug)]
struct Distinct<T: Addend> {
    /// DataFusion's accumulator, which collects the distinct values.
    numbers: Box<dyn Accumulator>,
    kind: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Addend> Distinct<T> {
    fn new(numbers: Box<dyn Accumulator>, kind: DataType) -> Self {
        Distinct { numbers, kind, of: PhantomData }
    }
}

impl<T: Addend> Accumulator for Distinct<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.numbers.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.numbers.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.numbers.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.numbers.state()?;
        let Some(ScalarValue::List(numbers)) = state.first() else {
            return Err(DataFusionError::Internal("different numbers are no list".to_owned()));
        };
        // PostgreSQL adds them in sorted order. The same order makes floating-point sums
        // reproducible.
        let numbers = compute::sort(numbers.values(), None)?;
        let mut sum = Sum::<T> { sum: None, kind: self.kind.clone() };
        sum.update_batch(&[numbers])?;
        sum.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.numbers.size()
    }
}

/// Adds the numbers of each group.
#[derive(Debug)]
struct Sums<T>(PhantomData<fn() -> T>);

impl<T: Addend> Step for Sums<T> {
    type Number = T;

    const START: T::Native = T::Native::ZERO;

    #[inline]
    fn plus(to: T::Native, value: T::Native) -> Option<T::Native> {
        T::plus(to, value)
    }

    fn result(sum: T::Native) -> T::Native {
        T::checked(sum)
    }

    fn error() -> DataFusionError {
        out_of_range::<T>()
    }
}

/// A sum of floating-point numbers over a window frame.
#[derive(Debug, Default)]
struct Doubles {
    rows: Queue<f64>,
}

impl Fold for f64 {
    type Item = f64;

    fn with(self, value: f64) -> Option<f64> {
        Float64Type::plus(self, value)
    }

    fn joined(self, other: f64) -> Option<f64> {
        Float64Type::plus(self, other)
    }
}

impl Accumulator for Doubles {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = only(values)?.as_primitive::<Float64Type>();
        values.iter().flatten().for_each(|value| self.rows.enter(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = only(values)?;
        (values.null_count()..values.len()).try_for_each(|_| self.rows.leave())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.rows.len() == 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let sum = self.rows.total().ok_or_else(out_of_range::<Float64Type>)?;
        Ok(ScalarValue::Float64(Some(one_nan(sum))))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.allocated()
    }
}

/// A sum of numerics over a window frame. It is exact, and a sum beyond the type may fit again once
/// rows leave.
#[derive(Debug)]
struct Decimals {
    sum: i256,
    count: usize,
    kind: DataType,
}

impl Decimals {
    fn take(&mut self, values: &[ArrayRef], change: impl Fn(i256, i256) -> Option<i256>) -> Result<usize> {
        let values = only(values)?.as_primitive::<Decimal128Type>();
        for value in values.iter().flatten() {
            self.sum = change(self.sum, i256::from_i128(value)).ok_or_else(out_of_range::<Decimal128Type>)?;
        }
        Ok(values.len() - values.null_count())
    }
}

impl Accumulator for Decimals {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count += self.take(values, i256::checked_add)?;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = self.take(values, i256::checked_sub)?;
        self.count = self.count.saturating_sub(gone);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = match self.count {
            0 => None,
            _ => Some(self.sum.to_i128().ok_or_else(out_of_range::<Decimal128Type>)?),
        };
        ScalarValue::new_primitive::<Decimal128Type>(sum, &self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
