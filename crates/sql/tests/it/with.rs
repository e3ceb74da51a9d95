//! Goal: WITH before INSERT, UPDATE and DELETE supplies rows to them, as in PostgreSQL. Method:
//! each of them, with RETURNING, parameters, recursion, and names that shadow others.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, rows, run};

fn filled() -> Connection {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v int)");
    run(&mut c, "create table u (id int primary key, v int)");
    run(&mut c, "insert into t values (1, 10), (2, 20), (3, 30)");
    run(&mut c, "insert into u values (2, 200), (3, 300), (4, 400)");
    c
}

#[test]
fn rows_are_inserted() {
    let mut c = filled();
    let insert = "with x as (select id + 10 as id, v from u where v > $1) insert into t select id, v from x returning id, v";
    assert_eq!(rows(&mut c, insert, &[200.into()]).unwrap(), ["13|300", "14|400"]);
    let recursive = "with recursive n (i) as (select 20 union all select i + 1 from n where i < 23) insert into t (id) select i from n";
    assert_eq!(run(&mut c, recursive), 4);
    // Its own WITH after that of the statement.
    let both = "with x as (select 30 as id) insert into t with y as (select id + 1 as id from x) select x.id, y.id from x, y returning *";
    assert_eq!(ask(&mut c, both), ["30|31"]);
    let values =
        "with x as (select 40 as id) insert into t values ((select id from x), 1), (41, 1) returning id";
    let mut inserted = ask(&mut c, values);
    inserted.sort_unstable();
    assert_eq!(inserted, ["40", "41"]);
    // The target of INSERT is the table, even if a WITH query has its name.
    assert_eq!(run(&mut c, "with t as (select 50 as id, 5 as v) insert into t select * from t"), 1);
    let again = "with x as (select * from t where id = 50) insert into t select id, v + 1 from x on conflict (id) do update set v = excluded.v returning v";
    assert_eq!(ask(&mut c, again), ["6"]);
    assert_eq!(ask(&mut c, "select count(*) from t"), ["13"]);
}

#[test]
fn rows_change_and_go() {
    let mut c = filled();
    let update =
        "with x as (select id, v from u) update t set v = x.v from x where x.id = t.id returning t.id, v";
    let mut changed = ask(&mut c, update);
    changed.sort_unstable();
    assert_eq!(changed, ["2|200", "3|300"]);
    assert_eq!(
        run(
            &mut c,
            "with x as (select max(v) as most from t) update t set v = (select most from x) where id = 1"
        ),
        1
    );
    assert_eq!(ask(&mut c, "select v from t order by id"), ["300", "200", "300"]);
    assert_eq!(
        ask(
            &mut c,
            "with x as (select id from u where v = 300) delete from t using x where x.id = t.id returning t.*"
        ),
        ["3|300"]
    );
    assert_eq!(run(&mut c, "with x as (select id from u) delete from t where id in (select id from x)"), 1);
    // The table itself as a WITH query sees it, with exactly its columns.
    run(&mut c, "insert into t values (5, 300)");
    let own = "with x (a, b) as (select * from t) delete from t using x where x.a <> t.id and x.b = t.v returning id";
    let mut gone = ask(&mut c, own);
    gone.sort_unstable();
    assert_eq!(gone, ["1", "5"]);
    run(&mut c, "insert into t values (1, 1), (2, 1)");
    assert_eq!(
        run(
            &mut c,
            "with x as (select count(*) as n from (select distinct v from t) d) update t set v = n from x"
        ),
        2
    );
    assert_eq!(ask(&mut c, "select v from t order by id"), ["1", "1"]);
}

#[test]
fn others_are_refused() {
    let mut c = filled();
    assert_eq!(
        fails(&mut c, "with x as (delete from u returning id) insert into t select id, 1 from x"),
        "0A000"
    );
    assert_eq!(fails(&mut c, "with x as (insert into u values (9) returning id) select * from x"), "0A000");
    assert_eq!(
        fails(
            &mut c,
            "with x as (with y as (delete from u returning id) select * from y) delete from t using x"
        ),
        "0A000"
    );
    assert_eq!(fails(&mut c, "with t as (select 1 as id) delete from t where id = 1"), "0A000");
    assert_eq!(fails(&mut c, "with t as (select 1 as id) update t set v = 1"), "0A000");
    assert_eq!(fails(&mut c, "with x as (select 1) insert into t select * from missing"), "42P01");
    run(&mut c, "begin read only");
    assert_eq!(fails(&mut c, "with x as (select 7 as id) insert into t (id) select id from x"), "25006");
    run(&mut c, "rollback");
    assert_eq!(ask(&mut c, "select count(*) from t"), ["3"]);
    assert_eq!(ask(&mut c, "select count(*) from u"), ["3"]);
}
