//! The data from which the system catalogs are built.

use std::collections::BTreeMap;

use cairn_table::Catalog;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::comments::{self, About};
use super::lookup;
use crate::error::Result;
use crate::runtime::sequence::{Name, Sequence, all_now};
use crate::session::{CursorFacts, Session};

/// The columns of views, by the number of the view.
pub(crate) type ViewColumns = BTreeMap<u32, Vec<(String, ColumnType)>>;

/// The data that system relations and functions use for lookups.
#[derive(Debug)]
pub(crate) struct World {
    /// The catalog as the open statement sees it.
    pub catalog: Arc<Catalog>,
    pub facts: SessionFacts,
}

/// A snapshot of the session for its queries, taken when the query is planned.
#[derive(Debug, Default)]
pub(crate) struct SessionFacts {
    /// The name of the database: that of its file, without extension.
    pub database: String,
    /// The connected user.
    pub user: String,
    /// The result of `version()`.
    pub version: String,
    /// The number by which others cancel the session.
    pub pid: i32,
    /// The namespaces in which unqualified names are looked up.
    pub search_path: Vec<String>,
    pub sequences: Vec<(Name, Sequence)>,
    pub comments: Vec<(About, String)>,
    /// The views that have been planned. Columns of other views are reported as text.
    pub views: Arc<ViewColumns>,
    /// Settings by name, as SHOW returns them.
    pub settings: BTreeMap<String, String>,
    /// The time when the database was opened, in microseconds since 1970.
    pub started: i64,
    /// The number of the transaction.
    pub transaction: u64,
    /// The changes made by `set_config`.
    pub changes: Changes,
    /// Sorted by name.
    pub cursors: Vec<Arc<CursorFacts>>,
    /// Notes that a plan contains this snapshot.
    pub pictures: Pictures,
}

/// Notes that a plan contains a snapshot of its session, as all plans about the system catalogs do.
/// Such plans cannot be kept: sequences advance, tables grow, cursors and transactions come and go,
/// none of which changes the catalog's version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pictures(Arc<AtomicBool>);

impl Pictures {
    pub fn note(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether a plan has been noted since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

/// A setting that a query has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingChange {
    /// Its name.
    pub name: String,
    /// Its new value.
    pub value: String,
    /// Whether it ends with the transaction.
    pub is_local: bool,
}

/// The changes made by `set_config`, until the session applies them at the end of the statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Whether there are changes. Most statements have none, and check nothing but this.
    any: AtomicBool,
    changes: Mutex<Vec<SettingChange>>,
}

impl Changes {
    pub fn add(&self, change: SettingChange) {
        lock(&self.0.changes).push(change);
        self.0.any.store(true, Ordering::Release);
    }

    /// Returns the last value given to a setting.
    pub fn value(&self, name: &str) -> Option<String> {
        let changes = lock(&self.0.changes);
        changes.iter().rev().find(|change| change.name == name).map(|change| change.value.clone())
    }

    /// Takes the changes since the last call.
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
    /// Returns the data that the open statement sees.
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

    /// Returns the name of the relation with this OID, as written in SQL.
    pub fn name_of(&self, oid: i64) -> String {
        lookup::class_name(self, oid)
    }
}
