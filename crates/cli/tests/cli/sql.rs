//! The shell, without a terminal.

use crate::support::Scratch;

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(6,2), at date);
INSERT INTO t VALUES (1, 'one', 1.5, '2024-02-29'), (2, NULL, NULL, NULL), (3, 'a,b|\"c\"', -2, NULL);\n";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("t.sql", TABLE);
    scratch.run("sql my.db -f t.sql").ended(0);
    scratch
}

/// Goal: statements come from arguments, files and standard input, and their effects persist;
/// without a file nothing persists.
#[test]
fn statements_come_from_everywhere() {
    let scratch = scratch();
    assert_eq!(scratch.run("sql my.db -t -f t.sql --keep-going").ended(1).text(), "");
    let query = "SELECT id FROM t WHERE id > 1 ORDER BY id";
    let expected = " id \n----\n  2\n  3\n(2 rows)\n\n";
    assert_eq!(scratch.run_with("sql my.db", query.as_bytes()).ended(0).text(), expected);
    scratch.write("q.sql", query);
    assert_eq!(scratch.run("sql my.db -f q.sql").ended(0).text(), expected);
    assert_eq!(scratch.shell(&format!("cairn sql my.db -c '{query}'")).ended(0).text(), expected);
    assert_eq!(
        scratch
            .run_with("sql", b"CREATE TABLE m (a int);\nINSERT INTO m VALUES (7);\nSELECT a\nFROM m;")
            .ended(0)
            .text(),
        " a \n---\n 7\n(1 row)\n\n"
    );
    assert!(!scratch.names().contains(&"memory.db".to_owned()));
}

/// Goal: a database that is opened read-only must exist and be a database, and one that is open in
/// another process is reported. Method: a name without a file, an empty file; a lock that is held.
#[test]
fn databases_that_cannot_be_read() {
    let scratch = scratch();
    scratch.run("sql none.db --read-only -c select").failed(&["none.db does not exist"]);
    assert!(!scratch.names().iter().any(|name| name.starts_with("none")), "{:?}", scratch.names());
    scratch.write("empty.db", "");
    for command in [
        "empty.db --read-only -c select",
        "verify empty.db",
        "dump empty.db",
        "vacuum empty.db",
        "backup empty.db copy.db",
    ] {
        scratch.run(&format!("sql {command}")).failed(&["empty.db is not a database: it is empty"]);
    }
    assert_eq!(scratch.read("empty.db"), b"");
    assert_eq!(scratch.names().iter().filter(|name| name.starts_with("empty")).count(), 1);
    scratch.shell("cairn sql --read-only -c 'SELECT 1'").ended(0);
    scratch.shell("cairn sql --read-only -c 'CREATE TABLE t (a int)'").ended(1);
    let fs: std::sync::Arc<dyn cairn_vfs::Fs> = std::sync::Arc::new(cairn_vfs::StdFs::new());
    let file = fs.open(&scratch.path("my.db"), cairn_vfs::OpenOptions::read()).unwrap();
    file.try_lock().unwrap();
    for command in
        ["backup my.db copy.db", "verify my.db", "dump my.db", "vacuum my.db", "my.db --read-only -c select"]
    {
        scratch.run(&format!("sql {command}")).failed(&["my.db is already open in this or another process"]);
    }
}

