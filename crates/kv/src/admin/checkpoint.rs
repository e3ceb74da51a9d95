//! Checkpoints: a copy of an open store, made mostly of hard links to its files.
//!
//! ```text
//!  capture ─► link tables, blobs ─► write memtables' tables ─► manifest, CURRENT ─► rename ─► sync
//!               └────────────── in <dir>.tmp ──────────────────────────┘
//! ```

use std::path::Path;

use super::capture::files_of;
use super::staging::Staging;
use super::transfer::link_or_copy;
use crate::Result;
use crate::db::Db;
use crate::kind::Seqno;
use crate::version::VersionSet;

impl Db {
    /// Copies the store to the new directory `dir`, where it opens as a store of its own, and
    /// returns the sequence number of the last write in the copy. Writes continue meanwhile. The
    /// copy contains every write that returned before the call, whatever its durability, and every
    /// batch completely or not at all.
    ///
    /// Tables and blob files are hard-linked into `dir`; on another file system they are copied and
    /// their checksums verified. The contents of memtables are written to tables of the copy. The
    /// copy is durable when this returns. A crash leaves either the complete copy or, at most, a
    /// directory `<dir>.tmp`, which opens only if it is complete and which the next attempt clears.
    ///
    /// Errors: [`crate::Error::Invalid`] when `dir` exists and is not empty; those of the file
    /// system.
    ///
    /// ```
    /// # fn main() -> cairn_kv::Result<()> {
    /// # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
    /// # let builder = |path: &str| cairn_kv::Db::builder(path).fs(fs.clone());
    /// let db = builder("/store").open()?;
    /// db.put("key", "before")?;
    /// db.checkpoint("/copy")?;
    /// db.put("key", "after")?;
    /// let copy = builder("/copy").open()?;
    /// assert_eq!(copy.get("key")?.as_deref(), Some(&b"before"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<Seqno> {
        let inner = &self.core.inner;
        let staging = Staging::new(&inner.fs, dir.as_ref())?;
        let capture = inner.capture();
        let edit = inner.materialize(&capture, staging.dir())?;
        for file in files_of(&edit) {
            let to = file.name.path(staging.dir());
            // Tables written from memtables already exist there.
            if !inner.fs.exists(&to)? {
                link_or_copy(&inner.fs, &file.name.path(&inner.path), &to, file.content)?;
            }
        }
        // ORDER: names are durable before the manifest that refers to them.
        inner.fs.sync_dir(staging.dir())?;
        VersionSet::found(&inner.fs, staging.dir(), inner.versions.store_id(), &edit)?;
        staging.commit()?;
        Ok(capture.last_seqno)
    }
}
