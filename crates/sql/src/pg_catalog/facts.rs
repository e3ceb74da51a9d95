//! What the system catalogs are made from.

use std::collections::BTreeMap;

use cairn_table::Catalog;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::lookup;
use crate::ddl::comments::{self, About};
use crate::error::Result;
use crate::sequence::{Name, Sequence, all_now};
use crate::session::{CursorFacts, Session};

/// The columns of views by the views' numbers.
pub(crate) type ViewColumns = BTreeMap<u32, Vec<(String, ColumnType)>>;

/// What relations and functions of the system look things up in.
#[derive(Debug)]
pub(crate) struct World {
    /// As the open statement sees it.
    pub catalog: Arc<Catalog>,
    pub facts: SessionFacts,
}

/// A session, seen from its queries: a picture of the moment in which the query was planned.
#[derive(Debug, Default)]
pub(crate) struct SessionFacts {
    /// The database's name: that of its file, without extension.
    pub database: String,
    /// Who is connected.
    pub user: String,
    /// What `version()` gives.
    pub version: String,
    /// The number by which others cancel the session.
    pub pid: i32,
    /// Namespaces that names without one are looked up in.
    pub search_path: Vec<String>,
    pub sequences: Vec<(Name, Sequence)>,
    pub comments: Vec<(About, String)>,
    /// As far as somebody planned these views. Columns of others are text.
    pub views: Arc<ViewColumns>,
    /// Settings by name, as SHOW has them.
    pub settings: BTreeMap<String, String>,
    /// When the database was opened, microseconds since 1970.
    pub started: i64,
    /// The transaction's number.
    pub transaction: u64,
    /// What `set_config` was called with.
    pub changes: Changes,
    /// By name.
    pub cursors: Vec<Arc<CursorFacts>>,
    /// Where plans with this picture in them are noted.
    pub pictures: Pictures,
}

/// Notes that what is planned has a picture of its session in it, as everything about the system
/// catalogs does: sequences go on, tables grow, cursors and transactions come and go without the
/// catalog's version telling of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pictures(Arc<AtomicBool>);

impl Pictures {
    pub fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether there was any since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// A setting that a query changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingChange {
    /// Its name.
    pub name: String,
    /// Its new value.
    pub value: String,
    /// Whether it ends with the transaction.
    pub is_local: bool,
}

/// What `set_config` has changed, until the session takes it over with the end of the statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Whether there are any: most statements have none, and ask for nothing but this.
    any: AtomicBool,
    changes: Mutex<Vec<SettingChange>>,
}

impl Changes {
    pub fn add(&self, change: SettingChange) {
        lock(&self.0.changes).push(change);
        self.0.any.store(true, Ordering::Release);
    }

    /// The last value that a setting was given.
    pub fn value(&self, name: &str) -> Option<String> {
        let changes = lock(&self.0.changes);
        changes.iter().rev().find(|change| change.name == name).map(|change| change.value.clone())
    }

    /// All since the last call.
    pub fn take(&self) -> Vec<SettingChange> {
        match self.0.any.load(Ordering::Acquire) {
            true => {
                self.0.any.store(false, Ordering::Release);
                std::mem::take(&mut *lock(&self.0.changes))
            }
            false => Vec::new(),
        }
    }
}

impl World {
    /// What the open statement sees.
    ///
    /// Errors: those of reading sequences.
    pub fn new(session: &mut Session, views: Arc<ViewColumns>) -> Result<World> {
        let transaction = session.transaction()?;
        let (number, view) = (transaction.id(), transaction.view());
        let (catalog, view) = (Arc::clone(view.catalog()), view.clone());
        let sequences = all_now(&session.shared, &view)?;
        let comments = comments::all(&view)?;
        let settings = &session.context.settings;
        let facts = SessionFacts {
            database: session.shared.name.clone(),
            user: settings.user().to_owned(),
            version: concat!("PostgreSQL 15.0 (Cairn ", env!("CARGO_PKG_VERSION"), ")").to_owned(),
            pid: session.backend as i32,
            search_path: settings.search_path.clone(),
            sequences,
            comments,
            views,
            settings: settings.all().into_iter().collect(),
            started: session.shared.started,
            transaction: number,
            changes: session.changes.clone(),
            cursors: session.cursors.all(),
            pictures: session.pictures.clone(),
        };
        Ok(World { catalog, facts })
    }

    /// The relation with this number, as it may stand in SQL.
    pub fn name_of(&self, oid: i64) -> String {
        lookup::class_name(self, oid)
    }
}
