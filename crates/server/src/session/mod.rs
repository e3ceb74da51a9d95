//! A session: one client, its statements and portals, message by message.
//!
//! ```text
//! simple.rs    Query: text in, rows as text out
//! extended.rs  Parse, Bind, Describe, Close: statements and portals
//! execute.rs   Execute: rows of a portal, all at once or some at a time
//! rows.rs      rows as messages
//! copy.rs      COPY in both directions
//! reported.rs  settings that clients want to know
//! ```
//! After an error in a message of the extended protocol, messages are passed over until Sync.
//! Everything between two Syncs is one transaction, unless the client begins its own.

mod copy;
mod execute;
mod extended;
mod portal;
mod reported;
mod rows;
mod simple;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;

use cairn_sql::{Connection, StatementKind, TransactionStatus};

use crate::codec::backend::{self, Ready, Severity};
use crate::codec::frontend::Message;
use crate::error::{Failure, ProtocolError};
use crate::limits::Limits;
use crate::net::transport::SharedSocket;
use crate::net::wire::{Lost, Wire};
use crate::observer::Observer;
use crate::registry::{Doom, Entry, State};
use crate::sqlstate;

use portal::{Portal, Prepared};
use reported::Reported;

/// How a session ended.
#[derive(Debug)]
pub enum End {
    /// The client said goodbye, or went without.
    Gone,
    /// It was told why.
    Told(Failure),
}

/// What keeps a message from being done.
#[derive(Debug)]
enum Trouble {
    /// The client is told.
    Failure(Failure),
    /// The connection is of no more use.
    Lost(Lost),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(failure)
    }
}

impl From<cairn_sql::Error> for Trouble {
    fn from(error: cairn_sql::Error) -> Self {
        Trouble::Failure(error.into())
    }
}

impl From<ProtocolError> for Trouble {
    fn from(error: ProtocolError) -> Self {
        Trouble::Failure(error.into())
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Lost(error.into())
    }
}

impl From<Lost> for Trouble {
    fn from(lost: Lost) -> Self {
        Trouble::Lost(lost)
    }
}

/// One client.
#[derive(Debug)]
pub struct Session<S: Read + Write = SharedSocket> {
    wire: Wire<S>,
    connection: Connection,
    entry: Arc<Entry>,
    limits: Arc<Limits>,
    observer: Observer,
    /// Prepared statements; the one without a name has the empty one.
    statements: HashMap<String, Arc<Prepared>>,
    unnamed: Option<Arc<Prepared>>,
    portals: HashMap<String, Portal>,
    unnamed_portal: Option<Portal>,
    reported: Reported,
    /// The text of the statements that run: the buffer of messages goes on under it.
    text: String,
    /// After an error in the extended protocol, until Sync.
    is_skipping: bool,
    /// Whether a transaction was begun for messages up to Sync. COMMIT and ROLLBACK may have ended
    /// it, and BEGIN made it the client's own; what is left is ended then.
    is_implicit: bool,
}

impl<S: Read + Write> Session<S> {
    /// A session for a client that has logged in.
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

    /// Tells of its statements.
    #[must_use]
    pub fn observed_by(self, observer: Observer) -> Self {
        Session { observer, ..self }
    }

    /// Serves the client until it goes, or has to.
    pub fn serve(mut self) -> End {
        let ended = self.exchange();
        let portals = self.unnamed_portal.iter().chain(self.portals.values());
        portals.for_each(|portal| portal.give_up(&self.observer));
        let Session { mut wire, connection, entry, .. } = self;
        // ORDER: before anything is sent. A client that does not read keeps this thread, and is not
        // to keep what its transaction has locked.
        drop(connection);
        let end = match ended {
            Err(Trouble::Lost(Lost::Protocol(error))) => End::Told(error.into()),
            Err(Trouble::Failure(failure)) => End::Told(failure),
            Ok(()) | Err(Trouble::Lost(Lost::Gone)) => match entry.doomed() {
                Some(doom) => End::Told(doom_failure(doom)),
                None => End::Gone,
            },
        };
        if let End::Told(failure) = &end {
            backend::failure(&mut wire.out, Severity::Fatal, failure);
        }
        wire.finish();
        end
    }

