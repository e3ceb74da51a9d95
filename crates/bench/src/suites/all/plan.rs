//! Turns options into suites and their parts.

use super::options::{Mode, Options, SuiteName};
use super::part::{Content, Part, SuitePlan};
use super::{estimate, sizes};
use crate::core::progress::Progress;
use crate::core::worker::Worker;
use crate::stores::catalog::Catalog;
use crate::suites::hash::job::DataSource;
use crate::suites::{hash, index, kv, pool, sim, sql};

/// Returns every requested suite, with its parts in the order in which they are measured. `worker`
/// starts fresh processes. Without it, everything is measured in this process.
pub fn plan(options: &Options, catalog: &'static Catalog, worker: Option<&Worker>) -> Vec<SuitePlan> {
    let of = |suite: &SuiteName| {
        let worker = worker.cloned();
        match suite {
            SuiteName::Hash => hash_parts(&sizes::hash(options, worker), catalog),
            SuiteName::Kv => kv_parts(options, &sizes::kv(options, catalog, worker), catalog),
            SuiteName::Pool => pool_parts(&sizes::pool(options, catalog), catalog),
            SuiteName::Sql => sql_parts(options, &sizes::sql(options, catalog), catalog),
            SuiteName::Index => index_parts(&sizes::index(options), catalog),
            SuiteName::Sim => sim_parts(options.mode, &sizes::sim(options), catalog),
        }
    };
    options.suites.iter().map(of).collect()
}

fn ready(suite: SuiteName, parts: Vec<Part>) -> SuitePlan {
    SuitePlan { suite, parts, missing: None, notes: Vec::new() }
}

fn missing(suite: SuiteName, what: impl Into<String>) -> SuitePlan {
    SuitePlan { suite, parts: Vec::new(), missing: Some(what.into()), notes: Vec::new() }
}

