//! The hidden table of comments.
//!
//! A comment is a row: the kind of its subject, the number of the table or view, the name within
//! it, and the text.

use std::ops::Bound::Unbounded;

use cairn_table::row::{Order, Type, Value};
use cairn_table::schema::{ColumnDef, ColumnType, KeyColumn, TableDef};
use cairn_table::{Direction, RowBuf, Table, Transaction, View};
use cairn_vfs::sync::Arc;

use crate::error::Result;
use crate::runtime::sequence::HIDDEN;

pub(crate) const TABLE: &str = "comments";

/// The subject of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub kind: Kind,
    /// The number of the table or view; 0 for subjects that belong to none.
    pub relation: u32,
    /// The name of a column or an index; for a sequence its namespace and name, with a dot between.
    pub name: String,
}

/// The kinds of subjects of comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Relation,
    Column,
    Index,
    Sequence,
    Schema,
    Database,
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Relation, Kind::Column, Kind::Index, Kind::Sequence, Kind::Schema, Kind::Database];

    fn name(self) -> &'static str {
        match self {
            Kind::Relation => "relation",
            Kind::Column => "column",
            Kind::Index => "index",
            Kind::Sequence => "sequence",
            Kind::Schema => "schema",
            Kind::Database => "database",
        }
    }
}

/// Returns all comments visible in a view.
///
/// Errors: those of the table.
pub(crate) fn all(view: &View) -> Result<Vec<(About, String)>> {
    let Some(table) = view.catalog().table(HIDDEN, TABLE) else { return Ok(Vec::new()) };
    let mut scan = view.scan(table, None, (Unbounded, Unbounded), Direction::Forward)?;
    let mut all = Vec::new();
    while let Some(row) = scan.next()? {
        let (Value::Text(kind), Value::BigInt(relation), Value::Text(name), Value::Text(text)) =
            (row.get(0), row.get(1), row.get(2), row.get(3))
        else {
            continue;
        };
        let known = Kind::ALL.into_iter().find(|of| of.name() == kind);
        if let (Some(kind), Ok(relation)) = (known, u32::try_from(relation)) {
            all.push((About { kind, relation, name: name.to_owned() }, text.to_owned()));
        }
    }
    Ok(all)
}

pub(crate) fn key_of(table: &Table, about: &About) -> Vec<u8> {
    let mut key = Vec::new();
    let values =
        [Value::Text(about.kind.name()), Value::BigInt(about.relation.into()), Value::Text(&about.name)];
    // The values have the types of the key's columns.
    let _ = table.key_format().encode(&values, &mut key);
    key
}

pub(crate) fn put(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    about: &About,
    text: &str,
) -> Result<()> {
    let (key, mut row) = (key_of(table, about), RowBuf::default());
    let values = [
        Value::Text(about.kind.name()),
        Value::BigInt(about.relation.into()),
        Value::Text(&about.name),
        Value::Text(text),
    ];
    if transaction.lock(table, &key, &mut row)? {
        transaction.update(table, &key, &values)?;
        return Ok(());
    }
    Ok(transaction.insert(table, &values)?)
}

/// Returns the table of comments, and creates it at the first call.
pub(crate) fn table(transaction: &mut Transaction) -> Result<Arc<Table>> {
    if let Some(table) = transaction.view().catalog().table(HIDDEN, TABLE) {
        return Ok(Arc::clone(table));
    }
    if !transaction.view().catalog().has_schema(HIDDEN) {
        transaction.create_schema(HIDDEN)?;
    }
    let column = |name: &str, kind: Type| ColumnDef {
        name: name.to_owned(),
        kind: ColumnType::new(kind),
        nullable: false,
        default: None,
        identity: None,
    };
    let key = |column| KeyColumn { column, order: Order::default() };
    let def = TableDef {
        schema: HIDDEN.to_owned(),
        name: TABLE.to_owned(),
        columns: vec![
            column("kind", Type::Text),
            column("relation", Type::BigInt),
            column("name", Type::Text),
            column("text", Type::Text),
        ],
        primary_key: vec![key(0), key(1), key(2)],
        primary_key_name: Some("comments_pkey".to_owned()),
        ..TableDef::default()
    };
    Ok(transaction.create_table(def)?)
}
