//! The options of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use serde::{Deserialize, Serialize};

use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::results;
use crate::core::worker::Worker;
use crate::core::workload::{DEFAULT_SEED, Distribution, Lookup, Separator, check_column};
use crate::stores::Compression;
use crate::stores::java::{Api, JavaChoice};
use crate::suites::hash::job::Effort;

/// The kind of a run, stored with the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Takes minutes, for a first look.
    Quick,
    /// Takes hours, for results to be published.
    Full,
    /// A quick or full run with other sizes.
    Custom,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Quick => "quick",
            Mode::Full => "full",
            Mode::Custom => "custom",
        })
    }
}

/// The dimensions of a full run: every combination is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Numbers of entries of the synthetic stores; empty to measure only the data file.
    pub entries: Vec<u64>,
    /// Typical value lengths in bytes, at least 6.
    pub value_bytes: Vec<u32>,
    /// Compressions.
    pub compressions: Vec<Compression>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Present and absent keys.
    pub lookups: Vec<Lookup>,
}

impl Matrix {
    /// Returns the matrix of Sparkey's benchmark guide, with zstd and more sizes.
    pub fn full() -> Self {
        Matrix {
            entries: vec![1_000_000, 100_000, 10_000_000],
            value_bytes: vec![6, 56],
            compressions: Compression::ALL.to_vec(),
            threads: vec![1, 2, 8, 16, 32],
            lookups: vec![Lookup::Present, Lookup::Absent],
        }
    }
}

/// The user's own records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// A CSV or TSV file with a header line.
    pub path: PathBuf,
    /// Name of the data set in the results.
    pub name: String,
    /// The key's column, by name or number.
    pub column: String,
    /// Separator between columns.
    pub separator: Separator,
    /// Source and licence of the data, for the report. May be empty.
    pub source: String,
}

impl DataFile {
    /// Creates a data set named after its file, with the separator that the file's extension
    /// implies.
    pub fn new(path: impl Into<PathBuf>, column: &str) -> Self {
        let path = path.into();
        let name =
            path.file_stem().map_or_else(|| "data".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let separator = Separator::of(&path);
        DataFile { path, name, column: column.to_owned(), separator, source: String::new() }
    }
}

/// How much JMH measures for one reader in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct JavaEffort {
    /// Number of warm-up iterations, after a pass that checks all keys.
    pub warm_up: u32,
    /// Number of measured iterations per process in a full run, where their median is one
    /// repetition. A quick run has one process with as many iterations as there are rounds, and
    /// each is a repetition.
    pub iterations: u32,
    /// Seconds of one iteration.
    pub seconds: f64,
    /// The readers. The first way to extract values is measured with all thread counts. The others
    /// are measured with one thread, to show which is fastest.
    pub readers: JavaChoice,
    /// Maximum number of keys for compressed stores, whose checking pass would otherwise take
    /// seconds.
    pub keys_max_compressed: usize,
}

/// The options that decide what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// The kind of the run, stored with the results.
    pub mode: Mode,
    /// Seed of orders and shuffles.
    pub seed: u64,
    /// Only cases and contenders whose name ([`case_name`](crate::core::recorder::case_name))
    /// contains this.
    pub filter: Option<String>,
    /// Whether the run is for a dashboard with a history. The filter is ignored then, because it
    /// would leave gaps in the history.
    pub for_dashboard: bool,
    /// Only groups with these names ([`Group::name`](super::Group::name)); empty for all groups.
    pub groups: Vec<String>,
    /// Number of records of the quick run's synthetic stores.
    pub quick_entries: u64,
    /// The dimensions; `None` for the quick run's hand-picked cases.
    pub matrix: Option<Matrix>,
    /// The user's own records, measured as a data set beside the synthetic ones.
    pub data: Option<DataFile>,
    /// How the keys of lookups are drawn.
    pub distribution: Distribution,
    /// Number of repetitions of all measurements.
    pub rounds: u32,
    /// The length of one repetition.
    pub effort: Effort,
    /// How much Java measures.
    pub java: JavaEffort,
    /// Directory in which stores are built. Its disk is the one that is measured. The default is
    /// the directory `work` in the cache directory. It is not the temporary directory, which is in
    /// memory on some systems.
    pub work_dir: PathBuf,
    /// How to start fresh processes. Without it, builds run in this process, and their peak memory
    /// stays unknown.
    pub worker: Option<Worker>,
    /// Whether each repetition of lookups also gets a process of its own.
    pub fresh_reads: bool,
    /// Effort of probing the machine; `None` to skip the probes.
    pub probes: Option<ProbeEffort>,
}

impl Options {
    /// Returns the options of a quick run: three to five minutes on two processors, 1 M entries,
    /// the main cases, lookups in this process.
    pub fn quick() -> Self {
        Options {
            mode: Mode::Quick,
            seed: DEFAULT_SEED,
            filter: None,
            for_dashboard: false,
            groups: Vec::new(),
            quick_entries: 1_000_000,
            matrix: None,
            data: None,
            distribution: Distribution::Uniform,
            rounds: 5,
            effort: Effort { order_keys: 1 << 20, warm_up_seconds: 1.0, seconds: 0.2 },
            java: JavaEffort {
                warm_up: 3,
                iterations: 5,
                seconds: 0.2,
                readers: JavaChoice { apis: vec![Api::Entry, Api::Bytes], every_jdk: false },
                keys_max_compressed: 100_000,
            },
            work_dir: crate::core::cache::cache_dir().join("work"),
            worker: None,
            fresh_reads: false,
            probes: Some(ProbeEffort::quick()),
        }
    }

