//! A survey of a database: its trees, level by level, the fill of their pages, and the forms of
//! their columns.

use std::collections::BTreeMap;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, OpenOptions};

use crate::catalog::{ROOT, Table};
use crate::database::Database;
use crate::inner::Inner;
use crate::options::Isolation;
use crate::storage::{LongRecord, Node, Packed, StreamForm, Tree, chain_pages, page_size_of};
use crate::{Error, Result};

/// Number of classes in [`LevelSurvey::fill`].
const TENTHS: usize = 10;

/// A survey of a whole database.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Survey {
    /// Page size in bytes.
    pub page_size: usize,
    /// Number of pages of the file.
    pub pages: u32,
    /// Number of those on the list of free pages.
    pub free_pages: u32,
    /// The catalog's tree.
    pub catalog: TreeSurvey,
    /// The tables.
    pub tables: Vec<TableSurvey>,
}

/// A survey of a table and its indexes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TableSurvey {
    /// The table.
    pub table: Arc<Table>,
    /// The row tree.
    pub rows: TreeSurvey,
    /// The trees of its indexes, in order.
    pub indexes: Vec<TreeSurvey>,
}

/// A survey of a tree, as far as it could be read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TreeSurvey {
    /// The root page.
    pub root: u32,
    /// The levels, leaves first.
    pub levels: Vec<LevelSurvey>,
    /// Pages of rows that are too long for a leaf.
    pub long_pages: u64,
    /// Number of columns of packed leaves by form. Each column of each leaf counts.
    pub forms: BTreeMap<StreamForm, u64>,
    /// Damage, if any; the other fields then cover the part read before it.
    pub damage: Option<Error>,
}

/// The pages of one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelSurvey {
    /// Number of pages.
    pub pages: u64,
    /// Number of packed leaves among them.
    pub packed_pages: u64,
    /// Number of records; in an inner node, one less than its children.
    pub records: u64,
    /// Bytes of the pages available to trees.
    pub bytes: u64,
    /// Number of these bytes that are free.
    pub free_bytes: u64,
    /// Number of pages that are up to one tenth full, up to two tenths, and so on to completely
    /// full.
    pub fill: [u64; TENTHS],
}

impl LevelSurvey {
    fn add(&mut self, bytes: usize, free: usize, records: usize, is_packed: bool) {
        self.pages += 1;
        self.packed_pages += u64::from(is_packed);
        self.records += records as u64;
        self.bytes += bytes as u64;
        self.free_bytes += free as u64;
        debug_assert!(bytes > 0, "a page without bytes is counted");
        let used = bytes.saturating_sub(free);
        // A page exactly at a boundary belongs to the lower tenth.
        let tenth = (used * TENTHS).div_ceil(bytes.max(1)).saturating_sub(1).min(TENTHS - 1);
        if let Some(pages) = self.fill.get_mut(tenth) {
            *pages += 1;
        }
        debug_assert!(
            self.fill.iter().sum::<u64>() == self.pages && self.packed_pages <= self.pages,
            "pages are counted twice, or not at all: {self:?}"
        );
    }
}

impl Database {
    /// Returns the page size that the file at `path` states, or `None` if it is not a database. For
    /// opening a database with an unknown page size. Errors: the file system's.
    pub fn page_size_of(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<u32>> {
        page_size_of(&*fs.open(path, OpenOptions::read())?)
    }

    /// Surveys all trees. Damage is recorded for its tree, and the others are surveyed
    /// nevertheless. Other transactions may continue; their concurrent changes may or may not be
    /// included. Cost: reads all pages of trees. Errors: [`Error::Busy`]; those of page 0 and of
    /// the list of free pages.
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
            // The check starts over if a page changes meanwhile.
            if page == root {
                found = TreeSurvey { root, ..TreeSurvey::default() };
            }
            found.add_page(inner, page, level, bytes)
        });
        found.damage = looked.err();
        found
    }

    fn add_page(&mut self, inner: &Inner, page: u32, level: u8, bytes: &[u8]) -> Result<()> {
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
                let long = LongRecord::decode(bytes.get(value).unwrap_or_default());
                if let Some(LongRecord { first, .. }) = long {
                    chain_pages(inner.store.space(), first, |_| self.long_pages += 1)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
