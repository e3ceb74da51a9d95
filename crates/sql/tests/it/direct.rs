//! Goal: statements on one table behave as in PostgreSQL. Method: small scripts.

use cairn_sql::{Datum, TransactionStatus};

use crate::support::{ask, database, fails, rows, run};

/// Rows are inserted, found by key, range and condition, updated and deleted.
#[test]
fn rows_come_and_go() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, name text not null, score numeric(6,2) default 1.5, at date)",
    );
    assert_eq!(run(&mut c, "insert into t values (1, 'one', 10, '2024-01-01'), (2, 'two', null, null)"), 2);
    assert_eq!(run(&mut c, "insert into t (name, id) values ('three', 3)"), 1);
    assert_eq!(ask(&mut c, "select * from t where id = 1"), ["1|one|10.00|2024-01-01"]);
    assert_eq!(
        ask(&mut c, "select name, score from t where id >= 2 order by id desc"),
        ["three|1.50", "two|NULL"]
    );
    assert_eq!(ask(&mut c, "select id from t where name like 't%' and score is null"), ["2"]);
    assert_eq!(rows(&mut c, "select name from t where id = $1", &[Datum::BigInt(3)]).unwrap(), ["three"]);
    assert_eq!(
        rows(&mut c, "select id from t where id in ($1, $2, 1) order by id", &[3.into(), 3.into()]).unwrap(),
        ["1", "3"]
    );
    assert_eq!(ask(&mut c, "select count(*), min(id), max(id), sum(score) from t"), ["3|1|3|11.50"]);
    assert_eq!(ask(&mut c, "select id from t order by name limit 2"), ["1", "3"]);
    assert_eq!(
        ask(&mut c, "update t set score = coalesce(score, 0) + id where id > 1 returning id, score"),
        ["2|2.00", "3|4.50"]
    );
    assert_eq!(run(&mut c, "delete from t where id = 2"), 1);
    assert_eq!(ask(&mut c, "select id from t"), ["1", "3"]);
    assert_eq!(fails(&mut c, "insert into t values (1, 'again')"), "23505");
    assert_eq!(fails(&mut c, "insert into t values (9, null)"), "23502");
    assert_eq!(fails(&mut c, "insert into t values (9, 'x', 100000)"), "22003");
    assert_eq!(fails(&mut c, "insert into u values (9)"), "42P01");
    assert_eq!(fails(&mut c, "select missing from t"), "42703");
    assert_eq!(fails(&mut c, "selct 1"), "42601");
}

/// A row identified by its whole key is changed only if it meets the rest of the condition. Keys
/// that no row can have, and NULL, identify none. In both isolation levels, with and without
/// RETURNING.
#[test]
fn rows_by_their_key() {
    for isolation in ["read committed", "repeatable read"] {
        for returning in ["", " returning id"] {
            let mut c = database().connect();
            run(&mut c, "create table t (id int primary key, v int)");
            run(&mut c, "create index t_v on t (v)");
            run(&mut c, "insert into t values (1, 10), (2, 20), (3, null)");
            let mut changed = |change: &str, condition: &str| {
                run(&mut c, &format!("begin isolation level {isolation}"));
                let count = run(&mut c, &format!("{change} where {condition}{returning}"));
                let left = ask(&mut c, "select count(*) from t where v is distinct from 77");
                run(&mut c, "rollback");
                (count, left)
            };
            for change in ["delete from t", "update t set v = 77"] {
                for (condition, count) in [
                    ("id = 1", 1),
                    ("id = 1 and v = 10", 1),
                    ("id = 1 and v = 20", 0),
                    ("v = 20 and id = 1", 0),
                    ("id = 3 and v = 20", 0),
                    ("id = 3 and v is null", 1),
                    ("id = 1 and id = 2", 0),
                    ("id = 4", 0),
                    ("id = 3000000000", 0),
                    ("id = null", 0),
                    ("id = 2 or id = 2", 1),
                ] {
                    let found = changed(change, condition);
                    assert_eq!(found, (count, vec![(3 - count).to_string()]), "{change} where {condition}");
                }
            }
        }
    }
}

