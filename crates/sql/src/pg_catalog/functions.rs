//! Functions of PostgreSQL's catalogs, which take OIDs and settings.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};

use super::cell::{Cell, Shape, array, cells};
use super::lookup::{class, class_name, class_oid, type_oid};
use super::relations::{data_type, type_by_oid};
use super::{World, define, descriptions, oids, sequences};
use crate::batch::{arrow_error, as_json};
use crate::error::{Error, Result};
use crate::session::SettingChange;
use crate::sqlstate::{UNDEFINED_COLUMN, UNDEFINED_OBJECT, UNDEFINED_TABLE};
use crate::syntax::quote_ident;

/// Marks a text as JSON, for functions that report the type of a column.
pub(super) const JSON: &str = "cairn_json";

type Body = fn(&World, &[Cell]) -> Result<Cell>;

/// A function of the system catalogs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemFunction {
    pub name: &'static str,
    result: Shape,
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

/// Operators in `pg_operator`.
pub(super) const OPERATORS: &[&str] =
    &["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "~", "!~", "~*", "!~*", "||"];

/// The names of the functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, ..)| *name)
}

/// Returns the function of this name; `None` if it is not one of the system's.
pub(crate) fn function(name: &str) -> Option<SystemFunction> {
    let (name, result, body) = FUNCTIONS.iter().find(|(known, ..)| *known == name)?;
    Some(SystemFunction { name, result: *result, body: *body })
}

