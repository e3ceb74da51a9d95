//! A small tree with keys and tombstones that runs jobs and checks them.

use std::collections::{BTreeMap, BTreeSet};

use crate::bytes::{Job, JobKind, LevelInfo, RunInfo, RunningJob, State, Strategy, TableInfo};

/// Bytes per entry.
pub const ENTRY_BYTES: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub seqno: u64,
    pub is_tombstone: bool,
}

#[derive(Debug, Clone)]
pub struct Table {
    pub number: u64,
    pub entries: BTreeMap<u16, Entry>,
    smallest: [u8; 2],
    largest: [u8; 2],
    pub compacting: bool,
    pub marked: bool,
    pub oldest_secs: u64,
    pub expires_secs: u64,
}

#[derive(Debug, Clone)]
pub struct Run {
    pub id: u64,
    pub tables: Vec<Table>,
}

/// The tree, the running jobs, and the expected result of a lookup for each key.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    pub levels: Vec<Vec<Run>>,
    pub running: Vec<Job>,
    pub model: BTreeMap<u16, Entry>,
    pub seqno: u64,
    pub next_number: u64,
    pub oldest_snapshot: Option<u64>,
    pub idle: bool,
    pub now_secs: u64,
    pub moved: usize,
    pub merged: usize,
}

impl Tree {
    fn table(&mut self, entries: BTreeMap<u16, Entry>) -> Table {
        self.next_number += 1;
        let (first, last) = (entries.keys().next().unwrap(), entries.keys().next_back().unwrap());
        Table {
            number: self.next_number,
            smallest: first.to_be_bytes(),
            largest: last.to_be_bytes(),
            entries,
            compacting: false,
            marked: false,
            oldest_secs: self.now_secs,
            expires_secs: u64::MAX,
        }
    }

