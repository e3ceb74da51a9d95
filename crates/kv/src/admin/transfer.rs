//! Transfer of files between directories, by hard link where possible and by copying otherwise.

use std::io;
use std::path::Path;

use cairn_codec::checksum::Xxh3;
use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, File, Fs, OpenOptions};

use crate::{Error, Result};

/// Bytes read and written at a time.
const COPY_BYTES: usize = 1 << 20;

/// The expected length and checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub bytes: u64,
    /// XXH3 of the whole file.
    pub checksum: u64,
}

impl Content {
    /// Reads a whole file.
    pub(super) fn of(fs: &dyn Fs, path: &Path) -> Result<Content> {
        let mut checksum = Xxh3::new();
        let bytes = read_pieces(&*fs.open(path, OpenOptions::read())?, |piece| {
            checksum.update(piece);
            Ok(())
        })?;
        Ok(Content { bytes, checksum: checksum.digest() })
    }

    /// Errors: [`Error::Corruption`] of `path` when its content differs.
    pub(super) fn check(self, found: Content, path: &Path) -> Result<()> {
        if found == self {
            return Ok(());
        }
        let Content { bytes, checksum } = self;
        let what = format!(
            "length {}, checksum {:#018x}; expected length {bytes}, checksum {checksum:#018x}",
            found.bytes, found.checksum
        );
        Err(Error::corruption(path, 0, what))
    }
}

/// Copies `from` to the new file `to` and syncs the content, not the name.
///
/// Errors: [`Error::Corruption`] when the content of `from` is not the expected one. After an error
/// the copy is removed.
pub(super) fn copy(fs: &Arc<dyn Fs>, from: &Path, to: &Path, expected: Content) -> Result<()> {
    let source = fs.open(from, OpenOptions::read())?;
    let target: Arc<dyn File> = Arc::from(fs.open(to, OpenOptions::create_new())?);
    let copied = copy_into(&*source, &target, from, expected);
    if copied.is_err() {
        // If the removal fails, the file is a leftover, as after a crash.
        let _ = fs.remove(to);
    }
    copied
}

fn copy_into(source: &dyn File, target: &Arc<dyn File>, from: &Path, expected: Content) -> Result<()> {
    let mut checksum = Xxh3::new();
    let mut out = AppendWriter::new(Arc::clone(target), 0, COPY_BYTES);
    let bytes = read_pieces(source, |piece| {
        checksum.update(piece);
        Ok(out.write_all(piece)?)
    })?;
    debug_assert_eq!(out.position(), bytes, "what was read is what was written");
    expected.check(Content { bytes, checksum: checksum.digest() }, from)?;
    out.flush()?;
    Ok(target.sync_data()?)
}

fn read_pieces(file: &dyn File, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let len = file.len()?;
    let mut buffer = vec![0; COPY_BYTES.min(len as usize)];
    let mut at = 0;
    while at < len {
        let count = (len - at).min(buffer.len() as u64) as usize;
        debug_assert!(count > 0 && count <= buffer.len(), "{count} of {} bytes", buffer.len());
        let piece = buffer.get_mut(..count).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        take(piece)?;
        at += count as u64;
    }
    debug_assert_eq!(at, len, "the pieces are the whole file");
    Ok(at)
}

/// Hard-links `from` as `to`, or copies it where the file system cannot link (another device, no
/// support for links). The bytes of `from` must be durable.
pub(super) fn link_or_copy(fs: &Arc<dyn Fs>, from: &Path, to: &Path, expected: Content) -> Result<()> {
    match fs.hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if no_link_possible(&error.source) => copy(fs, from, to, expected),
        Err(error) => Err(error.into()),
    }
}

fn no_link_possible(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}

/// Files that are removed on drop unless the operation succeeded.
#[derive(Debug)]
pub(super) struct Undo {
    fs: Arc<dyn Fs>,
    paths: Vec<std::path::PathBuf>,
}

impl Undo {
    pub(super) fn new(fs: &Arc<dyn Fs>) -> Undo {
        Undo { fs: Arc::clone(fs), paths: Vec::new() }
    }

    /// Registers `path`, which was created or is about to be created by this operation.
    pub(super) fn add(&mut self, path: &Path) {
        self.paths.push(path.to_owned());
    }

    /// Keeps all files.
    pub(super) fn keep(&mut self) {
        self.paths.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for path in &self.paths {
            // The next open removes files that cannot be removed now, as after a crash.
            let _ = self.fs.remove(path);
        }
    }
}
