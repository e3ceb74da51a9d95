//! Constant stores as the lab sees them: a store is built from a data set, opened, and read.
//!
//! A [`ConstantStore`] is one writer with its files. It offers one or more [`Variant`]s: ways to
//! open the same files, each measured as a contender of its own. The clock runs around whole chunks
//! of keys, and the loop over the keys is compiled inside each engine (see [`lookups`]), so the
//! calls through `dyn` cost nothing measurable.

mod cairn;
pub mod cairn_hash_kv;
pub mod cairn_kv;
#[cfg(all(feature = "sql", feature = "peers"))]
pub mod cairn_server;
pub mod cairn_sparkey;
#[cfg(feature = "sql")]
pub mod cairn_sql;
pub mod cairn_table;
pub mod lookups;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use cairn_vfs::{Clock, Fs, StdFs};
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::Result;
use crate::histogram::Latencies;
use crate::workload::{Dataset, KeyBatch};

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

/// Settings by name, for the report: every setting that is not the engine's default.
pub type Settings = BTreeMap<String, String>;

/// Builds [`Settings`] from pairs.
pub fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
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

/// Returns the files directly in `dir`, without lock files and logs, which hold no data.
pub fn data_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let fs = StdFs::new();
    let mut files = Vec::new();
    for path in fs.read_dir(dir)? {
        if !fs.metadata(&path)?.is_dir && !is_lock_file(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the total length of those files.
pub fn data_bytes(dir: &Path) -> Result<u64> {
    let fs = StdFs::new();
    data_files(dir)?.iter().map(|path| Ok(fs.metadata(path)?.len)).sum()
}

fn is_lock_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // LMDB's reader table; RocksDB's lock file and info log.
    matches!(name, "lock.mdb" | "LOCK") || name.starts_with("LOG")
}
