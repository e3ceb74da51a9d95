//! A segment that this process writes.

use std::path::PathBuf;

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU32, Ordering};
use cairn_vfs::{AppendMap, AppendProgress, File};

use crate::format::{Header, Seed};

/// A segment from the time that records go into it until it is released.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) progress: AppendProgress,
    pub(crate) header: Header,
    pub(crate) seed: Seed,
    /// Size of its file.
    pub(crate) bytes: u32,
    /// Behind its last record; 0 while there may be more.
    end: AtomicU32,
}

impl Segment {
    pub(crate) fn new(prepared: &Prepared, header: Header) -> Segment {
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

    /// No more records go into it.
    pub(crate) fn seal(&self, end: u32) {
        self.end.store(end, Ordering::Release);
    }

    /// Where it was sealed.
    pub(crate) fn end(&self) -> Option<u32> {
        match self.end.load(Ordering::Acquire) {
            0 => None,
            end => Some(end),
        }
    }
}

/// A file that is ready to become a segment: its name and size are durable, its header is zeros.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
    pub(crate) map: AppendMap,
}

impl Prepared {
    pub(crate) fn bytes(&self) -> u32 {
        u32::try_from(self.map.end()).unwrap_or(u32::MAX)
    }
}
