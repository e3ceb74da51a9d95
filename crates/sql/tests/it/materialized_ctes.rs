//! Goal: a WITH query is computed once, where PostgreSQL does so. Method: volatile values,
//! sequences as counters, and chains of queries that would take hours if each reference were
//! computed separately.

use crate::support::{ask, database, run};

#[test]
fn two_places_see_the_same_rows() {
    let mut c = database().connect();
    run(&mut c, "create sequence sq");
    assert_eq!(ask(&mut c, "with x as (select nextval('sq') n) select a.n, b.n from x a, x b"), ["1|1"]);
    assert_eq!(ask(&mut c, "select nextval('sq')"), ["2"]);
    for sql in [
        "with x as (select random() n) select a.n = b.n from x a, x b",
        "with x as (select clock_timestamp() n) select a.n = b.n from x a, x b",
        "with x as materialized (select random() n) select (select n from x) = (select n from x)",
        "with x as not materialized (select random() n) select a.n = b.n from x a, x b",
        "with recursive x as (select random() n union all select n + 1 from x where n < 3) select sum(a.n) = (select sum(n) from x) from x a",
        "select exists (with x as (select random() q) select from x a join x b on a.q = b.q)",
    ] {
        assert_eq!(ask(&mut c, sql), ["t"], "{sql}");
    }
    let apart = "with x as (select random() r from generate_series(1, 100) g(i)) select (select count(*) from x where r < 0.5) + (select count(*) from x where r >= 0.5)";
    assert_eq!(ask(&mut c, apart), ["100"]);
    let rows = "with x as (select i, random() r from generate_series(1, 50) g(i)) select count(*) from x a join x b using (i) where a.r = b.r";
    assert_eq!(ask(&mut c, rows), ["50"]);
    // Volatile values of a subquery are not recomputed in comparisons.
    let once = "select count(*) from (select random() r from generate_series(1, 1000) g(i)) s where r < 0.5 and r > 0.5";
    assert_eq!(ask(&mut c, once), ["0"]);
}

/// Goal: WITH queries in several views are computed once each, and not confused. Method: two views
/// whose WITH would have the same number, a WITH over such a view, and recursive ones.
#[test]
fn views_have_queries_of_their_own() {
    let mut c = database().connect();
    for (name, value) in [("a", 1), ("b", 2)] {
        run(
            &mut c,
            &format!("create view {name} as with x as materialized (select {value} as v) select * from x"),
        );
    }
    assert_eq!(ask(&mut c, "select a.v, b.v from a, b"), ["1|2"]);
    assert_eq!(
        ask(&mut c, "with y as materialized (select v + 10 as v from a) select y.v, a.v from y, a"),
        ["11|1"]
    );
    for (name, first) in [("r", 1), ("s", 5)] {
        let numbers = format!("select {first} as v union all select v + 1 from x where v < {first} + 1");
        let text = format!("with recursive x as ({numbers}) select p.v from x p join x q using (v)");
        run(&mut c, &format!("create view {name} as {text}"));
    }
    assert_eq!(ask(&mut c, "select r.v, s.v from r, s order by 1, 2"), ["1|5", "1|6", "2|5", "2|6"]);
}

/// Goal: a statement that changes rows computes its WITH once, and anew for each run. Method: a
/// statement with a cached plan, and a sequence.
#[test]
fn each_run_computes_it_anew() {
    let mut c = database().connect();
    run(&mut c, "create sequence sq");
    run(&mut c, "create table t (a bigint, b bigint)");
    let insert = "with x as (select nextval('sq') n) insert into t select a.n, b.n from x a, x b";
    for _ in 0..3 {
        assert_eq!(run(&mut c, insert), 1);
    }
    assert_eq!(ask(&mut c, "select a, b from t order by a"), ["1|1", "2|2", "3|3"]);
}

/// Goal: in a chain of queries that each refer to the previous one twice, each query is computed
/// once. Method: a sequence counts the computations of the first one.
#[test]
fn chains_are_computed_once() {
    let mut c = database().connect();
    run(&mut c, "create sequence sq");
    let mut sql = "with q0 as (select nextval('sq') as n)".to_owned();
    for at in 1..=6 {
        let before = at - 1;
        sql += &format!(", q{at} as (select a.n + b.n as n from q{before} a, q{before} b)");
    }
    sql += " select n from q6";
    assert_eq!(ask(&mut c, &sql), ["64"]);
    assert_eq!(ask(&mut c, "select nextval('sq')"), ["2"]);
}

/// Goal: a run that ends before its WITH queries have returned all rows releases its snapshot.
/// Method: runs that end by a limit, by an error, and because the caller stops reading, with nested
/// WITH queries; then a change of the schema, which waits until no snapshot is left.
#[test]
fn runs_that_end_early_let_go() {
    let db = database();
    let mut c = db.connect();
    run(&mut c, "create table t (id int primary key, x int)");
    // More rows than the channels between operators hold. A scan that has reached its end releases
    // its snapshot by itself.
    run(&mut c, "insert into t select i, i % 7 from generate_series(1, 200000) as g (i)");
    let mut other = db.connect();
    run(&mut other, "set lock_timeout = '60s'");
    let with = "with a as materialized (select id, x from t), \
                b as materialized (select a.id, a.x, t.x y from t left join lateral (select * from a limit 1) a on true)";
    for (at, query) in [
        "select id from b limit 1",
        "select b.id from b, a limit 3",
        "select (select id from a limit 1), (select id from b limit 1)",
        "select 1 / (y - 3) from b",
        "select a.id from a where exists (select 1 from b where b.id = a.id) limit 2",
        "select id from a where id < 0",
    ]
    .into_iter()
    .enumerate()
    {
        // With or without an error.
        let _ = c.execute(&format!("{with} {query}"), &[]);
        let mut rows = c.query(&format!("{with} {query}"), &[]).unwrap();
        let _ = rows.next();
        drop(rows);
        run(&mut other, &format!("create table n{at} (id int primary key)"));
    }
}
