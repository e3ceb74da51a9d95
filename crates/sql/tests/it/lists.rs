//! Goal: `= ANY (list)` and `<> ALL (list)` behave as in PostgreSQL on either path. Method: lists
//! as parameters, as quoted and as explicit literals, on keys, on other columns and in queries of
//! the general path.

use cairn_sql::{ColumnType, Connection, Datum, Type};

use crate::support::{ask, database, rows, run};

fn list<T: Into<Datum>>(items: impl IntoIterator<Item = T>) -> Datum {
    Datum::List(items.into_iter().map(Into::into).collect())
}

/// Rows 1 to 9 with a name, a number that is NULL in every third, and a uuid.
fn filled() -> Connection {
    let mut c = database().connect();
    run(
        &mut c,
        "create table t (id int primary key, name text, n numeric(8,2), u uuid unique, w bigint, d date)",
    );
    run(&mut c, "create index t_name on t (name)");
    run(&mut c, "create index t_n on t (n)");
    for id in 1..=9 {
        let n = if id % 3 == 0 { "null".to_owned() } else { format!("{id}.5") };
        run(
            &mut c,
            &format!(
                "insert into t values ({id}, 'n{id}', {n}, '00000000-0000-0000-0000-00000000000{id}', {id}, date '2024-01-0{id}')"
            ),
        );
    }
    c
}

/// The tables of the same query on the direct and the general path. The latter uses a join that
/// keeps all rows.
const FROM: [&str; 2] = ["t", "t join (select 1 as one) o on o.one = 1"];

#[track_caller]
fn found(c: &mut Connection, condition: &str, params: &[Datum]) -> String {
    let found = FROM.map(|from| {
        let sql = format!("select id from {from} where {condition} order by id");
        rows(c, &sql, params).unwrap_or_else(|error| panic!("{sql}: {error} {:?}", error.detail())).join(" ")
    });
    assert_eq!(found[0], found[1], "{condition}");
    found[0].clone()
}

#[test]
fn lists_are_parameters() {
    let mut c = filled();
    let some = [list([3, 1, 3, 77])];
    assert_eq!(found(&mut c, "id = any($1)", &some), "1 3");
    assert_eq!(found(&mut c, "id = any($1::int[])", &some), "1 3");
    assert_eq!(found(&mut c, "id = any(($1))", &some), "1 3");
    assert_eq!(found(&mut c, "id = some($1)", &some), "1 3");
    assert_eq!(found(&mut c, "w = any($1)", &some), "1 3");
    assert_eq!(found(&mut c, "id <> all($1)", &some), "2 4 5 6 7 8 9");
    assert_eq!(found(&mut c, "not id = any($1)", &some), "2 4 5 6 7 8 9");
    assert_eq!(found(&mut c, "name = any($1)", &[list(["n2", "n9", "x"])]), "2 9");
    assert_eq!(found(&mut c, "name <> all($1) and id < 4", &[list(["n2", "n9"])]), "1 3");
    let uuids = list(["00000000-0000-0000-0000-000000000004"]);
    assert_eq!(found(&mut c, "u = any($1)", std::slice::from_ref(&uuids)), "4");
    assert_eq!(found(&mut c, "u = any($1::uuid[])", &[uuids]), "4");
    assert_eq!(found(&mut c, "d = any($1)", &[list(["2024-01-07"])]), "7");
    let exact = |unscaled, scale| Datum::Decimal { unscaled, scale };
    assert_eq!(found(&mut c, "n = any($1)", &[list([exact(4500, 3), exact(15, 1), exact(2501, 3)])]), "1 4");
    assert_eq!(found(&mut c, "id = any($1) and name = any($2)", &[list([1, 2]), list(["n2", "n3"])]), "2");
    assert_eq!(found(&mut c, "id = any($1) or id = any($2)", &[list([1]), list([2])]), "1 2");
    // The list as text, as clients send it without a type.
    assert_eq!(found(&mut c, "id = any($1)", &["{4, 5,NULL}".into()]), "4 5");
    assert_eq!(found(&mut c, "$2 = any($1::text[]) and id = 1", &[list(["a"]), "a".into()]), "1");
}

/// With NULL in the list, a missing value is unknown; a NULL list makes everything unknown; and
/// nothing is in an empty list, not even NULL.
#[test]
fn null_and_nothing() {
    let mut c = filled();
    let with_null = [Datum::List(vec![Datum::Int(2), Datum::Null])];
    assert_eq!(found(&mut c, "id = any($1)", &with_null), "2");
    assert_eq!(found(&mut c, "(id = any($1)) is null and id < 4", &with_null), "1 3");
    assert_eq!(found(&mut c, "id <> all($1)", &with_null), "");
    assert_eq!(found(&mut c, "id = any($1)", &[Datum::Null]), "");
    assert_eq!(found(&mut c, "id <> all($1)", &[Datum::Null]), "");
    assert_eq!(found(&mut c, "(id = any($1)) is null and id < 3", &[Datum::Null]), "1 2");
    let nothing = [Datum::List(Vec::new())];
    assert_eq!(found(&mut c, "id = any($1)", &nothing), "");
    assert_eq!(found(&mut c, "id <> all($1) and id < 3", &nothing), "1 2");
    assert_eq!(found(&mut c, "n <> all($1)", &nothing), "1 2 3 4 5 6 7 8 9");
    assert_eq!(found(&mut c, "n <> all($1)", &[list([77])]), "1 2 4 5 7 8");
    assert_eq!(found(&mut c, "(n = any($1)) is null", &[list([77])]), "3 6 9");
    assert_eq!(found(&mut c, "$1::int[] is null or id = any($1)", &[Datum::Null]), "1 2 3 4 5 6 7 8 9");
    assert_eq!(found(&mut c, "$1::int[] is null or id = any($1)", &[list([5])]), "5");
}

