//! Goal: queries of the general path see our tables, and change them. Method: small scripts.

use cairn_sql::{Datum, Type};

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

/// Goal: a scan takes conditions as far as it can: what the tree sees to whole, conditions on one column, or on two of one type, in part, and others not. Method: what EXPLAIN says of one of each.
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

/// Goal: a narrow index is scanned whole for its own columns, and the table for others, of the primary key too. Method: what EXPLAIN says, and the rows.
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

/// Goal: dates are compared with points in time as dates, by the scan. Method: what EXPLAIN says of comparisons in both directions, with midnight and with noon, and the rows, beside those of dates that are cast by hand.
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

/// A condition on one side of an outer join stays on that side, also when both sides have a column of its name.
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

/// Changes whose rows a query finds.
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

/// What clients ask about tables.
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

/// Arithmetic that does not fit is an error and not another number; casts and rounding are those of the direct path.
#[test]
fn numbers_at_their_ends() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table a (id int primary key, s smallint, i int, b bigint, f double precision, n numeric(10, 2))",
    );
    run(&mut c, "create table one (id int primary key)");
    run(&mut c, "insert into one values (1)");
    run(
        &mut c,
        "insert into a values (1, 32767, 2147483647, 9223372036854775807, 2.5, 2.5), (2, -32768, -2147483648, -9223372036854775808, -2.5, -2.5), (3, 1, 1, 1, 1e300, 99999999.99), (4, null, null, null, null, null)",
    );
    for (of, row) in [
        ("i + 1", 1),
        ("i - 1", 2),
        ("i * 2", 1),
        ("-i", 2),
        ("b + 1", 1),
        ("b * 2", 2),
        ("-b", 2),
        ("s + s", 1),
        ("f::int", 3),
        ("f::bigint", 3),
        ("n::smallint", 3),
        ("'NaN'::double precision::int", 3),
    ] {
        let direct = format!("select {of} from a where id = {row}");
        let general = format!("select {of} from a join one on one.id > 0 where a.id = {row}");
        assert_eq!(fails(&mut c, &direct), "22003", "{direct}");
        assert_eq!(fails(&mut c, &general), "22003", "{general}");
    }
    for of in [
        "f::int",
        "n::int",
        "round(f)",
        "(f + 1)::bigint",
        "(n + 1)::bigint",
        "i + 1 - 1",
        "-s::int",
        "round(f) + 1",
        "i / 2 * 2",
    ] {
        for row in [1, 2, 4] {
            if of == "i + 1 - 1" && row != 4 {
                continue;
            }
            let direct = ask(&mut c, &format!("select {of} from a where id = {row}"));
            let general =
                ask(&mut c, &format!("select {of} from a join one on one.id > 0 where a.id = {row}"));
            assert_eq!(direct, general, "{of} of row {row}");
        }
    }
    run(&mut c, "create table t (id int primary key, v int)");
    run(&mut c, "insert into t values (1, 2147483647)");
    assert_eq!(fails(&mut c, "update t set v = t.v + one.id from one where one.id = t.id"), "22003");
    assert_eq!(
        ask(
            &mut c,
            "select i - 1 as x, count(*) from a join one on true where i > 0 group by i - 1 order by i - 1"
        ),
        ["0|1", "2147483646|1"]
    );
    assert_eq!(fails(&mut c, "select i * 2, count(*) from a group by i * 2"), "22003");
}

/// Goal: what is unique says nothing about NULLs. Method: groups and distinct values of a unique column with two of them.
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

