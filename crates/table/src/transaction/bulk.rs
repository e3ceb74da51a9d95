//! Bulk inserts into an empty table, whose trees are built bottom up instead of row by row.
//!
//! Rows are gathered until they fill the memory for sorting. If they arrived in key order, most
//! later ones probably will too: they go straight into the tree's leaves, and those out of order
//! are inserted at the end. Otherwise all rows are sorted. Either way the tree has the same leaves
//! as for rows in order.

use cairn_vfs::sync::Arc;

use super::Transaction;
use super::dml::{check_values, duplicate, null_in};
use crate::catalog::Table;
use crate::row::Value;
use crate::sorter::Sorter;
use crate::storage::{Builder, Layout, LongRecord, Tree, write_chain};
use crate::{Error, Result};

/// Fill factor of nodes built in bulk, so that the next few rows do not split all of them.
const FILL: f64 = 0.95;
const _: () = assert!(FILL >= 0.5 && FILL <= 1.0);

/// Takes rows for a table. Cost: lowest for rows in primary key order; for others, that of sorting
/// them.
#[derive(Debug)]
pub struct BulkInsert<'t> {
    transaction: &'t mut Transaction,
    load: BulkLoad,
}

/// A [`BulkInsert`] that does not borrow its transaction between rows, for callers that receive
/// rows from elsewhere. The transaction must do nothing else until its end.
#[derive(Debug)]
pub struct BulkLoad {
    into: Into,
    rows: u64,
}

#[derive(Debug)]
enum Into {
    /// Inserts one by one, into a table that has rows.
    Grow(Arc<Table>),
    /// Builds new trees, which replace the old ones at the end.
    Build { old: Arc<Table>, build: Box<Build> },
}

/// The trees of a table that are not visible yet.
#[derive(Debug)]
pub(super) struct Build {
    table: Arc<Table>,
    builder: Builder,
    /// Rows to be sorted: all of them until they are known to arrive in order, then those that do
    /// not.
    rows: Sorter,
    /// Whether the rows that filled the sorter arrived in key order, so that later ones go straight
    /// into the tree.
    comes_ordered: bool,
    /// Entries of each index.
    entries: Vec<Sorter>,
    next_row: i64,
    /// Buffers reused for each row.
    key: Vec<u8>,
    record: Vec<u8>,
}

impl Transaction {
    /// Begins a bulk insert. For an empty table, new trees are built, exclusively: it waits for
    /// other transactions, and they for it. For a table with rows or foreign keys it is equivalent
    /// to [`Transaction::insert`]. Errors: as [`Transaction::create_table`].
    pub fn bulk_insert(&mut self, table: &Arc<Table>) -> Result<BulkInsert<'_>> {
        let load = self.bulk_load(table)?;
        Ok(BulkInsert { transaction: self, load })
    }

    /// Like [`Transaction::bulk_insert`], but takes this transaction with each call. Errors: the
    /// same.
    pub fn bulk_load(&mut self, table: &Arc<Table>) -> Result<BulkLoad> {
        self.check_table(table)?;
        let is_empty = |transaction: &Transaction| -> Result<bool> {
            let mut cursor = table.tree.scan(
                (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded),
                crate::storage::Direction::Forward,
            );
            let _ = transaction;
            Ok(!cursor.advance()?)
        };
        if !is_empty(self)? || !table.def().foreign_keys.is_empty() {
            return Ok(BulkLoad { into: Into::Grow(Arc::clone(table)), rows: 0 });
        }
        match self.lock_schema() {
            // Another transaction asked first and waits for this one, so rows are inserted one by
            // one.
            Err(Error::Deadlock { .. }) => {
                return Ok(BulkLoad { into: Into::Grow(Arc::clone(table)), rows: 0 });
            }
            locked => locked?,
        }
        let now = self.view.catalog().table_by_id(table.id()).cloned();
        let Some(now) = now.filter(|now| now.tree.root() == table.tree.root()) else {
            return Err(Error::NotFound { what: "relation", name: table.def().name.clone() });
        };
        if !is_empty(self)? {
            return Ok(BulkLoad { into: Into::Grow(now), rows: 0 });
        }
        let new = self.with_new_trees(&now, now.def().clone())?;
        let into = Into::Build { old: now, build: Box::new(Build::new(self, &new)) };
        Ok(BulkLoad { into, rows: 0 })
    }

    /// Returns whether leaves are packed when trees are built.
    pub(super) fn packs(&self) -> bool {
        self.view.db.options.pack
    }

    /// Writes the bytes of a row to a chain of pages. Returns the record that leads to it.
    fn write_long(&mut self, record: &[u8]) -> Result<Vec<u8>> {
        let (flags, bytes) = record.split_first().map_or((0, &[][..]), |(flags, bytes)| (*flags, bytes));
        let first = write_chain(self.view.db.store.space(), bytes)?;
        self.new_chains.push(first);
        Ok(LongRecord { flags, len: bytes.len(), first }.encode())
    }

    /// Builds a tree from records. With a layout its leaves may be packed.
    pub(super) fn build(
        &mut self,
        tree: &Tree,
        layout: Option<Layout>,
        sorter: Sorter,
        violation: impl Fn(&[u8], &[u8]) -> Error,
    ) -> Result<()> {
        let mut builder = Builder::new(tree, FILL, layout.filter(|_| self.packs()));
        let mut sorted = sorter.finish()?;
        while let Some((key, value)) = sorted.next()? {
            if !builder.is_next(key) {
                return Err(violation(key, value));
            }
            builder.push(key, value)?;
        }
        builder.finish()
    }
}

