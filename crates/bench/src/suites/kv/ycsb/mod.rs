//! YCSB's workloads: records are loaded once, then each workload runs on the contents that the
//! previous ones left.
//!
//! Every operation is drawn before the clock starts, together with its key, because a zipfian draw
//! costs as much as several lookups. With one thread, it is known which write each read must see.
//! With several, reads are compared with all existing writes. Each workload runs twice: for
//! throughput, then a shorter time with the clock around each operation.

mod draw;
mod spec;

use cairn_vfs::Clock;
use serde::{Deserialize, Serialize};

pub use spec::{Mix, Spec};

use self::draw::{Drawing, Stream};
use super::keys::{KeyMaker, Tape};
use super::outcome::{KvMetric, KvOutcome, OperationCase};
use super::turn::{Client, Open, Span, Turn, rate};
use super::values::Values;
use crate::core::error::Result;
use crate::core::histogram::Latencies;
use crate::core::workload::Permutation;
use crate::stores::kv::KvSession;

/// Divisor for the number of operations in the pass for latencies.
pub(crate) const TIMED_SHARE: u64 = 4;

/// Several workloads over the same records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct YcsbRun {
    /// Number of records before the first operation.
    pub records: u64,
    /// Number of operations of each workload that does not define its own.
    pub operations: u64,
    /// Number of threads of each workload that does not define its own.
    pub threads: u32,
    /// The workloads, in the order in which they run.
    pub specs: Vec<Spec>,
    /// Whether to measure a second throughput that includes the time until everything is written
    /// out and merged. A turn that ends before the write buffer is full shows none of that work.
    #[serde(default)]
    pub settled: bool,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Update,
    Scan,
    Insert,
    ReadModifyWrite,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Read, Kind::Update, Kind::Scan, Kind::Insert, Kind::ReadModifyWrite];

    fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Update => "update",
            Kind::Scan => "scan",
            Kind::Insert => "insert",
            Kind::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// The version that the load writes.
pub(super) const LOADED: u32 = 1;

pub(super) fn run(turn: &Turn<'_>, run: &YcsbRun) -> Result<KvOutcome> {
    let mut drawing = Drawing::new(run.records, turn.setup.seed);
    let drawn: Vec<[Vec<Stream>; 2]> = run
        .specs
        .iter()
        .map(|spec| {
            let operations = spec.operations.unwrap_or(run.operations);
            let threads = spec.threads.unwrap_or(run.threads);
            [operations, (operations / TIMED_SHARE).max(1)].map(|count| drawing.draw(spec, count, threads))
        })
        .collect();
    let keys = turn.keys(drawing.records())?;
    // Prepared before the store is opened and kept until its memory is read, so that they do not
    // count as the store's memory.
    let order = Permutation::new(run.records, turn.setup.seed);
    let loaded = Tape::new(keys, (0..run.records).map(|place| order.apply(place)).collect());
    let passes: Vec<[Vec<Lane<'_>>; 2]> =
        drawn.iter().map(|passes| passes.each_ref().map(|streams| lanes(keys, streams))).collect();
    let open = turn.open()?;
    let mut outcome = KvOutcome::default();
    load(turn, &open, run, &loaded, &mut outcome)?;
    let mut last = done_of(run, "load", "ycsb", "new", 1);
    for (spec, [plain, timed]) in run.specs.iter().zip(&passes) {
        open.settle()?;
        let threads = plain.len() as u32;
        let workload = Workload { turn, open: &open, run, spec, keys };
        let spans: Vec<Span> = workload.pass(plain, false)?.into_iter().map(|pass| pass.span).collect();
        let done = workload.done("operations", threads);
        let per_sec = rate(&spans);
        outcome.add(&done, KvMetric::Throughput, per_sec);
        let passes = workload.pass(timed, true)?;
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            let mut all = Latencies::new(0);
            passes.iter().for_each(|pass| all.merge(&pass.latencies[place]));
            outcome.add_latencies(&workload.done(kind.name(), threads), &all);
        }
        if run.settled && spec.mix.writes() > 0.0 {
            let count = |lanes: &[Lane<'_>]| lanes.iter().map(|lane| lane.tape.len()).sum::<usize>() as f64;
            // Both passes have left background work. The pass for latencies pays for its part of
            // it.
            let part = count(plain) / (count(plain) + count(timed));
            let seconds = count(plain) / per_sec + open.settle()? * part;
            outcome.add(&done, KvMetric::SettledThroughput, count(plain) / seconds);
        }
        last = done;
    }
    open.memory_rise();
    // With one thread the final contents are known. With several they depend on the order of
    // writes.
    if let Some(model) = drawing.model() {
        model.check_all(turn, &mut *open.db.session()?, keys, &last)?;
    }
    open.settle()?;
    let size = done_of(run, "size", "ycsb", "present", 1);
    outcome.add(&size, KvMetric::BytesPerEntry, open.disk_bytes()? as f64 / drawing.records() as f64);
    open.close(&last, &mut outcome)?;
    Ok(outcome)
}

fn done_of(run: &YcsbRun, operation: &str, dataset: &str, keys: &str, threads: u32) -> OperationCase {
    OperationCase {
        operation: operation.to_owned(),
        dataset: dataset.to_owned(),
        keys: keys.to_owned(),
        distribution: "uniform".to_owned(),
        entries: run.records,
        threads,
    }
}

/// The operations of one thread with their keys.
struct Lane<'a> {
    operations: &'a [draw::Operation],
    tape: Tape,
}

