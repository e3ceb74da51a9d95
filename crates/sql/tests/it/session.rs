//! Goal: the state of a session, and its cancellation. Method: several connections, settings,
//! cancellation from another thread.

use std::sync::Arc;
use std::time::Duration;

use cairn_sql::{Database, Datum, Outcome, StatementKind};
use cairn_vfs::{Clock, ManualClock, MemFs};

use crate::support::{ask, database, fails, rows, run};

/// Statements are replanned after tables change, and report changed columns.
#[test]
fn prepared() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table t (id int primary key, v text)");
    let statement = a.prepare("select * from t where id = $1").unwrap();
    assert_eq!(statement.kind(), StatementKind::Query);
    assert_eq!(statement.parameters()[0].to_string(), "int");
    run(&mut b, "insert into t values (1, 'x')");
    run(&mut b, "create index on t (v)");
    assert!(a.run(&statement, &[Datum::Int(1)]).is_ok());
    run(&mut b, "alter table t add column w int");
    assert_eq!(a.run(&statement, &[Datum::Int(1)]).unwrap_err().sqlstate(), "0A000");
    assert_eq!(rows(&mut a, "select * from t where id = $1", &[Datum::Int(1)]).unwrap(), ["1|x|NULL"]);
    run(&mut a, "prepare p as select v from t where id = $1");
    assert_eq!(ask(&mut a, "execute p(1)"), ["x"]);
    run(&mut a, "deallocate p");
    assert_eq!(fails(&mut a, "execute p(1)"), "26000");
}

/// SET, SHOW and settings that cannot be changed.
#[test]
fn settings() {
    let mut c = database().connect();
    assert_eq!(ask(&mut c, "show transaction isolation level"), ["read committed"]);
    run(&mut c, "set default_transaction_isolation = 'serializable'");
    assert_eq!(ask(&mut c, "show transaction_isolation"), ["serializable"]);
    run(&mut c, "set application_name to 'test'");
    assert_eq!(c.setting("application_name").as_deref(), Some("test"));
    assert_eq!(fails(&mut c, "set server_version = '16'"), "55P02");
    assert_eq!(fails(&mut c, "set nonsense = 1"), "42704");
    assert_eq!(fails(&mut c, "set statement_timeout = 'soon'"), "22023");
    run(&mut c, "begin");
    run(&mut c, "begin");
    assert_eq!(c.take_notices()[0].sqlstate, "25001");
    run(&mut c, "commit");
}

/// Settings are part of transactions, and local ones end with them.
#[test]
fn settings_in_transactions() {
    let mut c = database().connect();
    let path = |c: &mut cairn_sql::Connection| c.setting("search_path").unwrap();
    run(&mut c, "create schema a");
    run(&mut c, "create schema b");
    run(&mut c, "set local search_path = b");
    assert_eq!(c.take_notices()[0].sqlstate, "25P01");
    assert_eq!(path(&mut c), "public");
    run(&mut c, "begin");
    run(&mut c, "set local search_path = a");
    assert_eq!(path(&mut c), "a");
    run(&mut c, "commit");
    assert_eq!(path(&mut c), "public");
    run(&mut c, "begin");
    run(&mut c, "set search_path = a");
    run(&mut c, "savepoint s");
    run(&mut c, "set search_path = b");
    run(&mut c, "set local application_name = 'x'");
    run(&mut c, "rollback to s");
    assert_eq!((path(&mut c), c.setting("application_name").unwrap()), ("a".to_owned(), String::new()));
    run(&mut c, "commit");
    assert_eq!(path(&mut c), "a");
    run(&mut c, "begin");
    run(&mut c, "set search_path = b");
    run(&mut c, "rollback");
    assert_eq!(path(&mut c), "a");
    run(&mut c, "begin");
    run(&mut c, "savepoint s");
    run(&mut c, "set search_path = b");
    run(&mut c, "rollback to s");
    assert_eq!(path(&mut c), "a");
    run(&mut c, "commit");
    assert_eq!(path(&mut c), "a");
}

