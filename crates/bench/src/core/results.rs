//! The results of a run: every sample, and everything needed to judge it. Stored as JSON, one file
//! per run.
//!
//! Written by the runner; read by `compare`, the HTML report, the README table and the dashboard
//! export.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Family of the contenders of Sparkey's Java library.
pub const SPARKEY_JAVA: &str = "sparkey-java";

/// Data set of the cases that replay a trace of pages.
pub const PAGE_TRACE: &str = "trace";

/// Version of the schema. It changes when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 1;

/// The metric of a build's memory.
pub const PEAK_MEMORY: &str = "peak memory";

/// The metric of a line over time: its samples are the seconds of one turn.
pub const OVER_TIME: &str = "throughput over time";

/// The setting of contenders that may cache blocks in memory.
pub const BLOCK_CACHE: &str = "block cache";

/// Prefix of the settings that describe failures of a contender; a number follows.
pub const NOT_MEASURED: &str = "not measured";

/// One run of one suite on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The suite, such as `hash`.
    pub suite: String,
    /// Start of the run, RFC 3339, UTC.
    pub started: String,
    /// `quick`, `full` or `custom`.
    pub mode: String,
    /// Seed of keys, values and orders.
    pub seed: u64,
    /// Machine and build: field name to value, in display order (`cpu`, `cores`, `memory`,
    /// `kernel`, `file system`, `governor`, `commit`, `rustc`, `profile`, …).
    pub machine: Vec<(String, String)>,
    /// Probes of memory and disk taken before the run.
    pub probes: Vec<Probe>,
    /// Every requested engine, including those that were skipped.
    pub contenders: Vec<Contender>,
    /// The data set, in one sentence with its source and licence.
    pub data: String,
    /// All other settings that influence the figures, by name: those that are neither in the
    /// sentence of the data set nor in the cases nor in the contenders, such as operations per
    /// turn. Empty in runs that were stored before this field existed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// All measurements, in the order taken.
    pub measurements: Vec<Measurement>,
    /// True if the run ended before all was measured, by the user or because its time was up.
    #[serde(default)]
    pub stopped: bool,
}

/// Builds settings from pairs.
pub(crate) fn named<V: ToString, const N: usize>(settings: [(&str, V); N]) -> BTreeMap<String, String> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// One probe of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Name, such as `fdatasync p50` or `random read 4 KiB`.
    pub name: String,
    /// The reading.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// The note in tables of a run that ended early.
pub const ENDED_EARLY: &str = "The run ended early: missing values were not measured.\n";

impl Run {
    /// Returns the contenders that have measurements.
    pub fn measured(&self) -> Vec<&Contender> {
        let has = |contender: &&Contender| self.measurements.iter().any(|m| m.contender == contender.name);
        self.contenders.iter().filter(has).collect()
    }

    /// Returns a contender's measurement in a case, if it was verified.
    pub fn verified(&self, contender: &str, case: &Case, metric: &str) -> Option<&Measurement> {
        let same = |m: &&Measurement| m.contender == contender && m.metric == metric && m.case == *case;
        self.measurements.iter().find(|m| m.verified && same(m))
    }

    /// Describes the gaps of the run, one line each: contenders that did not run, and an early end.
    /// Failed contenders are in [`Run::failures`].
    pub fn gaps(&self) -> String {
        let absent = self.contenders.iter().filter(|contender| contender.failures() == 0);
        let left_out = absent.filter_map(Contender::why_left_out);
        let lines: String = left_out.map(|line| line + "\n").collect();
        if self.stopped { lines + ENDED_EARLY } else { lines }
    }

    /// Returns the contenders with failures, Cairn's own first. A comparison without their figures
    /// does not show which contender is ahead.
    pub fn failures(&self) -> Vec<&Contender> {
        let mut failed: Vec<&Contender> =
            self.contenders.iter().filter(|contender| contender.failures() > 0).collect();
        failed.sort_by_key(|contender| !contender.ours);
        failed
    }
}

/// One engine with one group of settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// Name, unique in the run, such as `cairn mmap` or `sparkey-java
    /// UNCOMPRESSED_MEMORYSEGMENT_J22`.
    pub name: String,
    /// Family with which charts group it, such as `cairn`, `cairn-sparkey`, `sparkey-java`, `lmdb`.
    pub family: String,
    /// Version of the library.
    pub version: String,
    /// True for Cairn's own engines.
    pub ours: bool,
    /// Every setting that is not the engine's default, and the durability of its build.
    pub settings: BTreeMap<String, String>,
    /// The reason why it did not run; `None` if it ran.
    pub skipped: Option<String>,
}

impl Contender {
    /// Creates a contender that cannot run. A name at the beginning of the error is removed, so
    /// that it is not repeated.
    pub fn left_out(name: &str, family: &str, why: &impl std::fmt::Display) -> Contender {
        let why = why.to_string();
        let named = [name, family].iter().find_map(|it| why.strip_prefix(*it)?.strip_prefix(": "));
        Contender {
            name: name.to_owned(),
            family: family.to_owned(),
            version: String::new(),
            ours: false,
            settings: BTreeMap::new(),
            skipped: Some(named.unwrap_or(&why).to_owned()),
        }
    }

