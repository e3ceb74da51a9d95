//! Differential random testing: the same statements to Cairn and to engines that have been right
//! for decades.

use std::fmt;

use super::change::{change, contents};
use super::draw::Draw;
use super::query::Queries;
use super::records::{QUERIES, agreed};
use super::schema::Table;
use super::script::{SCRIPTS, script};
use super::shape::SHAPES;
use super::{Kind, Outcome, Statement};
use crate::error::Result;
use crate::suite_sql::SqlSession;

/// How Cairn's adapter ends what it says of a statement that the engine does not have.
const UNSUPPORTED: &str = "(0A000)";

/// The same for what it calls a fault of its own.
const INTERNAL: &str = "(XX000)";

/// Statements on the same tables, before there are new ones.
const ON_THE_SAME: usize = 60;

/// Something that the tested engine answered differently.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What was asked.
    pub sql: String,
    /// What all others said.
    pub expected: Outcome,
    /// What the tested one said.
    pub got: Outcome,
    /// What made the tables that the statement is about, and all that was changed in them.
    pub before: Vec<String>,
}

/// What a run found.
#[derive(Debug, Default)]
pub struct Found {
    /// Statements that the others agree on, and were compared.
    pub compared: usize,
    /// Statements that the others disagree on.
    pub dropped: usize,
    /// Statements that the tested one says it does not have (0A000, feature_not_supported). Not
    /// compared, and counted apart.
    pub unsupported: Vec<String>,
    /// What the tested one answered differently.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Found {
    /// Each difference behind what made its tables, and the counts.
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

/// Runs statements that are drawn from `seed`, about `count` of them, and gathers what `tested`
/// answers differently, `most` at most.
///
/// The others are references: only what they agree on is compared. After a change that went apart
/// the tables are made anew.
/// Errors: an engine fails in another way than by refusing a statement.
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

/// After a script that went apart, nobody may be left in a transaction.
fn end_transaction(tested: &mut dyn SqlSession, references: &mut [&mut dyn SqlSession]) {
    // Outside of one it is refused, or warned of.
    let _ = tested.rollback();
    references.iter_mut().for_each(|session| {
        let _ = session.rollback();
    });
}

/// Whether a reference of our own has said that it cannot run a statement.
fn is_beyond(expected: &Outcome) -> bool {
    matches!(expected, Outcome::Failed(why) if why.ends_with(UNSUPPORTED) || why.ends_with(INTERNAL))
}

struct Round<'f> {
    found: &'f mut Found,
    before: Vec<String>,
    /// The tables are no longer the same everywhere.
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
            // Whoever is tested has not run it, so the tables may not be the same any more.
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
