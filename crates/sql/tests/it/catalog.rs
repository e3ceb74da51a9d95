//! Goal: the queries of real clients run, and return PostgreSQL 15's results. Method: queries sent
//! by psql, the JDBC driver, SQLAlchemy and others (`testing/compat/catalog-queries`), on the
//! tables for which they were recorded; then differences from PostgreSQL's catalogs.

use std::sync::Arc;

use cairn_sql::{Connection, Database};
use cairn_vfs::MemFs;

use crate::support::{ask, database, fails, rows, run};

/// Expressions and queries are stored as written, whereas PostgreSQL prints them anew.
const AS_WRITTEN: &[(&str, &str)] = &[
    ("balance >= 0::numeric", "balance >= 0"),
    (
        "SELECT customers.id,\n    customers.name\n   FROM customers\n  WHERE customers.active",
        "SELECT id, name FROM customers WHERE active",
    ),
];

/// Returns the queries with their labels and PostgreSQL's results, `None` if these depend on the
/// server.
fn recorded() -> Vec<(String, String, Option<Vec<String>>)> {
    let files = [
        ("psql", include_str!("../../../../testing/compat/catalog-queries/psql.sql")),
        ("jdbc", include_str!("../../../../testing/compat/catalog-queries/jdbc.sql")),
        ("sqlalchemy", include_str!("../../../../testing/compat/catalog-queries/sqlalchemy.sql")),
        ("drivers", include_str!("../../../../testing/compat/catalog-queries/drivers.sql")),
    ];
    let mut all = Vec::new();
    for (file, text) in files {
        for part in text.split(";\n\n").filter(|part| !part.trim().is_empty()) {
            let (label, sql) = part.trim_start().split_once('\n').unwrap();
            let (sql, answer) =
                sql.split_once("\n-- gives\n").map_or((sql, None), |(sql, answer)| (sql, Some(answer)));
            let answer = answer.map(|answer| {
                answer.lines().map(|line| line.strip_prefix("-- ").unwrap_or_default().to_owned()).collect()
            });
            all.push((format!("{file} {label}"), sql.to_owned(), answer));
        }
    }
    assert!(all.len() > 100, "{} queries", all.len());
    all
}

/// Replaces `{schema.name}` by our OIDs.
fn numbered(connection: &mut Connection, sql: &str) -> String {
    let mut text = sql.to_owned();
    while let Some(from) = text.find("{public.").or_else(|| text.find("{app.")) {
        let to = from + text[from..].find('}').unwrap();
        let oid = ask(connection, &format!("select '{}'::regclass::oid", &text[from + 1..to]));
        text.replace_range(from..=to, &oid[0]);
    }
    text
}

/// Every recorded query runs. Those whose results do not depend on the server return PostgreSQL's.
#[test]
fn recorded_queries() {
    let fs = Arc::new(MemFs::new());
    let database = Database::builder().fs(fs).cache_bytes(16 << 20).threads(2).open("cairn.db").unwrap();
    let mut connection = database.connect();
    connection.batch(include_str!("../../../../testing/compat/catalog-queries/schema.sql")).unwrap();
    let (mut failures, mut compared) = (Vec::new(), 0);
    for (label, sql, answer) in recorded() {
        let sql = numbered(&mut connection, &sql);
        let found = rows(&mut connection, &sql, &[]).map(|rows| rows.join("\n"));
        match (found, answer) {
            (Err(error), _) => failures.push(format!("{label}: {error} {:?}\n{sql}", error.detail())),
            (Ok(found), Some(answer)) => {
                compared += 1;
                let (found, mut answer) = (found.replace("NULL", ""), answer.join("\n"));
                for (theirs, ours) in AS_WRITTEN {
                    answer = answer.replace(theirs, ours);
                }
                if found != answer {
                    failures
                        .push(format!("{label}: differs\n  found:\n{found}\n  expected:\n{answer}\n{sql}"));
                }
            }
            (Ok(_), None) => {}
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n\n"));
    assert!(compared >= 108, "{compared} answers were compared");
}

/// Goal: sequences of `serial` columns appear as in PostgreSQL 15. Method: its results for the same
/// table.
#[test]
fn sequences() {
    let mut c = database().connect();
    run(&mut c, "create table t (id serial primary key, v text)");
    run(&mut c, "insert into t (v) values ('a'), ('b')");
    assert_eq!(ask(&mut c, "select pg_get_serial_sequence('t', 'id')"), ["public.t_id_seq"]);
    assert_eq!(ask(&mut c, "select pg_get_serial_sequence('t', 'v')"), ["NULL"]);
    assert_eq!(fails(&mut c, "select pg_get_serial_sequence('t', 'w')"), "42703");
    assert_eq!(fails(&mut c, "select pg_get_serial_sequence('u', 'id')"), "42P01");
    assert_eq!(
        ask(&mut c, "select relname, relkind from pg_class where relname like 't\\_%' order by 1"),
        ["t_id_seq|S", "t_pkey|i"]
    );
    let sql = "select format_type(seqtypid, null), seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle from pg_sequence where seqrelid = 't_id_seq'::regclass";
    assert_eq!(ask(&mut c, sql), ["integer|1|1|2147483647|1|1|f"]);
    assert_eq!(ask(&mut c, "select sequencename, last_value from pg_sequences"), ["t_id_seq|2"]);
    let sql = "select d.refobjid::regclass, a.attname, d.deptype from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid \
               where d.objid = 't_id_seq'::regclass";
    assert_eq!(ask(&mut c, sql), ["t|id|a"]);
    let sql =
        "select column_default from information_schema.columns where table_name = 't' and column_name = 'id'";
    assert_eq!(ask(&mut c, sql), ["nextval('t_id_seq'::regclass)"]);
}

/// Goal: a view's columns have the types of its query. Method: the catalogs' rows for a view.
#[test]
fn types_of_views() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, v varchar(9), n numeric(8,2))");
    run(&mut c, "create view w as select id, v, n, id > 1 as flag, count(*) over () from t");
    let sql = "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'w'::regclass order by attnum";
    assert_eq!(
        ask(&mut c, sql),
        ["id|integer", "v|character varying(9)", "n|numeric(8,2)", "flag|boolean", "count|bigint"]
    );
    run(&mut c, "create view x as select count from w");
    let sql = "select column_name, data_type from information_schema.columns where table_name = 'x'";
    assert_eq!(ask(&mut c, sql), ["count|bigint"]);
}

