//! How tests explore schedules, built with `--cfg cairn_shuttle`. Each program that has such tests takes this file in by
//! its path.
//!
//! All threads of a test are then one to the operating system, and a seed decides at each lock, atomic access and
//! operation of a simulated disk who goes on. Threads that wait for each other for ever are reported as a deadlock, those
//! that turn in circles by the number of their steps. What this does not show: effects of orders weaker than `SeqCst`,
//! which shuttle takes all for that; anything inside of what knows nothing of it (`arc_swap`, `OnceLock`), whose
//! operations are one step each or a part of one; and waits that end by themselves, since `wait_timeout` never times out.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// How many times as many schedules `CAIRN_SOAK` asks for.
const SOAK: usize = 100;

/// Depths of probabilistic concurrency testing: threads have priorities, which change at one step fewer than that
/// (Burckhardt et al., *A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*, ASPLOS 2010).
const DEPTHS: [usize; 2] = [2, 4];

/// Runs `test` under `count` random schedules, and under half as many of each depth of [`DEPTHS`]. The seed is `CAIRN_SEED`,
/// or 1; a schedule that fails is printed as shuttle replays it.
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
    // The simulated disks' frames are larger than the threads that shuttle makes by default.
    config.stack_size = 1 << 20;
    config.silence_warnings = true;
    // Also said when a schedule fails: it is the last one.
    let begun = Said { name, count: Arc::default() };
    let count = Arc::clone(&begun.count);
    Runner::new(scheduler, config).run(move || {
        count.fetch_add(1, Ordering::Relaxed);
        test();
    });
}

/// Says when it is dropped how many schedules there were.
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
