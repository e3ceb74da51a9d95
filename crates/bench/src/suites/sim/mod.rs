//! Validation of the simulator: real stores get exactly the writes that the simulator draws, and
//! their own statistics are compared with its predictions.
//!
//! In paced runs, byte counts do not depend on the machine: after each memtable's worth of writes,
//! the store is flushed, and the run waits until no background work is left.
//! `docs/src/design/sim.md` explains why that makes real stores an oracle.

mod cases;
mod compare;
mod cores;
mod costs;
mod data;
mod drive;
mod files;
mod held_out;
mod page;
mod share;
#[cfg(test)]
mod tests;
mod timed;

use std::path::{Path, PathBuf};

pub use cases::{Case, cases, held_out_cases, timed_cases};
pub use compare::{Comparison, Quantity, Sign, Summary, Verdict};
pub use cores::{measure_cores, measure_sleep_extra_us};
pub use costs::measure_costs;
pub use data::{Data, measure_codecs};
pub use files::measure_syncs;
pub use page::{to_page, to_text};
pub use share::Share;

use cairn_vfs::{Fs, StdFs};
use data::codec_ratios;

use cairn_sim::options::Engine;
use cairn_sim::{Config, Results, Simulation};

use crate::core::error::{Error, Result};
use crate::core::process::Stop;
use crate::core::scratch::{Scratch, sweep};
use crate::stores::cairn_kv_measured;
use crate::stores::catalog::Catalog;
use crate::stores::measured::{MeasuredLibrary, MeasuredStore};

/// Number of runs of the model with different seeds, which show how much the seed alone changes.
const SEEDS: u64 = 5;

/// Label of the scratch directories.
const LABEL: &str = "sim";

/// The options of a validation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Uses cases a quarter of the size, for CI.
    pub quick: bool,
    /// Only cases whose names contain this.
    pub only: Option<String>,
    /// Only cases with these names; empty for all of them.
    pub names: Vec<String>,
    /// Uses [`held_out_cases`] instead of [`cases`].
    pub held_out: bool,
    /// Also performs timed runs, none of which is held out.
    pub timed: bool,
    /// Only this part of the remaining cases; `None` for all of them.
    pub part: Option<Share>,
    /// Path of RocksDB's library; `None` to search for it.
    pub library: Option<PathBuf>,
    /// Directory in which stores are created; `None` for the system's temporary directory.
    pub work_dir: Option<PathBuf>,
}

/// The result of a validation.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// Versions of the real stores.
    pub versions: Vec<String>,
    /// The comparison of each case.
    pub comparisons: Vec<Comparison>,
    /// The sign of each pair of cases that differ in one setting.
    pub signs: Vec<Sign>,
    /// Cases that could not run, with the reasons.
    pub skipped: Vec<String>,
}

impl Report {
    /// Merges reports into one, with the signs of all their cases; `None` if there are none.
    pub fn merged(reports: Vec<Report>) -> Option<Report> {
        if reports.is_empty() {
            return None;
        }
        let mut all = Report::default();
        for report in reports {
            all.versions.extend(report.versions);
            all.comparisons.extend(report.comparisons);
            all.skipped.extend(report.skipped);
        }
        all.versions.sort();
        all.versions.dedup();
        all.signs = compare::signs(&all.comparisons);
        Some(all)
    }
}

/// Checks whether RocksDB's library is installed. Errors: what to install.
pub fn find_rocksdb(catalog: &Catalog) -> Result<()> {
    let find = catalog.measured_rocksdb;
    find.ok_or_else(|| Error::invalid("this program was built without the peers"))?(None).map(drop)
}

/// Runs all cases. `tell` is called for each before it begins.
///
/// Errors: a store or the disk fails; the run is stopped.
pub fn validate(
    options: &Options,
    catalog: &Catalog,
    stop: &Stop,
    tell: &mut dyn FnMut(usize, usize, &str),
) -> Result<Report> {
    let parent = options.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    sweep(&parent, LABEL)?;
    let chosen = chosen(options)?;
    let opener = Opener::new(options, catalog)?;
    let mut report =
        Report { versions: Vec::new(), comparisons: Vec::new(), signs: Vec::new(), skipped: Vec::new() };
    let count = chosen.len();
    for (at, case) in chosen.iter().enumerate() {
        stop.check()?;
        tell(at, count, &case.name);
        if case.config.options.engine == Engine::Rocksdb && !opener.has_rocksdb() {
            report.skipped.push(format!("{}: no library of RocksDB", case.name));
            continue;
        }
        let comparison = one(case, &opener, &parent, stop)?;
        if !report.versions.contains(&comparison.version) {
            report.versions.push(comparison.version.clone());
        }
        tell_figures(&comparison, at, count, tell);
        report.comparisons.push(comparison);
    }
    report.signs = compare::signs(&report.comparisons);
    Ok(report)
}

