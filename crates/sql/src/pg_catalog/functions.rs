//! Functions of PostgreSQL's catalogs, which take OIDs and settings.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};

use super::cell::{Cell, Shape, array, cells};
use super::lookup::{class, class_name, class_oid, type_oid};
use super::relations::{data_type, type_by_oid};
use super::{World, define, descriptions, oids, procedures, sequences};
use crate::batch::{arrow_error, as_json};
use crate::error::{Error, Result};
use crate::expr::Kind::{self, Any, BigInt, Boolean, Integer, Name, Oid, Text};
use crate::session::SettingChange;
use crate::sqlstate::{UNDEFINED_COLUMN, UNDEFINED_OBJECT, UNDEFINED_TABLE};

/// Marks a text as JSON, for functions that report the type of a column.
pub(super) const JSON: &str = "cairn_json";

type Body = fn(&World, &[Cell]) -> Result<Cell>;

/// A function on the system catalogs or the session.
#[derive(Debug)]
pub(crate) struct SystemFunction {
    pub name: &'static str,
    /// `None` if it is not in `pg_proc`: a part of the grammar, or a call of a rewritten query.
    pub arguments: Option<&'static [Kind]>,
    pub(super) result: Shape,
    pub doc: &'static str,
    body: Body,
}

impl SystemFunction {
    /// The type of its result.
    pub fn kind(&self) -> DataType {
        data_type(self.result)
    }

    /// The column of its results.
    pub fn field(&self) -> Field {
        let field = Field::new(self.name, self.kind(), true);
        if self.name == JSON { as_json(field) } else { field }
    }

    /// Whether each call has an effect. Other functions are evaluated once, when the query is
    /// planned.
    pub fn is_volatile(&self) -> bool {
        self.name == "set_config"
    }

    /// Computes the results for a number of rows.
    ///
    /// Errors: those of the function; arguments of types that the system catalogs do not use.
    pub fn call(&self, world: &World, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let columns: Vec<Vec<Cell>> =
            arguments.iter().map(cells).collect::<Result<_, _>>().map_err(arrow_error)?;
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let args: Vec<Cell> =
                columns.iter().map(|column| column.get(row).cloned().unwrap_or_default()).collect();
            results.push((self.body)(world, &args)?);
        }
        Ok(array(self.result, &results))
    }
}

const fn system(
    name: &'static str,
    arguments: Option<&'static [Kind]>,
    result: Shape,
    doc: &'static str,
    body: Body,
) -> SystemFunction {
    SystemFunction { name, arguments, result, doc, body }
}

/// Returns all functions.
pub(super) fn all() -> impl Iterator<Item = &'static SystemFunction> {
    FUNCTIONS.iter()
}

/// Returns the function of this name; `None` if it is not one of the system's.
pub(crate) fn function(name: &str) -> Option<&'static SystemFunction> {
    FUNCTIONS.iter().find(|known| known.name == name)
}

