//! The options of each suite in a quick and in a full run.
//!
//! Quick sizes are chosen so that all parts together take about eleven minutes on two cores. Five
//! rounds are the fewest for which intervals approximately have their stated confidence. The sizes
//! are small: a quick run shows large differences, but not differences of ten percent.

use super::options::{Mode, Options};
use crate::core::stats;
use crate::core::worker::Worker;
use crate::stores::catalog::Catalog;
use crate::suites::hash::job::Effort;
use crate::suites::hash::{JavaEffort, Matrix};
use crate::suites::{hash, index, kv, pool, sim, sql};

/// Returns the number of rounds of all measurements.
fn rounds(options: &Options) -> u32 {
    options.rounds.unwrap_or(stats::PAIRS_MIN as u32)
}

/// Multiplies `count` by the scale; returns at least `least`.
fn scaled(options: &Options, count: u64, least: u64) -> u64 {
    ((count as f64 * options.scale) as u64).max(least)
}

fn scaled_u32(options: &Options, count: u32, least: u32) -> u32 {
    u32::try_from(scaled(options, u64::from(count), u64::from(least))).unwrap_or(u32::MAX)
}

/// Returns the seconds of a turn: shorter for a scale below one, never longer.
fn shortened(options: &Options, seconds: f64) -> f64 {
    (seconds * options.scale.min(1.0)).max(0.0005)
}

pub(super) fn hash(options: &Options, worker: Option<Worker>) -> hash::Options {
    let quick = options.mode == Mode::Quick;
    let usual = if quick { hash::Options::quick() } else { hash::Options::full() };
    let rounds = rounds(options);
    let mut hash = hash::Options {
        seed: options.seed,
        data: options.data.clone(),
        rounds,
        quick_entries: scaled(options, 300_000, 100),
        matrix: usual.matrix.clone().map(|matrix| Matrix {
            entries: matrix.entries.iter().map(|&entries| scaled(options, entries, 100)).collect(),
            ..matrix
        }),
        fresh_reads: usual.fresh_reads && worker.is_some(),
        worker,
        work_dir: options.work_dir.clone(),
        probes: None,
        ..usual
    };
    if quick {
        let seconds = shortened(options, 0.06);
        hash.effort = Effort { order_keys: 1 << 18, warm_up_seconds: shortened(options, 0.3), seconds };
        hash.java = JavaEffort {
            warm_up: 3,
            iterations: rounds,
            seconds: seconds.max(0.02),
            keys_max_compressed: 20_000,
            ..hash.java
        };
        hash.groups = quick_groups(&hash);
    }
    hash
}

/// Returns one data set in detail, one compressed, and another one. The other one is synthetic if
/// the user has own data; otherwise it has a tenth of the entries.
fn quick_groups(hash: &hash::Options) -> Vec<String> {
    let wanted = if hash.data.is_some() { [0, 1, 4] } else { [0, 3, 4] };
    let all = hash::plan(hash);
    let chosen = wanted.iter().filter_map(|&at: &usize| all.get(at));
    chosen.map(hash::Group::name).collect()
}