/// Goal: literals have PostgreSQL's types in general queries. Method: numbers at the ends of their types, and what is in quotes beside every type, in every place that has
/// an opinion on types: subqueries, unions, VALUES, recursion, CASE.
#[test]
fn literals() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, d numeric(10, 2), u uuid, s smallint, b boolean, x date, r real)",
    );
    run(
        &mut c,
        "insert into t values (1, 1.25, '11111111-2222-3333-4444-5555555555aa', 7, true, '2024-02-29', 0.5)",
    );
    for from in ["t", "(select * from t) t"] {
        for (condition, count) in [
            ("d = '1.254'", 0),
            ("d = '1.250'", 1),
            ("d < '1.254'", 1),
            ("d between '1.249' and '1.2501'", 1),
            ("u = '{11111111222233334444-5555555555AA}'", 1),
            ("u in ('11111111-2222-3333-4444-5555555555AA')", 1),
            ("s = '7'", 1),
            ("b = 'yes'", 1),
            ("x = '2024-2-29' and x < '2024-03-01'", 1),
            ("r = '0.5'", 1),
            ("s = any('{1, \"7\"}')", 1),
            ("'a,b' = any('{\"a,b\",c}')", 1),
            ("s is distinct from '8'", 1),
            ("id + '1' = 2", 1),
        ] {
            let asked = format!("select count(*) from {from} where {condition}");
            assert_eq!(ask(&mut c, &asked), [count.to_string()], "{asked}");
        }
        for (condition, sqlstate) in
            [("s = 'seven'", "22P02"), ("s = '70000'", "22003"), ("u = 'u'", "22P02")]
        {
            let asked = format!("select count(*) from {from} where {condition}");
            assert_eq!(fails(&mut c, &asked), sqlstate, "{asked}");
        }
    }
    for from in ["t", "(select * from t) t"] {
        let asked = format!("select count(*) from {from} where d = $1 and d + $2 = 2.379");
        let decimal = |unscaled, scale| Datum::Decimal { unscaled, scale };
        for (d, count) in [(decimal(125, 2), "1"), (decimal(1_254, 3), "0")] {
            assert_eq!(rows(&mut c, &asked, &[d, decimal(1_129, 3)]).unwrap(), [count], "{from}");
        }
        let uuid = Datum::Uuid(0x1111_1111_2222_3333_4444_5555_5555_55aa_u128.to_be_bytes());
        let asked = format!("select count(*) from {from} where u = $1");
        assert_eq!(rows(&mut c, &asked, &[uuid]).unwrap(), ["1"], "{from}");
    }
    let of_type = |c: &mut cairn_sql::Connection, sql: &str| c.prepare(sql).unwrap().columns()[0].kind.kind;
    for (sql, kind) in [
        ("select max(x) from (select 1 as x) y", Type::Int),
        ("select max(x) from (values (1), (2)) y (x)", Type::Int),
        ("select max(x) from (values (1), (3000000000)) y (x)", Type::BigInt),
        ("select x from (select 1 as x union all select 2) y group by x", Type::Int),
        ("select case when id > 0 then 1 else 2 end from (select * from t) t", Type::Int),
        ("select sum(1) from (select * from t) t", Type::BigInt),
        ("select count(*) + 1 from (select * from t) t", Type::BigInt),
    ] {
        assert_eq!(of_type(&mut c, sql), kind, "{sql}");
    }
    for (sql, rows) in [
        (
            "with recursive r (n) as (select 1 union all select n + 1 from r where n < 4) select sum(n) from r",
            "10",
        ),
        ("select (select count(*) from t where t.id = y.x) from (select 1 as x) y", "1"),
        ("select count(*) from (select 1 as x) y where exists (select 1 from t where t.id = y.x)", "1"),
        ("select count(*) from (select 1 as x) y where y.x in (select id from t where t.s = y.x + 6)", "1"),
        ("select case s when '7' then 'seven' else 'other' end from (select * from t) t", "seven"),
        ("select count(*) from t a join t b on a.id = b.id - 0 and b.id = 1", "1"),
        ("select substr('abc', 2, 1) || lag(id, 1, 9) over () from (select * from t) t", "b9"),
        ("select x from (values (1), (2), (3)) y (x) order by x limit 1 offset 1", "2"),
    ] {
        assert_eq!(ask(&mut c, sql), [rows], "{sql}");
    }
}

