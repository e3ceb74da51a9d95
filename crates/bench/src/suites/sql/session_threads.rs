//! Threads, each with its own session, that begin each sample together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cairn_vfs::{Clock, SystemClock, thread};

use crate::core::error::{Error, Result};
use crate::core::threads::{Gate, windows};
use crate::stores::sql::{SqlDb, SqlSession};

/// The work of a thread between two meetings: it receives the thread's state, its session, and the
/// index of the sample.
type Work<'w, S> = dyn Fn(&mut S, &mut dyn SqlSession, usize) -> Result<()> + Sync + 'w;

/// Takes `samples` samples with `threads` threads. Each thread first creates its state with its
/// session. Returns the duration of each sample, from the first thread's start to the last thread's
/// end, and the final states of the threads.
///
/// Errors: the first error of any thread. A failed thread does no more work, but attends every
/// meeting, or the others would wait forever.
pub fn take<S: Send>(
    db: &dyn SqlDb,
    threads: u32,
    samples: usize,
    make: &(dyn Fn(usize, &mut dyn SqlSession) -> Result<S> + Sync),
    work: &Work<'_, S>,
) -> Result<(Vec<Duration>, Vec<S>)> {
    let (clock, barrier, gate) = (SystemClock::new(), Barrier::new(threads.max(1) as usize), Gate::default());
    let failed = AtomicBool::new(false);
    let one = |index: usize| -> Result<(Vec<(Duration, Duration)>, S)> {
        let (mut spans, mut own) = (Vec::with_capacity(samples), None);
        let mut met = 0;
        let ended = db.with_session(&mut |session| {
            let mut things = make(index, session)?;
            while met < samples {
                barrier.wait();
                met += 1;
                if failed.load(Ordering::SeqCst) {
                    return Err(Error::Interrupted);
                }
                let start = clock.now();
                work(&mut things, session, met - 1)?;
                spans.push((start, clock.now()));
            }
            own = Some(things);
            Ok(())
        });
        if ended.is_err() {
            failed.store(true, Ordering::SeqCst);
        }
        (met..samples).for_each(|_| {
            barrier.wait();
        });
        ended?;
        own.map(|own| (spans, own)).ok_or_else(|| Error::engine("the suite", "no session was provided"))
    };
    if threads <= 1 {
        let (spans, own) = one(0)?;
        return Ok((windows(&[spans], samples), vec![own]));
    }
    let all = thread::scope(|scope| {
        let (one, gate) = (&one, &gate);
        let gated = move |index| if gate.wait() { Some(one(index)) } else { None };
        let spawned: std::io::Result<Vec<_>> = (0..threads as usize)
            .map(|index| thread::spawn_scoped(scope, "sql-bench", move || gated(index)))
            .collect();
        gate.decide(spawned.is_ok());
        let spawned = spawned.map_err(|error| {
            Error::engine("the suite", format!("the system has no more threads: {error}"))
        })?;
        let joined = spawned.into_iter().map(|thread| match thread.join() {
            Ok(Some(ended)) => ended,
            _ => Err(Error::engine("the suite", "one of its threads panicked")),
        });
        first_real(joined.collect())
    })?;
    let (spans, own): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    Ok((windows(&spans, samples), own))
}

/// Returns all results, or the error that made the other threads give up.
fn first_real<T>(all: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut done, mut gave_up) = (Vec::new(), None);
    for one in all {
        match one {
            Ok(one) => done.push(one),
            Err(Error::Interrupted) => gave_up = Some(Error::Interrupted),
            Err(error) => return Err(error),
        }
    }
    gave_up.map_or(Ok(done), Err)
}

/// Runs `work` with a session of the calling thread, and returns its result.
pub fn once<T>(db: &dyn SqlDb, mut work: impl FnMut(&mut dyn SqlSession) -> Result<T>) -> Result<T> {
    let mut done = None;
    db.with_session(&mut |session| {
        done = Some(work(session)?);
        Ok(())
    })?;
    done.ok_or_else(|| Error::engine("the suite", "no session was provided"))
}
