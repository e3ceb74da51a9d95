//! Execute: runs a portal, completely or some rows at a time.
//!
//! Rows that the client has not requested yet stay in the connection, in a cursor with the portal's
//! name. Other statements can run in between, and FETCH can use the cursor too. Conversely, Execute
//! accepts the name of a cursor created by DECLARE.

use std::io::{Read, Write};

use cairn_sql::{Column, Outcome, Rows, StatementKind, TransactionStatus};

use crate::codec::backend;
use crate::codec::frontend::{self, Message};
use crate::error::Failure;
use crate::net::wire::Wire;
use crate::sqlstate;

use super::extended::no_portal;
use super::message_error::MessageError;
use super::portal::{Portal, Progress, ResultFormats, SentRows};
use super::{Session, copy, rows};

impl<S: Read + Write> Session<S> {
    pub(super) fn execute(&mut self) -> Result<(), MessageError> {
        let Message::Execute(name, most) = frontend::decode(b'E', self.wire.body())? else {
            return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, "expected Execute").into());
        };
        self.check_alive(name)?;
        // The portal is removed from the session while it runs, because running it borrows the
        // session.
        if name.is_empty() {
            let mut portal = self.unnamed_portal.take().ok_or_else(|| no_portal(""))?;
            self.advance_or_close(&mut portal, "", most)?;
            self.unnamed_portal = Some(portal);
        } else if let Some((name, mut portal)) = self.portals.remove_entry(name) {
            self.advance_or_close(&mut portal, &name, most)?;
            self.portals.insert(name, portal);
        } else {
            let name = name.to_owned();
            self.connection.cursor(&name).ok_or_else(|| no_portal(&name))?;
            let rows = self.connection.fetch(&name, most.into())?;
            let columns = rows.columns().to_vec();
            send(&mut self.wire, rows, &columns, &ResultFormats::TEXT, most)?;
        }
        Ok(())
    }

    /// Refuses to run a statement in a failed transaction. A suspended portal stays, because it can
    /// continue after a rollback to a savepoint.
    ///
    /// Errors: 25P02.
    fn check_alive(&self, name: &str) -> Result<(), Failure> {
        use StatementKind::{Change, Copy, Fetch, Query};
        if self.connection.status() != TransactionStatus::Failed {
            return Ok(());
        }
        let reads_or_writes = match self.portal(name) {
            Some(portal) => matches!(portal.prepared.statement.kind(), Query | Change | Copy | Fetch),
            None => self.connection.cursor(name).is_some(),
        };
        if !reads_or_writes {
            return Ok(());
        }
        let message = "current transaction is aborted, commands ignored until end of transaction block";
        Err(Failure::new(sqlstate::IN_FAILED_SQL_TRANSACTION, message))
    }

    /// Advances a portal, and closes its cursor on failure. Another cursor with the same name stays
    /// open.
    fn advance_or_close(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), MessageError> {
        let before = self.connection.cursor_number(name);
        self.advance(portal, name, most).inspect_err(|_| {
            let cursor = self.connection.cursor_number(name);
            if cursor != before || portal.progress == Progress::Begun(cursor) {
                self.connection.close_cursor(name);
            }
        })
    }

    fn advance(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), MessageError> {
        let kind = portal.prepared.statement.kind();
        match portal.progress {
            Progress::Ready => {}
            Progress::Begun(cursor) => return self.go_on(portal, name, cursor, most),
            Progress::Done if kind == StatementKind::Query => {
                backend::command_complete(&mut self.wire.out, "SELECT 0");
                return Ok(());
            }
            Progress::Done => {
                let message = format!("portal {name:?} cannot be run");
                return Err(Failure::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message).into());
            }
        }
        if kind == StatementKind::Empty {
            backend::empty_query_response(&mut self.wire.out);
            return Ok(());
        }
        if let Some(tag) = self.forget_prepared(portal.prepared.statement.sql()) {
            backend::command_complete(&mut self.wire.out, tag);
            return Ok(());
        }
        self.check_declared(&portal.prepared.statement)?;
        // A statement directly before Sync is alone and commits by itself. A statement before
        // others shares a transaction with them, unless it cannot run in one: drivers may send as
        // little as Close before Sync.
        if self.wire.peek_tag() != Some(b'S') && !portal.prepared.statement.is_alone() {
            self.begin_implicit(kind)?;
        }
        self.run_portal(portal, name, most)?;
        if let Progress::Begun(cursor) = &mut portal.progress {
            *cursor = self.connection.cursor_number(name);
        }
        Ok(())
    }

    fn run_portal(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), MessageError> {
        let Session { wire, connection, limits, observer, .. } = self;
        let statement = &portal.prepared.statement;
        let tag = {
            let outcome = match most {
                0 => connection.run(statement, &portal.parameters)?,
                most => connection.run_in_parts(statement, &portal.parameters, name, most.into())?,
            };
            portal.progress = Progress::Done;
            match outcome {
                Outcome::Done(tag) => tag,
                Outcome::Rows(rows) => {
                    let columns = rows::columns_of(statement, &rows);
                    let sent = send(wire, rows, &columns, &portal.formats, most)?;
                    portal.note(&sent, None, observer);
                    return Ok(());
                }
                Outcome::CopyIn(copy) => copy::copy_in(wire, copy, limits.message_bytes_max)?,
                Outcome::CopyOut(copy) => copy::copy_out(wire, copy)?,
            }
        };
        observer.tell(statement.sql(), tag.rows.unwrap_or(0));
        backend::command_complete(&mut wire.out, &tag);
        self.forget_all(&tag);
        Ok(())
    }

    /// Fetches further rows of a portal that has already returned some.
    fn go_on(
        &mut self,
        portal: &mut Portal,
        name: &str,
        cursor: Option<u64>,
        most: u32,
    ) -> Result<(), MessageError> {
        let Session { wire, connection, observer, .. } = self;
        // CLOSE or a rollback to a savepoint may have closed the cursor, and DECLARE may have
        // reused its name.
        if cursor.is_none() || connection.cursor_number(name) != cursor {
            return Err(no_portal(name).into());
        }
        let rows = connection.fetch(name, most.into())?;
        let columns = rows::columns_of(&portal.prepared.statement, &rows);
        let sent = send(wire, rows, &columns, &portal.formats, most)?;
        portal.note(&sent, cursor, observer);
        Ok(())
    }
}

/// Sends rows, at most `most` of them, 0 for all, and the message that ends them.
fn send<S: Read + Write>(
    wire: &mut Wire<S>,
    mut rows: Rows<'_>,
    columns: &[Column],
    formats: &ResultFormats,
    most: u32,
) -> Result<SentRows, MessageError> {
    while let Some(row) = rows.next()? {
        rows::data_row(&mut wire.out, columns, formats, &row)?;
        wire.flush_if_full()?;
    }
    let (tag, count) = (rows.tag(), rows.count());
    let is_suspended = most != 0 && count >= most.into();
    match is_suspended {
        true => backend::portal_suspended(&mut wire.out),
        // PostgreSQL counts only the rows of the last Execute, and so does each part here.
        false => backend::command_complete(&mut wire.out, tag),
    }
    Ok(SentRows { rows: count, is_suspended })
}
