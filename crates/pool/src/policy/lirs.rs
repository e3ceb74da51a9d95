//! LIRS (Jiang, Zhang: "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy",
//! SIGMETRICS 2002).
//!
//! ```text
//!   stack S   top: newest   L  h  L  g  h  L  g  g  L   bottom: always an L
//!                              |        |
//!   queue Q   newest        h  h        h               oldest: the victim
//!
//!   L  resident, low reuse distance (the paper's LIR): 99 %
//!   h  resident, high (HIR): on the queue as well
//!   g  evicted, still in the stack
//! ```
//!
//! A page enters the low set when the distance between its last two requests is shorter than the
//! time since the last request of the low page at the bottom of the stack. The two pages then swap.
//! The stack is pruned so that a low page is always at its bottom. New pages pass through the
//! queue, which has one percent of the frames. Scans, and loops that do not fit, leave the low
//! pages alone, and a loop even keeps a part of itself resident. LIRS does badly where recency
//! matters and the queue is too short for it.
//!
//! The paper lets the stack grow without bound. Here the number of evicted pages is limited to
//! [`GHOSTS_PER_FRAME`] times the number of frames. Beyond that, the page evicted first is
//! forgotten.

use super::directory::Directory;
use super::lists::{Lists, Value};
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const ONLY: usize = 0;
/// Number of evicted pages in the stack per frame.
const GHOSTS_PER_FRAME: usize = 2;

