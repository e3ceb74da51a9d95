//! Goal: foreign keys are checked at the end of a statement, with PostgreSQL 15's results. Method:
//! rows that refer to each other or cascade, changed by statements on one table and by statements
//! with a query.

use cairn_sql::{Connection, Outcome, TransactionStatus};

use crate::support::{ask, database, fails, rows, run};

/// Creates rows that refer to each other, with an action, and a table of their numbers for queries.
fn nodes(action: &str) -> Connection {
    let mut c = database().connect();
    run(&mut c, &format!("create table n (id int primary key, p int references n {action})"));
    run(&mut c, "create table few (id int primary key, p int)");
    run(&mut c, "insert into few values (1, 2), (2, 1)");
    c
}

/// Rows refer to rows of the same statement, are inserted in any order, and are deleted together.
#[test]
fn rows_that_refer_to_each_other() {
    for action in ["", "on delete no action", "on delete restrict"] {
        let mut c = nodes(action);
        for put in ["insert into n values (1, 2), (2, 1)", "insert into n select id, p from few order by id"]
        {
            for take in ["delete from n", "delete from n where id in (select id from few)"] {
                assert_eq!(run(&mut c, put), 2, "{put}");
                assert_eq!(ask(&mut c, "select * from n order by id"), ["1|2", "2|1"]);
                assert_eq!(fails(&mut c, "delete from n where id = 1"), "23503");
                assert_eq!(
                    fails(&mut c, "delete from n where id in (select id from few where id = 2)"),
                    "23503"
                );
                assert_eq!(run(&mut c, take), 2, "{action} {take}");
            }
        }
        assert_eq!(fails(&mut c, "insert into n values (1, 2), (2, 3)"), "23503");
        assert_eq!(fails(&mut c, "insert into n select id, p + 1 from few"), "23503");
        let error = rows(&mut c, "insert into n values (1, 2) returning id", &[]).unwrap_err();
        assert_eq!(error.detail(), Some("Key (p)=(2) is not present in table \"n\"."));
        assert_eq!(ask(&mut c, "select count(*) from n"), ["0"]);
    }
}

/// If a cascade would change rows that the statement changes itself, the statement changes, counts
/// and returns them. The others are changed by the cascade afterwards.
#[test]
fn rows_that_follow() {
    let all = "insert into n values (1, null), (2, 1), (3, 2)";
    for take in ["delete from n where id < 3", "delete from n where id in (select id from few)"] {
        let mut c = nodes("on delete cascade");
        run(&mut c, all);
        assert_eq!(ask(&mut c, &format!("{take} returning id")), ["1", "2"]);
        assert_eq!(ask(&mut c, "select count(*) from n"), ["0"]);
        run(&mut c, all);
        assert_eq!(run(&mut c, take), 2);
        let mut c = nodes("on delete set null");
        run(&mut c, all);
        assert_eq!(run(&mut c, take), 2);
        assert_eq!(ask(&mut c, "select * from n"), ["3|NULL"]);
    }
    for update in [
        "update n set id = id + 10",
        "update n set id = n.id + 10 from few where few.id <= n.id and few.id = 1",
    ] {
        let mut c = nodes("on update cascade");
        run(&mut c, "insert into n values (1, 3), (2, 3), (3, null)");
        assert_eq!(run(&mut c, update), 3);
        assert_eq!(ask(&mut c, "select * from n order by id"), ["11|13", "12|13", "13|NULL"]);
    }
}

/// A key that one row gives up and another one takes satisfies references to it, except with
/// RESTRICT.
#[test]
fn keys_that_come_back() {
    let mut c = database().connect();
    run(&mut c, "create table q (id int primary key)");
    run(&mut c, "insert into q values (1), (2)");
    run(&mut c, "create table c (id int references q on delete restrict)");
    run(&mut c, "insert into c values (1)");
    assert_eq!(run(&mut c, "update q set id = id - 1"), 2);
    assert_eq!(ask(&mut c, "select * from q"), ["0", "1"]);
    run(&mut c, "create table r (id int references q on update restrict)");
    run(&mut c, "insert into r values (1)");
    run(&mut c, "insert into q values (2)");
    run(&mut c, "delete from q where id = 0");
    assert_eq!(fails(&mut c, "update q set id = id - 1"), "23503");
    assert_eq!(
        ask(
            &mut c,
            "select update_rule, delete_rule from information_schema.referential_constraints order by constraint_name"
        ),
        ["NO ACTION|RESTRICT", "RESTRICT|NO ACTION"]
    );
    assert_eq!(
        ask(
            &mut c,
            "select pg_get_constraintdef(oid), confupdtype, confdeltype from pg_constraint where conname = 'r_id_fkey'"
        ),
        ["FOREIGN KEY (id) REFERENCES q(id) ON UPDATE RESTRICT|r|a"]
    );
}

