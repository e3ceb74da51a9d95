//! Builds a log with its index, which take their places together.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AtomicFile, File, Fs, StdFs};

use super::index_build::{IndexSummary, fill_index};
use super::log_lock::LogLock;
use super::log_writer::LogWriter;
use super::options::{IndexOptions, LogOptions};
use super::paths::{index_path, log_path};
use crate::{Error, Result};

/// Writes a log and its index beside their places and moves both there in the end. Dropped before
/// that, it leaves nothing behind, and the old pair stays.
///
/// Until then the two are called as their places are, with `.tmp` behind it; where a place is a
/// symbolic link, what that leads to is replaced. Each has the rights of the file that it replaces
/// from the start. A log that is to be replaced stays locked, and so does the index: nobody appends
/// to it, or indexes it, meanwhile.
#[derive(Debug)]
pub struct PairBuilder {
    fs: Arc<dyn Fs>,
    writer: LogWriter,
    log: AtomicFile,
    index: AtomicFile,
    index_options: IndexOptions,
    /// Keeps writers off the log that is going to be replaced.
    old_log: Option<LogLock>,
}

impl PairBuilder {
    /// Starts a pair at `path` (either file's name) on the real file system. Of `log`,
    /// [`LogOptions::replace`] does not matter: whatever is there is replaced.
    ///
    /// Errors: `Busy` when somebody else is writing the log or building either file;
    /// [`Error::Invalid`] for options out of range.
    pub fn create(path: impl AsRef<Path>, log: &LogOptions, index: &IndexOptions) -> Result<PairBuilder> {
        PairBuilder::create_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, log, index)
    }

    /// [`PairBuilder::create`] on any file system.
    pub fn create_in(
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<PairBuilder> {
        let old_log = LogLock::take(fs, &path)?;
        PairBuilder::over(fs, old_log, path.as_ref(), log, index)
    }

    /// Starts a pair in the place of the one whose log is locked, if there is one.
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

    /// Builds the index and publishes both, the log first, all on stable storage.
    ///
    /// A power loss, or an `open`, between the two moves finds the new log with the old index,
    /// which is an [`Error::Mismatch`] and never a wrong answer;
    /// [`build_index`](super::build_index), or `cairn hash index`, mends it.
    ///
    /// Errors: of writing; `Busy` when somebody has made a log there since and is writing it. The
    /// old pair is then still in place. [`Error::Unfinished`] when the new log is there already,
    /// without its index.
    pub fn finish(self) -> Result<IndexSummary> {
        let PairBuilder { fs, writer, log, index, index_options, old_log } = self;
        writer.close()?;
        let summary = fill_index(&fs, Arc::clone(log.file()), &index, &index_options)?;
        let _old_log = match old_log {
            Some(old_log) => Some(old_log),
            // There was no log at the start. One that was made meanwhile may have a writer.
            None => LogLock::take(&fs, log.path())?,
        };
        let (new_log, new_index) = (Arc::clone(log.file()), Arc::clone(index.file()));
        let (log_path, index_path) = (log.path().to_owned(), index.path().to_owned());
        // ORDER: the log, then the index. The old index refuses the new log; a new index would
        // refuse the old one too, but could not be rebuilt if the new log was lost. The locks of
        // both logs are kept past both.
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
