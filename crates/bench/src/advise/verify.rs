//! The best few are run, turn by turn, on the workload itself.

use std::collections::BTreeMap;

use cairn_vfs::SeededRng;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Discarded};
use super::costs::{Costs, WARM_UP};
use super::predict::{self, Machine, Prediction};
use super::question::Workload;
use super::run::{Measured, Runner};
use super::traced::Traced;
use crate::error::{Error, Result};
use crate::histogram::Latencies;
use crate::stats::{self, Estimate};
use crate::suite_hash::Progress;
use crate::suite_kv::{Mix, YCSB_TIMED_SHARE, YcsbSpec};
use crate::workload::shuffle;

/// Operations of a turn.
const OPERATIONS: (f64, f64) = (2_000.0, 2_000_000.0);

/// Operations of a kind, of all rounds together, that its 99th percentile takes: ten are then
/// beyond it.
pub(super) const P99_OPERATIONS: u64 = 1_000;

/// How long verifying may take, and how often each candidate runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Stores that are run, each with those of its settings that could be the best.
    pub finalists: usize,
    /// Turns of each. With fewer than [`stats::PAIRS_MIN`] nobody is called a winner.
    pub rounds: u32,
    /// Seconds that all loads together may take, about: the store is made smaller where they would
    /// take longer.
    pub load_secs: f64,
    /// Seconds that a turn's operations take by the prediction.
    pub turn_secs: f64,
}

impl Default for Effort {
    /// Four stores, five rounds, some minutes.
    fn default() -> Self {
        Effort { finalists: 4, rounds: 5, load_secs: 60.0, turn_secs: 1.0 }
    }
}

/// What a candidate did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// Its store's: one name for all settings of it.
    pub store: String,
    /// Operations a second of each round; of mixes that write, until what they wrote is settled.
    pub samples: Vec<f64>,
    /// The median with its interval.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What was predicted for as many entries as were run.
    pub predicted: f64,
    /// What is predicted for all of the workload's entries over that; 1 where all of them were run.
    pub growth: f64,
    /// Microseconds that 99 of 100 operations took at most, by kind, all rounds together. Without
    /// kinds of too few operations.
    #[serde(alias = "p99_micros")]
    pub p99_us: BTreeMap<String, f64>,
    /// Kinds whose 99th percentile cannot be told, with the operations that there were.
    pub too_few: BTreeMap<String, u64>,
    /// Bytes of files for an entry.
    pub bytes_per_entry: f64,
    /// Rise of resident memory, in bytes: the largest of all rounds.
    pub memory_bytes: Option<f64>,
    /// Entries that its store had in the end, inserted ones among them; 0 where that is not known.
    #[serde(default)]
    pub entries: u64,
}

/// Somebody who is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finalist<'a> {
    pub candidate: &'a Candidate,
    pub prediction: &'a Prediction,
    /// Not empty.
    pub costs: &'a [Costs],
}

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Verification {
    /// The fastest first.
    pub verified: Vec<Verified>,
    pub failed: Vec<Discarded>,
    /// Entries of the stores: fewer than the workload has where loading all of them would have
    /// taken too long.
    pub records: u64,
    /// What of a trace was replayed, where it was not all.
    pub note: Option<String>,
    /// It was ended before all rounds were over.
    pub stopped: bool,
}

/// Takes turns.
pub(super) struct Verifier<'a> {
    pub runner: Runner<'a>,
    pub workload: &'a Workload,
    /// The trace that is replayed, where there is one; else operations are drawn.
    pub traced: Option<&'a Traced>,
    pub effort: Effort,
    pub machine: &'a Machine,
    /// Somebody asks for 99th percentiles: turns are as long as they take.
    pub asks_p99: bool,
    pub progress: &'a dyn Progress,
}

impl Verifier<'_> {
    /// Runs candidates in turns, with a shuffled order in each round, on stores of so many entries
    /// or as many as there is time for.
    ///
    /// Errors: [`Error::Interrupted`] before the first round is over. A candidate that fails is
    /// left out, with its reason.
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
            // Other draws in each round, the same for everybody: an interval over rounds holds what
            // draws do, too.
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

    fn turn(&self, candidate: &Candidate, records: u64, operations: u64, seed: u64) -> Result<Turned> {
        let runner = Runner { seed, ..self.runner };
        if let Some(traced) = self.traced {
            let timed = if self.asks_p99 { operations } else { (operations / YCSB_TIMED_SHARE).max(1) };
            let is_whole = records >= traced.records;
            let measured =
                runner.replay(candidate, traced, (operations, timed, is_whole), self.workload.shape())?;
            return Ok(Turned { per_sec: measured.per_sec(&traced.replay.name), measured });
        }
        let measured =
            runner.run(candidate, self.workload, records, &specs(self.workload, records, operations))?;
        Ok(Turned { per_sec: measured.per_sec(&self.workload.name), measured })
    }

    /// Entries that everybody can load in the time there is; of a trace all of them, or those of
    /// the operations that are replayed from its start.
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

    /// What of a trace is replayed, where it is not all of it.
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

    /// The same work for all, but for those who would take four times as long.
    fn operations(&self, per_sec: f64, fastest: f64) -> u64 {
        let secs = self.effort.turn_secs;
        let most = per_sec * secs * 4.0;
        let least = if self.asks_p99 { self.for_p99() } else { OPERATIONS.0 };
        (fastest * secs).max(least).min(most).clamp(OPERATIONS.0, OPERATIONS.1) as u64
    }

    /// Operations of a turn after whose rounds the rarest kind has enough that were timed.
    fn for_p99(&self) -> f64 {
        let mix = self.workload.shares();
        let shares = [mix.read, mix.update, mix.insert, mix.scan, mix.read_modify_write];
        let rarest = shares.into_iter().filter(|share| *share > 0.0).fold(1.0, f64::min);
        // A tenth more, since kinds are drawn.
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

/// What a turn does on a store of so many entries: the workload's operations, behind as many
/// lookups as there are entries where it reads at all.
fn specs(workload: &Workload, records: u64, operations: u64) -> Vec<YcsbSpec> {
    let own = YcsbSpec { operations: Some(operations), ..workload.spec() };
    let shares = workload.shares();
    if shares.read + shares.scan + shares.read_modify_write <= 0.0 {
        return vec![own];
    }
    // What a program's first lookups find, files that nobody has read and sums that nobody has
    // checked, is soon over there, and not in a turn of a second.
    let (mix, count) = (Mix { read: 1.0, ..Mix::default() }, Some(records.min(operations)));
    vec![YcsbSpec { name: WARM_UP.to_owned(), mix, operations: count, ..own.clone() }, own]
}

/// What a turn found, and its throughput.
struct Turned {
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
    fn add(&mut self, turned: &Turned) {
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

    /// Goal: first touches of files come before what is measured, and nothing comes before what
    /// does not read. Method: a mix with lookups, one with scans, one of inserts.
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
