//! Files that versions share, and how the last version to let go of one has it deleted.
//!
//! A table is an [`Arc<TableFile>`] in every version that has it. When an edit that removes it is
//! durable, the version set marks it *dead*; when then the last version that has it is dropped, its
//! name goes to the [`ObsoleteFiles`] queue of the store. Counting is thus the `Arc`s' own: no
//! lists of live versions to walk, and a reader that drops its view pays one queue push at most.
//! Files that are not dead (the store is closing) are left alone.

use cairn_vfs::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};

use super::names::FileName;
use crate::blob::BlobReader;
use crate::file::{FileNumber, TableMeta};
use crate::table::Table;

/// Names of files that no version has any more, to be deleted by whoever takes them.
#[derive(Debug, Default)]
pub(crate) struct ObsoleteFiles {
    /// Length of `names`, so that looking for work takes no lock.
    count: AtomicUsize,
    names: Mutex<Vec<FileName>>,
}

impl ObsoleteFiles {
    /// True when there is nothing to delete. One load.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// All names since the last call, in the order in which the files were let go of.
    pub(crate) fn take(&self) -> Vec<FileName> {
        let mut names = lock(&self.names);
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *names)
    }

    fn push(&self, name: FileName) {
        let mut names = lock(&self.names);
        names.push(name);
        self.count.store(names.len(), Ordering::Relaxed);
    }
}

/// Puts the file's name into the queue when it is dropped dead.
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

    /// ORDER: only after the edit that removes the file is durable; the version that had it last is
    /// dropped later.
    fn end(&self) {
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

/// A table that at least one version has.
#[derive(Debug)]
pub(crate) struct TableFile {
    /// What the manifest says of it.
    pub(crate) meta: TableMeta,
    /// Whether its index and filter are to stay in memory: it was made for one of the levels above
    /// the last.
    pub(crate) pin: bool,
    /// Its reader, once somebody has opened it.
    pub(crate) reader: OnceLock<Arc<Table>>,
    lifetime: Lifetime,
}

impl TableFile {
    /// A table of a version to come.
    pub(crate) fn new(meta: TableMeta, pin: bool, obsolete: &Arc<ObsoleteFiles>) -> Self {
        let lifetime = Lifetime::new(FileName::Table(meta.number), obsolete);
        TableFile { meta, pin, reader: OnceLock::new(), lifetime }
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> FileNumber {
        self.meta.number
    }

    pub(super) fn end(&self) {
        self.lifetime.end();
    }
}

/// What the store knows of a blob file without opening it. Immutable once it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobMeta {
    /// The number in its name: `000042.blob`.
    pub number: FileNumber,
    /// Length of the file.
    pub bytes: u64,
    /// Values in it.
    pub values: u64,
    /// Bytes of its values as tables count them ([`TableMeta::blobs`]): what garbage is measured
    /// against.
    pub value_bytes: u64,
    /// XXH3 of the whole file, as written.
    pub checksum: u64,
    /// The checksum in its footer, which stands for the whole file: what an open holds against the
    /// file that it finds. 0 where nothing is known of it.
    pub footer: u64,
}

/// A blob file that at least one version has.
#[derive(Debug)]
pub(crate) struct BlobFile {
    /// What the manifest says of it.
    pub(crate) meta: BlobMeta,
    /// Its reader, once somebody has opened it.
    pub(crate) reader: OnceLock<BlobReader>,
    lifetime: Lifetime,
}

impl BlobFile {
    /// A blob file of a version to come.
    pub(crate) fn new(meta: BlobMeta, obsolete: &Arc<ObsoleteFiles>) -> Self {
        let lifetime = Lifetime::new(FileName::Blob(meta.number), obsolete);
        BlobFile { meta, reader: OnceLock::new(), lifetime }
    }

    pub(super) fn end(&self) {
        self.lifetime.end();
    }
}
