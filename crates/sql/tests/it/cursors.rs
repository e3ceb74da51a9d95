//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE.

use std::sync::Arc;

use cairn_sql::{Connection, Database, Datum, Outcome, StatementKind};
use cairn_vfs::MemFs;

use crate::support::{ask, database, fails, run};

/// Queries with the same rows from each kind of source: leaf by leaf, one by one, sorted, of the
/// general path, and computed.
const QUERIES: [&str; 5] = [
    "select id, v from t order by id",
    "select id, v || '' as v from t order by id",
    "select id, v from t order by v, id",
    "select t.id, u.v from t join (select * from t) as u on u.id = t.id order by t.id",
    "select id, v from (select id, v, count(*) over () as n from t) as w order by id",
];

fn filled(rows: usize) -> (Database, Connection) {
    let database = database();
    let mut c = database.connect();
    run(&mut c, "create table t (id int primary key, v text)");
    run(
        &mut c,
        &format!("insert into t select i, 'v' || (i + 100000) from generate_series(1, {rows}) as s(i)"),
    );
    (database, c)
}

fn row(id: usize) -> String {
    format!("{id}|v{}", id + 100_000)
}

/// Returns the command tag of a statement.
#[track_caller]
fn tag(c: &mut Connection, sql: &str) -> String {
    let statement = c.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    match c.run(&statement, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")) {
        Outcome::Done(tag) => tag.to_string(),
        Outcome::Rows(mut rows) => {
            while rows.next().unwrap().is_some() {}
            rows.tag().to_string()
        }
        other => panic!("{sql}: {other:?}"),
    }
}

/// Goal: rows come in parts, each once and in order, whatever statements run in between. Method:
/// queries for all kinds of sources, several cursors in turns, in parts of different sizes.
#[test]
fn rows_in_parts() {
    const ROWS: usize = 20_000;
    let (_database, mut c) = filled(ROWS);
    for query in QUERIES {
        run(&mut c, "begin");
        assert_eq!(
            tag(&mut c, &format!("declare a no scroll cursor without hold for {query}")),
            "DECLARE CURSOR"
        );
        run(&mut c, &format!("declare b insensitive cursor for {query}"));
        let (mut found, mut others) = (Vec::new(), 0);
        for count in [1, 2, 7, 1000, 8192, 1] {
            found.extend(ask(&mut c, &format!("fetch forward {count} from a")));
            others += ask(&mut c, "fetch 3 in b").len();
            assert_eq!(ask(&mut c, "select count(*) from t"), [ROWS.to_string()]);
        }
        assert_eq!((found.len(), others), (9_203, 18), "{query}");
        found.extend(ask(&mut c, "fetch all in a"));
        let expected: Vec<String> = (1..=ROWS).map(row).collect();
        assert!(found == expected, "{query}: {} rows", found.len());
        assert_eq!(tag(&mut c, "fetch a"), "FETCH 0");
        assert_eq!(ask(&mut c, "fetch 1 b"), [row(others + 1)]);
        run(&mut c, "commit");
        assert_eq!(fails(&mut c, "fetch a"), "34000");
    }
}

/// Goal: rows are computed as they are fetched, not all at once. Method: rows that draw from a
/// sequence, on both paths; the general path is some batches ahead.
#[test]
fn rows_are_made_as_they_are_fetched() {
    let (_database, mut c) = filled(200_000);
    run(&mut c, "create sequence s");
    for (query, most) in [
        ("select nextval('s'), id from t order by id", 3),
        ("select nextval('s'), a.id from t as a join (values (1)) as b(x) on a.id > b.x", 150_000),
    ] {
        run(&mut c, "alter sequence s restart");
        run(&mut c, "begin");
        run(&mut c, &format!("declare c cursor for {query}"));
        assert_eq!(ask(&mut c, "fetch 3 c").len(), 3);
        let counted: u64 = ask(&mut c, "select currval('s')")[0].parse().unwrap();
        assert!((3..=most).contains(&counted), "{query}: {counted}");
        run(&mut c, "close c");
        run(&mut c, "commit");
    }
}

