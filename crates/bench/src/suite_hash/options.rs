//! What the user may choose.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use serde::{Deserialize, Serialize};

use crate::engine::Compression;
use crate::error::{Error, Result};
use crate::peers::sparkey_java::{Api, Choice};
use crate::probe::ProbeEffort;
use crate::results;
use crate::runner::job::Effort;
use crate::runner::worker::Worker;
use crate::workload::{DEFAULT_SEED, Distribution, Lookup, Separator, check_column};

/// Which run this is; stored with the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Minutes; for a first look.
    Quick,
    /// Hours; for figures that are published.
    Full,
    /// One of them with other sizes.
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
    /// Sizes of the synthetic stores; none leaves the data file alone.
    pub entries: Vec<u64>,
    /// Typical value lengths in bytes: 6 and more.
    pub value_bytes: Vec<u32>,
    /// Compressions.
    pub compressions: Vec<Compression>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Present and absent keys.
    pub lookups: Vec<Lookup>,
}

impl Matrix {
    /// That of Sparkey's benchmark guide, with zstd and more sizes.
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
    /// What it is called in the results.
    pub name: String,
    /// The key's column, by name or number.
    pub column: String,
    /// What stands between columns.
    pub separator: Separator,
    /// Where it comes from and under which licence, for the report. May be empty.
    pub source: String,
}

impl DataFile {
    /// Named by its file, columns separated as its extension says.
    pub fn new(path: impl Into<PathBuf>, column: &str) -> Self {
        let path = path.into();
        let name =
            path.file_stem().map_or_else(|| "data".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let separator = Separator::of(&path);
        DataFile { path, name, column: column.to_owned(), separator, source: String::new() }
    }
}

/// How much JMH does for one reader in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct JavaEffort {
    /// Warm-up iterations, after a pass over all keys that checks them.
    pub warm_up: u32,
    /// Measured iterations of a process in a full run, where their median is one repetition. In a
    /// quick run there is one process with as many iterations as there are rounds, and each is a
    /// repetition.
    pub iterations: u32,
    /// Seconds of one iteration.
    pub seconds: f64,
    /// Which readers. The first way to take values out is measured with any number of threads, the
    /// others with one, to show which is faster.
    pub readers: Choice,
    /// Most keys for compressed stores, whose checking pass takes seconds otherwise.
    pub keys_max_compressed: usize,
}

/// Everything that decides what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Stored with the results.
    pub mode: Mode,
    /// Seed of orders and shuffles.
    pub seed: u64,
    /// Only cases and contenders whose name ([`case_name`](super::case_name)) contains this.
    pub filter: Option<String>,
    /// The run is for a dashboard with a history, which a filter would leave gaps in: the filter is
    /// ignored.
    pub for_dashboard: bool,
    /// Only groups of these names ([`Group::name`](super::Group::name)); none for all of them.
    pub groups: Vec<String>,
    /// Records of the quick run's synthetic stores.
    pub quick_entries: u64,
    /// The dimensions; `None` for the quick run's hand-picked cases.
    pub matrix: Option<Matrix>,
    /// Records of the user's own, measured as a data set beside the synthetic ones.
    pub data: Option<DataFile>,
    /// How the keys of lookups are drawn.
    pub distribution: Distribution,
    /// Repetitions of everything.
    pub rounds: u32,
    /// How long one of them is.
    pub effort: Effort,
    /// How much Java does.
    pub java: JavaEffort,
    /// Where stores are built: the disk that is measured. The directory `work` in the cache
    /// directory unless said otherwise; not the temporary one, which on some systems is memory.
    pub work_dir: PathBuf,
    /// How fresh processes are started. Without it builds run here, and their peak memory stays
    /// unknown.
    pub worker: Option<Worker>,
    /// Whether each repetition of lookups gets a process of its own too.
    pub fresh_reads: bool,
    /// What the machine is probed with; `None` for not at all.
    pub probes: Option<ProbeEffort>,
}

impl Options {
    /// Three to five minutes on two processors: 1 M entries, the main cases, lookups in this
    /// process.
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
                readers: Choice { apis: vec![Api::Entry, Api::Bytes], every_jdk: false },
                keys_max_compressed: 100_000,
            },
            work_dir: crate::cache_dir().join("work"),
            worker: None,
            fresh_reads: false,
            probes: Some(ProbeEffort::quick()),
        }
    }

    /// Hours: the whole matrix up to 10 M entries, every repetition in a process of its own.
    pub fn full() -> Self {
        Options {
            mode: Mode::Full,
            matrix: Some(Matrix::full()),
            effort: Effort { order_keys: 4 << 20, warm_up_seconds: 3.0, seconds: 0.5 },
            java: JavaEffort {
                warm_up: 3,
                iterations: 3,
                seconds: 0.5,
                readers: Choice { apis: vec![Api::Entry, Api::Bytes], every_jdk: true },
                keys_max_compressed: 400_000,
            },
            fresh_reads: true,
            ..Options::quick()
        }
    }

    /// Checks that the parts make sense by themselves and together, and that the data file can be
    /// opened. Errors: [`Error::Invalid`] naming the option; the file system's for the file.
    pub fn check(&self) -> Result<()> {
        if self.rounds == 0 {
            return Err(Error::invalid(
                "rounds 0: expected at least one, and five for a meaningful interval",
            ));
        }
        if self.fresh_reads && self.worker.is_none() {
            return Err(Error::invalid("fresh processes for lookups need a worker program"));
        }
        // Worker processes are told their jobs in JSON, which has no word for such a path.
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

    /// Checks that the data file begins as one with the column of the key. Errors: the file
    /// system's; [`Error::Input`] for its header line.
    pub fn check_data(&self) -> Result<()> {
        let check = |data: &DataFile| check_column(&StdFs::new(), &data.path, data.separator, &data.column);
        self.data.as_ref().map_or(Ok(()), check)
    }

    /// What decides figures and stands neither in [`Options::data_sentence`] nor in the cases.
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

    /// The filter, unless the run is for a dashboard.
    pub fn effective_filter(&self) -> Option<&str> {
        if self.for_dashboard { None } else { self.filter.as_deref() }
    }

    /// The data in a sentence, for the report.
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
