//! Goal: statements return the results on which SQLite and PostgreSQL agree. Method: the records in
//! `testing/slt`, in sqllogictest's format.
//!
//! A record is `statement ok`, `statement error` or `query TYPES [rowsort|nosort]`, then the
//! statement, and for
//! a query `----` and its result. A blank line ends it.

use std::path::PathBuf;

use cairn_sql::Connection;

use crate::support::database;

struct Record {
    line: usize,
    head: String,
    sql: String,
    expected: Vec<String>,
}

fn records(text: &str) -> Vec<Record> {
    let mut all = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, head)) = lines.next() {
        if !head.starts_with("statement") && !head.starts_with("query") {
            continue;
        }
        let (mut sql, mut expected, mut results) = (Vec::new(), Vec::new(), false);
        for (_, line) in lines.by_ref() {
            match line {
                "" => break,
                "----" if !results => results = true,
                line if results => expected.push(line.to_owned()),
                line => sql.push(line),
            }
        }
        all.push(Record { line: at + 1, head: head.to_owned(), sql: sql.join("\n"), expected });
    }
    all
}

/// Returns rows in the records' form: columns separated by blanks.
fn answers(connection: &mut Connection, sql: &str) -> Result<Vec<String>, cairn_sql::Error> {
    let mut rows = connection.query(sql, &[])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let shown = |column| match row.get(column) {
            datum if datum.is_null() => "NULL".to_owned(),
            datum => match datum.to_string() {
                text if text.is_empty() => "(empty)".to_owned(),
                text => text,
            },
        };
        all.push((0..row.len()).map(shown).collect::<Vec<_>>().join(" "));
    }
    Ok(all)
}

fn run_record(connection: &mut Connection, record: &Record) -> Result<(), String> {
    let Record { head, sql, expected, .. } = record;
    if head == "statement ok" {
        return connection.execute(sql, &[]).map(|_| ()).map_err(|error| error.to_string());
    }
    if head.starts_with("statement error") {
        return match connection.execute(sql, &[]) {
            Ok(_) => Err("it worked".to_owned()),
            // The statement itself must be wrong. Unsupported features and internal errors do not
            // count.
            Err(error) if matches!(error.sqlstate().get(..2), Some("21" | "22" | "23" | "42")) => Ok(()),
            Err(error) => Err(format!("{}: {error}", error.sqlstate())),
        };
    }
    let mut rows = answers(connection, sql).map_err(|error| error.to_string())?;
    // In this format, several blanks within a text count as one.
    let plain = |row: &String| row.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut expected: Vec<String> = expected.iter().map(plain).collect();
    rows = rows.iter().map(plain).collect();
    if head.contains("rowsort") {
        rows.sort();
        expected.sort();
    }
    if rows == expected {
        Ok(())
    } else {
        Err(format!("expected\n  {}\ngot\n  {}", expected.join("\n  "), rows.join("\n  ")))
    }
}

/// Records that need a missing feature: scalar subqueries that are correlated by anything but
/// equality, for which DataFusion has no plan.
const MISSING: usize = 39;

/// The least number of records.
const RECORDS: usize = 3_000;

/// Runs every record of every file, each file in a database of its own.
#[test]
fn what_engines_agree_on() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/slt");
    #[allow(clippy::disallowed_methods, reason = "the records are files of the repository")]
    let files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let (mut failures, mut count, mut missing) = (Vec::new(), 0, 0);
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "slt")) {
        #[allow(clippy::disallowed_methods, reason = "the records are files of the repository")]
        let text = std::fs::read_to_string(file).unwrap();
        let mut connection = database().connect();
        for record in records(&text) {
            count += 1;
            if let Err(why) = run_record(&mut connection, &record) {
                if why.contains("correlated by a condition other than equality") {
                    missing += 1;
                    continue;
                }
                let name = file.file_name().unwrap().to_string_lossy();
                failures.push(format!("{name}:{}: {}\n{why}", record.line, record.sql));
            }
        }
    }
    assert!(count >= RECORDS, "there are {count} records in {}", folder.display());
    assert!(failures.is_empty(), "{} of {count} records fail:\n{}", failures.len(), failures.join("\n\n"));
    assert!(missing <= MISSING, "{missing} records ask for subqueries that are not there: {MISSING} did");
}