/// Goal: tags, errors and messages are PostgreSQL's.
#[test]
fn words() {
    let (_database, mut c) = filled(10);
    let told = |c: &mut Connection, sql: &str| {
        let error = c.execute(sql, &[]).unwrap_err();
        (error.sqlstate(), error.message().to_owned(), error.hint().unwrap_or_default().to_owned())
    };
    let plain = |state, message: &str| (state, message.to_owned(), String::new());
    let outside = "DECLARE CURSOR can only be used in transaction blocks";
    assert_eq!(told(&mut c, "declare c cursor for select 1"), plain("25P01", outside));
    assert_eq!(told(&mut c, "fetch c"), plain("34000", "cursor \"c\" does not exist"));
    assert_eq!(told(&mut c, "move c"), plain("34000", "cursor \"c\" does not exist"));
    assert_eq!(told(&mut c, "close c"), plain("34000", "cursor \"c\" does not exist"));
    assert_eq!(tag(&mut c, "close all"), "CLOSE CURSOR ALL");
    for broken in [
        "declare c cursor for insert into t values (1)",
        "declare c cursor with for select 1",
        "declare c cursor select 1",
        "declare cursor for select 1",
        "fetch 99999999999 from c",
        "fetch absolute from c",
        "fetch - from c",
        "fetch 1 from c d",
        "close",
        "move 1",
    ] {
        assert_eq!(fails(&mut c, broken), "42601", "{broken}");
    }
    let both = plain("42P11", "cannot specify both SCROLL and NO SCROLL");
    assert_eq!(told(&mut c, "declare c scroll binary no scroll cursor for select 1"), both);
    let place = c.execute("declare c cursor for\n  selec 1", &[]).unwrap_err().position();
    assert_eq!(place, Some(24));
    run(&mut c, "begin");
    run(&mut c, "declare c cursor for select id, v from t order by id");
    run(&mut c, "savepoint s");
    assert_eq!(told(&mut c, "declare c cursor for select 1"), plain("42P03", "cursor \"c\" already exists"));
    assert_eq!(told(&mut c, "fetch c").0, "25P02");
    run(&mut c, "rollback to s");
    assert_eq!(tag(&mut c, "move backward all from c"), "MOVE 0");
    assert_eq!(tag(&mut c, "fetch 3 from c"), "FETCH 3");
    assert_eq!(tag(&mut c, "move 2 in c"), "MOVE 2");
    assert_eq!(ask(&mut c, "fetch relative 2 from c"), [row(7)]);
    assert_eq!(ask(&mut c, "fetch absolute 9 from c"), [row(9)]);
    assert_eq!(tag(&mut c, "move 0 from c"), "MOVE 1");
    for back in [
        "prior",
        "backward 1",
        "backward 0",
        "backward all",
        "first",
        "last",
        "absolute 9",
        "absolute -1",
        "relative -1",
        "relative 0",
        "0",
        "-3",
    ] {
        run(&mut c, "declare d cursor for select id, v from t order by id");
        run(&mut c, "savepoint d");
        run(&mut c, "move 9 d");
        let back = format!("fetch {back} from d");
        let (state, message, hint) = told(&mut c, &back);
        assert_eq!((state, &*message), ("55000", "cursor can only scan forward"), "{back}");
        assert_eq!(hint, "Declare it with SCROLL option to enable backward scan.", "{back}");
        run(&mut c, "rollback to d");
        assert_eq!(told(&mut c, "fetch d"), plain("55000", "portal \"d\" cannot be run"));
        run(&mut c, "rollback to s");
    }
    assert_eq!(ask(&mut c, "fetch backward -1 from c"), [row(10)]);
    assert_eq!(tag(&mut c, "move forward all from c"), "MOVE 0");
    assert_eq!(tag(&mut c, "move absolute 40 from c"), "MOVE 0");
    assert_eq!(tag(&mut c, "close c"), "CLOSE CURSOR");
    run(&mut c, "declare \"Odd one\" cursor for values (1)");
    run(&mut c, "declare next cursor for select id, v from t order by id");
    assert_eq!(ask(&mut c, "fetch \"Odd one\""), ["1"]);
    assert_eq!(ask(&mut c, "fetch next"), [row(1)]);
    assert_eq!(tag(&mut c, "close all"), "CLOSE CURSOR ALL");
    assert_eq!(fails(&mut c, "fetch next"), "34000");
    run(&mut c, "rollback");
}

