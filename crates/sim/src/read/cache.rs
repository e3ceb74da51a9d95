//! The block cache: Che's approximation of LRU, and a replay that checks it.

use std::collections::HashMap;

use crate::rng::Rng;

/// Blocks that are asked for equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockClass {
    /// Fetches of each, a lookup.
    pub popularity: f64,
    /// How many there are.
    pub count: f64,
}

/// Bins of popularity, a factor of e^(1/64) each.
const BINS_PER_E: f64 = 64.0;

/// Puts blocks of nearly the same popularity together: what is computed over them then costs little.
pub(super) fn bin(blocks: impl Iterator<Item = BlockClass>) -> Vec<BlockClass> {
    let mut bins: HashMap<i64, (f64, f64)> = HashMap::new();
    for block in blocks.filter(|block| block.count > 0.0) {
        let key = if block.popularity > 0.0 {
            (block.popularity.ln() * BINS_PER_E).floor() as i64
        } else {
            i64::MIN
        };
        let slot = bins.entry(key).or_default();
        slot.0 += block.popularity * block.count;
        slot.1 += block.count;
    }
    let mut keys: Vec<i64> = bins.keys().copied().collect();
    keys.sort_unstable();
    let class = |key: &i64| {
        let (sum, count) = bins.get(key).copied().unwrap_or_default();
        BlockClass { popularity: sum / count.max(1e-300), count }
    };
    keys.iter().map(class).collect()
}

/// An LRU cache that is warm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheModel {
    /// The share of fetches that hit.
    pub hit_rate: f64,
    /// Che's characteristic time: lookups after which a block that nobody asks for is gone.
    pub lookups: f64,
}

impl CacheModel {
    /// Of `capacity` blocks (Che, Tung, Wang, 2002): a block is in the cache when it was asked for within the last T lookups, and T
    /// is such that as many blocks as fit are in it.
    pub fn new(classes: &[BlockClass], capacity: f64) -> CacheModel {
        let blocks: f64 = classes.iter().map(|class| class.count).sum();
        let asked: f64 = classes.iter().map(|class| class.count * class.popularity).sum();
        if asked <= 0.0 || capacity <= 0.0 {
            return CacheModel { hit_rate: 0.0, lookups: 0.0 };
        }
        let popular: f64 =
            classes.iter().filter(|class| class.popularity > 0.0).map(|class| class.count).sum();
        if capacity >= popular.min(blocks) {
            return CacheModel { hit_rate: 1.0, lookups: f64::INFINITY };
        }
        let held = |time: f64| -> f64 {
            classes.iter().map(|class| class.count * -(-class.popularity * time).exp_m1()).sum()
        };
        let (mut low, mut high) = (0.0, capacity / asked);
        // BOUND: doubling; the time is finite, as fewer blocks fit than are asked for.
        while held(high) < capacity && high < 1e300 {
            high *= 2.0;
        }
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if held(middle) < capacity { low = middle } else { high = middle }
        }
        let hits: f64 = classes
            .iter()
            .map(|class| class.count * class.popularity * -(-class.popularity * high).exp_m1())
            .sum();
        CacheModel { hit_rate: hits / asked, lookups: high }
    }
}

/// The hit rate of a real LRU of `capacity` blocks after a warm-up of as many fetches as are then counted.
pub fn replay_lru(classes: &[BlockClass], capacity: usize, fetches: usize, seed: u64) -> f64 {
    let mut sums = Vec::with_capacity(classes.len());
    let mut total = 0.0;
    for class in classes {
        total += class.popularity * class.count;
        sums.push(total);
    }
    let mut rng = Rng::new(seed);
    let mut lru = Lru::new(capacity.max(1));
    let mut hits = 0usize;
    for at in 0..2 * fetches {
        let drawn = rng.unit() * total;
        let class = sums.partition_point(|&sum| sum < drawn).min(classes.len().saturating_sub(1));
        let count = classes.get(class).map_or(1.0, |class| class.count.max(1.0));
        let block = (class as u64) << 40 | rng.below(count as u64);
        let hit = lru.ask(block);
        hits += usize::from(hit && at >= fetches);
    }
    hits as f64 / fetches.max(1) as f64
}

/// A list in an array, newest first, and where each block stands in it.
struct Lru {
    places: HashMap<u64, usize>,
    /// Block, newer place, older place.
    list: Vec<(u64, usize, usize)>,
    newest: usize,
    oldest: usize,
    capacity: usize,
}

const NOWHERE: usize = usize::MAX;

impl Lru {
    fn new(capacity: usize) -> Lru {
        Lru { places: HashMap::new(), list: Vec::new(), newest: NOWHERE, oldest: NOWHERE, capacity }
    }

    /// Whether it was there; it is after this.
    fn ask(&mut self, block: u64) -> bool {
        if let Some(&at) = self.places.get(&block) {
            self.unlink(at);
            self.link(at);
            return true;
        }
        let at = if self.list.len() < self.capacity {
            self.list.push((block, NOWHERE, NOWHERE));
            self.list.len() - 1
        } else {
            let at = self.oldest;
            self.unlink(at);
            self.places.remove(&self.list[at].0);
            self.list[at].0 = block;
            at
        };
        self.places.insert(block, at);
        self.link(at);
        false
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

    fn zipf(count: u32) -> Vec<BlockClass> {
        (1..=count).map(|rank| BlockClass { popularity: 1.0 / f64::from(rank), count: 1.0 }).collect()
    }

    /// Goal: Che's approximation against what it approximates. Method: uniform and zipfian blocks, caches of several sizes, a
    /// replay of 100,000 fetches each.
    #[test]
    fn che_agrees_with_a_replay() {
        let uniform = vec![BlockClass { popularity: 1.0, count: 10_000.0 }];
        for (name, classes) in [("uniform", uniform), ("zipf", zipf(10_000))] {
            for capacity in [50, 500, 3000] {
                let che = CacheModel::new(&classes, f64::from(capacity)).hit_rate;
                let real = replay_lru(&classes, capacity as usize, 100_000, 5);
                assert!((che - real).abs() < 0.01, "{name} {capacity}: {che} {real}");
            }
        }
    }

    /// Goal: binning changes nothing that shows. Method: hit rates with and without.
    #[test]
    fn bins_keep_the_hit_rate() {
        let all = zipf(50_000);
        let few = bin(all.iter().copied());
        assert!(few.len() < 1000);
        for capacity in [100.0, 5000.0] {
            let (a, b) = (CacheModel::new(&all, capacity).hit_rate, CacheModel::new(&few, capacity).hit_rate);
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }

    /// Goal: the ends. Method: no cache, a cache over everything, nobody who reads.
    #[test]
    fn ends_are_exact() {
        let classes = zipf(10);
        assert_eq!(CacheModel::new(&classes, 0.0).hit_rate, 0.0);
        assert_eq!(CacheModel::new(&classes, 10.0).hit_rate, 1.0);
        assert_eq!(CacheModel::new(&[], 10.0).hit_rate, 0.0);
    }
}
