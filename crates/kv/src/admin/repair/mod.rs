//! Repair: makes a damaged store open again, with all data that can be read.
//!
//! ```text
//!  lock ─► plan: places ─► log ─► more tables ─► damaged to lost/ ─► manifest ─► remove log
//!           │ manifest sound: as it says, without damaged files
//!           └ manifest lost: from the tables' own properties
//! ```
//!
//! Nothing is changed before the new tables are durable, and the manifest is replaced in one step.
//! A repair that a crash interrupts can be repeated.

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

/// The directory for damaged files, within the store's directory.
const LOST: &str = "lost";

/// Options of [`repair()`].
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// The file system. Default: the machine's.
    pub fs: Arc<dyn Fs>,
    /// Options of keyspaces by name, including `default`. Needed only for keyspaces with a TTL or a
    /// merge operator, and only when the manifest is lost. Default: none.
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

/// The result of a repair.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// True when the manifest could not be read and was rebuilt from the tables.
    pub is_rebuilt: bool,
    /// Number of tables in the repaired store.
    pub tables: usize,
    /// Number of entries in these tables.
    pub entries: u64,
    /// Number of log records that were not in any table and now are.
    pub log_records: u64,
    /// Number of entries removed because their values, in blob files, could not be read.
    pub lost_values: u64,
    /// The damaged or missing files. Their content is lost, except for entries that the log still
    /// had and values that could be read from blob files.
    pub damage: Vec<Damage>,
    /// The files that were set aside, with their new paths.
    pub set_aside: Vec<PathBuf>,
    /// The assumptions that the repair had to make, in words.
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

/// Tells whether a file that is to be set aside is still needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needed {
    ByNobody,
    /// The old state is needed until the new one is durable, in case the repair has to start over:
    /// its manifest, and blob files whose values were moved.
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

/// A repair in progress.
struct Repair<'a> {
    fs: Arc<dyn Fs>,
    dir: &'a Path,
    options: &'a RepairOptions,
    report: RepairReport,
    /// The number of the next new file.
    next_file: FileNumber,
    /// Files to set aside.
    lost: Vec<PathBuf>,
    /// The time in seconds since the Unix epoch, used as the age of tables that do not record their
    /// own.
    now_secs: u64,
}

/// Repairs a store that no longer opens, or that [`crate::verify`] finds damaged: it opens again
/// with all data that can be read.
///
/// Tables are read completely; damaged ones are set aside in `lost/` within the directory. The log
/// is salvaged: records after a damaged place are kept, so the recovered writes may have gaps. When
/// the manifest is lost too, the state is rebuilt from the tables, whose sequence numbers tell in
/// which order they were written. In that case keys deleted long ago can come back, from tables
/// that were about to be removed.
///
/// Values that can be read from a damaged blob file move to a new one. Keys whose values cannot be
/// read, or were in a missing blob file, are removed; [`RepairReport::lost_values`] counts them.
///
/// Copy the directory before repairing. Costs reading everything, and writing everything when the
/// manifest is lost.
///
/// Errors: [`Error::Busy`] when a process has the store open, [`Error::NotFound`] when no files of
/// a store exist, [`Error::Unsupported`] for a file of a later version, those of the file system. A
/// read error of the disk does not count as damage: copy the files that can be read to another
/// disk, and repair the store there. After an error all files that the repair needs still exist,
/// and it can be repeated.
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
    // No file of a store can have a higher number; such a name belongs to some other file.
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
                let mut rng = SystemRng::new().map_err(|error| {
                    Error::invalid(format!("cannot get random numbers from the system: {error}"))
                })?;
                (rng.next_u64(), None, self.plan_by_tables()?)
            }
        };
        debug_assert_eq!(
            plan.is_open_ended, self.report.is_rebuilt,
            "without a manifest, keyspaces are made as tables and records name them"
        );
        let log_end = self.salvage_log(&mut plan, known)?;
        // ORDER: new tables and their names are durable before the manifest.
        self.fs.sync_dir(self.dir)?;
        self.set_aside(Needed::ByNobody)?;
        let mut edit = plan.edit(self.next_file);
        // The log's id is kept until the log is removed. Its durable end is not: its records are in
        // tables.
        edit.log = known.map(|known| Known { log_id: known.log_id, ..Known::default() });
        let added = || edit.keyspaces.values().flat_map(|change| &change.added);
        self.report.tables = added().count();
        self.report.entries = added().map(|new| new.meta.entries).sum();
        for change in edit.keyspaces.values_mut() {
            change.log_start = Some(log_end.get());
        }
        VersionSet::found(&self.fs, self.dir, store_id, &edit)?;
        self.set_aside(Needed::ByOldState)?;
        self.remove_log(store_id, &mut edit)?;
        debug_assert!(self.lost.is_empty(), "damaged files are left in the store: {:?}", self.lost);
        Ok(())
    }

    /// Returns the number for a new table.
    fn number(&mut self) -> FileNumber {
        let number = self.next_file;
        debug_assert!(number < u64::MAX, "file numbers are used up");
        self.next_file += 1;
        number
    }

    /// Reports a damaged or missing file.
    ///
    /// Errors: returns errors that are not damage. A file of a later version is sound, and writing
    /// to a failing disk does not repair it.
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

    /// Sets unreadable manifests aside, for manual inspection.
    fn set_manifests_aside(&mut self) -> Result<()> {
        for path in self.fs.read_dir(self.dir)? {
            if matches!(FileName::parse(&path), Some(FileName::Manifest(_))) {
                self.lost.push(path);
            }
        }
        Ok(())
    }

    /// Moves those lost files to `lost/` that are needed as `needed` says.
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

    /// Removes the log, whose records are in tables now. The store begins a new log when it is
    /// opened. Until the old one is gone, the manifest says that none of it is to be read.
    fn remove_log(&mut self, store_id: u64, edit: &mut VersionEdit) -> Result<()> {
        let paths = self.fs.read_dir(self.dir)?;
        let files: Vec<PathBuf> = paths.into_iter().filter(|path| cairn_wal::is_log_file(path)).collect();
        if !files.is_empty() {
            // Damage to the log as a whole may be in any of its files.
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
