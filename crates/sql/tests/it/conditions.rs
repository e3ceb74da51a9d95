//! Goal: conditions of general queries hold, and are pushed down to scans as far as possible.
//! Method: the output of EXPLAIN, and the rows.

use cairn_sql::Datum;

use crate::support::{ask, database, fails, rows, run};

/// Goal: a scan takes over as many conditions as it can: those that the tree covers entirely;
/// conditions on one column, or on two of one type, in part; and no others. Method: the output of
/// EXPLAIN for one of each.
#[test]
fn conditions_that_scans_take() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, i int, f double precision)");
    run(&mut c, "insert into t select g, g % 10, g from generate_series(1, 1000) as g(g)");
    let sql = "select i + row_number() over () from t where i > 7 and id < 500 and f > 3";
    let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
    for part in [
        "full_filters=[t.id < Int32(500)]",
        "partial_filters=[t.i > Int32(7)]",
        "Filter: t.i > Int32(7) AND t.f > Float64(3)",
        "range of 1 columns, 1 conditions on columns",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert_eq!(ask(&mut c, sql).len(), 100);
}

/// Goal: a narrow index is scanned in full for its own columns, and the table for others, including
/// those of the primary key. Method: the output of EXPLAIN, and the rows.
#[test]
fn trees_that_are_scanned_whole() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, k int, a int, b int, d int)");
    run(&mut c, "create index t_k on t (k)");
    run(&mut c, "insert into t select g, g % 7, g, g, g from generate_series(1, 1000) as g(g)");
    for (columns, tree) in [("k + 1", "t using t_k only"), ("k + id", "t,"), ("k + a", "t,")] {
        let sql = format!("select sum({columns}) over () from t");
        let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
        assert!(plan.contains(&format!("TableScan: {tree}")), "{columns}: {plan}");
        assert_eq!(ask(&mut c, &sql).len(), 1000);
    }
}

/// Goal: scans compare dates with timestamps as dates. Method: the output of EXPLAIN for
/// comparisons in both directions, with midnight and with noon, and the rows, compared with
/// explicit casts.
#[test]
fn days_and_points_in_time() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, d date)");
    run(&mut c, "insert into t select g, date '2024-01-01' + g from generate_series(0, 99) as g(g)");
    run(&mut c, "insert into t values (1000, null), (1001, '4000-01-01'), (1002, '0010-01-01')");
    for moment in ["date '2024-01-01' + interval '1 month'", "date '2024-02-01' + interval '12 hours'"] {
        for condition in ["# < @", "# >= @", "@ >= #", "@ < #", "# between date '2024-01-10' and @"] {
            let condition = condition.replace('@', moment);
            let of = |date: &str| condition.replace('#', date);
            let sql = format!("select id + row_number() over () * 0 from t where {} order by 1", of("d"));
            let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
            assert!(plan.contains("conditions on columns"), "{condition}: {plan}");
            assert!(!plan.contains("Timestamp"), "{condition}: {plan}");
            let by_hand = of("(d || ' 00:00')::timestamp");
            let expected = ask(&mut c, &format!("select id from t where {by_hand} order by id"));
            assert!(!expected.is_empty() && ask(&mut c, &sql) == expected, "{condition}");
        }
    }
}

