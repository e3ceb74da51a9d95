//! Which tables of a level go down.

use super::Leveled;
use super::targets::Targets;
use crate::compaction::strategy::job::{Draft, Job, JobKind, Reason};
use crate::compaction::strategy::overlap::whole_keys;
use crate::compaction::strategy::state::{RunInfo, State, TableInfo};

/// A row of tables of a level is at most this long.
const ROW_TABLES_MAX: usize = 16;

/// A tombstone counts as this many bytes of its table more: what it hides goes with it.
const TOMBSTONE_WEIGHT: f64 = 2.0;

/// A candidate: neighbouring tables of the level, and what they overlap below.
struct Row<'s, 'a> {
    upper: &'s [TableInfo<'a>],
    lower: &'s [TableInfo<'a>],
    /// Bytes written for each byte that goes down; the less the better.
    cost: f64,
}

/// From `level` to the next: the row of tables, no larger than `excess` bytes or one table, that
/// costs the least writes for what it moves down, after Sarkar and others, *Constructing and
/// Analyzing the LSM Compaction Design Space* (VLDB 2021).
///
/// Rows of several tables share the tables at their ends with nobody, so they cost less than their
/// tables apart.
pub(super) fn down(
    strategy: &Leveled,
    state: &State<'_>,
    level: usize,
    excess: u64,
    reason: Reason,
) -> Option<Job> {
    let [run] = &state.level(level).runs[..] else { return None };
    let mut rows = rows(state, run, level, excess);
    rows.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    rows.into_iter().find_map(|row| job(strategy, state, run, level, row.upper, row.lower, reason))
}

/// One table down, or anew in its place when nothing is below it.
pub(super) fn one<'a>(
    strategy: &Leveled,
    state: &State<'a>,
    targets: &Targets,
    level: usize,
    table: &TableInfo<'a>,
    reason: Reason,
) -> Option<Job> {
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

fn rows<'s, 'a>(state: &'s State<'a>, run: &'s RunInfo<'a>, level: usize, excess: u64) -> Vec<Row<'s, 'a>> {
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

fn cost(upper: &[TableInfo<'_>], lower: &[TableInfo<'_>]) -> f64 {
    let bytes = |tables: &[TableInfo<'_>]| tables.iter().map(|table| table.bytes).sum::<u64>() as f64;
    let worth: f64 = upper
        .iter()
        .map(|table| table.bytes as f64 * (1.0 + TOMBSTONE_WEIGHT * table.tombstone_ratio()))
        .sum();
    (bytes(upper) + bytes(lower)) / worth.max(1.0)
}

/// What the next level has of a range; `None` while it holds several runs.
fn below<'s, 'a>(
    state: &'s State<'a>,
    level: usize,
    smallest: &[u8],
    largest: &[u8],
) -> Option<&'s [TableInfo<'a>]> {
    match &state.level(level + 1).runs[..] {
        [] => Some(&[]),
        [run] => Some(run.overlapping(smallest, largest)),
        _ => None,
    }
}

fn job<'s, 'a>(
    strategy: &Leveled,
    state: &'s State<'a>,
    run: &RunInfo<'a>,
    level: usize,
    upper: &'s [TableInfo<'a>],
    lower: &'s [TableInfo<'a>],
    reason: Reason,
) -> Option<Job> {
    let shape = strategy.shape(JobKind::Merge);
    let overlap_after: u64 = upper
        .iter()
        .flat_map(|table| state.level(level + 2).overlapping(table.smallest, table.largest))
        .map(|table| table.bytes)
        .sum();
    // A moved table keeps its bounds, so it must not reach over too much of what it meets next.
    let upper_count = upper.len() as u64;
    let is_move = lower.is_empty() && overlap_after <= shape.overlap_bytes_max.saturating_mul(upper_count);
    let kind = if is_move { JobKind::Move } else { JobKind::Merge };
    let output_run = state.level(level + 1).bottom_run();
    let inputs =
        vec![(level, run.id, upper.iter().collect()), (level + 1, output_run, lower.iter().collect())];
    let draft = Draft { reason, inputs, output_level: level + 1, output_run };
    draft.finish(state, super::Shape { kind, ..shape })
}
