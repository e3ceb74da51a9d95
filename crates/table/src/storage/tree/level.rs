//! Records of a node to be.

use cairn_pool::Changed;

use crate::storage::node::{Bounds, HEADER, Node, NodeMut, SLOT};

/// Records in ascending order.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Keys and values, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

/// Records of the node of a level that is not written yet.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The key before all of them.
    pub lower: Option<Vec<u8>>,
    pub records: Records,
}

impl Records {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|ends| ends.1))?;
        let &(key, value) = self.ends.get(at)?;
        Some((self.bytes.get(start..key)?, self.bytes.get(key..value)?))
    }

    pub fn last_key(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).and_then(|last| self.get(last)).map(|(key, _)| key)
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) {
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
        self.ends.truncate(count);
        self.bytes.truncate(end);
    }
}

/// A key that is not before `last` and before `next`, and as short as can be.
pub(super) fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let same = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    match next.get(..=same) {
        Some(short) if short.len() < next.len() => short.to_vec(),
        _ => last.to_vec(),
    }
}

impl Level {
    /// Bytes of a page that its records take with one more, whose key is at most the node's last.
    pub fn size_with(&self, key: &[u8], value: &[u8]) -> usize {
        let lower = self.lower.as_deref();
        let prefix = Bounds { lower, upper: Some(key) }.prefix_len();
        let count = self.records.len() + 1;
        let fences = lower.map_or(0, <[u8]>::len) + key.len();
        HEADER + count * SLOT + self.records.bytes() + key.len() + value.len() + fences - count * prefix
    }

    /// Where a leaf of these records, of which `last` is the last, ends before `next`. They were
    /// measured without what they have in common up to the last of them; a short key beyond that
    /// may have less of it in common, and then the node would be too long.
    pub fn end_before(&self, last: &[u8], next: &[u8]) -> Vec<u8> {
        let prefix_len =
            |upper: &[u8]| Bounds { lower: self.lower.as_deref(), upper: Some(upper) }.prefix_len();
        let short = separator(last, next);
        if prefix_len(&short) < prefix_len(last) { last.to_vec() } else { short }
    }

    /// Begins the next node, which comes behind `lower`.
    pub fn clear(&mut self, lower: Vec<u8>) {
        self.lower = Some(lower);
        self.records.clear();
    }

    /// The node of these records, `size` bytes of a page. `upper` is `None` for the last one of its
    /// level, whose last child is `last_child`.
    ///
    /// Errors: records that do not fit.
    pub fn node(
        &self,
        level: usize,
        upper: Option<&[u8]>,
        last_child: Option<u32>,
        size: usize,
    ) -> Result<Vec<u8>, Changed> {
        let mut payload = vec![0; size];
        let mut node = NodeMut(&mut payload);
        node.clear(level as u8, Bounds { lower: self.lower.as_deref(), upper })?;
        let prefix = Node(&*node.0).prefix_len()?;
        // Of an inner node that has an end, the last record's child is the last child.
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
        Ok(payload)
    }

    /// The last node of a level has no end, so its keys have nothing in common: what was measured
    /// with less may need two nodes, or more. Keeps the first half of the records then, and gives
    /// where that ends, and the other half.
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
        Some((upper, rest))
    }
}