/// Blocks commit, roll back, fail, and have savepoints.
#[test]
fn transactions() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table t (id int primary key, v int)");
    run(&mut a, "begin");
    run(&mut a, "insert into t values (1, 1)");
    assert_eq!(ask(&mut b, "select * from t"), Vec::<String>::new());
    run(&mut a, "savepoint s");
    run(&mut a, "insert into t values (2, 2)");
    assert_eq!(fails(&mut a, "insert into t values (1, 1)"), "23505");
    assert_eq!(a.status(), TransactionStatus::Failed);
    assert_eq!(fails(&mut a, "select * from t"), "25P02");
    run(&mut a, "rollback to s");
    run(&mut a, "insert into t values (3, 3)");
    run(&mut a, "commit");
    assert_eq!(ask(&mut b, "select id from t"), ["1", "3"]);
    run(&mut a, "begin isolation level repeatable read");
    assert_eq!(ask(&mut a, "select count(*) from t"), ["2"]);
    run(&mut b, "update t set v = 10 where id = 1");
    assert_eq!(fails(&mut a, "update t set v = 11 where id = 1"), "40001");
    run(&mut a, "rollback");
    assert_eq!(a.status(), TransactionStatus::Idle);
    run(&mut a, "begin");
    assert_eq!(ask(&mut a, "select v from t where id = 1 for update"), ["10"]);
    run(&mut a, "commit");
    run(&mut a, "begin read only");
    assert_eq!(fails(&mut a, "delete from t"), "25006");
    run(&mut a, "rollback");
}

/// Goal: if a row violates both NOT NULL and a check, NOT NULL is reported, as clients of
/// PostgreSQL expect.
/// Method: rows that violate both, in every kind of change.
#[test]
fn nulls_are_refused_before_checks() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, a int not null, b int check (b > 0))");
    run(&mut c, "insert into t values (1, 1, 1)");
    for change in [
        "insert into t values (2, null, 0)",
        "insert into t values (2, null, 0), (3, 1, 1)",
        "insert into t select 2, null::int, 0",
        "insert into t values (1, null, 0) on conflict do nothing",
        "insert into t values (1, 1, 1) on conflict (id) do update set a = null, b = 0",
        "update t set a = null, b = 0",
        "update t set a = null, b = 0 where exists (select from t u where u.id = t.id)",
    ] {
        assert_eq!(fails(&mut c, change), "23502", "{change}");
    }
    assert_eq!(fails(&mut c, "insert into t values (2, 1, 0)"), "23514");
}

/// Conflicts are handled, sequences advance, foreign keys hold.
#[test]
fn constraints() {
    let mut c = database().connect();
    run(&mut c, "create table p (id serial primary key, name varchar(5) unique, n int check (n > 0))");
    assert_eq!(ask(&mut c, "insert into p (name, n) values ('a', 1), ('b', 2) returning id"), ["1", "2"]);
    assert_eq!(fails(&mut c, "insert into p (name, n) values ('c', 0)"), "23514");
    assert_eq!(fails(&mut c, "insert into p (name) values ('abcdef')"), "22001");
    assert_eq!(run(&mut c, "insert into p (name, n) values ('a', 7) on conflict do nothing"), 0);
    assert_eq!(
        ask(
            &mut c,
            "insert into p (name, n) values ('a', 7) on conflict (name) do update set n = p.n + excluded.n returning n"
        ),
        ["8"]
    );
    run(&mut c, "create table k (id int primary key, p int references p on delete cascade)");
    run(&mut c, "insert into k values (1, 1), (2, null)");
    assert_eq!(fails(&mut c, "insert into k values (3, 99)"), "23503");
    run(&mut c, "delete from p where id = 1");
    assert_eq!(ask(&mut c, "select id from k"), ["2"]);
    run(&mut c, "create index on p (n desc)");
    assert_eq!(ask(&mut c, "select n from p order by n desc"), ["2"]);
    run(&mut c, "alter table p add column more text default 'x'");
    assert_eq!(ask(&mut c, "select * from p"), ["2|b|2|x"]);
    run(&mut c, "alter table p rename column more to less");
    run(&mut c, "alter table p drop column n");
    assert_eq!(ask(&mut c, "select less, name from p"), ["x|b"]);
    run(&mut c, "drop table k");
    run(&mut c, "truncate p");
    assert_eq!(ask(&mut c, "select count(*) from p"), ["0"]);
    assert_eq!(fails(&mut c, "select * from k"), "42P01");
}

