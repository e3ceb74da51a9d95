//! Moving the pages of a tree towards the start of the file, so that the file can be truncated.

use cairn_vfs::ensure;

use super::Tree;
use crate::Result;
use crate::storage::change::Change;
use crate::storage::node::{INNER, Node};
use crate::storage::ops::{Op, image};

impl Tree {
    /// Moves all nodes except the root from pages at or above `from` to free pages. The tree must
    /// not be in use. Returns false if there was no free page below `from` left. Each move is a
    /// change of its own, so a crash leaves some nodes moved. Errors: the pool's and the log's.
    pub(crate) fn relocate(&self, from: u32) -> Result<bool> {
        self.relocate_below(self.root, from)
    }

    /// Creates a tree with a new root and the same nodes below it. Only one of the two may be used
    /// afterwards. Errors: the pool's and the log's.
    pub(crate) fn copy_root(&self) -> Result<Tree> {
        let space = &self.space;
        let bytes = space.file.read(self.root)?.to_vec();
        let op = image(&bytes).map_err(|_| space.damaged(self.root, "it is not a node of a tree"))?;
        let mut change = Change::default();
        let Some(&(root, place)) = space.allocate(&mut change, 1)?.first() else {
            return Err(crate::Error::NoPages);
        };
        ensure!(root != self.root, "the root {root} is copied to itself");
        change.plan(place, op);
        change.commit(&*space.log, space.path())?;
        Ok(Tree::open(space, root))
    }

    fn relocate_below(&self, number: u32, from: u32) -> Result<bool> {
        let (children, level) = self.children(number)?;
        for (at, child) in children.into_iter().enumerate() {
            let child = if child < from { child } else { self.relocate_child(number, at, child)? };
            if child >= from {
                return Ok(false);
            }
            if level > 1 && !self.relocate_below(child, from)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the children of a node, and its level.
    fn children(&self, number: u32) -> Result<(Vec<u32>, u8)> {
        let page = self.space.file.read(number)?;
        let node = Node(&*page);
        let read = || -> std::result::Result<(Vec<u32>, u8), cairn_pool::Changed> {
            let level = node.level()?;
            match node.kind()? {
                INNER => Ok((
                    (0..=node.count()?).map(|at| node.child(at)).collect::<std::result::Result<_, _>>()?,
                    level,
                )),
                _ => Ok((Vec::new(), level)),
            }
        };
        read().map_err(|_| self.space.damaged(number, "it is not a node of a tree"))
    }

    /// Moves one node. Returns its new page, or the old one if no lower page is free.
    fn relocate_child(&self, parent: u32, at: usize, child: u32) -> Result<u32> {
        let space = &self.space;
        let bytes = space.file.read(child)?.to_vec();
        let op = image(&bytes).map_err(|_| space.damaged(child, "it is not a node of a tree"))?;
        let mut change = Change::default();
        let parent = change.hold(space.file.write(parent)?);
        let Some(&(page, place)) = space.allocate(&mut change, 1)?.first() else { return Ok(child) };
        if page > child {
            // Dropping the change undoes the allocation.
            return Ok(child);
        }
        ensure!(page < child, "page {child} moves to page {page}, which is not further in front");
        change.plan(place, op);
        change.plan(parent, Op::Child { at: at as u16, child: page });
        change.commit(&*space.log, space.path())?;
        Ok(page)
    }
}
