//! Prepared statements.

use std::sync::Arc;

use cairn_table::schema::ColumnType;

use crate::outcome::Column;

/// What a statement does, as far as its caller may want to know before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementKind {
    /// Nothing at all: only blanks and comments.
    Empty,
    /// SELECT, VALUES, EXPLAIN, SHOW: reads, and gives rows.
    Query,
    /// INSERT, UPDATE, DELETE.
    Change,
    /// COPY.
    Copy,
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE.
    Transaction,
    /// CREATE, ALTER, DROP, SET and the like.
    Utility,
}

/// A prepared statement: parsed, bound to tables, with types of parameters and columns known. Cheap to clone. Any connection of its database runs it; it is
/// planned anew when the tables have changed.
#[derive(Debug, Clone)]
pub struct Statement(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sql: String,
    kind: StatementKind,
    parameters: Vec<ColumnType>,
    columns: Arc<[Column]>,
}

impl Statement {
    /// Its text.
    pub fn sql(&self) -> &str {
        &self.0.sql
    }

    /// What it does.
    pub fn kind(&self) -> StatementKind {
        self.0.kind
    }

    /// The types of `$1`, `$2` and so on.
    pub fn parameters(&self) -> &[ColumnType] {
        &self.0.parameters
    }

    /// The columns of its rows; none where it gives no rows.
    pub fn columns(&self) -> &[Column] {
        &self.0.columns
    }
}
