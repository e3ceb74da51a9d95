//! Goal: groups are formed by all of their keys and sorted by all of their sort keys, and a primary
//! key among the group keys determines the columns of its own table and no others. Method: two
//! tables that refer to each other's rows, with results that follow from their construction.

use crate::support::{ask, database, fails, run};

fn nodes() -> cairn_sql::Connection {
    let mut c = database().connect();
    run(&mut c, "create table node (id int primary key, up int, name text)");
    run(&mut c, "insert into node select g, 2 - g % 2, 'n' || g from generate_series(1, 12) as s(g)");
    c
}

const PAIRS: &str = "from node as p join node as q on q.up = p.id group by p.id, q.id";

/// Rows of pairs: the parents have odd and even children.
fn pairs() -> Vec<String> {
    (1..=2).flat_map(|up| (up..=12).step_by(2).map(move |id| format!("{up}|{id}|1"))).collect()
}

#[test]
fn groups_by_two_keys_are_sorted_by_both() {
    let (mut c, all) = (nodes(), pairs());
    assert_eq!(ask(&mut c, &format!("select p.id, q.id, count(*) {PAIRS} order by p.id, q.id")), all);
    assert_eq!(ask(&mut c, &format!("select p.id, q.id, count(*) {PAIRS} order by 3, 1, 2, 1")), all);
    let last: Vec<&String> = all.iter().rev().take(8).collect();
    let backward = format!("select p.id, q.id, count(*) {PAIRS} order by 3 desc, 1 desc, 2 desc limit 8");
    assert_eq!(ask(&mut c, &backward).iter().collect::<Vec<_>>(), last);
    let twice = "select p.id, p.up from node as p join node as q on q.up = p.id group by p.id, p.up, p.id order by p.id, p.up, p.id";
    assert_eq!(ask(&mut c, twice), ["1|1", "2|2"]);
}

/// Groups of groups are complete, whether or not their keys are selected.
#[test]
fn groups_of_groups_by_two_keys() {
    let mut c = nodes();
    let inner = format!("(select p.id as pid, q.id as qid, count(*) as n {PAIRS}) as g");
    assert_eq!(
        ask(&mut c, &format!("select count(*) from (select distinct pid, qid from {inner}) as d")),
        ["12"]
    );
    let sums = ask(&mut c, &format!("select pid, sum(n) from {inner} group by pid, qid order by pid"));
    assert_eq!(sums, [vec!["1|1"; 6], vec!["2|1"; 6]].concat());
    let sums = ask(&mut c, &format!("select pid, sum(n) from {inner} group by pid order by pid"));
    assert_eq!(sums, ["1|6", "2|6"]);
    assert_eq!(
        ask(&mut c, &format!("select pid, qid, sum(n) from {inner} group by pid, qid order by 1, 2")),
        pairs()
    );
}

