//! Goal: aggregates that are computed while leaves are read equal DataFusion's. Method: each query
//! is compared with the same query under an additional condition that always holds, but that no
//! scan can evaluate, which prevents such aggregates.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, run};

/// The number of rows: enough for several threads and several rounds.
const ROWS: i64 = 40_000;

/// Creates columns of all types that can be keys or summed, with few and many distinct values,
/// NULLs, and decimals of up to 38 digits.
fn table(c: &mut Connection) {
    run(
        c,
        "create table t (id int primary key, g smallint not null, b boolean, name text, long text, k int, day date, at timestamp, o time, \
         i int, n bigint, wide bigint, d decimal(15, 2) not null, e decimal(4, 3), huge decimal(38, 2), f double precision)",
    );
    run(
        c,
        &format!(
            "insert into t select x, x % 7, case when x % 3 = 0 then null else x % 2 = 0 end, \
             case when x % 11 = 0 then null when x % 5 = 0 then '' else substr('NARFO', x % 5, 1) end, \
             'a name that is not short ' || x % 90, x * 7919 % 30011, date '1995-01-01' + x % 2500, \
             timestamp '2001-01-01 00:00:00' + x * interval '1 minute', time '00:00:00' + x % 86400 * interval '1 second', \
             case when x % 13 = 0 then null else x - 20000 end, x::bigint * 100003, \
             case when x % 2 = 0 then 9223372036854775807 - x else x end, \
             (x % 9973)::decimal / 100, case when x % 17 = 0 then null else (x % 100)::decimal / 1000 end, \
             case when x = 39999 then 123456789012345678901234567890.12 else (x::decimal / 4)::decimal(38, 2) end, x::double precision / 8 \
             from generate_series(1, {ROWS}) as x(x)"
        ),
    );
    run(c, "analyze");
}

/// Queries in which `#` stands for the condition, and whether their aggregates are computed on
/// leaves.
const QUERIES: [(&str, bool); 35] = [
    (
        "select g, name, sum(d), avg(d), avg(e), sum(d * (1 - e)), sum(d * (1 - e) * (1 + e)), count(*) from t where # group by g, name",
        true,
    ),
    ("select sum(d * e), sum(d - e), sum(e + d * 2), avg(d * d), count(e) from t where #", true),
    (
        "select name, b, min(day), max(day), min(at), max(at), min(o), max(o), count(*) from t where # group by name, b",
        true,
    ),
    (
        "select b, count(i), sum(i), min(i), max(n), sum(n), min(e), max(e), count(*) from t where # group by b",
        true,
    ),
    ("select g, sum(2.5), sum(d * 0.5), avg(e), count(*) from t where # group by g", true),
    ("select long, sum(n), max(i), count(*) from t where # group by long", true),
    ("select g, long, day, sum(d) from t where id < 30000 and # group by g, long, day", true),
    ("select day, g, b, sum(d), count(e) from t where # group by day, g, b", true),
    (
        "select g, avg(d), count(*) from t where day >= date '1996-01-01' and day < date '1997-01-01' and e > 0.05 and d < 60 and # group by g",
        true,
    ),
    (
        "select name, avg(d), sum(i) from t where name in ('A', 'R', 'F', 'Q') and g = 3 and # group by name",
        true,
    ),
    (
        "select g, avg(d), sum(i) from t where (name = 'A' or name = 'R') and (g = 3 or 5 = g or g = 1) and # group by g",
        true,
    ),
    ("select g, avg(d), sum(i) from t where (i = 3 or i = 5) and (i = 3 or k = 5) and # group by g", false),
    ("select g, avg(e), sum(d) from t where d between 10 and 10.5 and # group by g", true),
    // Comparisons of two columns.
    ("select g, avg(d), count(*) from t where i < k and # group by g", true),
    ("select g, avg(e), count(*) from t where k >= i and d > 3 and k = i and # group by g", true),
    ("select g, avg(d), count(*) from t where n > wide and # group by g", true),
    // No rows match.
    ("select avg(d), sum(e), count(*), max(i) from t where g > 100 and #", true),
    ("select g, avg(d), sum(e), count(*), max(i) from t where g > 100 and # group by g", true),
    // Numbers that do not fit into 64 bits, everywhere or only at the end.
    ("select g, sum(wide), max(wide), avg(d) from t where # group by g", true),
    ("select g, sum(huge), avg(huge) from t where # group by g", true),
    ("select g, sum(huge), avg(huge) from t where id < 39000 and # group by g", true),
    ("select sum(d * d * d * d * d), avg(d) from t where #", true),
    // More groups than are kept.
    ("select k, sum(d), avg(e), count(*) from t where # group by k", true),
    ("select k, name, sum(d), avg(e), count(*) from t where # group by k, name", true),
    // Within other queries.
    (
        "select g, s, x.d from (select g, sum(d * e) as s, max(d) as d from t where # group by g) as x where s > 100 order by s",
        true,
    ),
    (
        "select count(*), avg(total) from (select day, sum(d) as total from t where # group by day) as x where total > 10",
        true,
    ),
    (
        "select id, s from t join (select k as kk, sum(e) as s from t where # group by k) as x on kk = t.id where t.g = 4 and t.i < -19000",
        true,
    ),
    // The same subquery more than once.
    (TWICE, true),
    (
        "with r as (select k, sum(d * e) as s from t where # group by k) select a.k, a.s from r as a join r as b on a.k = b.k + 1 where a.s > (select avg(s) from r)",
        true,
    ),
    (
        "with r as (select g, sum(d) as s, avg(e) as m from t where i > k and # group by g) select a.g, b.s, a.m from r as a join r as b on a.g = b.g + 1",
        true,
    ),
    // Queries that are computed in another way.
    ("select g, sum(f), avg(f), avg(i) from t where # group by g", false),
    ("select g + 1, sum(d), avg(d) from t where # group by g + 1", false),
    ("select g, count(distinct name), avg(d) from t where # group by g", false),
    ("select g, avg(d) filter (where e > 0.01) from t where # group by g", false),
    ("select g, avg(d), sum(i * 2) from t where # and g <> 3 group by g", false),
];

