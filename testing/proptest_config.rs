//! Settings of the randomized tests of every crate, each of which takes this file in by its path.

use std::env;

use proptest::test_runner::{Config, RngSeed};

/// How many times as many cases `CAIRN_SOAK` asks for.
const SOAK: u32 = 50;

/// `cases` random cases from a fixed seed, which is printed where a test fails. `PROPTEST_RNG_SEED` and `PROPTEST_CASES`
/// ask for others.
pub fn cases(cases: u32) -> Config {
    let mut config = Config::default();
    if env::var_os("PROPTEST_CASES").is_none() {
        let soaks = env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
        config.cases = if soaks { cases * SOAK } else { cases };
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    // A file of seeds that failed would be read by the next run, which would not be the same run then.
    config.failure_persistence = None;
    // Shown where the test fails.
    eprintln!("PROPTEST_RNG_SEED={} PROPTEST_CASES={}", config.rng_seed, config.cases);
    config
}
