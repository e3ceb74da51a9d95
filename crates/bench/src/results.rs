//! What a run leaves behind: every sample, and everything needed to judge it. Stored as JSON, one
//! file a run.
//!
//! Written by the runner; read by `compare`, the HTML report, the README table and the dashboard
//! export.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Changes when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// The metric of a build's memory.
pub const PEAK_MEMORY: &str = "peak memory";

/// The metric of one line over time: samples are seconds of one turn.
pub const OVER_TIME: &str = "throughput over time";

/// The setting of contenders that may keep blocks in memory.
pub const BLOCK_CACHE: &str = "block cache";

/// How the names of settings begin that say what failed of a contender; a number follows.
pub const NOT_MEASURED: &str = "not measured";

/// One run of one suite on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema: u32,
    /// The suite, such as `hash`.
    pub suite: String,
    /// When it started, RFC 3339, UTC.
    pub started: String,
    /// `quick`, `full` or `custom`.
    pub mode: String,
    /// The seed of keys, values and orders.
    pub seed: u64,
    /// What was measured on, and what it was built with: field name to value, in reading order
    /// (`cpu`, `cores`, `memory`, `kernel`, `file system`, `governor`, `commit`, `rustc`,
    /// `profile`, …).
    pub machine: Vec<(String, String)>,
    /// Probes of memory and disk taken before the run.
    pub probes: Vec<Probe>,
    /// Every engine asked for, those skipped included.
    pub contenders: Vec<Contender>,
    /// The data set, in one sentence with its source and licence.
    pub data: String,
    /// Whatever else was chosen and decides the figures, by its name: what stands neither in the
    /// data set's sentence nor in the cases nor among the contenders, such as operations of a turn.
    /// Runs of before it was kept have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// All measurements, in the order taken.
    pub measurements: Vec<Measurement>,
    /// True when the run was ended before all was measured: by the user, or because its time was
    /// up.
    #[serde(default)]
    pub stopped: bool,
}

/// Settings by their names.
pub(crate) fn named<V: ToString, const N: usize>(settings: [(&str, V); N]) -> BTreeMap<String, String> {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}

/// One probe of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Such as `fdatasync p50` or `random read 4 KiB`.
    pub name: String,
    /// The reading.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

/// What a table has to say of a run that was ended early.
pub const ENDED_EARLY: &str = "The run was ended early: missing figures were not measured.\n";

impl Run {
    /// What is missing and why, a line each: who did not run, and that it was ended early. Who
    /// failed stands in [`Run::failures`].
    pub fn gaps(&self) -> String {
        let absent = self.contenders.iter().filter(|contender| contender.failures() == 0);
        let left_out = absent.filter_map(Contender::why_left_out);
        let lines: String = left_out.map(|line| line + "\n").collect();
        if self.stopped { lines + ENDED_EARLY } else { lines }
    }

    /// Everybody of whom something failed, Cairn's own first. A comparison without their figures
    /// says nothing of who is ahead there.
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
    /// Unique in the run, such as `cairn mmap` or `sparkey-java UNCOMPRESSED_MEMORYSEGMENT_J22`.
    pub name: String,
    /// The family it is drawn with, such as `cairn`, `cairn-sparkey`, `sparkey-java`, `lmdb`.
    pub family: String,
    /// Version of the library.
    pub version: String,
    /// True for Cairn's own engines.
    pub ours: bool,
    /// Every setting that is not the engine's default, and the durability of its build.
    pub settings: BTreeMap<String, String>,
    /// Why it did not run, when it did not.
    pub skipped: Option<String>,
}

impl Contender {
    /// One that cannot run. Its error may begin with its name, which is not said twice.
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

    /// In how many cases, or groups of cases, it failed. None for one that could not be asked at
    /// all.
    pub fn failures(&self) -> usize {
        self.settings.keys().filter(|name| name.starts_with(NOT_MEASURED)).count()
    }

    /// `cairn: failed in 2 cases: seq: no space left`, where it failed.
    pub fn failure(&self) -> Option<String> {
        let first = self.settings.get(&format!("{NOT_MEASURED} 1"))?;
        let cases = match self.failures() {
            1 => "1 case".to_owned(),
            count => format!("{count} cases"),
        };
        Some(format!("{}: failed in {cases}: {first}", self.name))
    }

    /// Puts among its settings what failed of it.
    pub(crate) fn set_failures(
        settings: &mut BTreeMap<String, String>,
        failures: impl IntoIterator<Item = String>,
    ) {
        settings.retain(|name, _| !name.starts_with(NOT_MEASURED));
        for (at, failure) in failures.into_iter().enumerate() {
            settings.insert(format!("{NOT_MEASURED} {}", at + 1), failure);
        }
    }

    /// What is said of one that did not run.
    pub fn why_left_out(&self) -> Option<String> {
        self.skipped.as_ref().map(|why| format!("{} is left out: {why}", self.name))
    }

    /// True when it keeps blocks in memory that it has decompressed: with one that does not, its
    /// lookups compare only in name once all data fits.
    pub fn keeps_blocks(&self) -> bool {
        self.settings.get(BLOCK_CACHE).is_some_and(|size| !size.starts_with("none"))
    }
}

/// What was done: one point of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Case {
    /// `get`, `get_many`, `build`, `open`, `cold get`, `size`, …
    pub operation: String,
    /// The data set: `synthetic` or the name of a real one.
    pub dataset: String,
    /// Entries in the store.
    pub entries: u64,
    /// Typical value length in bytes.
    pub value_bytes: u32,
    /// `none`, `snappy`, `zstd`.
    pub compression: String,
    /// `present` or `absent` keys, empty where it does not apply.
    pub keys: String,
    /// Key distribution: `uniform`, `zipfian 0.99`, …
    pub distribution: String,
    /// Threads.
    pub threads: u32,
}

impl Case {
    /// True for lookups of compressed values, where a cache of decompressed blocks spares the work
    /// that is measured.
    pub fn decompresses(&self) -> bool {
        self.compression != "none" && !self.keys.is_empty()
    }
}

/// One metric of one contender in one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The contender's name.
    pub contender: String,
    /// What was done.
    pub case: Case,
    /// `throughput`, `latency`, `bytes per entry`, `index bytes per entry`, `time`, `peak memory`,
    /// …
    pub metric: String,
    /// `ops/s`, `ns`, `B`, `s`.
    pub unit: String,
    /// True when more is better.
    pub higher_is_better: bool,
    /// One figure a repetition, each from its own interleaved round (and process, in a full run).
    pub samples: Vec<f64>,
    /// True when all samples come from one turn of one process instead, as with JMH's iterations in
    /// a quick run: sample `i` was not taken in the round of anybody else's sample `i`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_turn: bool,
    /// Median of the samples with its 95 % bootstrap interval.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Latency percentiles in ns over all repetitions (`p50`, `p90`, `p99`, `p99.9`, `max`), where
    /// taken per operation.
    pub percentiles: BTreeMap<String, f64>,
    /// True when the results read back were checked against the data and agreed.
    pub verified: bool,
}
