//! Errors of statements.

use std::fmt;

use cairn_vfs::ErrorKind;

use crate::sqlstate;

/// The error of a statement or an operation. It is cheap to move, because its contents are boxed.
#[derive(Debug, Clone)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    sqlstate: &'static str,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    subject: Subject,
    routine: Option<&'static str>,
    source: Option<cairn_table::Error>,
}

/// The database object that an error is about, as far as it is known. For a violated constraint,
/// its name and its table; for a violated NOT NULL, the column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The namespace of the table.
    pub schema: Option<String>,
    /// The table. For a foreign key it is the referring table, even if the other one was changed.
    pub table: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The constraint or unique index.
    pub constraint: Option<String>,
}

impl Subject {
    pub(crate) fn constraint(schema: &str, table: &str, name: &str) -> Subject {
        Subject { constraint: Some(name.to_owned()), ..Subject::table(schema, table) }
    }

    pub(crate) fn column(schema: &str, table: &str, name: &str) -> Subject {
        Subject { column: Some(name.to_owned()), ..Subject::table(schema, table) }
    }

    fn table(schema: &str, table: &str) -> Subject {
        Subject { schema: Some(schema.to_owned()), table: Some(table.to_owned()), ..Subject::default() }
    }

    fn of(error: &cairn_table::Error) -> Subject {
        use cairn_table::Error as E;
        match error {
            E::UniqueViolation { schema, table, index, .. } => Subject::constraint(schema, table, index),
            E::NotNull { schema, table, column } => Subject::column(schema, table, column),
            E::ForeignKeyViolation { child, constraint, .. } => {
                Subject::constraint(&child.schema, &child.table, constraint)
            }
            _ => Subject::default(),
        }
    }
}

/// The result of a statement.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error with one of the codes in [`sqlstate`].
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            subject: Subject::default(),
            routine: None,
            source: None,
        }))
    }

    /// Returns the error for a feature of PostgreSQL or the standard that this engine lacks.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Error::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// Adds the details of the error.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a suggestion for the user.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the position in the statement, in characters counted from 1.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Adds the database object that the error is about.
    #[must_use]
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.0.subject = subject;
        self
    }

    /// Adds the PostgreSQL routine that raises this error.
    #[must_use]
    pub(crate) fn in_routine(mut self, routine: &'static str) -> Self {
        self.0.routine = Some(routine);
        self
    }

    /// The PostgreSQL routine that raises this error. Clients use it to distinguish errors of the
    /// same code.
    pub fn routine(&self) -> Option<&'static str> {
        self.0.routine
    }

    /// PostgreSQL's code, five characters.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate
    }

    /// The message, in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The details of the error.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// A suggestion for the user.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The position in the statement, in characters counted from 1.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The database object that the error is about: the violated constraint, its table, the column.
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// Classifies the error by the caller's possible reactions.
    pub fn kind(&self) -> ErrorKind {
        if let Some(source) = &self.0.source {
            return source.kind();
        }
        match self.sqlstate() {
            sqlstate::LOCK_NOT_AVAILABLE | sqlstate::OBJECT_IN_USE => ErrorKind::Busy,
            sqlstate::SERIALIZATION_FAILURE | sqlstate::DEADLOCK_DETECTED => ErrorKind::Conflict,
            sqlstate::UNDEFINED_TABLE
            | sqlstate::UNDEFINED_COLUMN
            | sqlstate::UNDEFINED_OBJECT
            | sqlstate::UNDEFINED_FUNCTION
            | sqlstate::UNDEFINED_FILE
            | sqlstate::INVALID_SCHEMA_NAME => ErrorKind::NotFound,
            sqlstate::DATA_CORRUPTED => ErrorKind::Corruption,
            sqlstate::IO_ERROR | sqlstate::DISK_FULL => ErrorKind::Io,
            sqlstate::FEATURE_NOT_SUPPORTED => ErrorKind::Unsupported,
            sqlstate::INTERNAL_ERROR => ErrorKind::Bug,
            _ => ErrorKind::Invalid,
        }
    }

    /// Whether the same transaction may succeed if it is run again from its start.
    pub fn is_retryable(&self) -> bool {
        matches!(self.sqlstate(), sqlstate::SERIALIZATION_FAILURE | sqlstate::DEADLOCK_DETECTED)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

impl From<cairn_table::Error> for Error {
    fn from(source: cairn_table::Error) -> Self {
        use cairn_table::Error as E;
        // An error of this crate that has passed through the tables.
        if let E::Refused { cause } = &source
            && let Some(error) = cause.downcast_ref::<Error>()
        {
            return error.clone();
        }
        let (sqlstate, detail) = match &source {
            E::UniqueViolation { key, .. } => {
                (sqlstate::UNIQUE_VIOLATION, Some(format!("Key {key} already exists.")))
            }
            E::NotNull { .. } => (sqlstate::NOT_NULL_VIOLATION, None),
            E::ForeignKeyViolation { detail, .. } => (sqlstate::FOREIGN_KEY_VIOLATION, Some(detail.clone())),
            E::TooWide { .. } => (sqlstate::STRING_DATA_RIGHT_TRUNCATION, None),
            E::OutOfRange { .. } => (sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, None),
            E::WrongType { .. } => (sqlstate::DATATYPE_MISMATCH, None),
            E::SerializationFailure { .. } => (sqlstate::SERIALIZATION_FAILURE, None),
            E::Deadlock { detail } => (sqlstate::DEADLOCK_DETECTED, Some(detail.clone())),
            E::LockTimeout => (sqlstate::LOCK_NOT_AVAILABLE, None),
            E::Cancelled => (sqlstate::QUERY_CANCELED, None),
            E::AlreadyExists { what: "schema", .. } => (sqlstate::DUPLICATE_SCHEMA, None),
            E::AlreadyExists { .. } => (sqlstate::DUPLICATE_TABLE, None),
            E::NotFound { what: "schema", .. } => (sqlstate::INVALID_SCHEMA_NAME, None),
            E::NotFound { .. } => (sqlstate::UNDEFINED_TABLE, None),
            E::InUse { detail, .. } => (sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, Some(detail.clone())),
            E::TooLong { .. } | E::NoPages | E::Busy { .. } => (sqlstate::PROGRAM_LIMIT_EXCEEDED, None),
            other => match other.kind() {
                ErrorKind::Corruption => (sqlstate::DATA_CORRUPTED, None),
                ErrorKind::Busy => (sqlstate::LOCK_NOT_AVAILABLE, None),
                ErrorKind::Unsupported => (sqlstate::FEATURE_NOT_SUPPORTED, None),
                ErrorKind::Invalid => (sqlstate::INVALID_PARAMETER_VALUE, None),
                ErrorKind::Bug => (sqlstate::INTERNAL_ERROR, None),
                _ => (sqlstate::IO_ERROR, None),
            },
        };
        let mut error = Error::new(sqlstate, source.to_string());
        error.0.detail = detail;
        error.0.subject = Subject::of(&source);
        error.0.source = Some(source);
        error
    }
}
