//! The block cache: hit rates by Che's approximation.

use std::collections::HashMap;

/// Blocks of equal popularity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockClass {
    /// Fetches of each block for each lookup.
    pub popularity: f64,
    /// The number of blocks.
    pub count: f64,
}

/// The replacement policy of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A block enters as the newest.
    Lru,
    /// RocksDB's LRU with its default pool ratio: a block enters at the middle and becomes the
    /// newest only after a hit. Blocks with a hit take at most half of the cache; beyond that, the
    /// oldest of them are treated as if they had just entered.
    Midpoint,
    /// Cairn's S3-FIFO: a new block enters a queue of a tenth of the cache. It moves to the main
    /// queue if it is requested again there, or soon after its eviction. The main queue gives
    /// another turn to each block that was requested.
    S3Fifo,
}

/// The share of an S3-FIFO cache for the main queue.
pub(super) const MAIN_SHARE: f64 = 0.9;

/// The share of a midpoint cache for blocks that were hit.
pub(super) const FRONT_SHARE: f64 = 0.5;

/// Bins of popularity for each factor of e: neighbouring bins differ by a factor of e^(1/32).
const BINS_PER_E: f64 = 32.0;

/// Bins of blocks of nearly the same popularity, which make computations over all blocks cheap.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    /// By logarithm of popularity: the sum of popularities, and the number of blocks.
    bins: HashMap<i64, (f64, f64)>,
    /// The last popularities added, which the next block often has too. This saves map look-ups.
    recent: [BlockClass; 2],
}

impl Bins {
    pub(super) fn new() -> Bins {
        Bins { bins: HashMap::new(), recent: [BlockClass { popularity: 0.0, count: 0.0 }; 2] }
    }

    #[inline]
    pub(super) fn add(&mut self, block: BlockClass) {
        let known = self.recent.iter_mut().find(|recent| recent.popularity == block.popularity);
        match known {
            Some(recent) => recent.count += block.count,
            None => {
                let [newer, older] = self.recent;
                self.put(older);
                self.recent = [block, newer];
            }
        }
    }

    fn put(&mut self, class: BlockClass) {
        if class.count <= 0.0 {
            return;
        }
        let key = if class.popularity > 0.0 {
            (class.popularity.ln() * BINS_PER_E).floor() as i64
        } else {
            i64::MIN
        };
        let slot = self.bins.entry(key).or_default();
        slot.0 += class.popularity * class.count;
        slot.1 += class.count;
    }

    /// Returns the bins, least popular first.
    pub(super) fn finish(mut self) -> Vec<BlockClass> {
        self.recent.into_iter().for_each(|class| self.put(class));
        let mut bins: Vec<(i64, (f64, f64))> = self.bins.into_iter().collect();
        bins.sort_unstable_by_key(|(key, _)| *key);
        debug_assert!(bins.iter().all(|(_, (_, count))| *count > 0.0), "found a bin without blocks");
        let class = |(sum, count): (f64, f64)| BlockClass { popularity: sum / count, count };
        bins.into_iter().map(|(_, bin)| class(bin)).collect()
    }
}

/// A model of a warm cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheModel {
    /// The share of fetches that hit.
    pub hit_rate: f64,
    /// The characteristic time: the number of lookups after which a block that is not requested
    /// again is evicted.
    pub lookups: f64,
}

impl CacheModel {
    /// Computes the model of a cache of `capacity` blocks. Lookups are assumed to be independent.
    ///
    /// Cost: some hundred microseconds for a thousand classes.
    pub fn new(policy: CachePolicy, classes: &[BlockClass], capacity: f64) -> CacheModel {
        CacheModel::shared(policy, classes, &[], capacity)
    }

