//! Writes the live entries of a store to a new log with a new index: drops garbage, changes the
//! compression.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, Operation, StdFs};

use super::index_build::IndexSummary;
use super::log::check_indexed;
use super::log_header::LogHeader;
use super::log_lock::LogLock;
use super::log_writer::random_u32;
use super::options::{IndexOptions, LogOptions};
use super::pair::PairBuilder;
use super::paths::log_path;
use super::reader::SparkeyReader;
use crate::{Error, Result};

/// Values up to this size are copied in one piece.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

impl SparkeyReader {
    /// Writes the live entries, in the order of the log, to a log and an index at `path` (either
    /// file's name) on the real file system. Both are built beside their places, made durable, and
    /// moved there, the log first.
    ///
    /// `path` may be that of this very store: a reader keeps the files that it has open. A log that
    /// is replaced stays locked until both files have moved, so nobody appends to it meanwhile. A
    /// power loss, or an `open`, between the two moves finds the new log with the old index, which
    /// is an [`Error::Mismatch`](crate::Error::Mismatch) and never a wrong answer;
    /// [`build_index`](super::build_index), or `cairn hash index`, mends it.
    ///
    /// Errors: of reading this store; `Busy` when somebody else is writing the log or building
    /// either file; [`Error::Invalid`] when this store's log has grown since it was indexed, or was
    /// replaced since it was opened, so that a rewrite would lose records, and when the identifier
    /// asked for is that of the old log or this one. The old files then stay, unless only the last
    /// move failed: [`Error::Unfinished`] says so.
    pub fn rewrite(
        &self,
        path: impl AsRef<Path>,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<IndexSummary> {
        self.rewrite_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, log, index)
    }

    /// [`SparkeyReader::rewrite`] to any file system.
    pub fn rewrite_in(
        &self,
        fs: &Arc<dyn Fs>,
        path: impl AsRef<Path>,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<IndexSummary> {
        let log_path = log_path(&path);
        let old_log = LogLock::take(fs, &log_path)?;
        let is_first = old_log.is_none();
        let log = self.rewrite_options(old_log.as_ref(), &log_path, log)?;
        let mut pair = PairBuilder::over(fs, old_log, &log_path, &log, index)?;
        let mut scan = self.scan();
        let mut value = Vec::new();
        while let Some(mut entry) = scan.next_entry()? {
            let value_bytes = entry.value_bytes();
            if value_bytes <= WHOLE_VALUE_BYTES {
                value.clear();
                entry.read_value(&mut value)?;
                pair.put(entry.key(), &value)?;
            } else {
                let key = entry.key().to_vec();
                pair.put_stream(&key, value_bytes, &mut entry)?;
            }
        }
        if is_first && fs.exists(&log_path)? {
            let source =
                io::Error::new(io::ErrorKind::AlreadyExists, "another writer has made a log meanwhile");
            return Err(cairn_vfs::Error::new(Operation::Rename, &log_path, source).into());
        }
        pair.finish()
    }

    /// The options with an identifier that no old index knows. Fails when replacing `old_log` would
    /// lose records.
    fn rewrite_options(
        &self,
        old_log: Option<&LogLock>,
        path: &Path,
        options: &LogOptions,
    ) -> Result<LogOptions> {
        let own = self.log.header.identifier;
        let old = match old_log.map(|log| LogHeader::read(&*log.file)).transpose() {
            Ok(old) => old,
            Err(Error::Vfs(error)) => return Err(error.into()),
            // It cannot be read, so it can well be replaced.
            Err(_) => None,
        };
        if let Some(old) = old {
            if old.identifier == own {
                check_indexed(path, old.data_end, self.index.header.data_end)?;
            }
            if old.identifier != own && path == self.log.path {
                let path = path.display();
                return Err(Error::invalid(format!(
                    "{path} was replaced since it was opened: open it again"
                )));
            }
        }
        let taken = |identifier| identifier == own || old.is_some_and(|old| old.identifier == identifier);
        let identifier = match options.identifier {
            Some(identifier) if taken(identifier) => {
                let what =
                    format!("identifier {identifier:#010x} is that of the old log, expected a different one");
                return Err(Error::invalid(what));
            }
            Some(identifier) => identifier,
            None => {
                let mut identifier = random_u32(path)?;
                // BOUND: two are taken.
                while taken(identifier) {
                    identifier = identifier.wrapping_add(1);
                }
                identifier
            }
        };
        Ok(options.clone().identifier(identifier))
    }
}
