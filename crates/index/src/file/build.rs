//! Builds an index file.

use std::path::Path;
use std::sync::Arc;

use cairn_codec::checksum::{xxh3_64, xxh3_64_seeded};
use cairn_vfs::{AppendWriter, AtomicFile, Bug, Fs, ensure};

use super::sort::{Sorter, put_cell};
use super::{Cell, FILE_VERSION, MAGIC, Row, SUM_BYTES};
use crate::error::{Error, Result};
use crate::{Damage, Kind, Leaf, MAX_COLUMNS, MAX_ROWS, Packer, Value};

/// Offset of the numbers in the header.
const WORDS_AT: usize = 96;
const _: () = assert!(18 + MAX_COLUMNS <= WORDS_AT, "a byte for each column");
const _: () = assert!(WORDS_AT + 5 * 8 <= 512 - SUM_BYTES, "the header fits the smallest page");

/// How to build an index.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The type of each column, keys first.
    pub columns: Vec<Kind>,
    /// Number of key columns, which define the order of the index. At least one.
    pub keys: usize,
    /// Page size in bytes, a power of two from 512 to 32768. Default: 8192, the page size of
    /// PostgreSQL, and no more than a disk reads at once anyway.
    pub page_bytes: usize,
    /// Maximum number of rows in a page, up to 65,535, the default.
    pub page_rows: usize,
    /// Memory for sorting, in bytes. Rows beyond it wait in a temporary file beside the index.
    /// Default: 64 MiB.
    pub memory_bytes: usize,
}

impl BuildOptions {
    /// Creates the default options for these columns, the first `keys` of which are keys.
    pub fn new(columns: Vec<Kind>, keys: usize) -> Self {
        BuildOptions { columns, keys, page_bytes: 8192, page_rows: MAX_ROWS, memory_bytes: 64 << 20 }
    }

    fn check(&self) -> Result<()> {
        let columns = self.columns.len();
        if columns == 0 || columns > MAX_COLUMNS || self.keys == 0 || self.keys > columns {
            return Err(Error::invalid(format!(
                "{columns} columns and {} keys: 1 to {MAX_COLUMNS} columns, and at least one of them a key",
                self.keys
            )));
        }
        if !self.page_bytes.is_power_of_two() || !(512..=32_768).contains(&self.page_bytes) {
            return Err(Error::invalid(format!(
                "a page of {} bytes: a power of two from 512 to 32768",
                self.page_bytes
            )));
        }
        Ok(())
    }
}

/// Takes rows in any order and writes an index of them.
///
/// The new index appears at the path only when [`Builder::finish`] returns. An older index at the
/// path is intact until then, and stays if the build is dropped or fails.
pub struct Builder {
    options: BuildOptions,
    out: AtomicFile,
    sorter: Sorter,
}