/// Goal: each mode prints numbers, text with special characters, and NULL correctly. Method: the
/// same rows in each of them.
#[test]
fn modes_show_rows() {
    let scratch = scratch();
    let show = |options: &str| {
        scratch
            .shell(&format!("cairn sql my.db {options} -c 'SELECT id, name, price FROM t ORDER BY id'"))
            .ended(0)
            .text()
    };
    assert_eq!(show("--null '<null>'"), " id |   name    | price  \n----+-----------+--------\n  1 | one       |   1.50\n  2 | <null>    | <null>\n  3 | a,b|\"c\" |  -2.00\n(3 rows)\n\n".replace("   name    ", "  name   ").replace("-----------", "---------").replace("one       ", "one     ").replace("<null>    ", "<null>  "));
    assert_eq!(show("--csv"), "id,name,price\n1,one,1.50\n2,,\n3,\"a,b|\"\"c\"\"\",-2.00\n");
    assert_eq!(show("-m tabs -t"), "1\tone\t1.50\n2\t\t\n3\ta,b|\"c\"\t-2.00\n");
    assert_eq!(
        show("-m markdown"),
        "| id | name | price |\n|---:|---|---:|\n| 1 | one | 1.50 |\n| 2 |  |  |\n| 3 | a,b\\|\"c\" | -2.00 |\n"
    );
    assert_eq!(
        show("-m insert"),
        "INSERT INTO t VALUES (1, 'one', 1.50);\nINSERT INTO t VALUES (2, NULL, NULL);\nINSERT INTO t VALUES (3, 'a,b|\"c\"', -2.00);\n"
    );
    assert_eq!(
        show("-m jsonl"),
        "{\"id\":1,\"name\":\"one\",\"price\":1.50}\n{\"id\":2,\"name\":null,\"price\":null}\n{\"id\":3,\"name\":\"a,b|\\\"c\\\"\",\"price\":-2.00}\n"
    );
    let all: serde_json::Value = serde_json::from_str(&show("--json")).unwrap();
    assert_eq!(all[2]["name"], "a,b|\"c\"");
    assert!(show("-m line").starts_with("   id = 1\n name = one\nprice = 1.50\n\n   id = 2\n"));
}

/// Goal: an error states cause and place, ends a script with exit code 1, and names its file and
/// line.
#[test]
fn errors_are_reported_with_their_place() {
    let scratch = scratch();
    let failed = scratch.shell("cairn sql my.db -c 'SELECT 1;\n  SELEC 2; SELECT 3'").ended(1);
    assert!(failed.err.starts_with("error: syntax error"), "{}", failed.err);
    assert!(
        failed.err.contains("SELEC 2\n") && failed.err.lines().any(|line| line.trim() == "^"),
        "{}",
        failed.err
    );
    assert!(failed.text().contains('1') && !failed.text().contains('3'));
    scratch.write("bad.sql", "SELECT 1;\nINSERT INTO t\nVALUES (1);\nSELECT 3;");
    let failed = scratch.run("sql my.db -f bad.sql").ended(1);
    assert!(failed.err.starts_with("error: bad.sql:3: duplicate key"), "{}", failed.err);
    assert!(failed.err.contains("DETAIL: Key (id)=(1) already exists."), "{}", failed.err);
    let failed = scratch.run("sql my.db --keep-going -f bad.sql").ended(1);
    assert!(
        failed.text().contains('3') && failed.err.ends_with("error: 1 statement failed\n"),
        "{}",
        failed.err
    );
    scratch.run("sql nowhere/my.db").failed(&["nowhere"]);
    scratch.run("sql my.db --mode nonsense").failed(&["nonsense"]);
    for (option, least) in
        [("--max-connections", "from 1"), ("--max-message", "1.0 KiB to"), ("--max-statement", "1.0 KiB to")]
    {
        scratch.run(&format!("sql serve my.db {option} 0")).failed(&[option, least]);
    }
    scratch.run("sql my.db --cache-size 100TiB").failed(&["--cache-size", "to 1.0 TiB"]);
    scratch.run("sql backup absent.db copy.db").failed(&["absent.db does not exist"]);
}

/// Goal: when only a database's main file was copied, the error names the missing ones; all three,
/// or a backup, form a database. Method: the file alone, without its log, without its pages; all of
/// it; a backup.
#[test]
fn databases_copied_in_part_are_refused() {
    let scratch = scratch();
    let script = "cairn sql a.db -c 'create table t (a int)' -c 'insert into t values (7)' && mkdir alone log pages all && \
                  cp a.db alone && cp -r a.db a.db-log log && cp a.db a.db-pages pages && cp -r a.db* all && cairn sql backup a.db b.db";
    scratch.shell(script).ended(0);
    for dir in ["alone", "pages"] {
        let ran = scratch.shell(&format!("cairn sql {dir}/a.db -c 'select a from t'")).ended(1);
        let named = format!(
            "; {dir}/a.db-log and {dir}/a.db-pages belong to the file and must be copied and moved with it"
        );
        assert!(ran.err.contains(&named) && ran.err.contains("`cairn sql backup`"), "{dir}: {}", ran.err);
    }
    for copy in ["log/a.db", "all/a.db", "b.db"] {
        let ran = scratch.shell(&format!("cairn sql {copy} --csv -t -c 'select a from t'")).ended(0);
        assert_eq!(ran.text(), "7\n", "{copy}");
    }
    for name in ["a.db", "a.db-log", "a.db-pages", "b.db", "b.db-log", "b.db-pages"] {
        assert!(scratch.names().contains(&name.to_owned()), "{name}: {:?}", scratch.names());
    }
}

