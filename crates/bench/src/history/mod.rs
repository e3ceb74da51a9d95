//! Runs over time, in a store that Cairn itself keeps, and what a new run is worth against them.
//!
//! ```text
//!   history                                 marks the store: `cairn bench 1`
//!   run/<suite>\0<start>\0<number>          the run as JSON, without its HTML
//!   series/<case, contender, metric>\0<start>\0<number>     one figure of it, so that a trend is one scan
//! ```
//! Both are written in one batch: a run is there whole or not at all. The files of runs stay the
//! originals.

mod noise;
mod text;

use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::xxh3_64;
use cairn_kv::{Background, Db, Durability, WriteBatch};
use cairn_vfs::Fs;
use serde::{Deserialize, Serialize};

use crate::compare::{self, share_figures};
use crate::error::{Error, Result};
use crate::results::{Measurement, Run};
use crate::suite_counts;
use crate::suite_hash::case_name;

pub use noise::{Judged, Limits, Verdict, judge, regressions, unjudged};
pub use text::{judged_text, runs_text, trends_text};

/// Where the history is kept, from the working directory.
pub const HISTORY_DIR: &str = "benchmark-results/history";

/// Marks a store as a history.
const MARK: &[u8] = b"history";
const MARK_VALUE: &[u8] = b"cairn bench 1";

/// Where keys of runs and of series begin, and what is behind them all.
const RUNS: &[u8] = b"run/";
const RUNS_END: &[u8] = b"run0";
const SERIES: &[u8] = b"series/";
const SERIES_END: &[u8] = b"series0";

/// What one run says of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// When its run started, RFC 3339.
    pub started: String,
    /// The median, or what the run has for one.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The machine, by [`comparable_machine`].
    pub machine: String,
    /// What was measured and with which settings, by [`settings_of`]; empty in points of before it
    /// was kept.
    #[serde(default)]
    pub settings: String,
    /// The commit that was measured, where the run knows.
    pub commit: String,
    /// Its unit.
    pub unit: String,
    /// True when more is better.
    pub higher_is_better: bool,
}

/// One figure over time, on one machine and with the same settings: others are other figures,
/// whatever their names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Suite, case, contender and metric, as dashboards have it. Several series may have it: see
    /// [`told_apart`].
    pub name: String,
    /// The machine, as its points have it.
    pub machine: String,
    /// The settings, as its points have them.
    pub settings: String,
    /// In the order of time.
    pub points: Vec<SeriesPoint>,
}

/// A run of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kept {
    /// Its suite.
    pub suite: String,
    /// When it started.
    pub started: String,
    /// Tells runs of the same second apart.
    pub number: u32,
    /// `quick`, `full` or `custom`.
    pub mode: String,
    /// The machine.
    pub machine: String,
    /// The commit.
    pub commit: String,
    /// How many figures it has.
    pub figures: usize,
}

/// What became of a run that was to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It was added.
    Added,
    /// It is there instead of what there was of it when it had been interrupted.
    Replaced,
    /// It is there already.
    Known,
}

/// A history that is open.
#[derive(Debug)]
pub struct History {
    db: Db,
}

fn fail(error: cairn_kv::Error) -> Error {
    Error::engine("the history", error)
}

