//! What can go wrong with a database, and what to do about it.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_vfs::ErrorKind;

/// A table by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Its namespace.
    pub schema: String,
    /// Its name there.
    pub table: String,
}

/// A failed operation on a database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A page could not be had, or not be written.
    #[error(transparent)]
    Pool(#[from] cairn_pool::Error),
    /// Pages are not what a writer of this format writes.
    #[error("page {page} of {} is damaged: {what}", file.display())]
    Corruption {
        /// The database file.
        file: PathBuf,
        /// The page.
        page: u32,
        /// What was found and what was expected.
        what: String,
    },
    /// A file with bytes that begin no database. Nothing was written to it.
    #[error("{} is not a database: expected an empty file or a database file", file.display())]
    NotADatabase {
        /// The file.
        file: PathBuf,
    },
    /// The log refused a record.
    #[error("the log cannot be written: {cause}")]
    Log {
        /// What it said.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The file system failed.
    #[error(transparent)]
    Vfs(#[from] Arc<cairn_vfs::Error>),
    /// A log that cannot be read.
    #[error(transparent)]
    Recovery(#[from] Arc<cairn_wal::Error>),
    /// An argument or setting is wrong.
    #[error("{what}")]
    Invalid {
        /// The argument, its value and what was expected.
        what: String,
    },
    /// A key or value is longer than a page has room for.
    #[error("a record of {key} + {value} bytes is too long: at most {most} together are allowed")]
    TooLong {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the value.
        value: usize,
        /// The most that both may have.
        most: usize,
    },
    /// The file has as many pages as it can.
    #[error("the database has no pages left: 2^32 is the maximum")]
    NoPages,
    /// Too many at the same time.
    #[error("too many {what} at the same time: {most} is the maximum")]
    Busy {
        /// What there are too many of.
        what: &'static str,
        /// The most.
        most: usize,
    },
    /// An earlier failure left changes in memory that could be neither logged nor undone. Opening
    /// the database again recovers it.
    #[error("the database has to be opened again after a failure: {cause}")]
    Failed {
        /// What failed.
        cause: Arc<str>,
    },
    /// Two rows with the same values in columns where there may be only one.
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
    /// NULL where there may be none.
    #[error("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")]
    NotNull {
        /// The namespace of the table.
        schema: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// A reference to a row that is not there, or that would not be there any more.
    #[error("{change} on table \"{table}\" violates foreign key constraint \"{constraint}\"{on}")]
    ForeignKeyViolation {
        /// What was tried: `insert or update`, `update or delete`.
        change: &'static str,
        /// The table that was to be changed.
        table: String,
        /// The constraint.
        constraint: String,
        /// The table that refers, and has the constraint.
        child: Box<Relation>,
        /// The other table: ` on table "b"`, or nothing.
        on: Box<str>,
        /// The columns and values, and what is with them.
        detail: String,
    },
    /// A row that follows another one, and may not be: whoever makes the rules for rows said so
    /// ([`Rules`](crate::Rules)).
    #[error("{cause}")]
    Refused {
        /// What they said.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A text that is longer than its column says.
    #[error("value too long for type {kind} in column \"{column}\"")]
    TooWide {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A number that has more digits than its column says.
    #[error("numeric field overflow in column \"{column}\" of type {kind}")]
    OutOfRange {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
    },
    /// A value of another type than the column's, or one that no column can hold.
    #[error("column \"{column}\" is of type {kind}, and {what}")]
    WrongType {
        /// The column.
        column: String,
        /// Its type.
        kind: String,
        /// What is wrong.
        what: String,
    },
    /// The transaction cannot be put in a line with others. Try it again from its beginning.
    #[error("could not serialize access: {what}")]
    SerializationFailure {
        /// Why.
        what: &'static str,
    },
    /// Transactions wait for each other in a circle. This one has to be undone, and can be tried
    /// again.
    #[error("deadlock detected")]
    Deadlock {
        /// The transactions of the circle, by their numbers.
        detail: String,
    },
    /// Waited for a lock for as long as is allowed.
    #[error("canceling statement due to lock timeout")]
    LockTimeout,
    /// Somebody cancelled it.
    #[error("canceling statement due to user request")]
    Cancelled,
    /// A table that was looked up before its schema was changed, or before that change was taken
    /// back: look it up again.
    #[error("table \"{table}\" was changed or removed since it was looked up")]
    StaleTable {
        /// Its name, as it was.
        table: String,
    },
    /// A name that is taken.
    #[error("{what} \"{name}\" already exists")]
    AlreadyExists {
        /// What has it.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name that nothing has.
    #[error("{what} \"{name}\" does not exist")]
    NotFound {
        /// What was expected.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Something else needs it.
    #[error("cannot drop {what} because other objects depend on it")]
    InUse {
        /// What.
        what: String,
        /// Who needs it.
        detail: String,
    },
}

impl Error {
    /// Whether the disk has no room, or the owner's share of it is used up.
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

    /// What the caller may do about it.
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
