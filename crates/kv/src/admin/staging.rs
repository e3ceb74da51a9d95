//! A directory that appears atomically, complete or not at all.

use std::path::{Path, PathBuf};

use cairn_vfs::Fs;
use cairn_vfs::sync::Arc;

use crate::version::FileName;
use crate::{Error, Result};

/// A store that is assembled beside its target, as `<target>.tmp`, and moves there with one rename.
///
/// A crash leaves at most the temporary directory, whose files the next attempt removes. Dropping
/// it before [`Staging::commit`] removes the files too; the empty directory stays.
#[derive(Debug)]
pub(super) struct Staging {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    target: PathBuf,
    is_committed: bool,
}

impl Staging {
    /// Creates the temporary directory, empty.
    ///
    /// Errors: [`Error::Invalid`] when the target exists and is not empty, or when the temporary
    /// directory contains foreign files.
    pub(super) fn new(fs: &Arc<dyn Fs>, target: &Path) -> Result<Staging> {
        let Some(name) = target.file_name() else {
            return Err(Error::invalid(format!("{}: a new directory needs a name", target.display())));
        };
        if fs.exists(target)? && !fs.read_dir(target)?.is_empty() {
            return Err(Error::invalid(format!("{} already exists and is not empty", target.display())));
        }
        let mut temporary = name.to_owned();
        temporary.push(".tmp");
        let dir = target.with_file_name(temporary);
        debug_assert_eq!(dir.parent(), target.parent(), "one rename and one sync move the directory");
        fs.create_dir_all_durably(&dir)?;
        let staging = Staging { fs: Arc::clone(fs), dir, target: target.to_owned(), is_committed: false };
        staging.clear()?;
        if let Some(other) = fs.read_dir(&staging.dir)?.first() {
            return Err(Error::invalid(format!(
                "{} is in the way: it is not a file of a store",
                other.display()
            )));
        }
        Ok(staging)
    }

    /// Returns the temporary directory, for the files of the store.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Renames the directory to its target.
    ///
    /// ORDER: its files and their names are durable before the rename.
    pub(super) fn commit(mut self) -> Result<()> {
        debug_assert!(!self.is_committed && self.dir != self.target, "{}", self.dir.display());
        self.fs.sync_dir(&self.dir)?;
        self.fs.rename(&self.dir, &self.target)?;
        self.is_committed = true;
        Ok(self.fs.sync_parent(&self.target)?)
    }

    /// Removes files with names of a store's files.
    fn clear(&self) -> Result<()> {
        for path in self.fs.read_dir(&self.dir)? {
            if FileName::parse(&path).is_some() {
                self.fs.remove(&path)?;
            }
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_committed {
            // The next attempt removes files that remain.
            let _ = self.clear();
        }
    }
}
