//! The version set: the current versions of all keyspaces, and the manifest from which they are
//! recovered.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};
use cairn_vfs::{Bug, Fs};
use cairn_wal::{Known, Lsn};

use super::edit::{KeyspaceId, VersionEdit};
use super::encode::encode;
use super::handle::ObsoleteFiles;
use super::levels::Version;
use super::manifest::format::Identity;
use super::manifest::read::load;
use super::manifest::write::Manifest;
use super::names::FileName;
use super::state::{FILE_NUMBER_MAX, KeyspaceState, StoreState};
use crate::file::FileNumber;
use crate::kind::Seqno;
use crate::{Error, Result};

/// A manifest is rewritten when its edits exceed this size and the size of its initial state. So
/// recovery reads a few megabytes at most, and rewriting adds less than one byte per byte of edits.
pub(crate) const REWRITE_BYTES: u64 = 1 << 20;

/// The differences between a store's directory and its manifest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StrayFiles {
    /// Files in the directory that nothing refers to. A crash left them, and they are to be
    /// deleted.
    pub unreferenced: Vec<PathBuf>,
    /// Files that are referred to but missing: the store is damaged.
    pub missing: Vec<FileName>,
}

/// The current versions of all keyspaces, and the only way to change them.
///
/// There is one per open store. All methods may be called from any thread. Changes are serialized,
/// and each costs one sync of the manifest.
#[derive(Debug)]
pub(crate) struct VersionSet {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    store_id: u64,
    rewrite_bytes: u64,
    next_file: AtomicU64,
    obsolete: Arc<ObsoleteFiles>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: StoreState,
    /// `None` when the store was opened for reading only.
    manifest: Option<Manifest>,
    /// The end of the manifest as it was read at the opening.
    read: Position,
}

/// A position in a manifest: its number, and the end of an edit. Later positions are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    /// The number in the manifest's name.
    pub number: FileNumber,
    /// The offset after the edit.
    pub end: u64,
}

impl VersionSet {
    /// Returns true if there is a store in `dir`.
    pub(crate) fn exists(fs: &Arc<dyn Fs>, dir: &Path) -> Result<bool> {
        Ok(fs.exists(&FileName::Current.path(dir))?)
    }

    /// Checks that the existing directory `dir`, which has no `CURRENT`, does not have other files
    /// of a store.
    ///
    /// Errors: [`Error::Corruption`] when there are tables, blob files or a log, because then there
    /// was a store. A store that is being created has no log before its `CURRENT` is durable.
    pub(crate) fn check_no_orphans(fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
        let is_data = |path: &Path| match FileName::parse(path) {
            Some(name) => matches!(name, FileName::Table(_) | FileName::Blob(_)),
            None => cairn_wal::is_log_file(path),
        };
        if fs.read_dir(dir)?.iter().any(|path| is_data(path)) {
            Err(VersionSet::no_current(dir))
        } else {
            Ok(())
        }
    }

    /// Returns the error for a store in `dir` that has lost its `CURRENT`.
    pub(crate) fn no_current(dir: &Path) -> Error {
        let what = "CURRENT is missing, so the store cannot be opened";
        Error::corruption(&FileName::Current.path(dir), 0, what)
    }

