//! A segment that this process writes.

use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU32, Ordering};
use cairn_vfs::{AppendMap, AppendProgress, File};

use crate::format::{HEADER_BYTES, Header, MAX_SEGMENT_BYTES, Seed};

/// A segment, from its first record until it is released.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) progress: AppendProgress,
    pub(crate) header: Header,
    pub(crate) seed: Seed,
    /// Size of the file.
    pub(crate) bytes: u32,
    /// End of the last record; 0 while more records may follow.
    end: AtomicU32,
}

impl Segment {
    pub(crate) fn new(prepared: &PreparedSegment, header: Header) -> Segment {
        assert!(header.number == prepared.number, "segment {} as file {}", header.number, prepared.number);
        assert!(header.bytes == u64::from(prepared.bytes()), "a header for {} bytes", header.bytes);
        Segment {
            number: prepared.number,
            path: prepared.path.clone(),
            file: Arc::clone(&prepared.file),
            progress: prepared.map.progress(),
            header,
            seed: header.seed(),
            bytes: prepared.bytes(),
            end: AtomicU32::new(0),
        }
    }

    /// Ends the segment: no more records follow.
    pub(crate) fn seal(&self, end: u32) {
        debug_assert!(end >= HEADER_BYTES && end <= self.bytes, "segment {} ends at {end}", self.number);
        debug_assert!(u64::from(end) == self.progress.reserved(), "records follow the end {end}");
        let before = self.end.swap(end, Ordering::Release);
        debug_assert!(before == 0, "segment {} was sealed at {before}, now at {end}", self.number);
    }

    /// Returns the end of the segment, if it is sealed.
    pub(crate) fn end(&self) -> Option<u32> {
        match self.end.load(Ordering::Acquire) {
            0 => None,
            end => Some(end),
        }
    }
}

/// A file ready to become a segment: its name and size are durable, and its header is zeros.
#[derive(Debug)]
pub(crate) struct PreparedSegment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) map: AppendMap,
}

impl PreparedSegment {
    pub(crate) fn bytes(&self) -> u32 {
        debug_assert!(self.map.end() <= u64::from(MAX_SEGMENT_BYTES), "a file of {} bytes", self.map.end());
        u32::try_from(self.map.end()).unwrap_or(u32::MAX)
    }
}
