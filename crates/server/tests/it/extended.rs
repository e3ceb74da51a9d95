use std::slice;

use cairn_server::{Limits, Observer};

use crate::client::{Client, Host, bind, close, describe, execute, flush, parse, query, sync};

/// Goal: statements are prepared, described, bound and run, named and unnamed, in text and binary.
#[test]
fn prepared_statements() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text)");
    let insert = parse("i", "INSERT INTO t VALUES ($1, $2)", &[]);
    assert_eq!(client.ask(&[insert, describe(b'S', "i"), sync()]), "1\nt 23 25\nn\nZ I\n");
    let run = |a: &'static [u8], b: Option<&'static [u8]>| {
        [bind("", "i", false, &[Some(a), b]), execute("", 0), sync()]
    };
    assert_eq!(client.ask(&run(b"7", Some(b"seven"))), "2\nC INSERT 0 1\nZ I\n");
    assert_eq!(client.ask(&run(b"8", None)), "2\nC INSERT 0 1\nZ I\n");
    assert_eq!(client.ask(&run(b"x", None)), "E ERROR 22P02\nZ I\n");
    let select = parse("", "SELECT a, b FROM t WHERE a = $1", &[23]);
    let seven = 7_i32.to_be_bytes();
    let told = client.ask(&[
        select,
        bind("", "", true, &[Some(&seven)]),
        describe(b'P', ""),
        execute("", 0),
        sync(),
    ]);
    assert_eq!(told, "1\n2\nT a:23 b:25\nD 00000007|seven\nC SELECT 1\nZ I\n");
    assert_eq!(client.ask(&[close(b'S', "i"), close(b'S', "never"), sync()]), "3\n3\nZ I\n");
    assert_eq!(client.ask(&[bind("", "i", false, &[]), sync()]), "E ERROR 26000\nZ I\n");
}

/// Goal: the observer is called once for each statement that succeeds, with its rows. Method:
/// statements of both protocols; portals that are fetched in parts, closed early, or still
/// suspended while another statement runs; statements that fail.
#[test]
fn statements_are_observed() {
    let (said, hears) = std::sync::mpsc::channel();
    let said = std::sync::Mutex::new(said);
    let observer = Observer::new(move |sql, rows| said.lock().unwrap().send((sql.to_owned(), rows)).unwrap());
    let host = Host::observed_by(Limits::default(), observer);
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    client.query("INSERT INTO t VALUES (1)");
    client.query("SELECT a FROM t WHERE a > 1");
    let select = |name: &str| [parse(name, "SELECT a FROM t", &[]), bind(name, name, false, &[])].concat();
    client.ask(&[select(""), execute("", 0), sync()]);
    client.ask(&[select(""), execute("", 2), execute("", 2), sync()]);
    client.ask(&[select("given up"), execute("given up", 2), sync()]);
    client.ask(&[select("left"), execute("left", 1), parse("", "DELETE FROM t WHERE a = $1", &[23]), sync()]);
    client.ask(&[bind("", "", false, &[Some(b"3")]), execute("", 0), sync()]);
    client.ask(&[bind("", "", false, &[Some(b"x")]), execute("", 0), sync()]);
    drop(client);
    host.end().unwrap();
    let seen: Vec<(String, u64)> = hears.iter().collect();
    let expected = [
        ("CREATE TABLE t (a int PRIMARY KEY)", 0),
        ("INSERT INTO t VALUES (1), (2), (3)", 3),
        ("SELECT a FROM t WHERE a > 1", 2),
        ("SELECT a FROM t", 3),
        ("SELECT a FROM t", 3),
        ("SELECT a FROM t", 2),
        ("SELECT a FROM t", 1),
        ("DELETE FROM t WHERE a = $1", 1),
    ];
    let seen: Vec<(&str, u64)> = seen.iter().map(|(sql, rows)| (sql.trim(), *rows)).collect();
    assert_eq!(seen, expected);
}

