//! Goal: literals, numbers and timestamps of general queries have PostgreSQL's types and values, as
//! on the direct path. Method: small scripts.

use cairn_sql::{Connection, Datum, Type};

use crate::support::{ask, database, fails, rows, run};

/// Arithmetic out of range is an error and not another number; casts and rounding equal those of
/// the direct path.
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

/// Goal: literals have PostgreSQL's types in general queries. Method: numbers at the ends of their
/// types, and untyped literals next to every type, in every construct that affects types:
/// subqueries, unions, VALUES, recursion, CASE.
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

/// Goal: a text is not assigned to a column of another type without a cast, whatever its source;
/// untyped literals and parameters are. Method: INSERT and UPDATE with queries, compared with the
/// direct path.
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

/// Goal: given digits are kept or rejected, not rounded silently, if a column has no declared
/// scale. Method: each way to insert; computed values are rounded, and columns with a declared
/// scale round.
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

/// Goal: extracted fields of timestamps have fractions in every place. Method: the same field on
/// both paths.
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

/// Goal: no digit is lost silently for which a numeric or a floating-point number has no room.
/// Method: literals with more digits than a numeric has, texts beyond both ends of the
/// floating-point types.
#[test]
fn numbers_beyond_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table t (n numeric, f numeric(30,5), d double precision, r real)");
    let digits = "9007199254740993.12345678901234567890123";
    assert_eq!(fails(&mut c, &format!("insert into t (n) values ({digits})")), "22003");
    run(&mut c, &format!("insert into t (f, d) values ({digits}, {digits})"));
    assert_eq!(ask(&mut c, "select f, d from t"), ["9007199254740993.12346|9.007199254740994e+15"]);
    run(&mut c, &format!("update t set f = -{digits}"));
    assert_eq!(ask(&mut c, "select f from t"), ["-9007199254740993.12346"]);
    assert_eq!(fails(&mut c, &format!("select f < {digits} from t")), "22003");
    for refused in [
        "'1e50'::real",
        "'1e400'::double precision",
        "'-1e39'::real",
        "'1e-50'::real",
        "'1e-400'::double precision",
    ] {
        assert_eq!(fails(&mut c, &format!("select {refused}")), "22003", "{refused}");
        assert_eq!(fails(&mut c, &format!("select {refused} from t group by 1")), "22003", "{refused}");
    }
    assert_eq!(fails(&mut c, "insert into t (r) values ('1e39')"), "22003");
    run(&mut c, "create table s (id int primary key, r real)");
    run(&mut c, "insert into s values (1, 1e-30)");
    for refused in ["r * r", "r / 1e30::real"] {
        assert_eq!(fails(&mut c, &format!("select {refused} from s where id = 1")), "22003", "{refused}");
        assert_eq!(fails(&mut c, &format!("select distinct {refused} from s")), "22003", "{refused}");
    }
    assert_eq!(
        ask(
            &mut c,
            "select 'Infinity'::real, '-inf'::float8, '0e500'::float8, '1e-45'::real > 0, '16777217.0000001'::real"
        ),
        ["Infinity|-Infinity|0|t|1.6777218e+07"]
    );
}

/// Goal: quotients have PostgreSQL's digits on both paths, however many the operands have. Method:
/// numerics of few and of many digits.
#[test]
fn quotients_of_many_digits() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, b numeric, c numeric(38,20))");
    run(&mut c, "insert into t values (1, 1000000000000, 0.5)");
    for (expr, expected) in [
        ("1 / b", "0.00000000000100000000000000000000"),
        ("1 / c", "2.00000000000000000000"),
        ("c / c", "1.00000000000000000000"),
    ] {
        assert_eq!(ask(&mut c, &format!("select {expr} from t where id = 1")), [expected], "{expr}");
        let same = format!("select distinct {expr} = {expected} from t");
        assert_eq!(ask(&mut c, &same), ["t"], "{same}");
    }
}

