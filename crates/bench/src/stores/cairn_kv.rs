//! Cairn's own key-value store.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_kv::{Background, Compression, Db, Durability as KvDurability, KeyspaceOptions, WriteBatch};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "cairn";

/// Threads for flushes and compactions, as many as RocksDB gets here.
const THREADS: usize = 2;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// `cairn-kv`.
#[derive(Debug, Default)]
pub struct CairnKv;

impl KvStore for CairnKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "Cairn"
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn ours(&self) -> bool {
        true
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::equal("Durability::Memory: no log"),
            Durability::Buffered => Guarantee::equal("Durability::Buffered: log in the page cache"),
            Durability::Sync => {
                Guarantee::equal("Durability::Sync: fdatasync of the log, shared by waiting writers")
            }
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let KvSettings { cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } = settings_of_run;
        let mut all = settings([("compression", "none"), ("compaction", "leveled (default)")]);
        all.insert("background".to_owned(), format!("{THREADS} threads"));
        all.insert("cache_bytes".to_owned(), cache_bytes.to_string());
        all.insert("memtable_bytes".to_owned(), write_buffer_bytes.to_string());
        all.insert("block_bytes".to_owned(), block_bytes.to_string());
        all.insert("filter".to_owned(), format!("bloom, {filter_bits} bits a key on average"));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let KvSettings { durability, cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } =
            settings;
        let durability = match durability {
            Durability::Memory => "Memory",
            Durability::Buffered => "Buffered",
            Durability::Sync => "Sync",
        };
        format!(
            "let keyspace = cairn_kv::KeyspaceOptions {{\n    memtable_bytes: {write_buffer_bytes},\n    block_bytes: {block_bytes},\n    \
             filter_bits_per_key: {filter_bits:.1},\n    compression: vec![cairn_kv::Compression::None],\n    ..Default::default()\n}};\n\
             let db = cairn_kv::Db::builder(\"store\")\n    .cache_bytes({cache_bytes})\n    \
             .background(cairn_kv::Background::Threads({THREADS}))\n    .durability(cairn_kv::Durability::{durability})\n    \
             .default_keyspace(keyspace)\n    .open()?;\n"
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let keyspace = KeyspaceOptions {
            memtable_bytes: settings.write_buffer_bytes,
            block_bytes: settings.block_bytes as u32,
            filter_bits_per_key: settings.filter_bits,
            compression: vec![Compression::None],
            ..KeyspaceOptions::default()
        };
        let builder = Db::builder(dir)
            .cache_bytes(settings.cache_bytes)
            .background(Background::Threads(THREADS))
            .durability(match settings.durability {
                Durability::Memory => KvDurability::Memory,
                Durability::Buffered => KvDurability::Buffered,
                Durability::Sync => KvDurability::Sync,
            })
            .default_keyspace(keyspace);
        Ok(Box::new(Open(builder.open().map_err(fail)?)))
    }
}

struct Open(Db);

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session { db: &self.0, batch: WriteBatch::new() }))
    }

    fn flush(&self) -> Result<()> {
        self.0.flush().map_err(fail)
    }

    fn compact(&self) -> Result<()> {
        self.0.compact_range(..).map_err(fail)
    }

    fn wait_idle(&self) -> Result<()> {
        self.0.wait_idle().map_err(fail)
    }

    fn stats(&self) -> Result<BTreeMap<String, f64>> {
        let stats = self.0.stats();
        let stalls = stats.stalls;
        let waited = stalls.memtables + stalls.level_zero + stalls.pending_compaction;
        Ok([
            ("flushes".to_owned(), stats.flushes.0 as f64),
            ("flush_bytes".to_owned(), stats.flushes.1 as f64),
            ("compactions".to_owned(), stats.compactions.0 as f64),
            ("compaction_read_bytes".to_owned(), stats.compaction_bytes.0 as f64),
            ("compaction_write_bytes".to_owned(), stats.compaction_bytes.1 as f64),
            ("stall delays".to_owned(), stalls.delays as f64),
            ("stall stops".to_owned(), stalls.stops as f64),
            ("stall, s".to_owned(), waited.as_secs_f64()),
            ("block cache hits".to_owned(), stats.cache_hits_misses.0 as f64),
            ("block cache misses".to_owned(), stats.cache_hits_misses.1 as f64),
        ]
        .into())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Session<'a> {
    db: &'a Db,
    /// Kept between batches to reuse its memory.
    batch: WriteBatch,
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put(key, value).map_err(fail)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.db.delete(key).map_err(fail)
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        self.batch.clear();
        fill(&mut Filling(&mut self.batch))?;
        self.db.write(&self.batch).map_err(fail)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.db.get(key).map_err(fail)? {
            Some(value) => {
                visit(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn multi_get(&mut self, keys: &[&[u8]], visit: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<()> {
        for (place, value) in self.db.multi_get(keys).map_err(fail)?.iter().enumerate() {
            visit(place, value.as_deref());
        }
        Ok(())
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let mut cursor = self.db.cursor().map_err(fail)?;
        cursor.seek(from).map_err(fail)?;
        while cursor.valid() && visit(cursor.key(), cursor.value()) {
            cursor.next().map_err(fail)?;
        }
        Ok(())
    }
}

struct Filling<'a>(&'a mut WriteBatch);

impl KvBatch for Filling<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value).map_err(fail)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.delete(key).map_err(fail)
    }
}
