//! W-TinyLFU (Einziger, Friedman, Manes: "TinyLFU: A Highly Efficient Cache Admission Policy", ACM
//! ToS 2017; the window's size adapts as in Einziger, Eytan, Friedman, Manes: "Adaptive Software
//! Cache Management", Middleware 2018).
//!
//! ```text
//!   miss -> window  LRU, 1 % at first --oldest--+
//!                                               v  which of them was requested more often?
//!           probation  LRU  --hit-->  protected  LRU, 80 % of the rest
//!           its oldest is the rival   its oldest falls back to probation
//! ```
//!
//! A page that leaves the window replaces the oldest page on probation only if a sketch of past
//! requests shows that it is requested more often. Where frequency is not decisive, the window is
//! enlarged step by step as long as the hit ratio rises (hill climbing). W-TinyLFU does badly on
//! short-lived popularity, and in small pools, where the climb has few samples.

use super::directory::hash;
use super::lists::Lists;
use super::sketch::Sketch;
use super::{Frames, Hits, Policy, PolicyKind};
use crate::page::{Frame, PageId};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Requests per frame between two steps of the climb.
const SAMPLE: usize = 10;
/// The first step of the climb, as a fraction of the frames.
const STEP: f64 = 0.0625;
/// The factor between one step and the next.
const DECAY: f64 = 0.98;
/// The change of the hit ratio at which the climb restarts with a full step.
const RESTART: f64 = 0.05;
/// The estimate from which a page that loses against its rival still gets a small chance.
const WARM: u64 = 6;
const _: () = assert!(STEP > 0.0 && STEP < 1.0 && DECAY > 0.0 && DECAY < 1.0);

/// W-TinyLFU with an adaptive window.
#[derive(Debug)]
pub(super) struct WTinyLfu {
    frames: Lists<PageId, 3>,
    sketch: Sketch,
    capacity: usize,
    window_max: usize,
    protected_max: usize,
    climb: Climb,
    /// State of the pseudo-random numbers that decide about the small chance. Their quality does
    /// not matter.
    dice: u64,
}

/// The search for the window size with the best hit ratio.
#[derive(Debug)]
struct Climb {
    hits: usize,
    misses: usize,
    ratio: f64,
    /// Number of frames to add to the window; negative to remove.
    step: f64,
}

impl WTinyLfu {
    pub(super) fn new(capacity: usize) -> Self {
        let mut policy = WTinyLfu {
            frames: Lists::new(capacity),
            sketch: Sketch::new(capacity),
            capacity,
            window_max: 0,
            protected_max: 0,
            climb: Climb { hits: 0, misses: 0, ratio: 0.0, step: STEP * capacity as f64 },
            dice: 0x5851_F42D_4C95_7F2D,
        };
        policy.set_window(capacity / 100);
        policy
    }

    fn set_window(&mut self, window: usize) {
        self.window_max = window.clamp(1, self.capacity.max(1));
        self.protected_max = (self.capacity - self.window_max.min(self.capacity)) * 8 / 10;
        debug_assert!(self.window_max > 0 && self.protected_max <= self.capacity);
    }

    /// Demotes pages until the protected segment is within its limit.
    fn fall_back(&mut self) {
        while self.frames.len(PROTECTED) > self.protected_max {
            let Some(frame) = self.frames.back(PROTECTED) else { return };
            self.frames.move_to_front(PROBATION, frame);
        }
        debug_assert!(self.frames.len(PROTECTED) <= self.protected_max);
    }

    /// Counts a request for the climb, and takes a step when it is due.
    fn sample(&mut self, hit: bool) {
        self.climb.hits += usize::from(hit);
        self.climb.misses += usize::from(!hit);
        if self.climb.hits + self.climb.misses >= SAMPLE * self.capacity.max(1) {
            self.step();
        }
    }

    #[cold]
    fn step(&mut self) {
        let climb = &mut self.climb;
        let ratio = climb.hits as f64 / (climb.hits + climb.misses) as f64;
        debug_assert!((0.0..=1.0).contains(&ratio) && climb.step.is_finite());
        let change = ratio - climb.ratio;
        (climb.hits, climb.misses, climb.ratio) = (0, 0, ratio);
        let step = if change >= 0.0 { climb.step } else { -climb.step };
        climb.step =
            if change.abs() >= RESTART { (STEP * self.capacity as f64).copysign(step) } else { DECAY * step };
        let most = self.capacity as f64 * 0.8;
        let window = (self.window_max as f64 + step).clamp(1.0, most.max(1.0));
        self.set_window(window.round() as usize);
        self.fall_back();
    }

