//! Aggregates over many rows of one table, column by column: leaves of its tree are decoded to
//! columns, conditions choose rows of them, and totals add these up. Ranges are divided among
//! threads. Planning and starting cost nothing that a query of some milliseconds would notice.
//!
//! ```text
//!   leaf ─► columns ─► filters: a bit for each row ─► group of each row ─► totals of each group
//! ```
//!
//! Processing a cache-sized piece of a column at a time is the idea of MonetDB/X100 (Boncz,
//! Zukowski, Nes, CIDR 2005).

mod buffers;
mod chosen;
mod conditions;
mod filter;
mod formula;
mod gather;
mod groups;
mod members;
mod pair;
mod totals;

use std::ops::Bound::{Excluded, Included};

use cairn_table::schema::ColumnType;
use cairn_table::{ColumnBuf, Direction, KeyRange, View};
use cairn_vfs::thread;

pub(super) use self::buffers::Buffers;
use self::buffers::FEW;
pub(super) use self::chosen::Chosen;
pub(crate) use self::conditions::Conditions;
pub(super) use self::conditions::{Bounds, Chooser};
pub(crate) use self::formula::{Formulas, Step};
pub(crate) use self::gather::{Asked, Gathered, Gathering, Group, Total, Unable};
use self::groups::{Failed, Groups, Key, is_key};
pub(crate) use self::members::{Members, TooWide};
use self::totals::{Aggregated, Totals, TotalsOf, columns_of};
use super::{Access, Aggregate, Ranges};
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::{Env, Node};

/// The number of rows that justifies the cost of starting another thread.
const ROWS_FOR_A_THREAD: u64 = 32_768;

/// Aggregates of the rows of an access path.
#[derive(Debug)]
pub(crate) struct Columnar {
    keys: Vec<Key>,
    aggregates: Vec<Aggregated>,
    /// The columns that aggregates read.
    totals: Vec<TotalsOf>,
    /// The columns of groups and aggregates, without duplicates.
    needed: Vec<usize>,
    /// All columns that are read, in order.
    read: Vec<(usize, ColumnType)>,
}

/// A group: its key columns, followed by its aggregates.
pub(crate) type GroupRow = Vec<Datum>;

impl Columnar {
    /// Plans aggregates of an access path's rows, grouped by columns; `None` if this path cannot
    /// run them.
    pub fn plan(access: &Access, aggregates: &[Aggregate], groups: &[usize]) -> Option<Columnar> {
        if access.fetches {
            return None;
        }
        let def = access.table.def();
        let kind_of = |column: usize| def.columns.get(column).map(|column| column.kind.clone());
        let conditions = access.conditions.as_ref()?;
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
        let totals = columns_of(&aggregates);
        let mut needed: Vec<usize> = keys.iter().map(|key| key.column).collect();
        needed.extend(totals.iter().map(|of| of.column));
        needed.sort_unstable();
        needed.dedup();
        let mut read: Vec<usize> = conditions.columns().map(|(column, _)| column).collect();
        read.extend(&needed);
        read.sort_unstable();
        read.dedup();
        let read = read.into_iter().map(|column| Some((column, kind_of(column)?))).collect::<Option<_>>()?;
        Some(Columnar { keys, aggregates, totals, needed, read })
    }

    /// Returns a row for each group; without keys there is one group. `None` if this path cannot
    /// compute them, because of types that it does not compare, or more groups than it keeps in
    /// memory.
    ///
    /// Errors: of computing values, of the table, sums out of range.
    pub fn run(
        &self,
        access: &Access,
        view: &View,
        env: &Env<'_>,
        threads: usize,
    ) -> Result<Option<Vec<GroupRow>>> {
        let Some(conditions) = &access.conditions else { return Ok(None) };
        let (bounds, ranges) = match conditions.bind(env)? {
            Chooser::Rows(bounds) => (bounds, ranges_of(access, env)?),
            Chooser::Never => (Bounds::default(), Vec::new()),
            Chooser::Unknown => return Ok(None),
        };
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
                    // A panic of the thread is passed on.
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // If no thread can be started, this thread does the work.
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

    /// Divides the ranges among threads.
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

    /// Aggregates the rows of some ranges.
    fn part(
        &self,
        access: &Access,
        view: &View,
        bounds: &Bounds,
        ranges: &[KeyRange],
    ) -> Result<Part, Failed> {
        let columns: Vec<usize> = self.read.iter().map(|(column, _)| *column).collect();
        let mut part = Part::new(self);
        let mut buffers = Buffers::new(self.read.iter().map(|(column, kind)| (*column, kind.kind)));
        let mut chosen = Chosen::default();
        for (start, end) in ranges {
            let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            let mut scan = view.blocks(&access.table, access.index, range, Direction::Forward, &columns)?;
            while let Some(block) = scan.next()? {
                let rows = block.rows();
                bounds.choose(&block, &mut buffers, &mut chosen)?;
                let count = chosen.count();
                if count == 0 {
                    continue;
                }
                if count * FEW < rows {
                    // Only the few chosen rows are decoded, so that all rows of the buffers are
                    // chosen.
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
        let total_of = |column| all.totals.iter().zip(&self.totals).find(|(_, of)| of.column == column);
        let rows = all.groups.into_values().enumerate().map(|(group, (mut row, rows))| {
            for aggregate in &self.aggregates {
                let total = aggregate.column.as_ref().and_then(|(column, _)| total_of(*column));
                row.push(match total {
                    Some((total, _)) => total.value(aggregate.kind, group, rows)?,
                    None => Datum::BigInt(rows),
                });
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

/// The result of one thread.
struct Part {
    groups: Groups,
    totals: Vec<Totals>,
}

impl Part {
    fn new(of: &Columnar) -> Self {
        Part { groups: Groups::new(&of.keys), totals: of.totals.iter().map(Totals::new).collect() }
    }

    /// Adds the chosen rows, whose columns have been read.
    fn take(&mut self, of: &Columnar, columns: &Buffers, rows: usize, chosen: &Chosen) -> Result<(), Failed> {
        let keys: Vec<&ColumnBuf> = of.keys.iter().filter_map(|key| columns.get(key.column)).collect();
        self.groups.assign(&keys, rows, chosen)?;
        for (total, of) in self.totals.iter_mut().zip(&of.totals) {
            let Some(column) = columns.get(of.column) else { continue };
            total.take(column, chosen, self.groups.len(), self.groups.of_rows())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
