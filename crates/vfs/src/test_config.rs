//! Settings of the randomized tests.

use proptest::test_runner::{Config, RngSeed};

/// `cases` random cases from a fixed seed; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` ask for others.
pub fn cases(cases: u32) -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config.failure_persistence = None;
    config
}