/// Goal: after an error, everything up to Sync is skipped, and earlier work of the same batch is
/// rolled back.
#[test]
fn a_batch_is_one_transaction() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    let insert = |value: &str| {
        [parse("", &format!("INSERT INTO t VALUES ({value})"), &[]), bind("", "", false, &[]), execute("", 0)]
            .concat()
    };
    let told = client.ask(&[insert("1"), insert("2"), insert("1"), insert("3"), sync()]);
    assert_eq!(told, "1\n2\nC INSERT 0 1\n1\n2\nC INSERT 0 1\n1\n2\nE ERROR 23505\nZ I\n");
    assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n");
    assert_eq!(
        client.ask(&[
            insert("1"),
            insert("2"),
            sync(),
            insert("3"),
            insert("3"),
            sync(),
            insert("4"),
            sync()
        ]),
        "1\n2\nC INSERT 0 1\n1\n2\nC INSERT 0 1\nZ I\n"
    );
    assert_eq!(client.until_ready(), "1\n2\nC INSERT 0 1\n1\n2\nE ERROR 23505\nZ I\n");
    assert_eq!(client.until_ready(), "1\n2\nC INSERT 0 1\nZ I\n");
    assert_eq!(client.query("SELECT a FROM t ORDER BY a"), "T a:23\nD 1\nD 2\nD 4\nC SELECT 3\nZ I\n");
}

/// Goal: a batch with an invalid message has no effect. Method: errors that the engine does not
/// see.
#[test]
fn a_batch_fails_as_a_whole() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    let insert =
        [parse("", "INSERT INTO t VALUES ($1)", &[]), bind("", "", false, &[Some(b"1")]), execute("", 0)];
    let insert = insert.concat();
    let wrong: [(&str, Vec<u8>, &str); 5] = [
        ("a value that is no number", bind("", "", false, &[Some(b"abc")]), "22P02"),
        ("too few values", bind("", "", false, &[]), "08P01"),
        ("no such statement", bind("", "none", false, &[]), "26000"),
        ("no such portal", execute("none", 0), "34000"),
        ("no statement at all", parse("", "SELEC", &[]), "42601"),
    ];
    for (what, message, code) in wrong {
        let told = client.ask(&[insert.clone(), message, insert.clone(), sync()]);
        assert_eq!(told, format!("1\n2\nC INSERT 0 1\nE ERROR {code}\nZ I\n"), "{what}");
        assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n", "{what}");
    }
}

/// Goal: rows can be fetched in parts, across Syncs within a transaction, with other statements in
/// between, until the transaction ends.
#[test]
fn portals_are_suspended() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4), (5)");
    client.query("BEGIN");
    let open =
        [parse("s", "SELECT a FROM t ORDER BY a", &[]), bind("p", "s", false, &[]), execute("p", 2), sync()];
    assert_eq!(client.ask(&open), "1\n2\nD 1\nD 2\ns\nZ T\n");
    assert_eq!(client.ask(&[execute("p", 1), flush(), execute("p", 1), sync()]), "D 3\ns\nD 4\ns\nZ T\n");
    // Another statement while the portal is suspended.
    assert_eq!(client.query("SELECT 9 AS n"), "T n:23\nD 9\nC SELECT 1\nZ T\n");
    assert_eq!(client.ask(&[execute("p", 3), sync()]), "D 5\nC SELECT 1\nZ T\n");
    assert_eq!(client.ask(&[execute("p", 3), sync()]), "C SELECT 0\nZ T\n");
    assert_eq!(client.query("COMMIT"), "C COMMIT\nZ I\n");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 34000\nZ I\n");
    // Outside a transaction, Sync ends the portal.
    assert_eq!(client.ask(&[bind("p", "s", false, &[]), execute("p", 2), sync()]), "2\nD 1\nD 2\ns\nZ I\n");
    assert_eq!(client.ask(&[execute("p", 1), sync()]), "E ERROR 34000\nZ I\n");
    client.query("BEGIN");
    client.ask(&[bind("p", "s", false, &[]), execute("p", 2), sync()]);
    assert_eq!(client.ask(&[close(b'P', "p"), sync(), query("COMMIT")]), "3\nZ T\n");
    assert_eq!(client.until_ready(), "C COMMIT\nZ I\n");
}

