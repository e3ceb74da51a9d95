//! Statements over more rows than memory holds, and changes of many rows that come from a query:
//! they stay within their memory limit, and can be canceled while they write.

use cairn_sql::{Connection, Database};

use crate::support::{ask, fails, rows, run};

/// Creates a database in files.
fn database(memory_limit: u64) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Database::builder().cache_bytes(4 << 20).memory_limit(memory_limit).threads(2);
    let database = builder.open(folder.path().join("test.db")).unwrap();
    (folder, database)
}

/// Goal: the rows of a query are written as they arrive, unless the query reads the target table.
/// Method: a query that fails at its end, and a sequence that counts the rows written before.
#[test]
fn rows_are_written_as_they_come() {
    let (_folder, database) = database(64 << 20);
    let mut c = database.connect();
    run(&mut c, "create sequence s");
    run(&mut c, "create table t (id int primary key, v bigint default nextval('s'))");
    run(&mut c, "create table few (id int primary key)");
    run(&mut c, "insert into few select i from generate_series(1, 30000) as g(i)");
    let rows = "select id + 1 / (29000 - id) from";
    let counted = |c: &mut Connection| ask(c, "select nextval('s')")[0].parse::<u64>().unwrap();
    assert_eq!(fails(&mut c, &format!("insert into t (id) {rows} few")), "22012");
    let first = counted(&mut c);
    assert!(first > 8_000, "{first}");
    run(&mut c, "insert into t select id, 0 from few");
    assert_eq!(fails(&mut c, &format!("insert into t (id) {rows} t")), "22012");
    assert_eq!(counted(&mut c), first + 1);
    assert_eq!(
        fails(
            &mut c,
            "insert into t (id) select id + 100000 / (29000 - (select max(id) - 1000 from t)) from few"
        ),
        "22012"
    );
    assert_eq!(counted(&mut c), first + 2);
    // New rows are not read again.
    assert_eq!(run(&mut c, "insert into t select id + 100000, v from t"), 30_000);
    assert_eq!(run(&mut c, "update t set id = id + 1000000 where v = (select min(v) from t)"), 60_000);
    assert_eq!(ask(&mut c, "select count(*), min(id), max(id) from t"), ["60000|1000001|1130000"]);
}

/// Cancels a statement as soon as it has drawn from the sequence, which it does for each row that
/// it writes. Returns the number of rows written.
fn stopped(database: &Database, c: &mut Connection, sql: &str) -> u64 {
    let canceller = c.canceller();
    let mut watch = database.connect();
    let count = |c: &mut Connection| ask(c, "select nextval('s')")[0].parse::<u64>().unwrap();
    let watcher = std::thread::spawn(move || {
        // Values drawn by the statement leave gaps in the watcher's values.
        for own in 1..1_000_000 {
            if count(&mut watch) > own {
                canceller.cancel();
                return own;
            }
            // Each draw is a transaction of its own, which takes as long as some rows.
            std::thread::yield_now();
        }
        1_000_000
    });
    let ended = c.execute(sql, &[]);
    let own = watcher.join().unwrap();
    assert_eq!(ended.unwrap_err().sqlstate(), "57014", "{sql}");
    count(c) - own
}

/// Goal: a canceled statement does not run to its end. Method: a sequence that counts the rows
/// written, watched by another session.
#[test]
fn cancelled_while_writing() {
    const ROWS: u64 = 40_000;
    let (_folder, database) = database(64 << 20);
    for sql in [
        "insert into t (id) select id + 1000000 from t",
        "insert into t (id) select id + 1000000 from few",
        "update t set v = 1 where id in (select id from few) returning nextval('s')",
        "delete from t where id in (select id from few) returning nextval('s')",
    ] {
        let mut c = database.connect();
        run(&mut c, "drop table if exists t");
        run(&mut c, "drop sequence if exists s");
        run(&mut c, "create sequence s");
        run(&mut c, "create table t (id int primary key, v bigint default nextval('s'))");
        run(&mut c, "create table if not exists few (id int primary key)");
        run(&mut c, "delete from few");
        run(&mut c, &format!("insert into few select i from generate_series(1, {ROWS}) as g(i)"));
        run(&mut c, "insert into t select id, 0 from few");
        let counted = stopped(&database, &mut c, sql);
        assert!(counted < ROWS, "{sql}: {counted}");
        let asked = "select count(*), max(id), min(v), max(v) from t";
        assert_eq!(ask(&mut c, asked), [format!("{ROWS}|{ROWS}|0|0")], "{sql}");
    }
}

