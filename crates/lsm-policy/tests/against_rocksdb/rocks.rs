//! A leveled tree with RocksDB's default choices, for comparison: 4 runs in level 0, a base level
//! of at most 256 MiB, ratio 10, level sizes derived from the last level
//! (`level_compaction_dynamic_level_bytes`), one file at a time.

use std::sync::Mutex;

use cairn_lsm_policy::bytes::{Input, Job, JobKind, Manual, ManualStep, Reason, Scores, State, TableInfo};

/// The rule that chooses the file of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pick {
    /// The file after the last compacted one, as in LevelDB.
    RoundRobin,
    /// The file with the least overlap for its size (`kMinOverlappingRatio`).
    LeastOverlap,
}

#[derive(Debug)]
pub struct Rocks {
    table_bytes: u64,
    base_bytes: u64,
    pick: Pick,
    /// For round robin: the first key of the table that each level compacted last. Cleared when the
    /// replay of a new tree begins.
    next: Mutex<Vec<Vec<u8>>>,
}

const LEVELS: usize = 7;
const RUNS: usize = 4;
const MULTIPLIER: u64 = 10;

impl Rocks {
    pub fn new(scale: u64, pick: Pick) -> Rocks {
        let (table_bytes, base_bytes) = ((64 << 20) / scale, (256 << 20) / scale);
        Rocks { table_bytes, base_bytes, pick, next: Mutex::new(vec![Vec::new(); LEVELS]) }
    }

    /// Returns the base level and the targets.
    fn targets(&self, state: &State<'_>) -> (usize, [u64; LEVELS]) {
        let largest = (1..LEVELS).map(|level| state.level(level).bytes()).max().unwrap_or(0);
        let first = (1..LEVELS).find(|&level| !state.level(level).runs.is_empty()).unwrap_or(LEVELS - 1);
        let mut targets = [u64::MAX; LEVELS];
        let mut size = largest;
        for level in (first..LEVELS - 1).rev() {
            size /= MULTIPLIER;
            targets[level] = size;
        }
        let mut base = first;
        while base > 1 && size > self.base_bytes {
            base -= 1;
            size /= MULTIPLIER;
            targets[base] = size;
        }
        let least = self.base_bytes / MULTIPLIER;
        for target in &mut targets[base..LEVELS - 1] {
            *target = (*target).max(least + 1);
        }
        (base, targets)
    }