/// Goal: FETCH has the columns of its cursor, and DECLARE the parameters of its query. Method:
/// prepared statements, on both paths; a cursor of the same name with other columns.
#[test]
fn prepared() {
    let (_database, mut c) = filled(10);
    run(&mut c, "begin");
    for query in [
        "select v, id from t where id > $1",
        "select t.v, u.id from t join t as u on u.id = t.id where u.id > $1",
    ] {
        let declare = c.prepare(&format!("declare c cursor for {query} order by 2")).unwrap();
        assert_eq!((declare.kind(), declare.columns().len()), (StatementKind::Utility, 0));
        assert_eq!(declare.parameters()[0].to_string(), "int");
        assert!(matches!(c.run(&declare, &[Datum::Int(7)]).unwrap(), Outcome::Done(_)));
        let fetch = c.prepare("fetch 2 from c").unwrap();
        assert_eq!(fetch.kind(), StatementKind::Fetch);
        let names: Vec<_> =
            fetch.columns().iter().map(|column| (column.name.as_str(), column.kind.to_string())).collect();
        assert_eq!(names, [("v", "text".to_owned()), ("id", "int".to_owned())]);
        assert_eq!(ask(&mut c, "fetch 2 from c"), ["v100008|8", "v100009|9"]);
        run(&mut c, "close c");
        run(&mut c, "declare c cursor for select 5 as five");
        assert_eq!(c.prepare("fetch 2 from c").unwrap().columns()[0].name, "five");
        let Outcome::Rows(rows) = c.run(&fetch, &[]).unwrap() else { panic!() };
        assert_eq!(rows.columns().len(), 1);
        drop(rows);
        run(&mut c, "close c");
    }
    assert!(c.prepare("fetch 2 from c").unwrap().columns().is_empty());
    run(&mut c, "commit");
}

/// Goal: a cursor sees the state at its declaration, and no later changes of its own transaction or
/// others.
/// Method: rows that are updated, deleted and inserted before the cursor reaches them, in a
/// transaction that had written before and in one that had not, also in indexed columns; queries of
/// both paths.
#[test]
fn changes_are_not_seen() {
    for before in [
        "select 1",
        "update t set v = v where id < 30",
        "delete from t where id = 51",
        "insert into t values (0, 'v100000')",
    ] {
        for query in QUERIES {
            let (database, mut c) = filled(50);
            run(&mut c, "create index on t (v)");
            run(&mut c, "begin");
            c.execute(before, &[]).unwrap();
            let expected = ask(&mut c, query);
            run(&mut c, &format!("declare c cursor for {query}"));
            let mut found = ask(&mut c, "fetch 3 from c");
            run(&mut c, "update t set v = 'w' || id where id % 3 = 0");
            run(&mut c, "savepoint s");
            run(&mut c, "update t set id = id + 1000 where id % 5 = 1");
            run(&mut c, "delete from t where id % 7 = 2");
            found.extend(ask(&mut c, "fetch 3 from c"));
            run(&mut c, "rollback to s");
            run(&mut c, "insert into t select i, 'new' from generate_series(60, 90) as s(i)");
            run(&mut c, "delete from t where id % 7 = 3");
            if before == "select 1" {
                let mut other = database.connect();
                run(&mut other, "insert into t values (2000, 'other')");
            }
            found.extend(ask(&mut c, "fetch all from c"));
            assert_eq!(found, expected, "{before}: {query}");
            assert_eq!(ask(&mut c, "select count(*) from t where v = 'new'"), ["27"]);
            run(&mut c, "rollback");
        }
    }
}

