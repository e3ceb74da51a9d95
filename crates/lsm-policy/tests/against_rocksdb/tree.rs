//! A tree of keys without values, its writers and its background threads.

use std::sync::Arc;

use cairn_lsm_policy::bytes::{Job, JobKind, LevelInfo, RunInfo, RunningJob, State, Strategy, TableInfo};
use cairn_vfs::{Rng, SeededRng};

const MIB: f64 = (1u64 << 20) as f64;
const ENTRY_BYTES: u64 = 1024;

/// From `SLOWDOWN_RUNS` runs in level 0 on, writers run at half speed; from `STOP_RUNS` on they
/// wait.
const SLOWDOWN_RUNS: usize = 20;
const STOP_RUNS: usize = 36;

/// The parameters of a replay.
#[derive(Debug, Clone)]
pub struct Settings {
    pub keys: u64,
    pub overwrites: u64,
    pub memtable_entries: usize,
    /// Speed of the writers, in entries per second.
    pub write_speed: f64,
    /// Speed of a background thread, in bytes read and written per second.
    pub thread_speed: f64,
    pub threads: usize,
}

impl Settings {
    /// Divides all sizes and speeds by `scale`, so that times stay the same.
    pub fn new(scale: u64, data_bytes: u64, overwrite_bytes: u64, write_mib_a_second: f64) -> Settings {
        Settings {
            keys: data_bytes / ENTRY_BYTES,
            overwrites: overwrite_bytes / ENTRY_BYTES,
            memtable_entries: ((64 << 20) / scale / ENTRY_BYTES) as usize,
            write_speed: write_mib_a_second * MIB / ENTRY_BYTES as f64 / scale as f64,
            thread_speed: 300.0 * MIB / scale as f64,
            threads: 2,
        }
    }
}

/// The results of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Bytes flushed and compacted per byte written: until the last write, and including settling.
    pub write_amplification: f64,
    pub settled_write_amplification: f64,
    /// Bytes of all tables divided by those of the live data: at the peak, after the last write,
    /// and after settling.
    pub peak_space: f64,
    pub space: f64,
    pub settled_space: f64,
    pub merges: usize,
    pub level_zero_max: usize,
    /// Seconds at half speed, and seconds stopped.
    pub slow_secs: f64,
    pub stopped_secs: f64,
}

#[derive(Debug, Clone)]
struct Table {
    number: u64,
    keys: Arc<Vec<u32>>,
    smallest: [u8; 4],
    largest: [u8; 4],
    compacting: bool,
}

impl Table {
    fn bytes(&self) -> u64 {
        self.keys.len() as u64 * ENTRY_BYTES
    }
}

#[derive(Debug, Clone)]
struct Run {
    id: u64,
    tables: Vec<Table>,
}

struct Running {
    job: Job,
    ends: f64,
    threads: usize,
}

struct Tree {
    levels: Vec<Vec<Run>>,
    running: Vec<Running>,
    next_number: u64,
    written: u64,
    merges: usize,
}

impl Tree {
    fn pick(&self, strategy: &dyn Strategy, idle: bool) -> Option<Job> {
        let levels =
            self.levels.iter().map(|runs| LevelInfo { runs: runs.iter().map(info).collect() }).collect();
        let running = self.running.iter().map(|it| RunningJob {
            output_level: it.job.output_level,
            smallest: &it.job.smallest,
            largest: &it.job.largest,
        });
        strategy.pick(&State { levels, running: running.collect(), now_secs: 0, oldest_snapshot: None, idle })
    }

    fn threads(&self) -> usize {
        self.running.iter().map(|it| it.threads).sum()
    }

    fn bytes(&self) -> u64 {
        self.levels.iter().flatten().flat_map(|run| &run.tables).map(Table::bytes).sum()
    }

