//! Goal: queries of the general path read our tables, and change them. Method: small scripts.

use cairn_sql::Datum;

use crate::support::{ask, database, fails, rows, run};

/// Joins, groups, windows, common table expressions, set operations.
#[test]
fn queries() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, v text, n bigint)");
    run(&mut c, "create table b (id int primary key, a int references a, d numeric(8,2), at timestamp)");
    run(&mut c, "insert into a values (1, 'x', 10), (2, 'y', 20), (3, null, null)");
    run(
        &mut c,
        "insert into b values (1, 1, 1.50, '2024-01-01 10:00'), (2, 1, 2.25, '2024-01-02'), (3, 2, 3, null)",
    );
    assert_eq!(
        ask(&mut c, "select a.v, sum(b.d) from a join b on b.a = a.id group by a.v order by 1"),
        ["x|3.75", "y|3.00"]
    );
    assert_eq!(ask(&mut c, "select a.id from a left join b on a.id = b.a where b.id is null"), ["3"]);
    assert_eq!(
        ask(&mut c, "with t as (select id, n from a where n > 5) select max(n) - min(n) from t"),
        ["10"]
    );
    assert_eq!(
        ask(&mut c, "select id, row_number() over (order by id desc) from a order by id"),
        ["1|3", "2|2", "3|1"]
    );
    assert_eq!(
        ask(&mut c, "select id from a union select id + 2 from a order by 1"),
        ["1", "2", "3", "4", "5"]
    );
    assert_eq!(ask(&mut c, "select v from a order by v desc"), ["NULL", "y", "x"]);
    assert_eq!(ask(&mut c, "select count(*) from a where id in (select a from b)"), ["2"]);
    assert_eq!(
        rows(&mut c, "select b.id from a, b where a.id = b.a and a.id = $1 order by 1", &[Datum::Int(1)])
            .unwrap(),
        ["1", "2"]
    );
    assert_eq!(
        ask(&mut c, "select date_trunc('month', at) from b where at is not null group by 1"),
        ["2024-01-01 00:00:00"]
    );
    assert_eq!(ask(&mut c, "select distinct a from b order by a"), ["1", "2"]);
    run(&mut c, "create view w as select v, count(*) as many from a join b on a.id = b.a group by v");
    assert_eq!(ask(&mut c, "select many from w where v = 'x'"), ["2"]);
    run(&mut c, "create table c as select id * 2 as twice, v from a");
    assert_eq!(ask(&mut c, "select twice, v from c where twice > 2 order by 1"), ["4|y", "6|NULL"]);
    assert_eq!(fails(&mut c, "select nothing from a join b on true"), "42703");
    assert_eq!(fails(&mut c, "select * from a join missing on true"), "42P01");
    assert!(
        ask(&mut c, "explain select * from a join b on a.id = b.a where a.id = 1")
            .join("\n")
            .contains("TableScan")
    );
}

/// A condition on one side of an outer join stays on that side, even if both sides have a column of
/// its name.
#[test]
fn outer_joins() {
    let mut c = database().connect();
    run(&mut c, "create table l (id int primary key, a int, b int)");
    run(&mut c, "create table r (id int primary key, a int, b int, c int)");
    run(&mut c, "insert into l values (1, 6, null), (2, null, null), (3, 17, 5)");
    run(
        &mut c,
        "insert into r values (1, 6, 2, null), (2, 17, null, null), (3, null, -1, null), (4, 4, null, 9)",
    );
    let joined =
        "select l.id, r.b from l right join r on l.a = r.a where r.c is null and l.b is null order by r.id";
    assert_eq!(ask(&mut c, joined), ["1|2", "NULL|-1"]);
    let joined =
        "select r.b, l.id from r left join l on l.a = r.a where r.c is null and l.b is null order by r.id";
    assert_eq!(ask(&mut c, joined), ["2|1", "-1|NULL"]);
}