/// Goal: a failed write of rows to a file is reported once, with the reason, and ends a script at
/// that statement. Method: a file size limit, with rows that exceed it at once and through the
/// buffer; a script that continues writes to standard output again.
#[test]
fn full_disk_is_reported() {
    let scratch = scratch();
    scratch.write(
        "small.sql",
        ".output out.txt\nSELECT * FROM generate_series(1, 1000);\n.output\nSELECT 'after';\n",
    );
    scratch.write(
        "large.sql",
        ".output out.txt\nSELECT * FROM generate_series(1, 100000);\n.output\nSELECT 'after';\n",
    );
    for script in ["small.sql", "large.sql"] {
        let limited = format!("trap '' XFSZ; ulimit -f 2; cairn sql -f {script}");
        let ran = scratch.shell(&limited).ended(1);
        assert!(ran.err.contains("out.txt") && ran.err.contains("File too large"), "{}", ran.err);
        assert!(!ran.text().contains("after") && ran.err.matches("error:").count() == 1, "{}", ran.err);
        let ran = scratch.shell(&format!("{limited} --keep-going")).ended(1);
        assert!(ran.text().contains("after") && ran.err.contains("File too large"), "{}", ran.err);
        assert!(ran.err.ends_with("error: 1 statement failed\n"), "{}", ran.err);
    }
}

/// Goal: the end of a user's input ends the shell, as in psql, without running an unfinished
/// statement; the end of a script runs its last statement. Method: a terminal created by `script`;
/// the end in the middle of a statement and of a string.
#[test]
fn end_of_input_runs_no_unfinished_statement() {
    let scratch = scratch();
    let typed = |text: &str| {
        let line = "CAIRN_HISTORY=h TERM=dumb script -qec 'cairn sql my.db' /dev/null";
        scratch.shell(&format!("printf '%b' \"{text}\" | {line}")).ended(0).text()
    };
    assert!(typed("select 6 * 7;\\n").contains("42"));
    for unfinished in ["select 6 * 7\\n", "select 6 * 7, '\\n", "delete from t\\n"] {
        let said = typed(unfinished);
        assert!(!said.contains("42") && !said.contains("error"), "{said}");
    }
    let count = scratch.run_with("sql my.db -t -m csv", b"select count(*) > 0 from t").ended(0).text();
    assert_eq!(count.trim(), "t");
}

/// Goal: commands of sqlite3 and psql list and describe objects and change the output format.
#[test]
fn commands_list_and_describe() {
    let scratch = scratch();
    scratch.write("more.sql", "CREATE TABLE u (a int REFERENCES t (id) ON DELETE CASCADE, b text UNIQUE, CHECK (a > 0));\nCREATE INDEX u_a ON u (a DESC);");
    scratch.run("sql my.db -f more.sql").ended(0);
    let tell = |script: &str| scratch.run_with("sql my.db", script.as_bytes()).ended(0).text();
    assert_eq!(tell(".tables"), "t\nu\n");
    assert_eq!(tell(".tables u*\n"), "u\n");
    assert_eq!(tell(".indexes u"), "u_a\nu_b_key\n");
    let listed = tell("\\dt");
    assert!(listed.contains(" public | t    | table\n") && listed.contains("(2 rows)"), "{listed}");
    let described = tell("\\d u");
    for part in [
        "Table \"public.u\"",
        "\"u_a\" btree (a DESC)",
        "FOREIGN KEY (a) REFERENCES t (id) ON DELETE CASCADE",
        "CHECK (a > 0)",
    ] {
        assert!(described.contains(part), "{part} is not in {described}");
    }
    assert!(tell("\\d t").contains("Referenced by:"));
    let schema = tell(".schema u");
    assert!(
        schema.starts_with("CREATE TABLE u (\n    a int,\n")
            && schema.contains("CREATE INDEX u_a ON u (a DESC);"),
        "{schema}"
    );
    assert_eq!(tell(".headers off\n.mode csv\nSELECT id FROM t ORDER BY id LIMIT 1;"), "1\n");
    assert!(tell("\\x\nSELECT id FROM t WHERE id = 1;").contains("-[ RECORD 1 ]"));
    assert_eq!(tell(".echo a b\n.quit\n.echo c"), "a b\n");
    assert!(tell(".help").contains(".import"));
    scratch.run_with("sql my.db", b".nonsense").failed(&[".nonsense", ".help"]);
    tell(".output rows.csv\n.mode csv\nSELECT id FROM t WHERE id = 2;\n.output\n");
    assert_eq!(scratch.read("rows.csv"), b"id\n2\n");
}