/// The stack's information on a frame or an evicted page.
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
    /// The stack S, over evicted pages (items below `ghosts_max`) and frames (items from there on).
    stack: Lists<Entry, 1>,
    /// The queue Q of resident pages in the high set, over frames.
    queue: Lists<(), 1>,
    /// Evicted pages in order of eviction.
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

    /// Returns the number of frames for the low set: all but one percent, and all but two frames in
    /// small pools.
    fn low_for(capacity: usize) -> usize {
        capacity - (capacity / 100).max(2).min(capacity)
    }

    /// With `true`, allows all frames in the low set, which makes the stack the LRU list and its
    /// bottom the victim. With `false`, restores the limit of all but one percent. Resident pages
    /// stay. O(1) for `true`, one percent of the frames for `false`.
    pub(super) fn set_by_recency(&mut self, by_recency: bool) {
        self.by_recency = by_recency;
        self.low_max = if by_recency { self.capacity } else { Self::low_for(self.capacity) };
        while self.low > self.low_max && self.demote_bottom() {
            self.prune();
        }
    }

    fn check(&self) {
        debug_assert!(
            self.stack.back(ONLY).is_none_or(|item| self.stack.value(item).low),
            "the page at the bottom of the stack is not a low one"
        );
        debug_assert!(self.low <= self.low_max, "{} low pages, at most {}", self.low, self.low_max);
        debug_assert!(self.low <= self.stack.len(ONLY), "{} low pages are not on the stack", self.low);
        debug_assert!(
            self.ghosts.len() == self.evicted.len(ONLY) && self.ghosts.len() <= self.ghosts_max as usize
        );
    }

    /// Returns true if the policy tracks a frame.
    #[inline]
    pub(super) fn has(&self, frame: Frame) -> bool {
        self.stack.list_of(self.item(frame)).is_some() || self.queue.list_of(frame).is_some()
    }

    /// Returns the page of a tracked frame.
    #[inline]
    pub(super) fn page(&self, frame: Frame) -> PageId {
        self.stack.value(self.item(frame)).page
    }

    #[inline]
    fn item(&self, frame: Frame) -> u32 {
        debug_assert!(frame <= u32::MAX - self.ghosts_max);
        self.ghosts_max + frame
    }

    /// Removes items from the bottom of the stack until a low one is there.
    fn prune(&mut self) {
        while let Some(item) = self.stack.back(ONLY) {
            if self.stack.value(item).low {
                return;
            }
            self.forget(item);
        }
    }

    /// Removes a high item from the stack and, if it is a ghost, from the ghosts.
    fn forget(&mut self, item: u32) {
        self.stack.remove(item);
        if item < self.ghosts_max {
            self.evicted.remove(item);
            self.ghosts.remove(item);
        }
    }

    /// Puts a frame on top of the stack as a low one. The low set may then lose its bottom page.
    fn promote(&mut self, frame: Frame, page: PageId) {
        debug_assert!(self.queue.list_of(frame).is_none(), "the low frame {frame} is on the queue");
        self.low += 1;
        self.stack.push_front(ONLY, self.item(frame), Entry { page, low: true });
        if self.low > self.low_max {
            self.demote_bottom();
        }
        self.prune();
    }

    /// Moves the bottom page to the queue. It is a low one, since the stack is pruned. Returns
    /// false when there is none.
    fn demote_bottom(&mut self) -> bool {
        let Some(bottom) = self.stack.back(ONLY) else { return false };
        let entry = self.stack.value(bottom);
        let Some(frame) = bottom.checked_sub(self.ghosts_max) else { return false };
        if !entry.low {
            return false;
        }
        self.stack.remove(bottom);
        self.stack.set_value(bottom, Entry { low: false, ..entry });
        debug_assert!(self.low > 0, "a low page that was not counted");
        self.low -= 1;
        debug_assert!(self.queue.list_of(frame).is_none(), "the low frame {frame} is on the queue");
        self.queue.push_front(ONLY, frame, ());
        true
    }

    /// Evicts a frame from the queue. If it was in the stack, it stays there as a ghost.
    fn evict_high(&mut self, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame is in use, so it moves to the front.
        for _ in 0..self.queue.len(ONLY) {
            let victim = self.queue.back(ONLY)?;
            debug_assert!(!self.stack.value(self.item(victim)).low, "the low frame {victim} is on the queue");
            if !frames.claim(victim) {
                self.queue.push_front(ONLY, victim, ());
                continue;
            }
            self.queue.remove(victim);
            let item = self.item(victim);
            let is_in_stack = self.stack.list_of(item).is_some();
            if is_in_stack && frames.is_unused(victim) {
                // More pages were read ahead than the queue holds. A later request for this page
                // will be its first use, so it leaves no ghost.
                self.stack.remove(item);
            } else if is_in_stack {
                self.leave_ghost(item);
            }
            return Some(victim);
        }
        None
    }

    /// Replaces an item of the stack by a ghost.
    fn leave_ghost(&mut self, item: u32) {
        let entry = self.stack.value(item);
        debug_assert!(!entry.low && item >= self.ghosts_max, "item {item} cannot become a ghost");
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
        debug_assert!(ghost < self.ghosts_max, "ghost {ghost} has the number of a frame");
        self.stack.push_behind(item, ghost, entry);
        self.stack.remove(item);
    }

    /// Evicts the frame at the bottom of the stack, or the next one above it that can be claimed.
    fn evict_bottom(&mut self, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame is in use, so it moves to the top.
        for _ in 0..self.low {
            let bottom = self.stack.back(ONLY)?;
            debug_assert!(self.stack.value(bottom).low, "the bottom of the stack is not a low page");
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

    /// Evicts the lowest frame of the low set that can be claimed. Used when the whole queue is
    /// pinned.
    fn evict_low(&mut self, frames: &dyn Frames) -> Option<Frame> {
        let mut at = self.stack.back(ONLY);
        while let Some(item) = at {
            debug_assert!(item >= self.ghosts_max || !self.stack.value(item).low, "the ghost {item} is low");
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
            self.prune(); // Without a low set, the stack stays empty.
        }
        self.check();
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
        self.check();
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        // A page that is only on the queue is older than the bottom of the stack.
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
        debug_assert!(!self.has(frame), "frame {frame} is tracked after its removal");
    }

    /// Linear in the frames, because items get new numbers.
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
            // A frame that is only on the queue still needs its page.
            let (from, to) = (self.item(frame), new.item(frame));
            new.stack.set_value(to, self.stack.value(from));
            new.queue.push_front(ONLY, frame, ());
        }
        new.low = self.low;
        while new.low > new.low_max && new.demote_bottom() {
            new.prune();
        }
        new.prune();
        new.check();
        debug_assert!(new.stack.assert_consistent() && new.queue.assert_consistent());
        *self = new;
    }

    fn len(&self) -> usize {
        self.low + self.queue.len(ONLY)
    }
}
