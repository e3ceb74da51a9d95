//! Counting records without reading each one.

use std::cmp::Ordering;
use std::ops::Bound;

use cairn_pool::{Changed, Lsn, Optimistic};

use super::cursor::{Cursor, Seek};
use super::{Attempt, Tree};
use crate::storage::Direction;
use crate::storage::node::Node;
use crate::{Error, Result};

/// Number of leaves counted before checking that they were children of their parent all along.
const STRIDE: usize = 256;

/// Number of leaves to prefetch ahead: as many as are processed while one is loaded from memory.
const AHEAD: usize = 6;
const _: () = assert!(AHEAD < STRIDE);

/// The result of counting a leaf.
enum Leaf {
    /// Number of records that are not ghosts. All of them are in the range.
    Counted(usize),
    /// The leaf has changes that are not visible to everyone, or extends beyond the range; or the
    /// page is not a leaf.
    Other,
}

impl Cursor {
    /// Counts the records, without ghosts, of consecutive leaves that are entirely in the range and
    /// have not changed after `all_visible`, and moves past them. The rest of the current leaf is
    /// skipped. Other leaves are left to [`Cursor::advance_leaf`]. Forward only. Errors: as
    /// [`Cursor::advance`], [`Error::Cancelled`].
    pub(crate) fn count_leaves(&mut self, all_visible: Lsn, is_cancelled: &dyn Fn() -> bool) -> Result<u64> {
        let mut rows = 0;
        if self.direction() == Direction::Backward {
            return Ok(rows);
        }
        loop {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            let from = match &self.next {
                Some(seek @ (Seek::Outermost | Seek::Beyond(_))) => seek,
                _ => return Ok(rows),
            };
            let stride = self.tree.attempt(|| self.tree.count_stride(from, &self.end, all_visible))?;
            let Some(stride) = stride else { return Ok(rows) };
            if let (Seek::Beyond(last), Some(upper)) = (from, &stride.upper)
                && upper <= last
            {
                return Err(self
                    .tree
                    .space
                    .damaged(self.tree.root, "the leaves of its tree are out of order"));
            }
            rows += stride.rows;
            self.next = stride.upper.map(Seek::Beyond);
            self.parent = None;
        }
    }
}

/// Leaves of one parent, and the number of their records.
#[derive(Default)]
struct Counted {
    leaves: usize,
    rows: u64,
}

/// Leaves that were counted together.
struct Stride {
    rows: u64,
    /// The upper fence of the last leaf; `None` for the last leaf of the tree.
    upper: Option<Vec<u8>>,
}

impl Tree {
    /// Estimates the number of leaves from the nodes on one path down the middle. Cost: reads one
    /// node per level and no leaf. Errors: the pool's, [`Error::Corruption`].
    pub(crate) fn estimate_leaves(&self) -> Result<u64> {
        self.attempt(|| {
            let mut node = self.view(self.root)?;
            let mut level = self.level(&node)?;
            let mut leaves = 1u64;
            while level > 0 {
                let count = self.sound(&node, Node(&node).count())?;
                let child = self.sound(&node, Node(&node).child(count / 2))?;
                node.validate()?;
                leaves = leaves.saturating_mul(count as u64 + 1);
                if level == 1 {
                    break;
                }
                node = self.below(&node, level, child)?;
                level -= 1;
            }
            debug_assert!(leaves > 0, "a tree has no leaves");
            Ok(leaves)
        })
    }

    /// Counts leaves of one parent, from the one that begins at `from`. Returns `None` if that one
    /// cannot be counted this way.
    fn count_stride(&self, from: &Seek, end: &Bound<Vec<u8>>, all_visible: Lsn) -> Attempt<Option<Stride>> {
        let mut parent = self.view(self.root)?;
        let mut level = self.level(&parent)?;
        if level == 0 {
            return Ok(None);
        }
        loop {
            let at = self.child_for(&parent, from)?;
            if level == 1 {
                return self.count_children(&parent, at, from, end, all_visible);
            }
            let child = self.sound(&parent, Node(&parent).child(at))?;
            parent = self.below(&parent, level, child)?;
            level -= 1;
        }
    }

