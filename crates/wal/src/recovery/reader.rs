//! Reads one segment, whatever its content, in a bounded window.

use std::ops::Range;
use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Advice, File, Fs, OpenOptions};

use crate::format::{
    Decoded, HEAD_BYTES, HEADER_BYTES, HEADER_COPIES, Head, Header, OLDEST_VERSION, RECORD_ALIGNMENT, Seed,
    VERSION, record_bytes,
};
use crate::{Error, Result};

/// The content of a file's header page.
#[derive(Debug)]
pub(super) enum HeaderPage {
    /// At least one copy is sound; the second field is the offset of a damaged one.
    Sound(Header, Option<usize>),
    /// No copy was ever written under this name: the segment was prepared but never begun.
    Unused,
    /// Something was written, but neither copy is sound.
    Damaged,
}

/// An open segment.
#[derive(Debug)]
pub(super) struct SegmentReader {
    pub(super) path: PathBuf,
    file: Arc<dyn File>,
    /// Length of the file, capped at the largest offset of a position.
    len: u32,
    window: Window,
}

/// A sound record.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) head: Head,
    /// Offset of the head.
    pub(super) start: u32,
    /// End of the padding.
    pub(super) end: u32,
}

/// The content at an offset.
#[derive(Debug)]
pub(super) enum Item {
    Record(Found),
    /// Zeros, or no space for a head: nothing was written here.
    Nothing,
    /// Something other than a record.
    Damaged,
}

/// The part of the file that is in memory.
#[derive(Debug)]
struct Window {
    bytes: Vec<u8>,
    start: u32,
    /// How many bytes to read at a time.
    read_bytes: usize,
}

impl SegmentReader {
    pub(super) fn open(fs: &dyn Fs, path: PathBuf, read_bytes: usize) -> Result<SegmentReader> {
        let file = fs.open(&path, OpenOptions::read())?;
        SegmentReader::from_file(Arc::from(file), path, read_bytes)
    }

