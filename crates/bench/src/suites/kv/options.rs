//! The options of a run. Defaults are those of DKV's driver, for the options that it has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::db_bench::Benchmark;
use super::keys::KeyMaker;
use super::values::Values;
use super::ycsb::Spec;
use crate::core::error::{Error, Result};
use crate::core::probe::ProbeEffort;
use crate::core::results;
use crate::core::worker::Worker;
use crate::core::workload::DEFAULT_SEED;
use crate::stores::cairn_kv;
use crate::stores::catalog::Registry;
use crate::stores::kv::{KvSettings, KvStore};

/// One of the suite's modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// put, get, update, delete in key order.
    Seq,
    /// The same with random keys.
    Rand,
    /// Like `seq`, written in batches.
    Batch,
    /// put and get by several threads.
    Mt,
    /// Like `seq`, with every write durable.
    SyncSeq,
    /// Like `rand`, with every write durable.
    SyncRand,
    /// Durable puts by one writer and by sixteen, beside the bare device.
    SyncWriters,
    /// One of YCSB's core workloads.
    Ycsb(char),
    /// db_bench's benchmarks.
    DbBench,
    /// Like `rand`, for values of 16 bytes to 64 KiB.
    ValueSizes,
    /// Reads of more data than the cache holds.
    LargerThanCache,
    /// Long overwriting, and its costs.
    OverwriteLong,
}

impl Mode {
    /// DKV's six modes, which are the default.
    pub const DKV: [Mode; 6] = [Mode::Seq, Mode::Rand, Mode::Batch, Mode::Mt, Mode::SyncSeq, Mode::SyncRand];

    /// Returns the modes for a word: six of them for `ycsb`, every one for `all`.
    ///
    /// Errors: [`Error::Invalid`] listing the known words.
    pub fn parse(word: &str) -> Result<Vec<Mode>> {
        let ycsb = || ('a'..='f').map(Mode::Ycsb);
        Ok(match word {
            "dkv" => Mode::DKV.to_vec(),
            "ycsb" => ycsb().collect(),
            "all" => {
                let rest = [
                    Mode::SyncWriters,
                    Mode::DbBench,
                    Mode::ValueSizes,
                    Mode::LargerThanCache,
                    Mode::OverwriteLong,
                ];
                Mode::DKV.into_iter().chain(ycsb()).chain(rest).collect()
            }
            word => {
                let known = Mode::parse("all")?.into_iter().find(|mode| mode.name() == word);
                vec![known.ok_or_else(|| {
                    let known: Vec<String> =
                        Mode::parse("all").unwrap_or_default().iter().map(Mode::name).collect();
                    Error::invalid(format!("mode {word:?}: expected {}, dkv, ycsb or all", known.join(", ")))
                })?]
            }
        })
    }

    /// Returns the word for the mode.
    pub fn name(&self) -> String {
        match self {
            Mode::Seq => "seq".to_owned(),
            Mode::Rand => "rand".to_owned(),
            Mode::Batch => "batch".to_owned(),
            Mode::Mt => "mt".to_owned(),
            Mode::SyncSeq => "sync-seq".to_owned(),
            Mode::SyncRand => "sync-rand".to_owned(),
            Mode::SyncWriters => "sync-writers".to_owned(),
            Mode::Ycsb(letter) => format!("ycsb-{letter}"),
            Mode::DbBench => super::db_bench::NAME.to_owned(),
            Mode::ValueSizes => "value-sizes".to_owned(),
            Mode::LargerThanCache => super::large::NAME.to_owned(),
            Mode::OverwriteLong => super::overwrite::NAME.to_owned(),
        }
    }
}

/// The options that decide what a run measures.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of operations in each phase of single-threaded modes, and of records in YCSB and
    /// db_bench.
    pub n: u64,
    /// Number of writes in a batch.
    pub batch: u64,
    /// Thread counts of `mt`, YCSB and the reading benchmarks of db_bench. If empty: 8, 1 and 1.
    pub threads: Vec<u32>,
    /// Number of operations of each thread in `mt`.
    pub ops_per_thread: u64,
    /// Maximum number of operations in a phase of the sync modes.
    pub sync_n: u64,
    /// Seed of all random draws and shuffles.
    pub seed: u64,
    /// The stores, by their names in the catalogue. The default is Cairn's own alone.
    pub dbs: Vec<String>,
    /// The modes, in the order in which they run.
    pub modes: Vec<Mode>,
    /// db_bench's benchmarks.
    pub benchmarks: Vec<Benchmark>,
    /// The user's own YCSB workloads, in addition to those of the modes.
    pub ycsb: Vec<Spec>,
    /// Length of a key in bytes.
    pub key_bytes: usize,
    /// Length of a value in bytes. If not given: 8 as in DKV's driver, 100 as in db_bench, 1024 in
    /// the long modes.
    pub value_bytes: Option<usize>,
    /// Settings with which every store is opened.
    pub settings: KvSettings,
    /// Bytes of keys and values in the store before the long overwrite.
    pub data_bytes: u64,
    /// Bytes of keys and values that the long overwrite writes.
    pub overwrite_bytes: u64,
    /// Maximum bytes of keys and values for each size of `value-sizes`.
    pub sweep_bytes: u64,
    /// Number of turns of every store in every mode.
    pub rounds: u32,
    /// Whether there is an additional turn for latencies.
    pub latencies: bool,
    /// Directory in which stores are created. Its disk is the one that is measured.
    pub work_dir: PathBuf,
    /// How to start fresh processes. Without it, all turns run in this process, and the bytes
    /// written and the memory used are those of all its work.
    pub worker: Option<Worker>,
    /// Effort of probing the machine; `None` to skip the probes.
    pub probes: Option<ProbeEffort>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            n: 1_000_000,
            batch: 50_000,
            threads: Vec::new(),
            ops_per_thread: 200_000,
            sync_n: 10_000,
            seed: DEFAULT_SEED,
            dbs: vec![cairn_kv::NAME.to_owned()],
            modes: Mode::DKV.to_vec(),
            benchmarks: Benchmark::ALL.to_vec(),
            ycsb: Vec::new(),
            key_bytes: 16,
            value_bytes: None,
            settings: KvSettings::default(),
            data_bytes: 1 << 30,
            overwrite_bytes: 5 << 30,
            sweep_bytes: 256 << 20,
            rounds: 5,
            latencies: true,
            work_dir: crate::core::cache::cache_dir().join("work"),
            worker: None,
            probes: Some(ProbeEffort::quick()),
        }
    }
}

