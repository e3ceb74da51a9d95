//! Messages of statements that are not errors.

/// A message to the client that is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// PostgreSQL's code, five characters.
    pub sqlstate: &'static str,
    /// The message.
    pub message: String,
}
