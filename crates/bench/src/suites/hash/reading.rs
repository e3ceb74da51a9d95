//! The clock, the threads and the check around lookups.

use std::sync::{Barrier, OnceLock};
use std::time::Duration;

use cairn_vfs::{Clock, thread};

use super::job::{Cell, Operation, Sample};
use crate::core::error::{Error, Result};
use crate::core::histogram::Latencies;
use crate::core::workload::ReadOrder;
use crate::stores::{ConstantReader, Session};

/// An open store, the keys to look up in it, and how to look them up.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// The contender's name, for errors.
    pub contender: &'a str,
    /// The store.
    pub reader: &'a dyn ConstantReader,
    /// The keys and their expected values.
    pub order: &'a ReadOrder,
    /// How to look them up.
    pub cell: Cell,
    /// The chunk of the order where the first thread starts. It follows the chunks of earlier
    /// lookups, so that no thread looks up keys that were read a moment ago.
    pub first_chunk: usize,
    /// The clock of the measurement.
    pub clock: &'a dyn Clock,
    /// Cost of reading the clock once.
    pub clock_overhead_ns: u64,
}

/// When a thread stops.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// At the first end of a chunk after this much time since the first thread started.
    Elapsed(Duration),
    /// After one pass over the order, or after this much time since the first thread started.
    Pass(Duration),
}

/// The sample of one repetition, and the place in the order where it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Repetition {
    /// The sample.
    pub sample: Sample,
    /// The chunk after the last one that was read.
    pub next_chunk: usize,
}

impl Reading<'_> {
    /// Measures one repetition. All threads start together, each from a different place in the
    /// order, and cycle through it until `seconds` have passed. The answers of every chunk are
    /// compared with the data.
    ///
    /// Errors: the store's own, and [`Error::WrongResult`]. There is no sample then.
    pub fn measure(&self, seconds: f64) -> Result<Repetition> {
        let threads = self.threads(Until::Elapsed(Duration::from_secs_f64(seconds)))?;
        let next_chunk = self.next_chunk(&threads);
        let sample = if self.cell.operation == Operation::GetTimed {
            let mut latencies = Latencies::new(self.clock_overhead_ns);
            threads.iter().for_each(|thread| latencies.merge(&thread.latencies));
            Sample::latency(&latencies)
        } else {
            Sample::rate(rate(&threads))
        };
        Ok(Repetition { sample, next_chunk })
    }

    /// Brings the store to the state in which it is measured, by one checked pass over the order
    /// that ends after `seconds` at the latest. Returns the chunk to continue from.
    pub fn warm_up(&self, seconds: f64) -> Result<usize> {
        let threads = self.threads(Until::Pass(Duration::from_secs_f64(seconds)))?;
        Ok(self.next_chunk(&threads))
    }

    /// Returns the chunk behind the thread that went furthest, so that no thread reads its keys
    /// again.
    fn next_chunk(&self, threads: &[ThreadResult]) -> usize {
        let done = threads.iter().map(|thread| thread.chunks).max().unwrap_or(0);
        (self.first_chunk + done) % self.order.chunks()
    }

    fn threads(&self, until: Until) -> Result<Vec<ThreadResult>> {
        let count = self.cell.threads.max(1) as usize;
        let gate = Gate { barrier: Barrier::new(count), start: OnceLock::new() };
        thread::scope(|scope| {
            let gate = &gate;
            let spawned: Vec<_> =
                (0..count).map(|index| scope.spawn(move || self.thread(index, count, gate, until))).collect();
            let joined = spawned.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::engine(self.contender, "one of its threads panicked")))
            });
            joined.collect()
        })
    }

    fn thread(&self, index: usize, count: usize, gate: &Gate, until: Until) -> Result<ThreadResult> {
        // Even a thread that gets no session has to reach the barrier, or the others would wait
        // forever.
        let session = self.reader.session();
        gate.barrier.wait();
        let start = *gate.start.get_or_init(|| self.clock.now());
        let chunks = self.order.chunks();
        let first_chunk = (self.first_chunk + index * chunks / count) % chunks;
        self.run(&mut *session?, first_chunk, start, until)
    }

    fn run(
        &self,
        session: &mut (dyn Session + '_),
        first_chunk: usize,
        start: Duration,
        until: Until,
    ) -> Result<ThreadResult> {
        let chunks = self.order.chunks();
        let mut result = ThreadResult {
            lookups: 0,
            chunks: 0,
            start,
            end: start,
            latencies: Latencies::new(self.clock_overhead_ns),
        };
        let mut chunk = first_chunk;
        loop {
            let (keys, expected) = self.order.chunk(chunk);
            let got = match self.cell.operation {
                Operation::Get => session.run(keys)?,
                Operation::GetMany => session.run_batched(keys)?,
                Operation::GetTimed => session.run_timed(keys, self.clock, &mut result.latencies)?,
            };
            if got != expected {
                let contender = self.contender.to_owned();
                let case = format!("{:?} of {} keys, chunk {chunk}", self.cell.operation, self.cell.lookup);
                return Err(Error::WrongResult { contender, case, expected, got });
            }
            result.lookups += keys.len() as u64;
            result.chunks += 1;
            chunk = if chunk + 1 == chunks { 0 } else { chunk + 1 };
            result.end = self.clock.now();
            let elapsed = result.end.saturating_sub(start);
            let over = match until {
                Until::Elapsed(limit) => elapsed >= limit,
                Until::Pass(limit) => elapsed >= limit || chunk == first_chunk,
            };
            if over {
                return Ok(result);
            }
        }
    }
}

/// The barrier where the threads of a repetition meet, and the time when the first one passed it.
struct Gate {
    barrier: Barrier,
    start: OnceLock<Duration>,
}

struct ThreadResult {
    lookups: u64,
    chunks: usize,
    /// When the first of all threads started; the same for each.
    start: Duration,
    end: Duration,
    latencies: Latencies,
}

/// Returns lookups per second: all lookups divided by the time from the first start to the last
/// end.
///
/// It is not the sum of the threads' own rates. When there are more threads than processors,
/// threads do not run at the same time, and each was fast while it had a processor to itself.
fn rate(threads: &[ThreadResult]) -> f64 {
    let lookups: u64 = threads.iter().map(|thread| thread.lookups).sum();
    let start = threads.iter().map(|thread| thread.start).min().unwrap_or_default();
    let end = threads.iter().map(|thread| thread.end).max().unwrap_or_default();
    lookups as f64 / end.saturating_sub(start).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: threads that took turns on one processor count as the work of one processor. Method:
    /// two threads with 100 lookups each, one running from 0 s to 1 s and the other from 1 s to 2
    /// s, give 100 lookups per second and not 200.
    #[test]
    fn threads_taking_turns_count_as_one_processor() {
        let thread = |end| ThreadResult {
            lookups: 100,
            chunks: 1,
            start: Duration::ZERO,
            end: Duration::from_secs(end),
            latencies: Latencies::new(0),
        };
        assert_eq!(rate(&[thread(1), thread(2)]), 100.0);
        assert_eq!(rate(&[thread(2), thread(2)]), 100.0);
        assert_eq!(rate(&[thread(1)]), 100.0);
    }
}
