//! What is known of a result's column.

use cairn_table::schema::ColumnType;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
    /// Where it comes from, as it is: the table's number, and the column's among the table's.
    pub table: Option<(u32, u16)>,
}

impl Column {
    /// A column that comes from no table.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Column { name: name.into(), kind, table: None }
    }
}