/// Goal: a time keeps the number of fractional digits that its type declares, as in PostgreSQL.
/// Method: casts on both paths, columns filled in every way, and the catalogs.
#[test]
fn digits_of_times() {
    let mut c = database().connect();
    for (expr, expected) in [
        ("'2024-01-01 12:00:00.6'::timestamp(0)", "2024-01-01 12:00:01"),
        ("'2024-01-01 12:00:00.1234567'::timestamp(3)", "2024-01-01 12:00:00.123"),
        ("timestamp(1) '2024-12-31 23:59:59.95'", "2025-01-01 00:00:00"),
        ("timestamp '2024-01-01 12:00:00.6'::timestamp(0)", "2024-01-01 12:00:01"),
        ("'2024-01-01 12:00:00.5+01'::timestamptz(0)", "2024-01-01 11:00:01"),
        ("'1999-12-31 23:59:58.5'::timestamp(0)", "1999-12-31 23:59:58"),
        ("'1999-12-31 23:59:58.6'::timestamp(0)", "1999-12-31 23:59:59"),
        ("'2000-01-01 00:00:00.5'::timestamp(0)", "2000-01-01 00:00:01"),
        ("'12:34:56.789'::time(1)", "12:34:56.8"),
        ("time(0) '23:59:59.5'", "24:00:00"),
        ("'2024-01-01 12:00:00.123456'::timestamp(6)", "2024-01-01 12:00:00.123456"),
        ("'2024-01-01 12:00:00.123456'::timestamp(9)", "2024-01-01 12:00:00.123456"),
    ] {
        // Clients see the zone of the type.
        let text =
            |of: &[String]| of.iter().map(|row| row.trim_end_matches("+00").to_owned()).collect::<Vec<_>>();
        assert_eq!(text(&ask(&mut c, &format!("select {expr}"))), [expected], "{expr}");
        let general = format!("select distinct {expr} from generate_series(1, 2)");
        assert_eq!(text(&ask(&mut c, &general)), [expected], "{general}");
    }
    run(
        &mut c,
        "create table t (id int primary key, a timestamp(0), b timestamptz(3), c time(2), d timestamp)",
    );
    run(&mut c, "create index on t (a)");
    let precise =
        "'2024-01-01 12:00:00.6789', '2024-01-01 12:00:00.6789', '12:00:00.6789', '2024-01-01 12:00:00.6789'";
    run(&mut c, &format!("insert into t values (1, {precise})"));
    run(&mut c, "insert into t select 2, d, d, d::time, d from t");
    run(&mut c, "update t set a = d, b = d + interval '0', c = d where id = 2");
    let moment = Datum::Timestamp(1_704_110_400_678_900);
    let params = [moment.clone(), moment.clone(), Datum::Time(43_200_678_900), moment];
    rows(&mut c, "insert into t values (3, $1, $2, $3, $4) returning id", &params).unwrap();
    for id in 1..=3 {
        assert_eq!(
            ask(&mut c, &format!("select a, b, c, d from t where id = {id}")),
            ["2024-01-01 12:00:01|2024-01-01 12:00:00.679|12:00:00.68|2024-01-01 12:00:00.6789"],
            "{id}"
        );
    }
    // A value compared with a column is not rounded.
    assert_eq!(ask(&mut c, "select count(*) from t where a = '2024-01-01 12:00:00.6'"), ["0"]);
    assert_eq!(ask(&mut c, "select count(*) from t where a > '2024-01-01 12:00:00.6'"), ["3"]);
    assert_eq!(ask(&mut c, "select count(*) from t where a = timestamp '2024-01-01 12:00:01'"), ["3"]);
    assert_eq!(ask(&mut c, "select count(*) from t as x join t as y on x.a = y.d"), ["0"]);
    assert_eq!(
        ask(
            &mut c,
            "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 't'::regclass and attnum > 1 order by attnum"
        ),
        [
            "timestamp(0) without time zone",
            "timestamp(3) with time zone",
            "time(2) without time zone",
            "timestamp without time zone"
        ]
    );
    assert_eq!(
        ask(
            &mut c,
            "select datetime_precision, character_maximum_length from information_schema.columns where table_name = 't' and column_name > 'a' and column_name <> 'id' order by column_name"
        ),
        ["3|NULL", "2|NULL", "6|NULL"]
    );
    run(&mut c, "alter table t alter d type timestamp(1)");
    run(&mut c, "alter table t alter d type timestamp");
    assert_eq!(ask(&mut c, "select d from t where id = 1"), ["2024-01-01 12:00:00.7"]);
}

