//! Which files are merged when: one file for each family of rules, each a function from a tree to a
//! job.
//!
//! The rules are those of RocksDB's compaction pickers and of Cairn's strategies, told anew over
//! followed keys.

mod cairn;
mod fifo;
mod inputs;
mod lazy;
mod leveled;
mod order;
mod targets;
#[cfg(test)]
pub(crate) mod tests;
mod universal;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use cairn::overlap_bytes_max;
pub use targets::Targets;

use crate::options::{CompactionStyle, Engine, Options};
use crate::tree::{File, Input, Running, Tree};

/// Why a job was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Level 0 has enough files or bytes.
    LevelZero,
    /// Level 0 is long and cannot go down now, or the way down would cost too much.
    WithinLevelZero,
    /// A level is above its target.
    LevelSize,
    /// Newer runs take too much space beside the oldest.
    SpaceAmplification,
    /// Runs of similar size.
    SizeRatio,
    /// Too many runs.
    Runs,
    /// The store is larger than allowed.
    Size,
    /// Files are older than allowed.
    Age,
    /// Many tombstones.
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

/// What happens to a job's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Merged and written anew.
    Merge,
    /// Given another level; nothing is read or written.
    Move,
    /// Removed with all they hold.
    Drop,
}

/// A compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What happens.
    pub kind: Kind,
    /// Why.
    pub reason: Reason,
    /// What is taken, newest first.
    pub inputs: Vec<Input>,
    /// Where the output goes.
    pub output_level: usize,
    /// The run that it becomes part of.
    pub output_run: u64,
    /// The size that files should have.
    pub target_bytes: u64,
    /// The first id of the inputs.
    pub smallest: u32,
    /// The last id of the inputs.
    pub largest: u32,
}

impl Job {
    /// For those that are picked beside it.
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

/// A job in the making: level, run and files of each input, newest first.
struct Draft<'t> {
    reason: Reason,
    inputs: Vec<(usize, u64, Vec<&'t File>)>,
    output_level: usize,
    output_run: u64,
}

impl Draft<'_> {
    /// The job, unless a file is in use or another job writes to the same place.
    fn finish(mut self, tree: &Tree, kind: Kind, target_bytes: u64) -> Option<Job> {
        self.inputs.retain(|(_, _, files)| !files.is_empty());
        let all = || self.inputs.iter().flat_map(|(_, _, files)| files.iter());
        let smallest = all().map(|file| file.smallest).min()?;
        let largest = all().map(|file| file.largest).max()?;
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
        })
    }
}

/// The next compaction that the rules ask for; `None` when nothing is due, or nothing that running
/// jobs leave room for.
pub fn pick(tree: &Tree, options: &Options, now_secs: f64) -> Option<Job> {
    if options.disable_auto_compactions {
        return None;
    }
    match (options.engine, options.compaction_style) {
        (_, CompactionStyle::Fifo) => fifo::pick(tree, options, now_secs),
        (_, CompactionStyle::LazyLeveled) => lazy::pick(tree, options),
        (_, CompactionStyle::Universal) => universal::pick(tree, options),
        (Engine::Rocksdb, CompactionStyle::Leveled) => leveled::pick(tree, options, now_secs),
        (Engine::CairnKv, CompactionStyle::Leveled) => cairn::pick(tree, options),
    }
}

/// Bytes that compactions have yet to read and write, by the engine's own estimate, which is what
/// its write controller looks at. RocksDB has one for leveled trees only.
pub fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) => targets::debt_bytes(tree, options),
        (Engine::CairnKv, CompactionStyle::Leveled) => cairn::debt_bytes(tree, options),
        (Engine::CairnKv, CompactionStyle::LazyLeveled) => lazy::debt_bytes(tree, options),
        (Engine::CairnKv, CompactionStyle::Universal) => universal::debt_bytes(tree, options),
        _ => 0,
    }
}

/// The size that each level should have at most, from level 0; `u64::MAX` for no limit.
pub fn level_targets(tree: &Tree, options: &Options) -> Vec<u64> {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) => Targets::new(tree, options).bytes,
        (Engine::CairnKv, CompactionStyle::Leveled) => cairn::level_targets(tree, options),
        _ => vec![u64::MAX; tree.levels.len()],
    }
}

/// The level that level 0 is merged into.
pub fn base_level(tree: &Tree, options: &Options) -> usize {
    match (options.engine, options.compaction_style) {
        (Engine::Rocksdb, CompactionStyle::Leveled) if options.level_compaction_dynamic_level_bytes => {
            Targets::new(tree, options).base
        }
        (Engine::CairnKv, CompactionStyle::Leveled) => cairn::base_level(tree, options),
        _ => 1.min(options.num_levels - 1),
    }
}
