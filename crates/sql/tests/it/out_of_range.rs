//! Results out of range of their type: an error and not another number, on every path and by every
//! operator, as in PostgreSQL.

use cairn_sql::Datum;

use crate::support::{ask, database, fails, rows, run};

/// Goal: a sum of doubles that overflows is an error, and one of infinities is not. Method: with
/// and without groups, with and without an index.
#[test]
fn sums_beyond_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int, x double precision, e text)");
    run(&mut c, "create index on t (g)");
    run(
        &mut c,
        "insert into t values (1, 1, 1e308, 'a'), (2, 1, 1e308, 'a'), (3, 2, 1e308, 'a'), (4, 3, 'inf', 'a'), (5, 3, 1, 'a')",
    );
    run(&mut c, "insert into t select i, 4, 0.5, 'a' from generate_series(10, 6000) as s(i)");
    for sql in [
        "select sum(x) from t where g < 3",
        "select sum(x) from t where id < 4",
        "select sum(x) from t where id < 4 and e = 'a'",
        "select g, sum(x) from t where id < 4 group by g",
    ] {
        assert_eq!(fails(&mut c, sql), "22003", "{sql}");
    }
    for (sql, sum) in [
        ("select sum(x) from t where g = 3", "Infinity"),
        ("select sum(x) from t where g >= 3", "Infinity"),
        ("select sum(x) from t where id = 3", "1e+308"),
        ("select sum(x) from t where g = 4", "2995.5"),
    ] {
        assert_eq!(ask(&mut c, sql), [sum], "{sql}");
    }
    assert_eq!(
        ask(&mut c, "select g, sum(x) from t where g > 1 group by g order by g"),
        ["2|1e+308", "3|Infinity", "4|2995.5"]
    );
}

