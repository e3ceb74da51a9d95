//! Compacting a range on the user's request.

use crate::Key;
use std::collections::HashSet;

use super::job::{Draft, Job, Reason, Shape};
use super::overlap::components;
use super::state::{State, TableInfo};

/// The user's request. It must not change between the first step and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual<K> {
    /// The first key of the range; `None` for no lower bound.
    pub from: Option<K>,
    /// The last key of the range, inclusive; `None` for no upper bound.
    pub to: Option<K>,
    /// Only tables with lower numbers are compacted. Set it to the next file number when the
    /// request begins, so that the compaction does not process its own output.
    pub below: u64,
    /// Also rewrites the tables of the last level, to drop tombstones and expired entries there.
    pub rewrite_last: bool,
}

impl<K: Key> Manual<K> {
    fn wants(&self, table: &TableInfo<K>) -> bool {
        self.from.is_none_or(|from| from <= table.largest)
            && self.to.is_none_or(|to| table.smallest <= to)
            && table.number < self.below
    }
}

/// The next step of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ManualStep<O> {
    /// The request is complete.
    Done,
    /// A running job blocks the next step: ask again when one has ended.
    Blocked,
    /// Run this job next.
    Run(Job<O>),
}

/// Merges the range from all levels into the last, part by part, so that every byte is written
/// once.
///
/// Parts are cut at keys that no table spans, so that no older entry of the range is passed on the
/// way down.
pub(crate) fn compact_range<K: Key>(
    state: &State<K>,
    manual: &Manual<K>,
    last: usize,
    shape: Shape,
) -> ManualStep<K::Owned> {
    let last = last.max(state.levels.len().saturating_sub(1));
    let is_wanted = |level: usize, table: &TableInfo<K>| {
        let is_settled = level > 0
            && state.level(level).runs.len() == 1
            && !state.has_below(level, table.smallest, table.largest);
        manual.wants(table) && (manual.rewrite_last || !is_settled)
    };
    let all = || {
        state.levels.iter().enumerate().flat_map(|(at, level)| level.tables().map(move |table| (at, table)))
    };
    let wanted = all().filter(|(at, table)| is_wanted(*at, table)).map(|(_, table)| table);
    let others = all().filter(|(at, table)| !is_wanted(*at, table)).map(|(_, table)| table);
    let parts = components(wanted, others);
    if parts.is_empty() {
        return ManualStep::Done;
    }
    debug_assert!(parts.iter().all(|part| !part.upper.is_empty()), "found a part without a wanted table");
    let output_run = state.level(last).bottom_run();
    let jobs = parts.iter().find_map(|part| {
        let numbers: HashSet<u64> = part.upper.iter().chain(&part.lower).map(|table| table.number).collect();
        let runs = state
            .levels
            .iter()
            .enumerate()
            .flat_map(|(at, level)| level.runs.iter().map(move |run| (at, run)));
        let inputs = runs.map(|(at, run)| {
            (at, run.id, run.tables.iter().filter(|table| numbers.contains(&table.number)).collect())
        });
        let draft =
            Draft { reason: Reason::Manual, inputs: inputs.collect(), output_level: last, output_run };
        draft.finish(state, shape)
    });
    jobs.map_or(ManualStep::Blocked, ManualStep::Run)
}
