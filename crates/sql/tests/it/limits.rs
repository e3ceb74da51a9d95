//! Goal: no statement crashes the process, however deep it is: it ends with an error, or runs.
//! Method: every construct that can be nested, 100,000 times, which is rejected; and as often as is
//! accepted, on a thread with a small stack, where it is planned, run and dropped. Also, the work
//! of planning long statements is linear in their length.

use cairn_sql::Connection;

use crate::support::{ask, database, fails, rows, run};

/// The stack of the threads in these tests: the default of standard libraries.
const STACK_BYTES: usize = 2 << 20;

/// Runs on a thread with a small stack, regardless of RUST_MIN_STACK.
fn on_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let run = builder.spawn_scoped(scope, test).unwrap();
        if let Err(panic) = run.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

/// Returns `middle`, nested n times between `open` and `close`.
fn nested(before: &str, open: &str, middle: &str, close: &str, behind: &str, n: usize) -> String {
    format!("{before}{}{middle}{}{behind}", open.repeat(n), close.repeat(n))
}

/// Returns statements with n levels, of every kind that can be nested.
fn statements(n: usize) -> Vec<String> {
    let chain = |first: &str, more: &str, last: &str| format!("{first}{}{last}", more.repeat(n));
    let mut all = vec![
        nested("select ", "(", "1", ")", "", n),
        nested("select ", "not ", "true", "", "", n),
        nested("select ", "- ", "1", "", "", n),
        nested("select ", "abs(", "a", ")", " from t", n),
        nested("select ", "coalesce(", "a", ", 1)", " from t", n),
        nested("select ", "replace(", "b", ", 'a', 'b')", " from t", n),
        nested("select ", "greatest(1, ", "a", ")", " from t join u using (a)", n),
        nested("select ", "case when true then ", "a", " end", " from t", n),
        nested("select ", "case a when 1 then 2 else ", "a", " end", " from t", n),
        nested("select ", "nullif(", "a", ", 3)", " from t", n),
        nested("select ", "cast(", "a", " as int)", " from t", n),
        nested("select ", "array[", "1", "]", "", n),
        nested("select ", "row(", "1", ")", "", n),
        nested("select ", "(select ", "1", ")", "", n),
        nested("select ", "exists (select ", "1", ")", "", n),
        nested("select ", "a in (select a from t where ", "true", ")", " from t", n),
        nested("", "select * from (", "select 1 as x", ") q", "", n),
        nested("select * from ", "(", "t", " cross join u)", "", n),
        nested("select 1 from t where ", "a between 1 and (", "2", ")", "", n),
        nested("select 1 from t where ", "a between symmetric 1 and (", "2", ")", "", n),
        nested("", "explain ", "select 1", "", "", n),
        nested("", "with x as (", "select 1 as a", ") select * from x", "", n),
        chain("select 1", " + 1", ""),
        chain("select a", " + 1", " from t"),
        chain("select a", " + t.a", " from t join u using (a)"),
        chain("select b", " || 'x'", " from t"),
        chain("select a", "::int", " from t"),
        chain("select a", "[1]", " from t"),
        chain("select a from t where a = 1", " or a = 2", ""),
        chain("select a from t where a = 1", " and a = 1", ""),
        chain("select t.a from t join u using (a) where t.a = 1", " or u.a = 2", ""),
        chain("select a from t where a = 1", " is not null", ""),
        chain("select 1 from t where b like 'a'", " collate \"C\"", ""),
        chain("select 1 as a", " union all select 1", ""),
        chain("select 1 as a", " union select 1", ""),
        chain("select 1 as a", " intersect select 1", ""),
        chain("select 1 as a", " except select 2", ""),
        chain("select 1 from t", " natural join t", ""),
        chain("select a from t", " join t as x on true", ""),
        chain("select 1 from t", ", t", ""),
        chain("update t set a = a", " + 1", ""),
        chain("delete from t where a = 1", " or a = 2", ""),
        chain("insert into t values (1", " + 1", ", 'x')"),
        chain("create table never (a int check (a > 1", " or a > 2", "))"),
        chain("create table never (a int default 1", " + 1", ")"),
        chain("create view never as select 1 as a", " union all select 1", ""),
        nested("create view never as ", "select * from (", "select 1 as x", ") q", "", n),
        nested("set search_path to ", "(", "public", ")", "", n),
        nested("prepare p as ", "prepare p as ", "select 1", "", "", n),
        nested("declare c cursor for ", "declare c cursor for ", "select 1", "", "", n),
        nested("copy (select ", "(", "1", ")", ") to stdout", n),
        format!("select /*{}*/ 1", "/*".repeat(n) + &"*/".repeat(n)),
        format!("select '{}'::int[]", "{".repeat(n) + &"}".repeat(n)),
        format!("select '{}'::json", "[".repeat(n) + &"]".repeat(n)),
        format!("select b ~ '{}' from t", "(".repeat(n) + "a" + &")".repeat(n)),
        format!("select b similar to '{}' from t", "(".repeat(n) + "a" + &")".repeat(n)),
        format!("select b like '{}' from t", "%_".repeat(n)),
        format!("select to_char(1, '{}')", "9".repeat(n)),
        format!("select interval '{}'", "1 day ".repeat(n)),
    ];
    // Each query of WITH reads the previous one.
    let queries: Vec<String> =
        (1..=n).map(|at| format!("x{at} as (select a + 1 as a from x{})", at - 1)).collect();
    all.push(format!("with x0 as (select 1 as a), {} select * from x{n}", queries.join(", ")));
    let windows: Vec<String> = (1..=n).map(|at| format!("w{at} as (w{})", at - 1)).collect();
    all.push(format!("select count(*) over w{n} from t window w0 as (order by a), {}", windows.join(", ")));
    all
}

