//! The state of a connection: its transaction, settings and cursors. Statements are prepared and
//! run above it, in `executor/`.

mod catalog_state;
mod cursors;
mod general;
mod guard;
mod notice;
mod report;
mod rules;
mod settings;
mod transaction;

use std::any::Any;

use cairn_table::schema::ColumnType;
use cairn_table::{Canceller, ReusableTransaction, RowBuf};
use cairn_vfs::sync::Arc;
use sqlparser::ast::Statement as SyntaxTree;

pub(crate) use catalog_state::{SettingChange, SettingChanges, SnapshotMark, ViewColumns};
pub(crate) use cursors::{Cursor, CursorFacts, Cursors};
pub(crate) use general::{Changed, GeneralChange, GeneralPath, GeneralQuery, Planned};
pub(crate) use guard::StatementGuard;
pub use notice::Notice;
pub(crate) use report::naming;
pub use transaction::TransactionStatus;
pub(crate) use transaction::{Modes, Open};

use crate::error::Result;
use crate::runtime::{SessionContext, Shared, Timer};

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub shared: Arc<Shared>,
    pub open: Option<Open>,
    /// Parts of the last transaction for the next one to reuse.
    spare: Option<ReusableTransaction>,
    /// The context of expressions.
    pub context: SessionContext,
    pub canceller: Canceller,
    /// Whether a request to cancel applies to all statements of a message, until it is reset.
    pub keeps_cancels: bool,
    /// While a cursor's query starts: its own canceller, so that canceling another statement does
    /// not stop the cursor.
    pub cursor_canceller: Option<Canceller>,
    pub timer: Option<Timer>,
    pub notices: Vec<Notice>,
    /// The text of the current or last statement.
    pub running: Option<Arc<str>>,
    pub cursors: Cursors,
    /// The general path, and its state for this session once it has been used.
    pub general: &'static dyn GeneralPath,
    pub general_state: Option<Box<dyn Any + Send + Sync>>,
    /// Spare buffers of point reads.
    pub key: Vec<u8>,
    pub row: RowBuf,
    /// A unique number, which `pg_backend_pid` returns.
    pub backend: u32,
    /// The calls of `set_config` in the running statement.
    pub setting_changes: SettingChanges,
    /// Whether the plan contains a snapshot of the session.
    pub snapshots: SnapshotMark,
    /// The columns of views, with the versions of catalog and settings that they belong to.
    pub view_columns: Option<((u64, u64), Arc<ViewColumns>)>,
    /// The nesting depth of the statement being planned.
    pub levels: usize,
}

impl Session {
    pub fn new(shared: Arc<Shared>, backend: u32, general: &'static dyn GeneralPath) -> Self {
        Session {
            open: None,
            spare: None,
            context: SessionContext::new(Arc::clone(&shared), backend),
            canceller: Canceller::new(),
            keeps_cancels: false,
            cursor_canceller: None,
            timer: None,
            notices: Vec::new(),
            running: None,
            cursors: Cursors::default(),
            general,
            general_state: None,
            key: Vec::new(),
            row: RowBuf::default(),
            backend,
            setting_changes: SettingChanges::default(),
            snapshots: SnapshotMark::default(),
            view_columns: None,
            levels: 0,
            shared,
        }
    }

    /// Plans a query for the general path.
    ///
    /// Errors: those of planning the statement.
    pub fn plan_query(
        &mut self,
        tree: &SyntaxTree,
        types: &[Option<ColumnType>],
    ) -> Result<Planned<Box<dyn GeneralQuery>>> {
        let general = self.general;
        general.plan(self, tree, types)
    }

    pub fn warn(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "WARNING", sqlstate, message: message.into() });
    }

    pub fn notice(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "NOTICE", sqlstate, message: message.into() });
    }
}
