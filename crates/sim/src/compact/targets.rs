//! RocksDB's level targets, compaction scores, and estimate of pending compaction bytes.

use crate::options::Options;
use crate::tree::Tree;

/// In dynamic mode, scores above 1 are multiplied by this, so that a score that is lowered for
/// incoming bytes stays above 1.
const SCORE_SCALE: f64 = 10.0;

/// Target sizes of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// The level that level 0 is merged into.
    pub base: usize,
    /// Target sizes, from level 0; `u64::MAX` for no limit.
    pub bytes: Vec<u64>,
    /// The deepest level that is no longer needed since the last level has shrunk; 0 for none. It
    /// and the levels above it are drained.
    pub unnecessary: usize,
}

impl Targets {
    /// Computes the targets. Static: level 1 has `max_bytes_for_level_base`, and each level is
    /// larger than the one above by the multiplier. Dynamic: the last level has its actual size,
    /// and each level is smaller than the one below by the multiplier, up to the base level, which
    /// has at most `max_bytes_for_level_base`.
    pub fn new(tree: &Tree, options: &Options) -> Targets {
        if options.level_compaction_dynamic_level_bytes {
            let sizes: Vec<u64> = (0..options.num_levels).map(|level| tree.level(level).bytes()).collect();
            Targets::dynamic(&sizes, options)
        } else {
            let mut bytes = vec![u64::MAX; options.num_levels];
            let mut target = options.max_bytes_for_level_base as f64;
            for slot in bytes.iter_mut().skip(1) {
                *slot = target as u64;
                target *= options.max_bytes_for_level_multiplier;
            }
            Targets { base: 1.min(options.num_levels - 1), bytes, unnecessary: 0 }
        }
    }

    /// Computes dynamic targets from the sizes of the levels.
    pub(crate) fn dynamic(sizes: &[u64], options: &Options) -> Targets {
        let last = options.num_levels - 1;
        let mut bytes = vec![u64::MAX; options.num_levels];
        let first_used = (1..=last).find(|&level| sizes.get(level).is_some_and(|&size| size > 0));
        let largest = sizes.iter().skip(1).copied().max().unwrap_or(0);
        let Some(first_used) = first_used else {
            return Targets { base: last, bytes, unnecessary: 0 };
        };
        let multiplier = options.max_bytes_for_level_multiplier;
        let base_max = options.max_bytes_for_level_base as f64;
        let base_min = base_max / multiplier;
        let mut size = largest as f64;
        let mut unnecessary = 0;
        for level in (first_used..last).rev() {
            size /= multiplier;
            // RocksDB does so since 8.2.
            if unnecessary == 0 && size <= base_min && options.rocksdb_version >= 8 {
                unnecessary = level;
            }
        }
        let mut base = first_used;
        let base_size = if size <= base_min {
            base_min + 1.0
        } else {
            while base > 1 && size > base_max {
                base -= 1;
                size /= multiplier;
            }
            if size > base_max { base_max } else { size.max(1.0) }
        };
        let mut target = base_size;
        for slot in bytes.iter_mut().skip(base) {
            // No target is below `max_bytes_for_level_base`, or deeper levels could become smaller
            // than level 0 and give the tree an hourglass shape.
            *slot = target.max(base_max) as u64;
            target *= multiplier;
        }
        debug_assert!(
            (1..=last).contains(&base) && base <= first_used,
            "found the base level {base} of {last}"
        );
        debug_assert!(
            bytes.get(base..).is_some_and(|targets| targets.is_sorted()),
            "found targets {bytes:?}, expected each at least that of the level above"
        );
        debug_assert!(unnecessary < last, "the last level is never drained");
        Targets { base, bytes, unnecessary }
    }

    /// Returns the target size of a level.
    pub fn of(&self, level: usize) -> u64 {
        self.bytes.get(level).copied().unwrap_or(u64::MAX)
    }

    /// Returns levels and scores, highest score first. The last level has none.
    pub fn scores(&self, tree: &Tree, options: &Options) -> Vec<(usize, f64)> {
        let mut incoming = 0u64;
        let mut scores: Vec<(usize, f64)> = Vec::with_capacity(options.num_levels);
        for level in 0..options.num_levels.saturating_sub(1) {
            let score = if level == 0 {
                let bytes = tree.level(0).bytes();
                incoming += bytes;
                self.score_of_zero(tree, options)
            } else {
                let (all, free) = (tree.level(level).bytes(), tree.level(level).free_bytes());
                let target = self.of(level);
                let score = self.score_of_level(options, level, free, incoming);
                if level <= self.unnecessary {
                    incoming = incoming.saturating_add(all);
                } else if all > target {
                    incoming = incoming.saturating_add(all - target);
                }
                score
            };
            scores.push((level, score));
        }
        // The sort is stable: of equal scores, the upper level stays first.
        scores.sort_by(|a, b| b.1.total_cmp(&a.1));
        scores
    }

    fn score_of_zero(&self, tree: &Tree, options: &Options) -> f64 {
        let free = || tree.level(0).files().filter(|file| !file.compacting);
        let bytes = tree.level(0).free_bytes();
        let mut score = free().count() as f64 / options.level0_file_num_compaction_trigger as f64;
        if !options.level_compaction_dynamic_level_bytes {
            return score.max(bytes as f64 / options.max_bytes_for_level_base as f64);
        }
        if bytes >= options.max_bytes_for_level_base {
            score = score.max(1.01);
        }
        let target = self.of(self.base);
        if bytes > target {
            let base = tree.level(self.base).compensated_bytes();
            score = score.max(bytes as f64 / base.max(target) as f64);
        }
        if score > 1.0 { score * SCORE_SCALE } else { score }
    }

