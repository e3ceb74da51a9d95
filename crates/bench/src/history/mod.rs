//! The history: runs over time, kept in a store of Cairn's own, and the evaluation of a new run
//! against them.
//!
//! ```text
//!   history                                  marks the store: `cairn bench 1`
//!   run/<suite>\0<start>\0<number>           the run as JSON, without its HTML
//!   series/<case, contender, metric>\0<start>\0<number>
//!                                            one figure of it, so that a trend is one scan
//! ```
//! A run and its figures are written in one batch, so a run is recorded completely or not at all.
//! The files of runs remain the originals.

mod noise;
mod text;

use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_kv::{Background, Db, Durability, WriteBatch};
use cairn_vfs::Fs;
use serde::{Deserialize, Serialize};

use crate::core::compare::{self, share_figures};
use crate::core::error::{Error, Result};
use crate::core::recorder::case_name;
use crate::core::results::{Measurement, Run};
use crate::suites::counts;

pub use noise::{Judged, Limits, Verdict, judge, regressions, unjudged};
pub use text::{judged_text, runs_text, trends_text};

/// Directory of the history, relative to the working directory.
pub const HISTORY_DIR: &str = "benchmark-results/history";

/// Key that marks a store as a history.
const MARK: &[u8] = b"history";
const MARK_VALUE: &[u8] = b"cairn bench 1";

/// Prefixes of the keys of runs and of series, and the first key after each.
const RUNS: &[u8] = b"run/";
const RUNS_END: &[u8] = b"run0";
const SERIES: &[u8] = b"series/";
const SERIES_END: &[u8] = b"series0";

/// The figure of one run in a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Start of the run, RFC 3339.
    pub started: String,
    /// The median, or the only value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The machine, by [`comparable_machine`].
    pub machine: String,
    /// Hash of the settings, by [`settings_of`]; empty in points that were stored before this field
    /// existed.
    #[serde(default)]
    pub settings: String,
    /// The measured commit, if the run knows it.
    pub commit: String,
    /// Unit of the value.
    pub unit: String,
    /// True if more is better.
    pub higher_is_better: bool,
}

/// One figure over time, on one machine and with the same settings. Figures of other machines or
/// settings are separate series even if they have the same name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Suite, case, contender and metric, as on dashboards. Several series may have the same name:
    /// see [`told_apart`].
    pub name: String,
    /// The machine, as in its points.
    pub machine: String,
    /// The settings, as in its points.
    pub settings: String,
    /// Ordered by time.
    pub points: Vec<SeriesPoint>,
}

/// A run of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    /// Its suite.
    pub suite: String,
    /// Its start.
    pub started: String,
    /// Distinguishes runs that started in the same second.
    pub number: u32,
    /// `quick`, `full` or `custom`.
    pub mode: String,
    /// The machine.
    pub machine: String,
    /// The commit.
    pub commit: String,
    /// Number of figures.
    pub figures: usize,
}

/// The outcome of recording a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The run was added.
    Added,
    /// The run replaced an incomplete version of itself, recorded when it had been interrupted.
    Replaced,
    /// The run was recorded before.
    Known,
}

/// An open history.
#[derive(Debug)]
pub struct History {
    db: Db,
}

fn fail(error: cairn_kv::Error) -> Error {
    Error::engine("the history", error)
}

