//! Aggregates of whole tables, compared with the general path.

use std::fmt::Write as _;

use cairn_vfs::sync::Arc;
use cairn_vfs::{MemFs, Rng, SeededRng};

use super::groups::GROUPS_MAX;
use crate::direct::Output;
use crate::executor::Plan;
use crate::{Connection, Database, Datum, Outcome};

fn database() -> Database {
    Database::builder().fs(Arc::new(MemFs::new())).cache_bytes(32 << 20).threads(2).open("test.db").unwrap()
}

fn rows(connection: &mut Connection, sql: &str, params: &[Datum]) -> Vec<String> {
    let mut rows = connection.query(sql, params).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let columns = (0..row.len()).map(|column| row.get(column));
        let columns: Vec<String> = columns
            .map(|datum| if datum.is_null() { "NULL".to_owned() } else { datum.to_string() })
            .collect();
        all.push(columns.join("|"));
    }
    assert_eq!(rows.tag().rows, Some(all.len() as u64), "{sql}");
    all
}

/// Whether a query runs column by column.
fn is_columnar(connection: &mut Connection, sql: &str) -> bool {
    let statement = connection.prepare(sql).unwrap();
    match &statement.planned().plan {
        Plan::Select(plan) => {
            plan.select.columnar.is_some() || matches!(plan.select.output, Output::Groups(_))
        }
        _ => false,
    }
}

const COLUMNS: &str = "id int primary key, s smallint, i int, b bigint, d numeric(12,2), e numeric(30,4), f double precision, t text, day date, at timestamp, is_so boolean";

/// Values of a row, some of them NULL.
fn row(id: usize, rng: &mut SeededRng) -> String {
    let mut line = format!("({id}");
    let mut put = |value: String, rng: &mut SeededRng| {
        let value = if rng.below(12) == 0 { "null".to_owned() } else { value };
        write!(line, ", {value}").unwrap();
    };
    let s = rng.below(5) as i64 - 2;
    put(s.to_string(), rng);
    let i = [i64::from(i32::MIN), -7, 0, 3, 100, i64::from(i32::MAX), id as i64][rng.below(7) as usize];
    put(i.to_string(), rng);
    let b = [i64::MAX, i64::MIN + 1, 0, 40_000_000_000, (id / 3) as i64][rng.below(5) as usize];
    put(b.to_string(), rng);
    let d = rng.below(2_000) as i64 - 1_000;
    put(format!("{}.{:02}", d / 100, (d % 100).abs()), rng);
    let e = rng.below(u64::MAX);
    put(format!("{e}.{:04}", rng.below(10_000)), rng);
    put(format!("{}.5", rng.below(1_000)), rng);
    let t = ["'ash'", "'birch'", "''", "'é'", "'a rather long text, that is not like the others'"];
    put(t[rng.below(5) as usize].to_owned(), rng);
    let day = rng.below(28) + 1;
    put(format!("'2024-02-{day:02}'"), rng);
    let hour = rng.below(24);
    put(format!("'2024-02-01 {hour:02}:30:00'"), rng);
    put((rng.below(2) == 0).to_string(), rng);
    line.push(')');
    line
}

fn fill(connection: &mut Connection, table: &str, count: usize, rng: &mut SeededRng) {
    connection.execute(&format!("create table {table} ({COLUMNS})"), &[]).unwrap();
    for start in (0..count).step_by(500) {
        let rows: Vec<String> = (start..count.min(start + 500)).map(|id| row(id, rng)).collect();
        connection.execute(&format!("insert into {table} values {}", rows.join(", ")), &[]).unwrap();
    }
}

const CONDITIONS: [&str; 33] = [
    "",
    "where i > 0",
    "where i >= -7 and i < 100",
    "where 3 = i",
    "where i <> 3",
    "where s in (-2, 0, null, 77)",
    "where s = 40000",
    "where b < 0",
    "where b between 1 and 40000000000",
    "where d < 1.255",
    "where d >= -1.255 and d <> 0",
    "where d = 1.255",
    "where d in (0.5, 1.25, 1.255)",
    "where e > 9000000000000000000.5",
    "where t = 'birch'",
    "where t > 'b' and t is not null",
    "where t in ('ash', 'é')",
    "where t is null",
    "where day >= '2024-02-10' and day < '2024-02-20'",
    "where at = '2024-02-01 05:30:00'",
    "where s is not null and i is null",
    "where id >= 100 and id < 900 and s > 0",
    "where id = 5",
    "where i = null",
    "where i > 5 and i < 5",
    "where f is not null",
    "where i < id",
    "where i = id",
    "where id >= i and s > 0",
    "where i <> id and id > i and i > 3",
    "where i < id and s = 2 and t = 'birch'",
    "where i = id and id >= i and s = 1 and t = 'birch'",
    "where s = -1 and t = 'ash' and id <> i and i >= -7",
];

