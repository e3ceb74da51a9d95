//! Goal: an altered table keeps its constraints and defaults, as in PostgreSQL 15. Method:
//! PostgreSQL's results, statement by statement.

use crate::support::{ask, database, fails, run};

/// Columns that the table's own foreign keys refer to move when a column before them is dropped.
/// With and without another unique column at the old position.
#[test]
fn places_of_own_references() {
    for code in ["", "code int unique default 100, "] {
        let mut c = database().connect();
        run(
            &mut c,
            &format!("create table t (x int, id int primary key, {code}parent int references t (id))"),
        );
        run(&mut c, "insert into t (x, id) values (0, 1)");
        if !code.is_empty() {
            run(&mut c, "alter table t alter code set default 200");
        }
        run(&mut c, "insert into t (x, id, parent) values (0, 2, 1)");
        run(&mut c, "alter table t drop column x");
        if !code.is_empty() {
            run(&mut c, "alter table t alter code set default 300");
        }
        assert_eq!(fails(&mut c, "insert into t (id, parent) values (3, 100)"), "23503", "{code}");
        assert_eq!(fails(&mut c, "delete from t where id = 1"), "23503", "{code}");
        assert_eq!(fails(&mut c, "alter table t drop column id"), "2BP01", "{code}");
        run(&mut c, "alter table t drop column id cascade");
        run(&mut c, "update t set parent = 77");
        run(&mut c, "alter table t add column id int");
        assert_eq!(ask(&mut c, "select parent, id from t limit 1"), ["77|NULL"], "{code}");
    }
    // A foreign key is dropped with its column.
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, parent int references t, v int)");
    run(&mut c, "insert into t values (1, 1, 5)");
    run(&mut c, "alter table t drop column parent");
    run(&mut c, "delete from t");
}

/// Checks are tested on the converted values, and checks and default must be valid for the new
/// type.
#[test]
fn types_and_what_is_said_of_them() {
    let mut c = database().connect();
    run(&mut c, "create table t (a int check (a > 0))");
    run(&mut c, "insert into t values (1)");
    assert_eq!(fails(&mut c, "alter table t alter a type bigint using -a"), "23514");
    assert_eq!(fails(&mut c, "alter table t alter a type text"), "42883");
    assert_eq!(ask(&mut c, "select a from t"), ["1"]);
    run(&mut c, "alter table t alter a type bigint using a + 1");
    assert_eq!(ask(&mut c, "select a from t"), ["2"]);
    assert_eq!(fails(&mut c, "insert into t values (0)"), "23514");
    run(&mut c, "create table w (id int, a int default 5)");
    assert_eq!(fails(&mut c, "alter table w alter a type boolean using a > 0"), "42804");
    run(&mut c, "insert into w (id) values (1)");
    run(&mut c, "alter table w alter a type bigint");
    assert_eq!(ask(&mut c, "select a from w"), ["5"]);
    run(&mut c, "create table l (v varchar(5))");
    run(&mut c, "insert into l values ('four')");
    assert_eq!(fails(&mut c, "alter table l alter v type varchar(3)"), "22001");
    run(&mut c, "alter table l alter v type varchar(4)");
    assert_eq!(fails(&mut c, "insert into l values ('fives')"), "22001");
}

/// Referenced and referring tables can change their types as long as the foreign keys stay valid.
#[test]
fn types_of_referenced_tables() {
    let mut c = database().connect();
    run(&mut c, "create table p (id int primary key, v int)");
    run(&mut c, "create table c (id int, p int references p)");
    run(&mut c, "insert into p values (1, 10), (2, 20)");
    run(&mut c, "insert into c values (1, 1), (2, 2), (3, null)");
    run(&mut c, "alter table p alter v type bigint");
    assert_eq!(fails(&mut c, "alter table p alter id type text"), "42804");
    assert_eq!(fails(&mut c, "alter table c alter p type text"), "42804");
    assert_eq!(fails(&mut c, "alter table p alter id type bigint using id + 1"), "23503");
    assert_eq!(fails(&mut c, "alter table c alter p type bigint using p + 1"), "23503");
    run(&mut c, "alter table p alter id type bigint");
    run(&mut c, "insert into p values (10000000000, 1)");
    assert_eq!(
        ask(&mut c, "select p.id, v, c.id from p join c on p = p.id order by 1"),
        ["1|10|1", "2|20|2"]
    );
    assert_eq!(fails(&mut c, "delete from p where id = 2"), "23503");
    assert_eq!(fails(&mut c, "insert into c values (4, 4)"), "23503");
    run(&mut c, "alter table c alter p type bigint using nullif(p, 2)");
    run(&mut c, "delete from p where id = 2");
    run(&mut c, "insert into c values (4, 10000000000)");
    // Also in a transaction that is rolled back.
    run(&mut c, "begin");
    run(&mut c, "alter table p alter v type text");
    run(&mut c, "insert into p values (5, 'five')");
    run(&mut c, "rollback");
    run(&mut c, "insert into p values (5, 5)");
    assert_eq!(ask(&mut c, "select sum(v) from p"), ["16"]);
    run(&mut c, "create table t (id int primary key, parent int references t)");
    run(&mut c, "insert into t values (1, 2), (2, 1)");
    assert_eq!(fails(&mut c, "alter table t alter id type bigint using id + 1"), "23503");
    run(&mut c, "alter table t alter id type bigint using 3 - id");
    run(&mut c, "insert into t values (3, 1)");
    assert_eq!(fails(&mut c, "delete from t where id = 1"), "23503");
}

/// A check that qualifies its columns with the table survives the renaming of either.
#[test]
fn names_in_checks() {
    let mut c = database().connect();
    run(&mut c, "create table t (a int check (t.a > 0), b int, check (public.t.b > T.a or \"t\".b is null))");
    run(&mut c, "alter table t rename to u");
    run(&mut c, "insert into u values (1, 2)");
    run(&mut c, "alter table u rename a to c");
    run(&mut c, "alter table u add check (u.c < 100)");
    run(&mut c, "alter table u rename c to \"D\"");
    run(&mut c, "insert into u values (1, null)");
    for refused in ["(0, 1)", "(2, 1)", "(100, 200)"] {
        assert_eq!(fails(&mut c, &format!("insert into u values {refused}")), "23514", "{refused}");
    }
    assert_eq!(fails(&mut c, "create table v (a int check (u.a > 0))"), "42P01");
}

/// A column that refers to two tables is checked against both.
#[test]
fn references_of_new_columns() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    run(&mut c, "create table b (id int primary key)");
    run(&mut c, "create table t (v int)");
    run(&mut c, "insert into t values (1)");
    for there in ["a", "b"] {
        run(&mut c, &format!("insert into {there} values (1)"));
        let both = "alter table t add column x int default 1 references a references b";
        match there {
            "a" => assert_eq!(fails(&mut c, both), "23503"),
            _ => {
                run(&mut c, "delete from a");
                assert_eq!(fails(&mut c, both), "23503");
                run(&mut c, "insert into a values (1)");
                run(&mut c, both);
            }
        }
    }
    assert_eq!(fails(&mut c, "delete from a"), "23503");
    assert_eq!(fails(&mut c, "delete from b"), "23503");
}
