//! ARC (Megiddo, Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003).
//!
//! ```text
//!              resident              evicted, page numbers only
//!   L1 once    T1  newest .. oldest | B1  newest .. oldest       |L1| <= c
//!   L2 more    T2  newest .. oldest | B2  newest .. oldest       |L1| + |L2| <= 2 c
//! ```
//!
//! `target` is the number of frames T1 should have. A miss found in B1 shows that T1 was too small,
//! and one found in B2 that T2 was. The target then moves by one, or by more if the other ghost
//! list is longer. A scan only fills T1. ARC does badly when the second request comes after the
//! page has left both lists, as in loops longer than the pool, where it is no better than LRU.

use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const ONCE: usize = 0;
const OFTEN: usize = 1;

/// ARC with the paper's ghost rules.
#[derive(Debug)]
pub(super) struct Arc {
    /// T1 and T2.
    frames: Lists<PageId, 2>,
    /// B1 and B2.
    ghosts: Ghosts<2>,
    /// The number of frames T1 should have: `p` in the paper.
    target: usize,
    capacity: usize,
    /// The page for which [`Policy::evict`] has adapted the target already.
    adapted: Option<PageId>,
}

impl Arc {
    pub(super) fn new(capacity: usize) -> Self {
        Arc {
            frames: Lists::new(capacity),
            ghosts: Ghosts::new(capacity),
            target: 0,
            capacity,
            adapted: None,
        }
    }

    /// Returns the number of pages in L1, resident or not.
    fn once(&self) -> usize {
        self.frames.len(ONCE) + self.ghosts.len(ONCE)
    }

    /// Returns the number of pages in all lists.
    fn known(&self) -> usize {
        self.once() + self.frames.len(OFTEN) + self.ghosts.len(OFTEN)
    }

    fn check(&self) {
        debug_assert!(self.target <= self.capacity, "a target of {} frames", self.target);
        debug_assert!(self.frames.total() > self.capacity || self.once() <= self.capacity, "L1 is too long");
        debug_assert!(
            self.frames.total() > self.capacity || self.known() <= 2 * self.capacity,
            "too many ghosts"
        );
    }

    /// Adapts the target after a miss found in list `ghost`.
    fn adapt(&mut self, ghost: usize) {
        let (once, often) = (self.ghosts.len(ONCE).max(1), self.ghosts.len(OFTEN).max(1));
        if ghost == ONCE {
            self.target = (self.target + (often / once).max(1)).min(self.capacity);
        } else {
            self.target = self.target.saturating_sub((once / often).max(1));
        }
        debug_assert!(self.target <= self.capacity);
    }

    /// Evicts the oldest frame of a list that can be claimed. Adds its page to the ghosts if
    /// `remember`.
    fn evict_from(&mut self, list: usize, remember: bool, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame is in use, so it moves to the front.
        for _ in 0..self.frames.len(list) {
            let victim = self.frames.back(list)?;
            if frames.claim(victim) {
                self.frames.remove(victim);
                debug_assert!(self.frames.value(victim) != PageId::NONE);
                if remember {
                    self.ghosts.push(list, self.frames.value(victim));
                }
                return Some(victim);
            }
            self.frames.move_to_front(list, victim);
        }
        None
    }
}

impl Policy for Arc {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Arc
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        if self.frames.list_of(frame).is_some() {
            self.frames.move_to_front(OFTEN, frame);
        }
    }

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        let adapted = self.adapted.take() == Some(page);
        let ghost = self.ghosts.queue_of(page);
        if let Some(ghost) = ghost {
            if !adapted {
                self.adapt(ghost);
            }
            self.ghosts.take(page);
            debug_assert!(self.ghosts.queue_of(page).is_none(), "{page} is a ghost twice");
        }
        self.frames.push_front(if ghost.is_some() { OFTEN } else { ONCE }, frame, page);
        // When the pool is full, the evictions have made room in the lists. Otherwise the ghosts
        // are trimmed here.
        let spare = self.capacity.saturating_sub(self.frames.len(ONCE));
        self.ghosts.trim(ONCE, spare);
        let spare = (2 * self.capacity).saturating_sub(self.known() - self.ghosts.len(OFTEN));
        self.ghosts.trim(OFTEN, spare);
        self.check();
    }

    fn evict(&mut self, incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let ghost = incoming.and_then(|page| self.ghosts.queue_of(page));
        let mut remember = true;
        if let Some(ghost) = ghost {
            if self.adapted != incoming {
                self.adapt(ghost);
                self.adapted = incoming;
            }
        } else if self.once() >= self.capacity {
            // Case IV A: L1 is full. It drops its oldest ghost or, if it has none, evicts a page
            // without adding a ghost.
            remember = self.frames.len(ONCE) < self.capacity;
            self.ghosts.trim(ONCE, self.ghosts.len(ONCE).saturating_sub(1));
        } else if self.known() >= 2 * self.capacity {
            self.ghosts.trim(OFTEN, self.ghosts.len(OFTEN).saturating_sub(1));
        }
        let once = self.frames.len(ONCE);
        let first =
            once > 0 && (!remember || once > self.target || (ghost == Some(OFTEN) && once == self.target));
        let first = if first { ONCE } else { OFTEN };
        self.evict_from(first, remember, frames)
            .or_else(|| self.evict_from(ONCE + OFTEN - first, remember, frames))
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.remove(frame);
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        self.capacity = capacity;
        self.target = self.target.min(capacity);
        self.ghosts.resize(capacity);
        self.ghosts.trim(ONCE, capacity.saturating_sub(self.frames.len(ONCE)));
        self.ghosts.trim(OFTEN, (2 * capacity).saturating_sub(self.known() - self.ghosts.len(OFTEN)));
        self.check();
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
