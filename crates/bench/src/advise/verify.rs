//! Runs the best few candidates, turn by turn, on the workload itself.

use std::collections::BTreeMap;

use cairn_vfs::SeededRng;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Discarded};
use super::costs::{Costs, WARM_UP};
use super::predict::{self, Machine, Prediction};
use super::question::Workload;
use super::run::{Measured, Runner};
use super::traced::Traced;
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::core::progress::Progress;
use crate::core::stats::{self, Estimate};
use crate::core::workload::shuffle;
use crate::suites::kv::{Mix, YCSB_TIMED_SHARE, YcsbSpec};

/// Bounds of the operations of a turn.
const OPERATIONS: (f64, f64) = (2_000.0, 2_000_000.0);

/// Operations of a kind, over all rounds, that a 99th percentile needs: ten of them are then beyond
/// it.
pub(super) const P99_OPERATIONS: u64 = 1_000;

/// How long verification may take, and how often each candidate runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Number of stores that run, each with all of its settings that could be the best.
    pub finalists: usize,
    /// Turns of each candidate. With fewer than [`stats::PAIRS_MIN`] there is no winner.
    pub rounds: u32,
    /// Approximate limit of the seconds that all loads together take. Stores are made smaller if
    /// loading would take longer.
    pub load_secs: f64,
    /// Predicted seconds of a turn's operations.
    pub turn_secs: f64,
}

impl Default for Effort {
    /// Returns four stores and five rounds, which take some minutes.
    fn default() -> Self {
        Effort { finalists: 4, rounds: 5, load_secs: 60.0, turn_secs: 1.0 }
    }
}

/// The measured performance of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Name of the candidate.
    pub name: String,
    /// Name of the store, which is the same for all of its settings.
    pub store: String,
    /// Operations per second of each round. For mixes that write, the time includes settling.
    pub samples: Vec<f64>,
    /// The median of the samples.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Predicted throughput at the number of entries that were run.
    pub predicted: f64,
    /// Predicted throughput at the workload's full size divided by that at the measured size; 1 if
    /// the full size was run.
    pub growth: f64,
    /// 99th percentile of latency in microseconds, by kind of operation, over all rounds. Kinds
    /// with too few operations are absent.
    #[serde(alias = "p99_micros")]
    pub p99_us: BTreeMap<String, f64>,
    /// Kinds with too few operations for a 99th percentile, with their number of operations.
    pub too_few: BTreeMap<String, u64>,
    /// Bytes on disk per entry.
    pub bytes_per_entry: f64,
    /// Rise of resident memory in bytes: the largest of all rounds.
    pub memory_bytes: Option<f64>,
    /// Entries in the store at the end, including inserted ones; 0 if unknown.
    #[serde(default)]
    pub entries: u64,
}

/// A candidate that is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finalist<'a> {
    pub candidate: &'a Candidate,
    pub prediction: &'a Prediction,
    /// Never empty.
    pub costs: &'a [Costs],
}

/// The results of a verification.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Verification {
    /// Ordered from the fastest.
    pub verified: Vec<Verified>,
    pub failed: Vec<Discarded>,
    /// Entries in the stores: fewer than the workload has if loading all of them would take too
    /// long.
    pub records: u64,
    /// The part of a trace that was replayed, if it was not all.
    pub note: Option<String>,
    /// True if the run ended before the last round was complete.
    pub stopped: bool,
}

/// Runs the finalists in turns.
pub(super) struct Verifier<'a> {
    pub runner: Runner<'a>,
    pub workload: &'a Workload,
    /// The trace to replay; `None` draws operations from the mix.
    pub traced: Option<&'a Traced>,
    pub effort: Effort,
    pub machine: &'a Machine,
    /// True if the question has a limit for 99th percentiles: turns are then long enough to
    /// determine them.
    pub asks_p99: bool,
    pub progress: &'a dyn Progress,
}