/// Changes whose rows come from a query.
#[test]
fn changes() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, n int)");
    run(&mut c, "create table b (id int primary key, a int, m int)");
    run(&mut c, "insert into a select i, i * 10 from generate_series(1, 5) as t(i)");
    assert_eq!(run(&mut c, "insert into b select id, id, n + 1 from a where id <= 3"), 3);
    assert_eq!(run(&mut c, "update a set n = b.m from b where b.a = a.id"), 3);
    assert_eq!(ask(&mut c, "select n from a order by id"), ["11", "21", "31", "40", "50"]);
    assert_eq!(run(&mut c, "delete from b where a in (select id from a where n > 20)"), 2);
    assert_eq!(
        ask(&mut c, "update a set n = (select count(*) from b) where id = 5 returning id, n"),
        ["5|1"]
    );
    assert_eq!(run(&mut c, "delete from a using b where b.a = a.id"), 1);
    assert_eq!(ask(&mut c, "select count(*), max(id) from a"), ["4|5"]);
}

/// Queries of clients on the system catalogs.
#[test]
fn system_tables() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id serial primary key, v varchar(10) not null unique, n numeric(8,2) default 1 check (n > 0))",
    );
    assert_eq!(
        ask(&mut c, "select table_name from information_schema.tables where table_schema = 'public'"),
        ["t"]
    );
    assert_eq!(
        ask(
            &mut c,
            "select column_name, data_type, is_nullable from information_schema.columns where table_name = 't' order by ordinal_position"
        ),
        ["id|integer|NO", "v|character varying|NO", "n|numeric|YES"]
    );
    let sql = "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.relname OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3";
    let found = ask(&mut c, sql);
    let oid = found[0].split('|').next().unwrap().to_owned();
    let sql = format!(
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) \
         FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef), a.attnotnull \
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = '{oid}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    );
    assert_eq!(
        ask(&mut c, &sql),
        [
            "id|integer|nextval('t_id_seq'::regclass)|t",
            "v|character varying(10)|NULL|t",
            "n|numeric(8,2)|1|f"
        ]
    );
    assert_eq!(
        ask(
            &mut c,
            "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass order by 1"
        ),
        ["t_n_check|CHECK ((n > 0))", "t_pkey|PRIMARY KEY (id)", "t_v_key|UNIQUE (v)"]
    );
    assert_eq!(ask(&mut c, "select current_database(), current_schema()"), ["test|public"]);
}

/// Goal: a unique key allows several NULLs. Method: groups and distinct values of a unique column
/// with two NULLs.
#[test]
fn unique_columns_with_nulls() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, a text unique, b int not null unique)");
    run(&mut c, "insert into t values (1, 'x', 1), (2, null, 2), (3, null, 3)");
    assert_eq!(ask(&mut c, "select a, count(*) from t group by a order by a"), ["x|1", "NULL|2"]);
    assert_eq!(ask(&mut c, "select distinct a from t order by a"), ["x", "NULL"]);
    assert_eq!(ask(&mut c, "select b, count(*) from t group by b, a order by b"), ["1|1", "2|1", "3|1"]);
    assert_eq!(
        ask(
            &mut c,
            "select x.a, count(*) from t y left join t x on x.b = y.b and x.id < 3 group by x.a, x.b order by 1, 2"
        ),
        ["x|1", "NULL|1", "NULL|1"]
    );
}

