//! Schema changes. They are part of the transaction like other changes, and only one transaction at
//! a time makes them.

use cairn_vfs::sync::Arc;
use cairn_vfs::{Bug, ensure};

use super::Transaction;
use super::bulk::BulkInsert;
use super::dml::{can_be_key, duplicate};
use crate::catalog::{Catalog, PUBLIC, ROOT, Record as CatalogRecord, Table, TableStatistics};
use crate::mvcc::Mode;
use crate::row::Value;
use crate::schema::{ForeignKeyDef, IndexDef, KeyColumn, TableDef, ViewDef};
use crate::sorter::Sorter;
use crate::storage::{Direction, LongRecord, Reclaiming, Record, Tree, write_chain};
use crate::{Error, Result};

impl Transaction {
    /// Creates a table. Like all schema changes, this waits until no other transaction runs, and
    /// others wait until this one ends.
    ///
    /// Errors: [`Error::AlreadyExists`], [`Error::NotFound`] for its namespace, [`Error::Invalid`]
    /// for an inconsistent definition; as [`Transaction::lock`]; the pool's and the log's.
    pub fn create_table(&mut self, def: TableDef) -> Result<Arc<Table>> {
        self.lock_schema()?;
        self.check_name(&def.schema, &def.name)?;
        for index in &def.indexes {
            self.check_name(&def.schema, &index.name)?;
        }
        check_def(&def)?;
        let mut catalog = Catalog::clone(self.view.catalog());
        let id = catalog.take_id();
        // A foreign key to the table itself has no table number yet.
        let mut def = def;
        def.foreign_keys.iter_mut().filter(|key| key.table == 0).for_each(|key| key.table = id);
        let trees = self.make_trees(def.indexes.len() + 1)?;
        let table = Table::new(id, def, &trees, Arc::default());
        let table = Arc::new(table.ok_or_else(no_tree)?);
        let record = catalog.put_table(Arc::clone(&table));
        self.check_references(&catalog, &table)?;
        self.set_catalog(catalog, vec![record], Vec::new())?;
        Ok(table)
    }

    /// Drops a table. Errors: [`Error::InUse`] if other tables reference it; as
    /// [`Transaction::create_table`].
    pub fn drop_table(&mut self, table: &Arc<Table>) -> Result<()> {
        let _reclaiming = Reclaiming::free_space();
        self.lock_schema()?;
        let table = self.now(table)?;
        let mut catalog = Catalog::clone(self.view.catalog());
        if let Some((other, _)) =
            catalog.references_to(table.id()).find(|(other, _)| other.id() != table.id())
        {
            return Err(Error::InUse {
                what: format!("table {}", table.def().name),
                detail: format!("a foreign key of table {} refers to it", other.def().name),
            });
        }
        let keys = catalog.remove_table(table.id());
        self.set_catalog(catalog, Vec::new(), keys.to_vec())?;
        table.roots().into_iter().try_for_each(|root| self.drop_tree(root))
    }

