//! Relations and their columns: `pg_class`, `pg_attribute`, `pg_index` and the like.

use cairn_table::Table;
use cairn_table::schema::{ColumnDef, IndexDef, KeyColumn};

use super::System;
use super::system::{DATABASE, OWNER, OWNER_NAME, PG_CATALOG, index_oid, oid, sequence_oid};
use super::table::{Cell, NULL, Relation};
use super::text::{index_def, view_def};
use super::types::{TYPES, modifier_of, oid_of};

/// Numbers of the system's tables, where clients compare with them.
pub(super) fn system_oid(name: &str) -> Option<u32> {
    Some(match name.trim_start_matches("pg_catalog.") {
        "pg_class" => 1259,
        "pg_attribute" => 1249,
        "pg_type" => 1247,
        "pg_proc" => 1255,
        "pg_namespace" => 2615,
        "pg_constraint" => 2606,
        "pg_index" => 2610,
        "pg_attrdef" => 2604,
        "pg_database" => 1262,
        "pg_authid" => 1260,
        "pg_am" => 2601,
        "pg_collation" => 3456,
        "pg_trigger" => 2620,
        "pg_extension" => 3079,
        "pg_tablespace" => 1213,
        "pg_rewrite" => 2618,
        "pg_policy" => 3256,
        _ => return None,
    })
}

pub(super) fn table(system: &System, name: &str) -> Option<Relation> {
    Some(match name {
        "pg_class" => classes(system),
        "pg_attribute" => attributes(system),
        "pg_index" => indexes(system),
        "pg_namespace" => {
            let mut names = Relation::of("oid:n nspname nspowner:n nspacl");
            for (name, oid) in system.schemas() {
                names.push(vec![oid.into(), name.into(), OWNER.into(), NULL]);
            }
            names
        }
        "pg_database" => {
            let mut databases = Relation::of(
                "oid:n datname datdba:n encoding:n datlocprovider datistemplate:b datallowconn:b datconnlimit:n datfrozenxid:n datminmxid:n \
                 dattablespace:n datcollate datctype daticulocale datcollversion datacl",
            );
            databases.push_named(&[
                ("oid", DATABASE.into()),
                ("datname", system.database.as_str().into()),
                ("datdba", OWNER.into()),
                ("encoding", 6i64.into()),
                ("datlocprovider", "c".into()),
                ("datallowconn", true.into()),
                ("datconnlimit", (-1i64).into()),
                ("dattablespace", 1663i64.into()),
                ("datcollate", "C".into()),
                ("datctype", "C.UTF-8".into()),
            ]);
            databases
        }
        "pg_roles" | "pg_authid" => {
            let mut roles = Relation::of(
                "oid:n rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b rolconnlimit:n rolpassword \
                 rolvaliduntil rolbypassrls:b rolconfig:T",
            );
            let flags = [
                "rolsuper",
                "rolinherit",
                "rolcreaterole",
                "rolcreatedb",
                "rolcanlogin",
                "rolreplication",
                "rolbypassrls",
            ];
            let mut row =
                vec![("oid", OWNER.into()), ("rolname", OWNER_NAME.into()), ("rolconnlimit", (-1i64).into())];
            row.extend(flags.map(|flag| (flag, true.into())));
            roles.push_named(&row);
            roles
        }
        "pg_user" => {
            let mut users = Relation::of(
                "usename usesysid:n usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil useconfig:T",
            );
            users.push_named(&[
                ("usename", OWNER_NAME.into()),
                ("usesysid", OWNER.into()),
                ("usecreatedb", true.into()),
                ("usesuper", true.into()),
            ]);
            users
        }
        "pg_am" => {
            let mut methods = Relation::of("oid:n amname amhandler amtype");
            methods.push(vec![2i64.into(), "cairn".into(), "cairn_handler".into(), "t".into()]);
            methods.push(vec![403i64.into(), "btree".into(), "bthandler".into(), "i".into()]);
            methods
        }
        "pg_collation" => {
            let mut collations = Relation::of(
                "oid:n collname collnamespace:n collowner:n collprovider collisdeterministic:b collencoding:n collcollate collctype colliculocale collversion",
            );
            for (oid, name) in [(100i64, "default"), (950, "C")] {
                collations.push_named(&[
                    ("oid", oid.into()),
                    ("collname", name.into()),
                    ("collnamespace", PG_CATALOG.into()),
                    ("collowner", OWNER.into()),
                    ("collprovider", "c".into()),
                    ("collisdeterministic", true.into()),
                    ("collcollate", "C".into()),
                    ("collctype", "C".into()),
                ]);
            }
            collations
        }
        "pg_tablespace" => {
            let mut spaces = Relation::of("oid:n spcname spcowner:n spcacl spcoptions:T");
            spaces.push(vec![1663i64.into(), "pg_default".into(), OWNER.into(), NULL, NULL]);
            spaces
        }
        "pg_language" => {
            let mut languages = Relation::of("oid:n lanname lanowner:n lanispl:b lanpltrusted:b");
            languages.push(vec![14i64.into(), "sql".into(), OWNER.into(), false.into(), true.into()]);
            languages
        }
        "pg_settings" => {
            let mut settings = Relation::of(
                "name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:T boot_val reset_val sourcefile sourceline:n pending_restart:b",
            );
            for (name, value) in &system.settings {
                settings.push_named(&[
                    ("name", name.as_str().into()),
                    ("setting", value.as_str().into()),
                    ("context", "user".into()),
                    ("vartype", "string".into()),
                    ("source", "default".into()),
                    ("reset_val", value.as_str().into()),
                ]);
            }
            settings
        }
        "pg_tables"
        | "pg_views"
        | "pg_indexes"
        | "pg_sequences"
        | "pg_sequence"
        | "pg_stat_user_tables"
        | "pg_stat_all_tables"
        | "pg_statio_user_tables"
        | "pg_stat_activity" => lists(system, name)?,
        _ => return None,
    })
}

