//! A hash table of page numbers that assigns small slot numbers to pages that are not resident.
//!
//! ```text
//!   buckets   | slot or NIL | ...            a power of two, at least as many as slots
//!   slots     | page, next slot of the chain or of the free ones, bucket | ...
//! ```
//!
//! It uses chaining because most lookups are for absent pages, which then cost one load of four
//! bytes. Slots keep their number until they are removed, so that lists can link them.

use crate::page::PageId;

const NIL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Slot {
    page: PageId,
    next: u32,
    bucket: u32,
}

/// A set of pages, each with a slot number from 0. Grows on demand and reuses slots.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    buckets: Vec<u32>,
    slots: Vec<Slot>,
    free: u32,
    len: usize,
}

impl Directory {
    /// Creates an empty set with buckets for `pages` pages. It can hold more, in longer chains.
    pub(super) fn new(pages: usize) -> Self {
        Directory {
            buckets: vec![NIL; Self::buckets_for(pages)],
            slots: Vec::with_capacity(pages),
            free: NIL,
            len: 0,
        }
    }

    /// Returns the number of pages.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the slot of a page.
    #[inline]
    pub(super) fn find(&self, page: PageId) -> Option<u32> {
        let mut at = self.buckets[self.bucket(page)];
        while at != NIL {
            let slot = &self.slots[at as usize];
            if slot.page == page {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// Returns the page of a used slot.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> PageId {
        debug_assert!(self.find(self.slots[slot as usize].page) == Some(slot), "slot {slot} is not in use");
        self.slots[slot as usize].page
    }

    /// Adds a page that is not in the set.
    #[inline]
    pub(super) fn insert(&mut self, page: PageId) -> u32 {
        debug_assert!(self.find(page).is_none(), "{page} is in the directory already");
        let bucket = self.bucket(page);
        let new = Slot { page, next: self.buckets[bucket], bucket: bucket as u32 };
        let at = self.free;
        let at = if at == NIL {
            self.slots.push(new);
            self.slots.len() as u32 - 1
        } else {
            let slot = &mut self.slots[at as usize];
            self.free = slot.next;
            *slot = new;
            at
        };
        self.buckets[bucket] = at;
        self.len += 1;
        debug_assert!(self.len <= self.slots.len(), "{} pages in {} slots", self.len, self.slots.len());
        at
    }

    /// Removes the page of a used slot.
    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        let Slot { page, next, bucket } = self.slots[slot as usize];
        debug_assert!(self.find(page) == Some(slot), "slot {slot} is removed, which is not in use");
        let bucket = bucket as usize;
        let mut at = self.buckets[bucket];
        if at == slot {
            self.buckets[bucket] = next;
        } else {
            // The chain leads to a slot that points to this one, since all used slots are on the
            // chain of their bucket.
            while self.slots[at as usize].next != slot {
                at = self.slots[at as usize].next;
            }
            self.slots[at as usize].next = next;
        }
        self.slots[slot as usize].next = self.free;
        self.free = slot;
        self.len -= 1;
        debug_assert!(self.find(page).is_none(), "{page} was in the directory twice");
    }

    /// Changes the number of buckets to fit `pages` pages. Pages keep their slots. Linear in both.
    pub(super) fn resize(&mut self, pages: usize) {
        let buckets = Self::buckets_for(pages);
        let chained: Vec<u32> = (0..self.buckets.len()).flat_map(|bucket| self.chain(bucket)).collect();
        debug_assert!(chained.len() == self.len, "{} pages are chained, counted {}", chained.len(), self.len);
        self.buckets = vec![NIL; buckets];
        for slot in chained {
            let bucket = self.bucket(self.slots[slot as usize].page);
            let moved = &mut self.slots[slot as usize];
            (moved.next, moved.bucket) = (self.buckets[bucket], bucket as u32);
            self.buckets[bucket] = slot;
        }
    }

    fn chain(&self, bucket: usize) -> impl Iterator<Item = u32> {
        let next = |at: u32| Some(at).filter(|&at| at != NIL);
        std::iter::successors(next(self.buckets[bucket]), move |&at| next(self.slots[at as usize].next))
    }

    fn buckets_for(pages: usize) -> usize {
        (pages + pages / 2).next_power_of_two().max(16)
    }

    #[inline]
    fn bucket(&self, page: PageId) -> usize {
        debug_assert!(self.buckets.len().is_power_of_two());
        (hash(page) >> 32) as usize & (self.buckets.len() - 1)
    }
}

/// Hashes a page number, with good quality in every bit: two rounds of multiply and fold. Not
/// resistant to adversaries, since page numbers are the engine's own.
#[inline]
pub(super) fn hash(page: PageId) -> u64 {
    let mut x = page.as_u64().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}
