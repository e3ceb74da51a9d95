//! Files that go from one directory to another, by a second name where that works and by their
//! bytes where not.

use std::io;
use std::path::Path;

use cairn_codec::checksum::Xxh3;
use cairn_vfs::sync::Arc;
use cairn_vfs::{AppendWriter, File, Fs, OpenOptions};

use crate::{Error, Result};

/// How much is read and written at a time.
const COPY_BYTES: usize = 1 << 20;

/// What a file is known to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub bytes: u64,
    /// XXH3 of all of it.
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

    /// Errors: [`Error::Corruption`] of `path` when it holds something else.
    pub(super) fn check(self, found: Content, path: &Path) -> Result<()> {
        if found == self {
            return Ok(());
        }
        let Content { bytes, checksum } = self;
        let what = format!(
            "{} bytes with checksum {:#018x}, expected {bytes} with {checksum:#018x}",
            found.bytes, found.checksum
        );
        Err(Error::corruption(path, 0, what))
    }
}

/// Copies `from` to the new file `to` and syncs it, not its name.
///
/// Errors: [`Error::Corruption`] when it does not hold what is expected. The copy is removed after
/// an error.
pub(super) fn copy(fs: &Arc<dyn Fs>, from: &Path, to: &Path, expected: Content) -> Result<()> {
    let source = fs.open(from, OpenOptions::read())?;
    let target: Arc<dyn File> = Arc::from(fs.open(to, OpenOptions::create_new())?);
    let copied = copy_into(&*source, &target, from, expected);
    if copied.is_err() {
        // What cannot be removed is a leftover like that of a crash.
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
        let piece = buffer.get_mut(..count).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        take(piece)?;
        at += count as u64;
    }
    Ok(at)
}

/// Gives `from` the second name `to`; copies it where the file system cannot (another device, no
/// links). The bytes of `from` must be durable.
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

/// Names that are removed again unless all went well.
#[derive(Debug)]
pub(super) struct Undo {
    fs: Arc<dyn Fs>,
    paths: Vec<std::path::PathBuf>,
}

impl Undo {
    pub(super) fn new(fs: &Arc<dyn Fs>) -> Undo {
        Undo { fs: Arc::clone(fs), paths: Vec::new() }
    }

    /// `path` is, or is about to be, ours to remove.
    pub(super) fn add(&mut self, path: &Path) {
        self.paths.push(path.to_owned());
    }

    /// All stays.
    pub(super) fn keep(&mut self) {
        self.paths.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for path in &self.paths {
            // What cannot be removed now is found by the next open, as after a crash.
            let _ = self.fs.remove(path);
        }
    }
}