    /// Returns the position of the child in which the records begin.
    fn child_for(&self, view: &Optimistic<'_>, from: &Seek) -> Attempt<usize> {
        let Seek::Beyond(key) = from else { return Ok(0) };
        let (at, is_there) = self.sound(view, Node(view).search(key))?;
        Ok(if is_there { at + 1 } else { at })
    }

    fn count_children(
        &self,
        parent: &Optimistic<'_>,
        first: usize,
        from: &Seek,
        end: &Bound<Vec<u8>>,
        all_visible: Lsn,
    ) -> Attempt<Option<Stride>> {
        let node = Node(parent);
        // The range must begin where the first leaf does.
        let mut fence = Vec::new();
        let has_lower = match first.checked_sub(1) {
            Some(before) => self.sound(parent, node.key(before, &mut fence)).map(|()| true)?,
            None => self.sound(parent, node.lower(&mut fence))?,
        };
        let begins = if let Seek::Beyond(key) = from { has_lower && fence == *key } else { !has_lower };
        let count = self.sound(parent, node.count())?;
        let mut pages = [0; STRIDE];
        let len = if begins { (count + 1).saturating_sub(first).min(STRIDE) } else { 0 };
        let pages = pages.get_mut(..len).unwrap_or_default();
        for (at, page) in (first..).zip(pages.iter_mut()) {
            *page = self.sound(parent, node.child(at))?;
        }
        // All of them are children at the same moment, so one validation of the parent at the end
        // covers all.
        parent.validate()?;
        let counted = self.count_pages(pages, end, all_visible);
        parent.validate()?;
        let counted = counted?;
        debug_assert!(
            counted.leaves <= pages.len(),
            "{} of {} leaves are counted",
            counted.leaves,
            pages.len()
        );
        let at = first + counted.leaves;
        if at == first {
            return Ok(None);
        }
        let has_upper = match at <= count {
            true => self.sound(parent, node.key(at - 1, &mut fence)).map(|()| true)?,
            false => self.sound(parent, node.upper(&mut fence))?,
        };
        parent.validate()?;
        Ok(Some(Stride { rows: counted.rows, upper: has_upper.then_some(fence) }))
    }

    /// Counts leaves up to the first one that cannot be counted. The result, errors included, is
    /// valid only if the parent is unchanged afterwards; otherwise the pages may have been reused.
    #[inline]
    fn count_pages(&self, pages: &[u32], end: &Bound<Vec<u8>>, all_visible: Lsn) -> Attempt<Counted> {
        let mut counted = Counted::default();
        for (at, &page) in pages.iter().enumerate() {
            if let Some(&ahead) = pages.get(at + AHEAD) {
                self.space.file.hint(ahead, 0..1);
            }
            match self.count_leaf(&self.view(page)?, end, all_visible)? {
                Leaf::Counted(records) => counted.rows += records as u64,
                Leaf::Other => break,
            }
            counted.leaves += 1;
        }
        Ok(counted)
    }

    #[inline]
    fn count_leaf(&self, view: &Optimistic<'_>, end: &Bound<Vec<u8>>, all_visible: Lsn) -> Attempt<Leaf> {
        let node = Node(view);
        let Some((count, ghosts)) = self.sound(view, node.leaf_records())? else { return Ok(Leaf::Other) };
        let order = match end {
            Bound::Unbounded => Some(Ordering::Less),
            Bound::Included(end) | Bound::Excluded(end) => self.sound(view, node.compare_upper(end))?,
        };
        let is_whole = match order {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => matches!(end, Bound::Included(_)),
            Some(Ordering::Greater) | None => false,
        };
        let is_visible = view.lsn() <= all_visible;
        let rows = self.sound(view, count.checked_sub(ghosts).ok_or(Changed))?;
        view.validate()?;
        Ok(if is_whole && is_visible { Leaf::Counted(rows) } else { Leaf::Other })
    }
}
