//! Checks that the files of a store belong together.
//!
//! Each file records something about the others. A file that is missing, outdated, truncated or of
//! another store is therefore noticed before the store writes or removes anything because of it:
//!
//! ```text
//!  CURRENT ── number, store ──► manifest ── length, checksum in the footer ──► tables, blob files
//!                                  │  ▲
//!              id, position, salt  ▼  │  number, position
//!                                  log
//! ```
//!
//! The manifest records how far the log is on stable storage: with each edit, at the first `Sync`
//! write in each segment, and when the store is closed. The log records how far the manifest has
//! got: in the header of each segment, in a note after each flush, ingestion and change of
//! keyspaces, and in the mark at its end.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{lock, read};
use cairn_vfs::{ErrorKind, Fs};
use cairn_wal::{Known, Log, Lsn, Recovery, RecoveryOptions};

use crate::db::inner::{Commit, Inner};
use crate::version::{KeyspaceId, Position, Version, VersionEdit, VersionSet};
use crate::{Error, Result};

/// Checks the files of the store in `dir` against one another without writing anything. Returns the
/// identity of the store's log: `new_log` if it has no log yet, and `None` for a store of an
/// earlier version, which does not record it.
///
/// Cost: reads the manifest, the length of each table and blob file, and the log, which replay then
/// reads a second time.
///
/// Errors: [`Error::Corruption`] naming the file that is missing or does not belong to the others.
pub(crate) fn check(fs: &Arc<dyn Fs>, dir: &Path, new_log: Known) -> Result<Option<Known>> {
    let set = VersionSet::open_read_only(fs, dir)?;
    check_files(fs, dir, &set)?;
    let log = set.log().map(|log| if log.log_id == 0 { new_log } else { log });
    let recovery = Recovery::open(fs, dir, set.log_start(), &log_options(log))?;
    check_note(&set, recovery.finish()?.note())?;
    debug_assert!(log.is_none_or(|log| log.log_id != 0), "every log would pass for one without an id");
    Ok(log)
}

/// Returns the options for reading the log, given the manifest's record of it. If the store needs
/// the log from its beginning, no segment was ever released, and a missing one counts as lost.
pub(crate) fn log_options(known: Option<Known>) -> RecoveryOptions {
    let options = RecoveryOptions::default().nothing_released(true);
    match known {
        Some(known) => options.known(known),
        None => options,
    }
}

/// Checks the manifest that `set` has read against `note`, the manifest position noted in the log.
/// Errors: [`Error::Corruption`] if the manifest is older.
pub(crate) fn check_note(set: &VersionSet, note: [u64; 2]) -> Result<()> {
    let [number, end] = note;
    set.check_reached(Position { number, end })
}

/// Checks that the store's files exist in their recorded length. Errors: [`Error::Corruption`] if a
/// file is missing or has another length.
fn check_files(fs: &Arc<dyn Fs>, dir: &Path, set: &VersionSet) -> Result<()> {
    if let Some(name) = set.stray_files()?.missing.first() {
        return Err(missing(&name.path(dir)));
    }
    for (name, expected) in set.lengths() {
        let path = name.path(dir);
        let found = match fs.metadata(&path) {
            Ok(metadata) => metadata.len,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing(&path)),
            Err(error) => return Err(error.into()),
        };
        if found != expected {
            let what = format!("it has {found} bytes, expected {expected}");
            return Err(Error::corruption(&path, found.min(expected), what));
        }
    }
    Ok(())
}

/// Returns the error for a missing file to which the manifest refers.
fn missing(path: &Path) -> Error {
    Error::corruption(path, 0, "it is missing, but the manifest refers to it")
}

impl Inner {
    /// Like [`VersionSet::log_and_apply`], but adds the current state of the log to the edit.
    /// Afterwards the log carries the new position of the manifest.
    pub(crate) fn log_and_apply(
        &self,
        mut edit: VersionEdit,
        install: impl FnMut(KeyspaceId, &Arc<Version>),
    ) -> Result<()> {
        debug_assert!(edit.log.is_none(), "the state of the log is known here, not to the caller");
        let known = self.log.get().map(Log::known);
        edit.log = known.filter(|known| known.reached.get() > self.recorded.load(Relaxed));
        self.versions.log_and_apply(edit, install)?;
        if let Some(known) = known {
            self.recorded.fetch_max(known.reached.get(), Relaxed);
        }
        self.set_note();
        Ok(())
    }

