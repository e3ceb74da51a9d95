//! The rows of the relations in `pg_catalog`. Relations that are not listed here are empty.

use cairn_table::schema::{ColumnDef, ForeignKeyDef, Identity, IndexDef, Referential};
use cairn_table::{Catalog, Table};

use super::cell::Cell;
use super::facts::SessionFacts;
use super::relations::{relations, shape, type_by_name, types};
use super::row::{Row, attribute, indexes_of, row, schemas, tables, view_columns};
use super::{define, descriptions, information, oids, procedures, sequences};

/// The rows of a relation.
pub(super) fn rows(schema: &str, name: &str, catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    if schema == "information_schema" {
        return information::rows(name, catalog, facts);
    }
    match name {
        "pg_class" => classes(catalog, facts),
        "pg_attribute" => attributes(catalog, facts),
        "pg_type" => all_types(),
        "pg_namespace" => namespaces(catalog),
        "pg_index" => indexes(catalog),
        "pg_constraint" => constraints(catalog),
        "pg_attrdef" => defaults(catalog),
        "pg_rewrite" => catalog.views().map(|(id, _)| row! { "oid": oids::relation(id) + 1, "rulename": "_RETURN", "ev_class": oids::relation(id), "ev_type": "1", "ev_enabled": "O", "is_instead": true }).collect(),
        "pg_tables" => table_views(catalog, facts),
        "pg_views" => views(catalog, facts),
        "pg_indexes" => index_views(catalog),
        "pg_settings" => facts.settings.iter().map(|(name, value)| row! { "name": name, "setting": value, "context": "user", "vartype": "string", "source": "default", "boot_val": value, "reset_val": value, "pending_restart": false }).collect(),
        "pg_cursors" => facts.cursors.iter().map(|cursor| (&cursor.declared, &cursor.sql, cursor.created)).map(|(declared, sql, created)| row! {
            "name": &declared.name, "statement": sql, "is_holdable": declared.is_held, "is_binary": declared.is_binary, "is_scrollable": declared.scrolls, "creation_time": created,
        }).collect(),
        "pg_stat_user_tables" | "pg_stat_all_tables" => statistics(catalog),
        "pg_sequence" => sequences::sequences(facts),
        "pg_sequences" => sequences::shown(facts),
        "pg_description" => descriptions::rows(catalog, facts),
        "pg_shdescription" => descriptions::shared(catalog, facts),
        "pg_depend" => sequences::depends(catalog, facts),
        other => fixed(other, facts),
    }
}

