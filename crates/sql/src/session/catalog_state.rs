//! The part of a session that queries about the system catalogs read and change.

use std::collections::BTreeMap;

use cairn_table::schema::ColumnType;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

/// The columns of views, by the number of the view.
pub(crate) type ViewColumns = BTreeMap<u32, Vec<(String, ColumnType)>>;

/// Notes that a plan contains a snapshot of its session, as all plans about the system catalogs do.
/// Such plans cannot be kept: sequences advance, tables grow, cursors and transactions come and go,
/// none of which changes the catalog's version.
#[derive(Debug, Clone, Default)]
pub(crate) struct SnapshotMark(Arc<AtomicBool>);

impl SnapshotMark {
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
pub(crate) struct SettingChanges(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Whether there are changes. Most statements have none, and check nothing but this.
    any: AtomicBool,
    changes: Mutex<Vec<SettingChange>>,
}

impl SettingChanges {
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
