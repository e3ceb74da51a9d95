//! Reading a store while another process writes it.
//!
//! A reader writes nothing and locks nothing, so the writer does not know about its readers: it
//! deletes tables and releases log segments as soon as it does not need them itself. A reader
//! therefore opens all files at once. Open files survive deletion, as long as the process may have
//! that many open. If a file is already gone, the reader starts over with a newer manifest. It
//! replays the log into memory and keeps that state until it is asked to refresh.
//!
//! ```text
//!  manifest ─► open every table ─► replay the log ─► manifest again: does the log match the first?
//!      ▲                                                    │ no, or a file was gone
//!      └────────────────────────────────────────────────────┘
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, ErrorKind, Fs, SeededRng};

use crate::batch::DEFAULT;
use crate::blob::BlobReader;
use crate::db::Db;
use crate::db::assemble::assemble;
use crate::db::core::Core;
use crate::db::inner::{GivenOptions, Inner};
use crate::db::recovery;
use crate::db::tables::Tables;
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::open_files::OpenFiles;
use crate::options::{Background, Options};
use crate::table::Table;
use crate::version::{FileName, KeyspaceId, VersionSet};
use crate::{Error, Result};

/// How often a reader starts over because the writer replaced files meanwhile.
const ATTEMPTS: usize = 32;

/// Opens a store for reading only.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    pub path: PathBuf,
    pub fs: Arc<dyn Fs>,
    pub files: Arc<OpenFiles>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub given: GivenOptions,
}

impl ReadOnly {
    /// Opens the current state of the store. Tables that `before` has open are not opened again.
    pub(crate) fn open(mut self, before: Option<&Inner>) -> Result<Db> {
        debug_assert!(self.options.read_only, "{} has a writer already", self.path.display());
        // A read-only store has no background work.
        self.options.background = Background::Inline;
        let tables = match before {
            Some(before) => Arc::clone(&before.tables),
            None => {
                let path = Arc::new(self.path.clone());
                Arc::new(Tables::new(Arc::clone(&self.files), path, &self.options))
            }
        };
        let (store_id, readers) =
            before.map(|before| (before.versions.store_id(), open_readers(before))).unzip();
        let (store_id, readers) = (store_id.unwrap_or(0), readers.unwrap_or_default());
        let mut last = None;
        // BOUND: the loop only repeats while the writer replaces files during every attempt. A
        // damaged store fails every time too.
        for _ in 0..ATTEMPTS {
            let before = self.next_file();
            match self.attempt(&tables, store_id, &readers) {
                Ok(Some(db)) => return Ok(db),
                // A compaction may install files whose numbers a flush beside it has already
                // recorded, so an earlier attempt's error may not be damage either.
                Ok(None) => last = None,
                // The writer may cause any other error by replacing files during the attempt; these
                // two do not depend on the files.
                Err(error @ (Error::Invalid { .. } | Error::Unsupported { .. })) => return Err(error),
                // The error is real damage if nothing has changed meanwhile.
                Err(error) if before.is_none() || before == self.next_file() => last = Some(error),
                Err(_) => last = None,
            }
        }
        Err(last.unwrap_or_else(|| Error::Busy {
            what: format!(
                "the writer of {} replaces files faster than they can be read",
                self.path.display()
            ),
        }))
    }

    /// Returns the number of the next file, which every flush and every compaction advances, or
    /// `None` without a sound manifest.
    fn next_file(&self) -> Option<FileNumber> {
        VersionSet::open_read_only(&self.fs, &self.path).ok().map(|set| set.new_file_number())
    }

    /// Makes one attempt. Returns `None` when the writer has deleted a file that was being read, or
    /// when the log belongs to a newer manifest.
    fn attempt(
        &self,
        tables: &Arc<Tables>,
        store_id: u64,
        readers: &HashMap<FileNumber, Arc<Table>>,
    ) -> Result<Option<Db>> {
        let versions = VersionSet::open_read_only(&self.fs, &self.path)?;
        let base = LogBase::of(&versions);
        let (fs, clock) = (Arc::clone(&self.fs), Arc::clone(&self.clock));
        let (options, tables) = (self.options.clone(), Arc::clone(tables));
        let inner = assemble(fs, clock, options, None, versions, self.given.clone(), tables)?;
        let inner = Arc::new(inner);
        // The directory may meanwhile contain a different store that uses the same table numbers.
        let nothing = HashMap::new();
        open_all(&inner, if inner.versions.store_id() == store_id { readers } else { &nothing })?;
        // The random numbers are only used for a log that is written to.
        recovery::recover(&inner, &mut SeededRng::new(0))?;
        debug_assert!(
            inner.log.get().is_none(),
            "a reader could append to the log of {}",
            self.path.display()
        );
        // ORDER: after the log. The writer changes the manifest before it releases a segment, and
        // before it logs anything that follows the change.
        if LogBase::of(&VersionSet::open_read_only(&self.fs, &self.path)?) != base {
            return Ok(None);
        }
        let default = inner.keyspace(DEFAULT)?;
        Ok(Some(Db::new(Arc::new(Core { inner }), default)))
    }
}