/// Goal: a dump recreates the same database.
#[test]
fn dumps_come_back() {
    let scratch = scratch();
    scratch.write("more.sql", "CREATE TABLE \"User s\" (\"select\" int PRIMARY KEY, x text DEFAULT 'it''s');\nINSERT INTO \"User s\" (\"select\") VALUES (1);\nCREATE INDEX i ON \"User s\" (x);\nCREATE TABLE counted (id serial PRIMARY KEY, d double precision);\nINSERT INTO counted (d) VALUES (6.62607015e-34), (0.1), (1e300);\nCREATE SEQUENCE alone INCREMENT BY 5 CYCLE;\nSELECT nextval('alone');");
    scratch.run("sql my.db -f more.sql").ended(0);
    let dumped = scratch.run("sql dump my.db").ended(0).text();
    assert_eq!(scratch.run("sql dump my.db -o dump.sql").ended(0).text(), "wrote dump.sql: 7 rows\n");
    assert_eq!(String::from_utf8(scratch.read("dump.sql")).unwrap(), dumped);
    assert_eq!(scratch.run("sql dump my.db -o -").ended(0).text(), dumped);
    scratch.run("sql dump my.db -o - --json").failed(&["--json"]);
    let told = &scratch.run("sql dump my.db -o dump.sql --json").ended(0).json()[0];
    assert_eq!(told, &serde_json::json!({ "store": "my.db", "file": "dump.sql", "rows": 7 }));
    scratch.run("sql copy.db -f dump.sql").ended(0);
    assert_eq!(scratch.run("sql dump copy.db").ended(0).text(), dumped);
    assert!(scratch.run("sql verify copy.db").ended(0).text().contains("t: 3 rows sound"));
    let report = &scratch.run("sql verify copy.db --json").ended(0).json()[0];
    assert_eq!((&report["sound"], &report["lost_pages"]), (&true.into(), &0.into()));
    assert_eq!((&report["store"], &report["damage"]), (&"copy.db".into(), &serde_json::json!([])));
    let vacuumed = &scratch.run("sql vacuum copy.db --json").ended(0).json()[0];
    assert!(vacuumed["store"] == "copy.db" && vacuumed["bytes_after"].as_u64().unwrap() > 0, "{vacuumed}");
    scratch.write("next.sql", "INSERT INTO counted (d) VALUES (0);\nSELECT id, d FROM counted ORDER BY id;\nSELECT nextval('alone');\nDROP TABLE counted;\nSELECT nextval('counted_id_seq');");
    let ran = scratch.run("sql copy.db --csv -t -f next.sql").ended(1);
    assert!(ran.text().ends_with("1,6.62607015e-34\n2,0.1\n3,1e+300\n4,0\n6\n"), "{}", ran.text());
    assert!(ran.err.contains("counted_id_seq"), "{}", ran.err);
}

