//! Where a result goes that somebody asked for by name: a regular file as a whole, anything else as
//! it comes.

use std::path::Path;
use std::sync::Arc;

use crate::{AtomicFile, File, Fs, Result, atomic};

/// A file that a user has named for a result.
///
/// A regular file, or one that is not there yet, is replaced as [`AtomicFile`] does it. A pipe, a
/// terminal or another device stays what it is and is written through, and so is a file that is
/// meant by its being open (`/dev/stdout`). Bytes must be written in order.
#[derive(Debug)]
pub enum OutputFile {
    /// Appears at the commit.
    Whole(AtomicFile),
    /// Has already what was written.
    Through(Arc<dyn File>),
}

impl OutputFile {
    /// Starts writing. Errors: as of [`AtomicFile::create`] and [`Fs::open_stream`]; a directory.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<OutputFile> {
        match atomic::target(fs, path)? {
            Some(target) => Ok(OutputFile::Whole(AtomicFile::build(fs, path, &target)?)),
            None => Ok(OutputFile::Through(Arc::from(fs.open_stream(path)?))),
        }
    }

    /// The file to fill, from its beginning and in order.
    pub fn file(&self) -> &Arc<dyn File> {
        match self {
            OutputFile::Whole(atomic) => atomic.file(),
            OutputFile::Through(file) => file,
        }
    }

    /// Makes what was written durable, where there is a medium, and gives a regular file its name.
    pub fn commit(self) -> Result<()> {
        match self {
            OutputFile::Whole(atomic) => atomic.commit(),
            OutputFile::Through(file) => file.sync_data(),
        }
    }
}

#[cfg(test)]
mod tests;
