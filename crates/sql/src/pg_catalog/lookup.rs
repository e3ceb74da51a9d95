//! Converts names to OIDs and back.

use super::relations::{find, relations, type_by_name};
use super::{World, define, oids};
use crate::runtime::sequence::Name;
use crate::syntax::{name_parts, quote_ident};

impl World {
    /// Returns the name of the relation with this OID, as written in SQL.
    pub fn name_of(&self, oid: i64) -> String {
        class_name(self, oid)
    }
}

/// Returns the namespace and name of an OID.
pub(super) fn class(world: &World, oid: i64) -> Option<(String, String)> {
    if let Some(table) = world.catalog.tables().find(|table| oids::relation(table.id()) == oid) {
        return Some((table.def().schema.clone(), table.def().name.clone()));
    }
    if let Some((_, view)) = world.catalog.views().find(|(id, _)| oids::relation(*id) == oid) {
        return Some((view.schema.clone(), view.name.clone()));
    }
    if let Some((table, index)) = define::find_index(&world.catalog, oid) {
        return Some((table.def().schema.clone(), index.name));
    }
    let sequence = world.facts.sequences.iter().enumerate().find(|(at, _)| oids::sequence(*at) == oid);
    if let Some((_, (name, _))) = sequence {
        return Some(name.clone());
    }
    relations()
        .iter()
        .find(|relation| relation.oid == oid)
        .map(|relation| (relation.schema.to_owned(), relation.name.to_owned()))
}

/// Returns a relation's name as `regclass` prints it.
pub(super) fn class_name(world: &World, oid: i64) -> String {
    match class(world, oid) {
        None if oid == 0 => "-".to_owned(),
        None => oid.to_string(),
        Some((schema, name)) if schema == "pg_catalog" || world.facts.search_path.contains(&schema) => {
            quote_ident(&name)
        }
        Some((schema, name)) => format!("{}.{}", quote_ident(&schema), quote_ident(&name)),
    }
}

/// Returns the OID of a relation, whose name is written as in SQL.
pub(super) fn class_oid(world: &World, name: &str) -> Option<i64> {
    let parts = name_parts(name);
    let (schemas, name) = match parts.as_slice() {
        [name] => (
            std::iter::once("pg_catalog".to_owned()).chain(world.facts.search_path.iter().cloned()).collect(),
            name,
        ),
        [schema, name] | [_, schema, name] => (vec![schema.clone()], name),
        _ => return None,
    };
    schemas.iter().find_map(|schema| {
        let (catalog, schema) = (&world.catalog, schema.as_str());
        if let Some(table) = catalog.table(schema, name) {
            return Some(oids::relation(table.id()));
        }
        if let Some(id) = catalog.view_id(schema, name) {
            return Some(oids::relation(id));
        }
        let of = |table: &cairn_table::Table| {
            super::row::indexes_of(table)
                .into_iter()
                .find(|(_, index, _)| index.name == *name)
                .map(|(oid, ..)| oid)
        };
        let index = catalog.tables().filter(|table| table.def().schema == schema).find_map(|table| of(table));
        let is = |(of, own): &Name| of == schema && own == name;
        let sequence = || {
            let place = world.facts.sequences.iter().position(|(other, _)| is(other));
            place.map(oids::sequence)
        };
        index.or_else(sequence).or_else(|| find(schema, name).map(|relation| relation.oid))
    })
}

/// Returns the OID of a type, whose name is written as in SQL.
pub(super) fn type_oid(name: &str) -> Option<i64> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let (name, is_array) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
    let name = name.split('(').next().unwrap_or_default().trim();
    let name = match name {
        "integer" | "int" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "boolean" => "bool",
        "real" => "float4",
        "double precision" | "float" => "float8",
        "decimal" => "numeric",
        "character varying" => "varchar",
        "character" => "bpchar",
        "\"char\"" => "char",
        "time without time zone" => "time",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        other => other,
    };
    let kind = type_by_name(name)?;
    if is_array { kind.get("typarray").parse().ok() } else { Some(kind.oid) }
}
