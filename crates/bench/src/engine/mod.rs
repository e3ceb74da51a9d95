//! Constant stores as the lab sees them: something that is built from a data set, opened, and
//! asked.
//!
//! One [`ConstantStore`] is one writer with its files; it offers one or more [`Variant`]s, ways to
//! open the same files that are measured as contenders of their own. The clock runs around whole
//! chunks of keys, so going through `dyn` costs nothing that could be seen: the loop over the keys
//! is compiled inside each engine (see [`lookups`]).

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

/// How a store keeps its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As they are.
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

/// Settings by name, for the report: every one that is not the engine's default.
pub type Settings = BTreeMap<String, String>;

/// Makes [`Settings`] from pairs.
pub fn settings<const N: usize>(pairs: [(&str, &str); N]) -> Settings {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// One way to open the files of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// The contender's name, unique in a run: `cairn mmap`, `lmdb`.
    pub name: String,
    /// How it is opened.
    pub settings: Settings,
    /// Whether its sessions answer batches by something better than a loop.
    pub batched: bool,
    /// Whether opening reads all of it, so that lookups are never cold.
    pub loads_at_open: bool,
    /// Some ways make sense for compressed stores only, or for uncompressed ones only.
    pub compressed: Option<bool>,
}

impl Variant {
    /// The usual: answers batches one by one, reads nothing in advance, makes sense for every
    /// compression.
    pub fn new(name: impl Into<String>, settings: Settings) -> Variant {
        Variant { name: name.into(), settings, batched: false, loads_at_open: false, compressed: None }
    }

    /// Whether it is worth measuring where values are kept so.
    pub fn suits(&self, compression: Compression) -> bool {
        self.compressed.is_none_or(|compressed| compressed == (compression != Compression::None))
    }
}

/// What a build left behind, besides the time that the runner took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Built {
    /// Bytes that serve finding records rather than holding them, where a format keeps the two
    /// apart: hash tables do, sorted files do not.
    pub index_bytes: Option<u64>,
}

/// A kind of constant store.
pub trait ConstantStore: fmt::Debug + Send + Sync {
    /// Its name, unique among stores; also that of its directory and of the contender that builds.
    fn name(&self) -> &str;

    /// The family that it is drawn with in charts.
    fn family(&self) -> &str {
        self.name()
    }

    /// The version of the library.
    fn version(&self) -> String;

    /// True for Cairn's own.
    fn ours(&self) -> bool {
        false
    }

    /// How it is built, the durability of the build among it.
    fn build_settings(&self) -> Settings;

    /// The ways in which its files can be opened; at least one.
    fn variants(&self) -> Vec<Variant>;

    /// Whether it can keep values so. Most keep them as they are.
    fn supports(&self, compression: Compression) -> bool {
        compression == Compression::None
    }

    /// Writes all of `data` into the empty directory `dir`. When it returns, the files are on
    /// stable storage.
    fn build(&self, dir: &Path, data: &Dataset, compression: Compression) -> Result<Built>;

    /// Opens what [`ConstantStore::build`] left in `dir`, in the way of the `variant`-th of
    /// [`Self::variants`].
    fn open(&self, dir: &Path, variant: usize) -> Result<Box<dyn ConstantReader>>;
}

/// An open store. Shared by all threads of a measurement.
pub trait ConstantReader: Send + Sync {
    /// What one thread needs: a connection, a transaction, buffers. Made before the clock starts.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
}

/// One thread's way into a store. Everything asked is answered in full before it returns.
pub trait Session {
    /// Looks each key up by itself.
    fn run(&mut self, keys: KeyBatch<'_>) -> Result<Digest>;

    /// Looks keys up in batches of the engine's own choice, by its batch operation. A loop where it
    /// has none.
    fn run_batched(&mut self, keys: KeyBatch<'_>) -> Result<Digest>;

    /// As [`Session::run`], reading the clock around each lookup.
    fn run_timed(
        &mut self,
        keys: KeyBatch<'_>,
        clock: &dyn Clock,
        latencies: &mut Latencies,
    ) -> Result<Digest>;
}

/// The files of a store directly in `dir`, without lock files, which hold no data.
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

/// The length of those files together.
pub fn data_bytes(dir: &Path) -> Result<u64> {
    let fs = StdFs::new();
    data_files(dir)?.iter().map(|path| Ok(fs.metadata(path)?.len)).sum()
}

fn is_lock_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // LMDB's reader table; RocksDB's lock and its log for people.
    matches!(name, "lock.mdb" | "LOCK") || name.starts_with("LOG")
}
