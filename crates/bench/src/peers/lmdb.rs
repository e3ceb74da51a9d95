//! LMDB through heed: a memory-mapped B+tree, the usual choice for an embedded, read-mostly store.
#![allow(unsafe_code)]

use std::path::Path;

use cairn_vfs::{Fs, OpenOptions, StdFs};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithoutTls};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, KeyBatch};
use crate::stores::lookups::Lookups;
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

/// Name of the store.
pub const NAME: &str = "lmdb";

/// Page size of the file, of which the map's size must be a multiple.
const PAGE_BYTES: u64 = 4096;

/// LMDB with settings for a file that is written once.
#[derive(Debug, Default)]
pub struct Lmdb;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

impl ConstantStore for Lmdb {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{} (heed 0.23)", version.major, version.minor, version.patch)
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("input", "sorted first, the sort included in the time"),
            ("put flags", "MDB_APPEND"),
            ("transactions", "one"),
            ("durability", "sync (one commit)"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        let settings = settings([
            ("flags", "MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD"),
            ("transactions", "one a thread, kept open"),
        ]);
        vec![Variant::new(NAME, settings)]
    }

    fn build(&self, dir: &Path, data: &Dataset, _: Compression) -> Result<Built> {
        // The map size reserves address space, not memory. Leaves of 4 KiB are half full at worst,
        // and large values take whole pages.
        let pages = data.total_bytes() / PAGE_BYTES * 4 + data.len() as u64 * 2 + 1024;
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size((pages * PAGE_BYTES) as usize);
        // SAFETY: the directory belongs to this run; nobody else opens, truncates or rewrites the
        // file while it is mapped.
        let env = unsafe { options.open(dir) }.map_err(fail)?;
        let txn = env.write_txn().map_err(fail)?;
        env.create_databases_and_commit(txn, |opener, txn| {
            let db: Database<'_, Bytes, Bytes> = opener.create_database(txn, None)?;
            for index in data.sorted() {
                let index = index as usize;
                db.put_with_flags(txn, PutFlags::APPEND, data.key(index), data.value(index))?;
            }
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(db))
        })
        .map_err(fail)?;
        // The order of the records is the index. The size of the inner pages alone would not be
        // comparable with other stores.
        Ok(Built { index_bytes: None })
    }

    fn open(&self, dir: &Path, _: usize) -> Result<Box<dyn ConstantReader>> {
        let len = StdFs::new().open(&dir.join("data.mdb"), OpenOptions::read())?.len()?;
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size((len.max(1).next_multiple_of(PAGE_BYTES)) as usize);
        // SAFETY: NO_LOCK requires that nobody writes during reads, and the builder is gone.
        unsafe {
            options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_LOCK | EnvFlags::NO_READ_AHEAD);
        }
        // SAFETY: as in `build`.
        let env = unsafe { options.open(dir) }.map_err(fail)?;
        Ok(Box::new(Reader { env }))
    }
}

struct Reader {
    env: Env<WithoutTls>,
}

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let txn = self.env.read_txn().map_err(fail)?;
        let opened = self.env.open_databases_and_commit(txn, |opener, txn| {
            let db: Option<Database<'_, Bytes, Bytes>> = opener.open_database(txn, None)?;
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(db))
        });
        let db =
            opened.map_err(fail)?.commit().flatten().ok_or_else(|| fail("the file holds no database"))?;
        Ok(Box::new(Transaction { db, txn: self.env.read_txn().map_err(fail)? }))
    }
}

struct Transaction<'env> {
    db: Database<'env, Bytes, Bytes>,
    txn: RoTxn<'env, WithoutTls>,
}

impl Lookups for Transaction<'_> {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            visit(self.db.get(&self.txn, key).map_err(fail)?);
        }
        Ok(())
    }
}