/// Statements that sort, group and join more than memory holds.
const LARGER_THAN_MEMORY: [&str; 12] = [
    "select id, v from t order by k + 0, id desc",
    "select k, count(*), max(v) from t group by k order by 2, 1 desc",
    "select distinct v from t order by v desc",
    "select a.id, b.v from t as a join t as b on a.id = b.k + 0 order by a.k, a.id",
    "select a.id, b.v from t as a left join t as b on a.id = b.k + 0 and a.v < b.v order by a.id",
    "select a.k, count(b.v) from t as a full join t as b on a.id = b.k + 7 group by a.k order by 1",
    "select id from t as a where exists (select from t as b where b.k + 1 = a.id and b.v <> a.v) order by id",
    "select v from t where k + 0 > 0 union select v from t order by 1",
    "select v, id from t except select v, id + 1 from t order by 2",
    "select id, v from t order by v desc, k limit 90000",
    "select v, id from t order by v limit 60000 offset 50000",
    // Any number of threads may be used, but two of them get all rows.
    "select id, row_number() over (partition by k % 2 order by v) from t order by id",
];

/// Goal: operators that exceed `memory_limit` spill, whether they sort, group or join, alone or
/// with others in one statement. Hash joins and top-k sorts, which cannot spill, are rerun as
/// operators that can.
/// Method: each with one thread and no memory, and with two threads and little memory, compared
/// with ample memory.
#[test]
fn statements_go_to_the_disk() {
    let filled = |limit, threads| {
        let folder = tempfile::tempdir().unwrap();
        let builder = Database::builder().cache_bytes(16 << 20).memory_limit(limit).threads(threads);
        let database = builder.open(folder.path().join("test.db")).unwrap();
        let mut c = database.connect();
        run(&mut c, "create table t (id int primary key, k int, v text)");
        run(
            &mut c,
            "insert into t select i, i * 7919 % 120011, repeat('x', 100) || i from generate_series(1, 120000) as g(i)",
        );
        (folder, c)
    };
    let (_folder, mut c) = filled(4 << 30, 2);
    let expected: Vec<Vec<String>> =
        LARGER_THAN_MEMORY.iter().map(|sql| rows(&mut c, sql, &[]).unwrap()).collect();
    assert!(expected.iter().all(|rows| rows.len() > 50_000));
    for (limit, threads) in [(0, 1), (16 << 20, 2)] {
        let (_folder, mut c) = filled(limit, threads);
        for (sql, expected) in LARGER_THAN_MEMORY.iter().zip(&expected) {
            let rows =
                rows(&mut c, sql, &[]).unwrap_or_else(|error| panic!("{limit} {threads} {sql}: {error}"));
            assert!(rows == *expected, "{limit} {threads} {sql}: other rows");
        }
    }
}

/// Goal: a hash join that was rerun as a sorting join ends when its statement is canceled, and
/// releases its thread. Method: a single thread; half of the rows have one key and fit into memory,
/// but not all rows do; a condition that no pair meets, with more pairs than can be tested in any
/// reasonable time; and another query afterwards.
#[test]
fn sorted_joins_stop() {
    let folder = tempfile::tempdir().unwrap();
    let builder = Database::builder().memory_limit(0).threads(1);
    let mut c = builder.open(folder.path().join("test.db")).unwrap().connect();
    for table in ["a", "b"] {
        run(&mut c, &format!("create table {table} (id int primary key, k int, v int, p text)"));
        let rows = "select i, case when i > 60000 then i else 1 end, i, repeat('x', 80) from generate_series(1, 120000) as g(i)";
        run(&mut c, &format!("insert into {table} {rows}"));
    }
    let sql = "select a.id, b.p, a.p from a join b on a.k = b.k and a.v + b.v < 0";
    run(&mut c, "set statement_timeout = '10s'");
    assert_eq!(fails(&mut c, sql), "57014");
    run(&mut c, "set statement_timeout = '20s'");
    assert_eq!(ask(&mut c, "select count(distinct k + 0) from a"), ["60001"]);
}
