//! Goal: correlated subqueries are computed for each outer row, in any place and with any contents.
//! Method: PostgreSQL's results for aggregates without groups, limits, windows, set operations,
//! joins, nested subqueries and LATERAL over groups that are empty, have one row, several, and
//! NULL.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, run};

fn filled() -> Connection {
    let mut c = database().connect();
    run(&mut c, "create table t (a int, b int)");
    run(&mut c, "create table u (a int, x int, n numeric(6,2))");
    run(&mut c, "create table v (a int, y int)");
    run(&mut c, "insert into t values (1,10),(2,20),(3,null),(null,5),(2,21)");
    run(&mut c, "insert into u values (1,100,1.5),(1,101,2.25),(2,200,3),(null,300,4),(4,null,5)");
    run(&mut c, "insert into v values (1,7),(3,8),(null,9)");
    c
}

/// Queries, and PostgreSQL 15's rows: in their order if the query ends with ORDER BY, and sorted
/// otherwise.
const ANSWERS: &[(&str, &[&str])] = &[
    ("select a,b from t where not exists (select max(a) from u where u.a = t.a + 100) order by 1,2", &[]),
    (
        "select a,b from t where exists (select max(a) from u where u.a = t.a) order by 1,2",
        &["1|10", "2|20", "2|21", "3|NULL", "NULL|5"],
    ),
    (
        "select a,b from t where exists (select count(*) from u where u.a = t.a having count(*) > 1) order by 1,2",
        &["1|10"],
    ),
    (
        "select a,b from t where exists (select count(*) from u where u.a = t.a having count(*) = 0) order by 1,2",
        &["3|NULL", "NULL|5"],
    ),
    (
        "select a,b from t where 0 = (select count(*) from u where u.a = t.a having count(*) < 2) order by 1,2",
        &["3|NULL", "NULL|5"],
    ),
    (
        "select a,b from t where 0 in (select count(*) from u where u.a = t.a) order by 1,2",
        &["3|NULL", "NULL|5"],
    ),
    ("select a,b from t where a in (select count(*) from u where u.a = t.a) order by 1,2", &[]),
    (
        "select a,b from t where a not in (select count(*) from u where u.a = t.a) order by 1,2",
        &["1|10", "2|20", "2|21", "3|NULL"],
    ),
    (
        "select a,b from t where a not in (select max(x) from u where u.a = t.a) order by 1,2",
        &["1|10", "2|20", "2|21"],
    ),
    (
        "select a,b,(select count(*)+1 from u where u.a>t.a) c from t order by 1,2",
        &["1|10|3", "2|20|2", "2|21|2", "3|NULL|2", "NULL|5|1"],
    ),
    (
        "select a,b,(select count(*) from u where u.a>t.a having count(*)>1) c from t order by 1,2",
        &["1|10|2", "2|20|NULL", "2|21|NULL", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select max(x) from u where u.a>t.a and x > t.b) c from t order by 1,2",
        &["1|10|200", "2|20|NULL", "2|21|NULL", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b, exists (select sum(x) from u where u.a=t.a) e, exists (select 1 from u where u.a=t.a group by u.a having count(*)>1) f from t order by 1,2",
        &["1|10|t|t", "2|20|t|f", "2|21|t|f", "3|NULL|t|f", "NULL|5|t|f"],
    ),
    (
        "select a,b, a in (select max(u.a) from u where u.a=t.a) e from t order by 1,2",
        &["1|10|t", "2|20|t", "2|21|t", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b, a in (select u.a from u where u.x > t.b) e, a not in (select u.a from u where u.x > t.b) f from t order by 1,2",
        &["1|10|t|f", "2|20|t|f", "2|21|t|f", "3|NULL|f|t", "NULL|5|NULL|NULL"],
    ),
    (
        "select a,b,(select x from u where u.a=t.a order by x limit 1) l, (select x from u where u.a=t.a order by x offset 1 limit 1) o, (select x from u where u.a=t.a order by x desc nulls last limit 1) d from t order by 1,2",
        &[
            "1|10|100|101|101",
            "2|20|200|NULL|200",
            "2|21|200|NULL|200",
            "3|NULL|NULL|NULL|NULL",
            "NULL|5|NULL|NULL|NULL",
        ],
    ),
    (
        "select a,b,(select x from u where u.a>=t.a order by x limit 1) l from t order by 1,2",
        &["1|10|100", "2|20|200", "2|21|200", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    ("select a,b from t where exists (select 1 from u where u.a=t.a offset 1) order by 1,2", &["1|10"]),
    ("select a,b from t where exists (select 1 from u where u.a=t.a limit 0) order by 1,2", &[]),
    (
        "select a,b from t where a in (select u.a from u where u.a>=t.a order by u.a limit 1) order by 1,2",
        &["1|10", "2|20", "2|21"],
    ),
    (
        "select a,b from t where exists (select distinct count(*) from u where u.a=t.a) order by 1,2",
        &["1|10", "2|20", "2|21", "3|NULL", "NULL|5"],
    ),
    (
        "select a,b,(select max(s) from (select sum(x) s from u where u.a=t.a) q) m from t order by 1,2",
        &["1|10|201", "2|20|200", "2|21|200", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select count(*) from (select 1 from u where u.a=t.a union all select 2 from v where v.a=t.a) q) m from t order by 1,2",
        &["1|10|3", "2|20|1", "2|21|1", "3|NULL|1", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from (select u.a from u where u.a=t.a union select v.a from v where v.a=t.a) q) m from t order by 1,2",
        &["1|10|1", "2|20|1", "2|21|1", "3|NULL|1", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from (select u.a from u where u.a>=t.a except select v.a from v where v.a=t.a) q) m from t order by 1,2",
        &["1|10|2", "2|20|2", "2|21|2", "3|NULL|1", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from (select u.a from u where u.a>=t.a intersect select v.a from v where v.a>=t.a) q) m from t order by 1,2",
        &["1|10|1", "2|20|0", "2|21|0", "3|NULL|0", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from u left join v on u.a=v.a and v.a=t.a) m, (select count(v.y) from u left join v on u.a=v.a and v.a=t.a) k from t order by 1,2",
        &["1|10|5|2", "2|20|5|0", "2|21|5|0", "3|NULL|5|0", "NULL|5|5|0"],
    ),
    (
        "select a,b,(select max(r) from (select row_number() over (order by x) r from u where u.a=t.a) q) m from t order by 1,2",
        &["1|10|2", "2|20|1", "2|21|1", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select sum(x) from u where u.a=t.a and exists (select max(y) from v where v.a=u.a and v.a=t.a)) m from t order by 1,2",
        &["1|10|201", "2|20|200", "2|21|200", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select count(*) from u where u.a=t.a and not exists (select 1 from v where v.a=t.a and v.y < u.x)) m from t order by 1,2",
        &["1|10|0", "2|20|1", "2|21|1", "3|NULL|0", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from u where x > (select count(*) from v where v.a=t.a)) m from t order by 1,2",
        &["1|10|4", "2|20|4", "2|21|4", "3|NULL|4", "NULL|5|4"],
    ),
    (
        "select a,b,(select (select count(*) from v where v.a=t.a)) m from t order by 1,2",
        &["1|10|1", "2|20|0", "2|21|0", "3|NULL|1", "NULL|5|0"],
    ),
    (
        "select a,b,(select t.a + count(*) from u) m from t order by 1,2",
        &["1|10|6", "2|20|7", "2|21|7", "3|NULL|8", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select t.a) m from t order by 1,2",
        &["1|10|1", "2|20|2", "2|21|2", "3|NULL|3", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select max(c) from (values (t.a),(t.b),(7)) w(c)) m from t order by 1,2",
        &["1|10|10", "2|20|20", "2|21|21", "3|NULL|7", "NULL|5|7"],
    ),
    (
        "select a, count(*) from t group by a having exists (select max(x) from u where u.a=t.a having max(x) > 100) order by 1",
        &["1|1", "2|2"],
    ),
    (
        "select a, count(*) from t group by a having not exists (select count(*) from u where u.a=t.a) order by 1",
        &[],
    ),
    ("select sum((select count(*) from u where u.a=t.a)) from t", &["4"]),
    (
        "select (select count(*) from u where u.a=t.a) c, count(*) from t group by 1 order by 1",
        &["0|2", "1|2", "2|1"],
    ),
    (
        "select a,b from t order by (select count(*) from u where u.a=t.a), a, b",
        &["1|10", "2|20", "2|21", "3|NULL", "NULL|5"],
    ),
    (
        "select t.a, t.b, u.x from t left join u on u.a=t.a and 1 = (select count(*) from v where v.a=t.a) order by 1,2,3",
        &["1|10|100", "1|10|101", "2|20|NULL", "2|21|NULL", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select t.a, t.b, u.x from t join u on u.a=t.a and 0 = (select count(*) from v where v.a=u.a+t.a) order by 1,2,3",
        &["1|10|100", "1|10|101", "2|20|200", "2|21|200"],
    ),
    (
        "select case when exists (select max(x) from u where u.a=t.a) then 1 else 0 end from t",
        &["1", "1", "1", "1", "1"],
    ),
    (
        "select case when a > 1 or not exists (select max(x) from u where u.a=t.a) then 1 else 0 end from t order by 1",
        &["0", "0", "1", "1", "1"],
    ),
    (
        "select t.a,t.b,q.c,q.m from t, lateral (select count(*) c, max(x) m from u where u.a=t.a) q order by 1,2",
        &["1|10|2|101", "2|20|1|200", "2|21|1|200", "3|NULL|0|NULL", "NULL|5|0|NULL"],
    ),
    (
        "select t.a,t.b,q.c from t left join lateral (select count(*) c from u where u.a=t.a having count(*)>0) q on true order by 1,2",
        &["1|10|2", "2|20|1", "2|21|1", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select t.a,t.b,q.x from t left join lateral (select x from u where u.a=t.a order by x limit 1) q on true order by 1,2",
        &["1|10|100", "2|20|200", "2|21|200", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select t.a,t.b,q.x from t, lateral (select x from u where u.a>=t.a order by x desc nulls last limit 2) q order by 1,2,3",
        &["1|10|101", "1|10|200", "2|20|200", "2|20|NULL", "2|21|200", "2|21|NULL", "3|NULL|NULL"],
    ),
    (
        "select t.a,t.b,q.x,r.y from t left join lateral (select x from u where u.a=t.a) q on q.x>100 left join lateral (select y from v where v.a=t.a and y < q.x) r on true order by 1,2,3",
        &["1|10|101|7", "2|20|200|NULL", "2|21|200|NULL", "3|NULL|NULL|NULL", "NULL|5|NULL|NULL"],
    ),
    (
        "select a,b from t where a > any (select count(*) from u where u.a=t.a) order by 1,2",
        &["2|20", "2|21", "3|NULL"],
    ),
    ("select a,b from t where a <= all (select count(*) from u where u.a=t.a) order by 1,2", &["1|10"]),
    (
        "select a,b from t where (a,0) in (select u.a,count(*) from u where u.a=t.a group by u.a) order by 1,2",
        &[],
    ),
    (
        "select a,b from t where (1,0) in (select 1,count(*) from u where u.a=t.a) order by 1,2",
        &["3|NULL", "NULL|5"],
    ),
    (
        "select a,b,(select string_agg(x::text, ',' order by x) from u where u.a<=t.a) m from t order by 1,2",
        &["1|10|100,101", "2|20|100,101,200", "2|21|100,101,200", "3|NULL|100,101,200", "NULL|5|NULL"],
    ),
    (
        "select a,b,(select array_agg(x) from (select x from u where u.a<=t.a order by x desc) q) m from t order by 1,2",
        &[
            "1|10|{101,100}",
            "2|20|{200,101,100}",
            "2|21|{200,101,100}",
            "3|NULL|{200,101,100}",
            "NULL|5|NULL",
        ],
    ),
    (
        "select a,b,(select count(distinct u.a) from u where u.a<=t.a) m,(select count(*) filter (where x>100) from u where u.a<=t.a) k from t order by 1,2",
        &["1|10|1|1", "2|20|2|2", "2|21|2|2", "3|NULL|2|2", "NULL|5|0|0"],
    ),
    (
        "select a,b,(select u.x as a from u where u.a=t.a and u.x=100) m from t order by 1,2",
        &["1|10|100", "2|20|NULL", "2|21|NULL", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b from t where exists (select u.x as a from u where u.a=t.a) order by 1,2",
        &["1|10", "2|20", "2|21"],
    ),
    (
        "select a,b from t where exists (select 1 from u join v on u.a=v.a where u.a=t.a and v.a=t.a) order by 1,2",
        &["1|10"],
    ),
    ("select a,b from t where exists (select 1 from u, v where u.a=t.a and v.a=t.b) order by 1,2", &[]),
    (
        "select a,b,(select distinct on (u.a) x from u where u.a=t.a order by u.a, x desc) from t order by 1,2",
        &["1|10|101", "2|20|200", "2|21|200", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "with c as (select a,count(*) n from u group by a) select a,b,(select sum(n) from c where c.a=t.a) from t order by 1,2",
        &["1|10|2", "2|20|1", "2|21|1", "3|NULL|NULL", "NULL|5|NULL"],
    ),
    (
        "select a,b,(with c as (select x from u where u.a=t.a) select count(*) from c) from t order by 1,2",
        &["1|10|2", "2|20|1", "2|21|1", "3|NULL|0", "NULL|5|0"],
    ),
    (
        "select a,b,(select count(*) from generate_series(1,3) g(i) where g.i<=t.a) from t order by 1,2",
        &["1|10|1", "2|20|2", "2|21|2", "3|NULL|3", "NULL|5|0"],
    ),
];

#[test]
fn subqueries_answer_for_each_row() {
    let mut c = filled();
    for (sql, expected) in ANSWERS {
        let mut rows = ask(&mut c, sql);
        if !sql.to_lowercase().rsplit(')').next().is_some_and(|end| end.contains("order by")) {
            rows.sort_unstable();
        }
        assert_eq!(rows, *expected, "{sql}");
    }
    // More than one value is an error, also in subqueries that do not look scalar.
    assert_eq!(fails(&mut c, "select (select u.a from u where u.a >= t.a) from t"), "21000");
    assert_eq!(fails(&mut c, "select (select x from u where u.a = t.a union all select 1) from t"), "21000");
}

/// Goal: no statement changes rows that it must not. Method: aggregates that return a row for no
/// rows, in the conditions of DELETE, UPDATE and INSERT.
#[test]
fn changes_ask_them_too() {
    let mut c = filled();
    run(&mut c, "create table d (a int)");
    run(&mut c, "insert into d values (1), (2)");
    let nothing = "delete from d where not exists (select max(a) from d u where u.a = d.a + 100)";
    assert_eq!(run(&mut c, nothing), 0);
    let nothing = "delete from d where d.a not in (select count(*) + d.a from d u where u.a = d.a + 100)";
    assert_eq!(run(&mut c, nothing), 0);
    assert_eq!(ask(&mut c, "select a from d order by a"), ["1", "2"]);
    let all = "update d set a = a + 10 where exists (select count(*) from d u where u.a = d.a + 100)";
    assert_eq!(run(&mut c, all), 2);
    let counted = "update d set a = (select count(*) from u where u.a = d.a - 10) where exists (select sum(a) from u where u.a > d.a)";
    assert_eq!(run(&mut c, counted), 2);
    assert_eq!(ask(&mut c, "select a from d order by a"), ["1", "2"]);
    let none = "insert into d select a from t where not exists (select count(*) from u where u.a = t.a)";
    assert_eq!(run(&mut c, none), 0);
    let each =
        "insert into d select 100 + (select count(*) from u where u.a = t.a having count(*) < 2) from t";
    assert_eq!(run(&mut c, each), 5);
    assert_eq!(ask(&mut c, "select a from d where a > 50 order by a"), ["100", "100", "101", "101"]);
    let gone = "delete from d where 0 in (select count(*) from u where u.a = d.a + 100 having count(*) = 0)";
    assert_eq!(run(&mut c, gone), 7);
}

/// Goal: shapes that DataFusion turns into correct joins are left to it, so that they are not
/// computed twice.
/// Method: the plans of TPC-H's kinds of subqueries scan the outer table once.
#[test]
fn plain_ones_stay_joins() {
    let mut c = filled();
    let scans = |c: &mut Connection, sql: &str| {
        let plan = ask(c, &format!("explain {sql}")).join("\n");
        let (_, physical) = plan.split_once("physical_plan").unwrap();
        (physical.matches("TableScan: t").count(), physical.to_owned())
    };
    for sql in [
        "select b from t where exists (select 1 from u where u.a = t.a and u.x > t.b)",
        "select b from t where not exists (select 1 from u where u.a = t.a)",
        "select b from t where b < (select 2 * avg(x) from u where u.a = t.a)",
        "select b from t where a in (select u.a from u where x > (select max(y) from v where v.a = u.a))",
        "select b, (select count(*) from u where u.a = t.a) from t",
    ] {
        let (count, plan) = scans(&mut c, sql);
        assert_eq!(count, 1, "{sql}\n{plan}");
    }
    let (count, plan) = scans(&mut c, "select b from t where exists (select max(x) from u where u.a = t.a)");
    assert_eq!(count, 2, "{plan}");
}

/// Goal: NOT IN respects the NULLs of expressions on columns that have none. Method: keys, which
/// are never NULL, and expressions on them on either side.
#[test]
fn expressions_may_be_null_where_columns_are_not() {
    let mut c = database().connect();
    run(&mut c, "create table k (id int primary key)");
    run(&mut c, "create table l (id int primary key)");
    run(&mut c, "insert into k values (1), (2), (3)");
    run(&mut c, "insert into l values (3), (4)");
    for (sql, expected) in [
        ("select id from k where nullif(id, 2) not in (select id from l) order by id", &["1"][..]),
        ("select id from k where id not in (select nullif(id, 4) from l) order by id", &[]),
        ("select id from k where id not in (select id from l) order by id", &["1", "2"]),
        (
            "select id from k where nullif(id, 2) not in (select id from l where false) order by id",
            &["1", "2", "3"],
        ),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
}

/// Goal: conditions of a join beside a LATERAL subquery do not take NULLs for equal.
/// Method: a LATERAL subquery that refers to the outermost query only, in each form of the
/// condition; two NULLs on either side.
#[test]
fn nulls_do_not_match_beside_lateral() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v int)");
    run(&mut c, "insert into t values (1, null), (3, null), (5, 3), (11, 2)");
    run(&mut c, "create table o (id int primary key)");
    run(&mut c, "insert into o values (1), (2)");
    for join in ["on b.v = a.v", "using (v)", "on true where a.v = b.v"] {
        let from = format!("from t a join lateral (select v from t c where o.id <= 1) b {join}");
        let sql = format!("select o.id, (select count(*) {from}) from o order by 1");
        assert_eq!(ask(&mut c, &sql), ["1|2", "2|0"], "{join}");
        let sql = format!("select id from o where 1 not in (select a.v {from}) order by 1");
        assert_eq!(ask(&mut c, &sql), ["1", "2"], "{join}");
    }
}
