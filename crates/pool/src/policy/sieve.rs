//! SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU", NSDI 2024).
//!
//! ```text
//!   front  newest ......... oldest  back
//!               <---- hand               marked: the mark is cleared, the page stays in place
//!                                        else: the page is evicted; the hand continues from there
//! ```
//!
//! A queue that is never reordered. Pages that survive the hand keep their place among the old
//! ones, while the hand moves on through the newer ones. So pages that are requested only once are
//! sifted out soon, and popular ones collect behind the hand. SIEVE does well on skewed popularity.
//! It is no better than Clock on loops and on pages whose popularity ends.

use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const QUEUE: usize = 0;

/// SIEVE with one mark bit.
#[derive(Debug)]
pub(super) struct Sieve {
    frames: Lists<(), 1>,
    /// Where the next search starts; `None` for the back of the queue.
    hand: Option<Frame>,
}

impl Sieve {
    pub(super) fn new(capacity: usize) -> Self {
        Sieve { frames: Lists::new(capacity), hand: None }
    }

    /// The hand stays on the queue: it would otherwise start over, or stay on a frame for ever.
    fn check(&self) {
        debug_assert!(
            self.hand.is_none_or(|frame| self.frames.list_of(frame) == Some(QUEUE)),
            "the hand is at frame {:?}, which is not in the queue",
            self.hand
        );
    }
}

impl Policy for Sieve {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Sieve
    }

    fn hits(&self) -> Hits {
        Hits::Marked { max: 1 }
    }

    fn hit(&mut self, _frame: Frame) {}

    fn insert(&mut self, frame: Frame, _page: PageId, _frames: &dyn Frames) {
        self.remove(frame);
        self.frames.push_front(QUEUE, frame, ());
        self.check();
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let lap = self.frames.len(QUEUE);
        // BOUND: in the second lap marks are ignored, so that hits that set them again cannot keep
        // the hand going.
        for step in 0..2 * lap {
            let at = self.hand.or_else(|| self.frames.back(QUEUE))?;
            self.hand = self.frames.before(at);
            if step < lap && frames.mark(at) > 0 {
                frames.set_mark(at, 0);
            } else if frames.claim(at) {
                self.frames.remove(at);
                debug_assert!(self.len() + 1 == lap);
                self.check();
                return Some(at);
            }
        }
        None
    }

    fn remove(&mut self, frame: Frame) {
        if self.hand == Some(frame) {
            self.hand = self.frames.before(frame);
        }
        self.frames.remove(frame);
        self.check();
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        self.check();
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
