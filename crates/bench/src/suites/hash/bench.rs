//! Carries out jobs in this process, and keeps the data set and the read orders that several jobs
//! share.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use super::job::{Build, Cell, DataSource, Effort, Operation, Read, Sample, Subject};
use super::reading::{Reading, Repetition};
use crate::core::data_files::data_bytes;
use crate::core::digest::Digest;
use crate::core::error::{Error, Result};
use crate::core::histogram::{Latencies, clock_overhead};
use crate::core::page_cache::make_cold;
use crate::core::procfs::PeakMemory;
use crate::core::worker::Failure;
use crate::core::workload::{Dataset, Distribution, Lookup, ReadOrder};
use crate::stores::BuildOutcome;
use crate::stores::catalog::Registry;
use crate::stores::lookups::Baseline;
use crate::stores::{Compression, ConstantReader, ConstantStore, Session};

/// The records of one group of cases in memory, and the orders in which they are read.
#[derive(Debug)]
pub struct Bench {
    data: Dataset,
    seed: u64,
    effort: Effort,
    orders: Vec<(Lookup, Distribution, ReadOrder)>,
    /// The next chunk of each contender, by its name and an index into `orders`.
    places: HashMap<(String, usize), usize>,
    clock: SystemClock,
    clock_overhead_ns: u64,
}

/// The cost of opening a store, and the latencies of the first lookups in it.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Time from the call that opens the store to the first answer.
    pub first_answer_seconds: f64,
    /// Latencies of the lookups after the first; empty unless the store was opened cold.
    pub latencies: Latencies,
    /// Mean latency of these lookups in ns.
    pub mean_ns: f64,
}

impl Bench {
    /// Loads the records.
    pub fn new(source: &DataSource, seed: u64, effort: Effort) -> Result<Bench> {
        let clock = SystemClock::new();
        let clock_overhead_ns = clock_overhead(&clock);
        let data = source.load()?;
        let (orders, places) = (Vec::new(), HashMap::new());
        Ok(Bench { data, seed, effort, orders, places, clock, clock_overhead_ns })
    }

    /// Returns the records.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// Returns the cost of reading the clock once, in ns. It is subtracted from every latency.
    pub fn clock_overhead_ns(&self) -> u64 {
        self.clock_overhead_ns
    }

    /// Returns the read order of a cell, which is prepared at its first use.
    pub fn order(&mut self, lookup: Lookup, distribution: Distribution) -> &ReadOrder {
        let index = self.order_index(lookup, distribution);
        &self.orders[index].2
    }

    fn order_index(&mut self, lookup: Lookup, distribution: Distribution) -> usize {
        let known = self.orders.iter().position(|(l, d, _)| (*l, *d) == (lookup, distribution));
        known.unwrap_or_else(|| {
            let count = self.effort.order_keys;
            let order = ReadOrder::new(&self.data, distribution, lookup, count, self.seed);
            self.orders.push((lookup, distribution, order));
            self.orders.len() - 1
        })
    }

    /// Brings `reader` to the state in which it is measured. Called once after opening it.
    pub fn warm_up(&mut self, contender: &str, reader: &dyn ConstantReader, cell: Cell) -> Result<()> {
        let seconds = self.effort.warm_up_seconds;
        self.going_on(contender, reader, cell, |reading| Ok(((), reading.warm_up(seconds)?)))
    }

    /// Measures one repetition of a cell. The repetition before it, of another contender, left its
    /// own data in the processor's caches. So the same length of time is first spent on refilling
    /// them, as a JVM does in its warm-up iterations.
    ///
    /// Each contender continues where it stopped the last time. Otherwise a slow contender would
    /// read only the few keys at the start of the order again and again, which its warm-up has just
    /// brought into the processor's caches.
    pub fn measure(&mut self, contender: &str, reader: &dyn ConstantReader, cell: Cell) -> Result<Sample> {
        let seconds = self.effort.seconds;
        self.going_on(contender, reader, cell, |reading| Ok(((), reading.warm_up(seconds)?)))?;
        self.going_on(contender, reader, cell, |reading| {
            let Repetition { sample, next_chunk } = reading.measure(seconds)?;
            Ok((sample, next_chunk))
        })
    }

