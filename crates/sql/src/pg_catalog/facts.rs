//! What the system catalogs have to know about a session.

use std::collections::BTreeMap;

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Mutex, lock};

/// A session, seen from its queries: a picture of the moment in which the query began.
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
    /// The columns of views by the views' numbers, as far as somebody planned these. Others are text.
    pub views: BTreeMap<u32, Vec<(String, ColumnType)>>,
    /// Settings by name, as SHOW has them.
    pub settings: BTreeMap<String, String>,
    /// When the server or the database began, microseconds since 1970.
    pub started: i64,
    /// The transaction's number.
    pub transaction: u64,
    /// What `set_config` was called with.
    pub changes: Mutex<Vec<SettingChange>>,
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

impl SessionFacts {
    /// What `set_config` has changed since the last call.
    pub fn take_changes(&self) -> Vec<SettingChange> {
        std::mem::take(&mut *lock(&self.changes))
    }
}
