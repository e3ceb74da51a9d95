//! Changes of the schema by several sessions: each waits for the others, and then works on the
//! schema that they have left.

use std::time::Duration;

use cairn_sql::{Connection, Database};

use crate::support::{ask, database, fails, run};

/// Returns once a change of the schema runs or waits, which keeps other statements from beginning.
/// Gives up after some seconds, so that a test whose change never comes fails and does not hang.
fn until_asked_for(database: &Database) {
    let mut c = database.connect();
    run(&mut c, "set lock_timeout = 1");
    for _ in 0..2_000 {
        if c.execute("select 1", &[]).is_err() {
            return;
        }
        cairn_vfs::Clock::sleep(&cairn_vfs::SystemClock::new(), Duration::from_millis(1));
    }
}

/// Returns the result of a statement: `ok`, or the code of its error.
fn outcome(c: &mut Connection, sql: &str) -> &'static str {
    c.execute(sql, &[]).map_or_else(|error| error.sqlstate(), |_| "ok")
}

fn columns(c: &mut Connection, table: &str) -> String {
    let sql = format!(
        "select column_name from information_schema.columns where table_name = '{table}' order by ordinal_position"
    );
    ask(c, &sql).join(" ")
}

/// Creates a table of two rows, and an object of each kind.
fn prepared() -> Database {
    let database = database();
    let mut c = database.connect();
    for sql in [
        "create table t (a int not null, b int default 5, constraint positive check (a > 0))",
        "insert into t values (1, 10), (2, 20)",
        "create table e (a int)",
        "create table r (a int primary key)",
        "insert into r values (10), (20)",
        "create index t_b on t (b)",
        "create view v as select a from t",
        "create schema s",
        "create sequence q",
    ] {
        run(&mut c, sql);
    }
    database
}

