//! The block cache: approximations of how often a block is found in it, after Che.

use std::collections::HashMap;

/// Blocks that are asked for equally often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockClass {
    /// Fetches of each, a lookup.
    pub popularity: f64,
    /// How many there are.
    pub count: f64,
}

/// How a cache keeps blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    /// A block comes in as the newest.
    Lru,
    /// RocksDB's LRU with its default pool ratio: a block comes in at the middle, and is the newest
    /// only after a hit. Blocks that were hit have half of the cache at most; the oldest of them
    /// then count as if they had just come in.
    Midpoint,
    /// Cairn's S3-FIFO: what comes in goes through a queue of a tenth of the cache, and into the
    /// main queue when it was asked for again there, or soon after it was evicted. The main queue
    /// gives whatever was asked for another turn.
    S3Fifo,
}

/// The main queue's part of an S3-FIFO.
pub(super) const MAIN_SHARE: f64 = 0.9;

/// The part of a midpoint cache for blocks that were hit.
pub(super) const FRONT_SHARE: f64 = 0.5;

/// Bins of popularity, a factor of e^(1/32) each.
const BINS_PER_E: f64 = 32.0;

/// Blocks of nearly the same popularity, put together: what is computed over them then costs
/// little.
#[derive(Debug, Clone)]
pub(super) struct Bins {
    /// By the logarithm of popularity: the sum of popularities, and how many.
    bins: HashMap<i64, (f64, f64)>,
    /// The popularities seen last, which are often those of the next block too: one look-up serves
    /// all of them.
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

    /// The least popular first.
    pub(super) fn finish(mut self) -> Vec<BlockClass> {
        self.recent.into_iter().for_each(|class| self.put(class));
        let mut bins: Vec<(i64, (f64, f64))> = self.bins.into_iter().collect();
        bins.sort_unstable_by_key(|(key, _)| *key);
        let class = |(sum, count): (f64, f64)| BlockClass { popularity: sum / count, count };
        bins.into_iter().map(|(_, bin)| class(bin)).collect()
    }
}

/// A cache that is warm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheModel {
    /// The share of fetches that hit.
    pub hit_rate: f64,
    /// The characteristic time: lookups after which a block that came in and that nobody asks for
    /// is gone.
    pub lookups: f64,
}

impl CacheModel {
    /// Of `capacity` blocks. Lookups are taken to be independent of each other.
    ///
    /// Cost: some hundred microseconds for a thousand classes.
    pub fn new(policy: CachePolicy, classes: &[BlockClass], capacity: f64) -> CacheModel {
        CacheModel::beside(policy, classes, &[], capacity)
    }

    /// As [`CacheModel::new`], with `others` in the same cache, whose hits are not counted. One
    /// that is as large as two blocks counts twice.
    pub fn beside(
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

/// The sum of something over all blocks.
fn sum(classes: &[BlockClass], of: impl Fn(f64) -> f64) -> f64 {
    classes.iter().map(|class| class.count * of(class.popularity)).sum()
}

/// Where a block is, as shares of time: in the cache at all, and in the queue for blocks that were
/// asked for again.
///
/// With requests at random times, queues are steps of a chain whose lengths are known, so that
/// shares of time are too.
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
            // So popular that it never leaves.
            return Stay { held: 1.0, again: 1.0 };
        }
        Stay { held: 1.0 - (1.0 - asked_in_back) * gap_in_front / all, again: in_front / all }
    }

    /// ```text
    ///         asked for              asked for within `small`
    ///   out  ───────────►  small  ──────────────────────────────►  main  turns of `main`, as long as
    ///    ▲                   │                                      ▲ │  it is asked for in each
    ///    ├── no ◄── asked for within `ghost`? ── yes ───────────────┘ │
    ///    └────────────────────────────────────────────────────────────┘
    /// ```
    fn in_s3_fifo(popularity: f64, small: f64, main: f64, ghost: f64) -> Stay {
        let not_in_small = (-popularity * small).exp();
        let not_as_ghost = (-popularity * ghost).exp();
        let reaches_main = 1.0 - not_in_small * not_as_ghost;
        // Lookups are counted in those between two requests, and all by the chance that a turn of
        // the main queue is the last.
        let last_turn = (-popularity * main).exp();
        let in_small = popularity * small * last_turn;
        let in_main = reaches_main * popularity * main;
        let out = (not_in_small + reaches_main) * last_turn;
        let all = in_small + in_main + out;
        if all <= 0.0 {
            return Stay { held: 1.0, again: 1.0 };
        }
        Stay { held: (in_small + in_main) / all, again: in_main / all }
    }
}

