//! Giving space back: what nobody needs is removed, pages move to the front of the file, and its
//! end is cut off.
//!
//! ```text
//!   ghosts go | which pages are used? | those in front that are not become the free list | nodes and chains move there | the file is cut off
//! ```
//!
//! Every step is a change like any other, so a crash leaves a sound database that is as long as
//! before.

use std::ops::Bound;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::catalog::{Catalog, GHOST, ROOT, Table};
use crate::check::{Pages, all_roots};
use crate::database::{Database, Durability, Inner, Isolation};
use crate::mvcc::{Ghost, Key};
use crate::storage::{Direction, Giving, Tree, relocate_chain};
use crate::transaction::Transaction;
use crate::view::long_place;

/// What a vacuum has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VacuumReport {
    /// Pages of the file before.
    pub pages_before: u32,
    /// Pages of the file after. None fewer where there was no room for a new segment of the log,
    /// and so the old one could not be given back: then the next vacuum cuts the file off.
    pub pages_after: u32,
    /// Records of rows that were deleted long ago, removed.
    pub ghosts: u64,
}

impl Database {
    /// Makes the file as short as its contents allow. It waits until no other transaction runs, and
    /// they wait for it. Cost: reads the whole file, and writes what moves.
    /// Errors: the pool's and the log's; [`Error::Corruption`](crate::Error::Corruption).
    pub fn vacuum(&self) -> Result<VacuumReport> {
        let _giving = Giving::back();
        self.inner.make_room();
        let mut report =
            VacuumReport { pages_before: self.inner.store.space().pages()?, ..VacuumReport::default() };
        self.move_roots(&mut report)?;
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_afresh()?;
        let cleaning = self.inner.clean_alone()?;
        let roots = all_roots(&transaction);
        let target = self.inner.gather_free(&roots)?;
        let space = self.inner.store.space();
        for &root in &roots {
            let tree = Tree::open(space, root);
            if !(tree.relocate(target)? && self.inner.relocate_chains(&tree, target)?) {
                break;
            }
        }
        // What was moved is known by now to be used, and nothing behind the last of it is.
        let (pages, _) = Pages::of(&self.inner, &roots)?;
        let end = pages.last() + 1;
        let free: Vec<u32> = (1..end).filter(|page| !pages.has(*page)).collect();
        space.set_free(end, &free)?;
        // ORDER: the log is given back before the file is cut off. What is left of it may have
        // changes of pages behind the end, and a recovery would make these anew, with nothing on
        // them that the changes fit to.
        let is_cut = self.inner.checkpoint()?;
        if is_cut {
            space.truncate(end)?;
        }
        report.pages_after = if is_cut { end } else { report.pages_before.max(end) };
        drop(cleaning);
        transaction.rollback()?;
        // Others find room again.
        let _ = self.inner.store.restore_reserve();
        Ok(report)
    }

    /// Removes ghosts, and moves the roots of trees to the front, which the catalog has to learn
    /// of.
    fn move_roots(&self, report: &mut VacuumReport) -> Result<()> {
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_afresh()?;
        let cleaning = self.inner.clean_alone()?;
        let roots = all_roots(&transaction);
        for &root in &roots {
            report.ghosts += self.inner.remove_ghosts_of(root)?;
        }
        self.inner.forget_ghosts();
        let target = self.inner.gather_free(&roots)?;
        let tables: Vec<Arc<Table>> = transaction.view().catalog().tables().cloned().collect();
        for table in tables.iter().filter(|table| table.roots().iter().any(|root| *root >= target)) {
            transaction.move_roots(table, target)?;
        }
        drop(cleaning);
        transaction.commit(Durability::Sync)
    }
}

impl Inner {
    /// Removes what is left of rows that are gone. Gives how many there were.
    fn remove_ghosts_of(&self, root: u32) -> Result<u64> {
        let tree = Tree::open(self.store.space(), root);
        let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        let mut ghosts = Vec::new();
        while let Some((key, value)) = cursor.next()? {
            if value.first().is_some_and(|flags| flags & GHOST != 0) {
                ghosts.push(Ghost { tree: root, key: Key::new(key) });
            }
        }
        let count = ghosts.len() as u64;
        self.remove_ghosts(&mut ghosts)?;
        Ok(count)
    }

    /// Makes the pages free that nothing is on and that come before as many as are used. Gives that
    /// number: what is behind it has to move.
    fn gather_free(&self, roots: &[u32]) -> Result<u32> {
        let (pages, _) = Pages::of(self, roots)?;
        let target = pages.len();
        let free: Vec<u32> = (1..target).filter(|page| !pages.has(*page)).collect();
        let space = self.store.space();
        space.set_free(space.pages()?.max(pages.last() + 1), &free)?;
        Ok(target)
    }

    /// Moves long rows that have a page from `from` on. False when there was no room for one
    /// further to the front.
    fn relocate_chains(&self, tree: &Tree, from: u32) -> Result<bool> {
        let space = self.store.space();
        let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            let Some((flags, len, first)) = long_place(value) else { continue };
            let (new, is_whole) = relocate_chain(space, first, from)?;
            if new != first {
                let mut record = vec![flags];
                record.extend((len as u32).to_le_bytes());
                record.extend(new.to_le_bytes());
                tree.put(key, &record)?;
            }
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Transaction {
    /// Gives a table roots that are further to the front.
    fn move_roots(&mut self, table: &Arc<Table>, from: u32) -> Result<()> {
        let db = Arc::clone(&self.view().db);
        let space = db.store.space();
        let mut trees = table.trees();
        for tree in trees.iter_mut().filter(|tree| tree.root() >= from) {
            // The page that is not the root in the end is nobody's, and free with the next look at
            // which ones are used.
            *tree = tree.copy_root()?;
        }
        let new = Table::new(table.id(), table.def().clone(), &trees, Arc::clone(&table.counters));
        let mut new = new.ok_or_else(|| space.damaged(ROOT, "a table of the catalog has no tree"))?;
        new.statistics = table.statistics.clone();
        let mut catalog = Catalog::clone(self.view().catalog());
        let record = catalog.put_table(Arc::new(new));
        self.set(catalog, vec![record], Vec::new())
    }
}