/// Goal: rows whose key is one of several are looked up in the tree, without duplicates. Method:
/// repeated values, parameters with equal values, NULL, compared with equivalent computed
/// conditions.
#[test]
fn keys_that_are_one_of_some() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, g int)");
    run(&mut c, "create table b (id int primary key, r int)");
    run(&mut c, "insert into a select x, x % 5 from generate_series(1, 500) as x(x)");
    run(&mut c, "insert into b select x, x % 500 + 1 from generate_series(1, 2000) as x(x)");
    let sql = "select a.id, count(*) from a join b on b.r = a.id where # group by a.id having count(*) > 0 order by a.id";
    for (condition, rows) in [
        ("(a.id = 5 or a.id = 7 or a.id = 5)", vec!["5|4", "7|4"]),
        ("(a.id = 7 or 3 = a.id or a.id = null)", vec!["3|4", "7|4"]),
        ("(a.id = 7 or a.g = 7)", vec!["7|4"]),
        ("(a.id = 7 or a.id > 499)", vec!["7|4", "500|4"]),
    ] {
        assert_eq!(ask(&mut c, &sql.replace('#', condition)), rows, "{condition}");
    }
    let sql = sql.replace('#', "(a.id = $1 or a.id = $2)");
    for (one, other, expected) in [
        (Datum::Int(9), Datum::Int(9), vec!["9|4"]),
        (Datum::Null, Datum::Int(9), vec!["9|4"]),
        (Datum::Null, Datum::Null, vec![]),
    ] {
        assert_eq!(rows(&mut c, &sql, &[one, other]).unwrap(), expected);
    }
}

/// Goal: conditions that are rewritten during planning still hold. Method: lists with NULL on keys,
/// indexed columns and others, in plans of more than a scan.
#[test]
fn lists_with_null_are_conditions() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, x int, y int, z text)");
    run(&mut c, "create index on a (x)");
    run(&mut c, "insert into a select i, i % 10, i % 7, 't' || i from generate_series(1, 100) as s(i)");
    let number = "row_number() over (order by id)";
    assert_eq!(ask(&mut c, &format!("select id, {number} from a where id in (7, null)")), ["7|1"]);
    assert_eq!(
        ask(&mut c, &format!("select {number}, z from a where x in (3, null) and id < 20")),
        ["1|t3", "2|t13"]
    );
    assert_eq!(ask(&mut c, "select count(*), max(y) from a where x in (null, 4)"), ["10|6"]);
    assert_eq!(ask(&mut c, "select distinct a.x from a join a b on b.id = a.id and a.x in (5, null)"), ["5"]);
    assert_eq!(
        ask(&mut c, "select max(distinct a.y) from a join a b on a.y in (null, 2) and b.id = 1"),
        ["2"]
    );
    assert_eq!(
        ask(&mut c, &format!("select {number} from a where id in (null, null)")),
        Vec::<String>::new()
    );
    assert_eq!(
        ask(&mut c, "select count(*) from a b left join a on a.x in (a.x) and a.id = b.id limit 1"),
        ["100"]
    );
}

/// Conditions stay where they filter rows, even if constants replace their columns. They also
/// filter the row that an aggregate returns for no rows.
#[test]
fn conditions_above_totals_leave_them_out() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, d boolean)");
    run(&mut c, "insert into t values (1, true), (2, false)");
    for sql in [
        "select * from (select count(*) c, 1 d from t) q where d = 2",
        "select * from (select count(*) c, null::date d from t) q where d = '2024-01-01'",
        "select * from (select count(*) c, 1 d from t) q left join t on true where q.d = 2",
        "select q.c, t.id from (select max(id) c, 3 d from t) q join t on q.d = 4",
        "select t.id from (select null::date d, max(id) c from t) q right join t on true where q.d = '2024-01-01'",
        "select * from (select d, count(*) c, 1 e from t group by rollup (d)) q where e = 2",
        "select * from (select d, count(*) c, 1 e from t group by grouping sets ((d), ())) q where e = 2 and c > 1",
        "select * from (select distinct 1 d from t) q where d = 2",
        "select * from (select 1 d, row_number() over () from t) q where d = 2",
        "select * from (select 1 d, id from t limit 1) q where d = 2",
        "select * from (select 1 d union all select 3) q where d = 2",
        "select * from (select 5 d from t having null::boolean) q where ('a' in (select 'b' from t)) is null",
        "select * from (select 5 d from t having false) q where 5 = d",
        "select * from (select 5 d, count(*) c from t having 1 = 2) q where random() >= 0 and c > 0",
    ] {
        assert_eq!(ask(&mut c, sql), [""; 0], "{sql}");
    }
    // Each reader of a shared result applies its own conditions.
    let twice = "with w as materialized (select id from t) select count(*), count(b.id) from w a left join w b on false";
    assert_eq!(ask(&mut c, twice), ["2|0"]);
    let numbers = "with recursive w (n) as (select 1 union all select n + 1 from w where n < 4)";
    assert_eq!(ask(&mut c, &format!("{numbers} select count(*) from w a left join w b on false")), ["4"]);
    let one = format!("{numbers} select a.n from w a, w b where 1 = 1 and b.n = 2 and a.n > 3");
    assert_eq!(ask(&mut c, &one), ["4"]);
}

