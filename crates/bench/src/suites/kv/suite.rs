//! The suite itself: for each group, each store has its turns.

use std::collections::BTreeMap;

use super::job::KvJob;
use super::options::Options;
use super::outcome::{Figure, KvMetric, KvOutcome, TurnSetup};
use super::plan::{KvGroup, plan};
use super::{baseline, db_bench, job, large, overwrite};
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::core::process::Stop;
use crate::core::progress::Progress;
use crate::core::recorder::Recorder;
use crate::core::results::{Case, Contender, Run};
use crate::core::scratch::Scratch;
use crate::core::workload::Durability;
use crate::stores::bare_device::{self, Device};
use crate::stores::catalog::{Catalog, Selection};
use crate::stores::kv::KvStore;
use crate::suites::driver::{self, Description, Lab, Order, Setup, Suite};

/// The suite's name in stored runs.
pub const NAME: &str = "kv";

/// Runs the suite with all requested stores that are available.
///
/// Failures on the way are recorded in the result and do not end the run. When `stop` is reached,
/// the run ends with the results so far.
///
/// Errors: invalid options, a work directory that cannot be written.
pub fn run(options: &Options, catalog: &Catalog, progress: &dyn Progress, stop: &Stop) -> Result<Run> {
    run_with(options, catalog.kv.select(&options.dbs)?, progress, stop)
}

/// Like [`run`], with stores of the caller's choice.
pub fn run_with(
    options: &Options,
    stores: Selection<dyn KvStore>,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<Run> {
    options.check()?;
    let planned = Planned {
        suite: NAME,
        groups: plan(options),
        data: options.data_sentence(),
        settings: options.settings(),
    };
    driver::drive(&mut KvSuite::new(options, &planned, stores), progress, stop)
}

/// The planned work of a run.
pub(super) struct Planned {
    /// The suite's name in stored runs.
    pub suite: &'static str,
    /// The groups of turns, in order.
    pub groups: Vec<KvGroup>,
    /// The data, in a sentence: [`Description::data`].
    pub data: String,
    /// The settings that influence results: [`Description::settings`].
    pub settings: BTreeMap<String, String>,
}

pub(super) struct KvSuite<'a> {
    options: &'a Options,
    planned: &'a Planned,
    stores: Selection<dyn KvStore>,
    counters: Vec<(String, String, f64)>,
}

impl Suite for KvSuite<'_> {
    fn setup(&self) -> Setup<'_> {
        let Options { ref work_dir, probes, seed, .. } = *self.options;
        Setup { suite: self.planned.suite, work_dir, probes, seed }
    }

    fn skipped(&self) -> &[Contender] {
        &self.stores.skipped
    }

    fn measure(&mut self, lab: &mut Lab<'_>) -> Result<()> {
        lab.probes.extend(baseline::probes(self.options)?);
        let names: Vec<String> = self.stores.stores.iter().map(|store| store.name().to_owned()).collect();
        let groups = &self.planned.groups;
        lab.groups(
            groups,
            |group| group.name.clone(),
            |lab, _, group| self.group(lab, group),
            |lab, reason| names.iter().for_each(|name| lab.recorder.problem(name, reason.clone())),
        )
    }

    fn description(&self) -> Description {
        let Planned { data, settings, .. } = self.planned;
        Description { mode: "custom".to_owned(), data: data.clone(), settings: settings.clone() }
    }

    fn contenders(&self, recorder: &Recorder) -> Vec<Contender> {
        let groups = &self.planned.groups;
        let mut durabilities: Vec<Durability> = Vec::new();
        for group in groups {
            if !durabilities.contains(&group.settings.durability) {
                durabilities.push(group.settings.durability);
            }
        }
        let mut contenders: Vec<Contender> = Vec::new();
        let device: Box<dyn KvStore> = Box::new(Device);
        let with_device = groups.iter().any(|group| group.device).then_some(&device);
        for store in self.stores.stores.iter().chain(with_device) {
            let mut settings = store.settings(&self.options.settings);
            for &durability in &durabilities {
                settings.insert(format!("durability {durability}"), store.guarantee(durability).sentence());
            }
            // The counters are those of the last turn, because each turn has a store of its own.
            for (_, counter, value) in self.counters.iter().filter(|(name, ..)| name == store.name()) {
                settings.insert(counter.clone(), format!("{value}"));
            }
            let name = store.name();
            contenders.push(driver::contender(
                recorder,
                (name, name),
                (store.version(), store.ours()),
                settings,
            ));
        }
        contenders.extend(self.stores.skipped.iter().cloned());
        contenders
    }
}

