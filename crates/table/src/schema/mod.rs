//! What tables, columns, indexes and constraints are.
//!
//! Expressions (defaults, checks, bodies of views) are text in whatever language is above this
//! crate: it keeps them, and never reads them.

use std::fmt;

use crate::row::{Order, Type};

/// A column's type as somebody declared it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ColumnType {
    /// What its bytes are.
    pub kind: Type,
    /// The most characters of a text, and the most digits after the point of the seconds of a time;
    /// `None` for as many as there is room for.
    pub length: Option<u32>,
    /// Digits in all, and after the point, of a decimal. `None` for other types.
    pub decimal: Option<(u8, u8)>,
    /// Text that is JSON.
    pub is_json: bool,
    /// Timestamps whose texts may say how far they are from UTC. They are kept in UTC; for others
    /// what a text says of that counts for nothing.
    pub is_zoned: bool,
    /// Lists of such values. Statements may take them as parameters; no column is of such a type.
    pub is_list: bool,
}

impl ColumnType {
    /// A type without further limits; decimals have 38 digits, none of them after the point.
    pub const fn new(kind: Type) -> Self {
        let decimal = if matches!(kind, Type::Decimal) { Some((38, 0)) } else { None };
        ColumnType { kind, length: None, decimal, is_json: false, is_zoned: false, is_list: false }
    }

    /// Text of at most this many characters.
    pub const fn varchar(length: u32) -> Self {
        ColumnType { length: Some(length), ..ColumnType::new(Type::Text) }
    }

    /// Numbers of `precision` digits, `scale` of them after the point.
    pub const fn decimal(precision: u8, scale: u8) -> Self {
        ColumnType { decimal: Some((precision, scale)), ..ColumnType::new(Type::Decimal) }
    }

    /// Timestamps whose texts may have an offset from UTC.
    pub const fn zoned() -> Self {
        ColumnType { is_zoned: true, ..ColumnType::new(Type::Timestamp) }
    }

    /// Lists of values of this type.
    #[must_use]
    pub const fn list_of(self) -> Self {
        ColumnType { is_list: true, ..self }
    }

    /// What its values are lists of; `None` where they are no lists.
    pub fn element(&self) -> Option<ColumnType> {
        self.is_list.then(|| ColumnType { is_list: false, ..self.clone() })
    }

    /// Whether a foreign key may have a column of this type for one of the other: the same numbers
    /// are integers of any width, but no decimals of another scale.
    pub fn may_refer_to(&self, other: &ColumnType) -> bool {
        let scale = |kind: &ColumnType| kind.decimal.map(|(_, scale)| scale);
        let is_same = self.kind == other.kind && scale(self) == scale(other);
        is_same || (self.kind.is_integer() && other.kind.is_integer())
    }

    /// JSON, kept as text.
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
    /// As it is declared in SQL.
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

/// Who says what an identity column has in a row that is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Whoever inserts the row, and its sequence where they say nothing.
    ByDefault,
    /// Its sequence, unless a statement says that it overrides that.
    Always,
}

impl fmt::Display for Identity {
    /// As SQL has it behind GENERATED.
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
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The expression for rows that are inserted without it.
    pub default: Option<String>,
    /// Whether it is an identity column: `default` counts with a sequence of its own then. Whoever
    /// is above this crate keeps to it.
    pub identity: Option<Identity>,
}

/// A column of a key: its place among the table's columns, and how it is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Which of the table's columns.
    pub column: usize,
    /// How it is ordered.
    pub order: Order,
}

/// An index beside the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDef {
    /// Its name, of its own among all indexes.
    pub name: String,
    /// What it is ordered by.
    pub columns: Vec<KeyColumn>,
    /// Columns that it has besides, so that queries need not go to the table.
    pub include: Vec<usize>,
    /// Whether no two rows may have the same values, unless one of them is NULL.
    pub unique: bool,
    /// Whether a UNIQUE constraint of the table made it, so that it goes with that.
    pub is_constraint: bool,
}

/// A condition that no row may fail. NULL passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDef {
    /// Its name, of its own within the table.
    pub name: String,
    /// The condition.
    pub expression: String,
}

/// What happens to rows that refer to one that goes or gets another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Referential {
    /// The change is refused if they still refer to nothing when its statement is over.
    #[default]
    NoAction,
    /// As [`Referential::NoAction`], even where another row has the key by then that they refer to.
    Restrict,
    /// They go with it, or follow it.
    Cascade,
    /// They refer to nothing.
    SetNull,
    /// They get their default.
    SetDefault,
}

/// Columns that refer to a row of another table, or of the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyDef {
    /// Its name, of its own within the table.
    pub name: String,
    /// The columns here.
    pub columns: Vec<usize>,
    /// The other table, by its number.
    pub table: u32,
    /// The columns there: its primary key or the columns of a unique index, in the order of
    /// `columns`.
    pub references: Vec<usize>,
    /// When the other row goes.
    pub on_delete: Referential,
    /// When its key changes.
    pub on_update: Referential,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableDef {
    /// The namespace; `public` unless somebody says otherwise.
    pub schema: String,
    /// Its name, of its own among the tables and views of its namespace.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnDef>,
    /// What its rows are ordered by and told apart. Empty: by a number that each row gets.
    pub primary_key: Vec<KeyColumn>,
    /// The name of the constraint that the primary key is.
    pub primary_key_name: Option<String>,
    /// Its indexes.
    pub indexes: Vec<IndexDef>,
    /// Its checks.
    pub checks: Vec<CheckDef>,
    /// Its references.
    pub foreign_keys: Vec<ForeignKeyDef>,
}

impl TableDef {
    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// A stored query that reads like a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDef {
    /// The namespace.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Names of its columns; empty for those of the query.
    pub columns: Vec<String>,
    /// The query.
    pub query: String,
}
