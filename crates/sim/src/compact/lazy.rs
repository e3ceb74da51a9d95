//! Cairn's lazy leveling: several runs in each level but the last (Dayan and Idreos, Dostoevsky,
//! SIGMOD 2018).

use super::{Draft, Job, Kind, Reason};
use crate::options::Options;
use crate::tree::Tree;

/// Returns the first level below level 0 that is used. Levels grow by the ratio, and all levels
/// above the last together hold about as much as the last.
fn first_tier(tree: &Tree, options: &Options) -> usize {
    let last = options.num_levels - 1;
    let ratio = options.kv.size_ratio as u64;
    let mut bytes = options.write_buffer_size.saturating_mul(ratio);
    let mut first = last;
    while first > 1 && bytes.saturating_mul(ratio) <= tree.level(last).bytes() {
        bytes = bytes.saturating_mul(ratio);
        first -= 1;
    }
    first
}

/// Returns the level that the runs of a level are merged into: the next one in use, but never past
/// older data.
fn next(tree: &Tree, options: &Options, level: usize) -> usize {
    let planned = first_tier(tree, options).max(level + 1);
    (level + 1..planned).find(|&at| tree.is_used(at)).unwrap_or(planned).min(options.num_levels - 1)
}

/// Picks from the deepest full level first, which makes room for those above it.
pub(super) fn pick(tree: &Tree, options: &Options) -> Option<Job> {
    let last = options.num_levels - 1;
    for level in (0..=last).rev() {
        let limit = if level == last { 2 } else { options.kv.size_ratio };
        if tree.level(level).runs.len() < limit {
            continue;
        }
        let job = if level == last { unite(tree, options) } else { down(tree, options, level, Reason::Runs) };
        if job.is_some() {
            return job;
        }
    }
    let many = |level: usize| {
        tree.level(level).files().any(|file| {
            !file.compacting && file.tombstones > 0 && file.tombstone_ratio() >= options.kv.tombstone_ratio
        })
    };
    (0..last).find(|&level| many(level)).and_then(|level| down(tree, options, level, Reason::Tombstones))
}

/// Merges the runs of the last level into one.
fn unite(tree: &Tree, options: &Options) -> Option<Job> {
    let last = options.num_levels - 1;
    let inputs = tree.level(last).runs.iter().map(|run| (last, run.id, run.files.iter().collect()));
    let draft = Draft { reason: Reason::Runs, inputs: inputs.collect(), output_level: last, output_run: 0 };
    draft.finish(tree, Kind::Merge, options.target_file_size(last, 1))
}

/// Merges all runs of a level into the next one, together with the runs there if it is the last
/// level or holds newer data.
fn down(tree: &Tree, options: &Options, level: usize, reason: Reason) -> Option<Job> {
    let last = options.num_levels - 1;
    let runs = &tree.level(level).runs;
    let newest = runs.iter().map(|run| run.id).max()?;
    let next = next(tree, options, level);
    let of = |at: usize| {
        tree.level(at).runs.iter().map(move |run| (at, run.id, run.files.iter().collect::<Vec<_>>()))
    };
    let newest_below = tree.level(next).runs.iter().map(|run| run.id).max();
    let joins = next == last || newest_below.is_some_and(|below| below >= newest);
    let inputs: Vec<_> = if joins { of(level).chain(of(next)).collect() } else { of(level).collect() };
    let moves = inputs.len() == 1 && tree.level(level).files().all(|file| file.tombstones == 0);
    let kind = if moves { Kind::Move } else { Kind::Merge };
    let output_run = if next == last { 0 } else { newest_below.filter(|_| joins).unwrap_or(newest) };
    Draft { reason, inputs, output_level: next, output_run }.finish(
        tree,
        kind,
        options.target_file_size(next, 1),
    )
}

/// Returns the bytes of full levels, plus those of the last level when it is rewritten with them.
pub(super) fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    let last = options.num_levels - 1;
    let full = (0..last).filter(|&level| tree.level(level).runs.len() >= options.kv.size_ratio);
    full.map(|level| {
        let below = if next(tree, options, level) == last { tree.level(last).bytes() } else { 0 };
        tree.level(level).bytes() + below
    })
    .sum()
}
