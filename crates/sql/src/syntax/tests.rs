//! Goal: texts are cut where statements end, and hostile ones end in an error. Method: examples.

use super::parse::{Plain, expression, one, parse, split};

/// Semicolons in quotes, dollars and comments do not count.
#[test]
fn splits() {
    assert_eq!(
        split("select 1; ;select ';' ; -- a;b\n insert /* ; */ x").unwrap(),
        ["select 1", "select ';'", "insert /* ; */ x"]
    );
    assert_eq!(split("do $$ ; $$; é;ü").unwrap(), ["do $$ ; $$", "é", "ü"]);
    assert_eq!(split(" ; -- nothing").unwrap(), Vec::<&str>::new());
    assert_eq!(split("select 'open").unwrap_err().sqlstate(), "42601");
}

/// Errors say where.
#[test]
fn says_where() {
    let error = parse("select 1;\nselect * form t").unwrap_err();
    assert_eq!((error.sqlstate(), error.position()), ("42601", Some(25)), "{error:?}");
    let error = one("select 1; select 2").unwrap_err();
    assert_eq!(error.sqlstate(), "42601");
}

/// Depth and length are bounded, however it is that they are reached.
#[test]
fn hostile() {
    let mut examples = vec![
        format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("select 1{}", "+1".repeat(100_000)),
        format!("select {}1", "not ".repeat(100_000)),
        format!("select {}1", "- ".repeat(100_000)),
        format!("select 1{}", "::int".repeat(100_000)),
        format!("select 1 where true {}", "and a = 1 ".repeat(100_000)),
        format!("select 1 {}", "union all select 1 ".repeat(100_000)),
        format!("select * from a {}", "join a on true ".repeat(100_000)),
        format!("select {}1{}", "case when true then ".repeat(10_000), " end".repeat(10_000)),
        format!("select {}1{}", "array[".repeat(10_000), "]".repeat(10_000)),
        format!("{} select 1", "explain ".repeat(100_000)),
        format!("select a{}", "[1]".repeat(100_000)),
    ];
    for example in examples.drain(..) {
        let error = parse(&example).unwrap_err();
        assert!(["54001", "42601"].contains(&error.sqlstate()), "{}: {error}", &example[..30]);
    }
    let wide = format!("insert into t values (1){}", ", (1)".repeat(50_000));
    assert!(parse(&wide).is_ok());
    let below = format!("select 1{}", "+1".repeat(900));
    assert!(parse(&below).is_ok());
}

/// What the parser has no tree for.
#[test]
fn words_only() {
    for (sql, expected) in [
        ("vacuum", 0),
        ("VACUUM (FULL, ANALYZE) a, b.c", 2),
        ("vacuum analyze pgbench_accounts", 1),
        ("vacuum full verbose t", 1),
    ] {
        assert!(
            matches!(&*one(sql).unwrap().statement, Plain::Vacuum { tables, .. } if tables.len() == expected),
            "{sql}"
        );
    }
    assert!(
        matches!(&*one("analyze t (a, b), u").unwrap().statement, Plain::Analyze { tables } if tables.len() == 2)
    );
    assert!(matches!(&*one("checkpoint;").unwrap().statement, Plain::Checkpoint));
    assert!(matches!(&*one("-- nothing").unwrap().statement, Plain::Empty));
}

/// Goal: BETWEEN SYMMETRIC is what it stands for, and nothing else changes. Method: statements as the parser has them in the end.
#[test]
fn symmetric_bounds() {
    for (sql, expected) in [
        ("SELECT a BETWEEN SYMMETRIC 3 AND 1", "SELECT (a BETWEEN 3 AND 1 OR a BETWEEN 1 AND 3)"),
        (
            "SELECT a NOT between  symmetric b + 1 * 2 AND -1 AND c",
            "SELECT (a NOT BETWEEN b + 1 * 2 AND -1 AND a NOT BETWEEN -1 AND b + 1 * 2) AND c",
        ),
        (
            "SELECT a BETWEEN SYMMETRIC b || c AND (d BETWEEN SYMMETRIC 1 AND 2)::text",
            "SELECT (a BETWEEN b || c AND ((d BETWEEN 1 AND 2 OR d BETWEEN 2 AND 1))::TEXT OR a BETWEEN ((d BETWEEN 1 AND 2 OR d BETWEEN 2 AND 1))::TEXT AND b || c)",
        ),
        ("SELECT a BETWEEN ASYMMETRIC 3 AND 1", "SELECT a BETWEEN 3 AND 1"),
        ("SELECT a BETWEEN \"symmetric\" AND 1", "SELECT a BETWEEN \"symmetric\" AND 1"),
        ("SELECT 'between symmetric' AS x", "SELECT 'between symmetric' AS x"),
    ] {
        let parsed = one(sql).unwrap();
        let Plain::Tree(tree) = &*parsed.statement else { panic!("{sql}") };
        assert_eq!(tree.to_string(), expected);
    }
    let check = expression("a BETWEEN SYMMETRIC 3 AND 1").unwrap();
    assert_eq!(check.to_string(), "(a BETWEEN 3 AND 1 OR a BETWEEN 1 AND 3)");
    assert!(one("SELECT a BETWEEN SYMMETRIC").is_err());
}