    /// Changes the definition of a table. For each new column, `columns` has the position of the
    /// old column that it was, and `fill` has the value of those that are new. Rows are rewritten
    /// only if their columns, their types or the primary key change.
    ///
    /// Errors: those of rows that do not fit ([`Transaction::insert`]); [`Error::StaleTable`] if
    /// the definition has changed meanwhile; as [`Transaction::create_table`].
    pub fn alter_table(
        &mut self,
        table: &Arc<Table>,
        def: TableDef,
        columns: &[Option<usize>],
        fill: &[Value<'_>],
    ) -> Result<Arc<Table>> {
        self.lock_schema()?;
        let table = self.as_given(table)?;
        let old = table.def();
        if (&old.schema, &old.name) != (&def.schema, &def.name) {
            self.check_name(&def.schema, &def.name)?;
        }
        check_def(&def)?;
        let has_same_places = columns.len() == old.columns.len()
            && columns.iter().enumerate().all(|(at, from)| *from == Some(at));
        // If columns move, the caller updates the foreign keys that refer to them by position, and
        // has refused the removal of columns that they need.
        if has_same_places {
            check_stays_referable(self.view.catalog(), table.id(), &def, || primary_key_of(old))?;
        }
        let is_as_before = has_same_places
            && def
                .columns
                .iter()
                .zip(&old.columns)
                .all(|(new, old)| new.kind == old.kind && (new.nullable || !old.nullable))
            && def.primary_key == old.primary_key
            && def.indexes.len() == old.indexes.len();
        if is_as_before {
            let trees = table.trees();
            return self.put_table(self.with_def(&table, def, &trees)?);
        }
        let new = self.with_new_trees(&table, def)?;
        self.copy_rows(&table, &new, columns, fill)?;
        self.replace_table(&table, Arc::clone(&new))?;
        self.now(&new)
    }

    /// Changes the definition of a table, whose columns keep their positions, and replaces all
    /// rows. Foreign keys from and to the table are not checked.
    ///
    /// Errors: as [`Transaction::alter_table`].
    pub fn bulk_replace(&mut self, table: &Arc<Table>, def: TableDef) -> Result<BulkInsert<'_>> {
        self.lock_schema()?;
        let old = self.as_given(table)?;
        check_def(&def)?;
        if def.columns.len() != old.def().columns.len() {
            return Err(Error::Invalid {
                what: format!(
                    "table {} has {} columns, not {}",
                    def.name,
                    old.def().columns.len(),
                    def.columns.len()
                ),
            });
        }
        check_stays_referable(self.view.catalog(), old.id(), &def, || primary_key_of(old.def()))?;
        let new = self.with_new_trees(&old, def)?;
        Ok(BulkInsert::into(self, old, &new))
    }

    /// Removes all rows at once. Errors: [`Error::InUse`] if other tables reference it; as
    /// [`Transaction::create_table`].
    pub fn truncate(&mut self, table: &Arc<Table>) -> Result<Arc<Table>> {
        let _reclaiming = Reclaiming::free_space();
        self.lock_schema()?;
        let table = self.now(table)?;
        let catalog = Arc::clone(self.view.catalog());
        if let Some((other, _)) =
            catalog.references_to(table.id()).find(|(other, _)| other.id() != table.id())
        {
            return Err(Error::InUse {
                what: format!("the rows of table {}", table.def().name),
                detail: format!("a foreign key of table {} refers to it", other.def().name),
            });
        }
        let new = self.with_new_trees(&table, table.def().clone())?;
        self.replace_table(&table, Arc::clone(&new))?;
        self.now(&new)
    }

    /// Adds an index and fills it with the existing rows. Errors: [`Error::UniqueViolation`];
    /// [`Error::StaleTable`] as [`Transaction::alter_table`]; as [`Transaction::create_table`].
    pub fn create_index(&mut self, table: &Arc<Table>, index: IndexDef) -> Result<Arc<Table>> {
        self.lock_schema()?;
        let table = self.as_given(table)?;
        self.check_name(&table.def().schema, &index.name)?;
        let mut def = table.def().clone();
        def.indexes.push(index);
        check_def(&def)?;
        let mut trees = table.trees();
        trees.extend(self.make_trees(1)?);
        let new = self.with_def(&table, def, &trees)?;
        self.fill_index(&table, &new, new.indexes.len() - 1)?;
        self.put_table(new)
    }

    fn fill_index(&mut self, old: &Arc<Table>, new: &Arc<Table>, at: usize) -> Result<()> {
        ensure!(
            at < new.indexes.len(),
            "index {at} of table {} is filled, and was not added",
            new.def().name
        );
        let Some(index) = new.indexes.get(at) else { return Ok(()) };
        let mut entries = Sorter::new(self.view.db.scratch(1));
        let mut scan = self.current_rows()?.scan(old, None, EVERYTHING, Direction::Forward)?;
        while let Some(row) = scan.next()? {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            if !new.encode_entry(index, &row, &mut key, &mut value) {
                return Err(Error::Invalid {
                    what: format!(
                        "the columns that index {} includes are longer than 64 KiB",
                        index.def.name
                    ),
                });
            }
            let most = index.tree.max_record();
            if key.len() + value.len() > most {
                return Err(Error::TooLong { key: key.len(), value: value.len(), most });
            }
            entries.push(&key, &value)?;
        }
        self.build(&index.tree, new.layout(Some(at)), entries, |key, value| {
            let values = new.entry(at, key, value).map(|row| row.values()).unwrap_or_default();
            duplicate(new, Some(index), &values)
        })
    }

