//! What aggregates come to, one total for each group.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, ColumnValues};

use super::chosen::Chosen;
use super::filter::is_whole;
use super::groups::whole_datum;
use crate::datum::Datum;
use crate::direct::aggregate::Kind;
use crate::error::{Error, Result};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// An aggregate of a column.
#[derive(Debug, Clone)]
pub(super) struct Aggregated {
    pub kind: Kind,
    /// `None` for `count(*)`.
    pub column: Option<(usize, ColumnType)>,
}

impl Aggregated {
    /// Whether this path does it.
    pub fn is_known(&self) -> bool {
        match (self.kind, &self.column) {
            (Kind::Count, _) => true,
            (Kind::Sum, Some((_, kind))) => is_whole(kind.kind) || kind.kind == Type::Double,
            (_, Some((_, kind))) => is_whole(kind.kind),
            (_, None) => false,
        }
    }
}

/// The totals of an aggregate.
#[derive(Debug)]
pub(super) struct Totals {
    of: Aggregated,
    /// How many rows, or values that are not NULL.
    counts: Vec<i64>,
    /// Sums, or what is the least or the greatest so far.
    wholes: Vec<i128>,
    doubles: Vec<f64>,
}

/// A sum that does not fit.
fn overflow() -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range")
}

impl Totals {
    pub fn new(of: &Aggregated) -> Self {
        Totals { of: of.clone(), counts: Vec::new(), wholes: Vec::new(), doubles: Vec::new() }
    }

    /// Makes room for so many groups.
    fn grow(&mut self, groups: usize) {
        self.counts.resize(groups, 0);
        match &self.of {
            Aggregated { kind: Kind::Count, .. } => {}
            Aggregated { column: Some((_, kind)), .. } if kind.kind == Type::Double => {
                self.doubles.resize(groups, 0.0);
            }
            Aggregated { kind: Kind::Min, .. } => self.wholes.resize(groups, i128::MAX),
            Aggregated { kind: Kind::Max, .. } => self.wholes.resize(groups, i128::MIN),
            _ => self.wholes.resize(groups, 0),
        }
    }

    /// Takes the chosen rows of a block in. `column` is there if the aggregate has one; `groups` says how many there are, and the group of each row if there is more than one.
    ///
    /// Errors: a sum that does not fit.
    pub fn take(
        &mut self,
        column: Option<&ColumnBuf>,
        chosen: &Chosen,
        (count, of_rows): (usize, Option<&[u32]>),
    ) -> Result<()> {
        self.grow(count);
        let without_null;
        let chosen = match column {
            Some(column) if column.validity().nulls() > 0 => {
                let mut valid = chosen.clone();
                valid.keep_null(column.validity(), false);
                without_null = valid;
                &without_null
            }
            _ => chosen,
        };
        match of_rows {
            None => {
                if let Some(total) = self.counts.first_mut() {
                    *total += chosen.count() as i64;
                }
            }
            Some(groups) => chosen.each(|at| {
                if let Some(total) = groups.get(at).and_then(|group| self.counts.get_mut(*group as usize)) {
                    *total += 1;
                }
            }),
        }
        let (Some(column), false) = (column, self.of.kind == Kind::Count) else { return Ok(()) };
        match column.values() {
            ColumnValues::SmallInt(values) => self.narrow(values, chosen, of_rows),
            ColumnValues::Int(values) => self.narrow(values, chosen, of_rows),
            ColumnValues::BigInt(values) => self.wide(values, chosen, of_rows),
            ColumnValues::Decimal(values) => self.wide(values, chosen, of_rows),
            ColumnValues::Double(values) => {
                let doubles = &mut self.doubles;
                match of_rows {
                    None => {
                        if let Some(total) = doubles.first_mut() {
                            chosen.each_of(values, |value| *total += value);
                        }
                    }
                    Some(groups) => chosen.each(|at| {
                        let total = groups.get(at).and_then(|group| doubles.get_mut(*group as usize));
                        if let (Some(total), Some(value)) = (total, values.get(at)) {
                            *total += value;
                        }
                    }),
                }
                Ok(())
            }
            // `Aggregated::is_known` lets no others in.
            _ => Ok(()),
        }
    }