    /// Creates a store in the existing directory `dir`. `edit` creates its initial state from an
    /// empty one. A crash leaves no store or this one.
    ///
    /// Errors: [`Error::Invalid`] when a store exists; [`Error::Corruption`] when there are tables,
    /// blob files or a log but no `CURRENT`. A new store would delete these files, or replay a
    /// foreign log.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        store_id: u64,
        edit: &VersionEdit,
    ) -> Result<VersionSet> {
        if VersionSet::exists(fs, dir)? {
            return Err(Error::invalid(format!("{} already holds a store", dir.display())));
        }
        VersionSet::check_no_orphans(fs, dir)?;
        VersionSet::found(fs, dir, store_id, edit)
    }

    /// Creates a store as [`VersionSet::create`] does, from existing files: those that `edit` adds
    /// must be durable, including their names. Replaces an existing store. A crash leaves the old
    /// state or this one.
    pub(crate) fn found(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        store_id: u64,
        edit: &VersionEdit,
    ) -> Result<VersionSet> {
        let names = list(fs, dir)?;
        let obsolete = Arc::new(ObsoleteFiles::default());
        let mut state = StoreState::new(Arc::clone(&obsolete));
        let prepared = state.prepare(edit).map_err(Error::invalid)?;
        state.commit(prepared);
        let number = state.next_file.max(first_free(&names)).max(1);
        state.next_file = number + 1;
        let identity = Identity { store: store_id, number };
        let manifest = Manifest::create(fs, dir, identity, &encode(&state.snapshot()))?;
        fs.sync_parent(dir)?;
        let read = Position::default();
        Ok(VersionSet::assemble(fs, dir, store_id, state, obsolete, (Some(manifest), read)))
    }

    /// Recovers the store in `dir` and begins a new manifest. `log` is the identity of the store's
    /// log if it is already known: for a store without a log, the one that it will have.
    ///
    /// The recovered state is that after some edit, the last acknowledged one or a later one. Reads
    /// the manifest once, and costs about four syncs. Crashes during recovery, any number of them,
    /// change nothing.
    pub(crate) fn open(fs: &Arc<dyn Fs>, dir: &Path, log: Option<Known>) -> Result<VersionSet> {
        let Recovered { store_id, mut state, obsolete, path: old, read } = recover(fs, dir)?;
        state.log = log.or(state.log);
        let number = state.next_file.max(first_free(&list(fs, dir)?));
        state.next_file = number + 1;
        let identity = Identity { store: store_id, number };
        let manifest = Manifest::create(fs, dir, identity, &encode(&state.snapshot()))?;
        // ORDER: after CURRENT names the new one durably. If this fails, the next open finds the
        // old one.
        let _ = fs.remove(&old);
        Ok(VersionSet::assemble(fs, dir, store_id, state, obsolete, (Some(manifest), read)))
    }

    /// Recovers the store in `dir` without writing anything, even while another process writes to
    /// it. [`VersionSet::log_and_apply`] then returns an error.
    pub(crate) fn open_read_only(fs: &Arc<dyn Fs>, dir: &Path) -> Result<VersionSet> {
        let Recovered { store_id, state, obsolete, read, .. } = recover(fs, dir)?;
        Ok(VersionSet::assemble(fs, dir, store_id, state, obsolete, (None, read)))
    }

    fn assemble(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        store_id: u64,
        state: StoreState,
        obsolete: Arc<ObsoleteFiles>,
        (manifest, read): (Option<Manifest>, Position),
    ) -> VersionSet {
        debug_assert!(
            manifest.as_ref().is_none_or(|manifest| manifest.number() < state.next_file),
            "the number of the manifest would be used again"
        );
        VersionSet {
            fs: Arc::clone(fs),
            dir: dir.to_owned(),
            store_id,
            rewrite_bytes: REWRITE_BYTES,
            next_file: AtomicU64::new(state.next_file),
            obsolete,
            inner: Mutex::new(Inner { state, manifest, read }),
        }
    }

    /// Rewrites the manifest after this many bytes of edits instead of [`REWRITE_BYTES`].
    #[must_use]
    #[cfg(test)]
    pub(crate) fn rewrite_bytes(mut self, bytes: u64) -> VersionSet {
        self.rewrite_bytes = bytes;
        self
    }

    /// Writes `edit` to the manifest, syncs it and makes it the current state. Then calls `install`
    /// with the new version of every changed keyspace, still under the lock, so that versions are
    /// installed in the order of the edits.
    ///
    /// Files that the edit adds, and their names, must already be durable. Files that it removes
    /// appear in [`VersionSet::obsolete`] once nobody holds a version with them.
    ///
    /// Errors: [`Error::Bug`] when the edit conflicts with the state (a missing table,
    /// overlapping tables in a run, a table above a newer one that it overlaps, a number in use); a
    /// full disk. After these two, nothing has changed and the set remains usable. After any other
    /// failure it is [`Error::Poisoned`], and reopening the store tells whether the edit took
    /// effect.
    pub(crate) fn log_and_apply(
        &self,
        mut edit: VersionEdit,
        mut install: impl FnMut(KeyspaceId, &Arc<Version>),
    ) -> Result<()> {
        let mut inner = lock(&self.inner);
        let Inner { state, manifest, .. } = &mut *inner;
        let Some(manifest) = manifest else {
            return Err(Error::invalid(format!("{} is open for reading only", self.dir.display())));
        };
        manifest.check()?;
        // All files of this edit already have their numbers.
        edit.next_file = Some(self.next_file.load(Ordering::Relaxed));
        let prepared = state.prepare(&edit).map_err(|what| {
            let dir = self.dir.display();
            Bug::new(format!("an edit of the store in {dir} was refused, and nothing was changed: {what}"))
        })?;
        let before = manifest.end();
        manifest.append(&encode(&edit))?;
        assert!(manifest.end() > before, "the manifest did not grow by an edit");
        let changed: Vec<KeyspaceId> = prepared.keyspaces.keys().copied().collect();
        state.commit(prepared);
        debug_assert!(
            state.next_file <= self.next_file.load(Ordering::Relaxed),
            "the next file number of the state was not given out yet"
        );
        for id in changed {
            if let Some(keyspace) = state.keyspaces.get(&id) {
                install(id, &keyspace.version);
            }
        }
        if manifest.has_outgrown(self.rewrite_bytes) {
            let number = self.new_file_number();
            state.next_file = number + 1;
            manifest.rewrite(number, &encode(&state.snapshot()));
            debug_assert!(
                manifest.number() < state.next_file,
                "the number {} of the manifest would be used again",
                manifest.number()
            );
        }
        Ok(())
    }

    /// Returns a number for a new file, never used before.
    pub(crate) fn new_file_number(&self) -> FileNumber {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        debug_assert!(number <= FILE_NUMBER_MAX, "file numbers are used up");
        number
    }

    /// Returns the id for a new keyspace. The edit that creates it must follow before the next
    /// call.
    pub(crate) fn next_keyspace_id(&self) -> KeyspaceId {
        KeyspaceId(lock(&self.inner).state.next_keyspace)
    }

    /// Returns the highest sequence number in any edit.
    pub(crate) fn last_seqno(&self) -> Seqno {
        lock(&self.inner).state.last_seqno
    }

    /// Returns the sequence number of the last ingested tables, if the manifest has it.
    pub(crate) fn last_ingest(&self) -> Option<Seqno> {
        lock(&self.inner).state.last_ingest
    }

    /// Returns the identity and durable end of the log; `None` in a store of an earlier version.
    pub(crate) fn log(&self) -> Option<Known> {
        lock(&self.inner).state.log
    }

    /// Returns the id of the next keyspace, which is higher than every id ever used.
    pub(crate) fn keyspaces_ever(&self) -> u32 {
        lock(&self.inner).state.next_keyspace
    }

    /// Returns the manifest's path.
    pub(crate) fn path(&self) -> PathBuf {
        FileName::Manifest(self.position().number).path(&self.dir)
    }

    /// Returns the end of the manifest. Everything before it is durable.
    pub(crate) fn position(&self) -> Position {
        let inner = lock(&self.inner);
        match &inner.manifest {
            Some(manifest) => Position { number: manifest.number(), end: manifest.end() },
            None => inner.read,
        }
    }

    /// Checks that the manifest, as it was read, extends to `noted`.
    ///
    /// Errors: [`Error::Corruption`] when it ends before.
    pub(crate) fn check_reached(&self, noted: Position) -> Result<()> {
        let read = lock(&self.inner).read;
        // Every opening begins a new manifest, which contains everything in the previous one. So a
        // higher number is sufficient.
        if noted <= read {
            return Ok(());
        }
        let path = FileName::Manifest(read.number).path(&self.dir);
        let what = format!(
            "the manifest is older than the log, which refers to {} up to offset {}",
            FileName::Manifest(noted.number),
            noted.end
        );
        Err(Error::corruption(&path, read.end, what))
    }

    /// Returns the random number that distinguishes this store's files from those of other stores.
    pub(crate) fn store_id(&self) -> u64 {
        self.store_id
    }

    /// Returns the current version of a keyspace.
    #[cfg(test)]
    pub(crate) fn current(&self, id: KeyspaceId) -> Option<Arc<Version>> {
        lock(&self.inner).state.keyspaces.get(&id).map(|keyspace| Arc::clone(&keyspace.version))
    }

    /// Returns all keyspaces, ascending by id.
    pub(crate) fn keyspaces(&self) -> Vec<(KeyspaceId, KeyspaceState)> {
        lock(&self.inner).state.keyspaces.iter().map(|(&id, state)| (id, state.clone())).collect()
    }

    /// Returns the position from which the log is needed. All records before it are in tables.
    pub(crate) fn log_start(&self) -> Lsn {
        let inner = lock(&self.inner);
        inner.state.keyspaces.values().map(|keyspace| keyspace.log_start).min().unwrap_or(0).into()
    }

    /// Returns the tables and blob files with their required lengths.
    pub(crate) fn lengths(&self) -> Vec<(FileName, u64)> {
        let inner = lock(&self.inner);
        let mut all = Vec::new();
        for keyspace in inner.state.keyspaces.values() {
            let version = &keyspace.version;
            all.extend(version.tables().map(|(_, it)| (FileName::Table(it.number()), it.meta.bytes)));
            let blobs = version.blobs().iter().map(|blob| &blob.file.meta);
            all.extend(blobs.map(|meta| (FileName::Blob(meta.number), meta.bytes)));
        }
        all
    }

    /// Returns the number of the valid manifest; `None` when open for reading only.
    #[cfg(test)]
    pub(crate) fn manifest_number(&self) -> Option<FileNumber> {
        lock(&self.inner).manifest.as_ref().map(Manifest::number)
    }

    /// Errors: [`Error::Poisoned`] after the first failure of the manifest.
    pub(crate) fn check(&self) -> Result<()> {
        lock(&self.inner).manifest.as_ref().map_or(Ok(()), Manifest::check)
    }

    /// Returns the queue of files whose last version is gone. The thread that takes them deletes
    /// them.
    pub(crate) fn obsolete(&self) -> &Arc<ObsoleteFiles> {
        &self.obsolete
    }

    /// Compares the directory with the state. Only useful right after opening, because files of
    /// running jobs look unreferenced.
    pub(crate) fn stray_files(&self) -> Result<StrayFiles> {
        let names = list(&self.fs, &self.dir)?;
        let inner = lock(&self.inner);
        let manifest = inner.manifest.as_ref().map(Manifest::number);
        let is_live = |name: FileName| match name {
            FileName::Table(number) | FileName::Blob(number) => inner.state.has_file(number),
            FileName::Manifest(number) => manifest == Some(number),
            FileName::Current => true,
            FileName::CurrentTemporary => false,
        };
        let unreferenced =
            names.iter().filter(|&&(_, name)| !is_live(name)).map(|(path, _)| path.clone()).collect();
        let mut missing = Vec::new();
        let here: std::collections::HashSet<FileName> = names.iter().map(|&(_, name)| name).collect();
        for keyspace in inner.state.keyspaces.values() {
            let tables = keyspace.version.tables().map(|(_, table)| FileName::Table(table.number()));
            let blobs = keyspace.version.blobs().iter().map(|blob| FileName::Blob(blob.file.meta.number));
            missing.extend(tables.chain(blobs).filter(|name| !here.contains(name)));
        }
        Ok(StrayFiles { unreferenced, missing })
    }
}

