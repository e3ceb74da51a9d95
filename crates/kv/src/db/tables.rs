//! Opened tables. A table is opened at its first read. Its reader stays in memory as long as a
//! version contains the table; its descriptor may be closed earlier if descriptors are short, see
//! [`crate::open_files`].

use std::path::PathBuf;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::cache::Cache;
use crate::iter::visible::Bounds;
use crate::open_files::OpenFiles;
use crate::options::{Options, ReadOptions};
use crate::table::{self, CursorOptions, Table, TableCursor};
use crate::version::{FileName, TableFile};

/// Opens tables, which all share one cache.
#[derive(Debug)]
pub(crate) struct Tables {
    pub files: Arc<OpenFiles>,
    pub path: Arc<PathBuf>,
    pub cache: Arc<Cache>,
    direct: bool,
}

impl Tables {
    pub(crate) fn new(files: Arc<OpenFiles>, path: Arc<PathBuf>, options: &Options) -> Self {
        Tables { files, path, cache: Arc::new(Cache::new(options.cache_bytes)), direct: options.direct_io }
    }

    /// Returns the reader of a table of a version.
    #[inline]
    pub(crate) fn open<'a>(&self, file: &'a TableFile) -> Result<&'a Arc<Table>> {
        match file.reader.get() {
            Some(table) => Ok(table),
            None => self.open_first(file),
        }
    }

    /// Returns a cursor over the part of a table within `bounds`.
    pub(crate) fn cursor(&self, table: &Arc<Table>, bounds: &Bounds, options: &ReadOptions) -> TableCursor {
        table.cursor(&cursor_options(bounds, options))
    }

    #[cold]
    fn open_first<'a>(&self, file: &'a TableFile) -> Result<&'a Arc<Table>> {
        let path = FileName::Table(file.number()).path(&self.path);
        let ingested = file.meta.ingested;
        let seqno = ingested.map_or(0, |ingested| ingested.seqno);
        let expected = table::Expected::of(&file.meta);
        let options =
            table::OpenOptions { pin: file.pin, direct: self.direct, foreign: false, seqno, expected };
        let number = ingested.map_or(file.number(), |ingested| ingested.number);
        let table = Table::open_shared(&self.files, &path, number, &self.cache, options)?;
        // Two threads may open the same table concurrently. The first reader stays.
        Ok(file.reader.get_or_init(|| table))
    }
}

/// Returns the options of a table cursor for a scan of `bounds`.
pub(crate) fn cursor_options(bounds: &Bounds, options: &ReadOptions) -> CursorOptions {
    CursorOptions {
        lower: bounds.lower.clone(),
        upper: bounds.upper.clone(),
        prefix: bounds.prefix().map(<[u8]>::to_vec),
        fill_cache: options.fill_cache,
        readahead_bytes: options.readahead_bytes as usize,
    }
}
