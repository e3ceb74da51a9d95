//! Goal: the objects that views depend on cannot be dropped or changed, as in PostgreSQL 15.
//! Method: its errors and notices.

use crate::support::{ask, database, fails, run};

/// DROP is rejected, and drops the views as well with CASCADE.
#[test]
fn drops() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v text)");
    run(&mut c, "create view a as select id from t");
    run(&mut c, "create view b as select id from a where id in (select 1)");
    run(&mut c, "create view other as with t as (select 1 as x) select x from t");
    let error = c.execute("drop table t", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), "2BP01");
    assert_eq!(error.message(), "cannot drop table t because other objects depend on it");
    assert_eq!(error.detail(), Some("view a depends on table t\nview b depends on view a"));
    assert_eq!(fails(&mut c, "drop view a"), "2BP01");
    run(&mut c, "drop view b, a");
    run(&mut c, "create view a as select id from t");
    run(&mut c, "create view b as select id from a");
    c.take_notices();
    run(&mut c, "drop table t cascade");
    assert_eq!(c.take_notices()[0].message, "drop cascades to 2 other objects");
    assert_eq!(ask(&mut c, "select viewname from pg_views where schemaname = 'public'"), ["other"]);
    run(&mut c, "create schema s");
    run(&mut c, "create table s.t (id int)");
    run(&mut c, "create view a as select id from s.t");
    run(&mut c, "drop schema s cascade");
    assert_eq!(fails(&mut c, "select * from a"), "42P01");
}

/// A name defined by the view's own WITH is not a table. But within the query of that name, and
/// before it, the name refers to the table.
#[test]
fn names_of_with() {
    let views = [
        ("with t as (select * from t where a > 0) select * from t", true),
        ("with x as (select a from t), t as (select 1 as b) select * from x, t", true),
        ("with t as (select 1 as a), x as (select a from t) select * from x", false),
        ("with t as (select 1 as a) select a from (select a from t where a in (select a from t)) s", false),
        ("select * from (with t as (select 1 as a) select a from t) s join t on t.a = s.a + 1", true),
        (
            "with recursive t(a) as (select 1 union all select a + 1 from t where a < 3) select a from t",
            false,
        ),
        ("with t as (select 1 as a) select public.t.a from public.t", true),
    ];
    for (query, holds) in views {
        let mut c = database().connect();
        run(&mut c, "create table t (a int)");
        let columns = if query.contains("from x, t") || query.contains("join") { "(p, q)" } else { "(p)" };
        run(&mut c, &format!("create view v {columns} as {query}"));
        match holds {
            true => assert_eq!(fails(&mut c, "drop table t"), "2BP01", "{query}"),
            false => assert_eq!(run(&mut c, "drop table t"), 0, "{query}"),
        }
    }
}

/// Columns that views depend on cannot be dropped, renamed or retyped; others can.
#[test]
fn columns() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v text, w int, x int)");
    run(&mut c, "insert into t values (1, '7', 2, 3)");
    run(&mut c, "create view a as select id, v from t where w > 0");
    let error = c.execute("alter table t drop column v", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), "2BP01");
    assert_eq!(error.message(), "cannot drop column v of table t because other objects depend on it");
    assert_eq!(error.detail(), Some("view a depends on column v of table t"));
    assert_eq!(fails(&mut c, "alter table t drop column w"), "2BP01");
    assert_eq!(fails(&mut c, "alter table t alter column v type int using v::int"), "0A000");
    assert_eq!(fails(&mut c, "alter table t rename column v to y"), "0A000");
    assert_eq!(fails(&mut c, "alter table t rename to y"), "0A000");
    run(&mut c, "alter table t drop column x");
    run(&mut c, "create view every as select *, id + 1 as next from t");
    run(&mut c, "alter table t add column z int");
    assert_eq!(ask(&mut c, "select * from a"), ["1|7"]);
    assert_eq!(ask(&mut c, "select * from every"), ["1|7|2|2"]);
    run(&mut c, "drop view every");
    run(&mut c, "alter table t drop column v cascade");
    assert_eq!(fails(&mut c, "select * from a"), "42P01");
    assert_eq!(ask(&mut c, "select * from t"), ["1|2|NULL"]);
}

/// A column is retyped together with its rows and keys. A value that cannot be converted leaves
/// everything unchanged.
#[test]
fn types() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int, v text unique, n numeric(8,2))");
    run(&mut c, "insert into t select g, g::text, g / 2.0 from generate_series(1, 3000) g");
    run(&mut c, "alter table t alter column v type bigint using v::bigint * 2");
    assert_eq!(
        ask(&mut c, "select count(*), sum(v), min(v), max(v), sum(n) from t"),
        ["3000|9003000|2|6000|2250750.00"]
    );
    assert_eq!(ask(&mut c, "select id, n from t where v = 6"), ["3|1.50"]);
    assert_eq!(fails(&mut c, "insert into t values (1, 6, 1)"), "23505");
    assert_eq!(fails(&mut c, "alter table t alter column v type smallint using v * 100"), "22003");
    assert_eq!(fails(&mut c, "alter table t alter column v type int using v % 2"), "23505");
    assert_eq!(ask(&mut c, "select count(*), max(v) from t"), ["3000|6000"]);
    run(&mut c, "begin");
    run(&mut c, "insert into t values (0, 1, 1)");
    run(&mut c, "alter table t alter column id type text");
    assert_eq!(ask(&mut c, "select id from t where v = 1"), ["0"]);
    run(&mut c, "rollback");
    assert_eq!(ask(&mut c, "select count(*), max(id) from t"), ["3000|3000"]);
}
