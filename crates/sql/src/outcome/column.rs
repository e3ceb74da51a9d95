//! What is known of a result's column.

use cairn_table::schema::ColumnType;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ColumnType,
    /// What its values are lists of. They are texts then, as PostgreSQL writes arrays:
    /// `{1,2,NULL}`.
    pub element: Option<ColumnType>,
    /// Where it comes from, as it is: the table's number, and the column's among the table's.
    pub table: Option<(u32, u16)>,
}

impl Column {
    /// A column that comes from no table.
    pub fn new(name: impl Into<String>, kind: ColumnType) -> Self {
        Column { name: name.into(), kind, element: None, table: None }
    }
}