    /// Computes the model like [`CacheModel::new`], with `others` in the same cache, whose hits are
    /// not counted. Count a block of twice the size as two.
    pub fn shared(
        policy: CachePolicy,
        counted: &[BlockClass],
        others: &[BlockClass],
        capacity: f64,
    ) -> CacheModel {
        let together: Vec<BlockClass>;
        let classes = if others.is_empty() {
            counted
        } else {
            together = [counted, others].concat();
            &together
        };
        let asked_of = |classes: &[BlockClass]| sum(classes, |popularity| popularity);
        let (asked, asked_counted) = (asked_of(classes), asked_of(counted));
        if asked_counted <= 0.0 || capacity <= 0.0 {
            return CacheModel { hit_rate: 0.0, lookups: 0.0 };
        }
        let popular = classes.iter().filter(|class| class.popularity > 0.0);
        if capacity >= popular.map(|class| class.count).sum() {
            return CacheModel { hit_rate: 1.0, lookups: f64::INFINITY };
        }
        let guess = capacity / asked;
        let hits = |held: &dyn Fn(f64) -> f64| sum(counted, |popularity| popularity * held(popularity));
        let (hits, lookups) = match policy {
            CachePolicy::Lru => {
                let held = |popularity: f64, time: f64| -(-popularity * time).exp_m1();
                let time = solve(guess, |time| sum(classes, |it| held(it, time)) - capacity);
                (hits(&|popularity| held(popularity, time)), time)
            }
            CachePolicy::Midpoint => {
                let times = two_queues(classes, capacity, FRONT_SHARE, (guess, guess), Stay::at_midpoint);
                (hits(&|popularity| Stay::at_midpoint(popularity, times.0, times.1).held), times.0)
            }
            CachePolicy::S3Fifo => {
                let (small, main, ghost) = s3_fifo(classes, capacity, asked);
                (hits(&|popularity| Stay::in_s3_fifo(popularity, small, main, ghost).held), small)
            }
        };
        CacheModel { hit_rate: (hits / asked_counted).clamp(0.0, 1.0), lookups }
    }
}

/// Returns the sum of a function over all blocks.
fn sum(classes: &[BlockClass], of: impl Fn(f64) -> f64) -> f64 {
    classes.iter().map(|class| class.count * of(class.popularity)).sum()
}

/// Where a block spends its time, as shares: in the cache at all, and in the queue for blocks that
/// were requested again.
///
/// With requests at random times, the states of a block form a Markov chain whose mean durations
/// are known, and so are the shares of time.
#[derive(Debug, Clone, Copy)]
struct Stay {
    held: f64,
    again: f64,
}

impl Stay {
    /// ```text
    ///            asked for                 asked for
    ///   out  ───────────────►  back  ───────────────►  front   stays there while it is asked for
    ///    ▲                    │  ▲                        │    within `front` lookups
    ///    └────────────────────┘  └────────────────────────┘
    ///      not within `back`           not within `front`
    /// ```
    fn at_midpoint(popularity: f64, back: f64, front: f64) -> Stay {
        let asked_in_back = -(-popularity * back).exp_m1();
        let gap_in_front = (-popularity * front).exp();
        let in_front = asked_in_back * (1.0 - gap_in_front);
        let all = gap_in_front + in_front;
        if all <= 0.0 {
            // The block is so popular that it never leaves.
            return Stay { held: 1.0, again: 1.0 };
        }
        let held = 1.0 - (1.0 - asked_in_back) * gap_in_front / all;
        debug_assert!((-1e-9..=1.0 + 1e-9).contains(&held), "found a block held for {held} of the time");
        Stay { held, again: in_front / all }
    }

    /// ```text
    ///         asked for              asked for within `small`
    ///   out  ───────────►  small  ──────────────────────────────►  main  turns of `main` while
    ///    ▲                   │                                      ▲ │  it is asked for in each
    ///    ├── no ◄── asked for within `ghost`? ── yes ───────────────┘ │
    ///    └────────────────────────────────────────────────────────────┘
    /// ```
    fn in_s3_fifo(popularity: f64, small: f64, main: f64, ghost: f64) -> Stay {
        let not_in_small = (-popularity * small).exp();
        let not_as_ghost = (-popularity * ghost).exp();
        let reaches_main = 1.0 - not_in_small * not_as_ghost;
        // Times are counted in intervals between two requests, and all are multiplied by the
        // probability that a turn of the main queue is the last.
        let last_turn = (-popularity * main).exp();
        let in_small = popularity * small * last_turn;
        let in_main = reaches_main * popularity * main;
        let out = (not_in_small + reaches_main) * last_turn;
        let all = in_small + in_main + out;
        if all <= 0.0 {
            return Stay { held: 1.0, again: 1.0 };
        }
        debug_assert!(in_small >= 0.0 && in_main >= 0.0 && out >= 0.0, "found a negative time");
        Stay { held: (in_small + in_main) / all, again: in_main / all }
    }
}

