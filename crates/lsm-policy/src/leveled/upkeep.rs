//! Upkeep: tables that need a compaction because of their content, however full their level is.

use crate::Key;
use crate::job::Reason;
use crate::state::{State, TableInfo};

/// The criteria for such tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The table has at least this share of tombstones.
    pub(crate) tombstone_ratio: f64,
    /// An entry of the table expired at least this long ago.
    pub(crate) expired_secs: u64,
    /// The table lies above older data and has an entry at least this old.
    pub(crate) age_secs: Option<u64>,
}

impl Wanted {
    /// Returns the tables that no running job reads and that meet a criterion, with their levels
    /// and the reason.
    ///
    /// A job for such a table always makes progress: the table moves down, or its tombstones or
    /// expired entries are dropped. Therefore a table with nothing below it qualifies only if no
    /// snapshot protects its tombstones.
    pub(crate) fn tables<K: Key>(
        self,
        state: &State<K>,
    ) -> impl Iterator<Item = (usize, &TableInfo<K>, Reason)> {
        let levels = state.levels.iter().enumerate();
        let tables = levels.flat_map(|(at, level)| level.tables().map(move |table| (at, table)));
        let free = tables.filter(|(_, table)| !table.compacting);
        free.filter_map(move |(level, table)| Some((level, table, self.reason(state, level, table)?)))
    }

    fn reason<K: Key>(self, state: &State<K>, level: usize, table: &TableInfo<K>) -> Option<Reason> {
        debug_assert!(!table.compacting, "a job already reads table {}", table.number);
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