impl Verifier<'_> {
    /// Runs candidates in turns, in a shuffled order in each round, on stores of `records` entries,
    /// or of as many as can be loaded in time.
    ///
    /// Errors: [`Error::Interrupted`] before the first round is complete. A candidate that fails is
    /// left out, with the reason.
    pub fn run(&self, finalists: &[Finalist<'_>], records: Option<u64>) -> Result<Verification> {
        let fastest = finalists.iter().map(|finalist| finalist.prediction.per_sec).fold(0.0, f64::max);
        let records = match records {
            Some(records) => records,
            None => self.records(finalists, fastest)?,
        };
        let turns = finalists.len() * self.effort.rounds as usize;
        let mut found: BTreeMap<&str, Found> = BTreeMap::new();
        let mut left: Vec<usize> = (0..finalists.len()).collect();
        let note = self.part(records, fastest);
        let mut verification = Verification { records, note, ..Verification::default() };
        let mut rng = SeededRng::new(self.runner.seed);
        'rounds: for round in 0..self.effort.rounds {
            // Each round has other random draws, the same for every candidate, so that the interval
            // over rounds includes the variance of the draws.
            let seed = self.runner.seed.wrapping_add(u64::from(round));
            let mut order = left.clone();
            shuffle(&mut order, &mut rng);
            for (done, at) in order.iter().enumerate() {
                let Some(finalist) = finalists.get(*at) else { continue };
                let name = finalist.candidate.name.as_str();
                let step = round as usize * finalists.len() + done;
                self.progress.step(step, turns, &format!("{name}, round {}", round + 1));
                let operations = self.operations(finalist.prediction.per_sec, fastest);
                match self
                    .runner
                    .stop
                    .check()
                    .and_then(|()| self.turn(finalist.candidate, records, operations, seed))
                {
                    Ok(measured) => found.entry(name).or_default().add(&measured),
                    Err(Error::Interrupted) if round > 0 => {
                        verification.stopped = true;
                        // Only whole rounds are compared.
                        found.values_mut().for_each(|found| found.samples.truncate(round as usize));
                        break 'rounds;
                    }
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => {
                        self.progress.note(&format!("{name}: {error}"));
                        found.remove(name);
                        left.retain(|other| other != at);
                        let reason = format!("failed: {error}");
                        verification.failed.push(Discarded { name: name.to_owned(), reason });
                    }
                }
            }
        }
        let verified = finalists.iter().filter_map(|finalist| {
            Some(self.verified(finalist, records, found.remove(finalist.candidate.name.as_str())?))
        });
        verification.verified = verified.collect();
        verification.verified.sort_by(|a, b| b.median.total_cmp(&a.median));
        Ok(verification)
    }

    fn turn(&self, candidate: &Candidate, records: u64, operations: u64, seed: u64) -> Result<MeasuredTurn> {
        let runner = Runner { seed, ..self.runner };
        if let Some(traced) = self.traced {
            let timed = if self.asks_p99 { operations } else { (operations / YCSB_TIMED_SHARE).max(1) };
            let is_whole = records >= traced.records;
            let measured =
                runner.replay(candidate, traced, (operations, timed, is_whole), self.workload.shape())?;
            return Ok(MeasuredTurn { per_sec: measured.per_sec(&traced.replay.name), measured });
        }
        let measured =
            runner.run(candidate, self.workload, records, &specs(self.workload, records, operations))?;
        Ok(MeasuredTurn { per_sec: measured.per_sec(&self.workload.name), measured })
    }

    /// Returns the number of entries that every candidate can load in the available time. For a
    /// trace it is all of its entries, or those that its first operations need.
    fn records(&self, finalists: &[Finalist<'_>], fastest: f64) -> Result<u64> {
        let loads = finalists.iter().filter_map(|finalist| Some(finalist.costs.last()?.loads_per_sec));
        let slowest = loads.fold(f64::INFINITY, f64::min);
        let turns = (finalists.len() as f64 * f64::from(self.effort.rounds)).max(1.0);
        let affordable = (slowest * self.effort.load_secs / turns).max(20_000.0) as u64;
        let Some(traced) = self.traced else { return Ok(self.workload.records.min(affordable)) };
        let operations = self.operations(fastest, fastest);
        if operations >= traced.operations || traced.records <= affordable {
            return Ok(traced.records);
        }
        traced.entries_of_first(operations)
    }

    /// Describes the part of a trace that is replayed, if it is not all.
    fn part(&self, records: u64, fastest: f64) -> Option<String> {
        let traced = self.traced?;
        let (operations, all) = (self.operations(fastest, fastest), traced.operations);
        let of = format!("{operations} of its {all} operations");
        if operations >= all {
            None
        } else if records >= traced.records {
            Some(format!("each turn replays the last {of}, on the store that the earlier ones leave"))
        } else {
            let entries = traced.records;
            Some(format!(
                "each turn replays the first {of}, on {records} of {entries} entries: loading all would have taken too long"
            ))
        }
    }

    /// Returns the number of operations of a turn: the same for all candidates, except for those
    /// that would take four times as long.
    fn operations(&self, per_sec: f64, fastest: f64) -> u64 {
        let secs = self.effort.turn_secs;
        let most = per_sec * secs * 4.0;
        let least = if self.asks_p99 { self.for_p99() } else { OPERATIONS.0 };
        (fastest * secs).max(least).min(most).clamp(OPERATIONS.0, OPERATIONS.1) as u64
    }

    /// Returns the operations per turn after which, over all rounds, the rarest kind has enough
    /// timed operations.
    fn for_p99(&self) -> f64 {
        let mix = self.workload.shares();
        let shares = [mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write];
        let rarest = shares.into_iter().filter(|share| *share > 0.0).fold(1.0, f64::min);
        // 10 % more, because kinds are drawn at random.
        1.1 * (P99_OPERATIONS * YCSB_TIMED_SHARE) as f64 / rarest / f64::from(self.effort.rounds.max(1))
    }

    fn verified(&self, finalist: &Finalist<'_>, records: u64, found: Found) -> Verified {
        let run = Workload { records, ..self.workload.clone() };
        let predicted = predict::predict(finalist.candidate, finalist.costs, &run, self.machine).per_sec;
        let growth =
            if records < self.workload.records { finalist.prediction.per_sec / predicted } else { 1.0 };
        let Estimate { value, low, high } = stats::estimate(&found.samples, self.runner.seed);
        let (enough, too_few): (Vec<_>, Vec<_>) =
            found.latencies.into_iter().partition(|(_, latencies)| latencies.count() >= P99_OPERATIONS);
        Verified {
            name: finalist.candidate.name.clone(),
            store: finalist.candidate.store.clone(),
            median: value,
            low,
            high,
            predicted,
            growth,
            p99_us: enough.into_iter().map(|(kind, of)| (kind, of.quantile(0.99) / 1e3)).collect(),
            too_few: too_few.into_iter().map(|(kind, of)| (kind, of.count())).collect(),
            bytes_per_entry: found.bytes_per_entry,
            memory_bytes: found.memory_bytes,
            entries: found.entries,
            samples: found.samples,
        }
    }
}

