//! Variances, covariances, correlations and regressions of floating-point numbers. As in
//! PostgreSQL, an overflow is an error.
//!
//! DataFusion's results become infinite or NaN. It subtracts rows that leave a window frame, after
//! which a variance may be negative, or that of rows that have left. Its grouped correlation uses
//! plain sums of squares, which cancel where numbers are large and close together. The algorithms
//! used here are in [`super::statistics_state`].

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{size_of, size_of_val};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::sliding::Queue;
use super::statistics_state::{Moments, OneVariable, Statistic, TwoVariables};
use crate::expr::{one_nan, too_large};
use crate::general::errors::external;

/// Returns the accumulator of a function over all rows.
pub(crate) fn accumulator(name: &str, args: &AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
    let statistic = statistic(name)?;
    Ok(match (statistic.is_of_two(), args.is_distinct) {
        (false, false) => Box::new(Total::<OneVariable> { total: OneVariable::default(), statistic }),
        (true, false) => Box::new(Total::<TwoVariables> { total: TwoVariables::default(), statistic }),
        (false, true) => Box::new(Distinct::<OneVariable>::new(statistic)),
        (true, true) => Box::new(Distinct::<TwoVariables>::new(statistic)),
    })
}

/// Returns the grouped counterpart of [`accumulator`], without DISTINCT.
pub(crate) fn groups(name: &str) -> Result<Box<dyn GroupsAccumulator>> {
    let statistic = statistic(name)?;
    Ok(match statistic.is_of_two() {
        false => Box::new(Groups::<OneVariable> { totals: Vec::new(), statistic }),
        true => Box::new(Groups::<TwoVariables> { totals: Vec::new(), statistic }),
    })
}

/// Returns the counterpart of [`accumulator`] for window frames that rows leave.
pub(crate) fn sliding(name: &str, args: &AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
    let statistic = statistic(name)?;
    Ok(match statistic.is_of_two() {
        _ if args.is_distinct => accumulator(name, args)?,
        false => Box::new(Sliding::<OneVariable> { rows: Queue::default(), statistic }),
        true => Box::new(Sliding::<TwoVariables> { rows: Queue::default(), statistic }),
    })
}

/// Returns the fields of a partial state: the parts of a total, or the values themselves with
/// DISTINCT.
pub(crate) fn state_fields(name: &str, args: &StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
    let is_of_two = statistic(name)?.is_of_two();
    let count = match (is_of_two, args.is_distinct) {
        (false, false) => OneVariable::PARTS,
        (true, false) => TwoVariables::PARTS,
        (false, true) => OneVariable::ARGUMENTS,
        (true, true) => TwoVariables::ARGUMENTS,
    };
    let kind = match args.is_distinct {
        true => DataType::new_list(DataType::Float64, true),
        false => DataType::Float64,
    };
    let field =
        |at: usize| Field::new(format_state_name(args.name, &format!("part {at}")), kind.clone(), true);
    Ok((0..count).map(|at| Arc::new(field(at))).collect())
}

fn statistic(name: &str) -> Result<Statistic> {
    Statistic::named(name)
        .ok_or_else(|| DataFusionError::Internal(format!("{name} is not a statistical aggregate")))
}

fn out_of_range() -> DataFusionError {
    external(too_large())
}

/// Returns the arrays as floating-point columns.
fn columns(values: &[ArrayRef]) -> Result<Vec<&Float64Array>> {
    let columns = values.iter().map(|values| values.as_primitive_opt::<Float64Type>());
    columns.collect::<Option<_>>().ok_or_else(|| {
        DataFusionError::Internal(
            "a statistical aggregate of values that are not floating-point numbers".to_owned(),
        )
    })
}

#[inline]
fn number(columns: &[&Float64Array], at: usize, row: usize) -> Option<f64> {
    let column = columns.get(at)?;
    if column.is_null(row) { None } else { column.values().get(row).copied() }
}

fn item<M: Moments>(columns: &[&Float64Array], row: usize) -> Option<M::Item> {
    M::item(|at| number(columns, at, row))
}

