//! Threads that begin each sample together.

use std::sync::{Barrier, Condvar, Mutex};
use std::time::Duration;

use cairn_vfs::sync::lock;
use cairn_vfs::{Clock, SystemClock, thread};

use crate::core::error::{Error, Result};

/// Decides whether the threads may begin. They may not begin before all of them exist, or the
/// existing ones would wait forever for the others.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    /// Announces the decision, once.
    pub fn decide(&self, go: bool) {
        *lock(&self.open) = Some(go);
        self.changed.notify_all();
    }

    /// Waits for the decision.
    pub fn wait(&self) -> bool {
        let mut open = lock(&self.open);
        loop {
            if let Some(go) = *open {
                return go;
            }
            open = match self.changed.wait(open) {
                Ok(open) => open,
                Err(panicked) => panicked.into_inner(),
            };
        }
    }
}

/// Takes `samples` samples with `threads` threads. Each thread has its own state, made by `make`
/// before the first sample. Returns the duration of each sample, from the first thread's start to
/// the last thread's end.
///
/// All threads meet before each sample, so that none begins a sample while another is still at the
/// previous one. A single thread's work runs on the calling thread.
///
/// Errors: the first error of any thread, while the others run to their end; [`Error::Engine`] if
/// the system cannot create more threads.
pub fn take<S>(
    threads: u32,
    samples: usize,
    make: &(impl Fn(usize) -> Result<S> + Sync),
    work: &(impl Fn(usize, &mut S, usize) -> Result<()> + Sync),
) -> Result<Vec<Duration>> {
    let (clock, barrier, gate) = (SystemClock::new(), Barrier::new(threads.max(1) as usize), Gate::default());
    let one = |index: usize| -> Result<Vec<(Duration, Duration)>> {
        let mut own = make(index);
        let mut spans = Vec::with_capacity(samples);
        for sample in 0..samples {
            // Even a thread that has failed must reach the barrier, or the others would wait
            // forever.
            barrier.wait();
            let start = clock.now();
            if let Ok(ready) = &mut own
                && let Err(error) = work(index, ready, sample)
            {
                own = Err(error);
            }
            spans.push((start, clock.now()));
        }
        own.map(|_| spans)
    };
    if threads <= 1 {
        return Ok(windows(&[one(0)?], samples));
    }
    let all = thread::scope(|scope| {
        let (one, gate) = (&one, &gate);
        let gated = move |index| if gate.wait() { one(index) } else { Ok(Vec::new()) };
        let spawned: std::io::Result<Vec<_>> = (0..threads as usize)
            .map(|index| thread::spawn_scoped(scope, "pool-bench", move || gated(index)))
            .collect();
        gate.decide(spawned.is_ok());
        let spawned = spawned.map_err(|error| {
            Error::engine("the suite", format!("the system has no more threads: {error}"))
        })?;
        let joined = spawned.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::engine("the suite", "one of its threads panicked")))
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    Ok(windows(&all, samples))
}

/// Returns the duration of each sample, from the first thread's start to the last thread's end.
pub fn windows(all: &[Vec<(Duration, Duration)>], samples: usize) -> Vec<Duration> {
    let window = |sample: usize| {
        let spans = || all.iter().filter_map(|spans| spans.get(sample));
        let start = spans().map(|span| span.0).min().unwrap_or_default();
        let end = spans().map(|span| span.1).max().unwrap_or_default();
        end.saturating_sub(start)
    };
    (0..samples).map(window).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::*};

    use super::*;

    /// Goal: every thread takes part in every sample, none begins a sample before all have ended
    /// the previous one, and an error is returned without ending anything else. Method: counts,
    /// with more threads than processors.
    #[test]
    fn samples_are_taken_together() {
        for threads in [1, 2, 64] {
            let (done, samples) = (AtomicU32::new(0), 20);
            let work = |_: usize, last: &mut usize, sample: usize| {
                assert_eq!(*last, sample);
                *last += 1;
                let before = done.fetch_add(1, SeqCst);
                assert!(before >= threads * sample as u32 && before < threads * (sample as u32 + 1));
                Ok(())
            };
            let taken = take(threads, samples, &|_| Ok(0), &work).unwrap();
            assert_eq!((taken.len(), done.load(SeqCst)), (samples, threads * samples as u32));
        }
        let fails = |index: usize, (): &mut (), sample: usize| {
            if (index, sample) == (1, 3) { Err(Error::invalid("planted")) } else { Ok(()) }
        };
        assert!(take(4, 10, &|_| Ok(()), &fails).unwrap_err().to_string().contains("planted"));
        let none = |index: usize| if index == 2 { Err(Error::invalid("no session")) } else { Ok(()) };
        assert!(take(4, 10, &none, &|_, (), _| Ok(())).unwrap_err().to_string().contains("no session"));
    }
}