    /// Returns true if the page leaving the window is worth more than its rival.
    fn admits(&mut self, candidate: PageId, rival: PageId) -> bool {
        let (ours, theirs) = (self.sketch.estimate(candidate), self.sketch.estimate(rival));
        if ours > theirs {
            return true;
        }
        // A hash collision that makes the rival look popular would keep it forever, so one
        // candidate in 128 is admitted at random.
        self.dice = hash(PageId::from_u64(self.dice));
        ours >= WARM && self.dice & 127 == 0
    }

    fn evict_from(&mut self, list: usize, frames: &dyn Frames) -> Option<Frame> {
        // BOUND: one lap. A pinned frame is in use, so it moves to the front.
        for _ in 0..self.frames.len(list) {
            let victim = self.frames.back(list)?;
            debug_assert!(self.frames.value(victim) != PageId::NONE, "frame {victim} has no page");
            if frames.claim(victim) {
                self.frames.remove(victim);
                return Some(victim);
            }
            self.frames.move_to_front(list, victim);
        }
        None
    }
}

impl Policy for WTinyLfu {
    fn kind(&self) -> PolicyKind {
        PolicyKind::WTinyLfu
    }

    fn hits(&self) -> Hits {
        Hits::Logged
    }

    fn hit(&mut self, frame: Frame) {
        let Some(list) = self.frames.list_of(frame) else { return };
        self.sketch.count(self.frames.value(frame));
        if list == WINDOW {
            self.frames.move_to_front(WINDOW, frame);
        } else {
            self.frames.move_to_front(PROTECTED, frame);
            self.fall_back();
        }
        self.sample(true);
    }

    fn insert(&mut self, frame: Frame, page: PageId, _frames: &dyn Frames) {
        debug_assert!(self.frames.list_of(frame).is_none(), "frame {frame} is tracked already");
        self.sketch.count(page);
        self.frames.push_front(WINDOW, frame, page);
        // While frames are free, no page has to compete.
        while self.frames.len(WINDOW) > self.window_max && self.frames.total() < self.capacity {
            let Some(oldest) = self.frames.back(WINDOW) else { break };
            self.frames.move_to_front(PROBATION, oldest);
        }
        self.sample(false);
    }

    fn evict(&mut self, _incoming: Option<PageId>, frames: &dyn Frames) -> Option<Frame> {
        // More than one over the limit: the window was made smaller.
        while self.frames.len(WINDOW) > self.window_max
            && let Some(oldest) = self.frames.back(WINDOW)
        {
            self.frames.move_to_front(PROBATION, oldest);
        }
        debug_assert!(self.frames.len(WINDOW) <= self.window_max, "the window is above its limit");
        let rival = self.frames.back(PROBATION).or_else(|| self.frames.back(PROTECTED));
        let candidate = self.frames.back(WINDOW).filter(|_| self.frames.len(WINDOW) >= self.window_max);
        let order = match (candidate, rival) {
            (Some(candidate), Some(rival)) => {
                if self.admits(self.frames.value(candidate), self.frames.value(rival)) {
                    self.frames.move_to_front(PROBATION, candidate);
                    [PROBATION, PROTECTED, WINDOW]
                } else {
                    [WINDOW, PROBATION, PROTECTED]
                }
            }
            (Some(_), None) => [WINDOW, PROBATION, PROTECTED],
            _ => [PROBATION, PROTECTED, WINDOW],
        };
        order.into_iter().find_map(|list| self.evict_from(list, frames))
    }

    fn remove(&mut self, frame: Frame) {
        self.frames.remove(frame);
    }

    fn resize(&mut self, capacity: usize) {
        self.frames.resize(capacity);
        // The counts are dropped, because the position of a counter depends on the table's size.
        self.sketch = Sketch::new(capacity);
        let window = self.window_max * capacity / self.capacity.max(1);
        self.capacity = capacity;
        self.climb = Climb { hits: 0, misses: 0, ratio: 0.0, step: STEP * capacity as f64 };
        self.set_window(window);
        self.fall_back();
    }

    fn len(&self) -> usize {
        self.frames.total()
    }
}
