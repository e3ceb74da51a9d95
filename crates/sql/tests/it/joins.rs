//! Goal: a scan with a join filter returns the rows that matter, and no query changes its result.
//! Method: queries for each kind of join, compared with the same queries on computed keys, for
//! which scans get no join filter.

use cairn_sql::{Connection, Datum};

use crate::support::{ask, database, rows, run};

/// The number of rows of the larger table, enough for several threads.
const ROWS: i64 = 20_000;

/// Creates tables with keys of a type: a larger one with some NULLs, a smaller one with some
/// unmatched keys and a NULL, and a third one that refers to the larger one's rows.
fn tables(c: &mut Connection, kind: &str, key: &str) {
    run(c, &format!("create table large (id int primary key, k {kind}, v bigint, t text)"));
    run(c, &format!("create table small (n int primary key, k {kind}, w int)"));
    run(c, "create table third (m int primary key, id int, k bigint)");
    let key_of = |number: &str| key.replace('#', number);
    let keys = key_of("(g * 7919 % 5000 - 2500)");
    run(
        c,
        &format!(
            "insert into large select g, case when g % 11 = 0 then null else {keys} end, g * 3, 'row ' || g || repeat('-', 60) from generate_series(1, {ROWS}) as g(g)"
        ),
    );
    let keys = key_of("(g * 3 - 3100)");
    run(
        c,
        &format!(
            "insert into small select g, case when g = 7 then null else {keys} end, g % 10 from generate_series(1, 2000) as g(g)"
        ),
    );
    run(c, "insert into third select g, g * 17 % 25000, g % 100 from generate_series(1, 3000) as g(g)");
    run(c, "analyze");
}

/// Queries with `=` between keys, and whether a scan gets a join filter.
const QUERIES: [(&str, bool); 17] = [
    // Both sides in several partitions.
    (
        "select count(*), sum(a.v + b.id), max(b.t) from large as a join large as b on b.k = a.k where a.v > 3000 and b.v < 50000",
        true,
    ),
    ("select large.id, v, t, n from large join small on large.k = small.k where w < 3", true),
    ("select large.id, n from small join large on small.k = large.k where w < 0", true),
    ("select n, large.id, t from small left join large on small.k = large.k where w = 2 and n < 900", true),
    ("select n, large.id from small right join large on small.k = large.k and w = 2", false),
    ("select n, large.id from small full join large on small.k = large.k and w = 2", false),
    ("select id, t from large where exists (select 1 from small where small.k = large.k and w = 4)", true),
    (
        "select n from small where w < 5 and exists (select 1 from large where small.k = large.k and v > 600)",
        true,
    ),
    (
        "select n from small where w < 5 and not exists (select 1 from large where small.k = large.k and v > 30000)",
        true,
    ),
    ("select id from large where not exists (select 1 from small where small.k = large.k and w < 8)", false),
    (
        "select n, many, total from small join (select k, count(*) as many, sum(v) as total from large group by k) as g on g.k = small.k where w = 1",
        true,
    ),
    (
        "select n, large.id, m from small join large on small.k = large.k join third on third.id = large.id where w = 6 and m < 2000",
        true,
    ),
    (
        "select count(*), sum(large.v) from large join small on large.k = small.k join third on third.id = large.id and third.k = small.w",
        true,
    ),
    (
        "select n, large.id from small join large on small.k = large.k where w < 5 and large.v % 5 = 1 and large.id > 9000",
        true,
    ),
    (
        "select n, f.id from small join (select * from large order by v desc limit 500) as f on f.k = small.k where w < 9",
        true,
    ),
    (
        "select n, f.id, f.place from small join (select id, k, row_number() over (order by id) as place from large) as f on f.k = small.k where w = 3",
        false,
    ),
    ("select n, large.id from small join large on small.k is not distinct from large.k where w < 8", false),
];

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

fn same_answers(c: &mut Connection, kind: &str, is_told: bool) {
    for (sql, tells) in QUERIES {
        let plan = ask(c, &format!("explain {sql}")).join("\n");
        assert_eq!(plan.contains("join filter on"), tells && is_told, "{kind}: {sql}: {plan}");
        assert_eq!(plan.contains("JoinKeys: "), tells && is_told, "{kind}: {sql}: {plan}");
        // A computed key is not a column of a scan.
        let computed = ["small.k", "large.k", "g.k", "f.k", "third.id", "large.id", "a.k", "b.k"]
            .iter()
            .fold(sql.to_owned(), |sql, column| {
                sql.replace(&format!("{column} = "), &format!("{column}::text = "))
                    .replace(&format!("= {column}"), &format!("= {column}::text"))
            });
        let plan = ask(c, &format!("explain {computed}")).join("\n");
        assert!(!plan.contains("join filter on"), "{kind}: {computed}: {plan}");
        assert_eq!(sorted(ask(c, sql)), sorted(ask(c, &computed)), "{kind}: {sql}");
    }
}