pub(super) fn kv(options: &Options, catalog: &Catalog, worker: Option<Worker>) -> kv::Options {
    use kv::Mode as KvMode;
    let usual = kv::Options::with_all(&catalog.kv);
    let common = kv::Options {
        seed: options.seed,
        rounds: rounds(options),
        work_dir: options.work_dir.clone(),
        worker,
        probes: None,
        ..usual.clone()
    };
    if options.mode == Mode::Full {
        return kv::Options {
            n: scaled(options, usual.n, 100),
            batch: scaled(options, usual.batch, 10),
            ops_per_thread: scaled(options, usual.ops_per_thread, 50),
            sync_n: scaled(options, usual.sync_n, 20),
            data_bytes: scaled(options, usual.data_bytes, 64 << 10),
            overwrite_bytes: scaled(options, usual.overwrite_bytes, 256 << 10),
            sweep_bytes: scaled(options, usual.sweep_bytes, 64 << 10),
            modes: KvMode::parse("all").unwrap_or_default(),
            ..common
        };
    }
    kv::Options {
        n: scaled(options, 60_000, 100),
        batch: scaled(options, 6_000, 10),
        ops_per_thread: scaled(options, 30_000, 50),
        threads: vec![1, 2],
        sync_n: scaled(options, 600, 20),
        data_bytes: scaled(options, 16 << 20, 64 << 10),
        overwrite_bytes: scaled(options, 64 << 20, 256 << 10),
        modes: vec![
            KvMode::Rand,
            KvMode::Batch,
            KvMode::Mt,
            KvMode::SyncRand,
            KvMode::Ycsb('a'),
            KvMode::Ycsb('c'),
            KvMode::Ycsb('e'),
            KvMode::OverwriteLong,
        ],
        ..common
    }
}

pub(super) fn pool(options: &Options, catalog: &Catalog) -> pool::Options {
    let usual = pool::Options::with_all(&catalog.pages);
    let rounds = rounds(options);
    let common = pool::Options {
        rounds,
        seed: options.seed,
        work_dir: options.work_dir.clone(),
        probes: None,
        ..usual.clone()
    };
    if options.mode == Mode::Full {
        let iterations = scaled_u32(options, usual.iterations, rounds);
        return pool::Options {
            iterations,
            sample_seconds: shortened(options, usual.sample_seconds),
            ..common
        };
    }
    pool::Options {
        iterations: 2 * rounds,
        threads: vec![2, 8],
        sample_seconds: shortened(options, usual.sample_seconds),
        ..common
    }
}

pub(super) fn sql(options: &Options, catalog: &Catalog) -> sql::Options {
    let usual = sql::Options::with_all(&catalog.sql);
    let rounds = rounds(options);
    let common = sql::Options {
        rounds,
        seed: options.seed,
        work_dir: options.work_dir.clone(),
        probes: None,
        ..usual.clone()
    };
    if options.mode == Mode::Full {
        return sql::Options {
            iterations: scaled_u32(options, usual.iterations, rounds),
            rows: scaled_u32(options, usual.rows, 200),
            load_rows: scaled_u32(options, usual.load_rows, 200),
            seconds: shortened(options, usual.seconds),
            ..common
        };
    }
    sql::Options {
        iterations: 3 * rounds,
        rows: scaled_u32(options, 20_000, 200),
        load_rows: scaled_u32(options, 50_000, 200),
        threads: vec![1, 4],
        writers: vec![1, 8],
        clients: 4,
        seconds: shortened(options, 0.06),
        ..common
    }
}

pub(super) fn index(options: &Options) -> index::Options {
    let usual = index::Options::default();
    let quick = options.mode == Mode::Quick;
    index::Options {
        suites: if quick { vec![index::Suite::Quick] } else { index::Suite::ALL.to_vec() },
        scale: if quick { 0.1 * options.scale } else { options.scale },
        rounds: rounds(options),
        seconds: shortened(options, if quick { 0.03 } else { usual.seconds }),
        // Each cold query would wait for a server to stop and start.
        cold: !quick,
        seed: options.seed,
        work_dir: options.work_dir.clone(),
        probes: None,
        ..usual
    }
}

/// Cases of the quick run: both engines, each with the usual compaction style, with another one,
/// and with another distribution.
const SIM_CASES: [&str; 6] =
    ["kv leveled", "kv lazy leveled", "kv zipfian", "leveled uniform", "universal", "zipfian"];

pub(super) fn sim(options: &Options) -> sim::Options {
    let quick = options.mode == Mode::Quick;
    let all = sim::cases(quick).into_iter().map(|case| case.name);
    let names = all.filter(|name| !quick || SIM_CASES.contains(&name.as_str())).collect();
    sim::Options { quick, names, work_dir: Some(options.work_dir.clone()), ..Default::default() }
}
