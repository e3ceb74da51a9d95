//! Explores thread schedules in tests, built with `--cfg cairn_shuttle`. Each program with such
//! tests includes this file by its path.
//!
//! All threads of a test then run as one thread of the operating system. A seed decides which one
//! continues at each lock, atomic access and operation of a simulated disk. Threads that wait for
//! each other forever are reported as a deadlock, and endless loops by the number of their steps.
//! Some things are not covered: effects of orderings weaker than `SeqCst`, because shuttle treats
//! all as `SeqCst`; the inside of code that does not use shuttle (`arc_swap`, `OnceLock`), whose
//! operations are one step each or part of one; and waits that end by themselves, because
//! `wait_timeout` never times out.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// The factor by which `CAIRN_SOAK` increases the number of schedules.
const SOAK: usize = 100;

/// Depths of probabilistic concurrency testing: threads have priorities, which change at one step
/// fewer than the depth (Burckhardt et al., *A Randomized Scheduler with Probabilistic Guarantees
/// of Finding Bugs*, ASPLOS 2010).
const DEPTHS: [usize; 2] = [2, 4];

/// Runs `test` under `count` random schedules, and under half as many of each depth of [`DEPTHS`].
/// The seed is `CAIRN_SEED`, or 1. A failing schedule is printed in the form that shuttle can
/// replay.
pub fn explore(count: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    let soaks = env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let count = if soaks { count * SOAK } else { count };
    let seed = env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    run("random", RandomScheduler::new_from_seed(seed, count), test.clone());
    for depth in DEPTHS {
        let name = format!("PCT of depth {depth}");
        run(&name, PctScheduler::new_from_seed(seed, depth, count / 2), test.clone());
    }
}

fn run(name: &str, scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    // The stack frames of simulated disks need larger stacks than shuttle's default.
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    // Reported on drop, so that a failing schedule is counted too: it is the last one.
    let begun = Said { name, count: Arc::default() };
    let count = Arc::clone(&begun.count);
    Runner::new(scheduler, config).run(move || {
        count.fetch_add(1, Ordering::Relaxed);
        test();
    });
}

/// Prints the number of schedules when dropped.
struct Said<'a> {
    name: &'a str,
    count: Arc<AtomicUsize>,
}

impl Drop for Said<'_> {
    fn drop(&mut self) {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("schedules");
        println!("{test}: {} schedules, {}", self.count.load(Ordering::Relaxed), self.name);
    }
}
