//! Tests one engine against itself: a query, and the same rows assembled from the partitions in
//! which a condition is true, false and unknown. No other engine is involved.
//!
//! Rigger, Su, "Finding Bugs in Database Systems via Query Partitioning", OOPSLA 2020. Counting the
//! rows for which a condition is true, instead of filtering by it, is from "Detecting Optimization
//! Bugs in Database Engines via Non-Optimizing Reference Engine Construction", ESEC/FSE 2020, by
//! the same authors.

use super::differ::{Difference, Found};
use super::draw::Draw;
use super::query::Queries;
use super::schema::Table;
use super::{Kind, Outcome, Statement};
use crate::core::error::Result;
use crate::stores::sql::SqlSession;

/// Number of pairs on the same tables before new tables are created.
const ON_THE_SAME: usize = 40;

/// Two queries that must return the same rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The query in its usual form.
    pub whole: Statement,
    /// The query assembled from partitions.
    pub parts: Statement,
}

/// Draws a pair.
pub fn pair(queries: &mut Queries<'_>) -> Pair {
    let (from, list, condition) = queries.conditional();
    let query = |sql: String| Statement::new(Kind::Query, sql);
    if queries.draw.chance(30) {
        return Pair {
            whole: query(format!("SELECT count(*) FROM {from} WHERE {condition}")),
            parts: query(format!(
                "SELECT coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) FROM {from}"
            )),
        };
    }
    let all = format!("SELECT {list} FROM {from}");
    let parts = format!(
        "{all} WHERE {condition} UNION ALL {all} WHERE NOT ({condition}) UNION ALL {all} WHERE ({condition}) IS NULL"
    );
    let (head, tail) = match queries.draw.below(4) {
        0 => ("SELECT DISTINCT * FROM ", ""),
        1 => ("SELECT count(*), min(v), max(v), count(DISTINCT v) FROM ", ""),
        2 => ("SELECT v, count(*) FROM ", " GROUP BY v"),
        _ => return Pair { whole: query(all), parts: query(parts) },
    };
    Pair {
        whole: query(format!("{head}({all}) AS q{tail}")),
        parts: query(format!("{head}({parts}) AS q{tail}")),
    }
}

/// Runs about `count` pairs drawn from `seed`, and collects up to `most` of those whose halves
/// differ.
///
/// A pair with a failing half is counted as dropped, because SQL does not define which of two
/// errors comes first.
/// Errors: the engine fails other than by refusing a statement.
pub fn run(seed: u64, count: usize, tested: &mut dyn SqlSession, most: usize) -> Result<Found> {
    let (mut draw, mut found) = (Draw::new(seed), Found::default());
    let mut number = 0;
    while found.compared + found.dropped < count && found.differences.len() < most {
        number += 10;
        let tables: Vec<Table> = (1..=3).map(|table| Table::draw(&mut draw, number + table)).collect();
        let mut before = Vec::new();
        for statement in tables.iter().flat_map(|table| table.create(&mut draw)).collect::<Vec<_>>() {
            statement.run(tested)?;
            before.push(statement.sql);
        }
        for _ in 0..ON_THE_SAME {
            let Pair { whole, parts } = pair(&mut Queries { draw: &mut draw, tables: &tables });
            let (expected, got) = (whole.run(tested)?, parts.run(tested)?);
            if matches!((&expected, &got), (Outcome::Failed(_), _) | (_, Outcome::Failed(_))) {
                found.dropped += 1;
                continue;
            }
            found.compared += 1;
            if expected != got && found.differences.len() < most {
                let sql = format!("{};\n{}", whole.sql, parts.sql);
                found.differences.push(Difference { sql, expected, got, before: before.clone() });
            }
        }
    }
    Ok(found)
}