fn fixed(name: &str, facts: &SessionFacts) -> Vec<Row> {
    match name {
        "pg_database" => vec![row! {
            "oid": oids::DATABASE, "datname": &facts.database, "datdba": oids::USER, "encoding": 6_i64, "datlocprovider": "c", "datistemplate": false,
            "datallowconn": true, "datconnlimit": -1_i64, "datfrozenxid": 0_i64, "datminmxid": 1_i64, "dattablespace": 1663_i64, "datcollate": "C", "datctype": "C.UTF-8",
        }],
        "pg_roles" | "pg_authid" => vec![row! {
            "oid": oids::USER, "rolname": &facts.user, "rolsuper": true, "rolinherit": true, "rolcreaterole": true, "rolcreatedb": true, "rolcanlogin": true,
            "rolreplication": true, "rolbypassrls": true, "rolconnlimit": -1_i64, "rolpassword": (name == "pg_roles").then_some("********"),
        }],
        "pg_user" | "pg_shadow" => vec![row! { "usename": &facts.user, "usesysid": oids::USER, "usecreatedb": true, "usesuper": true, "userepl": false, "usebypassrls": true, "passwd": "********" }],
        "pg_am" => vec![
            row! { "oid": oids::HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t" },
            row! { "oid": oids::BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i" },
        ],
        "pg_collation" => [(100, "default", "d", ""), (950, "C", "c", "C"), (951, "POSIX", "c", "POSIX")].into_iter().map(|(oid, name, provider, locale)| row! {
            "oid": oid, "collname": name, "collnamespace": oids::PG_CATALOG, "collowner": oids::USER, "collprovider": provider, "collisdeterministic": true,
            "collencoding": -1_i64, "collcollate": Some(locale).filter(|locale| !locale.is_empty()), "collctype": Some(locale).filter(|locale| !locale.is_empty()),
        }).collect(),
        "pg_tablespace" => [(1663, "pg_default"), (1664, "pg_global")].into_iter().map(|(oid, name)| row! { "oid": oid, "spcname": name, "spcowner": oids::USER }).collect(),
        "pg_language" => [(12, "internal"), (14, "sql")].into_iter().map(|(oid, name)| row! { "oid": oid, "lanname": name, "lanowner": oids::USER, "lanpltrusted": name == "sql" }).collect(),
        "pg_opclass" => OPCLASSES.iter().map(|(oid, name, kind)| row! {
            "oid": *oid, "opcmethod": oids::BTREE, "opcname": *name, "opcnamespace": oids::PG_CATALOG, "opcowner": oids::USER, "opcintype": *kind, "opcdefault": true,
        }).collect(),
        "pg_range" => [(3904, 23, 4451), (3906, 1700, 4532), (3908, 1114, 4533), (3910, 1184, 4534), (3912, 1082, 4535), (3926, 20, 4536)].into_iter()
            .map(|(range, of, many)| row! { "rngtypid": range, "rngsubtype": of, "rngmultitypid": many }).collect(),
        "pg_operator" => procedures::operators(),
        "pg_cast" => procedures::casts(),
        "pg_proc" => procedures::rows(),
        "pg_stat_activity" => vec![row! {
            "datid": oids::DATABASE, "datname": &facts.database, "pid": i64::from(facts.pid), "usesysid": oids::USER, "usename": &facts.user, "state": "active", "backend_type": "client backend",
            "application_name": facts.settings.get("application_name"),
        }],
        _ => Vec::new(),
    }
}

/// OID, name and type of the operator classes of keys.
const OPCLASSES: &[(i64, &str, i64)] = &[
    (10_003, "bool_ops", 16),
    (10_006, "bytea_ops", 17),
    (3_122, "date_ops", 1_082),
    (10_012, "float4_ops", 700),
    (3_123, "float8_ops", 701),
    (1_979, "int2_ops", 21),
    (1_978, "int4_ops", 23),
    (3_124, "int8_ops", 20),
    (3_125, "numeric_ops", 1_700),
    (3_126, "text_ops", 25),
    (10_038, "time_ops", 1_083),
    (3_128, "timestamp_ops", 1_114),
    (10_065, "uuid_ops", 2_950),
];

fn namespaces(catalog: &Catalog) -> Vec<Row> {
    let system = ["pg_toast", "pg_catalog", "information_schema"];
    system
        .into_iter()
        .chain(schemas(catalog))
        .map(|name| row! { "oid": oids::namespace(catalog, name), "nspname": name, "nspowner": oids::USER })
        .collect()
}

fn classes(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in tables(catalog) {
        let def = table.def();
        let namespace = oids::namespace(catalog, &def.schema);
        let referred = catalog.references_to(table.id()).next().is_some();
        let indexes = indexes_of(table);
        rows.push(row! {
            "oid": oids::relation(table.id()), "relname": &def.name, "relnamespace": namespace, "relowner": oids::USER, "relam": oids::HEAP, "relfilenode": oids::relation(table.id()),
            "relpages": (table.rows() / 100) as i64, "reltuples": table.rows() as f64, "relhasindex": !indexes.is_empty(), "relpersistence": "p", "relkind": "r", "relnatts": def.columns.len(),
            "relchecks": def.checks.len(), "relhastriggers": referred || !def.foreign_keys.is_empty(), "relispopulated": true, "relreplident": "d",
        });
        rows.extend(indexes.iter().map(|(oid, index, _)| row! {
            "oid": *oid, "relname": &index.name, "relnamespace": namespace, "relowner": oids::USER, "relam": oids::BTREE, "relfilenode": *oid, "relpages": (table.rows() / 300 + 1) as i64,
            "reltuples": table.rows() as f64, "relpersistence": "p", "relkind": "i", "relnatts": index.columns.len() + index.include.len(), "relispopulated": true, "relreplident": "n",
        }));
    }
    rows.extend(catalog.views().map(|(id, view)| row! {
        "oid": oids::relation(id), "relname": &view.name, "relnamespace": oids::namespace(catalog, &view.schema), "relowner": oids::USER, "relpersistence": "p", "relkind": "v",
        "relnatts": view_columns(facts, id, view).len(), "relhasrules": true, "relispopulated": true, "relreplident": "n",
    }));
    rows.extend(sequences::classes(catalog, facts));
    rows.extend(relations().iter().map(|relation| row! {
        "oid": relation.oid, "relname": relation.name, "relnamespace": oids::namespace(catalog, relation.schema), "relowner": oids::USER, "relpersistence": "p", "relkind": relation.kind,
        "relam": if relation.kind == "r" { oids::HEAP } else { 0 }, "relnatts": relation.columns.len(), "relispopulated": true, "relreplident": "n", "relhasrules": relation.kind == "v",
    }));
    rows
}

fn column(relation: i64, at: usize, column: &ColumnDef) -> Row {
    let (oid, modifier) = define::type_of(&column.kind);
    let mut row = attribute(relation, at, &column.name, oid, modifier);
    let identity = match column.identity {
        None => "",
        Some(Identity::Always) => "a",
        Some(Identity::ByDefault) => "d",
    };
    row.extend(row! { "attnotnull": !column.nullable, "atthasdef": define::default_of(column).is_some(), "attidentity": identity });
    row
}

fn attributes(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in tables(catalog) {
        let def = table.def();
        rows.extend(
            def.columns.iter().enumerate().map(|(at, of)| column(oids::relation(table.id()), at, of)),
        );
        for (oid, index, _) in indexes_of(table) {
            let places = index.columns.iter().map(|key| key.column).chain(index.include.iter().copied());
            rows.extend(places.enumerate().filter_map(|(at, place)| {
                let of = def.columns.get(place)?;
                let (kind, modifier) = define::type_of(&of.kind);
                Some(attribute(oid, at, &of.name, kind, modifier))
            }));
        }
    }
    for (id, view) in catalog.views() {
        rows.extend(view_columns(facts, id, view).iter().enumerate().map(|(at, (name, kind))| {
            let (oid, modifier) = define::type_of(kind);
            attribute(oids::relation(id), at, name, oid, modifier)
        }));
    }
    rows.extend(sequences::attributes(facts));
    for relation in relations() {
        rows.extend(relation.columns.iter().enumerate().map(|(at, (name, kind))| {
            let oid = type_by_name(kind).map_or(25, |kind| kind.oid);
            attribute(relation.oid, at, name, oid, -1)
        }));
    }
    rows
}

fn all_types() -> Vec<Row> {
    let row = |kind: &super::relations::PgType| -> Row {
        let given = kind.rest.iter().map(|(name, value)| {
            let column = super::relations::find("pg_catalog", "pg_type")
                .and_then(|relation| relation.columns.iter().find(|(column, _)| column == name));
            let cell = match column.map(|(_, kind)| shape(kind)) {
                Some(super::cell::Shape::Bool) => Cell::Bool(*value == "t"),
                _ => Cell::Text((*value).to_owned()),
            };
            (*name, cell)
        });
        given.chain(row! { "typnamespace": oids::PG_CATALOG, "typowner": oids::USER, "typisdefined": true, "typtypmod": -1_i64 }).collect()
    };
    types().iter().map(row).collect()
}

fn indexes(catalog: &Catalog) -> Vec<Row> {
    let row = |table: &Table, oid: i64, index: &IndexDef, is_primary: bool| {
        let places = || index.columns.iter().map(|key| key.column);
        let class = |column: usize| {
            let kind = table.def().columns.get(column).map_or(0, |column| define::type_of(&column.kind).0);
            OPCLASSES
                .iter()
                .find(|(_, _, of)| *of == if kind == 1043 { 25 } else { kind })
                .map_or(0, |(oid, ..)| *oid)
        };
        let collation = |column: usize| match table
            .def()
            .columns
            .get(column)
            .map(|column| define::type_of(&column.kind).0)
        {
            Some(25 | 1043) => 100,
            _ => 0,
        };
        let all: Vec<i64> =
            places().chain(index.include.iter().copied()).map(|column| column as i64 + 1).collect();
        row! {
            "indexrelid": oid, "indrelid": oids::relation(table.id()), "indnatts": all.len(), "indnkeyatts": index.columns.len(), "indisunique": index.unique, "indisprimary": is_primary,
            "indimmediate": true, "indisvalid": true, "indisready": true, "indislive": true, "indkey": all, "indcollation": places().map(collation).collect::<Vec<i64>>(),
            "indclass": places().map(class).collect::<Vec<i64>>(), "indoption": index.columns.iter().map(define::index_option).collect::<Vec<i64>>(),
        }
    };
    let of = |table: &Table| -> Vec<Row> {
        indexes_of(table)
            .iter()
            .map(|(oid, index, is_primary)| row(table, *oid, index, *is_primary))
            .collect()
    };
    tables(catalog).flat_map(|table| of(table)).collect()
}

fn places(columns: impl Iterator<Item = usize>) -> Vec<i64> {
    columns.map(|column| column as i64 + 1).collect()
}

fn constraints(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in tables(catalog) {
        let def = table.def();
        let mut push = |oid: i64, name: &str, kind: &str, more: Row| {
            let mut row = row! {
                "oid": oid, "conname": name, "connamespace": oids::namespace(catalog, &def.schema), "contype": kind, "convalidated": true, "conrelid": oids::relation(table.id()),
                "conislocal": true, "connoinherit": kind != "c", "tableoid": 2606_i64,
            };
            row.extend(more);
            rows.push(row);
        };
        if !def.primary_key.is_empty() {
            let key = places(def.primary_key.iter().map(|key| key.column));
            push(
                oids::primary_constraint(table),
                &define::primary_name(def),
                "p",
                row! { "conindid": oids::primary_index(table), "conkey": key },
            );
        }
        for (at, index) in def.indexes.iter().enumerate().filter(|(_, index)| index.is_constraint) {
            let key = places(index.columns.iter().map(|key| key.column));
            push(
                oids::index_constraint(table, at),
                &index.name,
                "u",
                row! { "conindid": oids::index(table, at), "conkey": key },
            );
        }
        for (at, check) in def.checks.iter().enumerate() {
            let uses = |column: &&str| {
                check.expression.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == *column)
            };
            let key = def
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| uses(&column.name.as_str()))
                .map(|(at, _)| at);
            push(
                oids::check(table, at),
                &check.name,
                "c",
                row! { "conkey": places(key), "conbin": &check.expression },
            );
        }
        for (at, key) in def.foreign_keys.iter().enumerate() {
            let Some(index) = referenced_index(catalog, key) else { continue };
            push(
                oids::foreign_key(table, at),
                &key.name,
                "f",
                row! {
                    "conindid": index, "confrelid": oids::relation(key.table), "confupdtype": action(key.on_update), "confdeltype": action(key.on_delete),
                    "confmatchtype": "s", "conkey": places(key.columns.iter().copied()), "confkey": places(key.references.iter().copied()),
                },
            );
        }
    }
    rows
}