const FUNCTIONS: &[(&str, Shape, Body)] = &[
    ("version", Shape::Text, |world, _| Ok((&world.facts.version).into())),
    ("current_database", Shape::Text, |world, _| Ok((&world.facts.database).into())),
    ("current_catalog", Shape::Text, |world, _| Ok((&world.facts.database).into())),
    ("current_schema", Shape::Text, |world, _| Ok(searched(world).into_iter().next().into())),
    ("current_schemas", Shape::Texts, current_schemas),
    ("current_user", Shape::Text, |world, _| Ok((&world.facts.user).into())),
    ("session_user", Shape::Text, |world, _| Ok((&world.facts.user).into())),
    ("current_role", Shape::Text, |world, _| Ok((&world.facts.user).into())),
    ("user", Shape::Text, |world, _| Ok((&world.facts.user).into())),
    ("pg_get_userbyid", Shape::Text, |world, args| {
        Ok(match int(args, 0) {
            Some(oids::USER) => (&world.facts.user).into(),
            other => other.map(|oid| format!("unknown (OID={oid})")).into(),
        })
    }),
    ("pg_backend_pid", Shape::Int, |world, _| Ok(world.facts.pid.into())),
    ("pg_is_in_recovery", Shape::Bool, |_, _| Ok(false.into())),
    ("pg_postmaster_start_time", Shape::Time, |world, _| Ok(world.facts.started.into())),
    ("pg_conf_load_time", Shape::Time, |world, _| Ok(world.facts.started.into())),
    ("txid_current", Shape::Big, |world, _| Ok((world.facts.transaction as i64).into())),
    ("pg_current_xact_id", Shape::Big, |world, _| Ok((world.facts.transaction as i64).into())),
    ("inet_server_addr", Shape::Text, nothing),
    ("inet_server_port", Shape::Int, nothing),
    ("inet_client_addr", Shape::Text, nothing),
    ("inet_client_port", Shape::Int, nothing),
    ("current_setting", Shape::Text, current_setting),
    ("set_config", Shape::Text, set_config),
    ("pg_encoding_to_char", Shape::Text, |_, args| {
        Ok(int(args, 0).map(|code| if code == 6 { "UTF8" } else { "" }).into())
    }),
    ("pg_char_to_encoding", Shape::Int, |_, _| Ok(6.into())),
    ("getdatabaseencoding", Shape::Text, |_, _| Ok("UTF8".into())),
    ("pg_client_encoding", Shape::Text, |_, _| Ok("UTF8".into())),
    ("quote_ident", Shape::Text, |_, args| Ok(text(args, 0).map(|name| quote_ident(&name)).into())),
    ("quote_literal", Shape::Text, |_, args| Ok(text(args, 0).map(|text| quote_literal(&text)).into())),
    ("quote_nullable", Shape::Text, |_, args| {
        Ok(text(args, 0).map_or_else(|| "NULL".to_owned(), |text| quote_literal(&text)).into())
    }),
    ("format_type", Shape::Text, |_, args| {
        Ok(int(args, 0).map(|oid| define::format_type(oid, int(args, 1))).into())
    }),
    ("pg_get_expr", Shape::Text, |_, args| Ok(text(args, 0).into())),
    ("pg_get_constraintdef", Shape::Text, |world, args| {
        Ok(int(args, 0)
            .and_then(|oid| {
                define::constraint(&world.catalog, oid, &world.facts.search_path, is_true(args, 1))
            })
            .into())
    }),
    ("pg_get_indexdef", Shape::Text, index_definition),
    ("pg_get_viewdef", Shape::Text, view_definition),
    ("pg_get_functiondef", Shape::Text, nothing),
    ("pg_get_function_result", Shape::Text, |_, _| Ok("text".into())),
    ("pg_get_function_arguments", Shape::Text, |_, _| Ok("".into())),
    ("pg_get_function_identity_arguments", Shape::Text, |_, _| Ok("".into())),
    ("pg_get_function_sqlbody", Shape::Text, nothing),
    ("pg_get_ruledef", Shape::Text, nothing),
    ("pg_get_triggerdef", Shape::Text, nothing),
    ("pg_get_partkeydef", Shape::Text, nothing),
    ("pg_get_statisticsobjdef", Shape::Text, nothing),
    ("pg_get_statisticsobjdef_columns", Shape::Text, nothing),
    ("pg_get_serial_sequence", Shape::Text, serial_sequence),
    ("cairn_sequence_number", Shape::Big, |world, args| {
        let column = text(args, 1).unwrap_or_default();
        Ok(int(args, 0).and_then(|oid| sequences::number(&world.facts, oid, &column)).into())
    }),
    ("cairn_sequence_cycles", Shape::Bool, |world, args| {
        Ok(int(args, 0).and_then(|oid| sequences::cycles(&world.facts, oid)).into())
    }),
    ("pg_tablespace_location", Shape::Text, |_, _| Ok("".into())),
    ("pg_relation_is_publishable", Shape::Bool, |_, _| Ok(true.into())),
    ("obj_description", Shape::Text, |world, args| {
        let class = text(args, 1);
        let found = int(args, 0).and_then(|oid| descriptions::of_object(world, oid, class.as_deref()));
        Ok(found.into())
    }),
    ("col_description", Shape::Text, |world, args| {
        let column = int(args, 0).zip(int(args, 1));
        Ok(column.and_then(|(oid, number)| descriptions::of_column(world, oid, number)).into())
    }),
    ("shobj_description", Shape::Text, |world, args| {
        let found = int(args, 0).filter(|oid| *oid == oids::DATABASE);
        Ok(found.and_then(|oid| descriptions::of_object(world, oid, Some("pg_database"))).into())
    }),
    ("pg_table_is_visible", Shape::Bool, is_visible),
    ("pg_type_is_visible", Shape::Bool, |_, args| {
        Ok(int(args, 0).map(|oid| type_by_oid(oid).is_some()).into())
    }),
    ("pg_function_is_visible", Shape::Bool, visible),
    ("pg_operator_is_visible", Shape::Bool, visible),
    ("pg_opclass_is_visible", Shape::Bool, visible),
    ("pg_opfamily_is_visible", Shape::Bool, visible),
    ("pg_collation_is_visible", Shape::Bool, visible),
    ("pg_conversion_is_visible", Shape::Bool, visible),
    ("pg_statistics_obj_is_visible", Shape::Bool, visible),
    ("pg_ts_config_is_visible", Shape::Bool, visible),
    ("has_table_privilege", Shape::Bool, allowed),
    ("has_any_column_privilege", Shape::Bool, allowed),
    ("has_column_privilege", Shape::Bool, allowed),
    ("has_schema_privilege", Shape::Bool, allowed),
    ("has_database_privilege", Shape::Bool, allowed),
    ("has_function_privilege", Shape::Bool, allowed),
    ("has_sequence_privilege", Shape::Bool, allowed),
    ("has_tablespace_privilege", Shape::Bool, allowed),
    ("has_type_privilege", Shape::Bool, allowed),
    ("pg_has_role", Shape::Bool, allowed),
    ("pg_relation_size", Shape::Big, size),
    ("pg_total_relation_size", Shape::Big, size),
    ("pg_table_size", Shape::Big, size),
    ("pg_indexes_size", Shape::Big, size),
    ("pg_database_size", Shape::Big, |world, _| {
        Ok(super::row::tables(&world.catalog).map(|table| size_of(table)).sum::<i64>().into())
    }),
    ("pg_size_pretty", Shape::Text, |_, args| Ok(int(args, 0).map(pretty).into())),
    ("to_regclass", Shape::Text, |world, args| {
        Ok(text(args, 0).and_then(|name| class_oid(world, &name)).map(|oid| class_name(world, oid)).into())
    }),
    ("to_regtype", Shape::Big, |_, args| Ok(text(args, 0).and_then(|name| type_oid(&name)).into())),
    ("to_regnamespace", Shape::Text, |world, args| {
        Ok(text(args, 0).filter(|name| oids::namespace(&world.catalog, name) != 0).into())
    }),
    // Casts to the `reg` types become calls of these: an object's OID from its name or OID, and its
    // name.
    ("cairn_regclass_oid", Shape::Big, |world, args| {
        reg_oid(args, "relation", |name| class_oid(world, name))
    }),
    ("cairn_regclass_name", Shape::Text, |world, args| {
        let oid = reg_oid(args, "relation", |name| class_oid(world, name))?;
        Ok(oid.int().map(|oid| class_name(world, oid)).into())
    }),
    ("cairn_regtype_oid", Shape::Big, |_, args| reg_oid(args, "type", type_oid)),
    ("cairn_regtype_name", Shape::Text, |_, args| {
        Ok(reg_oid(args, "type", type_oid)?.int().map(|oid| define::format_type(oid, None)).into())
    }),
    ("cairn_regnamespace_oid", Shape::Big, |world, args| {
        reg_oid(args, "schema", |name| Some(oids::namespace(&world.catalog, name)).filter(|oid| *oid != 0))
    }),
    ("cairn_regnamespace_name", Shape::Text, |world, args| {
        let schemas = ["pg_catalog", "information_schema", "pg_toast"]
            .into_iter()
            .chain(super::row::schemas(&world.catalog));
        let found = int(args, 0)
            .and_then(|oid| schemas.into_iter().find(|name| oids::namespace(&world.catalog, name) == oid));
        Ok(found.map(str::to_owned).or_else(|| text(args, 0)).into())
    }),
    ("cairn_regrole_oid", Shape::Big, |_, _| Ok(oids::USER.into())),
    ("cairn_regrole_name", Shape::Text, |world, _| Ok((&world.facts.user).into())),
    ("cairn_array_text", Shape::Text, |_, args| Ok(text(args, 0).into())),
    ("cairn_no_texts", Shape::Texts, |_, _| Ok(Vec::<String>::new().into())),
    ("cairn_positions", Shape::Bigs, |_, args| {
        Ok(length(args).map(|count| (1..=count).collect::<Vec<i64>>()).into())
    }),
    ("cairn_positions0", Shape::Bigs, |_, args| {
        Ok(length(args).map(|count| (0..count).collect::<Vec<i64>>()).into())
    }),
    ("json_build_object", Shape::Text, |_, args| Ok(object(args).into())),
    (JSON, Shape::Text, |_, args| Ok(text(args, 0).into())),
    ("pg_my_temp_schema", Shape::Big, |_, _| Ok(0.into())),
    ("pg_is_other_temp_schema", Shape::Bool, |_, _| Ok(false.into())),
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

fn quote_literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
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