/// Goal: invalid requests are refused with PostgreSQL's codes, and the session continues.
#[test]
fn mistakes_are_told() {
    let host = Host::new();
    let mut client = host.session();
    client.ask(&[parse("s", "SELECT $1::int AS a", &[]), sync()]);
    for (messages, code) in [
        (vec![parse("s", "SELECT 1", &[])], "42P05"),
        (vec![bind("", "nobody", false, &[])], "26000"),
        (vec![bind("", "s", false, &[])], "08P01"),
        (vec![bind("", "s", true, &[Some(b"123")])], "22P03"),
        (vec![execute("nobody", 0)], "34000"),
        (vec![describe(b'S', "nobody")], "26000"),
        (vec![describe(b'P', "nobody")], "34000"),
        (vec![describe(b'?', "s")], "08P01"),
        (vec![parse("", "SELECT 1; SELECT 2", &[])], "42601"),
    ] {
        let told = client.ask(&[messages.concat(), sync()]);
        assert_eq!(told, format!("E ERROR {code}\nZ I\n"));
    }
    assert_eq!(
        client.ask(&[
            parse("", "", &[]),
            bind("", "", false, &[]),
            describe(b'P', ""),
            execute("", 0),
            sync()
        ]),
        "1\n2\nn\nI\nZ I\n"
    );
    assert_eq!(client.query("DEALLOCATE s"), "C DEALLOCATE\nZ I\n");
    assert_eq!(client.ask(&[describe(b'S', "s"), sync()]), "E ERROR 26000\nZ I\n");
}

/// Goal: a parameter that the client declares as numeric has the scale of its value, whatever type
/// the statement alone would infer. Method: statements that imply no type for their parameter, or
/// integer or text; one statement with values of several scales; a decimal column; an invalid
/// value.
#[test]
fn numeric_parameters_have_the_digits_of_their_values() {
    const NUMERIC: u32 = 1700;
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, d decimal(8, 2))");
    client.query("INSERT INTO t VALUES (1, 1.5), (2, 2.5)");
    let ask = |client: &mut Client, sql: &str, value: Option<&[u8]>| {
        let messages = [
            parse("", sql, &[NUMERIC]),
            bind("", "", false, &[value]),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ];
        client.ask(&messages)
    };
    let row = |name: &str, value: &str| format!("1\n2\nT {name}:1700\nD {value}\nC SELECT 1\nZ I\n");
    assert_eq!(ask(&mut client, "SELECT $1 AS x", Some(b"1.50")), row("x", "1.50"));
    assert_eq!(ask(&mut client, "SELECT $1 AS x", Some(b"-0.0000000000001")), row("x", "-0.0000000000001"));
    assert_eq!(ask(&mut client, "SELECT $1 AS x", Some(b"12E+2")), row("x", "1200"));
    assert_eq!(ask(&mut client, "SELECT $1 + 1 AS x", Some(b"1.50")), row("x", "2.50"));
    assert_eq!(ask(&mut client, "SELECT $1 + 1 AS x", Some(b"one")), "1\nE ERROR 22P02\nZ I\n");
    assert_eq!(
        ask(&mut client, "SELECT a FROM t WHERE a > $1", Some(b"1.5")),
        "1\n2\nT a:23\nD 2\nC SELECT 1\nZ I\n"
    );
    assert_eq!(
        ask(&mut client, "SELECT a FROM t WHERE d = $1", Some(b"2.5")),
        "1\n2\nT a:23\nD 2\nC SELECT 1\nZ I\n"
    );
    assert_eq!(
        ask(&mut client, "SELECT a FROM t WHERE d > $1 * 2", Some(b"1.2")),
        "1\n2\nT a:23\nD 2\nC SELECT 1\nZ I\n"
    );
    assert_eq!(
        ask(&mut client, "INSERT INTO t VALUES (3, $1)", Some(b"7.25")),
        "1\n2\nn\nC INSERT 0 1\nZ I\n"
    );
    let named = parse("s", "SELECT $1 * 2 AS x", &[NUMERIC]);
    assert_eq!(client.ask(&[named, describe(b'S', "s"), sync()]), "1\nt 1700\nT x:1700\nZ I\n");
    for (value, twice) in [("1.5", "3.0"), ("0.125", "0.250"), ("4", "8"), ("0.5", "1.0")] {
        let told = client.ask(&[bind("", "s", false, &[Some(value.as_bytes())]), execute("", 0), sync()]);
        assert_eq!(told, format!("2\nD {twice}\nC SELECT 1\nZ I\n"));
    }
    assert_eq!(
        client.ask(&[bind("", "s", false, &[None]), execute("", 0), sync()]),
        "2\nD NULL\nC SELECT 1\nZ I\n"
    );
    // 12.345 as drivers send it: two groups of four digits before and after the point, and a scale
    // of three.
    let binary: Vec<u8> = [2_i16, 0, 0, 3, 12, 3450].iter().flat_map(|part| part.to_be_bytes()).collect();
    let told = client.ask(&[bind("", "s", true, &[Some(&binary)]), execute("", 0), sync()]);
    // 24.690: again two groups, and a scale of three.
    assert_eq!(told, "2\nD 000200000000000300181af4\nC SELECT 1\nZ I\n");
    // On the general path, too, the parameter has the scale of its value.
    assert_eq!(
        ask(&mut client, "SELECT $1 AS x FROM t AS p JOIN t AS q ON p.a = q.a WHERE p.a = 1", Some(b"1.50")),
        row("x", "1.50")
    );
}

