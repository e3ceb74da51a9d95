//! The adviser: which store, with which settings, for a workload on this machine, and how sure that is.
//!
//! ```text
//!   question: workload, constraints
//!     └─► candidates: stores x settings ─► who cannot keep the promise is out
//!           └─► costs: single operations, measured on small stores ─► predictions at the workload's size ─► who breaks a constraint is out
//!                 └─► the best few are run, interleaved ─► the choice, or that there is none ─► what would change it
//! ```
//!
//! A prediction only decides who is run; what is advised has been measured. `check` says how good that is: on workloads of many kinds everybody is run, and the
//! choice is held against the best.

mod candidate;
mod change;
pub mod check;
mod costs;
mod paste;
mod predict;
mod question;
mod run;
mod text;
mod verify;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_vfs::{Fs, StdFs};
use serde::{Deserialize, Serialize};

pub use candidate::{Candidate, Discarded};
pub use costs::{Costs, Kind};
pub use predict::{Machine, Prediction};
pub use question::{Constraints, Question, Workload};
pub use text::to_text;
pub use verify::{Effort, Verified};

use self::run::Runner;
use crate::error::{Error, Result};
use crate::probe::{self, ProbeEffort};
use crate::process::Stop;
use crate::procfs;
use crate::results::Probe;
use crate::runner::worker::Worker;
use crate::stats::{self, Estimate};
use crate::suite_hash::Progress;

/// A candidate whose median is within this of the best one's cannot be told from it in practice, whatever the interval says.
const ALIKE: f64 = 1.03;

/// How the adviser works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where stores are made: the disk that is meant.
    pub work_dir: PathBuf,
    /// How fresh processes are started; `None` to run everything in this one.
    pub worker: Option<Worker>,
    /// How much is run.
    pub effort: Effort,
    /// Seed of all draws.
    pub seed: u64,
    /// What the machine is probed with; `None` for not at all.
    pub probes: Option<ProbeEffort>,
}

/// Who it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// One candidate is ahead of all others.
    Winner {
        /// Its name.
        name: String,
        /// The next one, and how many times as fast the winner is, with the interval; `None` where there was only one.
        ahead_of: Option<(String, f64, f64, f64)>,
    },
    /// These cannot be told apart; the first had the best median.
    NoClearWinner {
        /// Their names.
        names: Vec<String>,
    },
    /// Everybody breaks a constraint.
    Nobody,
}

impl Choice {
    /// The one to take: the winner, or of several the one with the best median.
    pub fn name(&self) -> Option<&str> {
        match self {
            Choice::Winner { name, .. } => Some(name),
            Choice::NoClearWinner { names } => names.first().map(String::as_str),
            Choice::Nobody => None,
        }
    }
}

/// An answer with everything that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What was asked.
    pub question: Question,
    /// The machine, in words.
    pub machine: Vec<(String, String)>,
    /// What was measured of it.
    pub probes: Vec<Probe>,
    /// Who it is.
    pub choice: Choice,
    /// The choice's settings, to be pasted.
    pub settings: String,
    /// What would change the answer.
    pub changes: Vec<String>,
    /// What was run, the fastest first.
    pub verified: Vec<Verified>,
    /// Entries of the stores that were run.
    pub verified_records: u64,
    /// All predictions, the fastest first.
    pub predictions: Vec<Prediction>,
    /// Who is out, and why.
    pub discarded: Vec<Discarded>,
    /// What was measured on small stores, by candidate.
    pub costs: BTreeMap<String, Vec<Costs>>,
}

