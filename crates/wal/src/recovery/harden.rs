//! Makes durable the records that an earlier process wrote.
//!
//! Syncing its files again proves nothing. If a sync failed in that process, the kernel may hold
//! bytes that it never intends to write, return them to readers, and report success. The bytes must
//! not be overwritten in place either, since acknowledged records may be among them. So the file is
//! copied, and the copy takes its name.
//!
//! The copy is trusted only after it was read back. The kernel may have dropped such bytes since
//! the recovery saw them, and a device may have returned wrong ones this time. The file to be
//! replaced may be the only sound one.

use std::io;
use std::ops::Range;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Advice, AtomicFile, File, Fs, OpenOptions, Operation};

use super::reader::{Item, SegmentReader};
use crate::Result;
use crate::format::{HEADER_BYTES, Header, MAX_SEGMENT_BYTES, Seed};

const PIECE_BYTES: usize = 1 << 20;
const _: () = assert!(PIECE_BYTES >= HEADER_BYTES as usize);

/// The required content of a copy of a segment.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) header: Header,
    /// The range of contiguous records. Empty where there may be holes.
    pub(super) records: Range<u32>,
}

/// Replaces a segment by a copy of itself, byte for byte up to `end`, with zeros after it. Costs a
/// copy, reading it back, and two syncs.
///
/// Errors: file system errors, and a copy without the expected content. The original file is
/// unchanged then.
pub(super) fn harden(fs: &Arc<dyn Fs>, path: &Path, end: u32, expected: &Expected) -> Result<()> {
    match copy(fs, path, end, expected) {
        Err(error) if error.is_full() => in_place(fs, path, expected),
        done => done,
    }
}

/// The fallback of [`harden`] when the disk has no space for a copy. It syncs the file as it is,
/// asks the kernel to drop its pages, and reads the content of the device. The kernel may keep some
/// pages anyway. So if the disk is full and a sync failed in the previous process, records that
/// were never reported as durable may still be lost, but no others.
fn in_place(fs: &Arc<dyn Fs>, path: &Path, expected: &Expected) -> Result<()> {
    let file: Arc<dyn File> = Arc::from(fs.open(path, OpenOptions::write())?);
    file.sync_data()?;
    file.advise(0, u64::from(MAX_SEGMENT_BYTES), Advice::DontNeed);
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
    debug_assert!(offset == len, "{offset} bytes were copied, expected {len}");
    // The content of the header page is known, so it is encoded instead of copied.
    let mut page = [0; HEADER_BYTES as usize];
    expected.header.encode(&mut page);
    target.file().write_all_at(&page, 0)?;
    target.file().set_len(file_bytes)?;
    // ORDER: before the copy replaces a file that may be sound.
    expected.check(target.file(), path)?;
    Ok(target.commit()?)
}

impl Expected {
    /// Reads and checks a copy of the file at `path`.
    fn check(&self, copy: &Arc<dyn File>, path: &Path) -> Result<()> {
        let Range { start, end } = self.records;
        debug_assert!(start >= HEADER_BYTES || self.records.is_empty(), "records from {start} on");
        let mut reader = SegmentReader::from_file(Arc::clone(copy), path.to_owned(), PIECE_BYTES)?;
        let reached = unbroken(&mut reader, self.header.seed(), start, end)?;
        debug_assert!(reached >= start, "the records end at {reached}, before {start}");
        if reached >= end {
            return Ok(());
        }
        let what = "a sound record is missing from the copy that was to make it durable; nothing was replaced, recover the log again";
        Err(cairn_vfs::Error::new(Operation::Read, path, io::Error::other(what))
            .at(u64::from(reached))
            .into())
    }
}

/// Returns the end of the contiguous records that begin at `from`, at most `limit`.
pub(super) fn unbroken(reader: &mut SegmentReader, seed: Seed, from: u32, limit: u32) -> Result<u32> {
    let mut offset = from;
    while offset < limit
        && let Item::Record(found) = reader.item(seed, offset, limit)?
    {
        offset = found.end;
    }
    Ok(offset)
}
