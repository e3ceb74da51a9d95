//! Totals of a column's values by group. The sum, least and greatest value of a group are adjacent,
//! so that each row touches one cache line, whatever the query asks for.
//!
//! ```text
//!   value of a row ─► group of the row ─► sum | least | greatest    integers of up to 64 bits
//!                                         sum | least | greatest    decimals, in 128 bits
//!                                         sum                       doubles
//! ```
//!
//! Sums that leave 64 bits are moved to 128.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, ColumnValues};

use super::chosen::Chosen;
use super::filter::is_whole;
use super::groups::whole_datum;
use crate::datum::Datum;
use crate::direct::aggregate::{Kind, leaves_doubles};
use crate::error::{Error, Result};
use crate::expr::{one_nan, too_large};
use crate::sqlstate::NUMERIC_VALUE_OUT_OF_RANGE;

/// An aggregate.
#[derive(Debug, Clone)]
pub(super) struct Aggregated {
    pub kind: Kind,
    /// `None` for `count(*)`.
    pub column: Option<(usize, ColumnType)>,
}

impl Aggregated {
    /// Whether this path supports it.
    pub fn is_known(&self) -> bool {
        match (self.kind, &self.column) {
            (Kind::Count, _) => true,
            (Kind::Sum, Some((_, kind))) => is_whole(kind.kind) || kind.kind == Type::Double,
            (_, Some((_, kind))) => is_whole(kind.kind),
            (_, None) => false,
        }
    }
}

/// Returns the distinct columns of aggregates, with the totals that each needs.
pub(super) fn columns_of(aggregates: &[Aggregated]) -> Vec<TotalsOf> {
    let mut columns: Vec<TotalsOf> = Vec::new();
    for (asked, (column, kind)) in
        aggregates.iter().filter_map(|of| of.column.as_ref().map(|on| (of.kind, on)))
    {
        let at = columns.iter().position(|of| of.column == *column).unwrap_or_else(|| {
            columns.push(TotalsOf { column: *column, kind: kind.clone(), sums: false, best: false });
            columns.len() - 1
        });
        if let Some(of) = columns.get_mut(at) {
            of.sums |= asked == Kind::Sum;
            of.best |= matches!(asked, Kind::Min | Kind::Max);
        }
    }
    columns
}

/// A column, and the totals that it needs besides the count of values that are not NULL.
#[derive(Debug, Clone)]
pub(super) struct TotalsOf {
    pub column: usize,
    kind: ColumnType,
    sums: bool,
    /// The least or the greatest value.
    best: bool,
}

/// The totals of a column.
#[derive(Debug)]
pub(super) struct Totals {
    of: TotalsOf,
    /// The number of NULLs in each group. Groups after the last one have none.
    nulls: Vec<i64>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Only the count is needed.
    Uncounted,
    /// `spilled` holds the parts of sums that have been moved from 64 bits.
    Narrow {
        totals: Vec<Whole<i64>>,
        spilled: Vec<i128>,
    },
    Wide(Vec<Whole<i128>>),
    Doubles(Vec<f64>),
}

/// The totals of a group.
#[derive(Debug, Clone, Copy)]
struct Whole<T> {
    sum: T,
    least: T,
    most: T,
}

const NARROW: Whole<i64> = Whole { sum: 0, least: i64::MAX, most: i64::MIN };
const WIDE: Whole<i128> = Whole { sum: 0, least: i128::MAX, most: i128::MIN };

/// Returns the error for a sum out of range.
fn overflow() -> Error {
    Error::new(NUMERIC_VALUE_OUT_OF_RANGE, "numeric out of range")
}

impl Totals {
    pub fn new(of: &TotalsOf) -> Self {
        let values = match of.kind.kind {
            _ if !of.sums && !of.best => Values::Uncounted,
            Type::Double => Values::Doubles(Vec::new()),
            Type::Decimal => Values::Wide(Vec::new()),
            _ => Values::Narrow { totals: Vec::new(), spilled: Vec::new() },
        };
        Totals { of: of.clone(), nulls: Vec::new(), values }
    }

    /// Makes room for this many groups.
    fn grow(&mut self, groups: usize) {
        match &mut self.values {
            Values::Uncounted => {}
            Values::Narrow { totals, spilled } => {
                totals.resize(groups, NARROW);
                spilled.resize(groups, 0);
            }
            Values::Wide(totals) => totals.resize(groups, WIDE),
            Values::Doubles(totals) => totals.resize(groups, 0.0),
        }
    }

