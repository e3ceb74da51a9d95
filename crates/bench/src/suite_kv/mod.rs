//! The suite of key-value stores: DKV's six modes, YCSB, db_bench, and the long-term costs of a
//! store.
//!
//! ```text
//!   options ─► plan: groups, one for each mode and shape
//!                 └─► for each round, for each store in shuffled order: one turn in a new process
//!                        │   turn: open ─ phases, answers checked ─ settle ─ store checked ─ close
//!                        └─► recorder: samples ─► medians and intervals ─► Run
//! ```
//!
//! Every turn begins with an empty directory and a fresh process. So the bytes that the kernel
//! counts for the process are those that this store wrote, background threads included, and its
//! memory is the store's own.

mod baseline;
pub mod catalog;
mod crud;
mod db_bench;
mod device;
mod guarantee;
pub mod job;
mod keys;
mod large;
pub mod layout;
pub mod matrix;
pub(crate) mod meters;
mod options;
mod overwrite;
mod plan;
#[cfg(feature = "peers")]
pub(crate) mod quiet;
pub mod replay;
mod store;
mod threads;
mod turn;
mod values;
mod writers;
mod ycsb;

use std::collections::BTreeMap;

use cairn_vfs::SeededRng;

pub use catalog::KvCatalog;
pub use db_bench::Benchmark;
pub use device::NAME as DEVICE;
pub use keys::KEY_BYTES_MAX;
pub use options::{Mode, Options};
pub(crate) use plan::map_bytes;
pub use plan::{KvGroup, plan};
pub use guarantee::{Fit, Guarantee};
pub use store::{KvBatch, KvDb, KvSession, KvSettings, KvStore};
pub use values::{VALUE_BYTES_MAX, VALUE_BYTES_MIN};
pub use ycsb::{Mix, Spec as YcsbSpec};
pub(crate) use ycsb::{TIMED_SHARE as YCSB_TIMED_SHARE, YcsbRun};

use self::job::{Figure, KvJob, KvMetric, KvOutcome};
use crate::error::{Error, Result};
use crate::histogram::Latencies;
use crate::process::Stop;
use crate::results::{Case, Contender, Run};
use crate::runner::begun::{Begun, Ended, note_stopped};
use crate::runner::job::{Job, JobResult};
use crate::scratch::Scratch;
use crate::suite_hash::Progress;
use crate::suite_hash::recorder::Recorder;
use crate::workload::{Durability, shuffle};

/// The suite's name in stored runs.
pub const NAME: &str = "kv";

/// Runs the suite with all requested stores that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written.
pub fn run(options: &Options, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    run_with(options, catalog::select(&options.dbs)?, progress, stop)
}

/// Like [`run`], with stores of the caller's choice.
pub fn run_with(options: &Options, catalog: KvCatalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    options.check()?;
    let planned = Planned {
        suite: NAME,
        groups: plan(options),
        data: options.data_sentence(),
        settings: options.settings(),
    };
    run_planned(options, &planned, catalog, progress, stop)
}

/// The planned work of a run.
struct Planned {
    suite: &'static str,
    groups: Vec<KvGroup>,
    data: String,
    settings: BTreeMap<String, String>,
}

fn run_planned(
    options: &Options,
    planned: &Planned,
    catalog: KvCatalog,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    let mut begun = Begun::new(planned.suite, &options.work_dir, options.probes)?;
    begun.probes.extend(baseline::probes(options)?);
    let groups = &planned.groups;
    let mut suite = Suite::new(options, catalog, progress, stop);
    let mut stopped = false;
    for (index, group) in groups.iter().enumerate() {
        progress.group(index, groups.len(), &group.name);
        match suite.group(group) {
            Ok(()) => {}
            Err(Error::Interrupted) => {
                stopped = true;
                note_stopped(&suite.recorder, progress);
                break;
            }
            Err(error) => {
                progress.note(&format!("{}: {error}", group.name));
                for store in &suite.catalog.stores {
                    suite.recorder.problem(store.name(), format!("{}: {error}", group.name));
                }
            }
        }
    }
    let ended = Ended {
        mode: "custom".to_owned(),
        seed: options.seed,
        data: planned.data.clone(),
        settings: planned.settings.clone(),
        contenders: suite.contenders(groups),
        stopped,
    };
    Ok(begun.into_run(ended, suite.recorder))
}

struct Suite<'a> {
    options: &'a Options,
    catalog: KvCatalog,
    progress: &'a dyn Progress,
    stop: &'a Stop,
    recorder: Recorder,
    rng: SeededRng,
    counters: Vec<(String, String, f64)>,
}

impl<'a> Suite<'a> {
    fn new(options: &'a Options, catalog: KvCatalog, progress: &'a dyn Progress, stop: &'a Stop) -> Self {
        catalog.skipped.iter().filter_map(Contender::why_left_out).for_each(|line| progress.note(&line));
        let (recorder, rng) = (Recorder::new(options.seed), SeededRng::new(options.seed));
        Suite { options, catalog, progress, stop, recorder, rng, counters: Vec::new() }
    }

