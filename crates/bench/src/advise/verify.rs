//! The best few are run, turn by turn, on the workload itself.

use std::collections::BTreeMap;

use cairn_vfs::SeededRng;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, Discarded};
use super::predict::Prediction;
use super::question::Workload;
use super::run::Runner;
use crate::error::{Error, Result};
use crate::stats::{self, Estimate};
use crate::suite_hash::Progress;
use crate::suite_kv::YcsbSpec;
use crate::workload::{Durability, shuffle};

/// Operations of a turn.
const OPERATIONS: (f64, f64) = (2_000.0, 2_000_000.0);

/// How long verifying may take, and how often each candidate runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Candidates that are run.
    pub finalists: usize,
    /// Turns of each.
    pub rounds: u32,
    /// Seconds that all loads together may take, about: the store is made smaller where they would take longer.
    pub load_secs: f64,
    /// Seconds that a turn's operations take by the prediction.
    pub turn_secs: f64,
}

impl Default for Effort {
    /// Four candidates, five rounds, some two minutes.
    fn default() -> Self {
        Effort { finalists: 4, rounds: 5, load_secs: 60.0, turn_secs: 1.0 }
    }
}

/// What a candidate did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// Operations a second of each round.
    pub samples: Vec<f64>,
    /// The median with its interval.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What was predicted.
    pub predicted: f64,
    /// Microseconds that 99 of 100 operations took at most, by kind: the median of rounds.
    pub p99_micros: BTreeMap<String, f64>,
    /// Bytes of files for an entry.
    pub bytes_per_entry: f64,
    /// Rise of resident memory, in bytes: the largest of all rounds.
    pub memory_bytes: Option<f64>,
}

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Verification {
    /// The fastest first.
    pub verified: Vec<Verified>,
    pub failed: Vec<Discarded>,
    /// Entries of the stores: fewer than the workload has where loading all of them would have taken too long.
    pub records: u64,
}

/// Runs candidates in turns, with a shuffled order in each round.
///
/// Errors: [`Error::Interrupted`] before the first round is over. A candidate that fails is left out, with its reason.
pub(super) fn verify(
    runner: &Runner<'_>,
    finalists: &[(&Candidate, &Prediction, f64)],
    workload: &Workload,
    effort: Effort,
    progress: &dyn Progress,
) -> Result<Verification> {
    let slowest_load = finalists.iter().map(|(_, _, loads)| *loads).fold(f64::INFINITY, f64::min);
    let turns = (finalists.len() as f64 * f64::from(effort.rounds)).max(1.0);
    let affordable = (slowest_load * effort.load_secs / turns).max(20_000.0);
    let records = workload.records.min(affordable as u64);
    let fastest = finalists.iter().map(|(_, prediction, _)| prediction.per_sec).fold(0.0, f64::max);
    let mut found: BTreeMap<&str, Found> = BTreeMap::new();
    let mut left: Vec<usize> = (0..finalists.len()).collect();
    let mut verification = Verification { records, ..Verification::default() };
    let mut rng = SeededRng::new(runner.seed);
    for round in 0..effort.rounds {
        let mut order = left.clone();
        shuffle(&mut order, &mut rng);
        for (done, at) in order.iter().enumerate() {
            let Some((candidate, prediction, _)) = finalists.get(*at) else { continue };
            let step = round as usize * finalists.len() + done;
            progress.step(step, turns as usize, &format!("{}, round {}", candidate.name, round + 1));
            // The same work for all, but for those who would take four times as long.
            let wanted = (fastest * effort.turn_secs).min(prediction.per_sec * effort.turn_secs * 4.0);
            let operations = wanted.clamp(OPERATIONS.0, OPERATIONS.1) as u64;
            let spec = YcsbSpec { operations: Some(operations), ..workload.spec() };
            runner.stop.check()?;
            match runner.run(candidate, workload, records, &[spec]) {
                Ok(measured) => found.entry(&candidate.name).or_default().add(&measured, &workload.name),
                Err(Error::Interrupted) if round > 0 => {
                    return Ok(verification.with(found, finalists, runner.seed));
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    progress.note(&format!("{}: {error}", candidate.name));
                    found.remove(candidate.name.as_str());
                    left.retain(|other| other != at);
                    let reason = format!("failed: {error}");
                    verification.failed.push(Discarded { name: candidate.name.clone(), reason });
                }
            }
        }
    }
    Ok(verification.with(found, finalists, runner.seed))
}

impl Verification {
    fn with(
        mut self,
        found: BTreeMap<&str, Found>,
        finalists: &[(&Candidate, &Prediction, f64)],
        seed: u64,
    ) -> Verification {
        for (name, found) in found {
            let predicted = finalists.iter().find(|(candidate, ..)| candidate.name == name);
            let predicted = predicted.map_or(0.0, |(_, prediction, _)| prediction.per_sec);
            let Estimate { value, low, high } = stats::estimate(&found.samples, seed);
            self.verified.push(Verified {
                name: name.to_owned(),
                median: value,
                low,
                high,
                predicted,
                p99_micros: found.p99.iter().map(|(kind, all)| (kind.clone(), stats::median(all))).collect(),
                bytes_per_entry: found.bytes_per_entry,
                memory_bytes: found.memory_bytes,
                samples: found.samples,
            });
        }
        self.verified.sort_by(|a, b| b.median.total_cmp(&a.median));
        self
    }
}

#[derive(Debug, Default)]
struct Found {
    samples: Vec<f64>,
    p99: BTreeMap<String, Vec<f64>>,
    bytes_per_entry: f64,
    memory_bytes: Option<f64>,
}

impl Found {
    fn add(&mut self, measured: &super::run::Measured, name: &str) {
        self.samples.push(measured.throughput.get(name).copied().unwrap_or_default());
        for (kind, micros) in &measured.p99 {
            self.p99.entry(kind.clone()).or_default().push(*micros);
        }
        self.bytes_per_entry = measured.bytes_per_entry;
        self.memory_bytes = match (self.memory_bytes, measured.memory_bytes) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

/// How a durability is written in Rust.
pub(super) fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Memory => "Memory",
        Durability::Buffered => "Buffered",
        Durability::Sync => "Sync",
    }
}
