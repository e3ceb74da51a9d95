//! A table: its definition, its trees, and the encoding of its rows.
//!
//! ```text
//!   row tree       primary key or row number -> flags u8 | row
//!   index          columns | primary key     -> flags u8 | length of the primary key u16
//!                                               | included columns
//!   unique index   columns, none NULL        -> flags u8 | length of the primary key u16
//!                                               | primary key | included columns
//!   long row       primary key               -> flags u8 | length u32 | first page u32:
//!                                               the row is stored in a chain of pages
//!
//!   flags: 1 a ghost: the row is deleted, but a snapshot may still see it
//!          2 a long row
//!          4 a wide row (row/format.rs)
//! ```
//!
//! A row holds the columns that cannot be recovered from its key (`KeyFormat::keeps`). In a unique
//! index, entries with a NULL are laid out as in other indexes, because NULL does not equal NULL.

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicI64, Ordering};

use smallvec::SmallVec;

use super::statistics::TableStatistics;
use crate::row::{KeyFormat, Make, OrNull, Order, Row, RowFormat, Type, Value};
use crate::schema::{IndexDef, TableDef};
use crate::storage::{Layout, Lead, Tree};

pub(crate) use crate::storage::GHOST;
use crate::storage::LONG;
pub(crate) const WIDE: u8 = 4;
/// The flags of a record are different bits.
const _: () = assert!(GHOST & LONG == 0 && GHOST & WIDE == 0 && LONG & WIDE == 0);

/// The place where a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The n-th column of the tree's key.
    Key(usize),
    /// The n-th column of the row, or of the included columns of an index.
    Row(usize),
    /// In an index: the n-th column of the primary key.
    Primary(usize),
    /// The index does not contain the column.
    Elsewhere,
}

/// An index of a table.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) def: IndexDef,
    pub(crate) tree: Tree,
    /// The format of the index's own columns, without the primary key after them.
    pub(crate) key: KeyFormat,
    included: RowFormat,
    /// The included columns.
    pub(crate) include: Vec<usize>,
    places: Vec<Place>,
}

/// Counters that change with the rows. All versions of a table's definition share them.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// The number of the next row in a table without a primary key. 0 until it is first determined.
    pub(crate) next_row: AtomicI64,
    /// Approximate number of rows.
    pub(crate) rows: AtomicI64,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    id: u32,
    def: TableDef,
    pub(crate) tree: Tree,
    key: KeyFormat,
    row: RowFormat,
    /// The columns that are stored in the row.
    stored: Vec<usize>,
    places: Vec<Place>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) statistics: Option<Arc<TableStatistics>>,
    pub(crate) counters: Arc<Counters>,
}

fn key_format(def: &TableDef, columns: &[crate::schema::KeyColumn]) -> KeyFormat {
    debug_assert!(
        columns.iter().all(|key| key.column < def.columns.len()),
        "a key of table {} has a column that the table does not have",
        def.name
    );
    let kind = |column: usize| def.columns.get(column).map_or(Type::BigInt, |column| column.kind.kind);
    KeyFormat::new(columns.iter().map(|key| (kind(key.column), key.order)).collect())
}

fn row_format(def: &TableDef, columns: &[usize]) -> RowFormat {
    let kinds: Vec<Type> =
        columns.iter().filter_map(|&at| def.columns.get(at)).map(|column| column.kind.kind).collect();
    debug_assert!(
        kinds.len() == columns.len(),
        "rows of table {} have {} of {} columns",
        def.name,
        kinds.len(),
        columns.len()
    );
    RowFormat::new(&kinds)
}

