//! Errors in configurations and files.

/// An error of the simulator. All of them concern input: the model itself cannot fail.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range or contradicts another.
    #[error("{name} is {value}, expected {expected}")]
    Option {
        /// The name of the setting in configurations, with its section.
        name: String,
        /// Its value.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// A text could not be parsed.
    #[error("{file}, line {line}: {what}")]
    Parse {
        /// The file, or a name for the source of the text.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The problem, with the name of the setting if there is one.
        what: String,
    },
}

impl Error {
    /// Creates an error for a setting that is out of range.
    pub fn option(name: &str, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Error::Option { name: name.to_owned(), value: value.to_string(), expected: expected.into() }
    }

    /// Creates an error for a line that cannot be parsed.
    pub fn parse(file: &str, line: usize, what: impl Into<String>) -> Self {
        Error::Parse { file: file.to_owned(), line, what: what.into() }
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Fails with [`Error::Option`] unless the condition holds.
pub(crate) fn expect(holds: bool, name: &str, value: impl std::fmt::Display, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::option(name, value, expected)) }
}
