//! Compaction picking: decides which files are merged, and when. Each compaction style has a file
//! with a function from a tree to a job.
//!
//! The rules of RocksDB's compaction pickers are rewritten here for sampled keys. Those of Cairn
//! are not: `kv.rs` asks the policies that `cairn kv` itself runs.

mod fifo;
mod inputs;
mod kv;
mod leveled;
mod order;
mod targets;
#[cfg(test)]
pub(crate) mod tests;
mod universal;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use cairn_lsm_policy::JobKind;
pub use targets::Targets;

use crate::options::{CompactionStyle, Engine, Options};
use crate::tree::{File, Input, Running, Tree};

/// The reason for which a job was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Level 0 has enough files or bytes.
    LevelZero,
    /// Level 0 has many files that cannot be merged down now, or only at too high a cost.
    WithinLevelZero,
    /// A level is above its target.
    LevelSize,
    /// The newer runs are too large in proportion to the oldest.
    SpaceAmplification,
    /// Runs of similar size.
    SizeRatio,
    /// Too many runs.
    Runs,
    /// The store is larger than its limit.
    Size,
    /// Files are older than their limit.
    Age,
    /// Files have many tombstones.
    Tombstones,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::LevelZero => "level 0 is full",
            Reason::WithinLevelZero => "level 0 is long and cannot go down now",
            Reason::LevelSize => "a level is above its target size",
            Reason::SpaceAmplification => "space amplification is above its limit",
            Reason::SizeRatio => "runs of similar size",
            Reason::Runs => "too many sorted runs",
            Reason::Size => "the store is above its size",
            Reason::Age => "data is older than its time to live",
            Reason::Tombstones => "many tombstones",
        })
    }
}

/// A compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The treatment of the inputs.
    pub kind: JobKind,
    /// The reason for it.
    pub reason: Reason,
    /// The input files, newest first.
    pub inputs: Vec<Input>,
    /// The level of the output.
    pub output_level: usize,
    /// The run that the output joins.
    pub output_run: u64,
    /// The target size of output files.
    pub target_bytes: u64,
    /// The smallest id of the inputs.
    pub smallest: u32,
    /// The largest id of the inputs.
    pub largest: u32,
    /// Keys at which an output file of Cairn must begin.
    pub cuts: Vec<u32>,
    /// The number of parts that Cairn splits the job into for parallel threads.
    pub parts: usize,
}

impl Job {
    /// Returns the record by which later picks avoid this job's key range.
    pub fn running(&self, job: u64) -> Running {
        Running {
            job,
            from_level: self.inputs.first().map_or(0, |input| input.level),
            output_level: self.output_level,
            smallest: self.smallest,
            largest: self.largest,
        }
    }
}

/// An unfinished job: level, run and files of each input, newest first.
struct Draft<'t> {
    reason: Reason,
    inputs: Vec<(usize, u64, Vec<&'t File>)>,
    output_level: usize,
    output_run: u64,
}

impl Draft<'_> {
    /// Panics if the job would put newer entries below older ones.
    fn assert_ordered(&self, kind: JobKind) {
        for (level, run, files) in &self.inputs {
            assert!(
                kind == JobKind::Drop || *level <= self.output_level,
                "found an input of level {level} for an output in level {}",
                self.output_level
            );
            debug_assert!(
                files.is_sorted_by(|a, b| a.largest < b.smallest),
                "found files of run {run} of level {level} out of key order"
            );
        }
        debug_assert!(
            self.inputs.is_sorted_by(|a, b| (a.0, b.1) < (b.0, a.1)),
            "found inputs out of order of age for a job because {}",
            self.reason
        );
    }

    /// Returns the job, or `None` if an input is in use or another job writes to the same key
    /// range.
    fn finish(mut self, tree: &Tree, kind: JobKind, target_bytes: u64) -> Option<Job> {
        self.inputs.retain(|(_, _, files)| !files.is_empty());
        let all = || self.inputs.iter().flat_map(|(_, _, files)| files.iter());
        let smallest = all().map(|file| file.smallest).min()?;
        let largest = all().map(|file| file.largest).max()?;
        self.assert_ordered(kind);
        let is_taken = all().any(|file| file.compacting);
        if is_taken || (self.output_level > 0 && tree.is_written(self.output_level, smallest, largest)) {
            return None;
        }
        let inputs = self.inputs.iter().map(|(level, run, files)| Input {
            level: *level,
            run: *run,
            files: files.iter().map(|file| file.number).collect(),
            range: inputs::hull(files.iter().copied()).unwrap_or_default(),
        });
        Some(Job {
            kind,
            reason: self.reason,
            inputs: inputs.collect(),
            output_level: self.output_level,
            output_run: self.output_run,
            target_bytes,
            smallest,
            largest,
            cuts: Vec::new(),
            parts: 1,
        })
    }
}

/// Picks the next compaction. Returns `None` when nothing is due, or when running jobs hold the
/// files that are.
pub fn pick(tree: &Tree, options: &Options, now_secs: f64) -> Option<Job> {
    if options.disable_auto_compactions {
        return None;
    }
    match (options.engine, options.compaction_style) {
        (Engine::CairnKv, _) => kv::pick(tree, options, now_secs),
        (Engine::Rocksdb, CompactionStyle::Fifo) => fifo::pick(tree, options, now_secs),
        (Engine::Rocksdb, CompactionStyle::Universal) => universal::pick(tree, options),
        (Engine::Rocksdb, CompactionStyle::Leveled) => leveled::pick(tree, options, now_secs),
        // Refused by `Options::check`.
        (Engine::Rocksdb, CompactionStyle::LazyLeveled) => None,
    }
}

/// Returns the bytes that compactions have yet to read and write, by the engine's own estimate,
/// which its write controller uses. RocksDB estimates it for leveled trees only.
pub fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) => targets::debt_bytes(tree, options),
        (Engine::CairnKv, _) => kv::debt_bytes(tree, options),
        (Engine::Rocksdb, _) => 0,
    }
}

/// Returns the target size of each level, from level 0; `u64::MAX` for no limit.
pub fn level_targets(tree: &Tree, options: &Options) -> Vec<u64> {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) => Targets::new(tree, options).bytes,
        (Engine::CairnKv, CompactionStyle::Leveled) => kv::level_targets(tree, options),
        _ => vec![u64::MAX; tree.levels.len()],
    }
}

/// Returns the level that level 0 is merged into.
pub fn base_level(tree: &Tree, options: &Options) -> usize {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) if options.level_compaction_dynamic_level_bytes => {
            Targets::new(tree, options).base
        }
        (Engine::CairnKv, CompactionStyle::Leveled) => kv::base_level(tree, options),
        _ => 1.min(options.num_levels - 1),
    }
}
