//! The read set of a transaction, and the check for later changes to it.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::version::KeyspaceId;

/// Keys and ranges on which a transaction depends, each with the sequence number as of which it was
/// read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    keys: BTreeMap<(KeyspaceId, Vec<u8>), Seqno>,
    ranges: Vec<(KeyspaceId, Bounds, Seqno)>,
}

impl Reads {
    /// Records a read of `key`, present or absent, as of `at`. Of several reads the oldest counts.
    pub(crate) fn key(&mut self, keyspace: KeyspaceId, key: &[u8], at: Seqno) {
        let seen = self.keys.entry((keyspace, key.to_vec())).or_insert(at);
        *seen = (*seen).min(at);
    }

    /// Records a read of everything within `bounds` as of `at`. Returns its index for
    /// [`Reads::widen`].
    pub(crate) fn range(&mut self, keyspace: KeyspaceId, bounds: Bounds, at: Seqno) -> usize {
        self.ranges.push((keyspace, bounds, at));
        self.ranges.len() - 1
    }

    /// Extends the range at index `place` to `bounds`.
    pub(crate) fn widen(&mut self, place: usize, bounds: Bounds) {
        debug_assert!(place < self.ranges.len(), "range {place} of {}", self.ranges.len());
        if let Some((_, old, _)) = self.ranges.get_mut(place) {
            debug_assert_eq!(
                old.lower.clone().unwrap_or_default(),
                bounds.lower.clone().unwrap_or_default(),
                "a range is widened at its end"
            );
            *old = bounds;
        }
    }

    /// Returns the keyspace and key of a change made after it was read, if there is one. Read
    /// numbers below `after` are raised to it, because earlier changes have been ruled out.
    ///
    /// Costs a lookup for each key read, in memtables only unless there were flushes since.
    pub(crate) fn changed(
        &self,
        inner: &Inner,
        after: Option<Seqno>,
    ) -> Result<Option<(Arc<KeyspaceState>, Vec<u8>)>> {
        for ((id, key), at) in &self.keys {
            let keyspace = inner.keyspace(*id)?;
            if inner.newest_after(&keyspace, key, after.unwrap_or(*at).max(*at))? {
                return Ok(Some((keyspace, key.clone())));
            }
        }
        for (id, bounds, at) in &self.ranges {
            let keyspace = inner.keyspace(*id)?;
            if let Some(key) = inner.changed_within(&keyspace, bounds, after.unwrap_or(*at).max(*at))? {
                return Ok(Some((keyspace, key)));
            }
        }
        Ok(None)
    }
}
