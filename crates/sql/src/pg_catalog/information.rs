//! `information_schema`.

use cairn_table::row::Type;
use cairn_table::schema::{ColumnDef, Referential, TableDef};

use super::System;
use super::system::OWNER_NAME;
use super::table::{Cell, NULL, Relation};
use super::text::view_def;
use super::types::{TYPES, oid_of};
use crate::types::name_of;

pub(super) fn table(system: &System, name: &str) -> Option<Relation> {
    Some(match name {
        "schemata" => {
            let mut all = Relation::of(
                "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema default_character_set_name sql_path",
            );
            for (name, _) in system.schemas() {
                all.push_named(&[
                    ("catalog_name", system.database.as_str().into()),
                    ("schema_name", name.into()),
                    ("schema_owner", OWNER_NAME.into()),
                ]);
            }
            all
        }
        "tables" => tables(system),
        "columns" => columns(system),
        "views" => {
            let mut all = Relation::of(
                "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into is_trigger_updatable is_trigger_deletable is_trigger_insertable_into",
            );
            for (_, view) in system.catalog.views() {
                all.push_named(&[
                    ("table_catalog", system.database.as_str().into()),
                    ("table_schema", view.schema.as_str().into()),
                    ("table_name", view.name.as_str().into()),
                    ("view_definition", view_def(view).into()),
                    ("check_option", "NONE".into()),
                    ("is_updatable", "NO".into()),
                    ("is_insertable_into", "NO".into()),
                ]);
            }
            all
        }
        "sequences" => {
            let mut all = Relation::of(
                "sequence_catalog sequence_schema sequence_name data_type numeric_precision:n numeric_precision_radix:n numeric_scale:n start_value minimum_value maximum_value increment cycle_option",
            );
            for ((schema, name), of) in &system.sequences {
                let number = |value: i64| -> Cell { value.to_string().into() };
                all.push(vec![
                    system.database.as_str().into(),
                    schema.as_str().into(),
                    name.as_str().into(),
                    "bigint".into(),
                    64i64.into(),
                    2i64.into(),
                    0i64.into(),
                    number(of.start),
                    number(of.minimum),
                    number(of.maximum),
                    number(of.increment),
                    if of.cycles { "YES" } else { "NO" }.into(),
                ]);
            }
            all
        }
        "table_constraints"
        | "key_column_usage"
        | "referential_constraints"
        | "constraint_column_usage"
        | "check_constraints" => constraints(system, name),
        "routines" => Relation::of(
            "specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name routine_type data_type",
        ),
        "triggers" => Relation::of(
            "trigger_catalog trigger_schema trigger_name event_manipulation event_object_schema event_object_table action_statement action_timing",
        ),
        "character_sets" => Relation::of("character_set_catalog character_set_schema character_set_name"),
        "table_privileges" | "role_table_grants" => Relation::of(
            "grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy",
        ),
        "element_types" | "domains" | "parameters" | "user_defined_types" => {
            Relation::of("object_catalog object_schema object_name data_type")
        }
        _ => return None,
    })
}

fn tables(system: &System) -> Relation {
    let mut all = Relation::of(
        "table_catalog table_schema table_name table_type self_referencing_column_name reference_generation user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed commit_action",
    );
    let mut push = |schema: &str, name: &str, kind: &str, insertable: &str| {
        all.push_named(&[
            ("table_catalog", system.database.as_str().into()),
            ("table_schema", schema.into()),
            ("table_name", name.into()),
            ("table_type", kind.into()),
            ("is_insertable_into", insertable.into()),
            ("is_typed", "NO".into()),
        ]);
    };
    for table in system.tables() {
        push(&table.def().schema, &table.def().name, "BASE TABLE", "YES");
    }
    for (_, view) in system.catalog.views() {
        push(&view.schema, &view.name, "VIEW", "NO");
    }
    all
}