/// Goal: `EXCEPT ALL` and `INTERSECT ALL` count equal rows, NULL among them. Method: bags with
/// known differences; columns of one name, of other types on the other side, and below other set
/// operations.
#[test]
fn sets_that_count_rows() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, x int, y text)");
    run(
        &mut c,
        "insert into a values (1, 1, 'p'), (2, 1, 'p'), (3, 1, 'q'), (4, null, null), (5, null, null)",
    );
    let mut sorted = |sql: &str| {
        let mut rows = ask(&mut c, sql);
        rows.sort_unstable();
        rows
    };
    assert_eq!(sorted("values (1), (1), (2) except all values (1)"), ["1", "2"]);
    assert_eq!(sorted("values (1), (1), (1), (2) intersect all values (1), (1), (3)"), ["1", "1"]);
    assert_eq!(sorted("select x from a except all select 1"), ["1", "1", "NULL", "NULL"]);
    assert_eq!(sorted("select x from a except all select null"), ["1", "1", "1", "NULL"]);
    assert_eq!(
        sorted("select x, y from a except all values (1::bigint, 'p')"),
        ["1|p", "1|q", "NULL|NULL", "NULL|NULL"]
    );
    assert_eq!(sorted("select x, x from a intersect all select x, x from a where id < 3"), ["1|1", "1|1"]);
    assert_eq!(
        sorted("(select x from a except all select 1) intersect all values (1), (1), (1)"),
        ["1", "1"]
    );
    assert_eq!(sorted("select x from a except all (select x from a except all select 1)"), ["1"]);
    assert_eq!(sorted("select count(*) from (select y from a except all select 'p') as d"), ["4"]);
    // Without ALL each row is returned once.
    assert_eq!(sorted("select x from a except values (2)"), ["1", "NULL"]);
    assert_eq!(sorted("select x from a intersect select x from a"), ["1", "NULL"]);
}

/// Goal: joins on intervals match equal lengths, however these are written. Method: months and
/// days, with USING, NATURAL and ON; in set operations and below aggregates.
#[test]
fn joins_by_spans_of_time() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, s interval)");
    run(&mut c, "create table b (s interval, v int)");
    run(&mut c, "insert into a values (1, '1 month'), (2, '30 days'), (3, '1 day'), (4, null)");
    run(&mut c, "insert into b values ('30 days', 7), ('24 hours', 8), (null, 9)");
    let expected = ["1|7", "2|7", "3|8"];
    for from in ["a join b using (s)", "a natural join b", "a join b on a.s = b.s"] {
        assert_eq!(ask(&mut c, &format!("select a.id, b.v from {from} order by 1")), expected, "{from}");
    }
    assert_eq!(ask(&mut c, "select count(*) from a left join b using (s)"), ["4"]);
    assert_eq!(
        ask(&mut c, "select min(id) from a right join b using (s) group by v order by v"),
        ["1", "3", "NULL"]
    );
}

/// Goal: LIMIT and OFFSET accept parameters of any integer type. Method: a general query with
/// smallint parameters, as clients send small numbers; run twice, because the second run uses the
/// cached plan.
#[test]
fn counts_of_small_integers() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    run(&mut c, "insert into a select g from generate_series(1, 9) as g(g)");
    let sql = "select x.id from a x join a y using (id) order by 1 limit $1 offset $2";
    for types in ["smallint, smallint", "int, smallint", "smallint, bigint"] {
        run(&mut c, &format!("prepare p ({types}) as {sql}"));
        for _ in 0..2 {
            assert_eq!(ask(&mut c, "execute p (2, 3)"), ["4", "5"], "{types}");
        }
        run(&mut c, "deallocate p");
    }
    let params = [Datum::SmallInt(2), Datum::SmallInt(3)];
    assert_eq!(rows(&mut c, sql, &params).unwrap(), ["4", "5"]);
}

/// Goal: constructs that would return wrong rows are rejected. Method: each once.
#[test]
fn refused_rather_than_wrong() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    for sql in [
        "select id from a order by id fetch first 1 row with ties",
        "select json_agg(id) from a",
        "set timezone = 'America/New_York'",
        "set time zone 'Europe/Berlin'",
        "create temp table t (a int)",
        "create temporary table t as select 1 as a",
        "create temp table t (a int) on commit drop",
        "create temp view v as select 1 as a",
        "create temp sequence s",
        "create table t (a text collate nocase unique)",
        "create table t (a text collate \"en_US\")",
        "create table t (a citext)",
        "select id::citext from a",
        "select id from a where id::text = 'x' collate \"en_US\"",
    ] {
        assert_eq!(fails(&mut c, sql), "0A000", "{sql}");
    }
    for zone in ["UTC", "Etc/UTC", "GMT", "utc", "0", "+00:00"] {
        run(&mut c, &format!("set timezone = '{zone}'"));
    }
    for collation in ["\"C\"", "\"POSIX\"", "pg_catalog.\"default\"", "BINARY"] {
        run(&mut c, &format!("create table t (a text collate {collation} unique)"));
        assert!(ask(&mut c, &format!("select a from t order by a collate {collation}")).is_empty());
        run(&mut c, "drop table t");
    }
    run(&mut c, "set time zone local");
    run(&mut c, "reset timezone");
}

