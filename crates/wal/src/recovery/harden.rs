//! Making durable what an earlier process wrote.
//!
//! Syncing its files again proves nothing: if a sync failed in that process, the kernel may hold
//! bytes that it does not mean to write any more, shows them to readers, and says that all is well.
//! Nor may the bytes be written over in place, for among them may be records that were
//! acknowledged. So the file is written anew and takes the name.
//!
//! Nor is the copy believed before it is read: the kernel may have let go of such bytes since the
//! recovery saw them, and a device may have returned wrong ones this time. The file that it would
//! replace may be the only sound one.

use std::io;
use std::ops::Range;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Advice, AtomicFile, File, Fs, OpenOptions, Operation};

use super::reader::{Item, SegmentReader};
use crate::Result;
use crate::format::{HEADER_BYTES, Header, Seed};

const PIECE_BYTES: usize = 1 << 20;

/// What a copy of a segment must have.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) header: Header,
    /// Records, one behind the other, from the first offset to the second. Empty where there may be
    /// holes.
    pub(super) records: Range<u32>,
}

/// Writes a segment anew in its place, byte for byte up to `end`, zeros behind. Costs a copy, which
/// is read back, and two syncs.
///
/// Errors: those of the file system, and where the copy has not what is expected; the file is as it
/// was then.
pub(super) fn harden(fs: &Arc<dyn Fs>, path: &Path, end: u32, expected: &Expected) -> Result<()> {
    match copy(fs, path, end, expected) {
        Err(error) if error.is_full() => in_place(fs, path, expected),
        done => done,
    }
}

/// As [`harden`], where the disk has no room for a copy: syncs the file as it is, has the kernel
/// let go of its pages, and reads what the device has. The kernel may keep some all the same; so a
/// disk that is full and has failed a sync in the process before may still lose what nobody was
/// told is durable, and nothing else.
fn in_place(fs: &Arc<dyn Fs>, path: &Path, expected: &Expected) -> Result<()> {
    let file: Arc<dyn File> = Arc::from(fs.open(path, OpenOptions::write())?);
    file.sync_data()?;
    file.advise(0, 0, Advice::DontNeed);
    expected.check(&file, path)
}

fn copy(fs: &Arc<dyn Fs>, path: &Path, end: u32, expected: &Expected) -> Result<()> {
    let source = fs.open(path, OpenOptions::read())?;
    let file_bytes = source.len()?;
    let len = file_bytes.min(u64::from(end));
    let target = AtomicFile::create(fs, path)?;
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(len).unwrap_or(PIECE_BYTES))];
    let mut offset = 0;
    while offset < len {
        let bytes = piece.len().min(usize::try_from(len - offset).unwrap_or(usize::MAX));
        let piece = piece.get_mut(..bytes).unwrap_or_default();
        source.read_exact_at(piece, offset)?;
        // Much of it may be zeros that were never written.
        if piece.iter().any(|&byte| byte != 0) {
            target.file().write_all_at(piece, offset)?;
        }
        offset += bytes as u64;
    }
    // What its page says is known, and need not be believed once more.
    let mut page = [0; HEADER_BYTES as usize];
    expected.header.encode(&mut page);
    target.file().write_all_at(&page, 0)?;
    target.file().set_len(file_bytes)?;
    // ORDER: before it takes the place of what may be sound.
    expected.check(target.file(), path)?;
    Ok(target.commit()?)
}

impl Expected {
    /// Reads a copy of the file at `path`.
    fn check(&self, copy: &Arc<dyn File>, path: &Path) -> Result<()> {
        let Range { start, end } = self.records;
        let mut reader = SegmentReader::of(Arc::clone(copy), path.to_owned(), PIECE_BYTES)?;
        let reached = unbroken(&mut reader, self.header.seed(), start, end)?;
        if reached >= end {
            return Ok(());
        }
        let what = "a sound record is missing from the copy that was to make it durable; nothing was replaced, recover the log again";
        Err(cairn_vfs::Error::new(Operation::Read, path, io::Error::other(what))
            .at(u64::from(reached))
            .into())
    }
}

/// Where the records that follow each other from `from` on end; no further than `limit`.
pub(super) fn unbroken(reader: &mut SegmentReader, seed: Seed, from: u32, limit: u32) -> Result<u32> {
    let mut offset = from;
    while offset < limit
        && let Item::Record(found) = reader.item(seed, offset, limit)?
    {
        offset = found.end;
    }
    Ok(offset)
}
