//! The catalog: the tables, views and namespaces of a database.
//!
//! The catalog is stored in a tree like any other, whose root page never changes, and transactions
//! change it as they change tables. In memory it is an immutable value: a transaction that changes
//! it builds a new one, which other transactions get once it commits.

mod bytes;
mod statistics;
mod table;

use std::collections::BTreeMap;

use cairn_vfs::sync::Arc;

pub use statistics::{ColumnStatistics, OwnedValue, TableStatistics};
pub(crate) use table::{Counters, GHOST, Index, Place, WIDE};
pub use table::{RowRef, Table};

use crate::row::Type;
use crate::schema::{TableDef, ViewDef};
use crate::storage::{Space, Tree};

/// The root page of the catalog: the first page that a new database allocates.
pub(crate) const ROOT: u32 = 1;
const _: () = assert!(ROOT > 0);

/// The namespace that always exists.
pub const PUBLIC: &str = "public";

const TABLE: u8 = 1;
const VIEW: u8 = 2;
const SCHEMA: u8 = 3;
const STATISTICS: u8 = 4;
/// In key order, tables precede views, whose numbers they must not have, and their statistics.
const _: () = assert!(TABLE < VIEW && VIEW < SCHEMA && SCHEMA < STATISTICS);

/// The tables, views and namespaces of a database as one transaction sees them.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    version: u64,
    tables: BTreeMap<u32, Arc<Table>>,
    views: BTreeMap<u32, Arc<ViewDef>>,
    schemas: BTreeMap<u32, String>,
    /// Tables and views by namespace and name.
    names: BTreeMap<(String, String), u32>,
    next: u32,
}

/// A record of the catalog's tree: its key and its bytes.
pub(crate) type Record = ([u8; 5], Vec<u8>);

fn key(kind: u8, id: u32) -> [u8; 5] {
    let [a, b, c, d] = id.to_be_bytes();
    [kind, a, b, c, d]
}

/// Returns whether pages can be the roots of a table's trees: neither the catalog's, nor one that
/// the bit for locks on keys cannot be added to.
fn are_roots(roots: &[u32]) -> bool {
    let is_root = |root: &u32| *root > ROOT && *root < 1 << 31;
    let is_other = |(at, root): (usize, &u32)| !roots.iter().skip(at + 1).any(|other| other == root);
    roots.iter().all(is_root) && roots.iter().enumerate().all(is_other)
}

fn kinds(def: &TableDef) -> Vec<Type> {
    def.columns.iter().map(|column| column.kind.kind).collect()
}

impl Catalog {
    /// Creates an empty catalog.
    pub(crate) fn new() -> Self {
        Catalog { next: 1, ..Catalog::default() }
    }

    /// Adds a record of the tree. Returns false for bytes that are not a valid record. Records must
    /// come in key order.
    pub(crate) fn load(&mut self, space: &Arc<Space>, key: &[u8], bytes: &[u8]) -> bool {
        let Some((&kind, id)) = key.split_first() else { return false };
        let Ok(id) = id.try_into().map(u32::from_be_bytes) else { return false };
        // A number is given to one table, view or namespace, and the last one to none.
        if id == 0 || id == u32::MAX {
            return false;
        }
        self.next = self.next.max(id.saturating_add(1));
        debug_assert!(self.next > id, "number {id} would be given again after {}", self.next);
        let loaded = match kind {
            TABLE => {
                bytes::get_table(bytes).filter(|(_, roots)| are_roots(roots)).and_then(|(def, roots)| {
                    let trees: Vec<Tree> = roots.iter().map(|root| Tree::open(space, *root)).collect();
                    let table = Table::new(id, def, &trees, Arc::default())?;
                    self.put_table(Arc::new(table));
                    Some(())
                })
            }
            VIEW if self.tables.contains_key(&id) => None,
            VIEW => bytes::get_view(bytes).map(|def| _ = self.put_view(id, def)),
            SCHEMA => {
                std::str::from_utf8(bytes).ok().map(|name| _ = self.schemas.insert(id, name.to_owned()))
            }
            // These statistics describe the columns from before the table was altered, so they are
            // ignored.
            STATISTICS if !self.has_statistics(id, bytes) => Some(()),
            STATISTICS => self.tables.get(&id).cloned().and_then(|table| {
                let found = statistics::get(bytes, &kinds(table.def()))?;
                table.counters.rows.store(found.rows as i64, cairn_vfs::sync::atomic::Ordering::Relaxed);
                let trees: Vec<Tree> = table.roots().iter().map(|root| Tree::open(space, *root)).collect();
                let counters = Arc::clone(&table.counters);
                let mut table = Table::new(id, table.def().clone(), &trees, counters)?;
                table.statistics = Some(Arc::new(found));
                self.put_table(Arc::new(table));
                Some(())
            }),
            _ => None,
        };
        loaded.is_some()
    }

