//! S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak: "FIFO queues are all you need for cache eviction", SOSP
//! 2023).
//!
//! ```text
//!   miss, unknown ->  small   10 %  --mark < 2-->  evicted, remembered in the ghost queue
//!                       |  mark >= 2
//!                       v
//!   miss, ghost   ->  main    90 %  --mark = 0-->  evicted
//!                       ^  mark > 0  |
//!                       +-- mark - 1-+
//! ```
//!
//! Three queues that are never reordered, with marks up to 3 instead of moves. Pages requested once
//! soon leave through the small queue. The ghost queue is as long as the main one. S3-FIFO does
//! badly when the second request comes after the ghost is gone, and on loops, which it handles like
//! Clock.

use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 0;

/// The maximum value of a mark: two bits in the paper.
const MARK_MAX: u8 = 3;
/// The mark at which a page moves from the small queue to the main one.
const MARK_PROMOTE: u8 = 2;
const _: () = assert!(0 < MARK_PROMOTE && MARK_PROMOTE <= MARK_MAX);

/// S3-FIFO with a small queue of one tenth of the frames.
#[derive(Debug)]
pub(super) struct S3Fifo {
    frames: Lists<PageId, 2>,
    ghosts: Ghosts<1>,
    small_max: usize,
    ghosts_max: usize,
}

impl S3Fifo {
    pub(super) fn new(capacity: usize) -> Self {
        let (small_max, ghosts_max) = Self::split(capacity);
        S3Fifo { frames: Lists::new(capacity), ghosts: Ghosts::new(ghosts_max), small_max, ghosts_max }
    }

    /// Returns the lengths of the small queue and of the ghost queue.
    fn split(capacity: usize) -> (usize, usize) {
        let small = (capacity / 10).max(1);
        (small, capacity.saturating_sub(small))
    }

    fn take(&mut self, frame: Frame, list: usize) -> Frame {
        debug_assert!(self.frames.list_of(frame) == Some(list), "frame {frame} is not in queue {list}");
        self.frames.remove(frame);
        if list == SMALL {
            self.ghosts.push(GHOST, self.frames.value(frame));
            self.ghosts.trim(GHOST, self.ghosts_max);
            debug_assert!(self.ghosts.len(GHOST) <= self.ghosts_max);
        }
        frame
    }

    /// Tries one frame after the other, ignoring marks.
    fn evict_any(&mut self, list: usize, frames: &dyn Frames) -> Option<Frame> {
        for _ in 0..self.frames.len(list) {
            let at = self.frames.back(list)?;
            if frames.claim(at) {
                return Some(self.take(at, list));
            }
            self.frames.move_to_front(list, at);
        }
        None
    }
}

impl Policy for S3Fifo {
    fn kind(&self) -> PolicyKind {
        PolicyKind::S3Fifo
    }

    fn hits(&self) -> Hits {
        Hits::Marked { max: MARK_MAX }
    }

    fn hit(&mut self, _frame: Frame) {}

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        let list = if self.ghosts.take(page).is_some() { MAIN } else { SMALL };
        self.frames.push_front(list, frame, page);
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let (mut refused, mut turns) = (0, 0);
        // BOUND: a frame leaves the small queue or is refused there once. In the main queue it gets
        // one turn per mark and one more. Concurrent hits could prolong that, so marks are ignored
        // after the limit.
        loop {
            let (small, main) = (self.frames.len(SMALL), self.frames.len(MAIN));
            let list = if refused < small && (small >= self.small_max || main == 0) { SMALL } else { MAIN };
            turns += usize::from(list == MAIN);
            let Some(at) = self.frames.back(list).filter(|_| turns <= main * (1 + usize::from(MARK_MAX)))
            else {
                break;
            };
            let mark = frames.mark(at);
            debug_assert!(mark <= MARK_MAX, "a mark of {mark}");
            if list == SMALL && mark >= MARK_PROMOTE {
                frames.set_mark(at, 0);
                self.frames.move_to_front(MAIN, at);
            } else if list == MAIN && mark > 0 {
                frames.set_mark(at, mark - 1);
                self.frames.move_to_front(MAIN, at);
            } else if frames.claim(at) {
                return Some(self.take(at, list));
            } else {
                self.frames.move_to_front(list, at);
                refused += usize::from(list == SMALL);
            }
        }
        self.evict_any(SMALL, frames).or_else(|| self.evict_any(MAIN, frames))
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.remove(frame);
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        (self.small_max, self.ghosts_max) = Self::split(capacity);
        self.ghosts.resize(self.ghosts_max);
        self.ghosts.trim(GHOST, self.ghosts_max);
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
