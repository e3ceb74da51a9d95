//! Ordered key-value stores as the lab sees them: opened in a directory, written and read through
//! sessions.
//!
//! A [`KvStore`] is a kind of store. [`KvStore::open`] returns a [`KvDb`], which all threads of a
//! measurement share. Each of them creates a [`KvSession`] before the clock starts. Sessions are
//! called through `dyn`. A call costs about two nanoseconds, the same for every store, and is part
//! of the load generation that the run measures.
//!
//! The durability of writes is chosen when a store is opened, not for each write. Several stores
//! support nothing else, and every loop of the suite uses one durability throughout.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guarantee::Guarantee;
use crate::core::error::Result;
use crate::core::settings::Settings;
use crate::core::workload::Durability;

/// The settings with which every store is opened, the same for all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KvSettings {
    /// The guarantee of a write when it returns.
    pub durability: Durability,
    /// Bytes of blocks or pages that may be kept in memory.
    pub cache_bytes: u64,
    /// Size of a write buffer (memtable) in bytes at which it is written out, for stores that have
    /// one.
    pub write_buffer_bytes: u64,
    /// Size of a data block before compression, where it is configurable.
    pub block_bytes: u64,
    /// Bits per key of a Bloom filter, for stores that have one.
    pub filter_bits: f64,
    /// Address space for stores that map their whole file; never less than their contents will
    /// need.
    pub map_bytes: u64,
}

impl Default for KvSettings {
    /// 256 MiB of cache, RocksDB's own defaults of 64 MiB and 4 KiB for buffers and blocks, 10 bits
    /// per key.
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

/// A kind of ordered key-value store.
pub trait KvStore: Debug + Send + Sync {
    /// Returns the name, unique among stores, in lower case, as used by `--dbs`.
    fn name(&self) -> &str;

    /// Returns the name in its makers' spelling.
    fn title(&self) -> &str;

    /// Returns the version of the library.
    fn version(&self) -> String;

    /// Returns true for Cairn's own store.
    fn ours(&self) -> bool {
        false
    }

    /// Returns the meaning of `durability` in this store.
    fn guarantee(&self, durability: Durability) -> Guarantee;

    /// Describes every setting with which the store is opened. The suite adds durability.
    fn settings(&self, settings: &KvSettings) -> Settings;

    /// Returns the code with which a program opens the store as [`KvStore::open`] does: Rust, C, an
    /// OPTIONS file, pragmas.
    fn code(&self, settings: &KvSettings) -> String;

    /// Opens the store in the existing directory `dir`, and creates it if there is none.
    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>>;
}

/// An open store, shared by all threads of a measurement.
pub trait KvDb: Send + Sync {
    /// Creates a session for one thread. Call it on the thread that uses the session, before the
    /// clock starts.
    fn session(&self) -> Result<Box<dyn KvSession + '_>>;

    /// Writes out the contents of write buffers. Does nothing for stores without them.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Brings all data into the form that is fastest to read, however long that takes.
    fn compact(&self) -> Result<()> {
        self.flush()
    }

    /// Returns once no background work is running.
    fn wait_idle(&self) -> Result<()> {
        Ok(())
    }

    /// Returns how long [`KvDb::wait_idle`] watches after the last work, for stores that do not
    /// report when they are done.
    fn watched(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the store's own counters, by the names that the store uses.
    fn stats(&self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// Closes the store and returns errors that a mere drop would swallow.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The operations of one thread. Every write has the durability [`KvSettings::durability`] when it
/// returns.
pub trait KvSession {
    /// Sets a key to a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes a key. Removing an absent key is not an error.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Applies the writes that `fill` adds to the batch atomically. If `fill` fails, the writes
    /// that it added before may or may not be applied.
    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()>;

    /// Passes the value of a key to `visit`; returns false if there is none. Sees every write that
    /// has returned before.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Passes the value of each key, with its index in `keys`, to `visit`, in any order. Looks keys
    /// up one at a time if the store has no batch operation.
    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        for (place, key) in keys.iter().enumerate() {
            if !self.get(key, &mut |value| visit(place, Some(value)))? {
                visit(place, None);
            }
        }
        Ok(())
    }

    /// Passes entries in ascending order to `visit`, from the first key not below `from`, until
    /// `visit` returns false or there are no more. Does not collect entries in memory.
    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()>;
}

/// A batch of writes that is being filled.
pub trait KvBatch {
    /// Adds a put.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Adds a delete.
    fn delete(&mut self, key: &[u8]) -> Result<()>;
}