fn columns(system: &System) -> Relation {
    let mut all = Relation::of(
        "table_catalog table_schema table_name column_name ordinal_position:n column_default is_nullable data_type character_maximum_length:n \
         character_octet_length:n numeric_precision:n numeric_precision_radix:n numeric_scale:n datetime_precision:n interval_type interval_precision:n \
         character_set_name collation_name domain_name udt_catalog udt_schema udt_name dtd_identifier is_self_referencing is_identity identity_generation \
         is_generated generation_expression is_updatable",
    );
    let mut push = |schema: &str, table: &str, at: usize, column: &ColumnDef| {
        let kind = &column.kind;
        let oid = oid_of(kind);
        let udt = TYPES.iter().find(|(other, ..)| *other == oid).map_or("text", |(_, name, ..)| name);
        let (precision, radix, scale): (Cell, Cell, Cell) = match kind.kind {
            Type::SmallInt => (16i64.into(), 2i64.into(), 0i64.into()),
            Type::Int => (32i64.into(), 2i64.into(), 0i64.into()),
            Type::BigInt => (64i64.into(), 2i64.into(), 0i64.into()),
            Type::Real => (24i64.into(), 2i64.into(), NULL),
            Type::Double => (53i64.into(), 2i64.into(), NULL),
            Type::Decimal => {
                let (precision, scale) = kind.decimal.unwrap_or((38, 0));
                (i64::from(precision).into(), 10i64.into(), i64::from(scale).into())
            }
            _ => (NULL, NULL, NULL),
        };
        let time = match kind.kind {
            Type::Date => 0i64.into(),
            Type::Time | Type::Timestamp | Type::Interval => 6i64.into(),
            _ => NULL,
        };
        all.push_named(&[
            ("table_catalog", system.database.as_str().into()),
            ("table_schema", schema.into()),
            ("table_name", table.into()),
            ("column_name", column.name.as_str().into()),
            ("ordinal_position", (at + 1).into()),
            ("column_default", column.default.as_deref().into()),
            ("is_nullable", if column.nullable { "YES" } else { "NO" }.into()),
            ("data_type", name_of(kind).into()),
            ("character_maximum_length", kind.length.into()),
            ("character_octet_length", kind.length.map(|length| i64::from(length) * 4).into()),
            ("numeric_precision", precision),
            ("numeric_precision_radix", radix),
            ("numeric_scale", scale),
            ("datetime_precision", time),
            ("interval_precision", NULL),
            ("udt_catalog", system.database.as_str().into()),
            ("udt_schema", "pg_catalog".into()),
            ("udt_name", udt.into()),
            ("dtd_identifier", (at + 1).to_string().into()),
            ("is_self_referencing", "NO".into()),
            ("is_identity", "NO".into()),
            ("is_generated", "NEVER".into()),
            ("is_updatable", "YES".into()),
        ]);
    };
    for table in system.tables() {
        for (at, column) in table.def().columns.iter().enumerate() {
            push(&table.def().schema, &table.def().name, at, column);
        }
    }
    for (_, view) in system.catalog.views() {
        for (at, name) in view.columns.iter().enumerate() {
            let column =
                ColumnDef { name: name.clone(), kind: Type::Text.into(), nullable: true, default: None };
            push(&view.schema, &view.name, at, &column);
        }
    }
    all
}

/// A constraint that columns are part of.
struct Keyed<'a> {
    name: &'a str,
    kind: &'static str,
    columns: Vec<usize>,
    /// What it refers to: a table and its columns.
    refers: Option<(u32, &'a [usize])>,
    rules: (Referential, Referential),
}

fn keyed(def: &TableDef) -> Vec<Keyed<'_>> {
    let none = (Referential::Restrict, Referential::Restrict);
    let own = def.primary_key_name.iter().map(|name| {
        let columns = def.primary_key.iter().map(|key| key.column).collect();
        Keyed { name, kind: "PRIMARY KEY", columns, refers: None, rules: none }
    });
    let unique = def.indexes.iter().filter(|index| index.is_constraint).map(|index| {
        let columns = index.columns.iter().map(|key| key.column).collect();
        Keyed { name: &index.name, kind: "UNIQUE", columns, refers: None, rules: none }
    });
    let foreign = def.foreign_keys.iter().map(|key| Keyed {
        name: &key.name,
        kind: "FOREIGN KEY",
        columns: key.columns.clone(),
        refers: Some((key.table, &key.references)),
        rules: (key.on_update, key.on_delete),
    });
    own.chain(unique).chain(foreign).collect()
}

