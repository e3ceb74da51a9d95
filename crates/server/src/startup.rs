//! The first messages of a connection: encryption, cancel requests, and the startup of sessions.
//!
//! ```text
//! client                               server
//! GSSENCRequest                        N          not supported
//! SSLRequest                           S, then the handshake; or N
//! StartupMessage user, database, ...   authentication, settings, ReadyForQuery
//! CancelRequest process, secret        nothing: the connection ends
//! ```
//! They have no tag and begin with their length: `| length i32 | code i32 | rest |`.

use std::io::{Read, Write};

use crate::codec::backend;
use crate::codec::cursor::Cursor;
use crate::error::{Failure, ProtocolError};
use crate::limits::STARTUP_BYTES_MAX;
use crate::net::wire::{ReadError, Wire};
use crate::sqlstate;
use crate::tls::Tls;

const CANCEL: i32 = 80_877_102;
const SSL: i32 = 80_877_103;
const GSSENC: i32 = 80_877_104;
const PROTOCOL_MAJOR: i32 = 3;

/// The first message, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum First {
    /// SSLRequest: asks for TLS.
    Ssl,
    /// GSSENCRequest: asks for GSSAPI encryption.
    Gssenc,
    /// CancelRequest: cancels the statement of a session.
    Cancel {
        /// The process number of the session.
        process: i32,
        /// The secret of the session, which only its client knows.
        secret: i32,
    },
    /// StartupMessage: starts a session.
    Startup(Startup),
}

/// The parameters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Startup {
    /// The requested minor version of the protocol; this server supports 0.
    pub minor: i32,
    /// The user.
    pub user: String,
    /// The database; by default the user's name.
    pub database: String,
    /// Settings, in order, including those from `options`.
    pub settings: Vec<(String, String)>,
    /// Protocol options that the server does not know.
    pub unknown: Vec<String>,
}

/// Decodes the body of a first message, which has no tag.
pub fn decode(body: &[u8]) -> Result<First, Failure> {
    let mut cursor = Cursor::new(body, "StartupMessage");
    match cursor.i32()? {
        SSL => Ok(First::Ssl),
        GSSENC => Ok(First::Gssenc),
        CANCEL => {
            let (process, secret) = (cursor.i32()?, cursor.i32()?);
            cursor.finish()?;
            Ok(First::Cancel { process, secret })
        }
        version if version >> 16 == PROTOCOL_MAJOR => startup(version & 0xffff, cursor).map(First::Startup),
        version => Err(Failure::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0",
                version >> 16,
                version & 0xffff
            ),
        )),
    }
}

fn startup(minor: i32, mut cursor: Cursor<'_>) -> Result<Startup, Failure> {
    let mut startup = Startup { minor, ..Startup::default() };
    // BOUND: the length of the message.
    loop {
        let name = cursor.string()?;
        if name.is_empty() {
            break;
        }
        let value = cursor.string()?;
        match name {
            "user" => value.clone_into(&mut startup.user),
            "database" => value.clone_into(&mut startup.database),
            "options" => startup.settings.extend(options(value)?),
            "replication" if matches!(value, "false" | "off" | "no" | "0") => {}
            "replication" => {
                return Err(Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, "replication is not supported"));
            }
            name if name.starts_with("_pq_.") => startup.unknown.push(name.to_owned()),
            name => startup.settings.push((name.to_owned(), value.to_owned())),
        }
    }
    cursor.finish()?;
    if startup.user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(Failure::new(sqlstate::INVALID_AUTHORIZATION, message));
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    Ok(startup)
}

/// Parses settings in command-line form: `-c name=value`, `-cname=value` and `--name=value`. A
/// backslash escapes a blank.
fn options(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let kept = match character {
            '\\' => characters.next(),
            blank if blank.is_whitespace() => {
                words.push(String::new());
                None
            }
            other => Some(other),
        };
        if let (Some(word), Some(kept)) = (words.last_mut(), kept) {
            word.push(kept);
        }
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => setting.replace('-', "_"),
            (None, Some("")) => words.next().unwrap_or_default(),
            (None, Some(setting)) => setting.to_owned(),
            (None, None) => String::new(),
        };
        let Some((name, value)) = setting.split_once('=') else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(Failure::new(sqlstate::SYNTAX_ERROR, message));
        };
        settings.push((name.trim().to_owned(), value.to_owned()));
    }
    Ok(settings)
}

