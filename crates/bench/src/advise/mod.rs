//! The adviser: which store, with which settings, for a workload on this machine, and how sure that
//! is.
//!
//! ```text
//!   question: workload, constraints
//!     └─► candidates: stores x settings ─► who cannot keep the promise is out
//!           └─► costs: single operations, measured on small stores ─► predictions at the workload's size ─► who breaks a constraint is out
//!                 └─► the best few are run, interleaved ─► the choice, or that there is none ─► what would change it
//! ```
//!
//! A prediction only decides who is run; what is advised has been measured. `check` says how good
//! that is: on workloads of many kinds everybody is run, and the choice is held against the best.

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

use self::change::Changing;
use self::choice::choose;
use self::run::Runner;
use self::traced::Traced;
use self::verify::{Finalist, Verification, Verifier};
use crate::error::{Error, Result};
use crate::probe::{self, ProbeEffort};
use crate::process::Stop;
use crate::procfs;
use crate::results::Probe;
use crate::runner::worker::Worker;
use crate::suite_hash::Progress;
use crate::text::bytes;

/// A prediction of disk is off by less than this.
const FAR_BEYOND: f64 = 2.0;

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
    /// It was ended before everybody who was to be run was.
    #[serde(default)]
    pub stopped: bool,
    /// What is not certain about it, in sentences without a full stop.
    pub notes: Vec<String>,
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
/// Errors: a question that makes no sense; a work directory that cannot be written;
/// [`Error::Interrupted`].
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
    let settings = chosen.map_or_else(|| Ok(String::new()), Candidate::code)?;
    let changing = Changing {
        workload: &question.workload,
        records: verification.records,
        candidates: &adviser.candidates,
        verified: &verification.verified,
        costs: &adviser.costs,
        discarded: &discarded,
        machine: &adviser.machine,
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

/// What running somebody came to.
struct Answer {
    choice: Choice,
    verification: Verification,
    predictions: Vec<Prediction>,
    discarded: Vec<Discarded>,
    notes: Vec<String>,
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
        let (candidates, out) = candidate::candidates(question)?;
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

    /// All predictions with the fastest first, and who is out. What would take more disk than there
    /// may be is out only where the prediction is far beyond it: the rest is measured.
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
                    "would take {} of disk; {} are allowed",
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

    /// Who is run next: those of before who are `kept`, and of those who are left, the fastest
    /// first, who could be the best by the range of the prediction. So many stores, two at first
    /// whatever their range, each with those of its settings that could be.
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

    /// Runs candidates, with so many entries or as many as there is time for.
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

    /// Runs the best few, and where less than two stores of them keep to the constraints the next
    /// ones beside those, until two do or nobody is left who could be the best.
    fn answer(&self) -> Result<Answer> {
        let (predictions, mut discarded) = self.predictions();
        let mut left: Vec<&Prediction> = predictions.iter().collect();
        let mut kept: Vec<&Prediction> = Vec::new();
        let (mut verification, mut notes) = (Verification::default(), Vec::new());
        self.progress.group(1, 2, "the best few on the workload itself");
        // BOUND: each turn runs one at least who is not left after it.
        loop {
            let finalists = self.finalists(&left, &kept);
            if finalists.len() == kept.len() {
                break;
            }
            match self.verified(&finalists, None) {
                Ok(verified) => verification = verified,
                // What those are worth who were run before is known.
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