/// Values at the ends of their types: digits are kept or rejected, never lost silently, and texts
/// are limited in length.
#[test]
fn ends_of_types() {
    let mut c = database().connect();
    assert_eq!(
        ask(&mut c, "select 6.62607015e-34::double precision, 1e-40::double precision"),
        ["6.62607015e-34|1e-40"]
    );
    assert_eq!(fails(&mut c, "select 1e400"), "22003");
    assert_eq!(
        ask(&mut c, "select interval '5 ms', interval '5 us', interval '5 m'"),
        ["00:00:00.005|00:00:00.000005|00:05:00"]
    );
    assert_eq!(ask(&mut c, "select 12345::varchar(2), 'abc'::varchar(2)"), ["12|ab"]);
    assert_eq!(fails(&mut c, "select (date '2000-01-01' + 2000000000)::timestamp"), "22008");
    assert_eq!(
        fails(&mut c, "select length(replace(repeat('a', 1000000), 'a', repeat('b', 1000000)))"),
        "54000"
    );
    assert_eq!(fails(&mut c, "select lpad('a', 60000000, '\u{20ac}')"), "54000");
    run(&mut c, "create table u (id int primary key, v text)");
    let twice = "insert into u values (1, 'a'), (1, 'b') on conflict (id) do update set v = excluded.v";
    assert_eq!(fails(&mut c, twice), "21000");
    run(&mut c, "insert into u values (1, 'a')");
    assert_eq!(
        run(&mut c, "insert into u values (1, 'c'), (2, 'd') on conflict (id) do update set v = excluded.v"),
        2
    );
}

/// Rows in batches have the same decimals as single rows.
#[test]
fn decimals_in_batches() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, d date, n numeric(10,4))");
    run(&mut c, "insert into t values (1, '2024-02-29', 12.3456), (2, null, null)");
    for sql in [
        "select extract(year from d), round(n, 2), n, 1.0 / 3 from t order by id",
        "select round(n, 2) from t where id = 1",
        "select n * n, n + 1, n / 7, -n, abs(n) from t",
        "select 1.0 / 3, 2 * 1.50, 7 % 2.5",
    ] {
        let one_by_one: Vec<Vec<Option<f64>>> = ask(&mut c, sql)
            .iter()
            .map(|row| row.split('|').map(|text| text.parse().ok()).collect())
            .collect();
        let mut rows = c.query(sql, &[]).unwrap();
        let mut batched = Vec::new();
        while let Some(batch) = rows.next_batch().unwrap() {
            for row in 0..batch.num_rows() {
                let shown = |column: usize| {
                    let array = batch.column(column);
                    arrow::util::display::array_value_to_string(array, row).unwrap().parse().ok()
                };
                batched.push((0..batch.num_columns()).map(shown).collect::<Vec<Option<f64>>>());
            }
        }
        drop(rows);
        let near = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-3,
            _ => a == b,
        };
        assert_eq!(one_by_one.len(), batched.len(), "{sql}");
        for (a, b) in one_by_one.iter().zip(&batched) {
            assert!(a.iter().zip(b).all(|(a, b)| near(a, b)), "{sql}: {a:?} in a batch is {b:?}");
        }
    }
}

/// Goal: ON CONFLICT handles invalid and repeated rows as in PostgreSQL 15. Method: NULL where it
/// is forbidden, in a key and in other columns; a row whose key the statement itself has changed.
#[test]
fn conflicts_of_wrong_rows() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int, a int, b int not null, u int unique, primary key (id, a))");
    run(&mut c, "insert into t values (1, 1, 1, 1)");
    for wrong in ["(null, 1, 1, 1)", "(1, 1, null, 1)", "(2, 2, null, 1)"] {
        for action in ["do nothing", "(id, a) do nothing", "(u) do update set b = 2"] {
            let sql = format!("insert into t values {wrong} on conflict {action}");
            assert_eq!(fails(&mut c, &sql), "23502", "{sql}");
        }
    }
    let sql = "insert into t values (5, 5, 5, 1), (6, 6, 6, 1) on conflict (u) do update set a = 7";
    assert_eq!(fails(&mut c, sql), "21000");
    assert_eq!(ask(&mut c, "select * from t"), ["1|1|1|1"]);
}

/// Goal: a statement that is prepared again has the current columns. Method: a cached statement, in
/// a transaction and outside, after its table was recreated.
#[test]
fn kept_statements_of_other_tables() {
    let mut c = database().connect();
    for block in [false, true] {
        run(&mut c, "create table t (a int)");
        assert_eq!(c.prepare("select * from t").unwrap().columns().len(), 1);
        run(&mut c, "drop table t");
        run(&mut c, "create table t (a int, b text)");
        if block {
            run(&mut c, "begin");
        }
        let statement = c.prepare("select * from t").unwrap();
        assert_eq!(statement.columns().len(), 2);
        c.run(&statement, &[]).unwrap();
        if block {
            run(&mut c, "commit");
        }
        run(&mut c, "drop table t");
    }
}

