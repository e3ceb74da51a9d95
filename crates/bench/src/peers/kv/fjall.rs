//! fjall: an LSM tree in pure Rust.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use crate::core::error::{Error, Result};
use crate::core::quiet::{QUIET, wait_until_quiet};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "fjall";

const KEYSPACE: &str = "records";

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// fjall.
#[derive(Debug, Default)]
pub struct FjallKv;

impl KvStore for FjallKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        "3.1".to_owned()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::equal("manual_journal_persist = true"),
            Durability::Buffered => Guarantee::equal("journal written by each put (default)"),
            Durability::Sync => Guarantee::equal("persist(PersistMode::SyncData) after each write"),
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let KvSettings { cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } = settings_of_run;
        let mut all = settings([
            ("compression", "none"),
            ("levels", "leveled (default)"),
            ("max_journaling_size", "512 MiB (default)"),
            ("worker threads", "one for each processor, at most 4 (default)"),
            ("flush", "rotate_memtable_and_wait"),
        ]);
        all.insert("cache_size".to_owned(), format!("{cache_bytes} bytes"));
        all.insert("max_memtable_size".to_owned(), write_buffer_bytes.to_string());
        all.insert("block size".to_owned(), block_bytes.to_string());
        all.insert("filter".to_owned(), format!("bloom, {filter_bits} bits a key"));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let KvSettings { durability, cache_bytes, write_buffer_bytes, block_bytes, filter_bits, .. } =
            settings;
        let manual = *durability == Durability::Memory;
        let persist = match durability {
            Durability::Sync => "// after each write: db.persist(fjall::PersistMode::SyncData)?\n",
            _ => "",
        };
        format!(
            "use fjall::config::{{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry}};\n\
             let db = fjall::Database::builder(\"store\").cache_size({cache_bytes}).manual_journal_persist({manual}).open()?;\n\
             let options = || fjall::KeyspaceCreateOptions::default()\n    .max_memtable_size({write_buffer_bytes})\n    \
             .manual_journal_persist({manual})\n    .data_block_size_policy(BlockSizePolicy::all({block_bytes}))\n    \
             .data_block_compression_policy(CompressionPolicy::all(fjall::CompressionType::None))\n    \
             .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey({filter_bits:.1}))));\n\
             let entries = db.keyspace(\"{KEYSPACE}\", options)?;\n{persist}"
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        // Single writes use the setting of the keyspace, batches that of the database, so both are
        // set.
        let manual = settings.durability == Durability::Memory;
        let builder = Database::builder(dir).cache_size(settings.cache_bytes).manual_journal_persist(manual);
        let db = builder.open().map_err(fail)?;
        let bloom =
            FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(settings.filter_bits as f32));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.write_buffer_bytes)
                .manual_journal_persist(manual)
                .data_block_size_policy(BlockSizePolicy::all(settings.block_bytes as u32))
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
                .filter_policy(FilterPolicy::all(bloom))
        };
        let keyspace = db.keyspace(KEYSPACE, options).map_err(fail)?;
        Ok(Box::new(Open { db, keyspace, sync: settings.durability == Durability::Sync }))
    }
}

struct Open {
    db: Database,
    keyspace: Keyspace,
    sync: bool,
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session(self)))
    }

    fn flush(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(fail)
    }

    fn compact(&self) -> Result<()> {
        self.flush()?;
        self.keyspace.major_compact().map_err(fail)
    }

    fn wait_idle(&self) -> Result<()> {
        wait_until_quiet();
        Ok(())
    }

    fn watched(&self) -> Duration {
        QUIET
    }

    fn stats(&self) -> Result<BTreeMap<String, f64>> {
        let seconds = self.db.time_compacting().as_secs_f64();
        Ok([
            ("compactions_completed".to_owned(), self.db.compactions_completed() as f64),
            ("time_compacting, s".to_owned(), seconds),
            ("table_count".to_owned(), self.keyspace.table_count() as f64),
        ]
        .into())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(fail)
    }
}

struct Session<'a>(&'a Open);

impl Session<'_> {
    fn finish(&self) -> Result<()> {
        if self.0.sync { self.0.db.persist(PersistMode::SyncData).map_err(fail) } else { Ok(()) }
    }
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.keyspace.insert(key, value).map_err(fail)?;
        self.finish()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.keyspace.remove(key).map_err(fail)?;
        self.finish()
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        let mut batch = self.0.db.batch();
        if self.0.sync {
            batch = batch.durability(Some(PersistMode::SyncData));
        }
        fill(&mut Filling { keyspace: &self.0.keyspace, batch: &mut batch })?;
        batch.commit().map_err(fail)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.0.keyspace.get(key).map_err(fail)? {
            Some(value) => {
                visit(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for entry in self.0.keyspace.range(from..) {
            let (key, value) = entry.into_inner().map_err(fail)?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

struct Filling<'a> {
    keyspace: &'a Keyspace,
    batch: &'a mut OwnedWriteBatch,
}

impl KvBatch for Filling<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(self.keyspace, key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.batch.remove(self.keyspace, key);
        Ok(())
    }
}
