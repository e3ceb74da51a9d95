//! Verification of a whole store, which trusts none of its files.

mod files;
mod levels;
mod log;

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, StdFs};

pub(super) use self::files::{check_blob, check_table};
use super::backup::Damage;
use super::counted;
use crate::db::Db;
use crate::db::tables::Tables;
use crate::open_files::OpenFiles;
use crate::options::Options;
use crate::version::{FileName, KeyspaceId, Version, VersionSet};
use crate::{Error, Result};

/// The result of a verification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of tables read.
    pub tables: usize,
    /// Number of entries in them, including range tombstones.
    pub entries: u64,
    /// Number of blob files read.
    pub blobs: usize,
    /// Bytes of tables and blob files.
    pub bytes: u64,
    /// Number of log records read.
    pub log_records: u64,
    /// All damage that was found.
    pub damage: Vec<Damage>,
    /// Tables and blob files that nothing refers to. They are not damage: running jobs write such
    /// files, readers keep some alive, and a crash leaves some for the next open to delete.
    pub strays: Vec<PathBuf>,
}

impl VerifyReport {
    /// True when there is no damage.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }

    fn add(&mut self, file: PathBuf, error: Error) {
        self.damage.push(Damage { file, error });
    }
}

impl std::fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let VerifyReport { tables, entries, blobs, bytes, log_records, damage, strays } = self;
        let tables = counted(*tables as u64, "table", "tables");
        let entries = counted(*entries, "entry", "entries");
        let blobs = counted(*blobs as u64, "blob file", "blob files");
        let records = counted(*log_records, "record", "records");
        writeln!(f, "{tables} with {entries}, {blobs}, {bytes} bytes, {records} of the log")?;
        for stray in strays {
            writeln!(f, "stray: {}", stray.display())?;
        }
        for damage in damage {
            writeln!(f, "damaged: {damage}")?;
        }
        write!(f, "{}", if damage.is_empty() { "sound" } else { "damaged" })
    }
}

/// A keyspace to verify.
struct Subject {
    name: String,
    version: Arc<Version>,
}

impl Db {
    /// Reads all files of the store, bypassing the cache, and reports all damage. It checks each
    /// table's and blob file's checksum, the order of entries, filters and counts; that newer
    /// versions of keys come before older ones; the manifest and the log; and that no file is
    /// missing. Reads and writes continue meanwhile.
    ///
    /// Costs reading everything twice.
    ///
    /// Errors: only when the directory cannot be read. Damage is in the report.
    ///
    /// ```
    /// # fn main() -> cairn_kv::Result<()> {
    /// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
    /// let db = cairn_kv::Db::builder("/store").fs(fs).open()?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// let report = db.verify()?;
    /// assert!(report.is_sound(), "{report}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn verify(&self) -> Result<VerifyReport> {
        let inner = &self.core.inner;
        let mut report = VerifyReport::default();
        // The versions are held, so their files are not deleted.
        let subjects: Vec<Subject> = inner
            .all_keyspaces()
            .iter()
            .map(|keyspace| Subject {
                name: keyspace.name.clone(),
                version: Arc::clone(&keyspace.view.load().version),
            })
            .collect();
        report.files(&inner.fs, &inner.path, &subjects);
        report.levels(&inner.tables, &subjects);
        if let Some(set) = report.manifest(&inner.fs, &inner.path) {
            report.log(&inner.fs, &inner.path);
            report.strays = strays(&set, &subjects)?;
        }
        Ok(report)
    }
}

/// Verifies a store as [`Db::verify`] does, even if it does not open. Writes nothing and takes no
/// lock. To verify a store that is being written to, use its handle: here, files that its writer
/// deletes meanwhile look missing.
///
/// Errors: [`Error::NotFound`] when there is no store; when the directory cannot be read.
pub fn verify(path: impl AsRef<Path>) -> Result<VerifyReport> {
    verify_in(&(Arc::new(StdFs::new()) as Arc<dyn Fs>), path)
}

/// Verifies a store on any file system, as [`verify()`] does.
pub fn verify_in(fs: &Arc<dyn Fs>, path: impl AsRef<Path>) -> Result<VerifyReport> {
    let path = path.as_ref();
    if !fs.exists(path)? || fs.read_dir(path)?.iter().all(|path| FileName::parse(path).is_none()) {
        return Err(Error::NotFound { what: format!("there is no store in {}", path.display()) });
    }
    let mut report = VerifyReport::default();
    let Some(set) = report.manifest(fs, path) else {
        report.tables_alone(fs, path)?;
        return Ok(report);
    };
    let subjects: Vec<Subject> = set.keyspaces().into_iter().map(subject).collect();
    report.files(fs, path, &subjects);
    let options = Options { cache_bytes: 0, ..Options::default() };
    let files = OpenFiles::new(Arc::clone(fs), options.open_files_max, true);
    let tables = Tables::new(files, Arc::new(path.to_owned()), &options);
    report.levels(&Arc::new(tables), &subjects);
    report.log(fs, path);
    report.strays = strays(&set, &subjects)?;
    Ok(report)
}

fn subject((_, state): (KeyspaceId, crate::version::KeyspaceState)) -> Subject {
    Subject { name: state.name, version: state.version }
}

/// Returns tables and blob files that neither the manifest nor the subjects refer to.
fn strays(set: &VersionSet, subjects: &[Subject]) -> Result<Vec<PathBuf>> {
    let is_held = |name: FileName| {
        subjects.iter().any(|subject| match name {
            FileName::Table(number) => subject.version.tables().any(|(_, table)| table.number() == number),
            FileName::Blob(number) => subject.version.blob(number).is_some(),
            _ => true,
        })
    };
    let mut strays = set.stray_files()?.unreferenced;
    strays.retain(|path| FileName::parse(path).is_some_and(|name| !is_held(name)));
    Ok(strays)
}
