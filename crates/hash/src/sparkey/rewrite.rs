//! Writes the live entries of a store to a new log with a new index. This drops garbage and can
//! change the compression.

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
use super::pair_builder::PairBuilder;
use super::paths::log_path;
use super::reader::SparkeyReader;
use crate::{Error, Result};

/// Values up to this size are copied as a whole.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

impl SparkeyReader {
    /// Writes the live entries, in log order, to a log and an index at `path` (the name of either
    /// file) on the real file system. Both are built in temporary files, made durable, and renamed,
    /// the log first.
    ///
    /// `path` may be that of this store, because a reader keeps its files open. A log that is
    /// replaced stays locked until both files are renamed, so that no writer appends to it
    /// meanwhile. A power loss or an `open` between the two renames finds the new log with the old
    /// index. This is an [`Error::Mismatch`](crate::Error::Mismatch) and never gives a wrong
    /// answer; [`build_index`](super::build_index), or `cairn hash index`, repairs it.
    ///
    /// Errors: those of reading this store; `Busy` if another writer has the log open or builds
    /// either file; [`Error::Invalid`] if the log of this store has grown since it was indexed or
    /// was replaced since it was opened, so that a rewrite would lose records, or if the requested
    /// identifier is that of the old log or of this one. The old files then stay, unless only the
    /// last rename failed: in that case the error is [`Error::Unfinished`].
    pub fn rewrite(
        &self,
        path: impl AsRef<Path>,
        log: &LogOptions,
        index: &IndexOptions,
    ) -> Result<IndexSummary> {
        self.rewrite_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, log, index)
    }

    /// Does the same as [`SparkeyReader::rewrite`] on any file system.
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
        debug_assert!(log.identifier.is_some_and(|identifier| identifier != self.log.header.identifier));
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

    /// Returns the options with an identifier that no old index has. Errors: replacing `old_log`
    /// would lose records.
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
            // A log that cannot be read may be replaced.
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
                let detail =
                    format!("identifier {identifier:#010x} is that of the old log, expected a different one");
                return Err(Error::invalid(detail));
            }
            Some(identifier) => identifier,
            None => {
                let mut identifier = random_u32(path)?;
                // BOUND: at most two identifiers are taken.
                while taken(identifier) {
                    identifier = identifier.wrapping_add(1);
                }
                identifier
            }
        };
        debug_assert!(!taken(identifier), "an old index would accept the new log");
        Ok(options.clone().identifier(identifier))
    }
}
