//! Verification of single files: tables, blob files, the manifest.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs};

use super::{Subject, VerifyReport};
use crate::blob::BlobReader;
use crate::cache::Cache;
use crate::file::{BlobMeta, TableMeta};
use crate::table::{Expected, OpenOptions, Table};
use crate::version::{FileName, VersionSet};
use crate::{Error, Result};

/// How often a manifest is read again that its writer may be replacing.
const ATTEMPTS: usize = 8;

/// Reads a table and compares it with the manifest.
///
/// Errors: [`Error::Corruption`] for every difference, including a missing file.
pub(in crate::admin) fn check_table(fs: &Arc<dyn Fs>, dir: &Path, meta: &TableMeta) -> Result<()> {
    let path = FileName::Table(meta.number).path(dir);
    let number = meta.ingested.map_or(meta.number, |ingested| ingested.number);
    let seqno = meta.ingested.map_or(0, |ingested| ingested.seqno);
    let options = OpenOptions { seqno, expected: Expected::of(meta), ..OpenOptions::default() };
    let table = Table::open(fs, &path, number, &Arc::new(Cache::new(0)), options)
        .map_err(|error| missing(error, &path))?;
    table.verify(Some(meta.checksum))?;
    let found = table.properties();
    let seqnos = if meta.ingested.is_some() { meta.seqnos } else { found.seqnos };
    let is_same = table.bytes() == meta.bytes
        && (&found.smallest, &found.largest) == (&meta.smallest, &meta.largest)
        && seqnos == meta.seqnos
        && found.entries + found.range_tombstones == meta.entries
        && found.deletes + found.range_tombstones == meta.tombstones;
    if is_same {
        Ok(())
    } else {
        Err(Error::corruption(&path, 0, "it is sound, but differs from the manifest"))
    }
}

/// Reads a blob file and compares it with the manifest.
///
/// Errors: as [`check_table`].
pub(in crate::admin) fn check_blob(fs: &dyn Fs, dir: &Path, meta: &BlobMeta) -> Result<()> {
    let path = FileName::Blob(meta.number).path(dir);
    BlobReader::open(fs, dir, meta).map_err(|error| missing(error, &path))?.verify()
}

fn missing(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::corruption(path, 0, "it is missing, but the manifest refers to it"),
        _ => error,
    }
}

impl VerifyReport {
    /// Verifies all files of the subjects.
    pub(super) fn files(&mut self, fs: &Arc<dyn Fs>, dir: &Path, subjects: &[Subject]) {
        for subject in subjects {
            for (_, table) in subject.version.tables() {
                self.tables += 1;
                self.bytes += table.meta.bytes;
                self.entries += table.meta.entries;
                if let Err(error) = check_table(fs, dir, &table.meta) {
                    self.add(FileName::Table(table.number()).path(dir), error);
                }
            }
            for blob in subject.version.blobs() {
                self.blobs += 1;
                self.bytes += blob.file.meta.bytes;
                if let Err(error) = check_blob(&**fs, dir, &blob.file.meta) {
                    self.add(FileName::Blob(blob.file.meta.number).path(dir), error);
                }
            }
        }
    }

    /// Reads the manifest from the disk.
    pub(super) fn manifest(&mut self, fs: &Arc<dyn Fs>, dir: &Path) -> Option<VersionSet> {
        let mut last = None;
        // BOUND: a writer may be in the middle of an edit once or twice, but not every time.
        for _ in 0..ATTEMPTS {
            match VersionSet::open_read_only(fs, dir) {
                Ok(set) => return Some(set),
                Err(error) => last = Some(error),
            }
        }
        if let Some(error) = last {
            let file = match &error {
                Error::Corruption { file, .. } | Error::Unsupported { file, .. } => file.clone(),
                _ => FileName::Current.path(dir),
            };
            let error = match error.kind() {
                ErrorKind::NotFound => VersionSet::no_current(dir),
                _ => error,
            };
            self.add(file, error);
        }
        None
    }

    /// Verifies all tables of a directory whose manifest cannot be read.
    pub(super) fn tables_alone(&mut self, fs: &Arc<dyn Fs>, dir: &Path) -> Result<()> {
        let options = OpenOptions { foreign: true, ..OpenOptions::default() };
        for path in fs.read_dir(dir)? {
            if !matches!(FileName::parse(&path), Some(FileName::Table(_))) {
                continue;
            }
            let read = Table::open(fs, &path, 0, &Arc::new(Cache::new(0)), options)
                .and_then(|table| Ok((table.bytes(), table.verify(None)?.entries)));
            self.tables += 1;
            match read {
                Ok((bytes, entries)) => {
                    (self.bytes, self.entries) = (self.bytes + bytes, self.entries + entries)
                }
                Err(error) => self.add(path, error),
            }
        }
        Ok(())
    }
}