impl Builder {
    /// Starts an index at `path`. Errors: [`Error::Invalid`] for invalid options; `Busy` if another
    /// process is building it.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, options: BuildOptions) -> Result<Builder> {
        options.check()?;
        let out = AtomicFile::create(fs, path)?;
        let sorter = Sorter::new(fs, path, options.keys, options.memory_bytes);
        Ok(Builder { options, out, sorter })
    }

    /// Adds a row with an id chosen by the caller.
    pub fn add(&mut self, id: u64, values: &[Value<'_>]) -> Result<()> {
        let fits = |(value, kind): (&Value<'_>, &Kind)| match value {
            Value::Null => true,
            Value::Integer(_) => *kind == Kind::Integers,
            Value::Bytes(_) => *kind == Kind::Bytes,
        };
        if values.len() != self.options.columns.len() || !values.iter().zip(&self.options.columns).all(fits) {
            return Err(crate::PackError::WrongColumns.into());
        }
        self.sorter.add(Row { id, cells: values.iter().map(|value| Cell::from(*value)).collect() })
    }

    /// Adds all rows of an iterator.
    pub fn extend<'v, R: AsRef<[Value<'v>]>>(
        &mut self,
        rows: impl IntoIterator<Item = (u64, R)>,
    ) -> Result<()> {
        rows.into_iter().try_for_each(|(id, row)| self.add(id, row.as_ref()))
    }

    /// Sorts, writes, syncs and publishes the file. Takes one pass over the rows, or two if they
    /// did not fit the memory.
    pub fn finish(self) -> Result<()> {
        let Builder { options, out, mut sorter } = self;
        let mut pages = Pages {
            writer: AppendWriter::new(out.file().clone(), options.page_bytes as u64, 1 << 20),
            keys: options.keys,
            page_bytes: options.page_bytes,
            count: 0,
            rows: 0,
            directory: Vec::new(),
            page: Vec::new(),
        };
        let mut packer =
            Packer::new(&options.columns, options.page_bytes - SUM_BYTES, options.page_rows, false)?;
        let mut added = 0;
        sorter.drain(|row| {
            added += 1;
            if packer.push(row.id, row.cells.iter().map(Cell::value))? {
                while packer.cut(false, &mut pages.page)? > 0 {
                    pages.put()?;
                }
            }
            Ok(())
        })?;
        while packer.cut(true, &mut pages.page)? > 0 {
            pages.put()?;
        }
        ensure!(pages.rows == added, "{} rows in pages, {added} were added", pages.rows);
        ensure!(packer.waiting() == 0, "{} rows are in no page", packer.waiting());
        pages.close(&options)?;
        out.commit()?;
        Ok(())
    }
}

/// Writes pages and collects the directory.
struct Pages {
    writer: AppendWriter,
    keys: usize,
    page_bytes: usize,
    count: u64,
    rows: u64,
    directory: Vec<u8>,
    page: Vec<u8>,
}

impl Pages {
    fn put(&mut self) -> Result<()> {
        let offset = self.writer.position();
        let expected = (self.count + 1) * self.page_bytes as u64;
        ensure!(offset == expected, "page {} at {offset}, expected {expected}", self.count);
        let body_bytes = self.page_bytes - SUM_BYTES;
        ensure!(self.page.len() <= body_bytes, "{} bytes of a page of {body_bytes}", self.page.len());
        let damaged = |damage: Damage| Bug::new(format!("a page that was just packed: {damage}"));
        let leaf = Leaf::open(&self.page).map_err(damaged)?;
        ensure!(leaf.rows() > 0, "page {} has no rows", self.count);
        self.rows += leaf.rows() as u64;
        for column in 0..self.keys {
            put_cell(&super::read::cell(&leaf, column, 0).map_err(damaged)?, &mut self.directory);
        }
        self.page.resize(body_bytes, 0);
        let sum = xxh3_64_seeded(&self.page, self.count + 1);
        self.page.extend_from_slice(&sum.to_le_bytes());
        ensure!(self.page.len() == self.page_bytes, "{} bytes for a page", self.page.len());
        self.count += 1;
        Ok(self.writer.write_all(&self.page)?)
    }

    /// Writes the directory and the header.
    fn close(mut self, options: &BuildOptions) -> Result<()> {
        let directory_at = self.writer.position();
        let pages_end = (self.count + 1) * self.page_bytes as u64;
        ensure!(directory_at == pages_end, "the directory at {directory_at}, expected {pages_end}");
        self.writer.write_all(&self.directory)?;
        self.writer.flush()?;
        let mut header = vec![0; self.page_bytes];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &FILE_VERSION.to_le_bytes());
        put(12, &(self.page_bytes as u32).to_le_bytes());
        put(16, &[options.columns.len() as u8, options.keys as u8]);
        for (index, kind) in options.columns.iter().enumerate() {
            put(18 + index, &[u8::from(*kind == Kind::Bytes)]);
        }
        let words =
            [self.rows, self.count, directory_at, self.directory.len() as u64, xxh3_64(&self.directory)];
        for (index, word) in words.iter().enumerate() {
            put(WORDS_AT + 8 * index, &word.to_le_bytes());
        }
        let end = self.page_bytes - SUM_BYTES;
        let sum = xxh3_64(&header[..end]);
        header[end..].copy_from_slice(&sum.to_le_bytes());
        self.writer.file().write_all_at(&header, 0)?;
        Ok(())
    }
}