/// Goal: a condition guards a later one on every path, in PostgreSQL's order of evaluation. Method:
/// divisions by zero and malformed numbers behind conditions that exclude them, in WHERE, ON and
/// HAVING, and without such conditions.
#[test]
fn conditions_guard_each_other() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, a int, d double precision, n numeric(8,2), s text)");
    run(
        &mut c,
        "insert into t select i, i % 3, i % 3, i % 3, case when i % 3 = 0 then 'none' else (i % 3)::text end from generate_series(1, 30) as g(i)",
    );
    for (guard, part) in [
        ("a <> 0", "10 / a > 9"),
        ("a <> 0", "10 % a = 0"),
        ("d <> 0", "10 / d > 9"),
        ("n <> 0", "10 / n > 9"),
        ("s <> 'none'", "s::int < 2"),
    ] {
        let count = |from: &str| format!("select count(distinct id) from {from}");
        let guarded = [
            count(&format!("t where {guard} and {part}")),
            count(&format!("t where id > 0 and {guard} and id < 100 and {part}")),
            count(&format!("t join (values (1)) as v(i) on {guard} and {part}")),
            format!("select count(*) from t where {guard} and {part}"),
            format!(
                "select count(*) from (select distinct id, a, d, n, s from t where {guard} and {part}) as q"
            ),
        ];
        for query in &guarded {
            let found: i64 = ask(&mut c, query)[0].parse().unwrap();
            assert!((10..=20).contains(&found), "{query}: {found}");
        }
        assert!(["22012", "22P02"].contains(&fails(&mut c, &count(&format!("t where {part}")))), "{part}");
    }
    assert_eq!(ask(&mut c, "select a from t group by a having a <> 0 and 10 / a > 0 order by a"), ["1", "2"]);
    // A condition on another table is not a guard: PostgreSQL also evaluates the conditions on one
    // table first.
    assert_eq!(
        ask(
            &mut c,
            "select count(*) from t x join t y on x.id = y.id where x.a <> 0 and 10 / x.a > 1 and y.id < 4"
        ),
        ["2"]
    );
}

/// Goal: a set-returning function in a select list returns a row for each value, as in FROM.
/// Method: alone, next to a column, into a table; in FROM as before.
#[test]
fn series_of_results() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key)");
    run(&mut c, "insert into t select generate_series(1, 2)");
    assert_eq!(ask(&mut c, "select generate_series(1, 3)"), ["1", "2", "3"]);
    assert_eq!(
        ask(&mut c, "select id, generate_series(1, id) as n from t order by 1, 2"),
        ["1|1", "2|1", "2|2"]
    );
    assert_eq!(ask(&mut c, "select sum(g) from generate_series(1, 4) as g"), ["10"]);
}

/// Goal: ORDER BY accepts the default names of result columns. Method: the same on both paths.
#[test]
fn orders_by_names_of_results() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, name text)");
    run(&mut c, "insert into t values (1, 'B'), (2, 'a')");
    assert_eq!(ask(&mut c, "select lower(name) from t order by lower"), ["a", "b"]);
    assert_eq!(ask(&mut c, "select distinct lower(name) from t order by lower"), ["a", "b"]);
    assert_eq!(ask(&mut c, "select name from t order by name"), ["B", "a"]);
    assert_eq!(ask(&mut c, "select *, name from t order by name"), ["1|B|B", "2|a|a"]);
    for ambiguous in [
        "select x.id, y.id from t x join t y on x.id = y.id order by id",
        "select id as n, name as n from t order by n",
    ] {
        assert_eq!(fails(&mut c, ambiguous), "42702", "{ambiguous}");
    }
    // The name of two functions is ambiguous.
    for several in [
        "select lower(name), lower('B') from t order by lower",
        "select distinct lower(name), lower('B') from t order by lower",
    ] {
        assert!(["42702", "42703"].contains(&fails(&mut c, several)), "{several}");
    }
    assert_eq!(ask(&mut c, "select id as name, name as id from t order by name desc"), ["2|a", "1|B"]);
}

