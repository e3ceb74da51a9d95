//! The uncommitted writes of a transaction.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::Result;
use crate::batch::{Operation, WriteBatch};
use crate::iter::visible::Bounds;
use crate::version::KeyspaceId;

/// The combined effect of the writes to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The value set, or the removal, to which the operands apply. `None` if they apply to the
    /// stored value.
    pub base: Option<Option<Vec<u8>>>,
    /// Merge operands, oldest first.
    pub operands: Vec<Vec<u8>>,
}

/// The writes of a transaction, by keyspace and key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay {
    keyspaces: BTreeMap<KeyspaceId, BTreeMap<Vec<u8>, Pending>>,
}

impl Overlay {
    /// Sets a key, or removes it if `value` is `None`.
    pub(crate) fn set(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<&[u8]>) {
        let pending = Pending { base: Some(value.map(<[u8]>::to_vec)), operands: Vec::new() };
        self.keyspaces.entry(keyspace).or_default().insert(key.to_vec(), pending);
    }

    /// Adds an operand to a key.
    pub(crate) fn merge(&mut self, keyspace: KeyspaceId, key: &[u8], operand: &[u8]) {
        let keys = self.keyspaces.entry(keyspace).or_default();
        let pending = keys.entry(key.to_vec()).or_insert(Pending { base: None, operands: Vec::new() });
        pending.operands.push(operand.to_vec());
    }

    /// Returns the writes to `key`.
    pub(crate) fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<&Pending> {
        self.keyspaces.get(&keyspace)?.get(key)
    }

    /// Returns the writes within `bounds`, in key order.
    pub(crate) fn range(&self, keyspace: KeyspaceId, bounds: &Bounds) -> Vec<(Vec<u8>, Pending)> {
        let lower = bounds.lower.clone().map_or(Bound::Unbounded, Bound::Included);
        let upper = bounds.upper.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let is_empty = matches!((&bounds.lower, &bounds.upper), (Some(lower), Some(upper)) if lower >= upper);
        let found: Vec<(Vec<u8>, Pending)> = match self.keyspaces.get(&keyspace) {
            Some(keys) if !is_empty => {
                keys.range((lower, upper)).map(|(key, pending)| (key.clone(), pending.clone())).collect()
            }
            _ => Vec::new(),
        };
        debug_assert!(found.iter().all(|(key, _)| bounds.contains(key)), "a write outside of {bounds:?}");
        found
    }

    /// Returns the writes as a batch.
    pub(crate) fn batch(&self) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (&id, keys) in &self.keyspaces {
            for (key, pending) in keys {
                debug_assert!(
                    pending.base.is_some() || !pending.operands.is_empty(),
                    "a write without effect"
                );
                match &pending.base {
                    Some(Some(value)) => batch.add(id, Operation::Put { key, value })?,
                    Some(None) => batch.add(id, Operation::Delete { key })?,
                    None => {}
                }
                for operand in &pending.operands {
                    batch.add(id, Operation::Merge { key, operand })?;
                }
            }
        }
        let all = self.keyspaces.values().flat_map(BTreeMap::values);
        debug_assert_eq!(
            batch.len(),
            all.map(|pending| usize::from(pending.base.is_some()) + pending.operands.len()).sum::<usize>(),
            "a write of the transaction is left out of its batch"
        );
        Ok(batch)
    }

    /// Returns true if nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        debug_assert!(
            self.keyspaces.values().all(|keys| !keys.is_empty()),
            "a keyspace is listed without a write"
        );
        self.keyspaces.values().all(BTreeMap::is_empty)
    }
}