#[test]
fn lists_are_written_down() {
    let mut c = filled();
    for (condition, expected) in [
        ("id = any('{1,2,3}')", "1 2 3"),
        ("id = any('{1,2,NULL}'::int[])", "1 2"),
        ("w = any('{1, 2}'::int[])", "1 2"),
        ("id = any(array[1, 2, 33])", "1 2"),
        ("id = any(array[1, 2]::bigint[])", "1 2"),
        ("id <> all(array[1, 2, 3, 4, 5])", "6 7 8 9"),
        ("id <> all('{1,NULL}')", ""),
        ("id = any(null)", ""),
        ("id = any('{}'::int[])", ""),
        ("n <> all('{}') and id < 4", "1 2 3"),
        ("name = any('{n1,\"n2\",\"a,b\"}')", "1 2"),
        ("u = any('{00000000-0000-0000-0000-000000000004}'::uuid[])", "4"),
    ] {
        assert_eq!(found(&mut c, condition, &[]), expected, "{condition}");
    }
    let params = [Datum::Int(1), Datum::Int(2)];
    assert_eq!(found(&mut c, "id = any(array[$1, $2]::int[])", &params), "1 2");
}

/// Incomparable types are rejected, and so are values that are not lists.
#[test]
fn other_lists_are_refused() {
    let mut c = filled();
    let typed = |c: &mut Connection, sql: &str, kind: ColumnType| {
        c.prepare_typed(sql, &[Some(kind)]).map(|statement| statement.parameters()[0].to_string())
    };
    let code = |result: Result<String, cairn_sql::Error>| result.unwrap_err().sqlstate();
    let ints = || ColumnType::from(Type::Int).list_of();
    for from in FROM {
        let any = |column: &str| format!("select id from {from} where {column} = any($1)");
        assert_eq!(typed(&mut c, &any("id"), ints()).unwrap(), "int[]");
        assert_eq!(code(typed(&mut c, &any("name"), ints())), "42883", "{from}");
        assert_eq!(code(typed(&mut c, &any("u"), ColumnType::from(Type::Text).list_of())), "42883", "{from}");
        assert_eq!(code(typed(&mut c, &any("id"), Type::Int.into())), "42809", "{from}");
        // An undeclared type is a list of the operand's type.
        let statement = c.prepare(&any("w")).unwrap();
        assert_eq!(statement.parameters()[0].to_string(), "bigint[]");
        let wrong = c.query(&any("id"), &[Datum::Int(1)]).map(|_| ()).unwrap_err();
        assert_eq!(wrong.sqlstate(), "42804");
        let wrong = c.query(&any("id"), &["1".into()]).map(|_| ()).unwrap_err();
        assert_eq!(wrong.sqlstate(), "22P02");
        let equal = format!("select id from {from} where id = $1");
        let wrong = c.query(&equal, &[list([1])]).map(|_| ()).unwrap_err();
        assert_eq!(wrong.sqlstate(), "42804", "{from}");
    }
    let error = c.execute("insert into t (id, name) values (20, $1)", &[list(["a"])]).unwrap_err();
    assert_eq!(error.sqlstate(), "42804");
}

/// Rows in a list are updated, deleted and counted.
#[test]
fn lists_of_rows_to_change() {
    let mut c = filled();
    let some = [list([2, 4, 6])];
    assert_eq!(rows(&mut c, "select count(*), sum(w) from t where id = any($1)", &some).unwrap(), ["3|12"]);
    assert_eq!(rows(&mut c, "select count(*) from t where w = any($1)", &some).unwrap(), ["3"]);
    assert_eq!(c.execute("update t set name = 'even' where id = any($1)", &some).unwrap(), 3);
    assert_eq!(ask(&mut c, "select id from t where name = 'even' order by id"), ["2", "4", "6"]);
    assert_eq!(c.execute("delete from t using (select 1) o where id = any($1)", &some).unwrap(), 3);
    assert_eq!(c.execute("delete from t where w <> all($1)", &[list([1, 3])]).unwrap(), 4);
    assert_eq!(ask(&mut c, "select id from t order by id"), ["1", "3"]);
    assert_eq!(
        rows(
            &mut c,
            "select id, id = any($1) as is_in from t join (select 1) o on true order by id",
            &[list([3])]
        )
        .unwrap(),
        ["1|f", "3|t"]
    );
    let unnested = "select count(*) from t join unnest($1::int[]) as x(id) on x.id = t.id";
    assert_eq!(rows(&mut c, unnested, &[list([3, 4])]).unwrap(), ["1"]);
}