fn lists(system: &System, name: &str) -> Option<Relation> {
    let mut list;
    match name {
        "pg_tables" => {
            list = Relation::of(
                "schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b",
            );
            for table in system.tables() {
                let def = table.def();
                let indexed = !def.indexes.is_empty() || !def.primary_key.is_empty();
                list.push(vec![
                    def.schema.as_str().into(),
                    def.name.as_str().into(),
                    OWNER_NAME.into(),
                    NULL,
                    indexed.into(),
                    false.into(),
                    false.into(),
                    false.into(),
                ]);
            }
        }
        "pg_views" => {
            list = Relation::of("schemaname viewname viewowner definition");
            for (_, view) in system.catalog.views() {
                list.push(vec![
                    view.schema.as_str().into(),
                    view.name.as_str().into(),
                    OWNER_NAME.into(),
                    view_def(view).into(),
                ]);
            }
        }
        "pg_indexes" => {
            list = Relation::of("schemaname tablename indexname tablespace indexdef");
            for table in system.tables() {
                for (name, at) in index_names(table) {
                    let def = table.def();
                    list.push(vec![
                        def.schema.as_str().into(),
                        def.name.as_str().into(),
                        name.into(),
                        NULL,
                        index_def(def, at).into(),
                    ]);
                }
            }
        }
        "pg_sequence" => {
            list = Relation::of(
                "seqrelid:n seqtypid:n seqstart:n seqincrement:n seqmax:n seqmin:n seqcache:n seqcycle:b",
            );
            for (at, (_, of)) in system.sequences.iter().enumerate() {
                list.push(vec![
                    sequence_oid(at).into(),
                    20i64.into(),
                    of.start.into(),
                    of.increment.into(),
                    of.maximum.into(),
                    of.minimum.into(),
                    1i64.into(),
                    of.cycles.into(),
                ]);
            }
        }
        "pg_sequences" => {
            list = Relation::of(
                "schemaname sequencename sequenceowner data_type start_value:n min_value:n max_value:n increment_by:n cycle:b cache_size:n last_value:n",
            );
            for ((schema, name), of) in &system.sequences {
                list.push(vec![
                    schema.as_str().into(),
                    name.as_str().into(),
                    OWNER_NAME.into(),
                    "bigint".into(),
                    of.start.into(),
                    of.minimum.into(),
                    of.maximum.into(),
                    of.increment.into(),
                    of.cycles.into(),
                    1i64.into(),
                    NULL,
                ]);
            }
        }
        "pg_stat_activity" => {
            list = Relation::of(
                "datid:n datname pid:n usesysid:n usename application_name client_addr client_port:n backend_start xact_start query_start state_change wait_event_type wait_event state query backend_type",
            );
            list.push_named(&[
                ("datid", DATABASE.into()),
                ("datname", system.database.as_str().into()),
                ("pid", system.backend.into()),
                ("usename", OWNER_NAME.into()),
                ("state", "active".into()),
                ("backend_type", "client backend".into()),
            ]);
        }
        _ => {
            list = Relation::of(
                "relid:n schemaname relname seq_scan:n seq_tup_read:n idx_scan:n idx_tup_fetch:n n_tup_ins:n n_tup_upd:n n_tup_del:n n_live_tup:n n_dead_tup:n last_vacuum last_autovacuum last_analyze last_autoanalyze",
            );
            for table in system.tables() {
                let def = table.def();
                list.push_named(&[
                    ("relid", oid(table.id()).into()),
                    ("schemaname", def.schema.as_str().into()),
                    ("relname", def.name.as_str().into()),
                    ("n_live_tup", (table.rows() as i64).into()),
                ]);
            }
        }
    }
    Some(list)
}