const TWICE: &str = "with r as (select g, day, sum(d * e) as s from t where day > date '1996-01-01' and # group by g, day) select g, day, s from r where s = (select max(s) from r)";

/// A condition that is always true, and one that no scan can evaluate.
const ALWAYS: [&str; 2] = ["true", "abs(id) >= 0"];

fn compare(c: &mut Connection, context: &str) {
    for (sql, _) in QUERIES {
        let [mut found, mut expected] = ALWAYS.map(|always| ask(c, &sql.replace('#', always)));
        if !sql.contains("order by") {
            found.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(found, expected, "{context}: {sql}");
    }
}

#[test]
fn aggregates_of_leaves() {
    let database = database();
    let mut c = database.connect();
    table(&mut c);
    for (sql, is_so) in QUERIES {
        let plans =
            ALWAYS.map(|always| ask(&mut c, &format!("explain {}", sql.replace('#', always))).join("\n"));
        assert_eq!(plans.clone().map(|plan| plan.contains("AggregateScan")), [is_so, false], "{}", plans[0]);
    }
    compare(&mut c, "packed");
    // Rows that other transactions do not see, among packed leaves.
    let mut old = database.connect();
    run(&mut old, "begin isolation level repeatable read");
    let before: Vec<_> = QUERIES.map(|(sql, _)| ask(&mut old, &sql.replace('#', "true"))).into();
    run(&mut c, "begin");
    run(&mut c, "update t set d = d + 1, name = 'changed', e = null where id % 5 = 0");
    run(&mut c, "delete from t where id % 9 = 1");
    run(&mut c, "insert into t (id, g, d) select x, 3, 7 from generate_series(50001, 50100) as x(x)");
    compare(&mut c, "in the transaction");
    for (nth, (sql, _)) in QUERIES.iter().enumerate() {
        let (mut found, mut before) = (ask(&mut old, &sql.replace('#', "true")), before[nth].clone());
        found.sort_unstable();
        before.sort_unstable();
        assert_eq!(found, before, "{sql}");
    }
    run(&mut c, "commit");
    run(&mut old, "commit");
}

/// Goal: a repeated subquery is computed once, and similar ones that differ are computed
/// separately; runs of a cached plan see the current rows. Method: plans, and sums after changes.
#[test]
fn made_once() {
    let mut c = database().connect();
    table(&mut c);
    let once = |c: &mut Connection, sql: &str| {
        ask(c, &format!("explain {sql}")).join("\n").matches("computed once and shared").count()
    };
    assert_eq!(once(&mut c, &TWICE.replace('#', "true")), 2);
    let two = |first: &str, second: &str| {
        format!(
            "select a.g, a.s from (select g, sum(d * e) as s from t {first} group by g) as a \
             where a.s >= (select min(b.s) from (select g, sum(d * e) as s from t {second} group by g) as b) order by a.g"
        )
    };
    for (first, second, expected) in [
        ("", "", 2),
        ("where k > 5", "where k > 5", 2),
        ("where id > 5", "where id > 5", 2),
        ("where k > 5", "where k > 6", 0),
        ("where k > 5", "where k >= 5", 0),
        ("where k > 5", "where i > 5", 0),
        ("where id > 5", "where id > 6", 0),
        ("where i > k", "where k > i", 0),
        ("", "where k > 5", 0),
    ] {
        let sql = two(first, second);
        assert_eq!(once(&mut c, &sql), expected, "{sql}");
    }
    let other = two("", "").replacen("sum(d * e)", "sum(d * d)", 1);
    assert_eq!(once(&mut c, &other), 0);
    let sql = two("where i < 100", "where i < 100");
    let mut before = ask(&mut c, &sql);
    for id in [1000, 5000, 17000] {
        run(&mut c, &format!("update t set d = d + 1000, e = 1 where id = {id}"));
        let after = ask(&mut c, &sql);
        assert_ne!(after, before);
        let alone = ask(&mut c, "select g, sum(d * e) as s from t where i < 100 group by g order by g");
        assert_eq!(after, alone);
        before = after;
    }
}

/// Goal: a sum beyond a bigint is an error on every path.
#[test]
fn sums_that_do_not_fit() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int, n int)");
    run(&mut c, "insert into t select x, x % 3, 2147483647 from generate_series(1, 20000) as x(x)");
    let sql = "select g, sum(n), avg(n::decimal(12, 1)) from t group by g order by g";
    let expected: Vec<String> = [6666_i64, 6667, 6667]
        .iter()
        .enumerate()
        .map(|(g, rows)| format!("{g}|{}|2147483647.0", rows * 2_147_483_647))
        .collect();
    let found = ask(&mut c, sql);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.starts_with(expected.as_str()), "{found} {expected}");
    }
    assert_eq!(found.len(), 3);
}

