//! Reuse distances: the number of distinct keys used between two uses of the same key.
//!
//! While all keys fit, distances are exact: a Fenwick tree over the times of last uses counts the
//! keys that were last used after a given key (Olken, 1981). Beyond `keys_max` keys, only keys with
//! a hash below a threshold are tracked. The threshold falls as keys arrive (SHARDS with fixed
//! size: Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with SHARDS", FAST
//! 2015), and distances and counts are scaled by the sampling rate.
//!
//! A few keys can have a large part of all uses, and the sample contains them or not. The tracked
//! keys then stand for too many or too few uses. The difference is corrected at distance 0, where
//! such keys are (SHARDS-adj of the same paper). Keys that the recorder left out cannot be
//! corrected for.

use std::collections::{BinaryHeap, HashMap};

use serde::Serialize;

use super::histogram::Histogram;

/// The minimum number of time slots; with more keys, twice the number of keys.
const SLOTS_MIN: usize = 1 << 12;

/// The predicted hit rate of an LRU cache of a given size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachePoint {
    /// The number of keys that it holds.
    pub keys: f64,
    /// Their size in bytes, by the mean key and value sizes of all operations.
    pub bytes: f64,
    /// The share of uses that hit.
    pub hit_share: f64,
}

/// Statistics of reuse distances.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reuse {
    /// True if every key was tracked.
    pub exact: bool,
    /// The share of keys that was tracked at the end.
    pub rate: f64,
    /// The share of uses that were the first of their key.
    pub first_share: f64,
    /// The median reuse distance in distinct keys.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// Hit rates of LRU caches, by ascending size.
    pub caches: Vec<CachePoint>,
}

/// Classifies a use of a tracked key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Seen {
    /// The first use of the key in the trace.
    pub first: bool,
    /// The first use of the key in its window.
    pub first_in_window: bool,
    /// The number of keys that this key represents.
    pub weight: f64,
}

#[derive(Debug, Clone, Copy)]
struct Key {
    slot: u32,
    /// Uses that count for the skew.
    uses: u32,
    window: u32,
}

/// Tracks the uses of keys.
#[derive(Debug)]
pub(super) struct Tracker {
    keys: HashMap<u64, Key>,
    /// The hashes of tracked keys, largest first: the order in which keys are removed when the
    /// threshold falls.
    order: BinaryHeap<u64>,
    keys_max: usize,
    threshold: u64,
    /// The number of the program's keys per key of the trace.
    sample: f64,
    tree: Fenwick,
    next_slot: u32,
    distances: Histogram,
    /// Uses and first uses that the tracked keys represent.
    uses: f64,
    first_uses: f64,
    /// All uses in the trace, of tracked and untracked keys, and those of them that count for the
    /// skew.
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

    /// Returns the share of the trace's keys that is tracked.
    pub fn rate(&self) -> f64 {
        if self.threshold == u64::MAX { 1.0 } else { self.threshold as f64 / u64::MAX as f64 }
    }

    /// Returns the share of the program's keys that is tracked.
    pub fn share(&self) -> f64 {
        self.rate() / self.sample
    }

    /// Adds a use of a key in a window. `counts` tells whether it counts for the skew. Returns
    /// `None` if the key is not tracked.
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
                self.distances.add((between as f64 * weight) as u64, weight);
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

    /// Removes the key with the largest hash, and lowers the threshold below that hash.
    fn shrink(&mut self) {
        let Some(largest) = self.order.pop() else { return };
        if let Some(key) = self.keys.remove(&largest) {
            self.tree.add(key.slot as usize, false);
        }
        self.threshold = largest.saturating_sub(1);
    }

    /// Renumbers the keys' time slots without gaps, and makes room for as many uses again.
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

    /// Returns the estimated number of distinct keys of the program.
    pub fn keys(&self) -> f64 {
        self.keys.len() as f64 * self.sample / self.rate()
    }

    /// Returns the counted uses of each tracked key that has any, in no particular order.
    pub fn counts(&self) -> Vec<u32> {
        self.keys.values().map(|key| key.uses).filter(|uses| *uses > 0).collect()
    }

    /// Returns the estimated number of counted uses of all keys of the program.
    pub fn counted(&self) -> f64 {
        self.counted as f64 * self.sample
    }

    /// Summarizes the distances; `None` if there are no uses.
    pub fn reuse(&self, points: usize, entry_bytes: f64) -> Option<Reuse> {
        if self.uses <= 0.0 {
            return None;
        }
        let all = self.seen as f64 * self.sample;
        let mut distances = self.distances.clone();
        if self.threshold < u64::MAX {
            distances.add(0, all - self.uses);
        }
        let largest = self.keys().max(distances.max() as f64 + 1.0).max(1.0);
        let mut sizes: Vec<u64> = (0..points)
            .map(|at| largest.powf(at as f64 / (points.max(2) - 1) as f64).ceil() as u64)
            .collect();
        sizes.dedup();
        let caches = sizes.into_iter().map(|keys| CachePoint {
            keys: keys as f64,
            bytes: keys as f64 * entry_bytes,
            // A cache of this many keys still holds a key whose distance is below that number. The
            // clamp is needed because the correction at distance 0 may be larger than the weight
            // there.
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

/// A Fenwick tree (1994) over marked slots: counts marks in logarithmic time.
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

    /// Sets or clears the mark of a slot.
    fn add(&mut self, slot: usize, mark: bool) {
        let change = |sum: u32| if mark { sum + 1 } else { sum.saturating_sub(1) };
        self.total = change(self.total);
        let mut at = slot + 1;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum = change(*sum);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the number of marks above this slot.
    fn above(&self, slot: usize) -> u32 {
        let (mut at, mut up_to) = (slot + 1, 0);
        while at > 0 {
            up_to += self.sums.get(at).copied().unwrap_or(0);
            at &= at - 1;
        }
        self.total.saturating_sub(up_to)
    }
}
