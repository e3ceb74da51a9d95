//! A real cache that is accessed block by block, to check the approximation of
//! [`CacheModel`](super::CacheModel).

use std::collections::{HashMap, VecDeque};

use cairn_vfs::{Rng, SeededRng};

use super::cache::{BlockClass, CachePolicy, FRONT_SHARE, MAIN_SHARE};

/// Returns the hit rate of a real cache of `capacity` blocks over `fetches` fetches, after as many
/// fetches to warm it up.
pub fn replay(
    classes: &[BlockClass],
    policy: CachePolicy,
    capacity: usize,
    fetches: usize,
    seed: u64,
) -> f64 {
    replay_shared(classes, &[], policy, capacity, fetches, seed)
}

/// Replays like [`replay`], with `others` in the same cache, whose hits are not counted. Count a
/// block of twice the size as two.
pub fn replay_shared(
    counted: &[BlockClass],
    others: &[BlockClass],
    policy: CachePolicy,
    capacity: usize,
    fetches: usize,
    seed: u64,
) -> f64 {
    let classes = [counted, others].concat();
    let mut sums = Vec::with_capacity(classes.len());
    let mut total = 0.0;
    for class in &classes {
        total += class.popularity * class.count;
        sums.push(total);
    }
    if total <= 0.0 || capacity == 0 {
        return 0.0;
    }
    let mut rng = SeededRng::new(seed);
    let part = |share: f64| ((capacity as f64 * share) as usize).max(1);
    let mut cache: Box<dyn BlockCache> = match policy {
        CachePolicy::Lru => Box::new(Segments::new(capacity, 0)),
        CachePolicy::Midpoint => Box::new(Segments::new(capacity, part(FRONT_SHARE))),
        CachePolicy::S3Fifo => Box::new(S3Fifo::new(capacity, part(1.0 - MAIN_SHARE))),
    };
    let (mut hits, mut accesses) = (0usize, 0usize);
    for at in 0..2 * fetches {
        let drawn = rng.unit() * total;
        let class = sums.partition_point(|&sum| sum < drawn).min(classes.len().saturating_sub(1));
        let count = classes.get(class).map_or(1.0, |class| class.count.max(1.0));
        let block = (class as u64) << 40 | rng.below(count as u64);
        let hit = cache.access(block);
        let counts = at >= fetches && class < counted.len();
        accesses += usize::from(counts);
        hits += usize::from(counts && hit);
    }
    hits as f64 / accesses.max(1) as f64
}

/// A cache that admits every block that is accessed.
trait BlockCache {
    /// Accesses a block, and returns whether it was a hit.
    fn access(&mut self, block: u64) -> bool;
}

/// An LRU in two segments: blocks that were hit, and those that were not.
struct Segments {
    front: Lru,
    back: Lru,
    capacity: usize,
    front_max: usize,
}

impl Segments {
    fn new(capacity: usize, front_max: usize) -> Segments {
        Segments { front: Lru::new(), back: Lru::new(), capacity, front_max }
    }

    fn make_room(&mut self) {
        if self.front.len() + self.back.len() >= self.capacity && self.back.pop().is_none() {
            self.front.pop();
        }
    }
}

impl BlockCache for Segments {
    fn access(&mut self, block: u64) -> bool {
        if self.front.touch(block) {
            return true;
        }
        if self.front_max == 0 {
            let hit = self.back.touch(block);
            if !hit {
                self.make_room();
                self.back.push(block);
            }
            return hit;
        }
        let hit = self.back.take(block);
        if hit {
            self.front.push(block);
            if self.front.len() > self.front_max
                && let Some(oldest) = self.front.pop()
            {
                self.back.push(oldest);
            }
        } else {
            self.make_room();
            self.back.push(block);
        }
        hit
    }
}

/// Queues of blocks, oldest first, and for each block whether it was requested again.
struct S3Fifo {
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    touched: HashMap<u64, bool>,
    /// The eviction from the small queue at which each ghost left, as a running number.
    evicted: HashMap<u64, usize>,
    evictions: usize,
    capacity: usize,
    small_max: usize,
}

