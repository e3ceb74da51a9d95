use std::time::Duration;

use cairn_server::Limits;

use crate::client::{Host, bind, execute, parse, query, startup, sync, untagged};

/// Goal: a session starts with the settings that drivers expect; statements return rows, tags,
/// errors with codes, and the right status.
#[test]
fn statements_and_their_answers() {
    let host = Host::new();
    let mut client = host.session();
    assert_ne!((client.process, client.secret), (0, 0));
    assert_eq!(
        client.query("SELECT 1 AS one, 'x' AS two, NULL AS three"),
        "T one:23 two:25 three:25\nD 1|x|NULL\nC SELECT 1\nZ I\n"
    );
    assert_eq!(client.query(""), "I\nZ I\n");
    assert_eq!(client.query(" ; -- nothing\n"), "I\nZ I\n");
    assert_eq!(client.query("CREATE TABLE t (a int PRIMARY KEY, b text)"), "C CREATE TABLE\nZ I\n");
    assert_eq!(client.query("INSERT INTO t VALUES (1, 'one'), (2, NULL)"), "C INSERT 0 2\nZ I\n");
    assert_eq!(
        client.query("SELECT * FROM t ORDER BY a"),
        "T a:23 b:25\nD 1|one\nD 2|NULL\nC SELECT 2\nZ I\n"
    );
    assert_eq!(
        client.query("UPDATE t SET b = 'x' WHERE a = 2 RETURNING a"),
        "T a:23\nD 2\nC UPDATE 1\nZ I\n"
    );
    assert_eq!(client.query("SELEC 1"), "E ERROR 42601\nZ I\n");
    assert_eq!(client.query("SELECT nothing FROM t"), "E ERROR 42703\nZ I\n");
    assert_eq!(client.query("INSERT INTO t VALUES (1, 'again')"), "E ERROR 23505\nZ I\n");
}

/// Goal: the transaction status is reported, and after an error only ROLLBACK is accepted.
#[test]
fn transactions_tell_their_status() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int)");
    assert_eq!(client.query("BEGIN"), "C BEGIN\nZ T\n");
    assert_eq!(client.query("INSERT INTO t VALUES (1)"), "C INSERT 0 1\nZ T\n");
    assert_eq!(client.query("SELECT x FROM t"), "E ERROR 42703\nZ E\n");
    assert_eq!(client.query("SELECT 1"), "E ERROR 25P02\nZ E\n");
    assert_eq!(client.query("COMMIT"), "C ROLLBACK\nZ I\n");
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), "T n:20\nD 0\nC SELECT 1\nZ I\n");
}

/// Goal: several statements in one text are one transaction, unless they begin or end transactions.
#[test]
fn texts_of_several_statements() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    assert_eq!(
        client.query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); SELECT 1"),
        "C INSERT 0 1\nE ERROR 23505\nZ I\n"
    );
    assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n");
    assert_eq!(
        client.query("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2);"),
        "C INSERT 0 1\nC INSERT 0 1\nZ I\n"
    );
    assert_eq!(
        client.query("INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)"),
        "C INSERT 0 1\nC BEGIN\nC INSERT 0 1\nZ T\n"
    );
    assert_eq!(client.query("ROLLBACK; INSERT INTO t VALUES (5)"), "C ROLLBACK\nC INSERT 0 1\nZ I\n");
    assert_eq!(client.query("SELECT a FROM t ORDER BY a"), "T a:23\nD 1\nD 2\nD 5\nC SELECT 3\nZ I\n");
    assert_eq!(
        client.query("SELECT ';' AS a; SELECT 2 AS b"),
        "T a:25\nD ;\nC SELECT 1\nT b:23\nD 2\nC SELECT 1\nZ I\n"
    );
}

