//! Target sizes of the levels.

use crate::Key;
use crate::options::LeveledOptions;
use crate::state::State;

/// Bytes that a merge into the next level writes per byte moved down, divided by the ratio of the
/// levels' sizes. Less than 1, because the cheapest ranges are merged first and superseded entries
/// are written only once.
const MERGE_SHARE: f64 = 0.6;

/// The smallest ratio of adjacent levels. With it, the levels above the last add up to a quarter of
/// the last.
const RATIO_MIN: f64 = 5.0;

/// The target sizes of the levels, derived from the size N of the last.
///
/// Let X be the bytes merged from level 0 at a time, n the number of levels below level 0 and f the
/// ratio between them. A byte is then written about
///
/// ```text
///   1 + B/X  +  (n - 1) (1 + 0.6 f)         with the base level B = N / f^(n-1)
/// ```
///
/// times after its flush. For each n the best f is `(N/X / 0.6)^(1/n)`, limited to the range from 5
/// to the option's multiplier; the n with the smallest sum is chosen. So a store of twice the size
/// of level 0 has one level, because rewriting it costs less than a middle level would. And no
/// middle level is nearly empty, or ten times larger than the one above, merely because the sizes
/// happen to work out that way.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelTargets {
    /// The number of the last level.
    pub last: usize,
    /// The level into which level 0 is merged.
    pub base: usize,
    /// The bytes in level 0 that make a merge worthwhile.
    pub level_zero_bytes: u64,
    /// Targets from level 1 on: 0 above the base level, no limit for the last.
    bytes: Vec<u64>,
}

impl LevelTargets {
    pub(crate) fn new<K: Key>(options: &LeveledOptions, state: &State<K>) -> LevelTargets {
        debug_assert!(options.levels >= 2, "found {} levels, expected level 0 and one below", options.levels);
        let last = options.levels.max(state.levels.len()) - 1;
        let largest = (1..=last).map(|level| state.level(level).bytes()).max().unwrap_or(0);
        let (count, ratio) = shape(options, largest);
        let wanted = last + 1 - count;
        // Level 0 must not be merged past older data.
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
        let first = wanted.saturating_sub(1).min(bytes.len());
        debug_assert!(
            bytes.iter().take(first).all(|&target| target == 0),
            "found a target above level {wanted}"
        );
        debug_assert!(
            bytes.get(first..).is_some_and(|targets| targets.is_sorted()),
            "found targets {bytes:?}, expected each at least that of the level above"
        );
        debug_assert_eq!(bytes.last(), Some(&u64::MAX), "the last level has no limit");
        let base = wanted.min(first_used);
        debug_assert!((1..=last).contains(&base), "found the base level {base}, expected one up to {last}");
        LevelTargets { last, base, level_zero_bytes, bytes }
    }

    /// Returns the target of a level from 1 on: `u64::MAX` for the last level, 0 for a level that
    /// should be empty.
    pub fn of(&self, level: usize) -> u64 {
        level.checked_sub(1).and_then(|at| self.bytes.get(at)).copied().unwrap_or(0)
    }
}

/// Returns the number of levels below level 0, and the ratio between them.
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
    debug_assert!((1..options.levels.max(2)).contains(&best.0), "found {} levels below level 0", best.0);
    debug_assert!(best.1 >= 1.0 && best.1 <= options.multiplier, "found the ratio {}", best.1);
    (best.0, best.1)
}
