//! LRU-K with K = 2 (O'Neil, O'Neil, Weikum: "The LRU-K Page Replacement Algorithm for Database
//! Disk Buffering", SIGMOD 1993).
//!
//! ```text
//!   asked for once     list, LRU         these go first, the oldest of them
//!   twice or more      heap, by the time of the request before the last: the oldest goes
//!   evicted            both times are kept, for as many pages as there are frames
//! ```
//!
//! The time of the request before the last reflects how often a page is requested, which the last
//! request does not; the pages of a scan have no such time. Requests in quick succession all count
//! (the correlated reference period is 0), since an engine that keeps its page latched between them
//! makes only one request.
//!
//! A hit only records the time. A page's place in the heap is corrected when it reaches the top. An
//! eviction costs O(log n). LRU-2 does badly where popularity changes: a page requested twice in a
//! row long ago stays longer than it should.

use super::directory::Directory;
use super::lists::{Lists, Value};
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const ONCE: usize = 0;
const EVICTED: usize = 0;
/// Children per heap node. Four children fit two cache lines and halve the depth of a binary heap.
const FANOUT: usize = 4;
/// The position of a frame that is not in the heap.
const NOWHERE: u32 = u32::MAX;

/// The times of a page's last two requests, counted in requests since the pool was created; 0 is
/// never.
#[derive(Debug, Clone, Copy)]
struct Times {
    last: u64,
    before: u64,
}

impl Value for Times {
    const NONE: Times = Times { last: 0, before: 0 };
}

#[derive(Debug, Clone, Copy)]
struct Resident {
    page: PageId,
    times: Times,
    /// Position in the heap, or [`NOWHERE`].
    at: u32,
}

impl Resident {
    const NONE: Resident = Resident { page: PageId::NONE, times: Times::NONE, at: NOWHERE };
}

/// LRU-2.
#[derive(Debug)]
pub(super) struct LruK {
    now: u64,
    frames: Vec<Resident>,
    /// Frames whose pages were requested once.
    once: Lists<(), 1>,
    /// The other frames: the time before the last as it was when the entry was written, and the
    /// frame. The smallest is at the top.
    heap: Vec<(u64, Frame)>,
    /// Frames that an eviction found pinned; empty between calls.
    pinned: Vec<Frame>,
    history: Directory,
    history_order: Lists<Times, 1>,
    history_max: usize,
}

impl LruK {
    pub(super) fn new(capacity: usize) -> Self {
        LruK {
            now: 0,
            frames: vec![Resident::NONE; capacity],
            once: Lists::new(capacity),
            heap: Vec::with_capacity(capacity),
            pinned: Vec::new(),
            history: Directory::new(capacity),
            history_order: Lists::new(capacity),
            history_max: capacity,
        }
    }

    fn remember(&mut self, page: PageId, times: Times) {
        if self.history_max == 0 {
            return;
        }
        let slot = self.history.insert(page);
        self.history_order.push_front(EVICTED, slot, times);
        self.trim();
        debug_assert!(times.before <= times.last && times.last <= self.now, "{times:?} at {}", self.now);
    }

    fn trim(&mut self) {
        while self.history.len() > self.history_max {
            let Some(oldest) = self.history_order.pop_back(EVICTED) else { return };
            self.history.remove(oldest);
        }
        debug_assert!(
            self.history.len() == self.history_order.total(),
            "a page is in one part of the history"
        );
    }

    fn recall(&mut self, page: PageId) -> Option<Times> {
        let slot = self.history.find(page)?;
        self.history.remove(slot);
        self.history_order.remove(slot);
        Some(self.history_order.value(slot))
    }

    fn evict_once(&mut self, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame is in use, so it moves to the front.
        for _ in 0..self.once.len(ONCE) {
            let victim = self.once.back(ONCE)?;
            if frames.claim(victim) {
                self.once.remove(victim);
                return Some(victim);
            }
            self.once.push_front(ONCE, victim, ());
        }
        None
    }

    fn evict_often(&mut self, frames: &dyn Frames) -> Option<Frame> {
        let mut found = None;
        debug_assert!(self.pinned.is_empty());
        let tracked = self.heap.len();
        // BOUND: each step either corrects an entry, which stays correct during this call, or
        // removes one.
        while let Some(&(written, frame)) = self.heap.first() {
            let before = self.frames[frame as usize].times.before;
            if written != before {
                self.sift_down(0, (before, frame));
                continue;
            }
            self.take_out(0);
            if frames.claim(frame) {
                found = Some(frame);
                break;
            }
            self.pinned.push(frame);
        }
        while let Some(frame) = self.pinned.pop() {
            self.put_in(frame);
        }
        debug_assert!(self.heap.len() + usize::from(found.is_some()) == tracked, "a pinned frame was lost");
        found
    }

