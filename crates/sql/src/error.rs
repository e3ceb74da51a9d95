//! What can go wrong with a statement.

use std::fmt;

use cairn_vfs::ErrorKind;

use crate::sqlstate;

/// A failed statement or operation. Small to move: what it says is elsewhere.
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

/// What of the database an error is about, as far as it says. Of constraints that were violated:
/// their names, and the tables that have them; of NULL where there may be none: the column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The namespace of the table.
    pub schema: Option<String>,
    /// The table. Of a foreign key it is the one that refers, whichever was to be changed.
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
    /// An error with one of the codes in [`sqlstate`].
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

    /// Something that PostgreSQL or the standard has, and this engine has not.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Error::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// Adds what precisely was found.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds where in the statement it is: the character, counted from 1.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Adds what of the database it is about.
    #[must_use]
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.0.subject = subject;
        self
    }

    /// Adds which of PostgreSQL's routines says so.
    #[must_use]
    pub(crate) fn in_routine(mut self, routine: &'static str) -> Self {
        self.0.routine = Some(routine);
        self
    }

    /// The routine of PostgreSQL's that has this error, where clients tell errors of one code apart
    /// by it.
    pub fn routine(&self) -> Option<&'static str> {
        self.0.routine
    }

    /// The code: five characters, PostgreSQL's.
    pub fn sqlstate(&self) -> &'static str {
        self.0.sqlstate
    }

    /// What happened, in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What precisely was found.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Where in the statement: the character, counted from 1.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// What of the database it is about: the constraint that was violated, its table, the column.
    pub fn subject(&self) -> &Subject {
        &self.0.subject
    }

    /// What the caller may do about it.
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
            _ => ErrorKind::Invalid,
        }
    }

    /// True where the same transaction may succeed when it is run again from its start.
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
        // Ours, on its way through the tables.
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
