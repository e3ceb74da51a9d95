//! SQL statements whose correct answers are known because independent engines agree on them.
//!
//! ```text
//!   seed ─► draw ─► statements: expressions, queries, changes, scripts
//!              ├─► records:   run by SQLite and PostgreSQL; where both agree, kept for the
//!              │              sqllogictest runner (testing/slt)
//!              ├─► partition: run by Cairn, whole and assembled from partitions
//!              └─► differ:    run by Cairn as well; each different answer is shown with the seed.
//!                             The reference is PostgreSQL with SQLite, or Cairn itself without
//!                             its optimizer or its direct path
//! ```
//!
//! Statements are drawn so that agreement is likely and still meaningful: NULLs everywhere, small
//! numbers, and texts that compare the same in every bytewise collation. Where engines differ by
//! design (division by zero, booleans, the order of NULLs), the statement requests PostgreSQL's
//! behavior in syntax that both accept, or it is dropped.

pub mod change;
pub mod differ;
pub mod draw;
#[cfg(feature = "peers")]
pub mod engines;
pub mod expr;
pub mod partition;
pub mod query;
pub mod records;
pub mod schema;
pub mod script;
pub mod shape;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::core::time::date_text;
use crate::stores::sql::SqlSession;

/// The outcome of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded and changed this many rows; 0 if rows are not counted.
    Done(u64),
    /// It returned these rows.
    Rows(Vec<Vec<Shown>>),
    /// It was refused, with this message.
    Failed(String),
}

/// A value in the form in which it is compared and written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Text, or any other value as text.
    Text(String),
}

impl fmt::Display for Shown {
    /// Formats the value as sqllogictest does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Null => f.write_str("NULL"),
            Shown::Int(value) => write!(f, "{value}"),
            Shown::Text(text) if text.is_empty() => f.write_str("(empty)"),
            Shown::Text(text) => f.write_str(text),
        }
    }
}

impl Outcome {
    /// Returns the outcome with its rows sorted, so that it does not depend on the engine's order.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        if let Outcome::Rows(rows) = &mut self {
            rows.sort();
        }
        self
    }

    /// Returns whether the outcomes are equal. Two failures are equal whatever their messages.
    pub fn agrees(&self, other: &Outcome) -> bool {
        match (self, other) {
            (Outcome::Failed(_), Outcome::Failed(_)) => true,
            (one, other) => one == other,
        }
    }
}

/// A statement that was drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The SQL text.
    pub sql: String,
    /// The kind of statement.
    pub kind: Kind,
}

/// The kind of a statement, which determines how its outcomes are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A query with rows in any order.
    Query,
    /// A query with a complete ORDER BY.
    Ordered,
    /// Changes the rows or the definition of a table.
    Change,
    /// Creates tables, begins or ends a transaction, or runs within one. Its row count is ignored.
    Control,
}

impl Statement {
    /// Creates a statement.
    pub fn new(kind: Kind, sql: impl Into<String>) -> Self {
        Statement { sql: sql.into(), kind }
    }

    /// Runs the statement. Errors: only failures that are not about the statement itself.
    pub fn run(&self, session: &mut dyn SqlSession) -> Result<Outcome> {
        let outcome = match self.kind {
            Kind::Query | Kind::Ordered => {
                let mut rows = Vec::new();
                session
                    .select(&self.sql, &mut |row| rows.push(row.iter().map(shown).collect()))
                    .map(|()| Outcome::Rows(rows))
            }
            Kind::Change | Kind::Control => session.execute(&self.sql).map(Outcome::Done),
        };
        let outcome = match outcome {
            Err(Error::Engine { what, .. } | Error::Conflict { what, .. }) => Outcome::Failed(what),
            other => other?,
        };
        Ok(match self.kind {
            Kind::Query => outcome.sorted(),
            // The row count of a statement such as CREATE TABLE is not defined.
            Kind::Control => match outcome {
                Outcome::Done(_) => Outcome::Done(0),
                other => other,
            },
            _ => outcome,
        })
    }
}

fn shown(cell: &Cell<'_>) -> Shown {
    match *cell {
        Cell::Null => Shown::Null,
        Cell::Int(value) => Shown::Int(value),
        Cell::Real(value) if value.fract() == 0.0 && value.abs() < 1e15 => Shown::Int(value as i64),
        Cell::Real(value) => Shown::Text(format!("{value:.6}")),
        Cell::Decimal(units, scale) => Shown::Text(format!("{units}e-{scale}")),
        Cell::Text(text) => Shown::Text(text.to_owned()),
        Cell::Date(days) => Shown::Text(date_text(days)),
    }
}
