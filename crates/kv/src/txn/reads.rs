//! What a transaction has read, and whether somebody has changed it since.

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::db::inner::{Inner, KeyspaceState};
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::version::KeyspaceId;

/// Keys and ranges that a transaction depends on, with the number up to which it has seen them.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    keys: BTreeMap<(KeyspaceId, Vec<u8>), Seqno>,
    ranges: Vec<(KeyspaceId, Bounds, Seqno)>,
}

impl Reads {
    /// `key`, there or not, was read as of `at`. Of several reads the oldest counts.
    pub(crate) fn key(&mut self, keyspace: KeyspaceId, key: &[u8], at: Seqno) {
        let seen = self.keys.entry((keyspace, key.to_vec())).or_insert(at);
        *seen = (*seen).min(at);
    }

    /// Everything within `bounds` was read as of `at`. Gives back its place, for [`Reads::widen`].
    pub(crate) fn range(&mut self, keyspace: KeyspaceId, bounds: Bounds, at: Seqno) -> usize {
        self.ranges.push((keyspace, bounds, at));
        self.ranges.len() - 1
    }

    /// The range at `place` was read further: it is now `bounds`.
    pub(crate) fn widen(&mut self, place: usize, bounds: Bounds) {
        if let Some((_, old, _)) = self.ranges.get_mut(place) {
            *old = bounds;
        }
    }

    /// What was changed after it was read, if anything: its keyspace and key. `after` replaces
    /// older read numbers: what was before is known to be unchanged.
    ///
    /// Costs a lookup for each key read, in memtables only unless flushes have come since.
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
