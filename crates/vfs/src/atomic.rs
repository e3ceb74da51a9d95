//! Atomic replacement of a file: readers and crashes see the old file or the new one, and nothing
//! in between.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checks::not_a_file;
use crate::{Error, ErrorKind, File, Fs, OpenOptions, Operation, Result};

/// How often another builder may rename the temporary file away between our open and our lock
/// before we give up. Each time means that another builder finished at that instant.
const LOCK_ATTEMPTS: usize = 16;

/// A file under construction that replaces `path` at [`AtomicFile::commit`].
///
/// The file is built as `<path>.tmp`. The name is fixed, so that a crash leaves at most one stray
/// file, which the next build removes. A lock on the temporary file keeps two builders apart. If
/// `path` is a symbolic link, the link stays and its target is replaced. The new file takes over
/// the access permissions of the file it replaces.
///
/// Until the commit, and after any failure before the rename, the old file at `path` is untouched.
/// Dropping an `AtomicFile` without a commit removes the temporary file (best effort).
#[derive(Debug)]
pub struct AtomicFile {
    fs: Arc<dyn Fs>,
    file: Arc<dyn File>,
    temporary: PathBuf,
    path: PathBuf,
    /// The final name: `path` with symbolic links resolved.
    target: PathBuf,
    /// True once the temporary file has been renamed.
    renamed: bool,
}

impl AtomicFile {
    /// Creates an empty file that will become `path`. Fails with `Busy` while another builder works
    /// on it. Fails with `Invalid` for a pipe or another device, which the rename would replace;
    /// see [`OutputFile`](crate::OutputFile).
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<AtomicFile> {
        match target(fs, path)? {
            Some(target) => AtomicFile::build(fs, path, &target),
            None => Err(not_a_file(path)),
        }
    }

    /// Like [`AtomicFile::create`], for a `path` that resolves to `target`.
    pub(crate) fn build(fs: &Arc<dyn Fs>, path: &Path, target: &Path) -> Result<AtomicFile> {
        let mut temporary_name = target.file_name().ok_or_else(|| no_file_name(path))?.to_owned();
        temporary_name.push(".tmp");
        let temporary = target.with_file_name(temporary_name);
        for _ in 0..LOCK_ATTEMPTS {
            // ORDER: before the open, which would create or write the link's target. A link is not
            // the temporary file of any builder, and the rename would move the link instead of the
            // file.
            if fs.follow(&temporary)?.is_none_or(|file| file != temporary) {
                fs.remove(&temporary)?;
                continue;
            }
            let opened = fs.open(&temporary, OpenOptions::create());
            let file: Arc<dyn File> = Arc::from(opened.map_err(|error| match fs.exists(&temporary) {
                // Users do not know the temporary name, so the error names `path` instead.
                Ok(false) if error.path == temporary => Error { path: path.to_owned(), ..error },
                _ => error,
            })?);
            file.try_lock()?;
            // From here on, dropping `atomic` cleans up after a failure: it removes the file if the
            // temporary name still refers to it.
            let (fs, temporary) = (Arc::clone(fs), temporary.clone());
            let (path, target) = (path.to_owned(), target.to_owned());
            let atomic = AtomicFile { fs, file, temporary, path, target, renamed: false };
            // Between the open and the lock, another builder may have renamed this file to its
            // final name or removed it. ORDER: check this before removing or writing anything,
            // since that would damage the published file.
            match atomic.fs.metadata(&atomic.temporary) {
                Ok(metadata) if metadata.id == atomic.file.id() => {}
                Ok(_) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            // A crash may leave a rename half done, with both names on one file. After the other
            // name is replaced, that file looks like any leftover. Readers may have it mapped, so
            // it must never be truncated or written again; only this name is removed.
            let is_leftover = !atomic.file.is_empty()?;
            if is_leftover || atomic.is_published()? {
                atomic.fs.remove(&atomic.temporary)?;
                continue;
            }
            debug_assert!(atomic.temporary != atomic.target, "a file cannot replace itself");
            // ORDER: before the first byte is written, so that nobody without access to the old
            // file can read the new one.
            atomic.file.take_mode(&atomic.target);
            return Ok(atomic);
        }
        let source =
            io::Error::new(io::ErrorKind::WouldBlock, "other builders keep replacing the temporary file");
        Err(Error::new(Operation::Lock, &temporary, source))
    }

    /// Returns true when the final name refers to the file under construction.
    fn is_published(&self) -> Result<bool> {
        match self.fs.metadata(&self.target) {
            Ok(published) => Ok(published.id == self.file.id()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            // The answer is unknown, which must not be taken for "no".
            Err(error) => Err(error),
        }
    }

    /// Returns the file to fill.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Returns the path that was passed to [`AtomicFile::create`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable and renames it to its final name.
    ///
    /// After an error before the rename, the old file is still in place. If only the last step
    /// fails, the sync of the directory, readers see the new file already, but a power loss may
    /// bring the old one back. Both are complete.
    pub fn commit(mut self) -> Result<()> {
        debug_assert!(
            self.temporary.parent() == self.target.parent(),
            "{} and {} are in two directories, and one sync does not cover both",
            self.temporary.display(),
            self.target.display()
        );
        // ORDER: the content is durable before the name refers to it. Otherwise a crash could leave
        // the final name on an empty or torn file.
        self.file.sync_data()?;
        // ORDER: one rename switches readers from the old file to the new.
        self.fs.rename(&self.temporary, &self.target)?;
        self.renamed = true;
        // ORDER: once the new name is durable, the caller may act on it, for example by deleting
        // the files it replaces.
        self.fs.sync_parent(&self.target)
    }
}

/// Returns the name of the regular file that `path` resolves to, whether or not it exists. Returns
/// `None` for devices and open files that can only be written through. Errors: `path` is a
/// directory.
pub(crate) fn target(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<PathBuf>> {
    if path.file_name().is_none() {
        return Err(no_file_name(path));
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

fn no_file_name(path: &Path) -> Error {
    Error::new(
        Operation::Open,
        path,
        io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name"),
    )
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.renamed {
            return;
        }
        // We still hold the lock, but someone may have replaced the name. Remove it only if it
        // still refers to our file.
        if self.fs.metadata(&self.temporary).is_ok_and(|metadata| metadata.id == self.file.id()) {
            let _ = self.fs.remove(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests;
