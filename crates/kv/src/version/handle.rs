//! Files shared by versions, and their deletion when the last version releases them.
//!
//! A table is an [`Arc<TableFile>`] in every version that contains it. When the edit that removes
//! it is durable, the version set marks it *dead*. When the last version with the table is then
//! dropped, its name is added to the [`ObsoleteFiles`] queue of the store. The `Arc`s do all
//! reference counting: there are no lists of live versions to walk, and a reader that drops its
//! view pays at most one push to the queue. Files that are not marked dead are kept, because the
//! store is only closing.

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};

use super::names::FileName;
use crate::blob::BlobReader;
use crate::file::{BlobMeta, FileNumber, TableMeta};
use crate::table::Table;

/// A queue of names of files that no version contains. The thread that takes them deletes the
/// files.
#[derive(Debug, Default)]
pub(crate) struct ObsoleteFiles {
    /// Length of `names`, so that checking for work takes no lock.
    count: AtomicUsize,
    names: Mutex<Vec<FileName>>,
}

impl ObsoleteFiles {
    /// Returns true when there is nothing to delete. Costs one load.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Returns all names since the last call, in the order in which the files were released.
    pub(crate) fn take(&self) -> Vec<FileName> {
        let mut names = lock(&self.names);
        debug_assert_eq!(self.count.load(Ordering::Relaxed), names.len(), "both change under the lock");
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *names)
    }

    fn push(&self, name: FileName) {
        let mut names = lock(&self.names);
        debug_assert_eq!(self.count.load(Ordering::Relaxed), names.len(), "both change under the lock");
        names.push(name);
        self.count.store(names.len(), Ordering::Relaxed);
    }
}

/// Adds the file's name to the queue when it is dropped after being marked dead.
#[derive(Debug)]
struct Lifetime {
    name: FileName,
    dead: AtomicBool,
    obsolete: Arc<ObsoleteFiles>,
}

impl Lifetime {
    fn new(name: FileName, obsolete: &Arc<ObsoleteFiles>) -> Self {
        Lifetime { name, dead: AtomicBool::new(false), obsolete: Arc::clone(obsolete) }
    }

    /// ORDER: only after the edit that removes the file is durable. The last version with the file
    /// is dropped later.
    fn end(&self) {
        debug_assert!(!self.dead.load(Ordering::Relaxed), "{} was removed twice", self.name);
        self.dead.store(true, Ordering::Release);
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        if self.dead.load(Ordering::Acquire) {
            self.obsolete.push(self.name);
        }
    }
}

/// A table that at least one version contains.
#[derive(Debug)]
pub(crate) struct TableFile {
    /// Its description in the manifest.
    pub(crate) meta: TableMeta,
    /// True if its index and filter should stay in memory, because it was created for one of the
    /// levels above the last.
    pub(crate) pin: bool,
    /// Its reader, once it has been opened.
    pub(crate) reader: OnceLock<Arc<Table>>,
    lifetime: Lifetime,
}

impl TableFile {
    /// Creates the handle of a table for a new version.
    pub(crate) fn new(meta: TableMeta, pin: bool, obsolete: &Arc<ObsoleteFiles>) -> Self {
        let lifetime = Lifetime::new(FileName::Table(meta.number), obsolete);
        TableFile { meta, pin, reader: OnceLock::new(), lifetime }
    }

    /// Returns the number in its name.
    pub(crate) fn number(&self) -> FileNumber {
        self.meta.number
    }

    pub(super) fn end(&self) {
        self.lifetime.end();
    }
}

/// A blob file that at least one version contains.
#[derive(Debug)]
pub(crate) struct BlobFile {
    /// Its description in the manifest.
    pub(crate) meta: BlobMeta,
    /// Its reader, once it has been opened.
    pub(crate) reader: OnceLock<BlobReader>,
    lifetime: Lifetime,
}

impl BlobFile {
    /// Creates the handle of a blob file for a new version.
    pub(crate) fn new(meta: BlobMeta, obsolete: &Arc<ObsoleteFiles>) -> Self {
        let lifetime = Lifetime::new(FileName::Blob(meta.number), obsolete);
        BlobFile { meta, reader: OnceLock::new(), lifetime }
    }

    pub(super) fn end(&self) {
        self.lifetime.end();
    }
}
