//! Restarts of sequences: a rolled-back restart never causes a value to be given out twice.

use std::time::Duration;

use cairn_sql::Connection;

use crate::support::{ask, database, fails, run};

/// Goal: while a restart can still be rolled back, other sessions draw no values. Method: each
/// statement that restarts, in a block that is rolled back in each way; and other sessions'
/// requests meanwhile.
#[test]
fn others_wait() {
    for restart in [
        "alter sequence s restart",
        "alter sequence s restart with 500",
        "truncate t restart identity",
        "drop sequence other",
    ] {
        let database = database();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "create table t (id int, v int)");
        run(&mut a, "create sequence s");
        run(&mut a, "create sequence other");
        run(&mut a, "alter sequence s owned by t.id");
        run(&mut a, "prepare p as select $1::bigint");
        run(&mut b, "prepare p as select $1::bigint");
        let mut given: Vec<i64> = Vec::new();
        let mut take = |c: &mut Connection, sql: &str| given.push(ask(c, sql)[0].parse().unwrap());
        for _ in 0..3 {
            take(&mut b, "select nextval('s')");
        }
        run(&mut b, "set lock_timeout = 1");
        for end in ["rollback", "select 1 / 0", "rollback to p"] {
            run(&mut a, "begin");
            run(&mut a, "savepoint p");
            if end == "select 1 / 0" {
                run(&mut a, "release p");
            }
            run(&mut a, restart);
            if !restart.starts_with("drop") {
                ask(&mut a, "select nextval('s')");
            }
            for sql in [
                "select nextval('s')",
                "execute p(nextval('s'))",
                "select setval('s', 900)",
                "select nextval('other')",
            ] {
                assert_eq!(fails(&mut b, sql), "55P03", "{restart}, {end}: {sql}");
            }
            let _ = a.execute(end, &[]);
            if end == "rollback to p" {
                take(&mut a, "select nextval('s')");
                run(&mut a, "commit");
            }
            take(&mut b, "select nextval('s')");
            take(&mut b, "execute p(nextval('s'))");
            let _ = a.execute("rollback", &[]);
            take(&mut a, "select nextval('s')");
        }
        let count = given.len();
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), count, "{restart}: {given:?}");
        run(&mut a, "begin");
        run(&mut a, "alter sequence s restart with 7000");
        run(&mut a, "commit");
        assert_eq!(ask(&mut b, "select nextval('s')"), ["7000"]);
    }
}

/// Goal: a session that requests a value while a restart can still be rolled back gets the next
/// value of the final state. Method: a request before the restart is rolled back, and one before it
/// is committed.
#[test]
fn values_that_are_asked_for_meanwhile() {
    for (restart, after) in [
        ("alter sequence s restart", 1),
        ("alter sequence s restart with 500", 500),
        ("truncate t restart identity", 1),
    ] {
        let database = database();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "create table t (id int, v int)");
        run(&mut a, "create sequence s");
        run(&mut a, "alter sequence s owned by t.id");
        for taken in 1..=3 {
            assert_eq!(ask(&mut b, "select nextval('s')"), [taken.to_string()]);
        }
        for (end, expected) in [("rollback", 4), ("commit", after)] {
            run(&mut a, "begin");
            run(&mut a, restart);
            let given = std::thread::scope(|scope| {
                let waits = scope.spawn(|| ask(&mut b, "select nextval('s')"));
                // Long enough for the request to block.
                cairn_vfs::Clock::sleep(&cairn_vfs::SystemClock::new(), Duration::from_millis(20));
                run(&mut a, end);
                waits.join().unwrap()
            });
            assert_eq!(given, [expected.to_string()], "{restart}, {end}");
        }
        assert_eq!(ask(&mut a, "select nextval('s')"), [(after + 1).to_string()], "{restart}");
    }
}

/// Goal: a restart by a serializable block is undone before others draw values. Method: a block
/// that cannot commit, with concurrent readers.
#[test]
fn a_restart_that_does_not_commit() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create sequence s");
    run(&mut a, "create table t (id int primary key, v int)");
    run(&mut a, "insert into t values (1, 1)");
    for round in 0..20 {
        run(&mut a, "begin isolation level serializable");
        ask(&mut a, "select v from t where id = 1");
        run(&mut b, &format!("update t set v = {round} + 10 where id = 1"));
        run(&mut a, "alter sequence s restart with 500");
        let given = std::thread::scope(|scope| {
            let waits = scope.spawn(|| ask(&mut b, "select nextval('s')"));
            assert_eq!(fails(&mut a, "commit"), "40001");
            waits.join().unwrap()
        });
        assert_eq!(given, [(round + 1).to_string()]);
    }
}

/// Goal: TRUNCATE ... RESTART IDENTITY is a part of its transaction. Method: rolled back and
/// committed, with values before and after.
#[test]
fn restart_identity() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int generated always as identity (start with 3), v int)");
    run(&mut c, "insert into t (v) values (1), (2)");
    run(&mut c, "begin");
    run(&mut c, "truncate t restart identity");
    assert_eq!(ask(&mut c, "insert into t (v) values (3) returning id"), ["3"]);
    run(&mut c, "rollback");
    assert_eq!(ask(&mut c, "insert into t (v) values (4) returning id"), ["5"]);
    run(&mut c, "begin");
    run(&mut c, "savepoint s");
    run(&mut c, "truncate t restart identity");
    run(&mut c, "rollback to s");
    assert_eq!(ask(&mut c, "insert into t (v) values (5) returning id"), ["6"]);
    run(&mut c, "truncate t restart identity");
    run(&mut c, "commit");
    assert_eq!(ask(&mut c, "insert into t (v) values (6) returning id"), ["3"]);
}
