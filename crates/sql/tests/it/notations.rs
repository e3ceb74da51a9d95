//! Goal: PostgreSQL's notations have the same meaning here. Method: its results, on the direct and
//! the general path.

use crate::support::{ask, database, fails, run};

/// An untyped literal next to values of a type has that type.
#[test]
fn literals_among_arguments() {
    let mut c = database().connect();
    run(&mut c, "create table t (d date, b bytea, n int)");
    run(&mut c, "insert into t values (null, null, 1), ('2024-02-03', '\\x01', 2)");
    for from in ["t", "t join (select 1 as one) o on true"] {
        let each = |c: &mut cairn_sql::Connection, expr: &str| {
            ask(c, &format!("select {expr} from {from} order by n")).join(" ")
        };
        assert_eq!(each(&mut c, "coalesce(d, '2020-01-01')"), "2020-01-01 2024-02-03", "{from}");
        assert_eq!(each(&mut c, "coalesce(b, '\\x00')"), "\\x00 \\x01", "{from}");
        assert_eq!(each(&mut c, "greatest(d, '2024-02-02')"), "2024-02-02 2024-02-03", "{from}");
        assert_eq!(each(&mut c, "greatest(b, '\\x00')"), "\\x00 \\x01", "{from}");
        assert_eq!(each(&mut c, "least(b, '\\x00')"), "\\x00 \\x00", "{from}");
        assert_eq!(fails(&mut c, &format!("select coalesce(d, 'x') from {from}")), "22007", "{from}");
    }
}

/// A sign binds tighter than a power.
#[test]
fn signs_and_powers() {
    let mut c = database().connect();
    for (expr, expected) in [
        ("-2 ^ 2", "4"),
        ("- 2 ^ 2 ^ 3", "64"),
        ("-(2 ^ 2)", "-4"),
        ("(-2) ^ 2", "4"),
        ("2 ^ -2 ^ 2", "0.0625"),
        ("2 ^ 3 ^ 2", "64"),
        ("1 - 2 ^ 2", "-3"),
        ("2 * -2 ^ 2", "8"),
    ] {
        let sql = format!("select ({expr})::float8");
        assert_eq!(ask(&mut c, &sql), [expected], "{expr}");
        assert_eq!(
            ask(&mut c, &format!("{sql} from (values (1)) x join (values (1)) y on true")),
            [expected],
            "{expr}"
        );
    }
    run(&mut c, "create table t (a int primary key, b float8 default -2 ^ 2 check (b > -2 ^ 2 - 1))");
    run(&mut c, "insert into t values (1)");
    assert_eq!(ask(&mut c, "select b from t"), ["4"]);
    assert_eq!(fails(&mut c, "insert into t values (2, 3)"), "23514");
}

/// Literals continued on other lines are joined.
#[test]
fn literals_on_several_lines() {
    let mut c = database().connect();
    assert_eq!(
        ask(&mut c, "select 'foo'\n  'bar', 'a' -- so\n 'b'\n\t'c', E'x\\n'\n'y'"),
        ["foobar|abc|x\ny"]
    );
    assert_eq!(ask(&mut c, "select length('it''s'\n'')"), ["4"]);
    assert_eq!(ask(&mut c, "select 'a',\n'b'"), ["a|b"]);
}

/// A row is NULL if all of its columns are.
#[test]
fn rows_and_null() {
    let mut c = database().connect();
    let null = "select row(null, null) is null, row(1, null) is null, row(1, null) is not null, row(1, 2) is not null";
    assert_eq!(ask(&mut c, null), ["t|f|f|t"]);
    assert_eq!(ask(&mut c, "select (null, null) is null"), ["t"]);
    run(&mut c, "create table t (a int, b int)");
    run(&mut c, "insert into t values (1, 1), (2, null), (null, null)");
    assert_eq!(ask(&mut c, "select a from t where (a, b) is not null"), ["1"]);
    assert_eq!(ask(&mut c, "select count(*) from t where row(a, b) is null"), ["1"]);
    assert_eq!(ask(&mut c, "select count(*) from t where not (a, b) is null"), ["2"]);
}

/// All equal items are removed or replaced.
#[test]
fn items_of_arrays() {
    let mut c = database().connect();
    assert_eq!(ask(&mut c, "select array_remove(array[1, 2, 1, 3], 1)"), ["{2,3}"]);
    assert_eq!(ask(&mut c, "select array_replace(array[1, 2, 1], 1, 5)"), ["{5,2,5}"]);
    assert_eq!(ask(&mut c, "select array_remove(array['a', 'b', 'a'], 'a')"), ["{b}"]);
    assert_eq!(ask(&mut c, "select array_remove(array[1, null, 1], 1)"), ["{NULL}"]);
    assert_eq!(fails(&mut c, "select array_remove(array[1, null], null)"), "0A000");
    assert_eq!(fails(&mut c, "select array_replace(array[1, null], null, 1)"), "0A000");
}
