//! Reading a store beside the process that writes it.
//!
//! Nothing is written and nothing locked, so the writer knows nothing of its readers: it deletes
//! tables and gives log segments back when *it* needs them no more. A reader therefore opens all
//! files at once, which keeps them alive as long as the process may have so many open, and begins
//! anew with a newer manifest when one was gone already. It replays the log into memory and keeps
//! what it has so seen, until it is told to look again.
//!
//! ```text
//!  manifest ─► open every table ─► replay the log ─► manifest again: does the log still fit to the first?
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
use crate::db::core::Core;
use crate::db::inner::{Given, Inner};
use crate::db::open::assemble;
use crate::db::recovery;
use crate::db::tables::Tables;
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::open_files::OpenFiles;
use crate::options::{Background, Options};
use crate::table::Table;
use crate::version::{FileName, KeyspaceId, VersionSet};
use crate::{Error, Result};

/// How often a reader looks again when the writer was faster.
const ATTEMPTS: usize = 32;

/// What it takes to open a store for reading.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    pub path: PathBuf,
    pub fs: Arc<dyn Fs>,
    pub files: Arc<OpenFiles>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    pub given: Given,
}

impl ReadOnly {
    /// Opens the store as it is now. Tables that `before` has open are not opened again.
    pub(crate) fn open(mut self, before: Option<&Inner>) -> Result<Db> {
        // There is nothing to do in the background.
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
        // BOUND: a writer has to be faster every time. A store that is damaged fails every time
        // too.
        for _ in 0..ATTEMPTS {
            let before = self.next_file();
            match self.attempt(&tables, store_id, &readers) {
                Ok(Some(db)) => return Ok(db),
                Ok(None) => {}
                // Whatever is wrong may be so because the writer was at it just now; what is not of
                // the files stays wrong.
                Err(error @ (Error::Invalid { .. } | Error::Unsupported { .. })) => return Err(error),
                // Where nobody has changed anything meanwhile, it is damage.
                Err(error) if before.is_none() || before == self.next_file() => last = Some(error),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| Error::Busy {
            what: format!(
                "the writer of {} replaces files faster than they can be read",
                self.path.display()
            ),
        }))
    }

    /// The number of the next file, by which every flush and every compaction shows. `None` without
    /// a sound manifest.
    fn next_file(&self) -> Option<FileNumber> {
        VersionSet::open_read_only(&self.fs, &self.path).ok().map(|set| set.new_file_number())
    }

    /// `None` when the writer has given back what was being read, or the log is that of a newer
    /// manifest.
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
        // Another store may stand here meanwhile, with tables of its own under the same numbers.
        let nothing = HashMap::new();
        open_all(&inner, if inner.versions.store_id() == store_id { readers } else { &nothing })?;
        // It takes random numbers only for a log that is written to.
        recovery::recover(&inner, &mut SeededRng::new(0))?;
        // ORDER: after the log. The writer changes the manifest before it gives a segment back, and
        // before it logs what comes after a change.
        if LogBase::of(&VersionSet::open_read_only(&self.fs, &self.path)?) != base {
            return Ok(None);
        }
        let default = inner.keyspace(DEFAULT)?;
        Ok(Some(Db::new(Arc::new(Core { inner }), default)))
    }
}

/// What must not change in the manifest while the log is read. Flushes and compactions may: what
/// they move, a reader has from where it was.
#[derive(Debug, PartialEq, Eq)]
struct LogBase {
    /// The first segment that is needed: those before it are given back.
    segment: u32,
    /// What is taken in is in no log; writes that came after it are.
    last_ingest: Option<Seqno>,
    /// Records of keyspaces that are not known are passed over, as if they had been dropped.
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

/// Opens all tables and blob files, so that they stay when the writer deletes them.
fn open_all(inner: &Inner, readers: &HashMap<FileNumber, Arc<Table>>) -> Result<()> {
    for keyspace in inner.all_keyspaces() {
        for (_, file) in keyspace.view.load().version.tables() {
            if let Some(reader) = readers.get(&file.number()) {
                // Numbers are never used twice: it is the same table. It is not open yet, so this
                // sets it.
                let _ = file.reader.set(Arc::clone(reader));
            }
            let path = FileName::Table(file.number()).path(&inner.path);
            inner.tables.open(file).map_err(|error| missing(error, &path))?;
        }
        for blob in keyspace.view.load().version.blobs() {
            let path = FileName::Blob(blob.file.meta.number).path(&inner.path);
            let reader = BlobReader::open_shared(&inner.tables.files, &inner.path, &blob.file.meta);
            // Nobody else has the store yet, so this sets it.
            let _ = blob.file.reader.set(reader.map_err(|error| missing(error, &path))?);
        }
    }
    Ok(())
}

/// As `error`, of a file that the manifest refers to.
fn missing(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::corruption(path, 0, "it is missing, but the manifest refers to it"),
        _ => error,
    }
}

/// The tables that a store has open.
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
    /// Catches up with the process that writes the store: this handle then shows what is there now.
    /// Only for a store that was opened with [`crate::Builder::read_only`].
    ///
    /// Keyspaces, snapshots, cursors and clones of the handle that were taken before go on showing
    /// the older state; take them anew. Costs the manifest, the log since the last flushes, and
    /// opening tables that are new.
    ///
    /// Errors: [`Error::Unsupported`] in a store that is open for writing; otherwise as
    /// [`crate::Builder::open`]. The handle then shows what it did before.
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
        // The options that the caller gave, not the stored ones: the writer may have changed those
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