/// Goal: a cursor ends with the transaction or savepoint in which it was declared. Method:
/// savepoints that are rolled back and released, ends of transactions, errors with and without a
/// savepoint.
#[test]
fn savepoints_and_ends() {
    let (_database, mut c) = filled(10);
    run(&mut c, "begin");
    run(&mut c, "declare a cursor for select id from t order by id");
    run(&mut c, "savepoint s");
    run(&mut c, "declare b cursor for select id from t order by id");
    run(&mut c, "savepoint inner_one");
    run(&mut c, "declare d cursor for select id from t order by id");
    run(&mut c, "release inner_one");
    assert_eq!(ask(&mut c, "fetch 2 a"), ["1", "2"]);
    run(&mut c, "rollback to s");
    for gone in ["b", "d"] {
        assert_eq!(fails(&mut c, &format!("fetch {gone}")), "34000");
        run(&mut c, "rollback to s");
    }
    // Its position stays, as in PostgreSQL.
    assert_eq!(ask(&mut c, "fetch 2 a"), ["3", "4"]);
    run(&mut c, "declare e cursor for select id from t order by id");
    run(&mut c, "release s");
    assert_eq!(fails(&mut c, "select 1 / (id - 3) from t"), "22012");
    assert_eq!(fails(&mut c, "fetch a"), "25P02");
    assert_eq!(fails(&mut c, "close a"), "25P02");
    run(&mut c, "rollback");
    assert_eq!(fails(&mut c, "fetch e"), "34000");
    // A cursor whose rows have failed returns no more.
    run(&mut c, "begin");
    run(&mut c, "declare c cursor for select 10 / (id - 3) as q from t order by id");
    run(&mut c, "savepoint s");
    assert_eq!(ask(&mut c, "fetch 1 c"), ["-5"]);
    assert_eq!(fails(&mut c, "fetch all c"), "22012");
    run(&mut c, "rollback to s");
    assert_eq!(fails(&mut c, "fetch 1 c"), "55000");
    run(&mut c, "commit");
    // Tables that a cursor reads can be changed, and operations that wait for snapshots do not wait
    // for closed cursors.
    run(&mut c, "begin");
    run(&mut c, "declare c cursor for select id from t order by id");
    assert_eq!(ask(&mut c, "fetch c"), ["1"]);
    run(&mut c, "alter table t add column w int");
    run(&mut c, "truncate t");
    assert_eq!(ask(&mut c, "fetch 2 c"), ["2", "3"]);
    run(&mut c, "commit");
    run(&mut c, "begin");
    run(&mut c, "declare c cursor for select id from t order by id");
    run(&mut c, "rollback");
    run(&mut c, "drop table t");
}

/// Goal: SCROLL moves in every direction. Method: directions from positions before, among and after
/// the rows, on both paths.
#[test]
fn scrolling() {
    let (_database, mut c) = filled(20_000);
    for query in QUERIES {
        run(&mut c, "begin");
        run(&mut c, &format!("declare c scroll cursor for {query}"));
        for (way, expected) in [
            ("0", vec![]),
            ("prior", vec![]),
            ("2", vec![1, 2]),
            ("prior", vec![1]),
            ("prior", vec![]),
            ("next", vec![1]),
            ("absolute 15000", vec![15_000]),
            ("relative 0", vec![15_000]),
            ("backward 3", vec![14_999, 14_998, 14_997]),
            ("relative -7000", vec![7_997]),
            ("forward 2", vec![7_998, 7_999]),
            ("last", vec![20_000]),
            ("next", vec![]),
            ("prior", vec![20_000]),
            ("absolute -2", vec![19_999]),
            ("all", vec![20_000]),
            ("backward 2", vec![20_000, 19_999]),
            ("first", vec![1]),
            ("absolute 0", vec![]),
            ("absolute 30000", vec![]),
            ("relative -1", vec![20_000]),
        ] {
            let expected: Vec<String> = expected.into_iter().map(row).collect();
            assert_eq!(ask(&mut c, &format!("fetch {way} from c")), expected, "{query}: {way}");
        }
        assert_eq!(tag(&mut c, "move backward all in c"), "MOVE 19999");
        assert_eq!(tag(&mut c, "move absolute 5 in c"), "MOVE 1");
        assert_eq!(ask(&mut c, "fetch backward all from c"), [4, 3, 2, 1].map(row));
        run(&mut c, "commit");
    }
}

