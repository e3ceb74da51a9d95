//! Goal: conditions of general queries are met, and seen to where rows are read as far as they can be. Method: what EXPLAIN says, and the rows.

use cairn_sql::Datum;

use crate::support::{ask, database, rows, run};

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