/// Goal: a dump preserves identity columns with their rows, their sequences and their kind (ALWAYS
/// or BY DEFAULT). Method: a renamed table, whose sequence still has the old name; dumped, read,
/// and used.
#[test]
fn identity_columns_come_back() {
    let scratch = scratch();
    scratch.write("more.sql", "CREATE TABLE n (id bigint GENERATED ALWAYS AS IDENTITY (INCREMENT BY 5 START WITH 10 CYCLE) PRIMARY KEY, v text);\nINSERT INTO n (v) VALUES ('a'), ('b');\nALTER TABLE n RENAME TO \"Later\";\nCREATE TABLE d (id int GENERATED BY DEFAULT AS IDENTITY, v text);\nINSERT INTO d VALUES (7, 'x');\nCREATE TABLE \"t\"\"x\" (id int GENERATED ALWAYS AS IDENTITY (INCREMENT BY -1), v text);\nINSERT INTO \"t\"\"x\" (v) VALUES ('q');");
    scratch.run("sql my.db -f more.sql").ended(0);
    let dumped = scratch.run("sql dump my.db").ended(0).text();
    assert!(
        dumped.contains("GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME n_id_seq INCREMENT BY 5 ")
            && dumped.contains("INSERT INTO \"Later\" OVERRIDING SYSTEM VALUE VALUES\n(10, 'a'),")
            && dumped.contains("INSERT INTO d VALUES\n(7, 'x')")
            && !dumped.contains("CREATE SEQUENCE")
            && !dumped.contains("OWNED BY"),
        "{dumped}"
    );
    scratch.write("dump.sql", &dumped);
    scratch.run("sql copy.db -f dump.sql").ended(0);
    assert_eq!(scratch.run("sql dump copy.db").ended(0).text(), dumped);
    scratch.write("next.sql", "INSERT INTO \"Later\" (v) VALUES ('c') RETURNING id;\nINSERT INTO d (v) VALUES ('y') RETURNING id;\nINSERT INTO \"Later\" VALUES (1, 'z');");
    let ran = scratch.run("sql copy.db --csv -t -f next.sql").ended(1);
    assert_eq!(ran.text(), "20\n1\n");
    assert!(ran.err.contains("cannot insert a non-DEFAULT value into column \"id\""), "{}", ran.err);
    let described = scratch.run_with("sql copy.db", b"\\d Later\n\\d d\n.schema d").ended(0).text();
    for part in [
        "generated always as identity",
        "generated by default as identity",
        "GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME d_id_seq ",
    ] {
        assert!(described.contains(part), "{part} is not in {described}");
    }
}

/// Goal: damage is reported in the same form as for all stores, whether or not the database opens.
/// Method: a byte of each page in turn, after removing the intact copy of the last checkpoint.
#[test]
fn damage_reports_have_one_form() {
    let scratch = scratch();
    scratch
        .run_with("sql d.db", b"CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 200) s(i);")
        .ended(0);
    let sound = scratch.read("d.db");
    let pages = sound.len() / 4096;
    let mut found = 0;
    for page in 0..pages {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 2000] ^= 1;
        scratch.write("d.db", &damaged);
        let _ = std::fs::remove_file(scratch.path("d.db-pages"));
        let ran = scratch.run("sql verify d.db --json");
        if ran.code == 0 {
            continue;
        }
        found += 1;
        let report = &ran.ended(1).json()[0];
        assert_eq!((&report["store"], &report["sound"]), (&"d.db".into(), &false.into()), "{report}");
        assert_eq!(report["damage"][0]["file"], "d.db", "{report}");
        let ran = scratch.run("sql verify d.db").ended(1);
        assert!(
            ran.text().contains("damaged: ") && ran.err == "error: d.db is damaged: 1 finding\n",
            "{ran:?}"
        );
    }
    assert!(found > pages / 2, "{found} of {pages}");
}

/// Goal: a server starts, prints its address, and ends with exit code 0 on SIGTERM; passwords are
/// stored as verifiers; listening without TLS on all addresses is refused.
#[test]
fn server_starts_and_ends() {
    let scratch = scratch();
    let script = "cairn sql serve my.db --socket . --listen 127.0.0.1:0 2> log & for i in $(seq 600); do [ -S .s.PGSQL.5432 ] && break; sleep 0.1; done; \
         kill -TERM $!; wait $!";
    scratch.shell(script).ended(0);
    let log = String::from_utf8(scratch.read("log")).unwrap();
    assert!(
        log.contains("listening on 127.0.0.1:") && log.contains(".s.PGSQL.5432: psql -h . -p 5432"),
        "{log}"
    );
    scratch.run_with("sql passwd users.txt ann", b"secret\n").ended(0);
    let file = String::from_utf8(scratch.read("users.txt")).unwrap();
    assert!(file.contains("ann:SCRAM-SHA-256$4096:") && !file.contains("secret"), "{file}");
    scratch.run_with("sql passwd users.txt bob", b"\n").failed(&["empty password"]);
    scratch.run("sql passwd users.txt bob --remove").ended(2);
    scratch.run("sql serve my.db --listen 0.0.0.0:0").failed(&["password file", "TLS"]);
    scratch.run("sql serve my.db --listen 0.0.0.0:0 --password-file users.txt").failed(&["TLS"]);
    scratch.run("sql serve my.db --tls-cert a.pem").failed(&["--tls-key"]);
}

