//! Tests that draws are reproducible and that records have the runner's format.

use super::change::change;
use super::draw::Draw;
use super::partition::pair;
use super::query::Queries;
use super::records::{QUERIES, names};
use super::schema::Table;
use super::script::{SCRIPTS, script};
use super::shape::SHAPES;
use super::*;

fn drawn(seed: u64) -> Vec<String> {
    let mut draw = Draw::new(seed);
    let tables: Vec<Table> = (1..=3).map(|number| Table::draw(&mut draw, number)).collect();
    let mut all: Vec<Statement> = tables.iter().flat_map(|table| table.create(&mut draw)).collect();
    for _ in 0..50 {
        for (_, make) in QUERIES.into_iter().chain(SHAPES) {
            all.push(make(&mut Queries { draw: &mut draw, tables: &tables }));
        }
        let pair = pair(&mut Queries { draw: &mut draw, tables: &tables });
        all.extend([pair.whole, pair.parts]);
        all.extend(change(&mut draw, &tables));
    }
    for name in SCRIPTS {
        all.extend(script(name, &mut draw, 1));
    }
    all.into_iter().map(|statement| statement.sql).collect()
}

/// Goal: a seed determines all statements, seeds differ, and parentheses and quotes are balanced.
#[test]
fn draws_repeat_themselves() {
    let one = drawn(1);
    assert_eq!(one, drawn(1));
    assert_ne!(one, drawn(2));
    for sql in &one {
        let count = |of: char| sql.chars().filter(|c| *c == of).count();
        assert_eq!(count('('), count(')'), "{sql}");
        assert!(count('\'').is_multiple_of(2) && !sql.contains(';'), "{sql}");
    }
    assert_eq!(names().len(), QUERIES.len() + 1 + SCRIPTS.len());
}

/// Goal: failures agree with failures, rows only with equal rows.
#[test]
fn failures_agree_only_with_failures() {
    let rows =
        |numbers: &[i64]| Outcome::Rows(numbers.iter().map(|number| vec![Shown::Int(*number)]).collect());
    assert!(Outcome::Failed("a".to_owned()).agrees(&Outcome::Failed("b".to_owned())));
    assert!(!Outcome::Failed("a".to_owned()).agrees(&Outcome::Done(0)));
    assert!(rows(&[1, 2]).agrees(&rows(&[1, 2])) && !rows(&[1, 2]).agrees(&rows(&[2, 1])));
    assert!(rows(&[2, 1]).sorted().agrees(&rows(&[1, 2])) && !rows(&[1]).agrees(&rows(&[1, 1])));
    let shown = [Shown::Null, Shown::Int(-3), Shown::Text(String::new()), Shown::Text("a b".to_owned())];
    assert_eq!(shown.map(|cell| cell.to_string()), ["NULL", "-3", "(empty)", "a b"]);
}

#[cfg(feature = "peers")]
mod with_sqlite {
    use crate::core::scratch::Scratch;
    use crate::core::workload::Durability;
    use crate::oracle::{differ, records};
    use crate::peers::sql::sqlite::Sqlite;
    use crate::stores::sql::{SqlDb, SqlSettings, SqlStore};

    fn sqlite(scratch: &Scratch, name: &str) -> Box<dyn SqlDb> {
        let settings = SqlSettings { durability: Durability::Memory, cache_bytes: 8 << 20, sessions: 2 };
        Sqlite.open(&scratch.dir(name).unwrap(), &settings).unwrap()
    }

    /// Goal: every kind of file reaches its size, is reproducible, and has records in the runner's
    /// format. Method: SQLite against itself, which agrees.
    #[test]
    fn files_are_made() {
        for name in records::names() {
            let make = || {
                let scratch = Scratch::temporary("oracle").unwrap();
                let (one, other) = (sqlite(&scratch, "1"), sqlite(&scratch, "2"));
                let mut file = records::File::default();
                one.with_session(&mut |one| {
                    other.with_session(&mut |other| {
                        file = records::make(name, 1, 60, &mut [one, other])?;
                        Ok(())
                    })
                })
                .unwrap();
                file
            };
            let file = make();
            assert!(file.count >= 60, "{name}");
            let records = file
                .text
                .split("\n\n")
                .filter(|record| !record.trim().is_empty() && !record.starts_with('#'));
            let mut count = 0;
            for record in records {
                count += 1;
                let head = record.lines().next().unwrap_or_default();
                assert!(matches!(head.split(' ').next(), Some("query" | "statement")), "{record}");
                assert_eq!(head.starts_with("query"), record.contains("\n----"), "{record}");
            }
            assert_eq!(count, file.count, "{name}");
            assert_eq!(make().text, file.text, "{name}");
        }
    }

    /// Goal: a correct engine shows no differences, and a wrong one is detected. Method: SQLite
    /// against itself, and against itself with case-insensitive text comparison.
    #[test]
    fn differences_are_found() {
        let scratch = Scratch::temporary("oracle").unwrap();
        let (one, other) = (sqlite(&scratch, "1"), sqlite(&scratch, "2"));
        let run = |twist: &str, seed: u64| {
            let mut found = differ::Found::default();
            one.with_session(&mut |one| {
                one.execute("PRAGMA case_sensitive_like = ON")?;
                other.with_session(&mut |other| {
                    other.execute(twist)?;
                    found = differ::run(seed, 1_500, other, &mut [one], 3)?;
                    Ok(())
                })
            })
            .unwrap();
            found
        };
        let found = run("PRAGMA case_sensitive_like = ON", 1);
        assert!(found.differences.is_empty() && found.compared >= 1_500, "{:?}", found.differences);
        let scratch = Scratch::temporary("oracle").unwrap();
        let (one, other) = (sqlite(&scratch, "1"), sqlite(&scratch, "2"));
        let mut found = differ::Found::default();
        one.with_session(&mut |one| {
            one.execute("PRAGMA case_sensitive_like = ON")?;
            other.with_session(&mut |other| {
                found = differ::run(1, 4_000, other, &mut [one], 1)?;
                Ok(())
            })
        })
        .unwrap();
        assert!(found.differences.iter().all(|difference| difference.sql.contains("LIKE")));
        assert!(!found.differences.is_empty());
    }
}
