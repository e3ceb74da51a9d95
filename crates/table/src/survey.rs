//! What a database looks like inside: its trees, level by level, how full their pages are, and in
//! which form their columns are written.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, OpenOptions};

use crate::catalog::{ROOT, Table};
use crate::database::{Database, Inner, Isolation};
use crate::storage::{Node, Packed, StreamForm, Tree, chain_pages, page_size_of};
use crate::view::long_place;
use crate::{Error, Result};

/// Shares of a page that [`LevelSurvey::fill`] tells apart.
const TENTHS: usize = 10;

/// A whole database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Survey {
    /// Bytes of a page.
    pub page_size: usize,
    /// Pages of the file.
    pub pages: u32,
    /// Of these, pages that nothing is on and that the next ones will be taken from.
    pub free_pages: u32,
    /// The tree that has the tables' definitions.
    pub catalog: TreeSurvey,
    /// The tables.
    pub tables: Vec<TableSurvey>,
}

/// A table with its indexes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableSurvey {
    /// The table.
    pub table: Arc<Table>,
    /// The tree of its rows.
    pub rows: TreeSurvey,
    /// Those of its indexes, in their order.
    pub indexes: Vec<TreeSurvey>,
}

/// A tree, as far as it could be read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TreeSurvey {
    /// The page of its root.
    pub root: u32,
    /// Its levels, the leaves first.
    pub levels: Vec<LevelSurvey>,
    /// Pages of rows that are too long for a leaf.
    pub long_pages: u64,
    /// How many columns of packed leaves have which form: each column of each leaf counts.
    pub forms: BTreeMap<StreamForm, u64>,
    /// What is wrong with it, if something is: the figures are of what was read before.
    pub damage: Option<Error>,
}

/// The pages of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelSurvey {
    /// How many.
    pub pages: u64,
    /// Of these, leaves whose records are columns.
    pub packed_pages: u64,
    /// Records in them; of inner nodes one less than children.
    pub records: u64,
    /// Bytes of them that trees can use.
    pub bytes: u64,
    /// Of these, bytes that no record has.
    pub free_bytes: u64,
    /// How many pages are filled up to a tenth, up to two, ... to the whole.
    pub fill: [u64; TENTHS],
}

impl LevelSurvey {
    fn add(&mut self, bytes: usize, free: usize, records: usize, is_packed: bool) {
        self.pages += 1;
        self.packed_pages += u64::from(is_packed);
        self.records += records as u64;
        self.bytes += bytes as u64;
        self.free_bytes += free as u64;
        let used = bytes.saturating_sub(free);
        // What is full to a boundary belongs to the tenth below it.
        let tenth = (used * TENTHS).div_ceil(bytes.max(1)).saturating_sub(1).min(TENTHS - 1);
        if let Some(pages) = self.fill.get_mut(tenth) {
            *pages += 1;
        }
    }
}

impl Database {
    /// Bytes of a page by what the file at `path` says of itself; `None` when it is no database. So
    /// that whoever did not make it knows how to open it.
    /// Errors: the file system's.
    pub fn page_size_of(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<u32>> {
        page_size_of(&*fs.open(path, OpenOptions::read())?)
    }

    /// Looks at all trees. What is damaged is told of its tree, and the others are looked at all
    /// the same. Others may go on; what they change meanwhile may be counted or not. Cost: reads
    /// all pages that trees have. Errors: [`Error::Busy`]; those of page 0 and of the list of free
    /// pages.
    pub fn survey(&self) -> Result<Survey> {
        let transaction = self.begin(Isolation::Snapshot)?;
        let (inner, space) = (&self.inner, self.inner.store.space());
        let tree = |tree: &Tree| TreeSurvey::of(inner, tree);
        let tables = transaction.view().catalog().tables().map(|table| {
            let mut trees = table.trees().into_iter().map(|found| tree(&found));
            let rows = trees.next().unwrap_or_default();
            TableSurvey { table: Arc::clone(table), rows, indexes: trees.collect() }
        });
        let survey = Survey {
            page_size: space.page_size(),
            pages: space.pages()?,
            free_pages: space.free_pages()?,
            catalog: tree(&Tree::open(space, ROOT)),
            tables: tables.collect(),
        };
        transaction.rollback()?;
        Ok(survey)
    }
}

impl TreeSurvey {
    fn of(inner: &Inner, tree: &Tree) -> TreeSurvey {
        let root = tree.root();
        let mut found = TreeSurvey { root, ..TreeSurvey::default() };
        let looked = tree.check_with(&mut |page, level, bytes| {
            // Again from the start when somebody changes a page that was looked at.
            if page == root {
                found = TreeSurvey { root, ..TreeSurvey::default() };
            }
            found.look(inner, page, level, bytes)
        });
        found.damage = looked.err();
        found
    }

    fn look(&mut self, inner: &Inner, page: u32, level: u8, bytes: &[u8]) -> Result<()> {
        let node = Node(bytes);
        let outside = |_| inner.damaged_record(page);
        let (records, is_packed) = (node.count().map_err(outside)?, node.is_packed().map_err(outside)?);
        let level = usize::from(level);
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelSurvey::default());
        }
        if let Some(level) = self.levels.get_mut(level) {
            level.add(bytes.len(), node.free().map_err(outside)?, records, is_packed);
        }
        if is_packed {
            for form in Packed(bytes).forms().map_err(outside)? {
                *self.forms.entry(form).or_default() += 1;
            }
        } else if level == 0 {
            for at in 0..records {
                let (_, value) = node.record(at).map_err(outside)?;
                let place = long_place(bytes.get(value).unwrap_or_default());
                if let Some((_, _, first)) = place {
                    chain_pages(inner.store.space(), first, |_| self.long_pages += 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
