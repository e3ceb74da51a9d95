//! Records of nodes under construction.

use cairn_pool::Changed;

use super::MAX_LEVELS;
use crate::storage::node::{Bounds, HEADER, Node, NodeMut, SLOT};

/// Records in ascending order.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Keys and values, back to back, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

/// The records of a level's unfinished node.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The lower fence, which is less than all keys.
    pub lower: Option<Vec<u8>>,
    pub records: Records,
}

impl Records {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the size of all records.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|ends| ends.1))?;
        let &(key, value) = self.ends.get(at)?;
        debug_assert!(start <= key && key <= value, "record {at} is at {start}, {key} and {value}");
        Some((self.bytes.get(start..key)?, self.bytes.get(key..value)?))
    }

    pub fn last_key(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).and_then(|last| self.get(last)).map(|(key, _)| key)
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(
            self.last_key().is_none_or(|last| last < key),
            "{key:?} follows {:?}, expected ascending keys",
            self.last_key()
        );
        self.bytes.extend(key);
        let middle = self.bytes.len();
        self.bytes.extend(value);
        self.ends.push((middle, self.bytes.len()));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn truncate(&mut self, count: usize) {
        let end = count.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |ends| ends.1);
        debug_assert!(count <= self.ends.len(), "{count} of {} records are kept", self.ends.len());
        self.ends.truncate(count);
        self.bytes.truncate(end);
    }
}

/// Returns the shortest key that is not before `last` and is before `next`.
pub(super) fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    // Without a next key, the leaf is followed by others that are not known yet.
    debug_assert!(next.is_empty() || last < next, "{last:?} and {next:?} are separated");
    let same = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    let between = match next.get(..=same) {
        Some(short) if short.len() < next.len() => short.to_vec(),
        _ => last.to_vec(),
    };
    debug_assert!(
        &between[..] >= last && (next.is_empty() || &between[..] < next),
        "{between:?} does not separate {last:?} from {next:?}"
    );
    between
}

impl Level {
    /// Returns the bytes of a page that the records would take with one more, if its key is at most
    /// the node's last key.
    pub fn size_with(&self, key: &[u8], value: &[u8]) -> usize {
        let lower = self.lower.as_deref();
        let prefix = Bounds { lower, upper: Some(key) }.prefix_len();
        let count = self.records.len() + 1;
        let fences = lower.map_or(0, <[u8]>::len) + key.len();
        debug_assert!(
            self.records.bytes() + key.len() >= count * prefix,
            "{count} keys are shorter than their common prefix of {prefix} bytes"
        );
        HEADER + count * SLOT + self.records.bytes() + key.len() + value.len() + fences - count * prefix
    }

    /// Returns the upper fence between a leaf of these records, whose last key is `last`, and
    /// `next`. The size was computed with the common prefix up to the last key. A shorter fence
    /// beyond it might shorten that prefix, and then the node would be too large.
    pub fn end_before(&self, last: &[u8], next: &[u8]) -> Vec<u8> {
        let prefix_len =
            |upper: &[u8]| Bounds { lower: self.lower.as_deref(), upper: Some(upper) }.prefix_len();
        let short = separator(last, next);
        let end = if prefix_len(&short) < prefix_len(last) { last.to_vec() } else { short };
        debug_assert!(
            &end[..] >= last && (next.is_empty() || &end[..] < next),
            "a node ends at {end:?}, not between {last:?} and {next:?}"
        );
        end
    }

    /// Begins the next node, with lower fence `lower`.
    pub fn clear(&mut self, lower: Vec<u8>) {
        debug_assert!(
            self.lower.as_ref().is_none_or(|before| *before < lower),
            "a node begins at {lower:?}, and the one before it at {:?}",
            self.lower
        );
        self.lower = Some(lower);
        self.records.clear();
    }

    /// Builds the node from these records as `size` bytes. `upper` is `None` for the last node of
    /// its level, whose last child is `last_child`.
    ///
    /// Errors: records that do not fit.
    pub fn node(
        &self,
        level: usize,
        upper: Option<&[u8]>,
        last_child: Option<u32>,
        size: usize,
    ) -> Result<Vec<u8>, Changed> {
        debug_assert!(level < usize::from(MAX_LEVELS), "a node of level {level} is built");
        debug_assert!(
            level == 0 || upper.is_none() || self.records.len() > 0,
            "an inner node has no children"
        );
        debug_assert!(
            level == 0 || upper.is_some() || last_child.is_some(),
            "the last node of level {level} has no last child"
        );
        let mut payload = vec![0; size];
        let mut node = NodeMut(&mut payload);
        node.clear(level as u8, Bounds { lower: self.lower.as_deref(), upper })?;
        let prefix = Node(&*node.0).prefix_len()?;
        // In an inner node with an upper fence, the last record's child becomes the last child.
        let count = if level > 0 && upper.is_some() { self.records.len() - 1 } else { self.records.len() };
        for at in 0..count {
            let (key, value) = self.records.get(at).ok_or(Changed)?;
            node.insert(at, key.get(prefix..).ok_or(Changed)?, value)?;
        }
        let last = match (level, upper) {
            (0, _) => None,
            (_, None) => last_child,
            (_, Some(_)) => {
                let last = self.records.get(count).and_then(|(_, value)| value.try_into().ok());
                last.map(u32::from_le_bytes)
            }
        };
        last.map_or(Ok(()), |child| node.set_last_child(child))?;
        debug_assert!(Node(&payload[..]).is_sound(), "a node of {count} records of level {level} is damaged");
        Ok(payload)
    }

    /// Halves a node that is too large. The last node of a level has no upper fence, so its keys
    /// have no common prefix, and records measured with one may need two nodes or more. Keeps the
    /// first half, and returns its upper fence and the other half.
    pub fn halve(&mut self, level: usize, size: usize) -> Option<(Vec<u8>, Level)> {
        let lower = self.lower.as_ref().map_or(0, Vec::len);
        let count = self.records.len();
        if count < 4 || HEADER + count * SLOT + self.records.bytes() + lower <= size {
            return None;
        }
        let half = count / 2;
        let ((last, _), (next, _)) = (self.records.get(half - 1)?, self.records.get(half)?);
        let upper = if level == 0 { separator(last, next) } else { last.to_vec() };
        let mut rest = Level { lower: Some(upper.clone()), records: Records::default() };
        (half..count)
            .filter_map(|at| self.records.get(at))
            .for_each(|(key, value)| rest.records.push(key, value));
        self.records.truncate(half);
        debug_assert!(
            self.records.len() + rest.records.len() == count,
            "{count} records are halved into {} and {}",
            self.records.len(),
            rest.records.len()
        );
        debug_assert!(self.records.len() >= 2 && rest.records.len() >= 2, "a half has a single record");
        Some((upper, rest))
    }
}
