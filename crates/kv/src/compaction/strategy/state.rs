//! A strategy's view of a keyspace: tables, runs and levels as plain values.

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableInfo<'a> {
    /// Its file number.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its first key.
    pub smallest: &'a [u8],
    /// Its last key, inclusive.
    pub largest: &'a [u8],
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
    /// Time when its first entry expires, in seconds since the Unix epoch; `u64::MAX` for never.
    pub expires_secs: u64,
    /// A running job reads it.
    pub compacting: bool,
    /// The store wants it rewritten, for example because of the blob files that it refers to.
    pub marked: bool,
}

impl TableInfo<'_> {
    /// Returns the share of tombstones among its entries.
    pub fn tombstone_ratio(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.tombstones as f64 / self.entries as f64 }
    }

    /// Returns true if the key ranges overlap.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.smallest <= largest && smallest <= self.largest
    }
}

/// A sorted run: tables in key order with disjoint ranges, and all versions of a key in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo<'a> {
    /// Higher ids are newer within a level.
    pub id: u64,
    /// The tables; at least one.
    pub tables: Vec<TableInfo<'a>>,
}

impl<'a> RunInfo<'a> {
    /// Returns the total bytes of its tables.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Returns true if a running job reads one of the tables.
    pub fn is_compacting(&self) -> bool {
        self.tables.iter().any(|table| table.compacting)
    }

    /// Returns the tables that overlap the range, in order.
    pub fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> &[TableInfo<'a>] {
        let from = self.tables.partition_point(|table| table.largest < smallest);
        let to = self.tables.partition_point(|table| table.smallest <= largest);
        self.tables.get(from..to).unwrap_or(&[])
    }
}

/// A level: runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelInfo<'a> {
    /// The runs. Leveled levels have at most one.
    pub runs: Vec<RunInfo<'a>>,
}

impl<'a> LevelInfo<'a> {
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
    pub fn tables(&self) -> impl Iterator<Item = &TableInfo<'a>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    /// Returns the tables of all runs that overlap the range.
    pub fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> impl Iterator<Item = &TableInfo<'a>> {
        self.runs.iter().flat_map(move |run| run.overlapping(smallest, largest))
    }
}

/// The output range of a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningJob<'a> {
    /// The level that it writes to.
    pub output_level: usize,
    /// The first key of its inputs.
    pub smallest: &'a [u8],
    /// The last key of its inputs.
    pub largest: &'a [u8],
}

/// The state of a keyspace at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State<'a> {
    /// The levels from 0 on.
    pub levels: Vec<LevelInfo<'a>>,
    /// The running jobs. The tables that they read have `compacting` set.
    pub running: Vec<RunningJob<'a>>,
    /// The current time in seconds since the Unix epoch.
    pub now_secs: u64,
    /// The oldest snapshot's sequence number; `None` without snapshots. Tombstones above it cannot
    /// be dropped.
    pub oldest_snapshot: Option<u64>,
    /// True when no write has arrived for a while. Compactions that save space at the cost of
    /// writes are then appropriate.
    pub idle: bool,
}

impl<'a> State<'a> {
    /// Returns a level. A level beyond the last one is empty.
    pub fn level(&self, level: usize) -> &LevelInfo<'a> {
        static NONE: LevelInfo<'static> = LevelInfo { runs: Vec::new() };
        self.levels.get(level).unwrap_or(&NONE)
    }

    /// Returns the total bytes of all levels.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(LevelInfo::bytes).sum()
    }

    /// Returns true if a level has tables, or will have when a running job ends.
    pub fn is_used(&self, level: usize) -> bool {
        !self.level(level).runs.is_empty() || self.running.iter().any(|job| job.output_level == level)
    }

    /// Returns true if a running job writes to this range of a level.
    pub fn is_written(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        self.running
            .iter()
            .any(|job| job.output_level == level && job.smallest <= largest && smallest <= job.largest)
    }

    /// Returns true if a level below has tables that overlap the range.
    pub fn has_below(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        self.levels.iter().skip(level + 1).any(|level| level.overlapping(smallest, largest).next().is_some())
    }
}
