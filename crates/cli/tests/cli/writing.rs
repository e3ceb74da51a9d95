//! Output files of commands: complete, or unchanged.

use std::os::unix::fs::symlink;

use crate::support::{Ran, Scratch};

/// Runs a shell script over a table `t` of three rows.
fn sql(scratch: &Scratch, script: &str) -> Ran {
    let table = "create table t (a int, b text);\ninsert into t values (1, 'x'), (2, 'y'), (3, null);\n";
    scratch.run_with("sql", format!("{table}{script}\n").as_bytes())
}

/// Goal: `\copy` of Parquet works in both directions, including the first example of the
/// documentation. Method: out, into another table, and into a store by key.
#[test]
fn copies_of_parquet_work() {
    let scratch = Scratch::new();
    let script = "\\copy t to x.parquet (format parquet)\ncreate table u (a int, b text);\n\\copy u from 'x.parquet' (format parquet)\n\
                  .mode csv\nselect * from u order by a;";
    assert_eq!(sql(&scratch, script).ended(0).text(), "a,b\n1,x\n2,y\n3,\n");
    scratch.run("kv load s x.parquet --create --key a --value a").ended(0);
    assert_eq!(scratch.run("kv get s 2").ended(0).text(), "2");
    // A pipe cannot be read from its end, so its contents are buffered first.
    let script =
        "create table u (a int, b text);\n\\copy u from pipe (format parquet)\nselect count(*) from u;\n";
    scratch.write("in.sql", script);
    let ran = scratch.shell("mkfifo pipe; cat x.parquet > pipe & cairn sql --csv -t -f in.sql").ended(0);
    assert_eq!(ran.text(), "3\n");
}

/// Goal: a file stays unchanged if writing its replacement fails, and no other file is left.
/// Method: statements that fail before the first row and in the middle, a file size limit, which
/// makes writes fail as on a full disk, a reader that goes away; each way to write a file.
#[test]
fn failures_leave_the_old_file() {
    let scratch = Scratch::new();
    scratch.run("kv put s a 1 --create").ended(0);
    scratch.shell("cairn sql my.db -c 'create table big as select n, repeat(md5(n::text), 20) v from generate_series(1, 20000) s(n)'").ended(0);
    let old = |name: &str| scratch.write(name, "old");
    let is_old = |name: &str, what: &str| {
        assert_eq!(scratch.read(name), b"old", "{what}");
        assert!(!scratch.names().iter().any(|name| name.ends_with(".tmp")), "{what}: {:?}", scratch.names());
    };
    let late = "(select 1 / (50000 - n) from generate_series(1, 60000) s(n))";
    for what in ["nowhere", "t (c)", "(selec 1)", late] {
        for format in ["csv", "text", "binary", "parquet"] {
            old("f");
            let copy = format!("\\copy {what} to f (format {format})");
            assert_eq!(sql(&scratch, &copy).code, 1, "{copy}");
            is_old("f", &copy);
            let copy = format!("copy {what} to 'f' (format {format});");
            assert_eq!(sql(&scratch, &copy).code, 1, "{copy}");
            is_old("f", &copy);
        }
    }
    for script in [
        ".output f\nselect 1;\nselec 2;",
        ".output f\nselect 1 / (50000 - n) from generate_series(1, 60000) s(n);",
    ] {
        old("f");
        sql(&scratch, script).ended(1);
        is_old("f", script);
    }
    // In units of 512 bytes: less than the size of these files and more than a page of the log.
    let full = "ulimit -f 400; trap '' XFSZ;";
    for command in [
        "cairn sql my.db -c '\\copy big to f'",
        "cairn sql my.db -c '\\copy big to f (format binary)'",
        "cairn sql my.db -c \"copy big to 'f' (format csv)\"",
        "cairn sql my.db -f output.sql",
        "cairn sql dump my.db -o f",
    ] {
        old("f");
        scratch.write("output.sql", ".output f\nselect * from big;\n");
        scratch.shell(&format!("{full} {command}")).ended(1);
        is_old("f", command);
    }
}

/// Goal: Ctrl-C, SIGTERM and a closed terminal leave a file that is being replaced unchanged, and
/// no other file.
/// Method: an endless query into a file, each way; the signal once the temporary file exists.
#[test]
fn signals_leave_the_old_file() {
    let scratch = Scratch::new();
    let rows = "generate_series(1, 2000000000)";
    scratch.write("copy.sql", format!("\\copy (select n from {rows} s(n)) to f\n"));
    scratch.write("server.sql", format!("copy (select n from {rows} s(n)) to 'f';\n"));
    scratch.write("output.sql", format!(".output f\nselect n from {rows} s(n);\n"));
    for script in ["copy.sql", "server.sql", "output.sql"] {
        for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
            scratch.write("f", "old");
            let ran = scratch.shell(&format!(
                "set -m; rm -f f.tmp; cairn sql --mode csv -f {script} & pid=$!
                until [ -e f.tmp ]; do kill -0 $pid || exit 99; done
                kill -{signal} $pid; wait $pid"
            ));
            assert_eq!(ran.code, code, "{script} at SIG{signal}: {}", ran.err);
            assert_eq!(scratch.read("f"), b"old", "{script} at SIG{signal}");
            // The shell removes its own temporary files. A statement rolls back and removes its
            // own, unless the machine is too busy to do so in time.
            let is_left = scratch.names().contains(&"f.tmp".to_owned());
            assert!(!is_left || script == "server.sql", "{script} at SIG{signal}");
        }
    }
}

/// Goal: output to a device or a pipe is written as rows arrive, and a symbolic link stays one.
/// Method: standard output as a device, a named pipe, a link, by each way to write a file.
#[test]
fn output_to_devices_pipes_and_links() {
    let scratch = Scratch::new();
    for command in [
        "\\copy t to /dev/stdout (format csv)",
        "copy t to '/dev/stdout' (format csv);",
        ".mode csv\n.headers off\n.output /dev/stdout\nselect * from t;",
    ] {
        assert_eq!(sql(&scratch, command).ended(0).text(), "1,x\n2,y\n3,\n", "{command}");
    }
    scratch.write("copy.sql", "create table t (a int);\ninsert into t values (7);\n\\copy t to pipe\n");
    let ran = scratch.shell("mkfifo pipe; cat pipe & cairn sql -f copy.sql; wait").ended(0);
    assert_eq!(ran.text(), "7\n");
    scratch.write("real", "old");
    symlink("real", scratch.path("link")).unwrap();
    for command in [
        "\\copy t to link (format csv)",
        "copy t to 'link' (format csv);",
        ".mode csv\n.headers off\n.output link\nselect * from t;\n.output",
    ] {
        scratch.write("real", "old");
        sql(&scratch, command).ended(0);
        assert!(scratch.path("link").is_symlink(), "{command}");
        assert_eq!(scratch.read("real"), b"1,x\n2,y\n3,\n", "{command}");
    }
}

/// Goal: a database in memory exports files to the disk. Method: COPY to a file and a backup, read
/// by another process.
#[test]
fn databases_in_memory_write_to_the_disk() {
    let scratch = Scratch::new();
    sql(&scratch, "copy t to 'rows.csv' (format csv);\n.backup copy.db").ended(0);
    assert_eq!(scratch.read("rows.csv"), b"1,x\n2,y\n3,\n");
    assert_eq!(scratch.run("sql copy.db --csv -t -c select").code, 1);
    assert_eq!(
        scratch.shell("cairn sql copy.db --csv -t -c 'select count(*) from t'").ended(0).text(),
        "3\n"
    );
}