    /// Returns the layout of a record if it is later than all that this build knows. Statistics of
    /// another layout are ignored.
    pub(crate) fn later_layout(key: &[u8], bytes: &[u8]) -> Option<u8> {
        let (&kind, &layout) = (key.first()?, bytes.first()?);
        let last = match kind {
            TABLE => bytes::TABLE_LAYOUT_LAST,
            VIEW => bytes::VIEW_LAYOUT_LAST,
            _ => return None,
        };
        (layout > last).then_some(layout)
    }

    fn has_statistics(&self, id: u32, bytes: &[u8]) -> bool {
        self.tables.get(&id).is_some_and(|table| statistics::get(bytes, &kinds(table.def())).is_some())
    }

    /// Returns the number of changes so far. Two catalogs of the same version are identical.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn set_version(&mut self, version: u64) {
        debug_assert!(version > self.version, "version {} of the catalog becomes {version}", self.version);
        self.version = version;
    }

    /// Allocates a number for the next table, view or namespace.
    pub(crate) fn take_id(&mut self) -> u32 {
        let id = self.next;
        debug_assert!(id > 0, "number 0 is given, which stands for none");
        debug_assert!(
            !self.tables.contains_key(&id)
                && !self.views.contains_key(&id)
                && !self.schemas.contains_key(&id),
            "number {id} is given twice"
        );
        self.next += 1;
        id
    }

    /// Returns a table by name.
    pub fn table(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(self.names.get(&(schema.to_owned(), name.to_owned()))?)
    }

    /// Returns a table by number.
    pub fn table_by_id(&self, id: u32) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// Returns the tables in order of creation.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// Returns a view by name.
    pub fn view(&self, schema: &str, name: &str) -> Option<&Arc<ViewDef>> {
        self.views.get(self.names.get(&(schema.to_owned(), name.to_owned()))?)
    }

    /// Returns the number of a view.
    pub fn view_id(&self, schema: &str, name: &str) -> Option<u32> {
        let id = *self.names.get(&(schema.to_owned(), name.to_owned()))?;
        self.views.contains_key(&id).then_some(id)
    }

    /// Returns the views with their numbers, in order of creation.
    pub fn views(&self) -> impl Iterator<Item = (u32, &Arc<ViewDef>)> {
        self.views.iter().map(|(id, view)| (*id, view))
    }

    /// Returns the names of the namespaces, `public` first.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        std::iter::once(PUBLIC).chain(self.schemas.values().map(String::as_str))
    }

    /// Returns the number of a namespace other than `public`, which has none.
    pub fn schema_id(&self, name: &str) -> Option<u32> {
        self.schemas.iter().find(|(_, schema)| *schema == name).map(|(id, _)| *id)
    }

    /// Returns whether a namespace exists.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas().any(|schema| schema == name)
    }

    /// Returns whether a table, view or index has this name. Indexes share one set of names with
    /// the tables of their namespace.
    pub fn has_name(&self, schema: &str, name: &str) -> bool {
        self.names.contains_key(&(schema.to_owned(), name.to_owned())) || self.index(schema, name).is_some()
    }

    /// Returns the table of an index, and the position of the index in that table.
    pub fn index(&self, schema: &str, name: &str) -> Option<(&Arc<Table>, usize)> {
        self.tables().filter(|table| table.def().schema == schema).find_map(|table| {
            let at = table.def().indexes.iter().position(|index| index.name == name)?;
            Some((table, at))
        })
    }

    /// Returns the tables that reference a table, each with the position of the foreign key.
    pub fn references_to(&self, id: u32) -> impl Iterator<Item = (&Arc<Table>, usize)> {
        self.tables().flat_map(move |table| {
            let keys = table.def().foreign_keys.iter().enumerate();
            keys.filter(move |(_, key)| key.table == id).map(move |(at, _)| (table, at))
        })
    }

    pub(crate) fn put_table(&mut self, table: Arc<Table>) -> Record {
        let id = table.id();
        debug_assert!(id != 0 && id < self.next, "table {id} has a number that was not given");
        if let Some(old) = self.tables.get(&id) {
            self.names.remove(&(old.def().schema.clone(), old.def().name.clone()));
        }
        self.names.insert((table.def().schema.clone(), table.def().name.clone()), id);
        let record = (key(TABLE, id), bytes::put_table(table.def(), &table.roots()));
        debug_assert!(
            bytes::get_table(&record.1)
                .is_some_and(|(def, roots)| { def == *table.def() && roots == table.roots() }),
            "table {} is not read as it is written",
            table.def().name
        );
        debug_assert!(are_roots(&table.roots()), "the trees of a table are on {:?}", table.roots());
        self.tables.insert(id, table);
        self.assert_invariants();
        record
    }

    /// Returns the record of a table's statistics, if it has any.
    pub(crate) fn statistics_record(table: &Table) -> Option<Record> {
        let found = table.statistics()?;
        Some((key(STATISTICS, table.id()), statistics::put(found, &kinds(table.def()))))
    }

    /// Returns the key of the record of a table's statistics.
    pub(crate) fn statistics_key(id: u32) -> [u8; 5] {
        key(STATISTICS, id)
    }

    /// Removes a table. Returns the keys of its records.
    pub(crate) fn remove_table(&mut self, id: u32) -> [[u8; 5]; 2] {
        if let Some(old) = self.tables.remove(&id) {
            self.names.remove(&(old.def().schema.clone(), old.def().name.clone()));
        }
        self.assert_invariants();
        [key(TABLE, id), key(STATISTICS, id)]
    }

    pub(crate) fn put_view(&mut self, id: u32, def: ViewDef) -> Record {
        self.names.insert((def.schema.clone(), def.name.clone()), id);
        debug_assert!(id != 0 && id < self.next, "view {id} has a number that was not given");
        let record = (key(VIEW, id), bytes::put_view(&def));
        debug_assert!(
            bytes::get_view(&record.1).as_ref() == Some(&def),
            "view {} is not read as it is written",
            def.name
        );
        self.views.insert(id, Arc::new(def));
        record
    }

    pub(crate) fn remove_view(&mut self, id: u32) -> [u8; 5] {
        if let Some(old) = self.views.remove(&id) {
            self.names.remove(&(old.schema.clone(), old.name.clone()));
        }
        self.assert_invariants();
        key(VIEW, id)
    }

    pub(crate) fn put_schema(&mut self, id: u32, name: &str) -> Record {
        debug_assert!(id != 0 && id < self.next, "namespace {id} has a number that was not given");
        debug_assert!(!self.has_schema(name), "namespace {name} is created twice");
        self.schemas.insert(id, name.to_owned());
        (key(SCHEMA, id), name.as_bytes().to_vec())
    }

    /// Removes a namespace. Returns the key of its record, or `None` if there is no such namespace.
    pub(crate) fn remove_schema(&mut self, name: &str) -> Option<[u8; 5]> {
        let id = *self.schemas.iter().find(|(_, schema)| *schema == name)?.0;
        self.schemas.remove(&id);
        Some(key(SCHEMA, id))
    }

    /// Checks that every name leads to a table or a view, and each of these has its name.
    fn assert_invariants(&self) {
        debug_assert!(
            self.names.values().all(|id| self.tables.contains_key(id) || self.views.contains_key(id)),
            "a name has no table or view"
        );
        debug_assert!(
            !self.tables.keys().any(|id| self.views.contains_key(id)),
            "a table and a view have the same number"
        );
    }

    /// Returns whether a namespace contains any table or view.
    pub(crate) fn is_schema_used(&self, name: &str) -> bool {
        self.names.keys().any(|(schema, _)| schema == name)
    }
}
