//! LIRS (Jiang, Zhang: "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy",
//! SIGMETRICS 2002).
//!
//! ```text
//!   stack S   top: newest   L  h  L  g  h  L  g  g  L   bottom: always an L     L  resident, low reuse distance: 99 %
//!                              |        |                                       h  resident, high: on the queue as well
//!   queue Q   newest        h  h        h               oldest: the victim      g  evicted, still in the stack
//! ```
//!
//! A page belongs to the low set when the distance between its last two requests is shorter than
//! the time since the last request of the low page at the bottom: then they swap. The stack is
//! pruned so that a low page is at its bottom. New pages pass through the queue, one percent of the
//! frames; a scan or a loop that does not fit leaves the low pages alone, and a loop even keeps a
//! part of itself. It loses where what was asked for a moment ago matters and the queue is too
//! short for it.
//!
//! The paper lets the stack grow without bound. Here evicted pages are at most [`GHOSTS_PER_FRAME`]
//! times the frames; beyond, the one evicted first is forgotten.

use super::directory::Directory;
use super::lists::{Lists, Value};
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const ONLY: usize = 0;
/// Evicted pages in the stack for each frame.
const GHOSTS_PER_FRAME: usize = 2;

/// What the stack knows of a frame or of an evicted page.
#[derive(Debug, Clone, Copy)]
struct Entry {
    page: PageId,
    low: bool,
}

impl Value for Entry {
    const NONE: Entry = Entry { page: PageId::NONE, low: false };
}

/// LIRS with a queue of one percent.
#[derive(Debug)]
pub(super) struct Lirs {
    /// The stack S, over evicted pages (items below `ghosts_max`) and frames (from there on).
    stack: Lists<Entry, 1>,
    /// The queue Q of resident pages of the high set, over frames.
    queue: Lists<(), 1>,
    /// Evicted pages in the order in which they were evicted.
    evicted: Lists<(), 1>,
    ghosts: Directory,
    ghosts_max: u32,
    low: usize,
    low_max: usize,
    capacity: usize,
    by_recency: bool,
}

impl Lirs {
    pub(super) fn new(capacity: usize) -> Self {
        let ghosts = capacity * GHOSTS_PER_FRAME;
        Lirs {
            stack: Lists::new(ghosts + capacity),
            queue: Lists::new(capacity),
            evicted: Lists::new(ghosts),
            ghosts: Directory::new(ghosts),
            ghosts_max: ghosts as u32,
            low: 0,
            low_max: Self::low_for(capacity),
            capacity,
            by_recency: false,
        }
    }

    /// How many frames the low set gets: all but one percent, or two frames where that is less.
    fn low_for(capacity: usize) -> usize {
        capacity - (capacity / 100).max(2).min(capacity)
    }

    /// With `true`, all frames may belong to the low set from now on, which makes the stack the
    /// list of LRU and its bottom the victim; with `false` all but one percent again. What is
    /// resident stays so. O(1) for `true`, one percent of the frames for `false`.
    pub(super) fn set_by_recency(&mut self, by_recency: bool) {
        self.by_recency = by_recency;
        self.low_max = if by_recency { self.capacity } else { Self::low_for(self.capacity) };
        while self.low > self.low_max && self.demote_bottom() {
            self.prune();
        }
    }

    /// Whether it has a frame.
    #[inline]
    pub(super) fn has(&self, frame: Frame) -> bool {
        self.stack.list_of(self.item(frame)).is_some() || self.queue.list_of(frame).is_some()
    }

    /// The page in a frame that it has.
    #[inline]
    pub(super) fn page(&self, frame: Frame) -> PageId {
        self.stack.value(self.item(frame)).page
    }

    #[inline]
    fn item(&self, frame: Frame) -> u32 {
        self.ghosts_max + frame
    }

    /// Takes from the bottom of the stack what is not of the low set.
    fn prune(&mut self) {
        while let Some(item) = self.stack.back(ONLY) {
            if self.stack.value(item).low {
                return;
            }
            self.forget(item);
        }
    }

    /// Takes an item of the high set off the stack, and off the ghosts if it is one.
    fn forget(&mut self, item: u32) {
        self.stack.remove(item);
        if item < self.ghosts_max {
            self.evicted.remove(item);
            self.ghosts.remove(item);
        }
    }

    /// Puts a frame on top of the stack as one of the low set, which then may lose the one at the
    /// bottom.
    fn promote(&mut self, frame: Frame, page: PageId) {
        self.low += 1;
        self.stack.push_front(ONLY, self.item(frame), Entry { page, low: true });
        if self.low > self.low_max {
            self.demote_bottom();
        }
        self.prune();
    }

    /// Moves the page at the bottom, which is of the low set since the stack was pruned, to the
    /// queue. False when there is none.
    fn demote_bottom(&mut self) -> bool {
        let Some(bottom) = self.stack.back(ONLY) else { return false };
        let entry = self.stack.value(bottom);
        let Some(frame) = bottom.checked_sub(self.ghosts_max) else { return false };
        if !entry.low {
            return false;
        }
        self.stack.remove(bottom);
        self.stack.set_value(bottom, Entry { low: false, ..entry });
        self.low -= 1;
        self.queue.push_front(ONLY, frame, ());
        true
    }

