//! Builds a log together with its index, and publishes both at the end.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AtomicFile, File, Fs, StdFs, ensure};

use super::index_build::{IndexSummary, fill_index};
use super::log_lock::LogLock;
use super::log_writer::LogWriter;
use super::options::{IndexOptions, LogOptions};
use super::paths::{index_path, log_path};
use crate::{Error, Result};

/// Writes a log and its index to temporary files and finally renames both. A builder that is
/// dropped before that leaves no files behind, and the old pair stays.
///
/// The temporary files have the names of the final ones with `.tmp` appended. If a final name is a
/// symbolic link, the target of the link is replaced. Each file has the access rights of the file
/// that it replaces from the start. The existing log and the index are locked meanwhile, so that no
/// other writer appends to the log or indexes it.
#[derive(Debug)]
pub struct PairBuilder {
    fs: Arc<dyn Fs>,
    writer: LogWriter,
    log: AtomicFile,
    index: AtomicFile,
    index_options: IndexOptions,
    /// Keeps other writers away from the log that is to be replaced.
    old_log: Option<LogLock>,
}

impl PairBuilder {
    /// Starts a pair at `path` (the name of either file) on the real file system.
    /// [`LogOptions::replace`] of `log` is ignored: existing files are always replaced.
    ///
    /// Errors: `Busy` if another writer has the log open or builds either file; [`Error::Invalid`]
    /// for options out of range.
    pub fn create(path: impl AsRef<Path>, log: &LogOptions, index: &IndexOptions) -> Result<PairBuilder> {
        PairBuilder::create_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, log, index)
    }

    /// Does the same as [`PairBuilder::create`] on any file system.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<PairBuilder> {
        let old_log = LogLock::take(fs, &path)?;
        PairBuilder::over(fs, old_log, path.as_ref(), log, index)
    }

    /// Starts a pair that replaces the one whose log is locked, if there is one.
    pub(super) fn over(
        fs: &Arc<dyn Fs>,
        old_log: Option<LogLock>,
        path: &Path,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<PairBuilder> {
        index.check()?;
        let new_log = AtomicFile::create(fs, &log_path(path))?;
        let new_index = AtomicFile::create(fs, &index_path(path))?;
        let writer = LogWriter::on_new_file(Arc::clone(new_log.file()), log)?;
        Ok(PairBuilder {
            fs: Arc::clone(fs),
            writer,
            log: new_log,
            index: new_index,
            index_options: index.clone(),
            old_log,
        })
    }

    /// See [`LogWriter::put`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.writer.put(key, value)
    }

    /// See [`LogWriter::put_stream`].
    pub fn put_stream(&mut self, key: &[u8], value_bytes: u64, value: &mut dyn Read) -> Result<()> {
        self.writer.put_stream(key, value_bytes, value)
    }

    /// Builds the index and publishes both files durably, the log first.
    ///
    /// A power loss or an `open` between the two renames finds the new log with the old index. This
    /// is an [`Error::Mismatch`] and never gives a wrong answer;
    /// [`build_index`](super::build_index), or `cairn hash index`, repairs it.
    ///
    /// Errors: those of writing; `Busy` if another writer has since created a log at the path and
    /// is writing it. In these cases the old pair is still in place. [`Error::Unfinished`] if the
    /// new log is already in place, but its index is not.
    pub fn finish(self) -> Result<IndexSummary> {
        let PairBuilder { fs, writer, log, index, index_options, old_log } = self;
        let identifier = writer.header().identifier;
        writer.close()?;
        let summary = fill_index(&fs, Arc::clone(log.file()), &index, &index_options)?;
        ensure!(summary.header.identifier == identifier, "the index of another log: {:?}", summary.header);
        let _old_log = match old_log {
            Some(old_log) => Some(old_log),
            // There was no log at the start. One that was created meanwhile may have a writer.
            None => LogLock::take(&fs, log.path())?,
        };
        let (new_log, new_index) = (Arc::clone(log.file()), Arc::clone(index.file()));
        let (log_path, index_path) = (log.path().to_owned(), index.path().to_owned());
        // ORDER: the log, then the index. The old index refuses the new log. A new index would
        // refuse the old log too, but could not be rebuilt if the new log was lost. The locks of
        // both logs are held until both renames are done.
        let published = log.commit().and_then(|()| index.commit());
        let is_there =
            |path: &Path, file: &dyn File| fs.metadata(path).is_ok_and(|found| found.id == file.id());
        match published {
            Ok(()) => Ok(summary),
            Err(error) if is_there(&log_path, &*new_log) && !is_there(&index_path, &*new_index) => {
                let log = log_path.display();
                let left =
                    format!("{log} is already the new log, but has no index: run `cairn hash index {log}`");
                Err(Error::Unfinished { error: Box::new(error.into()), left })
            }
            Err(error) => Err(error.into()),
        }
    }
}
