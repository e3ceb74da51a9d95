//! Compaction jobs, which the strategies choose.

use std::fmt;

use super::overlap::hull;
use super::state::{State, TableInfo};

/// The reason why a job was chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Level 0 has enough runs or bytes.
    LevelZero {
        /// Number of runs in level 0.
        runs: usize,
        /// Bytes in level 0.
        bytes: u64,
    },
    /// Level 0 has too many runs and cannot be merged down now.
    WithinLevelZero {
        /// Number of runs in level 0.
        runs: usize,
    },
    /// A level is above its target size.
    Score {
        /// The level.
        level: usize,
        /// Its size divided by its target.
        score: f64,
    },
    /// A level has more runs than the strategy allows.
    Runs {
        /// The level.
        level: usize,
        /// Number of runs in the level.
        runs: usize,
    },
    /// Adjacent runs have similar sizes.
    SizeRatio {
        /// Number of these runs.
        runs: usize,
    },
    /// Hidden entries take too much space.
    SpaceAmplification {
        /// Bytes above the oldest data, in percent of it.
        percent: u64,
    },
    /// A table has many tombstones.
    Tombstones,
    /// A table has entries that have expired.
    Expired,
    /// A table has been above the last level for a long time.
    Age,
    /// The store exceeds its maximal size.
    Size {
        /// Bytes of all tables.
        bytes: u64,
    },
    /// The store marked the table for compaction.
    Marked,
    /// The user requested a compaction of the range.
    Manual,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::LevelZero { runs, bytes } => write!(f, "level 0 has {runs} runs, {} MiB", bytes >> 20),
            Reason::WithinLevelZero { runs } => {
                write!(f, "level 0 has {runs} runs and cannot be merged down now")
            }
            Reason::Score { level, score } => write!(f, "level {level} is at {score:.2} of its target"),
            Reason::Runs { level, runs } => write!(f, "level {level} has {runs} runs"),
            Reason::SizeRatio { runs } => write!(f, "{runs} runs of similar size"),
            Reason::SpaceAmplification { percent } => write!(f, "space amplification of {percent} %"),
            Reason::Tombstones => f.write_str("many tombstones"),
            Reason::Expired => f.write_str("expired entries"),
            Reason::Age => f.write_str("old entries"),
            Reason::Size { bytes } => write!(f, "the store has {} MiB", bytes >> 20),
            Reason::Marked => f.write_str("marked"),
            Reason::Manual => f.write_str("asked for"),
        }
    }
}

/// The treatment of a job's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// The inputs are merged and rewritten.
    Merge,
    /// The inputs get another place in the manifest; no data is read or written.
    Move,
    /// The inputs are removed with all their entries.
    Drop,
}

/// The tables of one run that are inputs of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The level.
    pub level: usize,
    /// The run's id.
    pub run: u64,
    /// Table numbers in key order.
    pub tables: Vec<u64>,
}

/// A compaction. Jobs that run at the same time share no table, and the ranges they write do not
/// overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The treatment of the inputs.
    pub kind: JobKind,
    /// The reason for the job.
    pub reason: Reason,
    /// The inputs, newest run first.
    pub inputs: Vec<Input>,
    /// The level of the output.
    pub output_level: usize,
    /// The run of that level to which the output is added.
    pub output_run: u64,
    /// Approximate maximal size of an output table.
    pub table_bytes: u64,
    /// Bytes of all inputs.
    pub input_bytes: u64,
    /// The first key of the inputs.
    pub smallest: Vec<u8>,
    /// The last key of the inputs, inclusive.
    pub largest: Vec<u8>,
    /// True if no table outside the inputs is older and shares a key with them. Tombstones that no
    /// snapshot needs can then be dropped.
    pub bottommost: bool,
    /// Keys at which a new output table must begin. They limit how much of the level below an
    /// output table overlaps.
    pub cuts: Vec<Vec<u8>>,
    /// Keys that split the work into parts of similar size for parallel threads.
    pub boundaries: Vec<Vec<u8>>,
}

/// A job being built: the chosen tables by level and run.
pub(super) struct Draft<'s, 'a> {
    pub(super) reason: Reason,
    /// Level, run, and tables in key order; newest run first.
    pub(super) inputs: Vec<(usize, u64, Vec<&'s TableInfo<'a>>)>,
    pub(super) output_level: usize,
    pub(super) output_run: u64,
}

