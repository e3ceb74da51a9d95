//! First estimates of the duration of parts: the number of turns times the work of a turn, at the
//! rates of an ordinary machine.
//!
//! The estimates decide how a budget is shared, and are shown as estimates until the first part has
//! ended. After that, measured durations scale them. So the absolute rates hardly matter, as long
//! as the estimates of different parts have the right proportions.

use crate::core::workload::Durability;
use crate::suites::hash::Group as HashGroup;
use crate::suites::index::DataSet;
use crate::suites::kv::KvGroup;
use crate::suites::kv::job::KvWorkload;
use crate::suites::pool::{PoolCase, Work as PoolWork};
use crate::suites::sim::Case as SimCase;
use crate::suites::sql::{SqlCase, Work as SqlWork};
use crate::suites::{hash, kv, pool, sql};

/// Number of contenders that take turns if everything is installed.
const HASH_READERS: f64 = 16.0;
const HASH_STORES: f64 = 9.0;
const POOL_CONTENDERS: f64 = 13.0;
const SQL_ENGINES: f64 = 5.0;
const INDEX_FORMS: f64 = 8.0;

/// Seconds to build one record, to start a process, and to start a JVM with its checks.
const RECORD_BUILT: f64 = 1.5e-6;
const PROCESS: f64 = 0.15;
const JVM: f64 = 1.5;
const JAVA_READERS: f64 = 3.0;

pub(super) fn hash(options: &hash::Options, group: &HashGroup, entries: f64) -> f64 {
    let (rounds, cells) = (f64::from(options.rounds), group.cells.len() as f64);
    let effort = options.effort;
    let builds = HASH_STORES * f64::from(group.build_rounds) * (PROCESS + entries * RECORD_BUILT);
    let warm = HASH_READERS * effort.warm_up_seconds;
    let lookups = HASH_READERS * cells * rounds * 2.0 * effort.seconds;
    let iterations = f64::from(options.java.warm_up + options.java.iterations);
    let java = JAVA_READERS * cells * (JVM + iterations * options.java.seconds);
    let openings = if group.openings { HASH_READERS * rounds * 0.1 } else { 0.0 };
    builds + warm + lookups + java + openings
}

/// Operations per second of an average store.
const KV_RATE: f64 = 500_000.0;
const KV_SYNC_RATE: f64 = 4_000.0;

pub(super) fn kv(options: &kv::Options, group: &KvGroup) -> f64 {
    let operations = match &group.workload {
        KvWorkload::Crud(crud) => 5 * crud.operations,
        KvWorkload::Threads(threads) => 3 * u64::from(threads.threads) * threads.operations_each,
        KvWorkload::Writers(writers) => writers.operations,
        KvWorkload::Ycsb(run) => run.records + run.operations * run.specs.len() as u64,
        KvWorkload::DbBench(bench) => bench.operations * bench.benchmarks.len() as u64,
        KvWorkload::Large(large) => large.records + large.reads + large.scans,
        KvWorkload::Overwrite(overwrite) => overwrite.records + overwrite.operations,
        KvWorkload::Replay(_) => 0,
    };
    let rate = if group.settings.durability == Durability::Sync { KV_SYNC_RATE } else { KV_RATE };
    // Larger values also cost the time of their bytes.
    let each = 1.0 / rate + group.shape.value_bytes as f64 / 200e6;
    let turns = f64::from(options.rounds + u32::from(group.timed)) * options.dbs.len() as f64;
    turns * (2.0 * PROCESS + operations as f64 * each)
}

/// Seconds of a turn in addition to its samples, and seconds of a turn that counts hits.
const POOL_TURN: f64 = 0.002;
const POOL_HITS: f64 = 0.04;

pub(super) fn pool(options: &pool::Options, cases: &[PoolCase]) -> f64 {
    let one = |case: &PoolCase| {
        if matches!(case.work, PoolWork::Hits { .. }) {
            return POOL_CONTENDERS * POOL_HITS;
        }
        // The size of a sample is found by trial, which takes about as long as the samples
        // themselves.
        let samples = 2.0 * options.samples_each() as f64 * options.sample_seconds_of(case.threads);
        f64::from(options.rounds) * POOL_CONTENDERS * (POOL_TURN + samples)
    };
    cases.iter().map(one).sum()
}

pub(super) fn sql(options: &sql::Options, cases: &[SqlCase]) -> f64 {
    let rounds = f64::from(options.rounds);
    let one = |case: &SqlCase| match case.work {
        SqlWork::Guide(_) => options.samples_each() as f64 * 0.02,
        SqlWork::Repeat(_) => 0.06 + 1.5 * options.seconds,
        SqlWork::Load => f64::from(options.load_rows) * 5e-6,
    };
    let rows = cases.first().map_or(0, |case| case.group.rows(options));
    let databases = SQL_ENGINES * (1.0 + f64::from(rows) * 2e-5);
    databases + SQL_ENGINES * rounds * cases.iter().map(one).sum::<f64>()
}

pub(super) fn index(options: &crate::suites::index::Options, sets: &[DataSet]) -> f64 {
    let rounds = f64::from(options.rounds);
    let one = |set: &DataSet| {
        let rows = set.rows as f64;
        let builds = INDEX_FORMS * rounds * (0.02 + rows * 1e-6);
        let cold = if options.cold { INDEX_FORMS * rounds } else { 0.0 };
        let scan = rows * 1e-7;
        let turns = INDEX_FORMS * rounds * set.queries.len() as f64 * (0.01 + options.seconds + 3.0 * scan);
        rows * 3e-6 + builds + cold + turns
    };
    // The time to start and stop the server.
    1.5 + sets.iter().map(one).sum::<f64>()
}

pub(super) fn sim(case: &SimCase) -> f64 {
    let config = &case.config;
    if case.is_timed {
        return 2.0 * config.duration_secs;
    }
    1.0 + (config.workload.keys + config.writes) as f64 * 25e-6
}