/// The content of a manifest, and its path.
struct Recovered {
    store_id: u64,
    state: StoreState,
    obsolete: Arc<ObsoleteFiles>,
    path: PathBuf,
    read: Position,
}

/// Reads the manifest and recovers its state.
fn recover(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Recovered> {
    let manifest = load(fs, dir)?;
    let obsolete = Arc::new(ObsoleteFiles::default());
    let mut state = StoreState::new(Arc::clone(&obsolete));
    let (store_id, end) = manifest.replay(|edit| {
        let prepared = state.prepare(&edit)?;
        state.commit(prepared);
        Ok(())
    })?;
    // Files that one edit added and a later one removed were dropped during the replay. They are
    // not reported here: if a crash left them in the directory, they are found there.
    obsolete.take();
    let read = Position { number: manifest.number, end };
    Ok(Recovered { store_id, state, obsolete, path: manifest.path, read })
}

/// Returns the files of the store in the directory.
fn list(fs: &Arc<dyn Fs>, dir: &Path) -> Result<Vec<(PathBuf, FileName)>> {
    let paths = fs.read_dir(dir)?;
    Ok(paths.into_iter().filter_map(|path| FileName::parse(&path).map(|name| (path, name))).collect())
}

/// Returns the first number above those of all files, so that not even the number of a leftover
/// file is reused.
fn first_free(names: &[(PathBuf, FileName)]) -> FileNumber {
    let numbers =
        names.iter().filter_map(|(_, name)| name.number()).filter(|&number| number < FILE_NUMBER_MAX);
    numbers.max().map_or(0, |number| number + 1)
}

#[cfg(test)]
impl VersionSet {
    /// Returns the whole state as an edit, without the next file number. Recovery must restore it.
    pub(super) fn summary(&self) -> VersionEdit {
        VersionEdit { next_file: None, ..lock(&self.inner).state.snapshot() }
    }
}