/// Goal: a result out of range is an error on every path and by every operator, and infinities stay
/// infinite. Method: the results of PostgreSQL 15 on the same rows: aggregates with FILTER, with
/// DISTINCT, of expressions, of groups, of sliding windows, and of a parameter.
#[test]
fn aggregates_beyond_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int, x double precision, n numeric(38, 0), r real)");
    let most = "99999999999999999999999999999999999999";
    run(
        &mut c,
        &format!(
            "insert into t values (1, 1, 1e308, {most}, 1), (2, 1, 1.1e308, {most} - 1, 2), (3, 2, -1e308, -{most}, 3), (4, 2, -1.1e308, 1 - {most}, 4), \
             (5, 3, 'inf', 1, null), (6, 3, 1e308, 2, null), (7, 3, 1e308, null, null), (8, 4, null, null, null), (9, 5, 'nan', 5, 1), (10, 5, 1e308, 5, 2), \
             (11, 5, 1e308, 5, 4), (12, 6, 1e200, 5, 4), (13, 6, -1e200, 5, 4), (14, 7, 1e308, 5, 4), (15, 7, 1e308, 5, 4), (16, 7, '-inf', 5, 4)"
        ),
    );
    for aggregate in [
        "sum(x)",
        "sum(distinct x)",
        "avg(x)",
        "avg(distinct x)",
        "sum(x) filter (where id > 0)",
        "sum(x * 1.0::float8)",
        "var_pop(x)",
        "var_samp(x)",
        "stddev(x)",
        "stddev_pop(x)",
        "covar_pop(x, x)",
        "covar_samp(x, x)",
        "regr_sxx(x, x)",
        "regr_syy(x, x)",
        "sum(n)",
        "sum(distinct n)",
        "sum(x) + 0.0::float8",
    ] {
        for (from, group) in
            [("t where g = 1", ""), ("t where g <= 2 and g > 1", ""), ("t where g in (1, 4)", "group by g")]
        {
            // The aggregate of all rows, and running aggregates.
            for select in [
                format!("select {aggregate} from {from} {group}"),
                format!("select {aggregate} from (select * from {from} order by id limit 9) as t {group}"),
            ] {
                assert_eq!(fails(&mut c, &select), "22003", "{select}");
            }
        }
        if !aggregate.contains("distinct") && !aggregate.contains("filter") && !aggregate.contains('+') {
            for frame in [
                "",
                "rows between 1 preceding and current row",
                "rows between unbounded preceding and 1 following",
            ] {
                let select = format!("select {aggregate} over (order by id {frame}) from t where g = 1");
                assert_eq!(fails(&mut c, &select), "22003", "{select}");
            }
        }
    }
    for squares in ["var_pop(x)", "stddev(x)", "covar_pop(x, x)", "regr_sxx(x, x)"] {
        assert_eq!(
            fails(&mut c, &format!("select g, {squares} from t where g in (3, 6) group by g")),
            "22003",
            "{squares}"
        );
        assert_eq!(fails(&mut c, &format!("select {squares} from t where g = 6")), "22003", "{squares}");
        assert_eq!(ask(&mut c, &format!("select {squares} from t where g = 3")), ["NaN"], "{squares}");
        assert_eq!(ask(&mut c, &format!("select {squares} from t where g = 4")), ["NULL"], "{squares}");
        assert_eq!(
            ask(&mut c, &format!("select g, {squares} from t where g in (3, 4, 5) group by g order by g")),
            ["3|NaN", "4|NULL", "5|NaN"],
            "{squares}"
        );
        assert_eq!(
            ask(&mut c, &format!("select {squares} filter (where id < 12) from t where g in (4, 6)")),
            ["NULL"],
            "{squares}"
        );
    }
    // A later infinity does not undo an overflow; an earlier one prevents it.
    for from in ["t where g = 7", "t where g in (3, 7) group by g"] {
        assert_eq!(fails(&mut c, &format!("select sum(x) from {from}")), "22003", "{from}");
        assert_eq!(
            fails(&mut c, &format!("select sum(x), max(r) filter (where id > 0) from {from}")),
            "22003",
            "{from}"
        );
    }
    assert_eq!(
        ask(&mut c, "select sum(x), sum(x) filter (where id < 16), avg(x) from t where g = 3"),
        ["Infinity|Infinity|Infinity"]
    );
    assert_eq!(
        ask(&mut c, "select sum(x), avg(x), sum(distinct x), avg(distinct x) from t where g = 5"),
        ["NaN|NaN|NaN|NaN"]
    );
    assert_eq!(
        ask(&mut c, "select sum(x), avg(x), avg(distinct x), sum(x) filter (where false) from t where g = 4"),
        ["NULL|NULL|NULL|NULL"]
    );
    assert_eq!(
        ask(&mut c, "select sum(x), avg(x), avg(r), stddev(x) from t where g = 9"),
        ["NULL|NULL|NULL|NULL"]
    );
    assert_eq!(
        ask(
            &mut c,
            "select g, avg(x), avg(r), sum(x) filter (where id <> 7) from t where g between 3 and 6 group by g order by g"
        ),
        ["3|Infinity|NULL|Infinity", "4|NULL|NULL|NULL", "5|NaN|2.3333333333333335|NaN", "6|0|4|0"]
    );
    assert_eq!(ask(&mut c, "select avg(x), sum(n) from t where id in (1, 3)"), ["0|0"]);
    let prepared = "select avg(x * $1), sum(x * $1) from t where g = 1";
    let by = |c: &mut cairn_sql::Connection, by: f64| {
        rows(c, prepared, &[Datum::Double(by)]).map_err(|error| error.sqlstate())
    };
    assert_eq!(by(&mut c, 1.0), Err("22003"));
    assert_eq!(by(&mut c, 0.5).unwrap(), ["5.25e+307|1.05e+308"]);
    assert_eq!(by(&mut c, -1.0), Err("22003"));
}

