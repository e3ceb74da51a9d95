//! Extends the first file of a leveled compaction to its full inputs, as RocksDB's
//! `SetupOtherInputs` does.

use super::{Draft, Job, JobKind, Reason};
use crate::options::{CompactionPri, Options};
use crate::tree::{File, Tree};

/// Returns the key range that spans some files.
pub(super) fn hull<'a>(files: impl Iterator<Item = &'a File>) -> Option<(u32, u32)> {
    files.fold(None, |hull: Option<(u32, u32)>, file| match hull {
        None => Some((file.smallest, file.largest)),
        Some((low, high)) => Some((low.min(file.smallest), high.max(file.largest))),
    })
}

/// Returns the files of a sorted level that overlap the range.
pub(super) fn overlapping(tree: &Tree, level: usize, range: (u32, u32)) -> Vec<&File> {
    match tree.level(level).runs.first() {
        Some(run) => run.files.get(run.overlapping(range.0, range.1)).unwrap_or(&[]).iter().collect(),
        None => Vec::new(),
    }
}

/// Returns the files of level 0 that overlap the range or each other in a chain from it, newest
/// first.
pub(super) fn overlapping_zero(tree: &Tree, mut range: (u32, u32)) -> Vec<&File> {
    let files: Vec<&File> = tree.level(0).files().collect();
    loop {
        let chosen: Vec<&File> =
            files.iter().copied().filter(|file| file.overlaps(range.0, range.1)).collect();
        // BOUND: the range only grows, and at most once for each file.
        match hull(chosen.iter().copied()) {
            Some(wider) if wider.0 < range.0 || wider.1 > range.1 => {
                range = (wider.0.min(range.0), wider.1.max(range.1));
            }
            _ => return chosen,
        }
    }
}

fn is_taken(files: &[&File]) -> bool {
    files.iter().any(|file| file.compacting)
}

/// Adds the overlapping files of the output level. Then adds files of the first level that bring in
/// no more files of the output level.
pub(super) fn complete<'t>(
    tree: &'t Tree,
    options: &Options,
    level: usize,
    mut upper: Vec<&'t File>,
    output_level: usize,
    reason: Reason,
) -> Option<Job> {
    let range = hull(upper.iter().copied())?;
    let lower = overlapping(tree, output_level, range);
    if is_taken(&lower) || is_taken(&upper) {
        return None;
    }
    if !lower.is_empty() {
        let all = hull(upper.iter().chain(&lower).copied())?;
        if let Some(wider) = widened(tree, options, level, &upper, &lower, output_level, all) {
            upper = wider;
        }
    }
    let is_move = lower.is_empty() && may_move(tree, options, level, &upper, output_level);
    let kind = if is_move { JobKind::Move } else { JobKind::Merge };
    let output_run = tree.level(output_level).runs.first().map_or(0, |run| run.id);
    let mut inputs = by_run(tree, level, &upper);
    inputs.push((output_level, output_run, lower));
    let draft = Draft { reason, inputs, output_level, output_run };
    let base = super::base_level(tree, options);
    draft.finish(tree, kind, options.target_file_size(output_level, base))
}

/// Returns a larger set of files of the first level: all that overlap the inputs if they bring in
/// no more files of the output level, otherwise those that lie completely inside.
fn widened<'t>(
    tree: &'t Tree,
    options: &Options,
    level: usize,
    upper: &[&File],
    lower: &[&File],
    output_level: usize,
    all: (u32, u32),
) -> Option<Vec<&'t File>> {
    let limit = options.compaction_bytes_max();
    let lower_bytes: u64 = lower.iter().map(|file| file.compensated_bytes).sum();
    let fits = |files: &[&File]| {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        // From 7.8 on, RocksDB does not apply the limit to the inputs by default.
        options.rocksdb_version >= 7 || lower_bytes + bytes < limit
    };
    // Round robin takes no files before its cursor.
    let from = match options.compaction_pri {
        CompactionPri::RoundRobin => hull(upper.iter().copied())?.0,
        _ => all.0,
    };
    let touching =
        if level == 0 { overlapping_zero(tree, all) } else { overlapping(tree, level, (from, all.1)) };
    if touching.len() > upper.len() && !is_taken(&touching) && fits(&touching) {
        let range = hull(touching.iter().copied())?;
        if overlapping(tree, output_level, range).len() == lower.len() {
            return Some(touching);
        }
    }
    if level == 0 {
        return None;
    }
    let inside: Vec<&File> = overlapping(tree, level, all)
        .into_iter()
        .filter(|file| file.smallest >= all.0 && file.largest <= all.1)
        .collect();
    (inside.len() > upper.len() && !is_taken(&inside) && fits(&inside)).then_some(inside)
}

/// Whether files that overlap nothing in the output level can move there without a merge. They
/// cannot when they overlap so much of the level after it that a later compaction would be huge,
/// when files of level 0 overlap each other, or when the codec changes.
pub(super) fn may_move(
    tree: &Tree,
    options: &Options,
    level: usize,
    upper: &[&File],
    output_level: usize,
) -> bool {
    if level == 0 && !is_disjoint(tree.level(0).files().collect()) {
        return false;
    }
    let base = super::base_level(tree, options);
    let codec = |at: usize| options.compression_at(at, base, at >= tree.last_used());
    if codec(level) != codec(output_level) {
        return false;
    }
    upper.iter().all(|file| {
        let after = overlapping(tree, output_level + 1, (file.smallest, file.largest));
        let bytes: u64 = after.iter().map(|file| file.bytes).sum();
        file.bytes + bytes <= options.compaction_bytes_max()
    })
}

/// Whether no two files overlap.
pub(super) fn is_disjoint(mut files: Vec<&File>) -> bool {
    files.sort_by_key(|file| file.smallest);
    files.windows(2).all(|pair| pair[0].largest < pair[1].smallest)
}

/// Groups chosen files of a level by their runs.
pub(super) fn by_run<'t>(
    tree: &'t Tree,
    level: usize,
    chosen: &[&'t File],
) -> Vec<(usize, u64, Vec<&'t File>)> {
    let mut numbers: Vec<u64> = chosen.iter().map(|file| file.number).collect();
    numbers.sort_unstable();
    let runs = tree.level(level).runs.iter().map(|run| {
        let files = run.files.iter().filter(|file| numbers.binary_search(&file.number).is_ok());
        (level, run.id, files.collect::<Vec<_>>())
    });
    runs.filter(|(_, _, files)| !files.is_empty()).collect()
}
