//! Variances, correlations and the like, of which one beyond its type is an error, as in PostgreSQL: DataFusion's are infinite or no number.
//!
//! Of infinite numbers, or what is none, they are no number; so it is asked whether one of those was there, in the same group.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::errors::external;
use crate::expr::too_large;

/// An accumulator whose results are looked at.
pub(super) fn checked(of: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
    Box::new(Checked { of, odd: false })
}

/// As [`checked`], of groups.
pub(super) fn checked_groups(of: Box<dyn GroupsAccumulator>) -> Box<dyn GroupsAccumulator> {
    Box::new(CheckedGroups { of, odd: HashSet::new() })
}

/// Calls for each row with a number that is not finite, of any column. There is none as a rule, which is found out several numbers at a time.
fn each_odd(columns: &[ArrayRef], mut odd: impl FnMut(usize)) {
    for column in columns.iter().filter(|column| *column.data_type() == DataType::Float64) {
        let column = column.as_primitive::<Float64Type>();
        if column.values().iter().fold(false, |odd, value| odd | !value.is_finite()) {
            let values = column.iter().enumerate();
            values
                .filter(|(_, value)| value.is_some_and(|value| !value.is_finite()))
                .for_each(|(row, _)| odd(row));
        }
    }
}

#[derive(Debug)]
struct Checked {
    of: Box<dyn Accumulator>,
    /// A number that is not finite was there.
    odd: bool,
}

impl Checked {
    fn check(&self, value: &ScalarValue) -> Result<()> {
        match value {
            ScalarValue::Float64(Some(value)) if !value.is_finite() && !self.odd => {
                Err(external(too_large()))
            }
            _ => Ok(()),
        }
    }
}

impl Accumulator for Checked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        each_odd(values, |_| self.odd = true);
        self.of.update_batch(values)
    }

    // What comes from elsewhere was looked at there: it is not finite only where a number was not.
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        each_odd(states, |_| self.odd = true);
        self.of.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.of.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.of.supports_retract_batch()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.of.state()?;
        state.iter().try_for_each(|value| self.check(value))?;
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let value = self.of.evaluate()?;
        self.check(&value)?;
        Ok(value)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.of.size()
    }
}

struct CheckedGroups {
    of: Box<dyn GroupsAccumulator>,
    /// Groups with a number that is not finite.
    odd: HashSet<usize>,
}

impl CheckedGroups {
    /// Looks at what is given of groups, which are numbered anew.
    fn check(&mut self, columns: &[ArrayRef], emit: EmitTo) -> Result<()> {
        let mut beyond = false;
        each_odd(columns, |group| beyond |= !self.odd.contains(&group));
        self.odd = match emit {
            EmitTo::All => HashSet::new(),
            EmitTo::First(count) => self.odd.iter().filter_map(|group| group.checked_sub(count)).collect(),
        };
        if beyond { Err(external(too_large())) } else { Ok(()) }
    }
}

impl GroupsAccumulator for CheckedGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let is_chosen = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        each_odd(values, |row| self.odd.extend(groups.get(row).filter(|_| is_chosen(row))));
        self.of.update_batch(values, groups, filter, count)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        each_odd(values, |row| self.odd.extend(groups.get(row)));
        self.of.merge_batch(values, groups, count)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let values = self.of.evaluate(emit)?;
        self.check(std::slice::from_ref(&values), emit)?;
        Ok(values)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let state = self.of.state(emit)?;
        self.check(&state, emit)?;
        Ok(state)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.of.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.of.size() + self.odd.capacity() * size_of::<usize>()
    }
}
