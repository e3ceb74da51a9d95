//! SQL whose answers are known because engines of different making agree on them.
//!
//! ```text
//!   seed ─► draw ─► statements: expressions, queries, changes, scripts
//!              ├─► records: run by SQLite and PostgreSQL; where both agree, kept for the sqllogictest runner (testing/slt)
//!              ├─► partition: run by Cairn as they are and put together from parts
//!              └─► differ: run by Cairn as well; whatever it answers differently is shown, with the seed. The reference is
//!                  PostgreSQL with SQLite, or Cairn itself without its optimizer or its direct path
//! ```
//!
//! Statements are drawn so that agreeing is likely and means something: NULLs everywhere, small
//! numbers, texts that compare alike in every collation that goes by bytes. Where engines disagree
//! by design (division by zero, booleans, the order of NULLs), PostgreSQL's way is asked for in
//! words that both have, or the statement is not kept.

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

use crate::error::{Error, Result};
use crate::suite_sql::{Cell, SqlSession, date_text};

/// What a statement came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It changed that many rows, or none are counted.
    Done(u64),
    /// It returned these.
    Rows(Vec<Vec<Shown>>),
    /// It was refused.
    Failed(String),
}

/// A value as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Text, or anything else in its words.
    Text(String),
}

impl fmt::Display for Shown {
    /// As sqllogictest has it.
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
    /// The same rows in an order that does not depend on the engine.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        if let Outcome::Rows(rows) = &mut self {
            rows.sort();
        }
        self
    }

    /// Whether both say the same. Of refusals only that they are.
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
    /// Its text.
    pub sql: String,
    /// What it is.
    pub kind: Kind,
}

/// What to expect of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rows in any order.
    Query,
    /// Rows in the order that it asks for.
    Ordered,
    /// Rows of a table are changed, or its shape.
    Change,
    /// A transaction begins or ends, or what is within one.
    Control,
}

impl Statement {
    /// A statement.
    pub fn new(kind: Kind, sql: impl Into<String>) -> Self {
        Statement { sql: sql.into(), kind }
    }

    /// Runs it. Errors: only where asking failed for another reason than the statement.
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
            // How many rows a CREATE TABLE changes is anybody's guess.
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