    /// Runs `read` from the contender's next chunk. `read` also returns the chunk to continue from.
    fn going_on<T>(
        &mut self,
        contender: &str,
        reader: &dyn ConstantReader,
        cell: Cell,
        read: impl FnOnce(Reading<'_>) -> Result<(T, usize)>,
    ) -> Result<T> {
        let index = self.order_index(cell.lookup, cell.distribution);
        let Bench { orders, places, clock, clock_overhead_ns, .. } = self;
        let place = places.entry((contender.to_owned(), index)).or_default();
        let (order, clock_overhead_ns) = (&orders[index].2, *clock_overhead_ns);
        let reading =
            Reading { contender, reader, order, cell, first_chunk: *place, clock, clock_overhead_ns };
        let (result, next) = read(reading)?;
        *place = next;
        Ok(result)
    }

    /// Returns the cost of the loop, the keys and the check without a store, in ns per lookup: the
    /// best of several passes.
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

    /// Opens a store and looks up the first key. With `cold`, first drops the store's files from
    /// the page cache, and afterwards also looks up the first chunk of keys with the clock read
    /// around each.
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
        let first = session.run(keys.first(1))?;
        let first_answer_seconds = (clock.now() - start).as_secs_f64();
        let check = |case: &str, expected: Digest, got: Digest| {
            let (contender, case) = (subject.contender.clone(), case.to_owned());
            if got == expected { Ok(()) } else { Err(Error::WrongResult { contender, case, expected, got }) }
        };
        check("the first answer after opening", order.first_answer(), first)?;
        let mut mean_ns = 0.0;
        if cold {
            let start = clock.now();
            let got = session.run_timed(keys, &clock, &mut latencies)?;
            mean_ns = (clock.now() - start).as_secs_f64() * 1e9 / keys.len() as f64;
            check("cold get", expected, got)?;
        }
        Ok(Opening { first_answer_seconds, latencies, mean_ns })
    }

    /// Opens a store and measures each cell once, for a process that was started for this purpose.
    pub fn read_cells(
        &mut self,
        store: &dyn ConstantStore,
        subject: &Subject,
        cells: &[Cell],
    ) -> Result<Vec<std::result::Result<Sample, Failure>>> {
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
            samples.push(sample.map_err(Failure::from));
        }
        Ok(samples)
    }
}

impl Build {
    /// Builds the store in this process.
    pub fn carry_out(&self, stores: &Registry<dyn ConstantStore>) -> Result<BuildOutcome> {
        let store = stores.get(&self.store)?;
        let effort = Effort { order_keys: 1, warm_up_seconds: 0.0, seconds: 0.0 };
        Bench::new(&self.data, 0, effort)?.build(&*store, &self.dir, self.compression)
    }
}

impl Read {
    /// Measures the cells in this process.
    pub fn carry_out(
        &self,
        stores: &Registry<dyn ConstantStore>,
    ) -> Result<Vec<std::result::Result<Sample, Failure>>> {
        let store = stores.get(&self.subject.store)?;
        Bench::new(&self.data, self.seed, self.effort)?.read_cells(&*store, &self.subject, &self.cells)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::core::workload::{CHUNK_KEYS, KeyBatch, KeyShape, ValueShape};
    use crate::stores::lookups::Lookups;

    /// Answers correctly and records the first key of each chunk.
    struct Noting {
        records: HashMap<Vec<u8>, Vec<u8>>,
        first_keys: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl ConstantReader for Noting {
        fn session(&self) -> Result<Box<dyn Session + '_>> {
            Ok(Box::new(NotingSession(self)))
        }
    }

    struct NotingSession<'a>(&'a Noting);

    impl Lookups for NotingSession<'_> {
        fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
            self.0.first_keys.lock().unwrap().extend(keys.iter().next().map(<[u8]>::to_vec));
            keys.iter().for_each(|key| visit(self.0.records.get(key).map(Vec::as_slice)));
            Ok(())
        }
    }

    /// Goal: no store is timed on the keys that it has just read, not even in the next round.
    /// Method: repetitions of zero length, which read one chunk each for warm-up and measurement,
    /// over an order of eight chunks in the order of the data. The first warm-up and three rounds
    /// read seven different chunks, and each contender has its own place.
    #[test]
    fn repetitions_go_on_where_the_last_stopped() {
        let order_keys = 8 * CHUNK_KEYS;
        let (keys, values) = (KeyShape::default(), ValueShape::default());
        let source = DataSource::Synthetic { entries: order_keys as u64, keys, values };
        let effort = Effort { order_keys, warm_up_seconds: 0.0, seconds: 0.0 };
        let mut bench = Bench::new(&source, 1, effort).unwrap();
        let records: HashMap<Vec<u8>, Vec<u8>> =
            bench.data().iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let first_keys = Arc::new(Mutex::new(Vec::new()));
        let reader = Noting { records, first_keys: first_keys.clone() };
        let cell = Cell {
            operation: Operation::Get,
            lookup: Lookup::Present,
            distribution: Distribution::Sequential,
            threads: 1,
        };
        bench.warm_up("a", &reader, cell).unwrap();
        for _ in 0..3 {
            bench.measure("a", &reader, cell).unwrap();
        }
        let expected: Vec<Vec<u8>> =
            (0..7).map(|chunk| bench.data().key(chunk * CHUNK_KEYS).to_vec()).collect();
        assert_eq!(*first_keys.lock().unwrap(), expected);
        first_keys.lock().unwrap().clear();
        bench.warm_up("b", &reader, cell).unwrap();
        assert_eq!(*first_keys.lock().unwrap(), expected[..1]);
    }
}