impl<'t> BulkInsert<'t> {
    /// Begins a bulk insert into the trees of `new`, which replaces `old` at the end.
    pub(super) fn into(transaction: &'t mut Transaction, old: Arc<Table>, new: &Arc<Table>) -> Self {
        let into = Into::Build { old, build: Box::new(Build::new(transaction, new)) };
        BulkInsert { transaction, load: BulkLoad { into, rows: 0 } }
    }

    /// Adds a row: a value for each column. Checks the same as [`Transaction::insert`], except that
    /// duplicate keys are reported at the end. Errors: the same.
    pub fn push(&mut self, values: &[Value<'_>]) -> Result<()> {
        self.load.push(self.transaction, values)
    }

    /// Finishes, and returns the number of rows. Errors: [`Error::UniqueViolation`]; the pool's and
    /// the log's.
    pub fn finish(self) -> Result<u64> {
        self.load.finish(self.transaction)
    }
}

impl BulkLoad {
    /// Like [`BulkInsert::push`]. Errors: [`Error::Invalid`] for a transaction other than the one
    /// that began it, or one that was rolled back to a point before that.
    pub fn push(&mut self, transaction: &mut Transaction, values: &[Value<'_>]) -> Result<()> {
        if transaction.canceller().is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.rows += 1;
        match &mut self.into {
            Into::Grow(table) => {
                let table = Arc::clone(table);
                transaction.insert(&table, values)
            }
            Into::Build { build, .. } => {
                build.check_owner(transaction)?;
                build.push(transaction, values)
            }
        }
    }

    /// Like [`BulkInsert::finish`].
    pub fn finish(self, transaction: &mut Transaction) -> Result<u64> {
        if let Into::Build { old, build } = self.into {
            build.check_owner(transaction)?;
            let table = Arc::clone(&build.table);
            build.finish(transaction, self.rows)?;
            transaction.replace_table(&old, table)?;
        }
        Ok(self.rows)
    }
}

impl Build {
    /// Begins with empty trees.
    pub(super) fn new(transaction: &Transaction, table: &Arc<Table>) -> Self {
        // The sorters share the memory, because all are in use at once.
        let sorter = || Sorter::new(transaction.view.db.scratch(table.indexes.len() + 1));
        let packs = transaction.packs();
        Build {
            builder: Builder::new(&table.tree, FILL, table.layout(None).filter(|_| packs)),
            table: Arc::clone(table),
            rows: sorter(),
            comes_ordered: false,
            entries: table.indexes.iter().map(|_| sorter()).collect(),
            next_row: 1,
            key: Vec::new(),
            record: Vec::new(),
        }
    }

    fn check_owner(&self, transaction: &Transaction) -> Result<()> {
        let root = self.table.tree.root();
        if transaction.made.contains(&root) && !transaction.dropped.contains(&root) {
            return Ok(());
        }
        Err(Error::Invalid {
            what: format!("a load of table {} continues in another transaction", self.table.def().name),
        })
    }

