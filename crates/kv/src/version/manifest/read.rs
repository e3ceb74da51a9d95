//! Reading a manifest.

use std::path::{Path, PathBuf};

use cairn_vfs::sync::Arc;
use cairn_vfs::{ErrorKind, Fs, OpenOptions};

use super::format::{
    BadHeader, FRAME_BYTES, HEADER_BYTES, Identity, SEAL_BYTES, read_header, read_record, was_durable,
};
use crate::file::FileNumber;
use crate::version::edit::VersionEdit;
use crate::version::encode::decode;
use crate::version::fields::Malformed;
use crate::version::names::FileName;
use crate::{Error, Result, version::current};

/// How often a reader beside a writer retries because the manifest named by `CURRENT` is already
/// gone.
const ATTEMPTS: usize = 16;

/// The bytes of a manifest.
#[derive(Debug)]
pub(crate) struct ManifestBytes {
    /// Its path, for messages.
    pub(crate) path: PathBuf,
    /// The number in its name.
    pub(crate) number: FileNumber,
    /// The id of the store according to `CURRENT`.
    pub(crate) store: Option<u64>,
    /// The whole content.
    pub(crate) bytes: Vec<u8>,
}

/// Reads the manifest that `CURRENT` names.
///
/// Errors: `NotFound` without a `CURRENT`; [`Error::Corruption`] when it names a missing file.
pub(crate) fn load(fs: &Arc<dyn Fs>, dir: &Path) -> Result<ManifestBytes> {
    let (mut number, mut store) = current::read(fs, dir)?;
    for _ in 0..ATTEMPTS {
        let path = FileName::Manifest(number).path(dir);
        match fs.open(&path, OpenOptions::read()) {
            Ok(file) => {
                let mut bytes = vec![0; file.len()? as usize];
                file.read_exact_at(&mut bytes, 0)?;
                return Ok(ManifestBytes { path, number, store, bytes });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // A writer removes a manifest only after CURRENT names another.
        let now = current::read(fs, dir)?;
        if now.0 == number {
            break;
        }
        (number, store) = now;
    }
    let missing = FileName::Manifest(number);
    Err(Error::corruption(
        &FileName::Current.path(dir),
        0,
        format!("it names {missing}, which does not exist"),
    ))
}

impl ManifestBytes {
    /// Passes every edit to `apply` in order, and returns the store's id and the offset for the
    /// next edit.
    ///
    /// A torn record at the end is ignored, because it was never acknowledged. Any other damage is
    /// [`Error::Corruption`], and so is an edit that `apply` refuses; content that only later
    /// versions understand is [`Error::Unsupported`].
    pub(crate) fn replay(
        &self,
        mut apply: impl FnMut(VersionEdit) -> std::result::Result<(), String>,
    ) -> Result<(u64, u64)> {
        let identity = read_header(&self.bytes).map_err(|bad| match bad {
            BadHeader::Damaged(offset, what) => Error::corruption(&self.path, offset, what),
            BadHeader::Newer(what) => Error::unsupported(&self.path, what),
        })?;
        if identity.number != self.number {
            let what = format!("it is manifest {}, expected {}", identity.number, self.number);
            return Err(Error::corruption(&self.path, 24, what));
        }
        if let Some(store) = self.store.filter(|store| *store != identity.store) {
            let what =
                format!("it belongs to store {:016x}, but CURRENT to store {store:016x}", identity.store);
            return Err(Error::corruption(&self.path, 16, what));
        }
        let mut offset = HEADER_BYTES;
        while let Some(payload) = self.record(identity, offset)? {
            let edit = decode(payload).map_err(|malformed| self.malformed(malformed, offset))?;
            apply(edit).map_err(|what| Error::corruption(&self.path, offset as u64, what))?;
            debug_assert!(
                offset + FRAME_BYTES + payload.len() <= self.bytes.len(),
                "the record at {offset} ends after the file"
            );
            offset += FRAME_BYTES + payload.len() + SEAL_BYTES;
        }
        Ok((identity.store, offset as u64))
    }

    /// Returns the payload at `offset`, or `None` at the end of the log.
    fn record(&self, identity: Identity, offset: usize) -> Result<Option<&[u8]>> {
        debug_assert!(offset >= HEADER_BYTES, "records follow the header");
        if let Some(payload) = read_record(identity, &self.bytes, offset) {
            return Ok(Some(payload));
        }
        // The first record was durable before CURRENT named the file, whether or not anything
        // follows it.
        if offset == HEADER_BYTES || was_durable(identity, &self.bytes, offset) {
            return Err(Error::corruption(&self.path, offset as u64, "a durable record is damaged"));
        }
        Ok(None)
    }

    fn malformed(&self, malformed: Malformed, offset: usize) -> Error {
        match malformed {
            Malformed::Damaged { at, what } => {
                Error::corruption(&self.path, (offset + FRAME_BYTES + at) as u64, what)
            }
            Malformed::Newer { field } => {
                Error::unsupported(&self.path, format!("an edit has the unknown mandatory field {field}"))
            }
        }
    }
}