    /// Adds the chosen rows of a block. `count` is the number of groups; `of_rows` is the group of
    /// each row if there are several.
    ///
    /// Errors: a sum out of range.
    pub fn take(
        &mut self,
        column: &ColumnBuf,
        chosen: &Chosen,
        count: usize,
        of_rows: Option<&[u32]>,
    ) -> Result<()> {
        self.grow(count);
        let without_null;
        let chosen = if column.validity().nulls() > 0 {
            let (mut null, mut valid) = (chosen.clone(), chosen.clone());
            null.keep_null(column.validity(), true);
            valid.keep_null(column.validity(), false);
            self.nulls.resize(count, 0);
            match of_rows {
                None => {
                    if let Some(nulls) = self.nulls.first_mut() {
                        *nulls += null.count() as i64;
                    }
                }
                Some(groups) => null.each_of(groups, |group| {
                    if let Some(nulls) = self.nulls.get_mut(group as usize) {
                        *nulls += 1;
                    }
                }),
            }
            without_null = valid;
            &without_null
        } else {
            chosen
        };
        let asked = (self.of.sums, self.of.best);
        match (&mut self.values, column.values()) {
            (Values::Narrow { totals, spilled }, ColumnValues::SmallInt(values)) => {
                narrow(asked, (totals, spilled), values, chosen, of_rows)
            }
            (Values::Narrow { totals, spilled }, ColumnValues::Int(values)) => {
                narrow(asked, (totals, spilled), values, chosen, of_rows)
            }
            (Values::Narrow { totals, spilled }, ColumnValues::BigInt(values)) => {
                narrow(asked, (totals, spilled), values, chosen, of_rows)
            }
            (Values::Wide(totals), ColumnValues::Decimal(values)) => wide(totals, values, chosen, of_rows),
            (Values::Doubles(totals), ColumnValues::Double(values)) => {
                doubles(totals, values, chosen, of_rows)
            }
            // `Aggregated::is_known` accepts no others.
            _ => Ok(()),
        }
    }

