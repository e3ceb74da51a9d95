//! Goal: general queries return PostgreSQL 15's results, or are rejected. Method: its recorded
//! answers (`testing/compat/answers`).

use crate::support::{database, rows};

/// Every query returns the recorded rows or error. A query marked as rejected is rejected with that
/// code.
#[test]
fn answers_of_postgresql() {
    let mut connection = database().connect();
    connection.batch(include_str!("../../../../testing/compat/answers/tables.sql")).unwrap();
    let recorded = include_str!("../../../../testing/compat/answers/queries.sql");
    let (mut failures, mut count) = (Vec::new(), 0);
    for part in recorded.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let (sql, answer) = part.trim().split_once(';').unwrap();
        let answer: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("-- ")).collect();
        let refused = answer.first().and_then(|line| line.strip_prefix("refused "));
        let fails = answer.first().and_then(|line| line.strip_prefix("fails "));
        let expected = match refused.or(fails) {
            Some(sqlstate) => Err(sqlstate.to_owned()),
            None => Ok(answer.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()),
        };
        let found = rows(&mut connection, sql, &[]);
        let shown = found.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let found = found.map_err(|error| error.sqlstate().to_owned());
        // Rows are ordered only if the query requests it.
        let of_set = |answer: &Result<Vec<String>, String>| {
            answer.clone().map(|mut rows| {
                if !sql.to_ascii_lowercase().contains("order by") {
                    rows.sort();
                }
                rows
            })
        };
        if of_set(&found) != of_set(&expected) {
            failures.push(format!("{sql}\n  expected {expected:?}\n  found    {found:?} {shown}"));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(count > 50, "{count} queries");
}

/// Functions, patterns and arithmetic have PostgreSQL's results, as a constant of the direct path
/// and in a general query.
#[test]
fn functions_of_postgresql() {
    let mut connection = database().connect();
    let recorded = include_str!("../../../../testing/compat/answers/functions.tsv");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split('\t');
        let (expression, expected) = (fields.next().unwrap(), fields.next().unwrap());
        let both = fields.next() != Some("direct");
        // Only the general path has window functions.
        let general = format!("SELECT ({expression})::text FROM (SELECT count(*) OVER ()) AS one");
        for sql in [format!("SELECT ({expression})::text"), general].into_iter().take(1 + usize::from(both)) {
            let given = match rows(&mut connection, &sql, &[]) {
                Ok(rows) => rows.join("\n"),
                Err(error) => format!("ERROR {}", error.sqlstate()),
            };
            if given != expected {
                wrong.push(format!("{sql}\n    {given:?}\n    {expected:?} in PostgreSQL"));
            }
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_000, "{count} expressions");
}
