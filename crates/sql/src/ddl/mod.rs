//! Changes of the schema: translates syntax trees of statements to definitions of tables.

mod alter;
mod analyze;
mod columns;
pub(crate) mod comments;
mod constraints;
mod create;
mod dependents;
mod drop;
mod identity;
mod index;
mod retype;
mod schema_lock;
mod statements;

use cairn_table::schema::TableDef;

/// Returns a name that is not taken: `base`, or `base` with a number appended.
pub(crate) fn free_name(base: String, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(&base) {
        return base;
    }
    (1u32..).map(|number| format!("{base}{number}")).find(|name| !is_taken(name)).unwrap_or(base)
}

/// Whether a table has a constraint of this name.
pub(crate) fn has_constraint(def: &TableDef, name: &str) -> bool {
    def.primary_key_name.as_deref() == Some(name)
        || def.indexes.iter().any(|index| index.name == name)
        || def.checks.iter().any(|check| check.name == name)
        || def.foreign_keys.iter().any(|key| key.name == name)
}
