//! Constant stores as the lab sees them: a store is built from a data set, opened, and read.
//!
//! A [`ConstantStore`] is one writer with its files. It offers one or more [`Variant`]s: ways to
//! open the same files, each measured as a contender of its own. The clock runs around whole chunks
//! of keys, and the loop over the keys is compiled inside each engine (see [`super::lookups`]), so
//! the calls through `dyn` cost nothing measurable.

use std::fmt;
use std::path::Path;

use cairn_vfs::Clock;
use serde::{Deserialize, Serialize};

use crate::core::digest::Digest;
use crate::core::error::Result;
use crate::core::histogram::Latencies;
use crate::core::settings::Settings;
use crate::core::workload::{Dataset, KeyBatch};

/// Compression of a store's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// Snappy, in the blocks of the store's format.
    Snappy,
    /// zstd, in the blocks or records of the store's format.
    Zstd,
}

impl Compression {
    /// All of them, in the order of tables.
    pub const ALL: [Compression; 3] = [Compression::None, Compression::Snappy, Compression::Zstd];
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Snappy => "snappy",
            Compression::Zstd => "zstd",
        })
    }
}

/// One way to open the files of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Name of the contender, unique in a run: `cairn mmap`, `lmdb`.
    pub name: String,
    /// Settings with which it is opened.
    pub settings: Settings,
    /// True if its sessions answer batches by something better than a loop.
    pub batched: bool,
    /// True if opening reads the whole store, so that lookups are never cold.
    pub loads_at_open: bool,
    /// `Some(true)` for compressed stores only, `Some(false)` for uncompressed ones only, `None`
    /// for both.
    pub compressed: Option<bool>,
}

impl Variant {
    /// Creates a variant with the defaults: batches are loops, opening reads nothing in advance,
    /// and every compression suits it.
    pub fn new(name: impl Into<String>, settings: Settings) -> Variant {
        Variant { name: name.into(), settings, batched: false, loads_at_open: false, compressed: None }
    }

    /// Returns whether the variant is worth measuring with this compression.
    pub fn suits(&self, compression: Compression) -> bool {
        self.compressed.is_none_or(|compressed| compressed == (compression != Compression::None))
    }
}

/// The result of a build, besides the time that the runner took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Built {
    /// Bytes of the index as opposed to the records, if the format keeps the two apart: hash tables
    /// do, sorted files do not.
    pub index_bytes: Option<u64>,
}

/// The costs of a build.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BuildOutcome {
    /// Time from handing over the first record until all files are on stable storage.
    pub seconds: f64,
    /// Total length of all files.
    pub disk_bytes: u64,
    /// The part of these bytes that serves to find records, where the format separates it.
    pub index_bytes: Option<u64>,
    /// Rise of resident memory above the memory of the records. Only a process of its own can
    /// measure it.
    pub peak_memory_bytes: Option<u64>,
}

impl BuildOutcome {
    /// Combines the costs that the lab measured with those that the store reported.
    pub fn new(seconds: f64, disk_bytes: u64, built: Built, peak_memory_bytes: Option<u64>) -> Self {
        BuildOutcome { seconds, disk_bytes, index_bytes: built.index_bytes, peak_memory_bytes }
    }
}

/// A kind of constant store.
pub trait ConstantStore: fmt::Debug + Send + Sync {
    /// Returns the name, unique among stores. It is also the name of the directory and of the
    /// contender that builds.
    fn name(&self) -> &str;

    /// Returns the family with which charts group the store.
    fn family(&self) -> &str {
        self.name()
    }

    /// Returns the version of the library.
    fn version(&self) -> String;

    /// Returns true for Cairn's own stores.
    fn ours(&self) -> bool {
        false
    }

    /// Returns the settings of the build, including its durability.
    fn build_settings(&self) -> Settings;

    /// Returns the ways in which the files can be opened; at least one.
    fn variants(&self) -> Vec<Variant>;

    /// Returns whether the store can compress its values in this way. Most stores do not compress.
    fn supports(&self, compression: Compression) -> bool {
        compression == Compression::None
    }

    /// Writes all of `data` into the empty directory `dir`. When it returns, the files are on
    /// stable storage.
    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built>;

    /// Opens the files that [`ConstantStore::build`] left in `dir`, by the variant at index
    /// `variant` of [`Self::variants`].
    fn open(&self, dir: &Path, variant: usize) -> Result<Box<dyn ConstantReader>>;
}

/// An open store, shared by all threads of a measurement.
pub trait ConstantReader: Send + Sync {
    /// Creates the state of one thread: a connection, a transaction, buffers. Called before the
    /// clock starts.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
}

/// The access of one thread to a store. Each call returns after all of its keys are answered.
pub trait Session {
    /// Looks up each key on its own.
    fn run(&mut self, keys: KeyBatch<'_>) -> Result<Digest>;

    /// Looks keys up in batches of a size that the engine chooses, by its batch operation. A loop
    /// if it has none.
    fn run_batched(&mut self, keys: KeyBatch<'_>) -> Result<Digest>;

    /// Like [`Session::run`], but reads the clock around each lookup.
    fn run_timed(
        &mut self,
        keys: KeyBatch<'_>,
        clock: &dyn Clock,
        latencies: &mut Latencies,
    ) -> Result<Digest>;
}
