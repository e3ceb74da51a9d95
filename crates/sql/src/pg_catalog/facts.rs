//! The data from which the system catalogs are built.

use std::collections::BTreeMap;

use cairn_table::Catalog;
use cairn_vfs::sync::Arc;

use super::comments::{self, About};
use crate::error::Result;
use crate::runtime::sequence::{Name, Sequence, all_now};
use crate::session::{CursorFacts, Session, SettingChanges, SnapshotMark, ViewColumns};

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
    pub changes: SettingChanges,
    /// Sorted by name.
    pub cursors: Vec<Arc<CursorFacts>>,
    /// Notes that a plan contains this snapshot.
    pub snapshots: SnapshotMark,
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
            changes: session.setting_changes.clone(),
            cursors: session.cursors.all(),
            snapshots: session.snapshots.clone(),
        };
        Ok(World { catalog, facts })
    }
}