/// Goal: sums of a window are those of its rows, whatever rows have left it. Method: small numbers
/// after large ones and after infinities, in windows of few and of many rows, compared with
/// PostgreSQL 15.
#[test]
fn windows_that_rows_leave() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, x double precision, n numeric(38, 0))");
    let most = "99999999999999999999999999999999999999";
    run(
        &mut c,
        &format!(
            "insert into t values (1, 1e20, {most}), (2, 1, -{most}), (3, 'inf', {most}), (4, 1, -5), (5, 2, null), (6, null, null), (7, null, 1)"
        ),
    );
    assert_eq!(
        ask(
            &mut c,
            "select sum(x) over (order by id rows between 0 preceding and current row), avg(x) over (order by id rows between 1 preceding and current row), \
             sum(n) over (order by id rows between 1 preceding and current row) from t order by id"
        ),
        [
            &format!("1e+20|1e+20|{most}"),
            "1|5e+19|0",
            "Infinity|Infinity|0",
            "1|Infinity|99999999999999999999999999999999999994",
            "2|1.5|-5",
            "NULL|2|NULL",
            "NULL|NULL|1"
        ]
    );
    run(&mut c, "create table long (id int primary key, x double precision)");
    run(
        &mut c,
        "insert into long select i, case i when 500 then '1e300'::float8 when 700 then 'inf'::float8 when 900 then '-1e308'::float8 when 950 then '1e308'::float8 else i::float8 end from generate_series(1, 3000) as s(i)",
    );
    for rows in [10, 100] {
        let before = rows - 1;
        let select = format!(
            "select count(*), min(id), max(id) from (select id, sum(x) over (order by id rows between {before} preceding and current row) as s from long) as w \
             where id not between 500 and 499 + {rows} and id not between 700 and 699 + {rows} and id not between 900 and 949 + {rows} and id >= {rows} and s <> {rows} * (id - {before} / 2.0::float8)"
        );
        assert_eq!(ask(&mut c, &select), ["0|NULL|NULL"], "{rows}");
        let large = format!(
            "select count(*) from (select id, sum(x) over (order by id rows between {before} preceding and current row) as s from long) as w where s = 'inf' and id between 700 and 699 + {rows}"
        );
        assert_eq!(ask(&mut c, &large), [rows.to_string()]);
    }
    run(&mut c, "update long set x = 1.7e308 where id in (2000, 2050)");
    for (rows, sqlstate) in [(51, Err("22003")), (50, Ok(["3000".to_owned()].to_vec()))] {
        let before = rows - 1;
        let select = format!(
            "select count(s) from (select sum(x) over (order by id rows between {before} preceding and current row) as s from long) as w"
        );
        assert_eq!(self::rows(&mut c, &select, &[]).map_err(|error| error.sqlstate()), sqlstate, "{rows}");
    }
}

/// Goal: overflow is also detected when partial sums of threads are combined. Method: enough rows
/// for several threads, of which only the first and the last are large, in a tree and in packed
/// leaves, with groups of which another one has an infinity.
#[test]
fn sums_of_parts_beyond_their_types() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int, x double precision, n numeric(38, 0))");
    run(&mut c, "insert into t select i, i % 3, 0, 0 from generate_series(0, 60000) as s(i)");
    run(&mut c, "update t set x = 'inf' where id = 1");
    run(
        &mut c,
        "update t set x = -1e308, n = -99999999999999999999999999999999999999 where id in (3, 59997)",
    );
    run(&mut c, "create table packed as select * from t");
    for table in ["t", "packed"] {
        for sql in [
            "select g, sum(x) from # group by g",
            "select g, sum(x), max(g) filter (where id > 4) from # group by g",
            "select sum(x) from # where id <> 1",
            "select sum(x), avg(x) from # where id + 0 <> 1",
            "select g, avg(x) from # group by g",
            "select g, stddev(x) from # group by g",
            "select sum(n) from # where id <> 1",
            "select g, sum(n) from # group by g",
            "select g, sum(n + g) from # group by g",
            "select id % 20000, sum(x) from # group by 1 union all select id / 59994, sum(x) from # where id <> 1 and id >= 59994 or id = 3 group by 1 having sum(x) < 0 union all select 1, sum(x) from # where id <> 1",
        ] {
            let sql = sql.replace('#', table);
            assert_eq!(fails(&mut c, &sql), "22003", "{sql}");
        }
        assert_eq!(
            ask(
                &mut c,
                &format!("select g, sum(x), avg(x) from {table} where id < 59997 group by g order by g")
            ),
            ["0|-1e+308|-5.0002500125006253e+303", "1|Infinity|Infinity", "2|0|0"]
        );
    }
}

