//! RocksDB's leveled compaction.

use super::inputs::{by_run, complete, hull, overlapping, overlapping_zero};
use super::order::order;
use super::targets::Targets;
use super::{Draft, Job, JobKind, Reason};
use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Minimum number of files for which a merge within level 0 is worthwhile.
const WITHIN_ZERO_FILES_MIN: usize = 4;

/// Maximum number of files that one trivial move takes.
const MOVES_MAX: usize = 4;

/// Picks from the level with the highest score that has a free file.
pub(super) fn pick(tree: &Tree, options: &Options, now_secs: f64) -> Option<Job> {
    let targets = Targets::new(tree, options);
    let mut zero_is_blocked = false;
    for (level, score) in targets.scores(tree, options) {
        if score < 1.0 {
            break;
        }
        // Level 0 waits for files of this level. More jobs there would starve level 0.
        if zero_is_blocked && level == targets.base {
            continue;
        }
        let job = match level {
            0 => from_zero(tree, options, &targets),
            _ => from(tree, options, &targets, level),
        };
        if job.is_some() {
            return job;
        }
        if level == 0 {
            zero_is_blocked = true;
            let within = within_zero(tree, options);
            if within.is_some() {
                return within;
            }
        }
    }
    expired(tree, options, &targets, now_secs)
}

/// Picks a job from level 0 to the base level.
fn from_zero(tree: &Tree, options: &Options, targets: &Targets) -> Option<Job> {
    // Files of level 0 overlap, so only one compaction of level 0 runs at a time.
    if tree.running.iter().any(|job| job.from_level == 0) {
        return None;
    }
    let base = targets.base;
    if let Some(job) = moves_from_zero(tree, options, base) {
        return Some(job);
    }
    if options.rocksdb_version >= 8
        && let Some(job) = within_zero_by_size(tree, options, base)
    {
        return Some(job);
    }
    let first = tree.level(0).files().filter(|file| !file.compacting).last()?;
    let upper = overlapping_zero(tree, (first.smallest, first.largest));
    let range = hull(upper.iter().copied())?;
    if tree.is_written(base, range.0, range.1) {
        return None;
    }
    complete(tree, options, 0, upper, base, Reason::LevelZero)
}

/// Moves the oldest files of level 0 that overlap neither each other nor the base level.
fn moves_from_zero(tree: &Tree, options: &Options, base: usize) -> Option<Job> {
    if !options.compression_per_level.is_empty() || tree.level(base).runs.is_empty() {
        return None;
    }
    let mut chosen: Vec<&File> = Vec::new();
    let mut range: Option<(u32, u32)> = None;
    let files: Vec<&File> = tree.level(0).files().collect();
    for file in files.into_iter().rev() {
        let wider = match range {
            None => (file.smallest, file.largest),
            Some((low, high)) if file.largest < low => (file.smallest, high),
            Some((low, high)) if file.smallest > high => (low, file.largest),
            Some(_) => break,
        };
        if file.compacting || !overlapping(tree, base, wider).is_empty() {
            break;
        }
        range = Some(wider);
        chosen.push(file);
    }
    let output_run = tree.level(base).runs.first().map_or(0, |run| run.id);
    let inputs = by_run(tree, 0, &chosen);
    let draft = Draft { reason: Reason::LevelZero, inputs, output_level: base, output_run };
    draft.finish(tree, JobKind::Move, options.target_file_size(base, base))
}

/// Merges within level 0 when the base level is so large that merging into it would cost too much.
fn within_zero_by_size(tree: &Tree, options: &Options, base: usize) -> Option<Job> {
    let least = options.level0_file_num_compaction_trigger.max(2);
    let zero = tree.level(0).bytes();
    let factor = options.max_bytes_for_level_multiplier.max(10.0) * 2.0;
    if tree.level(0).runs.len() < least || tree.level(base).bytes() as f64 <= zero as f64 * factor {
        return None;
    }
    let chosen: Vec<&File> = tree.level(0).files().take_while(|file| !file.compacting).collect();
    (chosen.len() >= least).then(|| zero_job(tree, &chosen)).flatten()
}

/// Merges within level 0 when its files cannot be merged down now and more of them have been
/// flushed.
fn within_zero(tree: &Tree, options: &Options) -> Option<Job> {
    let files: Vec<&File> = tree.level(0).files().collect();
    let is_long = files.len() >= options.level0_file_num_compaction_trigger + 2;
    if !is_long || files.first().is_none_or(|file| file.compacting) {
        return None;
    }
    let chosen = falling_cost(&files, options.compaction_bytes_max());
    (chosen.len() >= WITHIN_ZERO_FILES_MIN).then(|| zero_job(tree, chosen)).flatten()
}