/// Goal: encryption requests are answered, once each; a newer protocol is negotiated, an older one
/// refused.
#[test]
fn first_messages() {
    let host = Host::new();
    let mut client = host.connect();
    for code in [80_877_104_i32, 80_877_103] {
        client.send_raw(&untagged(&code.to_be_bytes()));
        let mut answer = [0];
        std::io::Read::read_exact(&mut client.stream, &mut answer).unwrap();
        assert_eq!(&answer, b"N");
    }
    client.send_raw(&startup(&[("user", "ann"), ("_pq_.new", "1")]));
    assert!(client.until_ready().starts_with("v\nR 0\n"));
    let mut client = host.connect();
    client.send_raw(&untagged(&131_072_i32.to_be_bytes()));
    assert_eq!(client.until_end(), "E FATAL 0A000\nend\n");
    let mut client = host.connect();
    client.send_raw(&startup(&[("database", "x")]));
    assert_eq!(client.until_end(), "E FATAL 28000\nend\n");
}

/// Goal: a client that sends its time zone at the start is admitted and told UTC; setting another
/// one later is refused. Method: the settings of JDBC and of libpq's PGTZ.
#[test]
fn clients_of_other_time_zones() {
    let host = Host::new();
    for name in ["TimeZone", "timezone"] {
        let mut client = host.connect();
        client.send_raw(&startup(&[("user", "ann"), ("database", "test"), (name, "America/New_York")]));
        let told = client.until_ready();
        assert!(told.starts_with("R 0\n") && told.ends_with("Z I\n"), "{told}");
        assert_eq!(client.query("show timezone"), "T timezone:25\nD UTC\nC SHOW\nZ I\n");
        assert_eq!(client.query("set timezone = 'Europe/Berlin'"), "E ERROR 0A000\nZ I\n");
        assert_eq!(client.query("set timezone = 'UTC'"), "C SET\nZ I\n");
    }
}

/// Goal: messages that arrive byte by byte are processed.
#[test]
fn bytes_come_one_by_one() {
    let host = Host::new();
    let mut client = host.session();
    for byte in query("SELECT 1 AS a") {
        client.send_raw(&[byte]);
    }
    assert_eq!(client.until_ready(), "T a:23\nD 1\nC SELECT 1\nZ I\n");
}

/// Goal: an error in a text, or between two Syncs, rolls back everything in it. Method: errors in
/// every step, from parsing to computing rows.
#[test]
fn nothing_stays_of_what_fails() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE one (a int PRIMARY KEY); INSERT INTO one VALUES (1)");
    let texts = [
        ("SELEC 2", "42601"),
        ("SELECT 'x", "42601"),
        ("SELECT nothing FROM t", "42703"),
        ("SELECT 1 / (a - 1) FROM one WHERE a = 1", "22012"),
        ("SET nonsense = 1", "42704"),
        ("EXECUTE nothing", "26000"),
        ("INSERT INTO t VALUES (1)", "23505"),
    ];
    for (wrong, code) in texts {
        let told = client.query(&format!("INSERT INTO t VALUES (1); {wrong}; SELECT 3"));
        assert!(told.ends_with(&format!("E ERROR {code}\nZ I\n")), "{wrong}: {told}");
        assert!(!told.contains("D 3"), "{wrong}: {told}");
        assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n", "{wrong}");
        client.query("BEGIN");
        assert_eq!(client.query("INSERT INTO t VALUES (1)"), "C INSERT 0 1\nZ T\n");
        let told = client.query(wrong);
        assert!(told.ends_with(&format!("E ERROR {code}\nZ E\n")), "{wrong}: {told}");
        assert_eq!(client.query("SET application_name = 'x'"), "E ERROR 25P02\nZ E\n");
        assert_eq!(client.query("BEGIN"), "E ERROR 25P02\nZ E\n");
        assert_eq!(client.query("COMMIT"), "C ROLLBACK\nZ I\n", "{wrong}");
        assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n", "{wrong}");
    }
}

