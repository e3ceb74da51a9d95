//! Chooses the tables of a level to merge into the next.

use super::Leveled;
use super::targets::LevelTargets;
use crate::Key;
use crate::job::{Draft, Job, JobKind, Reason};
use crate::overlap::whole_keys;
use crate::state::{RunInfo, State, TableInfo};

/// The maximal number of tables in a row.
const ROW_TABLES_MAX: usize = 16;

/// Extra weight of tombstones: a table of only tombstones counts as this many times its bytes more,
/// because hidden entries are removed along with them.
const TOMBSTONE_WEIGHT: f64 = 2.0;

/// A candidate: adjacent tables of the level, and the tables they overlap in the level below.
struct Row<'s, K> {
    upper: &'s [TableInfo<K>],
    lower: &'s [TableInfo<K>],
    /// Bytes written for each byte that moves down; lower is better.
    cost: f64,
}

/// Merges from `level` into the next: the row of tables, at most `excess` bytes or a single table,
/// with the lowest write cost per byte moved down, after Sarkar et al., *Constructing and Analyzing
/// the LSM Compaction Design Space* (VLDB 2021).
///
/// Neighbours in a row share the tables that they both overlap below, so a row costs less than its
/// tables separately.
pub(crate) fn down<K: Key>(
    strategy: &Leveled,
    state: &State<K>,
    level: usize,
    excess: u64,
    reason: Reason,
) -> Option<Job<K::Owned>> {
    debug_assert!(level > 0, "the runs of level 0 overlap and are merged by their parts");
    let [run] = &state.level(level).runs[..] else { return None };
    let mut rows = rows(state, run, level, excess);
    rows.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    rows.into_iter().find_map(|row| job(strategy, state, run, level, row.upper, row.lower, reason))
}

/// Merges one table down, or rewrites it in place when nothing is below it.
pub(crate) fn one<K: Key>(
    strategy: &Leveled,
    state: &State<K>,
    targets: &LevelTargets,
    level: usize,
    table: &TableInfo<K>,
    reason: Reason,
) -> Option<Job<K::Owned>> {
    let [run] = &state.level(level).runs[..] else { return None };
    let at = run.tables.iter().position(|it| it.number == table.number)?;
    let (from, to) = whole_keys(&run.tables, at, at + 1);
    let upper = run.tables.get(from..to)?;
    let (smallest, largest) = (upper.first()?.smallest, upper.last()?.largest);
    if level < targets.last && state.has_below(level, smallest, largest) {
        return job(strategy, state, run, level, upper, below(state, level, smallest, largest)?, reason);
    }
    let inputs = vec![(level, run.id, upper.iter().collect())];
    let draft = Draft { reason, inputs, output_level: level, output_run: run.id };
    draft.finish(state, strategy.shape(JobKind::Merge))
}

fn rows<'s, K: Key>(state: &'s State<K>, run: &'s RunInfo<K>, level: usize, excess: u64) -> Vec<Row<'s, K>> {
    let mut rows = Vec::new();
    for from in 0..run.tables.len() {
        let mut bytes = 0;
        for to in from + 1..=run.tables.len().min(from + ROW_TABLES_MAX) {
            let Some(last) = run.tables.get(to - 1) else { break };
            bytes += last.bytes;
            if last.compacting || (to > from + 1 && bytes > excess) {
                break;
            }
            let (wide_from, wide_to) = whole_keys(&run.tables, from, to);
            let Some(upper) = run.tables.get(wide_from..wide_to) else { break };
            let (Some(first), Some(last)) = (upper.first(), upper.last()) else { break };
            let Some(lower) = below(state, level, first.smallest, last.largest) else { continue };
            if lower.iter().any(|table| table.compacting) {
                break; // as for every longer row
            }
            rows.push(Row { upper, lower, cost: cost(upper, lower) });
        }
    }
    rows
}

fn cost<K: Key>(upper: &[TableInfo<K>], lower: &[TableInfo<K>]) -> f64 {
    let bytes = |tables: &[TableInfo<K>]| tables.iter().map(|table| table.bytes).sum::<u64>() as f64;
    let worth: f64 = upper
        .iter()
        .map(|table| table.bytes as f64 * (1.0 + TOMBSTONE_WEIGHT * table.tombstone_ratio()))
        .sum();
    let cost = (bytes(upper) + bytes(lower)) / worth.max(1.0);
    debug_assert!(cost >= 0.0 && cost.is_finite(), "found a cost of {cost} for {worth} bytes");
    cost
}

/// Returns the tables of the next level in a range, or `None` while that level has several runs.
fn below<K: Key>(state: &State<K>, level: usize, smallest: K, largest: K) -> Option<&[TableInfo<K>]> {
    match &state.level(level + 1).runs[..] {
        [] => Some(&[]),
        [run] => Some(run.overlapping(smallest, largest)),
        _ => None,
    }
}

fn job<'s, K: Key>(
    strategy: &Leveled,
    state: &'s State<K>,
    run: &RunInfo<K>,
    level: usize,
    upper: &'s [TableInfo<K>],
    lower: &'s [TableInfo<K>],
    reason: Reason,
) -> Option<Job<K::Owned>> {
    debug_assert!(!upper.is_empty(), "a job moves at least one table down");
    debug_assert!(
        lower.iter().all(|below| upper.iter().any(|table| table.number != below.number)),
        "found a table in two levels"
    );
    let shape = strategy.shape(JobKind::Merge);
    let overlap_after: u64 = upper
        .iter()
        .flat_map(|table| state.level(level + 2).overlapping(table.smallest, table.largest))
        .map(|table| table.bytes)
        .sum();
    // A moved table keeps its bounds, so it must not overlap too much of the level below its new
    // one.
    let upper_count = upper.len() as u64;
    let is_move = lower.is_empty() && overlap_after <= shape.overlap_bytes_max.saturating_mul(upper_count);
    let kind = if is_move { JobKind::Move } else { JobKind::Merge };
    let output_run = state.level(level + 1).bottom_run();
    let inputs =
        vec![(level, run.id, upper.iter().collect()), (level + 1, output_run, lower.iter().collect())];
    let draft = Draft { reason, inputs, output_level: level + 1, output_run };
    draft.finish(state, super::Shape { kind, ..shape })
}