    /// Adds the totals of another part. `numbers` maps its groups to those here, of which there are
    /// `count`.
    ///
    /// Errors: a sum out of range.
    pub fn merge(&mut self, other: &Totals, numbers: &[u32], count: usize) -> Result<()> {
        self.grow(count);
        self.nulls.resize(count, 0);
        for (from, number) in other.nulls.iter().zip(numbers) {
            if let Some(to) = self.nulls.get_mut(*number as usize) {
                *to += from;
            }
        }
        match (&mut self.values, &other.values) {
            (
                Values::Narrow { totals, spilled },
                Values::Narrow { totals: others, spilled: other_spilled },
            ) => {
                for ((from, more), number) in others.iter().zip(other_spilled).zip(numbers) {
                    let own = *number as usize;
                    if let (Some(to), Some(spilled)) = (totals.get_mut(own), spilled.get_mut(own)) {
                        *spilled += i128::from(from.sum) + more;
                        to.least = to.least.min(from.least);
                        to.most = to.most.max(from.most);
                    }
                }
            }
            (Values::Wide(totals), Values::Wide(others)) => {
                for (from, number) in others.iter().zip(numbers) {
                    if let Some(to) = totals.get_mut(*number as usize) {
                        to.sum = to.sum.checked_add(from.sum).ok_or_else(overflow)?;
                        to.least = to.least.min(from.least);
                        to.most = to.most.max(from.most);
                    }
                }
            }
            (Values::Doubles(totals), Values::Doubles(others)) => {
                for (from, number) in others.iter().zip(numbers) {
                    if let Some(to) = totals.get_mut(*number as usize) {
                        let sum = *to + from;
                        if leaves_doubles(sum, (*to, *from)) {
                            return Err(too_large());
                        }
                        *to = sum;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns an aggregate of this column for a group of `rows` rows.
    ///
    /// Errors: a sum out of range of its type.
    pub fn value(&self, asked: Kind, group: usize, rows: i64) -> Result<Datum> {
        let count = rows - self.nulls.get(group).copied().unwrap_or(0);
        if asked == Kind::Count {
            return Ok(Datum::BigInt(count));
        }
        if count == 0 {
            return Ok(Datum::Null);
        }
        let whole = match &self.values {
            Values::Uncounted => 0,
            Values::Narrow { totals, spilled } => {
                let Whole { sum, least, most } = totals.get(group).copied().unwrap_or(NARROW);
                let spilled = spilled.get(group).copied().unwrap_or(0);
                best_of(asked, i128::from(sum) + spilled, (least.into(), most.into()))
            }
            Values::Wide(totals) => {
                let Whole { sum, least, most } = totals.get(group).copied().unwrap_or(WIDE);
                best_of(asked, sum, (least, most))
            }
            Values::Doubles(totals) => {
                return Ok(Datum::Double(one_nan(totals.get(group).copied().unwrap_or(0.0))));
            }
        };
        let kind = &self.of.kind;
        Ok(match (asked, kind.kind) {
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

fn best_of(asked: Kind, sum: i128, (least, most): (i128, i128)) -> i128 {
    match asked {
        Kind::Min => least,
        Kind::Max => most,
        Kind::Sum | Kind::Count => sum,
    }
}

/// Adds values of up to 64 bits.
fn narrow<T: Copy + Into<i64>>(
    (sums, best): (bool, bool),
    (totals, spilled): (&mut [Whole<i64>], &mut [i128]),
    values: &[T],
    chosen: &Chosen,
    of_rows: Option<&[u32]>,
) -> Result<()> {
    let Some(groups) = of_rows else {
        let (Some(total), Some(spilled)) = (totals.first_mut(), spilled.first_mut()) else { return Ok(()) };
        if sums {
            // The sums of upper and lower halves fit 64 bits for any block, and such loops are
            // vectorized.
            let (mut high, mut low) = (0_i64, 0_u64);
            chosen.each_of(values, |value| {
                let value: i64 = value.into();
                high += value >> 32;
                low += value as u64 & u64::from(u32::MAX);
            });
            *spilled += (i128::from(high) << 32) + i128::from(low);
        }
        if best {
            let (mut least, mut most) = (total.least, total.most);
            chosen.each_of(values, |value| {
                least = least.min(value.into());
                most = most.max(value.into());
            });
            (total.least, total.most) = (least, most);
        }
        return Ok(());
    };
    let add = |total: &mut Whole<i64>, group: u32, value: i64, spilled: &mut [i128]| {
        total.sum = total.sum.checked_add(value).unwrap_or_else(|| {
            if let Some(spilled) = spilled.get_mut(group as usize) {
                *spilled += i128::from(total.sum);
            }
            value
        });
    };
    let compare = |total: &mut Whole<i64>, value: i64| {
        total.least = total.least.min(value);
        total.most = total.most.max(value);
    };
    match (sums, best) {
        (true, false) => chosen.each_pair(values, groups, |value, group| {
            if let Some(total) = totals.get_mut(group as usize) {
                add(total, group, value.into(), spilled);
            }
        }),
        (false, true) => chosen.each_pair(values, groups, |value, group| {
            if let Some(total) = totals.get_mut(group as usize) {
                compare(total, value.into());
            }
        }),
        _ => chosen.each_pair(values, groups, |value, group| {
            if let Some(total) = totals.get_mut(group as usize) {
                add(total, group, value.into(), spilled);
                compare(total, value.into());
            }
        }),
    }
    Ok(())
}

/// Adds doubles. Infinite sums and NaN are rare, so their cause is only examined afterwards.
///
/// Errors: a sum out of range.
fn doubles(totals: &mut [f64], values: &[f64], chosen: &Chosen, of_rows: Option<&[u32]>) -> Result<()> {
    let mut fits = true;
    let mut add = |total: &mut f64, value: f64| {
        let sum = *total + value;
        fits &= !leaves_doubles(sum, (*total, value));
        *total = sum;
    };
    match of_rows {
        None => {
            if let Some(total) = totals.first_mut() {
                let mut before = *total;
                chosen.each_of(values, |value| *total += value);
                if !total.is_finite() {
                    chosen.each_of(values, |value| add(&mut before, value));
                }
            }
        }
        Some(groups) => chosen.each_pair(values, groups, |value, group| {
            if let Some(total) = totals.get_mut(group as usize) {
                add(total, value);
            }
        }),
    }
    if fits { Ok(()) } else { Err(too_large()) }
}

/// Adds decimals.
///
/// Errors: a sum out of range.
fn wide(totals: &mut [Whole<i128>], values: &[i128], chosen: &Chosen, of_rows: Option<&[u32]>) -> Result<()> {
    let mut fits = true;
    let mut take = |total: &mut Whole<i128>, value: i128| {
        let (sum, overflows) = total.sum.overflowing_add(value);
        fits &= !overflows;
        *total = Whole { sum, least: total.least.min(value), most: total.most.max(value) };
    };
    match of_rows {
        None => {
            if let Some(first) = totals.first_mut() {
                let mut total = *first;
                chosen.each_of(values, |value| take(&mut total, value));
                *first = total;
            }
        }
        Some(groups) => chosen.each_pair(values, groups, |value, group| {
            if let Some(total) = totals.get_mut(group as usize) {
                take(total, value);
            }
        }),
    }
    if fits { Ok(()) } else { Err(overflow()) }
}
