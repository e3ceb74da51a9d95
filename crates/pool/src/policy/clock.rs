//! Clock, also known as second chance (Corbató, "A paging experiment with the Multics system",
//! 1968).
//!
//! ```text
//!   front  ->  newest ... oldest  ->  back        the hand looks at the back: a marked frame loses
//!     ^                              |            its mark and starts over at the front
//!     +------------- marked ---------+
//! ```
//!
//! The circle is a list that rotates under the hand, so that a new page is always the last one the
//! hand reaches, whichever frame it was given. A hit costs one byte, which is usually set already.
//! Clock comes close to LRU and shares its weakness for scans and loops.

use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const CIRCLE: usize = 0;

/// Clock with one mark bit.
#[derive(Debug)]
pub(super) struct Clock {
    frames: Lists<(), 1>,
}

impl Clock {
    pub(super) fn new(capacity: usize) -> Self {
        Clock { frames: Lists::new(capacity) }
    }
}

impl Policy for Clock {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Clock
    }

    fn hits(&self) -> Hits {
        Hits::Marked { max: 1 }
    }

    fn hit(&mut self, _frame: Frame) {}

    fn insert(&mut self, frame: Frame, _page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        self.frames.push_front(CIRCLE, frame, ());
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let lap = self.frames.len(CIRCLE);
        // BOUND: in the second lap marks are ignored, so that hits that set them again cannot keep
        // the hand going.
        for step in 0..2 * lap {
            let at = self.frames.back(CIRCLE)?;
            debug_assert!(self.frames.len(CIRCLE) == lap, "a frame left the circle under the hand");
            if step < lap && frames.mark(at) > 0 {
                frames.set_mark(at, 0);
            } else if frames.claim(at) {
                self.frames.remove(at);
                debug_assert!(self.len() + 1 == lap);
                return Some(at);
            }
            self.frames.push_front(CIRCLE, at, ());
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
