//! Compacting a range because the user asked for it.

use std::collections::HashSet;

use super::job::{Draft, Job, Reason, Shape};
use super::overlap::components;
use super::state::{State, TableInfo};

/// What the user asked for. Keep it as it is from the first step to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manual<'k> {
    /// From this key on; `None` for the first.
    pub from: Option<&'k [u8]>,
    /// Up to this key, inclusive; `None` for the last.
    pub to: Option<&'k [u8]>,
    /// Only tables with numbers below this are compacted: set to the next file number when the work
    /// begins, so that it does not go on with its own output.
    pub below: u64,
    /// Also writes the tables of the last level anew, to drop tombstones and expired entries there.
    pub rewrite_last: bool,
}

impl Manual<'_> {
    fn wants(&self, table: &TableInfo<'_>) -> bool {
        self.from.is_none_or(|from| from <= table.largest)
            && self.to.is_none_or(|to| table.smallest <= to)
            && table.number < self.below
    }
}

/// What is left of it.
#[derive(Debug, Clone, PartialEq)]
pub enum ManualStep {
    /// Nothing.
    Done,
    /// A running job is in the way: ask again when one has ended.
    Blocked,
    /// This comes next.
    Run(Job),
}

/// Merges what the range has in all levels into the last, part by part: every byte is written once.
///
/// Parts are cut where no table goes over, so that nothing of the range is passed on the way down.
pub(super) fn compact_range(state: &State<'_>, manual: &Manual<'_>, last: usize, shape: Shape) -> ManualStep {
    let last = last.max(state.levels.len().saturating_sub(1));
    let is_wanted = |level: usize, table: &TableInfo<'_>| {
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