/// A statement is replanned under another search path, even if the settings have been restored in
/// between.
#[test]
fn plans_and_search_paths() {
    let mut c = database().connect();
    for schema in ["a", "b"] {
        run(&mut c, &format!("create schema {schema}"));
        run(&mut c, &format!("create table {schema}.t (name text)"));
        run(&mut c, &format!("insert into {schema}.t values ('{schema}')"));
    }
    for schema in ["a", "b", "a"] {
        run(&mut c, "discard all");
        run(&mut c, &format!("set search_path = {schema}"));
        assert_eq!(ask(&mut c, "select name from t"), [schema]);
    }
}

/// The next user of a session cannot read the sequence values that it has drawn.
#[test]
fn discarded_sequences() {
    let mut c = database().connect();
    run(&mut c, "create sequence s");
    for (discard, value) in [("discard sequences", "1"), ("discard all", "2")] {
        assert_eq!(ask(&mut c, "select nextval('s')"), [value]);
        assert_eq!(ask(&mut c, "select currval('s')"), [value]);
        run(&mut c, discard);
        assert_eq!(fails(&mut c, "select currval('s')"), "55000");
        assert_eq!(fails(&mut c, "select lastval()"), "55000");
    }
    assert_eq!(ask(&mut c, "select nextval('s')"), ["3"]);
}

/// Plans made in a transaction that changes the schema do not outlive it.
#[test]
fn plans_of_taken_back_definitions() {
    let database = database();
    let mut c = database.connect();
    run(&mut c, "create table t (id int primary key, v int)");
    let insert = c.prepare("insert into t values ($1, $2)").unwrap();
    let mut id = 0;
    let mut add = |c: &mut cairn_sql::Connection| {
        id += 1;
        c.run(&insert, &[Datum::Int(id), Datum::Int(id)]).unwrap();
    };
    for define in ["create index i on t (v)", "truncate t", "alter table t alter column v type bigint"] {
        add(&mut c);
        run(&mut c, "begin");
        run(&mut c, define);
        if !define.starts_with("alter") {
            add(&mut c);
        }
        run(&mut c, "rollback");
        add(&mut c);
        run(&mut c, "begin");
        run(&mut c, "savepoint s");
        run(&mut c, define);
        run(&mut c, "rollback to s");
        add(&mut c);
        run(&mut c, "commit");
    }
    assert_eq!(ask(&mut c, "select count(*) from t"), ["9"]);
    assert_eq!(ask(&mut c, "select count(*) from t where v > 0"), ["9"]);
    drop(c);
    database.check().unwrap();
}

/// A sequence continues after a definition that was rolled back, and where ALTER SEQUENCE sets it.
#[test]
fn sequences() {
    let mut c = database().connect();
    run(&mut c, "create sequence s");
    assert_eq!(ask(&mut c, "select nextval('s')"), ["1"]);
    run(&mut c, "begin");
    run(&mut c, "alter sequence s restart with 100");
    assert_eq!(ask(&mut c, "select nextval('s')"), ["100"]);
    run(&mut c, "rollback");
    let next: i64 = ask(&mut c, "select nextval('s')")[0].parse().unwrap();
    assert!((2..=300).contains(&next), "{next}");
    run(&mut c, "alter sequence s restart");
    assert_eq!(ask(&mut c, "select nextval('s')"), ["1"]);
    run(&mut c, "create table t (id int, v text)");
    run(&mut c, "insert into t values (1, 'x')");
    run(&mut c, "alter sequence s owned by t.id");
    assert_eq!(fails(&mut c, "alter sequence s owned by t.nothing"), "42703");
    assert_eq!(fails(&mut c, "alter sequence nothing restart"), "42P01");
    assert_eq!(fails(&mut c, "alter sequence s restart with 0"), "22023");
    run(&mut c, "drop table t");
    assert_eq!(fails(&mut c, "select nextval('s')"), "42P01");
    assert_eq!(fails(&mut c, "delete from cairn_catalog.sequences"), "42P01");
}