fn tables(c: &mut Connection) {
    run(c, "create table t (a int primary key, b text)");
    run(c, "create table u (a int primary key, b text)");
    run(c, "insert into t values (1, 'a'), (2, 'b')");
    run(c, "insert into u values (1, 'a'), (3, 'b')");
}

/// Runs a statement and reads its rows. Returns the code of its error.
fn outcome(c: &mut Connection, sql: &str) -> Result<(), String> {
    c.batch(sql).map_err(|error| error.sqlstate().to_owned())
}

/// Goal: that of the module. Method: 100,000 levels, which hardly any construct may have.
#[test]
fn what_is_too_deep_is_refused() {
    on_small_stack(|| {
        let database = database();
        let mut c = database.connect();
        tables(&mut c);
        for sql in statements(100_000) {
            let begin: String = sql.chars().take(40).collect();
            match outcome(&mut c, &sql) {
                // Long, but not deep.
                Ok(()) => assert!(
                    ["select /*", "select b like", "select '[[", "select interval", "select to_char"]
                        .iter()
                        .any(|long| begin.starts_with(long)),
                    "{begin} worked"
                ),
                Err(code) => assert!(
                    ["54001", "54000", "42601", "0A000", "22P02", "2201B", "22007", "22008", "42704"]
                        .contains(&&*code),
                    "{begin}: {code}"
                ),
            }
            assert_eq!(ask(&mut c, "select 1"), ["1"], "{begin}");
        }
    });
}

