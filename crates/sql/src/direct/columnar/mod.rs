//! Aggregates over many rows of one table, column by column: the leaves of its tree give their columns, conditions choose rows among them, and totals take those in. Ranges are divided
//! among threads. It plans nothing and starts nothing that a query of some milliseconds would notice.
//!
//! ```text
//!   leaf ─► columns ─► filters: a bit for each row ─► group of each row ─► totals of each group
//! ```
//!
//! The idea of working on a cache's worth of a column at a time is MonetDB/X100's (Boncz, Zukowski, Nes, CIDR 2005).

mod chosen;
mod filter;
mod groups;
mod totals;

use std::ops::Bound::{Excluded, Included};

use cairn_table::schema::ColumnType;
use cairn_table::{Block, ColumnBuf, Direction, KeyRange, View};
use cairn_vfs::thread;

use self::chosen::Chosen;
use self::filter::{Bound, Filter, Meaning};
use self::groups::{Failed, Groups, Key, is_key};
use self::totals::{Aggregated, Totals};
use super::{Access, Aggregate, Ranges};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::expr::{Env, Node};
use crate::sqlstate::INTERNAL_ERROR;

/// Rows that are worth another thread: what starting one takes.
const ROWS_FOR_A_THREAD: u64 = 32_768;

/// Of a block with more than so many rows for each chosen one, the chosen ones are read alone.
const FEW: usize = 4;

/// Aggregates of the rows of an access.
#[derive(Debug)]
pub(crate) struct Columnar {
    filters: Vec<Filter>,
    keys: Vec<Key>,
    aggregates: Vec<Aggregated>,
    /// Columns of groups and aggregates, each once.
    needed: Vec<usize>,
    /// All columns that are looked at, in order.
    read: Vec<(usize, ColumnType)>,
}

/// A group: its columns, and behind them its aggregates.
pub(crate) type GroupRow = Vec<Datum>;

impl Columnar {
    /// The plan for aggregates of the rows that an access finds, by groups of columns; `None` where it is none of this path's.
    pub fn plan(access: &Access, aggregates: &[Aggregate], groups: &[usize]) -> Option<Columnar> {
        if access.fetches {
            return None;
        }
        let def = access.table.def();
        let kind_of = |column: usize| def.columns.get(column).map(|column| column.kind.clone());
        let conjuncts = access.residual.clone().map(Node::conjuncts).unwrap_or_default();
        let filters = conjuncts.iter().map(|node| Filter::of(node, kind_of)).collect::<Option<Vec<_>>>()?;
        let key = |&column: &usize| {
            let kind = kind_of(column)?;
            is_key(kind.kind).then_some(Key { column, kind })
        };
        let keys = groups.iter().map(key).collect::<Option<Vec<_>>>()?;
        let aggregated = |aggregate: &Aggregate| {
            let column = match &aggregate.input {
                None => None,
                Some(Node::Slot { slot, .. }) => Some((*slot, kind_of(*slot)?)),
                Some(_) => return None,
            };
            let of = Aggregated { kind: aggregate.kind, column };
            of.is_known().then_some(of)
        };
        let aggregates = aggregates.iter().map(aggregated).collect::<Option<Vec<_>>>()?;
        let mut needed: Vec<usize> = keys.iter().map(|key| key.column).collect();
        needed.extend(aggregates.iter().filter_map(|of| of.column.as_ref().map(|(column, _)| *column)));
        needed.sort_unstable();
        needed.dedup();
        let mut read: Vec<usize> = filters.iter().map(|filter| filter.column).collect();
        read.extend(&needed);
        read.sort_unstable();
        read.dedup();
        let read = read.into_iter().map(|column| Some((column, kind_of(column)?))).collect::<Option<_>>()?;
        Some(Columnar { filters, keys, aggregates, needed, read })
    }

