//! Carries out jobs in this process, keeping the data set and the read orders that several of them share.

use std::path::Path;
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use super::job::{BuildOutcome, Cell, DataSource, Effort, Operation, Sample, Subject};
use super::reading::Reading;
use crate::digest::Digest;
use crate::engine::lookups::Baseline;
use crate::engine::{Compression, ConstantReader, ConstantStore, Session, data_bytes};
use crate::error::{Error, Result};
use crate::histogram::{Latencies, clock_overhead};
use crate::page_cache::make_cold;
use crate::procfs::PeakMemory;
use crate::workload::{Dataset, Distribution, Lookup, ReadOrder};

/// The records of one group of cases in memory, and the orders in which they are read.
#[derive(Debug)]
pub struct Bench {
    data: Dataset,
    seed: u64,
    effort: Effort,
    orders: Vec<(Lookup, Distribution, ReadOrder)>,
    clock: SystemClock,
    clock_overhead_ns: u64,
}

/// What opening a store cost, and what the first lookups in it did.
#[derive(Debug, Clone)]
pub struct Opening {
    /// From the call to the first answer.
    pub first_answer_seconds: f64,
    /// Of the lookups after it, mean first; empty where none were asked for.
    pub latencies: Latencies,
    /// Their mean in ns.
    pub mean_ns: f64,
}

impl Bench {
    /// Loads the records.
    pub fn new(source: &DataSource, seed: u64, effort: Effort) -> Result<Bench> {
        let clock = SystemClock::new();
        let clock_overhead_ns = clock_overhead(&clock);
        Ok(Bench { data: source.load()?, seed, effort, orders: Vec::new(), clock, clock_overhead_ns })
    }

    /// The records.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// What one reading of the clock costs, in ns; taken off every latency.
    pub fn clock_overhead_ns(&self) -> u64 {
        self.clock_overhead_ns
    }

    /// The order of a cell; prepared at its first use.
    pub fn order(&mut self, lookup: Lookup, distribution: Distribution) -> &ReadOrder {
        let known = self.orders.iter().position(|(l, d, _)| (*l, *d) == (lookup, distribution));
        let index = known.unwrap_or_else(|| {
            let count = self.effort.order_keys;
            let order = ReadOrder::new(&self.data, distribution, lookup, count, self.seed);
            self.orders.push((lookup, distribution, order));
            self.orders.len() - 1
        });
        &self.orders[index].2
    }

    /// Brings `reader` to the state in which it is measured. Once after opening it.
    pub fn warm_up(&mut self, contender: &str, reader: &dyn ConstantReader, cell: Cell) -> Result<()> {
        let seconds = self.effort.warm_up_seconds;
        self.reading(contender, reader, cell).warm_up(seconds)
    }

    /// One repetition of a cell. The one before, of another contender, has left its own data in the processor's
    /// caches, so as much time is first spent on filling them anew, as a JVM does in its warm-up iterations.
    pub fn measure(&mut self, contender: &str, reader: &dyn ConstantReader, cell: Cell) -> Result<Sample> {
        let seconds = self.effort.seconds;
        let reading = self.reading(contender, reader, cell);
        reading.warm_up(seconds)?;
        reading.measure(seconds)
    }

    fn reading<'a>(
        &'a mut self,
        contender: &'a str,
        reader: &'a dyn ConstantReader,
        cell: Cell,
    ) -> Reading<'a> {
        self.order(cell.lookup, cell.distribution);
        let Bench { orders, clock, clock_overhead_ns, .. } = self;
        let order = orders.iter().find(|(l, d, _)| (*l, *d) == (cell.lookup, cell.distribution));
        // `order` above has put it there; an order of one key would only fail the check.
        let order = &order.unwrap_or(&orders[0]).2;
        Reading { contender, reader, order, cell, clock, clock_overhead_ns: *clock_overhead_ns }
    }

    /// What the loop, the keys and the check cost without a store, in ns a lookup: the best of several passes.
    pub fn baseline_ns(&mut self) -> Result<f64> {
        let value_bytes = self.data.mean_value_bytes() as usize;
        let clock = self.clock.clone();
        let order = self.order(Lookup::Present, Distribution::Uniform);
        let mut baseline = Baseline::new(value_bytes);
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let start = clock.now();
            let mut total = Digest::default();
            for chunk in 0..order.chunks() {
                total = total.merge(baseline.run(order.chunk(chunk).0)?);
            }
            std::hint::black_box(total);
            best = best.min(clock.now() - start);
        }
        Ok(best.as_secs_f64() * 1e9 / order.len() as f64)
    }

    /// Builds a store in the empty directory `dir`.
    pub fn build(
        &self,
        store: &dyn ConstantStore,
        dir: &Path,
        compression: Compression,
    ) -> Result<BuildOutcome> {
        let memory = PeakMemory::start();
        let start = self.clock.now();
        let built = store.build(dir, &self.data, compression)?;
        let seconds = (self.clock.now() - start).as_secs_f64();
        let peak = memory.and_then(|memory| memory.rise_bytes());
        Ok(BuildOutcome::new(seconds, data_bytes(dir)?, built, peak))
    }

    /// Opens a store and looks up the first key; with `cold`, after its files have been dropped from memory, and then
    /// the rest of the first chunk of keys as well.
    pub fn open_once(&mut self, store: &dyn ConstantStore, subject: &Subject, cold: bool) -> Result<Opening> {
        if cold {
            make_cold(&subject.dir)?;
        }
        let mut latencies = Latencies::new(self.clock_overhead_ns);
        let clock = self.clock.clone();
        let order = self.order(Lookup::Present, Distribution::Uniform);
        let (keys, expected) = order.chunk(0);
        let start = clock.now();
        let reader = store.open(&subject.dir, subject.variant)?;
        let mut session = reader.session()?;
        session.run(keys.first(1))?;
        let first_answer_seconds = (clock.now() - start).as_secs_f64();
        let mut mean_ns = 0.0;
        if cold {
            let start = clock.now();
            let got = session.run_timed(keys, &clock, &mut latencies)?;
            mean_ns = (clock.now() - start).as_secs_f64() * 1e9 / keys.len() as f64;
            if got != expected {
                let (contender, case) = (subject.contender.clone(), "cold get".to_owned());
                return Err(Error::WrongResult { contender, case, expected, got });
            }
        }
        Ok(Opening { first_answer_seconds, latencies, mean_ns })
    }

    /// Opens a store and measures each cell once, for a process that was started to do this.
    pub fn read_cells(
        &mut self,
        store: &dyn ConstantStore,
        subject: &Subject,
        cells: &[Cell],
    ) -> Result<Vec<std::result::Result<Sample, String>>> {
        let reader = store.open(&subject.dir, subject.variant)?;
        let mut samples = Vec::with_capacity(cells.len());
        let mut warm: Vec<Lookup> = Vec::new();
        for &cell in cells {
            let outcome = if warm.contains(&cell.lookup) {
                Ok(())
            } else {
                warm.push(cell.lookup);
                let once = Cell { threads: 1, operation: Operation::Get, ..cell };
                self.warm_up(&subject.contender, &*reader, once)
            };
            let sample = outcome.and_then(|()| self.measure(&subject.contender, &*reader, cell));
            samples.push(sample.map_err(|error| error.to_string()));
        }
        Ok(samples)
    }
}