/// Long queries end when they are canceled or time out.
#[test]
fn stops() {
    let database = database();
    let mut c = database.connect();
    run(&mut c, "create table t as select i from generate_series(1, 3000) as s(i)");
    let long = "select count(*) from t a, t b, t c where a.i + b.i + c.i = -1";
    run(&mut c, "set statement_timeout = '200ms'");
    let error = c.execute(long, &[]).unwrap_err();
    assert_eq!(
        (error.sqlstate(), error.message()),
        ("57014", "canceling statement due to statement timeout")
    );
    run(&mut c, "set statement_timeout = 0");
    let canceller = c.canceller();
    let waiter = cairn_vfs::thread::spawn("canceller", move || {
        cairn_vfs::Clock::sleep(&cairn_vfs::SystemClock::new(), Duration::from_millis(200));
        canceller.cancel();
    });
    let error = c.execute(long, &[]).unwrap_err();
    assert_eq!((error.sqlstate(), error.message()), ("57014", "canceling statement due to user request"));
    waiter.unwrap().join().unwrap();
    assert_eq!(ask(&mut c, "select 1"), ["1"]);
    // Canceled queries release their threads: as many queries as there are threads, over rows
    // without any wait in between.
    for _ in 0..3 {
        run(&mut c, "set statement_timeout = '50ms'");
        assert_eq!(fails(&mut c, "select count(*) from t a, t b, t c"), "57014");
        assert_eq!(
            fails(
                &mut c,
                "select count(*) from t a join t b on a.i % 2 = b.i % 2 join t c on b.i % 2 = c.i % 2"
            ),
            "57014"
        );
        run(&mut c, "set statement_timeout = '60s'");
        assert_eq!(ask(&mut c, "select count(distinct a.i) from t a join t b on a.i = b.i"), ["3000"]);
    }
}

/// Goal: a request to cancel is discarded by the next call, or applies until the next message if
/// there are messages. Method: requests while nothing runs, before statements of each kind.
#[test]
fn requests_before_statements() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key)");
    c.canceller().cancel();
    assert_eq!(ask(&mut c, "select 1"), ["1"]);
    c.canceller().cancel();
    c.begin_message();
    assert_eq!(run(&mut c, "insert into t values (1)"), 1);
    c.canceller().cancel();
    for sql in
        ["select 1", "select id from t", "insert into t values (2)", "begin", "create table u (id int)"]
    {
        assert_eq!(fails(&mut c, sql), "57014", "{sql}");
    }
    assert_eq!(c.begin_implicit().unwrap_err().sqlstate(), "57014");
    c.begin_message();
    c.begin_implicit().unwrap();
    assert_eq!(run(&mut c, "insert into t values (2)"), 1);
    c.canceller().cancel();
    assert_eq!(c.end_implicit().unwrap_err().sqlstate(), "57014");
    c.begin_message();
    assert_eq!(c.status(), cairn_sql::TransactionStatus::Idle);
    run(&mut c, "begin");
    c.canceller().cancel();
    assert_eq!(fails(&mut c, "select 1"), "57014");
    assert_eq!(c.status(), cairn_sql::TransactionStatus::Failed);
    run(&mut c, "rollback");
    c.begin_message();
    assert_eq!(ask(&mut c, "select id from t"), ["1"]);
}

