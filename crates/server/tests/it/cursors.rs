use crate::client::{Host, bind, close, describe, execute, parse, query, sync};

fn filled(rows: usize) -> Host {
    let host = Host::new();
    let mut connection = host.database.connect();
    connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text)", &[]).unwrap();
    let fill = format!("INSERT INTO t SELECT i, 'b' || i FROM generate_series(1, {rows}) AS s(i)");
    connection.execute(&fill, &[]).unwrap();
    host
}

/// Goal: cursors work in the simple protocol, as psql's FETCH_COUNT and psycopg2's named cursors
/// use them: rows, tags, errors, values of a BINARY cursor.
#[test]
fn simple() {
    let host = filled(5);
    let mut client = host.session();
    assert_eq!(client.query("DECLARE c CURSOR FOR SELECT a FROM t"), "E ERROR 25P01\nZ I\n");
    assert_eq!(client.query("BEGIN"), "C BEGIN\nZ T\n");
    let declare = "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT a, b FROM t ORDER BY a";
    assert_eq!(client.query(declare), "C DECLARE CURSOR\nZ T\n");
    assert_eq!(client.query("FETCH FORWARD 2 FROM c"), "T a:23 b:25\nD 1|b1\nD 2|b2\nC FETCH 2\nZ T\n");
    assert_eq!(client.query("MOVE c"), "C MOVE 1\nZ T\n");
    assert_eq!(client.query("SELECT count(*) FROM t"), "T count:20\nD 5\nC SELECT 1\nZ T\n");
    assert_eq!(client.query("FETCH ALL c"), "T a:23 b:25\nD 4|b4\nD 5|b5\nC FETCH 2\nZ T\n");
    assert_eq!(client.query("FETCH 1 c"), "T a:23 b:25\nC FETCH 0\nZ T\n");
    assert_eq!(client.query("CLOSE c"), "C CLOSE CURSOR\nZ T\n");
    client.query("DECLARE c BINARY CURSOR FOR SELECT a FROM t ORDER BY a");
    assert_eq!(
        client.query("FETCH 2 c; CLOSE ALL"),
        "T a:23\nD 00000001\nD 00000002\nC FETCH 2\nC CLOSE CURSOR ALL\nZ T\n"
    );
    assert_eq!(client.query("FETCH c"), "E ERROR 34000\nZ E\n");
    assert_eq!(client.query("FETCH c"), "E ERROR 25P02\nZ E\n");
    client.query("ROLLBACK");
    // Statements in one message are a transaction.
    assert_eq!(
        client.query("DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a; FETCH 1 c"),
        "C DECLARE CURSOR\nT a:23\nD 1\nC FETCH 1\nZ I\n"
    );
    assert_eq!(client.query("FETCH c"), "E ERROR 34000\nZ I\n");
    assert_eq!(
        client.query("DECLARE c CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a"),
        "C DECLARE CURSOR\nZ I\n"
    );
    assert_eq!(client.query("FETCH 1 c"), "T a:23\nD 1\nC FETCH 1\nZ I\n");
    assert_eq!(client.query("CLOSE c"), "C CLOSE CURSOR\nZ I\n");
}

/// Goal: cursors work in the extended protocol, as psycopg 3 and others use them: DECLARE takes
/// parameters, FETCH is described by its rows, and a cursor is described and closed like a portal.
#[test]
fn extended() {
    let host = filled(5);
    let mut client = host.session();
    client.query("BEGIN");
    let declare = parse("", "DECLARE c CURSOR FOR SELECT a, b FROM t WHERE a > $1 ORDER BY a", &[]);
    let bound = bind("", "", false, &[Some(b"1")]);
    let told =
        client.ask(&[declare.clone(), describe(b'S', ""), bound, describe(b'P', ""), execute("", 0), sync()]);
    assert_eq!(told, "1\nt 23\nn\n2\nn\nC DECLARE CURSOR\nZ T\n");
    assert_eq!(client.ask(&[describe(b'P', "c"), sync()]), "T a:23 b:25\nZ T\n");
    let fetch = parse("f", "FETCH FORWARD 1 FROM c", &[]);
    assert_eq!(client.ask(&[fetch, describe(b'S', "f"), sync()]), "1\nt \nT a:23 b:25\nZ T\n");
    let run = |is_binary| [bind("", "f", is_binary, &[]), describe(b'P', ""), execute("", 0), sync()];
    assert_eq!(client.ask(&run(false)), "2\nT a:23 b:25\nD 2|b2\nC FETCH 1\nZ T\n");
    assert_eq!(client.ask(&run(true)), "2\nT a:23 b:25\nD 00000003|b3\nC FETCH 1\nZ T\n");
    // The cursor itself is executed like a portal.
    assert_eq!(
        client.ask(&[execute("c", 1), execute("c", 5), sync()]),
        "D 4|b4\ns\nD 5|b5\nC SELECT 1\nZ T\n"
    );
    assert_eq!(client.ask(&[close(b'P', "c"), describe(b'P', "c"), sync()]), "3\nE ERROR 34000\nZ E\n");
    client.query("ROLLBACK; BEGIN");
    // Another cursor with that name.
    client.query("DECLARE c CURSOR FOR SELECT 'x' AS x, 2 AS y, 3.5 AS z");
    assert_eq!(client.ask(&run(false)), "2\nT x:25 y:23 z:1700\nD x|2|3.5\nC FETCH 1\nZ T\n");
    client.query("COMMIT");
    assert_eq!(
        client.ask(&[bind("", "f", false, &[]), describe(b'P', ""), execute("", 0), sync()]),
        "2\nn\nE ERROR 34000\nZ I\n"
    );
    // Alone and before Sync, the cursor would be closed at once.
    assert_eq!(
        client.ask(&[declare, bind("", "", false, &[Some(b"1")]), execute("", 0), sync()]),
        "1\n2\nE ERROR 25P01\nZ I\n"
    );
}