    /// Drops an index, given its position. Errors: [`Error::InUse`] if a foreign key of another
    /// table needs it; [`Error::StaleTable`] as [`Transaction::alter_table`]; as
    /// [`Transaction::create_table`].
    pub fn drop_index(&mut self, table: &Arc<Table>, index: usize) -> Result<Arc<Table>> {
        let _reclaiming = Reclaiming::free_space();
        self.lock_schema()?;
        let table = self.as_given(table)?;
        let mut def = table.def().clone();
        let mut trees = table.trees();
        if index >= def.indexes.len() {
            return Err(Error::Invalid { what: format!("table {} has no index {index}", def.name) });
        }
        let removed = def.indexes.remove(index);
        debug_assert!(
            trees.len() == def.indexes.len() + 2,
            "table {} has {} trees, and had {} indexes",
            def.name,
            trees.len(),
            def.indexes.len() + 1
        );
        let tree = trees.remove(index + 1);
        let new = self.with_def(&table, def, &trees)?;
        let mut catalog = Catalog::clone(self.view.catalog());
        let record = catalog.put_table(Arc::clone(&new));
        check_stays_referable(&catalog, new.id(), new.def(), || format!("index {}", removed.name))?;
        self.set_catalog(catalog, vec![record], Vec::new())?;
        self.drop_tree(tree.root())?;
        self.now(&new)
    }

    /// Creates a view, or replaces its query. Errors: [`Error::AlreadyExists`] unless `replace`,
    /// and for names of tables in any case; as [`Transaction::create_table`].
    pub fn create_view(&mut self, def: ViewDef, replace: bool) -> Result<()> {
        self.lock_schema()?;
        let mut catalog = Catalog::clone(self.view.catalog());
        let old = catalog.view_id(&def.schema, &def.name).filter(|_| replace);
        if old.is_none() {
            self.check_name(&def.schema, &def.name)?;
        }
        let id = old.unwrap_or_else(|| catalog.take_id());
        let record = catalog.put_view(id, def);
        self.set_catalog(catalog, vec![record], Vec::new())
    }

    /// Drops a view. Errors: [`Error::NotFound`]; as [`Transaction::create_table`].
    pub fn drop_view(&mut self, schema: &str, name: &str) -> Result<()> {
        self.lock_schema()?;
        let mut catalog = Catalog::clone(self.view.catalog());
        let Some(id) = catalog.view_id(schema, name) else {
            return Err(Error::NotFound { what: "view", name: name.to_owned() });
        };
        let key = catalog.remove_view(id);
        self.set_catalog(catalog, Vec::new(), vec![key])
    }

    /// Creates a namespace. Errors: [`Error::AlreadyExists`]; as [`Transaction::create_table`].
    pub fn create_schema(&mut self, name: &str) -> Result<()> {
        self.lock_schema()?;
        let mut catalog = Catalog::clone(self.view.catalog());
        if catalog.has_schema(name) {
            return Err(Error::AlreadyExists { what: "schema", name: name.to_owned() });
        }
        let id = catalog.take_id();
        let record = catalog.put_schema(id, name);
        self.set_catalog(catalog, vec![record], Vec::new())
    }

    /// Drops an empty namespace. Errors: [`Error::NotFound`], [`Error::InUse`]; as
    /// [`Transaction::create_table`].
    pub fn drop_schema(&mut self, name: &str) -> Result<()> {
        self.lock_schema()?;
        let mut catalog = Catalog::clone(self.view.catalog());
        if name == PUBLIC || catalog.is_schema_used(name) {
            let detail = "it is not empty, or is required".to_owned();
            return Err(Error::InUse { what: format!("schema {name}"), detail });
        }
        let Some(key) = catalog.remove_schema(name) else {
            return Err(Error::NotFound { what: "schema", name: name.to_owned() });
        };
        self.set_catalog(catalog, Vec::new(), vec![key])
    }

    /// Stores statistics of a table. Errors: [`Error::StaleTable`] as [`Transaction::alter_table`];
    /// as [`Transaction::create_table`].
    pub fn set_statistics(&mut self, table: &Arc<Table>, statistics: TableStatistics) -> Result<()> {
        self.lock_schema()?;
        let table = self.as_given(table)?;
        let new = Table::new(table.id(), table.def().clone(), &table.trees(), Arc::clone(&table.counters));
        let mut new = new.ok_or_else(no_tree)?;
        new.statistics = Some(Arc::new(statistics));
        let mut catalog = Catalog::clone(self.view.catalog());
        let record = Catalog::statistics_record(&new);
        catalog.put_table(Arc::new(new));
        self.set_catalog(catalog, record.into_iter().collect(), Vec::new())
    }