impl History {
    /// Opens the history in `dir`; with `create`, creates it if it does not exist.
    ///
    /// Errors: those of the store; [`Error::Invalid`] if `dir` does not exist and `create` is
    /// false, or if it is not a history.
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path, create: bool) -> Result<History> {
        let is_there = fs.exists(dir)?;
        if !create && !is_there {
            let dir = dir.display();
            return Err(Error::invalid(format!(
                "{dir} does not exist: `cairn bench record` begins a history"
            )));
        }
        if is_there && !fs.metadata(dir)?.is_dir {
            return Err(Error::invalid(format!("{} is a file, expected a directory", dir.display())));
        }
        let open = |create: bool| {
            let builder = Db::builder(dir)
                .fs(Arc::clone(fs))
                .background(Background::Threads(1))
                .durability(Durability::Sync)
                .create_if_missing(create)
                .read_only(!create);
            builder.open().map_err(fail)
        };
        if !create {
            let db = open(false)?;
            check_history(&db, dir)?;
            return Ok(History { db });
        }
        // Before anything is written, the store is verified to be a history.
        if is_there && !fs.read_dir(dir)?.is_empty() {
            check_history(&open(false)?, dir)?;
        }
        let db = open(true)?;
        if db.get(MARK).map_err(fail)?.is_none() {
            db.put(MARK, MARK_VALUE).map_err(fail)?;
        }
        Ok(History { db })
    }

    /// Adds a run. A run that is recorded already, with equal suite, start and content, is left as
    /// it is. A run that was recorded while incomplete is replaced by its complete version, because
    /// two points of one run would look like two runs.
    pub fn record(&self, run: &Run) -> Result<Recorded> {
        let json = serde_json::to_vec(run)
            .map_err(|error| Error::invalid(format!("a run cannot be written as JSON: {error}")))?;
        let mut batch = WriteBatch::new();
        let (mut number, mut recorded) = (0, Recorded::Added);
        let key = loop {
            let key = run_key(&run.suite, &run.started, number);
            let Some(known) = self.db.get(&key).map_err(fail)? else { break key };
            if known[..] == json[..] {
                return Ok(Recorded::Known);
            }
            let known: Option<Run> = serde_json::from_slice(&known).ok();
            if let Some(known) = known.filter(|known| goes_on(known, run)) {
                for measurement in &known.measurements {
                    batch.delete(series_key(&known, measurement, number)).map_err(fail)?;
                }
                recorded = Recorded::Replaced;
                break key;
            }
            number += 1;
        };
        batch.put(key, json).map_err(fail)?;
        let (machine, settings) = (comparable_machine(run), settings_of(run));
        let commit = field(run, "commit").to_owned();
        for measurement in run.measurements.iter().filter(|measurement| measurement.median.is_finite()) {
            let point = SeriesPoint {
                started: run.started.clone(),
                value: measurement.median,
                low: measurement.low,
                high: measurement.high,
                machine: machine.clone(),
                settings: settings.clone(),
                commit: commit.clone(),
                unit: measurement.unit.clone(),
                higher_is_better: measurement.higher_is_better,
            };
            let json = serde_json::to_vec(&point)
                .map_err(|error| Error::invalid(format!("a figure cannot be written as JSON: {error}")))?;
            batch.put(series_key(run, measurement, number), json).map_err(fail)?;
        }
        self.db.write(&batch).map_err(fail)?;
        Ok(recorded)
    }

    /// Returns all runs, or those of one suite, ordered by suite and time. Reads each of them.
    pub fn runs(&self, suite: Option<&str>) -> Result<Vec<(Kept, Run)>> {
        let prefix = match suite {
            Some(suite) => format!("run/{suite}\0"),
            None => "run/".to_owned(),
        };
        let mut out = Vec::new();
        for pair in self.db.prefix(prefix) {
            let (key, value) = pair.map_err(fail)?;
            let run: Run = serde_json::from_slice(&value).map_err(|error| {
                Error::engine("the history", format!("{}: {error}", String::from_utf8_lossy(&key)))
            })?;
            let number =
                key.rsplit(|byte| *byte == 0).next().and_then(|digits| std::str::from_utf8(digits).ok());
            let kept = Kept {
                suite: run.suite.clone(),
                started: run.started.clone(),
                number: number.and_then(|digits| digits.parse().ok()).unwrap_or(0),
                mode: run.mode.clone(),
                machine: machine_of(&run),
                commit: field(&run, "commit").to_owned(),
                figures: run.measurements.len(),
            };
            out.push((kept, run));
        }
        Ok(out)
    }

    /// Returns the series whose names contain all of `words`, each with its last `most` points.
    /// Series of the same name are adjacent, in the order of their first points.
    pub fn series(&self, words: &[String], most: usize) -> Result<Vec<Series>> {
        let mut out: Vec<Series> = Vec::new();
        for pair in self.db.prefix("series/") {
            let (key, value) = pair.map_err(fail)?;
            let name = key.strip_prefix(b"series/").and_then(|rest| rest.split(|byte| *byte == 0).next());
            let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
            if !words.iter().all(|word| name.contains(word.as_str())) {
                continue;
            }
            let point: SeriesPoint = serde_json::from_slice(&value)
                .map_err(|error| Error::engine("the history", format!("{name}: {error}")))?;
            let mut same = out.iter_mut().rev().take_while(|known| known.name == name);
            match same.find(|known| known.machine == point.machine && known.settings == point.settings) {
                Some(series) => series.points.push(point),
                None => {
                    let (machine, settings) = (point.machine.clone(), point.settings.clone());
                    out.push(Series { name, machine, settings, points: vec![point] });
                }
            }
        }
        for series in &mut out {
            let surplus = series.points.len().saturating_sub(most);
            series.points.drain(..surplus);
        }
        Ok(out)
    }

    /// Returns the points of all series of a name.
    pub fn points(&self, name: &str) -> Result<Vec<SeriesPoint>> {
        let mut out = Vec::new();
        for pair in self.db.prefix(series_prefix(name)) {
            let (_, value) = pair.map_err(fail)?;
            let point = serde_json::from_slice(&value)
                .map_err(|error| Error::engine("the history", format!("{name}: {error}")))?;
            out.push(point);
        }
        Ok(out)
    }

    /// Returns the earlier run with which to compare `run`: of the same suite, mode and settings,
    /// from the same machine, with at least one figure in common. Prefers the last run without
    /// failures, because a failed contender has no figures to compare with.
    pub fn before(&self, run: &Run) -> Result<Option<Run>> {
        let (machine, settings) = (comparable_machine(run), settings_of(run));
        let runs = self.runs(Some(&run.suite))?.into_iter().map(|(_, kept)| kept);
        let is_like = |kept: &Run| {
            kept.started < run.started
                && settings_of(kept) == settings
                && comparable_machine(kept) == machine
                && !kept.stopped
                && share_figures(kept, run)
        };
        let mut earlier: Vec<Run> = runs.filter(is_like).collect();
        if let Some(at) = earlier.iter().rposition(|kept| kept.failures().is_empty()) {
            earlier.truncate(at + 1);
        }
        Ok(earlier.pop())
    }
}

