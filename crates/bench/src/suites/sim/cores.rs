//! The share of this machine that threads get. Measures how much of the cores is left when all of
//! them work, since they share caches and memory and may be hyperthreads of one core, and how long
//! a short sleep takes.

use std::hint::black_box;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::{Clock, SystemClock, thread};
use cairn_vfs::{Rng, SeededRng};

use crate::core::error::{Error, Result};
use crate::core::procfs::own_cpu_secs;

/// Numbers sorted and bytes copied in a round of the work, roughly in the proportions of a store's
/// work.
const SORTED: usize = 1 << 15;
const COPIED_BYTES: usize = 4 << 20;

/// Number of rounds, about 20 ms of work.
const ROUNDS: u64 = 8;

/// Number of alternations between measuring one core and all cores. Together they take about the
/// time of a short run, because the load beneath a virtual machine changes from one tenth of a
/// second to the next.
const TIMES: usize = 10;

/// Returns how many undisturbed cores would do the work that all cores do together: between one and
/// the number of cores. Load from other machines on the same host reduces it, and so does other
/// work on this one.
///
/// Errors: the system cannot create a thread. Cost: half a second.
pub fn measure_cores() -> Result<f64> {
    let count = thread::available_parallelism();
    let (mut alone, mut together) = (0.0, 0.0);
    for _ in 0..TIMES {
        alone += secs_of(1)?.0;
        together += secs_of(count)?.1;
    }
    let most = count as f64;
    Ok((most * alone / together).clamp(1.0, most))
}

/// Tells threads to end when it is dropped, so that a panic does not leave them running and does
/// not make their scope wait for them forever.
pub(super) struct EndsAtDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for EndsAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `run` while every core is busy.
///
/// Errors: the system cannot create a thread, or `run` fails.
pub(super) fn while_busy<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let _end = EndsAtDrop(is_over);
        let result = (0..thread::available_parallelism() as u64).try_for_each(|seed| {
            let spin = move || {
                while !is_over.load(Ordering::Relaxed) {
                    work(seed, 1);
                }
            };
            let handle = thread::spawn_scoped(scope, "cairn-busy", spin);
            handle
                .map(drop)
                .map_err(|error| Error::invalid(format!("no thread to keep a core busy: {error}")))
        });
        result.and_then(|()| run())
    })
}

/// Returns by how many microseconds a sleep of a few hundred microseconds exceeds the requested
/// time.
pub fn measure_sleep_extra_us() -> f64 {
    const ASKED: Duration = Duration::from_micros(200);
    const SLEEPS: u32 = 500;
    let clock = SystemClock::new();
    let start = clock.now();
    (0..SLEEPS).for_each(|_| clock.sleep(ASKED));
    let each = (clock.now() - start) / SLEEPS;
    each.saturating_sub(ASKED).as_secs_f64() * 1e6
}

/// Returns the time of the work per thread with this many threads: processor seconds and elapsed
/// seconds. Uses elapsed time for both if processor time is not available.
fn secs_of(threads: usize) -> Result<(f64, f64)> {
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads as u64)
            .map(|seed| thread::spawn_scoped(scope, "cairn-cores", move || timed_work(seed)))
            .collect();
        let (mut own, mut passed) = (0.0, 0.0);
        for handle in handles {
            let handle =
                handle.map_err(|error| Error::invalid(format!("no thread to measure cores: {error}")))?;
            let secs = handle.join().map_err(|_| Error::invalid("a thread that measured cores panicked"))?;
            own += secs.0 / threads as f64;
            passed += secs.1 / threads as f64;
        }
        Ok((own, passed))
    })
}

fn timed_work(seed: u64) -> (f64, f64) {
    let clock = SystemClock::new();
    let (start, own) = (clock.now(), own_cpu_secs());
    work(seed, ROUNDS);
    let passed = (clock.now() - start).as_secs_f64();
    (own_cpu_secs().zip(own).map_or(passed, |(now, then)| now - then), passed)
}

fn work(seed: u64, rounds: u64) {
    let mut rng = SeededRng::new(seed);
    let from = vec![seed as u8; COPIED_BYTES];
    let mut to = vec![0; COPIED_BYTES];
    for _ in 0..rounds {
        let mut numbers: Vec<u64> = (0..SORTED).map(|_| rng.next_u64()).collect();
        numbers.sort_unstable();
        to.copy_from_slice(black_box(&from));
        black_box((&numbers, &to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the results are valid in a profile, even on a busy machine. Method: once each.
    #[test]
    fn cores_are_between_one_and_all_and_sleeps_end() {
        let cores = measure_cores().unwrap();
        assert!(cores >= 1.0 && cores <= thread::available_parallelism() as f64, "{cores}");
        assert!((0.0..1e6).contains(&measure_sleep_extra_us()));
        assert_eq!(while_busy(|| Ok(7)).unwrap(), 7);
    }

    /// Goal: a measurement that panics ends, and so do the threads beside it. Method: one that
    /// panics.
    #[test]
    fn busy_threads_end_when_the_measurement_panics() {
        let measured = std::panic::catch_unwind(|| while_busy(|| -> Result<()> { panic!("planted") }));
        assert!(measured.is_err());
    }
}
