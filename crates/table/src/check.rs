//! Looking through a whole database: whether it is sound, and which pages are used.

use std::collections::BTreeSet;
use std::ops::Bound;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::catalog::{GHOST, ROOT, Table};
use crate::database::{Database, Inner, Isolation};
use crate::storage::{Direction, Node, Tree, chain_pages};
use crate::transaction::Transaction;
use crate::view::long_place;

/// What a database consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Tables.
    pub tables: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Entries of all indexes.
    pub entries: u64,
    /// Pages of the file.
    pub pages: u32,
    /// Pages that something is on.
    pub used_pages: u32,
    /// Pages that the next ones to be written will be taken from.
    pub free_pages: u32,
    /// Pages that neither is known of: what a crash has left. A vacuum makes them free.
    pub lost_pages: u32,
}

/// The pages that something is on, each once.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    used: BTreeSet<u32>,
}

impl Pages {
    fn add(&mut self, inner: &Inner, page: u32) -> Result<()> {
        if self.used.insert(page) {
            return Ok(());
        }
        Err(inner.store.space().damaged(page, "it is used twice"))
    }

    pub(crate) fn has(&self, page: u32) -> bool {
        self.used.contains(&page)
    }

    pub(crate) fn len(&self) -> u32 {
        self.used.len() as u32
    }

    pub(crate) fn last(&self) -> u32 {
        self.used.last().copied().unwrap_or_default()
    }

    /// Looks at all trees of a catalog. Gives the records that are not ghosts, by tree.
    pub(crate) fn of(inner: &Inner, roots: &[u32]) -> Result<(Pages, Vec<u64>)> {
        let mut pages = Pages::default();
        pages.add(inner, 0)?;
        let mut counts = Vec::with_capacity(roots.len());
        for &root in roots {
            // Again from the start when somebody changes a page that was looked at: so first into a
            // set of its own.
            let (mut found, mut count) = (Vec::new(), 0);
            let space = inner.store.space();
            Tree::open(space, root).check_with(&mut |page, level, bytes| {
                if page == root {
                    found.clear();
                    count = 0;
                }
                found.push(page);
                if level > 0 {
                    return Ok(());
                }
                let node = Node(bytes);
                let records = node.count().map_err(|_| inner.damaged_record(page))?;
                if node.is_packed().map_err(|_| inner.damaged_record(page))? {
                    // None of them is a ghost or long.
                    count += records as u64;
                    return Ok(());
                }
                for at in 0..records {
                    let (_, value) = node.record(at).map_err(|_| inner.damaged_record(page))?;
                    let value = bytes.get(value).unwrap_or_default();
                    count += u64::from(value.first().is_some_and(|flags| flags & GHOST == 0));
                    if let Some((_, _, first)) = long_place(value) {
                        chain_pages(space, first, |page| found.push(page))?;
                    }
                }
                Ok(())
            })?;
            found.into_iter().try_for_each(|page| pages.add(inner, page))?;
            counts.push(count);
        }
        Ok((pages, counts))
    }
}

/// All trees: the catalog's, and each table's.
pub(crate) fn all_roots(transaction: &Transaction) -> Vec<u32> {
    let tables = transaction.view().catalog().tables();
    std::iter::once(ROOT).chain(tables.flat_map(|table| table.roots())).collect()
}

impl Database {
    /// Looks through everything: that trees are sound, that each row has its entry in each index
    /// and no entry is without a row, that no page is used twice. It waits until no other
    /// transaction runs, and they wait for it: one of this thread's own would be waited for for
    /// ever. Cost: reads the whole file. Errors: [`Error::Corruption`](crate::Error::Corruption),
    /// the first thing that is wrong.
    pub fn check(&self) -> Result<CheckReport> {
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_afresh()?;
        let inner = &self.inner;
        let _cleaning = inner.clean_alone()?;
        let (pages, _) = Pages::of(inner, &all_roots(&transaction))?;
        let free = inner.store.space().free_list()?;
        if let Some(page) = free.iter().find(|page| pages.has(**page)) {
            return Err(inner.store.space().damaged(*page, "it is on the list of free pages, but in use"));
        }
        let mut report = CheckReport {
            pages: inner.store.space().pages()?,
            used_pages: pages.len(),
            free_pages: free.len() as u32,
            ..CheckReport::default()
        };
        report.lost_pages = report.pages.saturating_sub(report.used_pages + report.free_pages);
        let tables: Vec<Arc<Table>> = transaction.view().catalog().tables().cloned().collect();
        for table in &tables {
            let (rows, entries) = check_table(&transaction, table)?;
            report.tables += 1;
            report.rows += rows;
            report.entries += entries;
        }
        transaction.rollback()?;
        Ok(report)
    }
}

/// Looks each row up in each index, and counts: so there is no entry too many either.
fn check_table(transaction: &Transaction, table: &Arc<Table>) -> Result<(u64, u64)> {
    let everything = (Bound::Unbounded, Bound::Unbounded);
    let view = transaction.view();
    let damaged = |what: String| view.db.store.space().damaged(table.tree.root(), what);
    let mut rows = 0;
    let mut scan = view.scan(table, None, everything, Direction::Forward)?;
    let (mut key, mut value, mut found) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(row) = scan.next()? {
        rows += 1;
        for index in &table.indexes {
            key.clear();
            value.clear();
            found.clear();
            let is_entry = table.encode_entry(index, &row, &mut key, &mut value);
            if !is_entry || !view.read(&index.tree, &key, &mut found)? || found != value {
                return Err(damaged(format!(
                    "index {} has no entry or a wrong one for row {rows} of table {}",
                    index.def.name,
                    table.def().name
                )));
            }
        }
    }
    let mut entries = 0;
    for (at, index) in table.indexes.iter().enumerate() {
        let mut count = 0;
        let mut scan = view.scan(table, Some(at), everything, Direction::Forward)?;
        while scan.next()?.is_some() {
            count += 1;
        }
        if count != rows {
            return Err(damaged(format!(
                "index {} has {count} entries for {rows} rows of table {}",
                index.def.name,
                table.def().name
            )));
        }
        entries += count;
    }
    Ok((rows, entries))
}
