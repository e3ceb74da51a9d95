//! Cairn's leveled compaction. Level targets and their ratio follow the size of the data, and level
//! 0 is merged only when a merge is worth its writes.

use super::inputs::{hull, overlapping};
use super::{Draft, Job, Kind, Reason};
use crate::options::Options;
use crate::tree::{File, Tree};

/// Bytes that a merge writes for each byte that it moves down, divided by the ratio of the levels.
const MERGE_SHARE: f64 = 0.6;
/// The smallest size ratio of neighbouring levels.
const RATIO_MIN: f64 = 5.0;
/// An output file overlaps at most about this many files of the next level.
const OVERLAP_FILES: u64 = 10;
/// The most neighbouring files that one merge moves down.
const ROW_FILES_MAX: usize = 16;
/// The extra weight of a file's share of tombstones when a file is chosen.
const TOMBSTONE_WEIGHT: f64 = 2.0;
/// The least number of runs for which a merge within level 0 is worthwhile.
const WITHIN_RUNS_MIN: usize = 4;

struct Targets {
    last: usize,
    base: usize,
    zero_bytes: u64,
    /// Target sizes, from level 0; `u64::MAX` for no limit, 0 for a level that should be empty.
    bytes: Vec<u64>,
}

impl Targets {
    fn new(tree: &Tree, options: &Options) -> Targets {
        let last = options.num_levels - 1;
        let largest = (1..=last).map(|level| tree.level(level).bytes()).max().unwrap_or(0);
        let (count, ratio) = shape(options, largest);
        let wanted = last + 1 - count;
        // Level 0 must not be merged past a level that holds older data.
        let first_used = (1..=last).find(|&level| tree.is_used(level)).unwrap_or(last);
        let mut bytes = vec![0; options.num_levels];
        let mut target = largest as f64;
        for level in (wanted..=last).rev() {
            if let Some(slot) = bytes.get_mut(level) {
                let least = options.max_bytes_for_level_base;
                *slot = if level == last { u64::MAX } else { (target as u64).max(least) };
            }
            target /= ratio;
        }
        let zero_bytes = options.kv.level_zero_bytes.min(largest);
        if let Some(slot) = bytes.first_mut() {
            *slot = zero_bytes;
        }
        Targets { last, base: wanted.min(first_used), zero_bytes, bytes }
    }

    fn of(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(0)
    }

    fn zero_score(&self, tree: &Tree, options: &Options) -> f64 {
        let free = || tree.level(0).runs.iter().filter(|run| !run.is_compacting());
        let runs = free().count() as f64;
        let bytes: u64 = free().map(|run| run.bytes()).sum();
        let enough = runs / options.level0_file_num_compaction_trigger as f64;
        let worth_it = bytes as f64 / self.zero_bytes.max(1) as f64;
        (runs / options.kv.level_zero_runs_max as f64).max(enough.min(worth_it))
    }

    fn score(&self, tree: &Tree, level: usize) -> f64 {
        let free = tree.level(level).files().filter(|file| !file.compacting);
        // Plain file sizes: Cairn's level sizes do not weigh tombstones.
        let bytes: u64 = free.map(|file| file.bytes).sum();
        match self.of(level) {
            u64::MAX => 0.0,
            // Levels above the base level should be empty: they are drained first.
            0 if bytes > 0 => 1000.0 + bytes as f64 / (1u64 << 30) as f64,
            target => bytes as f64 / target.max(1) as f64,
        }
    }
}

/// Returns the number of levels below level 0 and their ratio, chosen for the fewest writes. With N
/// bytes in the last level, X bytes merged from level 0 at a time, n levels and a ratio f, a byte
/// is written `1 + N / (f^(n-1) X) + (n-1) (1 + 0.6 f)` times after its flush.
fn shape(options: &Options, largest: u64) -> (usize, f64) {
    let batch = options.kv.level_zero_bytes.max(1) as f64;
    let times = largest as f64 / batch;
    let multiplier = options.max_bytes_for_level_multiplier;
    let mut best = (1, multiplier, 1.0 + times);
    for count in 2..options.num_levels {
        let ratio =
            (times / MERGE_SHARE).powf(1.0 / count as f64).clamp(RATIO_MIN.min(multiplier), multiplier);
        let above = (count - 1) as i32;
        let base = times / ratio.powi(above);
        let cost = 1.0 + base + f64::from(above) * (1.0 + MERGE_SHARE * ratio);
        if cost < best.2 && base * batch >= options.max_bytes_for_level_base as f64 {
            best = (count, ratio, cost);
        }
    }
    (best.0, best.1)
}

pub(super) fn level_targets(tree: &Tree, options: &Options) -> Vec<u64> {
    Targets::new(tree, options).bytes
}

pub(super) fn base_level(tree: &Tree, options: &Options) -> usize {
    Targets::new(tree, options).base
}

