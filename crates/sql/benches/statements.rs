//! Measures the cost of prepared statements for an application that embeds the database, without
//! clients and protocols. `[CAIRN_ROWS=200000] cargo bench -p cairn-sql --bench statements [--
//! FILTER]`.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use cairn_sql::{Connection, Database, Datum, DatumRef, Outcome, Statement};
use cairn_vfs::{Clock, SystemClock};

/// The number of measurements of each statement. The median is reported.
const TURNS: usize = 9;

/// Returns a pseudorandom number below `rows`, derived from `at`.
fn mix(at: u64, rows: u64) -> u64 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) % rows
}

/// Reads every value of every row, and returns the number of rows.
fn read(connection: &mut Connection, statement: &Statement, params: &[Datum]) -> u64 {
    let Outcome::Rows(mut rows) = connection.run(statement, params).unwrap() else { return 0 };
    let mut count = 0;
    while let Some(row) = rows.next().unwrap() {
        for column in 0..row.len() {
            match row.get(column) {
                DatumRef::Text(text) => _ = std::hint::black_box(text.len()),
                other => _ = std::hint::black_box(other),
            }
        }
        count += 1;
    }
    count
}

fn main() {
    let rows: u64 = std::env::var("CAIRN_ROWS").map_or(200_000, |rows| rows.parse().unwrap());
    let filter = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    let dir = tempfile::tempdir_in(std::env::var_os("CAIRN_WORK").unwrap_or_else(|| ".".into())).unwrap();
    let db = Database::open(dir.path().join("statements.db")).unwrap();
    let mut connection = db.connect();
    let groups = rows / 100;
    connection
        .batch(&format!(
            "CREATE TABLE groups (id INTEGER PRIMARY KEY, label VARCHAR(32) NOT NULL, rank INTEGER NOT NULL);
             CREATE TABLE records (id INTEGER PRIMARY KEY, grp INTEGER NOT NULL, amount BIGINT NOT NULL,
                                   name VARCHAR(32) NOT NULL, note VARCHAR(120) NOT NULL);
             INSERT INTO groups SELECT g, 'group ' || g, g FROM generate_series(0, {}) AS s(g);
             INSERT INTO records
                 SELECT i, (i * 7919) % {groups}, (i * 104729) % 1000003, 'record ' || (i * 31) % 977,
                        'made for ' || (i * 7) % 1009 || ', kept for ' || i % 31 || ' days, then put aside by ' || i % 89
                 FROM generate_series(0, {}) AS s(i);
             CREATE INDEX ON records (grp);
             CREATE INDEX ON groups (rank);",
            groups - 1,
            rows - 1
        ))
        .unwrap();
    for maintenance in ["VACUUM", "ANALYZE"] {
        connection.execute(maintenance, &[]).unwrap();
    }
    let clock = SystemClock::new();
    for (name, sql, runs, is_range) in [
        ("point read", "SELECT * FROM records WHERE id = $1", 200_000, false),
        ("range read of 100 rows", "SELECT * FROM records WHERE id >= $1 AND id < $2", 20_000, true),
        (
            "index join",
            "SELECT g.label, r.id, r.amount FROM groups g JOIN records r ON r.grp = g.id WHERE g.rank = $1",
            4_000,
            false,
        ),
    ] {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        let statement = connection.prepare(sql).unwrap();
        let mut times = [0.0; TURNS];
        let mut found = 0;
        for (turn, time) in (0..).zip(&mut times) {
            let start = clock.now();
            for at in 0..runs {
                let key = mix(turn * runs + at, if name == "index join" { groups } else { rows - 100 });
                let key = Datum::from(key as i32);
                let params = match (&key, is_range) {
                    (Datum::Int(low), true) => vec![key.clone(), Datum::Int(low + 100)],
                    _ => vec![key],
                };
                found += read(&mut connection, &statement, &params);
            }
            *time = (clock.now() - start).as_nanos() as f64 / runs as f64;
        }
        times.sort_by(f64::total_cmp);
        let each = found as f64 / (runs * TURNS as u64) as f64;
        println!("{name:<28} {:>10.1} ns, {each:.0} rows", times[TURNS / 2]);
    }
}
