//! Backups of stores in a directory. Each backup is complete, and a file that does not change
//! between backups is stored once.
//!
//! ```text
//!  backups/
//!    LOCK
//!    000001.backup   000002.backup        the record of each backup: the files it consists of
//!    000007-89abcdef01234567.table   …    files, by number and checksum, shared by the backups
//! ```
//!
//! A file gets its final name only when it is complete and durable, and a backup exists when its
//! record does. A crash in the middle of a backup therefore loses at most the file that was being
//! copied: the next backup reuses the files that were complete.

mod files;
mod format;
mod restore;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_vfs::sync::{Arc, RwLock, read, write};
use cairn_vfs::{AtomicFile, ErrorKind, File, Fs, OpenOptions, StdFs, ensure};

use self::files::{backup_number, backup_path, is_shared, shared_path};
use self::format::Record;
use super::capture::files_of;
use super::transfer::{Content, copy};
use crate::db::Db;
use crate::db::reserve::LOCK_NAME;
use crate::kind::Seqno;
use crate::version::FileName;
use crate::{Error, Result};

/// A directory of backups. Only one handle can be open at a time, across all processes: the lock on
/// its file `LOCK` makes every other attempt fail with [`Error::Busy`].
///
/// Threads can share the handle. Because backups share files, operations that add or remove backups
/// run alone; [`Backups::list`], [`Backups::verify`] and [`Backups::restore`] run concurrently with
/// each other.
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// # let builder = |path: &str| cairn_kv::Db::builder(path).fs(fs.clone());
/// use cairn_kv::Backups;
///
/// let db = builder("/store").open()?;
/// let backups = Backups::open_in(&fs, "/backups")?;
/// db.put("key", "monday")?;
/// let monday = backups.create(&db)?;
/// db.put("key", "tuesday")?;
/// backups.create(&db)?;
/// assert!(backups.verify()?.is_empty());
/// backups.restore(Some(monday.id), "/restored")?;
/// assert_eq!(builder("/restored").open()?.get("key")?.as_deref(), Some(&b"monday"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Backups {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// Held for writing by operations that change the directory, for reading by operations that
    /// only need it to stay unchanged.
    turns: RwLock<()>,
    /// The lock on the directory, held as long as the handle lives.
    _lock: Box<dyn File>,
}

/// Describes one backup.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// Its number. Later backups have higher numbers.
    pub id: u64,
    /// The time of its creation since the Unix epoch, in whole seconds.
    pub created: Duration,
    /// The id of the store it was made of.
    pub store_id: u64,
    /// The sequence number of the last write in it.
    pub last_seqno: Seqno,
    /// Number of files it consists of.
    pub files: usize,
    /// Total bytes of these files.
    pub bytes: u64,
    /// Bytes of these files that had to be copied when it was made. The others were already in the
    /// directory, from earlier backups.
    pub copied_bytes: u64,
}

/// A damaged or missing file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Damage {
    /// The path of the file.
    pub file: PathBuf,
    /// The error found when reading it.
    pub error: Error,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (file, error) = (self.file.display().to_string(), self.error.to_string());
        // Most error messages already begin with the path.
        if error.starts_with(&file) { f.write_str(&error) } else { write!(f, "{file}: {error}") }
    }
}

impl Backups {
    /// Opens the directory, or creates it. A directory without write permission can still be read:
    /// [`Backups::list`], [`Backups::verify`] and [`Backups::restore`] work.
    ///
    /// Errors: [`Error::Busy`] when the directory is already open; those of the file system.
    pub fn open(dir: impl AsRef<Path>) -> Result<Backups> {
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        Backups::open_in(&fs, dir)
    }