    fn job(&self, state: &State<'_>, level: usize, upper: Vec<&TableInfo<'_>>, to: usize) -> Option<Job> {
        let smallest = upper.iter().map(|table| table.smallest).min()?;
        let largest = upper.iter().map(|table| table.largest).max()?;
        let lower: Vec<_> = state.level(to).overlapping(smallest, largest).collect();
        let all = || upper.iter().chain(&lower);
        let ends = (all().map(|table| table.smallest).min()?, all().map(|table| table.largest).max()?);
        if all().any(|table| table.compacting) || state.is_written(to, ends.0, ends.1) {
            return None;
        }
        let numbers = |tables: &[&TableInfo<'_>]| tables.iter().map(|table| table.number).collect();
        let is_move = lower.is_empty() && upper.len() == 1;
        Some(Job {
            kind: if is_move { JobKind::Move } else { JobKind::Merge },
            reason: Reason::Score { level, score: 1.0 },
            inputs: vec![
                Input { level, run: 0, tables: numbers(&upper) },
                Input { level: to, run: 0, tables: numbers(&lower) },
            ],
            output_level: to,
            output_run: 0,
            table_bytes: self.table_bytes,
            input_bytes: all().map(|table| table.bytes).sum(),
            smallest: ends.0.to_vec(),
            largest: ends.1.to_vec(),
            bottommost: to == LEVELS - 1,
            cuts: Vec::new(),
            boundaries: Vec::new(),
        })
    }

    /// Merges the newest runs into one while merges into the base level are blocked: as many runs
    /// as keep reducing the cost of the merge per removed run (`FindIntraL0Compaction`).
    fn within_level_zero(&self, state: &State<'_>) -> Option<Job> {
        let runs = &state.level(0).runs;
        if runs.len() < RUNS + 2 || runs[0].is_compacting() {
            return None;
        }
        let (mut bytes, mut best, mut count) = (runs[0].bytes(), u64::MAX, 1);
        for run in runs[1..].iter().take_while(|run| !run.is_compacting()) {
            let cost = (bytes + run.bytes()) / count as u64;
            if cost > best || bytes + run.bytes() > 25 * self.table_bytes {
                break;
            }
            (bytes, best, count) = (bytes + run.bytes(), cost, count + 1);
        }
        if count < 4 {
            return None;
        }
        let taken = &runs[..count];
        let upper: Vec<_> = taken.iter().flat_map(|run| &run.tables).collect();
        let mut job = self.job(&State { levels: vec![], ..state.clone() }, 0, upper, 1)?;
        job.kind = JobKind::Merge;
        (job.output_level, job.output_run) = (0, taken[0].id);
        (!state.is_written(0, &job.smallest, &job.largest)).then_some(job)
    }

    fn down(&self, state: &State<'_>, level: usize) -> Option<Job> {
        let [run] = &state.level(level).runs[..] else { return None };
        let mut tables: Vec<&TableInfo<'_>> = run.tables.iter().collect();
        let mut next = self.next.lock().unwrap();
        match self.pick {
            Pick::RoundRobin => {
                let at = tables.iter().position(|table| table.smallest > &next[level][..]).unwrap_or(0);
                tables.rotate_left(at);
            }
            Pick::LeastOverlap => tables.sort_by_key(|table| {
                let overlap: u64 = state
                    .level(level + 1)
                    .overlapping(table.smallest, table.largest)
                    .map(|it| it.bytes)
                    .sum();
                overlap * 1024 / table.bytes
            }),
        }
        tables.into_iter().find_map(|table| {
            let job = self.job(state, level, vec![table], level + 1)?;
            next[level] = table.smallest.to_vec();
            Some(job)
        })
    }
}

impl<'a> cairn_lsm_policy::Strategy<&'a [u8]> for Rocks {
    fn name(&self) -> &'static str {
        "as RocksDB"
    }

    fn pick(&self, state: &State<'a>) -> Option<Job> {
        if state.level(0).tables().all(|table| table.number <= 2) {
            self.next.lock().unwrap().iter_mut().for_each(Vec::clear);
        }
        let (base, targets) = self.targets(state);
        let free = |level: usize| -> u64 {
            state.level(level).tables().filter(|table| !table.compacting).map(|table| table.bytes).sum()
        };
        let mut scores: Vec<(usize, f64)> =
            (base..LEVELS - 1).map(|level| (level, free(level) as f64 / targets[level] as f64)).collect();
        let runs = state.level(0).runs.iter().filter(|run| !run.is_compacting()).count();
        scores.push((0, runs as f64 / RUNS as f64));
        scores.retain(|&(_, score)| score >= 1.0);
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        scores.into_iter().find_map(|(level, _)| match level {
            0 if state.level(0).runs.iter().any(|run| run.is_compacting()) => self.within_level_zero(state),
            0 => {
                // Runs written in key order move one by one.
                let disjoint = state.level(0).runs.last().filter(|run| {
                    let table = &run.tables[0];
                    state.level(0).overlapping(table.smallest, table.largest).count() == 1
                });
                let upper = match disjoint {
                    Some(run) => run.tables.iter().collect(),
                    None => state.level(0).tables().collect(),
                };
                self.job(state, 0, upper, base).or_else(|| self.within_level_zero(state))
            }
            level => self.down(state, level),
        })
    }

    fn scores(&self, _state: &State<'a>) -> Scores {
        Scores::default()
    }

    fn compact_range(&self, _state: &State<'a>, _manual: &Manual<'a>) -> ManualStep {
        ManualStep::Done
    }
}
