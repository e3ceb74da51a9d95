//! Finds writes newer than a sequence number, with which transactions detect conflicts.

use std::ops::{Bound, ControlFlow};

use crate::Result;
use crate::cursor::Cursor;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::iter::visible::Bounds;
use crate::kind::{SEQNO_MAX, Seqno};
use crate::memtable::Memtable;
use crate::options::ReadOptions;
use crate::range_del::{RangeTombstoneRef, RangeTombstones};
use crate::table;

impl Inner {
    /// Returns true if `key` was written or removed after `at`.
    ///
    /// Correct as long as a snapshot at or before `at` is held, because compactions then preserve
    /// the sequence numbers of later writes.
    pub(crate) fn newest_after(&self, keyspace: &KeyspaceState, key: &[u8], at: Seqno) -> Result<bool> {
        let view = keyspace.view.load();
        let is_newer = |tombstone: Option<Seqno>| tombstone.is_some_and(|seqno| seqno > at);
        let visible = self.order.visible();
        debug_assert!(at <= visible, "a read at {at}, which is not visible before {visible}");
        let wrote = |memtable: &Memtable| {
            let newest = memtable.versions(key, SEQNO_MAX).next();
            newest.is_some_and(|version| version.seqno > at) || memtable.covers_after(key, at, visible)
        };
        if wrote(&view.active) || view.sealed.iter().any(|sealed| wrote(&sealed.memtable)) {
            return Ok(true);
        }
        let hash = table::hash_key(key);
        let found = view.version.search(key, |_, file| {
            if file.meta.seqnos.1 <= at {
                return ControlFlow::Continue(());
            }
            let mut newest = 0;
            let result = self.tables.open(file).and_then(|table| {
                if is_newer(table.range_tombstones().newest_covering(key, SEQNO_MAX)) {
                    newest = SEQNO_MAX;
                }
                table.get(key, hash, SEQNO_MAX, |version, _| {
                    newest = newest.max(version.seqno);
                    ControlFlow::Break(())
                })
            });
            match result {
                Err(error) => ControlFlow::Break(Err(error)),
                Ok(()) if newest > at => ControlFlow::Break(Ok(())),
                Ok(()) => ControlFlow::Continue(()),
            }
        });
        match found {
            ControlFlow::Continue(()) => Ok(false),
            ControlFlow::Break(result) => result.map(|()| true),
        }
    }

    /// Returns a key within `bounds` that was written or removed after `at`, under the condition of
    /// [`Inner::newest_after`].
    ///
    /// Costs a scan of the range in every source that has newer writes.
    pub(crate) fn changed_within(
        &self,
        keyspace: &KeyspaceState,
        bounds: &Bounds,
        at: Seqno,
    ) -> Result<Option<Vec<u8>>> {
        if matches!((&bounds.lower, &bounds.upper), (Some(lower), Some(upper)) if lower >= upper) {
            return Ok(None);
        }
        debug_assert!(at <= self.order.visible(), "a read at {at}, which is not visible yet");
        let view = keyspace.view.load();
        let memtables =
            std::iter::once(&view.active).chain(view.sealed.iter().map(|sealed| &sealed.memtable));
        for memtable in memtables {
            if let Some(key) = memtable.find_range_tombstone(at, |it| first_within(it, bounds)) {
                return Ok(Some(key));
            }
            if memtable.seqnos().is_some_and(|(_, newest)| newest > at)
                && let Some(key) = newer_within(&mut memtable.cursor(), bounds, at)?
            {
                return Ok(Some(key));
            }
        }
        let lower = bounds.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        let upper = bounds.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        for level in view.version.levels() {
            for file in level.overlapping(lower, upper).flat_map(|(_, files)| files) {
                if file.meta.seqnos.1 <= at {
                    continue;
                }
                let table = self.tables.open(file)?;
                if let Some(key) = covered_within(table.range_tombstones(), bounds, at) {
                    return Ok(Some(key));
                }
                if let Some(key) =
                    newer_within(&mut self.tables.cursor(table, bounds, &ReadOptions::default()), bounds, at)?
                {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the first key within `bounds` that has an entry newer than `at`.
fn newer_within(cursor: &mut impl Cursor, bounds: &Bounds, at: Seqno) -> Result<Option<Vec<u8>>> {
    debug_assert!(
        bounds.lower.as_ref().zip(bounds.upper.as_ref()).is_none_or(|(lower, upper)| lower < upper),
        "a range without keys is searched: {bounds:?}"
    );
    match &bounds.lower {
        Some(lower) => cursor.seek(lower, SEQNO_MAX)?,
        None => cursor.seek_first()?,
    }
    while cursor.valid() && bounds.contains(cursor.key()) {
        if cursor.seqno() > at {
            return Ok(Some(cursor.key().to_vec()));
        }
        cursor.next()?;
    }
    Ok(None)
}

/// Returns a key within `bounds` that is covered by a range tombstone newer than `at`.
fn covered_within(set: &RangeTombstones, bounds: &Bounds, at: Seqno) -> Option<Vec<u8>> {
    set.iter().filter(|tombstone| tombstone.seqno > at).find_map(|it| first_within(it, bounds))
}

/// Returns the first key within `bounds` that `tombstone` covers.
fn first_within(tombstone: RangeTombstoneRef<'_>, bounds: &Bounds) -> Option<Vec<u8>> {
    let start = bounds.lower.as_deref().map_or(tombstone.start, |lower| lower.max(tombstone.start));
    debug_assert!(tombstone.start < tombstone.end, "an empty range tombstone");
    let is_within = start < tombstone.end && bounds.contains(start);
    is_within.then(|| start.to_vec())
}