impl Table {
    /// Creates a table from its trees, the row tree first, then the indexes. Returns `None` if
    /// there are too few trees.
    pub(crate) fn new(id: u32, def: TableDef, trees: &[Tree], counters: Arc<Counters>) -> Option<Table> {
        let (tree, rest) = trees.split_first()?;
        let key = match def.primary_key.is_empty() {
            true => KeyFormat::new(vec![(Type::BigInt, Order::default())]),
            false => key_format(&def, &def.primary_key),
        };
        let in_key = |column: usize| {
            let at = def.primary_key.iter().position(|key| key.column == column)?;
            key.keeps(at).then_some(at)
        };
        let stored: Vec<usize> = (0..def.columns.len()).filter(|&column| in_key(column).is_none()).collect();
        let place = |column| match in_key(column) {
            Some(at) => Place::Key(at),
            None => Place::Row(stored.iter().position(|&other| other == column).unwrap_or_default()),
        };
        let places: Vec<Place> = (0..def.columns.len()).map(place).collect();
        let index = |(index, tree): (&IndexDef, &Tree)| {
            let format = key_format(&def, &index.columns);
            let place = |column: usize| {
                let own = index.columns.iter().position(|key| key.column == column);
                if let Some(at) = own.filter(|&at| format.keeps(at)) {
                    return Place::Key(at);
                }
                if let Some(at) = in_key(column) {
                    return Place::Primary(at);
                }
                let included = index.include.iter().position(|&other| other == column);
                included.map_or(Place::Elsewhere, Place::Row)
            };
            Index {
                places: (0..def.columns.len()).map(place).collect(),
                included: row_format(&def, &index.include),
                include: index.include.clone(),
                key: format,
                tree: tree.clone(),
                def: index.clone(),
            }
        };
        debug_assert!(
            rest.len() >= def.indexes.len(),
            "table {} has {} indexes and {} trees",
            def.name,
            def.indexes.len(),
            trees.len()
        );
        debug_assert!(
            places.iter().enumerate().all(|(column, place)| match place {
                Place::Row(at) => stored.get(*at) == Some(&column),
                Place::Key(at) => def.primary_key.get(*at).is_some_and(|key| key.column == column),
                Place::Primary(_) | Place::Elsewhere => false,
            }),
            "the columns of table {} are at {places:?}",
            def.name
        );
        let indexes: Vec<Index> = def.indexes.iter().zip(rest).map(index).collect();
        debug_assert!(
            indexes.iter().all(|index| index.places.iter().enumerate().all(|(column, place)| match place {
                Place::Row(at) => index.include.get(*at) == Some(&column),
                Place::Key(at) => index.def.columns.get(*at).is_some_and(|key| key.column == column),
                Place::Primary(at) => def.primary_key.get(*at).is_some_and(|key| key.column == column),
                Place::Elsewhere => !index.include.contains(&column),
            })),
            "an index of table {} has a column in the place of another one",
            def.name
        );
        let row = row_format(&def, &stored);
        let tree = tree.clone();
        Some(Table { id, tree, key, row, stored, places, indexes, statistics: None, counters, def })
    }

    /// Returns the number of the table, which never changes.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the definition of the table.
    pub fn def(&self) -> &TableDef {
        &self.def
    }

    /// Returns the format of the keys of the row tree: the primary key or the row number.
    pub fn key_format(&self) -> &KeyFormat {
        &self.key
    }

    /// Returns the key format of an index, without the primary key that follows it in entries of a
    /// non-unique index.
    pub fn index_key_format(&self, index: usize) -> Option<&KeyFormat> {
        self.indexes.get(index).map(|index| &index.key)
    }

    /// Returns whether rows are identified by a row number instead of a primary key.
    pub fn has_row_number(&self) -> bool {
        self.def.primary_key.is_empty()
    }

    /// Returns the statistics of the table, if they have been gathered.
    pub fn statistics(&self) -> Option<&TableStatistics> {
        self.statistics.as_deref()
    }

    /// Returns the approximate number of rows, including uncommitted changes.
    pub fn rows(&self) -> u64 {
        self.counters.rows.load(Ordering::Relaxed).try_into().unwrap_or_default()
    }

    /// Returns whether an index contains the values of a column, so that a query need not fetch
    /// them from the table.
    pub fn index_covers(&self, index: usize, column: usize) -> bool {
        let place = self.indexes.get(index).and_then(|index| index.places.get(column));
        place.is_some_and(|place| *place != Place::Elsewhere)
    }