const AGGREGATES: &str = "count(*), count(t), sum(s), sum(i), sum(b), sum(d), min(i), max(b), min(d), max(e), min(day), max(at), count(is_so)";

const GROUPS: [&str; 8] = ["s", "i", "t", "d", "day", "is_so", "s, t", "t, is_so, day"];

/// Rewrites a condition so that it cannot be evaluated on columns, and rows are tested one by one.
fn row_by_row(condition: &str) -> String {
    condition
        .strip_prefix("where ")
        .map_or(String::new(), |inner| format!("where coalesce(({inner}), false)"))
}

/// Goal: aggregates over columns of leaves equal those of the general path. Method: random rows
/// with NULLs and ends of types, in packed leaves, in ordinary ones, and with uncommitted changes
/// of the querying transaction; all conditions by all groups.
#[test]
fn same_as_the_general_path() {
    let database = database();
    let mut connection = database.connect();
    let mut rng = SeededRng::new(7).fork("columnar");
    fill(&mut connection, "fresh", 2_000, &mut rng);
    connection.execute("create table packed as select * from fresh", &[]).unwrap();
    fill(&mut connection, "changed", 1_200, &mut rng);
    // An older snapshot in another session forces leaves to be read row by row.
    let mut other = database.connect();
    other.execute("begin isolation level repeatable read", &[]).unwrap();
    let before = rows(&mut other, "select count(*), sum(i) from changed", &[]);
    connection.execute("begin", &[]).unwrap();
    connection.execute("update changed set s = 1, t = 'birch' where id % 3 = 0", &[]).unwrap();
    connection.execute("delete from changed where id % 7 = 0", &[]).unwrap();
    let mut asked = 0;
    for table in ["fresh", "packed", "changed"] {
        for condition in CONDITIONS {
            if table == "packed" && condition.contains("id = 5") {
                continue;
            }
            let sql = format!("select {AGGREGATES} from {table} {condition}");
            // A point is read as a row.
            assert_eq!(is_columnar(&mut connection, &sql), !condition.contains("id = 5"), "{sql}");
            let slowly = row_by_row(condition);
            let general = format!("select * from (select {AGGREGATES} from {table} {slowly}) as q");
            assert_eq!(rows(&mut connection, &sql, &[]), rows(&mut connection, &general, &[]), "{sql}");
            for groups in GROUPS {
                let sql = format!("select {groups}, {AGGREGATES} from {table} {condition} group by {groups}");
                assert!(is_columnar(&mut connection, &sql), "{sql}");
                let general = format!(
                    "select * from (select {groups}, {AGGREGATES} from {table} {slowly} group by {groups}) as q"
                );
                let mut found = rows(&mut connection, &sql, &[]);
                let mut expected = rows(&mut connection, &general, &[]);
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "{sql}");
                asked += found.len();
            }
        }
    }
    assert!(asked > 10_000, "{asked}");
    assert_eq!(rows(&mut other, "select count(*), sum(i) from changed", &[]), before);
}

/// Goal: order, limits, names, parameters and columns in any order work as elsewhere; errors are
/// reported.
#[test]
fn results_of_groups() {
    let mut c = database().connect();
    c.execute("create table t (id int primary key, kind int, n int)", &[]).unwrap();
    c.execute("insert into t select i, i % 4, i from generate_series(1, 1000) as g(i)", &[]).unwrap();
    let sql =
        "select sum(n) as total, kind from t where n > $1 group by kind order by total desc limit 2 offset 1";
    assert!(is_columnar(&mut c, sql));
    assert_eq!(rows(&mut c, sql, &[Datum::Int(500)]), ["93875|3", "93750|2"]);
    assert_eq!(rows(&mut c, sql, &[Datum::Int(998)]), ["999|3"]);
    assert_eq!(rows(&mut c, sql, &[Datum::Null]), [""; 0]);
    assert_eq!(rows(&mut c, "select kind from t group by kind order by 1", &[]), ["0", "1", "2", "3"]);
    assert_eq!(rows(&mut c, "select count(*) from t group by kind order by kind", &[]), ["250"; 4]);
    assert_eq!(
        rows(&mut c, "select kind as k, count(*) from t group by kind order by k limit 1", &[]),
        ["0|250"]
    );
    assert_eq!(rows(&mut c, "select count(*) from t where n > 5000 group by kind", &[]), [""; 0]);
    assert_eq!(rows(&mut c, "select count(*), sum(n), max(n) from t where n > 5000", &[]), ["0|NULL|NULL"]);
    assert_eq!(c.execute("select n, count(*) from t group by kind", &[]).unwrap_err().sqlstate(), "42803");
    assert_eq!(c.execute("select count(*) from t group by nothing", &[]).unwrap_err().sqlstate(), "42703");
    c.execute("create table big (id int primary key, d numeric(38, 0))", &[]).unwrap();
    let most = "9".repeat(38);
    c.execute(&format!("insert into big select i, {most} from generate_series(1, 30000) as g(i)"), &[])
        .unwrap();
    assert_eq!(c.execute("select sum(d) from big", &[]).unwrap_err().sqlstate(), "22003");
}

