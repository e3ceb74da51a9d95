//! Queues of recently evicted pages (ghosts), from which 2Q, S3-FIFO and ARC learn.

use super::directory::Directory;
use super::lists::Lists;
use crate::page::PageId;

/// `L` queues of pages. A page is in at most one of them. Adding or finding a page takes about a
/// dozen nanoseconds; each page takes 28 bytes.
#[derive(Debug, Clone)]
pub(super) struct Ghosts<const L: usize> {
    pages: Directory,
    order: Lists<(), L>,
}

impl<const L: usize> Ghosts<L> {
    /// Creates empty queues for about `pages` pages in total.
    pub(super) fn new(pages: usize) -> Self {
        Ghosts { pages: Directory::new(pages), order: Lists::new(pages) }
    }

    /// Returns the number of pages in a queue.
    pub(super) fn len(&self, queue: usize) -> usize {
        self.order.len(queue)
    }

    /// Returns the queue that a page is in.
    #[inline]
    pub(super) fn queue_of(&self, page: PageId) -> Option<usize> {
        let slot = self.pages.find(page)?;
        let queue = self.order.list_of(slot);
        debug_assert!(queue.is_some(), "the ghost {page} is in no queue");
        queue
    }

    /// Adds a page that is in no queue as the newest of a queue.
    #[inline]
    pub(super) fn push(&mut self, queue: usize, page: PageId) {
        let slot = self.pages.insert(page);
        self.order.push_front(queue, slot, ());
        debug_assert!(self.pages.len() == self.order.total(), "a ghost is in no queue");
    }

    /// Removes a page and returns its queue.
    #[inline]
    pub(super) fn take(&mut self, page: PageId) -> Option<usize> {
        let slot = self.pages.find(page)?;
        self.pages.remove(slot);
        let queue = self.order.remove(slot);
        debug_assert!(queue.is_some() && self.pages.len() == self.order.total(), "{page} was in no queue");
        queue
    }

    /// Resizes the table for about `pages` pages in total. Keeps its content.
    pub(super) fn resize(&mut self, pages: usize) {
        self.pages.resize(pages);
    }

    /// Shortens a queue to `len` pages by dropping the oldest.
    #[inline]
    pub(super) fn trim(&mut self, queue: usize, len: usize) {
        while self.order.len(queue) > len {
            let Some(slot) = self.order.pop_back(queue) else { return };
            self.pages.remove(slot);
        }
        debug_assert!(self.pages.len() == self.order.total(), "a ghost is in no queue");
    }
}
