//! Restoring a store from a backup.

use std::path::Path;

use cairn_vfs::sync::read;

use super::Backups;
use super::files::shared_path;
use crate::admin::capture::files_of;
use crate::admin::staging::Staging;
use crate::admin::transfer::copy;
use crate::version::VersionSet;
use crate::{Error, Result};

impl Backups {
    /// Restores a backup, the newest one when `id` is `None`, to a store in the new directory
    /// `dir`, and returns the number of the backup.
    ///
    /// Costs a copy of its files, whose checksums are verified during the copy. The store is
    /// durable when this returns. A crash leaves either the complete store or, at most, a directory
    /// `<dir>.tmp`, which opens only if it is complete.
    ///
    /// Errors: [`Error::NotFound`] without such a backup, [`Error::Invalid`] when `dir` exists and
    /// is not empty, [`Error::Corruption`] of a damaged file.
    pub fn restore(&self, id: Option<u64>, dir: impl AsRef<Path>) -> Result<u64> {
        let _turn = read(&self.turns);
        let id = match id {
            Some(id) => id,
            None => self.numbers()?.last().map(|(id, _)| *id).ok_or_else(|| Error::NotFound {
                what: format!("there are no backups in {}", self.dir.display()),
            })?,
        };
        let record = self.record(id)?;
        let staging = Staging::new(&self.fs, dir.as_ref())?;
        for file in files_of(&record.edit) {
            let from = shared_path(&self.dir, file.name, file.content);
            copy(&self.fs, &from, &file.name.path(staging.dir()), file.content)?;
        }
        // ORDER: names are durable before the manifest that refers to them.
        self.fs.sync_dir(staging.dir())?;
        VersionSet::found(&self.fs, staging.dir(), record.store_id, &record.edit)?;
        staging.commit()?;
        Ok(id)
    }
}
