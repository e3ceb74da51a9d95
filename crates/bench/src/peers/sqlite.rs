//! SQLite through rusqlite: one `WITHOUT ROWID` table, whose B-tree stores the value next to the
//! primary key.

use std::path::{Path, PathBuf};

use cairn_vfs::{Fs, StdFs};
use rusqlite::{Connection, OpenFlags};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::core::workload::{Dataset, KeyBatch};
use crate::stores::lookups::Lookups;
use crate::stores::{Built, Compression, ConstantReader, ConstantStore, Session, Variant};

/// Name of the store.
pub const NAME: &str = "sqlite";
const FILE: &str = "data.sqlite";
const SELECT: &str = "SELECT v FROM records WHERE k = ?1";

/// SQLite on an immutable file.
#[derive(Debug, Default)]
pub struct Sqlite;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

impl ConstantStore for Sqlite {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    fn build_settings(&self) -> Settings {
        settings([
            ("input", "sorted first, the sort included in the time"),
            ("table", "k BLOB PRIMARY KEY, v BLOB, WITHOUT ROWID"),
            ("transactions", "one"),
            ("journal_mode", "OFF"),
            ("locking_mode", "EXCLUSIVE"),
            ("cache_size", "256 MiB"),
            ("durability", "sync (synchronous = FULL)"),
        ])
    }

    fn variants(&self) -> Vec<Variant> {
        let settings = settings([
            ("open", "read-only, immutable=1, no mutex"),
            ("mmap_size", "2 GiB"),
            ("connections", "one a thread, statement prepared once"),
        ]);
        vec![Variant::new(NAME, settings)]
    }

    fn build(&self, dir: &Path, data: &Dataset, _: Compression) -> Result<Built> {
        let mut connection = Connection::open(dir.join(FILE)).map_err(fail)?;
        connection
            .execute_batch(
                "PRAGMA page_size = 4096; PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL;
                 PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -262144;
                 CREATE TABLE records (k BLOB PRIMARY KEY NOT NULL, v BLOB NOT NULL) WITHOUT ROWID;",
            )
            .map_err(fail)?;
        let txn = connection.transaction().map_err(fail)?;
        {
            let mut insert = txn.prepare("INSERT INTO records VALUES (?1, ?2)").map_err(fail)?;
            for index in data.sorted() {
                let index = index as usize;
                insert.execute((data.key(index), data.value(index))).map_err(fail)?;
            }
        }
        txn.commit().map_err(fail)?;
        connection.close().map_err(|(_, error)| fail(error))?;
        StdFs::new().sync_dir(dir)?;
        // The order of the records is the index. The size of the inner pages alone would not be
        // comparable with other stores.
        Ok(Built { index_bytes: None })
    }

    fn open(&self, dir: &Path, _: usize) -> Result<Box<dyn ConstantReader>> {
        let reader = Reader { path: dir.join(FILE) };
        // A file that cannot be opened should fail here, not in the first session.
        reader.connect()?;
        Ok(Box::new(reader))
    }
}

struct Reader {
    path: PathBuf,
}

impl Reader {
    fn connect(&self) -> Result<Connection> {
        let path = self.path.to_str().ok_or_else(|| fail("the path is not UTF-8"))?;
        // These three characters have a special meaning in a URI.
        let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(format!("file:{path}?immutable=1"), flags).map_err(fail)?;
        connection.pragma_update(None, "mmap_size", 2_147_418_112_i64).map_err(fail)?;
        connection.prepare_cached(SELECT).map_err(fail)?;
        Ok(connection)
    }
}

impl ConstantReader for Reader {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Prepared(self.connect()?)))
    }
}

struct Prepared(Connection);

impl Lookups for Prepared {
    #[inline]
    fn each(&mut self, keys: KeyBatch<'_>, mut visit: impl FnMut(Option<&[u8]>)) -> Result<()> {
        let mut select = self.0.prepare_cached(SELECT).map_err(fail)?;
        for key in keys.iter() {
            let mut rows = select.query([key]).map_err(fail)?;
            match rows.next().map_err(fail)? {
                Some(row) => {
                    let value = row.get_ref(0).map_err(fail)?;
                    visit(Some(value.as_blob().map_err(fail)?));
                }
                None => visit(None),
            }
        }
        Ok(())
    }
}
