//! Row locks: of FOR UPDATE, and of blocks that have failed.

use cairn_sql::Datum;

use crate::support::{ask, database, fails, rows, run};

/// Goal: workers that share a table of jobs take different ones, and wait for each other only on
/// request.
/// Method: three sessions, of which none commits; orders with and without a tree.
#[test]
fn jobs_for_several() {
    let database = database();
    let (mut a, mut b, mut c) = (database.connect(), database.connect(), database.connect());
    run(&mut a, "create table job (id int primary key, state text, urgency int)");
    run(&mut a, "insert into job select g, 'new', g % 3 from generate_series(1, 9) as s(g)");
    run(&mut a, "create index job_state on job (state, urgency)");
    for (order, taken) in [
        ("id", ["1", "2", "3|4"]),
        ("urgency desc, id", ["2", "5", "8|1"]),
        ("urgency, id", ["3", "6", "9|1"]),
    ] {
        let next = |more: &str| format!("select id from job where state = 'new' order by {order} {more}");
        for session in [&mut a, &mut b, &mut c] {
            run(session, "begin");
        }
        let one = next("limit 1 for update skip locked");
        assert_eq!(ask(&mut a, &one), [taken[0]], "{order}");
        assert_eq!(ask(&mut b, &one), [taken[1]], "{order}");
        assert_eq!(ask(&mut a, &one), [taken[0]], "its own are not skipped: {order}");
        assert_eq!(ask(&mut c, &next("limit 2 for update skip locked")).join("|"), taken[2], "{order}");
        assert_eq!(fails(&mut c, &next("limit 1 for update nowait")), "55P03");
        run(&mut a, "rollback");
        // Rows that were unlocked are available again, and so are those of a failed session.
        let left = ask(&mut b, &next("for update skip locked"));
        assert_eq!(left.len(), 9, "{order}");
        run(&mut b, "rollback");
        run(&mut c, "rollback");
    }
    run(&mut a, "begin");
    assert_eq!(ask(&mut a, "select id from job order by id limit 1 offset 2 for update of job"), ["3"]);
    assert_eq!(
        ask(&mut b, "select id from job j where id < 5 order by id for share of j skip locked"),
        ["4"]
    );
    // Weaker lock strengths lock like the strong ones.
    run(&mut b, "begin");
    for strength in ["no key update", "NO\n KEY /* */ UPDATE", "key share", "share", "update"] {
        let rest = format!("select id from job as \"no\" where id < 5 for {strength} of \"no\" skip locked");
        assert_eq!(ask(&mut b, &rest), ["4"], "{strength}");
    }
    assert_eq!(ask(&mut c, "select id from job where id < 5 order by id for key share skip locked"), [""; 0]);
    run(&mut b, "rollback");
    assert_eq!(fails(&mut b, "select id from job for no update"), "42601");
    assert_eq!(fails(&mut b, "select id from job j for update of job"), "42P01");
    assert_eq!(fails(&mut b, "select count(*) from job for update"), "0A000");
    // A row that changed during the wait is tested again. The result has as many rows as requested,
    // as if the query had run later.
    run(&mut a, "update job set state = 'done' where id = 1");
    let taken = std::thread::scope(|scope| {
        let other = scope
            .spawn(|| ask(&mut b, "select id from job where state = 'new' order by id limit 1 for update"));
        run(&mut a, "commit");
        other.join().unwrap()
    });
    assert_eq!(taken, ["2"]);
}

