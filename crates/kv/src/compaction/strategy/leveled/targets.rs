//! How large each level should be.

use crate::compaction::strategy::options::LeveledOptions;
use crate::compaction::strategy::state::State;

/// What a merge into the next level writes for each byte that goes down and each time that the
/// level is larger. Not 1, since the cheapest ranges go first and entries that meet their newer
/// versions are written once.
const MERGE_SHARE: f64 = 0.6;

/// The smallest ratio of neighbouring levels: levels above the last then add up to a quarter of it.
const RATIO_MIN: f64 = 5.0;

/// The sizes of the levels, derived from the size N of the last.
///
/// With X bytes merged from level 0 at a time, n levels below it and a ratio f between them, a byte
/// is written about
///
/// ```text
///   1 + B/X  +  (n - 1) (1 + 0.6 f)         with the base level B = N / f^(n-1)
/// ```
///
/// times after its flush. For each n the best f is `(N/X / 0.6)^(1/n)`, held between 5 and the
/// option's multiplier; the n with the least sum is taken. So a store of twice level 0 has one
/// level, whose rewriting costs less than a middle level would, and no middle level is nearly empty
/// or ten times larger than the one above only because its size happened to come out so.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::compaction::strategy) struct Targets {
    /// The number of the last level.
    pub(in crate::compaction::strategy) last: usize,
    /// The level that level 0 is merged into.
    pub(in crate::compaction::strategy) base: usize,
    /// How much of level 0 is worth a merge.
    pub(in crate::compaction::strategy) level_zero_bytes: u64,
    /// Targets from level 1 on: 0 above the base, no limit for the last.
    bytes: Vec<u64>,
}

impl Targets {
    pub(in crate::compaction::strategy) fn new(options: &LeveledOptions, state: &State<'_>) -> Targets {
        let last = options.levels.max(state.levels.len()) - 1;
        let largest = (1..=last).map(|level| state.level(level).bytes()).max().unwrap_or(0);
        let (count, ratio) = shape(options, largest);
        let wanted = last + 1 - count;
        // Level 0 must not pass anything that is older than it.
        let first_used = (1..=last).find(|&level| state.is_used(level)).unwrap_or(last);
        let mut bytes = vec![0; last];
        let mut target = largest as f64;
        for level in (wanted..=last).rev() {
            if let Some(slot) = bytes.get_mut(level - 1) {
                *slot = if level == last { u64::MAX } else { (target as u64).max(options.base_bytes) };
            }
            target /= ratio;
        }
        let level_zero_bytes = options.level_zero_bytes.min(largest);
        Targets { last, base: wanted.min(first_used), level_zero_bytes, bytes }
    }

    /// The target of a level from 1 on: `u64::MAX` for the last, 0 where nothing should be.
    pub(in crate::compaction::strategy) fn of(&self, level: usize) -> u64 {
        level.checked_sub(1).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }
}

/// How many levels below level 0, and the ratio between them.
fn shape(options: &LeveledOptions, largest: u64) -> (usize, f64) {
    let batch = options.level_zero_bytes.max(1) as f64;
    let times = largest as f64 / batch;
    let mut best = (1, options.multiplier, 1.0 + times);
    for count in 2..options.levels {
        let least = RATIO_MIN.min(options.multiplier);
        let ratio = (times / MERGE_SHARE).powf(1.0 / count as f64).clamp(least, options.multiplier);
        let above = (count - 1) as i32;
        let base = times / ratio.powi(above);
        let cost = 1.0 + base + f64::from(above) * (1.0 + MERGE_SHARE * ratio);
        let is_large_enough = base * batch >= options.base_bytes as f64;
        if cost < best.2 && is_large_enough {
            best = (count, ratio, cost);
        }
    }
    (best.0, best.1)
}
