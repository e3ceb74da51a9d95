//! Arguments of `cairn bench sql`.

use cairn_bench::core::workload::DEFAULT_SEED;
use clap::Args;

use super::Promise;
use super::bytes::bytes_between;
use super::run::RunArgs;
use super::{names, number};

/// `cairn bench sql`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench sql 50
  cairn bench sql 50 INSERT
  cairn bench sql 50 'point read' --peers sqlite --rows 1000000
  cairn bench sql 50 --json > dashboard.json
  cairn bench sql --tpch 0.1 --rounds 3
  cairn bench sql --pgbench 10 --threads 8 --seconds 10
  cairn bench sql 50 'bulk load' --load-rows 10000000 --rounds 1

FILTER is part of the name of a case: 'INSERT (single record)', 'SELECT (table scan)', 'SELECT
COUNT(*)', 'UPDATE (single record)', 'DELETE (single record)', 'SQL Concurrency: SELECT', 'Index
Concurrency: LOOKUP', 'point read t8', 'range read of 100 rows', 'index join', 'insert in a
transaction', 'update, autocommitted', 'mixed load', 'commit at sync t16', 'count(*)', 'filtered
sum', 'aggregates of groups', 'bulk load'. Peers that are not installed are left out, with a line
that says why. Ctrl-C ends the run and keeps the results so far; a second Ctrl-C ends it at once.")]
pub struct BenchSqlArgs {
    /// Samples per case of SimpleDB's benchmark guide, over all rounds
    #[arg(default_value_t = 50, value_parser = number::between::<u32>(1, 1_000_000))]
    pub iterations: u32,
    /// Only cases whose name contains this text, see below. Ignored with --json
    pub filter: Option<String>,
    /// The same as FILTER
    #[arg(long = "filter", id = "named_filter", value_name = "WORD", conflicts_with = "filter")]
    pub named_filter: Option<String>,
    /// Peers to measure: sqlite, duckdb, postgres; all or none
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "all", value_parser = names::sql_peer)]
    pub peers: Vec<String>,
    /// Durability of a commit, except in cases that set their own
    #[arg(long, value_enum, default_value_t = Promise::Sync)]
    pub durability: Promise,
    /// Rows of the table that most cases use
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = number::between::<u32>(200, 1_000_000_000))]
    pub rows: u32,
    /// Rows of the bulk load
    #[arg(long, value_name = "COUNT", default_value_t = 200_000, value_parser = number::between::<u32>(1, 1_000_000_000))]
    pub load_rows: u32,
    /// Client threads of reads and writes, and clients of pgbench; separate several numbers with
    /// commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,8", value_parser = number::between::<u32>(1, 500))]
    pub threads: Vec<u32>,
    /// Client threads of durable commits; separate several numbers with commas
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1,16", value_parser = number::between::<u32>(1, 500))]
    pub writers: Vec<u32>,
    /// Client threads of the mixed load
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = number::between::<u32>(1, 500))]
    pub clients: u32,
    /// Memory for pages
    #[arg(long, value_parser = bytes_between(1 << 20, 1 << 40), value_name = "SIZE", default_value = "256MiB")]
    pub cache_size: u64,
    /// Rounds, each of which measures every contender once in every case
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::between::<u32>(1, 1000))]
    pub rounds: u32,
    /// Duration of a turn, except in the cases of SimpleDB's benchmark guide
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3, value_parser = number::real_between(0.001, 600.0))]
    pub seconds: f64,
    /// Only TPC-H: all 22 queries at this scale factor, where 1 means 6 M rows, each query once per
    /// round
    #[arg(long, value_name = "SCALE", conflicts_with_all = ["filter", "named_filter", "pgbench", "iterations"], value_parser = number::real_between(0.001, 100.0))]
    pub tpch: Option<f64>,
    /// Only pgbench, at this scale factor, where 1 means 100,000 accounts: against Cairn's server
    /// and PostgreSQL
    #[arg(long, value_name = "SCALE", conflicts_with_all = ["filter", "named_filter", "iterations"], value_parser = number::between::<u32>(1, 10_000))]
    pub pgbench: Option<u32>,
    /// Seed of all data, draws and shuffles
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub run: RunArgs,
}