/// Sequences continue after rollbacks, DDL in blocks and reopening.
#[test]
fn sequences_and_openings() {
    let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::MemFs::new());
    let open = || {
        cairn_sql::Database::builder()
            .fs(std::sync::Arc::clone(&fs))
            .cache_bytes(16 << 20)
            .open("s.db")
            .unwrap()
    };
    {
        let database = open();
        let (mut a, mut b) = (database.connect(), database.connect());
        run(&mut a, "begin");
        run(&mut a, "create table t (id bigserial primary key, v int)");
        run(&mut a, "insert into t (v) values (1), (2)");
        run(&mut a, "commit");
        assert_eq!(ask(&mut b, "insert into t (v) values (3) returning id"), ["3"]);
        run(&mut a, "begin");
        assert_eq!(ask(&mut a, "insert into t (v) values (4) returning id"), ["4"]);
        run(&mut a, "rollback");
        assert_eq!(ask(&mut b, "select nextval('t_id_seq'), currval('t_id_seq')"), ["5|5"]);
        assert_eq!(ask(&mut b, "select setval('t_id_seq', 10)"), ["10"]);
        assert_eq!(ask(&mut a, "insert into t (v) values (5) returning id"), ["11"]);
    }
    let mut c = open().connect();
    assert_eq!(ask(&mut c, "insert into t (v) values (6) returning id"), ["12"]);
    assert_eq!(ask(&mut c, "select count(*), max(id) from t"), ["5|12"]);
}

/// Goal: `set_config` and SET LOCAL behave as in PostgreSQL 15. Method: the results of SHOW before,
/// in and after a transaction.
#[test]
fn local_settings() {
    let mut c = database().connect();
    assert_eq!(ask(&mut c, "select set_config('application_name', 'a', false)"), ["a"]);
    assert_eq!(ask(&mut c, "show application_name"), ["a"]);
    run(&mut c, "create schema s");
    run(&mut c, "create table s.t (id int)");
    let statement = c.prepare("select set_config('search_path', $1, false)").unwrap();
    assert_eq!(fails(&mut c, "select * from t"), "42P01");
    let Outcome::Rows(mut rows) = c.run(&statement, &[Datum::Text("s".to_owned())]).unwrap() else {
        panic!()
    };
    while rows.next().unwrap().is_some() {}
    drop(rows);
    assert_eq!(ask(&mut c, "select * from t"), Vec::<String>::new());
    run(&mut c, "begin");
    run(&mut c, "set local application_name = 'b'");
    run(&mut c, "set search_path = public");
    assert_eq!(ask(&mut c, "select current_setting('application_name')"), ["b"]);
    run(&mut c, "commit");
    assert_eq!(ask(&mut c, "show application_name"), ["a"]);
    assert_eq!(ask(&mut c, "show search_path"), ["public"]);
    run(&mut c, "begin");
    run(&mut c, "set application_name = 'c'");
    assert_eq!(ask(&mut c, "select set_config('work_mem', '8MB', true)"), ["8MB"]);
    assert_eq!(ask(&mut c, "select current_setting('work_mem')"), ["8MB"]);
    run(&mut c, "rollback");
    assert_eq!(ask(&mut c, "show application_name"), ["a"]);
    assert_eq!(ask(&mut c, "show work_mem"), ["4MB"]);
    run(&mut c, "set local application_name = 'd'");
    assert_eq!(c.take_notices()[0].sqlstate, "25P01");
    assert_eq!(ask(&mut c, "show application_name"), ["a"]);
    assert_eq!(fails(&mut c, "select set_config('nonsense', '1', false)"), "42704");
    c.set_user("ann");
    assert_eq!(ask(&mut c, "select current_user, session_user, user"), ["ann|ann|ann"]);
    run(&mut c, "reset all");
    assert_eq!(ask(&mut c, "select current_user"), ["ann"]);
}

/// Goal: the lock timeout of a session is respected. Method: a row that another session has
/// changed.
#[test]
fn lock_timeout() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table t (id int primary key, v int)");
    run(&mut a, "insert into t values (1, 1)");
    run(&mut b, "set lock_timeout = '1min'");
    assert_eq!(ask(&mut b, "show lock_timeout"), ["1min"]);
    run(&mut a, "begin");
    run(&mut a, "update t set v = 2");
    run(&mut b, "begin");
    run(&mut b, "set local lock_timeout = 20");
    assert_eq!(ask(&mut b, "show lock_timeout"), ["20ms"]);
    assert_eq!(fails(&mut b, "update t set v = 3"), "55P03");
    run(&mut b, "rollback");
    assert_eq!(ask(&mut b, "show lock_timeout"), ["1min"]);
    run(&mut a, "rollback");
    assert_eq!(run(&mut b, "update t set v = 3"), 1);
}