/// Restores a total from a partial state.
fn decoded<M: Moments>(columns: &[&Float64Array], row: usize) -> M {
    M::of_parts(|at| number(columns, at, row).unwrap_or_default())
}

fn rows(columns: &[&Float64Array]) -> usize {
    columns.first().map_or(0, |column| column.len())
}

fn result<M: Moments>(total: &M, statistic: Statistic) -> Result<ScalarValue> {
    if statistic == Statistic::Count {
        return Ok(ScalarValue::UInt64(Some(total.count() as u64)));
    }
    Ok(ScalarValue::Float64(within(total.statistic(statistic), total)?))
}

/// Checks a result for overflow. The sums of squares have not overflowed, but a result computed
/// from them may.
fn within<M: Moments>(statistic: Option<f64>, total: &M) -> Result<Option<f64>> {
    let is_beyond =
        statistic.is_some_and(f64::is_infinite) && !(0..M::PARTS).any(|at| total.part(at).is_infinite());
    if is_beyond { Err(out_of_range()) } else { Ok(statistic.map(one_nan)) }
}

/// The state over all rows.
#[derive(Debug)]
struct Total<M> {
    total: M,
    statistic: Statistic,
}

impl<M: Moments> Accumulator for Total<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = columns(values)?;
        for item in (0..rows(&columns)).filter_map(|row| item::<M>(&columns, row)) {
            self.total = self.total.with(item).ok_or_else(out_of_range)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let columns = columns(states)?;
        for part in (0..rows(&columns)).map(|row| decoded::<M>(&columns, row)) {
            self.total = self.total.joined(part).ok_or_else(out_of_range)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok((0..M::PARTS).map(|at| self.total.part(at).into()).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        result(&self.total, self.statistic)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The state over a window frame that rows leave.
#[derive(Debug)]
struct Sliding<M: Moments> {
    rows: Queue<M>,
    statistic: Statistic,
}

impl<M: Moments> Accumulator for Sliding<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = columns(values)?;
        let items = (0..rows(&columns)).filter_map(|row| item::<M>(&columns, row));
        items.for_each(|item| self.rows.enter(item));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = columns(values)?;
        let mut gone = (0..rows(&columns)).filter_map(|row| item::<M>(&columns, row));
        gone.try_for_each(|_| self.rows.leave())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::Internal("a window has no parts".to_owned()))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let total = self.rows.total().ok_or_else(out_of_range)?;
        Ok((0..M::PARTS).map(|at| total.part(at).into()).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        result(&self.rows.total().ok_or_else(out_of_range)?, self.statistic)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.allocated()
    }
}

/// The distinct rows.
#[derive(Debug)]
struct Distinct<M> {
    /// The bits of their numbers. Both zeros are one value, and so are all NaNs.
    rows: HashSet<[u64; 2]>,
    statistic: Statistic,
    of: PhantomData<fn() -> M>,
}

impl<M: Moments> Distinct<M> {
    fn new(statistic: Statistic) -> Self {
        Distinct { rows: HashSet::new(), statistic, of: PhantomData }
    }

    fn add(&mut self, columns: &[&Float64Array]) {
        for item in (0..rows(columns)).filter_map(|row| item::<M>(columns, row)) {
            let mut key = [0; 2];
            for (bits, number) in key.iter_mut().zip(M::numbers(item)) {
                *bits = if number.is_nan() { f64::NAN } else { number + 0.0 }.to_bits();
            }
            self.rows.insert(key);
        }
    }

    fn column(rows: &[[u64; 2]], at: usize) -> Float64Array {
        Float64Array::from_iter_values(
            rows.iter().map(|row| row.get(at).map_or(0.0, |bits| f64::from_bits(*bits))),
        )
    }

    /// Returns the rows in PostgreSQL's order, which makes the results reproducible.
    fn sorted(&self) -> Vec<[u64; 2]> {
        let number = |row: &[u64; 2], at: usize| row.get(at).map_or(0.0, |bits| f64::from_bits(*bits));
        let mut rows: Vec<_> = self.rows.iter().copied().collect();
        rows.sort_unstable_by(|one, other| {
            let by = |at| number(one, at).total_cmp(&number(other, at));
            by(0).then_with(|| by(1))
        });
        rows
    }
}

impl<M: Moments> Accumulator for Distinct<M> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(&columns(values)?);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states.iter().map(|state| state.as_list_opt::<i32>());
        let lists = lists.collect::<Option<Vec<_>>>();
        let lists =
            lists.ok_or_else(|| DataFusionError::Internal("different rows are no lists".to_owned()))?;
        let parts = lists.first().map_or(0, |list| list.len());
        for part in 0..parts {
            let values: Vec<ArrayRef> = lists.iter().map(|list| list.value(part)).collect();
            self.add(&columns(&values)?);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let rows: Vec<_> = self.rows.iter().copied().collect();
        let list = |at| {
            let numbers: Vec<ScalarValue> =
                Self::column(&rows, at).iter().map(ScalarValue::Float64).collect();
            ScalarValue::List(ScalarValue::new_list(&numbers, &DataType::Float64, true))
        };
        Ok((0..M::ARGUMENTS).map(list).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let rows = self.sorted();
        let values = (0..M::ARGUMENTS).map(|at| Arc::new(Self::column(&rows, at)) as ArrayRef);
        let mut total = Total::<M> { total: M::default(), statistic: self.statistic };
        total.update_batch(&values.collect::<Vec<_>>())?;
        total.evaluate()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.capacity() * size_of::<[u64; 2]>()
    }
}

/// The state of each group.
struct Groups<M> {
    totals: Vec<M>,
    statistic: Statistic,
}

impl<M: Moments> Groups<M> {
    /// Updates the total of each row's group.
    fn change(
        &mut self,
        groups: &[usize],
        count: usize,
        change: impl Fn(usize, M) -> Option<M>,
    ) -> Result<()> {
        self.totals.resize(count, M::default());
        for (row, group) in groups.iter().enumerate() {
            if let Some(total) = self.totals.get_mut(*group) {
                *total = change(row, *total).ok_or_else(out_of_range)?;
            }
        }
        Ok(())
    }

    fn parts(totals: &[M]) -> Vec<ArrayRef> {
        let column = |at| Float64Array::from_iter_values(totals.iter().map(|total| total.part(at)));
        (0..M::PARTS).map(|at| Arc::new(column(at)) as ArrayRef).collect()
    }
}

fn is_chosen(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<M: Moments> GroupsAccumulator for Groups<M> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        let columns = columns(values)?;
        self.change(groups, count, |row, total| {
            match item::<M>(&columns, row).filter(|_| is_chosen(filter, row)) {
                Some(item) => total.with(item),
                None => Some(total),
            }
        })
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        let columns = columns(values)?;
        self.change(groups, count, |row, total| total.joined(decoded(&columns, row)))
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let totals = emit.take_needed(&mut self.totals);
        if self.statistic == Statistic::Count {
            let counts = totals.iter().map(|total| total.count() as u64);
            return Ok(Arc::new(UInt64Array::from_iter_values(counts)));
        }
        let figures = totals.iter().map(|total| within(total.statistic(self.statistic), total));
        Ok(Arc::new(figures.collect::<Result<Float64Array>>()?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(Self::parts(&emit.take_needed(&mut self.totals)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let columns = columns(values)?;
        let total = |row| {
            let item = item::<M>(&columns, row).filter(|_| is_chosen(filter, row));
            item.map_or(Some(M::default()), |item| M::default().with(item)).ok_or_else(out_of_range)
        };
        let totals = (0..rows(&columns)).map(total).collect::<Result<Vec<M>>>()?;
        Ok(Self::parts(&totals))
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<M>()
    }
}

impl<M> fmt::Debug for Groups<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").field("figure", &self.statistic).finish_non_exhaustive()
    }
}
