//! The options of a run. They are stored with it, so that the run can be resumed without repeating
//! them.

use std::fmt;
use std::path::PathBuf;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::workload::DEFAULT_SEED;
use crate::suites::hash::DataFile;
use crate::suites::{hash, index, kv, pool, sql};

/// The extent of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// At most a quarter of an hour, for a first look.
    Quick,
    /// All measurements of all suites, which take hours.
    Full,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Quick => "quick",
            Mode::Full => "full",
        })
    }
}

/// One of the suites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuiteName {
    /// Constant stores.
    Hash,
    /// Key-value stores.
    Kv,
    /// Buffer pools.
    Pool,
    /// SQL engines.
    Sql,
    /// Indexes of PostgreSQL.
    Index,
    /// The simulator against real stores.
    Sim,
}

impl SuiteName {
    /// All suites, in the order in which they run.
    pub const ALL: [SuiteName; 6] =
        [SuiteName::Hash, SuiteName::Kv, SuiteName::Pool, SuiteName::Sql, SuiteName::Index, SuiteName::Sim];

    /// Returns the short name of the suite, which is also the name of its stored runs.
    pub fn word(self) -> &'static str {
        match self {
            SuiteName::Hash => hash::NAME,
            SuiteName::Kv => kv::NAME,
            SuiteName::Pool => pool::NAME,
            SuiteName::Sql => sql::NAME,
            SuiteName::Index => index::NAME,
            SuiteName::Sim => "sim",
        }
    }

    /// Returns the title of the suite, for headings.
    pub fn title(self) -> &'static str {
        match self {
            SuiteName::Hash => "Constant store",
            SuiteName::Kv => "Key-value store",
            SuiteName::Pool => "Buffer pool",
            SuiteName::Sql => "Relational engine",
            SuiteName::Index => "Compressed index",
            SuiteName::Sim => "Simulator",
        }
    }

    /// Returns the suite with this short name.
    ///
    /// Errors: [`Error::Invalid`] listing the known names.
    pub fn parse(word: &str) -> Result<SuiteName> {
        let known = SuiteName::ALL.into_iter().find(|suite| suite.word() == word);
        known.ok_or_else(|| {
            let words = SuiteName::ALL.map(SuiteName::word);
            Error::invalid(format!("suite {word:?}: expected {}", words.join(", ")))
        })
    }
}

/// The options that decide what a run measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The extent of the measurements.
    pub mode: Mode,
    /// The suites, in the order in which they run.
    pub suites: Vec<SuiteName>,
    /// Factor on the usual numbers of records, rows and operations.
    pub scale: f64,
    /// Number of rounds of all measurements; five if not given.
    pub rounds: Option<u32>,
    /// The user's own records for the constant store.
    pub data: Option<DataFile>,
    /// Seed of all data, random draws and shuffles.
    pub seed: u64,
    /// Directory in which stores are created. Its disk is the one that is measured.
    pub work_dir: PathBuf,
    /// Whether memory and disk are probed.
    pub probes: bool,
    /// Time for all parts together, in seconds; `None` for no limit.
    pub budget_seconds: Option<f64>,
}

/// Time of a quick run, without probes and report.
const QUICK_BUDGET_SECONDS: f64 = 14.0 * 60.0;

impl Options {
    /// Returns the options of a quick run, which takes at most a quarter of an hour.
    pub fn quick() -> Self {
        Options {
            mode: Mode::Quick,
            suites: SuiteName::ALL.to_vec(),
            scale: 1.0,
            rounds: None,
            data: None,
            seed: DEFAULT_SEED,
            work_dir: crate::core::cache::cache_dir().join("work"),
            probes: true,
            budget_seconds: Some(QUICK_BUDGET_SECONDS),
        }
    }

    /// Returns the options of a full run, without a time limit.
    pub fn full() -> Self {
        Options { mode: Mode::Full, budget_seconds: None, ..Options::quick() }
    }

    /// Returns the mode to store: `custom` if sizes differ from the mode's own.
    pub fn mode_word(&self) -> String {
        if self.scale == 1.0 && self.rounds.is_none() { self.mode.to_string() } else { "custom".to_owned() }
    }

    /// Checks that the options are valid. Errors: [`Error::Invalid`] naming the option.
    pub fn check(&self) -> Result<()> {
        if self.suites.is_empty() {
            return Err(Error::invalid("no suites: expected at least one"));
        }
        if !(1e-4..=100.0).contains(&self.scale) {
            return Err(Error::invalid(format!("scale {}: expected 0.0001 to 100", self.scale)));
        }
        if self.rounds.is_some_and(|rounds| rounds == 0 || rounds > 1000) {
            return Err(Error::invalid(format!("rounds {}: expected 1 to 1000", self.rounds.unwrap_or(0))));
        }
        if self.budget_seconds.is_some_and(|budget| !(budget >= 0.0 && budget.is_finite())) {
            return Err(Error::invalid("budget: expected a finite number of seconds, at least 0"));
        }
        if let Some(data) = &self.data {
            StdFs::new().open(&data.path, OpenOptions::read())?;
        }
        Ok(())
    }
}
