//! The parts that all workloads share: the open store, the clock, threads that start together,
//! checks and meters.

use std::ops::ControlFlow;
use std::sync::{Barrier, OnceLock};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock, thread};

use super::keys::KeyMaker;
use super::meters::tree_bytes;
use super::outcome::TurnSetup;
use super::outcome::{KvMetric, KvOutcome, OperationCase, Shape};
use super::values::Values;
use crate::core::digest::Digest;
use crate::core::error::{Error, Result};
use crate::core::histogram::{Latencies, clock_overhead};
use crate::core::procfs::{Io, PeakMemory};
use crate::stores::kv::{KvDb, KvSession, KvStore};

/// One turn of one store.
pub(super) struct Turn<'a> {
    pub(super) store: &'a dyn KvStore,
    pub(super) setup: &'a TurnSetup,
    pub(super) clock: SystemClock,
    pub(super) clock_overhead_ns: u64,
}

impl<'a> Turn<'a> {
    pub(super) fn new(store: &'a dyn KvStore, setup: &'a TurnSetup) -> Self {
        let clock = SystemClock::new();
        let clock_overhead_ns = clock_overhead(&clock);
        Turn { store, setup, clock, clock_overhead_ns }
    }

    pub(super) fn shape(&self) -> Shape {
        self.setup.shape
    }

    /// Returns the maker of keys for the numbers below `count`.
    pub(super) fn keys(&self, count: u64) -> Result<KeyMaker> {
        KeyMaker::new(self.setup.shape.key_bytes, count)
    }

    pub(super) fn values(&self) -> Result<Values> {
        Values::new(self.setup.shape.value_bytes)
    }

    /// Opens the store in the turn's directory and starts its meters.
    pub(super) fn open(&self) -> Result<Open<'_>> {
        let (memory, io) = (PeakMemory::start(), Io::now());
        let db = self.store.open(&self.setup.dir, &self.setup.settings)?;
        Ok(Open { turn: self, db, memory, rise: OnceLock::new(), io })
    }

    /// Returns the error for a value that differs from the written one. `number` is the key's.
    pub(super) fn wrong(
        &self,
        done: &OperationCase,
        number: u64,
        expected: Option<&[u8]>,
        got: Option<&[u8]>,
    ) -> Error {
        let digest = |value: Option<&[u8]>| {
            let mut digest = Digest::default();
            digest.add_answer(0, value);
            digest
        };
        Error::WrongResult {
            contender: self.store.name().to_owned(),
            case: format!("{} {}, key number {number}", done.dataset, done.operation),
            expected: digest(expected),
            got: digest(got),
        }
    }
}

/// An open store with its meters.
pub(super) struct Open<'a> {
    turn: &'a Turn<'a>,
    pub(super) db: Box<dyn KvDb>,
    memory: Option<PeakMemory>,
    /// The rise of memory, once it has been read.
    rise: OnceLock<Option<u64>>,
    io: Option<Io>,
}