/// Goal: errors report schema, table, column and constraint as PostgreSQL does. Method: each kind
/// of constraint, violated from either side.
#[test]
fn errors_say_what_they_are_about() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE SCHEMA s");
    client.query("CREATE TABLE p (id int PRIMARY KEY, code text UNIQUE)");
    client.query(
        "CREATE TABLE s.c (id int PRIMARY KEY, n int NOT NULL CONSTRAINT small CHECK (n < 10), p int CONSTRAINT to_p REFERENCES p)",
    );
    client.query("CREATE UNIQUE INDEX by_n ON s.c (n)");
    client.query("INSERT INTO p VALUES (1, 'a'), (2, 'b')");
    client.query("INSERT INTO s.c VALUES (1, 1, 1)");
    for (sql, about) in [
        ("INSERT INTO p VALUES (1, 'c')", "C23505 spublic tp np_pkey"),
        ("INSERT INTO p VALUES (3, 'a')", "C23505 spublic tp np_code_key"),
        ("INSERT INTO s.c VALUES (2, 1, NULL)", "C23505 ss tc nby_n"),
        ("UPDATE s.c SET n = NULL", "C23502 ss tc cn"),
        ("INSERT INTO s.c SELECT 2, NULL, 1 FROM p", "C23502 ss tc cn"),
        ("INSERT INTO s.c VALUES (2, NULL) ON CONFLICT DO NOTHING", "C23502 ss tc cn"),
        ("INSERT INTO p (code) VALUES ('x')", "C23502 spublic tp cid"),
        ("INSERT INTO s.c VALUES (2, 77, 1)", "C23514 ss tc nsmall"),
        ("INSERT INTO s.c VALUES (2, 2, 77)", "C23503 ss tc nto_p"),
        ("DELETE FROM p WHERE id = 1", "C23503 ss tc nto_p"),
        ("ALTER TABLE s.c ADD CONSTRAINT tiny CHECK (n < 0)", "C23514 ss tc ntiny"),
        ("SELECT 1 / 0", "C22012"),
    ] {
        client.send(&[query(sql)]);
        let (tag, body) = client.receive().unwrap();
        assert_eq!(tag, b'E', "{sql}");
        let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let told: Vec<String> = fields
            .filter(|field| matches!(field[0], b'C' | b's' | b't' | b'c' | b'n'))
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect();
        assert_eq!(told.join(" "), about, "{sql}");
        client.until_ready();
    }
}

/// Goal: savepoints need a block begun by the client. Among statements that were merely sent
/// together, a savepoint statement fails, rolls the others back, and leaves no transaction open.
/// Method: each savepoint statement after an INSERT, in both protocols; the same row is then
/// inserted again, and another session can delete it.
#[test]
fn savepoints_are_for_blocks() {
    let host = Host::new();
    let (mut client, mut other) = (host.session(), host.session());
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    let insert = "INSERT INTO t VALUES (1)";
    for wrong in ["SAVEPOINT s", "RELEASE s", "ROLLBACK TO s"] {
        for is_extended in [false, true] {
            let run = |sql: &str| [parse("", sql, &[]), bind("", "", false, &[]), execute("", 0)].concat();
            let told = match is_extended {
                true => client.ask(&[run(insert), run(wrong), sync()]).replace("1\n2\n", ""),
                false => client.query(&format!("{insert}; {wrong}")),
            };
            assert_eq!(told, "C INSERT 0 1\nE ERROR 25P01\nZ I\n", "{wrong} {is_extended}");
            assert_eq!(client.query(insert), "C INSERT 0 1\nZ I\n", "{wrong} {is_extended}");
            assert_eq!(other.query("DELETE FROM t"), "C DELETE 1\nZ I\n", "{wrong} {is_extended}");
        }
    }
    assert_eq!(
        client.query(&format!("{insert}; BEGIN; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; COMMIT")),
        "C INSERT 0 1\nC BEGIN\nC SAVEPOINT\nC DELETE 1\nC ROLLBACK\nC COMMIT\nZ I\n"
    );
    assert_eq!(other.query("DELETE FROM t"), "C DELETE 1\nZ I\n");
}

