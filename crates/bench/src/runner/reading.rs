//! The clock, the threads and the check around lookups.

use std::sync::Barrier;
use std::time::Duration;

use cairn_vfs::{Clock, thread};

use super::job::{Cell, Operation, Sample};
use crate::engine::{ConstantReader, Session};
use crate::error::{Error, Result};
use crate::histogram::Latencies;
use crate::workload::ReadOrder;

/// An open store, the keys to ask it for, and how.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// For errors.
    pub contender: &'a str,
    /// The store.
    pub reader: &'a dyn ConstantReader,
    /// The keys and what they must give.
    pub order: &'a ReadOrder,
    /// How to look them up.
    pub cell: Cell,
    /// The clock of the measurement.
    pub clock: &'a dyn Clock,
    /// What reading it costs.
    pub clock_overhead_ns: u64,
}

/// When a thread stops.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// After this long, at the next end of a chunk.
    Elapsed(Duration),
    /// After one pass over the order, or after this long.
    Pass(Duration),
}

impl Reading<'_> {
    /// One repetition: all threads start together, each from another place of the order, and go round it until
    /// `seconds` have passed. Every chunk's answers are compared with the data.
    ///
    /// Errors: the store's own, and [`Error::WrongResult`]; then there is no figure.
    pub fn measure(&self, seconds: f64) -> Result<Sample> {
        let until = Until::Elapsed(Duration::from_secs_f64(seconds));
        if self.cell.operation == Operation::GetTimed {
            let mut latencies = Latencies::new(self.clock_overhead_ns);
            for thread in self.threads(until)? {
                latencies.merge(&thread.latencies);
            }
            return Ok(Sample::latency(&latencies));
        }
        // Each thread has its own elapsed time: where there are more threads than processors they do not end together.
        let rates = self
            .threads(until)?
            .into_iter()
            .map(|thread| thread.lookups as f64 / thread.elapsed.as_secs_f64());
        Ok(Sample::rate(rates.sum()))
    }

    /// Brings the store to the state in which it is measured: one checked pass over the order, cut off after
    /// `seconds`.
    pub fn warm_up(&self, seconds: f64) -> Result<()> {
        self.threads(Until::Pass(Duration::from_secs_f64(seconds))).map(drop)
    }

    fn threads(&self, until: Until) -> Result<Vec<ThreadResult>> {
        let count = self.cell.threads.max(1) as usize;
        let barrier = Barrier::new(count);
        thread::scope(|scope| {
            let barrier = &barrier;
            let spawned: Vec<_> = (0..count)
                .map(|index| scope.spawn(move || self.thread(index, count, barrier, until)))
                .collect();
            let joined = spawned.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::engine(self.contender, "a thread of it panicked")))
            });
            joined.collect()
        })
    }

    fn thread(&self, index: usize, count: usize, barrier: &Barrier, until: Until) -> Result<ThreadResult> {
        // A thread without a session still has to come to the barrier, or the others would wait for it.
        let session = self.reader.session();
        barrier.wait();
        self.run(&mut *session?, index * self.order.chunks() / count, until)
    }

    fn run(
        &self,
        session: &mut (dyn Session + '_),
        first_chunk: usize,
        until: Until,
    ) -> Result<ThreadResult> {
        let chunks = self.order.chunks();
        let mut latencies = Latencies::new(self.clock_overhead_ns);
        let mut lookups = 0;
        let mut chunk = first_chunk;
        let start = self.clock.now();
        loop {
            let (keys, expected) = self.order.chunk(chunk);
            let got = match self.cell.operation {
                Operation::Get => session.run(keys)?,
                Operation::GetMany => session.run_batched(keys)?,
                Operation::GetTimed => session.run_timed(keys, self.clock, &mut latencies)?,
            };
            if got != expected {
                let contender = self.contender.to_owned();
                let case = format!("{:?} of {} keys, chunk {chunk}", self.cell.operation, self.cell.lookup);
                return Err(Error::WrongResult { contender, case, expected, got });
            }
            lookups += keys.len() as u64;
            chunk = if chunk + 1 == chunks { 0 } else { chunk + 1 };
            let elapsed = self.clock.now() - start;
            let over = match until {
                Until::Elapsed(limit) => elapsed >= limit,
                Until::Pass(limit) => elapsed >= limit || chunk == first_chunk,
            };
            if over {
                return Ok(ThreadResult { lookups, elapsed, latencies });
            }
        }
    }
}

struct ThreadResult {
    lookups: u64,
    elapsed: Duration,
    latencies: Latencies,
}
