//! Goal: a table's row as a value says whether the row exists. Method: outer joins with and without
//! matches, of tables with and without columns that are never NULL.

use crate::support::{ask, database, run};

#[test]
fn rows_without_partners_are_none() {
    let mut c = database().connect();
    run(&mut c, "create table l (k int primary key, n text)");
    run(&mut c, "create table r (k int, a text, b int)");
    run(&mut c, "create table p (k int primary key, a text, b int not null)");
    run(&mut c, "insert into l values (1, 'x'), (2, 'y'), (3, 'z')");
    run(&mut c, "insert into r values (1, 'q', 1), (2, null, null), (null, null, null)");
    run(&mut c, "insert into p values (1, 'q', 1)");
    for (sql, expected) in [
        (
            "select l.k, count(p.*) from l left join p on p.k = l.k group by l.k order by 1",
            &["1|1", "2|0", "3|0"][..],
        ),
        (
            "select l.k, count(r.*) from l left join r on r.k = l.k group by l.k order by 1",
            &["1|1", "2|1", "3|0"],
        ),
        ("select count(l.*), count(p), count(*) from l left join p on p.k = l.k", &["3|1|3"]),
        ("select count(r.*), count(l.*) from r right join l using (k)", &["2|3"]),
        ("select count(r.*), count(r) from r", &["3|3"]),
        ("select count(r.*) from r left join l on l.k = r.k", &["3"]),
        ("select l.k from l left join p on p.k = l.k where p.* is null order by 1", &["2", "3"]),
        ("select l.k from l left join p on p.k = l.k where p is null order by 1", &["2", "3"]),
        ("select l.k from l left join p on p.k = l.k where p.* is not null order by 1", &["1"]),
        ("select l.k, r.* is null from l left join r on r.k = l.k order by 1", &["1|f", "2|f", "3|t"]),
        ("select k from r where r is not null", &["1"]),
        ("select count(*) from r where r.* is null", &["1"]),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
}
