//! Writing the manifest: appending edits, and beginning a new file when the old one has grown.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{AtomicFile, File, Fs, OpenOptions, ensure};

use super::format::{FRAME_BYTES, HEADER_BYTES, Identity, SEAL_BYTES, frame, header, read_record, seal};
use crate::file::FileNumber;
use crate::version::current;
use crate::version::names::FileName;
use crate::{Error, Result};

/// Disk space is reserved in steps of this size, so that most edits reserve nothing.
const RESERVE_BYTES: u64 = 64 << 10;

/// The valid manifest, open for appending.
#[derive(Debug)]
pub(crate) struct Manifest {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    identity: Identity,
    /// The offset of the next record.
    end: u64,
    /// Space is reserved up to this offset.
    reserved: u64,
    /// The end of the first record, which is the initial state.
    base: u64,
    /// The file is not rewritten before it has this length, because the last attempt failed on a
    /// full disk.
    retry_at: u64,
    failure: Option<Arc<Error>>,
}

impl Manifest {
    /// Begins manifest `identity` with the state `snapshot` and makes it the valid one.
    ///
    /// If this fails, the previous manifest may or may not still be valid; both describe the same
    /// state.
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

    /// Writes the new manifest durably, and prepares the `CURRENT` that will name it.
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
        ensure!(
            read_record(identity, &bytes, HEADER_BYTES) == Some(snapshot),
            "an initial state of {} bytes that would not be read back",
            snapshot.len()
        );
        let file: Arc<dyn File> = Arc::from(fs.open(&path, OpenOptions::create_new())?);
        file.write_all_at(&bytes, 0)?;
        // ORDER: content, then name, then CURRENT, which must never name a manifest that a crash
        // can remove.
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
        manifest.check_offsets()?;
        Ok((manifest, current))
    }

    /// Checks the order of the offsets: the initial state, the next record, the reserved space.
    /// Errors: [`Error::Bug`].
    fn check_offsets(&self) -> Result<()> {
        let first = (HEADER_BYTES + FRAME_BYTES + SEAL_BYTES) as u64;
        ensure!(self.base >= first, "the initial state ends at {}, expected at least {first}", self.base);
        ensure!(self.base <= self.end, "the next record is at {}, within the initial state", self.end);
        ensure!(
            self.end <= self.reserved,
            "the next record is at {}, past the reserved {}",
            self.end,
            self.reserved
        );
        Ok(())
    }

    /// Returns the number in its name.
    pub(crate) fn number(&self) -> FileNumber {
        self.identity.number
    }

    /// Returns the offset of the next record.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Errors: [`Error::Poisoned`] once a write or sync has failed.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(cause) => Err(Error::Poisoned { path: self.dir.clone(), cause: Arc::clone(cause) }),
        }
    }

    /// Appends an edit, which is durable when this returns.
    ///
    /// A full disk is detected while space is reserved, before a byte is written: the error is then
    /// a full disk, nothing has changed, and a later call may succeed. After any other failure all
    /// calls return [`Error::Poisoned`].
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<()> {
        self.check()?;
        check_len(payload, &self.path)?;
        self.check_offsets()?;
        let record = frame(self.identity, self.end, payload);
        self.reserve((record.len() + SEAL_BYTES) as u64)?;
        ensure!(
            self.end + (record.len() + SEAL_BYTES) as u64 <= self.reserved,
            "a record of {} bytes at {} exceeds the reserved {}",
            record.len(),
            self.end,
            self.reserved
        );
        let written = self.file.write_all_at(&record, self.end);
        self.latch(written)?;
        // ORDER: the edit is durable before it takes effect, because the caller then deletes the
        // files that it removed.
        let synced = self.file.sync_data();
        self.latch(synced)?;
        let sealed_at = self.end + record.len() as u64;
        self.end = sealed_at + SEAL_BYTES as u64;
        // ORDER: after the sync, because the seal proves it. The edit is durable whether or not the
        // seal is written, so the next call reports a failure.
        let sealed = self.file.write_all_at(&seal(self.identity, sealed_at), sealed_at);
        let _ = self.latch(sealed);
        Ok(())
    }

    /// Returns true when the edits take more space than the initial state did, and more than
    /// `bytes`.
    pub(crate) fn has_outgrown(&self, bytes: u64) -> bool {
        self.failure.is_none() && self.end - self.base > bytes.max(self.base) && self.end >= self.retry_at
    }

    /// Begins manifest `number` with the state `snapshot`, continues there and removes the old one.
    ///
    /// After a full disk or with too many open files, the old manifest stays in use; any other
    /// failure poisons it. In both cases nothing is lost: appended edits are durable in the old
    /// manifest and part of the new one.
    pub(crate) fn rewrite(&mut self, number: FileNumber, snapshot: &[u8]) {
        debug_assert!(number > self.identity.number, "manifest {number} after {}", self.identity.number);
        let identity = Identity { number, ..self.identity };
        match Manifest::write_new(&self.fs, &self.dir, identity, snapshot) {
            Ok((new, current)) => match current.commit() {
                Ok(()) => {
                    let old = std::mem::replace(self, new);
                    // If this fails, the next open finds and removes the file.
                    let _ = self.fs.remove(&old.path);
                }
                Err(error) => _ = self.latch::<()>(Err(error)),
            },
            Err(error) if error.is_retryable() => {
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
        // If a whole step does not fit on the disk, a smaller reservation may suffice for this
        // record.
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