/// Goal: WITH HOLD keeps the remaining rows across a commit, unchanged, and none across a rollback.
/// Method: cursors with and without earlier fetches; changes and drops of the table afterwards; a
/// commit that fails because the rows do; outside of transactions.
#[test]
fn held() {
    for query in QUERIES {
        let (database, mut c) = filled(20_000);
        run(&mut c, "begin");
        run(&mut c, &format!("declare a cursor with hold for {query}"));
        run(&mut c, &format!("declare b scroll cursor with hold for {query}"));
        run(&mut c, &format!("declare d cursor for {query}"));
        assert_eq!(ask(&mut c, "fetch 3 a"), [1, 2, 3].map(row));
        assert_eq!(ask(&mut c, "fetch 2 b"), [1, 2].map(row));
        run(&mut c, "update t set v = 'changed'");
        run(&mut c, "commit");
        assert_eq!(fails(&mut c, "fetch d"), "34000");
        // Held cursors have no snapshot, so no other session waits for them.
        let mut other = database.connect();
        run(&mut other, "drop table t");
        assert_eq!(ask(&mut c, "fetch 2 a"), [4, 5].map(row), "{query}");
        assert_eq!(ask(&mut c, "fetch absolute 20000 a"), [row(20_000)]);
        assert_eq!(ask(&mut c, "fetch prior b"), [row(1)]);
        assert_eq!(fails(&mut c, "fetch prior a"), "55000");
        assert_eq!(fails(&mut c, "fetch a"), "55000");
        // A later rollback does not close them.
        run(&mut c, "begin");
        assert_eq!(ask(&mut c, "fetch last b"), [row(20_000)]);
        run(&mut c, "rollback");
        assert_eq!(ask(&mut c, "fetch prior b"), [row(19_999)]);
        run(&mut c, "close a");
        run(&mut c, "discard all");
        assert_eq!(fails(&mut c, "fetch b"), "34000");
    }
    let (_database, mut c) = filled(10);
    run(&mut c, "declare alone cursor with hold for select id from t order by id");
    run(&mut c, "delete from t");
    assert_eq!(ask(&mut c, "fetch all alone").len(), 10);
    run(&mut c, "begin");
    run(&mut c, "declare gone cursor with hold for select 1");
    run(&mut c, "rollback");
    assert_eq!(fails(&mut c, "fetch gone"), "34000");
    run(&mut c, "insert into t values (1, 'x'), (2, 'y')");
    run(&mut c, "begin");
    run(&mut c, "insert into t values (3, 'z')");
    run(&mut c, "declare broken cursor with hold for select 1 / (id - 2) from t order by id");
    assert_eq!(ask(&mut c, "fetch broken"), ["-1"]);
    assert_eq!(fails(&mut c, "commit"), "22012");
    assert_eq!(ask(&mut c, "select count(*) from t"), ["2"]);
    assert_eq!(fails(&mut c, "fetch broken"), "34000");
    assert_eq!(ask(&mut c, "fetch alone"), Vec::<String>::new());
}

