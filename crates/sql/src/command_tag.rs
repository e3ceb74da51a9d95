//! PostgreSQL's command tags.

use std::borrow::Cow;
use std::fmt;

/// A command tag: `INSERT 0 1`, `SELECT 5`, `CREATE TABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTag {
    /// The command.
    pub verb: Cow<'static, str>,
    /// The number of rows, for commands on rows.
    pub rows: Option<u64>,
}

impl CommandTag {
    /// Returns the tag of a command that does not count rows.
    pub const fn new(verb: &'static str) -> Self {
        CommandTag { verb: Cow::Borrowed(verb), rows: None }
    }

    /// Returns the tag of a command that counts rows.
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
