//! Output to a path named by a user: a regular file is replaced as a whole, anything else is
//! written through.

use std::path::Path;
use std::sync::Arc;

use crate::{AtomicFile, File, Fs, Result, atomic};

/// A file that a user has named for a result.
///
/// A regular or missing file is replaced by way of an [`AtomicFile`]. A pipe, a terminal or another
/// device is written through, and so is an already open file (`/dev/stdout`). Bytes must be written
/// in order.
#[derive(Debug)]
pub enum OutputFile {
    /// A regular file, visible after the commit.
    Whole(AtomicFile),
    /// A device or an open file, to which bytes go at once.
    Through(Arc<dyn File>),
}

impl OutputFile {
    /// Opens the output. Errors: those of [`AtomicFile::create`] and [`Fs::open_stream`]; `path` is
    /// a directory.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<OutputFile> {
        match atomic::target(fs, path)? {
            Some(target) => Ok(OutputFile::Whole(AtomicFile::build(fs, path, &target)?)),
            None => Ok(OutputFile::Through(Arc::from(fs.open_stream(path)?))),
        }
    }

    /// Returns the file to fill, from its beginning and in order.
    pub fn file(&self) -> &Arc<dyn File> {
        match self {
            OutputFile::Whole(atomic) => atomic.file(),
            OutputFile::Through(file) => file,
        }
    }

    /// Makes the written bytes durable, where there is a medium, and gives a regular file its name.
    pub fn commit(self) -> Result<()> {
        match self {
            OutputFile::Whole(atomic) => atomic.commit(),
            OutputFile::Through(file) => file.sync_data(),
        }
    }
}

#[cfg(test)]
mod tests;
