//! Goal: a join that looks rows up by the keys of its smaller side, in the order of a table or
//! through an index, returns the same rows as without lookups. Method: keys of every type, close
//! together and far apart, with NULLs and with unmatched keys, in joins of each kind, compared with
//! the same queries on computed keys, which cannot be looked up.

use cairn_sql::{Connection, Datum};

use crate::support::{ask, database, rows, run};

/// The number of rows of the larger tables, for which some tens of lookups pay off.
const ROWS: i64 = 20_000;

/// `large` has an index on `k`; `pairs` is ordered by `k` after a column with few values; `few` has
/// the keys to look up.
fn tables(c: &mut Connection, kind: &str, key: &str, order: &str) {
    let key_of = |number: &str| key.replace('#', number);
    run(c, &format!("create table large (id int primary key, k {kind}, v bigint, t text)"));
    run(
        c,
        &format!("create table pairs (g smallint, k {kind}, n int, v int, primary key (g, k {order}, n))"),
    );
    run(c, &format!("create table few (n int primary key, k {kind}, w int)"));
    let keys = key_of("(g * 7919 % 9000 - 2500)");
    let series = format!("generate_series(1, {ROWS}) as g(g)");
    run(
        c,
        &format!("insert into large select g, {keys}, g * 3, 'row ' || g || repeat('-', 60) from {series}"),
    );
    run(c, &format!("insert into pairs select g % 3, {keys}, g, g % 100 from {series}"));
    let keys = key_of("(g / 2 * 431 - 3100)");
    run(c, &format!("insert into few select g, {keys}, g % 10 from generate_series(1, 30) as g(g)"));
    run(c, "update large set k = null where id % 11 = 0");
    run(c, "update few set k = null where n = 7");
    run(c, &format!("create index large_k on large (k {order})"));
    run(c, "analyze");
}

/// Queries with `=` between keys, and whether rows are looked up.
const QUERIES: [(&str, bool); 15] = [
    ("select few.n, id, t from few join large on large.k = few.k", true),
    ("select few.n, id from few left join large on large.k = few.k and large.v % 2 = 1", true),
    ("select few.n, id from few right join large on large.k = few.k where id < 9", false),
    ("select id, k from large where exists (select 1 from few where few.k = large.k and w < 8)", true),
    ("select n from few where exists (select 1 from large where large.k = few.k and v > 600)", true),
    (
        "select n from few where not exists (select 1 from large where large.k = few.k and t like '%7-%')",
        true,
    ),
    ("select id from large where not exists (select 1 from few where few.k = large.k)", false),
    ("select few.n, id from few join large on large.k = few.k where t like '%3-%' and id > 5000", true),
    ("select few.n, pairs.n, v from few join pairs on pairs.k = few.k where g = 2", true),
    (
        "select few.n, pairs.n, v from few join pairs on pairs.k = few.k where g = 1 and v between 10 and 60",
        true,
    ),
    ("select few.n, pairs.n, v from few join pairs on pairs.k = few.k where w < 5", false),
    ("select w, count(*), sum(large.v), max(t) from few join large on large.k = few.k group by w", true),
    (
        "select few.n, many, total from few left join (select k, count(*) as many, sum(v) as total from large group by k) as s on s.k = few.k",
        true,
    ),
    (
        "select few.n, large.id, pairs.n from few join large on large.k = few.k join pairs on pairs.k = large.k where g = 0 and w in (1, 2)",
        true,
    ),
    ("select few.n, id, v from few join large on large.k = few.k order by v desc, few.n limit 25", true),
];

/// Returns the number of lookups.
fn lookups(c: &mut Connection, sql: &str) -> usize {
    let plan = ask(c, &format!("explain analyze {sql}")).join("\n");
    let counts = plan.split("lookups=").skip(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().unwrap()
    });
    counts.sum()
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

fn same_answers(c: &mut Connection, kind: &str, looks_up: bool) {
    for (sql, looks) in QUERIES {
        let found = lookups(c, sql);
        assert_eq!(found > 0, looks && looks_up, "{kind}: {sql}: {found} lookups");
        // A computed key is not a column of a tree, so there is no join filter on it.
        let computed = ["few.k", "large.k", "pairs.k", "s.k"].iter().fold(sql.to_owned(), |sql, column| {
            sql.replace(&format!("{column} = "), &format!("{column}::text || '.' = "))
                .replace(&format!("= {column}"), &format!("= {column}::text || '.'"))
        });
        assert_eq!(sorted(ask(c, sql)), sorted(ask(c, &computed)), "{kind}: {sql}");
    }
}