    /// Of values of up to 32 bits: those of a block add up within 64.
    fn narrow<T: Copy + Ord + Into<i64> + Into<i128>>(
        &mut self,
        values: &[T],
        chosen: &Chosen,
        of_rows: Option<&[u32]>,
    ) -> Result<()> {
        if (self.of.kind, of_rows) != (Kind::Sum, None) {
            return self.wide(values, chosen, of_rows);
        }
        let mut sum = 0_i64;
        chosen.each_of(values, |value| sum += Into::<i64>::into(value));
        self.add(0, sum.into())
    }

    fn wide<T: Copy + Ord + Into<i128>>(
        &mut self,
        values: &[T],
        chosen: &Chosen,
        of_rows: Option<&[u32]>,
    ) -> Result<()> {
        let kind = self.of.kind;
        let mut fits = true;
        match of_rows {
            None if kind == Kind::Sum => {
                let mut sum = 0_i128;
                chosen.each_of(values, |value| {
                    let (next, overflows) = sum.overflowing_add(value.into());
                    sum = next;
                    fits &= !overflows;
                });
                self.add(0, sum)?;
            }
            None => {
                let mut best: Option<T> = None;
                chosen.each_of(values, |value| {
                    best = Some(best.map_or(value, |best| match kind {
                        Kind::Min => best.min(value),
                        _ => best.max(value),
                    }));
                });
                if let (Some(best), Some(total)) = (best, self.wholes.first_mut()) {
                    *total = better(kind, *total, best.into());
                }
            }
            Some(groups) => chosen.each(|at| {
                let total = groups.get(at).and_then(|group| self.wholes.get_mut(*group as usize));
                let (Some(total), Some(value)) = (total, values.get(at)) else { return };
                let value = (*value).into();
                if kind == Kind::Sum {
                    let (next, overflows) = total.overflowing_add(value);
                    *total = next;
                    fits &= !overflows;
                } else {
                    *total = better(kind, *total, value);
                }
            }),
        }
        if fits { Ok(()) } else { Err(overflow()) }
    }

    fn add(&mut self, group: usize, sum: i128) -> Result<()> {
        let Some(total) = self.wholes.get_mut(group) else { return Ok(()) };
        *total = total.checked_add(sum).ok_or_else(overflow)?;
        Ok(())
    }

    /// Takes the totals of another one in, whose groups have these numbers here, of `count` in all.
    ///
    /// Errors: a sum that does not fit.
    pub fn merge(&mut self, other: &Totals, numbers: &[u32], count: usize) -> Result<()> {
        self.grow(count);
        for (at, number) in numbers.iter().enumerate() {
            let own = *number as usize;
            if let (Some(to), Some(from)) = (self.counts.get_mut(own), other.counts.get(at)) {
                *to += from;
            }
            if let (Some(to), Some(from)) = (self.doubles.get_mut(own), other.doubles.get(at)) {
                *to += from;
            }
            match (self.of.kind, other.wholes.get(at)) {
                (Kind::Sum, Some(from)) => self.add(own, *from)?,
                (kind, Some(from)) => {
                    if let Some(to) = self.wholes.get_mut(own) {
                        *to = better(kind, *to, *from);
                    }
                }
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// The value that a group has in the end.
    ///
    /// Errors: a sum beyond its type.
    pub fn value(&self, group: usize) -> Result<Datum> {
        let count = self.counts.get(group).copied().unwrap_or(0);
        let whole = self.wholes.get(group).copied().unwrap_or(0);
        let Some((_, kind)) = self.of.column.as_ref().filter(|_| self.of.kind != Kind::Count) else {
            return Ok(Datum::BigInt(count));
        };
        if count == 0 {
            return Ok(Datum::Null);
        }
        Ok(match (self.of.kind, kind.kind) {
            (Kind::Sum, Type::Double) => Datum::Double(self.doubles.get(group).copied().unwrap_or(0.0)),
            (Kind::Sum, Type::SmallInt | Type::Int) => {
                let fits = i64::try_from(whole);
                Datum::BigInt(
                    fits.map_err(|_| Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
                )
            }
            (Kind::Sum, Type::BigInt) => Datum::Decimal { unscaled: whole, scale: 0 },
            _ => whole_datum(whole, kind),
        })
    }
}

fn better(kind: Kind, a: i128, b: i128) -> i128 {
    if kind == Kind::Min { a.min(b) } else { a.max(b) }
}
