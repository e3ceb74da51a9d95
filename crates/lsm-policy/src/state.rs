//! A strategy's view of a keyspace: tables, runs and levels as plain values.

use crate::Key;

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableInfo<K> {
    /// Its file number.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its first key.
    pub smallest: K,
    /// Its last key, inclusive.
    pub largest: K,
    /// Number of entries, including tombstones.
    pub entries: u64,
    /// Number of tombstones among the entries.
    pub tombstones: u64,
    /// The lowest and the highest sequence number in it.
    pub seqnos: (u64, u64),
    /// Time when its oldest entry was written, in seconds since the Unix epoch.
    pub oldest_secs: u64,
    /// Time when its newest entry was written.
    pub newest_secs: u64,
    /// Earliest time when one of its entries expires, in seconds since the Unix epoch; `u64::MAX`
    /// for never.
    pub expires_secs: u64,
    /// A running job reads it.
    pub compacting: bool,
    /// The store wants it rewritten, for example because of the blob files that it refers to.
    pub marked: bool,
}

impl<K: Key> TableInfo<K> {
    /// Returns the share of tombstones among its entries.
    pub fn tombstone_ratio(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.tombstones as f64 / self.entries as f64 }
    }

    /// Returns true if the key ranges overlap.
    pub fn overlaps(&self, smallest: K, largest: K) -> bool {
        self.smallest <= largest && smallest <= self.largest
    }
}

/// A sorted run: tables in key order with disjoint ranges, and all versions of a key in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo<K> {
    /// Higher ids are newer within a level.
    pub id: u64,
    /// The tables; at least one.
    pub tables: Vec<TableInfo<K>>,
}

impl<K: Key> RunInfo<K> {
    /// Returns the total bytes of its tables.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Returns true if a running job reads one of the tables.
    pub fn is_compacting(&self) -> bool {
        self.tables.iter().any(|table| table.compacting)
    }

    /// Returns the tables that overlap the range, in order.
    pub fn overlapping(&self, smallest: K, largest: K) -> &[TableInfo<K>] {
        let from = self.tables.partition_point(|table| table.largest < smallest);
        let to = self.tables.partition_point(|table| table.smallest <= largest);
        debug_assert!(smallest > largest || from <= to, "found tables of run {} out of key order", self.id);
        let found = self.tables.get(from..to).unwrap_or(&[]);
        debug_assert!(
            found.first().into_iter().chain(found.last()).all(|table| table.overlaps(smallest, largest)),
            "found tables of run {} outside of {smallest:?}..={largest:?}",
            self.id
        );
        found
    }
}

/// A level: runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelInfo<K> {
    /// The runs. Leveled levels have at most one.
    pub runs: Vec<RunInfo<K>>,
}

impl<K: Key> LevelInfo<K> {
    /// Returns the total bytes of its tables.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(RunInfo::bytes).sum()
    }

    /// Returns the id of the oldest run. For an empty level it returns 0, which is the id of a
    /// first run.
    pub fn bottom_run(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.id)
    }

    /// Returns all tables, run by run.
    pub fn tables(&self) -> impl Iterator<Item = &TableInfo<K>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    /// Returns the tables of all runs that overlap the range.
    pub fn overlapping(&self, smallest: K, largest: K) -> impl Iterator<Item = &TableInfo<K>> {
        self.runs.iter().flat_map(move |run| run.overlapping(smallest, largest))
    }
}

/// The output range of a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningJob<K> {
    /// The level that it writes to.
    pub output_level: usize,
    /// The first key of its inputs.
    pub smallest: K,
    /// The last key of its inputs.
    pub largest: K,
}

/// The state of a keyspace at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State<K> {
    /// The levels from 0 on.
    pub levels: Vec<LevelInfo<K>>,
    /// The running jobs. The tables that they read have `compacting` set.
    pub running: Vec<RunningJob<K>>,
    /// The current time in seconds since the Unix epoch.
    pub now_secs: u64,
    /// The oldest snapshot's sequence number; `None` without snapshots. Tombstones above it cannot
    /// be dropped.
    pub oldest_snapshot: Option<u64>,
    /// True when no write has arrived for a while. Compactions that save space at the cost of
    /// writes are then appropriate.
    pub idle: bool,
}

impl<K: Key> State<K> {
    /// Returns a level. A level beyond the last one is empty.
    pub fn level(&self, level: usize) -> &LevelInfo<K> {
        self.levels.get(level).unwrap_or(const { &LevelInfo { runs: Vec::new() } })
    }

    /// Returns the total bytes of all levels.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(LevelInfo::bytes).sum()
    }

    /// Returns true if a level has tables, or will have when a running job ends.
    pub fn is_used(&self, level: usize) -> bool {
        !self.level(level).runs.is_empty() || self.running.iter().any(|job| job.output_level == level)
    }

    /// Returns a description of the first of these that does not hold: runs of a level are newest
    /// first and not empty, their tables are in key order and share at most a bound, and no two
    /// running jobs write to one range. Policies rely on it.
    pub fn broken_invariant(&self) -> Option<String> {
        for (at, level) in self.levels.iter().enumerate() {
            if !level.runs.is_sorted_by(|a, b| a.id > b.id) {
                return Some(format!("level {at}: runs are not newest first"));
            }
            for run in &level.runs {
                let is_ordered = run.tables.is_sorted_by(|a, b| a.largest <= b.smallest);
                if run.tables.is_empty() || !is_ordered {
                    return Some(format!("level {at}, run {}: no tables, or not in key order", run.id));
                }
                if let Some(table) = run.tables.iter().find(|table| table.smallest > table.largest) {
                    return Some(format!("table {}: its first key is after its last", table.number));
                }
            }
        }
        let meet = |a: &RunningJob<K>, b: &RunningJob<K>| {
            a.output_level == b.output_level && a.smallest <= b.largest && b.smallest <= a.largest
        };
        let mut rest = &self.running[..];
        while let Some((first, others)) = rest.split_first() {
            if others.iter().any(|other| meet(first, other)) {
                return Some(format!("level {}: two jobs write to one range", first.output_level));
            }
            rest = others;
        }
        None
    }

    /// Returns true if a running job writes to this range of a level.
    pub fn is_written(&self, level: usize, smallest: K, largest: K) -> bool {
        debug_assert!(
            smallest <= largest,
            "found the range {smallest:?}..={largest:?}, expected it in order"
        );
        self.running
            .iter()
            .any(|job| job.output_level == level && job.smallest <= largest && smallest <= job.largest)
    }

    /// Returns true if a level below has tables that overlap the range.
    pub fn has_below(&self, level: usize, smallest: K, largest: K) -> bool {
        debug_assert!(
            smallest <= largest,
            "found the range {smallest:?}..={largest:?}, expected it in order"
        );
        self.levels.iter().skip(level + 1).any(|level| level.overlapping(smallest, largest).next().is_some())
    }
}
