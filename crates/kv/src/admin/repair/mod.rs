//! Making a store that does not open open again, with all of it that can be read.
//!
//! ```text
//!  lock ─► plan: which table belongs where ─► log ─► more tables ─► damaged files to lost/ ─► manifest ─► log removed
//!           │ manifest sound: as it says, without what is damaged
//!           └ manifest lost: by what the tables say of themselves
//! ```
//!
//! Nothing is changed before the new tables are durable, and the manifest is replaced in one step;
//! a repair that a crash interrupts is done again.

mod blobs;
mod log;
mod merge;
mod plan;

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, ErrorKind, Fs, Rng, StdFs, SystemClock, SystemRng};
use cairn_wal::{Known, Lsn};

use super::backup::Damage;
use super::counted;
use crate::db::open::take_lock;
use crate::file::FileNumber;
use crate::options::KeyspaceOptions;
use crate::version::{FileName, VersionEdit, VersionSet};
use crate::{Error, Result};

/// Where what is damaged goes, beneath the store's directory.
const LOST: &str = "lost";

/// How to repair.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// The file system. Default: the machine's.
    pub fs: Arc<dyn Fs>,
    /// Options of keyspaces by name, `default` among them: needed when the manifest is lost, for
    /// those with a TTL or a merge operator. Default: none.
    pub keyspaces: Vec<(String, KeyspaceOptions)>,
}

impl Default for RepairOptions {
    fn default() -> Self {
        RepairOptions { fs: Arc::new(StdFs::new()), keyspaces: Vec::new() }
    }
}

impl RepairOptions {
    fn keyspace(&self, name: &str) -> KeyspaceOptions {
        let found = self.keyspaces.iter().find(|(other, _)| other == name);
        found.map_or_else(KeyspaceOptions::default, |(_, options)| options.clone())
    }
}

/// What a repair found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// True when the manifest could not be read, and was made anew from the tables.
    pub is_rebuilt: bool,
    /// Tables that the store has now.
    pub tables: usize,
    /// Entries in them.
    pub entries: u64,
    /// Records of the log that were in no table and now are.
    pub log_records: u64,
    /// Entries that went with their values, which were in blob files.
    pub lost_values: u64,
    /// All that was damaged or missing: what it held is lost, but for what the log still had and
    /// what could be read of blob files.
    pub damage: Vec<Damage>,
    /// Files that were set aside, where they are now.
    pub set_aside: Vec<PathBuf>,
    /// What had to be assumed, in words.
    pub assumptions: Vec<String>,
}

impl std::fmt::Display for RepairReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let from = if self.is_rebuilt { "rebuilt from its tables" } else { "repaired" };
        let tables = counted(self.tables as u64, "table", "tables");
        let entries = counted(self.entries, "entry", "entries");
        let records = counted(self.log_records, "record", "records");
        write!(f, "{from}: {tables} with {entries}, {records} of the log")?;
        if self.lost_values > 0 {
            write!(f, "\nlost: {}", counted(self.lost_values, "value", "values"))?;
        }
        self.damage.iter().try_for_each(|damage| write!(f, "\ndamaged: {damage}"))?;
        self.set_aside.iter().try_for_each(|path| write!(f, "\nset aside: {}", path.display()))?;
        self.assumptions.iter().try_for_each(|what| write!(f, "\nassumed: {what}"))
    }
}

/// Who needs a file that is to be set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needed {
    ByNobody,
    /// Until the new state is durable, for a repair that begins again: its manifest, and values
    /// that were moved.
    ByOldState,
}

impl Needed {
    fn of(path: &Path) -> Needed {
        match FileName::parse(path) {
            Some(FileName::Manifest(_) | FileName::Blob(_)) => Needed::ByOldState,
            _ => Needed::ByNobody,
        }
    }
}

/// A repair under way.
struct Repair<'a> {
    fs: Arc<dyn Fs>,
    dir: &'a Path,
    options: &'a RepairOptions,
    report: RepairReport,
    /// Numbers for new files.
    next_file: FileNumber,
    /// Files to be set aside.
    lost: Vec<PathBuf>,
    /// The time, in seconds since the Unix epoch: the age of what does not say its own.
    now_secs: u64,
}

/// Makes a store that does not open any more, or that [`crate::verify`] finds damaged, open again
/// with what can be read.
///
/// Tables are read whole; damaged ones are set aside in `lost/` beneath the directory. The log is
/// salvaged: records behind a damaged place are kept, so what comes out may have holes. When the
/// manifest is lost, too, the state is put together from the tables, whose entries say in which
/// order they were written. Then keys that were deleted long ago can come back, from tables that
/// were about to be removed.
///
/// What can be read of a damaged blob file moves to a new one. Keys whose values cannot be read, or
/// were in a blob file that is missing, are not there afterwards; [`RepairReport::lost_values`]
/// says how many.
///
/// Take a copy of the directory before. Costs reading everything, and writing all of it when the
/// manifest is lost.
///
/// Errors: [`Error::Busy`] when a process has the store open, [`Error::NotFound`] when there is
/// nothing of a store, [`Error::Unsupported`] for a file of a later version, those of the file
/// system. What cannot be read because the disk fails is not taken for damage: copy the files that
/// can be read to another disk, and repair it there. After an error all that the repair needs is
/// there still: repair again.
///
/// ```no_run
/// let report = cairn_kv::repair("/var/lib/broken", &cairn_kv::RepairOptions::default())?;
/// println!("{report}");
/// # Ok::<(), cairn_kv::Error>(())
/// ```
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport> {
    let (fs, dir) = (Arc::clone(&options.fs), path.as_ref());
    let is_ours = |path: &PathBuf| FileName::parse(path).is_some() || cairn_wal::is_log_file(path);
    if !fs.exists(dir)? || !fs.read_dir(dir)?.iter().any(is_ours) {
        return Err(Error::NotFound { what: format!("there is no store in {}", dir.display()) });
    }
    let _lock = take_lock(&fs, dir)?;
    let names = fs.read_dir(dir)?;
    let numbers = names.iter().filter_map(|path| FileName::parse(path)?.number());
    // A number that no file of a store can have is some other file's.
    let highest = numbers.filter(|number| *number < 1 << 61).max().unwrap_or(0);
    let report = RepairReport::default();
    let (next_file, now_secs) = (highest + 1, SystemClock::new().wall().as_secs());
    let mut repair = Repair { fs, dir, options, report, next_file, lost: Vec::new(), now_secs };
    repair.run()?;
    Ok(repair.report)
}

