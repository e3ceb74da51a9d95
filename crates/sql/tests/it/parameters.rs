//! Parameters of general queries: their inferred types, and comparisons with them.

use cairn_sql::{Datum, Outcome, Type};

use crate::support::{database, rows, run};

/// Goal: a parameter can be compared with any expression, not only with columns of tables. Method:
/// texts of the system catalogs, as in drivers' queries, of functions and of aggregates, for which
/// DataFusion has three representations; numbers, times and bytes returned by functions.
#[test]
fn they_stand_beside_anything() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table fruit (id int primary key, name text, picked timestamp, weight numeric(6, 2), price numeric(9, 3))",
    );
    run(
        &mut c,
        "insert into fruit values (1, 'apple', '2024-05-06 07:08:09', 1.50, 1.125), (2, 'pear', null, 2.25, 2)",
    );
    let text = |text: &str| Datum::Text(text.to_owned());
    for (sql, params, expected) in [
        ("select relname from pg_catalog.pg_class where relname = $1", vec![text("fruit")], vec!["fruit"]),
        (
            "select relname from pg_class where relname like $1 and relkind = $2",
            vec![text("fru%"), text("r")],
            vec!["fruit"],
        ),
        (
            "select relname from pg_class where relname in ($1, $2)",
            vec![text("x"), text("fruit")],
            vec!["fruit"],
        ),
        (
            "select a.attname from pg_attribute a join pg_class c on c.oid = a.attrelid \
             where c.relname = $1 and a.attnum > $2 order by a.attnum",
            vec![text("fruit"), Datum::SmallInt(2)],
            vec!["picked", "weight", "price"],
        ),
        (
            "select table_name from information_schema.tables where table_schema = $1 and table_type = $2",
            vec![text("public"), text("BASE TABLE")],
            vec!["fruit"],
        ),
        (
            "select string_agg(name, ',' order by id) from fruit having string_agg(name, ',' order by id) = $1",
            vec![text("apple,pear")],
            vec!["apple,pear"],
        ),
        (
            "select id from fruit where md5(name) = $1 group by id",
            vec![text("1f3870be274f6c49b3e31a0c6728957f")],
            vec!["1"],
        ),
        (
            "select id from fruit where to_char(picked, 'YYYY') = $1 group by id",
            vec![text("2024")],
            vec!["1"],
        ),
        (
            "select id from fruit where coalesce(name || $1, $2) = $3 group by id",
            vec![text("s"), text("none"), text("pears")],
            vec!["2"],
        ),
        (
            "select count(*) from fruit group by id % 1 having count(*) = $1",
            vec![Datum::BigInt(2)],
            vec!["2"],
        ),
        ("select id from fruit where length(name) = $1 group by id", vec![Datum::Int(4)], vec!["2"]),
        ("select sum(weight) from fruit having sum(weight) > $1", vec![text("3.745")], vec!["3.75"]),
        (
            "select id from fruit where date_trunc('day', picked) = $1 group by id",
            vec![text("2024-05-06")],
            vec!["1"],
        ),
        (
            "select id % 2, count(*) from fruit where weight > $1 or price > $1 group by id % 2 \
             having sum(weight) > $1 and sum(price) > $1",
            vec![text("1.75")],
            vec!["0|1"],
        ),
        (
            "select id from fruit where decode(md5(name), 'hex') <> $1 group by id order by id",
            vec![text("\\x00")],
            vec!["1", "2"],
        ),
    ] {
        assert_eq!(
            rows(&mut c, sql, &params).unwrap_or_else(|error| panic!("{sql}: {error}")),
            expected,
            "{sql}"
        );
    }
}

/// A parameter that is a result column by itself has its declared type.
#[test]
fn results_that_are_parameters_keep_their_types() {
    let mut c = database().connect();
    let sql = "select $1, (select 1 from (select 1) q)";
    for (value, kind) in [
        (Datum::Uuid([7; 16]), Type::Uuid),
        (Datum::Blob(vec![0, 65]), Type::Blob),
        (Datum::Text("a".to_owned()), Type::Text),
        (Datum::BigInt(7), Type::BigInt),
    ] {
        let prepared = c.prepare_typed(sql, &[Some(kind.into())]).unwrap();
        assert_eq!(prepared.columns()[0].kind, kind.into());
        let Outcome::Rows(mut rows) = c.run(&prepared, std::slice::from_ref(&value)).unwrap() else {
            panic!("no rows of {kind:?}");
        };
        assert_eq!(rows.next().unwrap().unwrap().get(0).to_owned(), value);
    }
}