/// Goal: a closed terminal ends a server like SIGTERM, unless it was started by `nohup`. Method:
/// the process's signal masks in both cases; the exit codes of both.
#[test]
fn nohup_keeps_a_server() {
    let scratch = scratch();
    // The tests themselves may run under `nohup`.
    for (before, is_kept) in [("env --default-signal=HUP ", false), ("nohup ", true)] {
        let script = format!(
            "{before}cairn sql serve my.db --socket . 2> log & for i in $(seq 600); do [ -S .s.PGSQL.5432 ] && break; sleep 0.1; done
            grep -E '^Sig(Ign|Cgt)' /proc/$!/status; kill -HUP $!; {is_kept} && kill -TERM $!; wait $!"
        );
        let told = scratch.shell(&script).ended(0).text();
        let has_hangup = |name: &str| {
            let mask = told.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            u64::from_str_radix(mask, 16).unwrap() & 1 == 1
        };
        assert_eq!((has_hangup("SigIgn:"), has_hangup("SigCgt:")), (is_kept, !is_kept), "{told}");
    }
}

/// Goal: Ctrl-C ends a script with 130, even while it waits for more input, between statements, and
/// with `--keep-going`. Method: a pipe that stays open, and an endless one; the signal once the
/// first answer is printed.
#[test]
fn ctrl_c_ends_a_script() {
    let scratch = scratch();
    for feed in ["exec 3<> in; echo 'SELECT 41 + 1;' >&3", "yes 'SELECT 41 + 1;' > in 2> /dev/null &"] {
        // Without job control, a shell starts background jobs with the signal ignored.
        let script = format!(
            "set -m; rm -f in out; mkfifo in; {feed}
            cairn sql my.db -t --keep-going < in > out & pid=$!
            until grep -q 42 out; do kill -0 $pid || exit 99; done
            kill -INT $pid; wait $pid"
        );
        scratch.shell(&script).ended(130);
    }
}

/// Goal: statements and files given as arguments run in the given order.
#[test]
fn scripts_run_in_the_order_of_options() {
    let scratch = scratch();
    scratch.write("rows.sql", "INSERT INTO a VALUES (1);");
    let script = "cairn sql new.db -t -c 'CREATE TABLE a (i int)' -f rows.sql -c 'SELECT i + 41 FROM a'";
    assert_eq!(scratch.shell(script).ended(0).text().trim(), "42");
    scratch.shell("cairn sql late.db -f rows.sql -c 'CREATE TABLE a (i int)'").failed(&["\"a\""]);
}

/// Goal: a dump preserves which columns own sequences, even if names contain points. Method: a
/// table whose name begins like another's, dumped and recreated.
#[test]
fn owners_of_sequences_come_back() {
    let scratch = Scratch::new();
    let tables = "CREATE TABLE a (x int); CREATE TABLE \"a.b\" (id serial, x int); INSERT INTO \"a.b\" (x) VALUES (7);";
    scratch.write("t.sql", tables);
    scratch.run("sql my.db -f t.sql").ended(0);
    let dump = scratch.run("sql dump my.db").ended(0);
    assert!(
        dump.text().contains("OWNED BY public.\"a.b\".id;") || dump.text().contains("OWNED BY \"a.b\".id;"),
        "{}",
        dump.text()
    );
    scratch.run_with("sql again.db", &dump.out).ended(0);
    assert_eq!(scratch.run("sql dump again.db").ended(0).text(), dump.text());
    let next = "DROP TABLE a; INSERT INTO \"a.b\" (x) VALUES (8) RETURNING id;";
    assert_eq!(scratch.run_with("sql again.db -t", next.as_bytes()).ended(0).text().trim(), "2");
}
