//! Result columns.

use cairn_table::schema::ColumnType;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
    /// The element type, if its values are lists. Lists are returned as text in PostgreSQL's array
    /// notation: `{1,2,NULL}`.
    pub element: Option<ColumnType>,
    /// The origin of a plain column: the table's number, and the column's number within the table.
    pub table: Option<(u32, u16)>,
}

impl Column {
    /// Returns a column without an origin.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Column { name: name.into(), kind, element: None, table: None }
    }
}