impl S3Fifo {
    fn new(capacity: usize, small_max: usize) -> S3Fifo {
        S3Fifo {
            small: VecDeque::new(),
            main: VecDeque::new(),
            touched: HashMap::new(),
            evicted: HashMap::new(),
            evictions: 0,
            capacity,
            small_max,
        }
    }

    fn make_room(&mut self) {
        while self.touched.len() >= self.capacity {
            let is_small = self.small.len() >= self.small_max || self.main.is_empty();
            let queue = if is_small { &mut self.small } else { &mut self.main };
            let Some(block) = queue.pop_front() else { return };
            let Some(touched) = self.touched.get_mut(&block) else { continue };
            if std::mem::take(touched) {
                self.main.push_back(block);
                continue;
            }
            self.touched.remove(&block);
            self.evictions += 1;
            if is_small {
                self.evicted.insert(block, self.evictions);
            }
        }
    }
}

impl BlockCache for S3Fifo {
    fn access(&mut self, block: u64) -> bool {
        if let Some(touched) = self.touched.get_mut(&block) {
            *touched = true;
            return true;
        }
        let evicted = self.evicted.remove(&block);
        let returns = evicted.is_some_and(|evicted| self.evictions - evicted <= self.main.len());
        self.make_room();
        self.touched.insert(block, false);
        let queue = if returns { &mut self.main } else { &mut self.small };
        queue.push_back(block);
        false
    }
}

/// An LRU list in an array, with a map from each block to its place.
struct Lru {
    places: HashMap<u64, usize>,
    /// Block, newer place, older place.
    list: Vec<(u64, usize, usize)>,
    free: Vec<usize>,
    newest: usize,
    oldest: usize,
}

const NOWHERE: usize = usize::MAX;

impl Lru {
    fn new() -> Lru {
        Lru { places: HashMap::new(), list: Vec::new(), free: Vec::new(), newest: NOWHERE, oldest: NOWHERE }
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// Makes a block the newest. Returns whether it was present.
    fn touch(&mut self, block: u64) -> bool {
        let Some(&at) = self.places.get(&block) else { return false };
        self.unlink(at);
        self.link(at);
        true
    }

    /// Removes a block. Returns whether it was present.
    fn take(&mut self, block: u64) -> bool {
        let Some(at) = self.places.remove(&block) else { return false };
        self.unlink(at);
        self.free.push(at);
        true
    }

    /// Adds a block that is not present.
    fn push(&mut self, block: u64) {
        let at = match self.free.pop() {
            Some(at) => {
                self.list[at].0 = block;
                at
            }
            None => {
                self.list.push((block, NOWHERE, NOWHERE));
                self.list.len() - 1
            }
        };
        self.places.insert(block, at);
        self.link(at);
    }

    /// Removes the oldest block.
    fn pop(&mut self) -> Option<u64> {
        let block = self.list.get(self.oldest)?.0;
        self.take(block);
        Some(block)
    }

    fn unlink(&mut self, at: usize) {
        let (_, newer, older) = self.list[at];
        if newer == NOWHERE {
            self.newest = older
        } else {
            self.list[newer].2 = older
        }
        if older == NOWHERE { self.oldest = newer } else { self.list[older].1 = newer }
    }

    fn link(&mut self, at: usize) {
        self.list[at].1 = NOWHERE;
        self.list[at].2 = self.newest;
        if self.newest == NOWHERE {
            self.oldest = at
        } else {
            self.list[self.newest].1 = at
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: midpoint insertion keeps popular blocks better, and makes no difference when all are
    /// equal.
    /// Method: both policies on zipfian and on uniform blocks.
    #[test]
    fn a_midpoint_protects_popular_blocks() {
        let hit = |classes: &[BlockClass], policy| replay(classes, policy, 300, 60_000, 5);
        let zipf: Vec<BlockClass> =
            (1..=10_000).map(|rank| BlockClass { popularity: 1.0 / f64::from(rank), count: 1.0 }).collect();
        assert!(hit(&zipf, CachePolicy::Midpoint) > hit(&zipf, CachePolicy::Lru) + 0.02);
        let even = [BlockClass { popularity: 1.0, count: 10_000.0 }];
        assert!((hit(&even, CachePolicy::Midpoint) - hit(&even, CachePolicy::Lru)).abs() < 0.01);
        assert_eq!(hit(&[], CachePolicy::Lru), 0.0);
    }
}