impl Repair<'_> {
    fn run(&mut self) -> Result<()> {
        let old = VersionSet::open_read_only(&self.fs, self.dir);
        let (store_id, known, mut plan) = match old {
            Ok(set) => (set.store_id(), set.log(), self.plan_by_manifest(&set)?),
            Err(error) => {
                self.found(FileName::Current.path(self.dir), error)?;
                self.report.is_rebuilt = true;
                self.set_manifests_aside()?;
                let mut rng = SystemRng::new()
                    .map_err(|error| Error::invalid(format!("the system gave no random numbers: {error}")))?;
                (rng.next_u64(), None, self.plan_by_tables()?)
            }
        };
        let log_end = self.salvage_log(&mut plan, known)?;
        // ORDER: new tables and their names before the manifest.
        self.fs.sync_dir(self.dir)?;
        self.set_aside(Needed::ByNobody)?;
        let mut edit = plan.edit(self.next_file);
        // Until it is removed: what it had reached is in tables.
        edit.log = known.map(|known| Known { log_id: known.log_id, ..Known::default() });
        let added = || edit.keyspaces.values().flat_map(|change| &change.added);
        self.report.tables = added().count();
        self.report.entries = added().map(|new| new.meta.entries).sum();
        for change in edit.keyspaces.values_mut() {
            change.log_start = Some(log_end.get());
        }
        VersionSet::found(&self.fs, self.dir, store_id, &edit)?;
        self.set_aside(Needed::ByOldState)?;
        self.remove_log(store_id, &mut edit)
    }

    /// A new table's number.
    fn number(&mut self) -> FileNumber {
        let number = self.next_file;
        self.next_file += 1;
        number
    }

    /// Something is damaged, or gone. Errors: what is no damage. A later version's file is sound,
    /// and a failing disk is not repaired by writing to it.
    fn found(&mut self, file: PathBuf, error: Error) -> Result<()> {
        match error {
            Error::Unsupported { .. } => Err(error),
            Error::Vfs(_) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => {
                self.report.damage.push(Damage { file, error });
                Ok(())
            }
        }
    }

    /// What cannot be read as a manifest any more is kept, for whoever can.
    fn set_manifests_aside(&mut self) -> Result<()> {
        for path in self.fs.read_dir(self.dir)? {
            if matches!(FileName::parse(&path), Some(FileName::Manifest(_))) {
                self.lost.push(path);
            }
        }
        Ok(())
    }

    /// Moves lost files to their place; `needed` says which.
    fn set_aside(&mut self, needed: Needed) -> Result<()> {
        let (now, later) =
            std::mem::take(&mut self.lost).into_iter().partition(|path| Needed::of(path) == needed);
        self.lost = later;
        let now: Vec<PathBuf> = now;
        if now.is_empty() {
            return Ok(());
        }
        let lost = self.dir.join(LOST);
        self.fs.create_dir_all(&lost)?;
        for path in now {
            let Some(name) = path.file_name() else { continue };
            let to = lost.join(name);
            self.fs.rename(&path, &to)?;
            self.report.set_aside.push(to);
        }
        self.fs.sync_dir(&lost)?;
        Ok(self.fs.sync_dir(self.dir)?)
    }

    /// The log is in tables now. A store without log begins one; until it is gone, the manifest
    /// says to read none of it.
    fn remove_log(&mut self, store_id: u64, edit: &mut VersionEdit) -> Result<()> {
        let paths = self.fs.read_dir(self.dir)?;
        let files: Vec<PathBuf> = paths.into_iter().filter(|path| cairn_wal::is_log_file(path)).collect();
        if !files.is_empty() {
            // What is wrong with the log as a whole may be wrong in any of its files.
            let is_damaged = |path: &PathBuf| {
                self.report.damage.iter().any(|damage| damage.file == *path || damage.file == self.dir)
            };
            let (damaged, sound): (Vec<_>, Vec<_>) = files.into_iter().partition(is_damaged);
            for path in sound {
                self.fs.remove(&path)?;
            }
            self.lost.extend(damaged);
            self.set_aside(Needed::ByNobody)?;
            self.fs.sync_dir(self.dir)?;
        }
        for change in edit.keyspaces.values_mut() {
            change.log_start = Some(Lsn::ZERO.get());
        }
        edit.log = Some(Known::default());
        VersionSet::found(&self.fs, self.dir, store_id, edit)?;
        Ok(())
    }
}