/// Returns the passes of a turn on a store of `records` entries. If the workload reads at all,
/// lookups precede its operations: as many as there are entries, but not more than operations.
fn specs(workload: &Workload, records: u64, operations: u64) -> Vec<YcsbSpec> {
    let own = YcsbSpec { operations: Some(operations), ..workload.spec() };
    let shares = workload.shares();
    if shares.read + shares.scan + shares.read_modify_write <= 0.0 {
        return vec![own];
    }
    // The first lookups in a file read it from disk and verify its checksums. In a real program
    // that phase is soon over, but it would distort a turn of one second.
    let (mix, count) = (Mix { read: 1.0, ..Mix::default() }, Some(records.min(operations)));
    vec![YcsbSpec { name: WARM_UP.to_owned(), mix, operations: count, ..own.clone() }, own]
}

/// The measurements of a turn, with its throughput.
struct MeasuredTurn {
    per_sec: f64,
    measured: Measured,
}

#[derive(Debug, Default)]
struct Found {
    samples: Vec<f64>,
    latencies: BTreeMap<String, Latencies>,
    bytes_per_entry: f64,
    memory_bytes: Option<f64>,
    entries: u64,
}

impl Found {
    fn add(&mut self, turned: &MeasuredTurn) {
        let measured = &turned.measured;
        self.samples.push(turned.per_sec);
        for (kind, latencies) in &measured.latencies {
            let all = self.latencies.entry(kind.clone()).or_insert_with(|| Latencies::new(0));
            all.merge(latencies);
        }
        (self.bytes_per_entry, self.entries) = (measured.bytes_per_entry, measured.entries);
        self.memory_bytes = match (self.memory_bytes, measured.memory_bytes) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: first accesses to files precede the measured pass, and a workload without reads has no
    /// warm-up. Method: a mix with lookups, one with scans, one with only inserts.
    #[test]
    fn first_touches_are_not_measured() {
        let of = |mix: Mix| specs(&Workload { mix, ..Workload::default() }, 5_000, 20_000);
        for mix in [Mix { read: 0.1, update: 0.9, ..Mix::default() }, Mix { scan: 1.0, ..Mix::default() }] {
            let all = of(mix);
            assert_eq!(all.len(), 2);
            assert_eq!(
                (all[0].name.as_str(), all[0].operations, all[0].mix.writes()),
                (WARM_UP, Some(5_000), 0.0)
            );
            assert_eq!(
                (all[1].name.as_str(), all[1].operations, all[1].mix),
                ("workload", Some(20_000), mix)
            );
        }
        assert_eq!(of(Mix { insert: 1.0, ..Mix::default() }).len(), 1);
    }
}