/// Returns how many bytes of the next level an output file may overlap.
pub(crate) fn overlap_bytes_max(options: &Options) -> u64 {
    options.target_file_size_base.saturating_mul(OVERLAP_FILES)
}

/// Picks from the levels that are due, by score, then from files with many tombstones.
pub(super) fn pick(tree: &Tree, options: &Options) -> Option<Job> {
    let targets = Targets::new(tree, options);
    let mut due = vec![(0, targets.zero_score(tree, options))];
    due.extend((1..targets.last).map(|level| (level, targets.score(tree, level))));
    due.retain(|&(_, score)| score >= 1.0);
    due.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (level, _) in due {
        let job = if level == 0 {
            zero_down(tree, options, &targets).or_else(|| zero_within(tree, options))
        } else {
            let excess = tree.level(level).bytes().saturating_sub(targets.of(level));
            down(tree, options, level, excess, Reason::LevelSize)
        };
        if job.is_some() {
            return job;
        }
    }
    tombstones(tree, options, &targets)
}

/// Splits level 0 and the base level into groups of files that overlap each other, directly or
/// through other files. Returns the upper and lower files of each group that has upper files.
fn parts(tree: &Tree, base: usize) -> Vec<(Vec<&File>, Vec<&File>)> {
    let mut all: Vec<(bool, &File)> = tree.level(0).files().map(|file| (true, file)).collect();
    all.extend(tree.level(base).files().map(|file| (false, file)));
    all.sort_by_key(|(_, file)| file.smallest);
    let mut parts: Vec<(Vec<&File>, Vec<&File>)> = Vec::new();
    let mut end: Option<u32> = None;
    for (is_upper, file) in all {
        if end.is_none_or(|end| file.smallest > end) {
            parts.push((Vec::new(), Vec::new()));
        }
        end = end.max(Some(file.largest));
        if let Some((upper, lower)) = parts.last_mut() {
            if is_upper { upper.push(file) } else { lower.push(file) }
        }
    }
    parts.retain(|(upper, _)| !upper.is_empty());
    parts
}

/// Picks a job from level 0 to the base level. Files that overlap nothing are moved; otherwise the
/// largest group that is free is merged.
fn zero_down(tree: &Tree, options: &Options, targets: &Targets) -> Option<Job> {
    let mut parts = parts(tree, targets.base);
    let free: Vec<&File> = parts
        .iter()
        .filter_map(|(upper, lower)| match (&upper[..], &lower[..]) {
            ([file], []) => Some(*file),
            _ => None,
        })
        .filter(|file| {
            let is_written = tree.is_written(targets.base, file.smallest, file.largest);
            !file.compacting && !is_written && file.tombstone_ratio() < options.kv.tombstone_ratio
        })
        .collect();
    let output_run = tree.level(targets.base).runs.last().map_or(0, |run| run.id);
    let draft = |inputs| Draft { reason: Reason::LevelZero, inputs, output_level: targets.base, output_run };
    if !free.is_empty() {
        let inputs = super::inputs::by_run(tree, 0, &free);
        return draft(inputs).finish(tree, Kind::Move, options.target_file_size_base);
    }
    parts.sort_by_key(|(upper, _)| std::cmp::Reverse(upper.iter().map(|file| file.bytes).sum::<u64>()));
    parts.into_iter().find_map(|(upper, mut lower)| {
        lower.sort_by_key(|file| file.smallest);
        let mut inputs = super::inputs::by_run(tree, 0, &upper);
        inputs.push((targets.base, output_run, lower));
        draft(inputs).finish(tree, Kind::Merge, options.target_file_size_base)
    })
}

/// Merges small neighbouring runs when level 0 has twice the allowed number of runs.
fn zero_within(tree: &Tree, options: &Options) -> Option<Job> {
    let runs = &tree.level(0).runs;
    if runs.len() < 2 * options.kv.level_zero_runs_max {
        return None;
    }
    let is_small =
        |run: &&crate::tree::Run| !run.is_compacting() && run.bytes() < options.kv.level_zero_bytes / 2;
    let row: Vec<_> = runs.iter().skip_while(|run| !is_small(run)).take_while(|run| is_small(run)).collect();
    if row.len() < WITHIN_RUNS_MIN {
        return None;
    }
    let output_run = row.iter().map(|run| run.id).max()?;
    let inputs = row.iter().map(|run| (0, run.id, run.files.iter().collect())).collect();
    let draft = Draft { reason: Reason::WithinLevelZero, inputs, output_level: 0, output_run };
    draft.finish(tree, Kind::Merge, options.target_file_size_base)
}

