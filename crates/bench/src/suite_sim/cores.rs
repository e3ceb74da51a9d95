//! What threads get of this machine: how much of the cores is left when all of them work, which share caches and memory and perhaps are
//! halves of one; and how long a short sleep takes.

use std::hint::black_box;
use std::time::Duration;

use cairn_sim::rng::Rng;
use cairn_vfs::{Clock, SystemClock, thread};

use crate::error::{Error, Result};

/// Numbers that are sorted in a round of the work, and bytes that are copied: about what a store does with its cores.
const SORTED: usize = 1 << 15;
const COPIED_BYTES: usize = 4 << 20;

/// Rounds of the work: some 20 ms.
const ROUNDS: u64 = 8;

/// Times that one core and all of them are measured in turn; the best counts.
const TIMES: usize = 5;

/// Cores that work as fast together as one alone: at most as many as there are, at least one.
///
/// Errors: the system gives no thread. Cost: a quarter of a second.
pub fn measure_cores() -> Result<f64> {
    let count = thread::available_parallelism();
    let (mut alone, mut together) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TIMES {
        alone = alone.min(secs_of(1)?);
        together = together.min(secs_of(count)?);
    }
    let most = count as f64;
    Ok((most * alone / together).clamp(1.0, most))
}

/// How much longer than asked for a sleep of some hundred microseconds takes, microseconds.
pub fn measure_sleep_extra_us() -> f64 {
    const ASKED: Duration = Duration::from_micros(200);
    const SLEEPS: u32 = 100;
    let clock = SystemClock::new();
    let start = clock.now();
    (0..SLEEPS).for_each(|_| clock.sleep(ASKED));
    let each = (clock.now() - start) / SLEEPS;
    each.saturating_sub(ASKED).as_secs_f64() * 1e6
}

/// Seconds until so many threads have each done the work.
fn secs_of(threads: usize) -> Result<f64> {
    let clock = SystemClock::new();
    let start = clock.now();
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads as u64)
            .map(|seed| thread::spawn_scoped(scope, "cairn-cores", move || work(seed)))
            .collect();
        handles.into_iter().try_for_each(|handle| {
            let handle =
                handle.map_err(|error| Error::invalid(format!("no thread to measure cores: {error}")))?;
            handle.join().map_err(|_| Error::invalid("a thread that measured cores panicked"))
        })
    })?;
    Ok((clock.now() - start).as_secs_f64())
}

fn work(seed: u64) {
    let mut rng = Rng::new(seed);
    let from = vec![seed as u8; COPIED_BYTES];
    let mut to = vec![0; COPIED_BYTES];
    for _ in 0..ROUNDS {
        let mut numbers: Vec<u64> = (0..SORTED).map(|_| rng.next_u64()).collect();
        numbers.sort_unstable();
        to.copy_from_slice(black_box(&from));
        black_box((&numbers, &to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: figures that a profile may have, on a busy machine too. Method: once each.
    #[test]
    fn cores_are_between_one_and_all_and_sleeps_end() {
        let cores = measure_cores().unwrap();
        assert!(cores >= 1.0 && cores <= thread::available_parallelism() as f64, "{cores}");
        assert!((0.0..1e6).contains(&measure_sleep_extra_us()));
    }
}
