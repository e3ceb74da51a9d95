//! Definitions of tables, columns, indexes and constraints.
//!
//! Expressions (defaults, checks, bodies of views) are text in the language of the layer above.
//! This crate stores them and never interprets them.

use std::fmt;

use crate::row::{Order, Type};

/// The declared type of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ColumnType {
    /// The physical type of the values.
    pub kind: Type,
    /// Maximum number of characters of a text, or of fractional digits of a time's seconds. `None`
    /// for no limit.
    pub length: Option<u32>,
    /// Precision and scale of a decimal: total digits, and digits after the decimal point. `None`
    /// for other types.
    pub decimal: Option<(u8, u8)>,
    /// Whether the text is JSON.
    pub is_json: bool,
    /// Whether the texts of these timestamps may have an offset from UTC. Such timestamps are
    /// stored in UTC. Other timestamps ignore an offset in their text.
    pub is_zoned: bool,
    /// Whether this is a list of such values. Statements may take lists as parameters, but columns
    /// cannot be of such a type.
    pub is_list: bool,
}

impl ColumnType {
    /// Creates a type without further limits. A decimal has 38 digits, none of them after the
    /// decimal point.
    pub const fn new(kind: Type) -> Self {
        let decimal = if matches!(kind, Type::Decimal) { Some((38, 0)) } else { None };
        ColumnType { kind, length: None, decimal, is_json: false, is_zoned: false, is_list: false }
    }

    /// Returns the type of text with at most this many characters.
    pub const fn varchar(length: u32) -> Self {
        ColumnType { length: Some(length), ..ColumnType::new(Type::Text) }
    }

    /// Returns the type of decimals with `precision` digits, `scale` of them after the decimal
    /// point.
    pub const fn decimal(precision: u8, scale: u8) -> Self {
        ColumnType { decimal: Some((precision, scale)), ..ColumnType::new(Type::Decimal) }
    }

    /// Returns the type of timestamps whose texts may have an offset from UTC.
    pub const fn zoned() -> Self {
        ColumnType { is_zoned: true, ..ColumnType::new(Type::Timestamp) }
    }

    /// Returns the type of lists of values of this type.
    #[must_use]
    pub const fn list_of(self) -> Self {
        ColumnType { is_list: true, ..self }
    }

    /// Returns the element type of a list type, or `None` for other types.
    pub fn element(&self) -> Option<ColumnType> {
        self.is_list.then(|| ColumnType { is_list: false, ..self.clone() })
    }

    /// Returns whether a foreign key column of this type may reference a column of the other type.
    /// The type must be the same, and for decimals the scale too. Integers of any width are
    /// interchangeable.
    pub fn may_refer_to(&self, other: &ColumnType) -> bool {
        let scale = |kind: &ColumnType| kind.decimal.map(|(_, scale)| scale);
        let is_same = self.kind == other.kind && scale(self) == scale(other);
        is_same || (self.kind.is_integer() && other.kind.is_integer())
    }

    /// Returns the type of JSON, which is stored as text.
    pub const fn json() -> Self {
        ColumnType { is_json: true, ..ColumnType::new(Type::Text) }
    }
}

impl From<Type> for ColumnType {
    fn from(kind: Type) -> Self {
        ColumnType::new(kind)
    }
}

impl fmt::Display for ColumnType {
    /// Formats the type as SQL declares it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(element) = self.element() {
            return write!(f, "{element}[]");
        }
        if self.is_json {
            return f.write_str("json");
        }
        let name = match self.kind {
            Type::Time => "time",
            Type::Timestamp if self.is_zoned => "timestamptz",
            Type::Timestamp => "timestamp",
            Type::Interval => "interval",
            _ => "varchar",
        };
        match (self.length, self.decimal) {
            (Some(length), _) => write!(f, "{name}({length})"),
            (None, Some((precision, scale))) => write!(f, "decimal({precision},{scale})"),
            (None, None) => f.write_str(match self.kind {
                Type::Boolean => "boolean",
                Type::SmallInt => "smallint",
                Type::Int => "int",
                Type::BigInt => "bigint",
                Type::Real => "real",
                Type::Double => "double precision",
                Type::Decimal => "decimal",
                Type::Text => "text",
                Type::Blob => "bytea",
                Type::Date => "date",
                Type::Time | Type::Timestamp => name,
                Type::Interval => "interval",
                Type::Uuid => "uuid",
            }),
        }
    }
}

