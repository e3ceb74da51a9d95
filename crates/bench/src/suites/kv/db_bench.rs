//! db_bench's benchmarks, under db_bench's names, in the requested order.
//!
//! `fillseq` and `fillrandom` begin with an empty store; the others continue with the existing one.
//! Writing benchmarks have one thread. Reading ones have as many as the run says. After each
//! benchmark that has written, buffers are written out and background work comes to rest, outside
//! of all timing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cairn_vfs::{Rng, SeededRng};
use serde::{Deserialize, Serialize};

use super::keys::{KeyMaker, Order, Tape};
use super::outcome::TurnSetup;
use super::outcome::{KvOutcome, OperationCase};
use super::turn::{Client, Model, Open, Span, Turn, add_spans, checked_get};
use super::values::Values;
use crate::core::error::{Error, Result};

/// One benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Benchmark {
    /// Puts in key order, into an empty store.
    FillSeq,
    /// Puts of random keys, into an empty store.
    FillRandom,
    /// Puts of random keys.
    Overwrite,
    /// Gets of random keys.
    ReadRandom,
    /// All entries in order.
    ReadSeq,
    /// Seeks to random keys, reading one entry at each.
    SeekRandom,
    /// Like `readrandom`, while one thread overwrites.
    ReadWhileWriting,
    /// Gets of random keys, many at a time.
    MultiReadRandom,
    /// Deletes of random keys.
    DeleteRandom,
}

impl Benchmark {
    /// All benchmarks.
    pub const ALL: [Benchmark; 9] = [
        Benchmark::FillSeq,
        Benchmark::FillRandom,
        Benchmark::Overwrite,
        Benchmark::ReadRandom,
        Benchmark::ReadSeq,
        Benchmark::SeekRandom,
        Benchmark::ReadWhileWriting,
        Benchmark::MultiReadRandom,
        Benchmark::DeleteRandom,
    ];

    /// Returns db_bench's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Benchmark::FillSeq => "fillseq",
            Benchmark::FillRandom => "fillrandom",
            Benchmark::Overwrite => "overwrite",
            Benchmark::ReadRandom => "readrandom",
            Benchmark::ReadSeq => "readseq",
            Benchmark::SeekRandom => "seekrandom",
            Benchmark::ReadWhileWriting => "readwhilewriting",
            Benchmark::MultiReadRandom => "multireadrandom",
            Benchmark::DeleteRandom => "deleterandom",
        }
    }

    fn is_fill(self) -> bool {
        matches!(self, Benchmark::FillSeq | Benchmark::FillRandom)
    }
}

impl FromStr for Benchmark {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Benchmark::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
            let known: Vec<&str> = Benchmark::ALL.iter().map(|known| known.name()).collect();
            Error::invalid(format!("benchmark {name:?}: expected {}", known.join(", ")))
        })
    }
}

/// Several benchmarks on one store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbBench {
    /// The benchmarks, in the order in which they run.
    pub benchmarks: Vec<Benchmark>,
    /// Number of keys, and of operations in each benchmark.
    pub operations: u64,
    /// Number of threads in reading benchmarks.
    pub threads: u32,
}

/// The name of the mode.
pub const NAME: &str = "db_bench";

/// Number of keys in one multiget, as many as RocksDB itself looks up together.
const MULTI_KEYS: usize = 32;

pub(super) fn run(turn: &Turn<'_>, bench: &DbBench) -> Result<KvOutcome> {
    let keys = turn.keys(bench.operations)?;
    let mut outcome = KvOutcome::default();
    let mut rest = bench.benchmarks.as_slice();
    let mut part = 0;
    let mut turns = HashMap::new();
    // Each fill begins a part with a directory of its own. Benchmarks before the first fill have an
    // empty store.
    while !rest.is_empty() {
        let end = rest.iter().skip(1).position(|next| next.is_fill()).map_or(rest.len(), |place| place + 1);
        let (now, later) = rest.split_at(end);
        let dir: PathBuf = turn.setup.dir.join(format!("part-{part}"));
        cairn_vfs::Fs::create_dir_all(&cairn_vfs::StdFs::new(), &dir)?;
        let setup = TurnSetup { dir, ..turn.setup.clone() };
        let turn = Turn::new(turn.store, &setup);
        run_part(&turn, bench, now, keys, (&mut turns, &mut outcome))?;
        crate::core::scratch::remove_tree(&setup.dir)?;
        (rest, part) = (later, part + 1);
    }
    Ok(outcome)
}

