//! Building tables outside a store, for ingestion.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, Fs, OpenOptions, Rng, StdFs, SystemClock, SystemRng};

use crate::batch::Operation;
use crate::db::Keyspace;
use crate::db::output::table_options;
use crate::kind::Kind;
use crate::options::KeyspaceOptions;
use crate::table::TableWriter;
use crate::ttl::{self, Ttl};
use crate::{Error, Result};

/// Writes a table file from keys in ascending order, for [`Keyspace::ingest`].
///
/// Loading sorted data this way costs one pass: no log, no memtable, and usually no compaction.
/// Dropping an unfinished builder removes the file. After an error the builder cannot be used.
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// use cairn_kv::{Db, IngestOptions};
///
/// let db = Db::builder("/store").fs(fs).open()?;
/// let mut table = db.table_builder("/numbers.table")?;
/// for number in 0..1000u32 {
///     table.put(number.to_be_bytes(), number.to_string())?;
/// }
/// table.finish()?;
/// db.ingest(&["/numbers.table"], &IngestOptions { move_files: true })?;
/// assert_eq!(db.get(7u32.to_be_bytes())?.as_deref(), Some(&b"7"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TableBuilder {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    /// `None` once the file is finished or a write has failed.
    writer: Option<TableWriter>,
    /// Set when values expire, with the time that counts as the time of their write, in seconds
    /// since the Unix epoch.
    ttl: Option<Ttl>,
    is_finished: bool,
}

/// Describes a finished table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuiltTable {
    /// The path of the file.
    pub path: PathBuf,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// Number of entries, including deletions.
    pub entries: u64,
    /// The first key.
    pub smallest: Vec<u8>,
    /// The last key.
    pub largest: Vec<u8>,
}

impl TableBuilder {
    /// Creates the file `path` on the machine's file system, for a keyspace with these options. If
    /// its entries expire, their time to live begins now.
    ///
    /// Errors: [`Error::Invalid`] for options that contradict each other; those of the file system,
    /// including `Conflict` when the file exists.
    pub fn create(path: impl AsRef<Path>, options: &KeyspaceOptions) -> Result<TableBuilder> {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        TableBuilder::create_in(&fs, path, options)
    }

    /// Creates a file on any file system, as [`TableBuilder::create`] does.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        options: &KeyspaceOptions,
    ) -> Result<TableBuilder> {
        TableBuilder::create_at(fs, path, options, SystemClock::new().wall().as_secs())
    }

    /// Creates a file whose values, if they expire, count as written at `now_secs`.
    fn create_at(
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        options: &KeyspaceOptions,
        now_secs: u64,
    ) -> Result<TableBuilder> {
        let path = path.as_ref().to_owned();
        options.check()?;
        // The number seeds the checksums of the blocks, so that a block of another table never
        // passes for a block of this one.
        let mut rng = SystemRng::new()
            .map_err(|error| Error::invalid(format!("cannot get random numbers from the system: {error}")))?;
        let number = rng.next_u64();
        // Uses the options of the last level, where most of a bulk load ends up.
        let level = options.compression.len().max(1);
        let table_options = table_options(options, level, level, (0, 0));
        let file = fs.open(&path, OpenOptions::create_new())?;
        let mut builder =
            TableBuilder { fs: Arc::clone(fs), path, writer: None, ttl: None, is_finished: false };
        builder.ttl = options.ttl.map(|ttl| Ttl { secs: ttl.as_secs(), now_secs });
        builder.writer = Some(TableWriter::new(Arc::from(file), number, table_options)?);
        Ok(builder)
    }

    /// Sets `key` to `value`.
    ///
    /// Errors: [`Error::Invalid`] for a key that does not come after the previous one, and for a
    /// key or value that is too long, as with [`Keyspace::put`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        Operation::Put { key, value }.check()?;
        let Some(Ttl { secs, now_secs }) = self.ttl else {
            return self.writer()?.add(key, 0, Kind::Put, value);
        };
        let writer = self.writer()?;
        writer.note_expiry(now_secs.saturating_add(secs));
        writer.add(key, 0, Kind::Put, &ttl::stamp(value, now_secs))
    }

    /// Removes `key` from the keyspace that the table is ingested into.
    ///
    /// Errors: as [`TableBuilder::put`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        Operation::Delete { key }.check()?;
        self.writer()?.add(key, 0, Kind::Delete, &[])
    }

    /// Returns the approximate length of the file if it were finished now.
    pub fn estimated_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, TableWriter::estimated_bytes)
    }

    /// Returns the number of entries so far.
    pub fn entries(&self) -> u64 {
        self.writer.as_ref().map_or(0, TableWriter::entries)
    }

    /// Writes the remaining data and makes the file durable, including its name.
    ///
    /// Errors: those of the file system, and [`Error::Invalid`] for a table without entries.
    pub fn finish(mut self) -> Result<BuiltTable> {
        let Some(writer) = self.writer.take() else { return Err(unusable()) };
        let meta = writer.finish()?;
        debug_assert!(
            meta.seqnos == (0, 0) && meta.blobs.is_empty(),
            "an ingestion would refuse the table: numbers {:?}, blob files {:?}",
            meta.seqnos,
            meta.blobs
        );
        self.fs.sync_parent(&self.path)?;
        self.is_finished = true;
        let (bytes, entries) = (meta.bytes, meta.entries);
        Ok(BuiltTable {
            path: self.path.clone(),
            bytes,
            entries,
            smallest: meta.smallest,
            largest: meta.largest,
        })
    }

    fn writer(&mut self) -> Result<&mut TableWriter> {
        self.writer.as_mut().ok_or_else(unusable)
    }
}

fn unusable() -> Error {
    Error::invalid("the table builder has failed before")
}

impl Drop for TableBuilder {
    fn drop(&mut self) {
        if !self.is_finished {
            self.writer = None;
            // If the removal fails, the remaining file has no footer and cannot be taken for a
            // table.
            let _ = self.fs.remove(&self.path);
        }
    }
}

impl Keyspace {
    /// Creates a table file with this keyspace's options, on the store's file system. See
    /// [`TableBuilder`].
    pub fn table_builder(&self, path: impl AsRef<Path>) -> Result<TableBuilder> {
        let inner = &self.core.inner;
        TableBuilder::create_at(&inner.fs, path, &self.state.options, inner.clock.wall().as_secs())
    }
}
