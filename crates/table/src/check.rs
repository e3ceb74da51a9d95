//! Checking a whole database for consistency, and determining the pages in use.

use std::collections::BTreeSet;
use std::ops::Bound;

use cairn_vfs::sync::Arc;

use crate::Result;
use crate::catalog::{GHOST, ROOT, Table};
use crate::database::Database;
use crate::inner::Inner;
use crate::options::Isolation;
use crate::storage::{Direction, LongRecord, Node, Tree, chain_pages};
use crate::transaction::Transaction;

/// The contents of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of tables.
    pub tables: u64,
    /// Number of rows in all tables.
    pub rows: u64,
    /// Number of entries in all indexes.
    pub entries: u64,
    /// Number of pages of the file.
    pub pages: u32,
    /// Number of pages in use.
    pub used_pages: u32,
    /// Number of pages on the list of free pages.
    pub free_pages: u32,
    /// Number of pages that are neither in use nor free, left by a crash. A vacuum frees them.
    pub lost_pages: u32,
}

/// The set of pages in use.
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

    /// Reads all given trees. Returns their pages, and the number of records that are not ghosts,
    /// by tree.
    pub(crate) fn of(inner: &Inner, roots: &[u32]) -> Result<(Pages, Vec<u64>)> {
        let mut pages = Pages::default();
        pages.add(inner, 0)?;
        let mut counts = Vec::with_capacity(roots.len());
        for &root in roots {
            // The check starts over if a page changes meanwhile, so the pages go into a separate
            // list first.
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
                    // A packed leaf has neither ghosts nor long rows.
                    count += records as u64;
                    return Ok(());
                }
                for at in 0..records {
                    let (_, value) = node.record(at).map_err(|_| inner.damaged_record(page))?;
                    let value = bytes.get(value).unwrap_or_default();
                    count += u64::from(value.first().is_some_and(|flags| flags & GHOST == 0));
                    if let Some(LongRecord { first, .. }) = LongRecord::decode(value) {
                        chain_pages(space, first, |page| found.push(page))?;
                    }
                }
                Ok(())
            })?;
            found.into_iter().try_for_each(|page| pages.add(inner, page))?;
            counts.push(count);
        }
        debug_assert!(counts.len() == roots.len(), "{} of {} trees are read", counts.len(), roots.len());
        debug_assert!(
            pages.has(0) && roots.iter().all(|root| pages.has(*root)),
            "a page in use was not counted"
        );
        Ok((pages, counts))
    }
}

/// Returns the roots of all trees: the catalog's, and those of each table.
pub(crate) fn all_roots(transaction: &Transaction) -> Vec<u32> {
    let tables = transaction.view().catalog().tables();
    std::iter::once(ROOT).chain(tables.flat_map(|table| table.roots())).collect()
}

impl Database {
    /// Checks everything: that trees are sound, that each row has its entry in each index and each
    /// entry has a row, and that no page is used twice. Waits until no other transaction runs, and
    /// they wait for it; a transaction of the calling thread would be waited for forever. Cost:
    /// reads the whole file. Errors: [`Error::Corruption`](crate::Error::Corruption), the first
    /// problem found.
    pub fn check(&self) -> Result<CheckReport> {
        let mut transaction = self.begin(Isolation::ReadCommitted)?;
        transaction.lock_schema_and_reset()?;
        let inner = &self.inner;
        let _cleaning = inner.clean_exclusively()?;
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
        debug_assert!(
            report.used_pages + report.free_pages + report.lost_pages >= report.pages,
            "pages are missing in {report:?}"
        );
        debug_assert!(report.tables == tables.len() as u64, "tables are missing in {report:?}");
        transaction.rollback()?;
        Ok(report)
    }
}

/// Looks up each row in each index, and compares the counts, which reveals surplus entries.
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
    debug_assert!(
        entries == rows * table.indexes.len() as u64,
        "{rows} rows of table {} have {entries} entries",
        table.def().name
    );
    Ok((rows, entries))
}
