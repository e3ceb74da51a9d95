//! The adviser: recommends a store and its settings for a workload on this machine, and says how
//! certain that is.
//!
//! ```text
//!   question: workload, constraints
//!     └─► candidates: stores x settings
//!         (a store that cannot give the asked durability is excluded)
//!           └─► costs: single operations, measured on small stores
//!               └─► predictions at the workload's size
//!                   (a candidate far over the limit of disk is excluded)
//!                     └─► the best few run, interleaved
//!                         (a candidate that breaks a constraint is excluded)
//!                         └─► the choice, or that there is none
//!                             └─► changes to the workload that would change it
//! ```
//!
//! A prediction only decides which candidates run; the advice itself rests on measurement. `check`
//! evaluates the advice: on workloads of many kinds it runs all candidates and compares the choice
//! with the best.

mod candidate;
mod change;
pub mod check;
mod choice;
mod costs;
mod fields;
mod limits;
mod predict;
mod question;
mod run;
mod text;
mod traced;
mod verify;
mod workload_file;

use std::collections::BTreeMap;
use std::path::PathBuf;

use cairn_vfs::{Fs, StdFs};
use serde::{Deserialize, Serialize};

pub use candidate::{Candidate, Discarded};
pub use choice::Choice;
pub use costs::{Costs, Kind};
pub use predict::{Machine, Prediction};
pub use question::{Constraints, Question, Workload};
pub use text::to_text;
pub use traced::from_trace;
pub use verify::{Effort, Verified};
pub use workload_file::from_json;

use self::change::Changing;
use self::choice::choose;
use self::run::Runner;
use self::traced::Traced;
use self::verify::{Finalist, Verification, Verifier};
use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::results::Probe;
use crate::core::text::bytes;
use crate::core::worker::Worker;
use crate::core::{probe, procfs};
use crate::stores::catalog::Registry;
use crate::stores::kv::KvStore;

/// Upper bound of the factor by which a prediction of disk space is wrong.
const FAR_BEYOND: f64 = 2.0;

/// Options of the adviser.
#[derive(Debug, Clone)]
pub struct Options {
    /// The stores to choose from.
    pub stores: &'static Registry<dyn KvStore>,
    /// Directory for the stores, on the disk that the question is about.
    pub work_dir: PathBuf,
    /// Starts a fresh process for each turn; `None` runs everything in this process.
    pub worker: Option<Worker>,
    /// How many candidates run, how often and how long.
    pub effort: Effort,
    /// Seed of all random draws.
    pub seed: u64,
    /// Effort of the machine probes; `None` for no probes.
    pub probes: Option<ProbeEffort>,
}

/// An answer with all the data behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The question.
    pub question: Question,
    /// Description of the machine.
    pub machine: Vec<(String, String)>,
    /// Measured properties of the machine.
    pub probes: Vec<Probe>,
    /// The recommendation.
    pub choice: Choice,
    /// True if the run ended before all finalists had run.
    #[serde(default)]
    pub stopped: bool,
    /// Reservations about the answer, as sentences without a full stop.
    pub notes: Vec<String>,
    /// The settings of the choice, as code to paste.
    pub settings: String,
    /// Changes to the workload that would change the answer.
    pub changes: Vec<String>,
    /// The candidates that were run, ordered from the fastest.
    pub verified: Vec<Verified>,
    /// Number of entries in the stores that were run.
    pub verified_records: u64,
    /// All predictions, ordered from the fastest.
    pub predictions: Vec<Prediction>,
    /// The candidates that were excluded, with reasons.
    pub discarded: Vec<Discarded>,
    /// Costs measured on small stores, by candidate.
    pub costs: BTreeMap<String, Vec<Costs>>,
}

