//! Goal: columns that are fetched late, for the first rows only, have the right values, and a query
//! whose rows they could change is left as it is. Method: the first rows of groups, compared with
//! all groups truncated here.

use crate::support::{ask, database, run};

/// A query without its LIMIT, and whether columns are fetched late.
const QUERIES: [(&str, bool); 16] = [
    (
        "select c.id, c.name, c.address, sum(price) as total from c join o on o.cid = c.id group by c.id, c.name, c.address order by total desc, c.id",
        true,
    ),
    // The key is not selected, and columns are renamed on the way.
    (
        "select c.name as called, 2 * sum(price) as total, address from c join o on o.cid = c.id group by c.id, c.name, c.address order by total desc, c.id",
        true,
    ),
    ("select name, count(*) from c join o on o.cid = c.id group by id_, name order by 2 desc, id_", true),
    (
        "select c.id, name, town, n.note, max(price) from c join o on o.cid = c.id join n on n.town = c.nth group by c.id, name, town, n.note order by max(price), c.id",
        true,
    ),
    (
        "select c.id, c.name, sum(price) from c join o on o.cid = c.id group by c.id, c.name having count(*) > 2 and sum(price) > 90 order by 3, 1",
        true,
    ),
    (
        "select c.id, c.name, sum(price) from c join o on o.cid = c.id group by c.id, c.name having c.name like '%7' order by 3, 1",
        true,
    ),
    (
        "select c.id, c.name, sum(price) from c join o on o.cid = c.id where c.id between 40 and 300 and c.nth <> 3 group by c.id, c.name order by 3, 1",
        true,
    ),
    (
        "select c.id, c.name, sum(price) from c left join o on o.cid = c.id group by c.id, c.name order by 3 desc nulls last, 1",
        true,
    ),
    // NULL columns of an outer join have no row to fetch from.
    (
        "select c.id, c.name, sum(price) from o left join c on o.cid = c.id + 100 group by c.id, c.name order by 3, 1",
        false,
    ),
    (
        "select c.id, c.name, sum(price) from c join o on o.cid = c.id group by c.id, c.name order by c.name desc, 1",
        false,
    ),
    (
        "select c.name, c.address, sum(price) from c join o on o.cid = c.id group by c.name, c.address order by 3, 1",
        false,
    ),
    (
        "select c.id, c.nth, sum(price) from c join o on o.cid = c.id group by c.id, c.nth order by 3, 1",
        false,
    ),
    (
        "select c.id, upper(c.name), sum(price) from c join o on o.cid = c.id group by c.id, c.name order by 3, 1",
        false,
    ),
    (
        "select c.id, c.name, sum(price) from c join o on o.cid = c.id group by rollup (c.id, c.name) order by 3, 1, 2",
        false,
    ),
    ("select distinct c.id, c.name, c.address from c join o on o.cid = c.id order by c.id desc", true),
    (
        "select a.id, a.name, b.id, b.name, count(*) from c as a join c as b on b.nth = a.id join o on o.cid = b.id group by a.id, a.name, b.id, b.name order by 5 desc, 1, 3",
        true,
    ),
];

#[test]
fn first_rows_and_their_late_columns() {
    let mut c = database().connect();
    run(&mut c, "create table c (id int primary key, name text, address varchar(60), nth int)");
    run(&mut c, "create table o (id int primary key, cid int, price numeric(10,2))");
    run(&mut c, "create table n (town int primary key, note text)");
    run(
        &mut c,
        "insert into c select g, 'name ' || g % 90, case when g % 9 > 0 then 'street ' || g end, g % 12 from generate_series(1, 400) as s(g)",
    );
    run(
        &mut c,
        "insert into o select g, g * 7 % 500, (g * 31 % 1000) / 8.0 from generate_series(1, 3000) as s(g)",
    );
    run(&mut c, "insert into n select g, 'note ' || g from generate_series(0, 11) as s(g)");
    run(&mut c, "analyze");
    for (sql, is_late) in QUERIES {
        let sql = sql.replace("id_", "c.id");
        let all = ask(&mut c, &sql);
        assert!(all.len() >= 37, "{sql}: {}", all.len());
        for (end, skip, count) in [("limit 20", 0, 20), ("limit 7 offset 30", 30, 7), ("limit 0", 0, 0)] {
            let first = format!("{sql} {end}");
            let expected: Vec<&String> = all.iter().skip(skip).take(count).collect();
            assert_eq!(ask(&mut c, &first).iter().collect::<Vec<_>>(), expected, "{first}");
            let plan = ask(&mut c, &format!("explain {first}")).join("\n");
            assert_eq!(plan.contains("late columns of"), is_late && count > 0, "{first}: {plan}");
        }
        // A limit that is too large for late fetching to pay off.
        let plan = ask(&mut c, &format!("explain {sql} limit 5000")).join("\n");
        assert!(!plan.contains("late columns of"), "{sql}: {plan}");
    }
}