    fn put_in(&mut self, frame: Frame) {
        debug_assert!(self.frames[frame as usize].at == NOWHERE, "frame {frame} is in the heap already");
        debug_assert!(self.once.list_of(frame).is_none(), "frame {frame} is on the list, too");
        let entry = (self.frames[frame as usize].times.before, frame);
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
    }

    /// Removes the entry at a position from the heap.
    fn take_out(&mut self, at: usize) {
        debug_assert!(
            self.heap.get(at).is_some_and(|&(_, frame)| self.frames[frame as usize].at == at as u32)
        );
        let Some(last) = self.heap.pop() else { return };
        let Some(&(_, gone)) = self.heap.get(at) else {
            self.frames[last.1 as usize].at = NOWHERE;
            return;
        };
        self.frames[gone as usize].at = NOWHERE;
        self.sift_up(at, last);
        self.sift_down(self.frames[last.1 as usize].at as usize, last);
    }

    /// Places an entry at a position or above.
    fn sift_up(&mut self, mut at: usize, entry: (u64, Frame)) {
        while at > 0 {
            let parent = (at - 1) / FANOUT;
            if self.heap[parent] <= entry {
                break;
            }
            self.write(at, self.heap[parent]);
            at = parent;
        }
        self.write(at, entry);
    }

    /// Places an entry at a position or below.
    fn sift_down(&mut self, mut at: usize, entry: (u64, Frame)) {
        loop {
            let first = at * FANOUT + 1;
            let children = first..(first + FANOUT).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.write(at, self.heap[least]);
            at = least;
        }
        self.write(at, entry);
    }

    /// Checks the order of the heap and the positions of its frames, in linear time. Always true,
    /// for `debug_assert!`.
    fn assert_heap(&self) -> bool {
        for (at, &entry) in self.heap.iter().enumerate() {
            assert!(at == 0 || self.heap[(at - 1) / FANOUT] <= entry, "the heap is out of order at {at}");
            assert!(self.frames[entry.1 as usize].at as usize == at, "frame {} is not at {at}", entry.1);
        }
        true
    }

    fn write(&mut self, at: usize, entry: (u64, Frame)) {
        self.heap[at] = entry;
        self.frames[entry.1 as usize].at = at as u32;
    }
}

impl Policy for LruK {
    fn kind(&self) -> PolicyKind {
        PolicyKind::LruK
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        let Some(resident) = self.frames.get_mut(frame as usize) else { return };
        let once = resident.at == NOWHERE;
        if once && self.once.remove(frame).is_none() {
            return;
        }
        self.now += 1;
        debug_assert!(resident.times.last < self.now && resident.page != PageId::NONE);
        resident.times = Times { last: self.now, before: resident.times.last };
        if once {
            self.put_in(frame);
        }
    }

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        self.remove(frame);
        if frame as usize >= self.frames.len() {
            self.frames.resize(frame as usize + 1, Resident::NONE);
        }
        self.now += 1;
        let known = self.recall(page);
        let times = Times { last: self.now, before: known.map_or(0, |times| times.last) };
        debug_assert!(times.before < times.last, "{page} was evicted before its request: {times:?}");
        self.frames[frame as usize] = Resident { page, times, at: NOWHERE };
        if known.is_some() {
            self.put_in(frame);
        } else {
            self.once.push_front(ONCE, frame, ());
        }
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        let victim = self.evict_once(frames).or_else(|| self.evict_often(frames))?;
        let Resident { page, times, at } = self.frames[victim as usize];
        debug_assert!(at == NOWHERE && self.once.list_of(victim).is_none(), "the victim {victim} stays");
        self.remember(page, times);
        Some(victim)
    }

    fn remove(&mut self, frame: Frame) {
        let Some(resident) = self.frames.get(frame as usize) else { return };
        if resident.at == NOWHERE {
            self.once.remove(frame);
        } else {
            self.take_out(resident.at as usize);
        }
    }

    fn resize(&mut self, capacity: usize) {
        self.once.resize(capacity);
        debug_assert!(self.assert_heap());
        if self.frames.len() > capacity {
            let used = self.frames.iter().rposition(|resident| resident.at != NOWHERE);
            self.frames.truncate(capacity.max(used.map_or(0, |last| last + 1)));
        }
        self.frames.resize(self.frames.len().max(capacity), Resident::NONE);
        debug_assert!(self.heap.iter().all(|&(_, frame)| (frame as usize) < self.frames.len()));
        self.history_max = capacity;
        self.trim();
        self.history.resize(capacity);
    }

    fn len(&self) -> usize {
        self.once.total() + self.heap.len()
    }
}
