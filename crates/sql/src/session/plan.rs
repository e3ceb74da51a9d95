//! Compiled statements.

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use super::cursors::Declare;
use super::locking_subqueries::LockingSubqueries;
use crate::column::Column;
use crate::copy::Copy;
use crate::direct;
use crate::general::{Change, Query};
use crate::statement::StatementKind;
use crate::syntax::{Tree, deep};

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
    Select(direct::Select),
    Insert(direct::Insert),
    Update(direct::Update),
    Delete(direct::Delete),
    /// A query of the general path.
    Query(Query),
    /// A change whose rows come from the general path.
    Change(Change),
    /// A statement whose subqueries lock rows.
    LockingSubqueries(LockingSubqueries),
    Copy(Copy),
    Declare(Declare),
    Show(String),
    /// Any other statement, which is run directly from its syntax tree.
    Utility(Tree),
}
