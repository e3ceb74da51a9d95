//! Goal: the table of functions is whole, and its examples hold on both paths. Method: each example
//! is run by this evaluator alone, by a session, and by a session without the direct path; casts
//! are tried between all types.

use std::collections::HashSet;
use std::sync::Arc;

use cairn_vfs::MemFs;
use sqlparser::ast::{SelectItem, SetExpr, Statement};

use super::casts::{self, CASTS};
use super::operators::OPERATORS;
use super::{Body, Example, General, Kind, Listing, all};
use crate::datum::Datum;
use crate::error::Error;
use crate::expr::{Cells, Compiler, Env, Failure, NoContext, Scope, Val, cast};
use crate::syntax::{Plain, one};
use crate::{Connection, Database};

/// Returns the value of an expression in the evaluator of the direct path; `None` if it does not
/// know the expression.
fn evaluated(sql: &str) -> Option<Result<Datum, Error>> {
    let text = format!("select {sql}");
    let parsed = one(&text).unwrap();
    let Plain::Tree(Statement::Query(query)) = &*parsed.statement else { panic!("{sql}") };
    let SetExpr::Select(select) = &*query.body else { panic!("{sql}") };
    let SelectItem::UnnamedExpr(expr) = &select.projection[0] else { panic!("{sql}") };
    let (scope, mut params) = (Scope::empty(), Vec::new());
    match Compiler::new(&scope, &mut params).output(expr) {
        Ok((node, kind)) => {
            let value = node.eval(&Env::new(Cells::None, &[], &NoContext)).map(Val::into_datum);
            // A session writes the text of such a value with its zone.
            Some(match kind.is_zoned {
                true => value.map(|value| Datum::Text(crate::datum::zoned_text(value.borrow()))),
                false => value,
            })
        }
        Err(Failure::Error(error)) => Some(Err(error)),
        Err(Failure::Unknown) => None,
    }
}

fn shown(value: Result<Datum, Error>) -> String {
    match value {
        Ok(value) if value.is_null() => "NULL".to_owned(),
        Ok(value) => value.to_string(),
        Err(error) => error.sqlstate().to_owned(),
    }
}

fn asked(connection: &mut Connection, expr: &str, is_zoned: bool) -> String {
    let sql = if is_zoned { format!("select ({expr})::text") } else { format!("select {expr}") };
    let mut ask = || {
        let mut rows = connection.query(&sql, &[])?;
        let row = rows.next()?.expect("a row");
        Ok(row.get(0).to_owned())
    };
    shown(ask())
}

/// Runs examples, and returns a line for each that fails. `is_evaluated`: whether the evaluator has
/// to know them.
fn failures(sessions: &mut [Connection; 2], examples: &[Example], is_evaluated: bool) -> Vec<String> {
    let mut failures = Vec::new();
    let mut check = |path: &str, expr: &str, expected: &str, found: String| {
        if found != expected {
            failures.push(format!("{path}: {expr} is {found:?}, not {expected:?}"));
        }
    };
    for (expr, expected) in examples {
        // The evaluator knows no array constructors.
        if is_evaluated && !expr.contains("array[") {
            let found = evaluated(expr).map_or_else(|| "unknown".to_owned(), shown);
            check("evaluator", expr, expected, found);
        }
        for (path, session) in ["session", "general path"].into_iter().zip(sessions.iter_mut()) {
            check(path, expr, expected, asked(session, expr, expected.ends_with("+00")));
        }
    }
    failures
}

fn sessions() -> (Database, [Connection; 2]) {
    let database = Database::builder().fs(Arc::new(MemFs::new())).open("functions.db").unwrap();
    let mut general = database.connect();
    general.execute("set cairn.direct_path = off", &[]).unwrap();
    let direct = database.connect();
    (database, [direct, general])
}

/// Every example of a function has its value.
#[test]
fn examples_of_functions() {
    let (_database, mut sessions) = sessions();
    let found: Vec<String> = all()
        .flat_map(|function| failures(&mut sessions, function.examples, function.is_evaluated()))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Every example of an operator or a cast has its value.
#[test]
fn examples_of_operators_and_casts() {
    let (_database, mut sessions) = sessions();
    let operators = OPERATORS.iter().map(|row| row.examples);
    let casts = CASTS.iter().map(|row| row.examples);
    let found: Vec<String> =
        operators.chain(casts).flat_map(|examples| failures(&mut sessions, examples, true)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Every row has its documentation, and examples unless its result depends on the session.
#[test]
fn rows_are_documented() {
    let mut seen = HashSet::new();
    for function in all() {
        let name = function.name;
        assert!(seen.insert((name, function.arguments)), "{name} has two rows of the same types");
        assert!(function.optional <= function.arguments.len(), "{name}");
        assert!(!function.is_variadic || !function.arguments.is_empty(), "{name}");
        if function.general == General::Own {
            assert!(function.is_evaluated(), "{name} has no implementation of its own");
        }
        if function.listing == Listing::Hidden {
            continue;
        }
        assert!(function.doc.ends_with('.'), "{name} is not documented");
        let is_scalar = !matches!(function.body, Body::Aggregate | Body::Window);
        assert!(
            !is_scalar || !function.is_immutable() || !function.examples.is_empty(),
            "{name} has no examples"
        );
    }
    for row in OPERATORS {
        assert!(row.doc.ends_with('.') && !row.examples.is_empty(), "operator {}", row.symbol);
    }
    for row in CASTS {
        assert!(row.doc.ends_with('.') && !row.examples.is_empty(), "cast from {}", row.from.name());
    }
}

/// The evaluator converts between two types if, and only if, a row has the cast. A text
/// is converted from and to every type.
#[test]
fn casts_are_those_of_the_rows() {
    let sample = |kind: Kind| match kind {
        Kind::Boolean => "true",
        Kind::Bytea => "\\x41",
        Kind::Date => "2024-02-29",
        Kind::Time => "03:04:05",
        Kind::Timestamp | Kind::TimestampTz => "2024-02-29 03:04:05",
        Kind::Interval => "1 day",
        Kind::Uuid => "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        _ => "1",
    };
    for from in Kind::SCALARS {
        let value = Datum::parse(sample(from), &from.column_type()).unwrap();
        for to in Kind::SCALARS {
            let is_listed =
                from == to || from == Kind::Text || to == Kind::Text || casts::context(from, to).is_some();
            let is_refused =
                cast(value.borrow(), &to.column_type()).is_err_and(|error| error.sqlstate() == "42846");
            assert_eq!(is_refused, !is_listed, "{} to {}", from.name(), to.name());
        }
    }
}