/// Goal: variances and regressions of a window are those of its rows, whatever rows have left it.
/// Method: windows of few rows, compared with PostgreSQL 15, and of many rows with known results.
#[test]
fn spreads_of_windows_that_rows_leave() {
    let mut c = database().connect();
    let of_two = |c: &mut cairn_sql::Connection, figure: &str, values: &str| {
        let select = format!(
            "select {figure}(x) over (order by id rows between 1 preceding and current row) from (values {values}) as t(id, x)"
        );
        ask(c, &select)
    };
    for (figure, values, expected) in [
        ("stddev", "(1, 3::float8), (2, 7), (3, 7)", ["NULL", "2.8284271247461903", "0"]),
        ("var_samp", "(1, 3::float8), (2, 7), (3, 7)", ["NULL", "8", "0"]),
        ("stddev_pop", "(1, 100::float8), (2, 0), (3, 0)", ["0", "50", "0"]),
        ("stddev", "(1, 100), (2, 0), (3, 0)", ["NULL", "70.71067811865476", "0"]),
        ("var_samp", "(1, 'inf'::float8), (2, 1), (3, 2)", ["NULL", "NaN", "0.5"]),
        ("var_samp", "(1, 'nan'::float8), (2, 1), (3, 2)", ["NULL", "NaN", "0.5"]),
        ("var_samp", "(1, 1e20::float8), (2, 1), (3, 2)", ["NULL", "5e+39", "0.5"]),
        ("var_pop", "(1, 1::float8), (2, null), (3, null)", ["0", "0", "NULL"]),
    ] {
        assert_eq!(of_two(&mut c, figure, values), expected, "{figure} {values}");
    }
    run(&mut c, "create table t (id int primary key, y double precision, x double precision)");
    run(
        &mut c,
        "insert into t select i, i * 2 + 3, case i when 500 then 'inf'::float8 when 600 then 1e100::float8 else i::float8 end from generate_series(1, 2000) as g(i)",
    );
    for rows in [11, 101] {
        let before = rows - 1;
        for (figure, expected) in [
            ("var_pop(x)", f64::from(rows * rows - 1) / 12.0),
            ("covar_pop(y, x)", f64::from(rows * rows - 1) / 6.0),
            ("corr(y, x)", 1.0),
            ("regr_slope(y, x)", 2.0),
            ("regr_intercept(y, x)", 3.0),
            ("regr_r2(y, x)", 1.0),
            ("regr_count(y, x)", f64::from(rows)),
        ] {
            let select = format!(
                "select count(*), count(*) filter (where abs(f - {expected:?}::float8) > 1e-6::float8) from (select id, {figure} over (order by id rows between {before} preceding and current row) as f from t) as w \
                 where id >= {rows} and id not between 500 and 499 + {rows} and id not between 600 and 599 + {rows}"
            );
            let kept = 2000 - before - 2 * rows + if rows > 100 { 1 } else { 0 };
            assert_eq!(ask(&mut c, &select), [format!("{kept}|0")], "{figure}");
        }
    }
}

