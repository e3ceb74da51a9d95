//! The rows of the relations in `information_schema`. Relations that are not listed here are empty.

use cairn_table::schema::{ColumnDef, Referential, TableDef};
use cairn_table::{Catalog, Table};

use super::facts::SessionFacts;
use super::relations::{relations, type_by_oid};
use super::row::{self, Row, row};
use super::{define, sequences};

/// The rows of a relation.
pub(super) fn rows(name: &str, catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let db = &facts.database;
    match name {
        "schemata" => ["pg_catalog", "information_schema"].into_iter().chain(row::schemas(catalog))
            .map(|name| row! { "catalog_name": db, "schema_name": name, "schema_owner": &facts.user }).collect(),
        "information_schema_catalog_name" => vec![row! { "catalog_name": db }],
        "tables" => tables(catalog, db),
        "columns" => columns(catalog, facts),
        "views" => catalog.views().map(|(_, view)| row! {
            "table_catalog": db, "table_schema": &view.schema, "table_name": &view.name, "view_definition": &view.query, "check_option": "NONE", "is_updatable": "NO", "is_insertable_into": "NO",
            "is_trigger_updatable": "NO", "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO",
        }).collect(),
        "table_constraints" => each(catalog, |table, to| {
            let def = table.def();
            to.extend(named(def).into_iter().map(|constraint| {
                let mut row = of(db, def, &constraint);
                row.extend(row! { "table_catalog": db, "table_schema": &def.schema, "table_name": &def.name, "constraint_type": constraint.kind, "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES" });
                row
            }));
        }),
        "key_column_usage" => each(catalog, |table, to| {
            let def = table.def();
            for constraint in named(def) {
                to.extend(constraint.columns.iter().enumerate().map(|(at, column)| {
                    let mut row = of(db, def, &constraint);
                    let there = (constraint.kind == "FOREIGN KEY").then_some(at + 1);
                    row.extend(row! { "table_catalog": db, "table_schema": &def.schema, "table_name": &def.name, "column_name": name_of(def, *column), "ordinal_position": at + 1, "position_in_unique_constraint": there });
                    row
                }));
            }
        }),
        "constraint_column_usage" => each(catalog, |table, to| usage(catalog, table.def(), db, to)),
        "referential_constraints" => each(catalog, |table, to| references(catalog, table.def(), db, to)),
        "check_constraints" => each(catalog, |table, to| {
            let def = table.def();
            to.extend(def.checks.iter().map(|check| row! { "constraint_catalog": db, "constraint_schema": &def.schema, "constraint_name": &check.name, "check_clause": format!("({})", check.expression) }));
            to.extend(def.columns.iter().filter(|column| !column.nullable).map(|column| row! {
                "constraint_catalog": db, "constraint_schema": &def.schema, "constraint_name": format!("{}_{}_not_null", def.name, column.name), "check_clause": format!("{} IS NOT NULL", column.name),
            }));
        }),
        "character_sets" => vec![row! { "character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8", "default_collate_catalog": db, "default_collate_schema": "pg_catalog", "default_collate_name": "C" }],
        "enabled_roles" => vec![row! { "role_name": &facts.user }],
        "sequences" => sequences::information(catalog, facts),
        "table_privileges" | "role_table_grants" => each(catalog, |table, to| {
            let privileges = ["INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
            to.extend(privileges.into_iter().map(|privilege| row! {
                "grantor": &facts.user, "grantee": &facts.user, "table_catalog": db, "table_schema": &table.def().schema, "table_name": &table.def().name, "privilege_type": privilege,
                "is_grantable": "YES", "with_hierarchy": if privilege == "SELECT" { "YES" } else { "NO" },
            }));
        }),
        _ => Vec::new(),
    }
}

fn each(catalog: &Catalog, mut take: impl FnMut(&Table, &mut Vec<Row>)) -> Vec<Row> {
    let mut all = Vec::new();
    row::tables(catalog).for_each(|table| take(table, &mut all));
    all
}

fn name_of(def: &TableDef, column: usize) -> Option<&String> {
    def.columns.get(column).map(|column| &column.name)
}

fn tables(catalog: &Catalog, db: &str) -> Vec<Row> {
    let row = |schema: &str, name: &str, is_view: bool, writable: bool| {
        row! {
            "table_catalog": db, "table_schema": schema, "table_name": name, "table_type": if is_view { "VIEW" } else { "BASE TABLE" },
            "is_insertable_into": if writable { "YES" } else { "NO" }, "is_typed": "NO",
        }
    };
    let tables = row::tables(catalog).map(|table| row(&table.def().schema, &table.def().name, false, true));
    let views = catalog.views().map(|(_, view)| row(&view.schema, &view.name, true, false));
    tables
        .chain(views)
        .chain(
            relations()
                .iter()
                .map(|relation| row(relation.schema, relation.name, relation.kind == "v", false)),
        )
        .collect()
}

fn columns(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let db = &facts.database;
    let mut all = each(catalog, |table, to| {
        let def = table.def();
        to.extend(def.columns.iter().enumerate().map(|(at, of)| {
            let mut row = column(db, (&def.schema, &def.name), at, of);
            row.extend(sequences::identity(facts, def, of));
            row
        }));
    });
    for (id, view) in catalog.views() {
        all.extend(row::view_columns(facts, id, view).into_iter().enumerate().map(|(at, (name, kind))| {
            let mut row = column(
                db,
                (&view.schema, &view.name),
                at,
                &ColumnDef { name, kind, nullable: true, default: None, identity: None },
            );
            row.extend(row! { "is_updatable": "NO" });
            row
        }));
    }
    all
}

/// Returns the precision of a numeric type, its scale, and the base of both (2 or 10).
fn precision(oid: i64, column: &ColumnDef) -> Option<(i64, Option<i64>, i64)> {
    match (oid, column.kind.decimal) {
        (21, _) => Some((16, Some(0), 2)),
        (23, _) => Some((32, Some(0), 2)),
        (20, _) => Some((64, Some(0), 2)),
        (700, _) => Some((24, None, 2)),
        (701, _) => Some((53, None, 2)),
        (1700, Some((precision, scale))) => Some((precision.into(), Some(scale.into()), 10)),
        _ => None,
    }
}

fn column(db: &str, (schema, table): (&str, &str), at: usize, column: &ColumnDef) -> Row {
    let (oid, _) = define::type_of(&column.kind);
    let numbers = precision(oid, column);
    let octets = match (oid, column.kind.length) {
        (25, _) => Some(1_073_741_824),
        (1043, Some(length)) => Some(i64::from(length) * 4),
        _ => None,
    };
    let characters = column.kind.length.filter(|_| octets.is_some()).map(i64::from);
    let digits = match oid {
        1082 => Some(0),
        1083 | 1114 | 1184 => Some(column.kind.length.map_or(6, i64::from)),
        1186 => Some(6_i64),
        _ => None,
    };
    row! {
        "table_catalog": db, "table_schema": schema, "table_name": table, "column_name": &column.name, "ordinal_position": at + 1, "column_default": define::default_of(column),
        "is_nullable": if column.nullable { "YES" } else { "NO" }, "data_type": define::format_type(oid, None), "character_maximum_length": characters,
        "character_octet_length": octets, "numeric_precision": numbers.map(|(precision, ..)| precision), "numeric_precision_radix": numbers.map(|(.., radix)| radix),
        "numeric_scale": numbers.and_then(|(_, scale, _)| scale), "datetime_precision": digits,
        "udt_catalog": db, "udt_schema": "pg_catalog", "udt_name": type_by_oid(oid).map(|kind| kind.name), "dtd_identifier": (at + 1).to_string(), "is_self_referencing": "NO",
        "is_identity": if column.identity.is_some() { "YES" } else { "NO" }, "identity_generation": column.identity.map(|identity| identity.to_string()), "identity_cycle": "NO", "is_generated": "NEVER", "is_updatable": "YES",
    }
}

/// The parts common to all kinds of constraints.
struct Named {
    name: String,
    kind: &'static str,
    columns: Vec<usize>,
}

fn named(def: &TableDef) -> Vec<Named> {
    let primary = (!def.primary_key.is_empty()).then(|| Named {
        name: define::primary_name(def),
        kind: "PRIMARY KEY",
        columns: def.primary_key.iter().map(|key| key.column).collect(),
    });
    let unique = def.indexes.iter().filter(|index| index.is_constraint).map(|index| Named {
        name: index.name.clone(),
        kind: "UNIQUE",
        columns: index.columns.iter().map(|key| key.column).collect(),
    });
    let foreign = def.foreign_keys.iter().map(|key| Named {
        name: key.name.clone(),
        kind: "FOREIGN KEY",
        columns: key.columns.clone(),
    });
    let checks =
        def.checks.iter().map(|check| Named { name: check.name.clone(), kind: "CHECK", columns: Vec::new() });
    let filled = def.columns.iter().filter(|column| !column.nullable).map(|column| Named {
        name: format!("{}_{}_not_null", def.name, column.name),
        kind: "CHECK",
        columns: Vec::new(),
    });
    primary.into_iter().chain(unique).chain(foreign).chain(checks).chain(filled).collect()
}

fn of(db: &str, def: &TableDef, constraint: &Named) -> Row {
    row! { "constraint_catalog": db, "constraint_schema": &def.schema, "constraint_name": &constraint.name }
}

fn usage(catalog: &Catalog, def: &TableDef, db: &str, to: &mut Vec<Row>) {
    let mut push = |name: &str, table: &TableDef, columns: &[usize]| {
        to.extend(columns.iter().map(|column| row! {
            "table_catalog": db, "table_schema": &table.schema, "table_name": &table.name, "column_name": name_of(table, *column), "constraint_catalog": db,
            "constraint_schema": &def.schema, "constraint_name": name,
        }));
    };
    named(def)
        .iter()
        .filter(|constraint| constraint.kind != "FOREIGN KEY")
        .for_each(|constraint| push(&constraint.name, def, &constraint.columns));
    for key in &def.foreign_keys {
        if let Some(there) = catalog.table_by_id(key.table) {
            push(&key.name, there.def(), &key.references);
        }
    }
}

fn references(catalog: &Catalog, def: &TableDef, db: &str, to: &mut Vec<Row>) {
    let rule = |action: Referential| match action {
        Referential::NoAction => "NO ACTION",
        Referential::Restrict => "RESTRICT",
        Referential::Cascade => "CASCADE",
        Referential::SetNull => "SET NULL",
        Referential::SetDefault => "SET DEFAULT",
    };
    for key in &def.foreign_keys {
        let Some(there) = catalog.table_by_id(key.table).map(|table| table.def()) else { continue };
        let unique = named(there).into_iter().find(|constraint| {
            matches!(constraint.kind, "PRIMARY KEY" | "UNIQUE") && constraint.columns == key.references
        });
        to.push(row! {
            "constraint_catalog": db, "constraint_schema": &def.schema, "constraint_name": &key.name, "unique_constraint_catalog": db, "unique_constraint_schema": &there.schema,
            "unique_constraint_name": unique.map(|constraint| constraint.name), "match_option": "NONE", "update_rule": rule(key.on_update), "delete_rule": rule(key.on_delete),
        });
    }
}