/// Returns the OID of the index behind a foreign key, 0 if it has none; `None` if the table that it
/// refers to is gone.
fn referenced_index(catalog: &Catalog, key: &ForeignKeyDef) -> Option<i64> {
    let there = catalog.table_by_id(key.table)?;
    let is = |columns: &[cairn_table::schema::KeyColumn]| {
        columns.iter().map(|key| key.column).eq(key.references.iter().copied())
    };
    let unique = there.def().indexes.iter().position(|index| index.unique && is(&index.columns));
    Some(if is(&there.def().primary_key) {
        oids::primary_index(there)
    } else {
        unique.map(|at| oids::index(there, at)).unwrap_or_default()
    })
}

fn action(action: Referential) -> &'static str {
    match action {
        Referential::NoAction => "a",
        Referential::Restrict => "r",
        Referential::Cascade => "c",
        Referential::SetNull => "n",
        Referential::SetDefault => "d",
    }
}

fn defaults(catalog: &Catalog) -> Vec<Row> {
    let of = |table: &Table| -> Vec<Row> {
        let columns = table.def().columns.iter().enumerate();
        let shown = columns.filter_map(|(at, column)| Some((at, define::default_of(column)?)));
        shown.map(|(at, default)| row! { "oid": oids::default(table, at), "adrelid": oids::relation(table.id()), "adnum": at + 1, "adbin": default }).collect()
    };
    tables(catalog).flat_map(|table| of(table)).collect()
}