/// Goal: materialized rows take no more than the memory limit of queries, and spill beyond that.
/// Method: rows of many times that size, held, and read forward, backward and by number.
#[test]
fn rows_beyond_the_memory() {
    let database = Database::builder().fs(Arc::new(MemFs::new())).cache_bytes(16 << 20).threads(2);
    let database = database.memory_limit(4 << 20).open("test.db").unwrap();
    let mut c = database.connect();
    run(&mut c, "create table t (id int primary key, v text)");
    run(&mut c, "insert into t select i, repeat('x', 200) || i from generate_series(1, 100000) as s(i)");
    let long = |id: usize| format!("{id}|{}{id}", "x".repeat(200));
    for query in ["select id, v from t order by id", "select id, v || '' from t order by id"] {
        run(&mut c, "begin");
        run(&mut c, &format!("declare a cursor with hold for {query}"));
        run(&mut c, &format!("declare b scroll cursor with hold for {query}"));
        assert_eq!(ask(&mut c, "fetch 2 a"), [1, 2].map(long));
        assert_eq!(ask(&mut c, "fetch absolute -1 b"), [long(100_000)]);
        run(&mut c, "commit");
        assert_eq!(ask(&mut c, "fetch absolute 60000 b"), [long(60_000)]);
        assert_eq!(ask(&mut c, "fetch prior b"), [long(59_999)]);
        assert_eq!(ask(&mut c, "fetch a"), [long(3)]);
        assert_eq!(tag(&mut c, "move 90000 a"), "MOVE 90000");
        assert_eq!(ask(&mut c, "fetch 2 a"), [90_004, 90_005].map(long));
        assert_eq!(ask(&mut c, "fetch first b"), [long(1)]);
        run(&mut c, "move absolute 100001 b");
        let back = ask(&mut c, "fetch backward all b");
        let expected: Vec<String> = (1..=100_000).rev().map(long).collect();
        assert!(back == expected, "{} rows", back.len());
        assert_eq!(ask(&mut c, "fetch 1 b"), [long(1)]);
        run(&mut c, "close all");
    }
}

/// Goal: `pg_cursors` lists the current cursors. Method: a repeated text, whose plan is cached.
#[test]
fn listed() {
    let (_database, mut c) = filled(10);
    let listed = |c: &mut Connection| {
        ask(
            c,
            "select name, statement, is_holdable, is_binary, is_scrollable, creation_time > '2001-01-01' from pg_cursors order by name",
        )
    };
    assert_eq!(listed(&mut c), Vec::<String>::new());
    run(&mut c, "begin");
    run(&mut c, "declare b binary cursor for select 1");
    assert_eq!(listed(&mut c), ["b|declare b binary cursor for select 1|f|t|f|t"]);
    run(&mut c, "declare a scroll cursor with hold for select 2");
    assert_eq!(listed(&mut c).len(), 2);
    run(&mut c, "commit");
    assert_eq!(listed(&mut c), ["a|declare a scroll cursor with hold for select 2|t|f|t|t"]);
    run(&mut c, "close a");
    let none = "select 1 from pg_catalog.pg_cursors where name = 'a'";
    assert_eq!(ask(&mut c, none), Vec::<String>::new());
}

/// Goal: to a serializable transaction, all rows that its cursors may return count as read. Method:
/// another transaction inserts a row into the range of a cursor that has only begun.
#[test]
fn serializable() {
    let (database, mut c) = filled(10);
    let mut other = database.connect();
    run(&mut c, "begin isolation level serializable");
    run(&mut c, "declare c cursor for select id from t where id between 1 and 1000");
    assert_eq!(ask(&mut c, "fetch c"), ["1"]);
    run(&mut other, "insert into t values (500, 'x')");
    assert_eq!(ask(&mut c, "fetch all c").len(), 9);
    run(&mut c, "insert into t values (501, 'y')");
    assert_eq!(fails(&mut c, "commit"), "40001");
}

/// Goal: the rows of a cursor FOR UPDATE are locked. Method: another session requests one of them
/// before and after the commit; the cursor's own transaction has changed one.
#[test]
fn rows_that_are_locked() {
    let (database, mut c) = filled(10);
    run(&mut c, "begin");
    run(&mut c, "update t set v = 'own' where id = 2");
    run(&mut c, "declare c cursor for select id, v from t where id < 4 order by id for update");
    assert_eq!(ask(&mut c, "fetch all c"), [row(1), "2|own".to_owned(), row(3)]);
    let mut other = database.connect();
    run(&mut other, "set lock_timeout = '20ms'");
    assert_eq!(fails(&mut other, "update t set v = 'x' where id = 3"), "55P03");
    run(&mut c, "commit");
    assert_eq!(run(&mut other, "update t set v = 'x' where id = 3"), 1);
}