/// Goal: a text goes into no column of another type without a cast, wherever it comes from; what is only in quotes and parameters do. Method: INSERT and UPDATE by queries, beside what the
/// direct path says of the same.
#[test]
fn texts_into_columns() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, n int, d date, v varchar(3))");
    run(&mut c, "create table s (id int primary key, x text)");
    run(&mut c, "insert into s values (1, '5'), (2, '6')");
    for refused in [
        "insert into t (id, n) select id, x from s",
        "insert into t (id, n) select id, x || '' from s",
        "insert into t (id, n) select 1, '5' union select 2, '6'",
        "insert into t (id, n) select distinct 1, '5' from s",
        "insert into t (id, n) select id, y from (select id, '5' as y from s) q",
        "insert into t (id, n) values (1, (select x from s where id = 1))",
        "insert into t (id, d) select id, case when id = 1 then '2024-01-01' end from s",
        "update t set n = x from s where s.id = t.id",
        "update t set n = (select x from s where s.id = t.id)",
    ] {
        assert_eq!(fails(&mut c, refused), "42804", "{refused}");
    }
    run(&mut c, "insert into t (id, n, d) select id, '5', '2024-01-01' from s");
    run(&mut c, "insert into t select 3, null, '2024-01-02', x from s where id = 1");
    run(&mut c, "insert into t (id, v, n) select s.*, ('7') from (select id + 3, x from s) s");
    let insert = "insert into t (id, n, d) select id + 5, $1, $2 from s where id = 1";
    let given = [Datum::Int(8), Datum::Text("2024-01-03".to_owned())];
    assert_eq!(c.execute(insert, &given).unwrap(), 1);
    assert_eq!(
        ask(&mut c, "select * from t order by id"),
        [
            "1|5|2024-01-01|NULL",
            "2|5|2024-01-01|NULL",
            "3|NULL|2024-01-02|5",
            "4|7|NULL|5",
            "5|7|NULL|6",
            "6|8|2024-01-03|NULL"
        ]
    );
    assert_eq!(run(&mut c, "update t set n = '9', d = null from s where s.id = t.id"), 2);
    assert_eq!(ask(&mut c, "select n, d from t where id < 3"), ["9|NULL", "9|NULL"]);
    assert_eq!(fails(&mut c, "insert into t (id, n) select 9, 'nine'"), "22P02");
    assert_eq!(fails(&mut c, "insert into t (id, v) select 9, 'long text' from s"), "22001");
}

/// Goal: digits that somebody has written are kept or refused, not rounded away without a word, where a column does not say how many it has. Method: each way in; what is computed
/// is rounded, and columns that say how many digits they have round.
#[test]
fn digits_of_numerics() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, n numeric, m numeric(12, 3))");
    for (at, kept) in
        ["1.1234567890", "1.12345678900000", "-9999999999999999999999999999.5", "1e-10"].iter().enumerate()
    {
        run(&mut c, &format!("insert into t (id, n) values ({at}, {kept})"));
        run(&mut c, &format!("insert into t (id, n) select {}, '{kept}'", at + 10));
    }
    assert_eq!(
        ask(&mut c, "select n from t where id < 10 order by id"),
        ["1.1234567890", "1.1234567890", "-9999999999999999999999999999.5000000000", "0.0000000001"]
    );
    for refused in [
        "insert into t (id, n) values (20, 1.12345678901)",
        "insert into t (id, n) values (20, -1.12345678901)",
        "insert into t (id, n) values (20, '1.12345678901')",
        "insert into t (id, n) select 20, '1.12345678901'",
        "insert into t (id, n) select id + 20, '1e-11' from t",
        "update t set n = 0.00000000001 where id = 1",
    ] {
        assert_eq!(fails(&mut c, refused), "22003", "{refused}");
    }
    let decimal = Datum::Decimal { unscaled: 112_345_678_901, scale: 11 };
    for refused in ["insert into t (id, n) values (20, $1)", "update t set n = $1 where id = 1"] {
        let error = c.execute(refused, std::slice::from_ref(&decimal)).unwrap_err();
        assert_eq!(error.sqlstate(), "22003", "{refused}");
        assert!(error.hint().unwrap().contains("numeric(precision, scale)"), "{error:?}");
    }
    c.execute("insert into t (id, m) values (20, $1)", std::slice::from_ref(&decimal)).unwrap();
    run(&mut c, "insert into t (id, m) values (21, 1.12345678901), (22, '1.12345678901')");
    run(&mut c, "insert into t (id, n) values (23, 1.0 / 3)");
    run(&mut c, "insert into t (id, n) select 24, id / 3.0::double precision from t where id = 1");
    assert_eq!(
        ask(&mut c, "select n, m from t where id >= 20 order by id"),
        ["NULL|1.123", "NULL|1.123", "NULL|1.123", "0.3333333333|NULL", "0.3333333333|NULL"]
    );
}

/// Goal: rows whose key is one of some are found by the tree, each once. Method: values that are there twice, parameters with the same value, NULL, beside the same as computed conditions.
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

