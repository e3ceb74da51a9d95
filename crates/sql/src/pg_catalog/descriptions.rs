//! Comments in the system catalogs.

use cairn_table::Catalog;

use super::comments::{About, Kind};
use super::facts::{SessionFacts, World};
use super::row::{Row, row};
use super::{oids, procedures, sequences};

/// The OIDs of the catalogs that contain the objects.
const PG_CLASS: i64 = 1_259;
const PG_NAMESPACE: i64 = 2_615;
const PG_DATABASE: i64 = 1_262;

/// A comment: the object, its catalog, the column, and the text.
struct Description<'f> {
    object: i64,
    class: i64,
    column: i64,
    text: &'f str,
}

fn all<'f>(catalog: &Catalog, facts: &'f SessionFacts) -> Vec<Description<'f>> {
    let found = facts.comments.iter().filter_map(|(about, text)| {
        let (object, class, column) = place(about, catalog, facts)?;
        Some(Description { object, class, column, text })
    });
    found.collect()
}

fn place(about: &About, catalog: &Catalog, facts: &SessionFacts) -> Option<(i64, i64, i64)> {
    let relation = oids::relation(about.relation);
    Some(match about.kind {
        Kind::Relation => (relation, PG_CLASS, 0),
        Kind::Column => {
            let column = match catalog.table_by_id(about.relation) {
                Some(table) => table.def().column(&about.name)?,
                None => facts.views.get(&about.relation)?.iter().position(|(name, _)| *name == about.name)?,
            };
            (relation, PG_CLASS, column as i64 + 1)
        }
        Kind::Index => {
            let table = catalog.table_by_id(about.relation)?;
            let at = table.def().indexes.iter().position(|index| index.name == about.name);
            (at.map_or_else(|| oids::primary_index(table), |at| oids::index(table, at)), PG_CLASS, 0)
        }
        Kind::Sequence => (sequences::oid_by_name(facts, &about.name)?, PG_CLASS, 0),
        Kind::Schema => (oids::namespace(catalog, &about.name), PG_NAMESPACE, 0),
        Kind::Database => (oids::DATABASE, PG_DATABASE, 0),
    })
}

/// The rows of `pg_description`.
pub(super) fn rows(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let own = all(catalog, facts).into_iter().filter(|found| found.class != PG_DATABASE);
    own.map(|found| {
        row! { "objoid": found.object, "classoid": found.class, "objsubid": found.column, "description": found.text }
    })
    .collect()
}

/// The rows of `pg_shdescription`.
pub(super) fn shared(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let shared = all(catalog, facts).into_iter().filter(|found| found.class == PG_DATABASE);
    shared
        .map(|found| row! { "objoid": found.object, "classoid": found.class, "description": found.text })
        .collect()
}

/// Returns the comment on an object. `class` is the catalog of the object, if it is given.
pub(super) fn of_object(world: &World, oid: i64, class: Option<&str>) -> Option<String> {
    if let Some(found) = class.and_then(|class| procedures::description(oid, class)) {
        return Some(found.to_owned());
    }
    let class = match class {
        None => None,
        Some("pg_class") => Some(PG_CLASS),
        Some("pg_namespace") => Some(PG_NAMESPACE),
        Some("pg_database") => Some(PG_DATABASE),
        Some(_) => return None,
    };
    let is_it = |found: &Description<'_>| {
        found.object == oid && found.column == 0 && class.is_none_or(|class| class == found.class)
    };
    all(&world.catalog, &world.facts).into_iter().find(is_it).map(|found| found.text.to_owned())
}

/// Returns the comment on a column.
pub(super) fn of_column(world: &World, oid: i64, number: i64) -> Option<String> {
    let is_it = |found: &Description<'_>| found.object == oid && found.column == number && number > 0;
    all(&world.catalog, &world.facts).into_iter().find(is_it).map(|found| found.text.to_owned())
}
