//! Cairn's SQL against PostgreSQL's and SQLite's, by statements that are drawn.
//!
//! `CAIRN_SEED` asks for other statements, `CAIRN_SOAK=1` for many more. A difference is shown with everything that made its tables;
//! `cargo run -p cairn-bench --bin sql_oracle -- differ SEED STATEMENTS` repeats it alone.
#![cfg(all(feature = "peers", feature = "sql"))]

use cairn_bench::oracle::engines::test_cairn;

/// Goal: where PostgreSQL and SQLite agree, Cairn does too. Method: expressions, queries, changes and scripts drawn from seeds, on small tables
/// with many NULLs; without PostgreSQL what SQLite says.
#[test]
fn cairn_agrees_with_both() {
    let first: u64 = std::env::var("CAIRN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let is_soak = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let (seeds, count) = if is_soak { (200, 20_000) } else { (3, 700) };
    let must = std::env::var_os("CAIRN_REQUIRE_SQL_PEERS").is_some();
    for seed in first..first + seeds {
        println!("CAIRN_SEED={seed}");
        let found = test_cairn(seed, count, must, 5).unwrap();
        println!("{} compared, {} not supported", found.compared, found.unsupported.len());
        assert!(found.compared > count / 8, "{found}");
        assert!(found.differences.is_empty(), "CAIRN_SEED={seed}\n{found}");
    }
}