/// Columns that a primary key determines need not be listed anywhere; others must be.
#[test]
fn columns_that_a_key_tells() {
    let mut c = nodes();
    run(&mut c, "create table pair (a int, b int, note text, primary key (b, a))");
    run(&mut c, "insert into pair select g % 3, g / 3, 'p' || g from generate_series(0, 11) as s(g)");
    run(&mut c, "create view seen as select * from node");
    let six = ["1|n1|6", "2|n2|6"];
    for (sql, expected) in [
        (
            "select p.id, p.name, count(*) from node p join node q on q.up = p.id group by p.id order by 1",
            &six[..],
        ),
        (
            "select p.id, p.name, count(*) from node p join node q on q.up = p.id group by 1 order by p.name",
            &six,
        ),
        (
            "select p.id as k, p.name, count(*) from node p join node q on q.up = p.id group by k order by p.name",
            &six,
        ),
        (
            "select p.id, p.name, count(*) from node p join node q on q.up = p.id group by (p.id) having p.name > 'n' order by p.up",
            &six,
        ),
        (
            "select q.id, q.name, count(*) as many from pair join node q on q.id = pair.a group by q.id order by upper(q.name)",
            &["1|n1|4", "2|n2|4"],
        ),
        (
            "select p.*, count(*) from node p join node q on q.up = p.id group by p.id order by id",
            &["1|1|n1|6", "2|2|n2|6"],
        ),
        (
            "select id, up, name || '!' as called from node where id < 3 group by id order by called",
            &["1|1|n1!", "2|2|n2!"],
        ),
        ("select * from node where id < 3 group by id order by id", &["1|1|n1", "2|2|n2"]),
        (
            "select note, count(*) from pair join node on up = a group by pair.a, pair.b having b = 1 order by note",
            &["p4|6", "p5|6"],
        ),
        (
            "select p.id, max(p.name), min(q.name) from node p join node q on q.up = p.id group by p.id order by 1",
            &["1|n1|n1", "2|n2|n10"],
        ),
        // For unmatched rows of an outer join, all columns are NULL.
        (
            "select p.id, p.name, count(*) from pair left join node p on p.id = pair.a group by p.id order by 1",
            &["1|n1|4", "2|n2|4", "NULL|NULL|4"],
        ),
        (
            "select id, p.name, count(*) from node p join node q using (id) where id < 3 group by id order by id",
            &["1|n1|1", "2|n2|1"],
        ),
        (
            "select p.id, (select max(q.name) from node q where q.up = p.up and q.id < 4) from node p where p.id in (1, 2) group by p.id order by 1",
            &["1|n3", "2|n2"],
        ),
        (
            "select id, name from node where id = 1 group by id union all select up, name from node where id = 2 group by id order by 2",
            &["1|n1", "2|n2"],
        ),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
    for sql in [
        "select p.id, q.name from node p join node q on q.up = p.id group by p.id",
        "select note from pair group by a",
        "select id, name from seen group by id",
        "with w as (select * from node) select id, name from w group by id",
        "select d.id, d.name from (select * from node) d group by d.id",
        "select up, name from node group by up",
        "select p.id from node p join node q on q.up = p.id group by p.id order by q.id",
    ] {
        assert_eq!(fails(&mut c, sql), "42803", "{sql}");
    }
}

/// Goal: a repeated group key counts once. Method: intervals, numbers and texts, with and without
/// aggregates, selected or not.
#[test]
fn groups_by_one_thing_twice() {
    let mut c = database().connect();
    run(&mut c, "create table g (id int primary key, s interval, t text)");
    run(&mut c, "insert into g values (1, '1 day', 'a'), (2, '24 hours', 'a'), (3, '1 month', 'b')");
    for by in ["s", "t", "s, t, s", "t, s, t, s", "q.s, s", "s, q.s, s"] {
        for from in ["g q", "(select * from g cross join (values (1)) v (n)) q"] {
            for (sql, expected) in [
                (format!("select max(id) from {from} group by {by}, {by} order by 1"), ["2", "3"]),
                (format!("select count(*) from {from} group by {by}, {by} order by 1 desc"), ["2", "1"]),
            ] {
                assert_eq!(ask(&mut c, &sql), expected, "{sql}");
            }
        }
    }
    let sql = "select max(7) from (select distinct null::interval s from g cross join (values (1)) v (n)) q group by s, s";
    assert_eq!(ask(&mut c, sql), ["7"]);
}

/// Goal: a key of groups is no longer unique after a join and a further grouping. Method: groups of
/// a join of groups that are joined, counted, grouped and made distinct by the first groups' key.
#[test]
fn keys_of_groups_end_at_joins() {
    let mut c = database().connect();
    run(&mut c, "create table a (id int primary key)");
    run(&mut c, "insert into a values (1), (2)");
    run(&mut c, "create table t (id int primary key, e text)");
    run(&mut c, "insert into t values (1, 'x'), (2, 'y'), (3, 'z')");
    for groups in [
        "select distinct id from a",
        "select id from a group by id",
        "select id from a union select id from a",
    ] {
        for with in ["cross join t", "join t on t.e > ''", "left join t on true", "full join t on t.id <> 9"]
        {
            for pairs in [
                format!("select distinct d.id, t.e from ({groups}) d {with}"),
                format!("select d.id, t.e from ({groups}) d {with} group by d.id, t.e"),
                format!("select d.id, t.e from ({groups}) d {with} group by t.e, d.id"),
                format!("select d.id, t.e from ({groups}) d {with} union select 1, 'x'"),
            ] {
                for (sql, expected) in [
                    (format!("select count(*) from a left join ({pairs}) x on x.id = a.id"), "6"),
                    (format!("select count(a.id) from a join ({pairs}) x on x.id = a.id"), "6"),
                    (
                        format!(
                            "select count(*) from (select a.id from a left join ({pairs}) x on x.id = a.id) q"
                        ),
                        "6",
                    ),
                    (
                        format!("select count(*) from (select x.id from ({pairs}) x group by x.id, x.e) q"),
                        "6",
                    ),
                    (format!("select count(*) from (select distinct id from ({pairs}) x) q"), "2"),
                    (format!("select count(*) from (select distinct x.id, x.e from ({pairs}) x) q"), "6"),
                    (
                        format!("select sum(n) from (select id, count(*) n from ({pairs}) x group by id) q"),
                        "6",
                    ),
                    (
                        format!(
                            "select count(*) from (select distinct x.id + 0 from ({pairs}) x where x.e > 'x') q"
                        ),
                        "2",
                    ),
                    (
                        format!("select count(*) from (select * from ({pairs}) x order by id, e limit 5) q"),
                        "5",
                    ),
                ] {
                    assert_eq!(ask(&mut c, &sql), [expected], "{sql}");
                }
            }
        }
    }
    // The same with our own joins for correlated subqueries.
    let sql = "select v.x from (values (0)) v (x) left join lateral (select distinct v.x * 1 as c, e from t) q on true";
    assert_eq!(ask(&mut c, sql), ["0", "0", "0"]);
}

/// Goal: the first groups in an order are right in the presence of NULLs and NaN. Method: DISTINCT,
/// UNION and extremes with a limit, for which DataFusion chooses another operator, in each order
/// and with each limit.
#[test]
fn first_groups_of_an_order() {
    let mut c = database().connect();
    run(&mut c, "create table f (id int primary key, x float8, r real, s text, n int)");
    let rows = [
        "null, null, null",
        "'NaN', 'b', 2",
        "1, 'a', 1",
        "1, 'a', 1",
        "null, null, null",
        "'-0', 'c', 0",
        "0, 'd', 0",
        "0.5, 'e', 5",
        "'Infinity', 'f', 7",
        "-1.5, 'A', -1",
        "'NaN', 'b', 2",
        "2.5, 'é', 3",
    ];
    for (id, row) in rows.iter().enumerate() {
        let x = row.split(',').next().unwrap();
        run(&mut c, &format!("insert into f (id, r, x, s, n) values ({id}, {x}, {row})"));
    }
    for x in ["x", "r", "s", "n", "x + 0", "lower(s)"] {
        for order in ["k", "k desc", "k nulls first", "k desc nulls last"] {
            // The full result determines the first rows. Zeros form one group, which may have
            // either sign.
            let all = ask(&mut c, &format!("select distinct {x} k from f order by {order}"));
            for limit in 1..=4 {
                for from in ["f", "f cross join (values (1)) v (i)"] {
                    for query in [
                        format!("select distinct {x} k from {from}"),
                        format!("select k from (select {x} k from {from}) q group by k"),
                        format!("(select {x} k from {from} where id < 3) union (select {x} from {from})"),
                    ] {
                        let sql = format!("{query} order by {order} limit {limit}");
                        let first: Vec<String> =
                            ask(&mut c, &sql).iter().map(|k| k.replace("-0", "0")).collect();
                        let expected: Vec<String> =
                            all.iter().take(limit).map(|k| k.replace("-0", "0")).collect();
                        assert_eq!(first, expected, "{sql}");
                    }
                }
            }
        }
    }
}