/// Goal: UTC offsets behave as in PostgreSQL 15: they apply to `timestamptz` only, on both paths.
/// Method: columns and casts of both types.
#[test]
fn offsets() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, p timestamp, z timestamptz)");
    run(&mut c, "insert into t values (1, '2024-01-01 12:00:00+02', '2024-01-01 12:00:00+02')");
    assert_eq!(ask(&mut c, "select p, z from t"), ["2024-01-01 12:00:00|2024-01-01 10:00:00"]);
    for from in ["t", "(select * from t) t"] {
        let asked = format!(
            "select count(*) from {from} where p = '2024-01-01 12:00:00-07' and z = '2024-01-01 11:00:00+01'"
        );
        assert_eq!(ask(&mut c, &asked), ["1"], "{from}");
        let cast = format!(
            "select '2024-01-01 12:00+02'::timestamp, '2024-01-01 12:00+02'::timestamptz from {from}"
        );
        assert_eq!(ask(&mut c, &cast), ["2024-01-01 12:00:00|2024-01-01 10:00:00"], "{from}");
    }
}

/// Drawing values blocks no other session, neither at isolation levels that detect a changed row of
/// a sequence, nor with several sequences in any order.
#[test]
fn sequences_of_others() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table s (id serial primary key, v int)");
    run(&mut a, "create table t (id serial primary key, v int)");
    for level in ["read committed", "repeatable read", "serializable"] {
        for round in 0..600 {
            run(&mut a, &format!("begin isolation level {level}"));
            run(&mut a, "insert into s (v) values (1)");
            run(&mut b, &format!("begin isolation level {level}"));
            run(&mut b, "insert into t (v) values (1)");
            run(&mut b, "insert into s (v) values (1)");
            run(&mut a, "insert into t (v) values (1)");
            run(&mut b, "commit");
            assert!(a.execute("commit", &[]).is_ok(), "{level} {round}");
        }
    }
    assert_eq!(ask(&mut a, "select count(*), max(id) from s"), ["3600|3600"]);
}

/// Goal: serial columns get sequences with unique names. Method: renamed tables, whose sequences
/// keep their names.
#[test]
fn sequences_of_renamed_tables() {
    let mut c = database().connect();
    run(&mut c, "create table a (id serial, v int)");
    run(&mut c, "alter table a rename to b");
    run(&mut c, "create table a (id serial, v int)");
    run(&mut c, "alter table a rename to d");
    run(&mut c, "create table a (id int generated always as identity, v int)");
    run(&mut c, "alter table b rename column id to other");
    run(&mut c, "alter table b add column id serial");
    run(&mut c, "alter table a rename to e");
    run(&mut c, "create table a (v int)");
    run(&mut c, "alter table a add column id serial");
    for table in ["a", "b", "d", "e"] {
        run(&mut c, &format!("insert into {table} (v) values (1), (2)"));
        assert_eq!(ask(&mut c, &format!("select id from {table} order by 1")), ["1", "2"], "{table}");
    }
    assert_eq!(
        ask(&mut c, "select relname from pg_class where relkind = 'S' order by 1"),
        ["a_id_seq", "a_id_seq1", "a_id_seq2", "a_id_seq3", "b_id_seq"]
    );
}