fn rule(rule: Referential) -> &'static str {
    match rule {
        Referential::Restrict => "NO ACTION",
        Referential::Cascade => "CASCADE",
        Referential::SetNull => "SET NULL",
        Referential::SetDefault => "SET DEFAULT",
    }
}

fn constraints(system: &System, which: &str) -> Relation {
    let mut all = Relation::of(match which {
        "table_constraints" => {
            "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name constraint_type is_deferrable initially_deferred enforced"
        }
        "key_column_usage" => {
            "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name ordinal_position:n position_in_unique_constraint:n"
        }
        "referential_constraints" => {
            "constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option update_rule delete_rule"
        }
        "constraint_column_usage" => {
            "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name"
        }
        _ => "constraint_catalog constraint_schema constraint_name check_clause",
    });
    for table in system.tables() {
        let def = table.def();
        let place = |name: &str| -> Vec<(&'static str, Cell)> {
            vec![
                ("constraint_catalog", system.database.as_str().into()),
                ("constraint_schema", def.schema.as_str().into()),
                ("constraint_name", name.into()),
                ("table_catalog", system.database.as_str().into()),
                ("table_schema", def.schema.as_str().into()),
                ("table_name", def.name.as_str().into()),
            ]
        };
        for key in keyed(def) {
            let mut row = place(key.name);
            match which {
                "table_constraints" => row.extend([
                    ("constraint_type", key.kind.into()),
                    ("is_deferrable", "NO".into()),
                    ("initially_deferred", "NO".into()),
                    ("enforced", "YES".into()),
                ]),
                "key_column_usage" => {
                    for (at, column) in key.columns.iter().filter_map(|&at| def.columns.get(at)).enumerate() {
                        let mut row = place(key.name);
                        let other: Cell = if key.refers.is_some() { (at + 1).into() } else { NULL };
                        row.extend([
                            ("column_name", column.name.as_str().into()),
                            ("ordinal_position", (at + 1).into()),
                            ("position_in_unique_constraint", other),
                        ]);
                        all.push_named(&row);
                    }
                    continue;
                }
                "referential_constraints" => {
                    let Some((parent, references)) = key.refers else { continue };
                    let parent = system.catalog.table_by_id(parent);
                    let unique = parent.and_then(|parent| {
                        let same = |columns: &[usize]| {
                            columns.len() == references.len()
                                && columns.iter().all(|column| references.contains(column))
                        };
                        keyed(parent.def())
                            .into_iter()
                            .find(|key| key.refers.is_none() && same(&key.columns))
                            .map(|key| key.name.to_owned())
                    });
                    row.extend([
                        ("unique_constraint_catalog", system.database.as_str().into()),
                        ("unique_constraint_schema", parent.map(|parent| parent.def().schema.clone()).into()),
                        ("unique_constraint_name", unique.into()),
                        ("match_option", "NONE".into()),
                        ("update_rule", rule(key.rules.0).into()),
                        ("delete_rule", rule(key.rules.1).into()),
                    ]);
                }
                "constraint_column_usage" => {
                    let (of, columns) = match key.refers {
                        Some((parent, references)) => match system.catalog.table_by_id(parent) {
                            Some(parent) => (parent.def(), references.to_vec()),
                            None => continue,
                        },
                        None => (def, key.columns.clone()),
                    };
                    for column in columns.iter().filter_map(|&at| of.columns.get(at)) {
                        let mut row = place(key.name);
                        row.retain(|(name, _)| !name.starts_with("table_"));
                        row.extend([
                            ("table_catalog", system.database.as_str().into()),
                            ("table_schema", of.schema.as_str().into()),
                            ("table_name", of.name.as_str().into()),
                            ("column_name", column.name.as_str().into()),
                        ]);
                        all.push_named(&row);
                    }
                    continue;
                }
                _ => continue,
            }
            all.push_named(&row);
        }
        for check in &def.checks {
            let mut row = place(&check.name);
            match which {
                "table_constraints" => row.extend([
                    ("constraint_type", "CHECK".into()),
                    ("is_deferrable", "NO".into()),
                    ("initially_deferred", "NO".into()),
                    ("enforced", "YES".into()),
                ]),
                "check_constraints" => row.push(("check_clause", check.expression.as_str().into())),
                _ => continue,
            }
            all.push_named(&row);
        }
    }
    all
}