/// Goal: lists work as parameters, in text and binary, with types declared by the client or left to
/// the statement. Method: int4[], int8[], text[] and uuid[], with NULL elements, empty, and NULL
/// itself.
#[test]
fn lists_as_parameters() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY, b text, c uuid)");
    client.query("INSERT INTO t VALUES (1, 'x', '00000000-0000-0000-0000-0000000000aa'), (2, 'y', NULL), (3, 'z', NULL)");
    // Number of dimensions, whether there are NULLs, the element type; the length, the lower bound
    // 1; the elements.
    let list = |type_oid: i32, items: &[Option<&[u8]>]| {
        let mut bytes = [1, 1, type_oid, items.len() as i32, 1].map(i32::to_be_bytes).concat();
        for item in items {
            bytes.extend(item.map_or(-1, |item| item.len() as i32).to_be_bytes());
            bytes.extend(item.unwrap_or_default());
        }
        bytes
    };
    let select = |column: &str, type_oid: u32| {
        parse("", &format!("SELECT b FROM t WHERE {column} = ANY($1) ORDER BY a"), &[type_oid])
    };
    let run = |is_binary, value: Option<&[u8]>| {
        [bind("", "", is_binary, &[value]), execute("", 0), sync()].concat()
    };
    let (three, wide) = (3_i32.to_be_bytes(), 1_i64.to_be_bytes());
    let mut uuid = [0; 16];
    uuid[15] = 0xaa;
    for (column, type_oid, value, expected) in [
        ("a", 1007, list(23, &[Some(&three), None]), "D z\n"),
        ("a", 1016, list(20, &[Some(&wide)]), "D x\n"),
        ("a", 1005, list(21, &[Some(&[0, 2])]), "D y\n"),
        ("b", 1009, list(25, &[Some(b"z"), Some(b"x")]), "D x\nD z\n"),
        ("b", 1015, list(1043, &[Some(b"z")]), "D z\n"),
        ("c", 2951, list(2950, &[Some(&uuid)]), "D x\n"),
        ("a", 1007, [0, 0, 23].map(i32::to_be_bytes).concat(), ""),
    ] {
        let told = client.ask(&[select(column, type_oid), run(true, Some(&value))]);
        let rows = expected.lines().count();
        assert_eq!(told, format!("1\n2\n{expected}C SELECT {rows}\nZ I\n"), "{column} {type_oid}");
    }
    for (column, type_oid, value, expected) in [
        ("a", 1007, "{1,NULL,3}", "D x\nD z\n"),
        ("a", 0, "{1,3}", "D x\nD z\n"),
        ("b", 0, "{\"x\",y}", "D x\nD y\n"),
        ("c", 0, "{00000000-0000-0000-0000-0000000000aa}", "D x\n"),
        ("a", 1231, "{1.0,2.5}", "D x\n"),
    ] {
        let told = client.ask(&[select(column, type_oid), run(false, Some(value.as_bytes()))]);
        let rows = expected.lines().count();
        assert_eq!(told, format!("1\n2\n{expected}C SELECT {rows}\nZ I\n"), "{column} {value}");
    }
    assert_eq!(client.ask(&[select("a", 1007), run(true, None)]), "1\n2\nC SELECT 0\nZ I\n");
    assert_eq!(client.ask(&[select("a", 1007), run(true, Some(b"abc"))]), "1\nE ERROR 22P03\nZ I\n");
    assert_eq!(client.ask(&[select("a", 1007), run(false, Some(b"abc"))]), "1\nE ERROR 22P02\nZ I\n");
    assert_eq!(client.ask(&[select("b", 1007), sync()]), "E ERROR 42883\nZ I\n");
    assert_eq!(client.ask(&[select("a", 0), describe(b'S', ""), sync()]), "1\nt 1007\nT b:25\nZ I\n");
}

