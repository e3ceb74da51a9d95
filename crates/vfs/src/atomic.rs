//! Replacing a file in one step: readers and crashes see the old file or the new one, nothing
//! between.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checks::no_file;
use crate::{Error, ErrorKind, File, Fs, OpenOptions, Operation, Result};

/// How often the temporary file may be renamed away between our open and our lock before we give
/// up. Each time means that another builder finished in that instant.
const LOCK_ATTEMPTS: usize = 16;

/// A file under construction, which takes the place of `path` at [`AtomicFile::commit`].
///
/// A symbolic link at `path` stays: what it leads to is replaced. It is built as `<path>.tmp`. The
/// name is fixed, so that a crash leaves at most one stray file, which the next build removes; a
/// lock on it keeps two builders apart. Who may read and write it is taken from what it replaces.
/// Until the commit, and after any failure before it, the old file at `path` is untouched. Dropping
/// without a commit removes the temporary file (best effort).
#[derive(Debug)]
pub struct AtomicFile {
    fs: Arc<dyn Fs>,
    file: Arc<dyn File>,
    temporary: PathBuf,
    path: PathBuf,
    /// The name that it gets: where `path` leads.
    target: PathBuf,
    /// True once the temporary name is gone, by rename.
    renamed: bool,
}

impl AtomicFile {
    /// Starts an empty file that will become `path`. `Busy` while somebody else is building it;
    /// `Invalid` for a pipe or another device, which would be lost: see
    /// [`OutputFile`](crate::OutputFile).
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<AtomicFile> {
        match target(fs, path)? {
            Some(target) => AtomicFile::build(fs, path, &target),
            None => Err(no_file(path)),
        }
    }

    /// As [`AtomicFile::create`], for a `path` that leads to `target`.
    pub(crate) fn build(fs: &Arc<dyn Fs>, path: &Path, target: &Path) -> Result<AtomicFile> {
        let mut temporary_name = target.file_name().ok_or_else(|| nameless(path))?.to_owned();
        temporary_name.push(".tmp");
        let temporary = target.with_file_name(temporary_name);
        for _ in 0..LOCK_ATTEMPTS {
            // ORDER: before the open, which would make or fill what the link leads to. A link is
            // nobody's build, and the rename would move it, not the file.
            if fs.follow(&temporary)?.is_none_or(|file| file != temporary) {
                fs.remove(&temporary)?;
                continue;
            }
            let opened = fs.open(&temporary, OpenOptions::create());
            let file: Arc<dyn File> = Arc::from(opened.map_err(|error| match fs.exists(&temporary) {
                // Nobody asked for a temporary file: what is in the way is in the way of `path`.
                Ok(false) if error.path == temporary => Error { path: path.to_owned(), ..error },
                _ => error,
            })?);
            file.try_lock()?;
            // From here on a failure cleans up: dropping `atomic` removes the file if the name
            // still means it.
            let (fs, temporary) = (Arc::clone(fs), temporary.clone());
            let (path, target) = (path.to_owned(), target.to_owned());
            let atomic = AtomicFile { fs, file, temporary, path, target, renamed: false };
            // Between the open and the lock another builder may have renamed this very file to its
            // final place, or removed it. ORDER: look before anything is removed or written, or we
            // would hit what it has published.
            match atomic.fs.metadata(&atomic.temporary) {
                Ok(metadata) if metadata.id == atomic.file.id() => {}
                Ok(_) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            // A crash may leave a rename half done: both names mean one file, and a later
            // replacement of the other name makes that file look like any leftover. Readers may
            // have it mapped, so it must never be emptied or written again, only lose this name.
            let is_leftover = !atomic.file.is_empty()?;
            if is_leftover || atomic.is_published()? {
                atomic.fs.remove(&atomic.temporary)?;
                continue;
            }
            // ORDER: before the first byte, which those who may not read the old file may not read
            // either.
            atomic.file.take_mode(&atomic.target);
            return Ok(atomic);
        }
        let source =
            io::Error::new(io::ErrorKind::WouldBlock, "other builders keep replacing the temporary file");
        Err(Error::new(Operation::Lock, &temporary, source))
    }

    /// True when the final name means the file under construction.
    fn is_published(&self) -> Result<bool> {
        match self.fs.metadata(&self.target) {
            Ok(published) => Ok(published.id == self.file.id()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            // Not knowing is not a no.
            Err(error) => Err(error),
        }
    }

    /// The file to fill.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// The name it was asked to have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable and gives it its name.
    ///
    /// On an error before the rename the old file is still there. If only the last step fails, the
    /// sync of the directory, readers see the new file already, but a power loss may bring the old
    /// one back; both are whole.
    pub fn commit(mut self) -> Result<()> {
        // ORDER: the content is durable before the name can point to it. The other way round, a
        // crash could leave the final name on an empty or torn file.
        self.file.sync_data()?;
        // ORDER: one rename switches readers from the old file to the new.
        self.fs.rename(&self.temporary, &self.target)?;
        self.renamed = true;
        // ORDER: the caller may act on the new name (delete what it replaces) once it cannot be
        // lost.
        self.fs.sync_parent(&self.target)
    }
}

/// The name of the regular file that `path` means, there or not; `None` for what can only be
/// written through. Errors: a directory.
pub(crate) fn target(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<PathBuf>> {
    if path.file_name().is_none() {
        return Err(nameless(path));
    }
    match fs.metadata(path) {
        Ok(found) if found.is_dir => {
            Err(Error::new(Operation::Open, path, io::ErrorKind::IsADirectory.into()))
        }
        Ok(found) if !found.is_file => Ok(None),
        Ok(_) => fs.follow(path),
        Err(error) if error.kind() == ErrorKind::NotFound => fs.follow(path),
        Err(error) => Err(error),
    }
}

fn nameless(path: &Path) -> Error {
    Error::new(Operation::Open, path, io::Error::new(io::ErrorKind::InvalidInput, "a file needs a name"))
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        // We still hold the lock, but the name may have been taken from us from outside: remove
        // only our own file.
        if self.fs.metadata(&self.temporary).is_ok_and(|metadata| metadata.id == self.file.id()) {
            let _ = self.fs.remove(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests;