    /// Opens the directory on any file system, as [`Backups::open`] does. The stores must be on the
    /// same file system object.
    pub fn open_in(fs: &Arc<dyn Fs>, dir: impl AsRef<Path>) -> Result<Backups> {
        let dir = dir.as_ref().to_owned();
        if !fs.exists(&dir)? {
            fs.create_dir_all_durably(&dir)?;
        }
        // An existing lock file is opened for reading only, so that backups on read-only media can
        // be listed and restored.
        let lock = match fs.open(&dir.join(LOCK_NAME), OpenOptions::read()) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs.open(&dir.join(LOCK_NAME), OpenOptions::create())?
            }
            lock => lock?,
        };
        lock.try_lock().map_err(|error| match error.kind() {
            ErrorKind::Busy => {
                Error::Busy { what: format!("the backups in {} are already open", dir.display()) }
            }
            _ => error.into(),
        })?;
        Ok(Backups { fs: Arc::clone(fs), dir, turns: RwLock::new(()), _lock: lock })
    }

    /// Backs up the current state of the store, as [`Db::checkpoint`] would. The backup is durable
    /// when this returns; the store may be written to meanwhile.
    ///
    /// Costs a copy of the files that no earlier backup has. Their checksums are verified during
    /// the copy.
    ///
    /// Errors: [`Error::Corruption`] of a damaged file of the store; those of the file system.
    /// Earlier backups are not affected.
    pub fn create(&self, db: &Db) -> Result<BackupInfo> {
        let inner = &db.core.inner;
        let _turn = write(&self.turns);
        self.remove_unfinished()?;
        let capture = inner.capture();
        let edit = inner.materialize(&capture, &self.dir)?;
        let mut copied_bytes = 0;
        for file in files_of(&edit) {
            let to = shared_path(&self.dir, file.name, file.content);
            let written = file.name.path(&self.dir);
            if self.fs.exists(&written)? {
                self.fs.rename(&written, &to)?;
            } else if !self.fs.exists(&to)? {
                copy(&self.fs, &file.name.path(&inner.path), &written, file.content)?;
                // ORDER: the file gets its name only when its content is durable.
                self.fs.rename(&written, &to)?;
            } else {
                continue;
            }
            copied_bytes += file.content.bytes;
        }
        debug_assert!(
            copied_bytes <= files_of(&edit).iter().map(|file| file.content.bytes).sum::<u64>(),
            "{copied_bytes} bytes were copied, more than the backup has"
        );
        // ORDER: the files' names are durable before the record that refers to them.
        self.fs.sync_dir(&self.dir)?;
        let last = self.numbers()?.last().map_or(0, |(id, _)| *id);
        let id = last.checked_add(1).ok_or_else(|| {
            Error::invalid(format!(
                "{} holds backup {last}, after which there is no number",
                self.dir.display()
            ))
        })?;
        let created_secs = inner.clock.wall().as_secs();
        let record = Record { id, created_secs, store_id: inner.versions.store_id(), copied_bytes, edit };
        let (path, bytes) = (backup_path(&self.dir, id), record.encode());
        ensure!(backup_number(&path) == Some(id), "backup {id} would not be found as {}", path.display());
        ensure!(Record::decode(&bytes, &path)? == record, "the record of backup {id} would not be read back");
        let file = AtomicFile::create(&self.fs, &path)?;
        file.file().write_all_at(&bytes, 0)?;
        file.commit()?;
        Ok(info(&record))
    }

    /// Returns the backups, oldest first. Backups with a damaged record are left out;
    /// [`Backups::verify`] reports them.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        let _turn = read(&self.turns);
        let mut all = Vec::new();
        for (id, _) in self.numbers()? {
            match self.record(id) {
                Ok(record) => all.push(info(&record)),
                Err(Error::Corruption { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        debug_assert!(all.is_sorted_by(|a, b| a.id < b.id), "backups are listed from the oldest on");
        Ok(all)
    }

    /// Reads all files of all backups and returns those that are damaged or missing.
    ///
    /// Errors: only when the directory cannot be read.
    pub fn verify(&self) -> Result<Vec<Damage>> {
        let _turn = read(&self.turns);
        let mut damage = Vec::new();
        let mut wanted = std::collections::BTreeMap::new();
        for (id, path) in self.numbers()? {
            match self.record(id) {
                Ok(record) => wanted.extend(
                    files_of(&record.edit)
                        .into_iter()
                        .map(|file| (shared_path(&self.dir, file.name, file.content), file.content)),
                ),
                Err(error) => damage.push(Damage { file: path, error }),
            }
        }
        for (file, content) in wanted {
            let found = Content::of(&*self.fs, &file).and_then(|found| content.check(found, &file));
            damage.extend(found.err().map(|error| Damage { file, error }));
        }
        Ok(damage)
    }

    /// Removes a backup, damaged or not, and the files that no other backup refers to.
    ///
    /// Errors: [`Error::NotFound`] without such a backup; [`Error::Corruption`] when the record of
    /// another backup is damaged. In that case the backup is removed but its files are kept,
    /// because the damaged backup may need them.
    pub fn delete(&self, id: u64) -> Result<()> {
        let _turn = write(&self.turns);
        self.delete_all(&[id])
    }

    /// Removes all backups but the newest `keep`, and returns the numbers of the removed ones.
    ///
    /// Errors: as [`Backups::delete`].
    pub fn purge(&self, keep: usize) -> Result<Vec<u64>> {
        let _turn = write(&self.turns);
        let numbers = self.numbers()?;
        let old = numbers.len().saturating_sub(keep);
        let old: Vec<u64> = numbers.iter().take(old).map(|(id, _)| *id).collect();
        let (left, all) = (numbers.len() - old.len(), numbers.len());
        ensure!(left == all.min(keep), "{left} of {all} backups would be left, expected at least {keep}");
        self.delete_all(&old)?;
        Ok(old)
    }

    fn delete_all(&self, ids: &[u64]) -> Result<()> {
        debug_assert!(ids.is_sorted_by(|a, b| a < b), "a backup is deleted once: {ids:?}");
        for &id in ids {
            let path = backup_path(&self.dir, id);
            if !self.fs.exists(&path)? {
                return Err(self.no_backup(id));
            }
            self.fs.remove(&path)?;
        }
        // ORDER: the removal of the record is durable before any file of the backup is removed.
        self.fs.sync_dir(&self.dir)?;
        self.remove_unneeded()
    }

    fn no_backup(&self, id: u64) -> Error {
        Error::NotFound { what: format!("there is no backup {id} in {}", self.dir.display()) }
    }

    /// Returns the numbers and paths of the backups, ascending.
    fn numbers(&self) -> Result<Vec<(u64, PathBuf)>> {
        let paths = self.fs.read_dir(&self.dir)?.into_iter();
        let mut all: Vec<_> = paths.filter_map(|path| Some((backup_number(&path)?, path))).collect();
        all.sort_unstable();
        debug_assert!(all.is_sorted_by(|a, b| a.0 < b.0), "a number has one canonical name");
        Ok(all)
    }

    fn record(&self, id: u64) -> Result<Record> {
        let path = backup_path(&self.dir, id);
        let file = match self.fs.open(&path, OpenOptions::read()) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.no_backup(id)),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let record = Record::decode(&bytes, &path)?;
        if record.id != id {
            return Err(Error::corruption(&path, 16, format!("it is backup {}, expected {id}", record.id)));
        }
        Ok(record)
    }
}

impl Backups {
    /// Removes partly written files that a crash left behind. They still have the names they have
    /// in a store.
    fn remove_unfinished(&self) -> Result<()> {
        for path in self.fs.read_dir(&self.dir)? {
            if matches!(FileName::parse(&path), Some(FileName::Table(_) | FileName::Blob(_))) {
                self.fs.remove(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the files that no backup refers to.
    fn remove_unneeded(&self) -> Result<()> {
        let mut needed = BTreeSet::new();
        for (id, _) in self.numbers()? {
            let record = self.record(id)?;
            needed.extend(
                files_of(&record.edit).iter().map(|file| shared_path(&self.dir, file.name, file.content)),
            );
        }
        for path in self.fs.read_dir(&self.dir)? {
            if is_shared(&path) && !needed.contains(&path) {
                self.fs.remove(&path)?;
            }
        }
        Ok(())
    }
}

fn info(record: &Record) -> BackupInfo {
    let files = files_of(&record.edit);
    BackupInfo {
        id: record.id,
        created: Duration::from_secs(record.created_secs),
        store_id: record.store_id,
        last_seqno: record.edit.last_seqno.unwrap_or(0),
        files: files.len(),
        bytes: files.iter().map(|file| file.content.bytes).sum(),
        copied_bytes: record.copied_bytes,
    }
}