/// Goal: both paths agree on numeric computations, including errors. Method: each expression over
/// one table by itself, and in a query with DISTINCT, which DataFusion runs.
#[test]
fn both_paths_compute_alike() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, x double precision, r real, n numeric(10,2), by bytea, s text, b numeric(38,30), c bigint)",
    );
    run(&mut c, "insert into t values (1, 1e308, 3e38, 1.59, '\\x0102', 'aé', 1.5, 10000000000)");
    let alike = [
        ("x / 2", "5e+307"),
        ("r / 2 * 2 = r", "t"),
        ("length(by)", "2"),
        ("octet_length(by)", "2"),
        ("length(s)", "2"),
        ("octet_length(s)", "3"),
        ("char_length(s)", "2"),
        ("floor(n / 1)", "1"),
        ("ceil(n)::text", "2"),
        ("floor(-n)", "-2"),
        ("trunc(n, 1)", "1.5"),
        ("trunc(n)", "1"),
        ("trunc(n, 5)", "1.59000"),
        ("x < 1e39", "f"),
    ];
    for (expr, expected) in alike {
        for query in ["select", "select distinct"] {
            assert_eq!(ask(&mut c, &format!("{query} {expr} from t")), [expected], "{query} {expr}");
        }
    }
    for (expr, sqlstate) in [
        ("x / (id - 1)", "22012"),
        ("r / (id - 1)", "22012"),
        ("n / (id - 1)", "22012"),
        ("x * 10", "22003"),
        ("x + x", "22003"),
        ("-x - x", "22003"),
        ("r * 10::real", "22003"),
        ("id * c * c", "22003"),
    ] {
        for query in ["select", "select distinct"] {
            assert_eq!(fails(&mut c, &format!("{query} {expr} from t")), sqlstate, "{query} {expr}");
        }
    }
    assert_eq!(fails(&mut c, "select count(*) from t where x / (id - 1) > 5"), "22012");
    // A common scale would leave no room for the integer.
    assert_eq!(ask(&mut c, "select b < c from t where b < 10000000000::bigint"), ["t"]);
    assert_eq!(ask(&mut c, "select ceil(avg(id)), floor(avg(id)) from t"), ["1|1"]);
    assert_eq!(ask(&mut c, "select floor(avg(n)) < avg(n), avg(n) > 1.5 from t"), ["t|t"]);
}

