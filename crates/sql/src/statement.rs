//! Prepared statements.

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Current};

use crate::column::Column;
use crate::session::{Plan, Planned};

/// The kind of a statement, known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementKind {
    /// Only blanks and comments.
    Empty,
    /// SELECT, VALUES, EXPLAIN, SHOW: reads and returns rows.
    Query,
    /// INSERT, UPDATE, DELETE.
    Change,
    /// COPY.
    Copy,
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, RELEASE.
    Transaction,
    /// FETCH and EXECUTE: rows of a cursor, or the result of a statement of PREPARE. Their columns
    /// depend on the cursor or statement that has the name at run time.
    Fetch,
    /// CREATE, ALTER, DROP, SET, DECLARE, CLOSE and the like.
    Utility,
}

/// A prepared statement: parsed and bound to tables, with known parameter types and columns. It is
/// cheap to clone, and any connection of its database can run it. It is replanned after the tables
/// have changed.
#[derive(Debug, Clone)]
pub struct Statement(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sql: String,
    /// The parameter types given by the caller.
    given: Vec<Option<ColumnType>>,
    /// The first plan.
    first: Arc<Planned>,
    planned: Current<Planned>,
}

impl Statement {
    pub(crate) fn new(sql: String, given: Vec<Option<ColumnType>>, planned: Planned) -> Self {
        let first = Arc::new(planned);
        Statement(Arc::new(Inner { sql, given, planned: Current::new(Arc::clone(&first)), first }))
    }

    pub(crate) fn given(&self) -> &[Option<ColumnType>] {
        &self.0.given
    }

    pub(crate) fn planned(&self) -> Arc<Planned> {
        self.0.planned.load_full()
    }

    /// Whether this is the current plan.
    #[inline]
    pub(crate) fn is_planned(&self, planned: &Arc<Planned>) -> bool {
        self.0.planned.is(planned)
    }

    pub(crate) fn set(&self, planned: &Arc<Planned>) {
        self.0.planned.store(Arc::clone(planned));
    }

    /// Whether its rows still have the columns that they had when it was prepared.
    pub(crate) fn is_as_prepared(&self, planned: &Arc<Planned>) -> bool {
        let (old, new) = (&self.0.first.columns, &planned.columns);
        Arc::ptr_eq(old, new)
            || old.len() == new.len() && old.iter().zip(new.iter()).all(|(a, b)| a.kind == b.kind)
    }

    /// The text of the statement.
    pub fn sql(&self) -> &str {
        &self.0.sql
    }

    /// The kind of the statement.
    pub fn kind(&self) -> StatementKind {
        self.0.first.kind
    }

    /// The name of the cursor that it declares; `None` for other statements.
    pub fn declares(&self) -> Option<&str> {
        match &self.0.first.plan {
            Plan::Declare(declare) => Some(&declare.declared.name),
            _ => None,
        }
    }

    /// Whether it only runs outside of a transaction, and so never together with other statements:
    /// VACUUM and DISCARD ALL.
    pub fn is_alone(&self) -> bool {
        match &self.0.first.plan {
            Plan::Utility(tree) => tree.is_alone(),
            _ => false,
        }
    }

    /// The types of `$1`, `$2` and so on.
    pub fn parameters(&self) -> &[ColumnType] {
        &self.0.first.parameters
    }

    pub(crate) fn own_columns(&self) -> Arc<[Column]> {
        Arc::clone(&self.0.first.columns)
    }

    /// The columns of its rows; empty if it returns no rows.
    pub fn columns(&self) -> &[Column] {
        &self.0.first.columns
    }
}
