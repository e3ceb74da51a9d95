//! Goal: functions, operators and casts have PostgreSQL 15's results, for constants on the direct
//! and the general path, and for columns. Method: tables of expressions with its results, run on
//! both paths; `testing/differential/families.py` compares many more on both servers.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, rows, run};

/// A join of two one-row tables, which forces the general path.
const GENERAL: &str = "from (values (1)) p(one) join (values (1)) q(one) on p.one = q.one";

/// Returns the text of an expression's value, or the code of its error, and checks that both paths
/// agree.
#[track_caller]
fn both(c: &mut Connection, expr: &str) -> String {
    let mut answer = |sql: &str| match rows(c, sql, &[]) {
        Ok(rows) => rows.join(" "),
        Err(error) => error.sqlstate().to_owned(),
    };
    let direct = answer(&format!("select {expr}"));
    assert_eq!(answer(&format!("select {expr} {GENERAL}")), direct, "in general: {expr}");
    direct
}

#[track_caller]
fn check(all: &[(&str, &str)]) {
    let mut c = database().connect();
    for (expr, expected) in all {
        assert_eq!(both(&mut c, expr), *expected, "{expr}");
    }
}

/// Numbers outside the domain of a function, and results out of range, are errors.
#[test]
fn numbers_outside_of_a_domain() {
    check(&[
        ("power(-8, 1 / 3.0)", "2201F"),
        ("power((-8)::float8, 0.5::float8)", "2201F"),
        ("(-8)::float8 ^ 0.5::float8", "2201F"),
        ("power(0::numeric, -1)", "2201F"),
        ("power(2::float8, 2000::float8)", "22003"),
        ("power(2, 10)", "1024"),
        ("log(-1.5)", "2201E"),
        ("log(0)", "2201E"),
        ("ln((-1)::numeric)", "2201E"),
        ("ln(0::float8)", "2201E"),
        ("log(1::numeric, 2::numeric)", "22012"),
        ("log(2::numeric, 0::numeric)", "2201E"),
        ("log(100)", "2"),
        ("sqrt((-1)::numeric)", "2201F"),
        ("exp(1000::float8)", "22003"),
        ("exp((-1000)::float8)", "22003"),
        ("asin(2::float8)", "22003"),
        ("atanh(1::float8)", "Infinity"),
        ("atanh(2::float8)", "22003"),
        ("acosh(0.5::float8)", "22003"),
        ("sin('inf'::float8)", "22003"),
        ("sind(30::float8)", "0.5"),
        ("tand(45::float8)", "1"),
        ("degrees(1e308::float8)", "22003"),
        ("factorial(-1)", "22003"),
        ("factorial(5)", "120"),
        ("gcd((-2147483648)::int, 0)", "22003"),
        ("lcm(2147483647, 2147483646)", "22003"),
        ("gcd(12, 18)", "6"),
        ("sign('nan'::float8)", "0"),
        ("'10e-70'::float4", "22003"),
        ("'10e70'::float4", "22003"),
        ("1e300::float8::float4", "22003"),
        ("1e-300::float8::float4", "22003"),
        ("40000::smallint", "22003"),
        ("3000000000::int", "22003"),
        ("1e15::float8::text", "1e+15"),
        ("~ 5", "-6"),
        ("1::smallint << 15", "-32768"),
        ("1::smallint << 16", "0"),
        ("1 << 33", "2"),
        ("|/ 16::float8", "4"),
        ("@ -5", "5"),
    ]);
}

