//! SQLite's page cache, accessed through rows that fill a page each, so that a row number selects a
//! leaf of the table.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

use cairn_vfs::sync::lock;
use cairn_vfs::{Fs, OpenOptions as FileOptions, StdFs};
use rusqlite::{Connection, OpenFlags, ffi};

use crate::core::error::{Error, Result};
use crate::core::settings::{Settings, settings};
use crate::stores::page_buffer::Buffer;
use crate::stores::page_file::{STAMP_AT, word};
use crate::stores::pages::{Access, PageStore, Pages, Session, Setup, each};

/// Name of the contender.
pub const NAME: &str = "sqlite";

/// Bytes of a page that the row leaves free for the headers of page and cell, so that it does not
/// spill into overflow pages.
const SPARED: usize = 96;

/// Minimum number of leaves below an inner page: the smallest page has 4 KiB, an entry about nine
/// bytes.
const FAN_OUT: u32 = 400;

/// SQLite as a page store.
#[derive(Debug, Clone, Copy)]
pub struct SqlitePages;

fn fail(error: impl std::fmt::Display) -> Error {
    Error::engine(NAME, error)
}

impl PageStore for SqlitePages {
    fn name(&self) -> &str {
        NAME
    }

    fn family(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        rusqlite::version().to_owned()
    }

    fn settings(&self, setup: &Setup<'_>) -> Settings {
        settings([
            ("what it is", "SELECT of a row that fills a page, by its integer key; one prepared statement"),
            ("page_size", &setup.file.page_size.to_string()),
            (
                "cache_size",
                "the pages in memory, and one for each inner page above those that a case asks for",
            ),
            ("mmap_size", "0"),
            ("open", "read only, immutable"),
            ("page cache of the kernel", "used"),
            (
                "cannot",
                "share its cache among threads: it takes part in the cases of one; change pages in place; bypass the kernel",
            ),
        ])
    }

    fn can(&self, access: Access, threads: u32) -> bool {
        threads == 1 && matches!(access, Access::Shared | Access::Scan)
    }

    fn open(&self, setup: &Setup<'_>) -> Result<Box<dyn Pages>> {
        let path = setup.file.path.with_extension("sqlite");
        if !StdFs::new().exists(&path)? {
            build(&path, setup)?;
        }
        let name = path.to_str().ok_or_else(|| fail("the path is not UTF-8"))?;
        let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(format!("file:{name}?immutable=1"), flags).map_err(fail)?;
        // Includes the root and the page with the schema.
        let inner = setup.reach.div_ceil(FAN_OUT) as usize + 2;
        connection.pragma_update(None, "cache_size", (setup.frames + inner) as i64).map_err(fail)?;
        connection.pragma_update(None, "mmap_size", 0).map_err(fail)?;
        Ok(Box::new(Open(Mutex::new(connection))))
    }
}

fn build(path: &std::path::Path, setup: &Setup<'_>) -> Result<()> {
    let page_size = setup.file.page_size;
    let mut connection = Connection::open(path).map_err(fail)?;
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {page_size}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             CREATE TABLE pages (id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
        ))
        .map_err(fail)?;
    let file = setup.file.open(FileOptions::read())?;
    let mut buffer = Buffer::new(page_size);
    let transaction = connection.transaction().map_err(fail)?;
    {
        let mut insert = transaction.prepare("INSERT INTO pages VALUES (?1, ?2)").map_err(fail)?;
        for page in 0..setup.file.pages {
            let bytes = buffer.bytes_mut(page_size);
            file.read_exact_at(bytes, u64::from(page) * page_size as u64)?;
            let row = bytes.get(STAMP_AT..STAMP_AT + page_size - SPARED).unwrap_or_default();
            insert.execute((page, row)).map_err(fail)?;
        }
    }
    transaction.commit().map_err(fail)?;
    connection.close().map_err(|(_, error)| fail(error))
}

struct Open(Mutex<Connection>);

impl Pages for Open {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader(lock(&self.0))))
    }

    fn misses(&self) -> Option<u64> {
        let connection = lock(&self.0);
        let (mut now, mut most): (c_int, c_int) = (0, 0);
        // SAFETY: an open connection that nobody else uses while its mutex is held, and two
        // out-pointers for the result.
        let code = unsafe {
            ffi::sqlite3_db_status(
                connection.handle(),
                ffi::SQLITE_DBSTATUS_CACHE_MISS,
                &mut now,
                &mut most,
                0,
            )
        };
        (code == ffi::SQLITE_OK).then(|| u64::try_from(now).ok()).flatten()
    }
}

struct Reader<'a>(MutexGuard<'a, Connection>);

impl Session for Reader<'_> {
    fn run(&mut self, _: Access, order: &[u32]) -> Result<u64> {
        let mut select = self.0.prepare_cached("SELECT data FROM pages WHERE id = ?1").map_err(fail)?;
        each(order, |page| {
            let mut rows = select.query([page]).map_err(fail)?;
            match rows.next().map_err(fail)? {
                Some(row) => Ok(word(row.get_ref(0).map_err(fail)?.as_blob().map_err(fail)?, 0)),
                None => Ok(0),
            }
        })
    }
}
