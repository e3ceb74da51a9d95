//! One turn of one candidate: a workload of the suite of key-value stores, in a process of its own.

use std::collections::BTreeMap;
use std::path::Path;

use super::candidate::Candidate;
use super::question::Workload;
use super::traced::Traced;
use crate::error::{Error, Result};
use crate::histogram::Latencies;
use crate::process::Stop;
use crate::runner::job::{Job, JobResult};
use crate::runner::worker::Worker;
use crate::scratch::Scratch;
use crate::suite_kv::job::{KvJob, KvMetric, KvOutcome, KvWorkload, Shape, carry_out};
use crate::suite_kv::{KvSettings, YCSB_TIMED_SHARE, YcsbRun, YcsbSpec, map_bytes};

/// Takes turns.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub work_dir: &'a Path,
    /// `None`: in this process, for tests.
    pub worker: Option<&'a Worker>,
    pub stop: &'a Stop,
    pub seed: u64,
}

/// What a turn found.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Operations a second, by the name of the workload; of those that write, until what they wrote
    /// is settled.
    pub throughput: BTreeMap<String, f64>,
    /// Latencies by kind, of the workload that is asked for.
    pub latencies: BTreeMap<String, Latencies>,
    /// Entries a second of the load.
    pub load: f64,
    pub bytes_per_entry: f64,
    /// The largest rise of resident memory.
    pub memory_bytes: Option<f64>,
    /// Entries in the end, about: which operations insert is drawn.
    pub entries: u64,
}

impl Runner<'_> {
    /// Loads `records` entries and runs the workloads one after the other, every answer checked.
    ///
    /// Errors: the store's own; [`Error::WrongResult`]; [`Error::Interrupted`].
    pub fn run(
        &self,
        candidate: &Candidate,
        workload: &Workload,
        records: u64,
        specs: &[YcsbSpec],
    ) -> Result<Measured> {
        let scratch = Scratch::in_dir(self.work_dir, "advise")?;
        let run = KvWorkload::Ycsb(YcsbRun { records, ..workload.run(specs.to_vec()) });
        // A turn inserts, and a short one may insert more than its small store held.
        let settings =
            KvSettings { map_bytes: map_bytes(&run, workload.shape()), ..candidate.settings.clone() };
        let job = KvJob {
            store: candidate.store.clone(),
            dir: scratch.dir("store")?,
            settings,
            shape: workload.shape(),
            workload: run,
            seed: self.seed,
            timed: false,
        };
        let writes = |name: &str| specs.iter().any(|spec| spec.name == name && spec.mix.writes() > 0.0);
        let measured = read(self.carry_out(job)?, &workload.name, &writes);
        Ok(Measured { entries: records + inserted(specs), ..measured })
    }

    /// Replays a trace twice, every answer checked: so many operations for throughput, then so many
    /// for latencies; of all its entries or of those of the first operations.
    ///
    /// Errors: as [`Runner::run`].
    pub fn replay(
        &self,
        candidate: &Candidate,
        traced: &Traced,
        (operations, timed, is_whole): (u64, u64, bool),
        shape: Shape,
    ) -> Result<Measured> {
        let name = traced.replay.name.as_str();
        let one = |operations: u64, timed: bool| {
            let scratch = Scratch::in_dir(self.work_dir, "advise")?;
            let job = KvJob {
                store: candidate.store.clone(),
                dir: scratch.dir("store")?,
                settings: KvSettings { map_bytes: traced.map_bytes, ..candidate.settings.clone() },
                shape,
                workload: KvWorkload::Replay(traced.part(operations, is_whole)),
                seed: self.seed,
                timed,
            };
            Ok::<_, Error>(read(self.carry_out(job)?, name, &|_| traced.writes))
        };
        let measured = one(operations, false)?;
        let latencies = one(timed, true)?.latencies;
        Ok(Measured { latencies, ..measured })
    }

    fn carry_out(&self, job: KvJob) -> Result<KvOutcome> {
        let Some(worker) = self.worker else { return carry_out(&job) };
        match worker.run(&Job::Kv(Box::new(job)), self.stop)? {
            JobResult::Kv(outcome) => outcome.map_err(Error::from),
            other => Err(Error::process("a worker", format!("answered with {other:?}"))),
        }
    }
}

impl Measured {
    /// Operations a second of a workload; 0 where there is none of the name.
    pub fn per_sec(&self, name: &str) -> f64 {
        self.throughput.get(name).copied().unwrap_or_default()
    }
}

/// Entries that workloads insert, in both of their passes.
fn inserted(specs: &[YcsbSpec]) -> u64 {
    let of = |spec: &YcsbSpec| {
        let operations = spec.operations.unwrap_or(0);
        (operations + operations / YCSB_TIMED_SHARE) as f64 * spec.mix.insert / spec.mix.total()
    };
    specs.iter().map(of).sum::<f64>() as u64
}

/// What of an outcome is of use: latencies of the workload `timed`, throughput until settled of
/// those that write.
fn read(outcome: KvOutcome, timed: &str, writes: &dyn Fn(&str) -> bool) -> Measured {
    let mut measured = Measured::default();
    for figure in outcome.figures {
        let value = figure.values.first().copied().unwrap_or_default();
        match figure.metric {
            KvMetric::Throughput if figure.done.operation == "load" => measured.load = value,
            // A write is done when the work that it leaves is done, and turns are too short to show
            // that by themselves.
            KvMetric::Throughput if writes(&figure.done.dataset) => {}
            KvMetric::Throughput => _ = measured.throughput.insert(figure.done.dataset, value),
            KvMetric::SettledThroughput if writes(&figure.done.dataset) => {
                measured.throughput.insert(figure.done.dataset, value);
            }
            KvMetric::Latency if timed == figure.done.dataset => {
                let mut latencies = Latencies::new(0);
                latencies.add_buckets(&figure.buckets);
                measured.latencies.insert(figure.done.operation, latencies);
            }
            KvMetric::BytesPerEntry => measured.bytes_per_entry = value,
            KvMetric::PeakMemory => measured.memory_bytes = Some(value),
            _ => {}
        }
    }
    measured
}