/// Goal: DISCARD ALL and DEALLOCATE ALL discard statements prepared by the protocol, unless they
/// are refused; other DISCARDs keep them. Method: both protocols; a transaction block, before and
/// after it fails.
#[test]
fn sessions_are_discarded() {
    let host = Host::new();
    let mut client = host.session();
    let prepare = |client: &mut Client, name: &str| {
        assert_eq!(client.ask(&[parse(name, "SELECT 1 AS a", &[]), sync()]), "1\nZ I\n");
    };
    let is_there = |client: &mut Client, name: &str| match &*client.ask(&[describe(b'S', name), sync()]) {
        "t \nT a:23\nZ I\n" => true,
        "E ERROR 26000\nZ I\n" => false,
        told => panic!("{told}"),
    };
    let by_name = |sql: &str| [parse("d", sql, &[]), bind("", "d", false, &[]), execute("", 0), sync()];
    for what in ["DISCARD PLANS", "DISCARD SEQUENCES", "DISCARD TEMP"] {
        prepare(&mut client, what);
        assert_eq!(client.query(what), format!("C {what}\nZ I\n"));
        assert!(is_there(&mut client, what), "{what}");
    }
    for what in ["DISCARD ALL", "discard /* all of it */ all;", "DEALLOCATE ALL", "deallocate prepare all"] {
        let tag =
            if what.starts_with("DE") || what.starts_with("de") { "DEALLOCATE ALL" } else { "DISCARD ALL" };
        for is_extended in [false, true] {
            prepare(&mut client, "s");
            prepare(&mut client, "");
            match is_extended {
                true => assert_eq!(client.ask(&by_name(what)), format!("1\n2\nC {tag}\nZ I\n")),
                false => assert_eq!(client.query(what), format!("C {tag}\nZ I\n")),
            }
            assert!(!is_there(&mut client, "s") && !is_there(&mut client, "d"), "{what} {is_extended}");
            assert_eq!(is_there(&mut client, ""), tag == "DEALLOCATE ALL", "{what} {is_extended}");
        }
    }
    prepare(&mut client, "s");
    client.query("BEGIN");
    assert_eq!(client.query("DISCARD ALL"), "E ERROR 25001\nZ E\n");
    for what in ["DISCARD ALL", "DEALLOCATE ALL", "DEALLOCATE s"] {
        assert_eq!(client.query(what), "E ERROR 25P02\nZ E\n", "{what}");
        let told = client.ask(&[parse("", what, &[]), bind("", "", false, &[]), execute("", 0), sync()]);
        assert_eq!(told, "1\n2\nE ERROR 25P02\nZ E\n", "{what}");
    }
    client.query("ROLLBACK");
    assert!(is_there(&mut client, "s"));
    assert_eq!(client.query("DEALLOCATE s"), "C DEALLOCATE\nZ I\n");
    assert!(!is_there(&mut client, "s"));
}