/// Goal: rewrites of catalog queries do not affect queries on tables. Method: a subquery of two
/// rows, next to the user's name.
#[test]
fn tables_beside_the_system() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int)");
    run(&mut c, "insert into t values (1), (2)");
    assert_eq!(fails(&mut c, "select current_user, (select id from t)"), "21000");
    assert_eq!(ask(&mut c, "select current_user, exists (select 1 from t where id = 3)"), ["cairn|f"]);
    assert_eq!(ask(&mut c, "select id from t where current_user = 'cairn' order by 1"), ["1", "2"]);
}

/// Goal: statements on the catalogs return the state at the time they run, not at the time they
/// were planned. Method: prepared statements and repeated texts, while a sequence advances, a table
/// grows, transactions follow each other, and sequences are created and dropped; also through a
/// view.
#[test]
fn facts_are_those_of_the_moment() {
    let mut c = database().connect();
    run(&mut c, "create sequence s");
    run(&mut c, "create table t (id int primary key, v double precision)");
    run(&mut c, "create view v as select last_value from pg_sequences");
    let (size, transaction) = ("select pg_relation_size('t')", "select txid_current()");
    let (last, through_view) = ("select last_value from pg_sequences", "select last_value from v");
    run(&mut c, &format!("prepare p as {last}"));
    assert_eq!(ask(&mut c, size), ["0"]);
    let mut numbers = Vec::new();
    for value in ["1", "2", "3"] {
        assert_eq!(ask(&mut c, "select nextval('s')"), [value]);
        for text in [last, through_view, "execute p"] {
            assert_eq!(ask(&mut c, text), [value], "{text}");
        }
        run(&mut c, "begin");
        run(
            &mut c,
            &format!("insert into t select g * 3 + {value}, random() from generate_series(1, 1000) as g"),
        );
        numbers.extend(ask(&mut c, transaction));
        run(&mut c, "commit");
    }
    assert_ne!(ask(&mut c, size), ["0"]);
    numbers.dedup();
    assert_eq!(numbers.len(), 3, "{numbers:?}");
    for (change, count) in [("create sequence another", "2"), ("drop sequence another", "1")] {
        run(&mut c, change);
        assert_eq!(ask(&mut c, "select count(*) from pg_sequences"), [count]);
    }
}

/// Goal: functions, operators and casts are listed as psql's `\df`, `\do` and `\dC` show them.
/// Method: PostgreSQL 15's rows for the same names.
#[test]
fn functions_are_listed() {
    let mut c = database().connect();
    let described =
        "pg_get_function_result(oid), pg_get_function_arguments(oid), prokind, provolatile, proisstrict";
    let sql = |name: &str| format!("select {described} from pg_proc where proname = '{name}' order by 2");
    assert_eq!(ask(&mut c, &sql("lpad")), ["text|text, integer|f|i|t", "text|text, integer, text|f|i|t"]);
    assert_eq!(ask(&mut c, &sql("nextval")), ["bigint|text|f|v|t"]);
    let set_config = "select provolatile from pg_proc where proname = 'set_config'";
    assert_eq!(ask(&mut c, set_config), ["v"]);
    assert_eq!(ask(&mut c, &sql("row_number")), ["bigint||w|i|f"]);
    assert_eq!(ask(&mut c, &sql("concat")), ["text|VARIADIC \"any\"|f|i|f"]);
    assert_eq!(ask(&mut c, &sql("coalesce")), Vec::<String>::new());
    let sql = "select oprkind, format_type(oprleft, null), format_type(oprright, null), format_type(oprresult, null), \
               obj_description(oid, 'pg_operator') from pg_operator where oprname = '-' and oprright = 1186 order by 2, 3";
    assert_eq!(
        ask(&mut c, sql),
        [
            "l|-|interval|interval|Negation.",
            "b|date|interval|timestamp without time zone|Before.",
            "b|interval|interval|interval|Difference.",
            "b|time without time zone|interval|time without time zone|Before, within the day.",
            "b|timestamp with time zone|interval|timestamp with time zone|Before.",
            "b|timestamp without time zone|interval|timestamp without time zone|Before.",
        ]
    );
    let sql =
        "select format_type(casttarget, null), castcontext from pg_cast where castsource = 1082 order by 1";
    assert_eq!(ask(&mut c, sql), ["timestamp with time zone|i", "timestamp without time zone|i"]);
}