/// Goal: variances, correlations and regressions are PostgreSQL's over the whole range of their
/// type: for large numbers that are close together, equal ones, infinities and DISTINCT, with and
/// without groups.
/// Method: the results of PostgreSQL 15; for equal numbers a spread of zero, as in 19.
#[test]
fn spreads_as_in_postgres() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, g int, y double precision, x double precision)");
    run(
        &mut c,
        "insert into t values (1, 1, 1, 1700000000), (2, 1, 2, 1700000001), (3, 1, 3, 1700000002), (4, 2, 1, 0.1), (5, 2, 2, 0.1), (6, 2, 3, 0.1), (7, 3, 1, 'inf'), \
         (8, 4, 1, 'nan'), (9, 4, 3, 2), (10, 5, null, 1), (11, 6, 5, 1), (12, 6, 7, 2), (13, 6, null, 100), (14, 6, 9, 3), (15, 6, 9, 3), (16, 7, 1e200, 1e-200), (17, 7, -1e200, -1e-200)",
    );
    for (figure, expected) in [
        ("corr(y, x)", ["1", "NULL", "NULL", "NaN", "NULL", "1"]),
        ("var_pop(x)", ["0.6666666666666666", "0", "NaN", "NaN", "0", "1529.3600000000001"]),
        ("stddev_pop(distinct x)", ["0.816496580927726", "0", "NaN", "NaN", "0", "42.44113570582201"]),
        ("covar_samp(y, x)", ["1", "0", "NULL", "NaN", "NULL", "1.8333333333333333"]),
        ("covar_pop(distinct y, x)", ["0.6666666666666666", "0", "NaN", "NaN", "NULL", "1.3333333333333333"]),
        ("regr_count(y, x)", ["3", "3", "1", "2", "0", "4"]),
        ("regr_avgx(y, x)", ["1700000001", "0.10000000000000002", "Infinity", "NaN", "NULL", "2.25"]),
        ("regr_avgy(y, x)", ["2", "2", "1", "2", "NULL", "7.5"]),
        ("regr_sxx(y, x)", ["2", "0", "NaN", "NaN", "NULL", "2.75"]),
        ("regr_sxy(y, x)", ["2", "0", "NaN", "NaN", "NULL", "5.5"]),
        ("regr_slope(y, x)", ["1", "NULL", "NaN", "NaN", "NULL", "2"]),
        ("regr_intercept(y, x)", ["-1699999999", "NULL", "NaN", "NaN", "NULL", "3"]),
    ] {
        let by_groups = ask(&mut c, &format!("select {figure} from t where g < 7 group by g order by g"));
        assert_eq!(by_groups, expected, "{figure}");
        for (group, expected) in (1..).zip(expected) {
            let alone = ask(&mut c, &format!("select {figure} from t where g = {group}"));
            assert_eq!(alone, [expected], "{figure} of {group}");
        }
    }
    assert_eq!(fails(&mut c, "select regr_syy(y, x) from t where g = 7"), "22003");
    // Totals of parts, which are far from zero and close together.
    run(&mut c, "create table parts (id int primary key, g int, x double precision)");
    run(&mut c, "insert into parts select i, i % 20011, 1e200 from generate_series(1, 60000) as g(i)");
    run(&mut c, "create table packed as select * from parts");
    for from in ["parts", "packed"] {
        let all = format!("select stddev(x), var_pop(x), corr(x, id), corr(id, id) from {from} where x > 1");
        assert_eq!(ask(&mut c, &all), ["0|0|NULL|1"], "{from}");
        let groups = format!(
            "select count(*), min(s), max(s) from (select stddev(x) as s from {from} group by g) as w"
        );
        assert_eq!(ask(&mut c, &groups), ["20011|0|0"], "{from}");
    }
}

