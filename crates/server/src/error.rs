//! Errors: of the server ([`Error`]), for a client ([`Failure`]), and of the protocol
//! ([`ProtocolError`]).

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use cairn_sql::Subject;
use cairn_vfs::ErrorKind;

use crate::sqlstate;

/// The server cannot start or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// A socket file cannot be listened on.
    #[error("cannot listen on the socket {}: {source}", path.display())]
    Socket {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The certificate or the key is not usable.
    #[error("TLS: {0}")]
    Tls(String),
    /// A password file is invalid.
    #[error("{}, line {line}: {what}", path.display())]
    Passwords {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The expected content.
        what: &'static str,
    },
    /// Settings contradict each other, or would let everybody in.
    #[error("{0}")]
    Settings(String),
    /// A file operation failed.
    #[error(transparent)]
    Vfs(#[from] cairn_vfs::Error),
    /// The database failed.
    #[error(transparent)]
    Sql(#[from] cairn_sql::Error),
    /// The operating system cannot start a thread, provide random numbers, or wait for sockets.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
}

impl Error {
    /// Returns the class of the error, by which a caller can react.
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

/// Bytes that violate the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A message body does not match its tag.
    #[error("invalid message format: {message}")]
    Malformed {
        /// The name of the message.
        message: &'static str,
    },
    /// A string is not valid UTF-8.
    #[error("invalid byte sequence for encoding \"UTF8\" in {message}")]
    Encoding {
        /// The name of the message.
        message: &'static str,
    },
    /// The tag of a message is unknown.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
    /// A length is invalid or too large.
    #[error("invalid message length {length}: at most {bytes_max} bytes are accepted")]
    Length {
        /// The length in the header.
        length: i64,
        /// The limit.
        bytes_max: usize,
    },
}

/// The result of decoding.
pub type Result<T, E = ProtocolError> = std::result::Result<T, E>;

/// An error that a client receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// PostgreSQL's error code.
    pub sqlstate: Cow<'static, str>,
    /// A message of one line.
    pub message: String,
    /// Details of the error.
    pub detail: Option<Box<str>>,
    /// A remedy.
    pub hint: Option<Box<str>>,
    /// The position in the statement, in characters from 1.
    pub position: Option<usize>,
    /// The constraint that was violated, with its table and column.
    pub subject: Box<Subject>,
    /// The routine of PostgreSQL that reports this error, if clients depend on it.
    pub routine: Option<&'static str>,
}

impl Failure {
    /// Creates an error from a code and a message.
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

    /// Adds details.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Box<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a remedy.
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
