//! A pool without page content: frames, pins and marks around a policy, with a check of every
//! answer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use proptest::prelude::*;

use super::super::{Frames, Hits, Policy};
use super::models::Model;
use crate::page::{Frame, PageId};

/// The operations on a pool.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Request(u64),
    /// Pins or unpins the resident page of this rank.
    Pin(usize),
    Unpin(usize),
    /// Drops the resident page of this rank.
    Remove(usize),
    /// Frees a frame ahead of a miss.
    EvictAhead,
    Resize(usize),
}

/// Generates up to `most` steps, mainly requests. About every fourth run has no pins, and every
/// second one no resizes.
pub(super) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        30 => (0_u64..32).prop_map(Step::Request),
        10 => (0_u64..6).prop_map(Step::Request),
        2 => (0_usize..16).prop_map(Step::Pin),
        2 => (0_usize..16).prop_map(Step::Unpin),
        1 => (0_usize..16).prop_map(Step::Remove),
        2 => Just(Step::EvictAhead),
        1 => (1_usize..18).prop_map(Step::Resize),
    ];
    (proptest::collection::vec(step, 1..most), 0..4, 0..2).prop_map(|(mut steps, pins, resizing)| {
        steps.retain(|step| match step {
            Step::Pin(_) => pins > 0,
            Step::Resize(_) => resizing > 0,
            _ => true,
        });
        steps
    })
}

pub(super) struct World<P: ?Sized> {
    pub(super) policy: Box<P>,
    model: Option<Box<dyn Model>>,
    slots: Slots,
}

/// The frames as a policy sees them.
struct Slots {
    pages: Vec<Option<u64>>,
    marks: Vec<Cell<u8>>,
    pinned: Vec<bool>,
    claimed: Cell<Option<Frame>>,
    /// How often each frame was tried in this eviction.
    tried: RefCell<HashMap<Frame, usize>>,
}

impl Frames for Slots {
    fn mark(&self, frame: Frame) -> u8 {
        self.marks[frame as usize].get()
    }
    fn set_mark(&self, frame: Frame, mark: u8) {
        self.marks[frame as usize].set(mark);
    }
    fn claim(&self, frame: Frame) -> bool {
        assert!(self.pages[frame as usize].is_some(), "claims frame {frame}, which holds nothing");
        assert_eq!(self.claimed.get(), None, "claims frame {frame} after it was given another one");
        *self.tried.borrow_mut().entry(frame).or_default() += 1;
        let free = !self.pinned[frame as usize];
        if free {
            self.claimed.set(Some(frame));
        }
        free
    }
}

impl Slots {
    fn frame_of(&self, page: u64) -> Option<Frame> {
        self.pages.iter().position(|&held| held == Some(page)).map(|at| at as Frame)
    }
    fn held(&self) -> Vec<Frame> {
        (0..).zip(&self.pages).filter(|(_, page)| page.is_some()).map(|(frame, _)| frame).collect()
    }
    fn ranked(&self, rank: usize) -> Option<Frame> {
        let held = self.held();
        held.get(rank % held.len().max(1)).copied()
    }
}

impl<P: Policy + ?Sized> World<P> {
    pub(super) fn new(policy: Box<P>, model: Option<Box<dyn Model>>, capacity: usize) -> Self {
        let slots = Slots {
            pages: vec![None; capacity],
            marks: vec![Cell::new(0); capacity],
            pinned: vec![false; capacity],
            claimed: Cell::new(None),
            tried: RefCell::default(),
        };
        World { policy, model, slots }
    }

    pub(super) fn run(&mut self, steps: &[Step]) {
        self.run_on(steps);
        self.finish();
    }