/// Picks the row of neighbouring files that moves bytes down with the fewest writes. A row of
/// several files is no larger than the excess.
fn down(tree: &Tree, options: &Options, level: usize, excess: u64, reason: Reason) -> Option<Job> {
    let files = tree.level(level).only();
    let mut rows: Vec<(f64, usize, usize)> = Vec::new();
    let below = tree.level(level + 1).only();
    for from in 0..files.len() {
        let (mut bytes, mut worth) = (0, 0.0);
        for to in from + 1..=files.len().min(from + ROW_FILES_MAX) {
            let (Some(first), Some(last)) = (files.get(from), files.get(to - 1)) else { break };
            bytes += last.bytes;
            worth += last.bytes as f64 * (1.0 + TOMBSTONE_WEIGHT * last.tombstone_ratio());
            if last.compacting || (to > from + 1 && bytes > excess) {
                break;
            }
            let start = below.partition_point(|file| file.largest < first.smallest);
            let end = below.partition_point(|file| file.smallest <= last.largest).max(start);
            let lower = below.get(start..end).unwrap_or(&[]);
            if lower.iter().any(|file| file.compacting) {
                break;
            }
            let lower: u64 = lower.iter().map(|file| file.bytes).sum();
            rows.push(((bytes + lower) as f64 / worth.max(1.0), from, to));
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    rows.into_iter().find_map(|(_, from, to)| {
        let upper: Vec<&File> = files.get(from..to)?.iter().collect();
        row_job(tree, options, level, upper, reason)
    })
}

fn row_job(tree: &Tree, options: &Options, level: usize, upper: Vec<&File>, reason: Reason) -> Option<Job> {
    let lower = overlapping(tree, level + 1, hull(upper.iter().copied())?);
    let after: u64 = upper
        .iter()
        .flat_map(|file| overlapping(tree, level + 2, (file.smallest, file.largest)))
        .map(|file| file.bytes)
        .sum();
    let is_move = lower.is_empty() && after <= overlap_bytes_max(options).saturating_mul(upper.len() as u64);
    let kind = if is_move { Kind::Move } else { Kind::Merge };
    let run_of = |level: usize| tree.level(level).runs.first().map_or(0, |run| run.id);
    let output_run = run_of(level + 1);
    let inputs = vec![(level, run_of(level), upper), (level + 1, output_run, lower)];
    let draft = Draft { reason, inputs, output_level: level + 1, output_run };
    draft.finish(tree, kind, options.target_file_size_base)
}

/// Picks a file with many tombstones. It is merged down, or rewritten in place when nothing lies
/// below.
fn tombstones(tree: &Tree, options: &Options, targets: &Targets) -> Option<Job> {
    for level in 0..=targets.last {
        let many = |file: &&File| {
            !file.compacting && file.tombstones > 0 && file.tombstone_ratio() >= options.kv.tombstone_ratio
        };
        for file in tree.level(level).files().filter(many) {
            let range = (file.smallest, file.largest);
            let is_above = (level + 1..=targets.last).any(|at| !overlapping(tree, at, range).is_empty());
            let job = if level == 0 {
                let part = parts(tree, targets.base)
                    .into_iter()
                    .find(|(upper, _)| upper.iter().any(|it| it.number == file.number));
                part.and_then(|(upper, lower)| {
                    let output_run = tree.level(targets.base).runs.last().map_or(0, |run| run.id);
                    let mut inputs = super::inputs::by_run(tree, 0, &upper);
                    inputs.push((targets.base, output_run, lower));
                    let (reason, output_level) = (Reason::Tombstones, targets.base);
                    let draft = Draft { reason, inputs, output_level, output_run };
                    draft.finish(tree, Kind::Merge, options.target_file_size_base)
                })
            } else if is_above && level < targets.last {
                row_job(tree, options, level, vec![file], Reason::Tombstones)
            } else {
                let run = tree.level(level).runs.first().map_or(0, |run| run.id);
                let inputs = vec![(level, run, vec![file])];
                let draft =
                    Draft { reason: Reason::Tombstones, inputs, output_level: level, output_run: run };
                draft.finish(tree, Kind::Merge, options.target_file_size_base)
            };
            if job.is_some() {
                return job;
            }
        }
    }
    None
}

pub(super) fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    let targets = Targets::new(tree, options);
    let (mut debt, mut incoming) = (0u64, 0u64);
    for level in 0..targets.last {
        let bytes = tree.level(level).bytes();
        let total = bytes + incoming;
        let excess = match level {
            0 if targets.zero_score(tree, options) >= 1.0 => bytes,
            0 => 0,
            _ => total.saturating_sub(targets.of(level)),
        };
        if excess > 0 {
            let next = if level == 0 { targets.base } else { level + 1 };
            let below = tree.level(next).bytes();
            let share = if level == 0 { 1.0 } else { excess as f64 / total.max(1) as f64 };
            debt = debt.saturating_add(excess).saturating_add((below as f64 * share) as u64);
        }
        incoming = excess;
    }
    debt
}
