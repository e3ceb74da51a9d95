//! Vacuum: removes ghosts, moves pages towards the start of the file, and truncates it.
//!
//! ```text
//!   remove ghosts | find the pages in use | the unused ones in front become the free list
//!   | move nodes and chains there | truncate the file
//! ```
//!
//! Every step is a change like any other, so a crash leaves a sound database of the previous
//! length.

use std::ops::Bound;

use cairn_vfs::ensure;
use cairn_vfs::sync::Arc;

use crate::Result;
use crate::catalog::{Catalog, GHOST, Table};
use crate::check::{Pages, all_roots};
use crate::database::Database;
use crate::inner::Inner;
use crate::mvcc::{Ghost, Key};
use crate::options::{Durability, Isolation};
use crate::storage::{Direction, LongRecord, Reclaiming, Tree, relocate_chain};
use crate::transaction::{Transaction, no_tree};

/// The result of a vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VacuumReport {
    /// Number of pages of the file before.
    pub pages_before: u32,
    /// Number of pages of the file after. Unchanged if there was no space for a new log segment, so
    /// that the old one could not be released: the next vacuum truncates the file then.
    pub pages_after: u32,
    /// Number of ghosts removed.
    pub ghosts: u64,
}

impl Database {
    /// Makes the file as short as its contents allow. Waits until no other transaction runs, and
    /// they wait for it. Cost: reads the whole file, and writes the pages that move. Errors: the
    /// pool's and the log's; [`Error::Corruption`](crate::Error::Corruption).
    pub fn vacuum(&self) -> Result<VacuumReport> {
        let _reclaiming = Reclaiming::free_space();
        self.inner.make_room();
        let mut report =
            VacuumReport { pages_before: self.inner.store.space().pages()?, ..VacuumReport::default() };
        self.move_roots(&mut report)?;
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_and_reset()?;
        let cleaning = self.inner.clean_exclusively()?;
        let roots = all_roots(&transaction);
        let target = self.inner.gather_free(&roots)?;
        let space = self.inner.store.space();
        for &root in &roots {
            let tree = Tree::open(space, root);
            if !(tree.relocate(target)? && self.inner.relocate_chains(&tree, target)?) {
                break;
            }
        }
        // The new pages count as used now, and no page after the last of them is in use.
        let (pages, _) = Pages::of(&self.inner, &roots)?;
        let end = pages.last() + 1;
        let free: Vec<u32> = (1..end).filter(|page| !pages.has(*page)).collect();
        ensure!(
            free.len() + pages.len() as usize == end as usize,
            "of {end} pages, {} are in use and {} are free",
            pages.len(),
            free.len()
        );
        space.set_free(end, &free)?;
        // ORDER: the log is released before the file is truncated. Otherwise the log might contain
        // changes of pages beyond the end, and recovery would create these pages again, without the
        // contents that the changes apply to.
        let is_cut = self.inner.checkpoint()?;
        if is_cut {
            space.truncate(end)?;
        }
        report.pages_after = if is_cut { end } else { report.pages_before.max(end) };
        drop(cleaning);
        transaction.rollback()?;
        // The reserve can be allocated again.
        let _ = self.inner.store.restore_reserve();
        Ok(report)
    }

    /// Removes ghosts, and moves the roots of trees towards the start, which changes the catalog.
    fn move_roots(&self, report: &mut VacuumReport) -> Result<()> {
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_and_reset()?;
        let cleaning = self.inner.clean_exclusively()?;
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
    /// Removes the ghosts of a tree. Returns how many there were.
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
        debug_assert!(ghosts.is_empty(), "{} of {count} ghosts are left", ghosts.len());
        Ok(count)
    }

    /// Frees the unused pages below the number of used pages. Returns that number: pages at or
    /// above it have to move.
    fn gather_free(&self, roots: &[u32]) -> Result<u32> {
        let (pages, _) = Pages::of(self, roots)?;
        let target = pages.len();
        let free: Vec<u32> = (1..target).filter(|page| !pages.has(*page)).collect();
        ensure!(
            target > 0 && free.len() < target as usize,
            "of the first {target} pages, {} are free, and page 0 is in use",
            free.len()
        );
        let space = self.store.space();
        space.set_free(space.pages()?.max(pages.last() + 1), &free)?;
        Ok(target)
    }

    /// Moves long rows that have a page at or above `from`. Returns false if there was no lower
    /// free page for one.
    fn relocate_chains(&self, tree: &Tree, from: u32) -> Result<bool> {
        let space = self.store.space();
        let mut cursor = tree.scan((Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        while let Some((key, value)) = cursor.next()? {
            let Some(long) = LongRecord::decode(value) else { continue };
            let (first, is_whole) = relocate_chain(space, long.first, from)?;
            if first != long.first {
                tree.put(key, &LongRecord { first, ..long }.encode())?;
            }
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Transaction {
    /// Gives a table new roots further towards the start.
    fn move_roots(&mut self, table: &Arc<Table>, from: u32) -> Result<()> {
        let mut trees = table.trees();
        for tree in trees.iter_mut().filter(|tree| tree.root() >= from) {
            // Whichever root page is not used in the end is found to be free by the next scan of
            // the pages in use.
            *tree = tree.copy_root()?;
        }
        debug_assert!(trees.len() == table.roots().len(), "a table of {} trees is moved", trees.len());
        let new = Table::new(table.id(), table.def().clone(), &trees, Arc::clone(&table.counters));
        let mut new = new.ok_or_else(no_tree)?;
        new.statistics = table.statistics.clone();
        let mut catalog = Catalog::clone(self.view().catalog());
        let record = catalog.put_table(Arc::new(new));
        self.set_catalog(catalog, vec![record], Vec::new())
    }
}
