//! Compaction jobs, which the strategies choose.

use std::fmt;

use super::overlap::hull;
use super::state::{State, TableInfo};
use crate::Key;

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
pub struct Job<O> {
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
    pub smallest: O,
    /// The last key of the inputs, inclusive.
    pub largest: O,
    /// True if no table outside the inputs is older and shares a key with them. Tombstones that no
    /// snapshot needs can then be dropped.
    pub bottommost: bool,
    /// Keys at which a new output table must begin. They limit how many bytes of the level below
    /// the output each table overlaps.
    pub cuts: Vec<O>,
    /// Keys that split the work into parts of similar size for parallel threads.
    pub boundaries: Vec<O>,
}

/// A job being built: the chosen tables by level and run.
pub(crate) struct Draft<'s, K> {
    pub(crate) reason: Reason,
    /// Level, run, and tables in key order; newest run first.
    pub(crate) inputs: Vec<(usize, u64, Vec<&'s TableInfo<K>>)>,
    pub(crate) output_level: usize,
    pub(crate) output_run: u64,
}

impl<'s, K: Key> Draft<'s, K> {
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'s TableInfo<K>> + Clone {
        self.inputs.iter().flat_map(|(_, _, tables)| tables.iter().copied())
    }

    /// Returns the job, or `None` if it cannot start now because a table is in use or another job
    /// writes to the same place.
    pub(crate) fn finish(mut self, state: &State<K>, shape: Shape) -> Option<Job<K::Owned>> {
        self.inputs.retain(|(_, _, tables)| !tables.is_empty());
        debug_assert_eq!(state.broken_invariant(), None, "of the state for a job because of {}", self.reason);
        self.assert_ordered(shape.kind);
        let (smallest, largest) = hull(self.tables())?;
        let in_use = self.tables().any(|table| table.compacting);
        if in_use || state.is_written(self.output_level, smallest, largest) {
            return None;
        }
        debug_assert!(
            shape.kind != JobKind::Move || self.fits_output(state),
            "found a table moved into run {} of level {}, of which it overlaps another table",
            self.output_run,
            self.output_level
        );
        let bottommost = self.is_bottommost(state, smallest, largest);
        let input_bytes = self.tables().map(|table| table.bytes).sum();
        let boundaries = self.boundaries(shape.parts, input_bytes);
        debug_assert!(boundaries.len() < shape.parts.max(1), "a job has more parts than its shape allows");
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
            smallest: smallest.owned(),
            largest: largest.owned(),
            bottommost,
            cuts: cuts(state, self.output_level, smallest, largest, shape.overlap_bytes_max),
            boundaries,
        })
    }

    /// Panics if the job would put newer data below older data, or read a table twice: readers
    /// would then find old values.
    fn assert_ordered(&self, kind: JobKind) {
        let deepest = self.inputs.iter().map(|(level, _, _)| *level).max().unwrap_or(0);
        if kind != JobKind::Drop {
            assert!(
                self.output_level >= deepest,
                "found output in level {} of inputs in level {deepest}, expected none above them",
                self.output_level
            );
            assert!(
                self.inputs.is_sorted_by(|a, b| (a.0, b.1) < (b.0, a.1)),
                "found inputs out of order of age for a job because of {}",
                self.reason
            );
        }
        for (level, run, tables) in &self.inputs {
            debug_assert!(
                tables.is_sorted_by(|a, b| a.largest <= b.smallest && a.number != b.number),
                "found tables of run {run} of level {level} out of key order"
            );
        }
        debug_assert!(self.are_tables_distinct(), "found a table twice among the inputs");
    }

    /// Returns true if the tables overlap none of the run that they are added to.
    fn fits_output(&self, state: &State<K>) -> bool {
        let mut runs = state.level(self.output_level).runs.iter().filter(|run| run.id == self.output_run);
        runs.all(|run| self.tables().all(|table| run.overlapping(table.smallest, table.largest).is_empty()))
    }

    fn are_tables_distinct(&self) -> bool {
        let mut numbers: Vec<u64> = self.tables().map(|table| table.number).collect();
        numbers.sort_unstable();
        numbers.is_sorted_by(|a, b| a < b)
    }

    /// Returns true if no table outside the job is older than the output and has a key in its
    /// range.
    fn is_bottommost(&self, state: &State<K>, smallest: K, largest: K) -> bool {
        debug_assert!(
            smallest <= largest,
            "found the range {smallest:?}..={largest:?}, expected it in order"
        );
        let is_input = |number: u64| self.tables().any(|table| table.number == number);
        let oldest = self.inputs.iter().map(|(level, run, _)| (*level, std::cmp::Reverse(*run))).max();
        let Some((oldest_level, std::cmp::Reverse(oldest_run))) = oldest else { return false };
        state.levels.iter().enumerate().skip(oldest_level).all(|(at, level)| {
            let older = level.runs.iter().filter(|run| at > oldest_level || run.id < oldest_run);
            older.flat_map(|run| run.overlapping(smallest, largest)).all(|table| is_input(table.number))
        })
    }

    /// Returns first keys of tables of the largest input, spread evenly over it.
    fn boundaries(&self, parts: usize, input_bytes: u64) -> Vec<K::Owned> {
        let tables = self.inputs.iter().map(|(_, _, tables)| tables).max_by_key(|tables| tables.len());
        let Some(tables) = tables.filter(|_| parts > 1 && input_bytes > 0) else { return Vec::new() };
        let total: u64 = tables.iter().map(|table| table.bytes).sum();
        let mut boundaries: Vec<K::Owned> = Vec::new();
        let mut before = 0;
        for table in tables {
            let due = total * (boundaries.len() as u64 + 1) / parts as u64;
            if before >= due && before > 0 && boundaries.len() + 1 < parts {
                boundaries.push(table.smallest.owned());
            }
            before += table.bytes;
        }
        debug_assert_eq!(before, total, "the parts have all bytes of the input");
        boundaries
    }
}

