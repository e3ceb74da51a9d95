//! The configuration of a run: workload, options, machine and run settings, as JSON.

use serde::{Deserialize, Serialize};

use crate::error::{Result, expect};
use crate::hardware::Hardware;
use crate::keys::{Distribution, IDS_MAX};
use crate::options::{Engine, Options};
use crate::traffic::Traffic;

/// The contents of the store before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Preload {
    /// An empty store.
    None,
    /// Every key once, all in the last level, as after a full compaction.
    #[default]
    Settled,
    /// Every key once in random order, written through the tree in zero time.
    Random,
    /// Every key once in key order, written through the tree in zero time.
    Sequential,
}

/// Whether the run simulates time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Resources take time, jobs run in parallel, and writers wait.
    #[default]
    Timed,
    /// Flushes, then compacts until nothing is due, one job at a time: byte counts that do not
    /// depend on the machine.
    Paced,
}

/// Reads that run next to the writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reads {
    /// Lookups a second; 0 for none.
    pub gets_per_sec: f64,
    /// The share of lookups for absent keys.
    pub absent: f64,
    /// Range scans a second.
    pub scans_per_sec: f64,
    /// Entries of a scan.
    pub scan_entries: u64,
    /// The distribution of keys; that of the writes when absent.
    pub distribution: Option<Distribution>,
}

impl Default for Reads {
    fn default() -> Self {
        Reads { gets_per_sec: 0.0, absent: 0.0, scans_per_sec: 0.0, scan_entries: 100, distribution: None }
    }
}

/// The load on the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Number of distinct keys.
    pub keys: u64,
    /// Bytes of a key.
    pub key_bytes: u64,
    /// The number of different values of a key byte: 10 for decimal digits, 16 for hexadecimal
    /// ones, 256 for binary keys.
    pub key_radix: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// The distribution of keys over writes.
    pub distribution: Distribution,
    /// The share of writes that are deletes. A trace that lists deletes overrides it.
    pub deletes: f64,
    /// The rate of writes over time.
    pub traffic: Traffic,
    /// Reads that run next to the writes.
    pub reads: Reads,
}

impl Workload {
    /// Returns the share of writes that are deletes, from the trace if it lists them.
    pub fn delete_share(&self) -> f64 {
        match &self.distribution {
            Distribution::Trace { keys, deletes } if !deletes.is_empty() => {
                deletes.len() as f64 / keys.len().max(1) as f64
            }
            _ => self.deletes,
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            keys: 10_000_000,
            key_bytes: 16,
            key_radix: 10,
            value_bytes: 1000,
            distribution: Distribution::Uniform,
            deletes: 0.0,
            traffic: Traffic::default(),
            reads: Reads::default(),
        }
    }
}

/// A configuration. Every field has a default, so `{}` is valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// A name for people.
    pub name: String,
    /// Equal seeds give equal results.
    pub seed: u64,
    /// Whether the run simulates time.
    pub mode: Mode,
    /// Virtual seconds of a timed run.
    pub duration_secs: f64,
    /// The number of writes after which the run ends; 0 for no limit. A paced run needs one.
    pub writes: u64,
    /// Paced: writes between two flushes; 0 to flush full memtables.
    pub writes_per_flush: u64,
    /// The contents of the store before the run.
    pub preload: Preload,
    /// Real keys for each sampled one; 0 to choose it automatically.
    pub sample: u64,
    /// Number of points of the series.
    pub points: usize,
    /// Maximum number of bytes by which writers may be behind their traffic; beyond it, the client
    /// runs out of memory.
    pub backlog_bytes_max: u64,
    /// The workload.
    pub workload: Workload,
    /// Options of the store.
    pub options: Options,
    /// The machine.
    pub hardware: Hardware,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            name: String::new(),
            seed: 1,
            mode: Mode::Timed,
            duration_secs: 3600.0,
            writes: 0,
            writes_per_flush: 0,
            preload: Preload::Settled,
            sample: 0,
            points: 360,
            backlog_bytes_max: 4 << 30,
            workload: Workload::default(),
            options: Options::default(),
            hardware: Hardware::default(),
        }
    }
}

/// Maximum number of sampled writes between two flushes: they are drawn at once, 8 bytes each.
const SAMPLED_WRITES_MAX: u64 = 1 << 24;

/// Sampled entries in a full memtable when the run chooses its sample, unless so many keys force
/// fewer. From 2,000 entries down to 70, the mean write amplification of an hour changes by less
/// than another seed changes it, half a percent; below that, files become too coarse.
const IDS_PER_MEMTABLE: u64 = 88;