    /// Returns the current version of a table.
    fn now(&self, table: &Arc<Table>) -> Result<Arc<Table>> {
        let now = self.view.catalog().table_by_id(table.id()).cloned();
        now.ok_or_else(|| Error::NotFound { what: "relation", name: table.def().name.clone() })
    }

    /// Returns the current version of a table if its definition is the one that the caller has,
    /// because the caller refers to columns and indexes by position.
    fn as_given(&self, table: &Arc<Table>) -> Result<Arc<Table>> {
        let now = self.now(table)?;
        if now.def() == table.def() {
            Ok(now)
        } else {
            Err(Error::StaleTable { table: table.def().name.clone() })
        }
    }

    fn check_name(&self, schema: &str, name: &str) -> Result<()> {
        let catalog = self.view.catalog();
        if !catalog.has_schema(schema) {
            return Err(Error::NotFound { what: "schema", name: schema.to_owned() });
        }
        if catalog.has_name(schema, name) {
            return Err(Error::AlreadyExists { what: "relation", name: name.to_owned() });
        }
        Ok(())
    }

    fn check_references(&self, catalog: &Catalog, table: &Table) -> Result<()> {
        for key in &table.def().foreign_keys {
            let parent = catalog.table_by_id(key.table);
            if !parent.is_some_and(|parent| is_referable(parent.def(), &key.references)) {
                return Err(Error::Invalid {
                    what: format!(
                        "there is no unique constraint matching given keys for constraint \"{}\"",
                        key.name
                    ),
                });
            }
            if let Some(parent) = parent {
                check_types(table.def(), key, parent.def())?;
            }
        }
        Ok(())
    }

    /// Stores a changed table in the catalog.
    fn put_table(&mut self, table: Arc<Table>) -> Result<Arc<Table>> {
        let mut catalog = Catalog::clone(self.view.catalog());
        let record = catalog.put_table(Arc::clone(&table));
        self.check_references(&catalog, &table)?;
        self.set_catalog(catalog, vec![record], Vec::new())?;
        debug_assert!(
            self.view.catalog().table_by_id(table.id()).is_some_and(|now| Arc::ptr_eq(now, &table)),
            "table {} was stored, and is not in the catalog",
            table.id()
        );
        Ok(table)
    }

    /// Replaces a table by one with other trees, and drops the old trees. Its statistics are
    /// dropped too.
    pub(super) fn replace_table(&mut self, old: &Arc<Table>, new: Arc<Table>) -> Result<()> {
        ensure!(new.id() == old.id(), "table {} is replaced by table {}", old.id(), new.id());
        debug_assert!(
            !new.roots().iter().any(|root| old.roots().contains(root)),
            "a table keeps trees that are dropped: {:?} and {:?}",
            old.roots(),
            new.roots()
        );
        self.put_table(new)?;
        let catalog = Catalog::clone(self.view.catalog());
        self.set_catalog(catalog, Vec::new(), vec![Catalog::statistics_key(old.id())])?;
        old.roots().into_iter().try_for_each(|root| self.drop_tree(root))
    }

    /// Returns a table with the same rows and statistics and another definition, whose columns have
    /// the same positions.
    fn with_def(&self, table: &Table, def: TableDef, trees: &[Tree]) -> Result<Arc<Table>> {
        debug_assert!(
            trees.len() == def.indexes.len() + 1,
            "table {} has {} trees and {} indexes",
            def.name,
            trees.len(),
            def.indexes.len()
        );
        let new = Table::new(table.id(), def, trees, Arc::clone(&table.counters));
        let mut new = new.ok_or_else(no_tree)?;
        new.statistics = table.statistics.clone();
        Ok(Arc::new(new))
    }

