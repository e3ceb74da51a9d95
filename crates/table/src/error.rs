//! Errors of a database, and how callers can react to them.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_vfs::{Bug, ErrorKind};

/// The names of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its namespace.
    pub schema: String,
    /// Its name in the namespace.
    pub table: String,
}

/// A failed operation on a database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A page could not be read or written.
    #[error(transparent)]
    Pool(#[from] cairn_pool::Error),
    /// A page has contents that are invalid in this format.
    #[error("page {page} of {} is damaged: {what}", file.display())]
    Corruption {
        /// The database file.
        file: PathBuf,
        /// The page number.
        page: u32,
        /// The problem: found and expected contents.
        what: String,
    },
    /// The file does not begin like a database. Nothing was written to it.
    #[error("{} is not a database: expected an empty file or a database file", file.display())]
    NotADatabase {
        /// The file.
        file: PathBuf,
    },
    /// The file is of a version of the format that this build does not read.
    #[error("{}: {what}", file.display())]
    Unsupported {
        /// The database file.
        file: PathBuf,
        /// The version found, and those that this build reads.
        what: String,
    },
    /// The log refused a record.
    #[error("the log cannot be written: {cause}")]
    Log {
        /// The log's error.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// The log cannot be read.
    #[error(transparent)]
    Recovery(#[from] Arc<cairn_wal::Error>),
    /// An argument or option is invalid.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// An invariant of Cairn does not hold: not the caller's mistake.
    #[error(transparent)]
    Bug(#[from] Bug),
    /// A key and value are too long for a page.
    #[error("a record of {key} + {value} bytes is too long: at most {most} together are allowed")]
    TooLong {
        /// Size of the key in bytes.
        key: usize,
        /// Size of the value in bytes.
        value: usize,
        /// The maximum for both together.
        most: usize,
    },
    /// The file has the maximum number of pages.
    #[error("the database has no pages left: 2^32 is the maximum")]
    NoPages,
    /// Too many concurrent uses.
    #[error("too many {what} at the same time: {most} is the maximum")]
    Busy {
        /// The resource that is exhausted.
        what: &'static str,
        /// The maximum number.
        most: usize,
    },
    /// An earlier failure left changes in memory that could be neither logged nor undone. Reopening
    /// the database recovers it.
    #[error("the database must be reopened after a failure: {cause}")]
    Failed {
        /// The failure.
        cause: Arc<str>,
    },
    /// Two rows with the same values in unique columns.
    #[error("duplicate key value violates unique constraint \"{index}\"")]
    UniqueViolation {
        /// The namespace of the table.
        schema: String,
        /// The table.
        table: String,
        /// The index or primary key.
        index: String,
        /// The columns and values: `(a, b)=(1, 2)`.
        key: String,
    },
    /// NULL in a column that does not allow it.
    #[error("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")]
    NotNull {
        /// The namespace of the table.
        schema: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A reference to a row that does not exist or would no longer exist.
    #[error("{change} on table \"{table}\" violates foreign key constraint \"{constraint}\"{on}")]
    ForeignKeyViolation {
        /// The attempted change: `insert or update`, `update or delete`.
        change: &'static str,
        /// The table to be changed.
        table: String,
        /// The constraint.
        constraint: String,
        /// The referencing table, which has the constraint.
        child: Box<Relation>,
        /// The other table: ` on table "b"`, or nothing.
        on: Box<str>,
        /// The columns and values, and the problem with them.
        detail: String,
    },
    /// A referencing row that a foreign key would change, but that is not allowed according to the
    /// [`Rules`](crate::Rules).
    #[error("{cause}")]
    Refused {
        /// The reason.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A text that is longer than its column allows.
    #[error("value too long for type {kind} in column \"{column}\"")]
    TooWide {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A number with more digits than its column allows.
    #[error("numeric field overflow in column \"{column}\" of type {kind}")]
    OutOfRange {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A value of a type other than the column's, or one that no column can hold.
    #[error("column \"{column}\" is of type {kind}, but {what}")]
    WrongType {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
        /// The problem.
        what: String,
    },
    /// The transaction cannot be serialized with others. Retry it from its beginning.
    #[error("could not serialize access: {what}")]
    SerializationFailure {
        /// The reason.
        what: &'static str,
    },
    /// A deadlock: transactions wait for each other. This one must be rolled back, and can be
    /// retried.
    #[error("deadlock detected")]
    Deadlock {
        /// The numbers of the transactions in the cycle.
        detail: String,
    },
    /// The lock timeout has expired.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// The operation was cancelled.
    #[error("canceling statement due to user request")]
    Cancelled,
    /// A table that was looked up before its schema changed, or before such a change was rolled
    /// back. Look it up again.
    #[error("table \"{table}\" was changed or removed since it was looked up")]
    StaleTable {
        /// Its former name.
        table: String,
    },
    /// The name is already in use.
    #[error("{what} \"{name}\" already exists")]
    AlreadyExists {
        /// The kind of object that has it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// There is no object with this name.
    #[error("{what} \"{name}\" does not exist")]
    NotFound {
        /// The expected kind of object.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Another object depends on it.
    #[error("cannot drop {what} because other objects depend on it")]
    InUse {
        /// The object.
        what: String,
        /// The dependent object.
        detail: String,
    },
}

impl Error {
    /// Returns whether the disk is full, or the quota of the user is exhausted.
    pub fn is_full(&self) -> bool {
        match self {
            Error::Pool(cairn_pool::Error::Log { cause, .. }) | Error::Log { cause } => {
                let full = |error: &(dyn std::error::Error + 'static)| {
                    error.downcast_ref::<cairn_wal::Error>().is_some_and(cairn_wal::Error::is_full)
                        || error.downcast_ref::<Error>().is_some_and(Error::is_full)
                };
                full(&**cause)
            }
            Error::Pool(error) => error.is_full(),
            Error::Vfs(error) => error.is_full(),
            Error::Recovery(error) => error.is_full(),
            _ => false,
        }
    }

    /// Returns the kind of error, which tells how a caller can react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Pool(error) => error.kind(),
            Error::Corruption { .. } => ErrorKind::Corruption,
            Error::Log { .. } => ErrorKind::Io,
            Error::Vfs(error) => error.kind(),
            Error::Recovery(error) => error.kind(),
            Error::Invalid { .. } | Error::NotADatabase { .. } => ErrorKind::Invalid,
            Error::Busy { .. } | Error::LockTimeout | Error::Cancelled => ErrorKind::Busy,
            Error::SerializationFailure { .. } | Error::Deadlock { .. } | Error::StaleTable { .. } => {
                ErrorKind::Conflict
            }
            Error::Bug(_) => ErrorKind::Bug,
            Error::Unsupported { .. } => ErrorKind::Unsupported,
            Error::Failed { .. } => ErrorKind::Poisoned,
            Error::NotFound { .. } => ErrorKind::NotFound,
            Error::TooLong { .. }
            | Error::NoPages
            | Error::UniqueViolation { .. }
            | Error::NotNull { .. }
            | Error::ForeignKeyViolation { .. }
            | Error::Refused { .. }
            | Error::TooWide { .. }
            | Error::OutOfRange { .. }
            | Error::WrongType { .. }
            | Error::AlreadyExists { .. }
            | Error::InUse { .. } => ErrorKind::Invalid,
        }
    }
}

impl From<cairn_vfs::Error> for Error {
    fn from(error: cairn_vfs::Error) -> Self {
        Error::Vfs(Arc::new(error))
    }
}

impl From<cairn_wal::Error> for Error {
    fn from(error: cairn_wal::Error) -> Self {
        Error::Recovery(Arc::new(error))
    }
}

/// The result of an operation on a database.
pub type Result<T, E = Error> = std::result::Result<T, E>;
