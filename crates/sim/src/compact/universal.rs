//! RocksDB's universal compaction: merges runs of similar size, ordered by age.

use super::{Draft, Job, JobKind, Reason};
use crate::options::Options;
use crate::tree::{Run, Tree};

/// Returns all runs, newest first, with their levels.
fn by_age(tree: &Tree) -> Vec<(usize, &Run)> {
    let levels = tree.levels.iter().enumerate();
    levels.flat_map(|(at, level)| level.runs.iter().map(move |run| (at, run))).collect()
}

/// Picks by space amplification, then by size ratio, then by the number of runs.
pub(super) fn pick(tree: &Tree, options: &Options) -> Option<Job> {
    let runs = by_age(tree);
    let trigger = options.level0_file_num_compaction_trigger;
    let free = runs.iter().filter(|(_, run)| !run.is_compacting()).count();
    if free < trigger.max(2) {
        return None;
    }
    if let Some(job) = by_space(tree, options, &runs) {
        return Some(job);
    }
    let universal = &options.compaction_options_universal;
    if let Some((from, to)) = similar(&runs, options, Some(universal.size_ratio), usize::MAX) {
        return merge(tree, options, &runs, from, to, Reason::SizeRatio);
    }
    if free > trigger {
        let (from, to) = similar(&runs, options, None, free - trigger + 1)?;
        return merge(tree, options, &runs, from, to, Reason::Runs);
    }
    None
}

/// Merges everything down to the oldest run when the newer runs are too large in proportion to it.
fn by_space(tree: &Tree, options: &Options, runs: &[(usize, &Run)]) -> Option<Job> {
    let (_, oldest) = runs.last().filter(|(_, run)| !run.is_compacting())?;
    let newer = runs.len() - 1;
    let from = runs.iter().take(newer).rposition(|(_, run)| run.is_compacting()).map_or(0, |at| at + 1);
    if from == newer {
        return None;
    }
    let bytes: u64 = runs.iter().take(newer).skip(from).map(|(_, run)| run.compensated_bytes()).sum();
    let percent = u128::from(options.compaction_options_universal.max_size_amplification_percent);
    let is_wide = u128::from(bytes) * 100 >= percent * u128::from(oldest.bytes());
    is_wide.then(|| merge(tree, options, runs, from, runs.len(), Reason::SpaceAmplification)).flatten()
}

/// Returns a row of runs, each at most `ratio` percent larger than all newer ones of the row
/// together. Without a ratio, any sizes qualify.
fn similar(
    runs: &[(usize, &Run)],
    options: &Options,
    ratio: Option<u64>,
    most: usize,
) -> Option<(usize, usize)> {
    let universal = &options.compaction_options_universal;
    let most = most.min(universal.max_merge_width);
    for from in 0..runs.len() {
        let Some((_, first)) = runs.get(from).filter(|(_, run)| !run.is_compacting()) else { continue };
        let mut sum = first.compensated_bytes();
        let mut to = from + 1;
        while let Some((_, next)) = runs.get(to).filter(|(_, run)| to - from < most && !run.is_compacting()) {
            let fits = |ratio: u64| sum as f64 * (100.0 + ratio as f64) / 100.0 >= next.bytes() as f64;
            if !ratio.is_none_or(fits) {
                break;
            }
            sum += next.compensated_bytes();
            to += 1;
        }
        if to - from >= universal.min_merge_width.max(2) {
            return Some((from, to));
        }
    }
    None
}

/// Merges `runs[from..to]` into the level right above the next older run.
fn merge(
    tree: &Tree,
    options: &Options,
    runs: &[(usize, &Run)],
    from: usize,
    to: usize,
    reason: Reason,
) -> Option<Job> {
    debug_assert!(from < to && to <= runs.len(), "found runs {from}..{to} of {}", runs.len());
    let inputs = runs.get(from..to)?;
    let output_level = match runs.get(to) {
        None => options.num_levels - 1,
        Some((older, _)) => older.saturating_sub(1),
    };
    let newest = inputs.iter().map(|(_, run)| run.id).max()?;
    let output_run = if output_level == 0 { newest } else { 0 };
    let inputs = inputs.iter().map(|(level, run)| (*level, run.id, run.files.iter().collect())).collect();
    let draft = Draft { reason, inputs, output_level, output_run };
    draft.finish(tree, JobKind::Merge, options.target_file_size(output_level, 1))
}
