//! Jobs that take tables of level 0.

use super::Leveled;
use super::targets::LevelTargets;
use crate::Key;
use crate::job::{Draft, Job, JobKind, Reason};
use crate::overlap::{Component, components};
use crate::state::{RunInfo, State};

/// The fewest runs worth merging within level 0.
const WITHIN_RUNS_MIN: usize = 4;

/// Merges from level 0 into the base level: of the connected parts of the key space, the largest
/// that can be merged now. All tables of level 0 in that part are merged at once, because the cost
/// is in rewriting the base level.
pub(crate) fn down<K: Key>(
    strategy: &Leveled,
    state: &State<K>,
    targets: &LevelTargets,
    reason: Reason,
) -> Option<Job<K::Owned>> {
    let mut parts = parts(state, targets);
    let moves = moves(strategy, state, targets, &parts, reason);
    if moves.is_some() {
        return moves;
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.upper_bytes()));
    parts.into_iter().find_map(|part| merge(strategy, state, targets, part, reason))
}

/// Merges the part of level 0 that contains the given table.
pub(crate) fn down_with<K: Key>(
    strategy: &Leveled,
    state: &State<K>,
    targets: &LevelTargets,
    table: u64,
    reason: Reason,
) -> Option<Job<K::Owned>> {
    let part =
        parts(state, targets).into_iter().find(|part| part.upper.iter().any(|it| it.number == table))?;
    merge(strategy, state, targets, part, reason)
}

fn parts<'s, K: Key>(state: &'s State<K>, targets: &LevelTargets) -> Vec<Component<'s, K>> {
    debug_assert!(targets.base > 0, "level 0 is never its own base level");
    components(state.level(0).tables(), state.level(targets.base).tables())
}

/// Moves tables of level 0 that overlap nothing, neither in level 0 nor in the base level, as
/// sequential writes leave them. All of them move in one job.
fn moves<'s, K: Key>(
    strategy: &Leveled,
    state: &'s State<K>,
    targets: &LevelTargets,
    parts: &[Component<'s, K>],
    reason: Reason,
) -> Option<Job<K::Owned>> {
    let free = parts.iter().filter_map(|part| match (&part.upper[..], &part.lower[..]) {
        ([table], []) => Some(*table).filter(|table| {
            let is_written = state.is_written(targets.base, table.smallest, table.largest);
            // Rewriting a table with many tombstones is worthwhile, because the tombstones are
            // dropped.
            !table.compacting && !is_written && table.tombstone_ratio() < strategy.options.tombstone_ratio
        }),
        _ => None,
    });
    let numbers: Vec<u64> = free.map(|table| table.number).collect();
    if numbers.is_empty() {
        return None;
    }
    let runs =
        state.level(0).runs.iter().map(|run| {
            (0, run.id, run.tables.iter().filter(|table| numbers.contains(&table.number)).collect())
        });
    let output_run = state.level(targets.base).bottom_run();
    let draft = Draft { reason, inputs: runs.collect(), output_level: targets.base, output_run };
    draft.finish(state, strategy.shape(JobKind::Move))
}

fn merge<'s, K: Key>(
    strategy: &Leveled,
    state: &'s State<K>,
    targets: &LevelTargets,
    part: Component<'s, K>,
    reason: Reason,
) -> Option<Job<K::Owned>> {
    debug_assert!(!part.upper.is_empty(), "a part without a table of level 0 has nothing to merge down");
    let is_part = |number: u64| part.upper.iter().any(|table| table.number == number);
    let mut inputs: Vec<_> = state
        .level(0)
        .runs
        .iter()
        .map(|run| (0, run.id, run.tables.iter().filter(|table| is_part(table.number)).collect::<Vec<_>>()))
        .collect();
    let output_run = state.level(targets.base).bottom_run();
    inputs.push((targets.base, output_run, part.lower));
    let draft = Draft { reason, inputs, output_level: targets.base, output_run };
    draft.finish(state, strategy.shape(JobKind::Merge))
}

/// Merges adjacent runs of level 0 into one while merges into the base level are blocked, so that
/// lookups do not pay for the wait.
///
/// Only starts when level 0 has twice its maximal number of runs, because it writes the bytes one
/// more time.
pub(crate) fn within<K: Key>(strategy: &Leveled, state: &State<K>) -> Option<Job<K::Owned>> {
    let options = &strategy.options;
    let runs = &state.level(0).runs;
    if runs.len() < 2 * options.level_zero_runs_max {
        return None;
    }
    // Newest first. Runs that are already merged are large and end the sequence.
    let small = |run: &RunInfo<K>| !run.is_compacting() && run.bytes() < options.level_zero_bytes / 2;
    let row: Vec<&RunInfo<K>> =
        runs.iter().skip_while(|run| !small(run)).take_while(|run| small(run)).collect();
    if row.len() < WITHIN_RUNS_MIN {
        return None;
    }
    debug_assert!(row.is_sorted_by(|a, b| a.id > b.id), "found a row of runs that is not newest first");
    let inputs = row.iter().map(|run| (0, run.id, run.tables.iter().collect())).collect();
    let output_run = row.iter().map(|run| run.id).max()?;
    let reason = Reason::WithinLevelZero { runs: runs.len() };
    let draft = Draft { reason, inputs, output_level: 0, output_run };
    draft.finish(state, strategy.shape(JobKind::Merge))
}