fn run_part(
    turn: &Turn<'_>,
    bench: &DbBench,
    benchmarks: &[Benchmark],
    keys: KeyMaker,
    (turns, outcome): (&mut HashMap<Benchmark, u32>, &mut KvOutcome),
) -> Result<()> {
    let open = turn.open()?;
    let model = Model::new(bench.operations);
    let mut part = Part { turn, bench, open: &open, keys, model, version: 0, draws: 0, turns };
    for &benchmark in benchmarks {
        *part.turns.entry(benchmark).or_default() += 1;
        part.one(benchmark, outcome)?;
    }
    let done = part.done(*benchmarks.last().unwrap_or(&Benchmark::ReadSeq));
    part.model.check_all(turn, &mut *open.db.session()?, keys, &done)?;
    open.close(&done, outcome)
}

struct Part<'a> {
    turn: &'a Turn<'a>,
    bench: &'a DbBench,
    open: &'a Open<'a>,
    keys: KeyMaker,
    model: Model,
    /// Version written by the last benchmark that wrote.
    version: u32,
    /// Number of tapes drawn so far, so that each is different.
    draws: u64,
    /// How often each benchmark has run.
    turns: &'a mut HashMap<Benchmark, u32>,
}

impl Part<'_> {
    fn done(&self, benchmark: Benchmark) -> OperationCase {
        let sequential = matches!(benchmark, Benchmark::FillSeq | Benchmark::ReadSeq);
        let alone = benchmark.is_fill()
            || matches!(benchmark, Benchmark::Overwrite | Benchmark::DeleteRandom | Benchmark::ReadSeq);
        // A benchmark that runs again finds a different store, so its measurements are recorded
        // separately.
        let name = benchmark.name();
        let operation = match self.turns.get(&benchmark) {
            None | Some(1) => name.to_owned(),
            Some(turn) => format!("{name} {turn}"),
        };
        OperationCase {
            operation,
            dataset: NAME.to_owned(),
            keys: if benchmark.is_fill() { "new" } else { "mixed" }.to_owned(),
            distribution: if sequential { "sequential" } else { "uniform" }.to_owned(),
            entries: self.bench.operations,
            threads: if alone { 1 } else { self.bench.threads },
        }
    }

    fn drawn(&mut self, count: u64) -> Tape {
        self.draws += 1;
        let seed = self.turn.setup.seed.wrapping_mul(131).wrapping_add(self.draws);
        Tape::new(self.keys, Order::Drawn { below: self.bench.operations, seed }.numbers(count))
    }

    fn one(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        let count = self.bench.operations;
        match benchmark {
            Benchmark::FillSeq => {
                let tape = Tape::new(self.keys, Order::Sequential { first: 0 }.numbers(count));
                self.write(benchmark, &tape, true, outcome)
            }
            Benchmark::FillRandom | Benchmark::Overwrite => {
                let tape = self.drawn(count);
                self.write(benchmark, &tape, true, outcome)
            }
            Benchmark::DeleteRandom => {
                let tape = self.drawn(count);
                self.write(benchmark, &tape, false, outcome)
            }
            Benchmark::ReadRandom => self.read(benchmark, outcome),
            Benchmark::MultiReadRandom => self.multi_read(benchmark, outcome),
            Benchmark::ReadSeq => self.read_seq(benchmark, outcome),
            Benchmark::SeekRandom => self.seek(benchmark, outcome),
            Benchmark::ReadWhileWriting => self.read_while_writing(benchmark, outcome),
        }
    }

    fn write(&mut self, benchmark: Benchmark, tape: &Tape, put: bool, outcome: &mut KvOutcome) -> Result<()> {
        let values = self.turn.values()?;
        self.version += 1;
        let (version, timed) = (self.version, self.turn.setup.timed);
        let spans = self.open.run(1, timed, |_, client| {
            let mut values = values.clone();
            client.span(|client| {
                for (number, key) in tape.iter() {
                    client.op(|session| {
                        if put { session.put(key, values.make(number, version)) } else { session.delete(key) }
                    })?;
                }
                Ok(tape.len() as u64)
            })
        })?;
        for &number in tape.numbers() {
            self.model.set(number, if put { version } else { 0 });
        }
        add_spans(outcome, &self.done(benchmark), &spans, timed);
        self.open.settle().map(|_| ())
    }

    /// Runs `one` on as many threads as the run has, each with random keys of its own.
    fn readers(
        &mut self,
        benchmark: Benchmark,
        outcome: &mut KvOutcome,
        one: impl Fn(&Self, &mut Client<'_>, &Values, &Tape, &OperationCase) -> Result<u64> + Sync,
    ) -> Result<()> {
        let threads = self.bench.threads.max(1);
        let share = (self.bench.operations / u64::from(threads)).max(1);
        let tapes: Vec<Tape> = (0..threads).map(|_| self.drawn(share)).collect();
        let (values, done, timed) = (self.turn.values()?, self.done(benchmark), self.turn.setup.timed);
        let this = &*self;
        let spans = self.open.run(threads, timed, |index, client| {
            client.span(|client| one(this, client, &values, &tapes[index], &done))
        })?;
        add_spans(outcome, &done, &spans, timed);
        Ok(())
    }

    fn read(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        self.readers(benchmark, outcome, |this, client, values, tape, done| {
            for (number, key) in tape.iter() {
                checked_get(this.turn, client, values, done, (number, key, this.model.version(number)))?;
            }
            Ok(tape.len() as u64)
        })
    }

    fn multi_read(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        self.readers(benchmark, outcome, |this, client, values, tape, done| {
            let mut keys: Vec<&[u8]> = Vec::with_capacity(MULTI_KEYS);
            let mut numbers = Vec::with_capacity(MULTI_KEYS);
            for batch in tape.batches(MULTI_KEYS) {
                keys.clear();
                numbers.clear();
                for (number, key) in batch {
                    numbers.push(number);
                    keys.push(key);
                }
                let (mut answers, mut wrong) = (0, None);
                client.op(|session| {
                    session.multi_get(&keys, &mut |place, value| {
                        let number = numbers[place];
                        let version = this.model.version(number);
                        answers += 1;
                        let right = value.map_or(version == 0, |value| values.is(number, version, value));
                        if !right {
                            wrong = Some((number, value.map(<[u8]>::to_vec)));
                        }
                    })
                })?;
                if answers != keys.len() {
                    wrong = wrong.or(Some((numbers[0], None)));
                }
                if let Some((number, got)) = wrong {
                    let version = this.model.version(number);
                    let expected = (version > 0).then(|| values.clone().make(number, version).to_vec());
                    return Err(this.turn.wrong(done, number, expected.as_deref(), got.as_deref()));
                }
            }
            Ok(tape.len() as u64)
        })
    }

    fn read_seq(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        // To a clock, the whole scan is one operation, so only its throughput is meaningful.
        if self.turn.setup.timed {
            return Ok(());
        }
        let done = self.done(benchmark);
        let spans = self.open.run(1, false, |_, client| {
            client.span(|client| {
                self.model.check_all(self.turn, client.session, self.keys, &done)?;
                Ok(self.model.entries())
            })
        })?;
        add_spans(outcome, &done, &spans, false);
        Ok(())
    }

    fn seek(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        let following = self.model.following();
        self.readers(benchmark, outcome, |this, client, values, tape, done| {
            for (number, key) in tape.iter() {
                let expected = following[number as usize];
                let mut got = None;
                client.op(|session| {
                    session.scan(key, &mut |key, value| {
                        let at = this.keys.number(key);
                        got = at.filter(|at| values.is(*at, this.model.version(*at), value));
                        false
                    })
                })?;
                if got != expected {
                    let value = |number: Option<u64>| {
                        number.map(|number| values.clone().make(number, this.model.version(number)).to_vec())
                    };
                    return Err(this.turn.wrong(
                        done,
                        number,
                        value(expected).as_deref(),
                        value(got).as_deref(),
                    ));
                }
            }
            Ok(tape.len() as u64)
        })
    }

    /// The readers perform a fixed number of gets. The writer overwrites until the last reader is
    /// done.
    fn read_while_writing(&mut self, benchmark: Benchmark, outcome: &mut KvOutcome) -> Result<()> {
        let readers = self.bench.threads.max(1);
        let share = (self.bench.operations / u64::from(readers)).max(1);
        let tapes: Vec<Tape> = (0..readers).map(|_| self.drawn(share)).collect();
        self.version += 1;
        let (old, version) = (&self.model, self.version);
        let (values, done, timed) = (self.turn.values()?, self.done(benchmark), self.turn.setup.timed);
        let (left, failed) = (AtomicUsize::new(readers as usize), AtomicBool::new(false));
        let seed = self.turn.setup.seed ^ u64::from(version);
        let below = self.bench.operations;
        let results = self.open.run(readers + 1, timed, |index, client| {
            let mut values = values.clone();
            let Some(tape) = tapes.get(index) else {
                return overwrite_until(client, &left, &failed, |client, written| {
                    one_overwrite(
                        client,
                        self.keys,
                        &mut values,
                        SeededRng::new(seed),
                        below,
                        version,
                        written,
                    )
                });
            };
            let span = client.span(|client| {
                for (number, key) in tape.iter() {
                    let mut seen = None;
                    let found = client
                        .op(|session| session.get(key, &mut |value| seen = values.version(number, value)))?;
                    let right = match seen {
                        Some(seen) => found && (seen == version || seen == old.version(number)),
                        None => !found && old.version(number) == 0,
                    };
                    if !right {
                        let value =
                            |version| (version > 0).then(|| values.clone().make(number, version).to_vec());
                        let (expected, got) = (value(old.version(number)), seen.and_then(value));
                        return Err(self.turn.wrong(&done, number, expected.as_deref(), got.as_deref()));
                    }
                }
                Ok(tape.len() as u64)
            });
            left.fetch_sub(1, Ordering::Release);
            failed.fetch_or(span.is_err(), Ordering::Release);
            Ok((span?, Vec::new()))
        })?;
        let (spans, written): (Vec<Span>, Vec<Vec<u64>>) = results.into_iter().unzip();
        let (gets, puts) = spans.split_at(readers as usize);
        add_spans(outcome, &done, gets, timed);
        let writer =
            OperationCase { operation: format!("{}, its writer", benchmark.name()), threads: 1, ..done };
        add_spans(outcome, &writer, puts, timed);
        for number in written.into_iter().flatten() {
            self.model.set(number, version);
        }
        self.open.settle().map(|_| ())
    }
}

/// Writes until no reader is left, and returns the numbers of the written keys.
fn overwrite_until(
    client: &mut Client<'_>,
    left: &AtomicUsize,
    failed: &AtomicBool,
    write: impl FnOnce(&mut Client<'_>, &mut dyn FnMut(u64) -> bool) -> Result<()>,
) -> Result<(Span, Vec<u64>)> {
    let mut written = Vec::new();
    let span = client.span(|client| {
        write(client, &mut |number| {
            written.push(number);
            left.load(Ordering::Acquire) > 0 && !failed.load(Ordering::Acquire)
        })?;
        Ok(written.len() as u64)
    })?;
    Ok((span, written))
}

/// Overwrites random keys until `go_on`, which receives the number of each, returns false.
fn one_overwrite(
    client: &mut Client<'_>,
    keys: KeyMaker,
    values: &mut Values,
    mut rng: SeededRng,
    below: u64,
    version: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<()> {
    let mut key = keys.blank();
    loop {
        let number = rng.below(below);
        keys.write(number, &mut key);
        client.op(|session| session.put(&key, values.make(number, version)))?;
        if !go_on(number) {
            return Ok(());
        }
    }
}
