//! Splitting and merging nodes that have become too full or too empty.

use std::ops::Range;

use cairn_pool::{Changed, Lsn, Optimistic};
use cairn_vfs::ensure;

use super::unpack::{is_packed, merged_packed};
use super::{Attempt, MAX_LEVELS, Stop, Tree};
use crate::Result;
use crate::storage::change::Change;
use crate::storage::node::{Bounds, Node, NodeMut, SLOT, is_ghost};
use crate::storage::ops::{Op, image};
use crate::storage::packed::{CHUNK, Packed, Unpacked};

/// A node on a path, and the position of the child taken.
type Step<'p> = (Optimistic<'p>, usize);

/// A visitor of the pages of a tree.
pub(crate) type Visit<'v> = dyn FnMut(u32, u8, &[u8]) -> Result<()> + 'v;

/// A private copy of a node, with its fences.
pub(super) struct Copy {
    pub(super) bytes: Vec<u8>,
    level: u8,
    pub(super) lower: Option<Vec<u8>>,
    pub(super) upper: Option<Vec<u8>>,
}

impl Copy {
    /// Copies a node and validates the copy.
    pub(super) fn of(tree: &Tree, view: &Optimistic<'_>) -> Attempt<Copy> {
        let mut bytes = vec![0; view.len()];
        view.copy_to(0, &mut bytes)?;
        view.validate()?;
        let node = Node(&bytes[..]);
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        let fences = || -> std::result::Result<_, Changed> {
            let (has_lower, has_upper) = (node.lower(&mut lower)?, node.upper(&mut upper)?);
            Ok((has_lower.then_some(lower), has_upper.then_some(upper)))
        };
        let (level, fences) = (node.level(), fences());
        let (lower, upper) = tree.sound(view, fences)?;
        Ok(Copy { level: tree.sound(view, level)?, lower, upper, bytes })
    }

    pub(super) fn node(&self) -> Node<'_, [u8]> {
        Node(&self.bytes[..])
    }

    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds { lower: self.lower.as_deref(), upper: self.upper.as_deref() }
    }

    /// Counts ghosts by looking at each record.
    fn ghosts(&self) -> std::result::Result<usize, Changed> {
        let mut ghosts = 0;
        if self.node().is_packed()? {
            // Unpacks all records to find any that cannot be. A packed leaf has no ghosts.
            let (mut unpacked, count) = (Unpacked::default(), self.node().count()?);
            for start in (0..count).step_by(CHUNK) {
                unpacked.fill(Packed(&self.bytes[..]), start..count.min(start + CHUNK), None)?;
            }
            return Ok(0);
        }
        for at in 0..self.node().count()? {
            let value = self.node().record(at)?.1;
            ghosts += usize::from(is_ghost(self.bytes.get(value).ok_or(Changed)?));
        }
        Ok(ghosts)
    }

    /// Appends some of the records to a node under construction, which may have a different prefix.
    fn append_to(&self, records: Range<usize>, to: &mut [u8]) -> std::result::Result<(), Changed> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let prefix = Node(&*to).prefix_len()?;
        for at in records {
            self.node().key(at, &mut key)?;
            value.clear();
            self.node().value(at, &mut value)?;
            let end = Node(&*to).count()?;
            NodeMut(to).insert(end, key.get(prefix..).ok_or(Changed)?, &value)?;
        }
        Ok(())
    }
}

/// The two halves of a node, and the separator: the upper fence of the left one.
pub(super) struct Halves {
    pub(super) left: Vec<u8>,
    pub(super) right: Vec<u8>,
    pub(super) separator: Vec<u8>,
}

/// Returns the shortest key that is not below `left` and is below `right`.
pub(super) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    debug_assert!(left < right, "{left:?} and {right:?} are separated");
    let common = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    // The common prefix plus one byte is above `left`, and below `right` if `right` is longer.
    if common + 1 < right.len() { right[..common + 1].to_vec() } else { left.to_vec() }
}

/// Like [`separator`], for keys of a page that may be damaged. Errors: keys that are out of order.
pub(super) fn separator_of(left: &[u8], right: &[u8]) -> std::result::Result<Vec<u8>, Changed> {
    if left >= right {
        return Err(Changed);
    }
    let between = separator(left, right);
    debug_assert!(left <= &between[..] && &between[..] < right, "{between:?} is not before {right:?}");
    Ok(between)
}

/// Returns the number of records of both nodes.
pub(super) fn count_both(left: &[u8], right: &[u8]) -> std::result::Result<usize, Changed> {
    Ok(Node(left).count()? + Node(right).count()?)
}

