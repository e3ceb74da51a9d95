//! Queues of pages that were evicted not long ago: what 2Q, S3-FIFO and ARC learn from.

use super::directory::Directory;
use super::lists::Lists;
use crate::page::PageId;

/// `L` queues of pages; a page is in one at most. A dozen nanoseconds to add or to look up, 28
/// bytes a page.
#[derive(Debug, Clone)]
pub(super) struct Ghosts<const L: usize> {
    pages: Directory,
    order: Lists<(), L>,
}

impl<const L: usize> Ghosts<L> {
    /// Empty queues for about `pages` pages in all.
    pub(super) fn new(pages: usize) -> Self {
        Ghosts { pages: Directory::new(pages), order: Lists::new(pages) }
    }

    /// How many pages are in a queue.
    pub(super) fn len(&self, queue: usize) -> usize {
        self.order.len(queue)
    }

    /// Which queue a page is in.
    #[inline]
    pub(super) fn queue_of(&self, page: PageId) -> Option<usize> {
        self.pages.find(page).and_then(|slot| self.order.list_of(slot))
    }

    /// Adds a page that is in none as the newest of a queue.
    #[inline]
    pub(super) fn push(&mut self, queue: usize, page: PageId) {
        let slot = self.pages.insert(page);
        self.order.push_front(queue, slot, ());
    }

    /// Takes a page out, and says of which queue.
    #[inline]
    pub(super) fn take(&mut self, page: PageId) -> Option<usize> {
        let slot = self.pages.find(page)?;
        self.pages.remove(slot);
        self.order.remove(slot)
    }

    /// Makes the table fit about `pages` pages in all. Keeps what is there.
    pub(super) fn resize(&mut self, pages: usize) {
        self.pages.resize(pages);
    }

    /// Shortens a queue to `len`, the oldest first.
    #[inline]
    pub(super) fn trim(&mut self, queue: usize, len: usize) {
        while self.order.len(queue) > len {
            let Some(slot) = self.order.pop_back(queue) else { return };
            self.pages.remove(slot);
        }
    }
}
