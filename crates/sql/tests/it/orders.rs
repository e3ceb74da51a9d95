//! Goal: rows come in the requested order, and the first rows are the first in that order. Method:
//! grouping sets, joins and set operations on ordered tables, where the requested order is almost
//! that of the table.

use cairn_sql::Connection;

use crate::support::{ask, database, run};

fn keyed() -> Connection {
    let mut c = database().connect();
    run(&mut c, "create table g (k int primary key, v int)");
    run(&mut c, "insert into g select i, 7 - i from generate_series(1, 6) s(i)");
    run(&mut c, "create table x (x int)");
    run(&mut c, "insert into x values (0), (1), (2)");
    c
}

/// Goal: grouping sets do not have the order of their table. Method: sets that all contain the key,
/// also with more rows than a batch.
#[test]
fn grouping_sets_have_no_order() {
    let mut c = keyed();
    let sets = "select k from (select v, k from g group by grouping sets ((v, k), (k))) q order by k";
    let twice: Vec<String> = (1..=6).flat_map(|k| [k.to_string(), k.to_string()]).collect();
    assert_eq!(ask(&mut c, sets), twice);
    assert_eq!(ask(&mut c, &format!("{sets} limit 3")), ["1", "1", "2"]);
    let rolled = "select k, v, count(*) from g group by k, rollup (v) order by k, v limit 3";
    assert_eq!(ask(&mut c, rolled), ["1|6|1", "1|NULL|1", "2|5|1"]);
    run(&mut c, "create table many (k int, i int, m int, primary key (k, i))");
    run(&mut c, "insert into many select i / 10000, i, i % 2 from generate_series(0, 29999) s(i)");
    let groups = "select k, m, count(*) from many group by grouping sets ((k, m), (k)) order by 1, 2";
    let mut expected = Vec::new();
    for k in 0..3 {
        expected.extend([format!("{k}|0|5000"), format!("{k}|1|5000"), format!("{k}|NULL|10000")]);
    }
    assert_eq!(ask(&mut c, groups), expected);
}

/// Goal: a limit counts result rows. Method: DISTINCT, groups, filters and offsets between two
/// sorts with limits.
#[test]
fn limits_count_results() {
    let mut c = keyed();
    let distinct = "with s as (select x from x order by x limit 3) select distinct x from (select * from s union all select * from s union all select * from s) t order by x limit 3";
    assert_eq!(ask(&mut c, distinct), ["0", "1", "2"]);
    let groups = "select k / 2, count(*) from g group by k / 2 order by k / 2 limit 3";
    assert_eq!(ask(&mut c, groups), ["0|1", "1|2", "2|2"]);
    let filtered = "select k from (select k from g order by k limit 5) q where k % 2 = 0 order by k limit 2";
    assert_eq!(ask(&mut c, filtered), ["2", "4"]);
    let skipped = "select k from (select k from g order by k limit 4 offset 2) q order by k limit 3";
    assert_eq!(ask(&mut c, skipped), ["3", "4", "5"]);
    let joined = "select g.k, x.x from (select k from g order by k limit 4) g join x on x.x < g.k order by g.k, x.x limit 4";
    assert_eq!(ask(&mut c, joined), ["1|0", "2|0", "2|1", "3|0"]);
    let windows = "select k, r from (select k, row_number() over (order by v) r from g) q order by r limit 2";
    assert_eq!(ask(&mut c, windows), ["6|1", "5|2"]);
}