/// Goal: statements that cannot run in a transaction with others run before other messages,
/// wherever Sync is: drivers send Close or Flush before it. Method: Close, Flush and other
/// statements after Execute; after a change they are refused.
#[test]
fn statements_that_are_alone() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int PRIMARY KEY)");
    let run = |sql: &str| [parse("", sql, &[]), bind("", "", false, &[]), execute("", 0)].concat();
    for what in ["VACUUM", "VACUUM ANALYZE t", "DISCARD ALL"] {
        let tag = if what == "DISCARD ALL" { what } else { "VACUUM" };
        let told = format!("1\n2\nC {tag}\n");
        assert_eq!(client.ask(&[run(what), sync()]), format!("{told}Z I\n"));
        assert_eq!(client.ask(&[run(what), close(b'P', ""), sync()]), format!("{told}3\nZ I\n"));
        assert_eq!(client.ask(&[run(what), flush(), sync()]), format!("{told}Z I\n"));
        let insert = run("INSERT INTO t VALUES (1)");
        assert_eq!(
            client.ask(&[run(what), insert.clone(), run("SELECT nothing"), sync()]),
            format!("{told}1\n2\nC INSERT 0 1\nE ERROR 42703\nZ I\n")
        );
        assert_eq!(
            client.ask(&[insert, run(what), sync()]),
            "1\n2\nC INSERT 0 1\n1\n2\nE ERROR 25001\nZ I\n"
        );
    }
    assert_eq!(client.query("SELECT a FROM t"), "T a:23\nC SELECT 0\nZ I\n");
}

/// Goal: an error names the routine by which drivers know that they must prepare a statement again.
/// Method: a statement whose columns change, and one that does not exist, in both protocols.
#[test]
fn errors_name_the_routine_that_drivers_go_by() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int); PREPARE p AS SELECT * FROM t");
    client.ask(&[parse("s", "SELECT * FROM t", &[]), sync()]);
    client.query("ALTER TABLE t ADD COLUMN b int");
    for (messages, expected) in [
        ([bind("", "s", false, &[]), execute("", 0), sync()].concat(), "0A000 RevalidateCachedQuery"),
        (query("EXECUTE p"), "0A000 RevalidateCachedQuery"),
        ([bind("", "none", false, &[]), sync()].concat(), "26000 FetchPreparedStatement"),
        (query("EXECUTE none"), "26000 FetchPreparedStatement"),
        (query("SELECT nothing"), "42703 "),
    ] {
        client.send_raw(&messages);
        let mut error = String::new();
        while let Some((tag, body)) = client.receive() {
            if tag == b'E' {
                let field = |code: u8| {
                    let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&code));
                    String::from_utf8_lossy(found.unwrap_or(b" ")).get(1..).unwrap().to_owned()
                };
                error = format!("{} {}", field(b'C'), field(b'R'));
            }
            if tag == b'Z' {
                break;
            }
        }
        assert_eq!(error, expected);
    }
}

