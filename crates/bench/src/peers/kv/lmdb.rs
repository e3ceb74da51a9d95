//! LMDB through heed: a mapped copy-on-write B+tree with one writer at a time. Every write is a
//! transaction of its own unless batched.
#![allow(unsafe_code)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::Durability;
use crate::stores::guarantee::Guarantee;
use crate::stores::kv::{KvBatch, KvDb, KvSession, KvSettings, KvStore};

/// Name of the store.
pub const NAME: &str = "lmdb";

/// More reader slots than a run has threads.
const READERS_MAX: u32 = 2048;

type Table<'env> = Database<'env, Bytes, Bytes>;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

/// LMDB.
#[derive(Debug, Default)]
pub struct LmdbKv;

impl KvStore for LmdbKv {
    fn name(&self) -> &str {
        NAME
    }

    fn title(&self) -> &str {
        "LMDB"
    }

    fn version(&self) -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{} (heed 0.23)", version.major, version.minor, version.patch)
    }

    fn guarantee(&self, durability: Durability) -> Guarantee {
        match durability {
            Durability::Memory => Guarantee::stronger("MDB_NOSYNC: each commit is handed to the kernel"),
            Durability::Buffered => Guarantee::weaker(
                "MDB_NOSYNC: survives the process; after a power loss the whole file may be damaged, not only its end",
            ),
            Durability::Sync => Guarantee::equal("each commit syncs the file (default)"),
        }
    }

    fn settings(&self, _: &KvSettings) -> Settings {
        settings([
            ("cache", "the kernel's, through a mapping: cannot be bounded"),
            (
                "transactions",
                "one for each write, one for each batch; readers renew theirs when something was written",
            ),
            ("flags", "MDB_NOTLS, MDB_NORDAHEAD; MDB_NOSYNC unless writes are sync"),
            ("map size", "address space for eight times the data at least"),
        ])
    }

    fn code(&self, settings: &KvSettings) -> String {
        let no_sync = if settings.durability == Durability::Sync { "" } else { " | MDB_NOSYNC" };
        format!(
            "mdb_env_set_mapsize(env, {}UL);\nmdb_env_set_maxreaders(env, {READERS_MAX});\n\
             mdb_env_open(env, \"store\", MDB_NOTLS | MDB_NORDAHEAD{no_sync}, 0644);\n",
            settings.map_bytes
        )
    }

    fn open(&self, dir: &Path, settings: &KvSettings) -> Result<Box<dyn KvDb>> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(settings.map_bytes as usize).max_readers(READERS_MAX);
        let mut flags = EnvFlags::NO_READ_AHEAD;
        if settings.durability != Durability::Sync {
            flags |= EnvFlags::NO_SYNC;
        }
        // SAFETY: NO_SYNC risks the file at a power loss, which the setting accepts; the directory
        // belongs to this turn, so that nobody else opens, truncates or rewrites the file while it
        // is mapped.
        let env = unsafe { options.flags(flags).open(dir) }.map_err(fail)?;
        let txn = env.write_txn().map_err(fail)?;
        env.create_databases_and_commit(txn, |opener, txn| {
            let table: Table<'_> = opener.create_database(txn, None)?;
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(table))
        })
        .map_err(fail)?;
        Ok(Box::new(Open { env, writes: AtomicU64::new(1) }))
    }
}

struct Open {
    env: Env<WithoutTls>,
    /// Number of commits, by which readers detect that their snapshot is stale.
    writes: AtomicU64,
}

impl KvDb for Open {
    fn session(&self) -> Result<Box<dyn KvSession + '_>> {
        let txn = self.env.read_txn().map_err(fail)?;
        let opened = self.env.open_databases_and_commit(txn, |opener, txn| {
            let table: Option<Table<'_>> = opener.open_database(txn, None)?;
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(table))
        });
        let table =
            opened.map_err(fail)?.commit().flatten().ok_or_else(|| fail("the file holds no database"))?;
        Ok(Box::new(Session { open: self, table, view: None }))
    }

    fn flush(&self) -> Result<()> {
        self.env.force_sync().map_err(fail)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

struct Session<'env> {
    open: &'env Open,
    table: Table<'env>,
    /// Transaction of the last read, with the number of commits that it sees.
    view: Option<(u64, RoTxn<'env, WithoutTls>)>,
}

impl<'env> Session<'env> {
    /// Returns a read transaction that sees every commit that has returned.
    fn view(&mut self) -> Result<&RoTxn<'env, WithoutTls>> {
        let writes = self.open.writes.load(Ordering::Acquire);
        match &mut self.view {
            Some((seen, _)) if *seen == writes => {}
            stale => {
                // The stale transaction ends before the new one begins, because it keeps its pages
                // from being reused.
                *stale = None;
                *stale = Some((writes, self.open.env.read_txn().map_err(fail)?));
            }
        }
        self.view.as_ref().map(|(_, view)| view).ok_or_else(|| fail("no view"))
    }

    fn write(&mut self, work: impl FnOnce(&Table<'env>, &mut RwTxn<'env>) -> Result<()>) -> Result<()> {
        self.view = None;
        let mut txn = self.open.env.write_txn().map_err(fail)?;
        work(&self.table, &mut txn)?;
        txn.commit().map_err(fail)?;
        self.open.writes.fetch_add(1, Ordering::Release);
        Ok(())
    }
}

impl KvSession for Session<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(|table, txn| table.put(txn, key, value).map_err(fail))
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.write(|table, txn| table.delete(txn, key).map(|_| ()).map_err(fail))
    }

    fn write_batch(&mut self, fill: &mut dyn FnMut(&mut dyn KvBatch) -> Result<()>) -> Result<()> {
        self.write(|table, txn| fill(&mut Writing { table, txn }))
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let table = self.table;
        let value = table.get(self.view()?, key).map_err(fail)?;
        value.map(visit).map_or(Ok(false), |()| Ok(true))
    }

    fn scan(&mut self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let table = self.table;
        // LMDB has no empty keys, not even as a bound.
        let from = if from.is_empty() { &[0][..] } else { from };
        let bounds = (std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        for entry in table.range(self.view()?, &bounds).map_err(fail)? {
            let (key, value) = entry.map_err(fail)?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

struct Writing<'t, 'env> {
    table: &'t Table<'env>,
    txn: &'t mut RwTxn<'env>,
}

impl KvBatch for Writing<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table.put(self.txn, key, value).map_err(fail)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.table.delete(self.txn, key).map(|_| ()).map_err(fail)
    }
}