impl Open<'_> {
    /// Flushes buffers and waits until background work is done. Returns the seconds that this took,
    /// without the time that the wait only watched.
    pub(super) fn settle(&self) -> Result<f64> {
        let start = self.turn.clock.now();
        self.db.flush()?;
        let flushed = self.turn.clock.now();
        self.db.wait_idle()?;
        let waited = (self.turn.clock.now() - flushed).saturating_sub(self.db.watched());
        Ok((flushed - start + waited).as_secs_f64())
    }

    /// Returns the rise of memory since the store was opened. The first call fixes the value,
    /// because later allocations are the lab's own.
    pub(super) fn memory_rise(&self) -> Option<u64> {
        *self.rise.get_or_init(|| self.memory.as_ref().and_then(PeakMemory::rise_bytes))
    }

    /// Returns the bytes that the process has dirtied for the disk since the store was opened.
    pub(super) fn written_bytes(&self) -> Option<u64> {
        Some(Io::now()?.written_bytes - self.io?.written_bytes)
    }

    /// Returns the total length of the store's files.
    pub(super) fn disk_bytes(&self) -> Result<u64> {
        tree_bytes(&self.turn.setup.dir)
    }

    /// Runs `work` concurrently on `threads` threads, each with a session of its own. All sessions
    /// exist before any thread starts.
    pub(super) fn run<T: Send>(
        &self,
        threads: u32,
        timed: bool,
        work: impl Fn(usize, &mut Client<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let threads = threads.max(1) as usize;
        let barrier = Barrier::new(threads);
        let one = |index: usize| {
            // Even a thread that gets no session has to reach the barrier, or the others would wait
            // forever.
            let session = self.db.session();
            barrier.wait();
            let mut session = session?;
            let mut client = Client {
                session: &mut *session,
                clock: &self.turn.clock,
                timed,
                latencies: Latencies::new(self.turn.clock_overhead_ns),
            };
            work(index, &mut client)
        };
        if threads == 1 {
            return Ok(vec![one(0)?]);
        }
        thread::scope(|scope| {
            let one = &one;
            let spawned: Vec<_> = (0..threads).map(|index| scope.spawn(move || one(index))).collect();
            let name = self.turn.store.name();
            let joined = spawned.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(Error::engine(name, "one of its threads panicked")))
            });
            joined.collect()
        })
    }

    /// Closes the store, and adds the final counters and memory to `outcome`.
    pub(super) fn close(self, done: &OperationCase, outcome: &mut KvOutcome) -> Result<()> {
        outcome.counters.extend(self.db.stats()?);
        if let Some(bytes) = self.memory_rise() {
            let done = OperationCase { operation: "whole turn".to_owned(), ..done.clone() };
            outcome.add(&done, KvMetric::PeakMemory, bytes as f64);
        }
        self.db.close()
    }
}

/// The session and the clock of one thread.
pub(super) struct Client<'s> {
    pub(super) session: &'s mut (dyn KvSession + 's),
    clock: &'s SystemClock,
    timed: bool,
    pub(super) latencies: Latencies,
}

/// The start, the end and the number of a thread's operations.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) start: Duration,
    pub(super) end: Duration,
    pub(super) operations: u64,
    pub(super) latencies: Latencies,
}

impl Span {
    pub(super) fn seconds(&self) -> f64 {
        (self.end - self.start).as_secs_f64()
    }
}

impl Client<'_> {
    /// Performs one operation, timed if this turn measures latencies.
    #[inline]
    pub(super) fn op<T>(&mut self, operation: impl FnOnce(&mut dyn KvSession) -> Result<T>) -> Result<T> {
        if !self.timed {
            return operation(self.session);
        }
        let start = self.clock.now();
        let result = operation(self.session);
        self.latencies.record(self.clock.now() - start);
        result
    }

    /// Runs `work`, which returns its number of operations, and records when it ran.
    pub(super) fn span(&mut self, work: impl FnOnce(&mut Self) -> Result<u64>) -> Result<Span> {
        let empty = Latencies::new(self.latencies.clock_overhead_ns());
        self.latencies = empty.clone();
        let start = self.clock.now();
        let operations = work(self)?;
        let end = self.clock.now();
        let latencies = std::mem::replace(&mut self.latencies, empty);
        Ok(Span { start, end, operations, latencies })
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now()
    }
}

/// Adds the throughput of concurrent spans, or their latencies if they were timed.
pub(super) fn add_spans(outcome: &mut KvOutcome, done: &OperationCase, spans: &[Span], timed: bool) {
    if timed {
        let mut all = Latencies::new(0);
        spans.iter().for_each(|span| all.merge(&span.latencies));
        outcome.add_latencies(done, &all);
    } else {
        outcome.add(done, KvMetric::Throughput, rate(spans));
    }
}

/// Returns all operations divided by the time from the first start to the last end. It is not the
/// sum of the threads' own rates: when there are more threads than processors, they do not run at
/// the same time.
pub(super) fn rate(spans: &[Span]) -> f64 {
    let operations: u64 = spans.iter().map(|span| span.operations).sum();
    let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let end = spans.iter().map(|span| span.end).max().unwrap_or_default();
    operations as f64 / (end - start).as_secs_f64().max(1e-9)
}

/// The expected contents of a store: for each key's number its last write, 0 for none.
#[derive(Debug, Clone)]
pub(super) struct Model {
    versions: Vec<u32>,
}

impl Model {
    /// Creates an empty model for numbers below `count`.
    pub(super) fn new(count: u64) -> Self {
        Model { versions: vec![0; count as usize] }
    }

