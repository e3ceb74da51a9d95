//! A log by itself, without an index: its header and its records.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, StdFs};

use super::log::{Log, open_file};
use super::log_header::LogHeader;
use super::log_scan::LogScan;
use super::options::Mode;
use super::paths::log_path;
use crate::Result;

/// An open log. It shows the records that were committed when it was opened.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
}

impl LogReader {
    /// Opens the log at `path` (the name of either file, or their common name) on the real file
    /// system. Cost: reads the header, and with [`Mode::Heap`] the whole file.
    ///
    /// Errors: [`Error::Corruption`](crate::Error::Corruption) and
    /// [`Error::Unsupported`](crate::Error::Unsupported) state the offending value and its
    /// location.
    pub fn open(path: impl AsRef<Path>, mode: Mode) -> Result<LogReader> {
        LogReader::open_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path, mode)
    }

    /// Does the same as [`LogReader::open`] on any file system.
    pub fn open_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>, mode: Mode) -> Result<LogReader> {
        let file = open_file(fs, &log_path(path))?;
        Ok(LogReader { log: Log::open(file, mode, 0)? })
    }

    /// Returns the header.
    pub fn header(&self) -> &LogHeader {
        &self.log.header
    }

    /// Iterates over all records in the order in which they were written.
    pub fn scan(&self) -> LogScan<'_> {
        LogScan::new(&self.log)
    }
}