/// Goal: a table of a query around a subquery is found where a column of the subquery's own has its name, by name or alias, in a namespace, within another subquery, and in UPDATE and DELETE; and what is
/// called so is the table that is meant. Method: EXISTS, values, lists, beside the same with other names.
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
    // Two tables that are called so, and a name of WITH: neither is guessed.
    let sql = "select id from a where exists (select 1 from b where b.a = a.id)";
    assert_eq!(ask(&mut c, &format!("{sql} and id < 3 order by 1")), ["1", "2"]);
    c.execute(&format!("with a as (select 9 as id) {sql}"), &[]).unwrap_err();
}

/// Goal: the value of a subquery is called what its first column is, as in PostgreSQL. Method: one of each kind.
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

/// Goal: `EXCEPT ALL` and `INTERSECT ALL` count equal rows, NULL among them. Method: bags whose differences are known; columns of one name, of other types on the other side, and below
/// other sets.
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
    // Without ALL each row is there once.
    assert_eq!(sorted("select x from a except values (2)"), ["1", "NULL"]);
    assert_eq!(sorted("select x from a intersect select x from a"), ["1", "NULL"]);
}

/// Goal: conditions that become other ones while a query is planned are still met. Method: lists with NULL on keys, indexed columns and others, above which there is more than a scan.
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

/// Goal: parts of moments have their fractions wherever they are asked for. Method: the same part on both paths.
#[test]
fn parts_of_moments_have_fractions() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table a (id int primary key, at timestamp, zoned timestamptz, t time, d date, s interval)",
    );
    run(
        &mut c,
        "insert into a values (1, '2024-02-29 12:34:56.789', '2024-02-29 12:34:59.999999+00', '23:59:58.5', '2024-02-29', '3 days 04:05:06.25'), (2, null, null, null, null, null)",
    );
    let parts = [
        ("extract(second from at)", "56.789000"),
        ("extract(seconds from zoned)", "59.999999"),
        ("extract(second from t)", "58.500000"),
        ("extract(second from s)", "6.250000"),
        ("date_part('second', at)", "56.789"),
        ("extract(second from at)::int", "57"),
        ("extract(epoch from s)", "273906.250000"),
        ("extract(epoch from at)", "1709210096.789000"),
        ("date_part('epoch', at)", "1709210096.789"),
    ];
    for (part, expected) in parts {
        let (direct, general) = (
            ask(&mut c, &format!("select {part} from a where id = 1")),
            ask(&mut c, &format!("select {part} from a join (values (1)) as v(i) on i = a.id")),
        );
        assert_eq!((direct, general), (vec![expected.to_owned()], vec![expected.to_owned()]), "{part}");
    }
    assert_eq!(
        ask(&mut c, "select extract(second from at), count(*) over () from a order by id"),
        ["56.789000|2", "NULL|2"]
    );
    assert_eq!(
        ask(&mut c, "select extract(year from at) from a join (values (1)) as v(i) on i = id"),
        ["2024"]
    );
}

/// Goal: sides are joined by spans of time of one length, however that is written. Method: months beside days, with USING, NATURAL and ON; in sets and below aggregates.
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

/// Goal: a condition without columns keeps or drops the row of an aggregate without groups. Method: parameters, subqueries and HAVING, true and false; with groups; correlated, where a
/// limit would be in the way.
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

/// Goal: LIMIT and OFFSET take parameters of any integer type. Method: a general query with smallint parameters, as clients send small numbers; twice, as the second run has a plan.
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

/// Goal: VALUES of an INSERT may have subqueries of one value. Method: one row, several, none found, more than one found.
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

/// Goal: what would have given wrong rows is refused. Method: each once.
#[test]
fn refused_rather_than_wrong() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    for sql in [
        "select id from a order by id fetch first 1 row with ties",
        "select json_agg(id) from a",
        "set timezone = 'America/New_York'",
        "set time zone 'Europe/Berlin'",
    ] {
        assert_eq!(fails(&mut c, sql), "0A000", "{sql}");
    }
    for zone in ["UTC", "Etc/UTC", "GMT", "utc", "0", "+00:00"] {
        run(&mut c, &format!("set timezone = '{zone}'"));
    }
    run(&mut c, "set time zone local");
    run(&mut c, "reset timezone");
}