/// Goal: groups whose keys take much memory are left to an operator that can spill, with the same
/// results.
/// Method: keys of 20,000 bytes, fifty megabytes in all, on the direct path and with the operator
/// that replaces an aggregate.
#[test]
fn groups_with_long_keys() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, name text, d decimal(10, 2))");
    run(
        &mut c,
        "insert into t select x, repeat(chr(97 + x % 2500 % 26), 20000) || x % 2500, 0.5 from generate_series(1, 7500) as x(x)",
    );
    for (sums, totals) in [("sum(d)", "1.50"), ("sum(d), avg(d)", "1.50|0.50000000000000000000")] {
        let groups = ask(&mut c, &format!("select count(*), {sums} from t group by name"));
        assert_eq!(groups, vec![format!("3|{totals}"); 2500], "{sums}");
    }
}

/// string_agg sorts its values as requested, for texts and for bytes, also with DISTINCT, and from
/// any partial results.
#[test]
fn joined_texts_are_sorted() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, k int, v int, s text)");
    run(
        &mut c,
        "insert into a values (1,1,10,'a'),(2,2,null,'b'),(3,null,30,null),(4,1,10,'A'),(5,5,-5,''),(6,2,20,'%x_y')",
    );
    for (sql, expected) in [
        ("select string_agg(distinct s, ',' order by s) from a", &[",%x_y,A,a,b"][..]),
        ("select string_agg(distinct s, ',' order by s desc) from a", &["b,a,A,%x_y,"]),
        ("select string_agg(distinct a.s, ',' order by s) from a", &[",%x_y,A,a,b"]),
        ("select string_agg(distinct k::text, ',' order by k::text desc) from a", &["5,2,1"]),
        ("select string_agg(s, k::text order by id desc) from a", &["%x_y51A2b1a"]),
        ("select string_agg(distinct s, id::text order by s desc, id::text) from a", &["b1a4A6%x_y5"]),
        (
            "select k, string_agg(distinct s, ',' order by s) from a group by k order by k",
            &["1|A,a", "2|%x_y,b", "5|", "NULL|NULL"],
        ),
        (
            "select encode(string_agg(s::bytea, id::text::bytea order by id desc), 'escape') from a",
            &["%x_y54A2b1a"],
        ),
        (
            "select k, encode(string_agg(s::bytea, ','::bytea order by v desc nulls last, id), 'escape') \
             from a group by k order by k",
            &["1|a,A", "2|%x_y,b", "5|", "NULL|NULL"],
        ),
        (
            "select string_agg(distinct s, ',' order by s desc) filter (where k > 1), string_agg(s, ',' order by s) from a",
            &["b,%x_y,|,%x_y,A,a,b"],
        ),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
    // From several partitions.
    run(&mut c, "create table many (id int primary key, s text)");
    run(&mut c, "insert into many select g, 's' || (g * 7919 % 30000) from generate_series(1, 30000) g");
    for order in ["", " desc"] {
        let joined = format!(
            "select md5(string_agg(s, ',' order by s{order})), md5(string_agg(distinct s, ',' \
             order by s{order})), md5(encode(string_agg(s::bytea, ',' order by s{order}), 'escape')) from many"
        );
        let sorted = format!("select md5(string_agg(s, ',')) from (select s from many order by s{order}) q");
        let expected = ask(&mut c, &sorted);
        assert_eq!(ask(&mut c, &joined), [vec![expected[0].clone(); 3].join("|")]);
    }
    for sql in [
        "select string_agg(distinct s, ',' order by id) from a",
        "select string_agg(distinct s, ',' order by lower(s)) from a",
        "select array_agg(distinct s order by id) from a",
        "select string_agg(distinct k::text, ',' order by k) from a",
    ] {
        assert_eq!(fails(&mut c, sql), "42P10", "{sql}");
    }
}

