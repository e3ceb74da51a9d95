//! Ordered key-value stores as the lab sees them: opened in a directory, written and read through
//! sessions.
//!
//! A [`KvStore`] is a kind of store. [`KvStore::open`] gives a [`KvDb`], which all threads of a
//! measurement share; each of them asks it for a [`KvSession`] before the clock starts. Sessions
//! are reached through `dyn`: a call costs about two nanoseconds, the same for everybody, and is
//! part of what the run measures as its own load generation.
//!
//! What a write promises is chosen when a store is opened, not at each write: several stores know
//! no other way, and every loop of the suite writes with one promise from its beginning to its end.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::Settings;
use crate::error::Result;
use crate::workload::Durability;

/// What every store is opened with: the same for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvSettings {
    /// What a write promises when it returns.
    pub durability: Durability,
    /// Bytes of blocks or pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Bytes of a write buffer (memtable) before it is written out, where there is one.
    pub write_buffer_bytes: u64,
    /// Size of a data block before compression, where it can be chosen.
    pub block_bytes: u64,
    /// Bits a key of a Bloom filter, where there is one.
    pub filter_bits: f64,
    /// Address space for stores that map their whole file; never less than what they will hold.
    pub map_bytes: u64,
}

impl Default for KvSettings {
    /// 256 MiB of cache, RocksDB's own defaults of 64 MiB and 4 KiB for buffers and blocks, 10 bits
    /// a key.
    fn default() -> Self {
        KvSettings {
            durability: Durability::Buffered,
            cache_bytes: 256 << 20,
            write_buffer_bytes: 64 << 20,
            block_bytes: 4096,
            filter_bits: 10.0,
            map_bytes: 64 << 30,
        }
    }
}

/// How a store keeps one of the three promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Exactly so.
    Equal,
    /// It can only promise more, which costs it something.
    Stronger,
    /// It cannot promise as much, which spares it something.
    Weaker,
}

/// What one of the lab's words for durability means in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantee {
    /// Against the word's own meaning.
    pub fit: Fit,
    /// The store's settings and calls that stand for it.
    pub means: &'static str,
}

impl Guarantee {
    /// Exactly what the word says.
    pub const fn equal(means: &'static str) -> Self {
        Guarantee { fit: Fit::Equal, means }
    }

    /// More than the word says.
    pub const fn stronger(means: &'static str) -> Self {
        Guarantee { fit: Fit::Stronger, means }
    }

    /// Less than the word says.
    pub const fn weaker(means: &'static str) -> Self {
        Guarantee { fit: Fit::Weaker, means }
    }

    /// In one line, for the settings of a contender.
    pub fn sentence(&self) -> String {
        match self.fit {
            Fit::Equal => self.means.to_owned(),
            Fit::Stronger => format!("stronger than asked: {}", self.means),
            Fit::Weaker => format!("WEAKER than asked: {}", self.means),
        }
    }
}

/// A kind of ordered key-value store.
pub trait KvStore: Debug + Send + Sync {
    /// Its name, unique among stores, in lower case: the word of `--dbs`.
    fn name(&self) -> &str;

    /// Its name as its makers write it.
    fn title(&self) -> &str;

    /// The version of the library.
    fn version(&self) -> String;

    /// True for Cairn's own.
    fn ours(&self) -> bool {
        false
    }

    /// What `durability` means in this store.
    fn guarantee(&self, durability: Durability) -> Guarantee;

    /// Every setting that it is opened with, in words; durability is added by the suite.
    fn settings(&self, settings: &KvSettings) -> Settings;

    /// What a program says to open the store as [`KvStore::open`] does: Rust, C, an OPTIONS file,
    /// pragmas.
    fn code(&self, settings: &KvSettings) -> String;

    /// Opens the store in the existing directory `dir`, and makes it where there is none.
    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>>;
}

/// An open store, shared by all threads of a measurement.
pub trait KvDb: Send + Sync {
    /// One thread's way in. Made on the thread that uses it, before the clock starts.
    fn session(&self) -> Result<Box<dyn KvSession + '_>>;

    /// Writes out what is only in write buffers. Nothing to do for stores without.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Brings all data into the form that the store reads best, however long that takes.
    fn compact(&self) -> Result<()> {
        self.flush()
    }

    /// Returns once no work goes on in the background.
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    /// How long [`KvDb::wait_idle`] watches after the last work, where a store does not say when it
    /// is done.
    fn watched(&self) -> Duration {
        Duration::ZERO
    }

    /// The store's own counters, by the names that it gives them.
    fn stats(&self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// Closes the store and says what went wrong at that, which a mere drop would swallow.
    fn close(self: Box<Self>) -> Result<()>;
}

/// One thread's operations. Every write has the promise of [`KvSettings::durability`] when it
/// returns.
pub trait KvSession {
    /// Sets a key to a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key. Removing one that is not there is no error.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Applies as one what `fill` adds to the batch. What `fill` adds before it fails may be
    /// applied or not.
    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()>;

    /// Shows the value of a key to `visit`; false when there is none. Sees every write that
    /// returned before.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Shows the value of each key, with its place among `keys`, in any order. One by one where the
    /// store has no batch operation.
    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            if !self.get(key, &mut |value| visit(place, Some(value)))? {
                visit(place, None);
            }
        }
        Ok(())
    }

    /// Shows entries in ascending order from the first key not below `from`, until `visit` returns
    /// false or there are no more. Nothing is gathered in memory.
    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;
}

/// A batch of writes that is being filled.
pub trait KvBatch {
    /// Adds a put.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a delete.
    fn delete(&mut self, key: &[u8]) -> Result<()>;
}