/// Goal: portals and cursors share one namespace. Method: SQL fetches from, moves and closes a
/// suspended portal; names that are taken; a FETCH whose own rows are requested in parts.
#[test]
fn portals_are_cursors() {
    let host = filled(9);
    let mut client = host.session();
    client.query("BEGIN");
    let open =
        [parse("s", "SELECT a FROM t ORDER BY a", &[]), bind("p", "s", false, &[]), execute("p", 2), sync()];
    assert_eq!(client.ask(&open), "1\n2\nD 1\nD 2\ns\nZ T\n");
    assert_eq!(client.query("FETCH 2 FROM p"), "T a:23\nD 3\nD 4\nC FETCH 2\nZ T\n");
    assert_eq!(client.query("MOVE 1 IN p"), "C MOVE 1\nZ T\n");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "D 6\ns\nZ T\n");
    client.query("SAVEPOINT s");
    assert_eq!(client.query("DECLARE p CURSOR FOR SELECT 1"), "E ERROR 42P03\nZ E\n");
    client.query("ROLLBACK TO s");
    client.query("DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a");
    assert_eq!(client.ask(&[bind("c", "s", false, &[]), sync()]), "E ERROR 42P03\nZ E\n");
    client.query("ROLLBACK TO s");
    // Once the portal is closed, its name is free.
    for close in ["CLOSE p", "ROLLBACK TO s", "CLOSE ALL"] {
        client.query(close);
        let again = [bind("p", "s", false, &[]), execute("p", 1), sync()];
        assert_eq!(client.ask(&again), "2\nD 1\ns\nZ T\n", "{close}");
    }
    assert_eq!(client.query("CLOSE p"), "C CLOSE CURSOR\nZ T\n");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 34000\nZ E\n");
    client.query("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a");
    let parts = [parse("", "FETCH 4 FROM c", &[]), bind("f", "", false, &[]), execute("f", 2), sync()];
    assert_eq!(client.ask(&parts), "1\n2\nD 1\nD 2\ns\nZ T\n");
    assert_eq!(client.query("FETCH c"), "T a:23\nD 5\nC FETCH 1\nZ T\n");
    assert_eq!(client.ask(&[execute("f", 9), sync()]), "D 3\nD 4\nC FETCH 2\nZ T\n");
    client.query("COMMIT");
    // EXECUTE works in parts too.
    client.query("PREPARE q AS SELECT a FROM t WHERE a > $1 ORDER BY a; BEGIN");
    let parts =
        [parse("", "EXECUTE q(6)", &[]), bind("e", "", false, &[]), execute("e", 2), execute("e", 2), sync()];
    assert_eq!(client.ask(&parts), "1\n2\nD 7\nD 8\ns\nD 9\nC SELECT 1\nZ T\n");
}