/// The rule for the value of an identity column in an inserted row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The inserted value, or the next value of the sequence if none is given.
    ByDefault,
    /// The next value of the sequence, unless the statement explicitly overrides it.
    Always,
}

impl fmt::Display for Identity {
    /// Formats the rule as in SQL, after GENERATED.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Identity::ByDefault => "BY DEFAULT",
            Identity::Always => "ALWAYS",
        })
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    /// The name of the column.
    pub name: String,
    /// The type of the column.
    pub kind: ColumnType,
    /// Whether the column may be NULL.
    pub nullable: bool,
    /// The expression for rows that are inserted without a value for the column.
    pub default: Option<String>,
    /// The kind of identity column, if it is one: `default` then takes the next value of a sequence
    /// of its own. The layer above enforces the rule.
    pub identity: Option<Identity>,
}

/// A column of a key: its position in the table, and its sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// The position among the table's columns.
    pub column: usize,
    /// The sort order.
    pub order: Order,
}

/// A secondary index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// The name, unique among all indexes.
    pub name: String,
    /// The key columns.
    pub columns: Vec<KeyColumn>,
    /// Included columns: stored in the index so that queries need not fetch the row from the table.
    pub include: Vec<usize>,
    /// Whether two rows must not have the same values, unless one of the values is NULL.
    pub unique: bool,
    /// Whether a UNIQUE constraint of the table created the index, so that dropping the constraint
    /// drops it.
    pub is_constraint: bool,
}

/// A check: a condition that must not be false for any row. NULL passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDef {
    /// The name, unique within the table.
    pub name: String,
    /// The condition.
    pub expression: String,
}

/// The action on referencing rows when the row that they reference is deleted or gets another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Referential {
    /// Refuses the change if some rows still lack a referenced row at the end of the statement.
    #[default]
    NoAction,
    /// Like [`Referential::NoAction`], but refuses even if another row has the referenced key by
    /// then.
    Restrict,
    /// Deletes the referencing rows, or changes their keys too.
    Cascade,
    /// Sets the referencing columns to NULL.
    SetNull,
    /// Sets the referencing columns to their defaults.
    SetDefault,
}

/// A foreign key: columns that reference a row of another table, or of the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// The name, unique within the table.
    pub name: String,
    /// The referencing columns.
    pub columns: Vec<usize>,
    /// The number of the referenced table.
    pub table: u32,
    /// The referenced columns: the primary key or the columns of a unique index, in the order of
    /// `columns`.
    pub references: Vec<usize>,
    /// The action when the referenced row is deleted.
    pub on_delete: Referential,
    /// The action when its key changes.
    pub on_update: Referential,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableDef {
    /// The namespace, `public` by default.
    pub schema: String,
    /// The name, unique among the tables and views of the namespace.
    pub name: String,
    /// The columns.
    pub columns: Vec<ColumnDef>,
    /// The primary key, which orders and identifies the rows. If empty, each row gets a row number
    /// instead.
    pub primary_key: Vec<KeyColumn>,
    /// The name of the primary key constraint.
    pub primary_key_name: Option<String>,
    /// The indexes.
    pub indexes: Vec<IndexDef>,
    /// The checks.
    pub checks: Vec<CheckDef>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKeyDef>,
}

impl TableDef {
    /// Returns the position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// A view: a stored query that is read like a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDef {
    /// The namespace.
    pub schema: String,
    /// The name.
    pub name: String,
    /// Names of the columns. If empty, those of the query.
    pub columns: Vec<String>,
    /// The query.
    pub query: String,
}
