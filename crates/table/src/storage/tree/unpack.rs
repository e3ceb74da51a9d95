//! Changing records in packed leaves.
//!
//! A packed leaf has several times as many records as an ordinary one. It is divided so that the
//! changed record and its neighbours go into an ordinary leaf, which is partly filled, while the
//! records on either side stay packed. This takes one or two splits, each a change of its own: as
//! for any split, the parent must have room for one more key.

use std::ops::Range;

use cairn_pool::{Changed, Optimistic};

use super::restructure::{Copy, Halves, count_both, separator_of};
use super::{Attempt, Tree};
use crate::storage::change::Change;
use crate::storage::node::{Bounds, HEADER, Node, NodeMut, SLOT};
use crate::storage::ops::image;
use crate::storage::packed::{Packed, Unpacked};

/// Fill, in percent, of the ordinary leaf that receives the record.
const FILL: usize = 90;
const _: () = assert!(FILL > 0 && FILL <= 100);

/// The records of a packed leaf.
pub(super) struct Records {
    unpacked: Unpacked,
    count: usize,
}

impl Records {
    fn of(copy: &Copy) -> Result<Records, Changed> {
        let count = copy.node().count()?;
        let mut unpacked = Unpacked::default();
        if count > 0 {
            unpacked.fill(Packed(&copy.bytes[..]), 0..count, None)?;
        }
        debug_assert!(
            unpacked.range().len() == count,
            "{:?} of {count} records are unpacked",
            unpacked.range()
        );
        Ok(Records { unpacked, count })
    }

    fn record(&self, at: usize) -> Result<(&[u8], &[u8]), Changed> {
        self.unpacked.record(at).ok_or(Changed)
    }

    /// Returns the bytes that a range of records takes in an ordinary leaf.
    fn len(&self, range: Range<usize>, bounds: &Bounds<'_>) -> Result<usize, Changed> {
        let prefix = bounds.prefix_len();
        let fences = bounds.lower.map_or(0, <[u8]>::len) + bounds.upper.map_or(0, <[u8]>::len);
        let mut sum = HEADER + fences;
        for at in range {
            let (key, value) = self.record(at)?;
            sum += SLOT + key.len().checked_sub(prefix).ok_or(Changed)? + value.len();
        }
        Ok(sum)
    }

    /// Builds an ordinary leaf from a range of records.
    fn leaf(&self, range: Range<usize>, bounds: Bounds<'_>, len: usize) -> Result<Vec<u8>, Changed> {
        let count = range.len();
        debug_assert!(range.end <= self.count, "records {range:?} of {} are unpacked", self.count);
        let mut bytes = vec![0; len];
        let mut node = NodeMut(&mut bytes);
        node.clear(0, bounds)?;
        let prefix = bounds.prefix_len();
        for (at, record) in range.enumerate() {
            let (key, value) = self.record(record)?;
            node.insert(at, key.get(prefix..).ok_or(Changed)?, value)?;
        }
        debug_assert!(Node(&bytes[..]).count() == Ok(count), "some of {count} records are lost");
        Ok(bytes)
    }
}

impl Tree {
    /// Converts a packed leaf into an ordinary one if its records fit. Otherwise returns its
    /// records.
    pub(super) fn unpack_whole(&self, view: &Optimistic<'_>) -> Attempt<Option<(Copy, Records)>> {
        let copy = Copy::of(self, view)?;
        let records = self.sound(view, Records::of(&copy))?;
        let build = || -> Result<Option<Vec<u8>>, Changed> {
            let bounds = copy.bounds();
            if records.len(0..records.count, &bounds)? > copy.bytes.len() {
                return Ok(None);
            }
            records.leaf(0..records.count, bounds, copy.bytes.len()).map(Some)
        };
        let Some(bytes) = self.sound(view, build())? else { return Ok(Some((copy, records))) };
        let mut change = Change::default();
        let leaf = change.hold(view.upgrade_exclusive()?);
        change.plan(leaf, image(&bytes)?);
        change.commit(&*self.space.log, self.space.path())?;
        Ok(None)
    }

    /// Divides a packed leaf so that `key` ends up in, or closer to, an ordinary leaf.
    pub(super) fn halves_packed(
        &self,
        view: &Optimistic<'_>,
        (copy, records): &(Copy, Records),
        key: &[u8],
    ) -> Attempt<Halves> {
        let build = || -> Result<Halves, Changed> {
            let count = records.count;
            // Divides into parts of equal size, one of which contains the key. Those on either side
            // stay together.
            let parts = records.len(0..count, &copy.bounds())? * 100 / (copy.bytes.len() * FILL) + 1;
            let size = count.div_ceil(parts).max(1);
            debug_assert!(size <= count.max(1), "a part of {count} records has {size}");
            let (at, _) = copy.node().search(key)?;
            let start = at.min(count.saturating_sub(1)) / size * size;
            let cut = if start > 0 { start } else { size };
            let halves = |cut| self.divide_packed(copy, records, cut);
            // Half of the records of a page fit on a page even with other fences. If they should
            // not, other positions to cut remain.
            let others = (1..parts).map(|part| part * size);
            [cut, count / 2].into_iter().chain(others).find_map(|cut| halves(cut).ok()).ok_or(Changed)
        };
        self.sound(view, build())
    }

    fn divide_packed(&self, copy: &Copy, records: &Records, cut: usize) -> Result<Halves, Changed> {
        if cut == 0 || cut >= records.count {
            return Err(Changed);
        }
        let separator = separator_of(records.record(cut - 1)?.0, records.record(cut)?.0)?;
        let part = |range: Range<usize>, bounds: Bounds<'_>| -> Result<Vec<u8>, Changed> {
            if records.len(range.clone(), &bounds)? <= copy.bytes.len() {
                return records.leaf(range, bounds, copy.bytes.len());
            }
            Packed(&copy.bytes[..]).part(&records.unpacked, range, bounds)?.ok_or(Changed)
        };
        let bounds = copy.bounds();
        let left = part(0..cut, Bounds { upper: Some(&separator), ..bounds })?;
        let right = part(cut..records.count, Bounds { lower: Some(&separator), ..bounds })?;
        debug_assert!(
            count_both(&left, &right)? == records.count,
            "a packed leaf of {} records is divided, and some are lost",
            records.count
        );
        Ok(Halves { left, right, separator })
    }
}

/// Merges two leaves, at least one of which is packed. Returns `None` unless one of them is empty,
/// because the next change would undo any other merge.
pub(super) fn merged_packed(left: &Copy, right: &Copy) -> Option<Vec<u8>> {
    let kept = match (left.node().count(), right.node().count()) {
        (Ok(0), _) => right,
        (_, Ok(0)) => left,
        _ => return None,
    };
    let bounds = Bounds { lower: left.lower.as_deref(), upper: right.upper.as_deref() };
    if is_packed(kept) { Packed(&kept.bytes[..]).with_bounds(bounds) } else { None }
}

/// Returns whether a node is a packed leaf.
pub(super) fn is_packed(copy: &Copy) -> bool {
    copy.node().is_packed().unwrap_or(false)
}