/// Below this many sampled writes for each flush, the run warns that its figures are coarse.
const COARSE: f64 = 40.0;

/// The total number of sampled keys when the run chooses its sample.
const IDS_WANTED: u64 = 2_000_000;

impl Config {
    /// Parses a configuration. `file` is for messages.
    ///
    /// Errors: [`crate::Error::Parse`] with line and setting; [`crate::Error::Option`] for a value
    /// out of range.
    pub fn from_json(text: &str, file: &str) -> Result<Config> {
        let config: Config = crate::json::parse(text, file)?;
        config.check()?;
        Ok(config)
    }

    /// Returns a copy without the writes of its trace, which is small enough for a web page, or for
    /// changing one setting through JSON. It cannot be run until [`Config::with_trace_of`] has put
    /// them back.
    pub fn without_trace(&self) -> Config {
        let mut light = self.clone();
        if let Distribution::Trace { keys, deletes } = &mut light.workload.distribution {
            (*keys, *deletes) = Default::default();
        }
        light
    }

    /// Takes over the writes of the trace of `other`, if its own were left out.
    pub fn with_trace_of(mut self, other: &Config) -> Config {
        let whole = &other.workload.distribution;
        let is_left_out =
            matches!(&self.workload.distribution, Distribution::Trace { keys, .. } if keys.is_empty());
        if is_left_out && matches!(whole, Distribution::Trace { .. }) {
            self.workload.distribution = whole.clone();
        }
        self
    }

    /// Returns the configuration as JSON, with all fields.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Checks the configuration. Errors: the first setting that is out of range or contradicts
    /// another.
    pub fn check(&self) -> Result<()> {
        let workload = &self.workload;
        expect((1..=1 << 40).contains(&workload.keys), "workload.keys", workload.keys, "1 to 2^40")?;
        let (key, value) = (workload.key_bytes, workload.value_bytes);
        expect((1..=1 << 16).contains(&key), "workload.key_bytes", key, "1 to 65536")?;
        expect(value <= 1 << 30, "workload.value_bytes", value, "at most 2^30")?;
        expect(
            (2..=256).contains(&workload.key_radix),
            "workload.key_radix",
            workload.key_radix,
            "2 to 256",
        )?;
        let share = |name: &str, value: f64| expect((0.0..=1.0).contains(&value), name, value, "0 to 1");
        share("workload.deletes", workload.deletes)?;
        share("workload.reads.absent", workload.reads.absent)?;
        let reads = &workload.reads;
        for (name, rate) in [("gets_per_sec", reads.gets_per_sec), ("scans_per_sec", reads.scans_per_sec)] {
            let name = format!("workload.reads.{name}");
            expect((0.0..=1e9).contains(&rate), &name, rate, "0 to 10^9")?;
        }
        let entries = reads.scan_entries;
        expect((1..=1 << 32).contains(&entries), "workload.reads.scan_entries", entries, "1 to 2^32")?;
        workload.distribution.check()?;
        if let Some(distribution) = &reads.distribution {
            distribution.check()?;
        }
        workload.traffic.check()?;
        self.options.check()?;
        self.hardware.check()?;
        self.check_run()
    }

    fn check_run(&self) -> Result<()> {
        let secs = self.duration_secs;
        expect(secs > 0.0 && secs <= 1e8, "duration_secs", secs, "above 0, at most 10^8")?;
        expect((2..=100_000).contains(&self.points), "points", self.points, "2 to 100000")?;
        if self.mode == Mode::Paced {
            expect(self.writes > 0, "writes", 0, "at least 1 in paced mode")?;
        }
        expect(self.writes <= 1 << 44, "writes", self.writes, "at most 2^44")?;
        let (bytes, fits) = (self.entry_bytes(), self.options.write_buffer_size);
        expect(bytes <= fits, "write_buffer_size", fits, &format!("at least an entry of {bytes} bytes"))?;
        let ids = self.workload.keys / self.sampling();
        let most =
            format!("at least {}: at most 2^24 keys can be sampled", self.workload.keys.div_ceil(IDS_MAX));
        expect(ids <= IDS_MAX, "sample", self.sample, &most)?;
        expect(self.sample <= self.workload.keys, "sample", self.sample, "at most workload.keys")?;
        self.check_sampled_writes()
    }

    /// Returns the number of writes between two flushes.
    fn writes_of_flush(&self) -> u64 {
        match self.mode {
            Mode::Paced => writes_per_flush(self),
            Mode::Timed => writes_at_once(self),
        }
    }