/// A statement that violates a foreign key at its end fails its block, and ROLLBACK TO undoes it.
/// The same holds for several statements at once, and for COPY.
#[test]
fn blocks() {
    let mut c = nodes("");
    run(&mut c, "begin");
    run(&mut c, "insert into n values (5, null)");
    run(&mut c, "savepoint s");
    assert_eq!(fails(&mut c, "insert into n values (1, 2)"), "23503");
    assert_eq!(c.status(), TransactionStatus::Failed);
    assert_eq!(fails(&mut c, "select 1"), "25P02");
    run(&mut c, "rollback to s");
    run(&mut c, "insert into n values (1, 2), (2, 5)");
    assert_eq!(fails(&mut c, "delete from n where id = 5"), "23503");
    run(&mut c, "rollback to s");
    run(&mut c, "insert into n values (1, 5)");
    run(&mut c, "commit");
    assert_eq!(ask(&mut c, "select * from n order by id"), ["1|5", "5|NULL"]);
    // Each of them is a statement.
    let refused = c.batch("insert into n values (3, 4); insert into n values (4, 3)").unwrap_err();
    assert_eq!(refused.sqlstate(), "23503");
    c.batch("insert into n values (3, 4), (4, 3); delete from n where id in (3, 4)").unwrap();
    for (text, code) in [("6\t7\n7\t6\n", None), ("8\t9\n", Some("23503"))] {
        let statement = c.prepare("copy n from stdin").unwrap();
        let Outcome::CopyIn(mut copy) = c.run(&statement, &[]).unwrap() else { panic!() };
        copy.write(text.as_bytes()).unwrap();
        assert_eq!(copy.finish().err().map(|error| error.sqlstate()), code);
    }
    assert_eq!(ask(&mut c, "select id from n order by id"), ["1", "5", "6", "7"]);
    // Rows that may be skipped.
    assert_eq!(run(&mut c, "insert into n values (1, 99), (10, 11), (11, 10) on conflict do nothing"), 2);
    assert_eq!(fails(&mut c, "insert into n values (1, 0), (12, 99) on conflict do nothing"), "23503");
}

/// Goal: rows changed by a cascade satisfy the constraints of their table. Method: CHECK, NOT NULL
/// and narrower columns in referring tables, changed with and without a query; their default is an
/// expression whose value must exist.
#[test]
fn rows_that_follow_are_checked() {
    let mut c = database().connect();
    run(&mut c, "create table p (id bigint primary key)");
    run(&mut c, "create table few (id bigint primary key)");
    run(&mut c, "insert into few values (1)");
    run(&mut c, "insert into p values (1), (7), (9)");
    for (columns, change, code) in [
        ("p bigint references p on delete set null check (p is not null)", "delete from p", "23514"),
        ("p bigint not null references p on delete set null", "delete from p", "23502"),
        ("p bigint references p on update cascade check (p < 5)", "update p set id = 5", "23514"),
        (
            "p bigint references p on update cascade check (10 / (p - 5) < 100)",
            "update p set id = 5",
            "22012",
        ),
        ("p smallint references p on update cascade", "update p set id = 40000", "22003"),
        ("p int default 3 + 4 references p on delete set default check (p <> 7)", "delete from p", "23514"),
        ("p int default 3 + 5 references p on delete set default", "delete from p", "23503"),
        ("p int default 1 references p on delete set default", "delete from p", "23503"),
        ("p int default 1 references p on update set default", "update p set id = 5", "23503"),
        ("p int not null references p on update set default", "update p set id = 5", "23502"),
    ] {
        run(&mut c, &format!("create table t (id int primary key, {columns})"));
        run(&mut c, "insert into t values (1, 1)");
        for condition in ["where id = 1", "where id in (select id from few)"] {
            let error = c.execute(&format!("{change} {condition}"), &[]).unwrap_err();
            assert_eq!(error.sqlstate(), code, "{columns}: {change} {condition}: {error}");
            if code == "23514" {
                assert!(error.detail().unwrap().starts_with("Failing row contains (1, "), "{error:?}");
            }
        }
        assert_eq!(ask(&mut c, "select * from t"), ["1|1"]);
        run(&mut c, "drop table t");
    }
    for (columns, change, then) in [
        ("p bigint references p on delete set null check (p < 5)", "delete from p", "1|NULL"),
        ("p int default 3 + 4 references p on delete set default", "delete from p", "1|7"),
        ("p int references p on delete set default", "delete from p", "1|NULL"),
        ("p smallint default 9 references p on update set default", "update p set id = 5", "1|9"),
        ("p int references p on update cascade check (p < 6)", "update p set id = 5", "1|5"),
    ] {
        run(&mut c, &format!("create table t (id int primary key, {columns})"));
        run(&mut c, "insert into t values (1, 1)");
        run(&mut c, "begin");
        run(&mut c, &format!("{change} where id = 1"));
        assert_eq!(ask(&mut c, "select * from t"), [then], "{columns}: {change}");
        run(&mut c, "rollback");
        assert_eq!(ask(&mut c, "select * from t"), ["1|1"]);
        run(&mut c, "drop table t");
    }
}

