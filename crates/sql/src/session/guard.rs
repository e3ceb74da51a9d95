//! The session as the reader of a statement's rows sees it.

use super::Session;
use crate::error::{Error, Result};
use crate::expr::Context;
use crate::rows::{Source, Walk};

/// A statement whose rows are being read, which may continue meanwhile. Dropping the guard does not
/// end it: the reader calls [`StatementGuard::end`] after the last row, after an error, and when
/// its rows are no longer wanted.
#[derive(Debug)]
pub(crate) struct StatementGuard<'c> {
    session: &'c mut Session,
    /// The statement has not ended.
    open: bool,
}

impl<'c> StatementGuard<'c> {
    /// Guards a statement. `open` says that it has not ended yet.
    pub fn new(session: &'c mut Session, open: bool) -> Self {
        StatementGuard { session, open }
    }

    /// The context of expressions.
    #[inline]
    pub fn context(&self) -> &dyn Context {
        &self.session.context
    }

    /// Whether a cursor is BINARY.
    pub fn is_binary(&self, cursor: &str) -> bool {
        self.session.cursors.get(cursor).is_some_and(|cursor| cursor.facts.declared.is_binary)
    }

    /// Returns a cursor's rows after a fetch.
    pub fn give_back(&mut self, walk: Walk) {
        self.session.cursors.give_back(walk);
    }

    /// Ends the statement, unless it has ended.
    ///
    /// Errors: those of ending it.
    pub fn end(&mut self, succeeded: bool) -> Result<()> {
        if std::mem::take(&mut self.open) { self.session.end_statement(succeeded) } else { Ok(()) }
    }

    /// Returns the error as it is reported.
    pub fn explain(&self, error: Error) -> Error {
        self.session.explain(error)
    }

    /// Takes the buffers of a source back, for the next statement.
    pub fn recycle(&mut self, source: &mut Source) {
        if let Source::Point { row, .. } = source {
            self.session.row = std::mem::take(row);
        }
    }
}