    pub(super) fn push(&mut self, transaction: &mut Transaction, values: &[Value<'_>]) -> Result<()> {
        let table = &self.table;
        debug_assert!(
            self.entries.len() == table.indexes.len(),
            "{} indexes of table {} are loaded",
            self.entries.len(),
            table.def().name
        );
        check_values(table, values)?;
        let (mut key, mut record) = (std::mem::take(&mut self.key), std::mem::take(&mut self.record));
        key.clear();
        record.clear();
        if table.has_row_number() {
            let _ = table.key_format().encode(&[Value::BigInt(self.next_row)], &mut key);
            self.next_row += 1;
        } else if !table.encode_key(values, &mut key) {
            let column = table
                .def()
                .primary_key
                .iter()
                .map(|key| key.column)
                .find(|&column| values.get(column) == Some(&Value::Null));
            let column = column.and_then(|column| table.def().columns.get(column));
            return Err(null_in(table.def(), column.map_or("", |column| &column.name)));
        }
        if !table.encode_row(values, &mut record) {
            return Err(Error::Invalid {
                what: format!("a row of table {} is longer than 4 GiB", table.def().name),
            });
        }
        for (index, entries) in table.indexes.iter().zip(&mut self.entries) {
            let Some(row) = table.row(&key, &record) else { continue };
            let (mut entry, mut value) = (Vec::new(), Vec::new());
            if !table.encode_entry(index, &row, &mut entry, &mut value) {
                return Err(Error::Invalid {
                    what: format!(
                        "the columns that index {} includes are longer than 64 KiB",
                        index.def.name
                    ),
                });
            }
            let most = index.tree.max_record();
            if entry.len() + value.len() > most {
                return Err(Error::TooLong { key: entry.len(), value: value.len(), most });
            }
            entries.push(&entry, &value)?;
        }
        if key.len() + record.len() > table.tree.max_record() {
            record = transaction.write_long(&record)?;
        }
        // The key alone may be too long for a page. Report that now, while the row is known.
        let most = table.tree.max_record();
        if key.len() + record.len() > most {
            return Err(Error::TooLong { key: key.len(), value: record.len(), most });
        }
        if !self.comes_ordered && self.rows.is_ordered() && !self.rows.has_room(key.len() + record.len()) {
            self.comes_ordered = true;
            let builder = &mut self.builder;
            self.rows.take_all(|key, record| builder.push(key, record))?;
        }
        debug_assert!(!record.is_empty() && !key.is_empty(), "a row is loaded without flags or a key");
        if self.comes_ordered && self.builder.is_next(&key) {
            self.builder.push(&key, &record)?;
        } else {
            self.rows.push(&key, &record)?;
        }
        (self.key, self.record) = (key, record);
        Ok(())
    }

    /// Writes the remaining rows and the indexes.
    pub(super) fn finish(self, transaction: &mut Transaction, rows: u64) -> Result<()> {
        let table = Arc::clone(&self.table);
        let is_twice = |key: &[u8]| duplicate(&table, None, &table.no_row(key).values());
        let mut builder = self.builder;
        let mut sorted = self.rows.finish()?;
        if self.comes_ordered {
            builder.finish()?;
            // These are few compared with the others.
            while let Some((key, record)) = sorted.next()? {
                if !table.tree.insert(key, record)? {
                    return Err(is_twice(key));
                }
            }
        } else {
            while let Some((key, record)) = sorted.next()? {
                if !builder.is_next(key) {
                    return Err(is_twice(key));
                }
                builder.push(key, record)?;
            }
            builder.finish()?;
        }
        drop(sorted);
        for (at, (index, entries)) in table.indexes.iter().zip(self.entries).enumerate() {
            transaction.build(&index.tree, table.layout(Some(at)), entries, |key, value| {
                let values = table.entry(at, key, value).map(|row| row.values()).unwrap_or_default();
                duplicate(&table, Some(index), &values)
            })?;
        }
        debug_assert!(
            !table.has_row_number() || self.next_row as u64 == rows + 1,
            "{rows} rows were loaded, and the next one gets number {}",
            self.next_row
        );
        table.counters.next_row.store(self.next_row, cairn_vfs::sync::atomic::Ordering::Relaxed);
        table.counters.rows.store(rows as i64, cairn_vfs::sync::atomic::Ordering::Relaxed);
        Ok(())
    }
}
