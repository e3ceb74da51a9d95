//! 2Q, the full version (Johnson, Shasha: "2Q: A Low Overhead High Performance Buffer Management
//! Replacement Algorithm", VLDB 1994).
//!
//! ```text
//!   miss, unknown ->  A1in  FIFO, 25 % of the frames  --evicted-->  A1out  page numbers only,
//!                                                                     |    50 % of the frames
//!                     Am    LRU, the rest             <--- miss ------+
//! ```
//!
//! A page proves itself when it is requested again after it has left `A1in`; two requests in quick
//! succession do not count. A scan only passes through `A1in`. 2Q does badly when reuse comes later
//! than `A1out` remembers, and when the hot set needs the whole pool, since `A1in` takes its share
//! of the frames.

use super::ghosts::Ghosts;
use super::lists::Lists;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const IN: usize = 0;
const MAIN: usize = 1;
const OUT: usize = 0;

/// 2Q with `A1in` of a quarter and `A1out` of half the frames.
#[derive(Debug)]
pub(super) struct TwoQ {
    frames: Lists<PageId, 2>,
    out: Ghosts<1>,
    in_max: usize,
    out_max: usize,
}

impl TwoQ {
    pub(super) fn new(capacity: usize) -> Self {
        let out_max = capacity / 2;
        TwoQ {
            frames: Lists::new(capacity),
            out: Ghosts::new(out_max),
            in_max: (capacity / 4).max(1),
            out_max,
        }
    }

    fn evict_from(&mut self, list: usize, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame starts over at the front.
        for _ in 0..self.frames.len(list) {
            let victim = self.frames.back(list)?;
            debug_assert!(self.frames.value(victim) != PageId::NONE, "frame {victim} has no page");
            if frames.claim(victim) {
                self.frames.remove(victim);
                if list == IN {
                    self.out.push(OUT, self.frames.value(victim));
                    self.out.trim(OUT, self.out_max);
                    debug_assert!(self.out.len(OUT) <= self.out_max);
                }
                return Some(victim);
            }
            self.frames.move_to_front(list, victim);
        }
        None
    }
}

impl Policy for TwoQ {
    fn kind(&self) -> PolicyKind {
        PolicyKind::TwoQ
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        if self.frames.list_of(frame) == Some(MAIN) {
            self.frames.move_to_front(MAIN, frame);
        }
    }

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        let list = if self.out.take(page).is_some() { MAIN } else { IN };
        self.frames.push_front(list, frame, page);
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let first = if self.frames.len(IN) > self.in_max { IN } else { MAIN };
        self.evict_from(first, frames).or_else(|| self.evict_from(IN + MAIN - first, frames))
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.remove(frame);
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        (self.in_max, self.out_max) = ((capacity / 4).max(1), capacity / 2);
        self.out.resize(capacity / 2);
        self.out.trim(OUT, self.out_max);
        debug_assert!(self.in_max > 0 && self.out.len(OUT) <= self.out_max);
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