/// The state of the manifest that must not change while the log is read. Flushes and compactions
/// may happen: the reader has already opened the files that they replace.
#[derive(Debug, PartialEq, Eq)]
struct LogBase {
    /// The first segment that is needed. Earlier ones are released.
    segment: u32,
    /// Ingested entries are not in the log, but later writes are.
    last_ingest: Option<Seqno>,
    /// Recovery skips records of unknown keyspaces as if these had been dropped.
    keyspaces: Vec<KeyspaceId>,
}

impl LogBase {
    fn of(versions: &VersionSet) -> LogBase {
        LogBase {
            segment: versions.log_start().segment(),
            last_ingest: versions.last_ingest(),
            keyspaces: versions.keyspaces().into_iter().map(|(id, _)| id).collect(),
        }
    }
}

/// Opens all tables and blob files, so that they remain readable when the writer deletes them.
fn open_all(inner: &Inner, readers: &HashMap<FileNumber, Arc<Table>>) -> Result<()> {
    for keyspace in inner.all_keyspaces() {
        for (_, file) in keyspace.view.load().version.tables() {
            if let Some(reader) = readers.get(&file.number()) {
                // File numbers are never reused, so this is the same table. It is not open yet, so
                // `set` succeeds.
                let is_new = file.reader.set(Arc::clone(reader)).is_ok();
                debug_assert!(is_new, "table {} is open before its store", file.number());
            }
            let path = FileName::Table(file.number()).path(&inner.path);
            inner.tables.open(file).map_err(|error| missing(error, &path))?;
        }
        for blob in keyspace.view.load().version.blobs() {
            let path = FileName::Blob(blob.file.meta.number).path(&inner.path);
            let reader = BlobReader::open_shared(&inner.tables.files, &inner.path, &blob.file.meta);
            // Nobody else has the store yet, so `set` succeeds.
            let is_new = blob.file.reader.set(reader.map_err(|error| missing(error, &path))?).is_ok();
            debug_assert!(is_new, "blob file {} is open before its store", blob.file.meta.number);
        }
    }
    Ok(())
}

/// Converts an error for a file that the manifest refers to: a missing file becomes
/// [`Error::Corruption`].
fn missing(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::corruption(path, 0, "it is missing, but the manifest refers to it"),
        _ => error,
    }
}

/// Returns the tables that a store has open.
fn open_readers(inner: &Inner) -> HashMap<FileNumber, Arc<Table>> {
    let mut readers = HashMap::new();
    for keyspace in inner.all_keyspaces() {
        let view = keyspace.view.load();
        let open = view
            .version
            .tables()
            .filter_map(|(_, file)| Some((file.number(), Arc::clone(file.reader.get()?))));
        readers.extend(open);
    }
    readers
}

impl Db {
    /// Catches up with the process that writes the store: the handle then shows the current state.
    /// Only for a store that was opened with [`crate::Builder::read_only`].
    ///
    /// Keyspaces, snapshots, cursors and clones of the handle that were obtained before keep
    /// showing the older state; obtain them again. Costs reading the manifest and the log since the
    /// last flushes, and opening the new tables.
    ///
    /// Errors: [`Error::Unsupported`] in a store that is open for writing; otherwise as
    /// [`crate::Builder::open`]. After an error the handle still shows the old state.
    ///
    /// ```
    /// # fn main() -> cairn_kv::Result<()> {
    /// # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
    /// # let builder = || cairn_kv::Db::builder("/store").fs(fs.clone());
    /// let writer = builder().open()?;
    /// let mut reader = builder().read_only(true).open()?;
    /// writer.put("key", "value")?;
    /// assert_eq!(reader.get("key")?, None);
    /// reader.refresh()?;
    /// assert_eq!(reader.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn refresh(&mut self) -> Result<()> {
        let inner = &self.core.inner;
        if !inner.options.read_only {
            return Err(Error::unsupported(
                &inner.path,
                "it is open for writing, so there is nothing to refresh",
            ));
        }
        // Passes the caller's options, not the stored ones, which the writer may have changed
        // since.
        let read_only = ReadOnly {
            path: inner.path.to_path_buf(),
            fs: Arc::clone(&inner.fs),
            files: Arc::clone(&inner.tables.files),
            clock: Arc::clone(&inner.clock),
            options: inner.options.clone(),
            given: inner.given.clone(),
        };
        *self = read_only.open(Some(inner))?;
        Ok(())
    }
}