/// Answers a question.
///
/// Errors: a question that makes no sense; a work directory that cannot be written; [`Error::Interrupted`].
pub fn advise(
    question: &Question,
    options: &Options,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Advice> {
    question.workload.check()?;
    let adviser = Adviser::new(question, options, progress, stop)?;
    let (finalists, predictions, mut discarded) = adviser.finalists()?;
    let verification = adviser.verified(&finalists, &predictions)?;
    discarded.extend(verification.failed.iter().cloned());
    let mut verified = verification.verified;
    verified.retain(|one| match adviser.breaks(one, verification.records) {
        Some(reason) => {
            discarded.push(Discarded { name: one.name.clone(), reason });
            false
        }
        None => true,
    });
    let choice = choose(&verified, options.seed);
    let chosen = choice.name().and_then(|name| adviser.candidates.iter().find(|one| one.name == name));
    let settings = chosen.map(|chosen| paste::settings(chosen, &question.workload)).unwrap_or_default();
    let changes = choice
        .name()
        .map(|name| {
            change::changes(&question.workload, verification.records, name, &verified, &adviser.costs)
        })
        .unwrap_or_default();
    Ok(Advice {
        question: question.clone(),
        machine: probe::describe(&options.work_dir),
        probes: adviser.probes,
        choice,
        settings,
        changes,
        verified,
        verified_records: verification.records,
        predictions,
        discarded,
        costs: adviser.costs,
    })
}

/// Everything that is known before anybody is run at full size.
struct Adviser<'a> {
    question: &'a Question,
    options: &'a Options,
    progress: &'a dyn Progress,
    stop: &'a Stop,
    candidates: Vec<Candidate>,
    out: Vec<Discarded>,
    costs: BTreeMap<String, Vec<Costs>>,
    probes: Vec<Probe>,
    machine: Machine,
}

impl<'a> Adviser<'a> {
    /// Probes the machine and measures costs.
    fn new(
        question: &'a Question,
        options: &'a Options,
        progress: &'a dyn Progress,
        stop: &'a Stop,
    ) -> Result<Self> {
        let (candidates, out) = candidate::candidates(question)?;
        StdFs::new().create_dir_all(&options.work_dir)?;
        let probes = match options.probes {
            Some(effort) => probe::measure(&options.work_dir, effort)?,
            None => Vec::new(),
        };
        let machine = machine(&probes);
        let mut adviser = Adviser {
            question,
            options,
            progress,
            stop,
            candidates,
            out,
            costs: BTreeMap::new(),
            probes,
            machine,
        };
        adviser.calibrate()?;
        Ok(adviser)
    }