/// Returns files from the newest on, for as long as each further file lowers the bytes written per
/// file removed.
pub(super) fn falling_cost<'s, 't>(files: &'s [&'t File], bytes_max: u64) -> &'s [&'t File] {
    let mut bytes = files.first().map_or(0, |file| file.bytes);
    let mut cost = u64::MAX;
    let mut limit = 1;
    for (at, file) in files.iter().enumerate().skip(1) {
        bytes += file.bytes;
        let next = bytes / at as u64;
        if file.compacting || next > cost || bytes > bytes_max {
            break;
        }
        cost = next;
        limit = at + 1;
    }
    debug_assert!(limit <= files.len().max(1), "found {limit} of {} files", files.len());
    files.get(..limit).unwrap_or(&[])
}

pub(super) fn zero_job(tree: &Tree, chosen: &[&File]) -> Option<Job> {
    let inputs = by_run(tree, 0, chosen);
    let output_run = inputs.iter().map(|(_, run, _)| *run).max()?;
    let draft = Draft { reason: Reason::WithinLevelZero, inputs, output_level: 0, output_run };
    draft.finish(tree, JobKind::Merge, u64::MAX)
}

/// Picks a job from a level to the next.
fn from(tree: &Tree, options: &Options, targets: &Targets, level: usize) -> Option<Job> {
    let files = tree.level(level).only();
    let in_turn = options.compaction_pri == CompactionPri::RoundRobin;
    for at in order(tree, options, level) {
        let Some(file) = files.get(at) else { continue };
        let range = (file.smallest, file.largest);
        if file.compacting || tree.is_written(level + 1, range.0, range.1) {
            if in_turn {
                return None;
            }
            continue;
        }
        let upper = match overlapping(tree, level + 1, range).is_empty() {
            true => moves(tree, options, level, files, at),
            false if in_turn => row(tree, options, level, files, at, targets.of(level)),
            false => vec![file],
        };
        if let Some(job) = complete(tree, options, level, upper, level + 1, Reason::LevelSize) {
            return Some(job);
        }
    }
    None
}

/// Returns a file that overlaps nothing in the next level, with neighbours of which the same is
/// true: those to the right, and since version 8 also those to the left.
fn moves<'t>(tree: &Tree, options: &Options, level: usize, files: &'t [File], at: usize) -> Vec<&'t File> {
    let mut chosen: Vec<&File> = files.get(at).into_iter().collect();
    let may_extend = options.compression_per_level.is_empty();
    let Some(first) = files.get(at).filter(|_| may_extend) else { return chosen };
    let mut bytes = first.bytes;
    let mut fits = |file: &File, range: (u32, u32)| {
        if file.compacting || !overlapping(tree, level + 1, range).is_empty() {
            return false;
        }
        bytes += file.bytes;
        bytes <= options.compaction_bytes_max()
    };
    let right = files.iter().skip(at + 1).take(MOVES_MAX - 1);
    chosen.extend(right.take_while(|file| fits(file, (first.smallest, file.largest))));
    if options.rocksdb_version >= 8 && options.compaction_pri != CompactionPri::RoundRobin {
        let left = files.iter().take(at).rev().take(MOVES_MAX - chosen.len());
        chosen.extend(left.take_while(|file| fits(file, (file.smallest, first.largest))));
    }
    chosen
}

/// Returns a file and as many of its right neighbours as bring the level down to its target, as
/// round robin takes them.
fn row<'t>(
    tree: &Tree,
    options: &Options,
    level: usize,
    files: &'t [File],
    at: usize,
    target: u64,
) -> Vec<&'t File> {
    let free: u64 = files.iter().filter(|file| !file.compacting).map(|file| file.bytes).sum();
    let excess = free.saturating_sub(target);
    let Some(first) = files.get(at) else { return Vec::new() };
    let (mut chosen, mut bytes) = (vec![first], first.bytes);
    for file in files.iter().skip(at + 1) {
        let range = (first.smallest, file.largest);
        let lower = overlapping(tree, level + 1, range);
        let is_taken = file.compacting || lower.iter().any(|file| file.compacting);
        let lower_bytes: u64 = lower.iter().map(|file| file.bytes).sum();
        let is_too_large = bytes + file.bytes + lower_bytes > options.compaction_bytes_max();
        if bytes >= excess || is_taken || is_too_large || tree.is_written(level + 1, range.0, range.1) {
            break;
        }
        bytes += file.bytes;
        chosen.push(file);
    }
    chosen
}

/// Picks files above the last level that are older than `ttl`.
fn expired(tree: &Tree, options: &Options, targets: &Targets, now_secs: f64) -> Option<Job> {
    if options.ttl == 0 {
        return None;
    }
    let limit = now_secs - options.ttl as f64;
    for level in 0..options.num_levels.saturating_sub(1) {
        let files = tree.level(level).files().filter(|file| file.created_secs < limit && !file.compacting);
        for file in files {
            let job = if level == 0 {
                if tree.running.iter().any(|job| job.from_level == 0) {
                    continue;
                }
                let upper = overlapping_zero(tree, (file.smallest, file.largest));
                complete(tree, options, 0, upper, targets.base, Reason::Age)
            } else {
                complete(tree, options, level, vec![file], level + 1, Reason::Age)
            };
            if job.is_some() {
                return job;
            }
        }
    }
    None
}
