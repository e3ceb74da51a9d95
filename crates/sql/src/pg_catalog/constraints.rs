//! Constraints and defaults: `pg_constraint`, `pg_attrdef`.

use cairn_table::schema::Referential;

use super::System;
use super::system::{check_oid, foreign_oid, index_oid, oid, unique_oid};
use super::table::{Cell, Relation};
use super::text::{foreign_def, unique_def};

pub(super) fn table(system: &System, name: &str) -> Option<Relation> {
    match name {
        "pg_constraint" => Some(constraints(system)),
        "pg_attrdef" => Some(defaults(system)),
        _ => None,
    }
}

fn defaults(system: &System) -> Relation {
    let mut defaults = Relation::of("oid:n adrelid:n adnum:s adbin");
    for table in system.tables() {
        for (at, column) in table.def().columns.iter().enumerate() {
            if let Some(default) = &column.default {
                let number = 500_000_000 + u64::from(table.id()) * 2_000 + at as u64;
                defaults.push(vec![
                    (number as i64).into(),
                    oid(table.id()).into(),
                    (at + 1).into(),
                    default.as_str().into(),
                ]);
            }
        }
    }
    defaults
}

fn action(action: Referential) -> &'static str {
    match action {
        Referential::Restrict => "a",
        Referential::Cascade => "c",
        Referential::SetNull => "n",
        Referential::SetDefault => "d",
    }
}

fn constraints(system: &System) -> Relation {
    let mut all = Relation::of(
        "oid:n conname connamespace:n contype condeferrable:b condeferred:b convalidated:b conrelid:n contypid:n conindid:n conparentid:n confrelid:n \
         confupdtype confdeltype confmatchtype conislocal:b coninhcount:n connoinherit:b conkey:N confkey:N conpfeqop:N conppeqop:N conffeqop:N \
         confdelsetcols:N conexclop:N conbin",
    );
    for table in system.tables() {
        let (id, def) = (table.id(), table.def());
        let schema = system.schema_oid(&def.schema);
        let mut push = |oid_of: u32, name: &str, kind: &str, more: &[(&'static str, Cell)]| {
            let mut row: Vec<(&str, Cell)> = vec![
                ("oid", oid_of.into()),
                ("conname", name.into()),
                ("connamespace", schema.into()),
                ("contype", kind.into()),
                ("convalidated", true.into()),
                ("conrelid", oid(id).into()),
                ("conislocal", true.into()),
                ("confupdtype", " ".into()),
                ("confdeltype", " ".into()),
                ("confmatchtype", " ".into()),
            ];
            row.extend(more.iter().cloned());
            all.push_named(&row);
        };
        let numbers = |columns: &[usize]| -> Cell {
            columns.iter().map(|&column| column as i64 + 1).collect::<Vec<i64>>().into()
        };
        if let Some(name) = &def.primary_key_name {
            let columns: Vec<usize> = def.primary_key.iter().map(|key| key.column).collect();
            push(
                unique_oid(id, None),
                name,
                "p",
                &[("conkey", numbers(&columns)), ("conindid", index_oid(id, None).into())],
            );
        }
        for (at, index) in def.indexes.iter().enumerate().filter(|(_, index)| index.is_constraint) {
            let columns: Vec<usize> = index.columns.iter().map(|key| key.column).collect();
            push(
                unique_oid(id, Some(at)),
                &index.name,
                "u",
                &[("conkey", numbers(&columns)), ("conindid", index_oid(id, Some(at)).into())],
            );
        }
        for (at, check) in def.checks.iter().enumerate() {
            push(check_oid(id, at), &check.name, "c", &[("conbin", check.expression.as_str().into())]);
        }
        for (at, key) in def.foreign_keys.iter().enumerate() {
            push(
                foreign_oid(id, at),
                &key.name,
                "f",
                &[
                    ("conkey", numbers(&key.columns)),
                    ("confkey", numbers(&key.references)),
                    ("confrelid", oid(key.table).into()),
                    ("confupdtype", action(key.on_update).into()),
                    ("confdeltype", action(key.on_delete).into()),
                    ("confmatchtype", "s".into()),
                ],
            );
        }
    }
    all
}

/// `pg_get_constraintdef`.
pub(super) fn definition(system: &System, wanted: u32) -> Option<String> {
    for table in system.tables() {
        let (id, def) = (table.id(), table.def());
        if wanted == unique_oid(id, None) {
            return Some(unique_def(def, None));
        }
        if let Some(at) = (0..def.indexes.len()).find(|&at| unique_oid(id, Some(at)) == wanted) {
            return Some(unique_def(def, Some(at)));
        }
        if let Some(check) =
            (0..def.checks.len()).find(|&at| check_oid(id, at) == wanted).and_then(|at| def.checks.get(at))
        {
            return Some(format!("CHECK (({}))", check.expression));
        }
        if let Some(key) = (0..def.foreign_keys.len())
            .find(|&at| foreign_oid(id, at) == wanted)
            .and_then(|at| def.foreign_keys.get(at))
        {
            return Some(foreign_def(&system.catalog, def, key));
        }
    }
    None
}