/// In joins whose keys match if both are NULL, other conditions are unaffected.
#[test]
fn keys_that_may_be_null_do_not_make_others_so() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, d boolean)");
    run(&mut c, "insert into a values (1, true), (2, false)");
    run(&mut c, "create table b (id int primary key, c int, d boolean)");
    run(&mut c, "insert into b values (1, 2, true), (2, 3, false), (3, null, null), (7, 1, true)");
    for (sql, expected) in [
        (
            "select a.id, b.id from a right join b on a.id = b.id \
             where a.d = (select every(true) from a q where q.id < b.c) order by 1, 2",
            &["1|1"][..],
        ),
        (
            "select a.id, b.id from a right join b on a.id = b.id \
             where a.id = (select max(q.id) from a q where q.id < b.c) order by 1, 2",
            &["1|1", "2|2"],
        ),
        ("select count(*) from b x join b y on x.d is not distinct from y.d where x.c = y.c", &["3"]),
        (
            "select count(*) from b x, b y, b z where x.d is not distinct from y.d and x.c = y.c and y.c = z.c",
            &["3"],
        ),
        ("select count(*) from b x, b y, b z where x.d is not distinct from y.d and y.c = z.c", &["5"]),
        (
            "select count(*) from (select x.c from b x join b y on x.d is not distinct from y.d) q, b z \
             where q.c = z.c",
            &["5"],
        ),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
}

/// Other findings of the campaign of 29 November: a limit within a limit, columns of the same name
/// in a subquery's tables, list items that are not constants, NOT before EXISTS, and scalar
/// subqueries without a row.
#[test]
fn shapes_of_other_queries() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, f date, e boolean)");
    run(
        &mut c,
        "insert into a values (1,'1969-07-20',true),(2,'1999-12-31',null),(3,'1999-12-31',false),(4,null,true)",
    );
    run(&mut c, "create table b (id int primary key, b int)");
    run(&mut c, "insert into b values (1,1),(5,2)");
    for (sql, expected) in [
        ("select * from (select f from a order by 1 limit 1) q order by 1 limit 4", &["1969-07-20"][..]),
        (
            "select * from (select f, id from a order by 1, 2 limit 2) q order by 1 limit 4",
            &["1969-07-20|1", "1999-12-31|2"],
        ),
        ("select * from (select f from a order by 1 limit 4) q order by 1 limit 1", &["1969-07-20"]),
        (
            "select a.id from a where exists (select q.id, p.id from b p join a q on p.b = q.id where p.id = a.id) order by 1",
            &["1"],
        ),
        (
            "select a.id from a where a.id in (select q.id from b p right join a q on p.id = q.id where p.id = a.id) order by 1",
            &["1"],
        ),
        ("select a.id from a where a.id in (select q.id from b p, a q where p.id = a.id) order by 1", &["1"]),
        (
            "select distinct q.f from b, a q where 1 not in (7, case when q.e then -1 when q.e then 1 end) order by 1",
            &["1969-07-20", "NULL"],
        ),
        ("select q.id from b, a q where 2 in (7, case when q.e then q.id + 1 end) order by 1", &["1", "1"]),
        ("select 1 where not exists (select 1 from a) is unknown", &["1"]),
        ("select 1 where not exists (select 1 from a where id > 7) = false", &[]),
        ("select 1 where not exists (select 1 from a where id > 7) and true", &["1"]),
        ("select 1 where (not exists (select 1 from a)) is false", &["1"]),
        ("select not exists (select 1 from a) in (true), not exists (select 1 from a)::text = 'x'", &["f|t"]),
        (
            "select count(*) from a cross join b where (select false from a q where false limit 1) is null",
            &["8"],
        ),
        (
            "select count(*) from a cross join b where case when (select false from a q where false order by q.id limit 1) \
             then null::boolean else true end",
            &["8"],
        ),
        ("select count(*) from a, b where coalesce((select true from a where false), false)", &["0"]),
        ("select count(*) from a, b where a.id = (select 1 from b where b.id = 5) and b.id > 1", &["1"]),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
    let refused = "select id, row_number() over () from a where random() in (2, case when e then 1 end)";
    assert_eq!(fails(&mut c, refused), "0A000");
    assert_eq!(
        ask(&mut c, "select count(*) from a full join b using (id) where random() in (2, 1 + 2)"),
        ["0"]
    );
    let floor = "select floor($1::numeric), ceil($1::numeric) from a left join b using (id) where a.id < 0";
    assert_eq!(rows(&mut c, floor, &[Datum::Decimal { unscaled: 15, scale: 1 }]).unwrap(), [""; 0]);
}