/// Goal: a sequence is dropped with the column that owns it, and with no other. Method: tables with
/// dots in their names, next to tables whose names are prefixes of these; OWNED BY at creation.
#[test]
fn sequences_and_their_columns() {
    let mut c = database().connect();
    run(&mut c, "create table a (x int)");
    run(&mut c, "create table \"a.b\" (id serial, v int)");
    run(&mut c, "insert into \"a.b\" (v) values (1), (2)");
    run(&mut c, "truncate a restart identity");
    run(&mut c, "insert into \"a.b\" (v) values (3)");
    run(&mut c, "drop table a");
    run(&mut c, "insert into \"a.b\" default values");
    assert_eq!(ask(&mut c, "select id from \"a.b\" order by id"), ["1", "2", "3", "4"]);
    run(&mut c, "truncate \"a.b\" restart identity");
    run(&mut c, "insert into \"a.b\" default values");
    assert_eq!(ask(&mut c, "select id from \"a.b\""), ["1"]);
    run(&mut c, "create sequence owned owned by \"a.b\".v");
    run(&mut c, "create sequence alone owned by none");
    assert_eq!(fails(&mut c, "create sequence other owned by \"a.b\".w"), "42703");
    assert_eq!(fails(&mut c, "create sequence other owned by v"), "42601");
    run(&mut c, "drop table \"a.b\"");
    assert_eq!(ask(&mut c, "select relname from pg_class where relkind = 'S'"), ["alone"]);
}

/// Goal: each function for the current time returns its own time. Method: a clock that moves
/// between two statements of a block, and within one, on both paths.
#[test]
fn times() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(1_000)));
    let database = Database::builder().fs(Arc::new(MemFs::new())).clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let database = database.open("test.db").unwrap();
    let mut c = database.connect();
    run(&mut c, "create table t (id int primary key)");
    run(&mut c, "insert into t values (1)");
    let seconds = "extract(epoch from now())::int, extract(epoch from transaction_timestamp())::int, extract(epoch from statement_timestamp())::int, \
                   extract(epoch from clock_timestamp())::int";
    for path in ["from t where id = 1", "from t group by id"] {
        clock.jump_to(Duration::from_secs(1_000));
        run(&mut c, "begin");
        assert_eq!(ask(&mut c, &format!("select {seconds} {path}")), ["1000|1000|1000|1000"], "{path}");
        clock.advance(Duration::from_secs(5));
        assert_eq!(ask(&mut c, &format!("select {seconds} {path}")), ["1000|1000|1005|1005"], "{path}");
        let mut rows = c.query(&format!("select {seconds} {path}"), &[]).unwrap();
        clock.advance(Duration::from_secs(5));
        let row = rows.next().unwrap().unwrap();
        let row: Vec<String> = (0..row.len()).map(|column| row.get(column).to_string()).collect();
        assert_eq!(row[..2], ["1000", "1000"], "{path}");
        drop(rows);
        run(&mut c, "commit");
        assert_eq!(ask(&mut c, &format!("select {seconds} {path}")), ["1010|1010|1010|1010"], "{path}");
    }
}

/// Goal: a table created with LIKE has the columns of the other. Method: names, types, NOT NULL;
/// defaults if requested, and no keys.
#[test]
fn tables_like_others() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key, v varchar(3) not null default 'x', d numeric(8,2))");
    run(&mut c, "create table b (like a)");
    assert_eq!(fails(&mut c, "insert into b values (1, null)"), "23502");
    assert_eq!(fails(&mut c, "insert into b (id) values (1)"), "23502");
    assert_eq!(fails(&mut c, "insert into b values (1, 'long')"), "22001");
    run(&mut c, "insert into b values (1, 'y', 2.345), (1, 'y', 1)");
    assert_eq!(ask(&mut c, "select * from b order by d"), ["1|y|1.00", "1|y|2.35"]);
    run(&mut c, "create table c (like a including defaults)");
    run(&mut c, "insert into c (id) values (1)");
    assert_eq!(ask(&mut c, "select * from c"), ["1|x|NULL"]);
    assert_eq!(fails(&mut c, "create table d (like nothing)"), "42P01");
}