/// Goal: a statement with many levels, but not too many, is planned, run and dropped on a small
/// stack, or rejected. Method: twelve levels of every construct, which no path rejects for its
/// depth, and 900 levels in queries on one table.
#[test]
fn what_is_deep_runs() {
    on_small_stack(|| {
        let database = database();
        let mut c = database.connect();
        tables(&mut c);
        for sql in statements(12) {
            let begin: String = sql.chars().take(40).collect();
            if let Err(code) = outcome(&mut c, &sql) {
                assert!(!["XX000", "58000", "53200"].contains(&&*code), "{begin}: {code}");
            }
            assert_eq!(ask(&mut c, "select 1"), ["1"], "{begin}");
            for left in ["drop view if exists never", "drop table if exists never"] {
                let _ = c.execute(left, &[]);
            }
            c.batch("deallocate all; close all").unwrap();
        }
        // The statements before have changed the table and the search path.
        let database = self::database();
        let mut c = database.connect();
        tables(&mut c);
        // With one table or none, the direct path runs the statement, and accepts as many levels as
        // are allowed.
        let n = 900;
        for (sql, expected) in [
            (nested("select ", "abs(", "a", ")", " from t where a = 1", n), "1"),
            (nested("select ", "coalesce(", "a", ", 1)", " from t where a = 2", n), "2"),
            (nested("select ", "replace(", "b", ", 'a', 'c')", " from t where a = 1", n), "c"),
            (nested("select ", "case when a > 1 then 0 else ", "a", " end", " from t where a = 1", n), "1"),
            (format!("select a{} from t where a = 1", " + 1".repeat(n)), "901"),
            (format!("select 1{}", " + 1".repeat(n)), "901"),
            (format!("select length(b{}) from t where a = 1", " || 'x'".repeat(n)), "901"),
            (format!("select count(*) from t where a = -1{}", " or a = 2".repeat(n)), "1"),
            (format!("select count(*) from t where a = 1{}", " and a = 1".repeat(n)), "1"),
            (
                format!(
                    "select a from t where b like 'a'{}",
                    " and not (a = 2".repeat(n / 2) + &")".repeat(n / 2)
                ),
                "1",
            ),
            (nested("select ", "- ", "a", "", " from t where a = 1", n), "1"),
            (nested("select ", "not ", "(a = 1)", "", " from t where a = 1", n), "t"),
        ] {
            let begin: String = sql.chars().take(60).collect();
            assert_eq!(
                rows(&mut c, &sql, &[]).map_err(|error| error.to_string()),
                Ok(vec![expected.to_owned()]),
                "{begin}"
            );
        }
        // A check with as many levels is evaluated for each row, and stored with its table.
        run(&mut c, &format!("create table checked (a int check (a{} > 0))", " + 1".repeat(500)));
        assert_eq!(run(&mut c, "insert into checked values (1), (-400)"), 2);
        assert_eq!(fails(&mut c, "insert into checked values (-501)"), "23514");
    });
}

/// Goal: views can be nested to any depth that is planned quickly. Beyond that, creating them is an
/// error, and so is querying a view that refers to itself. Method: fifty views, each on the
/// previous one; views that refer to the previous one twice; views that were changed to refer to
/// themselves; and catalogs, DROP and other views next to them.
#[test]
fn views_over_views() {
    on_small_stack(|| {
        let database = database();
        let mut c = database.connect();
        run(&mut c, "create view v0 as select 1 as a");
        for at in 1..=50 {
            run(&mut c, &format!("create view v{at} as select a + 1 as a from v{}", at - 1));
        }
        assert_eq!(ask(&mut c, "select * from v50"), ["51"]);
        assert_eq!(ask(&mut c, "with v50 as (select a from v49) select a from v50"), ["50"]);
        run(&mut c, "create view d0 as select 1 as a");
        let mut made = 0;
        let refused = (1..20).find_map(|at| {
            let sql = format!("create view d{at} as select x.a from d{0} x cross join d{0} y", at - 1);
            made = at;
            c.execute(&sql, &[]).err().map(|error| error.sqlstate())
        });
        assert_eq!((refused, made), (Some("54001"), 10));
        let queries: Vec<String> = (1..20)
            .map(|at| format!("q{at} as (select x.a from q{0} x cross join q{0} y)", at - 1))
            .collect();
        let doubled = format!("with q0 as (select 1 as a), {} select count(*) from q19", queries.join(", "));
        assert_eq!(fails(&mut c, &doubled), "54001");
        // As in PostgreSQL, the query fails, not the definition.
        run(&mut c, "create view r as select 1 as a");
        run(&mut c, "create view over_r as select a from r");
        run(&mut c, "create or replace view r as select a from r");
        for sql in
            ["select * from r", "select * from over_r", "select 1 from t0, r", "explain select * from r"]
        {
            assert_eq!(fails(&mut c, sql), "42P17", "{sql}");
        }
        assert_eq!(fails(&mut c, "create view more as select * from r"), "42P17");
        assert_eq!(ask(&mut c, "select count(*) from pg_views where viewname in ('r', 'v50')"), ["2"]);
        run(&mut c, "create or replace view r as select 7 as a");
        assert_eq!(ask(&mut c, "select * from over_r"), ["7"]);
        run(&mut c, "create or replace view r as select a from over_r");
        assert_eq!(fails(&mut c, "select * from r"), "42P17");
        run(&mut c, "drop view r cascade");
        // A WITH query of the view's own name, and one of another relation's.
        run(&mut c, "create view own as with own as (select 3 as a) select a from own");
        assert_eq!(ask(&mut c, "select * from own"), ["3"]);
        run(&mut c, "create view over_own as with own as (select a from own) select a + 1 as a from own");
        assert_eq!(ask(&mut c, "select * from over_own"), ["4"]);
        run(&mut c, "create view itself as select 1 as a");
        run(
            &mut c,
            "create or replace view itself as with itself as (select a from itself) select a from itself",
        );
        assert_eq!(fails(&mut c, "select * from itself"), "42P17");
        run(
            &mut c,
            "create view looped as with recursive looped(n) as (select 1 union all select n + 1 from looped where n < 3) select n from looped",
        );
        assert_eq!(ask(&mut c, "select count(*) from looped"), ["3"]);
    });
}

