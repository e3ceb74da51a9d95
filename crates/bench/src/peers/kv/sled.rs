//! sled: a lock-free tree over a log, in pure Rust.

use std::path::Path;
use std::time::Duration;

use sled::{Batch, Config, Db, Mode};

use crate::core::error::{Error, Result};
use crate::core::quiet::{QUIET, wait_until_quiet};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "sled";

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// sled.
#[derive(Debug, Default)]
pub struct SledKv;

impl KvStore for SledKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        "0.34".to_owned()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::stronger("its log is written and synced each 500 ms (default)"),
            Durability::Buffered => Guarantee::weaker(
                "its log is written and synced each 500 ms (default): later writes are lost with the process",
            ),
            Durability::Sync => Guarantee::weaker(
                "flush() after each write: sync_file_range, which empties no device cache and writes no metadata",
            ),
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let mut all = settings([
            ("mode", "HighThroughput"),
            ("flush_every_ms", "500 (default)"),
            ("compression", "none (default)"),
        ]);
        all.insert("cache_capacity".to_owned(), format!("{} bytes", settings_of_run.cache_bytes));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let flush =
            if settings.durability == Durability::Sync { "// after each write: db.flush()?\n" } else { "" };
        let cache_bytes = settings.cache_bytes;
        format!(
            "let db = sled::Config::new().path(\"store\").cache_capacity({cache_bytes}).mode(sled::Mode::HighThroughput).open()?;\n{flush}"
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let config = Config::new().path(dir).cache_capacity(settings.cache_bytes).mode(Mode::HighThroughput);
        let db = config.open().map_err(fail)?;
        Ok(Box::new(Open { db, sync: settings.durability == Durability::Sync }))
    }
}

struct Open {
    db: Db,
    sync: bool,
}

impl Open {
    fn flush_log(&self) -> Result<()> {
        self.db.flush().map(|_| ()).map_err(fail)
    }
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session(self)))
    }

    fn flush(&self) -> Result<()> {
        self.flush_log()
    }

    fn wait_idle(&self) -> Result<()> {
        wait_until_quiet();
        Ok(())
    }

    fn watched(&self) -> Duration {
        QUIET
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush_log()
    }
}

struct Session<'a>(&'a Open);

impl Session<'_> {
    fn finish(&self) -> Result<()> {
        if self.0.sync { self.0.flush_log() } else { Ok(()) }
    }
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.db.insert(key, value).map_err(fail)?;
        self.finish()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.db.remove(key).map_err(fail)?;
        self.finish()
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        let mut batch = Filling(Batch::default());
        fill(&mut batch)?;
        self.0.db.apply_batch(batch.0).map_err(fail)?;
        self.finish()
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        match self.0.db.get(key).map_err(fail)? {
            Some(value) => {
                visit(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for entry in self.0.db.range(from..) {
            let (key, value) = entry.map_err(fail)?;
            if !visit(&key, &value) {
                break;
            }
        }
        Ok(())
    }
}

struct Filling(Batch);

impl KvBatch for Filling {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key);
        Ok(())
    }
}