    /// Message by message. An error ends the session.
    fn exchange(&mut self) -> Result<(), Trouble> {
        self.greet();
        loop {
            if self.entry.doomed().is_some() {
                return Err(Lost::Gone.into());
            }
            self.entry.set_state(match self.connection.status() {
                TransactionStatus::Idle => State::Idle,
                _ => State::IdleInTransaction,
            });
            let tag = self.wire.receive(self.limits.message_bytes_max)?;
            // ORDER: before others see that it is busy. What they ask from then on is about this
            // message.
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
                Err(Trouble::Failure(failure)) => self.fail(tag, &failure),
                Err(lost) => return Err(lost),
            }
            // Answers to messages that came together go out together, unless they are long.
            self.wire.flush_if_full()?;
        }
    }

    fn greet(&mut self) {
        backend::authentication_ok(&mut self.wire.out);
        self.reported.tell_all(&mut self.wire.out, &self.connection);
        backend::backend_key_data(&mut self.wire.out, self.entry.process, self.entry.secret());
        self.ready();
    }

    #[inline]
    fn handle(&mut self, tag: u8) -> Result<(), Trouble> {
        match tag {
            b'Q' => self.query(),
            b'P' => self.parse(),
            b'B' => self.bind(),
            b'E' => self.execute(),
            b'D' => self.describe(),
            b'C' => self.close(),
            b'S' => self.sync(),
            b'H' => Ok(self.wire.flush()?),
            // What is left of a COPY that has failed already.
            b'd' | b'c' | b'f' => Ok(()),
            _ => match self.wire.message() {
                Err(error @ ProtocolError::Tag(_)) => Err(Lost::Protocol(error).into()),
                Ok(Message::FunctionCall) => Err(Failure::new(
                    sqlstate::FEATURE_NOT_SUPPORTED,
                    "function calls by number are not supported",
                )
                .into()),
                _ => {
                    Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, "a message that is not expected here")
                        .into())
                }
            },
        }
    }

    /// Tells the client that a message failed; what it has begun implicitly is taken back.
    fn fail(&mut self, tag: u8, failure: &Failure) {
        self.notices();
        backend::failure(&mut self.wire.out, Severity::Error, failure);
        // Also what the connection has not heard of, as a parameter that cannot be read.
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
            // It takes back, and that it cannot is no other error than the one that was told.
            let _ = self.connection.end_implicit();
        }
        self.drop_portals();
        self.ready();
    }

    fn sync(&mut self) -> Result<(), Trouble> {
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

    /// Portals do not outlive their transaction.
    fn drop_portals(&mut self) {
        if self.connection.status() == TransactionStatus::Idle && !self.is_implicit {
            self.drop_unnamed_portal();
            self.portals.drain().for_each(|(_, portal)| portal.give_up(&self.observer));
        }
    }

    fn drop_unnamed_portal(&mut self) {
        if let Some(portal) = self.unnamed_portal.take() {
            portal.give_up(&self.observer);
            self.connection.close_cursor("");
        }
    }

    fn ready(&mut self) {
        self.notices();
        self.reported.tell_changes(&mut self.wire.out, &self.connection);
        let ready = match self.connection.status() {
            TransactionStatus::Idle => Ready::Idle,
            TransactionStatus::Open => Ready::Transaction,
            TransactionStatus::Failed => Ready::Failed,
        };
        backend::ready_for_query(&mut self.wire.out, ready);
    }

    /// Begins a transaction for several statements, where none is open and this one does not begin
    /// or end one itself.
    fn begin_implicit(&mut self, kind: StatementKind) -> Result<(), Trouble> {
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

    /// Errors: a text beyond the limit, 54000.
    fn check_statement_length(&self, bytes: usize) -> Result<(), Trouble> {
        let most = self.limits.statement_bytes_max;
        if bytes <= most {
            return Ok(());
        }
        let message = format!("a statement of {bytes} bytes: this server accepts up to {most}");
        Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).into())
    }
}

fn doom_failure(doom: Doom) -> Failure {
    match doom {
        Doom::Authentication => {
            Failure::new(sqlstate::QUERY_CANCELED, "canceling authentication due to timeout")
        }
        Doom::IdleInTransaction => Failure::new(
            sqlstate::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            "terminating connection due to idle-in-transaction timeout",
        ),
        Doom::Idle => {
            Failure::new(sqlstate::IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout")
        }
        Doom::Shutdown => {
            Failure::new(sqlstate::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        }
    }
}

#[cfg(test)]
mod tests;
