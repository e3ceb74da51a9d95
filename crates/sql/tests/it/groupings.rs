//! Goal: grouping sets, a single group of all rows, and tables of one name in two schemas give
//! PostgreSQL's rows. Method: PostgreSQL 15's results for a table with NULLs, sorted by columns,
//! expressions and names.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, run};

fn filled() -> Connection {
    let mut c = database().connect();
    run(&mut c, "create table g (a int, b int, v int)");
    run(&mut c, "insert into g values (1,1,1),(1,2,2),(2,1,4),(2,null,8)");
    run(&mut c, "create schema s1");
    run(&mut c, "create table s1.g (a int, w text)");
    run(&mut c, "insert into s1.g values (1,'x'),(3,'y')");
    run(&mut c, "create table o (i int)");
    run(&mut c, "insert into o values (1),(2),(3)");
    run(&mut c, "create table p (j int)");
    run(&mut c, "insert into p values (2),(3)");
    c
}

fn answers(cases: &[(&str, &[&str])]) {
    let mut c = filled();
    for (sql, expected) in cases {
        assert_eq!(ask(&mut c, sql), *expected, "{sql}");
    }
}

/// Several grouping sets, and columns next to them, are combined.
#[test]
fn sets_are_combined() {
    answers(&[
        (
            "select a, b, sum(v) from g group by grouping sets ((a),()), grouping sets ((b),()) order by 1,2,3",
            &[
                "1|1|1",
                "1|2|2",
                "1|NULL|3",
                "2|1|4",
                "2|NULL|8",
                "2|NULL|12",
                "NULL|1|5",
                "NULL|2|2",
                "NULL|NULL|8",
                "NULL|NULL|15",
            ],
        ),
        (
            "select a, b, sum(v) from g group by a, rollup(b) order by 1,2,3",
            &["1|1|1", "1|2|2", "1|NULL|3", "2|1|4", "2|NULL|8", "2|NULL|12"],
        ),
        (
            "select a, b, count(*) from g group by 1, cube(2) order by 1,2,3",
            &["1|1|1", "1|2|1", "1|NULL|2", "2|1|1", "2|NULL|1", "2|NULL|2"],
        ),
        (
            "select a, sum(v) from g group by grouping sets ((a),(a)), grouping sets ((), (b)) order by 1,2",
            &["1|1", "1|1", "1|2", "1|2", "1|3", "1|3", "2|4", "2|4", "2|8", "2|8", "2|12", "2|12"],
        ),
    ]);
    let mut c = filled();
    let twelve = ["(a),(b),()"; 8].map(|sets| format!("grouping sets ({sets})")).join(",");
    assert_eq!(fails(&mut c, &format!("select count(*) from g group by {twelve}")), "54001");
}

/// A sort key can be an expression of a grouping set.
#[test]
fn sets_of_expressions_are_sorted() {
    let rolled = &["1|0|2", "1|1|1", "1|NULL|3", "2|1|4", "2|NULL|8", "2|NULL|12", "NULL|NULL|15"];
    answers(&[
        ("select a, b%2, sum(v) from g group by rollup(a, b%2) order by 1,2,3", rolled),
        ("select a, b%2 m, sum(v) from g group by rollup(a, m) order by a, m, 3", rolled),
        (
            "select a, abs(b), grouping(a), grouping(abs(b)), sum(v) from g group by cube(a, abs(b)) order by 1,2,3,4",
            &[
                "1|1|0|0|1",
                "1|2|0|0|2",
                "1|NULL|0|1|3",
                "2|1|0|0|4",
                "2|NULL|0|0|8",
                "2|NULL|0|1|12",
                "NULL|1|1|0|5",
                "NULL|2|1|0|2",
                "NULL|NULL|1|0|8",
                "NULL|NULL|1|1|15",
            ],
        ),
        (
            "select abs(b), sum(v) from g group by rollup(abs(b)) order by abs(b) desc, 2",
            &["NULL|8", "NULL|15", "2|2", "1|5"],
        ),
    ]);
}

/// HAVING alone forms one group, and so does `GROUP BY ()`.
#[test]
fn one_group_of_all_rows() {
    answers(&[
        ("select 1 from g having true", &["1"]),
        ("select 7 x from g having 1 > 2", &[]),
        ("select 1 having true", &["1"]),
        ("select 'a' from g group by ()", &["a"]),
        ("select sum(v) from g group by ()", &["15"]),
        ("select a, sum(v) from g group by (), a order by 1", &["1|3", "2|12"]),
        ("select count(*) from (select 1 from g having true) q", &["1"]),
        ("select i, (select 5 from p having i > 1) from o order by 1", &["1|NULL", "2|5", "3|5"]),
    ]);
}

/// A condition on a volatile group key sees the value that formed the group.
#[test]
fn volatile_groups_are_computed_once() {
    answers(&[(
        "select bool_and(r < 0.5), count(*) > 100 from (select random() r, count(*) from generate_series(1, 1000) \
         group by random()) x where r < 0.5",
        &["t|t"],
    )]);
}

/// Tables of one name are distinguished by their schemas.
#[test]
fn two_schemas_have_a_table_of_one_name() {
    answers(&[
        (
            "select * from g, s1.g order by 1,2,3,4,5",
            &[
                "1|1|1|1|x",
                "1|1|1|3|y",
                "1|2|2|1|x",
                "1|2|2|3|y",
                "2|1|4|1|x",
                "2|1|4|3|y",
                "2|NULL|8|1|x",
                "2|NULL|8|3|y",
            ],
        ),
        (
            "select s1.g.a, public.g.v, w from g join s1.g on public.g.a = s1.g.a order by 1,2",
            &["1|1|x", "1|2|x"],
        ),
        ("select s1.g.* from g, s1.g order by 1,2 limit 5", &["1|x", "1|x", "1|x", "1|x", "3|y"]),
        ("select * from g join s1.g using (a) order by 1,2,3", &["1|1|1|x", "1|2|2|x"]),
        ("select public.g.*, w from g natural join s1.g order by 1,2,3", &["1|1|1|x", "1|2|2|x"]),
        ("select a, count(*) from s1.g group by a order by a", &["1|1", "3|1"]),
        (
            "select (select count(*) from p where s1.g.a = p.j) from g, s1.g order by 1",
            &["0", "0", "0", "0", "1", "1", "1", "1"],
        ),
    ]);
    assert_eq!(fails(&mut filled(), "select g.a from g, s1.g"), "42P09");
}

/// An aggregate of an outer query's columns belongs to that query. It is rejected instead of being
/// computed over the wrong rows.
#[test]
fn aggregates_of_outer_queries_are_refused() {
    let mut c = filled();
    for sql in [
        "select exists (select i + min(o.i) from p) from o",
        "select (select sum(o.i) from p) from o",
        "select i from o where exists (select 1 from p having max(i) > 2)",
        "select i from o where i in (select count(i) from p)",
    ] {
        assert_eq!(fails(&mut c, sql), "0A000", "{sql}");
    }
    assert_eq!(ask(&mut c, "select (select max(o.i + j) from p) from o order by 1"), ["4", "5", "6"]);
    assert_eq!(ask(&mut c, "select (select o.i from p limit 1) from o order by 1"), ["1", "2", "3"]);
}

#[test]
fn an_escape_may_be_null() {
    answers(&[
        ("select 'a' like 'a' escape null", &["NULL"]),
        ("select i from o where 'a' not like 'b' escape null", &[]),
        ("select 'a' similar to 'a' escape null", &["NULL"]),
        ("select 'a' ilike i::text escape null from o", &["NULL", "NULL", "NULL"]),
    ]);
}