/// Goal: a change that has waited for another applies to the changed schema, or fails as in
/// PostgreSQL.
/// Method: one session has begun a transaction, and the second one's change waits for it; then the
/// first makes a change too, and commits.
#[test]
fn one_waits_for_another() {
    let mut wrong = Vec::new();
    for (first, second, expected) in [
        ("alter table t add column x int", "alter table t add column y int", "ok"),
        ("alter table t add column x int", "alter table t add column x int", "42701"),
        ("alter table t add column x int", "alter table t add column if not exists x int", "ok"),
        ("alter table t add column x int", "alter table t drop column b", "ok"),
        ("alter table t add column x int", "alter table t add constraint c unique (a)", "ok"),
        ("alter table t add column x int", "alter table t add foreign key (b) references r", "ok"),
        ("alter table t add column x int", "alter table t drop constraint positive", "ok"),
        ("alter table t add column x int", "alter table t alter b set default 6", "ok"),
        ("alter table t add column x int", "alter table t alter b type bigint", "ok"),
        ("alter table t add column x int", "alter table t alter a add generated always as identity", "ok"),
        ("alter table t add column x int", "alter table t rename b to z", "ok"),
        ("alter table e add column x serial", "alter table e add column y serial", "ok"),
        ("alter table t add column x int", "analyze t", "ok"),
        ("alter table t add column x int", "truncate t", "ok"),
        ("alter table t add column x int", "drop view v", "ok"),
        ("alter table t drop column b", "alter table t drop column b", "42703"),
        ("alter table t drop column b", "alter table t drop column if exists b", "ok"),
        ("alter table t drop column b", "alter table t alter b set default 6", "42703"),
        ("alter table t drop column b", "alter table t alter b type bigint", "42703"),
        ("alter table t drop column b", "alter table t add constraint c check (b > 0)", "42703"),
        ("alter table t drop column b", "create index i on t (b)", "42703"),
        ("alter table t drop column b", "drop index t_b", "42704"),
        ("alter table t drop column b", "analyze", "ok"),
        ("alter table t drop constraint positive", "alter table t drop constraint positive", "42704"),
        (
            "alter table t rename constraint positive to c",
            "alter table t rename constraint positive to d",
            "42704",
        ),
        (
            "alter table t alter a add generated always as identity",
            "alter table t alter a add generated always as identity",
            "55000",
        ),
        ("alter table r rename to t2", "alter table r rename to t3", "42P01"),
        ("alter table r rename to t2", "alter table if exists r rename to t3", "ok"),
        ("alter table r rename to t2", "drop table r", "42P01"),
        ("alter table r rename to t2", "drop table if exists r", "ok"),
        ("alter table r rename to t2", "truncate r", "42P01"),
        ("alter table r rename to t2", "create table t2 (n int)", "42P07"),
        ("drop table r", "alter table r add column x int", "42P01"),
        ("drop table r", "alter table t add foreign key (b) references r", "42P01"),
        ("drop table r", "create index on r (a)", "42P01"),
        ("drop table r", "create view w as select a from r", "42P01"),
        ("drop table r", "create table c as select a from r", "42P01"),
        ("drop table r", "create table c (like r)", "42P01"),
        ("drop table r", "drop table r", "42P01"),
        ("drop table t cascade", "drop view v", "42P01"),
        ("drop table t cascade", "drop index t_b", "42704"),
        ("drop table t cascade", "alter index t_b rename to t_c", "42P01"),
        ("create table n (a int)", "create table n (b int)", "42P07"),
        ("create table n (a int)", "create table if not exists n (b int)", "ok"),
        ("create table n (a int)", "create table n as select 1 as b", "42P07"),
        ("create table n (a int)", "create view n as select 1 as b", "42P07"),
        ("create table n (a int)", "create sequence n", "42P07"),
        ("create table n (id serial)", "create table m (n_id int)", "ok"),
        ("create table s.n (a int)", "drop schema s", "2BP01"),
        ("create table s.n (a int)", "drop schema s cascade", "ok"),
        ("create index i on t (b)", "create index i on t (a)", "42P07"),
        ("create index i on t (b)", "create index if not exists i on t (a)", "ok"),
        ("create index on t (b)", "create index on t (b)", "ok"),
        ("create view w as select a from r", "drop table r", "2BP01"),
        ("create view w as select a from r", "create or replace view w as select 1 as b", "ok"),
        ("create view w as select a from t", "alter table t drop column a cascade", "ok"),
        ("drop view v", "drop view v", "42P01"),
        ("drop index t_b", "drop index t_b", "42704"),
        ("alter index t_b rename to t_c", "drop index t_b", "42704"),
        ("create schema x", "create schema x", "42P06"),
        ("create schema x", "create schema if not exists x", "ok"),
        ("drop schema s", "create table s.n (a int)", "3F000"),
        ("drop schema s", "drop schema s", "3F000"),
        ("create sequence p", "create sequence p", "42P07"),
        ("create sequence p", "create sequence if not exists p", "ok"),
        ("drop sequence q", "drop sequence q", "42P01"),
        ("drop sequence q", "alter sequence q restart with 7", "42P01"),
        ("alter sequence q restart with 7", "alter sequence q restart with 9", "ok"),
        ("alter table t add column x int", "vacuum", "ok"),
    ] {
        let database = prepared();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "begin");
        ask(&mut a, "select a from t");
        let came = std::thread::scope(|scope| {
            let waits = scope.spawn(|| outcome(&mut b, second));
            until_asked_for(&database);
            let came = outcome(&mut a, first);
            run(&mut a, "commit");
            [came, waits.join().unwrap()]
        });
        if came != ["ok", expected] {
            wrong.push(format!("{first}; then {second}: {came:?}, not {expected}"));
            continue;
        }
        if first == "alter table t add column x int" && second.contains("add column y") {
            assert_eq!(columns(&mut a, "t"), "a b x y");
        }
        if first.starts_with("alter table t add column x") {
            assert!(columns(&mut a, "t").contains('x'), "{first}; then {second}");
        }
        database.check().unwrap();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Goal: of two blocks that both change the schema, one waits for the other if both have only read;
/// if both have changed rows, one gets a deadlock error, and the other continues.
#[test]
fn two_blocks() {
    for (before, expected) in [("select a from t", "ok"), ("insert into t values (3)", "40P01")] {
        let database = prepared();
        let (mut a, mut b) = (database.connect(), database.connect());
        for c in [&mut a, &mut b] {
            run(c, "begin");
            run(c, before);
        }
        let (own, other) = std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let came = outcome(&mut b, "alter table t add column y int");
                run(&mut b, "commit");
                came
            });
            until_asked_for(&database);
            let own = outcome(&mut a, "alter table t add column x int");
            let _ = a.execute("commit", &[]);
            (own, waits.join().unwrap())
        });
        assert_eq!((own, other), (expected, "ok"), "{before}");
        assert_eq!(columns(&mut a, "t"), if expected == "ok" { "a b y x" } else { "a b y" }, "{before}");
        database.check().unwrap();
    }
}

