//! What the system's tables and functions are made from.

use cairn_table::{Catalog, PUBLIC, Table};
use cairn_vfs::sync::Arc;

use crate::error::Result;
use crate::sequence::{HIDDEN, Name, Sequence, all, parse_name};
use crate::session::Session;

pub(super) const PG_CATALOG: i64 = 11;
pub(super) const PUBLIC_OID: i64 = 2200;
pub(super) const INFORMATION_SCHEMA: i64 = 13_000;
/// The one user there is.
pub(super) const OWNER: i64 = 10;
pub(super) const OWNER_NAME: &str = "cairn";
pub(super) const DATABASE: i64 = 5;

/// The first number of ours; a table has 256 of them.
const FIRST: u32 = 16_384;
const SEQUENCES: u32 = 1_000_000_000;

/// The catalog and what the session adds to it.
#[derive(Debug)]
pub(crate) struct System {
    pub catalog: Arc<Catalog>,
    pub sequences: Vec<(Name, Sequence)>,
    pub search_path: Vec<String>,
    pub database: String,
    pub backend: u32,
    pub settings: Vec<(String, String)>,
}

/// The number of a table or view.
pub(super) fn oid(id: u32) -> u32 {
    FIRST.saturating_add(id.saturating_mul(256))
}

/// The number of an index of a table; `None` is the primary key's.
pub(super) fn index_oid(id: u32, index: Option<usize>) -> u32 {
    oid(id) + index.map_or(100, |at| 1 + (at as u32).min(98))
}

pub(super) fn check_oid(id: u32, at: usize) -> u32 {
    oid(id) + 101 + (at as u32).min(49)
}

pub(super) fn foreign_oid(id: u32, at: usize) -> u32 {
    oid(id) + 151 + (at as u32).min(49)
}

/// The number of a primary key (`None`) or of a UNIQUE constraint.
pub(super) fn unique_oid(id: u32, at: Option<usize>) -> u32 {
    oid(id) + at.map_or(255, |at| 201 + (at as u32).min(49))
}

pub(super) fn sequence_oid(at: usize) -> u32 {
    SEQUENCES + at as u32
}

impl System {
    /// What the open statement sees.
    ///
    /// Errors: those of reading sequences.
    pub fn new(session: &mut Session) -> Result<System> {
        let view = session.transaction()?.view();
        let (catalog, sequences) = (Arc::clone(view.catalog()), all(view)?);
        let settings = &session.context.settings;
        Ok(System {
            catalog,
            sequences,
            search_path: settings.search_path.clone(),
            database: session.shared.name.clone(),
            backend: session.backend,
            settings: settings.all(),
        })
    }

    /// The tables that anybody may see.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.catalog.tables().filter(|table| table.def().schema != HIDDEN)
    }

    /// Namespaces and their numbers.
    pub fn schemas(&self) -> Vec<(String, i64)> {
        let mut schemas = vec![
            ("pg_catalog".to_owned(), PG_CATALOG),
            (PUBLIC.to_owned(), PUBLIC_OID),
            ("information_schema".to_owned(), INFORMATION_SCHEMA),
        ];
        let others = self.catalog.schemas().filter(|name| *name != PUBLIC && *name != HIDDEN);
        schemas.extend(others.enumerate().map(|(at, name)| (name.to_owned(), 14_000 + at as i64)));
        schemas
    }

    pub fn schema_oid(&self, name: &str) -> i64 {
        self.schemas().into_iter().find(|(other, _)| other == name).map_or(0, |(_, oid)| oid)
    }

    /// Relations by number: namespace and name.
    pub fn name_of(&self, wanted: u32) -> Option<(String, String)> {
        for table in self.tables() {
            let (id, def) = (table.id(), table.def());
            if wanted == oid(id) {
                return Some((def.schema.clone(), def.name.clone()));
            }
            if wanted == index_oid(id, None)
                && let Some(name) = &def.primary_key_name
            {
                return Some((def.schema.clone(), name.clone()));
            }
            let at = (0..def.indexes.len()).find(|&at| index_oid(id, Some(at)) == wanted);
            if let Some(index) = at.and_then(|at| def.indexes.get(at)) {
                return Some((def.schema.clone(), index.name.clone()));
            }
        }
        if let Some((_, view)) = self.catalog.views().find(|(id, _)| oid(*id) == wanted) {
            return Some((view.schema.clone(), view.name.clone()));
        }
        let at = wanted.checked_sub(SEQUENCES)? as usize;
        self.sequences.get(at).map(|(name, _)| name.clone())
    }

    /// The number of a relation, by its name as a text has it.
    pub fn relation(&self, text: &str) -> Option<u32> {
        let schema = self.search_path.first().map_or(PUBLIC, String::as_str);
        let (schema, name) = parse_name(text, schema);
        for table in self.tables().filter(|table| table.def().schema == schema) {
            let def = table.def();
            if def.name == name {
                return Some(oid(table.id()));
            }
            if def.primary_key_name.as_ref() == Some(&name) {
                return Some(index_oid(table.id(), None));
            }
            if let Some(at) = def.indexes.iter().position(|index| index.name == name) {
                return Some(index_oid(table.id(), Some(at)));
            }
        }
        if let Some(view) = self.catalog.view_id(&schema, &name) {
            return Some(oid(view));
        }
        if let Some(at) =
            self.sequences.iter().position(|(other, _)| *other == (schema.clone(), name.clone()))
        {
            return Some(sequence_oid(at));
        }
        super::relations::system_oid(&name)
    }

    /// What functions without arguments of rows say of the session. `None` for others; `Some(None)` is NULL.
    pub fn session_value(&self, function: &str, argument: Option<&str>) -> Option<Option<String>> {
        let some = |text: &str| Some(Some(text.to_owned()));
        match function {
            "version" => some(concat!("PostgreSQL 15.0 (Cairn ", env!("CARGO_PKG_VERSION"), ")")),
            "current_database" | "current_catalog" => some(&self.database),
            "current_user" | "session_user" | "user" | "current_role" => some(OWNER_NAME),
            "current_schema" => Some(self.search_path.first().cloned()),
            "inet_server_addr" | "inet_client_addr" | "inet_server_port" | "inet_client_port" => Some(None),
            "current_setting" => {
                let name = argument?.to_lowercase();
                Some(
                    self.settings
                        .iter()
                        .find(|(setting, _)| *setting == name)
                        .map(|(_, value)| value.clone()),
                )
            }
            _ => None,
        }
    }
}
