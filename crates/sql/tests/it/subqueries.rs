//! Goal: subqueries see the columns that they refer to, have names, and are allowed where
//! PostgreSQL allows them. Method: small scripts.

use cairn_sql::Datum;

use crate::support::{ask, database, fails, rows, run};

/// Goal: a reference to an outer table is resolved even if the subquery has a column of the table's
/// name: by name or alias, with a namespace, within another subquery, and in UPDATE and DELETE; and
/// the right table is used. Method: EXISTS, scalar values, lists, compared with the same queries
/// under other names.
#[test]
fn columns_with_names_of_tables() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, x int)");
    run(&mut c, "create table b (id int primary key, a int, e int)");
    run(&mut c, "insert into a values (1, 5), (2, 6), (3, 7)");
    run(&mut c, "insert into b values (1, 1, 3), (2, 1, 3), (3, 2, 1)");
    for (sql, expected) in [
        ("select id from a where exists (select 1 from b where b.a = a.id) order by 1", &["1", "2"][..]),
        ("select a.id, (select count(*) from b where a = a.id) from a order by 1", &["1|2", "2|1", "3|0"]),
        (
            "select e.id from a e where e.x > (select max(b.id) from b where b.e = e.id) order by 1",
            &["1", "3"],
        ),
        ("select id from a where id in (select a from b where a.x = 5)", &["1"]),
        ("select id from public.a where exists (select 1 from b where b.a = a.id and e = 1)", &["2"]),
        (
            "select t.id from b t where exists (select 1 from a where exists (select 1 from b where a = a.id and b.id = 3) and a.id = t.a)",
            &["3"],
        ),
        ("select b.id from a, b where a.id = b.a and b.e = a.id order by 1", &[]),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
    run(&mut c, "update a set x = 0 where exists (select 1 from b where b.a = a.id and b.e = 1)");
    assert_eq!(ask(&mut c, "select id from a where x = 0"), ["2"]);
    assert_eq!(run(&mut c, "delete from a where not exists (select 1 from b where b.a = a.id)"), 1);
    // Two tables of the name, and a WITH name: neither is guessed.
    let sql = "select id from a where exists (select 1 from b where b.a = a.id)";
    assert_eq!(ask(&mut c, &format!("{sql} and id < 3 order by 1")), ["1", "2"]);
    c.execute(&format!("with a as (select 9 as id) {sql}"), &[]).unwrap_err();
}

/// Goal: a scalar subquery has the name of its first column, as in PostgreSQL. Method: one of each
/// kind.
#[test]
fn names_of_subqueries() {
    let mut c = database().connect();
    let sql = "select (select count(*) from t), (select v as w from t), (select 1), (select v from t union select 2), \
               ((select max(v) from t))";
    run(&mut c, "create table t (v int)");
    let statement = c.prepare(sql).unwrap();
    let names: Vec<&str> = statement.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["count", "w", "?column?", "v", "max"]);
}

/// Goal: a condition without columns keeps or drops the row of an aggregate without groups. Method:
/// parameters, subqueries and HAVING, true and false; with groups; correlated, where a limit would
/// be in the way.
#[test]
fn conditions_without_columns_are_above_the_row_of_nothing() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, x int)");
    run(&mut c, "insert into a values (1, 10), (2, 20), (3, null)");
    for (value, expected) in [(true, vec!["20"]), (false, vec![])] {
        let given = [Datum::Boolean(value)];
        let lone = "(select max(x) as most from a join (values (1), (2)) as v(i) on i = id) as q";
        for sql in [
            format!("select most from {lone} where $1::boolean"),
            format!("select most from {lone} where $1::boolean and most > 1"),
            format!("select most from {lone} where (select $1::boolean)"),
            format!("select most from {lone} where $1::boolean = any (select true from a)"),
            format!("select n from (select most as n from {lone}) as r where $1::boolean"),
            "select max(x) from a join (values (1), (2)) as v(i) on i = id having $1::boolean".to_owned(),
            "select max(x) from a where id < 3 group by id > 5 having $1::boolean".to_owned(),
        ] {
            assert_eq!(rows(&mut c, &sql, &given).unwrap(), expected, "{sql} {value}");
        }
    }
    assert_eq!(
        ask(
            &mut c,
            "select id from a where x = (select max(x) from a as b where b.id = a.id and 1 < 2) order by id"
        ),
        ["1", "2"]
    );
}

