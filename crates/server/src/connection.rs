//! A connection from start to end, on a thread of its own.

use std::sync::Arc;

use cairn_sql::Database;

use crate::access::Access;
use crate::auth::exchange::{Denied, authenticate, unable};
use crate::codec::backend::{self, Severity};
use crate::error::Failure;
use crate::limits::Limits;
use crate::log::{Level, Log};
use crate::net::socket::Socket;
use crate::net::transport::{SharedSocket, Transport};
use crate::net::wire::{ReadError, Wire};
use crate::observer::Observer;
use crate::registry::{EndReason, Present, Registry};
use crate::session::{End, Session};
use crate::sqlstate;
use crate::startup::{Opened, Startup, open};

/// The state that all connections share.
#[derive(Debug)]
pub struct Shared {
    /// The database.
    pub database: Database,
    /// All connections.
    pub registry: Arc<Registry>,
    /// The conditions under which clients are admitted.
    pub access: Access,
    /// Limits of the clients' resources.
    pub limits: Arc<Limits>,
    /// The server's log.
    pub log: Log,
    /// The observer of statements.
    pub observer: Observer,
}

/// Serves one connection until it ends.
pub fn serve(shared: &Shared, socket: Arc<Socket>, mut present: Present) {
    let process = present.entry().process;
    let peer = present.entry().peer;
    let wire = Wire::new(Transport::Plain(SharedSocket(socket)));
    match open(wire, shared.access.tls.as_ref()) {
        Err(ReadError::Disconnected) => {}
        Err(ReadError::Protocol(error)) => {
            shared.log.say(Level::Warning, format_args!("{process} {peer}: {error}"));
        }
        Ok((_, Opened::Cancel(other, secret))) => {
            // The client gets no answer in either case, because one would only help an attacker to
            // guess.
            if !shared.registry.cancel(other, secret) {
                let line = format_args!("{process} {peer}: a cancel request that matches no session");
                shared.log.say(Level::Warning, line);
            }
        }
        Ok((mut wire, Opened::Refused(failure))) => {
            // Quoted, because the message contains text from an unauthenticated client, and the log
            // may be read in a terminal.
            shared.log.say(Level::Warning, format_args!("{process} {peer}: {:?}", failure.message));
            refuse(&mut wire, &failure);
        }
        Ok((wire, Opened::Session(startup))) => session(shared, &mut present, wire, &startup),
    }
}

fn refuse(wire: &mut Wire, failure: &Failure) {
    backend::failure(&mut wire.out, Severity::Fatal, failure);
    wire.finish();
}

fn session(shared: &Shared, present: &mut Present, mut wire: Wire, startup: &Startup) {
    let entry = Arc::clone(present.entry());
    let who = format!("{} {} {:?}", entry.process, entry.peer, startup.user);
    if let Err(denied) = admit(shared, present, &mut wire, startup) {
        match denied {
            Denied::Read(ReadError::Disconnected)
                if entry.end_reason() == Some(EndReason::Authentication) =>
            {
                shared.log.say(Level::Warning, format_args!("{who}: took too long to log in"));
            }
            Denied::Read(ReadError::Disconnected) => {}
            Denied::Read(ReadError::Protocol(error)) => {
                shared.log.say(Level::Warning, format_args!("{who}: {error}"));
                refuse(&mut wire, &error.into());
            }
            Denied::Unable(error) => {
                let failure = unable();
                shared.log.say(Level::Error, format_args!("{who}: {}: {error}", failure.message));
                refuse(&mut wire, &failure);
            }
            Denied::Refused(failure) => {
                shared.log.say(Level::Warning, format_args!("{who}: {}", failure.message));
                refuse(&mut wire, &failure);
            }
        }
        return;
    }
    let mut connection = shared.database.connect_as(entry.process.unsigned_abs());
    if let Err(failure) = settle(shared, &mut connection, startup) {
        return refuse(&mut wire, &failure);
    }
    entry.set_canceller(connection.canceller());
    shared.log.say(Level::Debug, format_args!("{who}: session begins"));
    let session = Session::new(wire, connection, entry, Arc::clone(&shared.limits));
    match session.observed_by(shared.observer.clone()).serve() {
        End::Disconnected => shared.log.say(Level::Debug, format_args!("{who}: session ends")),
        End::Failed(failure) => shared.log.say(Level::Info, format_args!("{who}: {}", failure.message)),
    }
}

/// Authenticates a client and admits it, or returns the reason why not.
fn admit(shared: &Shared, present: &mut Present, wire: &mut Wire, startup: &Startup) -> Result<(), Denied> {
    let peer = present.entry().peer;
    shared.access.check(peer, wire.transport().is_tls())?;
    if shared.access.needs_password(peer) {
        authenticate(wire, &shared.access, &startup.user)?;
    }
    if present.entry().end_reason() == Some(EndReason::Shutdown) {
        return Err(Failure::new(sqlstate::CANNOT_CONNECT_NOW, "the database system is shutting down").into());
    }
    if !present.admit(shared.limits.connections_max) {
        let message = "sorry, too many clients already";
        return Err(Failure::new(sqlstate::TOO_MANY_CONNECTIONS, message).into());
    }
    Ok(())
}

/// Applies the settings that a client requested.
fn settle(shared: &Shared, connection: &mut cairn_sql::Connection, startup: &Startup) -> Result<(), Failure> {
    if let Some(timeout) = shared.limits.statement_timeout {
        connection.set("statement_timeout", &timeout.as_millis().to_string())?;
    }
    connection.set_user(&startup.user);
    for (name, value) in &startup.settings {
        match connection.set(name, value) {
            Ok(()) => {}
            // Clients also set optional settings, which a server may not have.
            Err(error) if error.sqlstate() == cairn_sql::sqlstate::UNDEFINED_OBJECT => {}
            // Clients send their time zone without being asked. The server reports UTC to them.
            Err(error)
                if name.eq_ignore_ascii_case("timezone")
                    && error.sqlstate() == cairn_sql::sqlstate::FEATURE_NOT_SUPPORTED => {}
            Err(error) => return Err(error.into()),
        }
    }
    connection.keep_settings();
    Ok(())
}
