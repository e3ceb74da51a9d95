//! Encoding of the catalog's records.
//!
//! ```text
//!   key      kind u8 | number u32, big endian
//!            kinds: 1 table, 2 view, 3 namespace, 4 statistics of a table
//!   text     length u32 | UTF-8
//!   list     count u32 | the elements, back to back
//!   option   u8: 0 none, 1 some | the value
//!   numbers  u32, little endian; column numbers too
//! ```
//!
//! The layout of each record is defined by its pair of functions that write and read it. The first
//! byte of a record is the version of its layout.

use crate::row::{Order, Type};
use crate::schema::{
    CheckDef, ColumnDef, ColumnType, ForeignKeyDef, Identity, IndexDef, KeyColumn, Referential, TableDef,
    ViewDef,
};

/// Encodes the parts of a record.
#[derive(Debug, Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert!(u32::try_from(bytes.len()).is_ok(), "a record has a part of {} bytes", bytes.len());
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(super) fn list<T>(&mut self, values: &[T], mut write: impl FnMut(&mut Self, &T)) {
        debug_assert!(u32::try_from(values.len()).is_ok(), "a list has {} elements", values.len());
        self.u32(values.len() as u32);
        values.iter().for_each(|value| write(self, value));
    }
}

/// Decodes the output of [`Writer`]. Returns `None` for any other bytes.
#[derive(Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Some(None) }
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        // Every element takes at least one byte, so a wrong count fails before it can allocate
        // much.
        let mut values = Vec::with_capacity((count as usize).min(self.0.len()));
        for _ in 0..count {
            values.push(read(self)?);
        }
        Some(values)
    }
}

const LAYOUT: u8 = 1;

/// The layout of tables that have identity columns: one more byte per column. Older versions do not
/// know this layout and refuse such a table. Otherwise they would accept any value for the identity
/// column.
const WITH_IDENTITY: u8 = 2;
const _: () = assert!(LAYOUT < WITH_IDENTITY);

/// The last layouts that this build knows.
pub(super) const TABLE_LAYOUT_LAST: u8 = WITH_IDENTITY;
pub(super) const VIEW_LAYOUT_LAST: u8 = LAYOUT;

const TYPES: [Type; 14] = [
    Type::Boolean,
    Type::SmallInt,
    Type::Int,
    Type::BigInt,
    Type::Real,
    Type::Double,
    Type::Decimal,
    Type::Text,
    Type::Blob,
    Type::Date,
    Type::Time,
    Type::Timestamp,
    Type::Interval,
    Type::Uuid,
];

fn put_type(to: &mut Writer, kind: &ColumnType) {
    debug_assert!(TYPES.contains(&kind.kind), "type {:?} has no number", kind.kind);
    debug_assert!(!kind.is_list, "a column has the list type {kind}");
    // Every type is in the list. Its position there is its number on disk.
    to.u8(TYPES.iter().position(|other| *other == kind.kind).unwrap_or_default() as u8);
    to.option(kind.length, Writer::u32);
    to.option(kind.decimal, |to, (precision, scale)| {
        to.u8(precision);
        to.u8(scale);
    });
    to.u8(u8::from(kind.is_json) | u8::from(kind.is_zoned) << 1);
}

fn get_type(from: &mut Reader<'_>) -> Option<ColumnType> {
    let kind = *TYPES.get(usize::from(from.u8()?))?;
    let length = from.option(Reader::u32)?;
    let decimal = from.option(|from| Some((from.u8()?, from.u8()?)))?;
    let more = from.u8().filter(|more| *more < 4)?;
    let (is_json, is_zoned) = (more & 1 != 0, more & 2 != 0);
    Some(ColumnType { kind, length, decimal, is_json, is_zoned, is_list: false })
}

fn put_key(to: &mut Writer, key: &KeyColumn) {
    debug_assert!(u32::try_from(key.column).is_ok(), "a key has column {}", key.column);
    to.u32(key.column as u32);
    to.u8(u8::from(key.order.descending) | u8::from(key.order.nulls_first) << 1);
}

fn get_key(from: &mut Reader<'_>) -> Option<KeyColumn> {
    let column = from.u32()? as usize;
    let bits = from.u8().filter(|bits| *bits < 4)?;
    Some(KeyColumn { column, order: Order { descending: bits & 1 == 1, nulls_first: bits & 2 == 2 } })
}

fn put_columns(to: &mut Writer, columns: &[usize]) {
    to.list(columns, |to, column| to.u32(*column as u32));
}

fn get_columns(from: &mut Reader<'_>) -> Option<Vec<usize>> {
    from.list(|from| from.u32().map(|column| column as usize))
}

/// Referential actions by their number in records. Older records also use 0, `NoAction`, for what
/// is now `Restrict`.
const ACTIONS: [Referential; 5] = [
    Referential::NoAction,
    Referential::Cascade,
    Referential::SetNull,
    Referential::SetDefault,
    Referential::Restrict,
];

/// The number of a type or an action is a byte.
const _: () = assert!(TYPES.len() <= u8::MAX as usize && ACTIONS.len() <= u8::MAX as usize);

fn put_action(to: &mut Writer, action: Referential) {
    debug_assert!(ACTIONS.contains(&action), "action {action:?} has no number");
    to.u8(ACTIONS.iter().position(|other| *other == action).unwrap_or_default() as u8);
}

fn get_action(from: &mut Reader<'_>) -> Option<Referential> {
    ACTIONS.get(usize::from(from.u8()?)).copied()
}

