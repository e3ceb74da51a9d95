//! Goal: COPY reads and writes rows in PostgreSQL's formats. Method: both formats, both directions.

use cairn_sql::{Connection, Outcome};

use crate::support::{ask, database, fails, run};

pub fn copy_in(c: &mut Connection, sql: &str, pieces: &[&str]) -> Result<String, cairn_sql::Error> {
    let statement = c.prepare(sql)?;
    let Outcome::CopyIn(mut copy) = c.run(&statement, &[])? else { panic!("{sql}") };
    for piece in pieces {
        copy.write(piece.as_bytes())?;
    }
    copy.finish().map(|tag| tag.to_string())
}

fn copy_out(c: &mut Connection, sql: &str) -> String {
    let statement = c.prepare(sql).unwrap();
    let Outcome::CopyOut(mut copy) = c.run(&statement, &[]).unwrap() else { panic!("{sql}") };
    let mut all = Vec::new();
    while let Some(bytes) = copy.next().unwrap() {
        all.extend(bytes);
    }
    String::from_utf8(all).unwrap()
}

/// Rows cut anywhere, escapes, quotes, NULL, headers, defaults, errors.
#[test]
fn formats() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v text, n numeric(6,2) default 7 check (n > 0))");
    assert_eq!(
        copy_in(&mut c, "copy t from stdin", &["1\ta\\tb\t1.", "5\n2\t\\N", "\t2\n\\.\n"]).unwrap(),
        "COPY 2"
    );
    assert_eq!(
        copy_in(
            &mut c,
            "copy t (id, v) from stdin with (format csv, header)",
            &["id,v\n3,\"x,\"\"y\"\"\nz\"\n4,\n"]
        )
        .unwrap(),
        "COPY 2"
    );
    assert_eq!(
        ask(&mut c, "select * from t order by id"),
        ["1|a\tb|1.50", "2|NULL|2.00", "3|x,\"y\"\nz|7.00", "4|NULL|7.00"]
    );
    assert_eq!(
        copy_out(&mut c, "copy t to stdout"),
        "1\ta\\tb\t1.50\n2\t\\N\t2.00\n3\tx,\"y\"\\nz\t7.00\n4\t\\N\t7.00\n"
    );
    assert_eq!(
        copy_out(
            &mut c,
            "copy (select id, v from t where id in (1, 3) order by id) to stdout with (format csv, header)"
        ),
        "id,v\n1,a\tb\n3,\"x,\"\"y\"\"\nz\"\n"
    );
    assert_eq!(copy_in(&mut c, "copy t from stdin", &["5\tx\t-1\n"]).unwrap_err().sqlstate(), "23514");
    assert_eq!(copy_in(&mut c, "copy t from stdin", &["5\tx\n"]).unwrap_err().sqlstate(), "22P04");
    assert_eq!(copy_in(&mut c, "copy t from stdin", &["five\tx\t1\n"]).unwrap_err().sqlstate(), "22P02");
    assert_eq!(copy_in(&mut c, "copy t from stdin", &["1\tx\t1\n"]).unwrap_err().sqlstate(), "23505");
    assert_eq!(ask(&mut c, "select count(*) from t"), ["4"]);
    run(&mut c, "copy t to 'out.csv' with (format csv)");
    run(&mut c, "create table u (id int, v text, n numeric(6,2))");
    assert_eq!(run(&mut c, "copy u from 'out.csv' with (format csv)"), 4);
    assert_eq!(ask(&mut c, "select count(*), sum(n) from u"), ["4|17.50"]);
}

