//! Cairn's SQL against PostgreSQL's and SQLite's, by statements that are drawn.
//!
//! `CAIRN_SEED` asks for other statements, `CAIRN_SOAK=1` for many more. A difference is shown with
//! everything that made its tables; `cargo run -p cairn-bench --bin sql_oracle -- differ SEED
//! STATEMENTS` repeats it alone.
#![cfg(all(feature = "peers", feature = "sql"))]

use cairn_bench::oracle::Outcome;
use cairn_bench::oracle::differ::Difference;
use cairn_bench::oracle::engines::{test_cairn, test_cairn_against_itself, test_cairn_by_parts};

/// Faults that are known and open, each by what its statements have in common. Whoever mends one
/// takes its line out.
fn is_known(difference: &Difference) -> bool {
    let says = |words: &str| matches!(&difference.got, Outcome::Failed(why) if why.contains(words));
    // DataFusion wants each column of a result to have a name of its own.
    says("is ambiguous (42702)")
        || says("Projections require unique expression names")
        // Its check of its own plans, where sets meet columns that are never NULL.
        || says("Physical input schema should be the same")
}

/// Goal: where PostgreSQL and SQLite agree, Cairn does too. Method: expressions, queries, changes
/// and scripts drawn from seeds, on small tables with many NULLs; without PostgreSQL what SQLite
/// says.
#[test]
fn cairn_agrees_with_both() {
    let first: u64 = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let is_soak = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let (seeds, count) = if is_soak { (200, 20_000) } else { (3, 700) };
    let must = std::env::var_os("CAIRN_REQUIRE_SQL_PEERS").is_some();
    for seed in first..first + seeds {
        println!("CAIRN_SEED={seed}");
        let mut found = test_cairn(seed, count, must, 50).unwrap();
        found.differences.retain(|difference| !is_known(difference));
        println!("{} compared, {} not supported", found.compared, found.unsupported.len());
        assert!(found.compared > count / 8, "{found}");
        assert!(found.differences.is_empty(), "CAIRN_SEED={seed}\n{found}");
    }
}

/// The first seed, how many there are, and how many statements each has, in the short form and in
/// the long one.
fn amounts(short: usize, long: usize) -> (std::ops::Range<u64>, usize) {
    let first: u64 = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let is_soak = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let (seeds, count) = if is_soak { (200, long) } else { (1, short) };
    (first..first + seeds, count)
}

/// Goal: the optimizer changes no answer, and the direct path gives those of the general one.
/// Method: the same statements to a database of its own whose session has them switched off.
#[test]
fn cairn_agrees_with_itself() {
    let (seeds, count) = amounts(150, 10_000);
    for seed in seeds {
        for settings in
            [&["cairn.optimizer = off", "cairn.direct_path = off"][..], &["cairn.direct_path = off"]]
        {
            println!("CAIRN_SEED={seed} {settings:?}");
            let found = test_cairn_against_itself(seed, count, settings, 20).unwrap();
            println!("{} compared, {} dropped", found.compared, found.dropped);
            assert!(found.compared > count / 2, "{found}");
            assert!(found.differences.is_empty(), "CAIRN_SEED={seed} {settings:?}\n{found}");
        }
    }
}

/// Goal: a condition is true, false or unknown for each row, and for one of them only. Method:
/// queries against the same rows put together from those parts, drawn from seeds.
#[test]
fn parts_make_a_whole() {
    let (seeds, count) = amounts(150, 10_000);
    for seed in seeds {
        println!("CAIRN_SEED={seed}");
        let found = test_cairn_by_parts(seed, count, 20).unwrap();
        println!("{} compared, {} dropped", found.compared, found.dropped);
        assert!(found.compared > count / 2, "{found}");
        assert!(found.differences.is_empty(), "CAIRN_SEED={seed}\n{found}");
    }
}