/// Goal: more groups than fit into memory are computed by the general path, and the statement stays
/// on it.
#[test]
fn many_groups() {
    let mut c = database().connect();
    c.execute("create table t (id int primary key, n int)", &[]).unwrap();
    let count = GROUPS_MAX + 10;
    c.execute(&format!("insert into t select i, i from generate_series(1, {count}) as g(i)"), &[]).unwrap();
    let sql = "select n, count(*) from t where id > $1 group by n order by 1 limit 3";
    assert!(is_columnar(&mut c, sql));
    let statement = c.prepare(sql).unwrap();
    for from in [0, 5] {
        let Ok(Outcome::Rows(mut rows)) = c.run(&statement, &[Datum::Int(from)]) else { panic!("no rows") };
        assert_eq!(rows.next().unwrap().unwrap().get(0).to_string(), (from + 1).to_string());
        drop(rows);
        assert!(matches!(statement.planned().plan, Plan::Query(_)));
    }
}

/// Goal: columns that are read a leaf at a time equal those of the rows. Method: all types with
/// NULLs, duplicate and reordered columns, forward and backward, LIMIT and OFFSET beyond a leaf's
/// rows, lists of ranges, a covering index, in packed, ordinary and changed leaves; compared with
/// the unlimited result that the general path has sorted.
#[test]
fn rows_of_leaves() {
    let database = database();
    let mut connection = database.connect();
    let mut rng = SeededRng::new(8).fork("leaves");
    fill(&mut connection, "fresh", 1_500, &mut rng);
    connection.execute(&format!("create table packed ({COLUMNS})"), &[]).unwrap();
    connection.execute("insert into packed select * from fresh", &[]).unwrap();
    for table in ["fresh", "packed"] {
        connection
            .execute(&format!("create index {table}_s on {table} (s, id) include (t, d)"), &[])
            .unwrap();
    }
    connection.execute("begin", &[]).unwrap();
    connection.execute("update packed set t = 'changed', e = null where id % 50 = 7", &[]).unwrap();
    connection.execute("delete from packed where id % 50 = 8", &[]).unwrap();
    let mut seen = 0;
    for table in ["fresh", "packed"] {
        for (columns, condition, order) in [
            ("*", "", "id"),
            ("t, id, t, e, f, at, is_so, day, b", "where id >= 300 and id < 1200", "id"),
            ("t, id, t, e, f, at, is_so, day, b", "where id > 300 and id <= 1200", "id desc"),
            ("id, d, t", "where id in (5, 700, 701, 1499, 9999)", "id"),
            ("t, d, id", "where s = 1", "id"),
            ("t, d, id", "where s = -2 and id > 100", "id desc"),
        ] {
            let all = format!("select {columns} from {table} {condition}");
            // A query that the general path runs.
            let general =
                format!("select {columns} from (select * from {table} order by id) as q {condition}");
            let expected = rows(&mut connection, &format!("{general} order by {order}"), &[]);
            for (limit, skip, left) in
                [("", 0, usize::MAX), ("limit 40 offset 3", 3, 40), ("limit 700 offset 200", 200, 700)]
            {
                let sql = format!("{all} order by {order} {limit}");
                let statement = connection.prepare(&sql).unwrap();
                assert!(matches!(statement.planned().plan, Plan::Select(_)), "{sql}");
                let found = rows(&mut connection, &sql, &[]);
                let part: Vec<String> = expected.iter().skip(skip).take(left).cloned().collect();
                assert_eq!(found, part, "{sql}");
                seen += found.len();
            }
        }
    }
    assert!(seen > 10_000, "{seen}");
    // Conditions that no tree covers.
    let mut chosen = 0;
    for table in ["fresh", "packed"] {
        for condition in CONDITIONS {
            let sql = format!("select t, id, i, d from {table} {condition} order by id");
            let is_direct = matches!(connection.prepare(&sql).unwrap().planned().plan, Plan::Select(_));
            assert!(is_direct, "{sql}");
            let slowly = row_by_row(condition);
            let general = format!("select t, id, i, d from {table} {slowly} order by id");
            let expected = rows(&mut connection, &general, &[]);
            assert_eq!(rows(&mut connection, &sql, &[]), expected, "{sql}");
            // The general path also chooses rows of leaves.
            let both = format!(
                "select t, id, i, d from (select *, t || t as tt from {table}) as q {condition} order by id"
            );
            assert_eq!(rows(&mut connection, &both, &[]), expected, "{both}");
            let part: Vec<String> = expected.iter().skip(5).take(100).cloned().collect();
            let sql = format!("{sql} limit 100 offset 5");
            assert_eq!(rows(&mut connection, &sql, &[]), part, "{sql}");
            chosen += expected.len();
        }
    }
    assert!(chosen > 10_000, "{chosen}");
}