    /// The rows that it comes to, each a group with its totals; without groups there is one. `None` where this path cannot say: values of types that it does not compare, or more groups than it
    /// keeps in memory.
    ///
    /// Errors: of computing values, of the table, sums that do not fit.
    pub fn run(
        &self,
        access: &Access,
        view: &View,
        env: &Env<'_>,
        threads: usize,
    ) -> Result<Option<Vec<GroupRow>>> {
        let mut bounds: Vec<Bound> = Vec::with_capacity(self.filters.len());
        let mut is_empty = false;
        for filter in &self.filters {
            match filter.bind(env)? {
                Meaning::Check(bound) => {
                    let left = bounds.iter_mut().try_fold(bound, |bound, other| match other.narrow(bound) {
                        Some(bound) => Ok(bound),
                        None => Err(()),
                    });
                    bounds.extend(left);
                }
                Meaning::Never => is_empty = true,
                Meaning::Unknown => return Ok(None),
            }
        }
        let mut ranges = ranges_of(access, env)?;
        if is_empty {
            ranges.clear();
        }
        let parts = self.parts(access, view, ranges, threads)?;
        let work = |ranges: &[KeyRange]| self.part(access, view, &bounds, ranges);
        let done: Vec<Result<Part, Failed>> = thread::scope(|scope| {
            let (first, others) = match parts.split_first() {
                Some((first, others)) => (first.as_slice(), others),
                None => (&[][..], &[][..]),
            };
            let started =
                others.iter().map(|part| (part, thread::spawn_scoped(scope, "cairn-sql", || work(part))));
            let started: Vec<_> = started.collect();
            let mut done = vec![work(first)];
            for (part, handle) in started {
                done.push(match handle.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(result)) => result,
                    // It panicked, and so would this one.
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // There are no more threads to be had.
                    Err(_) => work(part),
                });
            }
            done
        });
        let mut parts = Vec::with_capacity(done.len());
        for part in done {
            match part {
                Ok(part) => parts.push(part),
                Err(Failed::TooMany) => return Ok(None),
                Err(Failed::Error(error)) => return Err(error),
            }
        }
        self.merged(parts)
    }

    /// What each thread reads.
    fn parts(
        &self,
        access: &Access,
        view: &View,
        mut ranges: Vec<KeyRange>,
        threads: usize,
    ) -> Result<Vec<Vec<KeyRange>>> {
        let parts = (access.table.rows() / ROWS_FOR_A_THREAD).clamp(1, threads as u64) as usize;
        if parts < 2 || ranges.len() != 1 {
            return Ok(vec![ranges]);
        }
        let Some(only) = ranges.pop() else { return Ok(Vec::new()) };
        let split = view.split(&access.table, access.index, only, parts)?;
        Ok(split.into_iter().map(|range| vec![range]).collect())
    }

    /// What the rows of some ranges come to.
    fn part(
        &self,
        access: &Access,
        view: &View,
        bounds: &[Bound],
        ranges: &[KeyRange],
    ) -> Result<Part, Failed> {
        let columns: Vec<usize> = self.read.iter().map(|(column, _)| *column).collect();
        let mut part = Part::new(self);
        let mut buffers = Buffers {
            columns: self
                .read
                .iter()
                .map(|(column, kind)| (*column, ColumnBuf::new(kind.kind), false))
                .collect(),
        };
        let mut chosen = Chosen::default();
        for (start, end) in ranges {
            let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            let mut scan = view.blocks(&access.table, access.index, range, Direction::Forward, &columns)?;
            while let Some(block) = scan.next()? {
                let rows = block.rows();
                buffers.clear();
                chosen.all(rows);
                for bound in bounds {
                    let is_kept = match bound.range() {
                        Some(range) => block.keep_within(bound.column, range, chosen.words_mut())?,
                        None => false,
                    };
                    if !is_kept {
                        bound.keep(buffers.read(&block, bound.column)?, &mut chosen);
                    }
                    if !chosen.any() {
                        break;
                    }
                }
                let count = chosen.count();
                if count == 0 {
                    continue;
                }
                if count * FEW < rows {
                    // The few are read alone, and are all that there is then.
                    for column in &self.needed {
                        buffers.read_chosen(&block, *column, &chosen)?;
                    }
                    chosen.all(count);
                    part.take(self, &buffers, count, &chosen)?;
                } else {
                    for column in &self.needed {
                        buffers.read(&block, *column)?;
                    }
                    part.take(self, &buffers, rows, &chosen)?;
                }
            }
        }
        Ok(part)
    }

    fn merged(&self, parts: Vec<Part>) -> Result<Option<Vec<GroupRow>>> {
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return Ok(None) };
        for part in parts {
            let Ok(numbers) = all.groups.merge(part.groups) else { return Ok(None) };
            for (to, from) in all.totals.iter_mut().zip(&part.totals) {
                to.merge(from, &numbers, all.groups.len())?;
            }
        }
        let rows = all.groups.into_values().into_iter().enumerate().map(|(group, mut row)| {
            for total in &all.totals {
                row.push(total.value(group)?);
            }
            Ok(row)
        });
        rows.collect::<Result<_>>().map(Some)
    }
}