impl<'s, 'a> Draft<'s, 'a> {
    pub(super) fn tables(&self) -> impl Iterator<Item = &'s TableInfo<'a>> + Clone {
        self.inputs.iter().flat_map(|(_, _, tables)| tables.iter().copied())
    }

    /// Returns the job, or `None` if it cannot start now because a table is in use or another job
    /// writes to the same place.
    pub(super) fn finish(mut self, state: &State<'_>, shape: Shape) -> Option<Job> {
        self.inputs.retain(|(_, _, tables)| !tables.is_empty());
        let (smallest, largest) = hull(self.tables())?;
        let in_use = self.tables().any(|table| table.compacting);
        if in_use || state.is_written(self.output_level, smallest, largest) {
            return None;
        }
        let bottommost = self.is_bottommost(state, smallest, largest);
        let input_bytes = self.tables().map(|table| table.bytes).sum();
        let boundaries = self.boundaries(shape.parts, input_bytes);
        let inputs = self.inputs.iter().map(|(level, run, tables)| Input {
            level: *level,
            run: *run,
            tables: tables.iter().map(|table| table.number).collect(),
        });
        Some(Job {
            kind: shape.kind,
            reason: self.reason,
            inputs: inputs.collect(),
            output_level: self.output_level,
            output_run: self.output_run,
            table_bytes: shape.table_bytes,
            input_bytes,
            smallest: smallest.to_vec(),
            largest: largest.to_vec(),
            bottommost,
            cuts: cuts(state, self.output_level, smallest, largest, shape.overlap_bytes_max),
            boundaries,
        })
    }

    /// Returns true if no table outside the job is older than the output and has a key in its
    /// range.
    fn is_bottommost(&self, state: &State<'_>, smallest: &[u8], largest: &[u8]) -> bool {
        let is_input = |number: u64| self.tables().any(|table| table.number == number);
        let oldest = self.inputs.iter().map(|(level, run, _)| (*level, std::cmp::Reverse(*run))).max();
        let Some((oldest_level, std::cmp::Reverse(oldest_run))) = oldest else { return false };
        state.levels.iter().enumerate().skip(oldest_level).all(|(at, level)| {
            let older = level.runs.iter().filter(|run| at > oldest_level || run.id < oldest_run);
            older.flat_map(|run| run.overlapping(smallest, largest)).all(|table| is_input(table.number))
        })
    }

    /// Returns first keys of tables of the largest input, spread evenly over it.
    fn boundaries(&self, parts: usize, input_bytes: u64) -> Vec<Vec<u8>> {
        let tables = self.inputs.iter().map(|(_, _, tables)| tables).max_by_key(|tables| tables.len());
        let Some(tables) = tables.filter(|_| parts > 1 && input_bytes > 0) else { return Vec::new() };
        let total: u64 = tables.iter().map(|table| table.bytes).sum();
        let mut boundaries: Vec<Vec<u8>> = Vec::new();
        let mut before = 0;
        for table in tables {
            let due = total * (boundaries.len() as u64 + 1) / parts as u64;
            if before >= due && before > 0 && boundaries.len() + 1 < parts {
                boundaries.push(table.smallest.to_vec());
            }
            before += table.bytes;
        }
        boundaries
    }
}

/// The settings shared by all jobs of a strategy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) kind: JobKind,
    pub(super) table_bytes: u64,
    pub(super) overlap_bytes_max: u64,
    pub(super) parts: usize,
}

/// Returns keys of the level below the output, each after at least `bytes_max` of that level since
/// the previous one.
fn cuts(state: &State<'_>, level: usize, smallest: &[u8], largest: &[u8], bytes_max: u64) -> Vec<Vec<u8>> {
    let below = state.level(level + 1);
    let [run] = &below.runs[..] else { return Vec::new() };
    let mut cuts = Vec::new();
    let mut bytes = 0;
    for table in run.overlapping(smallest, largest) {
        if bytes >= bytes_max && table.smallest > smallest {
            cuts.push(table.smallest.to_vec());
            bytes = 0;
        }
        bytes += table.bytes;
    }
    cuts
}