    /// Adds a new run to level 0.
    pub fn flush(&mut self, keys: impl IntoIterator<Item = (u16, bool)>) {
        let mut entries = BTreeMap::new();
        for (key, is_tombstone) in keys {
            self.seqno += 1;
            entries.insert(key, Entry { seqno: self.seqno, is_tombstone });
        }
        if entries.is_empty() {
            return;
        }
        self.model.extend(entries.clone());
        let table = self.table(entries);
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].insert(0, Run { id: table.number, tables: vec![table] });
    }

    pub fn with_state<T>(&self, look: impl FnOnce(&State<'_>) -> T) -> T {
        let levels = self.levels.iter().map(|runs| LevelInfo { runs: runs.iter().map(info).collect() });
        let running = self.running.iter().map(|job| RunningJob {
            output_level: job.output_level,
            smallest: &job.smallest,
            largest: &job.largest,
        });
        look(&State {
            levels: levels.collect(),
            running: running.collect(),
            now_secs: self.now_secs,
            oldest_snapshot: self.oldest_snapshot,
            idle: self.idle,
        })
    }

    pub fn pick(&self, strategy: &dyn Strategy) -> Option<Job> {
        self.with_state(|state| {
            let job = strategy.pick(state);
            assert_eq!(strategy.pick(state), job, "equal states, equal answers");
            let scores = strategy.scores(state);
            assert!(scores.levels.iter().all(|level| level.score.is_finite() && level.score >= 0.0));
            job
        })
    }

    /// Marks a job's tables, and checks the job against the tree.
    pub fn start(&mut self, job: Job) {
        assert!(!job.inputs.is_empty() && job.smallest <= job.largest);
        let wanted: BTreeSet<u64> =
            job.inputs.iter().flat_map(|input| input.tables.iter().copied()).collect();
        let count: usize = job.inputs.iter().map(|input| input.tables.len()).sum();
        assert_eq!(wanted.len(), count, "no table twice");
        let mut bytes = 0;
        for input in &job.inputs {
            let run = self.levels[input.level].iter_mut().find(|run| run.id == input.run).unwrap();
            for table in run.tables.iter_mut().filter(|table| input.tables.contains(&table.number)) {
                assert!(!table.compacting, "two jobs for one table");
                assert!(job.smallest[..] <= table.smallest[..] && table.largest[..] <= job.largest[..]);
                table.compacting = true;
                bytes += table.entries.len() as u64 * ENTRY_BYTES;
            }
        }
        assert_eq!(bytes, job.input_bytes);
        for other in &self.running {
            let apart = other.largest < job.smallest || job.largest < other.smallest;
            assert!(apart || other.output_level != job.output_level, "two jobs write to one place");
        }
        for keys in [&job.cuts, &job.boundaries] {
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert!(keys.iter().all(|key| *key > job.smallest && *key <= job.largest));
        }
        self.running.push(job);
    }

    /// Completes a running job, and checks the tree after it.
    pub fn finish(&mut self, at: usize) {
        let job = self.running.remove(at);
        let mut taken: Vec<Table> = Vec::new();
        for (level, runs) in self.levels.iter_mut().enumerate() {
            for run in runs.iter_mut() {
                let inputs = job.inputs.iter().filter(|input| input.level == level && input.run == run.id);
                let numbers: BTreeSet<u64> = inputs.flat_map(|input| input.tables.iter().copied()).collect();
                taken.extend(run.tables.extract_if(.., |table| numbers.contains(&table.number)));
            }
            runs.retain(|run| !run.tables.is_empty());
        }
        let outputs = match job.kind {
            JobKind::Drop => {
                for (key, entry) in taken.iter().flat_map(|table| &table.entries) {
                    self.model.retain(|other, newest| other != key || newest != entry);
                }
                Vec::new()
            }
            JobKind::Move => {
                self.moved += 1;
                taken.into_iter().map(|table| Table { compacting: false, ..table }).collect()
            }
            JobKind::Merge => {
                self.merged += 1;
                self.merge(&job, &taken)
            }
        };
        if !outputs.is_empty() {
            while self.levels.len() <= job.output_level {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[job.output_level];
            match level.iter_mut().find(|run| run.id == job.output_run) {
                Some(run) => run.tables.extend(outputs),
                None => level.push(Run { id: job.output_run, tables: outputs }),
            }
            level.sort_by_key(|run| std::cmp::Reverse(run.id));
        }
        let done = (job.reason, job.kind, &job.inputs, job.output_level, job.output_run);
        self.check_runs(&format!("{done:?}"));
        self.check();
    }

    fn check_runs(&self, done: &str) {
        for run in self.levels.iter().flatten() {
            let mut tables: Vec<&Table> = run.tables.iter().collect();
            tables.sort_by_key(|table| table.smallest);
            assert!(
                tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest),
                "a run overlaps after {done}"
            );
        }
    }

    fn merge(&mut self, job: &Job, taken: &[Table]) -> Vec<Table> {
        let mut merged: BTreeMap<u16, Entry> = BTreeMap::new();
        for (&key, &entry) in taken.iter().flat_map(|table| &table.entries) {
            merged
                .entry(key)
                .and_modify(|it| {
                    if it.seqno < entry.seqno {
                        *it = entry
                    }
                })
                .or_insert(entry);
        }
        if job.bottommost {
            let is_seen = |entry: &Entry| self.oldest_snapshot.is_none_or(|oldest| entry.seqno <= oldest);
            merged.retain(|_, entry| !entry.is_tombstone || !is_seen(entry));
        }
        let mut outputs = Vec::new();
        let mut piece = BTreeMap::new();
        for (key, entry) in merged {
            let is_cut = job.cuts.iter().any(|cut| cut[..] == key.to_be_bytes());
            let is_full = piece.len() as u64 * ENTRY_BYTES >= job.table_bytes;
            if !piece.is_empty() && (is_full || is_cut) {
                outputs.push(self.table(std::mem::take(&mut piece)));
            }
            piece.insert(key, entry);
        }
        if !piece.is_empty() {
            outputs.push(self.table(piece));
        }
        outputs
    }

    /// Checks that runs are disjoint and ordered, and that each key's lookup finds the newest
    /// version.
    pub fn check(&self) {
        let mut found: BTreeMap<u16, Entry> = BTreeMap::new();
        for level in &self.levels {
            assert!(level.is_sorted_by(|a, b| a.id > b.id), "ids fall");
            for run in level {
                for (&key, &entry) in run.tables.iter().flat_map(|table| &table.entries) {
                    found.entry(key).or_insert(entry);
                }
            }
        }
        for (key, newest) in &self.model {
            let seen = found.get(key).filter(|entry| !entry.is_tombstone);
            let expected = Some(newest).filter(|entry| !entry.is_tombstone);
            assert_eq!(seen, expected, "key {key}");
        }
    }

    /// Runs jobs one after the other until none is left.
    pub fn settle(&mut self, strategy: &dyn Strategy) {
        while !self.running.is_empty() {
            self.finish(0);
        }
        let mut jobs = Vec::new();
        while let Some(job) = self.pick(strategy) {
            jobs.push(job.reason);
            assert!(jobs.len() < 3000, "{} finds no end: {:?}", strategy.name(), &jobs[2950..]);
            self.start(job);
            self.finish(0);
        }
    }

    pub fn entries(&self) -> usize {
        self.tables().map(|table| table.entries.len()).sum()
    }

    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.levels.iter().flatten().flat_map(|run| &run.tables)
    }

    pub fn tables_mut(&mut self) -> impl Iterator<Item = &mut Table> {
        self.levels.iter_mut().flatten().flat_map(|run| &mut run.tables)
    }
}

fn info(run: &Run) -> RunInfo<'_> {
    let mut tables: Vec<TableInfo<'_>> = run
        .tables
        .iter()
        .map(|table| TableInfo {
            number: table.number,
            bytes: table.entries.len() as u64 * ENTRY_BYTES,
            smallest: &table.smallest,
            largest: &table.largest,
            entries: table.entries.len() as u64,
            tombstones: table.entries.values().filter(|entry| entry.is_tombstone).count() as u64,
            seqnos: (
                table.entries.values().map(|entry| entry.seqno).min().unwrap(),
                table.entries.values().map(|entry| entry.seqno).max().unwrap(),
            ),
            oldest_secs: table.oldest_secs,
            newest_secs: table.oldest_secs,
            expires_secs: table.expires_secs,
            compacting: table.compacting,
            marked: table.marked,
        })
        .collect();
    tables.sort_by_key(|table| table.smallest);
    RunInfo { id: run.id, tables }
}
