//! Differential random testing: runs the same statements on Cairn and on engines with decades of
//! production use.

use std::fmt;

use super::change::{change, contents};
use super::draw::Draw;
use super::query::Queries;
use super::records::{QUERIES, agreed};
use super::schema::Table;
use super::script::{SCRIPTS, script};
use super::shape::SHAPES;
use super::{Kind, Outcome, Statement};
use crate::core::error::Result;
use crate::stores::sql::SqlSession;

/// Suffix of the message of Cairn's adapter for a statement that the engine does not support.
const UNSUPPORTED: &str = "(0A000)";

/// Suffix of its message for an internal error.
const INTERNAL: &str = "(XX000)";

/// Number of statements on the same tables before new tables are created.
const ON_THE_SAME: usize = 60;

/// A statement that the tested engine answered differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The statement.
    pub sql: String,
    /// The outcome of all references.
    pub expected: Outcome,
    /// The outcome of the tested engine.
    pub got: Outcome,
    /// The statements that created the tables, and all later changes to them.
    pub before: Vec<String>,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Found {
    /// Statements that were compared because the references agree on them.
    pub compared: usize,
    /// Statements on which the references disagree.
    pub dropped: usize,
    /// Statements that the tested engine does not support (0A000, feature_not_supported). They are
    /// not compared but counted separately.
    pub unsupported: Vec<String>,
    /// Statements that the tested engine answered differently.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Found {
    /// Writes each difference after the statements that created its tables, then the counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Difference { sql, expected, got, before } in &self.differences {
            writeln!(f, "-- {}", before.join(";\n-- "))?;
            writeln!(f, "{sql};\n  expected {expected:?}\n  got      {got:?}\n")?;
        }
        let Found { compared, dropped, unsupported, differences } = self;
        if let Some(first) = unsupported.first() {
            writeln!(f, "not supported, for example: {first}")?;
        }
        let (unsupported, differences) = (unsupported.len(), differences.len());
        writeln!(
            f,
            "{compared} compared, {dropped} dropped, {unsupported} not supported, {differences} different"
        )
    }
}

/// Runs about `count` statements drawn from `seed`, and collects up to `most` of those that
/// `tested` answers differently.
///
/// Only statements on which all `references` agree are compared. After a change with different
/// outcomes the tables are created anew.
/// Errors: an engine fails other than by refusing a statement.
pub fn run(
    seed: u64,
    count: usize,
    tested: &mut dyn SqlSession,
    references: &mut [&mut dyn SqlSession],
    most: usize,
) -> Result<Found> {
    let (mut draw, mut found) = (Draw::new(seed), Found::default());
    let mut number = 0;
    while found.compared + found.dropped + found.unsupported.len() < count && found.differences.len() < most {
        number += 10;
        let mut round = Round { found: &mut found, before: Vec::new(), apart: false };
        if draw.chance(25) {
            let name = draw.pick(&SCRIPTS);
            for statement in script(name, &mut draw, number) {
                round.take(&statement, tested, references)?;
                if round.apart {
                    break;
                }
            }
            end_transaction(tested, references);
            continue;
        }
        let tables: Vec<Table> = (1..=3).map(|table| Table::draw(&mut draw, number + table)).collect();
        for table in &tables {
            for statement in table.create(&mut draw) {
                round.take(&statement, tested, references)?;
            }
        }
        for _ in 0..ON_THE_SAME {
            let statement = match draw.below(3) {
                0 => change(&mut draw, &tables),
                one => draw
                    .one(if one == 1 { &QUERIES[..] } else { &SHAPES[..] })
                    .copied()
                    .map(|(_, make)| make(&mut Queries { draw: &mut draw, tables: &tables })),
            };
            let Some(statement) = statement else { continue };
            round.take(&statement, tested, references)?;
            if let (Kind::Change, Some(table), false) = (statement.kind, draw.one(&tables), round.apart) {
                round.take(&contents(table), tested, references)?;
            }
            if round.apart || round.found.differences.len() >= most {
                break;
            }
        }
    }
    Ok(found)
}

/// Ends the transaction that a script with different outcomes may have left open.
fn end_transaction(tested: &mut dyn SqlSession, references: &mut [&mut dyn SqlSession]) {
    // Outside a transaction an engine refuses the rollback or warns.
    let _ = tested.rollback();
    references.iter_mut().for_each(|session| {
        let _ = session.rollback();
    });
}

/// Returns whether Cairn as a reference has reported that it cannot run a statement.
fn is_beyond(expected: &Outcome) -> bool {
    matches!(expected, Outcome::Failed(why) if why.ends_with(UNSUPPORTED) || why.ends_with(INTERNAL))
}

struct Round<'f> {
    found: &'f mut Found,
    before: Vec<String>,
    /// True once the tables are no longer the same in all engines.
    apart: bool,
}

impl Round<'_> {
    fn take(
        &mut self,
        statement: &Statement,
        tested: &mut dyn SqlSession,
        references: &mut [&mut dyn SqlSession],
    ) -> Result<()> {
        let Some(expected) = agreed(references, statement)?.filter(|expected| !is_beyond(expected)) else {
            // The tested engine has not run the statement, so the tables may differ from here on.
            self.apart |= matches!(statement.kind, Kind::Change) && references.len() == 1;
            self.found.dropped += 1;
            return Ok(());
        };
        let got = statement.run(tested)?;
        let is_query = matches!(statement.kind, Kind::Query | Kind::Ordered);
        let is_unsupported = matches!(&got, Outcome::Failed(why) if why.ends_with(UNSUPPORTED));
        if is_unsupported && !got.agrees(&expected) {
            self.apart |= !is_query;
            self.found.unsupported.push(statement.sql.clone());
            return Ok(());
        }
        self.found.compared += 1;
        if !got.agrees(&expected) {
            self.apart |= !is_query;
            let before = self.before.clone();
            self.found.differences.push(Difference { sql: statement.sql.clone(), expected, got, before });
        }
        if !is_query {
            self.before.push(statement.sql.clone());
        }
        Ok(())
    }
}