/// Che's argument for two queues: the times of both that make the second hold its share of the
/// cache, and both all of it.
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

/// How long a block is in the small queue, in the main one, and remembered as a ghost. Ghosts are
/// remembered for as many evictions, thus misses, as the main queue has blocks.
fn s3_fifo(classes: &[BlockClass], capacity: f64, asked: f64) -> (f64, f64, f64) {
    let main_blocks = capacity * MAIN_SHARE;
    let ghost_of = |hits: f64| main_blocks / (asked - hits).max(asked * 1e-9);
    let mut hits = asked / 2.0;
    let mut ghost = ghost_of(hits);
    let mut times = (0.1 * capacity / asked, capacity / asked);
    // BOUND: a few rounds are enough, as the times depend little on the ghosts.
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

/// Where a growing function of a time is zero: brackets by factors, then the Illinois method on the
/// logarithm.
fn solve(guess: f64, of: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 2.0;
    // BOUND: the ends of what a float holds.
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
    // BOUND: halving alone would take 20 rounds.
    for _ in 0..60 {
        if high - low < 1e-6 || above - below <= 0.0 {
            break;
        }
        let share = (-below / (above - below)).clamp(1e-3, 1.0 - 1e-3);
        let middle = low + share * (high - low);
        let value = of(middle.exp());
        // An end that stays twice weighs half, so that the other one moves too.
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

    /// Goal: the approximations against what they approximate. Method: uniform, zipfian and
    /// two-class blocks, caches of several sizes, both policies, a replay of 100,000 fetches each.
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

    /// Goal: blocks beside those that are counted take room by how often they are asked for.
    /// Method: hits of both, each beside the other, against a replay of all; more and more popular
    /// ones.
    #[test]
    fn others_take_room_by_their_popularity() {
        let counted = zipf(5_000);
        let mut before = HashMap::new();
        for popularity in [0.002, 0.02, 0.2] {
            let others = [BlockClass { popularity, count: 300.0 }];
            for capacity in [100, 400, 1500] {
                let model = CacheModel::beside(CachePolicy::S3Fifo, &counted, &others, f64::from(capacity));
                let all = [&counted[..], &others[..]].concat();
                let all_hit = replay(&all, CachePolicy::S3Fifo, capacity as usize, 200_000, 5);
                let asked = |classes: &[BlockClass]| sum(classes, |popularity| popularity);
                let held = |classes: &[BlockClass], rest: &[BlockClass]| {
                    CacheModel::beside(CachePolicy::S3Fifo, classes, rest, f64::from(capacity)).hit_rate
                        * asked(classes)
                };
                let parts = (held(&counted, &others) + held(&others, &counted)) / asked(&all);
                assert!((parts - all_hit).abs() < 0.01, "{popularity} {capacity}: {parts} {all_hit}");
                // The more they are asked for, the less is left.
                assert!(model.hit_rate <= before.insert(capacity, model.hit_rate).unwrap_or(1.0) + 1e-3);
            }
        }
    }

    /// Goal: binning changes nothing that shows. Method: hit rates with and without.
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

    /// Goal: the ends. Method: no cache, a cache over everything, nobody who reads, blocks that
    /// nobody asks for.
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
