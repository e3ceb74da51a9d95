//! Copies of pages that are about to be written.

use cairn_vfs::memory::Buffer;

use crate::page::Frame;
use crate::write_ahead::Lsn;

/// Maximum number of pages written together.
pub(crate) const BATCH: usize = if cfg!(cairn_shuttle) { 2 } else { 64 };

/// Copies of pages being written.
#[derive(Debug)]
pub(crate) struct Staging {
    pub(crate) bytes: Buffer,
    pub(crate) pages: Vec<Staged>,
}

/// A page whose copy has the same index in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) page: u32,
    pub(crate) frame: Frame,
    pub(crate) lsn: Lsn,
}

impl Staging {
    pub(crate) fn push(&mut self, page: Staged, bytes: &[u8]) {
        let start = self.pages.len() * bytes.len();
        debug_assert!(self.pages.last().is_none_or(|last| last.page < page.page), "pages are not ascending");
        debug_assert!(self.bytes.len().is_multiple_of(bytes.len()), "{} bytes are not a page", bytes.len());
        let place = self.bytes.get_mut(start..start + bytes.len());
        // The frame is already marked as being written, and only writing this copy clears the mark.
        // So a copy must not be dropped.
        assert!(place.is_some(), "page {} does not fit after {} staged ones", page.page, self.pages.len());
        if let Some(place) = place {
            place.copy_from_slice(bytes);
            self.pages.push(page);
        }
    }
}