fn put_identity(to: &mut Writer, identity: Option<Identity>) {
    to.u8(match identity {
        None => 0,
        Some(Identity::ByDefault) => 1,
        Some(Identity::Always) => 2,
    });
}

fn get_identity(from: &mut Reader<'_>) -> Option<Option<Identity>> {
    match from.u8()? {
        0 => Some(None),
        1 => Some(Some(Identity::ByDefault)),
        2 => Some(Some(Identity::Always)),
        _ => None,
    }
}

/// Encodes a table: its definition and the roots of its trees, the row tree first, then the
/// indexes.
pub(super) fn put_table(def: &TableDef, roots: &[u32]) -> Vec<u8> {
    debug_assert!(
        roots.len() == def.indexes.len() + 1 && are_columns_sound(def),
        "table {} has {} trees and {} indexes, or a column that does not exist",
        def.name,
        roots.len(),
        def.indexes.len()
    );
    let mut to = Writer::default();
    let has_identity = def.columns.iter().any(|column| column.identity.is_some());
    to.u8(if has_identity { WITH_IDENTITY } else { LAYOUT });
    to.text(&def.schema);
    to.text(&def.name);
    to.list(roots, |to, root| to.u32(*root));
    to.list(&def.columns, |to, column| {
        to.text(&column.name);
        put_type(to, &column.kind);
        to.u8(column.nullable.into());
        to.option(column.default.as_deref(), Writer::text);
        if has_identity {
            put_identity(to, column.identity);
        }
    });
    to.list(&def.primary_key, put_key);
    to.option(def.primary_key_name.as_deref(), Writer::text);
    to.list(&def.indexes, |to, index| {
        to.text(&index.name);
        to.list(&index.columns, put_key);
        put_columns(to, &index.include);
        to.u8(u8::from(index.unique) | u8::from(index.is_constraint) << 1);
    });
    to.list(&def.checks, |to, check| {
        to.text(&check.name);
        to.text(&check.expression);
    });
    to.list(&def.foreign_keys, |to, key| {
        to.text(&key.name);
        put_columns(to, &key.columns);
        to.u32(key.table);
        put_columns(to, &key.references);
        put_action(to, key.on_delete);
        put_action(to, key.on_update);
    });
    to.0
}

pub(super) fn get_table(bytes: &[u8]) -> Option<(TableDef, Vec<u32>)> {
    let mut from = Reader(bytes);
    let from = &mut from;
    let has_identity = match from.u8()? {
        LAYOUT => false,
        WITH_IDENTITY => true,
        _ => return None,
    };
    let (schema, name) = (from.text()?, from.text()?);
    let roots = from.list(Reader::u32)?;
    let columns = from.list(|from| {
        let (name, kind, nullable) = (from.text()?, get_type(from)?, from.bool()?);
        let default = from.option(Reader::text)?;
        let identity = if has_identity { get_identity(from)? } else { None };
        Some(ColumnDef { name, kind, nullable, default, identity })
    })?;
    let primary_key = from.list(get_key)?;
    let primary_key_name = from.option(Reader::text)?;
    let indexes = from.list(|from| {
        let (name, columns, include) = (from.text()?, from.list(get_key)?, get_columns(from)?);
        let bits = from.u8().filter(|bits| *bits < 4)?;
        Some(IndexDef { name, columns, include, unique: bits & 1 == 1, is_constraint: bits & 2 == 2 })
    })?;
    let checks = from.list(|from| Some(CheckDef { name: from.text()?, expression: from.text()? }))?;
    let foreign_keys = from.list(|from| {
        let (name, columns, table) = (from.text()?, get_columns(from)?, from.u32()?);
        let references = get_columns(from)?;
        let (on_delete, on_update) = (get_action(from)?, get_action(from)?);
        Some(ForeignKeyDef { name, columns, table, references, on_delete, on_update })
    })?;
    let def =
        TableDef { schema, name, columns, primary_key, primary_key_name, indexes, checks, foreign_keys };
    let is_sound = from.0.is_empty() && roots.len() == def.indexes.len() + 1 && are_columns_sound(&def);
    is_sound.then_some((def, roots))
}

/// Returns whether every column number in the definition refers to an existing column.
fn are_columns_sound(def: &TableDef) -> bool {
    let own = def.primary_key.iter().map(|key| key.column);
    let indexes = def
        .indexes
        .iter()
        .flat_map(|index| index.columns.iter().map(|key| key.column).chain(index.include.iter().copied()));
    let foreign = def.foreign_keys.iter().flat_map(|key| key.columns.iter().copied());
    let columns = def.columns.len();
    own.chain(indexes).chain(foreign).all(|column| column < columns)
        && def.foreign_keys.iter().all(|key| key.columns.len() == key.references.len())
}

/// Encodes a view.
pub(super) fn put_view(def: &ViewDef) -> Vec<u8> {
    let mut to = Writer::default();
    to.u8(LAYOUT);
    to.text(&def.schema);
    to.text(&def.name);
    to.list(&def.columns, |to, name| to.text(name));
    to.text(&def.query);
    to.0
}

pub(super) fn get_view(bytes: &[u8]) -> Option<ViewDef> {
    let mut from = Reader(bytes);
    from.u8().filter(|layout| *layout == LAYOUT)?;
    let (schema, name) = (from.text()?, from.text()?);
    let columns = from.list(Reader::text)?;
    let query = from.text()?;
    from.0.is_empty().then_some(ViewDef { schema, name, columns, query })
}

#[cfg(test)]
mod tests;
