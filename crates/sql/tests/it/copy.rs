//! Goal: rows go in and out as PostgreSQL writes them. Method: both formats, both ways.

use cairn_sql::{Connection, Outcome};

use crate::support::{ask, database, run};

fn copy_in(c: &mut Connection, sql: &str, pieces: &[&str]) -> Result<String, cairn_sql::Error> {
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
