//! Reuse distances: how many different keys are used between two uses of one.
//!
//! Exact while all keys fit: a Fenwick tree over the times of last uses (Olken, 1981) counts those
//! after a key's own. Of more keys than `keys_max`, only those are followed whose hash is below a
//! threshold, which falls as keys come (SHARDS with fixed size: Waldspurger, Park, Garthwaite and
//! Ahmad, "Efficient MRC Construction with SHARDS", FAST 2015); distances and counts are scaled by
//! the rate.
//!
//! Few keys can have much of all uses, and be among those that are followed or not. So many uses as
//! the followed ones stand for too few or too many are added to or taken from those at distance 0,
//! where such keys are (SHARDS-adj of the same paper). What a recorder left out is not known.

use std::collections::{BinaryHeap, HashMap};

use serde::Serialize;

use super::histogram::Histogram;

/// Slots of time at first; twice the keys later.
const SLOTS_MIN: usize = 1 << 12;

/// What an LRU cache of some size would do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachePoint {
    /// Keys that it holds.
    pub keys: f64,
    /// Bytes of these by the mean of all operations, keys and values.
    pub bytes: f64,
    /// The share of uses that it answers.
    pub hit_share: f64,
}

/// How soon keys are used again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reuse {
    /// True where every key was followed.
    pub exact: bool,
    /// The share of keys that was followed at the end.
    pub rate: f64,
    /// The share of uses that were the first of their key.
    pub first_share: f64,
    /// Half of the reuses are at most so many different keys apart.
    pub p50: u64,
    /// Nine of ten are.
    pub p90: u64,
    /// 99 of 100 are.
    pub p99: u64,
    /// An LRU cache by its size, ascending.
    pub caches: Vec<CachePoint>,
}

/// What a use of a key was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// The first one at all.
    pub first: bool,
    /// The first one in its window.
    pub first_in_window: bool,
    /// Keys that this one stands for.
    pub weight: f64,
}

#[derive(Debug, Clone, Copy)]
struct Key {
    slot: u32,
    /// Those that count.
    uses: u32,
    window: u32,
}

/// Follows keys.
#[derive(Debug)]
pub(super) struct Tracker {
    keys: HashMap<u64, Key>,
    /// By hash, largest first, for those that leave when the threshold falls.
    order: BinaryHeap<u64>,
    keys_max: usize,
    threshold: u64,
    /// Keys of the program for one of the trace.
    sample: f64,
    tree: Fenwick,
    next_slot: u32,
    distances: Histogram,
    /// What the uses of followed keys stand for.
    uses: f64,
    first_uses: f64,
    /// Uses of the trace, of followed keys or not; and those of them that count.
    seen: u64,
    counted: u64,
}

impl Tracker {
    pub fn new(keys_max: usize, sample: f64) -> Tracker {
        Tracker {
            keys: HashMap::new(),
            order: BinaryHeap::new(),
            keys_max,
            threshold: u64::MAX,
            sample,
            tree: Fenwick::new(SLOTS_MIN),
            next_slot: 0,
            distances: Histogram::default(),
            uses: 0.0,
            first_uses: 0.0,
            seen: 0,
            counted: 0,
        }
    }

    /// The share of the trace's keys that is followed.
    pub fn rate(&self) -> f64 {
        if self.threshold == u64::MAX { 1.0 } else { self.threshold as f64 / u64::MAX as f64 }
    }

    /// The share of the program's keys that is followed.
    pub fn share(&self) -> f64 {
        self.rate() / self.sample
    }

