//! Universal compaction: merges runs of similar size, ordered by age. The rules are RocksDB's;
//! comments mark where Cairn's differ.

use super::{Draft, Job, Kind, Reason};
use crate::options::{Engine, Options};
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
    // Cairn compares the number of all runs with the trigger, RocksDB that of the free ones.
    let count = if options.engine == Engine::CairnKv { runs.len() } else { free };
    if count < trigger.max(2) {
        return None;
    }
    if let Some(job) = by_space(tree, options, &runs) {
        return Some(job);
    }
    let universal = &options.compaction_options_universal;
    if let Some((from, to)) = similar(&runs, options, Some(universal.size_ratio), usize::MAX) {
        return merge(tree, options, &runs, from, to, Reason::SizeRatio);
    }
    if options.engine == Engine::CairnKv {
        let (from, to) = surplus(&runs, options).filter(|_| runs.len() > trigger)?;
        return merge(tree, options, &runs, from, to, Reason::Runs);
    }
    if free > trigger {
        let (from, to) = similar(&runs, options, None, free - trigger + 1)?;
        return merge(tree, options, &runs, from, to, Reason::Runs);
    }
    None
}

/// Returns Cairn's estimate: the whole store when space amplification is too high, otherwise the
/// row of runs that is due.
pub(super) fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    let runs = by_age(tree);
    let trigger = options.level0_file_num_compaction_trigger;
    let bytes: u64 = runs.iter().map(|(_, run)| run.bytes()).sum();
    let oldest = runs.last().map_or(0, |(_, run)| run.bytes());
    let universal = &options.compaction_options_universal;
    if runs.len() >= trigger && is_wide(bytes - oldest, oldest, options) {
        return bytes;
    }
    if runs.len() < trigger.max(2) {
        return 0;
    }
    let surplus = || surplus(&runs, options).filter(|_| runs.len() > trigger);
    let due = similar(&runs, options, Some(universal.size_ratio), usize::MAX).or_else(surplus);
    let row = due.and_then(|(from, to)| runs.get(from..to)).unwrap_or(&[]);
    row.iter().map(|(_, run)| run.bytes()).sum()
}

/// Whether `newer` bytes of newer runs are too much in proportion to the oldest run.
fn is_wide(newer: u64, oldest: u64, options: &Options) -> bool {
    let percent = u128::from(options.compaction_options_universal.max_size_amplification_percent);
    let wide = u128::from(newer) * 100;
    match options.engine {
        // Cairn compares whole percent.
        Engine::CairnKv => wide / u128::from(oldest.max(1)) > percent,
        Engine::Rocksdb => wide >= percent * u128::from(oldest),
    }
}

/// Returns Cairn's newest neighbouring free runs, as many as must be merged to reach the allowed
/// number of runs.
fn surplus(runs: &[(usize, &Run)], options: &Options) -> Option<(usize, usize)> {
    let wanted = (runs.len() + 1).saturating_sub(options.level0_file_num_compaction_trigger).max(2);
    let from = runs.iter().position(|(_, run)| !run.is_compacting())?;
    let free = runs.iter().skip(from).take_while(|(_, run)| !run.is_compacting()).count();
    let count = wanted.min(free).min(options.compaction_options_universal.max_merge_width);
    (count >= 2).then_some((from, from + count))
}

/// Returns the size of a run in comparisons. Cairn does not weigh tombstones.
fn weight(run: &Run, options: &Options) -> u64 {
    if options.engine == Engine::CairnKv { run.bytes() } else { run.compensated_bytes() }
}

/// Merges everything down to the oldest run when the newer runs are too large in proportion to it.
fn by_space(tree: &Tree, options: &Options, runs: &[(usize, &Run)]) -> Option<Job> {
    let (_, oldest) = runs.last().filter(|(_, run)| !run.is_compacting())?;
    let newer = runs.len() - 1;
    let from = runs.iter().take(newer).rposition(|(_, run)| run.is_compacting()).map_or(0, |at| at + 1);
    // Cairn merges all runs or none.
    if from == newer || (from > 0 && options.engine == Engine::CairnKv) {
        return None;
    }
    let bytes: u64 = runs.iter().take(newer).skip(from).map(|(_, run)| weight(run, options)).sum();
    let is_wide = is_wide(bytes, oldest.bytes(), options);
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
        let mut sum = weight(first, options);
        let mut to = from + 1;
        while let Some((_, next)) = runs.get(to).filter(|(_, run)| to - from < most && !run.is_compacting()) {
            let fits = |ratio: u64| sum as f64 * (100.0 + ratio as f64) / 100.0 >= next.bytes() as f64;
            if !ratio.is_none_or(fits) {
                break;
            }
            sum += weight(next, options);
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
    let inputs = runs.get(from..to)?;
    let output_level = match runs.get(to) {
        None => options.num_levels - 1,
        Some((older, _)) => older.saturating_sub(1),
    };
    let newest = inputs.iter().map(|(_, run)| run.id).max()?;
    let output_run = if output_level == 0 { newest } else { 0 };
    let inputs = inputs.iter().map(|(level, run)| (*level, run.id, run.files.iter().collect())).collect();
    let draft = Draft { reason, inputs, output_level, output_run };
    draft.finish(tree, Kind::Merge, options.target_file_size(output_level, 1))
}