    /// Returns a warning if the run samples so few keys that its files are coarse, and `None`
    /// otherwise.
    pub fn coarse(&self) -> Option<String> {
        let sample = self.sampling();
        let sampled = self.writes_of_flush() as f64 / sample as f64;
        let least = self.workload.keys.div_ceil(IDS_MAX);
        (sampled < COARSE && sample > least).then(|| {
            format!(
                "the run samples one key in {sample}, {sampled:.0} writes per flush; figures are coarse, \
                 and a smaller sample ({least} at least) makes them finer"
            )
        })
    }

    /// Errors: more sampled writes between two flushes than can be drawn, or fewer than one.
    fn check_sampled_writes(&self) -> Result<()> {
        let (most, sample) = (self.writes_of_flush(), self.sampling());
        let fewer = format!("at most {most}, the writes of a flush: otherwise some flushes would be empty");
        expect(sample <= most, "sample", sample, &fewer)?;
        let (writes, sample) = (writes_at_once(self) as f64, self.sampling());
        let room = SAMPLED_WRITES_MAX as f64 * sample as f64;
        let buffer = self.options.write_buffer_size;
        let (name, value, most) = match self.mode {
            Mode::Paced if self.writes_per_flush > 0 => ("writes_per_flush", self.writes_per_flush, room),
            _ => ("write_buffer_size", buffer, buffer as f64 * room / writes.max(1.0)),
        };
        let most =
            format!("at most {} where one key in {sample} is sampled: set a larger sample", most as u64);
        expect(writes <= room, name, value, &most)
    }

    /// Returns the bytes of key and value of an entry that is not a tombstone.
    pub fn entry_bytes(&self) -> u64 {
        self.workload.key_bytes + self.workload.value_bytes
    }

    /// Returns the mean bytes of key and value of a write: deletes have no value.
    pub fn write_bytes(&self) -> f64 {
        let workload = &self.workload;
        workload.key_bytes as f64 + (1.0 - workload.delete_share()) * workload.value_bytes as f64
    }

    /// Returns the number of real keys for each sampled one.
    pub fn sampling(&self) -> u64 {
        if self.sample > 0 {
            return self.sample;
        }
        let entries = self.options.write_buffer_size / self.entry_bytes().max(1);
        let by_memtable = entries / IDS_PER_MEMTABLE;
        let by_keys = self.workload.keys.div_ceil(IDS_WANTED);
        by_memtable.max(by_keys).clamp(1, (self.workload.keys / 64).max(1))
    }
}

/// Overhead of an entry in a memtable: sequence number, two lengths, and a skip list node with 1.33
/// pointers on average, aligned.
const NODE_BYTES: f64 = 8.0 + 3.0 + 8.0 * 1.33 + 4.0;

/// An arena block has at most this many bytes, and at most this fraction of the write buffer.
const ARENA_BLOCK_BYTES: u64 = 1 << 20;
const ARENA_BLOCKS: u64 = 8;

/// The share of the last arena block that is still free when RocksDB calls a memtable full.
const ARENA_LEFT: f64 = 0.25;

/// Returns the user bytes that fit into a memtable.
pub(crate) fn memtable_user_bytes(config: &Config) -> f64 {
    let write = config.write_bytes();
    let bytes = config.options.write_buffer_size;
    let left = match config.options.engine {
        Engine::Rocksdb => ARENA_LEFT * ARENA_BLOCK_BYTES.min(bytes / ARENA_BLOCKS) as f64,
        Engine::CairnKv => 0.0,
    };
    (bytes as f64 - left) * write / (write + NODE_BYTES)
}

/// Returns the number of real writes between two flushes of a paced run or a preload.
pub fn writes_per_flush(config: &Config) -> u64 {
    match config.writes_per_flush {
        0 => memtable_writes(config),
        writes => writes,
    }
}

/// Returns the number of real writes that fill a memtable.
fn memtable_writes(config: &Config) -> u64 {
    ((memtable_user_bytes(config) / config.write_bytes()) as u64).max(1)
}

/// Returns the maximum number of real writes that a run draws at once.
pub(crate) fn writes_at_once(config: &Config) -> u64 {
    match config.mode {
        Mode::Paced => writes_per_flush(config).min(config.writes),
        Mode::Timed => memtable_writes(config),
    }
}

/// A named workload, for the web page and for `--workload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadProfile {
    /// A name for people.
    pub name: String,
    /// The use that it represents.
    pub description: String,
    /// The workload.
    pub workload: Workload,
}

