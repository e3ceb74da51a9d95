//! Goal: ranks and row numbers have PostgreSQL's types, and so do expressions on them. Method: the
//! types of result columns.

use cairn_sql::ColumnType;

use crate::support::{ask, database, rows, run};

#[test]
fn places_are_integers() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int)");
    run(&mut c, "insert into t select i, i % 3 from generate_series(1, 9) as s(i)");
    let kinds = |c: &mut cairn_sql::Connection, sql: &str| -> Vec<String> {
        let statement = c.prepare(sql).unwrap();
        statement
            .columns()
            .iter()
            .map(|column: &cairn_sql::Column| ColumnType::to_string(&column.kind))
            .collect()
    };
    let places = "select row_number() over w as n, rank() over w as r, dense_rank() over w as d, ntile(2) over w as q from t window w as (order by g)";
    assert_eq!(kinds(&mut c, places), ["bigint", "bigint", "bigint", "int"]);
    assert_eq!(
        ask(&mut c, places),
        ["1|1|1|1", "2|1|1|1", "3|1|1|1", "4|4|2|1", "5|4|2|1", "6|4|2|2", "7|7|3|2", "8|7|3|2", "9|7|3|2"]
    );
    let mut read = c.query(places, &[]).unwrap();
    let row = read.next().unwrap().unwrap();
    assert_eq!((row.get(0).to_owned(), row.get(3).to_owned()), (1_i64.into(), 1_i32.into()));
    drop(read);
    let computed = "select n - 5 as less, n / 2 as half, sum(n) over () as total, n = 3 as is_third from (select id, row_number() over (order by id) as n from t) x where n < 4 order by id";
    assert_eq!(kinds(&mut c, computed), ["bigint", "bigint", "decimal(38,0)", "boolean"]);
    assert_eq!(ask(&mut c, computed), ["-4|0|6|f", "-3|1|6|f", "-2|1|6|t"]);
    assert_eq!(
        rows(&mut c, "select id from (select id, rank() over (partition by g order by id desc) as r from t) x where r <= $1 order by id", &[1_i64.into()]).unwrap(),
        ["7", "8", "9"]
    );
    run(&mut c, "create table places as select id, row_number() over (order by id desc) as place from t");
    assert_eq!(kinds(&mut c, "select place from places"), ["bigint"]);
    assert_eq!(ask(&mut c, "select place from places where id = 9"), ["1"]);
}