/// Goal: an UPDATE on the general path leaves the columns that it does not set as they are.
/// Method: numerics of several scales beside a column that is set from a subquery.
#[test]
fn updates_leave_other_columns() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, a numeric(10,2), b numeric(12,5), c numeric, d real, e text, f int)",
    );
    run(
        &mut c,
        "insert into t select g, g + 0.25, g / 8.0, g * 1.125, g / 4.0, 'e' || g, g from generate_series(1, 8) as s(g)",
    );
    let others = "select id, a, b, c, d, e from t order by id";
    let before = ask(&mut c, others);
    assert_eq!(run(&mut c, "update t set f = (select count(*) from t u where u.a < t.a)"), 8);
    assert_eq!(ask(&mut c, others), before);
    assert_eq!(ask(&mut c, "select sum(f) from t"), ["28"]);
    let joined =
        "update t set f = s.n from (select a, count(*) over (order by a) as n from t) s where s.a = t.a";
    assert_eq!(run(&mut c, joined), 8);
    assert_eq!(ask(&mut c, others), before);
    assert_eq!(ask(&mut c, "select sum(f) from t"), ["36"]);
}

/// Goal: a CASE whose results have several types has the type that holds all of them in VALUES too.
/// Method: items that DataFusion types by the first result, alone, below a cast of the column, in
/// an operator, and with times.
#[test]
fn case_has_one_type_in_values() {
    let mut c = database().connect();
    run(&mut c, "create table t (n numeric(12,3), d double precision, at timestamp)");
    run(&mut c, "set cairn.direct_path = off");
    let case = "case when false then 1 else 1.5 end";
    run(&mut c, &format!("insert into t (n) values ({case})"));
    run(&mut c, &format!("insert into t (n) values (2::bigint), ({case}), (-({case})), ({case} + 1)"));
    assert_eq!(ask(&mut c, "select n from t"), ["1.500", "2.000", "1.500", "-1.500", "2.500"]);
    assert_eq!(ask(&mut c, &format!("select * from (values ({case}), (2)) v")), ["1.5", "2.0"]);
    let double = "case when false then 1 else 1.5::float8 end";
    assert_eq!(ask(&mut c, &format!("select * from (values ({double}), (2)) v")), ["1.5", "2"]);
    let time = "case when false then date '2024-02-29' else timestamp '2024-02-29 12:34:56' end";
    assert_eq!(ask(&mut c, &format!("values ({time})")), ["2024-02-29 12:34:56"]);
}