/// Names of a table's indexes, the primary key's among them.
pub(super) fn index_names(table: &Table) -> Vec<(String, Option<usize>)> {
    let def = table.def();
    let own = def.primary_key_name.iter().map(|name| (name.clone(), None));
    own.chain(def.indexes.iter().enumerate().map(|(at, index)| (index.name.clone(), Some(at)))).collect()
}

fn classes(system: &System) -> Relation {
    let mut classes = Relation::of(
        "oid:n relname relnamespace:n reltype:n reloftype:n relowner:n relam:n relfilenode:n reltablespace:n relpages:n reltuples:r relallvisible:n \
         reltoastrelid:n relhasindex:b relisshared:b relpersistence relkind relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b \
         relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident relispartition:b relrewrite:n relfrozenxid:n relminmxid:n relacl \
         reloptions:T relpartbound",
    );
    let mut push = |oid: u32, name: &str, schema: &str, kind: &str, more: &[(&'static str, Cell)]| {
        let mut row: Vec<(&str, Cell)> = vec![
            ("oid", oid.into()),
            ("relname", name.into()),
            ("relnamespace", system.schema_oid(schema).into()),
            ("relowner", OWNER.into()),
            ("relfilenode", oid.into()),
            ("relpersistence", "p".into()),
            ("relkind", kind.into()),
            ("relispopulated", true.into()),
            ("relreplident", "d".into()),
        ];
        row.extend(more.iter().cloned());
        classes.push_named(&row);
    };
    for table in system.tables() {
        let (id, def) = (table.id(), table.def());
        let names = index_names(table);
        push(
            oid(id),
            &def.name,
            &def.schema,
            "r",
            &[
                ("relam", 2i64.into()),
                ("reltuples", (table.rows() as f32).into()),
                ("relhasindex", (!names.is_empty()).into()),
                ("relnatts", def.columns.len().into()),
                ("relchecks", def.checks.len().into()),
            ],
        );
        for (name, at) in names {
            let columns = at
                .and_then(|at| def.indexes.get(at))
                .map_or(def.primary_key.len(), |index| index.columns.len() + index.include.len());
            push(
                index_oid(id, at),
                &name,
                &def.schema,
                "i",
                &[("relam", 403i64.into()), ("relnatts", columns.into())],
            );
        }
    }
    for (id, view) in system.catalog.views() {
        push(
            oid(id),
            &view.name,
            &view.schema,
            "v",
            &[("relnatts", view.columns.len().into()), ("relhasrules", true.into())],
        );
    }
    for (at, ((schema, name), _)) in system.sequences.iter().enumerate() {
        push(sequence_oid(at), name, schema, "S", &[("relnatts", 3i64.into())]);
    }
    for name in [
        "pg_class",
        "pg_attribute",
        "pg_type",
        "pg_proc",
        "pg_namespace",
        "pg_constraint",
        "pg_index",
        "pg_database",
    ] {
        if let Some(oid) = system_oid(name) {
            push(oid, name, "pg_catalog", "r", &[]);
        }
    }
    classes
}

fn attributes(system: &System) -> Relation {
    let mut attributes = Relation::of(
        "attrelid:n attname atttypid:n attstattarget:n attlen:s attnum:s attndims:n attcacheoff:n atttypmod:n attbyval:b attalign attstorage attcompression \
         attnotnull:b atthasdef:b atthasmissing:b attidentity attgenerated attisdropped:b attislocal:b attinhcount:n attcollation:n attacl attoptions:T \
         attfdwoptions:T attmissingval",
    );
    let mut push = |relation: u32, number: usize, column: &ColumnDef| {
        let kind = oid_of(&column.kind);
        let known = TYPES.iter().find(|(oid, ..)| *oid == kind);
        let (length, category) = known.map_or((-1, "U"), |(_, _, length, category, _)| (*length, *category));
        attributes.push_named(&[
            ("attrelid", relation.into()),
            ("attname", column.name.as_str().into()),
            ("atttypid", kind.into()),
            ("attstattarget", (-1i64).into()),
            ("attlen", length.into()),
            ("attnum", number.into()),
            ("attcacheoff", (-1i64).into()),
            ("atttypmod", modifier_of(&column.kind).into()),
            ("attalign", "i".into()),
            ("attstorage", "p".into()),
            ("attcompression", "".into()),
            ("attnotnull", (!column.nullable).into()),
            ("atthasdef", column.default.is_some().into()),
            ("attidentity", "".into()),
            ("attgenerated", "".into()),
            ("attislocal", true.into()),
            ("attcollation", i64::from(if category == "S" { 100 } else { 0 }).into()),
        ]);
    };
    for table in system.tables() {
        let (id, def) = (table.id(), table.def());
        for (at, column) in def.columns.iter().enumerate() {
            push(oid(id), at + 1, column);
        }
        for (_, at) in index_names(table) {
            let keys = at.and_then(|at| def.indexes.get(at)).map_or(&def.primary_key, |index| &index.columns);
            let include =
                at.and_then(|at| def.indexes.get(at)).map(|index| index.include.clone()).unwrap_or_default();
            for (number, column) in keys.iter().map(|key| key.column).chain(include).enumerate() {
                if let Some(column) = def.columns.get(column) {
                    push(index_oid(id, at), number + 1, column);
                }
            }
        }
    }
    for (id, view) in system.catalog.views() {
        for (at, name) in view.columns.iter().enumerate() {
            let kind = cairn_table::row::Type::Text.into();
            push(oid(id), at + 1, &ColumnDef { name: name.clone(), kind, nullable: true, default: None });
        }
    }
    attributes
}

fn indexes(system: &System) -> Relation {
    let mut indexes = Relation::of(
        "indexrelid:n indrelid:n indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b indisexclusion:b indimmediate:b indisclustered:b \
         indisvalid:b indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:N indcollation:N indclass:N indoption:N indexprs indpred",
    );
    let mut push = |table: &Table, at: Option<usize>, keys: &[KeyColumn], index: Option<&IndexDef>| {
        let include = index.map(|index| index.include.as_slice()).unwrap_or_default();
        let numbers: Vec<i64> = keys
            .iter()
            .map(|key| key.column)
            .chain(include.iter().copied())
            .map(|column| column as i64 + 1)
            .collect();
        let option =
            |key: &KeyColumn| i64::from(key.order.descending) | i64::from(key.order.nulls_first) << 1;
        indexes.push_named(&[
            ("indexrelid", index_oid(table.id(), at).into()),
            ("indrelid", oid(table.id()).into()),
            ("indnatts", numbers.len().into()),
            ("indnkeyatts", keys.len().into()),
            ("indisunique", index.is_none_or(|index| index.unique).into()),
            ("indisprimary", at.is_none().into()),
            ("indimmediate", true.into()),
            ("indisvalid", true.into()),
            ("indisready", true.into()),
            ("indislive", true.into()),
            ("indcollation", numbers.iter().map(|_| 0).collect::<Vec<i64>>().into()),
            ("indclass", numbers.iter().map(|_| 0).collect::<Vec<i64>>().into()),
            ("indkey", numbers.into()),
            ("indoption", keys.iter().map(option).collect::<Vec<i64>>().into()),
        ]);
    };
    for table in system.tables() {
        let def = table.def();
        if !def.primary_key.is_empty() {
            push(table, None, &def.primary_key, None);
        }
        for (at, index) in def.indexes.iter().enumerate() {
            push(table, Some(at), &index.columns, Some(index));
        }
    }
    indexes
}