/// Goal: neither a cursor nor a suspended portal materializes its rows, whatever runs in between.
/// Method: rows that increment a sequence; its value after a few were fetched.
#[test]
fn rows_are_made_as_they_are_fetched() {
    let host = filled(20_000);
    let mut client = host.session();
    client.query("CREATE SEQUENCE s");
    client.query("BEGIN");
    let select = "SELECT nextval('s'), b FROM t ORDER BY a";
    let open = [parse("", select, &[]), bind("p", "", false, &[]), execute("p", 2), sync()];
    assert_eq!(client.ask(&open), "1\n2\nD 1|b1\nD 2|b2\ns\nZ T\n");
    assert_eq!(client.query("SELECT currval('s')"), "T currval:20\nD 2\nC SELECT 1\nZ T\n");
    client.query(&format!("DECLARE c CURSOR FOR {select}"));
    assert_eq!(client.query("FETCH c"), "T nextval:20 b:25\nD 3|b1\nC FETCH 1\nZ T\n");
    assert_eq!(client.query("SELECT currval('s')"), "T currval:20\nD 3\nC SELECT 1\nZ T\n");
    // Neither sees changes made in between.
    client.query("UPDATE t SET b = 'changed'; DELETE FROM t WHERE a % 2 = 0");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "D 4|b3\ns\nZ T\n");
    assert_eq!(client.query("FETCH 1 c"), "T nextval:20 b:25\nD 5|b2\nC FETCH 1\nZ T\n");
    client.send(&[execute("p", 0), sync()]);
    let rest = client.until_ready();
    assert_eq!((rest.lines().count(), rest.contains("changed")), (19_997 + 2, false));
    assert_eq!(client.ask(&[query("COMMIT")]), "C COMMIT\nZ I\n");
}

/// Goal: a portal continues only with its own cursor, and affects no other. Method: a cursor of
/// DECLARE with the name of a suspended portal that was closed by SQL but not by the protocol, with
/// other columns and formats.
#[test]
fn a_portal_has_its_own_cursor() {
    let host = filled(9);
    let mut client = host.session();
    client.query("BEGIN");
    let open =
        [parse("s", "SELECT a FROM t ORDER BY a", &[]), bind("p", "s", true, &[]), execute("p", 1), sync()];
    assert_eq!(client.ask(&open), "1\n2\nD 00000001\ns\nZ T\n");
    client.query("CLOSE p");
    client.query("DECLARE p CURSOR FOR SELECT b, a, 'x' FROM t ORDER BY a");
    client.query("SAVEPOINT s");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 34000\nZ E\n");
    client.query("ROLLBACK TO s");
    assert_eq!(client.query("FETCH p"), "T b:25 a:23 ?column?:25\nD b1|1|x\nC FETCH 1\nZ T\n");
    // Names of portals that have not run, and of those that are done, are taken.
    client.query("SAVEPOINT s");
    client.ask(&[bind("q", "s", false, &[]), sync()]);
    for most in [None, Some(0)] {
        if let Some(most) = most {
            client.ask(&[execute("q", most), sync()]);
        }
        assert_eq!(client.query("DECLARE q CURSOR FOR SELECT 1"), "E ERROR 42P03\nZ E\n");
        client.query("ROLLBACK TO s");
        let declare = [parse("", "DECLARE q CURSOR FOR SELECT 1", &[]), bind("", "", false, &[])];
        assert_eq!(client.ask(&[declare.concat(), execute("", 0), sync()]), "1\n2\nE ERROR 42P03\nZ E\n");
        assert_eq!(client.query("DECLARE q CURSOR FOR SELECT 1"), "E ERROR 25P02\nZ E\n");
        client.query("ROLLBACK TO s");
    }
    client.ask(&[close(b'P', "q"), sync()]);
    assert_eq!(client.query("DECLARE q CURSOR FOR SELECT 1"), "C DECLARE CURSOR\nZ T\n");
}

/// Goal: a suspended portal reports that its transaction has failed, and continues after ROLLBACK
/// TO.
/// Method: portals and a cursor, with and without a savepoint.
#[test]
fn failed_transactions() {
    let host = filled(9);
    let mut client = host.session();
    client.query("BEGIN; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a");
    let open =
        [parse("s", "SELECT a FROM t ORDER BY a", &[]), bind("p", "s", false, &[]), execute("p", 1), sync()];
    assert_eq!(client.ask(&open), "1\n2\nD 1\ns\nZ T\n");
    client.query("SAVEPOINT s");
    assert_eq!(client.query("SELECT 1 / 0"), "E ERROR 22012\nZ E\n");
    for name in ["p", "c", "p"] {
        assert_eq!(client.ask(&[execute(name, 1), sync()]), "E ERROR 25P02\nZ E\n", "{name}");
    }
    client.query("ROLLBACK TO s");
    assert_eq!(client.ask(&[execute("p", 1), execute("c", 2), sync()]), "D 2\ns\nD 1\nD 2\ns\nZ T\n");
    client.query("RELEASE s");
    assert_eq!(client.query("SELECT 1 / 0"), "E ERROR 22012\nZ E\n");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 25P02\nZ E\n");
    client.query("ROLLBACK");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 34000\nZ I\n");
}