impl Tree {
    /// Returns the nodes from the root to the leaf of a key.
    fn path(&self, key: &[u8]) -> Attempt<Vec<Step<'_>>> {
        let mut view = self.view(self.root)?;
        let mut level = self.level(&view)?;
        let mut path = Vec::with_capacity(usize::from(level) + 1);
        while level > 0 {
            let (child, at) = self.sound(&view, Node(&view).child_of(key))?;
            let below = self.below(&view, level, child)?;
            path.push((view, at));
            (view, level) = (below, level - 1);
        }
        path.push((view, 0));
        debug_assert!(path.len() <= usize::from(MAX_LEVELS) + 1, "a path has {} nodes", path.len());
        Ok(path)
    }

    /// Makes room for `key` by splitting the lowest node on its path whose parent has room for one
    /// more key. The caller retries until the leaf itself has been split.
    pub(super) fn split(&self, key: &[u8]) -> Attempt<()> {
        let path = self.path(key)?;
        let (leaf, _) = path.last().ok_or(Stop::Changed)?;
        let packed = match self.sound(leaf, Node(leaf).is_packed())? {
            true => match self.unpack_whole(leaf)? {
                None => return Ok(()),
                packed => packed,
            },
            false => None,
        };
        // The longest key that may move up, with its child: a key may be as long as a whole record.
        let need = SLOT + self.max_record() + size_of::<u32>();
        let has_room = |(view, _): &Step<'_>| self.sound(view, Node(view).free()).map(|free| free >= need);
        let mut at = path.len() - 1;
        while at > 0 && !has_room(&path[at - 1])? {
            at -= 1;
        }
        debug_assert!(at < path.len(), "node {at} of a path of {} is split", path.len());
        let view = &path[at].0;
        let (copy, halves) = match packed {
            Some(packed) if at + 1 == path.len() => {
                let halves = self.halves_packed(view, &packed, key)?;
                (packed.0, halves)
            }
            _ => {
                let copy = Copy::of(self, view)?;
                let halves = self.halves(view, &copy, key)?;
                (copy, halves)
            }
        };
        if at == 0 {
            self.split_root(view, &copy, &halves)
        } else {
            self.split_child(&path[at - 1], view, &halves)
        }
    }

    /// Divides a node. If the last key is the newest, all records stay on the left, so that
    /// ascending inserts fill pages.
    fn halves(&self, view: &Optimistic<'_>, copy: &Copy, key: &[u8]) -> Attempt<Halves> {
        let node = copy.node();
        let count = self.sound(view, node.count())?;
        if count < 2 {
            // The node was full when the caller looked, and other threads have emptied it since.
            // There is nothing to divide, and enough room. A damaged node without room would
            // otherwise be retried forever.
            if self.sound(view, node.free())? >= SLOT + self.max_record() {
                return Err(Stop::Changed);
            }
            let what = format!("it has {count} records, but no room");
            return Err(Stop::Error(self.space.damaged(view.id().page(), what)));
        }
        let (at, _) = self.sound(view, node.search(key))?;
        let is_ascending = copy.upper.is_none() && at == count;
        let tries =
            if is_ascending { vec![count, self.middle(view, copy)?] } else { vec![self.middle(view, copy)?] };
        for middle in tries {
            if let Ok(halves) = self.divide(copy, middle, key) {
                return Ok(halves);
            }
        }
        Err(Stop::Error(
            self.space.damaged(view.id().page(), format!("it has {count} records and cannot be divided")),
        ))
    }

    /// Returns the position before which the records take half of the bytes: at least one record,
    /// and not all of them.
    fn middle(&self, view: &Optimistic<'_>, copy: &Copy) -> Attempt<usize> {
        let node = copy.node();
        let count = self.sound(view, node.count())?;
        let sizes: std::result::Result<Vec<usize>, Changed> =
            (0..count).map(|at| node.record(at).map(|(key, value)| SLOT + key.len() + value.len())).collect();
        let sizes = self.sound(view, sizes)?;
        let half = sizes.iter().sum::<usize>() / 2;
        let mut sum = 0;
        let middle = sizes.iter().take_while(|&&size| {
            sum += size;
            sum <= half
        });
        let middle = middle.count().clamp(1, count.saturating_sub(1).max(1));
        debug_assert!(count < 2 || middle < count, "a node of {count} records is divided at {middle}");
        Ok(middle)
    }

    /// Builds both halves, with `middle` records in the left one. In an inner node, the record
    /// after them moves up.
    fn divide(&self, copy: &Copy, middle: usize, key: &[u8]) -> std::result::Result<Halves, Changed> {
        let (node, count) = (copy.node(), copy.node().count()?);
        let (mut last, mut first) = (Vec::new(), Vec::new());
        let separator = if copy.level > 0 {
            // The key that moves up is the one whose child becomes the last child of the left half.
            let goes_up = middle.min(count.checked_sub(1).ok_or(Changed)?);
            node.key(goes_up, &mut first)?;
            first.clone()
        } else if middle == count {
            // The new key is above all existing ones.
            node.key(count.checked_sub(1).ok_or(Changed)?, &mut last)?;
            separator_of(&last, key)?
        } else {
            node.key(middle.checked_sub(1).ok_or(Changed)?, &mut last)?;
            node.key(middle, &mut first)?;
            separator_of(&last, &first)?
        };
        let mut left = vec![0; copy.bytes.len()];
        let mut right = left.clone();
        let bounds = copy.bounds();
        NodeMut(&mut left).clear(copy.level, Bounds { upper: Some(&separator), ..bounds })?;
        NodeMut(&mut right).clear(copy.level, Bounds { lower: Some(&separator), ..bounds })?;
        if copy.level > 0 {
            let goes_up = middle.min(count - 1);
            copy.append_to(0..goes_up, &mut left)?;
            NodeMut(&mut left).set_last_child(node.child(goes_up)?)?;
            copy.append_to(goes_up + 1..count, &mut right)?;
            NodeMut(&mut right).set_last_child(node.child(count)?)?;
        } else {
            copy.append_to(0..middle, &mut left)?;
            copy.append_to(middle..count, &mut right)?;
        }
        // The record that moves up from an inner node is in neither half.
        debug_assert!(
            count_both(&left, &right)? + usize::from(copy.level > 0) == count,
            "a node of {count} records is divided, and some are lost"
        );
        debug_assert!(
            !node.is_sound() || Node(&left[..]).is_sound() && Node(&right[..]).is_sound(),
            "the halves of a node are damaged"
        );
        Ok(Halves { left, right, separator })
    }

    /// Replaces a node by its two halves. The parent must have room for one more key.
    fn split_child(&self, (parent, at): &Step<'_>, view: &Optimistic<'_>, halves: &Halves) -> Attempt<()> {
        let prefix = self.sound(parent, Node(parent).prefix_len())?;
        let rest = self.sound(parent, halves.separator.get(prefix..).ok_or(Changed))?;
        let mut change = Change::default();
        let above = change.hold(parent.upgrade_exclusive()?);
        let left = change.hold(view.upgrade_exclusive()?);
        let pages = self.space.allocate(&mut change, 1)?;
        let &(right_page, right) = pages.first().ok_or(Stop::Changed)?;
        change.plan(left, image(&halves.left)?);
        change.plan(right, image(&halves.right)?);
        // The child's existing entry becomes that of the right half. The left half gets a new entry
        // before it.
        ensure!(right_page != view.id().page(), "page {right_page} is allocated for a half of itself");
        let at = *at as u16;
        change.plan(above, Op::Child { at, child: right_page });
        change.plan(above, Op::Insert { at, key: rest, value: &view.id().page().to_le_bytes() });
        Ok(change.commit(&*self.space.log, self.space.path())?)
    }

    /// Splits the root in place: its halves go to two new pages, and it becomes their parent.
    fn split_root(&self, view: &Optimistic<'_>, copy: &Copy, halves: &Halves) -> Attempt<()> {
        let mut change = Change::default();
        let root = change.hold(view.upgrade_exclusive()?);
        let pages = self.space.allocate(&mut change, 2)?;
        let [(left_page, left), (right_page, right)] = pages[..] else { return Err(Stop::Changed) };
        ensure!(
            left_page != right_page && ![left_page, right_page].contains(&self.root),
            "the halves of the root {} are pages {left_page} and {right_page}",
            self.root
        );
        let mut above = vec![0; copy.bytes.len()];
        let mut node = NodeMut(&mut above);
        node.clear(copy.level + 1, copy.bounds())?;
        node.insert(0, &halves.separator, &left_page.to_le_bytes())?;
        node.set_last_child(right_page)?;
        debug_assert!(
            Node(&above[..]).level() == Ok(copy.level + 1) && Node(&above[..]).count() == Ok(1),
            "a new root is not above its halves"
        );
        change.plan(left, image(&halves.left)?);
        change.plan(right, image(&halves.right)?);
        change.plan(root, image(&above)?);
        Ok(change.commit(&*self.space.log, self.space.path())?)
    }

    /// Merges the leaf of a key with a neighbour if both fit into three quarters of a page, and
    /// continues upwards. Stops at a concurrent change: there will be other occasions.
    pub(super) fn merge(&self, key: &[u8]) -> Result<()> {
        loop {
            match self.merge_once(key) {
                Ok(true) => {}
                Ok(false) | Err(Stop::Changed) => return Ok(()),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
    }

    /// Merges one pair of nodes on the path of a key. Returns false if there is none to merge.
    fn merge_once(&self, key: &[u8]) -> Attempt<bool> {
        let path = self.path(key)?;
        for pair in path.windows(2).rev() {
            let [(parent, at), (view, _)] = pair else { continue };
            let free = self.sound(view, Node(view).free())?;
            if free <= self.space.payload / 4 * 3 {
                break;
            }
            if self.merge_child(parent, *at)? {
                return Ok(true);
            }
        }
        match path.first() {
            Some((root, _)) if path.len() > 1 => self.lower_root(root),
            _ => Ok(false),
        }
    }

    fn merge_child(&self, parent: &Optimistic<'_>, at: usize) -> Attempt<bool> {
        let above = Node(parent);
        let (count, level) = (self.sound(parent, above.count())?, self.level(parent)?);
        if count == 0 {
            return Ok(false);
        }
        // With the right neighbour; the last child with the left one.
        let at = at.min(count - 1);
        let (left, right) = (self.sound(parent, above.child(at))?, self.sound(parent, above.child(at + 1))?);
        let left = self.below(parent, level, left)?;
        let right = self.below(parent, level, right)?;
        let (first, second) = (Copy::of(self, &left)?, Copy::of(self, &right)?);
        let Some(merged) = self.merged(&left, &first, &second)? else { return Ok(false) };
        let mut change = Change::default();
        let above = change.hold(parent.upgrade_exclusive()?);
        let kept = change.hold(left.upgrade_exclusive()?);
        let freed = change.hold(right.upgrade_exclusive()?);
        change.plan(kept, image(&merged)?);
        change.plan(above, Op::Remove { at: at as u16 });
        change.plan(above, Op::Child { at: at as u16, child: left.id().page() });
        self.space.release(&mut change, right.id().page(), freed)?;
        change.commit(&*self.space.log, self.space.path())?;
        Ok(true)
    }

    /// Returns both nodes merged into one, if that leaves a quarter of it free.
    fn merged(&self, view: &Optimistic<'_>, left: &Copy, right: &Copy) -> Attempt<Option<Vec<u8>>> {
        if is_packed(left) || is_packed(right) {
            view.validate()?;
            return Ok(merged_packed(left, right));
        }
        let mut bytes = vec![0; left.bytes.len()];
        let between = left.upper.clone().unwrap_or_default();
        let mut build = || -> std::result::Result<usize, Changed> {
            let bounds = Bounds { lower: left.lower.as_deref(), upper: right.upper.as_deref() };
            NodeMut(&mut bytes).clear(left.level, bounds)?;
            let (first, second) = (left.node().count()?, right.node().count()?);
            left.append_to(0..first, &mut bytes)?;
            if left.level > 0 {
                let end = Node(&bytes[..]).count()?;
                let rest = between.get(bounds.prefix_len()..).ok_or(Changed)?;
                NodeMut(&mut bytes).insert(end, rest, &left.node().child(first)?.to_le_bytes())?;
                NodeMut(&mut bytes).set_last_child(right.node().child(second)?)?;
            }
            right.append_to(0..second, &mut bytes)?;
            debug_assert!(
                Node(&bytes[..]).count()? == first + second + usize::from(left.level > 0),
                "nodes of {first} and {second} records are merged, and some are lost"
            );
            debug_assert!(
                !left.node().is_sound() || !right.node().is_sound() || Node(&bytes[..]).is_sound(),
                "a merged node is damaged"
            );
            Node(&bytes[..]).free()
        };
        // An error means that the records do not fit, or that a node is damaged. Readers report the
        // damage.
        let is_enough = build().is_ok_and(|free| free >= self.space.payload / 4);
        view.validate()?;
        Ok(is_enough.then_some(bytes))
    }

    /// Replaces a root that has a single child by that child.
    fn lower_root(&self, root: &Optimistic<'_>) -> Attempt<bool> {
        let level = self.level(root)?;
        if level == 0 || self.sound(root, Node(root).count())? > 0 {
            return Ok(false);
        }
        let child = self.sound(root, Node(root).child(0))?;
        let below = self.below(root, level, child)?;
        ensure!(child != self.root, "the root {child} would be freed as its own child");
        let copy = Copy::of(self, &below)?;
        let mut change = Change::default();
        let kept = change.hold(root.upgrade_exclusive()?);
        let freed = change.hold(below.upgrade_exclusive()?);
        change.plan(kept, image(&copy.bytes)?);
        self.space.release(&mut change, child, freed)?;
        change.commit(&*self.space.log, self.space.path())?;
        Ok(true)
    }

    /// Walks the whole tree and reports the first problem. For tests and for checking a database;
    /// the tree must not change meanwhile.
    ///
    /// Errors: [`Error::Corruption`](crate::Error::Corruption), the first one found.
    pub fn check(&self) -> Result<TreeStats> {
        self.check_with(&mut |_, _, _| Ok(()))
    }

    /// Like [`Tree::check`], but also passes each page's number, level and bytes to `each`. Starts
    /// over if a page changes meanwhile.
    pub(crate) fn check_with(&self, each: &mut Visit<'_>) -> Result<TreeStats> {
        let mut stats = TreeStats::default();
        self.attempt(|| {
            stats = TreeStats::default();
            let root = self.view(self.root)?;
            self.check_below(&root, None, None, &mut stats, each)
        })?;
        ensure!(stats.pages > 0 && stats.levels > 0, "a tree was checked, and its root was not: {stats:?}");
        Ok(stats)
    }

    /// Checks a node and everything below it. Only a copy of the node is kept meanwhile: a view
    /// would not outlive the page's eviction, and the pool may be far smaller than the tree.
    fn check_below(
        &self,
        view: &Optimistic<'_>,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
        stats: &mut TreeStats,
        each: &mut Visit<'_>,
    ) -> Attempt<()> {
        let (page, lsn) = (view.id().page(), view.lsn());
        let copy = Copy::of(self, view)?;
        debug_assert!(copy.level < MAX_LEVELS, "page {page} is of level {}", copy.level);
        each(page, copy.level, &copy.bytes)?;
        let node = copy.node();
        let wrong = |what: String| Stop::Error(self.space.damaged(page, what));
        let outside = |Changed| wrong("its records extend beyond the page".to_owned());
        if copy.lower.as_deref() != lower || copy.upper.as_deref() != upper {
            return Err(wrong("its fences differ from those in its parent".to_owned()));
        }
        let count = node.count().map_err(outside)?;
        let (mut key, mut last) = (Vec::new(), lower.map(<[u8]>::to_vec));
        stats.pages += 1;
        stats.levels = stats.levels.max(copy.level + 1);
        stats.free_bytes += node.free().map_err(outside)? as u64;
        if !node.adds_up().map_err(outside)? {
            return Err(wrong("its header does not match the size of its records".to_owned()));
        }
        let parent = (page, lsn, copy.level);
        for at in 0..count {
            node.key(at, &mut key).map_err(outside)?;
            let is_above = last.as_ref().is_none_or(|last| key > *last);
            if !is_above || upper.is_some_and(|upper| key[..] > *upper) {
                return Err(wrong(format!(
                    "the key of record {at} is out of order, or out of the node's bounds"
                )));
            }
            if copy.level > 0 {
                let child = node.child(at).map_err(outside)?;
                self.check_child(parent, child, (last.as_deref(), Some(&key)), stats, each)?;
            }
            last = Some(key.clone());
        }
        if copy.level == 0 {
            stats.records += count as u64;
            let (said, ghosts) = (node.ghosts().map_err(outside)?, copy.ghosts().map_err(outside)?);
            return match said == ghosts {
                true => Ok(()),
                false => Err(wrong(format!("it has {ghosts} ghosts, but its header says {said}"))),
            };
        }
        let child = node.child(count).map_err(outside)?;
        self.check_child(parent, child, (last.as_deref(), upper), stats, each)
    }

    /// Checks a child of a node that was seen with this LSN and level.
    fn check_child(
        &self,
        (parent, lsn, level): (u32, Lsn, u8),
        child: u32,
        (lower, upper): (Option<&[u8]>, Option<&[u8]>),
        stats: &mut TreeStats,
        each: &mut Visit<'_>,
    ) -> Attempt<()> {
        let looked = self.view(child).and_then(|view| {
            self.check_level(&view, level, parent)?;
            self.check_below(&view, lower, upper, stats, each)
        });
        match looked {
            // The page may have been reused by then. Whatever changes a child's bounds also changes
            // its parent.
            Err(Stop::Error(_)) if self.view(parent)?.lsn() != lsn => Err(Stop::Changed),
            looked => looked,
        }
    }
}

/// The counts of [`Tree::check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TreeStats {
    /// Number of records in the leaves.
    pub records: u64,
    /// Number of pages, including inner nodes.
    pub pages: u64,
    /// Number of levels, including the leaves.
    pub levels: u8,
    /// Bytes of the pages that are free.
    pub free_bytes: u64,
}
