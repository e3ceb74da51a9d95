//! Minimum and maximum of intervals.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ScalarUDF, Signature, Volatility,
};

use crate::general::functions::RowFunction;
use crate::general::functions::direct_functions::length_of_span;

const SPAN: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Returns `min` or `max` of intervals.
pub(crate) fn extreme(is_max: bool) -> AggregateUDF {
    AggregateUDF::from(Extreme { is_max, signature: Signature::any(1, Volatility::Immutable) })
}

/// Returns `least` or `greatest` of `count` intervals. Of equally long intervals the first one
/// wins. NULLs are ignored.
pub(crate) fn extreme_of(is_max: bool, count: usize) -> ScalarUDF {
    let name = if is_max { "cairn_longest" } else { "cairn_shortest" };
    RowFunction::new(name, &[count], SPAN, move |values| {
        let mut found = Found { is_max, value: ScalarValue::IntervalMonthDayNano(None) };
        values.iter().rev().for_each(|value| found.see(value));
        Ok(found.value)
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    is_max: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.is_max { "cairn_max_span" } else { "cairn_min_span" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(SPAN)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Found { is_max: self.is_max, value: ScalarValue::IntervalMonthDayNano(None) }))
    }
}

/// The extreme so far. Of equally long intervals the last one wins.
#[derive(Debug)]
struct Found {
    is_max: bool,
    value: ScalarValue,
}

impl Found {
    fn see(&mut self, value: &ScalarValue) {
        let Some(length) = length_of_span(value) else { return };
        let is_it = length_of_span(&self.value).is_none_or(|known| match self.is_max {
            true => length >= known,
            false => length <= known,
        });
        if is_it {
            self.value = value.clone();
        }
    }
}

impl Accumulator for Found {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        for row in (0..values.len()).filter(|&row| values.is_valid(row)) {
            self.see(&ScalarValue::try_from_array(values, row)?);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