/// Goal: in groups, NaN is the greatest floating-point number, and infinite ones are found as well.
/// Method: groups with NaN first, last and alone, with infinities alone and beside numbers, of both
/// types, on both paths.
#[test]
fn extremes_of_floats_in_groups() {
    let mut c = database().connect();
    run(&mut c, "create table t (g int, r real, d double precision)");
    for (group, values) in [
        (1, "'NaN', 1"),
        (2, "1, 'NaN'"),
        (3, "'NaN', 'NaN'"),
        (4, "'-infinity', 'NaN'"),
        (5, "'-infinity', '-infinity'"),
        (6, "'infinity', null"),
        (7, "null, null"),
        (8, "1e10, -1.5"),
    ] {
        for value in values.split(", ") {
            run(&mut c, &format!("insert into t values ({group}, {value}, {value})"));
        }
    }
    let expected = [
        "1|NaN|1|NaN|1",
        "2|NaN|1|NaN|1",
        "3|NaN|NaN|NaN|NaN",
        "4|NaN|-Infinity|NaN|-Infinity",
        "5|-Infinity|-Infinity|-Infinity|-Infinity",
        "6|Infinity|Infinity|Infinity|Infinity",
        "7|NULL|NULL|NULL|NULL",
        "8|1e+10|-1.5|10000000000|-1.5",
    ];
    for setting in ["on", "off"] {
        run(&mut c, &format!("set cairn.direct_path = {setting}"));
        let sql = "select g, max(r), min(r), max(d), min(d) from t group by g order by g";
        assert_eq!(ask(&mut c, sql), expected);
        let joined = "select t.g, max(r), min(r), max(d), min(d) from t join (select distinct g from t) u on u.g = t.g \
                      group by t.g order by 1";
        assert_eq!(ask(&mut c, joined), expected);
        let all = "select max(r), min(r), max(d), min(d) from t";
        assert_eq!(ask(&mut c, all), ["NaN|-Infinity|NaN|-Infinity"]);
    }
}
