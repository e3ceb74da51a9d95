//! Cairn's own policies, asked about a simulated tree: the code that `cairn kv` runs.

use cairn_lsm_policy::{
    self as policy, Fifo, FifoOptions, LazyLeveled, LazyOptions, LevelTargets, Leveled, LeveledOptions,
    Policy, Strategy, Universal, UniversalOptions,
};

use super::{Job, Reason};
use crate::options::{CompactionStyle, Options};
use crate::tree::{Input, Tree};

/// Returns the policy that `cairn kv` has with these options.
fn policy_of(options: &Options) -> Policy {
    let universal = &options.compaction_options_universal;
    let (table_bytes, levels) = (options.target_file_size_base, options.num_levels);
    let (expired_secs, parts) = (u64::MAX, options.max_subcompactions);
    match options.compaction_style {
        CompactionStyle::Leveled => Policy::Leveled(leveled(options)),
        CompactionStyle::LazyLeveled => Policy::LazyLeveled(LazyLeveled::new(LazyOptions {
            table_bytes,
            flush_bytes: options.write_buffer_size,
            size_ratio: options.kv.size_ratio,
            levels,
            tombstone_ratio: options.kv.tombstone_ratio,
            expired_secs,
            idle_space_ratio: f64::INFINITY,
            parts,
        })),
        CompactionStyle::Universal => Policy::Universal(Universal::new(UniversalOptions {
            table_bytes,
            runs: options.level0_file_num_compaction_trigger,
            size_ratio_percent: universal.size_ratio,
            merge_runs_min: universal.min_merge_width,
            merge_runs_max: universal.max_merge_width,
            space_amplification_percent: universal.max_size_amplification_percent,
            levels,
            expired_secs,
            parts,
        })),
        CompactionStyle::Fifo => Policy::Fifo(Fifo::new(FifoOptions {
            bytes_max: options.compaction_options_fifo.max_table_files_size,
            ttl_secs: (options.ttl > 0).then_some(options.ttl),
        })),
    }
}

fn leveled(options: &Options) -> Leveled {
    Leveled::new(LeveledOptions {
        table_bytes: options.target_file_size_base,
        level_zero_runs_min: options.level0_file_num_compaction_trigger,
        level_zero_runs_max: options.kv.level_zero_runs_max,
        level_zero_bytes: options.kv.level_zero_bytes,
        base_bytes: options.max_bytes_for_level_base,
        multiplier: options.max_bytes_for_level_multiplier,
        levels: options.num_levels,
        tombstone_ratio: options.kv.tombstone_ratio,
        // Expired entries are dropped by merges that are due anyway, and the store is never idle.
        expired_secs: u64::MAX,
        age_secs: None,
        idle_space_ratio: f64::INFINITY,
        parts: options.max_subcompactions,
    })
}

/// Picks the job that the policy picks.
pub(super) fn pick(tree: &Tree, options: &Options, now_secs: f64) -> Option<Job> {
    let job = tree.with_policy_state(now_secs as u64, |state| policy_of(options).pick(state))?;
    debug_assert!(job.output_level < options.num_levels, "found a job into level {}", job.output_level);
    let inputs = job.inputs.into_iter().map(|input| input_of(tree, input));
    Some(Job {
        kind: job.kind,
        reason: reason_of(job.reason),
        inputs: inputs.collect(),
        output_level: job.output_level,
        output_run: job.output_run,
        target_bytes: job.table_bytes,
        smallest: job.smallest,
        largest: job.largest,
        cuts: job.cuts,
        parts: job.boundaries.len() + 1,
    })
}

/// Returns an input with the range of its files.
fn input_of(tree: &Tree, input: policy::Input) -> Input {
    let run = tree.level(input.level).runs.iter().find(|run| run.id == input.run);
    let files = || run.into_iter().flat_map(|run| &run.files);
    let bound = |number: Option<&u64>| files().find(|file| Some(&file.number) == number);
    let smallest = bound(input.tables.first()).map_or(0, |file| file.smallest);
    let largest = bound(input.tables.last()).map_or(0, |file| file.largest);
    debug_assert!(smallest <= largest, "found tables {:?} out of key order", input.tables);
    Input { level: input.level, run: input.run, files: input.tables, range: (smallest, largest) }
}

fn reason_of(reason: policy::Reason) -> Reason {
    match reason {
        policy::Reason::LevelZero { .. } => Reason::LevelZero,
        policy::Reason::WithinLevelZero { .. } => Reason::WithinLevelZero,
        policy::Reason::Score { .. } => Reason::LevelSize,
        policy::Reason::Runs { .. } => Reason::Runs,
        policy::Reason::SizeRatio { .. } => Reason::SizeRatio,
        policy::Reason::SpaceAmplification { .. } => Reason::SpaceAmplification,
        policy::Reason::Tombstones => Reason::Tombstones,
        policy::Reason::Size { .. } => Reason::Size,
        policy::Reason::Expired | policy::Reason::Age => Reason::Age,
        // Nothing marks a simulated table, and nobody asks for a range to be compacted.
        other => {
            debug_assert!(false, "found a job because of {other}, expected one of a simulation");
            Reason::Runs
        }
    }
}

/// Returns the policy's estimate of the bytes that compactions have yet to read and write.
pub(super) fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    tree.with_policy_state(0, |state| policy_of(options).scores(state)).debt_bytes
}

/// Returns the target sizes of leveled levels, from level 0.
pub(super) fn level_targets(tree: &Tree, options: &Options) -> Vec<u64> {
    let targets = targets(tree, options);
    debug_assert_eq!(targets.last + 1, options.num_levels, "the policy knows all levels and no others");
    let below = (1..options.num_levels).map(|level| targets.of(level));
    std::iter::once(targets.level_zero_bytes).chain(below).collect()
}

/// Returns the level that level 0 of a leveled tree is merged into.
pub(super) fn base_level(tree: &Tree, options: &Options) -> usize {
    targets(tree, options).base
}

fn targets(tree: &Tree, options: &Options) -> LevelTargets {
    tree.with_policy_state(0, |state| leveled(options).targets(state))
}