/// Goal: changes of the schema in sessions that do nothing else never fail because of each other.
/// Method: threads that run definitions at the same time, on the same table and on others.
#[test]
fn many_at_once() {
    const ROUNDS: usize = 20;
    let database = prepared();
    std::thread::scope(|scope| {
        for name in ["x", "y", "z"] {
            let mut c = database.connect();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    run(&mut c, &format!("alter table r add column {name}{round} int default {round}"));
                    run(&mut c, &format!("create index on r ({name}{round})"));
                    run(&mut c, &format!("create table {name} (id int generated always as identity)"));
                    run(&mut c, &format!("insert into r (a, {name}{round}) values ({round} + 100, 1) on conflict do nothing"));
                    run(&mut c, "analyze r");
                    run(&mut c, &format!("drop table {name}"));
                    if round % 2 == 1 {
                        run(&mut c, &format!("alter table r drop column {name}{round}"));
                    }
                }
            });
        }
    });
    let mut c = database.connect();
    assert_eq!(columns(&mut c, "r").split(' ').count(), 1 + 3 * ROUNDS / 2);
    database.check().unwrap();
}

/// Goal: a change that has waited sees the rows of the sessions that it waited for. Method: a
/// session that has inserted a row, and a change that reads or rewrites rows.
#[test]
fn rows_of_those_who_were_waited_for() {
    let mut wrong = Vec::new();
    for (change, expected) in [
        ("alter table t alter b type text", "ok"),
        ("alter table t alter b type bigint using b + 1", "ok"),
        ("alter table e add column x double precision default random()", "0A000"),
        ("alter table t add constraint c check (b < 30)", "23514"),
        ("alter table t add foreign key (b) references r", "23503"),
        ("create unique index i on t (a)", "23505"),
        ("create table c as select a from t", "ok"),
        ("alter table t alter b set not null", "ok"),
    ] {
        let database = prepared();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "begin");
        run(&mut a, "insert into t values (2, 30)");
        run(&mut a, "insert into e values (1)");
        let came = std::thread::scope(|scope| {
            let waits = scope.spawn(|| outcome(&mut b, change));
            until_asked_for(&database);
            run(&mut a, "commit");
            waits.join().unwrap()
        });
        let table = if change.starts_with("create table") { "c" } else { "t" };
        let count = ask(&mut a, &format!("select count(*) from {table}")).join("");
        if (came, &*count) != (expected, "3") {
            wrong.push(format!("{change}: {came}, not {expected}; {count} rows"));
        }
        database.check().unwrap();
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Goal: the same in a block whose snapshot is older than the row: changing a table does not use
/// the snapshot for its rows.
#[test]
fn rows_behind_the_snapshot() {
    let mut wrong = Vec::new();
    for (change, expected) in [
        ("alter table t alter b type text", "ok"),
        ("alter table e add column x double precision default random()", "0A000"),
        ("alter table t add constraint c check (b < 30)", "23514"),
        ("alter table t add foreign key (b) references r", "23503"),
        ("alter table t add constraint c unique (a)", "23505"),
        ("analyze t", "ok"),
    ] {
        for level in ["repeatable read", "serializable"] {
            let database = prepared();
            let (mut a, mut b) = (database.connect(), database.connect());
            run(&mut b, &format!("begin isolation level {level}"));
            ask(&mut b, "select 1");
            run(&mut a, "insert into t values (2, 30)");
            run(&mut a, "insert into e values (1)");
            let came = outcome(&mut b, change);
            run(&mut b, "commit");
            let count = ask(&mut a, "select count(*) from t").join("");
            if (came, &*count) != (expected, "3") {
                wrong.push(format!("{level}: {change}: {came}, not {expected}; {count} rows"));
            }
            database.check().unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Goal: a column's sequence gets a name that is free once the session holds the schema lock.
/// Method: a sequence of that name, created but not yet committed.
#[test]
fn names_of_sequences_that_are_made_beside() {
    let mut wrong = Vec::new();
    for (change, sequence) in [
        ("alter table e add column x serial", "e_x_seq"),
        ("alter table t alter a add generated always as identity", "t_a_seq"),
        ("create table n (id serial)", "n_id_seq"),
    ] {
        let database = prepared();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "begin");
        run(&mut a, &format!("create sequence {sequence}"));
        let came = std::thread::scope(|scope| {
            let waits = scope.spawn(|| outcome(&mut b, change));
            until_asked_for(&database);
            run(&mut a, "commit");
            waits.join().unwrap()
        });
        if came != "ok" {
            wrong.push(format!("{change}: {came}"));
            continue;
        }
        let named = format!("select count(*) from pg_class where relname in ('{sequence}', '{sequence}1')");
        assert_eq!(ask(&mut a, &named), ["2"], "{change}");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Goal: statements that turn out to have no effect wait for no lock. Method: a block is open
/// meanwhile.
#[test]
fn nothing_to_do() {
    let database = prepared();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "begin");
    run(&mut a, "insert into t values (3, 30)");
    run(&mut b, "set lock_timeout = 1");
    for (statement, expected) in [
        ("create table if not exists t (a int)", "ok"),
        ("create table t (a int)", "42P07"),
        ("create index i on t (x)", "42703"),
        ("create sequence q", "42P07"),
        ("create schema if not exists s", "ok"),
        ("create sequence if not exists q", "ok"),
        ("create index if not exists t_b on t (a)", "ok"),
        ("drop table if exists nothing", "ok"),
        ("drop view if exists nothing", "ok"),
        ("drop index if exists nothing", "ok"),
        ("drop schema if exists nothing", "ok"),
        ("drop sequence if exists nothing", "ok"),
        ("alter table if exists nothing add column x int", "ok"),
        ("alter table nothing add column x int", "42P01"),
        ("alter sequence nothing restart", "42P01"),
        ("truncate nothing", "42P01"),
    ] {
        assert_eq!(outcome(&mut b, statement), expected, "{statement}");
    }
    assert_eq!(fails(&mut b, "alter table t add column x int"), "55P03");
    assert_eq!(fails(&mut b, "create table n (a int)"), "55P03");
    run(&mut a, "commit");
    run(&mut b, "alter table t add column x int");
}

/// Goal: a wait in a block ends with an error, and the block can continue with the schema as it is
/// then.
/// Method: a lock timeout, with and without a savepoint.
#[test]
fn waiting_has_an_end() {
    let database = prepared();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "begin");
    run(&mut a, "insert into t values (3, 30)");
    run(&mut b, "set lock_timeout = 1");
    run(&mut b, "begin");
    assert_eq!(fails(&mut b, "alter table r add column x int"), "55P03");
    assert_eq!(fails(&mut b, "select 1"), "25P02");
    run(&mut b, "rollback");
    run(&mut b, "begin");
    run(&mut b, "savepoint s");
    assert_eq!(fails(&mut b, "alter table r add column x int"), "55P03");
    run(&mut b, "rollback to s");
    assert_eq!(ask(&mut b, "select count(*) from t"), ["2"]);
    run(&mut a, "commit");
    run(&mut b, "alter table r add column x int");
    assert_eq!(ask(&mut b, "select count(*) from t"), ["3"]);
    run(&mut b, "commit");
    run(&mut b, "set statement_timeout = 30");
    run(&mut b, "set lock_timeout = 0");
    run(&mut a, "begin");
    run(&mut a, "insert into t values (4, 30)");
    assert_eq!(fails(&mut b, "alter table r add column y int"), "57014");
    run(&mut a, "rollback");
    assert_eq!(columns(&mut a, "r"), "a x");
}