/// Goal: NaN is above all numbers and equal to itself, however it was computed. Processors return a
/// NaN with a sign, whose bits compare differently. Method: comparisons, orders, groups and
/// extremes of NaNs from arithmetic, of both types, in general queries and on the direct path.
#[test]
fn one_nan() {
    let mut c = database().connect();
    run(&mut c, "create table n (id int primary key, a float8, b real)");
    run(&mut c, "insert into n values (1, 'Infinity', 'Infinity'), (2, '-Infinity', '-Infinity'), (3, 1, 1)");
    run(&mut c, "insert into n values (4, 'NaN', 'NaN')");
    for x in ["a", "b"] {
        for nan in ["{} - {}", "-({} - {})", "{} / nullif({}, 0)", "-({} / {})", "({} * 0 + {}) * 0"] {
            let nan = nan.replace("{}", x);
            for from in ["n", "n cross join (values (1)) v (i)"] {
                for (sql, expected) in [
                    (
                        format!("select id from {from} where {nan} > 'Infinity' order by id"),
                        &["1", "2", "4"][..],
                    ),
                    (format!("select id from {from} where {nan} = 'NaN' order by id"), &["1", "2", "4"]),
                    (
                        format!("select id from {from} where not {x} > {nan} and id <> 3 order by id"),
                        &["1", "2", "4"],
                    ),
                    (format!("select id from {from} order by {nan}, id"), &["3", "1", "2", "4"]),
                    (format!("select id from {from} order by {nan} desc, id"), &["1", "2", "4", "3"]),
                    (format!("select count(*) from {from} group by {nan} order by 1"), &["1", "3"]),
                    (format!("select count(distinct {nan}) from {from}"), &["2"]),
                    (format!("select max({nan}) from {from}"), &["NaN"]),
                    (format!("select greatest({nan}, 1) from {from} where id = 1"), &["NaN"]),
                ] {
                    assert_eq!(ask(&mut c, &sql), expected, "{sql}");
                }
            }
        }
    }
}