/// Checks that a store is a history: it has the mark, or, for histories older than the mark, no key
/// that a history does not have.
///
/// Errors: [`Error::Invalid`] for any other store. Recording would mix runs with its keys, or take
/// its keys for runs.
fn check_history(db: &Db, dir: &Path) -> Result<()> {
    if db.get(MARK).map_err(fail)?.is_some_and(|mark| mark[..] == *MARK_VALUE) {
        return Ok(());
    }
    let mut foreign = None;
    // Before, between and after the two key ranges of a history, so that none of its own keys is
    // read.
    for range in
        [(&b""[..], RUNS), (RUNS_END, SERIES), (SERIES_END, &b"\xff\xff\xff\xff\xff\xff\xff\xff"[..])]
    {
        foreign = foreign.or(first(db, range)?);
    }
    for range in [(RUNS, RUNS_END), (SERIES, SERIES_END)] {
        // A key of a history ends in a start and a number, each after a zero byte.
        foreign =
            foreign.or(first(db, range)?.filter(|key| key.iter().filter(|byte| **byte == 0).count() != 2));
    }
    let Some(key) = foreign else { return Ok(()) };
    Err(Error::invalid(format!(
        "{} is not a history but another store, with keys such as {:?}: expected a history, or a directory that is empty or does not exist",
        dir.display(),
        String::from_utf8_lossy(&key)
    )))
}