#[test]
fn joins_of_keys_that_scans_are_told() {
    for (kind, key) in [
        ("int", "#::int"),
        ("bigint", "(#::bigint - 9000000000000000000)"),
        ("smallint", "#::smallint"),
        ("date", "(date '1970-01-01' + #::int)"),
    ] {
        let mut c = database().connect();
        tables(&mut c, kind, key);
        same_answers(&mut c, kind, true);
        if kind != "int" {
            continue;
        }
        // Changes that are invisible to others make scans read row by row.
        run(&mut c, "begin");
        run(&mut c, "delete from large where id % 3 = 0");
        run(&mut c, "update small set k = null where n % 5 = 0");
        same_answers(&mut c, kind, true);
        run(&mut c, "rollback");
    }
}

/// Keys that do not fit a bitmap, and keys of types that are not numbers.
#[test]
fn joins_of_keys_that_scans_are_not_told() {
    let mut c = database().connect();
    tables(&mut c, "bigint", "(#::bigint * 1000000000000000)");
    same_answers(&mut c, "bigint, far apart", true);
    for (kind, key) in [("text", "'key ' || #"), ("numeric(12,2)", "#::numeric(12,2)")] {
        let mut c = database().connect();
        tables(&mut c, kind, key);
        for (sql, _) in QUERIES {
            let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
            let told = plan.matches("join filter on").count();
            assert_eq!(told, plan.matches("join filter on id").count(), "{kind}: {sql}: {plan}");
        }
    }
}

/// The keys of a partitioned side are complete before the join filter is used.
#[test]
fn joins_of_sides_in_partitions() {
    let mut c = database().connect();
    tables(&mut c, "int", "#::int");
    let (sql, _) = QUERIES[0];
    let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
    assert!(plan.contains("mode=Partitioned") && plan.contains("join filter on k"), "{plan}");
}

/// Goal: the number of distinct texts in a column determines which side is read first. Method: a
/// table of ten thousand rows, of which ten have a given name, and one of a thousand rows.
#[test]
fn few_rows_of_a_name_are_read_first() {
    let mut c = database().connect();
    run(&mut c, "create table many (id int primary key, name text, k int)");
    run(&mut c, "create table other (id int primary key, v int)");
    run(
        &mut c,
        "insert into many select g, 'name ' || g % 1000, g % 1000 from generate_series(1, 10000) as g(g)",
    );
    run(&mut c, "insert into other select g, g * 2 from generate_series(1, 1000) as g(g)");
    let sql = "select many.id, v from other join many on many.k = other.id where name = 'name 7' order by 1";
    run(&mut c, "analyze");
    let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
    assert!(plan.contains("TableScan: other, join filter on id"), "{plan}");
    let expected: Vec<String> = (0..10).map(|nth| format!("{}|14", nth * 1000 + 7)).collect();
    assert_eq!(ask(&mut c, sql), expected);
}

/// Goal: the selectivity of a range on a number is combined with that of a condition on a text, and
/// of a choice of two texts. Method: each name is that of a tenth of a table, and a twentieth is in
/// the range; the other table has a tenth of its rows.
#[test]
fn few_rows_of_a_range_are_read_first() {
    let mut c = database().connect();
    run(&mut c, "create table many (id int primary key, name text, n int, k int)");
    run(&mut c, "create table other (id int primary key, v int)");
    run(
        &mut c,
        "insert into many select g, 'name ' || g % 10, g, g % 1000 from generate_series(1, 10000) as g(g)",
    );
    run(&mut c, "insert into other select g, g * 2 from generate_series(1, 1000) as g(g)");
    run(&mut c, "analyze");
    let sql = "select many.id, v from other join many on many.k = other.id where name in ('name 7', 'name 8') and n > 9500 order by 1";
    let plan = ask(&mut c, &format!("explain {sql}")).join("\n");
    assert!(plan.contains("TableScan: other, join filter on id"), "{plan}");
    assert!(plan.contains("TableScan: many, 2 conditions on columns"), "{plan}");
    let expected: Vec<String> = (9501..=10_000)
        .filter(|g| [7, 8].contains(&(g % 10)))
        .map(|g| format!("{g}|{}", g % 1000 * 2))
        .collect();
    assert_eq!(ask(&mut c, sql), expected);
}