    /// Sets the position of the manifest as the note that the log carries.
    fn set_note(&self) {
        if let Some(log) = self.log.get() {
            let Position { number, end } = self.versions.position();
            log.set_note([number, end]);
        }
    }

    /// Appends the position of the manifest to the log. Called after edits that replay of the log
    /// cannot reproduce, so that a manifest from before such an edit is detected.
    pub(crate) fn note_edit(&self, commit: &mut Commit) {
        let before = commit.position();
        let Some(appender) = &mut commit.appender else { return };
        // Without the note, at most a check is lost that may never be needed. A failed log reports
        // its failure to the next writer.
        if let Ok(end) = appender.note() {
            debug_assert!(commit.noted.1 <= before, "notes end at {}, the log at {before}", commit.noted.1);
            debug_assert!(before < end, "a note that ends at {end} takes no space after {before}");
            let begin = if commit.noted.1 == before { commit.noted.0 } else { before };
            debug_assert!(begin <= before, "the run of notes begins at {begin}, after {before}");
            commit.noted = (begin, end);
        }
    }

    /// Returns the position from which the log is needed, given that no keyspace needs it before
    /// `needed`. If only notes follow `needed`, advances the start of all keyspaces in the manifest
    /// past them: the header of each new segment repeats their content.
    pub(crate) fn skip_notes(&self, needed: Lsn) -> Lsn {
        // Held until the end, so that no keyspace is dropped meanwhile.
        let _structure = read(&self.structure);
        let (begin, end) = {
            let commit = lock(&self.commit);
            if commit.noted.1 == commit.position() { commit.noted } else { (Lsn::ZERO, Lsn::ZERO) }
        };
        debug_assert!(begin <= end, "notes from {begin} to {end}");
        if !(begin <= needed && needed < end) {
            return needed;
        }
        let mut edit = VersionEdit::default();
        for keyspace in self.all_keyspaces() {
            edit.keyspace(keyspace.id).log_start = Some(end.get());
        }
        // A failed write is retried at the next call.
        self.log_and_apply(edit, |_, _| {}).map_or(needed, |()| end)
    }

    /// Records in the manifest the log segment that contains `synced`, a position on stable
    /// storage. Without this record, the loss of the segment would go unnoticed. Done once per
    /// segment, before a `Sync` write is acknowledged.
    #[inline]
    pub(crate) fn record_segment(&self, synced: Lsn) -> Result<()> {
        let recorded = Lsn::from(self.recorded.load(Relaxed));
        if synced.segment() <= recorded.segment() { Ok(()) } else { self.record_log(synced) }
    }

    #[cold]
    fn record_log(&self, synced: Lsn) -> Result<()> {
        // One thread records the segment for all that wait here.
        let _turn = lock(&self.recording);
        if synced.segment() <= Lsn::from(self.recorded.load(Relaxed)).segment() {
            return Ok(());
        }
        debug_assert!(
            self.log.get().is_some_and(|log| log.synced() >= synced),
            "position {synced} is recorded as durable, but it is not"
        );
        match self.log_and_apply(VersionEdit::default(), |_, _| {}) {
            // The write is durable nevertheless, and the next write tries again.
            Err(error) if error.is_full() && self.versions.check().is_ok() => Ok(()),
            recorded => recorded.map_err(|error| self.poison(error)),
        }
    }

    /// Writes the last edit of a store that is being closed, which records the end of its log.
    pub(crate) fn record_end(&self) {
        let is_news = self.log.get().is_some_and(|log| log.synced().get() > self.recorded.load(Relaxed));
        if is_news && !self.failed.load(SeqCst) {
            // A failure leaves the same state as a crash.
            let _ = self.log_and_apply(VersionEdit::default(), |_, _| {});
        }
    }
}
