//! Tables that want to be compacted for what is in them, however full their level is.

use crate::compaction::strategy::job::Reason;
use crate::compaction::strategy::state::{State, TableInfo};

/// Which tables those are.
#[derive(Debug, Clone, Copy)]
pub(in crate::compaction::strategy) struct Wanted {
    /// At least this share of tombstones.
    pub(in crate::compaction::strategy) tombstone_ratio: f64,
    /// The first entry expired at least this long ago.
    pub(in crate::compaction::strategy) expired_secs: u64,
    /// Above the last data, with an entry at least this old.
    pub(in crate::compaction::strategy) age_secs: Option<u64>,
}

impl Wanted {
    /// The tables, with their levels and the reason; those that nobody else's business stands
    /// before first.
    ///
    /// Each is such that a job makes progress: it goes down, or what is unwanted goes. A table that
    /// stands lowest is therefore wanted only if no snapshot protects its tombstones.
    pub(in crate::compaction::strategy) fn tables<'s, 'a>(
        self,
        state: &'s State<'a>,
    ) -> impl Iterator<Item = (usize, &'s TableInfo<'a>, Reason)> {
        let levels = state.levels.iter().enumerate();
        let tables = levels.flat_map(|(at, level)| level.tables().map(move |table| (at, table)));
        let free = tables.filter(|(_, table)| !table.compacting);
        free.filter_map(move |(level, table)| Some((level, table, self.reason(state, level, table)?)))
    }

    fn reason(self, state: &State<'_>, level: usize, table: &TableInfo<'_>) -> Option<Reason> {
        let is_above = level == 0 || state.has_below(level, table.smallest, table.largest);
        let tombstones_can_go =
            is_above || state.oldest_snapshot.is_none_or(|oldest| table.seqnos.1 <= oldest);
        if table.marked {
            return Some(Reason::Marked);
        }
        if table.tombstones > 0 && table.tombstone_ratio() >= self.tombstone_ratio && tombstones_can_go {
            return Some(Reason::Tombstones);
        }
        if table.expires_secs.saturating_add(self.expired_secs) <= state.now_secs {
            return Some(Reason::Expired);
        }
        let is_old = |age: u64| table.oldest_secs.saturating_add(age) <= state.now_secs;
        (is_above && self.age_secs.is_some_and(is_old)).then_some(Reason::Age)
    }
}