/// Goal: integers refer to integers of any width, but not to values beyond their own width. Method:
/// each pair of types in both directions, by a primary key and by a unique index, with and without
/// an index on the referring column, and constraints that are added later; other types are
/// rejected.
#[test]
fn references_between_integers() {
    let mut c = database().connect();
    for (here, there) in [
        ("smallint", "bigint"),
        ("bigint", "smallint"),
        ("int", "bigint"),
        ("bigint", "int"),
        ("int", "smallint"),
    ] {
        for (key, index) in [("primary key", ""), ("unique", "create index on t (p)")] {
            run(&mut c, &format!("create table p (x text, id {there} {key})"));
            run(
                &mut c,
                &format!(
                    "create table t (id int primary key, p {here} references p (id) on update cascade on delete cascade)"
                ),
            );
            if !index.is_empty() {
                run(&mut c, index);
            }
            run(&mut c, "insert into p values ('', 1), ('', 300)");
            run(&mut c, "insert into t values (1, 1), (2, 300), (3, null)");
            assert_eq!(fails(&mut c, "insert into t values (4, 2)"), "23503");
            if here == "bigint" {
                assert_eq!(fails(&mut c, "insert into t values (4, 4294967297)"), "23503");
            }
            run(&mut c, "update p set id = 301 where id = 300");
            assert_eq!(ask(&mut c, "select p from t order by id"), ["1", "301", "NULL"]);
            run(&mut c, "delete from p where id = 301");
            assert_eq!(ask(&mut c, "select p from t order by id"), ["1", "NULL"]);
            run(&mut c, &format!("create table u (p {here})"));
            run(&mut c, "insert into u values (1)");
            run(&mut c, "alter table u add foreign key (p) references p (id)");
            assert_eq!(fails(&mut c, "delete from p"), "23503");
            run(&mut c, "insert into u select null");
            run(&mut c, "create table v (p bigint)");
            run(&mut c, "insert into v values (65537)");
            assert_eq!(fails(&mut c, "alter table v add foreign key (p) references p (id)"), "23503");
            for table in ["v", "u", "t", "p"] {
                run(&mut c, &format!("drop table {table}"));
            }
        }
    }
    run(&mut c, "create table p (id bigint primary key, t text unique)");
    assert_eq!(fails(&mut c, "create table t (p text references p)"), "42804");
    assert_eq!(fails(&mut c, "create table t (p int references p (t))"), "42804");
}

/// Goal: dropping a column drops all references to it, even if a table has several. Method:
/// CASCADE, with a reference to another column that stays.
#[test]
fn columns_that_several_refer_to() {
    let mut c = database().connect();
    run(&mut c, "create table p (id int primary key, u int unique, v int)");
    run(&mut c, "create table c (a int references p, b int references p, u int references p (u))");
    run(&mut c, "insert into p values (1, 10, 0)");
    assert_eq!(fails(&mut c, "alter table p drop column id"), "2BP01");
    run(&mut c, "alter table p drop column id cascade");
    run(&mut c, "insert into c values (7, 8, 10)");
    assert_eq!(fails(&mut c, "insert into c values (7, 8, 9)"), "23503");
}

/// Goal: referenced columns stay unique. Method: the primary key and another constraint are dropped
/// while they are referenced, with and without CASCADE, also in a table that refers to itself.
#[test]
fn keys_that_others_refer_to() {
    let mut c = database().connect();
    run(&mut c, "create table p (id int primary key, u int constraint p_u unique, up int references p)");
    run(&mut c, "create table c (id int references p, u int references p (u))");
    run(&mut c, "insert into p values (1, 10, 1)");
    run(&mut c, "insert into c values (1, 10)");
    assert_eq!(fails(&mut c, "alter table p drop constraint p_pkey"), "2BP01");
    assert_eq!(fails(&mut c, "alter table p drop constraint p_pkey, add primary key (id)"), "2BP01");
    assert_eq!(fails(&mut c, "alter table p drop constraint p_u"), "2BP01");
    assert_eq!(fails(&mut c, "delete from p"), "23503");
    run(&mut c, "alter table p drop constraint p_u cascade");
    run(&mut c, "insert into c values (1, 11)");
    assert_eq!(fails(&mut c, "insert into c values (2, 11)"), "23503");
    run(&mut c, "alter table p drop constraint p_pkey cascade");
    run(&mut c, "insert into c values (2, 11)");
    run(&mut c, "insert into p values (1, 10, 7)");
    run(&mut c, "delete from p");
    run(&mut c, "alter table p add unique (id)");
    run(&mut c, "alter table p drop column u");
    assert_eq!(ask(&mut c, "select count(*) from c"), ["3"]);
}
