//! Placement of an ingested table: the deepest level such that no older table above or beside it
//! shares its keys.

use crate::compaction::strategy::{State, StrategyOptions};

/// A level and a run of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub level: usize,
    pub run: u64,
}

/// Returns the last level that the strategy uses.
pub(super) fn last_level(options: &StrategyOptions) -> usize {
    match options {
        StrategyOptions::Leveled(options) => options.levels.saturating_sub(1),
        StrategyOptions::Universal(options) => options.levels.saturating_sub(1),
        StrategyOptions::LazyLeveled(options) => options.levels.saturating_sub(1),
        // FIFO drops the oldest tables of level 0 and ignores other levels.
        StrategyOptions::Fifo(_) => 0,
    }
}

/// Returns the deepest place below level 0 for a table of the keys `smallest..=largest` that is
/// newer than everything there. `None` means a new run of level 0.
///
/// No table from level 0 down to the chosen level may share keys with it, or lookups would find the
/// older entry first. The chosen level either already has exactly one run to which the table can be
/// added (only the strategy decides which levels are used), or is the last level. No running
/// compaction may be about to write to the range there.
pub(super) fn deepest(state: &State<'_>, last: usize, smallest: &[u8], largest: &[u8]) -> Option<Place> {
    debug_assert!(smallest <= largest, "keys from {smallest:?} to {largest:?}");
    let depth = state.levels.len().max(last + 1);
    let overlaps = |&level: &usize| state.level(level).overlapping(smallest, largest).next().is_some();
    let blocked = (0..depth).find(overlaps).unwrap_or(depth);
    (1..blocked).rev().find_map(|level| {
        if state.is_written(level, smallest, largest) {
            return None;
        }
        match state.level(level).runs.as_slice() {
            [only] => Some(Place { level, run: only.id }),
            [] if level == last => Some(Place { level, run: 0 }),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::strategy::{LevelInfo, RunInfo, RunningJob, TableInfo};

    fn table<'a>(number: u64, smallest: &'a str, largest: &'a str) -> TableInfo<'a> {
        TableInfo {
            number,
            bytes: 1,
            smallest: smallest.as_bytes(),
            largest: largest.as_bytes(),
            entries: 1,
            tombstones: 0,
            seqnos: (1, 1),
            oldest_secs: 0,
            newest_secs: 0,
            expires_secs: u64::MAX,
            compacting: false,
            marked: false,
        }
    }

    fn level<'a>(runs: &[(u64, &'a str, &'a str)]) -> LevelInfo<'a> {
        let run = |&(id, smallest, largest): &(u64, &'a str, &'a str)| RunInfo {
            id,
            tables: vec![table(id, smallest, largest)],
        };
        LevelInfo { runs: runs.iter().map(run).collect() }
    }

    /// Goal: the place is the deepest sound one.
    ///
    /// Method: a tree with a table in level 0, a gap, two runs in level 3 and one in level 4 (the
    /// last is 5), and ranges that meet each of them in turn; then a running job.
    #[test]
    fn the_deepest_that_is_free() {
        let levels = vec![
            level(&[(9, "a", "c")]),
            LevelInfo::default(),
            level(&[(0, "k", "m")]),
            level(&[(8, "p", "q"), (7, "p", "r")]),
            level(&[(3, "t", "v")]),
        ];
        let mut state = State { levels, ..State::default() };
        let at = |state: &State<'_>, smallest: &str, largest: &str| {
            deepest(state, 5, smallest.as_bytes(), largest.as_bytes()).map(|place| (place.level, place.run))
        };
        assert_eq!(at(&state, "c", "d"), None, "it meets level 0");
        assert_eq!(at(&state, "m", "n"), None, "level 1 is not in use");
        assert_eq!(at(&state, "q", "q"), Some((2, 0)), "above the two runs of level 3");
        assert_eq!(at(&state, "u", "u"), Some((2, 0)), "level 3 has two runs");
        assert_eq!(at(&state, "w", "z"), Some((5, 0)), "the last level may be begun");
        let (smallest, largest) = (&b"x"[..], &b"y"[..]);
        state.running = vec![RunningJob { output_level: 5, smallest, largest }];
        assert_eq!(at(&state, "w", "x"), Some((4, 3)), "a job writes to level 5");
        assert_eq!(at(&state, "w", "w"), Some((5, 0)), "not there");
        assert_eq!(deepest(&State::default(), 0, b"a", b"b"), None, "nothing but level 0");
    }
}