/// Goal: OFFSET skips rows in the order of its own query, whatever the outer order is. Method:
/// opposite orders over a table, set operations, joins and groups, with and without the sort column
/// in the result.
#[test]
fn offsets_skip_in_their_own_order() {
    let mut c = keyed();
    run(&mut c, "create table r (a int primary key, b int not null)");
    run(&mut c, "insert into r select i, 10 - i from generate_series(1, 9) s(i)");
    for inner in [
        "select b from r order by a offset 6",
        "select b from r order by a, b offset 6",
        "select b from r order by b desc offset 6",
        "select b from r order by a limit 3 offset 6",
        "select b from (select b, a from r order by a) r order by a offset 6",
        "select b from r join (values (0), (20)) v (x) on r.a > v.x order by a offset 6",
        "select b from r where a < 4 union all select b from r where a >= 4 order by b desc offset 6",
        "select b from r group by b order by b desc offset 6",
        "select distinct b from r order by b desc offset 6",
        "select b from r intersect select b from r order by b desc offset 6",
    ] {
        for (outer, expected) in [
            ("select * from ({}) q order by b", &["1", "2", "3"][..]),
            ("select * from ({}) q order by b desc", &["3", "2", "1"]),
            ("select * from ({}) q order by b limit 1", &["1"]),
            ("select * from ({}) q order by b offset 1", &["2", "3"]),
            ("select b + 0 from ({}) q order by b % 2, b", &["2", "1", "3"]),
            ("select distinct b from ({}) q order by b", &["1", "2", "3"]),
            ("select b, row_number() over (order by b) from ({}) q order by b", &["1|1", "2|2", "3|3"]),
            ("select sum(b) from ({}) q", &["6"]),
            ("select r.a from r join ({}) q using (b) order by r.a", &["7", "8", "9"]),
        ] {
            let sql = outer.replace("{}", inner);
            assert_eq!(ask(&mut c, &sql), expected, "{sql}");
        }
    }
}

/// Goal: the order of a join's side does not extend to the rows of the other side. Method: keys of
/// two columns, one of which is joined.
#[test]
fn joins_have_the_order_of_one_side() {
    let mut c = keyed();
    run(&mut c, "create table u (a int, b int, primary key (a, b))");
    run(&mut c, "create table w (a int, n int, b int, primary key (a, n))");
    run(&mut c, "insert into u select i / 4, i % 4 from generate_series(0, 15) s(i)");
    run(&mut c, "insert into w select i % 4, i, (i * 7) % 4 from generate_series(1, 300) s(i)");
    let sorted = |c: &mut Connection, sql: &str| {
        let rows: Vec<Vec<i64>> =
            ask(c, sql).iter().map(|row| row.split('|').map(|n| n.parse().unwrap()).collect()).collect();
        assert!(rows.len() > 100, "{sql}");
        assert!(rows.is_sorted(), "{sql}: {rows:?}");
    };
    sorted(
        &mut c,
        "select u.a, u.b from u join w on u.a = w.a and u.b = w.b where (w.a, w.n) > (1, 0) order by u.a, u.b",
    );
    sorted(&mut c, "select w.a, u.b from w join u on u.a = w.a order by w.a, u.b");
    sorted(&mut c, "select w.a, u.b, w.n from u, w where u.a = w.a order by 1, 2, 3");
    let groups = "select u.a, u.b, count(*) from u join w on u.a = w.a group by u.a, u.b order by 1, 2";
    let expected: Vec<String> = (0..16).map(|i| format!("{}|{}|75", i / 4, i % 4)).collect();
    assert_eq!(ask(&mut c, groups), expected);
}

/// Goal: a query without ORDER BY returns rows in the order of its subquery, as PostgreSQL does.
/// Method: limits, aggregates, row numbers and WITH queries over subqueries with ORDER BY.
#[test]
fn subqueries_keep_their_order() {
    let mut c = keyed();
    let first = "select * from (select k, v from g order by v, k) q limit 3";
    assert_eq!(ask(&mut c, first), ["6|1", "5|2", "4|3"]);
    assert_eq!(ask(&mut c, "select array_agg(k) from (select k from g order by v) q"), ["{6,5,4,3,2,1}"]);
    let texts = "select string_agg(k::text, ',') from (select k from g order by v limit 3) q where k > 4";
    assert_eq!(ask(&mut c, texts), ["6,5"]);
    let numbers = "select k, row_number() over () from (select k from g where k < 4 order by v) q order by k";
    assert_eq!(ask(&mut c, numbers), ["1|3", "2|2", "3|1"]);
    let grouped = "select k % 2, array_agg(k) from (select k from g order by v) q group by 1 order by 1";
    assert_eq!(ask(&mut c, grouped), ["0|{6,4,2}", "1|{5,3,1}"]);
    let with =
        "with q as (select k from g order by v) select (select k from q limit 1), (select min(k) from q)";
    assert_eq!(ask(&mut c, with), ["6|1"]);
}

