//! Execute: runs a portal, all of it or some rows at a time.
//!
//! Rows that the client has not asked for yet stay with the connection, in a cursor that has the
//! portal's name: other statements run between, and FETCH finds it too. The other way round,
//! Execute takes the name of a cursor that DECLARE has made.

use std::io::{Read, Write};

use cairn_sql::{Column, Outcome, Rows, StatementKind, TransactionStatus};

use crate::codec::backend;
use crate::codec::frontend::{self, Message};
use crate::error::Failure;
use crate::net::wire::Wire;
use crate::sqlstate;

use super::extended::no_portal;
use super::portal::{Portal, Progress, ResultFormats};
use super::{Session, Trouble, copy, rows};

impl<S: Read + Write> Session<S> {
    pub(super) fn execute(&mut self) -> Result<(), Trouble> {
        let Message::Execute(name, most) = frontend::decode(b'E', self.wire.body())? else {
            return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, "expected Execute").into());
        };
        self.check_alive(name)?;
        // It is out of the session while it runs, as the session is at work for it.
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

    /// A transaction that has failed runs nothing, and what is suspended in it may still go on:
    /// when it has gone back to a savepoint.
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

    /// A part of a portal that has failed leaves nothing to go on with. A cursor of its name that
    /// is not its own stays.
    fn advance_or_close(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), Trouble> {
        let before = self.connection.cursor_number(name);
        self.advance(portal, name, most).inspect_err(|_| {
            let cursor = self.connection.cursor_number(name);
            if cursor != before || portal.progress == Progress::Begun(cursor) {
                self.connection.close_cursor(name);
            }
        })
    }

    fn advance(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), Trouble> {
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
        // A statement before Sync is alone: it commits by itself. What comes before others is one
        // transaction with them, unless it can be in none: what a driver sends before Sync may be
        // as little as Close.
        if self.wire.peek_tag() != Some(b'S') && !portal.prepared.statement.is_alone() {
            self.begin_implicit(kind)?;
        }
        self.run_portal(portal, name, most)?;
        if let Progress::Begun(cursor) = &mut portal.progress {
            *cursor = self.connection.cursor_number(name);
        }
        Ok(())
    }

    fn run_portal(&mut self, portal: &mut Portal, name: &str, most: u32) -> Result<(), Trouble> {
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

    /// Rows behind those that a part of the portal gave.
    fn go_on(
        &mut self,
        portal: &mut Portal,
        name: &str,
        cursor: Option<u64>,
        most: u32,
    ) -> Result<(), Trouble> {
        let Session { wire, connection, observer, .. } = self;
        // CLOSE, or a savepoint that was gone back to, may have taken it, and DECLARE its name.
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

/// What came of sending rows.
pub(super) struct Sent {
    pub rows: u64,
    /// As many as were asked for: there may be more.
    pub is_suspended: bool,
}

/// Sends rows, of which `most` were asked for, 0 for all; and what comes behind them.
fn send<S: Read + Write>(
    wire: &mut Wire<S>,
    mut rows: Rows<'_>,
    columns: &[Column],
    formats: &ResultFormats,
    most: u32,
) -> Result<Sent, Trouble> {
    while let Some(row) = rows.next()? {
        rows::data_row(&mut wire.out, columns, formats, &row)?;
        wire.flush_if_full()?;
    }
    let (tag, count) = (rows.tag(), rows.count());
    let is_suspended = most != 0 && count >= most.into();
    match is_suspended {
        true => backend::portal_suspended(&mut wire.out),
        // PostgreSQL counts the rows of the last Execute only, and so does each part.
        false => backend::command_complete(&mut wire.out, tag),
    }
    Ok(Sent { rows: count, is_suspended })
}