/// Returns the cases that the options select.
///
/// Errors: no case has the given text in its name; timed cases cannot be held out.
fn chosen(options: &Options) -> Result<Vec<Case>> {
    if options.held_out && options.timed {
        return Err(Error::invalid("no timed case is held out"));
    }
    let mut chosen = if options.held_out { held_out_cases(options.quick) } else { cases(options.quick) };
    if options.timed {
        chosen.extend(timed_cases(options.quick));
    }
    if !options.names.is_empty() {
        chosen.retain(|case| options.names.contains(&case.name));
    }
    if let Some(word) = &options.only {
        let known: Vec<String> = chosen.iter().map(|case| case.name.clone()).collect();
        chosen.retain(|case| case.name.contains(word.as_str()));
        if chosen.is_empty() {
            let known = known.join(", ");
            return Err(Error::invalid(format!("no case has {word:?} in its name; known: {known}")));
        }
    }
    if let Some(part) = options.part {
        let mut at = 0..;
        chosen.retain(|_| at.next().is_some_and(|at| part.has(at)));
    }
    Ok(chosen)
}

/// Reports the quantities of a case as soon as they are known, because runs are long.
fn tell_figures(comparison: &Comparison, at: usize, count: usize, tell: &mut dyn FnMut(usize, usize, &str)) {
    for verdict in &comparison.verdicts {
        let Verdict { quantity, predicted, measured, error, .. } = verdict;
        let line =
            format!("  {}: {predicted:.3}, measured {measured:.3}, {:+.1} %", quantity.name(), error * 100.0);
        tell(at, count, &line);
    }
}

/// Runs a case on a real store and in the model.
fn one(case: &Case, opener: &Opener, parent: &Path, stop: &Stop) -> Result<Comparison> {
    let scratch = Scratch::in_dir(parent, LABEL)?;
    let dir = scratch.dir("store")?;
    let mut config = case.config.clone();
    let data = Data::new(&config)?;
    config.hardware.codecs = codec_ratios(&config, &data)?;
    if case.is_timed {
        return timed::run(case, config, &data, opener, &dir, stop);
    }
    let mut store = opener.open(&dir, &config, false, false)?;
    if let Some(version) = opener.rules_version(&*store, &config) {
        config.options.rocksdb_version = version;
    }
    let measured = drive::paced(&mut *store, &config, &data, stop)?;
    let predicted = predict(&config)?;
    let mut amplifications = vec![predicted.write_amplification];
    for seed in config.seed + 1..config.seed + SEEDS {
        stop.check()?;
        amplifications.push(predict(&Config { seed, ..config.clone() })?.write_amplification);
    }
    let spread = compare::spread(&amplifications);
    Ok(compare::paced(case, &store.version(), &measured, &predicted, spread))
}

fn predict(config: &Config) -> Result<Results> {
    Simulation::run(config).map_err(|error| Error::invalid(error.to_string()))
}

/// Opens stores of both engines.
struct Opener {
    rocksdb: Option<Box<dyn MeasuredLibrary>>,
}

impl Opener {
    fn new(options: &Options, catalog: &Catalog) -> Result<Opener> {
        let Some(find) = catalog.measured_rocksdb else { return Ok(Opener { rocksdb: None }) };
        let found = find(options.library.as_deref());
        // A library that was given explicitly must exist.
        if options.library.is_some() {
            return Ok(Opener { rocksdb: Some(found?) });
        }
        Ok(Opener { rocksdb: found.ok() })
    }

    fn has_rocksdb(&self) -> bool {
        self.rocksdb.is_some()
    }

    /// Opens a new store. Memtables are flushed when full if `fills` is set, otherwise only on
    /// request.
    fn open(&self, dir: &Path, config: &Config, fills: bool, logs: bool) -> Result<Box<dyn MeasuredStore>> {
        StdFs::new().create_dir_all(dir)?;
        match (config.options.engine, &self.rocksdb) {
            (Engine::CairnKv, _) => Ok(Box::new(cairn_kv_measured::open(dir, config, fills, logs)?)),
            (Engine::Rocksdb, Some(library)) => library.open(dir, config, fills, logs),
            (Engine::Rocksdb, None) => Err(Error::invalid("no library of RocksDB")),
        }
    }

    /// Returns the major version whose rules the model follows.
    fn rules_version(&self, store: &dyn MeasuredStore, config: &Config) -> Option<u32> {
        if config.options.engine != Engine::Rocksdb {
            return None;
        }
        store.version().rsplit(' ').next()?.split('.').next()?.parse().ok()
    }
}
