//! Turns options into suites and their parts.

use super::options::{Mode, Options, SuiteName};
use super::part::{Content, Part, SuitePlan};
use super::{guess, sizes};
use crate::runner::job::DataSource;
use crate::runner::worker::Worker;
use crate::suite_hash::Progress;
use crate::{suite_hash, suite_index, suite_kv, suite_pool, suite_sim, suite_sql};

/// Returns every requested suite, with its parts in the order in which they are measured. `worker`
/// starts fresh processes. Without it, everything is measured in this process.
pub fn plan(options: &Options, worker: Option<&Worker>) -> Vec<SuitePlan> {
    let of = |suite: &SuiteName| {
        let worker = worker.cloned();
        match suite {
            SuiteName::Hash => hash(&sizes::hash(options, worker)),
            SuiteName::Kv => kv(options, &sizes::kv(options, worker)),
            SuiteName::Pool => pool(&sizes::pool(options)),
            SuiteName::Sql => sql(options, &sizes::sql(options)),
            SuiteName::Index => index(&sizes::index(options)),
            SuiteName::Sim => sim(options.mode, &sizes::sim(options)),
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

fn hash(options: &suite_hash::Options) -> SuitePlan {
    let part = |group: suite_hash::Group| {
        let entries = match &group.source {
            DataSource::Synthetic { entries, .. } => *entries as f64,
            // The file has not been read yet. A hundred bytes per record are a reasonable estimate.
            DataSource::File { path, .. } => bytes_of(path) / 100.0,
        };
        let name = group.name();
        let own = suite_hash::Options { groups: vec![name.clone()], ..options.clone() };
        Part::new(name, guess::hash(options, &group, entries), move |progress, stop| {
            suite_hash::run(&own, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Hash, suite_hash::plan(options).into_iter().map(part).collect())
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

fn kv(all: &Options, options: &suite_kv::Options) -> SuitePlan {
    use suite_kv::Mode as KvMode;
    let quick = all.mode == Mode::Quick;
    let (ycsb, others): (Vec<KvMode>, Vec<KvMode>) =
        options.modes.iter().copied().partition(|mode| matches!(mode, KvMode::Ycsb(_)));
    let mut parts: Vec<(String, suite_kv::Options)> = Vec::new();
    for mode in others {
        let threads = match mode {
            KvMode::Mt if quick => QUICK_THREADS.to_vec(),
            KvMode::Mt => FULL_THREADS.to_vec(),
            _ => Vec::new(),
        };
        parts.push((mode.name(), suite_kv::Options { modes: vec![mode], threads, ..options.clone() }));
    }
    if !ycsb.is_empty() {
        // The YCSB modes share one load.
        let n = if quick { (options.n / YCSB_SHARE).max(1) } else { options.n };
        parts.push(("ycsb".to_owned(), suite_kv::Options { modes: ycsb, n, ..options.clone() }));
    }
    let part = |(name, own): (String, suite_kv::Options)| {
        let guess: f64 = suite_kv::plan(&own).iter().map(|group| guess::kv(&own, group)).sum();
        Part::new(name, guess, move |progress, stop| suite_kv::run(&own, progress, stop).map(Content::Run))
    };
    ready(SuiteName::Kv, parts.into_iter().map(part).collect())
}

fn pool(options: &suite_pool::Options) -> SuitePlan {
    let part = |&phase: &u8| {
        let own = suite_pool::Options { phases: vec![phase], ..options.clone() };
        let guess = guess::pool(&own, &suite_pool::plan(&own));
        Part::new(suite_pool::title(phase), guess, move |progress, stop| {
            suite_pool::run(&own, progress, stop).map(Content::Run)
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

fn sql(all: &Options, options: &suite_sql::Options) -> SuitePlan {
    if !cfg!(feature = "sql") {
        let what = "this program was built without it: build with the feature `sql`, which is on by default";
        return missing(SuiteName::Sql, what);
    }
    let mut parts = Vec::new();
    let mut add = |name: &str, guess: f64, own: suite_sql::Options| {
        parts.push(Part::new(name, guess, move |progress, stop| {
            suite_sql::run(&own, progress, stop).map(Content::Run)
        }));
    };
    for group in suite_sql::Group::ALL {
        let own = suite_sql::Options { groups: vec![group], ..options.clone() };
        add(group.title(), guess::sql(&own, &suite_sql::plan(&own)), own);
    }
    if all.mode == Mode::Full {
        let scale = (TPCH_SCALE * all.scale).max(0.001);
        let guess = TPCH_SECONDS * scale * f64::from(options.rounds);
        add("TPC-H", guess, suite_sql::Options { tpch: Some(scale), ..options.clone() });
        let scale = (PGBENCH_SCALE * all.scale).max(1.0) as u32;
        add("pgbench", PGBENCH_SECONDS, suite_sql::Options { pgbench: Some(scale), ..options.clone() });
    }
    ready(SuiteName::Sql, parts)
}

fn index(options: &suite_index::Options) -> SuitePlan {
    if let Err(why) = postgres() {
        return missing(SuiteName::Index, why);
    }
    let all = suite_index::plan(options);
    // A data set and its variant in random order share a server.
    let stem = |set: &suite_index::DataSet| set.name.split(',').next().unwrap_or_default().to_owned();
    let mut stems: Vec<String> = Vec::new();
    for set in &all {
        if !stems.contains(&stem(set)) {
            stems.push(stem(set));
        }
    }
    let part = |name: String| {
        let sets: Vec<_> = all.iter().filter(|set| stem(set) == name).cloned().collect();
        let own = suite_index::Options {
            sets: sets.iter().map(|set| set.name.clone()).collect(),
            ..options.clone()
        };
        Part::new(name, guess::index(options, &sets), move |progress, stop| {
            suite_index::run(&own, progress, stop).map(Content::Run)
        })
    };
    ready(SuiteName::Index, stems.into_iter().map(part).collect())
}

#[cfg(feature = "peers")]
fn postgres() -> Result<(), String> {
    crate::peers::sql::postgres::Postgres::find().map(drop).map_err(|error| error.to_string())
}

#[cfg(not(feature = "peers"))]
fn postgres() -> Result<(), String> {
    Err("this program was built without the peers: build with the feature `peers`, which is on by default"
        .to_owned())
}

fn sim(mode: Mode, options: &suite_sim::Options) -> SuitePlan {
    let mut cases = suite_sim::cases(mode == Mode::Quick);
    cases.retain(|case| options.names.contains(&case.name));
    let mut notes = Vec::new();
    if let Err(why) = suite_sim::find_rocksdb() {
        cases.retain(|case| case.config.options.engine != cairn_sim::options::Engine::Rocksdb);
        notes.push(format!("the simulator is not compared with RocksDB: {why}"));
    }
    let part = |case: suite_sim::Case| {
        let own = suite_sim::Options { names: vec![case.name.clone()], ..options.clone() };
        let guess = guess::sim(&case);
        Part::new(case.name, guess, move |progress: &dyn Progress, stop| {
            let mut tell = |at: usize, count: usize, what: &str| progress.step(at, count, what.trim());
            suite_sim::validate(&own, stop, &mut tell).map(Content::Sim)
        })
    };
    SuitePlan { notes, ..ready(SuiteName::Sim, cases.into_iter().map(part).collect()) }
}