fn table_views(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let users = tables(catalog).map(|table| {
        let def = table.def();
        row! { "schemaname": &def.schema, "tablename": &def.name, "tableowner": &facts.user, "hasindexes": !indexes_of(table).is_empty(), "hasrules": false, "hastriggers": !def.foreign_keys.is_empty(), "rowsecurity": false }
    });
    let system = relations().iter().filter(|relation| relation.kind == "r").map(|relation| row! {
        "schemaname": relation.schema, "tablename": relation.name, "tableowner": &facts.user, "hasindexes": false, "hasrules": false, "hastriggers": false, "rowsecurity": false,
    });
    users.chain(system).collect()
}

fn views(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let users = catalog.views().map(|(_, view)| row! { "schemaname": &view.schema, "viewname": &view.name, "viewowner": &facts.user, "definition": &view.query });
    let system = relations().iter().filter(|relation| relation.kind == "v").map(|relation| row! { "schemaname": relation.schema, "viewname": relation.name, "viewowner": &facts.user });
    users.chain(system).collect()
}

fn index_views(catalog: &Catalog) -> Vec<Row> {
    let of = |table: &Table| -> Vec<Row> {
        let def = table.def();
        indexes_of(table).iter().map(|(_, index, _)| row! { "schemaname": &def.schema, "tablename": &def.name, "indexname": &index.name, "indexdef": define::index(def, index, &define::table_name(def, &[])) }).collect()
    };
    tables(catalog).flat_map(|table| of(table)).collect()
}

fn statistics(catalog: &Catalog) -> Vec<Row> {
    tables(catalog).map(|table| row! { "relid": oids::relation(table.id()), "schemaname": &table.def().schema, "relname": &table.def().name, "n_live_tup": table.rows() as i64, "n_dead_tup": 0_i64 }).collect()
}
