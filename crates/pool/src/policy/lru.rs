//! Least recently used: the page that was not asked for longest goes.
//!
//! One list, the newest at the front. It keeps what a program returns to soon, and loses all of it
//! to one long scan; a loop over one page more than there are frames never hits.

use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const RECENT: usize = 0;

/// Least recently used. Three cache lines a hit, four bytes times three a frame.
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
        self.frames.push_front(RECENT, frame, ());
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: who is pinned is in use, and so goes to the front; after one lap all are as they
        // were.
        for _ in 0..self.frames.len(RECENT) {
            let victim = self.frames.back(RECENT)?;
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