fn ranges_of(access: &Access, env: &Env<'_>) -> Result<Vec<KeyRange>> {
    let mut key = Vec::new();
    Ok(match access.ranges(env, &mut key)? {
        Ranges::None => Vec::new(),
        Ranges::Point => {
            let end = [&key[..], &[0xff]].concat();
            vec![(Included(key), Excluded(end))]
        }
        Ranges::Some(ranges) => ranges,
    })
}

/// Columns of a block, each read when it is looked at first.
struct Buffers {
    /// The column, its values, and whether they are this block's.
    columns: Vec<(usize, ColumnBuf, bool)>,
}

impl Buffers {
    fn clear(&mut self) {
        for (_, buffer, is_read) in &mut self.columns {
            buffer.clear();
            *is_read = false;
        }
    }

    fn place(&mut self, column: usize) -> Result<&mut (usize, ColumnBuf, bool)> {
        let found = self.columns.binary_search_by_key(&column, |(column, ..)| *column);
        found.ok().and_then(|at| self.columns.get_mut(at)).ok_or_else(|| {
            Error::new(INTERNAL_ERROR, format!("column {column} is looked at, and is not read"))
        })
    }

    /// The values of all rows.
    fn read(&mut self, block: &Block<'_>, column: usize) -> Result<&ColumnBuf> {
        let (_, buffer, is_read) = self.place(column)?;
        if !*is_read {
            block.column(column, buffer)?;
            *is_read = true;
        }
        Ok(buffer)
    }

    /// Reads the values of chosen rows, and no others.
    fn read_chosen(&mut self, block: &Block<'_>, column: usize, chosen: &Chosen) -> Result<()> {
        let (_, buffer, _) = self.place(column)?;
        buffer.clear();
        Ok(block.column_of(column, chosen.words(), buffer)?)
    }

    /// A column that was read.
    fn get(&self, column: usize) -> Option<&ColumnBuf> {
        let at = self.columns.binary_search_by_key(&column, |(column, ..)| *column).ok()?;
        self.columns.get(at).map(|(_, buffer, _)| buffer)
    }
}

/// What one thread has found.
struct Part {
    groups: Groups,
    totals: Vec<Totals>,
}

impl Part {
    fn new(of: &Columnar) -> Self {
        Part { groups: Groups::new(&of.keys), totals: of.aggregates.iter().map(Totals::new).collect() }
    }

    /// Takes the chosen ones of some rows in, whose columns were read.
    fn take(&mut self, of: &Columnar, columns: &Buffers, rows: usize, chosen: &Chosen) -> Result<(), Failed> {
        let keys: Vec<&ColumnBuf> = of.keys.iter().filter_map(|key| columns.get(key.column)).collect();
        self.groups.assign(&keys, rows, chosen)?;
        let groups = (self.groups.len(), self.groups.of_rows());
        for (total, of) in self.totals.iter_mut().zip(&of.aggregates) {
            let column = of.column.as_ref().and_then(|(column, _)| columns.get(*column));
            total.take(column, chosen, groups)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
