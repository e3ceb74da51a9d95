//! Records for the sqllogictest runner: statements with the outcome on which SQLite and PostgreSQL
//! agree.
//!
//! The rows of a query are sorted (`rowsort`) unless the query has an ORDER BY. NULL is written as
//! `NULL`, an empty text as `(empty)`, and cells of a row are separated by a space, which is the
//! form in which the runner compares them.

use std::fmt::Write as _;

use super::change::{change, contents};
use super::draw::Draw;
use super::query::Queries;
use super::schema::Table;
use super::script::{SCRIPTS, script};
use super::{Kind, Outcome, Shown, Statement};
use crate::core::error::{Error, Result};
use crate::stores::sql::SqlSession;

/// Maximum number of rows of an answer that is kept.
const MOST_ROWS: usize = 40;

/// Maximum number of statements drawn for each one that is kept.
const PATIENCE: usize = 40;

/// The function that draws a query of one kind.
pub type Make = fn(&mut Queries<'_>) -> Statement;

/// The kinds of queries with a file of records each.
pub const QUERIES: [(&str, Make); 8] = [
    ("expressions", |queries| queries.bare()),
    ("filters", |queries| queries.plain(1)),
    ("joins", |queries| queries.plain(3)),
    ("orders", |queries| queries.ordered()),
    ("aggregates", |queries| queries.grouped()),
    ("windows", |queries| queries.windowed()),
    ("sets", |queries| queries.set()),
    ("subqueries", |queries| queries.nested()),
];

/// Returns the names of all files, without the extension.
pub fn names() -> Vec<&'static str> {
    QUERIES.iter().map(|(name, _)| *name).chain(["changes"]).chain(SCRIPTS).collect()
}

/// A file of records, with their number.
#[derive(Debug, Default)]
pub struct File {
    /// The content of the file.
    pub text: String,
    /// Number of statements and queries.
    pub count: usize,
}

impl File {
    fn begin(name: &str, seed: u64) -> Self {
        let text = format!(
            "# {name}: statements that SQLite and PostgreSQL agree on, drawn from seed {seed}.\n# Made by `cargo run -p cairn-bench --bin \
             sql_oracle -- records`; changes by hand are lost.\n\n"
        );
        File { text, count: 0 }
    }

    fn keep(&mut self, statement: &Statement, outcome: &Outcome) {
        self.count += 1;
        // Writing to a string cannot fail.
        let _ = match (statement.kind, outcome) {
            (_, Outcome::Failed(_)) => write!(self.text, "statement error\n{}\n\n", statement.sql),
            (_, Outcome::Done(_)) => write!(self.text, "statement ok\n{}\n\n", statement.sql),
            (kind, Outcome::Rows(rows)) => {
                let sort = if kind == Kind::Ordered { "" } else { " rowsort" };
                let head = format!("query {}{sort}\n{}\n----\n", types(rows), statement.sql);
                self.text.write_str(&head).and_then(|()| self.rows(rows))
            }
        };
    }

    fn rows(&mut self, rows: &[Vec<Shown>]) -> std::fmt::Result {
        for row in rows {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            writeln!(self.text, "{}", cells.join(" ").trim())?;
        }
        writeln!(self.text)
    }
}

/// Returns a letter for each column: I for whole numbers, T for text.
fn types(rows: &[Vec<Shown>]) -> String {
    let columns = rows.first().map_or(1, Vec::len);
    let is_text = |column: usize| rows.iter().any(|row| matches!(row.get(column), Some(Shown::Text(_))));
    (0..columns).map(|column| if is_text(column) { 'T' } else { 'I' }).collect()
}

/// Runs a statement in all sessions. Returns `None` if their outcomes differ; a change is then
/// undone in all of them.
///
/// A change runs in a transaction, so that it can be rolled back if only some sessions succeeded.
/// Errors: a failure that is not about the statement itself, or different outcomes of a statement
/// that belongs to a transaction.
pub fn agreed(sessions: &mut [&mut dyn SqlSession], statement: &Statement) -> Result<Option<Outcome>> {
    let changes = statement.kind == Kind::Change;
    let mut outcomes = Vec::new();
    for session in &mut *sessions {
        if changes {
            session.begin()?;
        }
        outcomes.push(statement.run(&mut **session)?);
    }
    let Some(first) = outcomes.first() else { return Ok(None) };
    let agree = outcomes.iter().all(|outcome| outcome.agrees(first));
    let keep = agree && !matches!(first, Outcome::Failed(_));
    if changes {
        for session in sessions {
            if keep { session.commit()? } else { session.rollback()? }
        }
    }
    if !agree && statement.kind == Kind::Control {
        return Err(Error::engine("the oracle", format!("{}: {outcomes:?}", statement.sql)));
    }
    Ok(agree.then(|| first.clone()))
}

/// Builds a file of at least `least` records.
///
/// Errors: an engine fails, or the engines agree on too few statements to fill the file.
pub fn make(name: &str, seed: u64, least: usize, sessions: &mut [&mut dyn SqlSession]) -> Result<File> {
    // The seed depends on the name, so that a change to one file does not change the others.
    let of_name = name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let (mut draw, mut file) = (Draw::new(of_name), File::begin(name, seed));
    if SCRIPTS.contains(&name) {
        for number in 0.. {
            if file.count >= least {
                break;
            }
            for statement in script(name, &mut draw, number) {
                if let Some(outcome) = agreed(sessions, &statement)? {
                    file.keep(&statement, &outcome);
                }
            }
        }
        return Ok(file);
    }
    let tables: Vec<Table> = (1..=3).map(|number| Table::draw(&mut draw, number)).collect();
    for table in &tables {
        for statement in table.create(&mut draw) {
            let outcome = agreed(sessions, &statement)?;
            let outcome = outcome
                .ok_or_else(|| Error::engine("the oracle", format!("{}: no agreement", statement.sql)))?;
            file.keep(&statement, &outcome);
        }
    }
    let make = QUERIES.iter().find(|(of, _)| *of == name).map(|(_, make)| *make);
    for _ in 0..least * PATIENCE {
        if file.count >= least {
            return Ok(file);
        }
        let drawn = match make {
            Some(make) => make(&mut Queries { draw: &mut draw, tables: &tables }),
            None => match change(&mut draw, &tables) {
                Some(drawn) => drawn,
                None => continue,
            },
        };
        match agreed(sessions, &drawn)? {
            Some(Outcome::Rows(rows)) if rows.len() > MOST_ROWS => {}
            Some(Outcome::Failed(_)) if drawn.kind != Kind::Change => {}
            Some(outcome) => {
                file.keep(&drawn, &outcome);
                if drawn.kind == Kind::Change {
                    look(&mut file, &mut draw, &tables, sessions)?;
                }
            }
            None => {}
        }
    }
    Err(Error::engine("the oracle", format!("{name} has only {} of {least} records", file.count)))
}

/// Adds a query of a table's rows after a change.
fn look(
    file: &mut File,
    draw: &mut Draw,
    tables: &[Table],
    sessions: &mut [&mut dyn SqlSession],
) -> Result<()> {
    let Some(table) = draw.one(tables) else { return Ok(()) };
    let statement = contents(table);
    let outcome = agreed(sessions, &statement)?;
    let outcome = outcome.ok_or_else(|| Error::engine("the oracle", format!("{} diverged", table.name)))?;
    file.keep(&statement, &outcome);
    Ok(())
}
