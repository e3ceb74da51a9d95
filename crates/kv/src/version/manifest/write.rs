//! Writing the manifest: appending edits, and beginning a new file when the old one has grown.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{AtomicFile, File, Fs, OpenOptions};

use super::format::{FRAME_BYTES, HEADER_BYTES, Identity, SEAL_BYTES, frame, header, seal};
use crate::file::FileNumber;
use crate::version::current;
use crate::version::names::FileName;
use crate::{Error, Result};

/// Disk space is reserved in steps of this, so that most edits reserve nothing.
const RESERVE_BYTES: u64 = 64 << 10;

/// The manifest in use, open for appending.
#[derive(Debug)]
pub(crate) struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    identity: Identity,
    /// Where the next record goes.
    end: u64,
    /// Space is reserved up to here.
    reserved: u64,
    /// Where the first record, the state at the beginning, ends.
    base: u64,
    /// No rewrite before the file has this length: the last attempt met a full disk.
    retry_at: u64,
    failure: Option<Arc<Error>>,
}

impl Manifest {
    /// Begins manifest `identity` with the state `snapshot` and makes it the one that counts.
    ///
    /// When this fails, the one before may still count or not; both describe the same state.
    pub(crate) fn create(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        identity: Identity,
        snapshot: &[u8],
    ) -> Result<Manifest> {
        let (manifest, current) = Manifest::write_new(fs, dir, identity, snapshot)?;
        current.commit()?;
        Ok(manifest)
    }

    /// The new manifest, durable, and the `CURRENT` that will name it.
    fn write_new(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        identity: Identity,
        snapshot: &[u8],
    ) -> Result<(Manifest, AtomicFile)> {
        let path = FileName::Manifest(identity.number).path(dir);
        check_len(snapshot, &path)?;
        let offset = HEADER_BYTES as u64;
        let mut bytes = header(identity).to_vec();
        bytes.extend(frame(identity, offset, snapshot));
        bytes.extend(seal(identity, bytes.len() as u64));
        let file: Arc<dyn File> = Arc::from(fs.open(&path, OpenOptions::create_new())?);
        file.write_all_at(&bytes, 0)?;
        // ORDER: content, then name, then CURRENT, which must never name a manifest that a crash
        // can take away.
        file.sync_data()?;
        fs.sync_dir(dir)?;
        let current = current::begin(fs, dir, identity.number, identity.store)?;
        let (fs, dir, end) = (Arc::clone(fs), dir.to_owned(), bytes.len() as u64);
        let manifest = Manifest {
            fs,
            dir,
            path,
            file,
            identity,
            end,
            reserved: end,
            base: end,
            retry_at: 0,
            failure: None,
        };
        Ok((manifest, current))
    }

    /// The number in its name.
    pub(crate) fn number(&self) -> FileNumber {
        self.identity.number
    }

    /// Where the next record goes.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// [`Error::Poisoned`] once a write or sync has failed.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { path: self.dir.clone(), cause: Arc::clone(cause) }),
        }
    }

    /// Adds an edit; durable when it returns.
    ///
    /// A full disk is met while space is reserved, before a byte is written: the error then says
    /// so, nothing has happened, and a later call may work. After any other failure all calls are
    /// [`Error::Poisoned`].
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.check()?;
        check_len(payload, &self.path)?;
        let record = frame(self.identity, self.end, payload);
        self.reserve((record.len() + SEAL_BYTES) as u64)?;
        let written = self.file.write_all_at(&record, self.end);
        self.latch(written)?;
        // ORDER: durable before it counts: the caller goes on to delete what the edit removed.
        let synced = self.file.sync_data();
        self.latch(synced)?;
        let sealed_at = self.end + record.len() as u64;
        self.end = sealed_at + SEAL_BYTES as u64;
        // ORDER: after the sync, since it is the proof of it. The edit is durable whatever becomes
        // of the seal, so a failure is for the next call to report.
        let sealed = self.file.write_all_at(&seal(self.identity, sealed_at), sealed_at);
        let _ = self.latch(sealed);
        Ok(())
    }

    /// True when the edits since the beginning take more room than the state did then and than
    /// `bytes`.
    pub(crate) fn has_outgrown(&self, bytes: u64) -> bool {
        self.failure.is_none() && self.end - self.base > bytes.max(self.base) && self.end >= self.retry_at
    }

    /// Begins manifest `number` with the state `snapshot`, goes on there and removes the old one.
    ///
    /// A full disk, and a process with too many files open, leave the old one in use; any other
    /// failure poisons it. Either way nothing is lost: what was appended is durable in the old one
    /// and part of the new one.
    pub(crate) fn rewrite(&mut self, number: FileNumber, snapshot: &[u8]) {
        let identity = Identity { number, ..self.identity };
        match Manifest::write_new(&self.fs, &self.dir, identity, snapshot) {
            Ok((new, current)) => match current.commit() {
                Ok(()) => {
                    let old = std::mem::replace(self, new);
                    // If this fails, the next open finds and removes it.
                    let _ = self.fs.remove(&old.path);
                }
                Err(error) => _ = self.latch::<()>(Err(error)),
            },
            Err(error) if error.can_be_tried_again() => {
                let _ = self.fs.remove(&FileName::Manifest(number).path(&self.dir));
                self.retry_at = self.end + (self.end - self.base) / 2;
            }
            Err(error) => self.failure = Some(Arc::new(error)),
        }
    }

    fn reserve(&mut self, bytes: u64) -> Result<()> {
        let end = self.end + bytes;
        if end <= self.reserved {
            return Ok(());
        }
        // The tail of a step that does not fit any more may still do for this record.
        for target in [end.next_multiple_of(RESERVE_BYTES), end] {
            match self.file.allocate(self.reserved, target - self.reserved) {
                Ok(()) => {
                    self.reserved = target;
                    return Ok(());
                }
                Err(error) if error.is_full() && target > end => {}
                Err(error) if error.is_full() => return Err(error.into()),
                Err(error) => return self.latch(Err(error)),
            }
        }
        Ok(())
    }

    fn latch<T>(&mut self, result: cairn_vfs::Result<T>) -> Result<T> {
        result.map_err(|error| {
            let error = Error::from(error);
            self.failure.get_or_insert_with(|| Arc::new(error.clone()));
            error
        })
    }
}

fn check_len(payload: &[u8], path: &Path) -> Result<()> {
    if u32::try_from(payload.len() + FRAME_BYTES).is_err() {
        let path = path.display();
        return Err(Error::invalid(format!(
            "{path}: an edit of {} bytes, at most 4 GiB are possible",
            payload.len()
        )));
    }
    Ok(())
}
