//! `min` and `max` of floating-point numbers in groups.
//!
//! NaN is greater than all other numbers. DataFusion's grouped accumulators compare with `<` and
//! `>`, so they never choose NaN, and they start from the least or greatest finite number, which is
//! not below minus infinity. Of zeros with different signs the last one wins, as in PostgreSQL.

use std::fmt;
use std::marker::PhantomData;

use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{AggregateUDFImpl, GroupsAccumulator};

use super::groups::{Groups, Step};

/// Returns the accumulator of `min` or `max` in groups; other types keep DataFusion's.
pub(crate) fn groups(
    of: &dyn AggregateUDFImpl,
    args: AccumulatorArgs<'_>,
) -> Result<Box<dyn GroupsAccumulator>> {
    let kind = args.return_field.data_type().clone();
    Ok(match (of.name(), &kind) {
        ("max", DataType::Float32) => Box::new(Groups::<Max<Float32Type>>::new(kind)),
        ("max", DataType::Float64) => Box::new(Groups::<Max<Float64Type>>::new(kind)),
        ("min", DataType::Float32) => Box::new(Groups::<Min<Float32Type>>::new(kind)),
        ("min", DataType::Float64) => Box::new(Groups::<Min<Float64Type>>::new(kind)),
        _ => of.create_groups_accumulator(args)?,
    })
}

/// Floating-point numbers in PostgreSQL's order.
trait Float: ArrowPrimitiveType + fmt::Debug {
    const LEAST: Self::Native;
    const GREATEST: Self::Native;

    fn is_less(a: Self::Native, b: Self::Native) -> bool;
}

impl Float for Float32Type {
    const LEAST: f32 = f32::NEG_INFINITY;
    const GREATEST: f32 = f32::NAN;

    fn is_less(a: f32, b: f32) -> bool {
        !a.is_nan() && (b.is_nan() || a < b)
    }
}

impl Float for Float64Type {
    const LEAST: f64 = f64::NEG_INFINITY;
    const GREATEST: f64 = f64::NAN;

    fn is_less(a: f64, b: f64) -> bool {
        !a.is_nan() && (b.is_nan() || a < b)
    }
}

#[derive(Debug)]
struct Max<T>(PhantomData<fn() -> T>);

impl<T: Float> Step for Max<T> {
    type Number = T;

    const START: T::Native = T::LEAST;

    #[inline]
    fn plus(to: T::Native, value: T::Native) -> Option<T::Native> {
        Some(if T::is_less(value, to) { to } else { value })
    }

    fn error() -> DataFusionError {
        no_overflow()
    }
}

#[derive(Debug)]
struct Min<T>(PhantomData<fn() -> T>);

impl<T: Float> Step for Min<T> {
    type Number = T;

    const START: T::Native = T::GREATEST;

    #[inline]
    fn plus(to: T::Native, value: T::Native) -> Option<T::Native> {
        Some(if T::is_less(to, value) { to } else { value })
    }

    fn error() -> DataFusionError {
        no_overflow()
    }
}

fn no_overflow() -> DataFusionError {
    DataFusionError::Internal("the least or greatest of some numbers cannot overflow".to_owned())
}