/// Goal: a series of integers has integers, in any place; one with a bigint among its ends has
/// bigints.
/// Method: results that distinguish the two: digits of `to_hex`, the type of a sum, and the range
/// of sums.
#[test]
fn series_have_the_type_of_their_ends() {
    let mut c = database().connect();
    run(&mut c, "create table s (i int primary key)");
    run(&mut c, "insert into s values (1)");
    let forms = [
        "generate_series({}) as g (n)",
        "(select generate_series({}) as n) as g",
        "s cross join generate_series({}) as g (n)",
        "(select generate_series({}) as n from s) as g",
        "(select n from generate_series({}) as x (n) union all select 2147483646 where false) as g",
    ];
    for form in forms {
        for ends in ["-1, 0", "-1, 0, 1", "-1::smallint, 0::smallint", "-1, 0::smallint", "-1, -5 + 5"] {
            let from = form.replace("{}", ends);
            for (sql, expected) in [
                (format!("select to_hex(n) from {from} where n < 0"), &["ffffffff"][..]),
                (
                    format!("select sum(n) + 9223372036854775807 from {from} where n = 0"),
                    &["9223372036854775807"],
                ),
            ] {
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
            assert_eq!(fails(&mut c, &format!("select n + 2147483647 + 1 from {from}")), "22003", "{from}");
            let sql = format!("select sum(n) + 9223372036854775807 + 2 from {from}");
            assert_eq!(fails(&mut c, &sql), "22003", "{sql}");
        }
    }
    for form in &forms[..4] {
        for ends in ["-1::bigint, 0", "-1, 0::bigint", "-1, 0, 1::bigint"] {
            let from = form.replace("{}", ends);
            for (sql, expected) in [
                (format!("select to_hex(n) from {from} where n < 0"), "ffffffffffffffff"),
                (format!("select n + 2147483649 from {from} where n < 0"), "2147483648"),
                (format!("select sum(n) + 9223372036854775809 from {from}"), "9223372036854775808"),
            ] {
                assert_eq!(ask(&mut c, &sql), [expected], "{sql}");
            }
        }
    }
    assert_eq!(ask(&mut c, "select n from generate_series(2147483647, 2147483648) as g (n)").len(), 2);
    assert_eq!(
        ask(&mut c, "select n from generate_series(1, 3) with ordinality as g (n, o)"),
        ["1", "2", "3"]
    );
}

/// Whether the first column of a query has a time zone.
fn is_zoned(c: &mut Connection, sql: &str) -> bool {
    c.prepare(sql).unwrap().columns()[0].kind.is_zoned
}

/// Goal: the current times have a time zone, and `localtimestamp` has none. Method: results that
/// reveal the type, of the calls alone and of expressions on them, in general queries and on the
/// direct path.
#[test]
fn times_of_the_clock_have_zones() {
    let mut c = database().connect();
    run(&mut c, "create table u (id int primary key, z timestamptz)");
    run(&mut c, "insert into u values (1, '2020-01-02 03:04:05+00')");
    for from in ["u", "u cross join (values (1)) v (n)"] {
        for clock in ["now()", "current_timestamp", "statement_timestamp()", "clock_timestamp()"] {
            for (of, zoned) in [
                ("{}", true),
                ("date_trunc('month', {})", true),
                ("{} - interval '1 day'", true),
                ("coalesce(null, {})", true),
                ("greatest({}, z)", true),
                ("{}::timestamp", false),
                ("{} at time zone 'UTC'", false),
            ] {
                let sql = format!("select {} from {from}", of.replace("{}", clock));
                assert_eq!(is_zoned(&mut c, &sql), zoned, "{sql}");
                ask(&mut c, &sql);
            }
        }
        for local in
            ["localtimestamp", "date_trunc('month', localtimestamp)", "localtimestamp + interval '1 day'"]
        {
            let sql = format!("select {local} from {from}");
            assert!(!is_zoned(&mut c, &sql), "{sql}");
            ask(&mut c, &sql);
        }
        for (sql, zoned) in [
            (format!("select max(now()) from {from}"), true),
            (format!("select max(now()) over () from {from}"), true),
            (format!("select now() from {from} group by now() having now() is not null"), true),
            (format!("select now() t from {from} union all select z from u order by t"), true),
            (format!("select current_date::timestamp from {from}"), false),
            (format!("select max(localtimestamp) from {from}"), false),
        ] {
            assert_eq!(is_zoned(&mut c, &sql), zoned, "{sql}");
            assert!(!ask(&mut c, &sql).is_empty(), "{sql}");
        }
    }
    assert_eq!(
        ask(&mut c, "select count(*) from u cross join u w where now() = localtimestamp::timestamptz"),
        ["1"]
    );
}

/// Goal: a cast value has the type of the cast, and no properties of the former type. Method: texts
/// of uuids and JSON, and timestamps cast from those with a time zone and from their dates, next to
/// other texts and timestamps: in UNION, COALESCE, windows and operators.
#[test]
fn casts_leave_nothing_of_the_type_before() {
    let mut c = database().connect();
    run(&mut c, "create table u (id int primary key, u uuid, z timestamptz, j json)");
    let uuid = "00000000-0000-0000-0000-000000000001";
    run(&mut c, &format!("insert into u values (1, '{uuid}', '2020-01-02 03:04:05+00', '[1]')"));
    for from in ["u", "u cross join (values (1)) v (n)", "u left join (values (2)) v (n) on v.n = u.id"] {
        for (text, shown) in [("u", uuid), ("null::uuid", "é"), ("j", "[1]")] {
            let text = format!("{text}::text");
            let joined = format!("select coalesce(x, 'é') from (select {text} x from {from}) q");
            assert_eq!(ask(&mut c, &joined), [shown], "{joined}");
            for sql in [
                format!("select coalesce({text}, 'é') from {from} union all select 'x'"),
                format!(
                    "select coalesce({text}, chr(233)) from {from} union all select chr(120) from {from}"
                ),
                format!("select coalesce({text}, 'é') from {from} union all (select lower('X') from {from})"),
            ] {
                let mut rows = ask(&mut c, &sql);
                rows.sort_unstable_by_key(|row| row == "x");
                assert_eq!(rows, [shown, "x"], "{sql}");
            }
            let before = format!("select lag({text}, 1, 'ab') over (order by u.id) from {from}");
            assert_eq!(ask(&mut c, &before), ["ab"], "{before}");
        }
        for (time, shown) in
            [("z::timestamp", "2020-01-02 03:04:05"), ("z::date::timestamp", "2020-01-02 00:00:00")]
        {
            for sql in [
                format!("select {time} from {from}"),
                format!("select {time} from {from} union all select {time} from {from} where false"),
                format!("select t from (select z::date d, {time} t from {from}) q"),
                format!("select max({time}) from {from}"),
                format!("select greatest({time}, {time}) from {from}"),
            ] {
                assert_eq!(ask(&mut c, &sql), [shown], "{sql}");
                assert!(!is_zoned(&mut c, &sql), "{sql}");
            }
        }
        let none = format!(
            "select null::timestamptz::date::timestamp from {from} union all select '2020-01-01'::timestamp"
        );
        assert!(!is_zoned(&mut c, &none), "{none}");
        let mut rows = ask(&mut c, &none);
        rows.sort_unstable();
        assert_eq!(rows, ["2020-01-01 00:00:00", "NULL"], "{none}");
        let sql = format!("select lower(u::text) || 'x', length(u::text) from {from}");
        assert_eq!(ask(&mut c, &sql), [format!("{uuid}x|36")], "{sql}");
    }
}

/// Goal: a plan without optimization uses our functions, too. Method: `date_trunc`, which
/// DataFusion also has, in sessions that start without the optimizer.
#[test]
fn unoptimized_plans_have_our_functions() {
    for _ in 0..8 {
        let mut c = database().connect();
        run(&mut c, "set cairn.direct_path = off");
        run(&mut c, "set cairn.optimizer = off");
        let sql = "select date_trunc('month', x) from (values ('2020-02-03 00:00:00+00'::timestamptz)) v (x)";
        assert!(is_zoned(&mut c, sql), "{sql}");
        run(&mut c, "create table t (a int primary key, b int)");
        run(&mut c, "insert into t values (1, null), (2, 3)");
        assert_eq!(ask(&mut c, "select a from t where not (a in (select b from t))"), [""; 0]);
    }
}

/// Goal: computed items of VALUES keep all of their digits, whatever types the other rows have.
/// Method: quotients next to integers, NULL, untyped literals and doubles, alone and in an INSERT.
#[test]
fn computed_items_of_values_have_all_digits() {
    let mut c = database().connect();
    let sixths = "666666666666";
    for (rows, expected) in [
        ("(0.001 / 1.5)", vec![sixths]),
        ("(0.001 / 1.5), (0)", vec![sixths, "0"]),
        ("(0), (0.001::numeric / 1.5), (null)", vec!["0", sixths, "NULL"]),
        ("(1), (0.001 / (select 1.5))", vec!["1000000000000000", sixths]),
        ("('1'), (0.001 / 1.5)", vec!["1000000000000000", sixths]),
        ("(1e0), (0.001 / 1.5)", vec!["1000000000000000", sixths]),
        // An explicit cast rounds.
        ("((0.001 / 1.5)::numeric(12, 3)), (2.5::numeric(12, 3))", vec!["1000000000000", "2500000000000000"]),
        ("((0.001 / 1.5)::numeric(12, 4)), (1 + 1.5)", vec!["700000000000", "2500000000000000"]),
        ("(0.1234567890123456789 * 0.1), (12)", vec!["12345678901234", "12000000000000000"]),
    ] {
        let sql = format!("select trunc(x * 1000000000000000)::numeric(30, 0) from (values {rows}) v (x)");
        assert_eq!(ask(&mut c, &sql), expected, "{sql}");
    }
    run(&mut c, "create table n (k int primary key, x numeric(30, 18))");
    run(&mut c, "insert into n values (1, 0.001 / 1.5), (2, 3), (3, null), (4, 1 + 0.25)");
    assert_eq!(
        ask(&mut c, "select trunc(x * 1000000000000000)::bigint from n order by k"),
        [sixths, "3000000000000000", "NULL", "1250000000000000"]
    );
}

/// Goal: rows of VALUES come in the written order even if one has a subquery, and INSERT numbers
/// them in this order. Method: many rows, by themselves, under a name, and into a table with a
/// serial key.
#[test]
fn values_with_subqueries_keep_their_order() {
    let mut c = database().connect();
    run(&mut c, "create table s (id serial primary key, x int)");
    let rows: Vec<String> = (1..=20)
        .map(|row| if row % 2 == 0 { format!("({row})") } else { format!("((select {row}))") })
        .collect();
    let expected: Vec<String> = (1..=20).map(|row| row.to_string()).collect();
    for _ in 0..5 {
        assert_eq!(ask(&mut c, &format!("values {}", rows.join(", "))), expected);
        assert_eq!(ask(&mut c, &format!("select x from (values {}) v (x)", rows.join(", "))), expected);
        run(&mut c, "truncate s restart identity");
        run(&mut c, &format!("insert into s (x) values {}", rows.join(", ")));
        assert_eq!(ask(&mut c, "select x from s order by id"), expected);
    }
    let sum = "select (select sum(v.x) from (values (o.x), ((select o.x + 1)), (2)) v (x)) from s o where x < 3 order by x";
    assert_eq!(ask(&mut c, sum), ["5", "7"]);
}

/// Goal: CASE of numbers of several types has the type that holds all of them, whichever comes
/// first. Method: quotients, sums, averages and comparisons of such, in general queries and on the
/// direct path, and as values of INSERT.
#[test]
fn cases_have_the_type_of_all_results() {
    let mut c = database().connect();
    run(&mut c, "create table k (id int primary key, b boolean, n numeric(12, 3))");
    run(&mut c, "insert into k values (1, true, null), (2, false, null), (3, null, null)");
    for from in ["k", "k cross join (values (1)) v (i)"] {
        for case in [
            "case when b then 2 else 0.001::numeric end",
            "case when b then 2::bigint when not b then 0.001 else 0.001::numeric(12, 3) end",
            "case b when true then 2::smallint else 0.001::numeric(38, 3) end",
        ] {
            for (of, expected) in [
                (format!("({case} / 2) * 2000"), ["2000", "1", "1"]),
                (format!("{case} * 1.5 * 2000"), ["6000", "3", "3"]),
                (format!("({case} + 1) * 1000 - 1000"), ["2000", "1", "1"]),
                (format!("round(1 / {case})"), ["1", "1000", "1000"]),
                (format!("avg({case}) over (partition by k.id) * 1000"), ["2000", "1", "1"]),
                (format!("sum({case}) over (partition by k.id) * 1000"), ["2000", "1", "1"]),
            ] {
                let sql = format!("select trunc({of})::int from {from} order by k.id");
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
            let sql = format!("select k.id from {from} where {case} = '0.001' order by k.id");
            assert_eq!(ask(&mut c, &sql), ["2", "3"], "{sql}");
        }
    }
    // Quotients among the results keep their digits.
    for from in ["k", "k cross join (values (1)) v (i)"] {
        for case in [
            "case when true then 0.001::numeric / 1.5::numeric(12, 3) when b then 0::numeric end",
            "case when b is null then 0.001::numeric / 1.5 else k.n end",
            "case k.id when 3 then 0.001 / 1.5::numeric(12, 3) else 1 end",
        ] {
            let sql = format!(
                "select {case} = 0.001::numeric / 1.5, ({case} / 2)::text from {from} where k.id = 3"
            );
            assert_eq!(ask(&mut c, &sql), ["t|0.00033333333333333334"], "{sql}");
        }
    }
    run(&mut c, "update k set n = case when b then 2 else 0.001 end / 1");
    assert_eq!(ask(&mut c, "select n from k order by id"), ["2.000", "0.001", "0.001"]);
    run(
        &mut c,
        "insert into k values (4, null, case null::bigint when 7 then 1 else 0.001::numeric end), (5, true, 0)",
    );
    assert_eq!(ask(&mut c, "select n from k where id > 3 order by id"), ["0.001", "0.000"]);
}