/// Goal: RESET and the like return to the settings of the client's first message, or to those that
/// the server set for it. Method: each way to reset, after the setting was changed.
#[test]
fn settings_go_back_to_the_first_message() {
    let mut limits = Limits::default();
    limits.statement_timeout = Some(Duration::from_secs(77));
    let host = Host::with(limits);
    let mut client = host.connect();
    let options = "-c lock_timeout=33s";
    client.send_raw(&startup(&[
        ("user", "ann"),
        ("search_path", "a"),
        ("my.own", "x"),
        ("options", options),
    ]));
    client.until_ready();
    client.query("CREATE SCHEMA a; CREATE TABLE a.t (b int)");
    let first =
        [("search_path", "a"), ("my.own", "x"), ("lock_timeout", "33s"), ("statement_timeout", "77s")];
    for back in ["RESET ", "RESET ALL", "DISCARD ALL", "SET TO DEFAULT"] {
        for (name, value) in first {
            let other = if name.ends_with("timeout") { "5s" } else { "public" };
            assert_eq!(client.query(&format!("SET {name} = '{other}'")), "C SET\nZ I\n");
            let back = match back {
                "RESET " => format!("RESET {name}"),
                "SET TO DEFAULT" => format!("SET {name} TO DEFAULT"),
                all => all.to_owned(),
            };
            client.query(&back);
            assert_eq!(
                client.query(&format!("SHOW {name}")),
                format!("T {name}:25\nD {value}\nC SHOW\nZ I\n"),
                "{back}"
            );
        }
        assert_eq!(client.query("SELECT b FROM t"), "T b:23\nC SELECT 0\nZ I\n", "{back}");
        assert_eq!(client.query("SELECT current_user AS u"), "T u:25\nD ann\nC SELECT 1\nZ I\n", "{back}");
    }
}

/// Goal: a client is notified of each setting that changes, also when a rollback restores it.
/// Method: ends of transactions, savepoints, statements that fail together, `set_config`.
#[test]
fn settings_are_told_as_they_change() {
    let host = Host::new();
    let mut client = host.session();
    client.settings.clear();
    let mut told = |sql: &str| {
        client.query(sql);
        client.settings.drain(..).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(told("SET application_name = 'a'"), "application_name=a");
    assert_eq!(told("SELECT 1"), "");
    assert_eq!(told("BEGIN; SET application_name = 'b'"), "application_name=b");
    assert_eq!(told("SAVEPOINT s"), "");
    assert_eq!(told("ROLLBACK"), "application_name=a");
    assert_eq!(told("BEGIN; SAVEPOINT s; SET application_name = 'c'"), "application_name=c");
    assert_eq!(told("RELEASE s"), "");
    assert_eq!(told("ROLLBACK"), "application_name=a");
    assert_eq!(told("SET application_name = 'd'; SELECT nothing"), "");
    assert_eq!(told("SELECT set_config('application_name', 'e', false)"), "application_name=e");
    assert_eq!(told("BEGIN; SET LOCAL application_name = 'f'"), "application_name=f");
    assert_eq!(told("COMMIT"), "application_name=e");
    assert_eq!(
        told("SET standard_conforming_strings = true; SET datestyle = iso; SET client_encoding = unicode"),
        ""
    );
    assert_eq!(told("SET datestyle = 'iso, dmy'"), "DateStyle=ISO, DMY");
}

/// Goal: the process number for cancel requests is the one by which SQL names the session. Method:
/// a session that is neither the first connection of its server nor of its database.
#[test]
fn a_session_has_one_number() {
    let host = Host::new();
    let _others = (host.database.connect(), host.session(), host.database.connect(), host.database.connect());
    let mut client = host.session();
    let process = client.process;
    assert_eq!(
        client.query("SELECT pg_backend_pid() AS pid"),
        format!("T pid:23\nD {process}\nC SELECT 1\nZ I\n")
    );
    let activity = client.query("SELECT pid FROM pg_stat_activity");
    assert!(activity.contains(&format!("D {process}\n")), "{activity}");
}

/// Goal: tags of statements without a row count have none, and no row has more columns than
/// PostgreSQL allows.
#[test]
fn tags_and_columns() {
    let host = Host::new();
    let mut client = host.session();
    assert!(client.query("SHOW search_path").ends_with("C SHOW\nZ I\n"));
    assert!(client.query("EXPLAIN SELECT 1").ends_with("C EXPLAIN\nZ I\n"));
    let columns = |count: usize| format!("SELECT {}", vec!["1"; count].join(", "));
    assert!(client.query(&columns(1664)).ends_with("C SELECT 1\nZ I\n"));
    assert_eq!(client.query(&columns(1665)), "E ERROR 54011\nZ I\n");
    assert_eq!(client.ask(&[parse("", &columns(1665), &[]), sync()]), "E ERROR 54011\nZ I\n");
}