    /// Returns a table without rows that replaces another.
    pub(super) fn with_new_trees(&mut self, table: &Arc<Table>, def: TableDef) -> Result<Arc<Table>> {
        let trees = self.make_trees(def.indexes.len() + 1)?;
        let new = Table::new(table.id(), def, &trees, Arc::default());
        let new = new.ok_or_else(no_tree)?;
        debug_assert!(
            new.roots().iter().all(|root| self.made.contains(root)),
            "a new tree of table {} is not freed by a rollback",
            new.def().name
        );
        Ok(Arc::new(new))
    }

    fn copy_rows(
        &mut self,
        from: &Arc<Table>,
        to: &Arc<Table>,
        columns: &[Option<usize>],
        fill: &[Value<'_>],
    ) -> Result<()> {
        let mut build = super::bulk::Build::new(self, to);
        let mut scan = self.current_rows()?.scan(from, None, EVERYTHING, Direction::Forward)?;
        let mut rows = 0;
        while let Some(row) = scan.next()? {
            let value = |(at, from): (usize, &Option<usize>)| match from {
                Some(from) => row.get(*from),
                None => fill.get(at).copied().unwrap_or(Value::Null),
            };
            let values: Vec<Value<'_>> = columns.iter().enumerate().map(value).collect();
            build.push(self, &values)?;
            rows += 1;
        }
        build.finish(self, rows)
    }

    /// Creates trees, which are freed unless the transaction commits.
    fn make_trees(&mut self, count: usize) -> Result<Vec<Tree>> {
        debug_assert!(count > 0, "a table is created without trees");
        debug_assert!(self.has_schema_lock, "trees are created while others may change the schema");
        let state = self.register_writer()?;
        let space = Arc::clone(self.view.db.store.space());
        (0..count)
            .map(|_| {
                let tree = Tree::create(&space)?;
                ensure!(tree.root() > ROOT, "a tree is created on page {}, which is in use", tree.root());
                debug_assert!(
                    !self.made.contains(&tree.root()),
                    "two trees are created on page {}",
                    tree.root()
                );
                self.made.push(tree.root());
                self.view.db.store.append(&Record::Made { transaction: state.id, root: tree.root() })?;
                Ok(tree)
            })
            .collect()
    }

    /// Drops a tree at the commit.
    ///
    /// This is logged with the commit and not before, because a log record could not be taken back
    /// by a rollback to a savepoint.
    fn drop_tree(&mut self, root: u32) -> Result<()> {
        ensure!(root != ROOT, "the catalog is dropped as a tree");
        debug_assert!(!self.dropped.contains(&root), "the tree with root {root} is dropped twice");
        debug_assert!(self.has_schema_lock, "a tree is dropped while others may use it");
        self.register_writer()?;
        self.dropped.push(root);
        Ok(())
    }

    /// Makes a catalog the transaction's own, and writes the records that differ.
    pub(crate) fn set_catalog(
        &mut self,
        catalog: Catalog,
        put: Vec<CatalogRecord>,
        removed: Vec<[u8; 5]>,
    ) -> Result<()> {
        ensure!(
            self.has_schema_lock,
            "transaction {} changes the schema, which others may be using",
            self.id()
        );
        let tree = Tree::open(self.view.db.store.space(), ROOT);
        let put = put.into_iter().map(|(key, bytes)| (key, Some(bytes)));
        for (key, bytes) in put.chain(removed.into_iter().map(|key| (key, None))) {
            let key = self.claim(ROOT, &key, Mode::Exclusive, false)?;
            let mut before = Vec::new();
            let is_there = tree.get(&key, &mut before)?;
            let record = bytes.map(|bytes| self.catalog_record(&tree, &key, &bytes)).transpose()?;
            if record.is_some() || is_there {
                self.put_record(&tree, &key, is_there.then_some(&before[..]), record.as_deref())?;
                self.note_old_chain(&before);
            }
        }
        let old = self.use_catalog(Arc::new(catalog));
        self.catalogs.push(old);
        Ok(())
    }

    fn catalog_record(&mut self, tree: &Tree, key: &[u8], bytes: &[u8]) -> Result<Vec<u8>> {
        let mut record = vec![0];
        if key.len() + 1 + bytes.len() <= tree.max_record() {
            record.extend(bytes);
            return Ok(record);
        }
        let first = write_chain(self.view.db.store.space(), bytes)?;
        self.new_chains.push(first);
        Ok(LongRecord { flags: 0, len: bytes.len(), first }.encode())
    }
}

pub(super) const EVERYTHING: (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>) =
    (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);

/// Checks that the types of a foreign key's columns may refer to those of the referenced table.
fn check_types(child: &TableDef, key: &ForeignKeyDef, parent: &TableDef) -> Result<()> {
    let fits = |(here, there): (&usize, &usize)| {
        let (here, there) = (child.columns.get(*here), parent.columns.get(*there));
        here.zip(there).is_some_and(|(here, there)| here.kind.may_refer_to(&there.kind))
    };
    if key.columns.iter().zip(&key.references).all(fits) {
        return Ok(());
    }
    Err(Error::Invalid {
        what: format!(
            "the columns of constraint \"{}\" differ in type from the columns that they refer to",
            key.name
        ),
    })
}

/// Returns the error for a table that would have no tree.
pub(crate) fn no_tree() -> Bug {
    Bug::new("a table has no tree for its rows")
}

fn primary_key_of(def: &TableDef) -> String {
    match &def.primary_key_name {
        Some(name) => format!("constraint {name}"),
        None => format!("the primary key of table {}", def.name),
    }
}

/// Checks that foreign keys to a table still find the key that they need in a new definition.
/// Errors: [`Error::InUse`], naming the removed key; [`Error::Invalid`] for columns of other types.
fn check_stays_referable(
    catalog: &Catalog,
    id: u32,
    def: &TableDef,
    removed_key: impl Fn() -> String,
) -> Result<()> {
    for (child, at) in catalog.references_to(id) {
        let Some(key) = child.def().foreign_keys.get(at) else { continue };
        if !is_referable(def, &key.references) {
            return Err(Error::InUse {
                what: removed_key(),
                detail: format!("constraint {} on table {} needs it", key.name, child.def().name),
            });
        }
        // A table's own foreign keys are checked when it is stored in the catalog.
        if child.id() != id {
            check_types(child.def(), key, def)?;
        }
    }
    Ok(())
}

fn is_referable(parent: &TableDef, columns: &[usize]) -> bool {
    let is_it = |key: &[KeyColumn]| {
        key.len() == columns.len() && key.iter().all(|column| columns.contains(&column.column))
    };
    is_it(&parent.primary_key) || parent.indexes.iter().any(|index| index.unique && is_it(&index.columns))
}

/// Checks that a definition is consistent.
fn check_def(def: &TableDef) -> Result<()> {
    let invalid = |what: String| Err(Error::Invalid { what });
    let columns = &def.columns;
    for (at, column) in columns.iter().enumerate() {
        if columns.iter().take(at).any(|other| other.name == column.name) {
            return Err(Error::AlreadyExists { what: "column", name: column.name.clone() });
        }
        if column.kind.is_list {
            return invalid(format!(
                "column {} is of type {}: columns cannot have lists",
                column.name, column.kind
            ));
        }
        if let Some((precision, scale)) = column.kind.decimal
            && (!(1..=38).contains(&precision) || scale > precision)
        {
            return invalid(format!(
                "column {} is of type {}: at most 38 digits are allowed",
                column.name, column.kind
            ));
        }
    }
    let keys = def.primary_key.iter().map(|key| (key.column, "the primary key"));
    let indexes =
        def.indexes.iter().flat_map(|index| index.columns.iter().map(|key| (key.column, &*index.name)));
    for (column, of) in keys.chain(indexes) {
        match columns.get(column) {
            None => {
                return invalid(format!(
                    "{of} of table {} has a column that the table does not have",
                    def.name
                ));
            }
            Some(column) if !can_be_key(column.kind.kind) => {
                return invalid(format!(
                    "{of} of table {} has column {}, whose type {} has no order for keys",
                    def.name, column.name, column.kind
                ));
            }
            Some(_) => {}
        }
    }
    for index in &def.indexes {
        if index.columns.is_empty() || index.include.iter().any(|&column| column >= columns.len()) {
            return invalid(format!(
                "index {} of table {} has no columns, or one that the table does not have",
                index.name, def.name
            ));
        }
    }
    for key in &def.foreign_keys {
        if key.columns.is_empty()
            || key.columns.len() != key.references.len()
            || key.columns.iter().any(|&column| column >= columns.len())
        {
            return invalid(format!("constraint {} of table {} has invalid columns", key.name, def.name));
        }
    }
    Ok(())
}