/// A row that INSERT skips is not locked: other sessions can change it, or skip it too, at once.
#[test]
fn rows_left_alone() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table t (id int primary key, v int unique)");
    run(&mut a, "insert into t values (1, 1), (2, 2)");
    run(&mut b, "set lock_timeout = 20");
    for conflict in ["on conflict do nothing", "on conflict (v) do nothing"] {
        run(&mut a, "begin");
        run(&mut b, "begin");
        assert_eq!(run(&mut a, &format!("insert into t values (1, 1), (2, 2) {conflict}")), 0);
        assert_eq!(run(&mut b, &format!("insert into t values (2, 2), (1, 1) {conflict}")), 0);
        assert_eq!(run(&mut b, "update t set v = v + 2"), 2);
        run(&mut b, "rollback");
        run(&mut a, "commit");
    }
    // The statement's own rows conflict as well.
    assert_eq!(run(&mut a, "insert into t values (3, 3), (3, 4), (4, 3) on conflict do nothing"), 1);
    // A row that is invisible at this isolation level.
    run(&mut a, "begin isolation level repeatable read");
    assert_eq!(ask(&mut a, "select count(*) from t"), ["3"]);
    run(&mut b, "insert into t values (9, 9)");
    assert_eq!(fails(&mut a, "insert into t values (9, 9) on conflict do nothing"), "40001");
}

/// Goal: a range of an index with one bound leaves out the rows whose value is NULL, which sort
/// after or before all others.
/// Method: an ascending and a descending index, compared with the same condition on a computed
/// value, which no index serves.
#[test]
fn ranges_leave_out_nulls() {
    let mut c = database().connect();
    for order in ["asc", "desc"] {
        run(&mut c, "create table t (id int primary key, k int, n int)");
        run(&mut c, &format!("create index t_k on t (k {order}, n {order})"));
        run(
            &mut c,
            "insert into t select g, nullif(g % 10, 3), nullif(g % 7, 1) from generate_series(1, 400) as s(g)",
        );
        for (condition, computed) in [
            ("k < 5", "k + 0 < 5"),
            ("k <= 5", "k + 0 <= 5"),
            ("k > 5", "k + 0 > 5"),
            ("k >= 5", "k + 0 >= 5"),
            ("k = 5 and n < 2", "k + 0 = 5 and n + 0 < 2"),
            ("k = 5 and n > 1", "k + 0 = 5 and n + 0 > 1"),
            ("k is null and n > 1", "k + 0 is null and n + 0 > 1"),
        ] {
            for direction in ["asc", "desc"] {
                let sql = |condition: &str| {
                    format!(
                        "select id, k, n from t where {condition} order by k {direction}, n {direction}, id"
                    )
                };
                let expected = ask(&mut c, &sql(computed));
                assert!(!expected.is_empty(), "{computed}");
                assert_eq!(ask(&mut c, &sql(condition)), expected, "{order} index: {condition} {direction}");
            }
            let counted = ask(&mut c, &format!("select count(*) from t where {computed}"));
            assert_eq!(ask(&mut c, &format!("select count(*) from t where {condition}")), counted);
        }
        run(&mut c, "drop table t");
    }
}

/// Goal: a row that joins several rows of the FROM or USING list is updated, deleted and counted
/// once.
/// Method: three matches for each row, in both forms, with RETURNING.
#[test]
fn rows_with_several_matches_change_once() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v int)");
    run(&mut c, "create table s (id int, w int)");
    run(&mut c, "insert into t select g, 0 from generate_series(1, 20) as s(g)");
    run(&mut c, "insert into s select g % 10 + 1, g from generate_series(1, 30) as s(g)");
    assert_eq!(run(&mut c, "update t set v = v + 1 from s where s.id = t.id"), 10);
    assert_eq!(ask(&mut c, "select sum(v), max(v) from t"), ["10|1"]);
    assert_eq!(
        ask(&mut c, "update t set v = v + 1 from s where s.id = t.id and t.id < 3 returning t.id").len(),
        2
    );
    assert_eq!(
        run(&mut c, "update t set v = (select count(*) from s where s.id = t.id) from s x where x.id = t.id"),
        10
    );
    assert_eq!(ask(&mut c, "delete from t using s where s.id = t.id and t.id < 3 returning t.id").len(), 2);
    assert_eq!(run(&mut c, "delete from t using s where s.id = t.id"), 8);
    assert_eq!(ask(&mut c, "select count(*) from t"), ["10"]);
}