/// Goal: VALUES of an INSERT may contain scalar subqueries. Method: one row, several, no match,
/// more than one match.
#[test]
fn subqueries_in_values() {
    let mut c = database().connect();
    run(&mut c, "create table emp (id int primary key, name text, hired date)");
    run(&mut c, "insert into emp values (1, 'ann', '2024-01-01'), (2, 'bob', '2024-02-01')");
    run(&mut c, "create table dept (id int primary key, name text, since date)");
    run(&mut c, "insert into dept values (70, (select name from emp where id = 1), '2020-01-01')");
    run(
        &mut c,
        "insert into dept (id, name) values (71, (select name from emp where id = 9)), ((select max(id) + 100 from emp), 'x')",
    );
    run(&mut c, "insert into dept values (72, 'y', (select max(hired) from emp)) on conflict do nothing");
    assert_eq!(
        ask(&mut c, "select * from dept order by id"),
        ["70|ann|2020-01-01", "71|NULL|NULL", "72|y|2024-02-01", "102|x|NULL"]
    );
    assert_eq!(fails(&mut c, "insert into dept values (73, (select name from emp), null)"), "21000");
    assert_eq!(ask(&mut c, "values ((select count(*) from dept), 'z'), (2, 'w') order by 2"), ["2|w", "4|z"]);
}

/// Goal: a comparison with an outer column uses the type of that column. Method: columns whose
/// scale is known late: averages, rounded numbers and quotients of them, in each kind of subquery
/// and in LATERAL.
#[test]
fn columns_around_have_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, n numeric(12, 3))");
    run(&mut c, "insert into a values (1, 1.5), (2, -1.5), (3, null)");
    run(&mut c, "create table b (id int primary key, n numeric(12, 3), i int)");
    run(&mut c, "insert into b values (1, 1, 1), (2, -2, 2), (3, null, 3)");
    for (of, found) in [
        ("floor(n)", 2),
        ("ceil(n)", 0),
        ("trunc(n, 0)", 1),
        ("round(n)", 1),
        ("n / 1.5", 1),
        ("round(avg(n) over (partition by id), 1) - 0.5", 2),
    ] {
        let from = format!("(select {of} as c from a cross join (values (1)) v (x)) q");
        for (sql, expected) in [
            (format!("select count(*) from {from} where exists (select 1 from b where b.n = q.c)"), found),
            (format!("select count(*) from {from} where q.c in (select n from b where b.n = q.c)"), found),
            (
                format!("select count(*) from {from} where 1 = (select count(*) from b where b.n = q.c)"),
                found,
            ),
            (format!("select sum((select count(*) from b where b.n = q.c)) from {from}"), found),
            (
                format!("select count(*) from {from} where q.c = (select max(n) from b where b.n = q.c)"),
                found,
            ),
            (
                format!(
                    "select count(*) from {from} join lateral (select 1 from b where b.n = q.c) s on true"
                ),
                found,
            ),
            (
                format!(
                    "select count((select 1 from b where b.n = q.c + (select max(i) - 3 from b where q.c is not null))) from {from}"
                ),
                found,
            ),
        ] {
            assert_eq!(ask(&mut c, &sql), [expected.to_string()], "{sql}");
        }
    }
    let sql = "select avg(1::smallint) / nullif(trunc(avg(1::smallint), 0), 0) = 1 from a cross join b";
    assert_eq!(ask(&mut c, sql), ["t"]);
    let sql = "select nullif(trunc(avg(2), 1), 1::numeric) = 2 from a left join b on true";
    assert_eq!(ask(&mut c, sql), ["t"]);
    let sql = "select count(*) from (select avg(distinct i) c from b) q where 2 = (select b.i from b where b.i = q.c)";
    assert_eq!(ask(&mut c, sql), ["1"]);
}