/// Applies Che's approximation to two queues. Returns the times of both at which the second fills
/// its share of the cache, and both together fill all of it.
fn two_queues(
    classes: &[BlockClass],
    capacity: f64,
    share: f64,
    guess: (f64, f64),
    stay: impl Fn(f64, f64, f64) -> Stay,
) -> (f64, f64) {
    let second = std::cell::Cell::new(guess.1);
    let first = solve(guess.0, |first| {
        second.set(solve(second.get(), |second| {
            sum(classes, |popularity| stay(popularity, first, second).again) - capacity * share
        }));
        sum(classes, |popularity| stay(popularity, first, second.get()).held) - capacity
    });
    (first, second.get())
}

/// Returns how long a block stays in the small queue, in the main queue, and as a ghost. A ghost is
/// remembered for as many evictions, and so misses, as the main queue has blocks.
fn s3_fifo(classes: &[BlockClass], capacity: f64, asked: f64) -> (f64, f64, f64) {
    let main_blocks = capacity * MAIN_SHARE;
    let ghost_of = |hits: f64| main_blocks / (asked - hits).max(asked * 1e-9);
    let mut hits = asked / 2.0;
    let mut ghost = ghost_of(hits);
    let mut times = (0.1 * capacity / asked, capacity / asked);
    // BOUND: a few rounds are enough, because the times depend little on the ghosts.
    for _ in 0..12 {
        let stay = |popularity, small, main| Stay::in_s3_fifo(popularity, small, main, ghost);
        times = two_queues(classes, capacity, MAIN_SHARE, times, stay);
        let found = sum(classes, |popularity| popularity * stay(popularity, times.0, times.1).held);
        if (found - hits).abs() < 1e-4 * asked {
            break;
        }
        hits = found;
        ghost = ghost_of(hits);
    }
    (times.0, times.1, ghost)
}