/// Goal: numerics with fractional digits only can be combined with others of their kind, even if
/// the result has digits before the point. Method: PostgreSQL's results, on both paths and with
/// groups and windows; a result that does not fit is 22003, and the error says what did not fit.
#[test]
fn numbers_without_a_digit_before_the_point() {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, d numeric(38, 38), e numeric(10, 10), n numeric(38, 10), i int, x double precision)",
    );
    run(
        &mut c,
        "insert into t values (1, 0.5, 0.5, 3, 7, 2), (2, 0.000000000000000001, 0.0000000001, 12345678901234567.5, -7, 2), (3, -0.3, -0.3, 1, 2, 2), (4, null, null, null, null, null)",
    );
    let expected = [
        ("1 / d", "2, 1000000000000000000, -3.333333333333333333, NULL"),
        ("i / d", "14, -7000000000000000000, -6.666666666666666667, NULL"),
        ("n / d", "6, 12345678901234567500000000000000000, -3.333333333333333333, NULL"),
        ("d / d", "1, 1, 1, NULL"),
        ("e / d", "1, 100000000, 1, NULL"),
        ("d / 4", "0.125, 0.00000000000000000025, -0.075, NULL"),
        ("d / e", "1, 0.00000001, 1, NULL"),
        ("5 * d", "2.5, 0.000000000000000005, -1.5, NULL"),
        ("i * d", "3.5, -0.000000000000000007, -0.6, NULL"),
        ("n * d", "1.5, 0.0123456789012345675, -0.3, NULL"),
        ("d * d", "0.25, 0.000000000000000000000000000000000001, 0.09, NULL"),
        ("d + 1", "1.5, 1.000000000000000001, 0.7, NULL"),
        ("1 - d", "0.5, 0.999999999999999999, 1.3, NULL"),
        ("d - n", "-2.5, -12345678901234567.5, -1.3, NULL"),
        ("i + d", "7.5, -6.999999999999999999, 1.7, NULL"),
        ("d + d", "1, 0.000000000000000002, -0.6, NULL"),
        ("-d", "-0.5, -0.000000000000000001, 0.3, NULL"),
        ("1 / (1 / d)", "0.5, 0.000000000000000001, -0.3, NULL"),
    ];
    let mut wrong = Vec::new();
    for (expr, all) in expected {
        for (id, expected) in (1..).zip(all.split(", ")) {
            let selects = [
                format!("select {expr} from t where id = {id}"),
                format!("select distinct {expr} from t where id = {id}"),
                format!("select max({expr}) over () from t where id + 0 = {id}"),
                format!("select min({expr}) from t where id + 0 = {id} group by id % 2"),
            ];
            let mut selects = selects.iter();
            // The direct path keeps all digits of a product or a sum, and has no room for these.
            if matches!(expr, "5 * d" | "i * d" | "n * d" | "d * d" | "d - n" | "i + d") {
                selects.next();
            }
            // On the general path, the type shared by all rows has no room for so many digits
            // before the point besides those after it.
            let most = if (expr, id) == ("n / d", 2) { 1 } else { usize::MAX };
            for select in selects.take(most) {
                let found = rows(&mut c, select, &[]).map(|rows| rows.concat());
                let is_near = |found: &String| match (found.parse::<f64>(), expected.parse::<f64>()) {
                    (Ok(found), Ok(expected)) => (found - expected).abs() <= expected.abs() * 1e-12,
                    _ => found == expected,
                };
                if !found.as_ref().is_ok_and(is_near) {
                    wrong.push(format!("{select}: {found:?}, not {expected}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let error = rows(&mut c, "select distinct n / d from t", &[]).err();
    let said = error.map(|error| (error.sqlstate(), error.detail().map(str::to_owned)));
    let detail = "What is computed here is numeric(38,18), which has 20 digits before the point.";
    assert_eq!(said, Some(("22003", Some(detail.to_owned()))));
    assert_eq!(fails(&mut c, "select distinct i / (d - d) from t"), "22012");
    assert_eq!(ask(&mut c, "select distinct 1 / d from t where id > 9"), Vec::<String>::new());
    let by = [Datum::Decimal { unscaled: 25, scale: 1 }];
    assert_eq!(rows(&mut c, "select count(*) from t where 1 / d > $1", &by).unwrap(), ["1"]);
}

/// Goal: a literal out of range for numerics is a double on both paths. Method: a plan of each
/// path, and literals out of range for doubles.
#[test]
fn literals_beyond_numerics() {
    let mut c = database().connect();
    run(&mut c, "create table t (id int primary key, x double precision)");
    run(&mut c, "insert into t values (1, 1e200), (2, 1e-200)");
    run(&mut c, "insert into t select i, 1.5E+300 from generate_series(3, 4) as g(i)");
    for by in ["id", "id + 1"] {
        assert_eq!(
            ask(&mut c, &format!("select 1e200, -1e-200, x / 1e150 from t where x > 1e199 order by {by}")),
            ["1e+200|-1e-200|1e+50", "1e+200|-1e-200|1.5e+150", "1e+200|-1e-200|1.5e+150"]
        );
        assert_eq!(ask(&mut c, &format!("select id from t where x in (1e-200, 2e199) order by {by}")), ["2"]);
        assert_eq!(fails(&mut c, &format!("select 1e400 from t order by {by}")), "22003");
    }
    assert_eq!(
        ask(&mut c, "select count(*), max(x) from t where x + 0 < 1e250 group by id + 1 > 9"),
        ["2|1e+200"]
    );
}