impl History {
    /// Opens the history in `dir`; with `create` one is made where there is none.
    ///
    /// Errors: the store's own; there is none and it is not to be made.
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path, create: bool) -> Result<History> {
        let is_there = fs.exists(dir)?;
        if !create && !is_there {
            let dir = dir.display();
            return Err(Error::invalid(format!("{dir} is not there: `cairn bench record` begins a history")));
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
        // Nothing is written to a store before it is known to be a history.
        if is_there && !fs.read_dir(dir)?.is_empty() {
            check_history(&open(false)?, dir)?;
        }
        let db = open(true)?;
        if db.get(MARK).map_err(fail)?.is_none() {
            db.put(MARK, MARK_VALUE).map_err(fail)?;
        }
        Ok(History { db })
    }

    /// Adds a run. One that is there already, by suite, start and content, is left as it is; one
    /// that was interrupted when it was added gives way to itself with more: two points of one run
    /// would pass for two runs.
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

    /// All runs, those of a suite or all, in the order of suites and time. Reads each of them.
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

    /// The series whose names have all of `words` in them, each with its last points, `most` at
    /// most. Those of one name stand behind each other, in the order of their first points.
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

    /// The points of all series of a name.
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

    /// The run before `run` that it can be held against: of the same suite, mode and settings, from
    /// the same machine, with figures that both have. The last one in which nobody failed, where
    /// there is one: what failed has no figures to hold anything against.
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

/// Sees that a store is a history: it is marked as one, or has no key that a history has not, as
/// those of before there was a mark.
///
/// Errors: somebody else's store, which would get runs among its keys, or whose keys would be taken
/// for runs.
fn check_history(db: &Db, dir: &Path) -> Result<()> {
    if db.get(MARK).map_err(fail)?.is_some_and(|mark| mark[..] == *MARK_VALUE) {
        return Ok(());
    }
    let mut foreign = None;
    // Before, between and behind the two kinds of keys, so that none of a history's own is read.
    for range in
        [(&b""[..], RUNS), (RUNS_END, SERIES), (SERIES_END, &b"\xff\xff\xff\xff\xff\xff\xff\xff"[..])]
    {
        foreign = foreign.or(first(db, range)?);
    }
    for range in [(RUNS, RUNS_END), (SERIES, SERIES_END)] {
        // A key of a history ends in a start and a number, each behind a zero byte.
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

/// The first key from `from` on, before `to`.
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

/// The key of a figure's point.
fn series_key(run: &Run, measurement: &Measurement, number: u32) -> Vec<u8> {
    let mut key = series_prefix(&series_name(&run.suite, measurement));
    key.extend_from_slice(format!("{}\0{number:04}", run.started).as_bytes());
    key
}

/// True where `run` is what became of `known`, which had been interrupted: of the same start and
/// draws, with all of its figures.
fn goes_on(known: &Run, run: &Run) -> bool {
    known.stopped
        && known.seed == run.seed
        && known.mode == run.mode
        && comparable_machine(known) == comparable_machine(run)
        && compare::vanished(known, run).is_empty()
}

/// What a figure is called in the history and on dashboards.
pub fn series_name(suite: &str, measurement: &Measurement) -> String {
    format!("{}: {}", case_name(suite, &measurement.case, &measurement.contender), measurement.metric)
}

fn field<'a>(run: &'a Run, name: &str) -> &'a str {
    run.machine.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
}

/// The machine of a run, in a few words: times of two machines are not compared. Processor, cores
/// and file system.
pub fn machine_of(run: &Run) -> String {
    ["cpu", "cores", "file system"].map(|name| field(run, name)).join(", ")
}

/// What two runs must have been measured on alike to be held against each other: the machine, as
/// [`machine_of`] says it. Instructions come out the same on any processor of a kind, so for them
/// it is the architecture alone: a rented machine is another one every day.
pub fn comparable_machine(run: &Run) -> String {
    if run.suite != suite_counts::NAME {
        return machine_of(run);
    }
    field(run, "target").split('-').next().unwrap_or_default().to_owned()
}

/// What tells each of some series from others of its name, as [`History::series`] gives them: the
/// machine where it differs, and a number of the settings where they do on one machine. Empty where
/// the name is enough.
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

/// Stands for what a run measured and with which settings, by its mode, its own description and
/// [`Run::settings`]: figures of others have the same names and are not the same figures.
pub fn settings_of(run: &Run) -> String {
    let settings = run.settings.iter().map(|(name, value)| format!("\0{name}\0{value}"));
    let all: String = [run.mode.clone(), format!("\0{}", run.data)].into_iter().chain(settings).collect();
    format!("{:016x}", xxh3_64(all.as_bytes()))
}

#[cfg(test)]
mod tests;
