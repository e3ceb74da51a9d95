//! Changes of many rows that a query finds: they take no more memory than they are allowed, and can be stopped while they write.

use cairn_sql::{Connection, Database};

use crate::support::{ask, fails, run};

/// A database in files.
fn database(memory_limit: u64) -> (tempfile::TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let builder = Database::builder().cache_bytes(4 << 20).memory_limit(memory_limit).threads(2);
    let database = builder.open(folder.path().join("test.db")).unwrap();
    (folder, database)
}

/// Goal: the rows that a query gives are written as they come, but for those of a query that reads the table. Method: a query that fails at its end, and a sequence that counts the rows
/// that were written by then.
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
    // What comes is not met again.
    assert_eq!(run(&mut c, "insert into t select id + 100000, v from t"), 30_000);
    assert_eq!(run(&mut c, "update t set id = id + 1000000 where v = (select min(v) from t)"), 60_000);
    assert_eq!(ask(&mut c, "select count(*), min(id), max(id) from t"), ["60000|1000001|1130000"]);
}

/// Cancels a statement as soon as it has counted, which it does for each row that it writes; gives how far it came.
fn stopped(database: &Database, c: &mut Connection, sql: &str) -> u64 {
    let canceller = c.canceller();
    let mut watch = database.connect();
    let count = |c: &mut Connection| ask(c, "select nextval('s')")[0].parse::<u64>().unwrap();
    let watcher = std::thread::spawn(move || {
        // Whoever counts beside it leaves gaps.
        for own in 1..1_000_000 {
            if count(&mut watch) > own {
                canceller.cancel();
                return own;
            }
            // Counting is a transaction of its own, which takes as long as some rows.
            std::thread::yield_now();
        }
        1_000_000
    });
    let ended = c.execute(sql, &[]);
    let own = watcher.join().unwrap();
    assert_eq!(ended.unwrap_err().sqlstate(), "57014", "{sql}");
    count(c) - own
}

/// Goal: who cancels a statement does not wait for all of its rows. Method: a sequence that counts the rows written, watched from beside.
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
