//! A session: one client with its statements and portals, message by message.
//!
//! ```text
//! simple.rs    Query: text in, rows as text out
//! extended.rs  Parse, Bind, Describe, Close: statements and portals
//! execute.rs   Execute: rows of a portal, all at once or some at a time
//! rows.rs      rows as messages
//! copy.rs      COPY in both directions
//! reported.rs  settings that are reported to clients
//! ```
//! After an error in a message of the extended protocol, messages are skipped until Sync.
//! Everything between two Syncs is one transaction, unless the client begins its own.

mod copy;
mod execute;
mod extended;
mod message_error;
mod portal;
mod reported;
mod rows;
mod simple;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;

use cairn_sql::{Connection, StatementKind, TransactionStatus};

use crate::codec::backend::{self, Ready, Severity};
use crate::codec::frontend::Message;
use crate::error::{Failure, ProtocolError};
use crate::limits::Limits;
use crate::net::transport::SharedSocket;
use crate::net::wire::{ReadError, Wire};
use crate::observer::Observer;
use crate::registry::{EndReason, Entry, State};
use crate::sqlstate;

use message_error::MessageError;
use portal::{Portal, Prepared};
use reported::Reported;

/// How a session ended.
#[derive(Debug)]
pub enum End {
    /// The client terminated the session or disconnected.
    Disconnected,
    /// The server ended the session with this error.
    Failed(Failure),
}

/// The state of a client's session.
#[derive(Debug)]
pub struct Session<S: Read + Write = SharedSocket> {
    wire: Wire<S>,
    connection: Connection,
    entry: Arc<Entry>,
    limits: Arc<Limits>,
    observer: Observer,
    /// Named prepared statements; the unnamed one is in `unnamed`.
    statements: HashMap<String, Arc<Prepared>>,
    unnamed: Option<Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    unnamed_portal: Option<Portal>,
    reported: Reported,
    /// The text of running statements, copied because the message buffer is reused meanwhile.
    text: String,
    /// Whether messages are skipped until Sync, after an error in the extended protocol.
    is_skipping: bool,
    /// Whether an implicit transaction was begun for the messages up to Sync. Meanwhile, COMMIT or
    /// ROLLBACK may have ended it, or BEGIN may have made it the client's own. Sync ends what is
    /// left of it.
    is_implicit: bool,
}

impl<S: Read + Write> Session<S> {
    /// Creates a session for a client that has logged in.
    pub fn new(wire: Wire<S>, connection: Connection, entry: Arc<Entry>, limits: Arc<Limits>) -> Self {
        Session {
            wire,
            connection,
            entry,
            limits,
            observer: Observer::default(),
            statements: HashMap::new(),
            unnamed: None,
            portals: HashMap::new(),
            unnamed_portal: None,
            reported: Reported::default(),
            text: String::new(),
            is_skipping: false,
            is_implicit: false,
        }
    }