    /// Splits sorted keys into tables.
    fn tables(&mut self, keys: &[u32], table_bytes: u64) -> Vec<Table> {
        let pieces = keys.chunks((table_bytes / ENTRY_BYTES).max(1) as usize);
        pieces
            .map(|keys| {
                self.next_number += 1;
                Table {
                    number: self.next_number,
                    smallest: keys[0].to_be_bytes(),
                    largest: keys[keys.len() - 1].to_be_bytes(),
                    keys: Arc::new(keys.to_vec()),
                    compacting: false,
                }
            })
            .collect()
    }

    fn flush(&mut self, mut keys: Vec<u32>) {
        keys.sort_unstable();
        keys.dedup();
        self.written += keys.len() as u64 * ENTRY_BYTES;
        let tables = self.tables(&keys, u64::MAX);
        self.next_number += 1;
        self.levels[0].insert(0, Run { id: self.next_number, tables });
    }

    fn start(&mut self, job: Job, now: f64, settings: &Settings) {
        for table in self.levels.iter_mut().flatten().flat_map(|run| &mut run.tables) {
            if job.inputs.iter().any(|input| input.tables.contains(&table.number)) {
                assert!(!table.compacting, "two jobs for one table");
                table.compacting = true;
            }
        }
        // A merge writes hardly more than it reads, and reading from cache or disk has a similar
        // speed.
        let work = if job.kind == JobKind::Merge { 2 * job.input_bytes } else { 0 };
        // Parts of a job run in parallel on idle threads.
        let free = settings.threads.saturating_sub(self.threads());
        let threads = free.min(job.boundaries.len() + 1).max(1);
        self.running.push(Running {
            ends: now + work as f64 / settings.thread_speed / threads as f64,
            threads,
            job,
        });
    }

    /// Ends the running job that finishes first.
    fn finish(&mut self) -> f64 {
        let first =
            (0..self.running.len()).min_by(|&a, &b| self.running[a].ends.total_cmp(&self.running[b].ends));
        let Running { job, ends, .. } = self.running.remove(first.unwrap());
        let mut inputs = Vec::new();
        for level in &mut self.levels {
            for run in level.iter_mut() {
                let is_input =
                    |table: &Table| job.inputs.iter().any(|input| input.tables.contains(&table.number));
                inputs.extend(run.tables.extract_if(.., |table| is_input(table)));
            }
            level.retain(|run| !run.tables.is_empty());
        }
        let mut output = match job.kind {
            JobKind::Drop => Vec::new(),
            JobKind::Move => inputs.into_iter().map(|table| Table { compacting: false, ..table }).collect(),
            _ => {
                let mut keys: Vec<u32> = inputs.iter().flat_map(|table| table.keys.iter().copied()).collect();
                keys.sort_unstable();
                keys.dedup();
                self.written += keys.len() as u64 * ENTRY_BYTES;
                self.merges += 1;
                let mut tables = Vec::new();
                let mut rest = &keys[..];
                for cut in &job.cuts {
                    let (piece, after) =
                        rest.split_at(rest.partition_point(|key| key.to_be_bytes()[..] < cut[..]));
                    tables.extend(self.tables(piece, job.table_bytes));
                    rest = after;
                }
                tables.extend(self.tables(rest, job.table_bytes));
                tables
            }
        };
        if output.is_empty() {
            return ends;
        }
        while self.levels.len() <= job.output_level {
            self.levels.push(Vec::new());
        }
        let level = &mut self.levels[job.output_level];
        match level.iter_mut().find(|run| run.id == job.output_run) {
            Some(run) => run.tables.append(&mut output),
            None => level.push(Run { id: job.output_run, tables: output }),
        }
        level.sort_by_key(|run| std::cmp::Reverse(run.id));
        for run in level.iter_mut() {
            run.tables.sort_by_key(|table| table.smallest);
            assert!(run.tables.windows(2).all(|pair| pair[0].largest < pair[1].smallest), "a run overlaps");
        }
        ends
    }

