//! What a strategy sees of a keyspace: tables, runs and levels as plain values.

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableInfo<'a> {
    /// Its number.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// Its first key.
    pub smallest: &'a [u8],
    /// Its last key, inclusive.
    pub largest: &'a [u8],
    /// Entries, tombstones counted.
    pub entries: u64,
    /// Of these, tombstones.
    pub tombstones: u64,
    /// The lowest and the highest sequence number in it.
    pub seqnos: (u64, u64),
    /// When its oldest entry came, in seconds since the Unix epoch.
    pub oldest_secs: u64,
    /// The same of its newest entry.
    pub newest_secs: u64,
    /// When the first of its entries expires, in seconds since the Unix epoch; `u64::MAX` for
    /// never.
    pub expires_secs: u64,
    /// A running job reads it.
    pub compacting: bool,
    /// Its owner wants it rewritten, because of the blob files that it points into for example.
    pub marked: bool,
}

impl TableInfo<'_> {
    /// The share of its entries that are tombstones.
    pub fn tombstone_ratio(&self) -> f64 {
        if self.entries == 0 { 0.0 } else { self.tombstones as f64 / self.entries as f64 }
    }

    /// Whether the key ranges have a key in common.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        self.smallest <= largest && smallest <= self.largest
    }
}

/// A sorted run: tables in key order, disjoint, each key's versions in one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunInfo<'a> {
    /// Higher ids are newer within a level.
    pub id: u64,
    /// The tables, never none.
    pub tables: Vec<TableInfo<'a>>,
}

impl<'a> RunInfo<'a> {
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Whether a running job reads one of the tables.
    pub fn is_compacting(&self) -> bool {
        self.tables.iter().any(|table| table.compacting)
    }

    /// The tables that have a key in common with the range, in order.
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
    /// Bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(RunInfo::bytes).sum()
    }

    /// The id of the oldest run; 0, which a first run gets, without any.
    pub fn bottom_run(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.id)
    }

    /// All tables, run by run.
    pub fn tables(&self) -> impl Iterator<Item = &TableInfo<'a>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    /// The tables of all runs that have a key in common with the range.
    pub fn overlapping(&self, smallest: &[u8], largest: &[u8]) -> impl Iterator<Item = &TableInfo<'a>> {
        self.runs.iter().flat_map(move |run| run.overlapping(smallest, largest))
    }
}

/// Where a running job puts its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningJob<'a> {
    /// The level that it writes to.
    pub output_level: usize,
    /// The first key of its inputs.
    pub smallest: &'a [u8],
    /// The last key of its inputs.
    pub largest: &'a [u8],
}

/// A keyspace at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State<'a> {
    /// The levels from 0 on.
    pub levels: Vec<LevelInfo<'a>>,
    /// Jobs under way. The tables that they read have `compacting` set.
    pub running: Vec<RunningJob<'a>>,
    /// Now, in seconds since the Unix epoch.
    pub now_secs: u64,
    /// The oldest snapshot's sequence number; `None` without snapshots. Tombstones above it cannot
    /// be dropped.
    pub oldest_snapshot: Option<u64>,
    /// No write came for a while: time to do what costs writes and saves space.
    pub idle: bool,
}

impl<'a> State<'a> {
    /// A level, empty when it is beyond the last one.
    pub fn level(&self, level: usize) -> &LevelInfo<'a> {
        static NONE: LevelInfo<'static> = LevelInfo { runs: Vec::new() };
        self.levels.get(level).unwrap_or(&NONE)
    }

    /// Bytes of all levels.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().map(LevelInfo::bytes).sum()
    }

    /// Whether a level has tables, or will have when a running job ends.
    pub fn is_used(&self, level: usize) -> bool {
        !self.level(level).runs.is_empty() || self.running.iter().any(|job| job.output_level == level)
    }

    /// Whether a running job writes to this part of a level.
    pub fn is_written(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        self.running
            .iter()
            .any(|job| job.output_level == level && job.smallest <= largest && smallest <= job.largest)
    }

    /// Whether a level below has a key in common with the range.
    pub fn has_below(&self, level: usize, smallest: &[u8], largest: &[u8]) -> bool {
        self.levels.iter().skip(level + 1).any(|level| level.overlapping(smallest, largest).next().is_some())
    }
}
