//! Compares Cairn's SQL with PostgreSQL's and SQLite's, by random statements.
//!
//! `CAIRN_SEED` selects other statements, `CAIRN_SOAK=1` runs many more. A difference is shown with
//! all statements that created its tables; `cargo run -p cairn-bench --bin sql_oracle -- differ
//! SEED STATEMENTS` reproduces it alone.
#![cfg(all(feature = "peers", feature = "sql"))]

use cairn_bench::oracle::Outcome;
use cairn_bench::oracle::differ::Difference;
use cairn_bench::oracle::engines::{test_cairn, test_cairn_against_itself, test_cairn_by_parts};

/// Returns whether a difference is a known, open bug, recognized by its message. A fix removes the
/// line.
fn is_known(difference: &Difference) -> bool {
    let says = |words: &str| matches!(&difference.got, Outcome::Failed(why) if why.contains(words));
    // DataFusion requires unique names for the columns of a result.
    says("is ambiguous (42702)")
        || says("Projections require unique expression names")
        // DataFusion's own check of its plans, if a set operation has columns that are never NULL.
        || says("Physical input schema should be the same")
}

/// Goal: Cairn agrees wherever PostgreSQL and SQLite agree. Method: expressions, queries, changes
/// and scripts drawn from seeds, on small tables with many NULLs. Without PostgreSQL, SQLite is the
/// only reference.
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

/// Returns the range of seeds and the number of statements per seed, for the short or the long
/// form.
fn amounts(short: usize, long: usize) -> (std::ops::Range<u64>, usize) {
    let first: u64 = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let is_soak = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let (seeds, count) = if is_soak { (200, long) } else { (1, short) };
    (first..first + seeds, count)
}

/// Goal: the optimizer changes no answer, and the direct path returns those of the general path.
/// Method: the same statements on a separate database whose session has them disabled.
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

/// Goal: a condition is true, false or unknown for each row, and only one of them. Method: queries
/// compared with the same rows assembled from those partitions, drawn from seeds.
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