#[test]
fn joins_that_look_rows_up() {
    for (kind, key, order) in [
        ("int", "#::int", "desc"),
        ("bigint", "(#::bigint * 1000000000000)", ""),
        ("date", "(date '1970-01-01' + #::int)", ""),
        ("timestamp", "(timestamp '2020-01-01' + # * interval '1 hour')", "desc"),
        ("numeric(12,2)", "(# * 1.25)::numeric(12,2)", ""),
        ("text", "'key ' || #", ""),
        ("uuid", "md5('k' || #)::uuid", ""),
        ("bytea", "('k' || #)::bytea", ""),
    ] {
        let mut c = database().connect();
        tables(&mut c, kind, key, order);
        same_answers(&mut c, &format!("{kind} {order}"), true);
    }
}

/// Types with equal values whose bytes differ.
#[test]
fn joins_that_do_not_look_rows_up() {
    for (kind, key) in [("double precision", "(#::double precision / 4)"), ("real", "#::real")] {
        let mut c = database().connect();
        tables(&mut c, kind, key, "");
        same_answers(&mut c, kind, false);
    }
}

/// Rows changed by the transaction itself, and rows changed by others since it began.
#[test]
fn lookups_see_what_their_transaction_sees() {
    let database = database();
    let (mut c, mut other) = (database.connect(), database.connect());
    tables(&mut c, "int", "#::int", "");
    let all: Vec<Vec<String>> = QUERIES.iter().map(|(sql, _)| sorted(ask(&mut c, sql))).collect();
    run(&mut c, "begin isolation level repeatable read");
    assert_eq!(ask(&mut c, "select count(*) from few"), ["30"]);
    run(&mut other, "update large set k = k + 431 where id % 3 = 0");
    run(&mut other, "delete from pairs where n % 4 = 0");
    run(&mut other, "update few set k = k - 431 where n > 20");
    for ((sql, _), all) in QUERIES.iter().zip(&all) {
        assert_eq!(&sorted(ask(&mut c, sql)), all, "{sql}");
    }
    run(&mut c, "rollback");
    same_answers(&mut c, "changed", true);
    run(&mut c, "begin");
    run(&mut c, "delete from large where id % 5 = 0");
    run(&mut c, "update large set k = k + 1 where id % 7 = 0");
    run(&mut c, "insert into few select g, g * 433, g % 10 from generate_series(31, 32) as g(g)");
    same_answers(&mut c, "its own changes", true);
    run(&mut c, "rollback");
}

/// If there are too many keys, or too many rows of an index, for lookups to pay off, everything is
/// read, with the same result.
#[test]
fn many_rows_are_not_looked_up() {
    let mut c = database().connect();
    run(&mut c, "create table large (id int primary key, k int, v int)");
    run(
        &mut c,
        &format!("insert into large select g, g % 20, g % 7 from generate_series(1, {ROWS}) as g(g)"),
    );
    run(&mut c, "create index large_k on large (k)");
    run(&mut c, "create table keys (k int)");
    run(&mut c, "analyze");
    let (by_id, by_k) = (
        "select count(*), sum(v) from keys join large on large.id = keys.k",
        "select count(*), sum(v) from keys join large on large.k = keys.k",
    );
    let worth = ROWS / 256;
    run(&mut c, &format!("insert into keys select g * 17 from generate_series(1, {worth}) as g(g)"));
    let sum = |count: i64| (1..=count).map(|g| g * 17 % 7).sum::<i64>();
    assert_eq!(lookups(&mut c, by_id), worth as usize * 2);
    assert_eq!(ask(&mut c, by_id), [format!("{worth}|{}", sum(worth))]);
    run(&mut c, &format!("insert into keys values ({})", (worth + 1) * 17));
    assert_eq!(lookups(&mut c, by_id), 0);
    assert_eq!(ask(&mut c, by_id), [format!("{}|{}", worth + 1, sum(worth + 1))]);
    // Each key has a twentieth of the rows.
    run(&mut c, "delete from keys where k > 17");
    assert_eq!(lookups(&mut c, by_k), 0);
    let sum: i64 = (1..=ROWS).filter(|g| g % 20 == 17).map(|g| g % 7).sum();
    assert_eq!(ask(&mut c, by_k), [format!("{}|{sum}", ROWS / 20)]);
}

/// A VALUES list can be the side with the keys, and so can a parameter.
#[test]
fn lists_are_looked_up() {
    let mut c = database().connect();
    tables(&mut c, "int", "#::int", "");
    let sql = "select n, large.id from (values (5, 1), (6, 77), (7, -1)) as list(n, id) join large on large.id = list.id";
    assert!(lookups(&mut c, sql) > 0);
    assert_eq!(sorted(ask(&mut c, sql)), ["5|1", "6|77"]);
    let sql =
        "select few.n, sum(large.v) from few join large on large.k = few.k where few.n = $1 group by few.n";
    for n in 1..=30 {
        let computed = sql.replace("few.k", "(few.k + 1)").replace("large.k", "(large.k + 1)");
        let expected = ask(&mut c, &computed.replace("$1", &n.to_string()));
        assert_eq!(rows(&mut c, sql, &[Datum::Int(n)]).unwrap(), expected);
    }
}