fn hash_parts(options: &hash::Options, catalog: &'static Catalog) -> SuitePlan {
    let part = |group: hash::Group| {
        let entries = match &group.source {
            DataSource::Synthetic { entries, .. } => *entries as f64,
            // The file has not been read yet. A hundred bytes per record are a reasonable estimate.
            DataSource::File { path, .. } => bytes_of(path) / 100.0,
        };
        let name = group.name();
        let own = hash::Options { groups: vec![name.clone()], ..options.clone() };
        Part::new(name, estimate::hash(options, &group, entries), move |progress, stop| {
            hash::run(&own, catalog, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Hash, hash::plan(options).into_iter().map(part).collect())
}

fn bytes_of(path: &std::path::Path) -> f64 {
    use cairn_vfs::Fs;
    cairn_vfs::StdFs::new().metadata(path).map_or(0.0, |found| found.len as f64)
}

/// Divisor for records and operations of YCSB in a quick run, because its values are a hundred
/// times as long as those of the other modes.
const YCSB_SHARE: u64 = 4;
/// Thread counts of `mt`, for a chart over threads.
const QUICK_THREADS: [u32; 2] = [1, 2];
const FULL_THREADS: [u32; 4] = [1, 2, 4, 8];

fn kv_parts(all: &Options, options: &kv::Options, catalog: &'static Catalog) -> SuitePlan {
    use kv::Mode as KvMode;
    let quick = all.mode == Mode::Quick;
    let (ycsb, others): (Vec<KvMode>, Vec<KvMode>) =
        options.modes.iter().copied().partition(|mode| matches!(mode, KvMode::Ycsb(_)));
    let mut parts: Vec<(String, kv::Options)> = Vec::new();
    for mode in others {
        let threads = match mode {
            KvMode::Mt if quick => QUICK_THREADS.to_vec(),
            KvMode::Mt => FULL_THREADS.to_vec(),
            _ => Vec::new(),
        };
        parts.push((mode.name(), kv::Options { modes: vec![mode], threads, ..options.clone() }));
    }
    if !ycsb.is_empty() {
        // The YCSB modes share one load.
        let n = if quick { (options.n / YCSB_SHARE).max(1) } else { options.n };
        parts.push(("ycsb".to_owned(), kv::Options { modes: ycsb, n, ..options.clone() }));
    }
    let part = |(name, own): (String, kv::Options)| {
        let estimate: f64 = kv::plan(&own).iter().map(|group| estimate::kv(&own, group)).sum();
        Part::new(name, estimate, move |progress, stop| {
            kv::run(&own, catalog, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Kv, parts.into_iter().map(part).collect())
}

fn pool_parts(options: &pool::Options, catalog: &'static Catalog) -> SuitePlan {
    let part = |&phase: &u8| {
        let own = pool::Options { phases: vec![phase], ..options.clone() };
        let estimate = estimate::pool(&own, &pool::plan(&own));
        Part::new(pool::title(phase), estimate, move |progress, stop| {
            pool::run(&own, catalog, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Pool, options.phases.iter().map(part).collect())
}

/// Scale factors of TPC-H and pgbench, which are runs of their own in the suite of SQL engines.
const TPCH_SCALE: f64 = 0.1;
const PGBENCH_SCALE: f64 = 10.0;
/// First estimates for TPC-H at scale factor 1 with one round, and for pgbench.
const TPCH_SECONDS: f64 = 400.0;
const PGBENCH_SECONDS: f64 = 120.0;

fn sql_parts(all: &Options, options: &sql::Options, catalog: &'static Catalog) -> SuitePlan {
    if !cfg!(feature = "sql") {
        let what = "this program was built without it: build with the feature `sql`, which is on by default";
        return missing(SuiteName::Sql, what);
    }
    let mut parts = Vec::new();
    let mut add = |name: &str, estimate: f64, own: sql::Options| {
        parts.push(Part::new(name, estimate, move |progress, stop| {
            sql::run(&own, catalog, progress, stop).map(Content::Run)
        }));
    };
    for group in sql::Group::ALL {
        let own = sql::Options { groups: vec![group], ..options.clone() };
        add(group.title(), estimate::sql(&own, &sql::plan(&own)), own);
    }
    if all.mode == Mode::Full {
        let scale = (TPCH_SCALE * all.scale).max(0.001);
        let estimate = TPCH_SECONDS * scale * f64::from(options.rounds);
        add("TPC-H", estimate, sql::Options { tpch: Some(scale), ..options.clone() });
        let scale = (PGBENCH_SCALE * all.scale).max(1.0) as u32;
        add("pgbench", PGBENCH_SECONDS, sql::Options { pgbench: Some(scale), ..options.clone() });
    }
    ready(SuiteName::Sql, parts)
}

fn index_parts(options: &index::Options, catalog: &'static Catalog) -> SuitePlan {
    if let Err(why) = postgres(catalog) {
        return missing(SuiteName::Index, why);
    }
    let all = index::plan(options);
    // A data set and its variant in random order share a server.
    let stem = |set: &index::DataSet| set.name.split(',').next().unwrap_or_default().to_owned();
    let mut stems: Vec<String> = Vec::new();
    for set in &all {
        if !stems.contains(&stem(set)) {
            stems.push(stem(set));
        }
    }
    let part = |name: String| {
        let sets: Vec<_> = all.iter().filter(|set| stem(set) == name).cloned().collect();
        let own =
            index::Options { sets: sets.iter().map(|set| set.name.clone()).collect(), ..options.clone() };
        Part::new(name, estimate::index(options, &sets), move |progress, stop| {
            index::run(&own, catalog, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Index, stems.into_iter().map(part).collect())
}

fn postgres(catalog: &Catalog) -> Result<(), String> {
    let Some(tools) = catalog.postgres else {
        let what = "this program was built without the peers: build with the feature `peers`, which is on by default";
        return Err(what.to_owned());
    };
    (tools.find)().map_err(|error| error.to_string())
}

fn sim_parts(mode: Mode, options: &sim::Options, catalog: &'static Catalog) -> SuitePlan {
    let mut cases = sim::cases(mode == Mode::Quick);
    cases.retain(|case| options.names.contains(&case.name));
    let mut notes = Vec::new();
    if let Err(why) = sim::find_rocksdb(catalog) {
        cases.retain(|case| case.config.options.engine != cairn_sim::options::Engine::Rocksdb);
        notes.push(format!("the simulator is not compared with RocksDB: {why}"));
    }
    let part = |case: sim::Case| {
        let own = sim::Options { names: vec![case.name.clone()], ..options.clone() };
        let estimate = estimate::sim(&case);
        Part::new(case.name, estimate, move |progress: &dyn Progress, stop| {
            let mut tell = |at: usize, count: usize, what: &str| progress.step(at, count, what.trim());
            sim::validate(&own, catalog, stop, &mut tell).map(Content::Sim)
        })
    };
    SuitePlan { notes, ..ready(SuiteName::Sim, cases.into_iter().map(part).collect()) }
}