/// Answers a question.
///
/// Errors: [`Error::Invalid`] for a question that makes no sense; a work directory that is not
/// writable; [`Error::Interrupted`].
pub fn advise(
    question: &Question,
    options: &Options,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Advice> {
    question.workload.check()?;
    let adviser = Adviser::new(question, options, progress, stop)?;
    let Answer { choice, verification, predictions, discarded, notes } = adviser.answer()?;
    let stopped = verification.stopped;
    let chosen = choice.name().and_then(|name| adviser.candidates.iter().find(|one| one.name == name));
    let settings = chosen.map_or_else(|| Ok(String::new()), |one| one.code(options.stores))?;
    let changing = Changing {
        workload: &question.workload,
        records: verification.records,
        candidates: &adviser.candidates,
        verified: &verification.verified,
        costs: &adviser.costs,
        discarded: &discarded,
        machine: &adviser.machine,
        stores: options.stores,
        alike: choice.alike(),
    };
    let changes = choice.name().map(|name| changing.from(name)).unwrap_or_default();
    Ok(Advice {
        question: question.clone(),
        machine: probe::describe(&options.work_dir),
        probes: adviser.probes,
        choice,
        stopped,
        notes,
        settings,
        changes,
        verified: verification.verified,
        verified_records: verification.records,
        predictions,
        discarded,
        costs: adviser.costs,
    })
}

/// The outcome of running the finalists.
struct Answer {
    choice: Choice,
    verification: Verification,
    predictions: Vec<Prediction>,
    discarded: Vec<Discarded>,
    notes: Vec<String>,
}

/// Everything that is known before a candidate runs at full size.
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
    traced: Option<Traced>,
}