    /// Returns the roots of the trees, the row tree first, then the indexes.
    pub(crate) fn roots(&self) -> Vec<u32> {
        debug_assert!(
            self.indexes.len() == self.def.indexes.len(),
            "table {} has {} of {} indexes",
            self.def.name,
            self.indexes.len(),
            self.def.indexes.len()
        );
        std::iter::once(&self.tree)
            .chain(self.indexes.iter().map(|index| &index.tree))
            .map(Tree::root)
            .collect()
    }

    /// Returns the trees in the order of [`Table::roots`].
    pub(crate) fn trees(&self) -> Vec<Tree> {
        std::iter::once(&self.tree).chain(self.indexes.iter().map(|index| &index.tree)).cloned().collect()
    }

    /// Returns where a column is stored in the records of the row tree, or of an index.
    pub(crate) fn place(&self, index: Option<usize>, column: usize) -> Option<Place> {
        let places = match index {
            None => &self.places,
            Some(index) => &self.indexes.get(index)?.places,
        };
        places.get(column).copied()
    }

    /// Returns the layout of the columns that are not part of the key.
    pub(crate) fn row_format(&self, index: Option<usize>) -> Option<&RowFormat> {
        match index {
            None => Some(&self.row),
            Some(index) => self.indexes.get(index).map(|index| &index.included),
        }
    }

    /// Returns the offset of those columns in a record. `None` if it differs between records.
    pub(crate) fn row_start(&self, index: Option<usize>) -> Option<usize> {
        match index {
            None => Some(1),
            Some(index) => self.indexes.get(index).filter(|index| !index.def.unique).map(|_| 3),
        }
    }

    /// Returns the format of the first columns of the keys of the row tree, or of an index.
    pub(crate) fn tree_key_format(&self, index: Option<usize>) -> Option<&KeyFormat> {
        match index {
            None => Some(&self.key),
            Some(index) => self.index_key_format(index),
        }
    }

    /// Returns how the records of the row tree, or of an index, are split into columns.
    pub(crate) fn layout(&self, index: Option<usize>) -> Option<Layout> {
        let lead = match index {
            None => Lead::Nothing,
            Some(index) if self.indexes.get(index)?.def.unique => Lead::Bytes,
            Some(_) => Lead::Length,
        };
        Some(Layout { lead, widths: self.row_format(index)?.widths() })
    }

