//! What can be wrong with a configuration or a file.

/// An error of the simulator. All of them are about input: the model itself cannot fail.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting has a value that cannot be, or that contradicts another.
    #[error("{name} is {value}, expected {expected}")]
    Option {
        /// The setting, by its name in configurations, with its section.
        name: String,
        /// Its value.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// A text could not be understood.
    #[error("{file}, line {line}: {what}")]
    Parse {
        /// The file, or what stands for it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, with the name of the setting where there is one.
        what: String,
    },
}

impl Error {
    /// A setting that is out of bounds.
    pub fn option(name: &str, value: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Error::Option { name: name.to_owned(), value: value.to_string(), expected: expected.into() }
    }

    /// A line that cannot be understood.
    pub fn parse(file: &str, line: usize, what: impl Into<String>) -> Self {
        Error::Parse { file: file.to_owned(), line, what: what.into() }
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Fails with [`Error::Option`] unless the condition holds.
pub(crate) fn expect(holds: bool, name: &str, value: impl std::fmt::Display, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::option(name, value, expected)) }
}