/// Goal: EXECUTE is described by the rows that it returns, and COPY to the client, which returns
/// none, as having none. Method: a statement of PREPARE with rows and one without; another
/// statement that takes its name before Bind.
#[test]
fn what_is_described_is_what_comes() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')");
    client.query("PREPARE p AS SELECT a, b FROM t; PREPARE i (int) AS INSERT INTO t (a) VALUES ($1)");
    let described = |sql: &str| [parse("s", sql, &[]), describe(b'S', "s"), sync()].concat();
    let run = [bind("", "s", false, &[]), describe(b'P', ""), execute("", 0), sync()].concat();
    let forget = [close(b'S', "s"), sync()].concat();
    assert_eq!(client.ask(&[described("EXECUTE p")]), "1\nt \nT a:23 b:25\nZ I\n");
    assert_eq!(client.ask(slice::from_ref(&run)), "2\nT a:23 b:25\nD 1|x\nC SELECT 1\nZ I\n");
    client.query("DEALLOCATE p; PREPARE p AS SELECT b FROM t");
    assert_eq!(client.ask(slice::from_ref(&run)), "2\nT b:25\nD x\nC SELECT 1\nZ I\n");
    client.ask(slice::from_ref(&forget));
    assert_eq!(client.ask(&[described("EXECUTE i(7)")]), "1\nt \nn\nZ I\n");
    assert_eq!(client.ask(slice::from_ref(&run)), "2\nn\nC INSERT 0 1\nZ I\n");
    client.ask(&[forget]);
    assert_eq!(client.ask(&[described("COPY (SELECT a FROM t) TO STDOUT")]), "1\nt \nn\nZ I\n");
    assert_eq!(client.ask(&[run]), "2\nn\nH\nd 1\nd 7\nc\nC COPY 2\nZ I\n");
}

/// Goal: as in PostgreSQL, a prepared statement whose tables have changed fails at Bind, not at
/// Execute.
/// Method: a dropped column and table, and a new column; within a transaction, which fails.
#[test]
fn statements_are_checked_when_bound() {
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x')");
    let all = parse("all", "SELECT * FROM t", &[]);
    assert_eq!(client.ask(&[all, describe(b'S', "all"), sync()]), "1\nt \nT a:23 b:25\nZ I\n");
    client.ask(&[
        parse("b", "SELECT b FROM t", &[]),
        parse("put", "INSERT INTO t (b) VALUES ($1)", &[]),
        sync(),
    ]);
    client.query("ALTER TABLE t DROP COLUMN b");
    client.query("BEGIN");
    let bound = [bind("", "b", false, &[]), execute("", 0), sync()];
    assert_eq!(client.ask(&bound), "E ERROR 42703\nZ E\n");
    client.query("ROLLBACK");
    assert_eq!(client.ask(&[bind("", "put", false, &[Some(b"y")]), sync()]), "E ERROR 42703\nZ I\n");
    assert_eq!(client.ask(&[bind("", "all", false, &[]), sync()]), "E ERROR 0A000\nZ I\n");
    client.query("DROP TABLE t");
    assert_eq!(client.ask(&[bind("", "all", false, &[]), sync()]), "E ERROR 42P01\nZ I\n");
    client.query("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (2, 'z')");
    let told = client.ask(&[bind("", "all", false, &[]), execute("", 0), sync()]);
    assert_eq!(told, "2\nD 2|z\nC SELECT 1\nZ I\n");
}

/// Goal: binary values of an unknown type are refused instead of being taken for another type's;
/// the statement parses their text. Method: an address as inet, for a text and a bytea column.
#[test]
fn binary_values_of_unknown_types_are_refused() {
    const INET: u32 = 869;
    let host = Host::new();
    let mut client = host.session();
    client.query("CREATE TABLE t (a text, b bytea)");
    for column in ["a", "b"] {
        let insert = parse("", &format!("INSERT INTO t ({column}) VALUES ($1)"), &[INET]);
        let run = |is_binary, value: &'static [u8]| {
            [insert.clone(), bind("", "", is_binary, &[Some(value)]), execute("", 0), sync()]
        };
        assert_eq!(
            client.ask(&run(true, &[2, 32, 0, 4, 10, 0, 0, 1])),
            "1\nE ERROR 42704\nZ I\n",
            "{column}"
        );
        assert_eq!(client.ask(&run(false, b"10.0.0.1")), "1\n2\nC INSERT 0 1\nZ I\n", "{column}");
    }
}