/// Goal: PostgreSQL's binary format and Parquet can be written and read back, through files and in
/// pieces.
/// Method: a row of every type, read back into a table like the first.
#[test]
fn binary_and_parquet() {
    let mut c = database().connect();
    let columns = "id int primary key, a boolean, b smallint, c bigint, d real, e double precision, f numeric(12,3), g text, h varchar(9), i bytea, j date, k time, l timestamp, \
                   m interval, n uuid, o json";
    run(&mut c, &format!("create table t ({columns})"));
    run(
        &mut c,
        "insert into t values (1, true, -2, 3000000000, 1.5, -2.25, 12345.678, 'Žofie', 'x\ty', '\\x00ff', '2024-02-29', '12:34:56.789', '2024-02-29 12:34:56.789', \
         '1 year 2 days 03:04:05', '00112233-4455-6677-8899-aabbccddeeff', '{\"a\": [1, null]}')",
    );
    run(&mut c, "insert into t (id) values (2)");
    let expected = ask(&mut c, "select * from t order by id");
    for format in ["binary", "parquet", "csv", "text"] {
        run(&mut c, &format!("copy t to 'rows' with (format {format})"));
        run(&mut c, &format!("create table u ({columns})"));
        assert_eq!(run(&mut c, &format!("copy u from 'rows' with (format {format})")), 2, "{format}");
        assert_eq!(ask(&mut c, "select * from u order by id"), expected, "{format}");
        assert_eq!(fails(&mut c, &format!("copy u from 'rows' with (format {format})")), "23505");
        run(&mut c, "drop table u");
    }
    run(&mut c, "copy (select id, n::text as n from t) to 'rows' with (format parquet)");
    run(&mut c, "create table v (n uuid, id bigint)");
    run(&mut c, "copy v from 'rows' with (format parquet)");
    assert_eq!(
        ask(&mut c, "select id, n from v order by id"),
        ["1|00112233-4455-6677-8899-aabbccddeeff", "2|NULL"]
    );
    run(&mut c, "create table w (missing int)");
    assert_eq!(fails(&mut c, "copy w from 'rows' with (format parquet)"), "22P04");
    assert_eq!(fails(&mut c, "copy w from 'nowhere' with (format parquet)"), "58P01");
    run(&mut c, "copy (select 'no uuid' as n, 1 as id) to 'rows' with (format parquet)");
    assert_eq!(fails(&mut c, "copy v from 'rows' with (format parquet)"), "22P02");
}

/// Goal: a Parquet file can be written and read as a stream, with the same bytes as through a file.
/// Method: rows written in pieces, read into a second table in pieces of a few bytes, and from the
/// file.
#[test]
fn parquet_streams() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v text)");
    run(&mut c, "insert into t select n, repeat('x', n % 50) from generate_series(1, 20000) s(n)");
    let out = |c: &mut Connection, sql: &str| {
        let statement = c.prepare(sql).unwrap();
        let Outcome::CopyOut(mut copy) = c.run(&statement, &[]).unwrap() else { panic!("{sql}") };
        assert!(copy.is_binary());
        let mut all = Vec::new();
        while let Some(bytes) = copy.next().unwrap() {
            assert_eq!(copy.row_ends(), [bytes.len()]);
            all.extend(bytes);
        }
        assert_eq!(copy.tag().to_string(), "COPY 20000");
        all
    };
    let bytes = out(&mut c, "copy t to stdout with (format parquet)");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    run(&mut c, "create table u (id int primary key, v text)");
    let statement = c.prepare("copy u from stdin with (format parquet)").unwrap();
    let Outcome::CopyIn(mut copy) = c.run(&statement, &[]).unwrap() else { panic!() };
    assert!(copy.is_parquet());
    bytes.chunks(1000).for_each(|piece| copy.write(piece).unwrap());
    assert_eq!(copy.finish().unwrap().to_string(), "COPY 20000");
    assert_eq!(ask(&mut c, "select count(*) from (select * from t except select * from u) d"), ["0"]);
    let Outcome::CopyIn(mut copy) = c.run(&statement, &[]).unwrap() else { panic!() };
    copy.write(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(copy.finish().unwrap_err().sqlstate(), "22P04");
    let Outcome::CopyIn(copy) = c.run(&statement, &[]).unwrap() else { panic!() };
    assert_eq!(copy.finish().unwrap_err().sqlstate(), "22P04");
}

