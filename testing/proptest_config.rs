//! Settings of randomized tests. Each crate includes this file by its path.

use std::env;

use proptest::test_runner::{Config, RngSeed};

/// The factor by which `CAIRN_SOAK` increases the number of cases.
const SOAK: u32 = 50;

/// Returns a configuration with `cases` random cases from a fixed seed, which is printed if a test
/// fails. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` override both.
pub fn cases(cases: u32) -> Config {
    let mut config = Config::default();
    if env::var_os("PROPTEST_CASES").is_none() {
        let soaks = env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
        config.cases = if soaks { cases * SOAK } else { cases };
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    // With a file of failed seeds, the next run would not repeat this one.
    config.failure_persistence = None;
    // Shown only if the test fails.
    eprintln!("PROPTEST_RNG_SEED={} PROPTEST_CASES={}", config.rng_seed, config.cases);
    config
}
