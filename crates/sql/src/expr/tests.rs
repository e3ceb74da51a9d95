//! Goal: expressions have the same values as in PostgreSQL. Method: tables of examples from
//! PostgreSQL's documentation.

use sqlparser::ast::{SelectItem, SetExpr, Statement};

use super::compile::NoContext;
use super::*;
use crate::datum::Datum;
use crate::error::Error;
use crate::syntax::{Plain, one};

fn value(sql: &str) -> Result<Datum, Error> {
    let text = format!("select {sql}");
    let parsed = one(&text)?;
    let Plain::Tree(Statement::Query(query)) = &*parsed.statement else { panic!("{sql}") };
    let SetExpr::Select(select) = &*query.body else { panic!("{sql}") };
    let SelectItem::UnnamedExpr(expr) = &select.projection[0] else { panic!("{sql}") };
    let (scope, mut params) = (Scope::empty(), Vec::new());
    let (node, _) = Compiler::new(&scope, &mut params).output(expr).map_err(|failure| match failure {
        Failure::Error(error) => error,
        Failure::Unknown => panic!("unknown: {sql}"),
    })?;
    node.eval(&Env::new(Cells::None, &[], &NoContext)).map(Val::into_datum)
}

/// Values.
#[test]
fn values() {
    for (sql, expected) in [
        ("1 + 2 * 3", "7"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("-2147483648", "-2147483648"),
        ("1.5 + 2", "3.5"),
        ("10.0 / 3", "3.3333333333333333"),
        ("1 / 3.0", "0.33333333333333333333"),
        ("2 / 3.0", "0.66666666666666666667"),
        ("1000000 / 7.0", "142857.142857142857"),
        ("1 / 1000000000000.0000000000", "0.00000000000100000000000000000000"),
        ("1 / 0.50000000000000000000", "2.00000000000000000000"),
        ("1.10 * 2.5", "2.750"),
        ("7.5 % 2", "1.5"),
        ("0.1 + 0.2 = 0.3", "t"),
        ("2 ^ 10", "1024"),
        ("5 # 3", "6"),
        ("1 << 4 | 1", "17"),
        ("'a' || 'b' || 1", "ab1"),
        ("null is null", "t"),
        ("null = null", ""),
        ("null and false", "f"),
        ("null or true", "t"),
        ("not null", ""),
        ("1 is distinct from null", "t"),
        ("null is not distinct from null", "t"),
        ("2 in (1, null, 2)", "t"),
        ("3 in (1, null)", ""),
        ("3 not in (1, 2)", "t"),
        ("2 between 1 and 3", "t"),
        ("2 not between 1 and 3", "f"),
        ("'abc' like 'a%'", "t"),
        ("'abc' like '_b_'", "t"),
        ("'a%c' like 'a\\%c'", "t"),
        ("'abc' like 'a\\%c'", "f"),
        ("'aXbXc' like '%X%c'", "t"),
        ("'ABC' ilike 'a_c'", "t"),
        ("'ABC' ilike 'aXb%' escape 'X'", "t"),
        ("'A%C' ilike 'ax%c' escape 'x'", "t"),
        ("'AbC' ilike 'aX%c' escape 'X'", "f"),
        ("'A\\C' ilike 'a\\c' escape 'X'", "t"),
        ("'AXC' ilike 'aXXc' escape 'X'", "t"),
        ("'' like '%'", "t"),
        ("'' like '_'", "f"),
        ("case when 1 = 2 then 'a' when true then 'b' end", "b"),
        ("case 3 when 1 then 'a' else 'z' end", "z"),
        ("coalesce(null, 2, 3)", "2"),
        ("nullif(1, 1)", ""),
        ("greatest(1, null, 3.5)", "3.5"),
        ("least('b', 'a')", "a"),
        ("'42'::int + 1", "43"),
        ("cast(2.5 as int)", "3"),
        ("cast(2.5::float8 as int)", "2"),
        ("'abcdef'::varchar(3)", "abc"),
        ("true::text", "true"),
        ("1::boolean", "t"),
        ("date '2024-01-31' + interval '1 month'", "2024-02-29 00:00:00"),
        ("date '2024-03-01' - date '2024-02-01'", "29"),
        ("date '2024-03-01' - 1", "2024-02-29"),
        ("timestamp '2024-01-01 10:00' - timestamp '2023-12-31 09:30'", "1 day 00:30:00"),
        ("interval '1 day' * 1.5", "1 day 12:00:00"),
        ("time '23:30' + interval '1 hour'", "00:30:00"),
        ("extract(year from date '2024-02-29')", "2024"),
        ("extract(epoch from timestamp '1970-01-02')", "86400.000000"),
        ("extract(dow from date '2024-02-29')", "4"),
        ("extract(week from date '2021-01-03')", "53"),
        ("extract(second from time '01:02:03.5')", "3.500000"),
        ("date_trunc('month', timestamp '2024-02-29 12:00')", "2024-02-01 00:00:00"),
        ("lower('ÄB') || upper('c')", "äbC"),
        ("length('äö')", "2"),
        ("octet_length('äö')", "4"),
        ("substring('hello' from 2 for 3)", "ell"),
        ("substr('hello', 0, 3)", "he"),
        ("trim('  x ')", "x"),
        ("trim(both 'xy' from 'yxabxy')", "ab"),
        ("replace('abab', 'a', 'c')", "cbcb"),
        ("position('l' in 'hello')", "3"),
        ("left('hello', -2)", "hel"),
        ("right('hello', 2)", "lo"),
        ("lpad('7', 3, '0')", "007"),
        ("rpad('abc', 2)", "ab"),
        ("split_part('a,b,c', ',', -1)", "c"),
        ("concat('a', null, 1)", "a1"),
        ("abs(-5)", "5"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.5::float8)", "2"),
        ("round(2.345, 2)", "2.35"),
        ("round(1250, -2)", "1300"),
        ("trunc(-2.7)", "-2"),
        ("trunc(2.789, 1)", "2.7"),
        ("floor(-2.5)", "-3"),
        ("ceil(-2.5)", "-2"),
        ("ceil(2.1)", "3"),
        ("sign(-3.5)", "-1"),
        ("sqrt(16)", "4"),
        ("initcap('hELLO wORLD')", "Hello World"),
        ("initcap('ßA ǆB')", "ßa Ǆb"),
        ("upper('straße ǰ ÿ')", "STRAßE ǰ Ÿ"),
        ("lower('ΣΑΣ İ')", "σασ i"),
        ("reverse('abc')", "cba"),
        ("'\\x41'::bytea", "\\x41"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("1e3", "1000"),
        ("'NaN'::float8 = 'NaN'::float8", "t"),
        ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "t"),
    ] {
        match value(sql) {
            Ok(value) => assert_eq!(value.to_string(), expected, "{sql}"),
            Err(error) => panic!("{sql}: {error}"),
        }
    }
}

/// Errors.
#[test]
fn errors() {
    for (sql, expected) in [
        ("1 / 0", "22012"),
        ("1 % 0", "22012"),
        ("1.0 / 0", "22012"),
        ("1::float8 / 0", "22012"),
        ("2147483647 + 1", "22003"),
        ("-9223372036854775808 - 1", "22003"),
        ("9223372036854775807 * 2", "22003"),
        ("32767::smallint + 1::smallint", "22003"),
        ("40000::smallint", "22003"),
        ("1e308::float8 * 10::float8", "22003"),
        ("'x'::int", "22P02"),
        ("1 + 'x'", "22P02"),
        ("1 = true", "42883"),
        ("1 = 'a'::text", "42883"),
        ("not 1", "42804"),
        ("1 and true", "42804"),
        ("a", "42703"),
        ("t.a", "42P01"),
        ("$0", "42P02"),
        ("date '2024-13-01'", "22008"),
        ("sqrt(-1)", "2201F"),
        ("ln(0)", "2201E"),
        ("'ab' like 'a\\'", "22025"),
        ("'ab' ilike 'aX' escape 'X'", "22025"),
        ("1e-30::real * 1e-30::real", "22003"),
        ("1e-30::real / 1e30::real", "22003"),
        ("substr('a', 1, -1)", "22011"),
        ("true::date", "42846"),
    ] {
        match value(sql) {
            Ok(value) => panic!("{sql} is {value}"),
            Err(error) => assert_eq!(error.sqlstate(), expected, "{sql}: {error}"),
        }
    }
}

/// Patterns with more digits than the formatter accepts at once, and than a number has.
#[test]
fn long_patterns() {
    let text = value("to_char(1.5, '9.' || repeat('9', 65536) || 'EEEE')").unwrap().to_string();
    assert_eq!(text, format!(" 1.5{}e+00", "0".repeat(65_535)));
}