/// Goal: a job is taken and marked in one statement. Method: two sessions; as many rows as there
/// are, more, none; parameters; places where such a subquery is not allowed.
#[test]
fn jobs_taken_and_marked() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table job (id int primary key, state text, note text)");
    run(&mut a, "insert into job select g, 'new', 'n' || g from generate_series(1, 6) as s(g)");
    let take = "update job set state = $1 where id in (select id from job where state = $2 order by id limit $3 for update skip locked) returning id, note";
    let of = |count: i64| [Datum::Text("run".into()), Datum::Text("new".into()), Datum::BigInt(count)];
    run(&mut a, "begin");
    assert_eq!(rows(&mut a, take, &of(1)).unwrap(), ["1|n1"]);
    run(&mut b, "begin");
    assert_eq!(rows(&mut b, take, &of(2)).unwrap(), ["2|n2", "3|n3"]);
    assert!(rows(&mut b, take, &of(0)).unwrap().is_empty());
    run(&mut a, "rollback");
    run(&mut b, "commit");
    assert_eq!(rows(&mut a, take, &of(9)).unwrap(), ["1|n1", "4|n4", "5|n5", "6|n6"]);
    assert!(rows(&mut a, take, &of(9)).unwrap().is_empty());

    let one = "update job set note = note || '!' where id = (select id from job where state = 'run' order by note desc limit 1 for update) returning note";
    assert_eq!(ask(&mut a, one), ["n6!"]);
    assert!(ask(&mut a, &one.replace("'run'", "'new'")).is_empty(), "equal to no row is nothing");
    assert_eq!(fails(&mut a, &one.replace(" limit 1", "")), "21000");
    let gone = "delete from job where id not in (select id from job where id < 6 for update) or note = (select note from job where id = 2 for update nowait)";
    assert_eq!(run(&mut a, gone), 2);
    assert_eq!(
        ask(
            &mut a,
            "select id from job where id in (select id from job where id > 3 for update) order by id"
        ),
        ["4", "5"]
    );
    let next = "with next(number, n) as (select id, note from job where state = $1 order by id for update skip locked)";
    let state = |state: &str| [Datum::Text(state.into())];
    let found = |session: &mut cairn_sql::Connection, what: &str, of: &str| {
        rows(session, &format!("{next} {what}"), &state(of)).unwrap()
    };
    assert_eq!(found(&mut a, "select n, number + 1 from next", "run"), ["n1|2", "n3|4", "n4|5", "n5|6"]);
    assert!(found(&mut a, "select n, number + 1 from next", "new").is_empty());
    assert_eq!(
        ask(
            &mut a,
            "select s.id, j.note from (select id from job where id = 3 for update) as s join job j on j.id = s.id"
        ),
        ["3|n3"]
    );
    run(&mut b, "begin");
    run(&mut b, "update job set note = 'b' where id = 4");
    assert_eq!(found(&mut a, "select count(*) from next", "run"), ["3"]);
    let mark = "update job set note = n || '!' from next where id = number returning id, job.note";
    assert_eq!(found(&mut a, mark, "run"), ["1|n1!", "3|n3!", "5|n5!"]);
    assert!(found(&mut a, mark, "new").is_empty());
    assert_eq!(fails(&mut a, "delete from job where id in (select id from job for update nowait)"), "55P03");
    assert_eq!(ask(&mut a, "select count(*) from job"), ["4"]);
    run(&mut b, "rollback");
    for (sql, code) in [
        ("update job set note = '' where id in (select id, note from job for update)", "42601"),
        (
            "update job j set note = '' where id in (select id from job k where k.id = j.id for update)",
            "42P01",
        ),
        ("update job set note = '' where id in (select k.id from job k, job l for update)", "0A000"),
        ("select * from job j, lateral (select id from job k where k.id = j.id for update) as l", "42P01"),
        ("select * from (select count(*) from job for update) as s", "0A000"),
    ] {
        assert_eq!(fails(&mut a, sql), code, "{sql}");
    }
    assert_eq!(ask(&mut a, "select count(*) from job where note = ''"), ["0"]);
}

/// Goal: a failed block that can only be rolled back holds no locks, as in PostgreSQL; one with a
/// savepoint keeps the locks from before it. Method: rows changed by such a block, which a session
/// without waiting changes; and a deadlock of two sessions.
#[test]
fn failed_blocks_hold_nobody_up() {
    let database = database();
    let (mut a, mut b) = (database.connect(), database.connect());
    run(&mut a, "create table t (id int primary key, v int)");
    run(&mut a, "insert into t values (1, 1), (2, 1)");
    run(&mut b, "set lock_timeout = 1");
    for failing in
        ["select 1 / (v - v) from t", "insert into t values (1, 1)", "selec", "select 1 from nowhere"]
    {
        run(&mut a, "begin");
        run(&mut a, "update t set v = 5 where id = 1");
        run(&mut a, "create table made (id int primary key)");
        assert_eq!(fails(&mut b, "update t set v = 3 where id = 1"), "55P03");
        fails(&mut a, failing);
        assert_eq!(run(&mut b, "update t set v = v + 1 where id = 1"), 1, "{failing}");
        assert_eq!(fails(&mut a, "select 1"), "25P02");
        assert_eq!(fails(&mut a, "rollback to savepoint s"), "3B001");
        run(&mut a, "commit");
        assert_eq!(fails(&mut a, "select * from made"), "42P01");
    }
    assert_eq!(ask(&mut a, "select * from t order by id"), ["1|5", "2|1"]);

    run(&mut a, "begin");
    run(&mut a, "update t set v = 7 where id = 1");
    run(&mut a, "savepoint s");
    fails(&mut a, "select 1 from nowhere");
    assert_eq!(fails(&mut b, "update t set v = 3 where id = 1"), "55P03");
    run(&mut a, "rollback to savepoint s");
    run(&mut a, "commit");
    assert_eq!(ask(&mut b, "select v from t where id = 1"), ["7"]);

    run(&mut a, "begin");
    run(&mut a, "update t set v = 8 where id = 1");
    run(&mut b, "set lock_timeout = 0");
    run(&mut b, "begin");
    run(&mut b, "update t set v = 9 where id = 2");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| b.execute("update t set v = 9 where id = 1", &[]));
        let own = a.execute("update t set v = 8 where id = 2", &[]);
        // The session that closes the cycle fails, and the other one continues before ROLLBACK is
        // sent.
        let both = [own, other.join().unwrap()].map(|done| done.map_err(|error| error.sqlstate()));
        assert!(matches!(both, [Ok(1), Err("40P01")] | [Err("40P01"), Ok(1)]), "{both:?}");
    });
}
