//! Goal: the columns of recursive queries have PostgreSQL's types. Method: numerics with growing
//! scale, other types in the recursive term, and NULL.

use cairn_sql::Connection;

use crate::support::{ask, database, fails};

/// Returns rows as PostgreSQL prints numerics, without trailing zeros.
fn numbers(c: &mut Connection, sql: &str) -> Vec<String> {
    let plain = |value: &str| match value.contains('.') {
        true => value.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => value.to_owned(),
    };
    ask(c, sql).iter().map(|row| row.split('|').map(plain).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn numerics_keep_their_digits() {
    let mut c = database().connect();
    let quarters = "with recursive r(d, s) as (select 0, 0::numeric union all select d + 1, s + 0.25 from r where d < 3) select * from r order by d";
    assert_eq!(numbers(&mut c, quarters), ["0|0", "1|0.25", "2|0.5", "3|0.75"]);
    let growing = "with recursive r(n) as (select 1::numeric union all select n * 1.1 from r where n < 1.5) select n from r order by n";
    assert_eq!(numbers(&mut c, growing), ["1", "1.1", "1.21", "1.331", "1.4641", "1.61051"]);
    let squares = "with recursive r as (select 1 as n, 2.5 as q union all select n + 1, q * q from r where n < 4) select n, round(q, 3) from r order by n";
    assert_eq!(numbers(&mut c, squares), ["1|2.5", "2|6.25", "3|39.063", "4|1525.879"]);
    let distinct = "with recursive r(n) as (select distinct 0::numeric union all select distinct n + 0.5 from r where n < 1) select * from r order by 1";
    assert_eq!(numbers(&mut c, distinct), ["0", "0.5", "1"]);
    let values = "with recursive r(n, m) as (values (1::numeric, 1), (2, 2) union all select n / 8, m + 10 from r where m < 20) select * from r order by m";
    assert_eq!(numbers(&mut c, values), ["1|1", "2|2", "0.125|11", "0.25|12", "0.015625|21", "0.03125|22"]);
    // Two levels, each of which becomes wider.
    let nested = "with recursive a(n) as (select 0::numeric union all select n + 0.5 from a where n < 1), b(n) as (select max(n) from a union all select n + 0.125 from b where n < 1.2) select * from b order by 1";
    assert_eq!(numbers(&mut c, nested), ["1", "1.125", "1.25"]);
}

#[test]
fn wider_types_are_refused() {
    let mut c = database().connect();
    for sql in [
        "with recursive r(n) as (select 1 union all select n * 1.1 from r where n < 1.5) select n from r",
        "with recursive r(n) as (select 1 union all select n + 0.5::float8 from r where n < 5) select * from r",
        "with recursive r(n) as (select 1.5 union all select n + 0.5::float8 from r where n < 5) select * from r",
        "with recursive r(n) as (select date '2020-01-01' union all select n + interval '1 day' from r where n < date '2020-01-04') select * from r",
    ] {
        assert_eq!(fails(&mut c, sql), "42804", "{sql}");
    }
    let same = "with recursive r(n) as (select date '2020-01-01' union all select n + 1 from r where n < date '2020-01-03') select * from r order by 1";
    assert_eq!(ask(&mut c, same), ["2020-01-01", "2020-01-02", "2020-01-03"]);
    let narrower = "with recursive r(n) as (select 1.5 union all select n + 1 from r where n < 3) select * from r order by 1";
    assert_eq!(ask(&mut c, narrower), ["1.5", "2.5", "3.5"]);
    let texts =
        "with recursive r(n) as (select null union all select 'x' from r where n is null) select * from r";
    assert_eq!(ask(&mut c, texts), ["NULL", "x"]);
}
