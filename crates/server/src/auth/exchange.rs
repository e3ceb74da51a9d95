//! The password exchange over a connection.

use std::io::{Read, Write};

use crate::access::Access;
use crate::codec::backend;
use crate::codec::cursor::Cursor;
use crate::error::{Error, Failure};
use crate::limits::PASSWORD_BYTES_MAX;
use crate::net::wire::{ReadError, Wire};
use crate::sqlstate;

use super::passwords::Passwords;
use super::scram::{Exchange, MECHANISM, MECHANISM_PLUS, Refusal, Verifier};

/// The reason why a client is not admitted.
#[derive(Debug)]
pub enum Denied {
    /// No further message can be read.
    Read(ReadError),
    /// The client receives this error.
    Refused(Failure),
    /// The server cannot read its password file. The cause goes only to the log, because
    /// unauthenticated clients must not learn about the server's files. They receive the error of
    /// [`unable`].
    Unable(Box<Error>),
}

impl From<ReadError> for Denied {
    fn from(error: ReadError) -> Self {
        Denied::Read(error)
    }
}

impl From<Failure> for Denied {
    fn from(failure: Failure) -> Self {
        Denied::Refused(failure)
    }
}

/// Returns the error that a client receives for [`Denied::Unable`].
pub fn unable() -> Failure {
    Failure::new(sqlstate::INVALID_AUTHORIZATION, "the server cannot read its password file")
}

/// Verifies that a client knows the password of `user`.
pub fn authenticate<S: Read + Write>(wire: &mut Wire<S>, access: &Access, user: &str) -> Result<(), Denied> {
    let Some(path) = &access.password_file else { return Ok(()) };
    let passwords =
        Passwords::read(access.fs.as_ref(), path).map_err(|error| Denied::Unable(error.into()))?;
    let known = passwords.get(user).cloned();
    let is_known = known.is_some();
    let verifier = known.unwrap_or_else(|| passwords.decoy(&access.secret, user));
    let end_point =
        access.tls.as_ref().filter(|_| wire.transport().is_tls()).map(|tls| tls.end_point.as_slice());
    let offered: &[&str] = if end_point.is_some() { &[MECHANISM_PLUS, MECHANISM] } else { &[MECHANISM] };
    backend::authentication_sasl(&mut wire.out, offered);
    let exchange = start(wire, verifier, end_point).map_err(|error| tell(error, user))?;
    backend::authentication_sasl_step(&mut wire.out, exchange.challenge(), false);
    let last = password_message(wire)?;
    let last =
        std::str::from_utf8(last).map_err(|_| tell_refusal(Refusal::Malformed("expected UTF-8"), user))?;
    let proof = exchange.finish(last).map_err(|refusal| tell_refusal(refusal, user))?;
    if !is_known {
        return Err(tell_refusal(Refusal::WrongPassword, user).into());
    }
    backend::authentication_sasl_step(&mut wire.out, &proof, true);
    Ok(())
}

enum NotStarted {
    Read(ReadError),
    Refused(Refusal),
}

impl From<ReadError> for NotStarted {
    fn from(error: ReadError) -> Self {
        NotStarted::Read(error)
    }
}

/// Reads SASLInitialResponse: `| mechanism | length i32 | data |`.
fn start<S: Read + Write>(
    wire: &mut Wire<S>,
    verifier: Verifier,
    end_point: Option<&[u8]>,
) -> Result<Exchange, NotStarted> {
    let mut cursor = Cursor::new(password_message(wire)?, "SASLInitialResponse");
    let mechanism = cursor.string().map_err(ReadError::from)?;
    let data = cursor.value().map_err(ReadError::from)?.unwrap_or_default();
    let refuse = |what| NotStarted::Refused(Refusal::Malformed(what));
    let data = std::str::from_utf8(data).map_err(|_| refuse("expected UTF-8"))?;
    let bound_to = match mechanism {
        MECHANISM => None,
        MECHANISM_PLUS if end_point.is_some() => end_point,
        _ => return Err(refuse("a mechanism that was not offered")),
    };
    Exchange::start(verifier, data, bound_to, end_point.is_some()).map_err(NotStarted::Refused)
}

fn password_message<S: Read + Write>(wire: &mut Wire<S>) -> Result<&[u8], ReadError> {
    match wire.receive(PASSWORD_BYTES_MAX)? {
        b'p' => Ok(wire.body()),
        tag => Err(ReadError::Protocol(crate::error::ProtocolError::Tag(tag))),
    }
}

fn tell(error: NotStarted, user: &str) -> Denied {
    match error {
        NotStarted::Read(error) => Denied::Read(error),
        NotStarted::Refused(refusal) => Denied::Refused(tell_refusal(refusal, user)),
    }
}

fn tell_refusal(refusal: Refusal, user: &str) -> Failure {
    match refusal {
        Refusal::Malformed(what) => {
            Failure::new(sqlstate::PROTOCOL_VIOLATION, "malformed SCRAM message").with_detail(what)
        }
        Refusal::WrongPassword => Failure::new(
            sqlstate::INVALID_PASSWORD,
            format!("password authentication failed for user {user:?}"),
        ),
    }
}
