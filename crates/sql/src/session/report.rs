//! Errors as they are reported: with the statement, and with the reason for a cancellation.

use super::Session;
use crate::error::{Error, Result};
use crate::sqlstate::{DISK_FULL, INTERNAL_ERROR, QUERY_CANCELED, READ_ONLY_SQL_TRANSACTION};

/// The longest part of a statement to include in an error, in bytes.
const NAMED_BYTES: usize = 1_000;

/// Adds the statement to an internal error, so that reports of it are complete.
pub(crate) fn naming(error: Error, sql: &str) -> Error {
    if error.sqlstate() != INTERNAL_ERROR {
        return error;
    }
    let end = (0..=NAMED_BYTES.min(sql.len())).rev().find(|&at| sql.is_char_boundary(at)).unwrap_or(0);
    let statement = format!("The statement: {}", sql.get(..end).unwrap_or_default());
    match error.detail() {
        Some(detail) if detail.contains("The statement: ") => error,
        Some(detail) => {
            let detail = format!("{detail}\n{statement}");
            error.with_detail(detail)
        }
        None => error.with_detail(statement),
    }
}

impl Session {
    /// Rejects changes in read-only transactions.
    ///
    /// Errors: 25006.
    pub fn check_writable(&self, what: &str) -> Result<()> {
        if self.shared.is_full {
            let what = format!(
                "cannot execute {what}: the disk was full when the database was opened, \
                 so it is read-only; free space and reopen it"
            );
            return Err(Error::new(DISK_FULL, what));
        }
        if self.open.as_ref().is_some_and(|open| open.read_only) {
            let what = format!("cannot execute {what} in a read-only transaction");
            return Err(Error::new(READ_ONLY_SQL_TRANSACTION, what));
        }
        Ok(())
    }

    /// Adds information to an error that the tables lack, such as the reason for a cancellation.
    pub fn explain(&self, error: Error) -> Error {
        let timed_out = self.timer.as_ref().is_some_and(|timer| timer.has_fired());
        if error.sqlstate() == QUERY_CANCELED && timed_out {
            return Error::new(QUERY_CANCELED, "canceling statement due to statement timeout");
        }
        match &self.running {
            Some(running) => naming(error, running),
            None => error,
        }
    }
}
