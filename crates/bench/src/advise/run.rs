//! One turn of one candidate: a workload of the key-value suite, in a process of its own.

use std::collections::BTreeMap;
use std::path::Path;

use super::candidate::Candidate;
use super::question::Workload;
use super::traced::Traced;
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::core::process::Stop;
use crate::core::scratch::Scratch;
use crate::core::worker::Worker;
use crate::stores::catalog::Registry;
use crate::stores::kv::{KvSettings, KvStore};
use crate::suites::kv::job::{KvJob, KvWorkload};
use crate::suites::kv::outcome::{KvMetric, KvOutcome, Shape, TurnSetup};
use crate::suites::kv::{YCSB_TIMED_SHARE, YcsbRun, YcsbSpec, map_bytes};

/// Runs turns of candidates.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    pub stores: &'a Registry<dyn KvStore>,
    pub work_dir: &'a Path,
    /// `None` runs turns in this process, for tests.
    pub worker: Option<&'a Worker>,
    pub stop: &'a Stop,
    pub seed: u64,
}

/// The measurements of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// Operations per second by the name of the workload. For workloads that write, the time
    /// includes settling.
    pub throughput: BTreeMap<String, f64>,
    /// Latencies by kind of operation, of the workload that is asked for.
    pub latencies: BTreeMap<String, Latencies>,
    /// Entries loaded per second.
    pub load: f64,
    pub bytes_per_entry: f64,
    /// The largest rise of resident memory, in bytes.
    pub memory_bytes: Option<f64>,
    /// Approximate number of entries at the end, because inserts are drawn at random.
    pub entries: u64,
}

impl Runner<'_> {
    /// Loads `records` entries and runs the workloads one after the other, checking every answer.
    ///
    /// Errors: those of the store; [`Error::WrongResult`]; [`Error::Interrupted`].
    pub fn run(
        &self,
        candidate: &Candidate,
        workload: &Workload,
        records: u64,
        specs: &[YcsbSpec],
    ) -> Result<Measured> {
        let scratch = Scratch::in_dir(self.work_dir, "advise")?;
        let run = KvWorkload::Ycsb(YcsbRun { records, ..workload.run(specs.to_vec()) });
        // A turn inserts entries, and even a short one may insert more than its small store held,
        // so the map is sized for this run.
        let settings =
            KvSettings { map_bytes: map_bytes(&run, workload.shape()), ..candidate.settings.clone() };
        let setup = TurnSetup {
            store: candidate.store.clone(),
            dir: scratch.dir("store")?,
            settings,
            shape: workload.shape(),
            seed: self.seed,
            timed: false,
        };
        let job = KvJob { setup, workload: run };
        let writes = |name: &str| specs.iter().any(|spec| spec.name == name && spec.mix.writes() > 0.0);
        let measured = read(self.carry_out(job)?, &workload.name, &writes);
        Ok(Measured { entries: records + inserted(specs), ..measured })
    }

    /// Replays a trace twice, checking every answer: `operations` operations for throughput, then
    /// `timed` operations for latencies. `is_whole` selects a store with all entries of the trace
    /// instead of those that its first operations need.
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
            let setup = TurnSetup {
                store: candidate.store.clone(),
                dir: scratch.dir("store")?,
                settings: KvSettings { map_bytes: traced.map_bytes, ..candidate.settings.clone() },
                shape,
                seed: self.seed,
                timed,
            };
            let job = KvJob { setup, workload: KvWorkload::Replay(traced.part(operations, is_whole)) };
            Ok::<_, Error>(read(self.carry_out(job)?, name, &|_| traced.writes))
        };
        let measured = one(operations, false)?;
        let latencies = one(timed, true)?.latencies;
        Ok(Measured { latencies, ..measured })
    }

    fn carry_out(&self, job: KvJob) -> Result<KvOutcome> {
        let outcome = match self.worker {
            Some(worker) => worker.run(&job, self.stop)?,
            None => job.carry_out(self.stores),
        };
        outcome.map_err(Error::from)
    }
}

impl Measured {
    /// Returns the operations per second of a workload; 0 if none has that name.
    pub fn per_sec(&self, name: &str) -> f64 {
        self.throughput.get(name).copied().unwrap_or_default()
    }
}

/// Returns the number of entries that workloads insert, in both of their passes.
fn inserted(specs: &[YcsbSpec]) -> u64 {
    let of = |spec: &YcsbSpec| {
        let operations = spec.operations.unwrap_or(0);
        (operations + operations / YCSB_TIMED_SHARE) as f64 * spec.mix.insert / spec.mix.total()
    };
    specs.iter().map(of).sum::<f64>() as u64
}

/// Extracts the figures from an outcome: latencies of the workload `timed`, and throughput, for
/// workloads that write including settling.
fn read(outcome: KvOutcome, timed: &str, writes: &dyn Fn(&str) -> bool) -> Measured {
    let mut measured = Measured::default();
    for figure in outcome.figures {
        let value = figure.values.first().copied().unwrap_or_default();
        match figure.metric {
            KvMetric::Throughput if figure.done.operation == "load" => measured.load = value,
            // A write is complete only when the background work that it causes is complete. Turns
            // are too short for that work to show in plain throughput.
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