    /// Appends the primary key of a row. Returns false if one of its columns is NULL, or if the
    /// table has no primary key.
    pub(crate) fn encode_key(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        let mut key: SmallVec<[Value<'_>; 4]> = SmallVec::new();
        for column in &self.def.primary_key {
            match values.get(column.column) {
                None | Some(Value::Null) => return false,
                Some(value) => key.push(*value),
            }
        }
        debug_assert!(
            key.len() == self.def.primary_key.len(),
            "a key of {} columns has {} values",
            self.def.primary_key.len(),
            key.len()
        );
        !key.is_empty() && self.key.encode(&key, to)
    }

    /// Appends a row: flags, and the columns that are not in the key. Returns false if the values
    /// do not match the types.
    pub(crate) fn encode_row(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        let start = to.len();
        // The length includes the flags. It must fit in 32 bits.
        self.encode_values(values, to) && u32::try_from(to.len() - start).is_ok()
    }

    fn encode_values(&self, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
        if self.stored.len() == values.len() {
            return encode(&self.row, values, to);
        }
        if self.stored.last().is_some_and(|last| *last >= values.len()) {
            return false;
        }
        let value = |at: &usize| values.get(*at).copied().unwrap_or(Value::Null);
        let stored: SmallVec<[Value<'_>; 16]> = self.stored.iter().map(value).collect();
        encode(&self.row, &stored, to)
    }

    /// Appends the key and the value of a row's index entry. Returns false if the values do not
    /// match the types.
    pub(crate) fn encode_entry(
        &self,
        index: &Index,
        row: &RowRef<'_>,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> bool {
        let columns: SmallVec<[Value<'_>; 4]> =
            index.def.columns.iter().map(|key| row.get(key.column)).collect();
        let primary = row.key();
        if !index.key.encode(&columns, key) {
            return false;
        }
        debug_assert!(value.is_empty(), "an index entry begins with {} bytes of another one", value.len());
        let is_unique = index.def.unique && columns.iter().all(|value| *value != Value::Null);
        value.push(0);
        value.extend((primary.len() as u16).to_le_bytes());
        if is_unique {
            value.extend(primary);
        } else {
            key.extend(primary);
        }
        let included: Vec<Value<'_>> = index.include.iter().map(|&column| row.get(column)).collect();
        index.include.is_empty() || index.included.encode(&included, value)
    }

    /// Reads a row from its key and its bytes, which are flags and columns. Returns `None` if the
    /// bytes are not a row.
    pub(crate) fn row<'a>(&'a self, key: &'a [u8], bytes: &'a [u8]) -> Option<RowRef<'a>> {
        let (&flags, bytes) = bytes.split_first()?;
        let row = if flags & WIDE == 0 { self.row.read(bytes) } else { self.row.read_wide(bytes) };
        Some(RowRef { table: self, index: None, tree_key: key, primary: key, row })
    }

    /// Returns a row without stored columns: those read as NULL.
    pub(crate) fn no_row<'a>(&'a self, key: &'a [u8]) -> RowRef<'a> {
        RowRef { table: self, index: None, tree_key: key, primary: key, row: self.row.read(&[]) }
    }

    /// Reads a row from its index entry. Returns `None` if the bytes are not an entry.
    pub(crate) fn entry<'a>(&'a self, index: usize, key: &'a [u8], bytes: &'a [u8]) -> Option<RowRef<'a>> {
        let found = self.indexes.get(index)?;
        let (_, rest) = bytes.split_first()?;
        let (len, rest) = rest.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_le_bytes(*len));
        // The key of a unique entry without NULL consists of the index's own columns only.
        let (primary, included) =
            match found.def.unique && found.key.offset(found.key.len(), key)? == key.len() {
                true => rest.split_at_checked(len)?,
                false => (key.get(key.len().checked_sub(len)?..)?, rest),
            };
        let row = found.included.read(included);
        Some(RowRef { table: self, index: Some(found), tree_key: key, primary, row })
    }
}

fn encode(format: &RowFormat, values: &[Value<'_>], to: &mut Vec<u8>) -> bool {
    if format.is_wide(values) {
        to.push(WIDE);
        return format.encode_wide(values, to);
    }
    to.push(0);
    format.encode(values, to)
}

/// A row, read in place: in a table, or in an index that has some of its columns.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'a> {
    table: &'a Table,
    index: Option<&'a Index>,
    tree_key: &'a [u8],
    primary: &'a [u8],
    row: Row<'a>,
}

impl<'a> RowRef<'a> {
    /// Returns the value of a column by its position in the table. Returns NULL for a column that
    /// the index does not contain ([`Table::index_covers`]), and for bytes that are not a row,
    /// which checksums rule out.
    #[inline]
    pub fn get(&self, column: usize) -> Value<'a> {
        self.get_as(column, OrNull)
    }

    /// Like [`RowRef::get`], but converts the value with `make` where it is read. A missing value
    /// becomes `make`'s substitute for it.
    #[inline]
    pub fn get_as<M: Make<'a>>(&self, column: usize, make: M) -> M::Made {
        let (places, key) = match self.index {
            None => (&self.table.places, &self.table.key),
            Some(index) => (&index.places, &index.key),
        };
        match places.get(column) {
            Some(Place::Row(at)) => self.row.get_as(*at, make),
            Some(Place::Key(at)) => key.get_as(*at, self.tree_key, make),
            Some(Place::Primary(at)) => self.table.key.get_as(*at, self.primary, make),
            Some(Place::Elsewhere) | None => make.absent(),
        }
    }

    /// Returns the key of the row in its table, encoded by [`Table::key_format`].
    pub fn key(&self) -> &'a [u8] {
        self.primary
    }

    /// Returns the table of the row.
    pub fn table(&self) -> &'a Table {
        self.table
    }

    /// Returns all values in column order.
    pub fn values(&self) -> Vec<Value<'a>> {
        (0..self.table.def.columns.len()).map(|column| self.get(column)).collect()
    }
}