    pub(super) fn run_on(&mut self, steps: &[Step]) {
        for &step in steps {
            match step {
                Step::Request(page) => self.request(page),
                Step::Pin(rank) | Step::Unpin(rank) => {
                    if let Some(frame) = self.slots.ranked(rank) {
                        self.slots.pinned[frame as usize] = matches!(step, Step::Pin(_));
                    }
                }
                Step::Remove(rank) => {
                    if let Some(frame) = self.slots.ranked(rank) {
                        self.remove(frame);
                    }
                }
                Step::EvictAhead => {
                    self.evict(None);
                }
                Step::Resize(capacity) => self.resize(capacity),
            }
            assert_eq!(self.policy.len(), self.slots.held().len(), "after {step:?}");
            assert_eq!(self.policy.is_empty(), self.slots.held().is_empty());
        }
    }

    /// Asserts that every frame can be evicted in the end, and that none is left then.
    pub(super) fn finish(&mut self) {
        self.slots.pinned.fill(false);
        while !self.slots.held().is_empty() {
            assert!(self.evict(None).is_some(), "{:?} gives up none of {:?}", self.policy, self.slots.held());
        }
        assert_eq!(self.evict(None), None);
    }

    fn request(&mut self, page: u64) {
        if let Some(frame) = self.slots.frame_of(page) {
            match self.policy.hits() {
                Hits::Marked { max } => {
                    let mark = &self.slots.marks[frame as usize];
                    mark.set((mark.get() + 1).min(max));
                }
                Hits::Logged => self.policy.hit(frame),
            }
            self.model.iter_mut().for_each(|model| model.hit(page));
            return;
        }
        let free = self.slots.pages.iter().position(Option::is_none).map(|at| at as Frame);
        let Some(frame) = free.or_else(|| self.evict(Some(page))) else { return };
        self.slots.pages[frame as usize] = Some(page);
        self.slots.marks[frame as usize].set(0);
        self.policy.insert(frame, PageId::from_u64(page), &self.slots);
        self.model.iter_mut().for_each(|model| model.insert(page));
    }

    fn evict(&mut self, incoming: Option<u64>) -> Option<Frame> {
        self.slots.claimed.set(None);
        self.slots.tried.borrow_mut().clear();
        let victim = self.policy.evict(incoming.map(PageId::from_u64), &self.slots);
        assert_eq!(victim, self.slots.claimed.get(), "what is claimed is returned");
        // A policy tries a frame once before and once after other frames have lost their marks, and
        // once more for each mark that it removes: S3-FIFO up to three.
        let most = match self.policy.hits() {
            Hits::Marked { max } => 2 + usize::from(max),
            Hits::Logged => 2,
        };
        for (frame, times) in self.slots.tried.borrow().iter() {
            assert!(*times <= most, "{:?} tries frame {frame} {times} times", self.policy.kind());
        }
        if victim.is_none() {
            let tried = self.slots.tried.borrow();
            let missed: Vec<_> =
                self.slots.held().into_iter().filter(|frame| !tried.contains_key(frame)).collect();
            assert!(missed.is_empty(), "{:?} gives up without trying {missed:?}", self.policy.kind());
        }
        if let Some(model) = &mut self.model {
            let slots = &self.slots;
            let free = |page: u64| slots.frame_of(page).is_some_and(|frame| !slots.pinned[frame as usize]);
            let expected = model.evict(incoming, &free);
            let page = victim.and_then(|frame| slots.pages[frame as usize]);
            assert_eq!(page, expected, "{:?} evicts another page than its model", self.policy.kind());
        }
        if let Some(frame) = victim {
            self.slots.pages[frame as usize] = None;
        }
        victim
    }

    fn remove(&mut self, frame: Frame) {
        self.policy.remove(frame);
        self.policy.remove(frame); // The second call must do nothing.
        self.slots.pinned[frame as usize] = false;
        if let Some(page) = self.slots.pages[frame as usize].take() {
            self.model.iter_mut().for_each(|model| model.remove(page));
        }
    }

    fn resize(&mut self, capacity: usize) {
        for frame in self.slots.held() {
            if frame as usize >= capacity {
                self.remove(frame);
            }
        }
        self.slots.pages.resize(capacity, None);
        self.slots.marks.resize(capacity, Cell::new(0));
        self.slots.pinned.resize(capacity, false);
        self.policy.resize(capacity);
        self.model.iter_mut().for_each(|model| model.resize(capacity));
    }
}