/// Goal: cascading along a chain of rows uses no stack. Method: a chain of rows that each refer to
/// the previous one, whose first row is deleted; CAIRN_SOAK makes it 100,000 rows.
#[test]
fn long_cascades() {
    on_small_stack(|| {
        let rows = if std::env::var_os("CAIRN_SOAK").is_some() { 100_000 } else { 5_000 };
        let database = database();
        let mut c = database.connect();
        run(
            &mut c,
            "create table chain (id int primary key, of int references chain on delete cascade on update cascade)",
        );
        run(&mut c, "create index on chain (of)");
        let values = format!("select g, nullif(g - 1, 0) from generate_series(1, {rows}) as g(g)");
        assert_eq!(run(&mut c, &format!("insert into chain {values}")), rows);
        assert_eq!(run(&mut c, "delete from chain where id = 1"), 1);
        assert_eq!(ask(&mut c, "select count(*) from chain"), ["0"]);
    });
}

/// Goal: long but flat statements are planned on either path. Method: lists of 10,000 items, 1,000
/// columns, conditions of 1,000 parts and joins of 50 tables, on one table and on two.
#[test]
fn what_is_long_is_planned() {
    on_small_stack(|| {
        let database = database();
        let mut c = database.connect();
        tables(&mut c);
        let items = (1..=10_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let columns = (0..1_000).map(|n| format!("t.a + {n}")).collect::<Vec<_>>().join(", ");
        let ors =
            (1..1_000).map(|n| format!("t.a = {n} or u.a = {}", n + 1)).collect::<Vec<_>>().join(" or ");
        let joins: String = (0..50).map(|n| format!(" join u as u{n} on u{n}.a = t.a")).collect();
        for (sql, expected) in [
            (format!("select count(*) from t where a in ({items})"), "2"),
            (format!("select count(*) from t join u using (b) where t.a + u.a in ({items})"), "2"),
            (format!("select count(*) from (select {columns} from t join u using (b)) as q"), "2"),
            (format!("select count(*) from t cross join u where {ors}"), "4"),
            (format!("select count(*) from t left join u using (a){joins}"), "1"),
            (format!("select sum(t.a{}) from t join u using (b)", " + 1".repeat(100)), "203"),
            (nested("select sum(", "abs(", "t.a", ")", ") from t join u using (b)", 60), "3"),
        ] {
            let begin: String = sql.chars().take(60).collect();
            assert_eq!(
                rows(&mut c, &sql, &[]).map_err(|error| error.to_string()),
                Ok(vec![expected.to_owned()]),
                "{begin}"
            );
        }
    });
}