/// Returns the first key in `from..to`.
fn first(db: &Db, (from, to): (&[u8], &[u8])) -> Result<Option<Vec<u8>>> {
    let found = db.range(from..to).next().transpose().map_err(fail)?;
    Ok(found.map(|(key, _)| key.to_vec()))
}

fn run_key(suite: &str, started: &str, number: u32) -> String {
    format!("run/{suite}\0{started}\0{number:04}")
}

fn series_prefix(name: &str) -> Vec<u8> {
    format!("series/{name}\0").into_bytes()
}

/// Returns the key of a figure's point.
fn series_key(run: &Run, measurement: &Measurement, number: u32) -> Vec<u8> {
    let mut key = series_prefix(&series_name(&run.suite, measurement));
    key.extend_from_slice(format!("{}\0{number:04}", run.started).as_bytes());
    key
}

/// Returns true if `run` is a later version of `known`, which was interrupted: equal start and
/// seed, and all of its figures.
fn goes_on(known: &Run, run: &Run) -> bool {
    known.stopped
        && known.seed == run.seed
        && known.mode == run.mode
        && comparable_machine(known) == comparable_machine(run)
        && compare::vanished(known, run).is_empty()
}

/// Returns the name of a figure in the history and on dashboards.
pub fn series_name(suite: &str, measurement: &Measurement) -> String {
    format!("{}: {}", case_name(suite, &measurement.case, &measurement.contender), measurement.metric)
}

fn field<'a>(run: &'a Run, name: &str) -> &'a str {
    run.machine.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
}

/// Describes the machine of a run in a few words: processor, cores and file system. Times of
/// different machines are not compared.
pub fn machine_of(run: &Run) -> String {
    ["cpu", "cores", "file system"].map(|name| field(run, name)).join(", ")
}

/// Describes the part of the machine that must be equal for two runs to be comparable:
/// [`machine_of`]. Instruction counts are the same on every processor of an architecture, so for
/// them it is only the architecture; that allows rented machines, which differ every day.
pub fn comparable_machine(run: &Run) -> String {
    if run.suite != counts::NAME {
        return machine_of(run);
    }
    field(run, "target").split('-').next().unwrap_or_default().to_owned()
}

/// Returns a label for each series that distinguishes it from others of the same name, in the order
/// of [`History::series`]: the machine if it differs, and a number for the settings if one machine
/// has several. Empty if the name is unique.
pub fn told_apart(series: &[Series]) -> Vec<String> {
    let mut told = Vec::new();
    for same in series.chunk_by(|one, next| one.name == next.name) {
        let mut settings: Vec<&str> = Vec::new();
        for one in same {
            if !settings.contains(&one.settings.as_str()) {
                settings.push(&one.settings);
            }
        }
        for one in same {
            let machine = same.iter().any(|other| other.machine != one.machine).then(|| one.machine.clone());
            let is_one_of_several =
                same.iter().any(|other| other.machine == one.machine && other.settings != one.settings);
            let number = settings.iter().position(|known| *known == one.settings);
            let number = number.filter(|_| is_one_of_several).map(|at| format!("settings {}", at + 1));
            told.push(machine.into_iter().chain(number).collect::<Vec<_>>().join(", "));
        }
    }
    told
}

/// Returns a hash of the mode, the data description and [`Run::settings`]. Figures with different
/// settings have the same names but are not comparable.
pub fn settings_of(run: &Run) -> String {
    let settings = run.settings.iter().map(|(name, value)| format!("\0{name}\0{value}"));
    let all: String = [run.mode.clone(), format!("\0{}", run.data)].into_iter().chain(settings).collect();
    format!("{:016x}", xxh3_64(all.as_bytes()))
}

#[cfg(test)]
mod tests;
