//! Statements as they are prepared: data only.

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Current};
use sqlparser::ast::Statement as SyntaxTree;

use crate::column::Column;
use crate::copy::Copy;
use crate::direct;
use crate::session::{GeneralChange, GeneralQuery};
use crate::syntax::{Declared, Tree, deep};

/// The results of planning: the plan, the types of its parameters, and its columns.
pub(super) type Found = (Plan, Vec<Option<ColumnType>>, Vec<Column>);

/// A statement that is ready to run, as long as the catalog has the version that it was planned
/// for.
#[derive(Debug)]
pub(crate) struct Planned {
    pub catalog: u64,
    /// The version of the settings that names depend on.
    pub settings: u64,
    pub plan: Plan,
    pub parameters: Vec<ColumnType>,
    pub columns: Arc<[Column]>,
    pub kind: StatementKind,
    /// An upper limit of its nesting depth.
    pub levels: usize,
}

impl Drop for Planned {
    /// Drops the plan with enough stack for its depth, on whichever thread that happens.
    fn drop(&mut self) {
        let plan = std::mem::replace(&mut self.plan, Plan::Empty);
        deep(self.levels, || drop(plan));
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each statement, behind a pointer")]
pub(crate) enum Plan {
    Empty,
    Select(Arc<direct::SelectPlan>),
    Insert(direct::Insert),
    Update(direct::Update),
    Delete(direct::Delete),
    /// A query of the general path.
    Query(Box<dyn GeneralQuery>),
    /// A change whose rows come from the general path.
    Change(Box<dyn GeneralChange>),
    /// A statement whose subqueries lock rows.
    LockingSubqueries(LockingSubqueries),
    Copy(Copy),
    Declare(Declare),
    Show(String),
    /// Any other statement, which is run directly from its syntax tree.
    Utility(Tree),
}

/// A planned DECLARE.
#[derive(Debug)]
pub(crate) struct Declare {
    pub declared: Declared,
    pub query: Statement,
}

/// A statement whose subqueries lock rows.
#[derive(Debug)]
pub(crate) struct LockingSubqueries {
    pub(super) tree: Box<SyntaxTree>,
    pub(super) subqueries: Vec<Subquery>,
    /// The statement's own parameters. Those that replace subqueries follow them.
    pub(super) params: Vec<Option<ColumnType>>,
}

/// A subquery that locks rows.
#[derive(Debug)]
pub(crate) struct Subquery {
    pub(super) select: direct::Select,
    pub(super) names: Vec<String>,
    pub(super) kinds: Vec<ColumnType>,
    pub(super) place: Place,
}

/// The position of a subquery that locks rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// After IN.
    List,
    /// As a scalar value.
    Value,
    /// In WITH, or in FROM.
    Rows,
}

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
    sql: Arc<str>,
    /// The parameter types given by the caller.
    given: Vec<Option<ColumnType>>,
    /// The first plan.
    first: Arc<Planned>,
    planned: Current<Planned>,
}

impl Statement {
    pub(crate) fn new(sql: String, given: Vec<Option<ColumnType>>, planned: Planned) -> Self {
        let first = Arc::new(planned);
        Statement(Arc::new(Inner {
            sql: sql.into(),
            given,
            planned: Current::new(Arc::clone(&first)),
            first,
        }))
    }

    /// The text, to be shared.
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.0.sql)
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
