//! Building a tree from records that come in order: leaf by leaf, from the bottom up, nodes as full as is asked.

use super::Tree;
use crate::storage::change::Change;
use crate::storage::node::{Bounds, HEADER, Node, NodeMut, SLOT};
use crate::storage::ops::image;
use crate::storage::packed::{Layout, Packer};
use crate::{Error, Result};

/// Bytes of records that are looked at together before they are packed: some ten leaves.
const BATCH: usize = 256 << 10;

/// Records that go into ordinary leaves before the next attempt to pack: within a batch, and after one that was not worth it.
const PLAIN: usize = 64;
const AGAIN: usize = 10_000;

/// Records of a node to be.
#[derive(Debug, Default)]
struct Level {
    /// The key before all of them.
    lower: Option<Vec<u8>>,
    /// Keys and values, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Level {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn record(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let start = at.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).map(|ends| ends.1))?;
        let &(key, value) = self.ends.get(at)?;
        Some((self.bytes.get(start..key)?, self.bytes.get(key..value)?))
    }

    fn last_key(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).and_then(|last| self.record(last)).map(|(key, _)| key)
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend(key);
        let middle = self.bytes.len();
        self.bytes.extend(value);
        self.ends.push((middle, self.bytes.len()));
    }

    /// Bytes of a page that its records take with one more, whose key is at most the node's last.
    fn size_with(&self, key: &[u8], value: &[u8]) -> usize {
        let lower = self.lower.as_deref();
        let prefix = Bounds { lower, upper: Some(key) }.prefix_len();
        let count = self.len() + 1;
        let fences = lower.map_or(0, <[u8]>::len) + key.len();
        HEADER + count * SLOT + self.bytes.len() + key.len() + value.len() + fences - count * prefix
    }

    /// Where a leaf of these records, of which `last` is the last, ends before `next`. They were measured without what they have in common up to the last of them; a short
    /// key beyond that may have less of it in common, and then the node would be too long.
    fn end_before(&self, last: &[u8], next: &[u8]) -> Vec<u8> {
        let prefix_len =
            |upper: &[u8]| Bounds { lower: self.lower.as_deref(), upper: Some(upper) }.prefix_len();
        let short = separator(last, next);
        if prefix_len(&short) < prefix_len(last) { last.to_vec() } else { short }
    }

    fn clear(&mut self, lower: Vec<u8>) {
        self.lower = Some(lower);
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Takes records in ascending order and makes an empty tree of them. What a failure leaves is the tree's owner's to give back: the root is written last, so the
/// pages that were written before are found by a vacuum.
#[derive(Debug)]
pub(crate) struct Builder {
    tree: Tree,
    levels: Vec<Level>,
    /// As many bytes a node gets.
    most: usize,
    /// Records that may come into packed leaves.
    packer: Option<Packer>,
    /// As many records go into ordinary leaves before the packer is asked again: it did not save enough.
    plain: usize,
}

/// A key that is not before `last` and before `next`, and as short as can be.
fn separator(last: &[u8], next: &[u8]) -> Vec<u8> {
    let same = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    match next.get(..=same) {
        Some(short) if short.len() < next.len() => short.to_vec(),
        _ => last.to_vec(),
    }
}

impl Builder {
    /// Begins with a tree that has nothing but its root. `fill` is the part of an ordinary node that gets full, from 0.5 to 1. With a layout leaves are packed where that
    /// saves enough.
    pub(crate) fn new(tree: &Tree, fill: f64, layout: Option<Layout>) -> Self {
        let most = (tree.space.payload as f64 * fill.clamp(0.5, 1.0)) as usize;
        let packer = layout.map(|layout| Packer::new(layout, tree.space.payload));
        Builder { tree: tree.clone(), levels: vec![Level::default()], most, packer, plain: 0 }
    }

    /// Whether a key comes after all that were put in.
    pub(crate) fn is_next(&self, key: &[u8]) -> bool {
        let waiting = self.packer.as_ref().filter(|packer| packer.len() > 0);
        let last = match waiting {
            Some(packer) => Some(packer.key(packer.len() - 1)),
            // Behind the last record, or the fence where none came after a packed leaf.
            None => self.levels.first().and_then(|leaves| leaves.last_key().or(leaves.lower.as_deref())),
        };
        last.is_none_or(|last| last < key)
    }

    /// Puts a record in. Errors: [`Error::TooLong`], [`Error::Invalid`] for one that is out of order; the pool's and the log's.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (len, most) = (key.len() + value.len(), self.tree.max_record());
        if len > most {
            return Err(Error::TooLong { key: key.len(), value: value.len(), most });
        }
        if !self.is_next(key) {
            return Err(Error::Invalid { what: "a tree is built from keys in ascending order".to_owned() });
        }
        if self.packs(key, value)? {
            return Ok(());
        }
        self.push_plain(key, value)
    }

    /// Puts a record into an ordinary leaf.
    fn push_plain(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(leaves) = self.levels.first()
            && leaves.len() > 0
            && leaves.size_with(key, value) > self.most
            && let Some(last) = leaves.last_key()
        {
            let upper = leaves.end_before(last, key);
            self.finish_node(0, upper)?;
        }
        if let Some(leaves) = self.levels.first_mut() {
            leaves.push(key, value);
        }
        Ok(())
    }

    /// Gives a record to the packer, if it takes it.
    fn packs(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let Some(packer) = &mut self.packer else { return Ok(false) };
        if self.plain > 0 {
            self.plain -= 1;
            return Ok(false);
        }
        if !packer.push(key, value) {
            // One that cannot be packed: those before it have to be written first.
            self.pack(false)?;
            return Ok(false);
        }
        if packer.bytes() >= BATCH {
            self.pack(true)?;
        }
        Ok(true)
    }

    /// Writes packed leaves of the records that wait, and ordinary ones where that does not save enough. All of them, or with `more` to come as many as fill pages for
    /// certain.
    fn pack(&mut self, more: bool) -> Result<()> {
        let Some(mut packer) = self.packer.take() else { return Ok(()) };
        packer.prepare();
        while packer.len() > 0 && !(more && packer.bytes() < BATCH / 4) {
            // What is left at the end goes into an ordinary leaf: new records are likely to come behind it.
            let own = packer.len() - if more { 1 } else { self.tail(&packer) };
            let written = self.pack_page(&mut packer, own)?;
            if written > 0 {
                packer.forget(written);
                packer.wrote();
                continue;
            }
            let count = if own == 0 { packer.len() } else { packer.len().min(PLAIN) };
            for at in 0..count {
                let Some((key, value)) = packer.record(at) else { break };
                self.push_plain(key, value)?;
            }
            packer.forget(count);
            if more && own > 0 {
                self.plain = AGAIN;
                self.push_all(&mut packer)?;
            }
        }
        self.packer = Some(packer);
        Ok(())
    }

    /// Puts all that waits into ordinary leaves.
    fn push_all(&mut self, packer: &mut Packer) -> Result<()> {
        for at in 0..packer.len() {
            let Some((key, value)) = packer.record(at) else { break };
            self.push_plain(key, value)?;
        }
        packer.forget(packer.len());
        Ok(())
    }

    /// As many of the last records as fill a quarter of an ordinary leaf; all of them if they fit into one.
    fn tail(&self, packer: &Packer) -> usize {
        let len = packer.len();
        if packer.ordinary(0..len) < self.most {
            return len;
        }
        let mut tail = 1;
        while tail < len && packer.ordinary(len - tail..len) < self.most / 4 {
            tail += 1;
        }
        tail
    }

    /// Writes a packed leaf of the first records, of which it may have so many. Gives how many it has; 0 when an ordinary one is better.
    fn pack_page(&mut self, packer: &mut Packer, most: usize) -> Result<usize> {
        let lower = self.levels.first().and_then(|leaves| leaves.lower.as_deref()).map_or(0, <[u8]>::len);
        let Some((count, plan)) = packer.fit(lower, most) else { return Ok(0) };
        // A quarter of the bytes at least, and a page.
        let ordinary = packer.ordinary(0..count);
        if plan.size * 4 > ordinary * 3 || ordinary < self.most * 3 / 2 {
            return Ok(0);
        }
        // Ordinary records that came before end where the packed ones begin.
        if let Some(leaves) = self.levels.first().filter(|leaves| leaves.len() > 0)
            && let Some(last) = leaves.last_key()
        {
            let upper = leaves.end_before(last, packer.key(0));
            self.finish_node(0, upper)?;
        }
        let upper = separator(packer.key(count - 1), packer.key(count));
        let lower = self.levels.first().and_then(|leaves| leaves.lower.as_deref());
        let Some(page) = packer.page(&plan, Bounds { lower, upper: Some(&upper) }) else { return Ok(0) };
        let number = self.put(&page, None)?;
        if let Some(leaves) = self.levels.first_mut() {
            leaves.clear(upper.clone());
        }
        self.add_child(1, &upper, number)?;
        Ok(count)
    }

    /// Writes the node of a level, which ends with `upper`, and tells the level above.
    fn finish_node(&mut self, level: usize, upper: Vec<u8>) -> Result<()> {
        let page = self.write(level, Some(&upper), None)?;
        if let Some(level) = self.levels.get_mut(level) {
            level.clear(upper.clone());
        }
        self.add_child(level + 1, &upper, page)
    }

    fn add_child(&mut self, level: usize, key: &[u8], child: u32) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Level::default());
        }
        let value = child.to_le_bytes();
        let Some(node) = self.levels.get_mut(level) else { return Ok(()) };
        node.push(key, &value);
        // Room for one more: the last child has no record, but its separator is the node's fence.
        if node.len() > 2 && node.size_with(key, &value) > self.most {
            return self.finish_node(level, key.to_vec());
        }
        Ok(())
    }

    /// Writes the records of a level as one node: to a new page, or to `root`. `upper` is `None` for the last node of its level.
    fn write(&self, level: usize, upper: Option<&[u8]>, root: Option<(u32, u32)>) -> Result<u32> {
        let tree = &self.tree;
        let Some(records) = self.levels.get(level) else { return Ok(0) };
        let mut payload = vec![0; tree.space.payload];
        let last_child = root.map(|(_, child)| child);
        let build = |payload: &mut Vec<u8>| -> std::result::Result<(), cairn_pool::Changed> {
            let bounds = Bounds { lower: records.lower.as_deref(), upper };
            let mut node = NodeMut(payload);
            node.clear(level as u8, bounds)?;
            let prefix = Node(&*node.0).prefix_len()?;
            // Of an inner node that has an end, the last record's child is the last child.
            let count = if level > 0 && upper.is_some() { records.len() - 1 } else { records.len() };
            for at in 0..count {
                let (key, value) = records.record(at).ok_or(cairn_pool::Changed)?;
                node.insert(at, key.get(prefix..).ok_or(cairn_pool::Changed)?, value)?;
            }
            let last = match (level, upper) {
                (0, _) => None,
                (_, None) => last_child,
                (_, Some(_)) => {
                    records.record(count).and_then(|(_, value)| value.try_into().ok()).map(u32::from_le_bytes)
                }
            };
            last.map_or(Ok(()), |child| node.set_last_child(child))
        };
        build(&mut payload).map_err(|_| tree.space.damaged(tree.root, "a node of it cannot be built"))?;
        self.put(&payload, root)
    }

    /// Writes a page, to a new one or to `root`.
    fn put(&self, payload: &[u8], root: Option<(u32, u32)>) -> Result<u32> {
        let tree = &self.tree;
        let op = image(payload).map_err(|_| tree.space.damaged(tree.root, "a node of it cannot be built"))?;
        let mut change = Change::default();
        let (page, at) = match root {
            Some((page, _)) if page != 0 => (page, change.hold(tree.space.file.write(page)?)),
            _ => match tree.space.allocate(&mut change, 1)?.first() {
                Some(&found) => found,
                None => return Err(Error::NoPages),
            },
        };
        change.plan(at, op);
        change.commit(&*tree.space.log, tree.space.path())?;
        Ok(page)
    }

    /// The last node of a level has no end, so its keys have nothing in common: what was measured with less may need two nodes, or more.
    fn divide_last(&mut self, level: usize) -> Result<()> {
        loop {
            let Some(records) = self.levels.get(level) else { return Ok(()) };
            let lower = records.lower.as_ref().map_or(0, Vec::len);
            let count = records.len();
            if count < 4 || HEADER + count * SLOT + records.bytes.len() + lower <= self.tree.space.payload {
                return Ok(());
            }
            let half = count / 2;
            let (Some((last, _)), Some((next, _))) = (records.record(half - 1), records.record(half)) else {
                return Ok(());
            };
            let upper = if level == 0 { separator(last, next) } else { last.to_vec() };
            let mut rest = Level::default();
            rest.clear(upper.clone());
            (half..count).filter_map(|at| records.record(at)).for_each(|(key, value)| rest.push(key, value));
            if let Some(records) = self.levels.get_mut(level) {
                let end = records.ends.get(half - 1).map_or(0, |ends| ends.1);
                records.ends.truncate(half);
                records.bytes.truncate(end);
            }
            self.finish_node(level, upper)?;
            if let Some(records) = self.levels.get_mut(level) {
                *records = rest;
            }
        }
    }

    /// Writes what is left, and the root. Errors: the pool's and the log's.
    pub(crate) fn finish(self) -> Result<()> {
        let mut this = self;
        this.pack(false)?;
        let (mut child, mut level) = (0, 0);
        while level < this.levels.len() {
            this.divide_last(level)?;
            let is_top = level + 1 == this.levels.len();
            // Where the last node of a level goes that has others: to a page of its own. The only node of the top level is the root.
            let page = if is_top { this.tree.root } else { 0 };
            child = this.write(level, None, Some((page, child)))?;
            level += 1;
        }
        Ok(())
    }
}