impl Options {
    /// Returns the defaults, with all stores of the catalogue.
    pub fn with_all(stores: &Registry<dyn KvStore>) -> Options {
        let dbs = stores.names().into_iter().map(str::to_owned).collect();
        Options { dbs, ..Options::default() }
    }

    /// Checks that the options are valid by themselves and together. Errors: [`Error::Invalid`]
    /// naming the option.
    pub fn check(&self) -> Result<()> {
        let most = u64::from(u32::MAX);
        for (name, value) in [
            ("n", self.n),
            ("batch", self.batch),
            ("ops-per-thread", self.ops_per_thread),
            ("sync-n", self.sync_n),
        ] {
            if value == 0 || value > most {
                return Err(Error::invalid(format!("{name} {value}: expected 1 to {most}")));
            }
        }
        if let Some(threads) = self.threads.iter().find(|&&threads| threads == 0 || threads > 1024) {
            return Err(Error::invalid(format!("threads {threads}: expected 1 to 1024")));
        }
        if self.modes.is_empty() && self.ycsb.is_empty() {
            return Err(Error::invalid("no modes: expected at least one"));
        }
        if self.modes.contains(&Mode::DbBench) && self.benchmarks.is_empty() {
            return Err(Error::invalid("no benchmarks: expected at least one"));
        }
        self.check_stores()?;
        Values::new(self.value_bytes.unwrap_or(8))?;
        self.ycsb.iter().try_for_each(Spec::check)?;
        for group in super::plan::plan(self) {
            KeyMaker::new(self.key_bytes, group.numbers())?;
        }
        Ok(())
    }

    /// The part of [`Options::check`] that concerns stores, their turns, and their settings.
    pub(super) fn check_stores(&self) -> Result<()> {
        if self.rounds == 0 {
            return Err(Error::invalid(format!("rounds 0: expected 1 to {}", u32::MAX)));
        }
        if self.dbs.is_empty() {
            return Err(Error::invalid("no dbs: expected at least one"));
        }
        for (name, value) in [
            ("cache size", self.settings.cache_bytes),
            ("write buffer size", self.settings.write_buffer_bytes),
        ] {
            if !(1 << 20..=1 << 40).contains(&value) {
                return Err(Error::invalid(format!("{name} {value}: expected 1 MiB to 1 TiB")));
            }
        }
        Ok(())
    }

    /// Describes the settings in a sentence, for the report.
    pub fn data_sentence(&self) -> String {
        format!(
            "Keys of {} bytes, `key` and a number padded with zeros; values of random bytes that say which key and \
             which write they belong to. Batches are of {} writes. Outside of the sync modes {}.",
            self.key_bytes,
            self.batch,
            self.stores_sentence()
        )
    }

    /// Returns the settings that influence results and are part of neither
    /// [`Options::data_sentence`] nor the cases.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = results::named([
            ("operations", self.n),
            ("operations of a thread in mt", self.ops_per_thread),
            ("operations of the sync modes", self.sync_n),
            ("bytes of the long overwrite at first", self.data_bytes),
            ("bytes that it overwrites", self.overwrite_bytes),
            ("bytes of a size in value-sizes", self.sweep_bytes),
        ]);
        if self.modes.contains(&Mode::DbBench) {
            let names: Vec<&str> = self.benchmarks.iter().map(|benchmark| benchmark.name()).collect();
            settings.insert("benchmarks".to_owned(), names.join(", "));
        }
        let whole = |spec: &Spec| serde_json::to_string(spec).unwrap_or_default();
        settings.extend(self.ycsb.iter().map(|spec| (format!("workload {}", spec.name), whole(spec))));
        settings
    }

    /// Describes the settings with which every store is opened, without a full stop.
    pub(super) fn stores_sentence(&self) -> String {
        format!(
            "writes are {}; every store has {} MiB of cache and {} MiB of write buffer where it has such a thing",
            self.settings.durability,
            self.settings.cache_bytes >> 20,
            self.settings.write_buffer_bytes >> 20
        )
    }
}