    /// Starts and ends jobs until none is left.
    fn settle(&mut self, strategy: &dyn Strategy, idle: bool, settings: &Settings) {
        for _ in 0..100_000 {
            match self.pick(strategy, idle) {
                Some(job) => self.start(job, 0.0, settings),
                None if self.running.is_empty() => return,
                None => {}
            }
            self.finish();
        }
        panic!("{} finds no end", strategy.name());
    }
}

fn info(run: &Run) -> RunInfo<'_> {
    let tables = run.tables.iter().map(|table| TableInfo {
        number: table.number,
        bytes: table.bytes(),
        smallest: &table.smallest,
        largest: &table.largest,
        entries: table.keys.len() as u64,
        tombstones: 0,
        seqnos: (0, 0),
        oldest_secs: table.number,
        newest_secs: table.number,
        expires_secs: u64::MAX,
        compacting: table.compacting,
        marked: false,
    });
    RunInfo { id: run.id, tables: tables.collect() }
}

/// Loads all keys in order, lets the tree settle, then overwrites at random.
pub fn run(strategy: &dyn Strategy, settings: &Settings) -> Figures {
    let mut tree =
        Tree { levels: vec![Vec::new(); 1], running: Vec::new(), next_number: 0, written: 0, merges: 0 };
    let keys: Vec<u32> = (0..settings.keys as u32).collect();
    for piece in keys.chunks(settings.memtable_entries) {
        tree.flush(piece.to_vec());
        tree.settle(strategy, false, settings);
    }
    tree.settle(strategy, true, settings);
    (tree.written, tree.merges) = (0, 0);

    let live = (settings.keys * ENTRY_BYTES) as f64;
    let user = (settings.overwrites * ENTRY_BYTES) as f64;
    let mut rng = SeededRng::new(1).fork("overwrites");
    let (mut now, mut peak, mut level_zero_max) = (0.0, 0, 0);
    let (mut slow_secs, mut stopped_secs) = (0.0, 0.0);
    let mut left = settings.overwrites;
    while left > 0 {
        let count = left.min(settings.memtable_entries as u64);
        left -= count;
        let mut todo = count as f64; // entries until the memtable is full
        loop {
            while tree.threads() < settings.threads {
                let Some(job) = tree.pick(strategy, false) else { break };
                tree.start(job, now, settings);
            }
            let runs = tree.levels[0].len();
            level_zero_max = level_zero_max.max(runs);
            let speed = match runs {
                STOP_RUNS.. => 0.0,
                SLOWDOWN_RUNS.. => settings.write_speed / 2.0,
                _ => settings.write_speed,
            };
            let full_at = if speed > 0.0 { now + todo / speed } else { f64::INFINITY };
            let job_at = tree.running.iter().map(|it| it.ends).fold(f64::INFINITY, f64::min);
            let until = full_at.min(job_at);
            assert!(until.is_finite(), "writers wait for nothing");
            if speed == 0.0 {
                stopped_secs += until - now;
            } else if speed < settings.write_speed {
                slow_secs += until - now;
            }
            todo -= (until - now) * speed;
            now = until;
            if full_at <= job_at {
                break;
            }
            tree.finish();
        }
        tree.flush((0..count).map(|_| rng.below(settings.keys) as u32).collect());
        // When running jobs end, their inputs exist beside their outputs, which contain each key
        // once.
        let going: u64 =
            tree.running.iter().map(|it| it.job.input_bytes.min(settings.keys * ENTRY_BYTES)).sum();
        peak = peak.max(tree.bytes() + going);
    }
    let (written, merges) = (tree.written, tree.merges);
    while !tree.running.is_empty() {
        tree.finish();
    }
    tree.settle(strategy, false, settings);
    let space = tree.bytes();
    tree.settle(strategy, true, settings);
    Figures {
        write_amplification: written as f64 / user,
        settled_write_amplification: tree.written as f64 / user,
        peak_space: peak as f64 / live,
        space: space as f64 / live,
        settled_space: tree.bytes() as f64 / live,
        merges,
        level_zero_max,
        slow_secs,
        stopped_secs,
    }
}
