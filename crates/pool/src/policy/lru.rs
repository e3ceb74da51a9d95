//! LRU: evicts the least recently used page.
//!
//! One list, with the newest page at the front. It keeps pages that are requested again soon, and
//! loses all of them to one long scan. A loop over one page more than there are frames never hits.

use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const RECENT: usize = 0;

/// Least recently used. A hit touches three cache lines; each frame takes three times four bytes.
#[derive(Debug)]
pub(super) struct Lru {
    frames: Lists<(), 1>,
}

impl Lru {
    pub(super) fn new(capacity: usize) -> Self {
        Lru { frames: Lists::new(capacity) }
    }
}

impl Policy for Lru {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Lru
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        if self.frames.list_of(frame).is_some() {
            self.frames.push_front(RECENT, frame, ());
        }
    }

    fn insert(&mut self, frame: Frame, _page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        self.frames.push_front(RECENT, frame, ());
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: a pinned frame is in use, so it moves to the front. After one lap, all are in
        // their old order.
        for _ in 0..self.frames.len(RECENT) {
            let victim = self.frames.back(RECENT)?;
            debug_assert!(self.frames.list_of(victim) == Some(RECENT));
            if frames.claim(victim) {
                self.frames.remove(victim);
                return Some(victim);
            }
            self.frames.push_front(RECENT, victim, ());
        }
        None
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.remove(frame);
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