/// Each round of a recursive query has its own keys.
#[test]
fn joins_that_run_again() {
    let mut c = database().connect();
    run(&mut c, "create table next (id int primary key, follows int, note text)");
    run(
        &mut c,
        &format!("insert into next select g, g - 37, 'n' || g from generate_series(1, {ROWS}) as g(g)"),
    );
    run(&mut c, "analyze");
    let sql = "with recursive walk(id, steps) as (select id, 0 from next where id = 5 \
               union all select next.id, steps + 1 from walk join next on next.follows = walk.id where walk.steps < 90) \
               select count(*), max(id), sum(steps) from walk";
    assert_eq!(ask(&mut c, sql), [format!("91|{}|{}", 5 + 37 * 90, 90 * 91 / 2)]);
    // A prepared query is run with different keys.
    run(&mut c, "create table chosen (k int primary key, w int)");
    run(&mut c, "insert into chosen select g * 13, g % 50 from generate_series(1, 2000) as g(g)");
    run(&mut c, "analyze");
    let sql = "select count(*), sum(next.id) from chosen join next on next.follows = chosen.k where w = $1";
    for w in (0..50_i64).step_by(7) {
        let keys: Vec<i64> =
            (1..=2000).filter(|g| g % 50 == w).map(|g| g * 13 + 37).filter(|id| *id <= ROWS).collect();
        let expected = format!("{}|{}", keys.len(), keys.iter().sum::<i64>());
        assert_eq!(rows(&mut c, sql, &[Datum::Int(w as i32)]).unwrap(), [expected]);
    }
}

/// Goal: a join that follows keys returns its rows on demand: plain and computed columns, limited
/// by LIMIT and OFFSET, and an error after the rows before it; a cursor goes on with its first
/// snapshot. Method: orders and their items, in the order of their indexes.
#[test]
fn joins_that_follow_keys_come_row_by_row() {
    let db = database();
    let mut c = db.connect();
    run(&mut c, "create table orders (id int primary key, customer int, note text)");
    run(&mut c, "create index on orders (customer)");
    run(&mut c, "create table items (id int primary key, order_id int, price numeric(8, 2), name text)");
    run(&mut c, "create index on items (order_id)");
    run(&mut c, "insert into orders values (1, 7, 'first'), (2, 7, null), (3, 8, 'third')");
    run(
        &mut c,
        "insert into items values (10, 1, 1.5, 'pen'), (11, 1, 0, 'ink'), (12, 2, 20, null), (13, 3, 4.25, 'pad')",
    );
    let from = "from orders as o join items as i on i.order_id = o.id where o.customer = $1";
    for (columns, limit, expected) in [
        (
            "o.note, i.id, i.price, i.name, $1",
            "",
            &["first|10|1.50|pen|7", "first|11|0.00|ink|7", "NULL|12|20.00|NULL|7"][..],
        ),
        ("i.name || '!', o.id + 1, 5", "limit 2", &["pen!|2|5", "ink!|2|5"]),
        ("i.name, o.id", "limit 1 offset 1", &["ink|1"]),
        ("i.price * 2", "offset 2", &["40.00"]),
        ("i.id", "offset 3", &[]),
        ("i.id", "limit 0", &[]),
        ("o.note, i.name", "order by i.id desc limit 2", &["NULL|NULL", "first|ink"]),
    ] {
        let query = format!("select {columns} {from} {limit}");
        assert_eq!(rows(&mut c, &query, &[Datum::Int(7)]).unwrap(), expected, "{query}");
        assert_eq!(rows(&mut c, &query, &[Datum::Int(9)]).unwrap(), [""; 0], "{query}");
    }

    let query = format!("select i.id, 3 / i.price {from}");
    let mut few = c.query(&query, &[Datum::Int(7)]).unwrap();
    assert_eq!(few.next().unwrap().unwrap().get(0).to_string(), "10");
    assert_eq!(few.next().unwrap_err().sqlstate(), "22012");
    assert!(few.next().unwrap().is_none());
    drop(few);

    run(&mut c, "begin");
    run(
        &mut c,
        "declare some cursor for select o.note, i.name from orders as o join items as i on i.order_id = o.id where o.customer = 7",
    );
    assert_eq!(ask(&mut c, "fetch some"), ["first|pen"]);
    run(&mut c, "update items set name = 'new'");
    run(&mut c, "delete from orders where id = 2");
    assert_eq!(ask(&mut c, "fetch all from some"), ["first|ink", "NULL|NULL"]);
    run(&mut c, "rollback");
}