/// Goal: sums of infinities of both signs are that same NaN. Method: sums, averages and regressions
/// of rows, groups, windows and DISTINCT values, in conditions and orders, in general queries and
/// on the direct path.
#[test]
fn sums_of_infinities() {
    let mut c = database().connect();
    run(&mut c, "create table n (id int primary key, g int, a float8, b real)");
    run(&mut c, "insert into n values (1, 1, 'Infinity', 'Infinity'), (2, 1, '-Infinity', '-Infinity')");
    run(&mut c, "insert into n values (3, 2, 1, 1), (4, 3, 'Infinity', 'Infinity')");
    for x in ["a", "b"] {
        for from in ["n", "n cross join (values (1)) v (i)"] {
            for of in ["sum({})", "avg({})", "sum(distinct {})", "avg(distinct {})", "regr_avgx(id, {})"] {
                let of = of.replace("{}", x);
                for (sql, expected) in [
                    (format!("select g from {from} group by g order by {of}, g"), &["2", "3", "1"][..]),
                    (format!("select g from {from} group by g having {of} > 'Infinity'"), &["1"]),
                    (format!("select g from {from} group by g having {of} = 'NaN'"), &["1"]),
                    (format!("select s > 'Infinity' from (select {of} s from {from} where g < 3) q"), &["t"]),
                ] {
                    assert_eq!(ask(&mut c, &sql), expected, "{sql}");
                }
            }
            for of in ["sum", "avg"] {
                let sql = format!(
                    "select id from (select id, {of}({x}) over (order by id rows 1 preceding) s from {from}) q
                     order by s, id"
                );
                assert_eq!(ask(&mut c, &sql), ["3", "1", "4", "2"], "{sql}");
            }
        }
    }
}

/// Goal: EXISTS is never unknown, even if its condition is. Method: EXISTS with conditions on the
/// outer row alone, NULL among them, in results, conditions, changes and next to joins.
#[test]
fn whether_there_are_rows_is_known() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, b boolean, s text)");
    run(&mut c, "insert into a values (1, null, null), (2, true, 'A'), (3, false, 'x')");
    run(&mut c, "create table i (id int primary key)");
    run(&mut c, "insert into i values (1), (2)");
    for from in ["a", "a cross join (values (1)) v (n)", "a left join i on false"] {
        for condition in ["a.b", "starts_with(a.s, 'A')", "a.b and a.s = 'A'", "a.b and i.id = 1"] {
            let exists = format!("exists (select 1 from i where {condition})");
            for (sql, expected) in [
                (format!("select {exists} from {from} order by a.id"), ["f", "t", "f"]),
                (format!("select not {exists} from {from} order by a.id"), ["t", "f", "t"]),
                (format!("select ({exists}) is null from {from} order by a.id"), ["f", "f", "f"]),
                (
                    format!("select case when {exists} then 1 else 2 end from {from} order by a.id"),
                    ["2", "1", "2"],
                ),
            ] {
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
            let without = format!("select a.id from {from} where not {exists} order by a.id");
            assert_eq!(ask(&mut c, &without), ["1", "3"], "{without}");
        }
    }
    run(&mut c, "update a set b = exists (select 1 from i where a.b)");
    assert_eq!(ask(&mut c, "select b from a order by id"), ["f", "t", "f"]);
}

