//! Straightforward models of the policies, over linearly searched vectors. The newest page is
//! first.

use std::collections::HashMap;

/// A policy over page numbers.
pub(super) trait Model {
    fn hit(&mut self, page: u64);
    fn insert(&mut self, page: u64);
    /// Chooses a page that `claim` accepts, and stops tracking it.
    fn evict(&mut self, incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64>;
    fn remove(&mut self, page: u64);
    fn resize(&mut self, capacity: usize);
}

/// Removes a page from a list. Returns whether it was there.
fn take(list: &mut Vec<u64>, page: u64) -> bool {
    let before = list.len();
    list.retain(|&other| other != page);
    list.len() < before
}

/// Evicts the oldest page that can be claimed. Pages that cannot be claimed move to the front, as
/// if just used.
fn evict_oldest(list: &mut Vec<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
    for _ in 0..list.len() {
        let page = list.pop()?;
        if claim(page) {
            return Some(page);
        }
        list.insert(0, page);
    }
    None
}

#[derive(Default)]
pub(super) struct Lru(Vec<u64>);

impl Model for Lru {
    fn hit(&mut self, page: u64) {
        take(&mut self.0, page);
        self.0.insert(0, page);
    }
    fn insert(&mut self, page: u64) {
        self.0.insert(0, page);
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        evict_oldest(&mut self.0, claim)
    }
    fn remove(&mut self, page: u64) {
        take(&mut self.0, page);
    }
    fn resize(&mut self, _capacity: usize) {}
}

/// The ring as an array with a hand, as usually drawn. A new page goes just behind the hand.
#[derive(Default)]
pub(super) struct Clock {
    ring: Vec<(u64, bool)>,
    hand: usize,
}

impl Model for Clock {
    fn hit(&mut self, page: u64) {
        self.ring.iter_mut().filter(|entry| entry.0 == page).for_each(|entry| entry.1 = true);
    }
    fn insert(&mut self, page: u64) {
        self.ring.insert(self.hand, (page, false));
        self.hand += 1;
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        for _ in 0..2 * self.ring.len() {
            self.hand %= self.ring.len();
            let (page, marked) = self.ring[self.hand];
            if !marked && claim(page) {
                self.ring.remove(self.hand);
                return Some(page);
            }
            self.ring[self.hand].1 = false;
            self.hand += 1;
        }
        None
    }
    fn remove(&mut self, page: u64) {
        if let Some(at) = self.ring.iter().position(|entry| entry.0 == page) {
            self.ring.remove(at);
            self.hand -= usize::from(at < self.hand);
        }
    }
    fn resize(&mut self, _capacity: usize) {}
}

/// The hand is stored as the page it points to.
#[derive(Default)]
pub(super) struct Sieve {
    queue: Vec<u64>,
    marked: HashMap<u64, bool>,
    hand: Option<u64>,
}

impl Sieve {
    fn newer(&self, page: u64) -> Option<u64> {
        let at = self.queue.iter().position(|&other| other == page)?;
        at.checked_sub(1).map(|at| self.queue[at])
    }
}

impl Model for Sieve {
    fn hit(&mut self, page: u64) {
        self.marked.insert(page, true);
    }
    fn insert(&mut self, page: u64) {
        self.queue.insert(0, page);
        self.marked.insert(page, false);
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        for _ in 0..2 * self.queue.len() {
            let page = self.hand.or(self.queue.last().copied())?;
            self.hand = self.newer(page);
            if !self.marked[&page] && claim(page) {
                take(&mut self.queue, page);
                return Some(page);
            }
            self.marked.insert(page, false);
        }
        None
    }
    fn remove(&mut self, page: u64) {
        if self.hand == Some(page) {
            self.hand = self.newer(page);
        }
        take(&mut self.queue, page);
    }
    fn resize(&mut self, _capacity: usize) {}
}

pub(super) struct TwoQ {
    capacity: usize,
    a1_in: Vec<u64>,
    a1_out: Vec<u64>,
    am: Vec<u64>,
}

impl TwoQ {
    pub(super) fn new(capacity: usize) -> Self {
        TwoQ { capacity, a1_in: Vec::new(), a1_out: Vec::new(), am: Vec::new() }
    }
    fn evict_in(&mut self, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        let page = evict_oldest(&mut self.a1_in, claim)?;
        self.a1_out.insert(0, page);
        self.a1_out.truncate(self.capacity / 2);
        Some(page)
    }
}

impl Model for TwoQ {
    fn hit(&mut self, page: u64) {
        if take(&mut self.am, page) {
            self.am.insert(0, page);
        }
    }
    fn insert(&mut self, page: u64) {
        let known = take(&mut self.a1_out, page);
        if known { &mut self.am } else { &mut self.a1_in }.insert(0, page);
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        if self.a1_in.len() > (self.capacity / 4).max(1) {
            self.evict_in(claim).or_else(|| evict_oldest(&mut self.am, claim))
        } else {
            evict_oldest(&mut self.am, claim).or_else(|| self.evict_in(claim))
        }
    }
    fn remove(&mut self, page: u64) {
        take(&mut self.a1_in, page);
        take(&mut self.am, page);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.a1_out.truncate(capacity / 2);
    }
}

/// Times of the last two requests. Pages requested once are also kept in a list, since pins reorder
/// them.
pub(super) struct LruK {
    capacity: usize,
    now: u64,
    times: HashMap<u64, (u64, u64)>,
    once: Vec<u64>,
    often: Vec<u64>,
    history: Vec<(u64, u64)>,
}

impl LruK {
    pub(super) fn new(capacity: usize) -> Self {
        LruK {
            capacity,
            now: 0,
            times: HashMap::new(),
            once: Vec::new(),
            often: Vec::new(),
            history: Vec::new(),
        }
    }
}

impl Model for LruK {
    fn hit(&mut self, page: u64) {
        self.now += 1;
        let last = self.times[&page].1;
        self.times.insert(page, (last, self.now));
        if take(&mut self.once, page) {
            self.often.push(page);
        }
    }
    fn insert(&mut self, page: u64) {
        self.now += 1;
        let known = self.history.iter().find(|entry| entry.0 == page).map(|entry| entry.1);
        self.history.retain(|entry| entry.0 != page);
        self.times.insert(page, (known.unwrap_or(0), self.now));
        if known.is_some() {
            self.often.push(page);
        } else {
            self.once.insert(0, page);
        }
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        let victim = evict_oldest(&mut self.once, claim).or_else(|| {
            let free = self.often.iter().copied().filter(|&page| claim(page));
            let victim = free.min_by_key(|page| self.times[page].0)?;
            take(&mut self.often, victim);
            Some(victim)
        })?;
        self.history.insert(0, (victim, self.times[&victim].1));
        self.history.truncate(self.capacity);
        Some(victim)
    }
    fn remove(&mut self, page: u64) {
        take(&mut self.once, page);
        take(&mut self.often, page);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.history.truncate(capacity);
    }
}

pub(super) struct S3Fifo {
    capacity: usize,
    small: Vec<u64>,
    main: Vec<u64>,
    ghost: Vec<u64>,
    marks: HashMap<u64, u8>,
}

impl S3Fifo {
    pub(super) fn new(capacity: usize) -> Self {
        S3Fifo { capacity, small: Vec::new(), main: Vec::new(), ghost: Vec::new(), marks: HashMap::new() }
    }
    fn small_max(&self) -> usize {
        (self.capacity / 10).max(1)
    }
    fn evicted_from_small(&mut self, page: u64) -> Option<u64> {
        self.ghost.insert(0, page);
        self.ghost.truncate(self.capacity.saturating_sub(self.small_max()));
        Some(page)
    }
}

impl Model for S3Fifo {
    fn hit(&mut self, page: u64) {
        let mark = self.marks.entry(page).or_default();
        *mark = (*mark + 1).min(3);
    }
    fn insert(&mut self, page: u64) {
        self.marks.insert(page, 0);
        let known = take(&mut self.ghost, page);
        if known { &mut self.main } else { &mut self.small }.insert(0, page);
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        // Pages of the small queue that were refused are not tried again until the main queue had
        // its turn.
        let (mut refused, mut turns) = (0, 0);
        loop {
            let full = self.small.len() >= self.small_max() || self.main.is_empty();
            if full && refused < self.small.len() {
                let Some(page) = self.small.pop() else { break };
                if self.marks[&page] > 1 {
                    self.marks.insert(page, 0);
                    self.main.insert(0, page);
                } else if claim(page) {
                    return self.evicted_from_small(page);
                } else {
                    self.small.insert(0, page);
                    refused += 1;
                }
            } else {
                turns += 1;
                if turns > 4 * self.main.len() {
                    break;
                }
                let Some(page) = self.main.pop() else { break };
                let mark = self.marks[&page];
                if mark == 0 && claim(page) {
                    return Some(page);
                }
                self.marks.insert(page, mark.saturating_sub(1));
                self.main.insert(0, page);
            }
        }
        match evict_oldest(&mut self.small, claim) {
            Some(page) => self.evicted_from_small(page),
            None => evict_oldest(&mut self.main, claim),
        }
    }
    fn remove(&mut self, page: u64) {
        take(&mut self.small, page);
        take(&mut self.main, page);
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.ghost.truncate(capacity.saturating_sub(self.small_max()));
    }
}

/// LIRS: the stack with the kind of each entry, the queue, and the evicted pages by time.
pub(super) struct Lirs {
    capacity: usize,
    stack: Vec<(u64, What)>,
    queue: Vec<u64>,
    evicted: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Low,
    High,
    Ghost,
}

impl Lirs {
    pub(super) fn new(capacity: usize) -> Self {
        Lirs { capacity, stack: Vec::new(), queue: Vec::new(), evicted: Vec::new() }
    }
    fn low_max(&self) -> usize {
        self.capacity - (self.capacity / 100).max(2).min(self.capacity)
    }
    fn low(&self) -> usize {
        self.stack.iter().filter(|entry| entry.1 == What::Low).count()
    }
    fn what(&self, page: u64) -> Option<What> {
        self.stack.iter().find(|entry| entry.0 == page).map(|entry| entry.1)
    }
    fn top(&mut self, page: u64, what: What) {
        self.stack.retain(|entry| entry.0 != page);
        self.stack.insert(0, (page, what));
    }
    /// Restores the invariants: at most the allowed number of low pages, a low page at the bottom,
    /// and at most the allowed number of ghosts.
    fn settle(&mut self) {
        while self.evicted.len() > 2 * self.capacity {
            if let Some(oldest) = self.evicted.pop() {
                self.stack.retain(|entry| entry.0 != oldest);
            }
        }
        loop {
            match self.stack.last() {
                Some(&(page, What::Low)) if self.low() > self.low_max() => {
                    self.stack.pop();
                    self.queue.insert(0, page);
                }
                Some(&(page, What::Ghost)) => {
                    self.stack.pop();
                    take(&mut self.evicted, page);
                }
                Some((_, What::High)) => {
                    self.stack.pop();
                }
                _ => return,
            }
        }
    }
}

impl Model for Lirs {
    fn hit(&mut self, page: u64) {
        match self.what(page) {
            Some(What::Low) => self.top(page, What::Low),
            Some(_) => {
                take(&mut self.queue, page);
                self.top(page, What::Low);
            }
            None => {
                self.top(page, What::High);
                take(&mut self.queue, page);
                self.queue.insert(0, page);
            }
        }
        self.settle();
    }
    fn insert(&mut self, page: u64) {
        if take(&mut self.evicted, page) || self.low() < self.low_max() {
            self.top(page, What::Low);
        } else {
            self.top(page, What::High);
            self.queue.insert(0, page);
        }
        self.settle();
    }
    fn evict(&mut self, _incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        if let Some(page) = evict_oldest(&mut self.queue, claim) {
            if self.what(page).is_some() {
                // Make room first, as a full table of ghosts does.
                if self.evicted.len() == 2 * self.capacity
                    && let Some(oldest) = self.evicted.pop()
                {
                    self.stack.retain(|entry| entry.0 != oldest);
                }
                self.evicted.insert(0, page);
                let entry = self.stack.iter_mut().find(|entry| entry.0 == page);
                entry.into_iter().for_each(|entry| entry.1 = What::Ghost);
            }
            return Some(page);
        }
        let low = self.stack.iter().rev().filter(|entry| entry.1 == What::Low).map(|entry| entry.0);
        let victim = low.into_iter().find(|&page| claim(page))?;
        self.remove(victim);
        Some(victim)
    }
    fn remove(&mut self, page: u64) {
        self.stack.retain(|entry| entry.0 != page);
        take(&mut self.queue, page);
        self.settle();
    }
    fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.settle();
    }
}