    /// Returns the number of cases, or groups of cases, in which it failed. 0 for a contender that
    /// did not run at all.
    pub fn failures(&self) -> usize {
        self.settings.keys().filter(|name| name.starts_with(NOT_MEASURED)).count()
    }

    /// Describes its failures, as in `cairn: failed in 2 cases: seq: no space left`. `None` without
    /// failures.
    pub fn failure(&self) -> Option<String> {
        let first = self.settings.get(&format!("{NOT_MEASURED} 1"))?;
        let cases = match self.failures() {
            1 => "1 case".to_owned(),
            count => format!("{count} cases"),
        };
        Some(format!("{}: failed in {cases}: {first}", self.name))
    }

    /// Stores failures among its settings.
    pub(crate) fn set_failures(
        settings: &mut BTreeMap<String, String>,
        failures: impl IntoIterator<Item = String>,
    ) {
        settings.retain(|name, _| !name.starts_with(NOT_MEASURED));
        for (at, failure) in failures.into_iter().enumerate() {
            settings.insert(format!("{NOT_MEASURED} {}", at + 1), failure);
        }
    }

    /// Describes why it did not run; `None` if it ran.
    pub fn why_left_out(&self) -> Option<String> {
        self.skipped.as_ref().map(|why| format!("{} is left out: {why}", self.name))
    }

    /// Returns true if it caches decompressed blocks. Once all data fits in that cache, its lookups
    /// are not really comparable with those of a contender without one.
    pub fn keeps_blocks(&self) -> bool {
        self.settings.get(BLOCK_CACHE).is_some_and(|size| !size.starts_with("none"))
    }
}

/// A case: one point of the matrix of measurements.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// `get`, `get_many`, `build`, `open`, `cold get`, `size`, …
    pub operation: String,
    /// The data set: `synthetic` or the name of a real one.
    pub dataset: String,
    /// Entries in the store.
    pub entries: u64,
    /// Typical length of a value in bytes.
    pub value_bytes: u32,
    /// `none`, `snappy`, `zstd`.
    pub compression: String,
    /// `present` or `absent` keys; empty if it does not apply.
    pub keys: String,
    /// Key distribution: `uniform`, `zipfian 0.99`, …
    pub distribution: String,
    /// Number of threads.
    pub threads: u32,
}

impl Case {
    /// Creates a case of uncompressed data without lookups.
    pub fn new(operation: impl Into<String>, dataset: impl Into<String>, entries: u64) -> Case {
        Case {
            operation: operation.into(),
            dataset: dataset.into(),
            entries,
            value_bytes: 0,
            compression: "none".to_owned(),
            keys: String::new(),
            distribution: String::new(),
            threads: 0,
        }
    }

    /// Returns the same case of lookups by this many threads, with their keys and distribution.
    #[must_use]
    pub fn lookups(self, keys: impl Into<String>, distribution: impl Into<String>, threads: u32) -> Case {
        Case { keys: keys.into(), distribution: distribution.into(), threads, ..self }
    }

    /// Returns true for lookups of compressed values, where a cache of decompressed blocks avoids
    /// the work that is measured.
    pub fn decompresses(&self) -> bool {
        self.compression != "none" && !self.keys.is_empty()
    }
}

/// One metric of one contender in one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the contender.
    pub contender: String,
    /// The measured case.
    pub case: Case,
    /// `throughput`, `latency`, `bytes per entry`, `index bytes per entry`, `time`, `peak memory`,
    /// …
    pub metric: String,
    /// `ops/s`, `ns`, `B`, `s`.
    pub unit: String,
    /// True if more is better.
    pub higher_is_better: bool,
    /// One figure per repetition, each from its own interleaved round (and process, in a full run).
    pub samples: Vec<f64>,
    /// True if all samples come from one turn of one process instead, as with JMH's iterations in a
    /// quick run. Sample `i` is then not from the same round as sample `i` of other contenders.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_turn: bool,
    /// Median of the samples.
    pub median: f64,
    /// Lower end of its 95 % bootstrap interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Latency percentiles in ns over all repetitions (`p50`, `p90`, `p99`, `p99.9`, `max`), if
    /// operations were timed individually.
    pub percentiles: BTreeMap<String, f64>,
    /// True if the results were verified against the data and agreed.
    pub verified: bool,
}

impl Measurement {
    /// Returns true for a value that is counted, not timed, and was the same every time: one sample
    /// is then as good as many. The size of a tree's files is counted too, but depends on the
    /// timing of background work, so its samples may differ.
    pub fn is_exact(&self) -> bool {
        let dataset = self.case.dataset.as_str();
        let is_size = self.metric.contains("bytes per entry") && !dataset.starts_with("phase ");
        (is_size || dataset == PAGE_TRACE) && self.samples.windows(2).all(|pair| pair.first() == pair.last())
    }
}