    /// Like [`SegmentReader::open`], for a file that is open already.
    pub(super) fn from_file(file: Arc<dyn File>, path: PathBuf, read_bytes: usize) -> Result<SegmentReader> {
        let len = u32::try_from(file.len()?).unwrap_or(u32::MAX);
        file.advise(0, u64::from(len), Advice::Sequential);
        Ok(SegmentReader { path, file, len, window: Window { bytes: Vec::new(), start: 0, read_bytes } })
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Reads the header page of the segment with this number. Errors: `Unsupported` for a later
    /// version.
    pub(super) fn header(&mut self, number: u32) -> Result<HeaderPage> {
        let len = self.len.min(HEADER_BYTES);
        let page = self.bytes(0, len as usize)?;
        let copies = HEADER_COPIES.map(|at| Header::decode(page, at));
        if let Some(version) = copies.iter().find_map(|copy| match copy {
            Decoded::Version(version) => Some(*version),
            _ => None,
        }) {
            return Err(Error::Unsupported {
                file: self.path.clone(),
                what: format!(
                    "it has version {version} of the format; this build reads versions {OLDEST_VERSION} to {VERSION}"
                ),
            });
        }
        Ok(match copies {
            [Decoded::Header(first), Decoded::Header(second)] if first == second => {
                check_number(first, number, None)
            }
            // Two sound copies that differ: in a recycled file, the write of the second copy or of
            // both was interrupted.
            [Decoded::Header(header), _] if header.number == number => {
                check_number(header, number, Some(HEADER_COPIES[1]))
            }
            [_, Decoded::Header(header)] => check_number(header, number, Some(HEADER_COPIES[0])),
            [Decoded::Header(_), _] | [Decoded::Blank, Decoded::Blank] => HeaderPage::Unused,
            _ => HeaderPage::Damaged,
        })
    }

    /// Returns the item at `offset`, which must end by `limit`.
    pub(super) fn item(&mut self, seed: Seed, offset: u32, limit: u32) -> Result<Item> {
        let limit = limit.min(self.len);
        if (limit.saturating_sub(offset) as usize) < HEAD_BYTES {
            return Ok(Item::Nothing);
        }
        debug_assert!(offset.is_multiple_of(RECORD_ALIGNMENT), "no record begins at {offset}");
        let Some(bytes) = self.bytes(offset, HEAD_BYTES)?.first_chunk().copied() else {
            return Ok(Item::Nothing);
        };
        if bytes == [0; HEAD_BYTES] {
            return Ok(Item::Nothing);
        }
        let Some(head) = Head::decode(seed, offset, &bytes) else { return Ok(Item::Damaged) };
        let end = u64::from(offset) + record_bytes(head.len as usize) as u64;
        if end > u64::from(limit) {
            return Ok(Item::Damaged);
        }
        let found = Found { head, start: offset, end: end as u32 };
        debug_assert!(found.end > offset && found.end.is_multiple_of(RECORD_ALIGNMENT) && found.end <= limit);
        let payload = self.payload(&found)?;
        Ok(if head.matches(seed, offset, &bytes, payload) { Item::Record(found) } else { Item::Damaged })
    }

    /// Discards the window, so that the next access reads the file.
    pub(super) fn forget(&mut self) {
        self.window.bytes.clear();
    }

    /// Returns the payload of a record. Reads nothing if the record is the last one found.
    pub(super) fn payload(&mut self, found: &Found) -> Result<&[u8]> {
        self.bytes(found.start + HEAD_BYTES as u32, found.head.len as usize)
    }

    /// Returns the first sound record in `range`, at any multiple of 8.
    ///
    /// Costs a few nanoseconds per offset: one non-record in 65,536 looks like a head. BOUND: a
    /// file crafted to look like heads everywhere is given up after four times its length has been
    /// read as payloads.
    pub(super) fn search(&mut self, seed: Seed, range: Range<u32>) -> Result<Option<Found>> {
        let limit = range.end.min(self.len);
        let mut budget = u64::from(self.len) * 4;
        let mut offset = range.start.next_multiple_of(8);
        while limit.saturating_sub(offset) as usize >= HEAD_BYTES {
            let window = (limit - offset).min(self.window.read_bytes as u32) as usize;
            let candidate = find_head(self.bytes(offset, window)?, seed, offset, limit);
            let Some((at, len)) = candidate else {
                // The window may cut the last head off.
                offset += (window - HEAD_BYTES + 8) as u32 / 8 * 8;
                continue;
            };
            debug_assert!(at >= offset && at < limit, "a head at {at}, searched from {offset} to {limit}");
            if let Item::Record(found) = self.item(seed, at, limit)? {
                return Ok(Some(found));
            }
            let Some(rest) = budget.checked_sub(u64::from(len)) else {
                return Err(Error::corruption(
                    &self.path,
                    u64::from(at),
                    "it has too many heads without records",
                ));
            };
            budget = rest;
            offset = at + 8;
        }
        Ok(None)
    }

    /// Returns `len` bytes at `offset`, from the window or the file; fewer at the end of the file.
    fn bytes(&mut self, offset: u32, len: usize) -> Result<&[u8]> {
        let len = len.min(self.len.saturating_sub(offset) as usize);
        let window = &mut self.window;
        let inside = offset.checked_sub(window.start).map(|skip| skip as usize);
        let held = inside.filter(|skip| skip + len <= window.bytes.len());
        let skip = match held {
            Some(skip) => skip,
            None => {
                let left = self.len.saturating_sub(offset) as usize;
                let want = len.max(window.read_bytes).min(left);
                // The window stays empty during the read, in case it fails.
                let mut bytes = std::mem::take(&mut window.bytes);
                if bytes.capacity() > want.max(window.read_bytes) {
                    bytes = Vec::new(); // drop the buffer of a large record
                }
                bytes.resize(want, 0);
                fill(&*self.file, &mut bytes, u64::from(offset))?;
                window.bytes = bytes;
                window.start = offset;
                0
            }
        };
        debug_assert!(skip + len <= window.bytes.len(), "{len} bytes at {skip} of {}", window.bytes.len());
        Ok(window.bytes.get(skip..skip + len).unwrap_or_default())
    }
}

/// Fills `bytes` from `offset`. If a departing writer truncated the file after it was opened, the
/// missing bytes are zeros, as they were before.
fn fill(file: &dyn File, bytes: &mut [u8], offset: u64) -> Result<()> {
    match file.read_exact_at(bytes, offset) {
        Err(error) if error.source.kind() == std::io::ErrorKind::UnexpectedEof => {
            let there = file.len()?.saturating_sub(offset).min(bytes.len() as u64) as usize;
            let (there, cut) = bytes.split_at_mut(there);
            cut.fill(0);
            Ok(file.read_exact_at(there, offset)?)
        }
        result => Ok(result?),
    }
}

/// Accepts a sound header only if its number matches the file name.
fn check_number(header: Header, number: u32, damaged: Option<usize>) -> HeaderPage {
    if header.number == number { HeaderPage::Sound(header, damaged) } else { HeaderPage::Unused }
}

/// Finds the first plausible record head in `bytes`, which begin at offset `start`, whose record
/// ends by `limit`. Returns its offset and the length of its payload.
fn find_head(bytes: &[u8], seed: Seed, start: u32, limit: u32) -> Option<(u32, u32)> {
    debug_assert!(start.is_multiple_of(RECORD_ALIGNMENT), "no record begins at {start}");
    for (index, words) in bytes.windows(HEAD_BYTES).step_by(8).enumerate() {
        let Some(words) = words.first_chunk::<HEAD_BYTES>() else { break };
        // Most of the searched bytes are zeros.
        if words[8..] == [0; 8] {
            continue;
        }
        let offset = start + index as u32 * 8;
        if let Some(head) = Head::decode(seed, offset, words)
            && u64::from(offset) + record_bytes(head.len as usize) as u64 <= u64::from(limit)
        {
            return Some((offset, head.len));
        }
    }
    None
}