/// Returns the zero of an increasing function of time: brackets it by factors, then applies the
/// Illinois method to the logarithm.
fn solve(guess: f64, of: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 2.0;
    // BOUND: the range of a float.
    const ENDS: f64 = 600.0;
    let mut low = if guess > 0.0 { guess.ln().clamp(-ENDS, ENDS) } else { 0.0 };
    let mut below = of(low.exp());
    let step = if below > 0.0 { -STEP } else { STEP };
    let (mut high, mut above) = (low, below);
    while (above > 0.0) == (below > 0.0) && high.abs() < 2.0 * ENDS {
        (low, below) = (high, above);
        high += step;
        above = of(high.exp());
    }
    if step < 0.0 {
        std::mem::swap(&mut low, &mut high);
        std::mem::swap(&mut below, &mut above);
    }
    let mut last = 0;
    // BOUND: bisection alone would take 20 rounds.
    for _ in 0..60 {
        if high - low < 1e-6 || above - below <= 0.0 {
            break;
        }
        let share = (-below / (above - below)).clamp(1e-3, 1.0 - 1e-3);
        let middle = low + share * (high - low);
        let value = of(middle.exp());
        // An end that stays twice gets half its weight, so that the other one moves too.
        if value < 0.0 {
            (low, below) = (middle, value);
            above /= if last == -1 { 2.0 } else { 1.0 };
            last = -1;
        } else {
            (high, above) = (middle, value);
            below /= if last == 1 { 2.0 } else { 1.0 };
            last = 1;
        }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::super::replay::replay;
    use super::*;

    fn zipf(count: u32) -> Vec<BlockClass> {
        (1..=count).map(|rank| BlockClass { popularity: 1.0 / f64::from(rank), count: 1.0 }).collect()
    }

    /// Goal: the approximations agree with real caches. Method: uniform, zipfian and two-class
    /// blocks, caches of several sizes, all policies, a replay of 100,000 fetches each.
    #[test]
    fn approximations_agree_with_a_replay() {
        let uniform = vec![BlockClass { popularity: 1.0, count: 10_000.0 }];
        let two = vec![
            BlockClass { popularity: 0.1, count: 9_000.0 },
            BlockClass { popularity: 8.1, count: 1_000.0 },
        ];
        for (name, classes) in [("uniform", uniform), ("zipf", zipf(10_000)), ("two", two)] {
            for capacity in [50, 500, 1000, 3000, 8000] {
                for policy in [CachePolicy::Lru, CachePolicy::Midpoint, CachePolicy::S3Fifo] {
                    let model = CacheModel::new(policy, &classes, f64::from(capacity)).hit_rate;
                    let real = replay(&classes, policy, capacity as usize, 100_000, 5);
                    assert!((model - real).abs() < 0.01, "{name} {policy:?} {capacity}: {model} {real}");
                }
            }
        }
    }

    /// Goal: other blocks take cache space in proportion to their popularity. Method: hits of two
    /// sets, each next to the other, against a replay of both; for increasingly popular others.
    #[test]
    fn others_take_room_by_their_popularity() {
        let counted = zipf(5_000);
        let mut before = HashMap::new();
        for popularity in [0.002, 0.02, 0.2] {
            let others = [BlockClass { popularity, count: 300.0 }];
            for capacity in [100, 400, 1500] {
                let model = CacheModel::shared(CachePolicy::S3Fifo, &counted, &others, f64::from(capacity));
                let all = [&counted[..], &others[..]].concat();
                let all_hit = replay(&all, CachePolicy::S3Fifo, capacity as usize, 200_000, 5);
                let asked = |classes: &[BlockClass]| sum(classes, |popularity| popularity);
                let held = |classes: &[BlockClass], rest: &[BlockClass]| {
                    CacheModel::shared(CachePolicy::S3Fifo, classes, rest, f64::from(capacity)).hit_rate
                        * asked(classes)
                };
                let parts = (held(&counted, &others) + held(&others, &counted)) / asked(&all);
                assert!((parts - all_hit).abs() < 0.01, "{popularity} {capacity}: {parts} {all_hit}");
                // The more popular the others are, the lower is the hit rate.
                assert!(model.hit_rate <= before.insert(capacity, model.hit_rate).unwrap_or(1.0) + 1e-3);
            }
        }
    }

    /// Goal: binning does not change hit rates noticeably. Method: hit rates with and without.
    #[test]
    fn bins_keep_the_hit_rate() {
        let all = zipf(50_000);
        let mut bins = Bins::new();
        all.iter().for_each(|class| bins.add(*class));
        let few = bins.finish();
        assert!(few.len() < 1000);
        for capacity in [100.0, 5000.0] {
            let hit = |classes| CacheModel::new(CachePolicy::Midpoint, classes, capacity).hit_rate;
            let (a, b) = (hit(&all), hit(&few));
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }

    /// Goal: extreme cases are exact. Method: no cache, a cache for everything, no readers, and
    /// blocks that are never requested.
    #[test]
    fn ends_are_exact() {
        for policy in [CachePolicy::Lru, CachePolicy::Midpoint, CachePolicy::S3Fifo] {
            let mut classes = zipf(10);
            assert_eq!(CacheModel::new(policy, &classes, 0.0).hit_rate, 0.0);
            assert_eq!(CacheModel::new(policy, &classes, 10.0).hit_rate, 1.0);
            assert_eq!(CacheModel::new(policy, &[], 10.0).hit_rate, 0.0);
            classes.push(BlockClass { popularity: 0.0, count: 1e6 });
            assert_eq!(CacheModel::new(policy, &classes, 10.0).hit_rate, 1.0);
            let hit = CacheModel::new(policy, &classes, 9.9).hit_rate;
            assert!(hit > 0.9 && hit <= 1.0, "{hit}");
        }
    }
}