    /// Sets the observer of its statements.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        Session { observer, ..self }
    }

    /// Serves the client until it disconnects, or the session must end.
    pub fn serve(mut self) -> End {
        let ended = self.exchange();
        let portals = self.unnamed_portal.iter().chain(self.portals.values());
        portals.for_each(|portal| portal.report_unfinished(&self.observer));
        let Session { mut wire, connection, entry, .. } = self;
        // ORDER: the transaction ends before anything is sent. A client that does not read blocks
        // this thread, and must not keep the locks of its transaction.
        drop(connection);
        let end = match ended {
            Err(MessageError::Read(ReadError::Protocol(error))) => End::Failed(error.into()),
            Err(MessageError::Failure(failure)) => End::Failed(failure),
            Ok(()) | Err(MessageError::Read(ReadError::Disconnected)) => match entry.end_reason() {
                Some(end_reason) => End::Failed(end_failure(end_reason)),
                None => End::Disconnected,
            },
        };
        if let End::Failed(failure) = &end {
            backend::failure(&mut wire.out, Severity::Fatal, failure);
        }
        wire.finish();
        end
    }

    /// Processes messages. An error ends the session.
    fn exchange(&mut self) -> Result<(), MessageError> {
        self.greet();
        loop {
            if self.entry.end_reason().is_some() {
                return Err(ReadError::Disconnected.into());
            }
            self.entry.set_state(match self.connection.status() {
                TransactionStatus::Idle => State::Idle,
                _ => State::IdleInTransaction,
            });
            let tag = self.wire.receive(self.limits.message_bytes_max)?;
            // ORDER: this comes before other threads see that the session is busy. Their cancel
            // requests from then on apply to this message.
            self.connection.begin_message();
            self.entry.set_state(State::Busy);
            if self.is_skipping && !matches!(tag, b'S' | b'X') {
                continue;
            }
            if tag == b'X' {
                return Ok(());
            }
            match self.handle(tag) {
                Ok(()) => {}
                Err(MessageError::Failure(failure)) => self.fail(tag, &failure),
                Err(error) => return Err(error),
            }
            // Answers to messages that arrived together are sent together, unless they are long.
            self.wire.flush_if_full()?;
        }
    }

    fn greet(&mut self) {
        backend::authentication_ok(&mut self.wire.out);
        self.reported.write_all_settings(&mut self.wire.out, &self.connection);
        backend::backend_key_data(&mut self.wire.out, self.entry.process, self.entry.secret());
        self.ready();
    }

    #[inline]
    fn handle(&mut self, tag: u8) -> Result<(), MessageError> {
        match tag {
            b'Q' => self.query(),
            b'P' => self.parse(),
            b'B' => self.bind(),
            b'E' => self.execute(),
            b'D' => self.describe(),
            b'C' => self.close(),
            b'S' => self.sync(),
            b'H' => Ok(self.wire.flush()?),
            // The rest of a COPY that has already failed.
            b'd' | b'c' | b'f' => Ok(()),
            _ => match self.wire.message() {
                Err(error @ ProtocolError::Tag(_)) => Err(ReadError::Protocol(error).into()),
                Ok(Message::FunctionCall) => Err(Failure::new(
                    sqlstate::FEATURE_NOT_SUPPORTED,
                    "the fast-path function call protocol is not supported",
                )
                .into()),
                _ => Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, "unexpected message").into()),
            },
        }
    }

    /// Reports the failure of a message to the client, and rolls back the implicit transaction.
    fn fail(&mut self, tag: u8, failure: &Failure) {
        self.notices();
        backend::failure(&mut self.wire.out, Severity::Error, failure);
        // The connection has not seen errors such as an invalid parameter, so it is told of each.
        self.connection.fail();
        match tag {
            b'Q' | b'F' => self.finish_batch(),
            b'S' => self.ready(),
            _ => self.is_skipping = true,
        }
    }

    /// Ends a batch after an error.
    fn finish_batch(&mut self) {
        if self.is_implicit {
            self.is_implicit = false;
            // This rolls the transaction back. The client already has the error that caused it.
            let _ = self.connection.end_implicit();
        }
        self.drop_portals();
        self.ready();
    }

    fn sync(&mut self) -> Result<(), MessageError> {
        self.wire.message()?;
        self.is_skipping = false;
        if self.is_implicit {
            self.is_implicit = false;
            let ended = self.connection.end_implicit();
            self.drop_portals();
            ended?;
        } else {
            self.drop_portals();
        }
        self.ready();
        Ok(())
    }

    /// Outside a transaction, drops all portals: a portal does not outlive the transaction that
    /// created it.
    fn drop_portals(&mut self) {
        if self.connection.status() == TransactionStatus::Idle && !self.is_implicit {
            self.drop_unnamed_portal();
            self.portals.drain().for_each(|(_, portal)| portal.report_unfinished(&self.observer));
        }
    }

    fn drop_unnamed_portal(&mut self) {
        if let Some(portal) = self.unnamed_portal.take() {
            portal.report_unfinished(&self.observer);
            self.connection.close_cursor("");
        }
    }

    fn ready(&mut self) {
        self.notices();
        self.reported.write_changed_settings(&mut self.wire.out, &self.connection);
        let ready = match self.connection.status() {
            TransactionStatus::Idle => Ready::Idle,
            TransactionStatus::Open => Ready::Transaction,
            TransactionStatus::Failed => Ready::Failed,
        };
        backend::ready_for_query(&mut self.wire.out, ready);
    }

    /// Begins an implicit transaction for several statements, if none is open and this statement
    /// does not begin or end one itself.
    fn begin_implicit(&mut self, kind: StatementKind) -> Result<(), MessageError> {
        if kind != StatementKind::Transaction
            && kind != StatementKind::Empty
            && self.connection.status() == TransactionStatus::Idle
        {
            self.connection.begin_implicit()?;
            self.is_implicit = true;
        }
        Ok(())
    }

    fn notices(&mut self) {
        for notice in self.connection.take_notices() {
            let severity = match notice.severity {
                "WARNING" => Severity::Warning,
                _ => Severity::Notice,
            };
            let mut failure = Failure::new(notice.sqlstate, notice.message);
            failure.sqlstate = notice.sqlstate.into();
            backend::failure(&mut self.wire.out, severity, &failure);
        }
    }

    /// Checks the length of a statement. Errors: 54000 for a text beyond the limit.
    fn check_statement_length(&self, bytes: usize) -> Result<(), MessageError> {
        let most = self.limits.statement_bytes_max;
        if bytes <= most {
            return Ok(());
        }
        let message = format!("a statement of {bytes} bytes exceeds the limit of {most}");
        Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).into())
    }
}

fn end_failure(end_reason: EndReason) -> Failure {
    match end_reason {
        EndReason::Authentication => {
            Failure::new(sqlstate::QUERY_CANCELED, "canceling authentication due to timeout")
        }
        EndReason::IdleInTransaction => Failure::new(
            sqlstate::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            "terminating connection due to idle-in-transaction timeout",
        ),
        EndReason::Idle => {
            Failure::new(sqlstate::IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout")
        }
        EndReason::Shutdown => {
            Failure::new(sqlstate::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        }
    }
}

#[cfg(test)]
mod tests;