impl<'a> Adviser<'a> {
    /// Probes the machine and measures costs.
    fn new(
        question: &'a Question,
        options: &'a Options,
        progress: &'a dyn Progress,
        stop: &'a Stop,
    ) -> Result<Self> {
        let (candidates, out) = candidate::candidates(question, options.stores)?;
        let threads = question.workload.threads;
        let traced = question.trace.as_deref().map(|path| Traced::new(path, threads)).transpose()?;
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
            traced,
        };
        adviser.calibrate()?;
        Ok(adviser)
    }

    fn runner(&self) -> Runner<'a> {
        let Options { stores, work_dir, worker, seed, .. } = self.options;
        Runner { stores, work_dir, worker: worker.as_ref(), stop: self.stop, seed: *seed }
    }

    /// Measures the costs of one candidate per store. Candidates of the same store differ only in
    /// settings that have no effect on small stores.
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

    /// Returns all predictions, ordered from the fastest, and the excluded candidates. A candidate
    /// that needs too much disk is excluded only if the prediction is far over the limit; otherwise
    /// it is measured.
    fn predictions(&self) -> (Vec<Prediction>, Vec<Discarded>) {
        let mut out = self.out.clone();
        let mut predictions = Vec::new();
        for candidate in &self.candidates {
            let prediction = predict::predict(
                candidate,
                self.costs_of(&candidate.name),
                &self.question.workload,
                &self.machine,
            );
            let room = self.question.constraints.disk_bytes;
            if let Some(most) = room.filter(|most| prediction.disk_bytes > FAR_BEYOND * *most as f64) {
                let reason = format!(
                    "would take {} of disk, the limit is {}",
                    bytes(prediction.disk_bytes),
                    bytes(most as f64)
                );
                out.push(Discarded { name: candidate.name.clone(), reason });
            } else {
                predictions.push(prediction);
            }
        }
        predictions.sort_by(|a, b| b.per_sec.total_cmp(&a.per_sec));
        (predictions, out)
    }

    fn costs_of(&self, name: &str) -> &[Costs] {
        self.costs.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn finalist<'b>(&'b self, prediction: &'b Prediction) -> Option<Finalist<'b>> {
        let candidate = self.candidates.iter().find(|one| one.name == prediction.name)?;
        Some(Finalist { candidate, prediction, costs: self.costs_of(&prediction.name) })
    }

    /// Returns the candidates to run next: the `kept` ones of the previous turn, and from `left`,
    /// which is ordered from the fastest, those that could be the best within the range of their
    /// prediction. The number of stores is limited. The first two stores run whatever their range,
    /// each with all of its settings that could be the best.
    fn finalists<'b>(&'b self, left: &[&'b Prediction], kept: &[&'b Prediction]) -> Vec<Finalist<'b>> {
        let least = kept.iter().chain(left).map(|prediction| prediction.range.0).fold(0.0, f64::max);
        let mut found: Vec<Finalist<'b>> =
            kept.iter().filter_map(|prediction| self.finalist(prediction)).collect();
        let mut stores: Vec<&str> = Vec::new();
        for finalist in &found {
            if !stores.contains(&finalist.candidate.store.as_str()) {
                stores.push(&finalist.candidate.store);
            }
        }
        let most = self.options.effort.finalists.max(stores.len() + 1);
        for finalist in left.iter().filter_map(|prediction| self.finalist(prediction)) {
            let store = finalist.candidate.store.as_str();
            let (is_known, could_be) = (stores.contains(&store), finalist.prediction.range.1 * 1.25 >= least);
            if is_known && could_be {
                found.push(finalist);
            } else if !is_known && stores.len() < most && (could_be || (kept.is_empty() && stores.len() < 2))
            {
                stores.push(store);
                found.push(finalist);
            }
        }
        found
    }

    /// Runs candidates on stores of `records` entries, or of as many as can be loaded in time.
    fn verified(&self, finalists: &[Finalist<'_>], records: Option<u64>) -> Result<Verification> {
        let verifier = Verifier {
            runner: self.runner(),
            workload: &self.question.workload,
            traced: self.traced.as_ref(),
            effort: self.options.effort,
            machine: &self.machine,
            asks_p99: self.question.constraints.p99_us.is_some(),
            progress: self.progress,
        };
        verifier.run(finalists, records)
    }

    /// Runs the best few candidates. While fewer than two stores meet the constraints, it runs the
    /// next ones in addition, until two do or no candidate is left that could be the best.
    fn answer(&self) -> Result<Answer> {
        let (predictions, mut discarded) = self.predictions();
        let mut left: Vec<&Prediction> = predictions.iter().collect();
        let mut kept: Vec<&Prediction> = Vec::new();
        let (mut verification, mut notes) = (Verification::default(), Vec::new());
        self.progress.group(1, 2, "the best few on the workload itself");
        // BOUND: each turn runs at least one candidate that leaves `left`.
        loop {
            let finalists = self.finalists(&left, &kept);
            if finalists.len() == kept.len() {
                break;
            }
            match self.verified(&finalists, None) {
                Ok(verified) => verification = verified,
                // The candidates of the previous turns are measured, so their results stand.
                Err(Error::Interrupted) if !verification.verified.is_empty() => {
                    verification.stopped = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            left.retain(|prediction| finalists.iter().all(|one| one.candidate.name != prediction.name));
            discarded.append(&mut verification.failed);
            let records = verification.records;
            verification.verified.retain(|one| match self.broken(one, records) {
                Some(reason) => {
                    discarded.push(Discarded { name: one.name.clone(), reason });
                    false
                }
                None => true,
            });
            let verified = &verification.verified;
            let has_two =
                verified.iter().any(|one| Some(&one.store) != verified.first().map(|first| &first.store));
            if verification.stopped || has_two {
                break;
            }
            let is_kept = |one: &Finalist<'_>| verified.iter().any(|kept| kept.name == one.candidate.name);
            kept = finalists.iter().filter(|one| is_kept(one)).map(|one| one.prediction).collect();
        }
        for one in &verification.verified {
            notes.extend(limits::unknown(self.question, one, verification.records));
        }
        if verification.stopped {
            let rounds = verification.verified.first().map_or(0, |one| one.samples.len());
            notes.push(format!("ended early, after {rounds} of {} rounds", self.options.effort.rounds));
            if verification.verified.is_empty() {
                notes.push("not all stores were run".to_owned());
            }
        }
        if let Some(traced) = &self.traced {
            notes.extend(traced.notes.iter().cloned());
            notes.extend(verification.note.clone());
            let peak = traced.peak_per_sec.unwrap_or(0.0);
            let slower = verification.verified.iter().filter(|one| one.median < peak);
            notes.extend(
                slower.map(|one| format!("{} does not keep up with the trace's busiest moment", one.name)),
            );
        }
        let doubt = predict::doubt_of_growth(verification.records, self.question.workload.records);
        let choice = choose(&verification.verified, self.options.seed, doubt);
        Ok(Answer { choice, verification, predictions, discarded, notes })
    }

    fn broken(&self, one: &Verified, records: u64) -> Option<String> {
        let candidate = self.candidates.iter().find(|candidate| candidate.name == one.name)?;
        limits::broken(self.question, one, candidate, self.costs_of(&one.name), records)
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

#[cfg(test)]
mod tests;