    fn runner(&self) -> Runner<'a> {
        let Options { work_dir, worker, seed, .. } = self.options;
        Runner { work_dir, worker: worker.as_ref(), stop: self.stop, seed: *seed }
    }

    /// Costs of every store; candidates of one store differ by what small stores do not show.
    fn calibrate(&mut self) -> Result<()> {
        let (runner, workload) = (self.runner(), &self.question.workload);
        let sizes = costs::sizes(workload);
        let mut stores: Vec<Candidate> = Vec::new();
        for candidate in &self.candidates {
            if stores.iter().all(|known| known.store != candidate.store) {
                stores.push(candidate.clone());
            }
        }
        self.progress.group(0, 2, "costs of single operations");
        for (done, store) in stores.iter().enumerate() {
            self.progress.step(done, stores.len(), &store.store);
            let mut all = Vec::new();
            for size in &sizes {
                self.stop.check()?;
                match costs::measure(&runner, store, workload, *size, all.last()) {
                    Ok(costs) => all.push(costs),
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => {
                        self.progress.note(&format!("{}: {error}", store.name));
                        let reason = format!("failed: {error}");
                        self.out.push(Discarded { name: store.name.clone(), reason });
                        all.clear();
                        break;
                    }
                }
            }
            let same = self.candidates.iter().filter(|candidate| candidate.store == store.store);
            if !all.is_empty() {
                self.costs.extend(same.map(|candidate| (candidate.name.clone(), all.clone())));
            }
        }
        self.candidates.retain(|candidate| self.costs.contains_key(&candidate.name));
        Ok(())
    }

    /// Who is going to be run, all predictions with the fastest first, and who is out.
    fn finalists(&self) -> Result<(Vec<usize>, Vec<Prediction>, Vec<Discarded>)> {
        let mut out = self.out.clone();
        let mut predictions = Vec::new();
        for candidate in &self.candidates {
            let costs = self.costs.get(&candidate.name).map(Vec::as_slice).unwrap_or_default();
            let prediction = predict::predict(candidate, costs, &self.question.workload, &self.machine);
            let room = self.question.constraints.disk_bytes;
            if let Some(most) = room.filter(|most| prediction.disk_bytes > *most as f64) {
                let reason = format!(
                    "would take {} of disk of the {} that it may",
                    text::bytes(prediction.disk_bytes),
                    text::bytes(most as f64)
                );
                out.push(Discarded { name: candidate.name.clone(), reason });
            } else {
                predictions.push(prediction);
            }
        }
        predictions.sort_by(|a, b| b.per_sec.total_cmp(&a.per_sec));
        // Who could be the best by the range of the prediction, two at least.
        let least = predictions.first().map_or(0.0, |best| best.range.0);
        let place =
            |prediction: &Prediction| self.candidates.iter().position(|one| one.name == prediction.name);
        let finalists = predictions
            .iter()
            .enumerate()
            .filter(|(rank, prediction)| *rank < 2 || prediction.range.1 * 1.25 >= least)
            .take(self.options.effort.finalists)
            .filter_map(|(_, prediction)| place(prediction))
            .collect();
        Ok((finalists, predictions, out))
    }

    fn verified(&self, finalists: &[usize], predictions: &[Prediction]) -> Result<verify::Verification> {
        self.progress.group(1, 2, "the best few on the workload itself");
        let all: Vec<_> = finalists
            .iter()
            .filter_map(|at| {
                let candidate = self.candidates.get(*at)?;
                let prediction = predictions.iter().find(|prediction| prediction.name == candidate.name)?;
                let loads = self.costs.get(&candidate.name)?.last()?.loads_per_sec;
                Some((candidate, prediction, loads))
            })
            .collect();
        verify::verify(&self.runner(), &all, &self.question.workload, self.options.effort, self.progress)
    }

    /// The constraint that a run has broken.
    fn breaks(&self, one: &Verified, records: u64) -> Option<String> {
        let constraints = &self.question.constraints;
        if let Some(most) = constraints.p99_micros
            && let Some((kind, micros)) = one.p99_micros.iter().find(|(_, micros)| **micros > most)
        {
            return Some(format!(
                "1 of 100 operations of kind {kind} took over {micros:.0} µs; {most:.0} are allowed"
            ));
        }
        if let Some(most) = constraints.memory_bytes
            && let Some(bytes) = one.memory_bytes.filter(|bytes| *bytes > most as f64)
        {
            return Some(format!(
                "took {} of memory; {} are allowed",
                text::bytes(bytes),
                text::bytes(most as f64)
            ));
        }
        let all = one.bytes_per_entry * self.question.workload.records.max(records) as f64;
        let most = constraints.disk_bytes.filter(|most| all > *most as f64)?;
        Some(format!("took {} of disk; {} are allowed", text::bytes(all), text::bytes(most as f64)))
    }
}

fn machine(probes: &[Probe]) -> Machine {
    let of = |name: &str| probes.iter().find(|probe| probe.name.starts_with(name)).map(|probe| probe.value);
    let kib = procfs::field("/proc/meminfo", "MemAvailable")
        .and_then(|value| value.strip_suffix("kB").and_then(|digits| digits.trim().parse::<f64>().ok()));
    Machine {
        cache_bytes: kib.map(|kib| kib * 1024.0),
        read_secs: of("random read 4 KiB p50").map_or(100e-6, |micros| micros / 1e6),
        write_bytes_per_sec: of("sequential write 1 MiB").map_or(500e6, |mb| mb * 1e6),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The winner among those who were run, the fastest first: whose lead over everybody is more than the noise.
fn choose(verified: &[Verified], seed: u64) -> Choice {
    let Some((best, others)) = verified.split_first() else { return Choice::Nobody };
    let ratio = |other: &Verified| stats::paired_ratio(&best.samples, &other.samples, seed);
    let is_behind = |other: &&Verified| {
        let ratio = ratio(other);
        ratio.is_some_and(|ratio: Estimate| ratio.low > 1.0 && ratio.value >= ALIKE)
    };
    let alike: Vec<&Verified> = others.iter().filter(|other| !is_behind(other)).collect();
    if !alike.is_empty() {
        let names = std::iter::once(best).chain(alike).map(|one| one.name.clone()).collect();
        return Choice::NoClearWinner { names };
    }
    let ahead_of = others.first().and_then(|second| {
        let ratio = ratio(second)?;
        Some((second.name.clone(), ratio.value, ratio.low, ratio.high))
    });
    Choice::Winner { name: best.name.clone(), ahead_of }
}

#[cfg(test)]
mod tests;