/// Goal: rows with 0 and -0 are ordered by the next sort key. Method: orders of two keys, in every
/// place that has an order, in general queries and on the direct path; also NaN next to NaN.
#[test]
fn zeros_are_equal_in_orders() {
    let mut c = database().connect();
    run(&mut c, "create table z (id int primary key, d float8, r real, g int)");
    run(
        &mut c,
        "insert into z values (1, 0, 0, 2), (2, '-0', '-0', 3), (3, '-0', '-0', 1), (4, 'NaN', 'NaN', 5)",
    );
    run(&mut c, "insert into z values (5, 'NaN', 'NaN', 4), (6, -1, -1, 6)");
    let expected = ["6", "3", "1", "2", "5", "4"];
    for from in ["z", "z cross join (values (1)) v (n)"] {
        for key in ["d", "r", "d + 0", "d * 1"] {
            for sql in [
                format!("select id from {from} order by {key}, g"),
                format!("select id from {from} order by {key}, g limit 6"),
                format!("select id from (select * from {from} order by {key}, g) q"),
                format!("select unnest(array_agg(id order by {key}, g)) from {from}"),
                format!(
                    "select id from (select id, row_number() over (order by {key}, g) n from {from}) q order by n"
                ),
            ] {
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
            let firsts = format!("select distinct on ({key}) id from {from} order by {key}, g");
            assert_eq!(ask(&mut c, &firsts), ["6", "3", "5"], "{firsts}");
            let text = format!("select string_agg(id::text, '' order by {key}, g) from {from}");
            assert_eq!(ask(&mut c, &text), ["631254"], "{text}");
        }
    }
    run(&mut c, "create index on z (d, g)");
    assert_eq!(ask(&mut c, "select id from z order by d, g"), expected);
    assert_eq!(ask(&mut c, "select id from z where d = 0 order by d, g"), ["3", "1", "2"]);
    assert_eq!(ask(&mut c, "select id from z where d >= 0 and d < 'NaN' order by d, g limit 2"), ["3", "1"]);
}

/// Goal: a constant column on one side of an outer join is not constant in unmatched rows. Method:
/// orders by constants of either side, of joins by keys and by other conditions, also in windows
/// and with limits.
#[test]
fn outer_joins_have_no_constants() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    run(&mut c, "create table b (id int primary key)");
    run(&mut c, "insert into a values (1), (2)");
    run(&mut c, "insert into b values (2), (3)");
    let one = "(select 1 as c, id from a) x";
    for (join, expected) in [
        (format!("{one} full join b on x.id = b.id"), &["1|1|NULL", "1|2|2", "NULL|NULL|3"][..]),
        (format!("{one} full join b on false"), &["1|1|NULL", "1|2|NULL", "NULL|NULL|2", "NULL|NULL|3"]),
        (format!("{one} full join b on x.id > b.id - 1"), &["1|1|NULL", "1|2|2", "NULL|NULL|3"]),
        (format!("{one} right join b on x.id = b.id"), &["1|2|2", "NULL|NULL|3"]),
        (format!("{one} right join b on x.id > b.id - 1"), &["1|2|2", "NULL|NULL|3"]),
        (format!("b left join {one} on x.id = b.id"), &["1|2|2", "NULL|NULL|3"]),
        (
            "b left join lateral (select 1 as c, id from a) x on x.id > b.id - 1".to_owned(),
            &["1|2|2", "NULL|NULL|3"],
        ),
        (
            "b left join (select 1 as c, id from a where id < 9 limit 5) x on x.id = b.id".to_owned(),
            &["1|2|2", "NULL|NULL|3"],
        ),
    ] {
        let columns = "x.c, x.id as i, b.id as j";
        for sql in [
            format!("select {columns} from {join} order by x.c nulls last, i, j"),
            format!("select {columns} from {join} order by x.c desc nulls last, i, j limit 9"),
            format!("select c, i, j from (select {columns}, row_number() over (order by x.c nulls last, x.id, b.id) n from {join}) q order by n"),
            format!("select null::int + 1 is null and c is null, i, j from (select {columns} from {join}) q order by c nulls last, i, j")
                .replace("null::int + 1 is null and c is null", "c"),
        ] {
            assert_eq!(ask(&mut c, &sql), expected, "{sql}");
        }
        let mut back: Vec<&str> = expected.to_vec();
        back.sort_by_key(|row| !row.starts_with("NULL"));
        let first = format!("select {columns} from {join} order by x.c nulls first, i, j");
        assert_eq!(ask(&mut c, &first), back, "{first}");
    }
    // The side has nothing but constant columns.
    for one in
        ["(select 1::float8 as c from a) x", "(select 'k' as c from a) x", "(select 1 as c from a limit 2) x"]
    {
        for join in [
            format!("{one} full join b on false"),
            format!("{one} full join b on b.id = 9"),
            format!("b full join {one} on b.id > 9"),
        ] {
            for (order, expected) in [
                ("c desc nulls last, 2", ["NULL", "NULL", "2", "3"]),
                ("c nulls first, 2", ["2", "3", "NULL", "NULL"]),
                ("n, c nulls first, 2", ["2", "3", "NULL", "NULL"]),
                ("c nulls last, n, 2 desc", ["NULL", "NULL", "3", "2"]),
            ] {
                let sql = format!(
                    "select b.id from (select c, b.id, null::timestamp n from {join}) b order by {order}"
                );
                let sql = sql.replace(", 2", ", b.id");
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
        }
    }
}

/// Goal: OFFSET skips the first rows of its own order even if each part of the rows has a single
/// value.
/// Method: a union of constants, below an opposite order.
#[test]
fn offsets_skip_among_constants() {
    let mut c = database().connect();
    run(&mut c, "create table s (a int primary key, b int)");
    run(&mut c, "insert into s values (1, 1), (2, 1), (3, 1)");
    for (union, expected) in [
        ("(select 1 a, 7 d from s where a = 1) union (select 0, 7 from s)", &["0"][..]),
        ("(select a, 7 d from s where a = 1) union (select 0, 7 from s)", &["0"]),
        ("(select a, 7 d from s where a = 1) union all (select 0, 7 from s)", &["0", "0", "0"]),
        (
            "(select a, b d from s where a = 3 and b = 1) union all (select a, b from s where a = 1 and b = 1)",
            &["1"],
        ),
    ] {
        for sql in [
            format!("select a from ({union} order by 1 desc, 2 desc offset 1) q order by 1, d"),
            format!(
                "select a from (select * from ({union}) u order by a desc, d desc offset 1) q order by a, d limit 9"
            ),
            format!("select a from (select * from ({union}) u order by a desc offset 1) q order by d, a"),
        ] {
            assert_eq!(ask(&mut c, &sql), expected, "{sql}");
        }
    }
}

/// Goal: OFFSET skips the first rows of its order even if the outer query does not use the sort
/// column.
/// Method: subqueries that do not select their sort column, counted, joined and sorted in another
/// order.
#[test]
fn offsets_skip_by_columns_that_are_not_shown() {
    let mut c = database().connect();
    run(&mut c, "create table s (id int primary key, a int, b int)");
    run(&mut c, "insert into s select i, 100 - i, i % 3 from generate_series(1, 50) as g (i)");
    for from in ["s", "s cross join (values (1)) v (n)", "s left join (select 1 as one) w on true"] {
        for inner in [
            format!("select id, 1 as c, a from {from} order by a, id offset 47"),
            format!("select id, 1::float8 as c, a from {from} order by 3, 2, 1 offset 47"),
            format!("select id, 1 as c, a, b from {from} order by c, a, b offset 47"),
        ] {
            for (sql, expected) in [
                (format!("select id from ({inner}) q order by id"), &["1", "2", "3"][..]),
                (
                    format!("select id from ({inner}) q join s t using (id) order by id desc"),
                    &["3", "2", "1"],
                ),
                (format!("select count(*), sum(id) from ({inner}) q"), &["3|6"]),
                (
                    format!(
                        "select q.c, t.id from ({inner}) q full join s t on q.id = t.id where t.id < 3 order by 2"
                    ),
                    &["1|1", "1|2"],
                ),
                (
                    format!(
                        "select count(*) from ({inner}) q right join s t on q.id = t.id where q.c is null"
                    ),
                    &["47"],
                ),
            ] {
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
        }
    }
}
