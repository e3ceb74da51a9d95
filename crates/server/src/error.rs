//! What can go wrong: for whoever runs the server ([`Error`]), for a client ([`Failure`]), in the
//! protocol ([`ProtocolError`]).

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_sql::Subject;
use cairn_vfs::ErrorKind;

use crate::sqlstate;

/// A server that cannot start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// A socket file that cannot be listened on.
    #[error("cannot listen on the socket {}: {source}", path.display())]
    Socket {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Certificate or key are not usable.
    #[error("TLS: {0}")]
    Tls(String),
    /// A password file that is not what it should be.
    #[error("{}, line {line}: {what}", path.display())]
    Passwords {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What was expected.
        what: &'static str,
    },
    /// Settings that contradict each other or would let everybody in.
    #[error("{0}")]
    Settings(String),
    /// A file.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// The database.
    #[error(transparent)]
    Sql(#[from] cairn_sql::Error),
    /// The operating system gives no thread, no randomness or no way to wait.
    #[error("{what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl Error {
    /// What the caller may do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Listen { source, .. } | Error::Socket { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => ErrorKind::Busy,
                io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Io,
            },
            Error::Tls(_) | Error::Passwords { .. } | Error::Settings(_) => ErrorKind::Invalid,
            Error::Vfs(error) => error.kind(),
            Error::Sql(error) => error.kind(),
            Error::System { .. } => ErrorKind::Io,
        }
    }
}

/// Bytes that no client of this protocol sends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A body that is not what its tag says.
    #[error("invalid message format: {message}")]
    Malformed {
        /// The message.
        message: &'static str,
    },
    /// A string that is no UTF-8.
    #[error("invalid byte sequence for encoding \"UTF8\" in {message}")]
    Encoding {
        /// The message.
        message: &'static str,
    },
    /// A first byte that no message has.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
    /// A length that is none, or too much.
    #[error("invalid message length {length}: at most {bytes_max} bytes are accepted")]
    Length {
        /// What the header says.
        length: i64,
        /// The limit.
        bytes_max: usize,
    },
}

/// The result of decoding.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// PostgreSQL's code.
    pub sqlstate: Cow<'static, str>,
    /// One line.
    pub message: String,
    /// What precisely was found.
    pub detail: Option<Box<str>>,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// Where in the statement: the character, from 1.
    pub position: Option<usize>,
    /// The constraint that was violated, its table, the column.
    pub subject: Box<Subject>,
    /// The routine of PostgreSQL's that says so, where clients go by it.
    pub routine: Option<&'static str>,
}

impl Failure {
    /// A code and a line.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Failure {
            sqlstate: sqlstate.into(),
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            subject: Box::default(),
            routine: None,
        }
    }

    /// Adds what precisely was found.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Box<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        let sqlstate = match error {
            ProtocolError::Encoding { .. } => sqlstate::CHARACTER_NOT_IN_REPERTOIRE,
            _ => sqlstate::PROTOCOL_VIOLATION,
        };
        Failure::new(sqlstate, error.to_string())
    }
}

impl From<cairn_sql::Error> for Failure {
    fn from(error: cairn_sql::Error) -> Self {
        Failure {
            sqlstate: error.sqlstate().into(),
            message: error.to_string(),
            detail: error.detail().map(Box::from),
            hint: error.hint().map(Box::from),
            position: error.position(),
            subject: Box::new(error.subject().clone()),
            routine: error.routine(),
        }
    }
}