    /// A key is used in a window, and that counts among its uses or not; `None` for one that is not
    /// followed.
    pub fn add(&mut self, id: u64, window: u32, counts: bool) -> Option<Seen> {
        self.seen += 1;
        self.counted += u64::from(counts);
        if id > self.threshold {
            return None;
        }
        let weight = self.sample / self.rate();
        self.uses += weight;
        if self.next_slot as usize >= self.tree.len() {
            self.renumber();
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        let seen = match self.keys.get_mut(&id) {
            Some(key) => {
                let between = self.tree.above(key.slot as usize);
                self.tree.add(key.slot as usize, false);
                let first_in_window = key.window != window;
                *key = Key { slot, uses: key.uses.saturating_add(u32::from(counts)), window };
                self.distances.add_weighted((between as f64 * weight) as u64, weight);
                Seen { first: false, first_in_window, weight }
            }
            None => {
                self.keys.insert(id, Key { slot, uses: u32::from(counts), window });
                self.order.push(id);
                self.first_uses += weight;
                Seen { first: true, first_in_window: true, weight }
            }
        };
        self.tree.add(slot as usize, true);
        if self.keys.len() > self.keys_max {
            self.shrink();
        }
        Some(seen)
    }

    /// Lets the key with the largest hash go, and all that come with such a hash.
    fn shrink(&mut self) {
        let Some(largest) = self.order.pop() else { return };
        if let Some(key) = self.keys.remove(&largest) {
            self.tree.add(key.slot as usize, false);
        }
        self.threshold = largest.saturating_sub(1);
    }

    /// Gives the keys new times, as close together as they are, and room for as many uses again.
    fn renumber(&mut self) {
        let mut by_time: Vec<(u32, u64)> = self.keys.iter().map(|(id, key)| (key.slot, *id)).collect();
        by_time.sort_unstable();
        self.tree = Fenwick::new((by_time.len() * 2).max(SLOTS_MIN));
        for (slot, (_, id)) in by_time.iter().enumerate() {
            self.tree.add(slot, true);
            if let Some(key) = self.keys.get_mut(id) {
                key.slot = slot as u32;
            }
        }
        self.next_slot = by_time.len() as u32;
    }

    /// Different keys of the program, about.
    pub fn keys(&self) -> f64 {
        self.keys.len() as f64 * self.sample / self.rate()
    }

    /// Uses that count of each key that is followed and has any, in no order.
    pub fn counts(&self) -> Vec<u32> {
        self.keys.values().map(|key| key.uses).filter(|uses| *uses > 0).collect()
    }

    /// Uses that count of all keys of the program, about.
    pub fn counted(&self) -> f64 {
        self.counted as f64 * self.sample
    }

    /// What there is to say; `None` of nothing.
    pub fn reuse(&self, points: usize, entry_bytes: f64) -> Option<Reuse> {
        if self.uses <= 0.0 {
            return None;
        }
        let all = self.seen as f64 * self.sample;
        let mut distances = self.distances.clone();
        if self.threshold < u64::MAX {
            distances.add_weighted(0, all - self.uses);
        }
        let largest = self.keys().max(distances.max() as f64 + 1.0).max(1.0);
        let mut sizes: Vec<u64> = (0..points)
            .map(|at| largest.powf(at as f64 / (points.max(2) - 1) as f64).ceil() as u64)
            .collect();
        sizes.dedup();
        let caches = sizes.into_iter().map(|keys| CachePoint {
            keys: keys as f64,
            bytes: keys as f64 * entry_bytes,
            // With so many keys in it, a cache still has one whose distance is below that. More may
            // have been taken from the smallest than there was.
            hit_share: (distances.below(keys) / all).clamp(0.0, 1.0),
        });
        Some(Reuse {
            exact: self.threshold == u64::MAX && self.sample == 1.0,
            rate: self.share(),
            first_share: (self.first_uses / all).min(1.0),
            p50: distances.quantile(0.5),
            p90: distances.quantile(0.9),
            p99: distances.quantile(0.99),
            caches: if distances.total() > 0.0 { caches.collect() } else { Vec::new() },
        })
    }
}

/// Marks in slots, counted in the logarithm of their number (Fenwick, 1994).
#[derive(Debug)]
struct Fenwick {
    sums: Vec<u32>,
    total: u32,
}

impl Fenwick {
    fn new(slots: usize) -> Fenwick {
        Fenwick { sums: vec![0; slots + 1], total: 0 }
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    /// Sets or clears a slot's mark.
    fn add(&mut self, slot: usize, mark: bool) {
        let change = |sum: u32| if mark { sum + 1 } else { sum.saturating_sub(1) };
        self.total = change(self.total);
        let mut at = slot + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = change(*sum);
            at += at & at.wrapping_neg();
        }
    }

    /// Marks in slots above this one.
    fn above(&self, slot: usize) -> u32 {
        let (mut at, mut up_to) = (slot + 1, 0);
        while at > 0 {
            up_to += self.sums.get(at).copied().unwrap_or(0);
            at &= at - 1;
        }
        self.total.saturating_sub(up_to)
    }
}