/// Goal: an OFFSET skips the first rows of its own order, whatever the order above it, and a sort
/// by columns that are constant in the parts of a UNION is kept.
/// Method: unions of constants, of which DataFusion takes every order for every other; sorts by
/// nothing but constants.
#[test]
fn unions_of_constants_are_sorted() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v text)");
    run(&mut c, "insert into t values (1, 'c'), (2, 'b'), (3, 'a')");
    let constants = "select date '2024-12-30' as d, '' as v union all select null, 'ab' from t";
    let skipped = format!("select * from ({constants} order by 2 nulls first, 1 desc offset 1) q");
    assert_eq!(ask(&mut c, &skipped), ["NULL|ab"; 3]);
    assert_eq!(ask(&mut c, &format!("{skipped} order by 2 desc nulls last, 1 desc")), ["NULL|ab"; 3]);
    let mixed = "select 1 as a, null::timestamp as b, 'x' as v \
                 union all select distinct 1, timestamp '2024-03-31 01:30:00', v from t order by 2 desc, 3, 1";
    let sorted =
        ["1|NULL|x", "1|2024-03-31 01:30:00|a", "1|2024-03-31 01:30:00|b", "1|2024-03-31 01:30:00|c"];
    assert_eq!(ask(&mut c, mixed), sorted);
    assert_eq!(ask(&mut c, &format!("{mixed} offset 2")), sorted[2..]);
    assert_eq!(ask(&mut c, &format!("{mixed} limit 2 offset 1")), sorted[1..3]);
    let correlated = "select 1 as a, null::timestamp as b, 'x' as v \
                      union all select distinct 1, timestamp '2024-03-31 01:30:00', \
                      (select u.v from t u where u.id = t.id) from t order by 2 desc, 3, 1 offset 2";
    assert_eq!(ask(&mut c, correlated), sorted[2..]);
    // A sort within the last part must not be applied to all rows.
    run(&mut c, "create table u (id int, v text unique, w text, primary key (id, v))");
    run(&mut c, "insert into u values (1, 'c', 'cc'), (2, 'b', 'b'), (3, '', '')");
    let inner = "select 1 as a, null::timestamp as b, 'a' as v union all \
                 (select distinct 1, timestamp '2024-03-31 01:30:00', (select x.w from u x where x.v = u.w) from u \
                 order by 1 desc nulls last, 3 nulls first, 2 nulls first)";
    let found = ask(&mut c, &format!("{inner} order by 2 desc, 3 nulls first, 1 nulls first offset 2"));
    assert_eq!(found, ["1|2024-03-31 01:30:00|", "1|2024-03-31 01:30:00|b"]);
    let none = "select distinct true as a, null::date as b, 1::bigint as c from t order by 2, 3 desc, 1";
    assert_eq!(ask(&mut c, &format!("select * from ({none}) q order by 3, 1")), ["t|NULL|1"]);
    let except = "(select 1::bigint as a, 1::real as b from t order by 2, 1) \
                  except (select id, 1::real from t order by 1 desc, 2) order by 2 desc, 1";
    assert_eq!(ask(&mut c, except), Vec::<String>::new());
}

/// Goal: functions that DataFusion has, and the table of functions has not, do not exist.
/// Method: scalars, an aggregate, a function of tables.
#[test]
fn only_functions_of_the_table_exist() {
    let mut c = database().connect();
    for call in [
        "arrow_typeof(1)",
        "nanvl(1, 2)",
        "named_struct('a', 1)",
        "approx_distinct(1)",
        "to_unixtime('2024-01-01')",
    ] {
        assert_eq!(fails(&mut c, &format!("select {call}")), "42883", "{call}");
    }
    assert_eq!(fails(&mut c, "select * from range(1, 3)"), "42883");
}

/// Goal: a query that runs as it was written keeps the sort below its LIMIT.
/// Method: subqueries whose order nothing above needs.
#[test]
fn limits_take_sorted_rows_without_the_optimizer() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, b int)");
    run(&mut c, "insert into t values (1, 5), (2, null), (3, 9)");
    run(&mut c, "set cairn.direct_path = off");
    for optimizer in ["on", "off"] {
        run(&mut c, &format!("set cairn.optimizer = {optimizer}"));
        assert_eq!(ask(&mut c, "select (select id from t order by b desc limit 1) from t u"), ["2"; 3]);
        assert_eq!(ask(&mut c, "select sum(id) from (select id from t order by b limit 2) q"), ["4"]);
    }
}

/// Goal: `lag` and `lead` have the type that holds value and default; neither is rounded.
/// Method: a default with more digits than the value, and of a wider type.
#[test]
fn defaults_of_lag_are_not_rounded() {
    let mut c = database().connect();
    let sql = "select lag(g, 1, -1.5) over (order by g), lead(g, 1, 2.5) over (order by g), \
               lag(1.25, 1, 2) over (order by g), lag(g, 1, 0.5::float8) over (order by g) \
               from generate_series(1, 2) as s(g) order by g";
    let found = ask(&mut c, sql);
    assert_eq!(found, ["-1.5|2.0|2.00|0.5", "1.0|2.5|1.25|1"]);
    // An untyped default is of the type of the value, with its time zone.
    let zoned = "select lag(at, 1, '2000-01-01') over (order by at)::text \
                 from (values ('1999-12-31 23:59:59+00'::timestamptz)) t(at)";
    assert_eq!(ask(&mut c, zoned), ["2000-01-01 00:00:00+00"]);
    assert_eq!(fails(&mut c, &zoned.replace("2000-01-01", "no time")), "22007");
}