/// Goal: the statement timeout covers the rows that a statement materializes. Method: rows that
/// take far longer; COMMIT, a statement that is its own transaction, and statements of one message.
#[test]
fn times_of_held_rows() {
    let (_database, mut c) = filled(10);
    let endless = "with hold for select count(*) from generate_series(1, 300000) as a(i), generate_series(1, 300000) as b(i) where a.i + b.i < 0";
    let told = |c: &mut Connection, sql: &str| {
        let error = c.execute(sql, &[]).unwrap_err();
        (error.sqlstate(), error.message().to_owned())
    };
    let expected = ("57014", "canceling statement due to statement timeout".to_owned());
    run(&mut c, "set statement_timeout = '2s'");
    run(&mut c, "begin");
    run(&mut c, &format!("declare c cursor {endless}"));
    assert_eq!(told(&mut c, "commit"), expected);
    assert_eq!(fails(&mut c, "fetch c"), "34000");
    assert_eq!(told(&mut c, &format!("declare c cursor {endless}")), expected);
    c.begin_implicit().unwrap();
    run(&mut c, &format!("declare c cursor {endless}"));
    let error = c.end_implicit().unwrap_err();
    assert_eq!((error.sqlstate(), error.message().to_owned()), expected);
    assert_eq!(ask(&mut c, "select count(*) from t"), ["10"]);
}

/// Goal: canceling a statement does not stop the queries of open cursors. Method: a query that runs
/// for a while; the session is canceled while it runs no statement, and the query has time to
/// notice while another session works.
#[test]
fn a_cursor_is_not_stopped_with_others() {
    let (database, mut c) = filled(200_000);
    run(&mut c, "begin");
    let query = "select count(*), sum(length(a.v)) from t as a join (values (1)) as b(x) on a.id > b.x";
    run(&mut c, &format!("declare c cursor for {query}"));
    c.canceller().cancel();
    let mut other = database.connect();
    for _ in 0..10 {
        assert_eq!(ask(&mut other, "select count(distinct v) from t where id <= 1000"), ["1000"]);
    }
    assert_eq!(ask(&mut c, "fetch c"), ["199999|1399993"]);
    // Canceling a FETCH ends the cursor.
    run(&mut c, "declare d cursor for select count(*) from t as a, t as b where a.id + b.id < 0");
    run(&mut c, "set statement_timeout = '50ms'");
    assert_eq!(fails(&mut c, "fetch d"), "57014");
    run(&mut c, "rollback");
}

/// Goal: the number of a session's cursors is limited, because each may hold one of the few
/// snapshots.
#[test]
fn too_many() {
    let (_database, mut c) = filled(10);
    run(&mut c, "begin");
    run(&mut c, "savepoint s");
    for number in 0..256 {
        run(&mut c, &format!("declare c{number} cursor for select id from t order by id"));
    }
    run(&mut c, "savepoint full");
    assert_eq!(fails(&mut c, "declare c cursor for select 1"), "54000");
    run(&mut c, "rollback to full");
    let select = c.prepare("select id from t order by id").unwrap();
    assert_eq!(c.run_in_parts(&select, &[], "p", 1).unwrap_err().sqlstate(), "54000");
    run(&mut c, "rollback to full");
    assert_eq!(ask(&mut c, "fetch c255"), ["1"]);
    run(&mut c, "close c7");
    run(&mut c, "declare c cursor for select 1");
    run(&mut c, "rollback");
}

/// Goal: changes and COPY see the current cursors, too. Method: the same text, with a cached plan,
/// before and after a cursor is declared.
#[test]
fn listed_by_changes() {
    let (_database, mut c) = filled(10);
    run(&mut c, "create table log (name text)");
    let insert = c.prepare("insert into log select name from pg_cursors").unwrap();
    for (name, expected) in [("a", 1), ("b", 2)] {
        run(&mut c, &format!("declare {name} cursor with hold for select 1"));
        let Outcome::Done(tag) = c.run(&insert, &[]).unwrap() else { panic!() };
        assert_eq!(tag.rows, Some(expected), "{name}");
    }
    assert_eq!(ask(&mut c, "select name from log order by name"), ["a", "a", "b"]);
}