    /// Sets key `number` to write `version`; 0 removes it.
    #[inline]
    pub(super) fn set(&mut self, number: u64, version: u32) {
        self.versions[number as usize] = version;
    }

    /// Returns the last write of key `number`; 0 for none.
    #[inline]
    pub(super) fn version(&self, number: u64) -> u32 {
        self.versions[number as usize]
    }

    /// Makes room for numbers below `count`.
    pub(super) fn grow(&mut self, count: u64) {
        self.versions.resize(self.versions.len().max(count as usize), 0);
    }

    /// Returns the number of existing keys.
    pub(super) fn entries(&self) -> u64 {
        self.versions.iter().filter(|version| **version > 0).count() as u64
    }

    /// Returns, for each number, the first existing one at or after it.
    pub(super) fn following(&self) -> Vec<Option<u64>> {
        let mut following = vec![None; self.versions.len()];
        let mut next = None;
        for (number, version) in self.versions.iter().enumerate().rev() {
            if *version > 0 {
                next = Some(number as u64);
            }
            following[number] = next;
        }
        following
    }

    /// Reads the whole store in order and compares every entry with its expected content.
    pub(super) fn check_all(
        &self,
        turn: &Turn<'_>,
        session: &mut dyn KvSession,
        keys: KeyMaker,
        done: &OperationCase,
    ) -> Result<()> {
        let mut values = turn.values()?;
        let done =
            OperationCase { operation: format!("{}, then all of the store", done.operation), ..done.clone() };
        let mut next = 0_u64;
        let mut check = |key: Option<&[u8]>, got: Option<&[u8]>| {
            let at = key.map_or(Some(self.versions.len() as u64), |key| keys.number(key));
            // All numbers between the previous entry and this one must be absent.
            let Some(at) = at.filter(|at| *at >= next) else {
                return ControlFlow::Break(turn.wrong(&done, next, None, got));
            };
            let missing = (next..at.min(self.versions.len() as u64)).find(|number| self.version(*number) > 0);
            if let Some(number) = missing {
                let expected = values.make(number, self.version(number)).to_vec();
                return ControlFlow::Break(turn.wrong(&done, number, Some(&expected), None));
            }
            if let Some(got) = got {
                let version = self.versions.get(at as usize).copied().unwrap_or(0);
                if version == 0 || !values.is(at, version, got) {
                    let expected = (version > 0).then(|| values.make(at, version).to_vec());
                    return ControlFlow::Break(turn.wrong(&done, at, expected.as_deref(), Some(got)));
                }
            }
            next = at + 1;
            ControlFlow::Continue(())
        };
        let mut wrong = None;
        session.scan(b"", &mut |key, value| match check(Some(key), Some(value)) {
            ControlFlow::Continue(()) => true,
            ControlFlow::Break(error) => {
                wrong = Some(error);
                false
            }
        })?;
        match (wrong, check(None, None)) {
            (Some(error), _) | (None, ControlFlow::Break(error)) => Err(error),
            (None, ControlFlow::Continue(())) => Ok(()),
        }
    }
}

/// Looks a key up and checks that the answer is write `version` (0: absent). Timed like every
/// operation.
#[inline]
pub(super) fn checked_get(
    turn: &Turn<'_>,
    client: &mut Client<'_>,
    values: &Values,
    done: &OperationCase,
    (number, key, version): (u64, &[u8], u32),
) -> Result<()> {
    let mut right = true;
    let found =
        client.op(|session| session.get(key, &mut |value| right = values.is(number, version, value)))?;
    if right && found == (version > 0) {
        return Ok(());
    }
    Err(wrong_get(turn, client, values, done, (number, key, version)))
}

#[cold]
fn wrong_get(
    turn: &Turn<'_>,
    client: &mut Client<'_>,
    values: &Values,
    done: &OperationCase,
    (number, key, version): (u64, &[u8], u32),
) -> Error {
    let expected = (version > 0).then(|| values.clone().make(number, version).to_vec());
    // The key is looked up again only to report the wrong answer. The error stands in any case.
    let mut got = None;
    let _ = client.session.get(key, &mut |value| got = Some(value.to_vec()));
    turn.wrong(done, number, expected.as_deref(), got.as_deref())
}