    /// Returns the options of a full run: hours, the whole matrix up to 10 M entries, every
    /// repetition in a process of its own.
    pub fn full() -> Self {
        Options {
            mode: Mode::Full,
            matrix: Some(Matrix::full()),
            effort: Effort { order_keys: 4 << 20, warm_up_seconds: 3.0, seconds: 0.5 },
            java: JavaEffort {
                warm_up: 3,
                iterations: 3,
                seconds: 0.5,
                readers: JavaChoice { apis: vec![Api::Entry, Api::Bytes], every_jdk: true },
                keys_max_compressed: 400_000,
            },
            fresh_reads: true,
            ..Options::quick()
        }
    }

    /// Checks that the options are valid by themselves and together, and that the data file can be
    /// opened.
    ///
    /// Errors: [`Error::Invalid`] naming the option; the file system's for the file.
    pub fn check(&self) -> Result<()> {
        if self.rounds == 0 {
            return Err(Error::invalid(
                "rounds 0: expected at least one, and five for a meaningful interval",
            ));
        }
        if self.fresh_reads && self.worker.is_none() {
            return Err(Error::invalid("fresh processes for lookups need a worker program"));
        }
        // Worker processes receive their jobs as JSON, which cannot represent such a path.
        let data_path = self.data.as_ref().map(|data| &data.path);
        let mut paths = std::iter::once(&self.work_dir).chain(data_path);
        if self.worker.is_some()
            && let Some(path) = paths.find(|path| path.to_str().is_none())
        {
            return Err(Error::invalid(format!("{}: expected a path in UTF-8", path.display())));
        }
        let seconds = self.effort.seconds;
        if !(seconds > 0.0 && seconds <= 3600.0) {
            return Err(Error::invalid(format!(
                "{seconds} seconds a repetition: expected over 0 and at most 3600"
            )));
        }
        self.distribution.check()?;
        if let Some(data) = &self.data {
            StdFs::new().open(&data.path, OpenOptions::read())?;
        }
        let Some(matrix) = &self.matrix else { return Ok(()) };
        if matrix.entries.is_empty() && self.data.is_none() {
            return Err(Error::invalid("no entries and no data file: expected one of them"));
        }
        if let Some(entries) =
            matrix.entries.iter().find(|&&entries| entries == 0 || entries > u64::from(u32::MAX))
        {
            return Err(Error::invalid(format!("entries {entries}: expected 1 to {}", u32::MAX)));
        }
        if let Some(bytes) = matrix.value_bytes.iter().find(|&&bytes| bytes < 6) {
            return Err(Error::invalid(format!("value bytes {bytes}: expected 6 or more")));
        }
        if let Some(threads) = matrix.threads.iter().find(|&&threads| threads == 0 || threads > 1024) {
            return Err(Error::invalid(format!("threads {threads}: expected 1 to 1024")));
        }
        Ok(())
    }

    /// Checks that the data file has a header line with the key's column.
    ///
    /// Errors: the file system's; [`Error::Input`] for the header line.
    pub fn check_data(&self) -> Result<()> {
        let check = |data: &DataFile| check_column(&StdFs::new(), &data.path, data.separator, &data.column);
        self.data.as_ref().map_or(Ok(()), check)
    }

    /// Returns the settings that influence results and are part of neither
    /// [`Options::data_sentence`] nor the cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let JavaEffort { warm_up, iterations, seconds, .. } = self.java;
        results::named([
            ("keys of an order", self.effort.order_keys.to_string()),
            ("seconds of warm-up", self.effort.warm_up_seconds.to_string()),
            ("seconds of a repetition", self.effort.seconds.to_string()),
            ("Java", format!("{warm_up} + {iterations} iterations of {seconds} s")),
            ("a process for each repetition of lookups", self.fresh_reads.to_string()),
        ])
    }

    /// Returns the filter, unless the run is for a dashboard.
    pub fn effective_filter(&self) -> Option<&str> {
        if self.for_dashboard { None } else { self.filter.as_deref() }
    }

    /// Describes the data in a sentence, for the report.
    pub fn data_sentence(&self) -> String {
        let synthetic = "Synthetic records after Sparkey's benchmark guide: keys `key_<n>`, values the number in \
                         decimal, padded with `x` where they are longer.";
        let synthetic_used = self.matrix.as_ref().is_none_or(|matrix| !matrix.entries.is_empty());
        match &self.data {
            None => synthetic.to_owned(),
            Some(data) => {
                let DataFile { name, column, source, .. } = data;
                let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
                let real = format!("{name}{source}: key column `{column}`, values the whole lines.");
                if synthetic_used { format!("{real} {synthetic}") } else { real }
            }
        }
    }
}