/// Regular expressions are PostgreSQL's: lines, escapes, options, replacements.
#[test]
fn regular_expressions() {
    check(&[
        ("E'a\\nb' ~ 'a.b'", "t"),
        ("E'a\\nb' ~ '^b'", "f"),
        ("E'a\\nb' ~ '(?n)^b'", "t"),
        ("E'a\\nb' ~ '(?n)a.b'", "f"),
        ("E'a\\nb' ~ '(?w)a.b'", "t"),
        ("E'a\\nb' ~ '(?p)^b'", "f"),
        ("E'a\\n' ~ 'a$'", "f"),
        ("'aB' ~* 'ab'", "t"),
        ("'aB' !~* 'ab'", "f"),
        ("'axb' ~ '***=a.b'", "f"),
        ("'foo bar' ~ '\\mbar'", "t"),
        ("'foo' ~ '[[:<:]]foo[[:>:]]'", "t"),
        ("'a{' ~ 'a{'", "t"),
        ("'b' ~ '[a&&b]'", "t"),
        ("'a' ~ '('", "2201B"),
        ("'a' ~ 'a**'", "2201B"),
        ("'a' ~ '*a'", "2201B"),
        ("'abcabc' ~ '^(abc)\\1$'", "0A000"),
        ("regexp_replace('foobarbaz', 'b(..)', 'X\\1\\&$1', 'g')", "fooXarbar$1Xazbaz$1"),
        ("regexp_replace('abc', 'b*', '-', 'g')", "-a--c-"),
        ("regexp_replace('foobarbaz', 'b..', 'X', 1, 2)", "foobarX"),
        ("regexp_replace('a', 'a', 'b', 'z')", "22023"),
        ("regexp_match('foobar', '(x)?(b)')", "{NULL,b}"),
        ("regexp_match('foobar', 'b', 'g')", "22023"),
        ("regexp_count('abc', '')", "4"),
        ("regexp_instr('foobar', 'o(b)', 1, 1, 0, 'i', 1)", "4"),
        ("regexp_substr('foobar', 'o.')", "oo"),
        ("regexp_split_to_array('a,b;c', '[,;]')", "{a,b,c}"),
        ("regexp_split_to_array('abc', '')", "{a,b,c}"),
        ("substring('foobar' from 'o(.)b')", "o"),
        ("substring('foobar' from '%#\"o_b#\"%' for '#')", "oob"),
        ("'abc' similar to '%(b|d)%'", "t"),
        ("'abc' similar to 'a.c'", "f"),
        ("'ab' like 'ab\\'", "f"),
        ("'abc' like 'ab\\'", "22025"),
        ("'abc' like 'abc#' escape '#'", "f"),
        ("'abc' like any (array['x%', 'a%'])", "t"),
        ("'abc' ~ any (array['x', '^a'])", "t"),
    ]);
}

/// Rows are compared column by column, and printed as in PostgreSQL.
#[test]
fn rows_of_columns() {
    check(&[
        ("row(1, null::int) = row(1, null::int)", "NULL"),
        ("row(1, null::int) = row(2, null::int)", "f"),
        ("row(1, null::int) <> row(1, null::int)", "NULL"),
        ("row(1, null::int) < row(1, 2)", "NULL"),
        ("row(1, 2) < row(1, 3)", "t"),
        ("row(1, null::int) in (row(1, 2), row(3, 4))", "NULL"),
        ("row(1, null::int) is not distinct from row(1, null::int)", "t"),
        ("row(1, 2) = row(1)", "42601"),
        ("row(1, 'a')", "(1,a)"),
        ("row(1, 'a b', null)", "(1,\"a b\",)"),
        ("row('a\"b', '')", "(\"a\"\"b\",\"\")"),
        ("row(row(1, 2), 3)", "(\"(1,2)\",3)"),
        ("row(true, '2024-01-02'::date)", "(t,2024-01-02)"),
        ("row(1, 'a')::text", "(1,a)"),
        ("array[row(1, 2)]", "{\"(1,2)\"}"),
    ]);
}

/// There is one zero and one NaN, whatever their bits.
#[test]
fn one_zero() {
    let mut c = database().connect();
    run(&mut c, "create table f (k int primary key, x float8, y float4)");
    run(
        &mut c,
        "insert into f values (1, '-0', '-0'), (2, 0, 0), (3, 'nan', 'nan'), (4, 1, 1), (5, '-0', 0)",
    );
    for (sql, expected) in [
        ("select rank() over (order by x) from f order by k", "1 1 5 4 1"),
        ("select count(*) over (partition by y) from f order by k", "3 3 1 1 3"),
        (
            "select sum(k) over (order by x range between unbounded preceding and current row) from f order by k",
            "8 8 15 12 8",
        ),
        ("select count(distinct x), count(distinct y) from f", "3|3"),
        ("select k from f where x not in (0, 2, 3, 4, 5, 6) order by k", "3 4"),
        ("select k from f where x in ('-0', 'nan') order by k", "1 2 3 5"),
        (
            "select count(*) from (select k, row_number() over () n from f where x not in (0, 2, 3, 4, 5)) q",
            "2",
        ),
        ("select count(*) from f a join f b on a.x = b.y", "11"),
        ("select k, nullif(x, 0) is null from f where k < 4 order by k", "1|t 2|t 3|f"),
        (
            "select case x when 0 then 'zero' else 'other' end from (select x, k, row_number() over () n from f) q order by k limit 3",
            "zero zero other",
        ),
    ] {
        assert_eq!(ask(&mut c, sql).join(" "), expected, "{sql}");
    }
    check(&[
        ("'-0'::float8 in (0::float8, 1)", "t"),
        ("'-0'::float4 in ('0'::float4, 1)", "t"),
        ("nullif('-0'::float8, 0::float8)", "NULL"),
    ]);
}