    /// Evicts a frame of the queue, which stays in the stack as a ghost if it was there.
    fn evict_high(&mut self, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap; who is pinned is in use, and goes to the front.
        for _ in 0..self.queue.len(ONLY) {
            let victim = self.queue.back(ONLY)?;
            if !frames.claim(victim) {
                self.queue.push_front(ONLY, victim, ());
                continue;
            }
            self.queue.remove(victim);
            let item = self.item(victim);
            let is_in_stack = self.stack.list_of(item).is_some();
            if is_in_stack && frames.is_unused(victim) {
                // Read ahead by more than the queue holds: who asks for it yet will be its first
                // user.
                self.stack.remove(item);
            } else if is_in_stack {
                self.leave_ghost(item);
            }
            return Some(victim);
        }
        None
    }

    /// Puts a ghost where an item of the stack was.
    fn leave_ghost(&mut self, item: u32) {
        let entry = self.stack.value(item);
        if self.ghosts_max == 0 {
            self.stack.remove(item);
            return;
        }
        if self.ghosts.len() >= self.ghosts_max as usize
            && let Some(oldest) = self.evicted.back(ONLY)
        {
            self.forget(oldest);
        }
        let ghost = self.ghosts.insert(entry.page);
        self.evicted.push_front(ONLY, ghost, ());
        self.stack.push_behind(item, ghost, entry);
        self.stack.remove(item);
    }

    /// Evicts the frame at the bottom of the stack, or the one above it that can be claimed.
    fn evict_bottom(&mut self, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap; who is pinned is in use, and goes to the top.
        for _ in 0..self.low {
            let bottom = self.stack.back(ONLY)?;
            let frame = bottom.checked_sub(self.ghosts_max)?;
            if frames.claim(frame) {
                self.remove(frame);
                return Some(frame);
            }
            self.stack.push_front(ONLY, bottom, self.stack.value(bottom));
            self.prune();
        }
        None
    }

    /// Evicts a frame of the low set, the lowest that can be claimed: all of the queue is pinned.
    fn evict_low(&mut self, frames: &dyn Frames) -> Option<Frame> {
        let mut at = self.stack.back(ONLY);
        while let Some(item) = at {
            if self.stack.value(item).low && frames.claim(item - self.ghosts_max) {
                self.stack.remove(item);
                self.low -= 1;
                self.prune();
                return Some(item - self.ghosts_max);
            }
            at = self.stack.before(item);
        }
        None
    }
}

impl Policy for Lirs {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Lirs
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        let item = self.item(frame);
        let entry = self.stack.value(item);
        if self.stack.list_of(item).is_some() {
            if entry.low {
                let pruned = self.stack.back(ONLY) == Some(item);
                self.stack.push_front(ONLY, item, entry);
                if pruned {
                    self.prune();
                }
            } else {
                self.queue.remove(frame);
                self.promote(frame, entry.page);
            }
        } else if self.queue.list_of(frame).is_some() {
            self.stack.push_front(ONLY, item, entry);
            self.queue.push_front(ONLY, frame, ());
            self.prune(); // Without a low set the stack stays empty.
        }
    }

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        self.remove(frame);
        let ghost = self.ghosts.find(page);
        if let Some(ghost) = ghost {
            self.forget(ghost);
        }
        if ghost.is_some() || self.low < self.low_max {
            self.promote(frame, page);
        } else {
            self.stack.push_front(ONLY, self.item(frame), Entry { page, low: false });
            self.queue.push_front(ONLY, frame, ());
            self.prune();
        }
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        // What is on the queue alone is older than the bottom of the stack.
        let queued = self.queue.back(ONLY).map(|frame| self.item(frame));
        if self.by_recency
            && queued.is_none_or(|item| self.stack.list_of(item).is_some())
            && let Some(victim) = self.evict_bottom(frames)
        {
            return Some(victim);
        }
        let may_be_low = self.by_recency || !frames.reads_ahead();
        self.evict_high(frames).or_else(|| if may_be_low { self.evict_low(frames) } else { None })
    }

    fn ahead_max(&self) -> usize {
        if self.by_recency { usize::MAX } else { self.capacity - self.low_max }
    }

    fn remove(&mut self, frame: Frame) {
        let item = self.item(frame);
        let low = self.stack.value(item).low;
        if self.stack.remove(item).is_some() && low {
            self.low -= 1;
            self.prune();
        }
        self.queue.remove(frame);
    }

    /// Linear in the frames: items get new numbers.
    fn resize(&mut self, capacity: usize) {
        let mut new = Lirs::new(capacity);
        new.set_by_recency(self.by_recency);
        let kept = self.evicted.len(ONLY).min(new.ghosts_max as usize);
        let mut evicted: Vec<u32> = self.evicted.iter(ONLY).take(kept).collect();
        evicted.reverse();
        for ghost in evicted {
            let ghost = new.ghosts.insert(self.ghosts.page(ghost));
            new.evicted.push_front(ONLY, ghost, ());
        }
        let mut stack: Vec<u32> = self.stack.iter(ONLY).collect();
        stack.reverse();
        for item in stack {
            let entry = self.stack.value(item);
            let item = match item.checked_sub(self.ghosts_max) {
                Some(frame) => Some(new.item(frame)),
                None => new.ghosts.find(entry.page),
            };
            if let Some(item) = item {
                new.stack.push_front(ONLY, item, entry);
            }
        }
        let mut queue: Vec<u32> = self.queue.iter(ONLY).collect();
        queue.reverse();
        for frame in queue {
            // One that is on the queue alone is known by its page still.
            let (from, to) = (self.item(frame), new.item(frame));
            new.stack.set_value(to, self.stack.value(from));
            new.queue.push_front(ONLY, frame, ());
        }
        new.low = self.low;
        while new.low > new.low_max && new.demote_bottom() {
            new.prune();
        }
        new.prune();
        *self = new;
    }

    fn len(&self) -> usize {
        self.low + self.queue.len(ONLY)
    }
}
