//! The state of aggregates that combine the numbers of each group into one number.

use std::fmt;
use std::mem::size_of;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::DataType;
use cairn_vfs::sync::Arc;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

/// How an aggregate combines numbers.
pub(super) trait Step: fmt::Debug + Send + Sync + 'static {
    type Number: ArrowPrimitiveType;

    /// The number of a group without rows.
    const START: Native<Self>;

    /// Adds a number to those before it. `None` on overflow.
    fn plus(to: Native<Self>, value: Native<Self>) -> Option<Native<Self>>;

    /// Converts a number to the form in which it is returned.
    fn result(number: Native<Self>) -> Native<Self> {
        number
    }

    /// Returns the error for an overflow.
    fn error() -> DataFusionError;
}

type Native<S> = <<S as Step>::Number as ArrowPrimitiveType>::Native;

/// Returns the only argument.
pub(super) fn only(values: &[ArrayRef]) -> Result<&ArrayRef> {
    values.first().ok_or_else(|| DataFusionError::Internal("an aggregate of nothing".to_owned()))
}

/// One number per group.
#[derive(Debug)]
pub(super) struct Groups<S: Step> {
    numbers: Vec<Native<S>>,
    /// Whether each group has seen a number.
    seen: Vec<bool>,
    kind: DataType,
}

impl<S: Step> Groups<S> {
    /// Creates the state of no groups. `kind` is the type of the results.
    pub fn new(kind: DataType) -> Self {
        Groups { numbers: Vec::new(), seen: Vec::new(), kind }
    }

    /// Adds a number to a group. Returns false on overflow.
    #[inline]
    fn add(&mut self, group: usize, value: Native<S>) -> bool {
        let (Some(number), Some(seen)) = (self.numbers.get_mut(group), self.seen.get_mut(group)) else {
            return false;
        };
        *seen = true;
        match S::plus(*number, value) {
            Some(next) => *number = next,
            None => return false,
        }
        true
    }
}

impl<S: Step> GroupsAccumulator for Groups<S> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let values = only(values)?.as_primitive::<S::Number>();
        self.numbers.resize(count, S::START);
        self.seen.resize(count, false);
        let mut fits = true;
        match filter {
            None if values.null_count() == 0 => {
                for (value, group) in values.values().iter().zip(groups) {
                    fits &= self.add(*group, *value);
                }
            }
            None => {
                for (value, group) in values.iter().zip(groups) {
                    if let Some(value) = value {
                        fits &= self.add(*group, value);
                    }
                }
            }
            Some(filter) => {
                for ((value, group), chosen) in values.iter().zip(groups).zip(filter) {
                    if let (Some(value), Some(true)) = (value, chosen) {
                        fits &= self.add(*group, value);
                    }
                }
            }
        }
        if fits { Ok(()) } else { Err(S::error()) }
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.update_batch(values, groups, None, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let seen = emit.take_needed(&mut self.seen);
        let mut numbers = emit.take_needed(&mut self.numbers);
        numbers.iter_mut().for_each(|number| *number = S::result(*number));
        let nulls = seen.contains(&false).then(|| seen.into());
        Ok(Arc::new(
            PrimitiveArray::<S::Number>::new(numbers.into(), nulls).with_data_type(self.kind.clone()),
        ))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = only(values)?.as_primitive::<S::Number>();
        let states: PrimitiveArray<S::Number> = match filter {
            None => values.clone(),
            Some(filter) => {
                let chosen = values.iter().zip(filter);
                chosen.map(|(value, chosen)| value.filter(|_| chosen == Some(true))).collect()
            }
        };
        Ok(vec![Arc::new(states.with_data_type(self.kind.clone()))])
    }

    fn size(&self) -> usize {
        self.numbers.capacity() * size_of::<Native<S>>() + self.seen.capacity()
    }
}
