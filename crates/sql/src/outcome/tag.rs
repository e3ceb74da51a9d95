//! What PostgreSQL says when a statement is done.

use std::borrow::Cow;
use std::fmt;

/// `INSERT 0 1`, `SELECT 5`, `CREATE TABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTag {
    /// What was done.
    pub verb: Cow<'static, str>,
    /// To how many rows, where it was rows.
    pub rows: Option<u64>,
}

impl CommandTag {
    /// For what is not done to rows.
    pub const fn new(verb: &'static str) -> Self {
        CommandTag { verb: Cow::Borrowed(verb), rows: None }
    }

    /// For what is done to rows.
    pub const fn of_rows(verb: &'static str, rows: u64) -> Self {
        CommandTag { verb: Cow::Borrowed(verb), rows: Some(rows) }
    }
}

impl fmt::Display for CommandTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.verb)?;
        match self.rows {
            Some(rows) => write!(f, " {rows}"),
            None => Ok(()),
        }
    }
}
