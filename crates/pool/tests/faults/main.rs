//! The faults that a pool must survive: failing, lying and full disks, power loss, and contending
//! threads.
//!
//! `CAIRN_SEED=n` replays a seed, and `CAIRN_SOAK=1` runs the long form.
#![cfg(not(cairn_shuttle))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod corruption;
mod crash;
mod disk_full;
mod errors;
mod hook;
mod interleaving;
mod model;
mod threads;

use std::env;

/// The seed of this run, printed so that a failure can be replayed.
fn seed() -> u64 {
    let seed = env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CAIRN_SEED={seed}");
    seed
}

fn soak() -> bool {
    env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0")
}

/// Returns the number of rounds in the short or in the long form.
fn rounds(short: u64, long: u64) -> u64 {
    if soak() { long } else { short }
}
