//! What a connection is in the middle of: its transaction, settings, statements.

mod context;
mod cursors;
mod first_rows;
mod notice;
mod plan;
mod prepare;
mod rules;
mod run;
mod settings;
mod staged;
mod transaction;
mod utility;

use std::collections::HashMap;

use cairn_table::{Canceller, RowBuf, Spare};
use cairn_vfs::sync::Arc;

pub(crate) use context::SessionContext;
pub(crate) use cursors::{CursorFacts, Cursors, Walk};
pub use notice::Notice;
pub(crate) use plan::{Plan, Planned};
pub(crate) use settings::Settings;
pub(crate) use transaction::Open;
pub use transaction::TransactionStatus;

use crate::database::Shared;
use crate::pg_catalog::{Changes, ViewColumns};
use crate::query::Engine;
use crate::statement::Statement;

/// Prepared statements that a connection keeps by their text.
const MOST_CACHED: usize = 512;

/// Everything that belongs to a connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub shared: Arc<Shared>,
    pub open: Option<Open>,
    /// What the last transaction has left to the next one.
    spare: Option<Spare>,
    /// What expressions may ask for.
    pub context: SessionContext,
    pub canceller: Canceller,
    /// While a cursor's query begins: what stops its run, which is to go on when another statement is stopped.
    pub apart: Option<Canceller>,
    pub timer: Option<crate::database::Timer>,
    pub notices: Vec<Notice>,
    /// What the last statement ran with: the next one is often the same.
    last: Option<Arc<Planned>>,
    /// Statements by text, for calls that give only that.
    cache: HashMap<String, Statement>,
    /// Those of PREPARE.
    named: HashMap<String, Statement>,
    pub cursors: Cursors,
    /// The general path's, once it was needed.
    pub engine: Option<Engine>,
    /// Spare buffers of point reads.
    pub key: Vec<u8>,
    pub row: RowBuf,
    /// A number of its own: what `pg_backend_pid` says.
    pub backend: u32,
    /// What `set_config` was called with in the statement that runs.
    pub changes: Changes,
    /// The columns of views, of the catalog and the settings of these versions.
    pub view_columns: Option<((u64, u64), Arc<ViewColumns>)>,
}

impl Session {
    pub fn new(shared: Arc<Shared>) -> Self {
        let backend = shared.take_backend();
        Session {
            open: None,
            spare: None,
            context: SessionContext::new(Arc::clone(&shared), backend),
            canceller: Canceller::new(),
            apart: None,
            timer: None,
            notices: Vec::new(),
            last: None,
            cache: HashMap::new(),
            named: HashMap::new(),
            cursors: Cursors::default(),
            engine: None,
            key: Vec::new(),
            row: RowBuf::default(),
            backend,
            changes: Changes::default(),
            view_columns: None,
            shared,
        }
    }

    /// Keeps a statement for the next call with its text.
    pub fn keep(&mut self, statement: &Statement) {
        if self.cache.len() >= MOST_CACHED {
            // Whatever is used again comes back at the price of a parse.
            self.cache.clear();
        }
        self.cache.insert(statement.sql().to_owned(), statement.clone());
    }

    pub fn kept(&self, sql: &str) -> Option<Statement> {
        self.cache.get(sql).cloned()
    }

    pub fn warn(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "WARNING", sqlstate, message: message.into() });
    }

    pub fn notice(&mut self, sqlstate: &'static str, message: impl Into<String>) {
        self.notices.push(Notice { severity: "NOTICE", sqlstate, message: message.into() });
    }
}