/// Goal: EXISTS inside a larger condition is evaluated even if nothing else of the rows is needed.
/// Method: such conditions in CASE, next to NULL and in OR, above joins, and with only constants in
/// the result.
#[test]
fn exists_within_conditions() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, x float8)");
    run(&mut c, "insert into a values (1, 2), (2, null), (3, 0.5)");
    run(&mut c, "create table e (id int primary key)");
    for (rows, found) in [("a", true), ("e", false)] {
        for of in [
            format!("select * from {rows} q"),
            format!("select 1 from a p right join {rows} q on true"),
            format!("select * from a p right join {rows} q on true"),
            format!("select * from {rows} p full join {rows} q on p.id = q.id"),
        ] {
            for (condition, holds) in [
                (format!("case 1 when 1 then exists ({of}) end"), found),
                (format!("case 1 when 1 then not exists ({of}) end"), !found),
                (format!("exists ({of}) is not null and exists ({of})"), found),
                (format!("not (exists ({of}) and true)"), !found),
                (format!("exists ({of}) or null"), found),
                (format!("(exists ({of})) = (1 = 1)"), found),
            ] {
                for shown in ["'ab'", "id", "id + 0"] {
                    let sql = format!("select count(*) from (select {shown} from a where {condition}) z");
                    assert_eq!(ask(&mut c, &sql), [if holds { "3" } else { "0" }], "{sql}");
                    let rows = ask(&mut c, &format!("select {shown} from a where {condition}"));
                    assert_eq!(rows.len(), if holds { 3 } else { 0 }, "{shown}: {condition}");
                }
            }
        }
    }
    // The columns of an outer join's missing rows are NULL, whatever type an expression gives them.
    for condition in ["1::bigint < 1::float8 * l.x", "1 > l.x - 1", "(l.x * 2) / 2 is null", "-l.x > 0"] {
        let sql = format!(
            "select count(*) from a q left join a l on l.x = q.x cross join a r where {condition} or not ({condition}) or ({condition}) is null"
        );
        assert_eq!(ask(&mut c, &sql), ["9"], "{sql}");
        let sql =
            format!("select count(*) from a l right join a q on l.x = q.x cross join a r where {condition}");
        ask(&mut c, &sql);
    }
}

/// Goal: numerics of any scale are compared, and conditions on rows that an outer join may lack are
/// evaluated correctly for any expression. Method: comparisons of rows of numbers, and arithmetic
/// in functions above outer joins.
#[test]
fn numbers_of_any_digits_are_compared() {
    let mut c = database().connect();
    run(&mut c, "create table n (id int primary key, a bigint, d int)");
    run(&mut c, "insert into n values (1, 3, 1), (2, -3, 2), (3, null, null)");
    // The product of a column that is never NULL with 0 is 0.
    for condition in
        ["2 < 0.000 * id", "(2, id) < ((cast('0'::real as numeric(12,3)) * id), id)", "id * 0.0 <> 0"]
    {
        for from in ["n", "n cross join (values (1)) v (i)"] {
            let sql = format!("select count(*) from {from} where {condition}");
            assert_eq!(ask(&mut c, &sql), ["0"], "{sql}");
            let sql = format!("select count(*) from {from} where not ({condition})");
            assert_eq!(ask(&mut c, &sql), ["3"], "{sql}");
        }
    }
    for (condition, expected) in [
        ("(2, a) < ((cast('0'::real as numeric(12,3)) * a), a)", "0"),
        ("(2, a) < ((1::numeric(12,3) * a), a)", "1"),
        ("2::numeric(5,3) < a::numeric(38,3)", "1"),
        ("a * 1::numeric(4,2) >= 3::numeric(12,2)", "1"),
        ("case when a * 1.0 > 2 then a * 1.00 else 2 end = 3", "1"),
    ] {
        for from in ["n", "n cross join (values (1)) v (i)"] {
            let sql = format!("select count(*) from {from} where {condition}");
            assert_eq!(ask(&mut c, &sql), [expected], "{sql}");
            let parts = format!(
                "select count(*) from (select id from {from} where {condition} union all select id from {from} \
                 where not ({condition}) union all select id from {from} where ({condition}) is null) q"
            );
            assert_eq!(ask(&mut c, &parts), ["3"], "{parts}");
            let value = format!("select count({condition}) from {from} where a is not null");
            assert_eq!(ask(&mut c, &value), ["2"], "{value}");
        }
    }
    for condition in [
        "(abs(p.id) + 1::integer) in (2)",
        "(abs(p.id) * 1::integer) = p.id and p.id = 1",
        "abs(p.a) * 1 = 3 and p.a > 0",
    ] {
        let sql =
            format!("select count(*) from n p cross join n o full join n q on p.id = q.d where {condition}");
        assert_eq!(ask(&mut c, &sql), ["3"], "{sql}");
    }
}