impl WorkloadProfile {
    /// Parses a profile. Errors: [`crate::Error::Parse`].
    pub fn from_json(text: &str, file: &str) -> Result<WorkloadProfile> {
        crate::json::parse(text, file)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Goal: the number of writes that are drawn at once is bounded, so that no setting allocates
    /// terabytes.
    /// Method: too many of them by either setting, then the limit that the error names; as many
    /// writes that are sampled or cut off by the end of the run are accepted.
    #[test]
    fn sampled_writes_are_bounded() {
        let paced = |writes: u64, writes_per_flush: u64, sample: u64| Config {
            mode: Mode::Paced,
            writes,
            writes_per_flush,
            sample,
            workload: Workload { keys: 100_000, ..Workload::default() },
            ..Config::default()
        };
        let said = |config: &Config| config.check().unwrap_err().to_string();
        let error = said(&paced(1 << 40, 1 << 40, 1));
        assert!(error.starts_with("writes_per_flush is ") && error.contains("at most 16777216 "), "{error}");
        paced(1 << 40, 1 << 24, 1).check().unwrap();
        paced(1 << 40, 1 << 40, 1 << 16).check().unwrap();
        paced(1000, 1 << 40, 1).check().unwrap();
        let mut config =
            Config { workload: Workload { keys: 64, ..Workload::default() }, ..Config::default() };
        config.options.write_buffer_size = 1 << 50;
        let error = said(&config);
        let most = error.split("at most ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        assert!(error.starts_with("write_buffer_size is "), "{error}");
        config.options.write_buffer_size = most.parse().unwrap();
        config.check().unwrap();
        config.options.write_buffer_size += 1 << 20;
        assert!(said(&config).starts_with("write_buffer_size is "));
    }

    /// Goal: a run with few sampled writes for each memtable warns, and one whose flushes would be
    /// empty is refused. Method: a billion keys with small memtables, of which eight writes are
    /// sampled, then a sample of each size; the default run.
    #[test]
    fn coarse_runs_are_told() {
        assert_eq!(Config::default().coarse(), None);
        let mut config = Config::default();
        (config.workload.keys, config.options.write_buffer_size) = (1_000_000_000, 4 << 20);
        config.check().unwrap();
        let told = config.coarse().unwrap();
        assert!(told.starts_with("the run samples one key in 500, 8 writes per flush"), "{told}");
        assert!(told.contains("(60 at least)"), "{told}");
        config.sample = 60;
        assert_eq!(config.coarse(), None);
        config.sample = 5000;
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with("sample is 5000, expected at most 39"), "{error}");
        let paced = Config { mode: Mode::Paced, writes: 100, writes_per_flush: 4000, ..config };
        assert!(paced.check().is_err());
        Config { writes_per_flush: 5000, ..paced }.check().unwrap();
    }

    /// Goal: the writes of a trace can be removed from a configuration and put back. Method: one
    /// with a trace, through JSON; one without is unchanged.
    #[test]
    fn traces_are_left_out_and_put_back() {
        let mut config = Config::default();
        let plain = config.clone();
        assert_eq!(plain.without_trace().with_trace_of(&plain), plain);
        config.workload.distribution =
            Distribution::Trace { keys: Arc::new((0..10_000).collect()), deletes: Arc::new(vec![3]) };
        let light = config.without_trace();
        assert!(light.to_json().len() < 30_000 && light.check().is_err());
        let read: Config = serde_json::from_str(&light.to_json()).unwrap();
        assert_eq!(read.with_trace_of(&config).workload, config.workload);
        assert_eq!(plain.clone().with_trace_of(&config), plain);
        assert!(light.with_trace_of(&plain).check().is_err());
    }

    /// Goal: a tombstone takes the space of its key but of no value. Method: the capacity for puts,
    /// for deletes, and for half of each, against figures by hand.
    #[test]
    fn tombstones_take_no_value_bytes_in_a_memtable() {
        let mut config = Config::default();
        config.options.write_buffer_size = 64 << 20;
        config.options.engine = Engine::CairnKv;
        let mut writes = |deletes: f64| {
            config.workload.deletes = deletes;
            memtable_user_bytes(&config) / config.write_bytes()
        };
        for (deletes, bytes) in [(0.0, 1016.0), (1.0, 16.0), (0.5, 516.0)] {
            let expected = f64::from(64 << 20) / (bytes + NODE_BYTES);
            let found = writes(deletes);
            assert!((found / expected - 1.0).abs() < 1e-9, "{deletes}: {found} {expected}");
        }
    }
}
