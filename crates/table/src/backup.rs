//! Copies of a database while it is in use.

use std::collections::HashMap;
use std::ops::Bound;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Fs, ensure};

use crate::catalog::{PUBLIC, Table};
use crate::database::Database;
use crate::options::{Durability, Isolation};
use crate::schema::{ForeignKeyDef, TableDef};
use crate::storage::Direction;
use crate::transaction::Transaction;
use crate::view::View;
use crate::{Error, Result};

impl Database {
    /// Copies the current commits to a new database at another path. Reads and writes continue
    /// meanwhile; only schema changes wait. The copy is packed, as after a vacuum, and durable when
    /// this returns.
    ///
    /// Cost: reads all rows, writes all pages of the copy. Errors: [`Error::AlreadyExists`] if
    /// there is already a file at the path, or one that a database there would take for its log or
    /// its double write; those of reading and of bulk inserts, after which the incomplete copy is
    /// removed.
    pub fn backup(&self, fs: &Arc<dyn Fs>, to: &Path) -> Result<()> {
        let source = self.begin(Isolation::Snapshot)?;
        if let Some(there) = crate::storage::Store::find(fs, to)? {
            return Err(Error::AlreadyExists { what: "file", name: there.display().to_string() });
        }
        let copied = self.copy_to(fs, to, source.view());
        if copied.is_err() {
            // Report the first error.
            let _ = crate::storage::Store::remove(fs, to);
        }
        copied
    }

    fn copy_to(&self, fs: &Arc<dyn Fs>, to: &Path, view: &View) -> Result<()> {
        let mut options = self.inner.options.clone();
        options.store.page_size = self.inner.store.space().page_size();
        let copy = Database::open(fs, to, &options)?;
        let mut transaction = copy.begin(Isolation::ReadCommitted)?;
        let catalog = view.catalog();
        for schema in catalog.schemas().filter(|schema| *schema != PUBLIC) {
            transaction.create_schema(schema)?;
        }
        let mut tables = HashMap::new();
        for table in catalog.tables() {
            let copied = copy_table(&mut transaction, view, table)?;
            let before = tables.insert(table.id(), copied);
            ensure!(before.is_none(), "table {} is copied twice", table.def().name);
        }
        // Foreign keys last, without checking the rows, because the source was consistent.
        for table in catalog.tables().filter(|table| !table.def().foreign_keys.is_empty()) {
            if let Some(new) = tables.get(&table.id()).cloned() {
                add_references(&mut transaction, table.def(), &new, &tables)?;
            }
        }
        for (_, view) in catalog.views() {
            transaction.create_view(crate::schema::ViewDef::clone(view), false)?;
        }
        transaction.commit(Durability::Sync)?;
        // Frees the empty trees that bulk inserts have replaced.
        copy.vacuum()?;
        copy.sync()
    }
}

fn copy_table(to: &mut Transaction, from: &View, table: &Arc<Table>) -> Result<Arc<Table>> {
    let def = TableDef { foreign_keys: Vec::new(), ..table.def().clone() };
    let new = to.create_table(def)?;
    let mut bulk = to.bulk_insert(&new)?;
    let mut scan = from.scan(table, None, (Bound::Unbounded, Bound::Unbounded), Direction::Forward)?;
    while let Some(row) = scan.next()? {
        bulk.push(&row.values())?;
    }
    bulk.finish()?;
    if let Some(statistics) = table.statistics() {
        to.set_statistics(&new, statistics.clone())?;
    }
    let now = to.view().catalog().table_by_id(new.id()).cloned();
    now.ok_or_else(|| Error::NotFound { what: "relation", name: table.def().name.clone() })
}

fn add_references(
    to: &mut Transaction,
    def: &TableDef,
    new: &Arc<Table>,
    tables: &HashMap<u32, Arc<Table>>,
) -> Result<()> {
    let renumbered = |key: &ForeignKeyDef| {
        let table = tables.get(&key.table).map_or(key.table, |table| table.id());
        ForeignKeyDef { table, ..key.clone() }
    };
    let def = TableDef { foreign_keys: def.foreign_keys.iter().map(renumbered).collect(), ..def.clone() };
    let columns: Vec<Option<usize>> = (0..def.columns.len()).map(Some).collect();
    to.alter_table(new, def, &columns, &[]).map(|_| ())
}
