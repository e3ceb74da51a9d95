//! redb: a copy-on-write B-tree in pure Rust with one writer at a time. Every write is a
//! transaction of its own unless batched.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{
    Database, Durability as Commit, ReadOnlyTable, ReadableDatabase, Table, TableDefinition, WriteTransaction,
};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "redb";

const FILE: &str = "data.redb";
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// Every commit of this number is durable, because redb does not reuse the pages freed by other
/// commits until then.
const COMMITS_PER_SYNC: u64 = 1000;

type View = ReadOnlyTable<&'static [u8], &'static [u8]>;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// redb.
#[derive(Debug, Default)]
pub struct RedbKv;

impl KvStore for RedbKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        "4.4".to_owned()
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => {
                Guarantee::equal("Durability::None, each 1000th commit Durability::Immediate")
            }
            Durability::Buffered => Guarantee::weaker(
                "Durability::None, each 1000th commit Durability::Immediate: later commits are lost with the process",
            ),
            Durability::Sync => Guarantee::equal("Durability::Immediate (default)"),
        }
    }

    fn settings(&self, settings_of_run: &KvSettings) -> Settings {
        let mut all = settings([(
            "transactions",
            "one for each write, one for each batch; readers renew theirs when something was written",
        )]);
        all.insert("cache".to_owned(), format!("{} bytes", settings_of_run.cache_bytes));
        all
    }

    fn code(&self, settings: &KvSettings) -> String {
        let commits = if settings.durability == Durability::Sync {
            "// each write transaction: set_durability(redb::Durability::Immediate)?, the default\n"
                .to_owned()
        } else {
            format!(
                "// each write transaction: set_durability(redb::Durability::None)?, each {COMMITS_PER_SYNC}th redb::Durability::Immediate:\n\
                 // pages of the others are not used again before that\n"
            )
        };
        let cache_bytes = settings.cache_bytes;
        format!(
            "let db = redb::Database::builder().set_cache_size({cache_bytes}).create(\"store.redb\")?;\n{commits}"
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let mut builder = Database::builder();
        let db =
            builder.set_cache_size(settings.cache_bytes as usize).create(dir.join(FILE)).map_err(fail)?;
        let open = Open { db, sync: settings.durability == Durability::Sync, writes: AtomicU64::new(1) };
        open.commit(Commit::Immediate, |_| Ok(()))?;
        Ok(Box::new(open))
    }
}

struct Open {
    db: Database,
    sync: bool,
    /// Number of commits.
    writes: AtomicU64,
}

impl Open {
    fn commit(
        &self,
        durability: Commit,
        work: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut txn: WriteTransaction = self.db.begin_write().map_err(fail)?;
        txn.set_durability(durability).map_err(fail)?;
        {
            let mut table = txn.open_table(TABLE).map_err(fail)?;
            work(&mut table)?;
        }
        txn.commit().map_err(fail)?;
        self.writes.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        Ok(Box::new(Session { open: self, view: None }))
    }

    fn flush(&self) -> Result<()> {
        self.commit(Commit::Immediate, |_| Ok(()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

struct Session<'a> {
    open: &'a Open,
    /// Table of the last read, with the number of commits that it sees.
    view: Option<(u64, View)>,
}

impl Session<'_> {
    /// Returns a table that sees every commit that has returned.
    fn view(&mut self) -> Result<&View> {
        let writes = self.open.writes.load(Ordering::Acquire);
        match &mut self.view {
            Some((seen, _)) if *seen == writes => {}
            stale => {
                // The stale transaction ends before the new one begins, because it keeps its pages
                // from being reused.
                *stale = None;
                let txn = self.open.db.begin_read().map_err(fail)?;
                *stale = Some((writes, txn.open_table(TABLE).map_err(fail)?));
            }
        }
        self.view.as_ref().map(|(_, view)| view).ok_or_else(|| fail("no view"))
    }

    fn write(
        &mut self,
        work: impl FnOnce(&mut Table<'_, &'static [u8], &'static [u8]>) -> Result<()>,
    ) -> Result<()> {
        self.view = None;
        let turn = self.open.writes.load(Ordering::Relaxed).is_multiple_of(COMMITS_PER_SYNC);
        self.open.commit(if self.open.sync || turn { Commit::Immediate } else { Commit::None }, work)
    }
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|table| Writing(table).put(key, value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(|table| Writing(table).delete(key))
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        self.write(|table| fill(&mut Writing(table)))
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.view()?.get(key).map_err(fail)?;
        match value {
            Some(value) => {
                visit(value.value());
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        for entry in self.view()?.range::<&[u8]>(from..).map_err(fail)? {
            let (key, value) = entry.map_err(fail)?;
            if !visit(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }
}

struct Writing<'t, 'txn>(&'t mut Table<'txn, &'static [u8], &'static [u8]>);

impl KvBatch for Writing<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value).map(|_| ()).map_err(fail)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key).map(|_| ()).map_err(fail)
    }
}
