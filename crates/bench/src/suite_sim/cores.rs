//! What threads get of this machine: how much of the cores there is when all of them work, work to be measured beside, and how long a short
//! sleep takes.

use std::hint::black_box;
use std::time::Duration;

use cairn_sim::rng::Rng;
use cairn_vfs::sync::Line;
use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::{Clock, SystemClock, thread};

use crate::error::{Error, Result};
use crate::procfs::own_cpu_secs;

/// Numbers that are sorted in a round of the work, and bytes that are copied: about what a store does with its cores.
const SORTED: usize = 1 << 12;
const COPIED_BYTES: usize = 512 << 10;

/// Bytes that are copied from and to, a part in each round: more than a core's own caches hold.
const BUFFER_BYTES: usize = 4 << 20;

/// Rounds of the work: some 20 ms.
const ROUNDS: u64 = 64;

/// Times that all cores are measured: together about the time of a short run, for what else goes on below a virtual machine changes from one tenth
/// of a second to the next.
const TIMES: usize = 20;

/// Cores that there are when all of them are asked for: at most as many as the system says, at least one. What other machines on the same host take away
/// counts, and so does other work on this one. That they slow each other down, which share caches and memory and perhaps are halves of one, does not: costs are
/// measured beside each other ([`while_busy`]).
///
/// Errors: the system gives no thread. Cost: half a second.
pub fn measure_cores() -> Result<f64> {
    let count = thread::available_parallelism();
    let (mut own, mut passed) = (0.0, 0.0);
    for _ in 0..TIMES {
        let secs = secs_of(count)?;
        own += secs.0;
        passed += secs.1;
    }
    let most = count as f64;
    Ok((most * own / passed).clamp(1.0, most))
}

/// Threads that keep cores at work.
#[derive(Debug, Default)]
pub(super) struct Busy {
    is_over: AtomicBool,
    /// Processor time of each so far, nanoseconds.
    spent: Vec<Line<AtomicU64>>,
}

impl Busy {
    /// Processor seconds of all of them: no part of what is measured beside them.
    pub fn cpu_secs(&self) -> f64 {
        self.spent.iter().map(|spent| spent.0.load(Ordering::Relaxed) as f64 * 1e-9).sum()
    }
}

/// Does something while so many other threads are at work.
///
/// Errors: the system gives no thread, or what is done fails.
pub(super) fn while_busy<T>(threads: usize, run: impl FnOnce(&Busy) -> Result<T>) -> Result<T> {
    let busy = Busy { spent: (0..threads).map(|_| Line(AtomicU64::new(0))).collect(), ..Busy::default() };
    thread::scope(|scope| {
        let mut seeds = 0..;
        let result = busy.spent.iter().zip(&mut seeds).try_for_each(|(spent, seed)| {
            let is_over = &busy.is_over;
            let spin = move || {
                let mut work = Work::new(seed);
                while !is_over.load(Ordering::Relaxed) {
                    work.round();
                    spent.0.store((own_cpu_secs().unwrap_or_default() * 1e9) as u64, Ordering::Relaxed);
                }
            };
            let handle = thread::spawn_scoped(scope, "cairn-busy", spin);
            handle
                .map(drop)
                .map_err(|error| Error::invalid(format!("no thread to keep a core busy: {error}")))
        });
        let result = result.and_then(|()| run(&busy));
        busy.is_over.store(true, Ordering::Relaxed);
        result
    })
}

/// How much longer than asked for a sleep of some hundred microseconds takes, microseconds.
pub fn measure_sleep_extra_us() -> f64 {
    const ASKED: Duration = Duration::from_micros(200);
    const SLEEPS: u32 = 500;
    let clock = SystemClock::new();
    let start = clock.now();
    (0..SLEEPS).for_each(|_| clock.sleep(ASKED));
    let each = (clock.now() - start) / SLEEPS;
    each.saturating_sub(ASKED).as_secs_f64() * 1e6
}

/// What the work takes each of so many threads side by side: processor seconds, and seconds. Where the first are not told they are the second.
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
    let mut work = Work::new(seed);
    let (start, own) = (clock.now(), own_cpu_secs());
    (0..ROUNDS).for_each(|_| work.round());
    let passed = (clock.now() - start).as_secs_f64();
    (own_cpu_secs().zip(own).map_or(passed, |(now, then)| now - then), passed)
}

/// Sorting and copying, as merges do.
struct Work {
    rng: Rng,
    from: Vec<u8>,
    to: Vec<u8>,
    at: usize,
}

impl Work {
    fn new(seed: u64) -> Work {
        Work { rng: Rng::new(seed), from: vec![seed as u8; BUFFER_BYTES], to: vec![1; BUFFER_BYTES], at: 0 }
    }

    fn round(&mut self) {
        let mut numbers: Vec<u64> = (0..SORTED).map(|_| self.rng.next_u64()).collect();
        numbers.sort_unstable();
        let part = self.at..self.at + COPIED_BYTES;
        if let (Some(to), Some(from)) = (self.to.get_mut(part.clone()), self.from.get(part)) {
            to.copy_from_slice(black_box(from));
        }
        self.at = (self.at + COPIED_BYTES) % BUFFER_BYTES;
        black_box((&numbers, &self.to));
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

    /// Goal: what is measured beside others is what it took itself. Method: the same work alone, with none beside it, and beside another thread, whose time goes up meanwhile.
    #[test]
    fn others_do_not_count() {
        assert_eq!(while_busy(0, |busy| Ok(busy.cpu_secs())).unwrap(), 0.0);
        let (before, after) = while_busy(1, |busy| {
            // BOUND: a thread that is given a core at all gets to the end of a round.
            while busy.cpu_secs() == 0.0 {
                thread::yield_now();
            }
            let before = busy.cpu_secs();
            while busy.cpu_secs() == before {
                thread::yield_now();
            }
            Ok((before, busy.cpu_secs()))
        })
        .unwrap();
        assert!(0.0 < before && before < after, "{before} {after}");
    }
}