    /// Runs all rounds of one group, and the turn for latencies.
    fn group(&mut self, group: &KvGroup) -> Result<()> {
        let mut taking_part: Vec<String> =
            self.catalog.stores.iter().map(|store| store.name().to_owned()).collect();
        if group.device {
            taking_part.push(DEVICE.to_owned());
        }
        let rounds = self.options.rounds + u32::from(group.timed);
        let total = rounds as usize * taking_part.len();
        let mut done = 0;
        for round in 0..rounds {
            let timed = round == self.options.rounds;
            let mut turns = taking_part.clone();
            shuffle(&mut turns, &mut self.rng);
            for name in turns {
                self.stop.check()?;
                let what = if timed { "latencies".to_owned() } else { format!("round {}", round + 1) };
                self.progress.step(done, total, &format!("{name}, {what}"));
                done += 1;
                match self.turn(group, &name, timed) {
                    Ok(outcome) => self.keep(group, &name, outcome),
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(error) => {
                        let wrong = if error.is_wrong_result() { "answered wrong: " } else { "" };
                        self.progress.note(&format!("{name} in {}: {wrong}{error}", group.name));
                        let reason = format!("{}: {error}", group.name);
                        self.recorder.withdraw(&name, &|case| case_is_of(case, group), reason);
                        taking_part.retain(|other| *other != name);
                    }
                }
            }
        }
        Ok(())
    }

    fn turn(&self, group: &KvGroup, name: &str, timed: bool) -> Result<KvOutcome> {
        let scratch = Scratch::in_dir(&self.options.work_dir, NAME)?;
        let job = KvJob {
            store: name.to_owned(),
            dir: scratch.dir("store")?,
            settings: group.settings.clone(),
            shape: group.shape,
            workload: group.workload.clone(),
            seed: self.options.seed,
            timed,
        };
        let Some(worker) = &self.options.worker else {
            let known = self.catalog.stores.iter().find(|store| store.name() == name);
            return match known {
                Some(store) => job::carry_out_with(&**store, &job),
                None => job::carry_out(&job),
            };
        };
        match worker.run(&Job::Kv(Box::new(job)), self.stop)? {
            JobResult::Kv(outcome) => outcome.map_err(Error::from),
            other => Err(Error::process("a worker", format!("answered with {other:?}"))),
        }
    }

    fn keep(&mut self, group: &KvGroup, name: &str, outcome: KvOutcome) {
        for figure in outcome.figures {
            let case = case_of(&figure, group);
            let metric = figure.metric.metric();
            if figure.metric == KvMetric::ThroughputOverTime {
                // The rates over time come from one round. Several rounds would not be samples of
                // the same quantity.
                if !self.recorder.has_series(name, &case, metric) {
                    self.recorder.add_turn(name, &case, metric, &figure.values);
                }
                continue;
            }
            let Some(&value) = figure.values.first() else { continue };
            if figure.buckets.is_empty() {
                self.recorder.add(name, &case, metric, value);
            } else {
                let mut latencies = Latencies::new(0);
                latencies.add_buckets(&figure.buckets);
                self.recorder.add_latencies(name, &case, metric, (value, &latencies));
            }
        }
        for (counter, value) in outcome.counters {
            self.counters.push((name.to_owned(), format!("counter, {}: {counter}", group.name), value));
        }
    }

    /// Returns all requested contenders, with all settings.
    fn contenders(&self, groups: &[KvGroup]) -> Vec<Contender> {
        let mut durabilities: Vec<Durability> = Vec::new();
        for group in groups {
            if !durabilities.contains(&group.settings.durability) {
                durabilities.push(group.settings.durability);
            }
        }
        let mut contenders: Vec<Contender> = Vec::new();
        let device: Box<dyn KvStore> = Box::new(device::Device);
        let with_device = groups.iter().any(|group| group.device).then_some(&device);
        for store in self.catalog.stores.iter().chain(with_device) {
            let mut settings = store.settings(&self.options.settings);
            for &durability in &durabilities {
                settings.insert(format!("durability {durability}"), store.guarantee(durability).sentence());
            }
            // The counters are those of the last turn, because each turn has a store of its own.
            for (_, counter, value) in self.counters.iter().filter(|(name, ..)| name == store.name()) {
                settings.insert(counter.clone(), format!("{value}"));
            }
            let skipped = self.recorder.explain(store.name(), &mut settings);
            contenders.push(Contender {
                name: store.name().to_owned(),
                family: store.name().to_owned(),
                version: store.version(),
                ours: store.ours(),
                settings,
                skipped,
            });
        }
        contenders.extend(self.catalog.skipped.iter().cloned());
        contenders
    }
}

fn case_of(figure: &Figure, group: &KvGroup) -> Case {
    let done = figure.done.clone();
    Case {
        operation: done.operation,
        dataset: done.dataset,
        entries: done.entries,
        value_bytes: group.shape.value_bytes as u32,
        compression: "none".to_owned(),
        keys: done.keys,
        distribution: done.distribution,
        threads: done.threads,
    }
}

/// Returns true for cases on which a wrong answer in a group casts doubt: those with the same mode
/// and shape.
fn case_is_of(case: &Case, group: &KvGroup) -> bool {
    case.value_bytes as usize == group.shape.value_bytes
        && match &group.workload {
            job::KvWorkload::Crud(crud) => case.dataset == crud.mode,
            job::KvWorkload::Threads(threads) => case.dataset == threads.mode,
            job::KvWorkload::Writers(writers) => case.dataset == writers.mode,
            job::KvWorkload::Ycsb(run) => {
                case.dataset == "ycsb" || run.specs.iter().any(|spec| spec.name == case.dataset)
            }
            job::KvWorkload::DbBench(_) => case.dataset == db_bench::NAME,
            job::KvWorkload::Large(_) => case.dataset == large::NAME,
            job::KvWorkload::Overwrite(_) => case.dataset == overwrite::NAME,
            job::KvWorkload::Replay(replay) => case.dataset == replay.name,
        }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
