//! Whether the files of a store belong together.
//!
//! Each knows something of the others, so that one that is missing, older than the rest, cut, or of
//! another store is noticed before anything is written or removed by its word:
//!
//! ```text
//!  CURRENT ── number, store ──► manifest ── length, checksum in the footer ──► tables, blob files
//!                                  │  ▲
//!              id, position, salt  ▼  │  number, position
//!                                  log
//! ```
//!
//! The manifest learns how far the log is on stable storage with each edit, by the first `Sync`
//! write in each segment, and when the store is closed. The log learns how far the manifest is by
//! the header of each segment, by a note behind each flush, ingestion and change of keyspaces, and
//! by the mark at its end.

use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{lock, read};
use cairn_vfs::{ErrorKind, Fs};
use cairn_wal::{Known, Log, Lsn, Recovery};

use crate::db::inner::{Commit, Inner};
use crate::db::recovery::log_options;
use crate::version::{KeyspaceId, Position, Version, VersionEdit, VersionSet};
use crate::{Error, Result};

/// Checks the files of the store in `dir` against one another, writing nothing. Says which log the
/// store has, or will have: `new_log`, where it has none yet; `None` of a store of an earlier
/// version, which does not say.
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
    Ok(log)
}

/// Errors: [`Error::Corruption`] when the manifest of `set`, as it was read, is older than what the
/// log has noted of it.
pub(crate) fn check_note(set: &VersionSet, note: [u64; 2]) -> Result<()> {
    let [number, end] = note;
    set.check_reached(Position { number, end })
}

/// Errors: [`Error::Corruption`] when a file of the store is gone or has another length than it was
/// written with.
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

/// The error of a file that the manifest refers to.
fn missing(path: &Path) -> Error {
    Error::corruption(path, 0, "it is missing, but the manifest refers to it")
}

impl Inner {
    /// [`VersionSet::log_and_apply`], with what is known of the log by now; the log carries from
    /// then on how far the manifest is.
    pub(crate) fn log_and_apply(
        &self,
        mut edit: VersionEdit,
        install: impl FnMut(KeyspaceId, &Arc<Version>),
    ) -> Result<()> {
        let known = self.log.get().map(Log::known);
        edit.log = known.filter(|known| known.reached.get() > self.recorded.load(Relaxed));
        self.versions.log_and_apply(edit, install)?;
        if let Some(known) = known {
            self.recorded.fetch_max(known.reached.get(), Relaxed);
        }
        self.set_note();
        Ok(())
    }

    /// Has the log carry along how far the manifest is.
    fn set_note(&self) {
        if let Some(log) = self.log.get() {
            let Position { number, end } = self.versions.position();
            log.set_note([number, end]);
        }
    }

    /// Writes into the log how far the manifest is: after edits that the log cannot make good,
    /// should the manifest be found as it was before them.
    pub(crate) fn note_edit(&self, commit: &mut Commit) {
        let before = commit.position();
        let Some(appender) = &mut commit.appender else { return };
        // What could not be written costs a check that nobody may ever need. A log that has failed
        // tells the next writer.
        if let Ok(end) = appender.note() {
            let begin = if commit.noted.1 == before { commit.noted.0 } else { before };
            commit.noted = (begin, end);
        }
    }

    /// Where the log is needed from, which is from `needed` on. Where nothing but notes is behind
    /// that, the manifest learns that nobody needs them: the header of each new segment says what
    /// they said.
    pub(crate) fn pass_notes(&self, needed: Lsn) -> Lsn {
        // Until it is done, so that no keyspace is dropped meanwhile.
        let _structure = read(&self.structure);
        let (begin, end) = {
            let commit = lock(&self.commit);
            if commit.noted.1 == commit.position() { commit.noted } else { (Lsn::ZERO, Lsn::ZERO) }
        };
        if !(begin <= needed && needed < end) {
            return needed;
        }
        let mut edit = VersionEdit::default();
        for keyspace in self.all_keyspaces() {
            edit.keyspace(keyspace.id).log_start = Some(end.get());
        }
        // What cannot be written now is the next time.
        self.log_and_apply(edit, |_, _| {}).map_or(needed, |()| end)
    }

    /// Has the manifest know of the segment of the log that `synced`, a position on stable storage,
    /// is in: without this, nobody would miss it. Once a segment, before a write with `Sync` is
    /// acknowledged.
    #[inline]
    pub(crate) fn record_segment(&self, synced: Lsn) -> Result<()> {
        let recorded = Lsn::from(self.recorded.load(Relaxed));
        if synced.segment() <= recorded.segment() { Ok(()) } else { self.record_log(synced) }
    }

    #[cold]
    fn record_log(&self, synced: Lsn) -> Result<()> {
        // One does it, for all who wait here.
        let _turn = lock(&self.recording);
        if synced.segment() <= Lsn::from(self.recorded.load(Relaxed)).segment() {
            return Ok(());
        }
        match self.log_and_apply(VersionEdit::default(), |_, _| {}) {
            // The write is durable all the same, and the next one tries again.
            Err(error) if error.is_full() && self.versions.check().is_ok() => Ok(()),
            recorded => recorded.map_err(|error| self.poison(error)),
        }
    }

    /// The last edit of a store that is being closed: where its log ends.
    pub(crate) fn record_end(&self) {
        let is_news = self.log.get().is_some_and(|log| log.synced().get() > self.recorded.load(Relaxed));
        if is_news && !self.failed.load(SeqCst) {
            // What cannot be written is as after a crash.
            let _ = self.log_and_apply(VersionEdit::default(), |_, _| {});
        }
    }
}