/// The settings shared by all jobs of a strategy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) kind: JobKind,
    pub(crate) table_bytes: u64,
    pub(crate) overlap_bytes_max: u64,
    pub(crate) parts: usize,
}

/// Returns keys of the level below the output, each after at least `bytes_max` of that level since
/// the previous one.
fn cuts<K: Key>(state: &State<K>, level: usize, smallest: K, largest: K, bytes_max: u64) -> Vec<K::Owned> {
    debug_assert!(bytes_max > 0, "a limit of 0 bytes would cut at every table");
    let below = state.level(level + 1);
    let [run] = &below.runs[..] else { return Vec::new() };
    let mut cuts = Vec::new();
    let mut bytes = 0;
    for table in run.overlapping(smallest, largest) {
        if bytes >= bytes_max && table.smallest > smallest {
            cuts.push(table.smallest.owned());
            bytes = 0;
        }
        bytes += table.bytes;
    }
    debug_assert!(cuts.len() < run.tables.len(), "found {} cuts at {} tables", cuts.len(), run.tables.len());
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{LevelInfo, RunInfo};

    /// Goal: an output table ends once it overlaps enough bytes of the next level, counted from
    /// the previous forced end. Method: tables of 40 bytes against a limit of 100, over the whole
    /// range and from the middle on.
    #[test]
    fn cuts_count_the_bytes_passed_below() {
        let table = |at: u32| TableInfo {
            number: u64::from(at),
            bytes: 40,
            smallest: at * 10,
            largest: at * 10 + 9,
            entries: 1,
            tombstones: 0,
            seqnos: (0, 0),
            oldest_secs: 0,
            newest_secs: 0,
            expires_secs: u64::MAX,
            compacting: false,
            marked: false,
        };
        let below = LevelInfo { runs: vec![RunInfo { id: 0, tables: (0..8).map(table).collect() }] };
        let state = State { levels: vec![LevelInfo::default(), below], ..State::default() };
        assert_eq!(cuts(&state, 0, 0, 99, 100), [30, 60]);
        assert_eq!(cuts(&state, 0, 25, 69, 100), [50]);
        assert_eq!(cuts(&state, 1, 0, 99, 100), [] as [u32; 0]);
    }
}