/// Results of timestamps with a time zone keep the zone.
#[test]
fn zones_stay() {
    let mut c = database().connect();
    run(&mut c, "create table z (k int, m timestamptz, p timestamp)");
    run(&mut c, "insert into z values (1, '2024-01-02 03:04:05+02', '2024-01-01 00:00')");
    for (expr, is_zoned) in [
        ("greatest(m, m)", true),
        ("least(m, p)", true),
        ("coalesce(m, p)", true),
        ("nullif(m, '2020-01-01')", true),
        ("case when k = 1 then m else p end", true),
        ("date_bin('15 minutes', m, '2024-01-01')", true),
        ("date_bin('15 minutes', p, timestamp '2024-01-01')", false),
        ("date_trunc('day', m)", true),
        ("date_trunc('day', m, 'Europe/Berlin')", true),
        ("m::timestamp", false),
        ("max(m) over ()", true),
        ("(array[m])[1]", true),
    ] {
        for general in ["", " join (values (1)) v(one) on v.one = z.k"] {
            let sql = format!("select {expr} from z{general}");
            let rows = c.query(&sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
            let kinds: Vec<bool> = rows.columns().iter().map(|column| column.kind.is_zoned).collect();
            assert_eq!(kinds, [is_zoned], "{sql}");
        }
    }
    assert_eq!(ask(&mut c, "select array[m]::text from z"), ["{\"2024-01-02 01:04:05+00\"}"]);
    assert_eq!(ask(&mut c, "select date_bin('15 minutes', m, '2024-01-01') from z"), ["2024-01-02 01:00:00"]);
    assert_eq!(fails(&mut c, "select date_bin('0 minutes', m, m) from z"), "22008");
}

/// If columns of a derived table have the same name, a reference to it is ambiguous; the columns
/// still exist.
#[test]
fn names_that_are_there_twice() {
    let mut c = database().connect();
    run(&mut c, "create table n (a int, b int)");
    run(&mut c, "insert into n values (1, 2), (4, 5)");
    for sql in [
        "select x from (select a as x, b as x from n) s",
        "select s.x from (select a as x, b as x from n) s where true",
        "with s as (select a as x, b as x from n) select x from s",
        "select a from (select n.a, m.a from n join n m on n.a = m.a) s",
        "select a from n, n m",
    ] {
        assert_eq!(fails(&mut c, sql), "42702", "{sql}");
    }
    assert_eq!(ask(&mut c, "select * from (select a as x, b as x from n) s order by 1"), ["1|2", "4|5"]);
    assert_eq!(ask(&mut c, "select count(*) from (select a as x, b as x from n) s"), ["2"]);
    assert_eq!(ask(&mut c, "with s(x, y) as (select a, a from n) select y from s order by 1"), ["1", "4"]);
    assert_eq!(ask(&mut c, "select +a, a, -a from n order by 2"), ["1|1|-1", "4|4|-4"]);
    assert_eq!(ask(&mut c, "select bool_and(a > 0), every(a > 0) from n"), ["t|t"]);
    assert_eq!(fails(&mut c, "select 1 from n x join n x on true"), "42712");
    assert_eq!(fails(&mut c, "create table twice as select a, b as a from n"), "42701");
}

/// Aggregates, window functions and set-returning functions are rejected where they are not
/// allowed, and a number must not be directly followed by a word.
#[test]
fn places_of_functions() {
    let mut c = database().connect();
    run(&mut c, "create table p (k int primary key, a int)");
    run(&mut c, "insert into p values (1, 2), (2, 3)");
    for (sql, code) in [
        ("update p set a = row_number() over ()", "42P20"),
        ("update p set a = sum(a)", "42803"),
        ("update p set a = generate_series(1, 2)", "0A000"),
        ("update p set a = 1 returning sum(a)", "42803"),
        ("delete from p where row_number() over () = 1", "42P20"),
        ("insert into p values (10, sum(1))", "42803"),
        ("select a from p where sum(a) > 1", "42803"),
        ("select a from p group by a having row_number() over () > 1", "42P20"),
        ("select 1 from p group by row_number() over ()", "42P20"),
        ("select count(*) from p join p q on sum(p.a) > 1", "42803"),
        ("select a from p limit sum(1)", "42803"),
        ("select a from p limit a", "42P10"),
        ("select a from p order by 2", "42P10"),
        ("select sum(sum(a)) from p", "42803"),
        ("select row_number() over (order by row_number() over ()) from p", "42P20"),
        ("select row_number() from p", "42809"),
        ("select abs(a) over () from p", "42809"),
        ("create table bad (a int default sum(1))", "42803"),
        ("create table bad (a int check (row_number() over () > 1))", "42P20"),
        (
            "with recursive r(n) as (select 1 union all select a.n + 1 from r a join r b on a.n = b.n) select * from r",
            "42P19",
        ),
        ("select 123abc", "42601"),
        ("select 0x10", "42601"),
        ("select 1_000", "42601"),
        ("select 1.5e", "42601"),
        ("alter table p validate constraint nothing", "42704"),
        ("alter table p validate constraint p_pkey", "42809"),
    ] {
        assert_eq!(fails(&mut c, sql), code, "{sql}");
    }
    assert_eq!(ask(&mut c, "select sum(sum(a)) over () from p"), ["5"]);
    assert_eq!(ask(&mut c, "select 1 a, 2 as \"2b\""), ["1|2"]);
    assert_eq!(ask(&mut c, "select a from p order by a"), ["2", "3"]);
}

/// Window functions at positions without a row, and WITH ORDINALITY.
#[test]
fn windows_and_numbers_of_rows() {
    let mut c = database().connect();
    run(&mut c, "create table w (k int primary key, v int)");
    run(&mut c, "insert into w values (1, 10), (2, 20)");
    assert_eq!(ask(&mut c, "select lag(v, null) over (order by k) from w"), ["NULL", "NULL"]);
    assert_eq!(ask(&mut c, "select lead(v, null, 5) over (order by k) from w"), ["NULL", "NULL"]);
    assert_eq!(ask(&mut c, "select lag(v, 1, 5) over (order by k) from w order by k"), ["5", "10"]);
    assert_eq!(ask(&mut c, "select ntile(null) over (order by k) from w"), ["NULL", "NULL"]);
    let numbered = "from generate_series(5, 7) with ordinality";
    assert_eq!(ask(&mut c, &format!("select * {numbered}")), ["5|1", "6|2", "7|3"]);
    assert_eq!(ask(&mut c, &format!("select b, a {numbered} as g(a, b) where b > 1")), ["2|6", "3|7"]);
    let unnested = "select * from unnest(array['x', 'y']) with ordinality as u(t, n) order by n desc";
    assert_eq!(ask(&mut c, unnested), ["y|2", "x|1"]);
}

/// Texts computed at run time are parsed like literals.
#[test]
fn casts_of_computed_texts() {
    let mut c = database().connect();
    run(&mut c, "create table t (k int, b text, l text)");
    run(&mut c, "insert into t values (1, '\\x4142', '{}'), (2, 'a\\\\b', '{1,NULL}')");
    assert_eq!(ask(&mut c, "select b::bytea from t order by k"), ["\\x4142", "\\x615c62"]);
    let joined = "from t join (values (1)) v(one) on true order by k";
    assert_eq!(ask(&mut c, &format!("select b::bytea {joined}")), ["\\x4142", "\\x615c62"]);
    assert_eq!(ask(&mut c, &format!("select l::int[] {joined}")), ["{}", "{1,NULL}"]);
    assert_eq!(ask(&mut c, &format!("select array_to_string(l::int[], ',', '*') {joined}")), ["", "1,*"]);
    check(&[
        ("('\\x' || '41')::bytea", "\\x41"),
        ("'\\x414'::bytea", "22023"),
        ("'{}'::text[]", "{}"),
        ("'{\"a b\",c,NULL,\"NULL\"}'::text[]", "{\"a b\",c,NULL,\"NULL\"}"),
        ("'{{1,2},{3,4}}'::int[]", "{{1,2},{3,4}}"),
        ("'{{1,2},{3}}'::int[]", "22P02"),
        ("'{1,x}'::int[]", "22P02"),
        ("'{t,f}'::bool[]", "{t,f}"),
        ("array_to_string(array[1, null], ',', '*')", "1,*"),
        ("array_to_string(array[true, null], ',', '*')", "t,*"),
        ("concat_ws('#', true, false)", "t#f"),
        ("concat_ws('#', 1, null, 'x')", "1#x"),
        ("'\\x41'::bytea || 'B'", "\\x4142"),
        ("1::int::date", "42846"),
    ]);
    assert_eq!(ask(&mut c, "select string_agg(b::bytea, '\\x2c' order by k) from t"), ["\\x41422c615c62"]);
    assert_eq!(
        ask(&mut c, "select string_agg(distinct x, ',') from (values ('b'), ('a'), ('b')) v(x)"),
        ["a,b"]
    );
    assert_eq!(fails(&mut c, &format!("select k = b {joined}")), "42883");
}

/// Dates and intervals from their parts, their precision, and the extraction of parts.
#[test]
fn parts_of_time() {
    check(&[
        ("make_date(-44, 3, 15)", "0044-03-15 BC"),
        ("make_date(0, 3, 15)", "22008"),
        ("make_date(2024, 2, 30)", "22008"),
        ("make_time(1, 2, 3.5)", "01:02:03.5"),
        ("make_timestamp(-44, 3, 15, 0, 0, 0)", "0044-03-15 00:00:00 BC"),
        ("make_interval(years => 1, secs => 2.5)", "1 year 00:00:02.5"),
        ("'1.6 seconds'::interval::interval(0)", "00:00:02"),
        ("interval '1 day 02:03:04.5678' second(2)", "1 day 02:03:04.57"),
        ("interval '1 day 02:03:04' hour to minute", "1 day 02:03:00"),
        ("interval '1-2' year to month", "1 year 2 mons"),
        ("interval '1:2' minute to second", "00:01:02"),
        ("interval 'P1Y2M3DT4H5M6S'", "1 year 2 mons 3 days 04:05:06"),
        ("extract(century from date '0044-03-15 BC')", "-1"),
        ("extract(decade from interval '-25 years')", "-2"),
        ("extract(microseconds from interval '-1 day -02:03:04.5')", "-4500000"),
        ("extract(hour from date '2024-01-01')", "0A000"),
        ("extract(year from date '2025-01-01') / 2 > 1012", "t"),
        ("date '2024-01-31' - 2147483647", "22008"),
        ("date_trunc('quarter', interval '1 year 5 months')", "1 year 3 mons"),
    ]);
}

/// Comments are stored, follow renamed objects, and are dropped with them.
#[test]
fn comments() {
    let mut c = database().connect();
    run(&mut c, "create table t (a int primary key, b int)");
    run(&mut c, "create view v as select a from t");
    run(&mut c, "comment on table t is 'all of them'");
    run(&mut c, "comment on column t.b is 'it''s b'");
    run(&mut c, "comment on view v is 'a view'");
    run(&mut c, "comment on index t_pkey is 'the key'");
    let about = |c: &mut Connection| {
        ask(c, "select obj_description('t'::regclass, 'pg_class'), col_description('t'::regclass, 2)")
    };
    assert_eq!(about(&mut c), ["all of them|it's b"]);
    assert_eq!(ask(&mut c, "select count(*) from pg_description"), ["4"]);
    run(&mut c, "alter table t rename column b to c");
    assert_eq!(about(&mut c), ["all of them|it's b"]);
    run(&mut c, "alter table t add column d int");
    run(&mut c, "comment on column t.d is 'd'");
    run(&mut c, "alter table t drop column c");
    assert_eq!(about(&mut c), ["all of them|d"]);
    run(&mut c, "comment on table t is null");
    assert_eq!(about(&mut c), ["NULL|d"]);
    run(&mut c, "drop view v");
    run(&mut c, "drop table t");
    run(&mut c, "create table t (a int, d int)");
    assert_eq!(about(&mut c), ["NULL|NULL"]);
    assert_eq!(fails(&mut c, "comment on table nothing is 'x'"), "42P01");
    assert_eq!(fails(&mut c, "comment on column t.nothing is 'x'"), "42703");
    assert_eq!(fails(&mut c, "comment on view t is 'x'"), "42809");
}

/// Messages in DataFusion's own words do not reach the client.
#[test]
fn words_of_the_engine() {
    let mut c = database().connect();
    run(&mut c, "create table t (a int, b text, d date)");
    run(&mut c, "insert into t values (1, 'x', '2024-01-01')");
    for (sql, code) in [
        ("select nosuch(a) from t", "42883"),
        ("select round(t.b) from t join t u on true", "42883"),
        ("select a + d + b from t join t u using (a)", "42702"),
        ("select t.a + t.d + t.b from t join t u on true", "42883"),
        ("select a from t union select a, b from t", "42601"),
        ("select a, count(*) from t", "42803"),
        ("select a from t group by b", "42803"),
        ("select (select a, b from t)", "42601"),
        ("select cast(b as int) from t join (values (1)) v(x) on true", "22P02"),
    ] {
        let error = rows(&mut c, sql, &[]).err().unwrap_or_else(|| panic!("{sql} worked"));
        assert_eq!(error.sqlstate(), code, "{sql}: {error}");
        for word in ["Int32", "Utf8", "Projection", "Schema", "planning", "Physical", "Arrow", "DataFusion"] {
            assert!(!error.message().contains(word), "{sql}: {error}");
        }
    }
}

/// Results of `floor` and the like have types compatible with their context, and the date of a
/// timestamp has no zone.
#[test]
fn types_of_results_agree_with_what_is_beside_them() {
    let mut c = database().connect();
    run(&mut c, "create table n (id int primary key, c numeric(12,3))");
    run(&mut c, "insert into n values (1, 2), (2, 2.5), (3, -1.25), (4, null)");
    let beside = "from n a join n b using (id) order by a.id";
    for (of, expected) in [
        ("a.c > floor(b.c)", ["f", "t", "t", "NULL"]),
        ("coalesce(floor(a.c), b.c, 7)", ["2.000", "2.000", "-2.000", "7.000"]),
        ("case when a.id > 2 then ceil(b.c) else a.c end", ["2.000", "2.500", "-1.000", "NULL"]),
        ("trunc(a.c, 1) = b.c", ["t", "t", "f", "NULL"]),
        ("greatest(floor(a.c), b.c)", ["2.000", "2.500", "-1.250", "NULL"]),
        ("floor(a.c)", ["2", "2", "-2", "NULL"]),
    ] {
        assert_eq!(ask(&mut c, &format!("select {of} {beside}")), expected, "{of}");
    }
    let moment =
        "select '1999-12-31 23:59:59+00'::timestamptz::date::timestamp from n a left join n b using (id)";
    assert_eq!(ask(&mut c, moment), ["1999-12-31 00:00:00"; 4]);
}

/// Rounded integers are numerics, and a timestamp with a time zone plus an interval keeps the zone.
#[test]
fn results_of_general_queries_have_the_types_of_direct_ones() {
    let mut c = database().connect();
    run(&mut c, "create table n (id int primary key)");
    run(&mut c, "insert into n values (1)");
    let moment = "'1999-12-31 23:59:59+00'::timestamptz";
    for (of, expected) in [
        ("round(2, 2)", "2.00"),
        ("trunc(2, 2)", "2.00"),
        ("round(id, 1)", "1.0"),
        ("trunc(id::bigint, 1)", "1.0"),
        ("trunc(12345, -2)", "12300"),
        ("round(12355, -1)", "12360"),
    ] {
        for from in ["n", "n a join n b using (id)"] {
            assert_eq!(ask(&mut c, &format!("select {of} from {from}")), [expected], "{of} from {from}");
        }
    }
    for of in [
        format!("case id when 7 then null::timestamptz else {moment} end - '1 month'::interval"),
        format!("coalesce({moment}, null) - '1 month'::interval"),
        format!("'-1 month'::interval + greatest({moment}, null)"),
    ] {
        let expected = ["1999-11-30 23:59:59+00"];
        for from in ["n", "n a join n b using (id)"] {
            let sql = format!("select ({of})::text from {from}");
            assert_eq!(ask(&mut c, &sql), expected, "{of} from {from}");
        }
    }
}