    fn score_of_level(&self, options: &Options, level: usize, free: u64, incoming: u64) -> f64 {
        let target = self.of(level);
        if !options.level_compaction_dynamic_level_bytes {
            return free as f64 / target as f64;
        }
        let score = if free < target {
            free as f64 / target as f64
        } else {
            free as f64 / target.saturating_add(incoming) as f64 * SCORE_SCALE
        };
        if free == 0 || level > self.unnecessary {
            return score;
        }
        // Drained levels come after an urgent level 0, the upper ones first.
        let above = (self.unnecessary - level) as f64;
        score.max(SCORE_SCALE * (1.001 + 0.001 * above))
    }
}

/// Returns the bytes that level 0 and the levels above their targets will cost on the way down, at
/// the current ratios of the levels.
pub(super) fn debt_bytes(tree: &Tree, options: &Options) -> u64 {
    let targets = Targets::new(tree, options);
    let size = |level: usize| tree.level(level).bytes();
    let zero = size(0);
    let is_due = tree.level(0).runs.len() >= options.level0_file_num_compaction_trigger
        || zero >= options.max_bytes_for_level_base;
    let mut goes_down = if is_due { zero } else { 0 };
    let mut debt = goes_down;
    for level in targets.base..options.num_levels.saturating_sub(1) {
        let mut bytes = size(level);
        if level == targets.base && is_due {
            debt += bytes;
        }
        bytes += goes_down;
        goes_down = 0;
        let target = targets.of(level);
        if bytes > target {
            goes_down = bytes - target;
            let next = size(level + 1);
            if next > 0 {
                debt += (goes_down as f64 * (next as f64 / bytes as f64 + 1.0)) as u64;
            }
        }
    }
    debt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compact::tests::{file, tree_of};

    const MIB: u64 = 1 << 20;

    /// Goal: dynamic targets match RocksDB's documented example. Method: a last level of 276 MiB
    /// with a base of 10 MiB and a multiplier of 10 has targets of 276, 27.6 and 10, and its base
    /// level lies two above.
    #[test]
    fn dynamic_sizes_follow_the_last_level() {
        let options = Options {
            level_compaction_dynamic_level_bytes: true,
            max_bytes_for_level_base: 10 * MIB,
            num_levels: 7,
            ..Options::default()
        };
        let tree = tree_of(&[(6, vec![file(1, 0, 9, 276 * MIB)])]);
        let targets = Targets::new(&tree, &options);
        assert_eq!(targets.base, 4);
        assert_eq!(targets.of(6) / MIB, 276);
        assert_eq!(targets.of(5) / MIB, 27);
        assert_eq!(targets.of(4), 10 * MIB);
        assert_eq!(Targets::new(&tree_of(&[]), &options).base, 6);
    }

    /// Goal: since 8.2, RocksDB drains unnecessary levels, the upper one first, and after an urgent
    /// level
    /// 0. Method: picks and scores for a last level that would fit into the base level, with two
    ///    levels
    /// above it that are far below their targets.
    #[test]
    fn unnecessary_levels_are_drained() {
        let options = |rocksdb_version: u32| Options {
            rocksdb_version,
            level_compaction_dynamic_level_bytes: true,
            max_bytes_for_level_base: 100 * MIB,
            ..Options::default()
        };
        let mut levels = vec![
            (4, vec![file(3, 0, 9, MIB)]),
            (5, vec![file(2, 0, 9, 2 * MIB)]),
            (6, vec![file(1, 0, 9, 50 * MIB)]),
        ];
        let pick = |levels: &[(usize, Vec<crate::tree::File>)], version: u32| {
            crate::compact::pick(&tree_of(levels), &options(version), 0.0).map(|job| job.output_level)
        };
        assert_eq!((pick(&levels, 7), pick(&levels, 8)), (None, Some(5)));
        let first = |levels: &[(usize, Vec<crate::tree::File>)]| {
            let tree = tree_of(levels);
            Targets::new(&tree, &options(8)).scores(&tree, &options(8))[0]
        };
        let (level, score) = first(&levels);
        assert!(level == 4 && (score - 10.02).abs() < 1e-9, "{level} {score}");
        let zero = |count: u64| (0..count).map(|at| (0, vec![file(50 - at, 0, 9, MIB)])).collect::<Vec<_>>();
        assert_eq!(first(&[zero(4), levels.clone()].concat()).0, 4);
        assert_eq!(first(&[zero(5), levels.clone()].concat()).0, 0);
        // A last level that is too large for the base level needs both levels.
        levels[2] = (6, vec![file(1, 0, 9, 2000 * MIB)]);
        assert_eq!(pick(&levels, 8), None);
    }

    /// Goal: the estimate matches a sum by hand. Method: level 0 due with 40, level 1 of 300
    /// against 256, level 2 of 3000 against 2560.
    #[test]
    fn debt_adds_up() {
        let options = Options::default();
        let zero = (0..4).map(|at| (0, vec![file(10 + at, 0, 9, 10 * MIB)]));
        let mut levels: Vec<_> = zero.collect();
        levels.push((1, vec![file(1, 0, 9, 300 * MIB)]));
        levels.push((2, vec![file(2, 0, 9, 3000 * MIB)]));
        let debt = debt_bytes(&tree_of(&levels), &options) as f64 / MIB as f64;
        let first = 340.0 - 256.0;
        let expected = 40.0 + 300.0 + first * (3000.0 / 340.0 + 1.0);
        // The excess of level 2 then goes to an empty level, which costs nothing by the estimate.
        assert!((debt - expected).abs() < 1.0, "{debt} {expected}");
    }
}
