//! redb: a copy-on-write B-tree in pure Rust, with its own page cache over positional reads.

use std::path::Path;

use redb::{Database, Durability, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase, TableDefinition};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, KeyBatch};
use crate::stores::lookups::Lookups;
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

/// Name of the store.
pub const NAME: &str = "redb";
const FILE: &str = "data.redb";
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// Larger than every data set of the suite, so that a warm lookup never reads the file.
const CACHE_BYTES: usize = 4 << 30;

/// redb with a cache for all of the data.
#[derive(Debug, Default)]
pub struct Redb;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

impl ConstantStore for Redb {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        "4.4".to_owned()
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("input", "sorted first, the sort included in the time"),
            ("transactions", "one, then compact()"),
            ("cache", "4 GiB"),
            ("durability", "sync (Durability::Immediate)"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        let settings = settings([("cache", "4 GiB"), ("transactions", "one a thread, kept open")]);
        vec![Variant::new(NAME, settings)]
    }

    fn build(&self, dir: &Path, data: &Dataset, _: Compression) -> Result<Built> {
        let mut db = Database::builder().set_cache_size(CACHE_BYTES).create(dir.join(FILE)).map_err(fail)?;
        let mut txn = db.begin_write().map_err(fail)?;
        txn.set_durability(Durability::Immediate).map_err(fail)?;
        {
            let mut table = txn.open_table(TABLE).map_err(fail)?;
            for index in data.sorted() {
                let index = index as usize;
                table.insert(data.key(index), data.value(index)).map_err(fail)?;
            }
        }
        txn.commit().map_err(fail)?;
        db.compact().map_err(fail)?;
        // The order of the records is the index. The size of the inner pages alone would not be
        // comparable with other stores.
        Ok(Built { index_bytes: None })
    }

    fn open(&self, dir: &Path, _: usize) -> Result<Box<dyn ConstantReader>> {
        let path = dir.join(FILE);
        let db = Database::builder().set_cache_size(CACHE_BYTES).open_read_only(path).map_err(fail)?;
        Ok(Box::new(Reader(db)))
    }
}

struct Reader(ReadOnlyDatabase);

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let txn = self.0.begin_read().map_err(fail)?;
        Ok(Box::new(Table(txn.open_table(TABLE).map_err(fail)?)))
    }
}

struct Table(ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Lookups for Table {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        for key in keys.iter() {
            let value = self.0.get(key).map_err(fail)?;
            visit(value.as_ref().map(|value| value.value()));
        }
        Ok(())
    }
}