/// The purpose of a connection.
#[derive(Debug)]
pub enum Opened {
    /// A session.
    Session(Startup),
    /// A cancel request, with process number and secret.
    Cancel(i32, i32),
    /// An invalid request, which is answered before the connection ends.
    Refused(Failure),
}

/// Reads first messages until the purpose of the connection is known.
///
/// Errors: the client disconnects, or sends an invalid first message.
pub fn open<S: Read + Write>(mut wire: Wire<S>, tls: Option<&Tls>) -> Result<(Wire<S>, Opened), ReadError> {
    let (mut asked_ssl, mut asked_gss) = (false, false);
    // BOUND: each kind of encryption may be requested once.
    loop {
        let first = decode(wire.receive_untagged(STARTUP_BYTES_MAX)?);
        match first {
            Ok(First::Ssl) if !asked_ssl => {
                asked_ssl = true;
                match tls.filter(|_| !wire.transport().is_tls()) {
                    None => wire.out.push(b'N'),
                    Some(tls) => {
                        wire.out.push(b'S');
                        wire = wire.into_tls(&tls.config)?;
                    }
                }
            }
            Ok(First::Gssenc) if !asked_gss => {
                asked_gss = true;
                wire.out.push(b'N');
            }
            Ok(First::Ssl | First::Gssenc) => {
                return Err(ProtocolError::Malformed { message: "StartupMessage" }.into());
            }
            Ok(First::Cancel { process, secret }) => return Ok((wire, Opened::Cancel(process, secret))),
            Ok(First::Startup(startup)) => {
                if startup.minor > 0 || !startup.unknown.is_empty() {
                    let unknown: Vec<&str> = startup.unknown.iter().map(String::as_str).collect();
                    backend::negotiate_protocol_version(&mut wire.out, &unknown);
                }
                return Ok((wire, Opened::Session(startup)));
            }
            Err(failure) => return Ok((wire, Opened::Refused(failure))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a startup message from these strings.
    fn message(version: i32, strings: &[&str]) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        strings.iter().for_each(|text| body.extend(text.bytes().chain([0])));
        body.push(0);
        body
    }

    /// Goal: user, database and settings are decoded, including those from options; unknown
    /// protocol options are kept for the answer.
    #[test]
    fn startup_messages_are_understood() {
        let body = message(
            196_608,
            &["user", "ann", "options", r"-c a=1 --b-c=x\ y -cd=", "_pq_.x", "1", "DateStyle", "ISO"],
        );
        let Ok(First::Startup(startup)) = decode(&body) else { panic!() };
        assert_eq!((startup.user.as_str(), startup.database.as_str(), startup.minor), ("ann", "ann", 0));
        let pairs = [("a", "1"), ("b_c", "x y"), ("d", ""), ("DateStyle", "ISO")];
        assert_eq!(startup.settings, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(startup.unknown, ["_pq_.x"]);
        assert_eq!(decode(&80_877_103_i32.to_be_bytes()), Ok(First::Ssl));
        assert_eq!(decode(&80_877_104_i32.to_be_bytes()), Ok(First::Gssenc));
        let cancel = [80_877_102_i32, 7, -9].map(i32::to_be_bytes).concat();
        assert_eq!(decode(&cancel), Ok(First::Cancel { process: 7, secret: -9 }));
    }

    /// Goal: unsupported requests are refused with PostgreSQL's error codes.
    #[test]
    fn others_are_refused() {
        let code = |body: &[u8]| decode(body).unwrap_err().sqlstate;
        assert_eq!(code(&message(131_072, &["user", "ann"])), sqlstate::FEATURE_NOT_SUPPORTED);
        assert_eq!(code(&message(196_608, &["database", "x"])), sqlstate::INVALID_AUTHORIZATION);
        assert_eq!(
            code(&message(196_608, &["user", "a", "replication", "true"])),
            sqlstate::FEATURE_NOT_SUPPORTED
        );
        assert_eq!(code(&message(196_608, &["user", "a", "options", "nonsense"])), sqlstate::SYNTAX_ERROR);
        let whole = message(196_608, &["user", "ann", "database", "x"]);
        for length in 0..whole.len() {
            assert_eq!(code(&whole[..length]), sqlstate::PROTOCOL_VIOLATION, "{length}");
        }
        assert_eq!(code(b"\0\x03\0\0user\0\xff\0\0"), sqlstate::CHARACTER_NOT_IN_REPERTOIRE);
    }
}