/// Goal: a statement run by another connection is planned for that connection's settings. Method:
/// two connections with different search paths, set equally often.
#[test]
fn statements_of_another_connection() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    for (connection, schema) in [(&mut a, "a"), (&mut b, "b")] {
        run(connection, &format!("create schema {schema}"));
        run(connection, &format!("create table {schema}.t (name text)"));
        run(connection, &format!("insert into {schema}.t values ('{schema}')"));
        run(connection, &format!("set search_path = {schema}"));
    }
    let statement = a.prepare("select name from t").unwrap();
    for schema in ["a", "b", "a", "b"] {
        let connection = if schema == "a" { &mut a } else { &mut b };
        let Outcome::Rows(mut rows) = connection.run(&statement, &[]).unwrap() else { panic!() };
        assert_eq!(rows.next().unwrap().unwrap().get(0).to_string(), schema);
    }
}

/// Goal: settings reflect the behavior: values are shown as in PostgreSQL, and values that are not
/// implemented are rejected. Method: spellings of each.
#[test]
fn settings_say_what_is_done() {
    let mut c = database().connect();
    for (name, given, shown) in [
        ("standard_conforming_strings", "true", "on"),
        ("standard_conforming_strings", "'Yes'", "on"),
        ("escape_string_warning", "0", "off"),
        ("row_security", "'OFF'", "off"),
        ("datestyle", "iso", "ISO, MDY"),
        ("datestyle", "'ISO, european'", "ISO, DMY"),
        ("datestyle", "ymd, iso", "ISO, YMD"),
        ("datestyle", "us", "ISO, MDY"),
        ("intervalstyle", "'Postgres'", "postgres"),
        ("bytea_output", "HEX", "hex"),
        ("client_encoding", "'utf-8'", "UTF8"),
        ("client_encoding", "unicode", "UTF8"),
        ("client_encoding", "'sql_ascii'", "SQL_ASCII"),
        ("timezone", "'utc'", "UTC"),
        ("timezone", "'Etc/utc'", "Etc/UTC"),
        ("timezone", "'local'", "UTC"),
        ("timezone", "'0'", "UTC"),
        ("timezone", "gmt", "GMT"),
    ] {
        run(&mut c, &format!("set {name} = {given}"));
        assert_eq!(ask(&mut c, &format!("show {name}")), [shown], "{name} {given}");
    }
    for (name, given, code) in [
        ("standard_conforming_strings", "off", "0A000"),
        ("standard_conforming_strings", "maybe", "22023"),
        ("datestyle", "german", "0A000"),
        ("datestyle", "'sql, dmy'", "0A000"),
        ("datestyle", "'postgres'", "0A000"),
        ("datestyle", "'ISO, sideways'", "22023"),
        ("intervalstyle", "iso_8601", "0A000"),
        ("intervalstyle", "sql_standard", "0A000"),
        ("intervalstyle", "roman", "22023"),
        ("bytea_output", "escape", "0A000"),
        ("bytea_output", "base64", "22023"),
        ("client_encoding", "latin1", "0A000"),
    ] {
        assert_eq!(fails(&mut c, &format!("set {name} = {given}")), code, "{name} {given}");
    }
    run(&mut c, "reset all");
    assert_eq!(ask(&mut c, "show datestyle"), ["ISO, MDY"]);
    assert_eq!(ask(&mut c, "show timezone"), ["UTC"]);
}

/// Goal: a session of a read-only database reports that, whatever its settings.
#[test]
fn read_only_databases_say_so() {
    let fs = Arc::new(MemFs::new());
    let open =
        |read_only: bool| Database::builder().fs(fs.clone()).read_only(read_only).open("test.db").unwrap();
    drop(open(false));
    let mut c = open(true).connect();
    for name in ["default_transaction_read_only", "transaction_read_only"] {
        assert_eq!(c.setting(name).as_deref(), Some("on"), "{name}");
    }
    run(&mut c, "set default_transaction_read_only = off");
    assert_eq!(ask(&mut c, "show transaction_read_only"), ["on"]);
    run(&mut c, "begin read write");
    assert_eq!(ask(&mut c, "show transaction_read_only"), ["on"]);
}
