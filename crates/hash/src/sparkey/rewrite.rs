//! Writes the live entries of a store to a new log with a new index: drops garbage, changes the compression.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{AtomicFile, Fs, StdFs};

use super::index_build::{IndexSummary, prepare_index};
use super::log_writer::LogWriter;
use super::options::{IndexOptions, LogOptions};
use super::paths::{index_path, log_path};
use super::reader::SparkeyReader;
use crate::Result;

/// Values up to this size are copied in one piece.
const WHOLE_VALUE_BYTES: u64 = 1 << 20;

impl SparkeyReader {
    /// Writes the live entries, in the order of the log, to a log and an index at `path` (either file's name) on the
    /// real file system. Both are built beside their places, made durable, and moved there, the log first.
    ///
    /// `path` may be that of this very store: a reader keeps the files that it has open. A power loss, or an `open`,
    /// between the two moves finds the new log with the old index, which is an
    /// [`Error::Mismatch`](crate::Error::Mismatch) and never a wrong answer; [`build_index`](super::build_index) mends it.
    ///
    /// Errors: of reading this store; `Busy` when somebody else is building either file. The old files then stay.
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
        let new_log = AtomicFile::create(fs, &log_path(&path))?;
        let mut writer = LogWriter::on_new_file(Arc::clone(new_log.file()), log)?;
        let mut scan = self.scan();
        let mut value = Vec::new();
        while let Some(mut entry) = scan.next_entry()? {
            let value_bytes = entry.value_bytes();
            if value_bytes <= WHOLE_VALUE_BYTES {
                value.clear();
                entry.read_value(&mut value)?;
                writer.put(entry.key(), &value)?;
            } else {
                let key = entry.key().to_vec();
                writer.put_stream(&key, value_bytes, &mut entry)?;
            }
        }
        writer.close()?;
        let (new_index, summary) = prepare_index(fs, Arc::clone(new_log.file()), &index_path(&path), index)?;
        // ORDER: the log, then the index. The old index refuses the new log; a new index would refuse the old one
        // too, but could not be rebuilt if the new log was lost.
        new_log.commit()?;
        new_index.commit()?;
        Ok(summary)
    }
}