static FUNCTIONS: &[SystemFunction] = &[
    system("version", Some(&[]), Shape::Text, "Version of the server.", |world, _| {
        Ok((&world.facts.version).into())
    }),
    system("current_database", Some(&[]), Shape::Text, "Name of the database.", |world, _| {
        Ok((&world.facts.database).into())
    }),
    system("current_catalog", None, Shape::Text, "Name of the database.", |world, _| {
        Ok((&world.facts.database).into())
    }),
    system("current_schema", Some(&[]), Shape::Text, "First schema of the search path.", |world, _| {
        Ok(searched(world).into_iter().next().into())
    }),
    system(
        "current_schemas",
        Some(&[Boolean]),
        Shape::Texts,
        "Schemas of the search path, and `pg_catalog` if the argument is true.",
        current_schemas,
    ),
    system("current_user", None, Shape::Text, "Name of the user.", |world, _| Ok((&world.facts.user).into())),
    system("session_user", None, Shape::Text, "Name of the user.", |world, _| Ok((&world.facts.user).into())),
    system("current_role", None, Shape::Text, "Name of the user.", |world, _| Ok((&world.facts.user).into())),
    system("user", None, Shape::Text, "Name of the user.", |world, _| Ok((&world.facts.user).into())),
    system("pg_get_userbyid", Some(&[Oid]), Shape::Text, "Name of a user.", |world, args| {
        Ok(match int(args, 0) {
            Some(oids::USER) => (&world.facts.user).into(),
            other => other.map(|oid| format!("unknown (OID={oid})")).into(),
        })
    }),
    system("pg_backend_pid", Some(&[]), Shape::Int, "Number of the session.", |world, _| {
        Ok(world.facts.pid.into())
    }),
    system("pg_is_in_recovery", Some(&[]), Shape::Bool, "False.", |_, _| Ok(false.into())),
    system(
        "pg_postmaster_start_time",
        Some(&[]),
        Shape::Time,
        "Time at which the database was opened.",
        |world, _| Ok(world.facts.started.into()),
    ),
    system(
        "pg_conf_load_time",
        Some(&[]),
        Shape::Time,
        "Time at which the database was opened.",
        |world, _| Ok(world.facts.started.into()),
    ),
    system("txid_current", Some(&[]), Shape::Big, "Number of the transaction.", |world, _| {
        Ok((world.facts.transaction as i64).into())
    }),
    system("pg_current_xact_id", Some(&[]), Shape::Big, "Number of the transaction.", |world, _| {
        Ok((world.facts.transaction as i64).into())
    }),
    system("inet_server_addr", Some(&[]), Shape::Text, "NULL.", nothing),
    system("inet_server_port", Some(&[]), Shape::Int, "NULL.", nothing),
    system("inet_client_addr", Some(&[]), Shape::Text, "NULL.", nothing),
    system("inet_client_port", Some(&[]), Shape::Int, "NULL.", nothing),
    system(
        "current_setting",
        Some(&[Text, Boolean]),
        Shape::Text,
        "Value of a setting. If the second argument is true, NULL for an unknown one.",
        current_setting,
    ),
    system(
        "set_config",
        Some(&[Text, Text, Boolean]),
        Shape::Text,
        "Changes a setting, at the end of the statement.",
        set_config,
    ),
    system("pg_encoding_to_char", Some(&[Integer]), Shape::Text, "Name of an encoding.", |_, args| {
        Ok(int(args, 0).map(|code| if code == 6 { "UTF8" } else { "" }).into())
    }),
    system("pg_char_to_encoding", Some(&[Name]), Shape::Int, "Number of an encoding.", |_, _| Ok(6.into())),
    system("getdatabaseencoding", Some(&[]), Shape::Text, "`UTF8`.", |_, _| Ok("UTF8".into())),
    system("pg_client_encoding", Some(&[]), Shape::Text, "`UTF8`.", |_, _| Ok("UTF8".into())),
    system(
        "format_type",
        Some(&[Oid, Integer]),
        Shape::Text,
        "Name of a type with its modifier.",
        |_, args| Ok(int(args, 0).map(|oid| define::format_type(oid, int(args, 1))).into()),
    ),
    system("pg_get_expr", Some(&[Text, Oid]), Shape::Text, "Text of an expression.", |_, args| {
        Ok(text(args, 0).into())
    }),
    system(
        "pg_get_constraintdef",
        Some(&[Oid, Boolean]),
        Shape::Text,
        "Definition of a constraint.",
        |world, args| {
            Ok(int(args, 0)
                .and_then(|oid| {
                    define::constraint(&world.catalog, oid, &world.facts.search_path, is_true(args, 1))
                })
                .into())
        },
    ),
    system(
        "pg_get_indexdef",
        Some(&[Oid, Integer, Boolean]),
        Shape::Text,
        "Definition of an index, or a column of it.",
        index_definition,
    ),
    system("pg_get_viewdef", Some(&[Oid, Boolean]), Shape::Text, "Query of a view.", view_definition),
    system("pg_get_functiondef", Some(&[Oid]), Shape::Text, "NULL.", nothing),
    system("pg_get_function_result", Some(&[Oid]), Shape::Text, "Type of a function's result.", |_, args| {
        Ok(int(args, 0).and_then(procedures::result).into())
    }),
    system(
        "pg_get_function_arguments",
        Some(&[Oid]),
        Shape::Text,
        "Types of a function's arguments.",
        |_, args| Ok(int(args, 0).and_then(procedures::arguments).into()),
    ),
    system(
        "pg_get_function_identity_arguments",
        Some(&[Oid]),
        Shape::Text,
        "Types of a function's arguments.",
        |_, args| Ok(int(args, 0).and_then(procedures::arguments).into()),
    ),
    system("pg_get_function_sqlbody", Some(&[Oid]), Shape::Text, "NULL.", nothing),
    system("pg_get_ruledef", Some(&[Oid, Boolean]), Shape::Text, "NULL.", nothing),
    system("pg_get_triggerdef", Some(&[Oid, Boolean]), Shape::Text, "NULL.", nothing),
    system("pg_get_partkeydef", Some(&[Oid]), Shape::Text, "NULL.", nothing),
    system("pg_get_statisticsobjdef", Some(&[Oid]), Shape::Text, "NULL.", nothing),
    system("pg_get_statisticsobjdef_columns", Some(&[Oid]), Shape::Text, "NULL.", nothing),
    system(
        "pg_get_serial_sequence",
        Some(&[Text, Text]),
        Shape::Text,
        "Name of the sequence of a column.",
        serial_sequence,
    ),
    system("cairn_sequence_number", None, Shape::Big, "", |world, args| {
        let column = text(args, 1).unwrap_or_default();
        Ok(int(args, 0).and_then(|oid| sequences::number(&world.facts, oid, &column)).into())
    }),
    system("cairn_sequence_cycles", None, Shape::Bool, "", |world, args| {
        Ok(int(args, 0).and_then(|oid| sequences::cycles(&world.facts, oid)).into())
    }),
    system("pg_tablespace_location", Some(&[Oid]), Shape::Text, "Empty.", |_, _| Ok("".into())),
    system("pg_relation_is_publishable", Some(&[Oid]), Shape::Bool, "True.", |_, _| Ok(true.into())),
    system("obj_description", Some(&[Oid, Name]), Shape::Text, "Comment on an object.", |world, args| {
        let class = text(args, 1);
        let found = int(args, 0).and_then(|oid| descriptions::of_object(world, oid, class.as_deref()));
        Ok(found.into())
    }),
    system("col_description", Some(&[Oid, Integer]), Shape::Text, "Comment on a column.", |world, args| {
        let column = int(args, 0).zip(int(args, 1));
        Ok(column.and_then(|(oid, number)| descriptions::of_column(world, oid, number)).into())
    }),
    system("shobj_description", Some(&[Oid, Name]), Shape::Text, "Comment on a database.", |world, args| {
        let found = int(args, 0).filter(|oid| *oid == oids::DATABASE);
        Ok(found.and_then(|oid| descriptions::of_object(world, oid, Some("pg_database"))).into())
    }),
    system(
        "pg_table_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        is_visible,
    ),
    system(
        "pg_type_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        |_, args| Ok(int(args, 0).map(|oid| type_by_oid(oid).is_some()).into()),
    ),
    system(
        "pg_function_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_operator_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_opclass_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_opfamily_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_collation_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_conversion_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_statistics_obj_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "pg_ts_config_is_visible",
        Some(&[Oid]),
        Shape::Bool,
        "Whether an object is found without its schema.",
        visible,
    ),
    system(
        "has_table_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_any_column_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_column_privilege",
        Some(&[Oid, Text, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_schema_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_database_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_function_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_sequence_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_tablespace_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "has_type_privilege",
        Some(&[Oid, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system(
        "pg_has_role",
        Some(&[Name, Text]),
        Shape::Bool,
        "True: the only user may do everything.",
        allowed,
    ),
    system("pg_relation_size", Some(&[Oid]), Shape::Big, "Estimated size of a table in bytes.", size),
    system("pg_total_relation_size", Some(&[Oid]), Shape::Big, "Estimated size of a table in bytes.", size),
    system("pg_table_size", Some(&[Oid]), Shape::Big, "Estimated size of a table in bytes.", size),
    system("pg_indexes_size", Some(&[Oid]), Shape::Big, "Estimated size of a table in bytes.", size),
    system(
        "pg_database_size",
        Some(&[Name]),
        Shape::Big,
        "Estimated size of the database in bytes.",
        |world, _| Ok(super::row::tables(&world.catalog).map(|table| size_of(table)).sum::<i64>().into()),
    ),
    system("pg_size_pretty", Some(&[BigInt]), Shape::Text, "Size in a unit that suits it.", |_, args| {
        Ok(int(args, 0).map(pretty).into())
    }),
    system("to_regclass", Some(&[Text]), Shape::Text, "Name of a relation, if it exists.", |world, args| {
        Ok(text(args, 0).and_then(|name| class_oid(world, &name)).map(|oid| class_name(world, oid)).into())
    }),
    system("to_regtype", Some(&[Text]), Shape::Big, "OID of a type, if it exists.", |_, args| {
        Ok(text(args, 0).and_then(|name| type_oid(&name)).into())
    }),
    system(
        "to_regnamespace",
        Some(&[Text]),
        Shape::Text,
        "Name of a schema, if it exists.",
        |world, args| Ok(text(args, 0).filter(|name| oids::namespace(&world.catalog, name) != 0).into()),
    ),
    // Casts to the `reg` types become calls of these: an object's OID from its name or OID, and its
    // name.
    system("cairn_regclass_oid", None, Shape::Big, "", |world, args| {
        reg_oid(args, "relation", |name| class_oid(world, name))
    }),
    system("cairn_regclass_name", None, Shape::Text, "", |world, args| {
        let oid = reg_oid(args, "relation", |name| class_oid(world, name))?;
        Ok(oid.int().map(|oid| class_name(world, oid)).into())
    }),
    system("cairn_regtype_oid", None, Shape::Big, "", |_, args| reg_oid(args, "type", type_oid)),
    system("cairn_regtype_name", None, Shape::Text, "", |_, args| {
        Ok(reg_oid(args, "type", type_oid)?.int().map(|oid| define::format_type(oid, None)).into())
    }),
    system("cairn_regnamespace_oid", None, Shape::Big, "", |world, args| {
        reg_oid(args, "schema", |name| Some(oids::namespace(&world.catalog, name)).filter(|oid| *oid != 0))
    }),
    system("cairn_regnamespace_name", None, Shape::Text, "", |world, args| {
        let schemas = ["pg_catalog", "information_schema", "pg_toast"]
            .into_iter()
            .chain(super::row::schemas(&world.catalog));
        let found = int(args, 0)
            .and_then(|oid| schemas.into_iter().find(|name| oids::namespace(&world.catalog, name) == oid));
        Ok(found.map(str::to_owned).or_else(|| text(args, 0)).into())
    }),
    system("cairn_regrole_oid", None, Shape::Big, "", |_, _| Ok(oids::USER.into())),
    system("cairn_regrole_name", None, Shape::Text, "", |world, _| Ok((&world.facts.user).into())),
    system("cairn_array_text", None, Shape::Text, "", |_, args| Ok(text(args, 0).into())),
    system("cairn_no_texts", None, Shape::Texts, "", |_, _| Ok(Vec::<String>::new().into())),
    system("cairn_positions", None, Shape::Bigs, "", |_, args| {
        Ok(length(args).map(|count| (1..=count).collect::<Vec<i64>>()).into())
    }),
    system("cairn_positions0", None, Shape::Bigs, "", |_, args| {
        Ok(length(args).map(|count| (0..count).collect::<Vec<i64>>()).into())
    }),
    system(
        "json_build_object",
        Some(&[Any]),
        Shape::Text,
        "JSON object of keys and values in turn.",
        |_, args| Ok(object(args).into()),
    ),
    system(JSON, None, Shape::Text, "", |_, args| Ok(text(args, 0).into())),
    system("pg_my_temp_schema", Some(&[]), Shape::Big, "0.", |_, _| Ok(0.into())),
    system("pg_is_other_temp_schema", Some(&[Oid]), Shape::Bool, "False.", |_, _| Ok(false.into())),
];

fn int(args: &[Cell], at: usize) -> Option<i64> {
    args.get(at).and_then(Cell::int)
}

fn text(args: &[Cell], at: usize) -> Option<String> {
    args.get(at).and_then(Cell::text)
}

fn is_true(args: &[Cell], at: usize) -> bool {
    match args.get(at) {
        Some(Cell::Bool(value)) => *value,
        Some(Cell::Text(text)) => matches!(text.as_str(), "t" | "true"),
        _ => false,
    }
}

fn nothing(_: &World, _: &[Cell]) -> Result<Cell> {
    Ok(Cell::Null)
}

fn visible(_: &World, args: &[Cell]) -> Result<Cell> {
    Ok(int(args, 0).map(|_| true).into())
}

/// The only user may do everything.
fn allowed(_: &World, args: &[Cell]) -> Result<Cell> {
    Ok(if args.iter().any(Cell::is_null) { Cell::Null } else { true.into() })
}

fn failure(sqlstate: &'static str, what: String) -> Error {
    Error::new(sqlstate, what)
}

/// Returns the namespaces of the search path that exist.
fn searched(world: &World) -> Vec<String> {
    world.facts.search_path.iter().filter(|schema| world.catalog.has_schema(schema)).cloned().collect()
}

fn current_schemas(world: &World, args: &[Cell]) -> Result<Cell> {
    let implicit = matches!(args.first(), Some(Cell::Bool(true))).then(|| "pg_catalog".to_owned());
    Ok(implicit.into_iter().chain(searched(world)).collect::<Vec<String>>().into())
}

fn current_setting(world: &World, args: &[Cell]) -> Result<Cell> {
    let Some(name) = text(args, 0) else { return Ok(Cell::Null) };
    let lower = name.to_ascii_lowercase();
    match world.facts.changes.value(&lower).or_else(|| world.facts.settings.get(&lower).cloned()) {
        Some(value) => Ok(value.into()),
        None if matches!(args.get(1), Some(Cell::Bool(true))) => Ok(Cell::Null),
        None => Err(failure(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))),
    }
}

fn set_config(world: &World, args: &[Cell]) -> Result<Cell> {
    let (Some(name), value) = (text(args, 0), text(args, 1).unwrap_or_default()) else {
        return Ok(Cell::Null);
    };
    let is_local = matches!(args.get(2), Some(Cell::Bool(true)));
    let name = name.to_ascii_lowercase();
    world.facts.changes.add(SettingChange { name, value: value.clone(), is_local });
    Ok(value.into())
}

fn serial_sequence(world: &World, args: &[Cell]) -> Result<Cell> {
    let (Some(table), Some(column)) = (text(args, 0), text(args, 1)) else { return Ok(Cell::Null) };
    let Some(oid) = class_oid(world, &table) else {
        return Err(failure(UNDEFINED_TABLE, format!("relation \"{table}\" does not exist")));
    };
    let has = |other: &cairn_table::Table| {
        oids::relation(other.id()) == oid && other.def().columns.iter().any(|other| other.name == column)
    };
    if !world.catalog.tables().any(|table| has(table)) {
        let what = format!("column \"{column}\" of relation \"{table}\" does not exist");
        return Err(failure(UNDEFINED_COLUMN, what));
    }
    Ok(sequences::of_column(&world.catalog, &world.facts, oid, &column).into())
}

fn index_definition(world: &World, args: &[Cell]) -> Result<Cell> {
    let Some((table, index)) = int(args, 0).and_then(|oid| define::find_index(&world.catalog, oid)) else {
        return Ok(Cell::Null);
    };
    let def = table.def();
    Ok(match int(args, 1).filter(|_| args.len() > 1) {
        None | Some(0) => {
            let visible: &[String] = if is_true(args, 2) { &world.facts.search_path } else { &[] };
            define::index(def, &index, &define::table_name(def, visible)).into()
        }
        Some(at) => {
            let places: Vec<usize> =
                index.columns.iter().map(|key| key.column).chain(index.include.iter().copied()).collect();
            let column = usize::try_from(at - 1).ok().and_then(|at| places.get(at));
            column.map(|column| define::column_name(def, *column)).unwrap_or_default().into()
        }
    })
}

fn view_definition(world: &World, args: &[Cell]) -> Result<Cell> {
    let oid = match (int(args, 0), text(args, 0)) {
        (Some(oid), _) => Some(oid),
        (None, Some(name)) => class_oid(world, &name),
        (None, None) => None,
    };
    let view = oid.and_then(|oid| world.catalog.views().find(|(id, _)| oids::relation(*id) == oid));
    Ok(view.map(|(_, view)| format!(" {};", view.query.trim_end_matches([';', ' ']))).into())
}

/// Evaluates a cast to a `reg` type: a number is taken as it is, a name is looked up.
fn reg_oid(args: &[Cell], what: &str, find: impl Fn(&str) -> Option<i64>) -> Result<Cell> {
    match args.first() {
        None | Some(Cell::Null) => Ok(Cell::Null),
        Some(Cell::Text(name)) if name.trim() == "-" => Ok(0.into()),
        Some(Cell::Text(name)) if name.trim().parse::<i64>().is_err() => match find(name) {
            Some(oid) => Ok(oid.into()),
            None => {
                let sqlstate = if what == "relation" { UNDEFINED_TABLE } else { UNDEFINED_OBJECT };
                Err(failure(sqlstate, format!("{what} \"{name}\" does not exist")))
            }
        },
        Some(other) => Ok(other.int().into()),
    }
}

fn is_visible(world: &World, args: &[Cell]) -> Result<Cell> {
    let Some(oid) = int(args, 0) else { return Ok(Cell::Null) };
    Ok(class(world, oid)
        .map(|(schema, _)| schema == "pg_catalog" || world.facts.search_path.contains(&schema))
        .into())
}

/// Estimates the size of a table in bytes, from the width of its rows as far as that is known.
fn size_of(table: &cairn_table::Table) -> i64 {
    let width = |at: usize, column: &cairn_table::schema::ColumnDef| {
        let known = table
            .statistics()
            .and_then(|statistics| statistics.columns.get(at))
            .map(|column| column.average_width as usize);
        column.kind.kind.width().or(known).unwrap_or(32)
    };
    let row: usize = table.def().columns.iter().enumerate().map(|(at, column)| width(at, column)).sum();
    (table.rows() as i64).saturating_mul(row as i64 + 12)
}

fn size(world: &World, args: &[Cell]) -> Result<Cell> {
    let oid = match args.first() {
        Some(Cell::Text(name)) if name.parse::<i64>().is_err() => class_oid(world, name),
        _ => int(args, 0),
    };
    let table = oid.and_then(|oid| world.catalog.tables().find(|table| oids::relation(table.id()) == oid));
    Ok(match (oid, table) {
        (None, _) => Cell::Null,
        (_, table) => table.map_or(0, |table| size_of(table)).into(),
    })
}

fn pretty(bytes: i64) -> String {
    let mut value = bytes;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if value.abs() < 10 * 1024 {
            return format!("{value} {unit}");
        }
        value = (value + 512) / 1024;
    }
    format!("{value} PB")
}

fn length(args: &[Cell]) -> Option<i64> {
    match args.first() {
        Some(Cell::Ints(values)) => Some(values.len() as i64),
        Some(Cell::Texts(values)) => Some(values.len() as i64),
        _ => None,
    }
}

fn object(args: &[Cell]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let value = |cell: &Cell| match cell {
        Cell::Null => "null".to_owned(),
        Cell::Text(text) => quoted(text),
        other => other.text().unwrap_or_default(),
    };
    let pairs = args.chunks(2).map(|pair| {
        format!(
            "{} : {}",
            quoted(&pair.first().and_then(Cell::text).unwrap_or_default()),
            pair.get(1).map_or_else(|| "null".to_owned(), value)
        )
    });
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
}
