//! Arguments of `cairn bench index`.

use cairn_bench::core::workload::DEFAULT_SEED;
use clap::Args;

use super::bytes::bytes_between;
use super::run::RunArgs;
use super::{names, number};

/// `cairn bench index`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn bench index
  cairn bench index thrash --rounds 5
  cairn bench index quick,ideas --filter Q
  cairn bench index pressure --warm-only --contenders 'cairn aggregate,cairn scan,btree'

Data sets: quick has Q1, Q2 and Q3; thrash and pressure have one each, of the same name. All of
these except Q2 also come as ', shuffled', with rows in random order. ideas has selectivity, key
int2 / int8 / uuid / text / numeric / timestamp, 1 / 2 / 4 / 8 INCLUDE columns, skew uniform / zipf
/ heavy tail, mix.

Contenders: cairn aggregate, cairn scan, btree, btree of all columns, btree without deduplication,
brin, hash, sequential scan. PostgreSQL is found as in bench sql; `make install` in
bindings/postgres adds the cairn access method to it.")]
pub struct BenchIndexArgs {
    /// Suites: quick, thrash, pressure, ideas or all; separate several with commas
    #[arg(value_delimiter = ',', default_value = "quick", value_parser = names::index_suite)]
    pub suites: Vec<String>,
    /// Only data sets whose name contains this text
    #[arg(long, value_name = "WORD")]
    pub filter: Option<String>,
    /// Contenders to measure [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names::index_contender)]
    pub contenders: Vec<String>,
    /// Factor on the numbers of rows in SMOL's benchmark guide
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = number::real_over(0.0, 100.0))]
    pub scale: f64,
    /// Rounds, each of which measures every contender once with every query
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = number::from::<u32>(1))]
    pub rounds: u32,
    /// Duration of a turn, which runs its query at least three times
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = number::real_between(0.0, 3600.0))]
    pub seconds: f64,
    /// Skip the first query of each data set on a newly started server
    #[arg(long)]
    pub warm_only: bool,
    /// PostgreSQL's shared_buffers
    #[arg(long, value_parser = bytes_between(128 << 10, 1 << 40), value_name = "SIZE", default_value = "64MiB")]
    pub shared_buffers: u64,
    /// Seed of data and orders
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SEED, value_parser = number::whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub run: RunArgs,
}