fn lanes(keys: KeyMaker, streams: &[Stream]) -> Vec<Lane<'_>> {
    let lane = |stream| (Stream::operations(stream), Tape::new(keys, Stream::numbers(stream)));
    streams.iter().map(lane).map(|(operations, tape)| Lane { operations, tape }).collect()
}

/// Puts all records, in an order unrelated to the key order.
fn load(turn: &Turn<'_>, open: &Open<'_>, run: &YcsbRun, tape: &Tape, outcome: &mut KvOutcome) -> Result<()> {
    let values = turn.values()?;
    let spans = open.run(1, false, |_, client| {
        let mut values = values.clone();
        client.span(|client| {
            for (number, key) in tape.iter() {
                client.session.put(key, values.make(number, LOADED))?;
            }
            Ok(run.records)
        })
    })?;
    outcome.add(&done_of(run, "load", "ycsb", "new", 1), KvMetric::Throughput, rate(&spans));
    Ok(())
}

/// One workload on the open store.
struct Workload<'a> {
    turn: &'a Turn<'a>,
    open: &'a Open<'a>,
    run: &'a YcsbRun,
    spec: &'a Spec,
    keys: KeyMaker,
}

/// The results of one thread in a pass.
struct Pass {
    span: Span,
    /// Latencies, by index in [`Kind::ALL`].
    latencies: [Latencies; 5],
}

impl Workload<'_> {
    fn done(&self, operation: &str, threads: u32) -> OperationCase {
        let distribution = self.spec.distribution.to_string();
        OperationCase { distribution, ..done_of(self.run, operation, &self.spec.name, "present", threads) }
    }

    fn pass(&self, lanes: &[Lane<'_>], timed: bool) -> Result<Vec<Pass>> {
        let values = self.turn.values()?;
        let checked = Checked { workload: self, exact: lanes.len() == 1 };
        self.open.run(lanes.len() as u32, false, |index, client| {
            let mut values = values.clone();
            let mut latencies = std::array::from_fn(|_| Latencies::new(self.turn.clock_overhead_ns));
            let span = client.span(|client| {
                let Lane { operations, tape } = &lanes[index];
                for (operation, (number, key)) in operations.iter().zip(tape.iter()) {
                    let start = if timed { client.now() } else { std::time::Duration::ZERO };
                    checked.one(client, &mut values, operation, number, key)?;
                    if timed {
                        latencies[operation.kind as usize].record(self.turn.clock.now() - start);
                    }
                }
                Ok(operations.len() as u64)
            })?;
            Ok(Pass { span, latencies })
        })
    }
}

/// Operations whose answers are checked.
struct Checked<'a> {
    workload: &'a Workload<'a>,
    /// True if it is known which write a read must see.
    exact: bool,
}

impl Checked<'_> {
    #[inline]
    fn one(
        &self,
        client: &mut Client<'_>,
        values: &mut Values,
        operation: &draw::Operation,
        number: u64,
        key: &[u8],
    ) -> Result<()> {
        let session = &mut *client.session;
        match operation.kind {
            Kind::Read => self.read(session, values, operation, number, key),
            Kind::Update | Kind::Insert => session.put(key, values.make(number, operation.writes)),
            Kind::ReadModifyWrite => {
                self.read(session, values, operation, number, key)?;
                session.put(key, values.make(number, operation.writes))
            }
            Kind::Scan => self.scan(session, values, operation, number, key),
        }
    }

    fn read(
        &self,
        session: &mut dyn KvSession,
        values: &mut Values,
        operation: &draw::Operation,
        number: u64,
        key: &[u8],
    ) -> Result<()> {
        let mut version = None;
        let found = session.get(key, &mut |value| version = values.version(number, value))?;
        let right = match version {
            Some(version) => found && (!self.exact || version == operation.sees),
            None => false,
        };
        if right {
            return Ok(());
        }
        let done = self.workload.done("read", 1);
        let expected = values.make(number, operation.sees).to_vec();
        let got = version.map(|version| values.make(number, version).to_vec());
        Err(self.workload.turn.wrong(&done, number, Some(&expected), got.as_deref()))
    }

    /// Performs a scan and checks it. The numbers of the loaded records have no gaps, so a scan
    /// must return them consecutively.
    fn scan(
        &self,
        session: &mut dyn KvSession,
        values: &mut Values,
        operation: &draw::Operation,
        number: u64,
        key: &[u8],
    ) -> Result<()> {
        let (keys, loaded) = (self.workload.keys, self.workload.run.records);
        let (mut count, mut next, mut wrong) = (0_u64, number, None);
        session.scan(key, &mut |key, value| {
            let at = keys.number(key).filter(|at| *at == next || (*at > next && next >= loaded));
            match at.filter(|at| values.version(*at, value).is_some()) {
                None => {
                    wrong = Some(value.to_vec());
                    return false;
                }
                Some(at) => next = at + 1,
            }
            count += 1;
            count < operation.length
        })?;
        let least = operation.length.min(loaded.saturating_sub(number));
        if wrong.is_none() && count >= least {
            return Ok(());
        }
        let done = self.workload.done("scan", 1);
        Err(self.workload.turn.wrong(&done, next, Some(values.make(next, LOADED)), wrong.as_deref()))
    }
}

#[cfg(test)]
mod tests;