/// Goal: sums beside a DISTINCT aggregate keep the type that the statement was coerced to.
/// Method: functions that compare their arguments, which fail for numerics of other types.
#[test]
fn sums_beside_distinct_aggregates_keep_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table t (e numeric(12,3), i int)");
    run(&mut c, "insert into t values (1.5, 3), (2.25, 4), (1, 3)");
    assert_eq!(ask(&mut c, "select least(sum(e), 2.5), count(distinct i) from t"), ["2.500|2"]);
    assert_eq!(
        ask(&mut c, "select greatest(5.5, sum(e)), max(distinct i) from t group by i order by 2"),
        ["5.500|3", "5.500|4"]
    );
    assert_eq!(
        ask(&mut c, "select case when sum(e) > 2 then sum(e) else 1.25 end, count(distinct i) from t"),
        ["4.750|2"]
    );
}

/// Goal: items of VALUES are planned as other expressions are.
/// Method: intervals of equal length in every comparison that has a rule of its own.
#[test]
fn intervals_are_compared_in_values() {
    let mut c = database().connect();
    run(&mut c, "set cairn.direct_path = off");
    let day = "'1 day'::interval";
    let items = format!(
        "{day} = '24:00:00'::interval, case {day} when '24:00:00'::interval then 1 else 2 end, \
         {day} in ('24:00:00'::interval), {day} between '23:00' and '24:00:00'::interval"
    );
    assert_eq!(ask(&mut c, &format!("values ({items}), ({items})")), ["t|1|t|t"; 2]);
    assert_eq!(ask(&mut c, &format!("select {items}")), ["t|1|t|t"]);
}

/// Goal: a timestamp with time zone keeps its zone in a column of texts.
/// Method: INSERT from a query and from VALUES, UPDATE with FROM, ALTER of a column's type, on both
/// paths.
#[test]
fn texts_of_zoned_timestamps_have_the_zone() {
    let mut c = database().connect();
    let moment = "'1999-12-31 23:59:59+00'::timestamptz";
    for setting in ["on", "off"] {
        run(&mut c, &format!("set cairn.direct_path = {setting}"));
        run(&mut c, "create table t (id int primary key, v text, at timestamptz)");
        run(&mut c, &format!("insert into t select 1, max({moment}), {moment} from generate_series(1, 2)"));
        run(&mut c, &format!("insert into t values (2, {moment}, {moment})"));
        run(&mut c, "insert into t values (3, null, null)");
        run(&mut c, "update t set v = s.at from (select at from t where id = 1) s where t.id = 3");
        run(&mut c, "alter table t alter column at type text");
        let text = "1999-12-31 23:59:59+00";
        let expected = [format!("1|{text}|{text}"), format!("2|{text}|{text}"), format!("3|{text}|NULL")];
        assert_eq!(ask(&mut c, "select * from t order by id"), expected);
        run(&mut c, "drop table t");
    }
}

/// Goal: an untyped literal among the results of a CASE has the type of the others.
/// Method: texts and dates, as the first and the last result, in both forms of CASE, below LIKE.
#[test]
fn literals_in_case_have_the_type_of_the_others() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, b boolean)");
    run(&mut c, "insert into t values (1, true)");
    run(&mut c, "set cairn.direct_path = off");
    for case in [
        "case 'a'::text when 'a'::text then 'a' else 'b'::text end",
        "case when b then 'a' else 'b'::text end",
    ] {
        let like = format!(
            "select count(*) from (select {case} as v from t) q where ((q.v like 'a%'), true) in (select true, b from t)"
        );
        assert_eq!(ask(&mut c, &like), ["1"], "{case}");
    }
    let dates = "select case id when 1 then '2024-02-29' else date '2024-01-01' end, \
                 case when b then '2024-02-29' else date '2024-01-01' end from t";
    assert_eq!(ask(&mut c, dates), ["2024-02-29|2024-02-29"]);
}
