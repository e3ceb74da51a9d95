//! What a pool must survive: failing, lying and full disks, power loss, and threads in each other's
//! way.
//!
//! `CAIRN_SEED=n` replays a seed, `CAIRN_SOAK=1` asks for the long form.
#![cfg(not(cairn_shuttle))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test program")]

mod between;
mod crash;
mod errors;
mod full;
mod hooked;
mod rot;
mod run;
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

/// Rounds in the short form and in the long one.
fn rounds(short: u64, long: u64) -> u64 {
    if soak() { long } else { short }
}
