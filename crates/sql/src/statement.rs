//! Prepared statements.

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Current};

use crate::outcome::Column;
use crate::session::{Plan, Planned};

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
    /// FETCH and EXECUTE: rows of a cursor, or what a statement of PREPARE gives. What its columns
    /// are depends on what has that name when it runs.
    Fetch,
    /// CREATE, ALTER, DROP, SET, DECLARE, CLOSE and the like.
    Utility,
}

/// A prepared statement: parsed, bound to tables, with types of parameters and columns known. Cheap
/// to clone. Any connection of its database runs it; it is planned anew when the tables have
/// changed.
#[derive(Debug, Clone)]
pub struct Statement(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sql: String,
    /// Types of parameters that the caller gave.
    given: Vec<Option<ColumnType>>,
    /// As it was prepared first.
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

    /// Whether that is its plan.
    #[inline]
    pub(crate) fn is_planned(&self, planned: &Arc<Planned>) -> bool {
        self.0.planned.is(planned)
    }

    pub(crate) fn set(&self, planned: &Arc<Planned>) {
        self.0.planned.store(Arc::clone(planned));
    }

    /// Whether its rows have the columns that they had when it was prepared.
    pub(crate) fn is_as_prepared(&self, planned: &Arc<Planned>) -> bool {
        let (old, new) = (&self.0.first.columns, &planned.columns);
        Arc::ptr_eq(old, new)
            || old.len() == new.len() && old.iter().zip(new.iter()).all(|(a, b)| a.kind == b.kind)
    }

    /// Its text.
    pub fn sql(&self) -> &str {
        &self.0.sql
    }

    /// What it does.
    pub fn kind(&self) -> StatementKind {
        self.0.first.kind
    }

    /// The name of the cursor that it declares; `None` where it does not.
    pub fn declares(&self) -> Option<&str> {
        match &self.0.first.plan {
            Plan::Declare(declare) => Some(&declare.declared.name),
            _ => None,
        }
    }

    /// Whether it runs outside of transactions only, and so never together with others: VACUUM and
    /// DISCARD ALL.
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

    /// The columns of its rows; none where it gives no rows.
    pub fn columns(&self) -> &[Column] {
        &self.0.first.columns
    }
}