impl<'a> KvSuite<'a> {
    pub(super) fn new(options: &'a Options, planned: &'a Planned, stores: Selection<dyn KvStore>) -> Self {
        KvSuite { options, planned, stores, counters: Vec::new() }
    }

    /// Runs all rounds of one group, and the turn for latencies.
    fn group(&mut self, lab: &mut Lab<'_>, group: &KvGroup) -> Result<()> {
        let mut contenders: Vec<String> =
            self.stores.stores.iter().map(|store| store.name().to_owned()).collect();
        if group.device {
            contenders.push(bare_device::NAME.to_owned());
        }
        let rounds = self.options.rounds + u32::from(group.timed);
        let total = rounds as usize * contenders.len();
        let mut done = 0;
        lab.rounds(contenders, (rounds, Order::Listed), |lab, round, name| {
            let timed = round == self.options.rounds;
            let what = if timed { "latencies".to_owned() } else { format!("round {}", round + 1) };
            lab.progress.step(done, total, &format!("{name}, {what}"));
            done += 1;
            match self.turn(lab, group, name, timed) {
                Ok(outcome) => self.keep(lab, group, name, outcome),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    let wrong = if error.is_wrong_result() { "answered wrong: " } else { "" };
                    lab.progress.note(&format!("{name} in {}: {wrong}{error}", group.name));
                    let reason = format!("{}: {error}", group.name);
                    lab.recorder.withdraw(name, &|case| case_is_of(case, group), reason);
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn turn(&self, lab: &Lab<'_>, group: &KvGroup, name: &str, timed: bool) -> Result<KvOutcome> {
        let scratch = Scratch::in_dir(&self.options.work_dir, NAME)?;
        let setup = TurnSetup {
            store: name.to_owned(),
            dir: scratch.dir("store")?,
            settings: group.settings.clone(),
            shape: group.shape,
            seed: self.options.seed,
            timed,
        };
        let job = KvJob { setup, workload: group.workload.clone() };
        let Some(worker) = &self.options.worker else {
            let known = self.stores.stores.iter().find(|store| store.name() == name);
            return job.carry_out_with(known.map_or(&Device as &dyn KvStore, |store| &**store));
        };
        worker.run(&job, lab.stop)?.map_err(Error::from)
    }

    fn keep(&mut self, lab: &mut Lab<'_>, group: &KvGroup, name: &str, outcome: KvOutcome) {
        for figure in outcome.figures {
            let case = case_of(&figure, group);
            let metric = figure.metric.metric();
            if figure.metric == KvMetric::ThroughputOverTime {
                // The rates over time come from one round. Several rounds would not be samples of
                // the same quantity.
                if !lab.recorder.has_series(name, &case, metric) {
                    lab.recorder.add_turn(name, &case, metric, &figure.values);
                }
                continue;
            }
            let Some(&value) = figure.values.first() else { continue };
            if figure.buckets.is_empty() {
                lab.recorder.add(name, &case, metric, value);
            } else {
                let mut latencies = Latencies::new(0);
                latencies.add_buckets(&figure.buckets);
                lab.recorder.add_latencies(name, &case, metric, (value, &latencies));
            }
        }
        for (counter, value) in outcome.counters {
            self.counters.push((name.to_owned(), format!("counter, {}: {counter}", group.name), value));
        }
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
