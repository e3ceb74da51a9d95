//! Operations drawn in advance, with the versions that each must see.
//!
//! Records are numbered from 0: first the loaded ones, then inserts. Each thread inserts numbers of
//! its own. So the records that it may access are known without communication between threads:
//! those that existed before, and its own.

use cairn_vfs::{Rng, SeededRng};

use super::super::turn::Model;
use super::spec::{ScanLength, Spec};
use super::{Kind, LOADED};
use crate::core::workload::{Distribution, Sampler, Zipf};

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    /// Number of the record.
    pub(super) number: u64,
    /// The version that it writes.
    pub(super) writes: u32,
    /// The version that it must see if only one thread runs.
    pub(super) sees: u32,
    /// Number of records in a scan.
    pub(super) length: u64,
}

/// The operations of one thread.
#[derive(Debug, Clone)]
pub(super) struct Stream(Vec<Operation>);

impl Stream {
    pub(super) fn operations(&self) -> &[Operation] {
        &self.0
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.0.iter().map(|operation| operation.number).collect()
    }
}

/// Draws streams one after another, and tracks the contents that they leave.
#[derive(Debug)]
pub(super) struct Drawing {
    seed: u64,
    records: u64,
    /// The last version. Versions increase over the whole run.
    version: u32,
    model: Model,
    /// False once several threads have written, because the order of their writes is unknown.
    known: bool,
}

impl Drawing {
    /// Creates a drawing for a store that holds `records` records.
    pub(super) fn new(records: u64, seed: u64) -> Self {
        let mut model = Model::new(records);
        (0..records).for_each(|number| model.set(number, LOADED));
        Drawing { seed, records, version: LOADED, model, known: true }
    }

    /// Returns the number of records after everything that was drawn.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the expected final contents of the store, if they are known.
    pub(super) fn model(&self) -> Option<&Model> {
        self.known.then_some(&self.model)
    }

    /// Draws the streams of `threads` threads, with `operations` operations in total.
    pub(super) fn draw(&mut self, spec: &Spec, operations: u64, threads: u32) -> Vec<Stream> {
        let threads = threads.max(1);
        self.known &= threads == 1;
        let before = self.records;
        let mut streams = Vec::new();
        for thread in 0..u64::from(threads) {
            let share = operations / u64::from(threads) + u64::from(thread < operations % u64::from(threads));
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(thread + 1);
            let mut dice = OperationSampler::new(spec, before, self.seed);
            // The inserts of one thread have consecutive numbers, after those of the threads before
            // it.
            let (first_own, mut own) = (self.records, 0);
            let mut stream = Vec::with_capacity(share as usize);
            for _ in 0..share {
                let operation = dice.roll(spec, before, first_own, own);
                own += u64::from(operation.kind == Kind::Insert);
                stream.push(self.note(operation));
            }
            self.records += own;
            streams.push(Stream(stream));
        }
        self.model.grow(self.records);
        streams
    }

    /// Fills in the versions that the operation writes and sees.
    fn note(&mut self, mut operation: Operation) -> Operation {
        self.model.grow(operation.number + 1);
        operation.sees = self.model.version(operation.number);
        if matches!(operation.kind, Kind::Update | Kind::Insert | Kind::ReadModifyWrite) {
            self.version = self.version.wrapping_add(1).max(LOADED + 1);
            operation.writes = self.version;
            self.model.set(operation.number, self.version);
        }
        operation
    }
}

/// Draws one thread's operations.
struct OperationSampler {
    rng: SeededRng,
    shares: [f64; 5],
    records: Sampler,
    /// Draws among the newest records, whose number grows as the thread inserts.
    newest: Option<Zipf>,
    lengths: Option<Zipf>,
}

impl OperationSampler {
    fn new(spec: &Spec, records: u64, seed: u64) -> Self {
        let newest = match spec.distribution {
            Distribution::Latest { theta } => Some(Zipf::new(records, theta)),
            _ => None,
        };
        let lengths = (spec.scan_length == ScanLength::Zipfian).then(|| Zipf::new(spec.scan_max, 0.99));
        let sampler = Sampler::new(spec.distribution, records, seed ^ 0x5ca1_ab1e);
        OperationSampler {
            rng: SeededRng::new(seed),
            shares: spec.mix.shares(),
            records: sampler,
            newest,
            lengths,
        }
    }

    /// Draws one operation of a thread that has inserted `own` records so far, numbered from
    /// `first_own`. `before` records existed when the workload began.
    fn roll(&mut self, spec: &Spec, before: u64, first_own: u64, own: u64) -> Operation {
        let total: f64 = self.shares.iter().sum();
        let mut rest = self.rng.unit() * total;
        let kind = Kind::ALL
            .into_iter()
            .zip(self.shares)
            .filter(|(_, share)| *share > 0.0)
            .find_map(|(kind, share)| {
                rest -= share;
                (rest < 0.0).then_some(kind)
            })
            // Rounding can leave none; the last kind with a share is taken then.
            .unwrap_or_else(|| {
                let last = self.shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
                Kind::ALL[last]
            });
        let number = match (kind, &self.newest) {
            (Kind::Insert, _) => first_own + own,
            (_, None) => self.records.draw(),
            (_, Some(zipf)) => {
                // Rank 0 is the newest record. This thread's own records come first, then those
                // from before.
                let rank = zipf.draw(&mut self.rng);
                if rank < own {
                    first_own + own - 1 - rank
                } else {
                    before - 1 - (rank - own).min(before - 1)
                }
            }
        };
        let length = match (kind, &self.lengths) {
            (Kind::Scan, None) => 1 + self.rng.below(spec.scan_max),
            (Kind::Scan, Some(zipf)) => 1 + zipf.draw(&mut self.rng),
            _ => 0,
        };
        Operation { kind, number, writes: 0, sees: 0, length }
    }
}
