//! What a statement was compiled to.

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;

use super::cursors::Declare;
use super::staged::Staged;
use crate::copy::Copy;
use crate::direct;
use crate::outcome::Column;
use crate::query::{Change, Query};
use crate::statement::StatementKind;
use crate::syntax::{Tree, deep};

/// A statement that is ready to run, as long as the catalog is the one that it was planned with.
#[derive(Debug)]
pub(crate) struct Planned {
    pub catalog: u64,
    /// Of the settings that names depend on.
    pub settings: u64,
    pub plan: Plan,
    pub parameters: Vec<ColumnType>,
    pub columns: Arc<[Column]>,
    pub kind: StatementKind,
    /// How deep it may be.
    pub levels: usize,
}

impl Drop for Planned {
    /// Where there is room on the stack for its depth, whoever has it last.
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
    /// One whose subqueries lock rows.
    Staged(Staged),
    Copy(Copy),
    Declare(Declare),
    Show(String),
    /// All others, which are short work from their trees.
    Utility(Tree),
}