/// Goal: two columns of the same name are rejected in either direction, and a number that is not
/// whole does not become an integer. Method: a query with a name twice; a file with a name twice,
/// as other programs write; numbers with and without fractional digits.
#[test]
fn parquet_guesses_nothing() {
    let mut c = database().connect();
    run(&mut c, "create table t (a int, b int)");
    run(&mut c, "copy (select 7 as a) to 'kept' with (format parquet)");
    assert_eq!(fails(&mut c, "copy (select 1 as a, 2 as a) to 'kept' with (format parquet)"), "42701");
    run(&mut c, "copy t (a) from 'kept' with (format parquet)");
    assert_eq!(ask(&mut c, "select a from t"), ["7"]);
    for (value, read) in [
        ("3.0::double precision", true),
        ("3.5::double precision", false),
        ("3.00::numeric", true),
        ("3.25::numeric", false),
    ] {
        run(&mut c, &format!("copy (select {value} as b) to 'rows' with (format parquet)"));
        match read {
            true => assert_eq!(run(&mut c, "copy t (b) from 'rows' with (format parquet)"), 1),
            false => assert_eq!(fails(&mut c, "copy t (b) from 'rows' with (format parquet)"), "22P02"),
        }
    }
    assert_eq!(ask(&mut c, "select count(*) from t where b = 3"), ["2"]);
}

/// Goal: COPY replaces its file atomically: a failed statement leaves the old file, and no other
/// file.
/// Method: a division by zero in a late row, in every format, with and without an existing file.
#[test]
fn failed_copies_leave_the_old_file() {
    let mut c = database().connect();
    run(&mut c, "create table t (a text)");
    run(&mut c, "copy (select 'old' as a) to 'rows' with (format csv)");
    for format in ["text", "csv", "binary", "parquet"] {
        let copy = |name: &str| {
            format!(
                "copy (select 1 / (50000 - n) as a from generate_series(1, 60000) s(n)) to '{name}' with (format {format})"
            )
        };
        assert_eq!(fails(&mut c, &copy("rows")), "22012", "{format}");
        assert_eq!(fails(&mut c, &copy("new")), "22012", "{format}");
        assert_eq!(fails(&mut c, "copy t from 'new'"), "58P01", "{format}");
        assert_eq!(fails(&mut c, "copy t from 'rows.tmp'"), "58P01", "{format}");
    }
    run(&mut c, "copy t from 'rows'");
    assert_eq!(ask(&mut c, "select a from t"), ["old"]);
}

/// Goal: options are accepted and rejected as in PostgreSQL. Method: one of each.
#[test]
fn options() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int, v text)");
    let match_header = "copy t from stdin with (format csv, header match)";
    assert_eq!(copy_in(&mut c, match_header, &["id,v\n1,x\n"]).unwrap(), "COPY 1");
    assert_eq!(copy_in(&mut c, match_header, &["id,w\n1,x\n"]).unwrap_err().sqlstate(), "22P04");
    assert_eq!(copy_out(&mut c, "copy t to stdout with (format csv, force_quote *)"), "\"1\",\"x\"\n");
    assert_eq!(
        copy_out(&mut c, "copy t to stdout (format csv, force_quote (v), delimiter ';')"),
        "1;\"x\"\n"
    );
    assert_eq!(copy_out(&mut c, "copy t to stdout with csv header"), "id,v\n1,x\n");
    assert_eq!(copy_out(&mut c, "copy (select 1 where false) to stdout"), "");
    assert_eq!(fails(&mut c, "copy t from stdin with (format binary, header)"), "0A000");
    assert_eq!(fails(&mut c, "copy t to stdout with (format csv, format csv)"), "42601");
    assert_eq!(fails(&mut c, "copy t to stdout with (format xml)"), "22023");
    let error = copy_in(&mut c, "copy t from stdin", &["1\tx\nfive\ty\n"]).unwrap_err();
    assert_eq!(error.detail(), Some("COPY t, line 2, column id: \"five\""));
}
