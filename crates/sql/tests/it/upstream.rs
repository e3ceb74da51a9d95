//! Goal: DataFusion's wrong results do not occur here. Method: shapes from its issues that have no
//! test elsewhere (`docs/src/design/sql-datafusion-issues.md`).

use crate::support::{ask, database, run};

#[test]
fn what_others_reported_is_right_here() {
    let mut c = database().connect();
    run(&mut c, "create table p1 (id int, cnt int)");
    run(&mut c, "create table p2 (id int, oid int)");
    run(&mut c, "insert into p1 values (1, 10), (2, 20)");
    run(&mut c, "insert into p2 values (5, 1)");
    for (sql, expected) in [
        // 24379
        ("select s ~ '.*', s ~* '.*' from (values (null::text), ('x')) q(s)", &["NULL|NULL", "t|t"][..]),
        // 22317
        (
            "select id, (select regr_count(1.0, 1.0) from p2 where oid = p1.id) from p1 order by 1",
            &["1|1", "2|0"],
        ),
        // 20315
        (
            "select cnt, (select count(*) as cnt from p2 where oid = p1.id) from p1 order by 1",
            &["10|1", "20|0"],
        ),
        // 25347
        (
            "select id from p1 where 3 not in (select nullif(oid, 1) from p2 where oid = p1.id) order by id",
            &["2"],
        ),
    ] {
        assert_eq!(ask(&mut c, sql), expected, "{sql}");
    }
}
