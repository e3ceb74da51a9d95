//! A keyspace of an open store.

use cairn_vfs::sync::Mutex;
use cairn_vfs::sync::atomic::{AtomicBool, Ordering::*};

use crate::compaction::strategy::Policy;
use crate::db::abandoned::Abandoned;
use crate::db::running_jobs::RunningJobs;
use crate::db::view::View;
use crate::options::KeyspaceOptions;
use crate::swap::Swap;
use crate::version::KeyspaceId;
use crate::{Error, Result};

/// A keyspace of an open store.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub id: KeyspaceId,
    pub name: String,
    pub options: KeyspaceOptions,
    /// The view for readers. Replaced under the commit lock when a memtable is sealed, and under
    /// the lock of the version set when the tables change.
    pub view: Swap<View>,
    /// Running compactions.
    pub running: Mutex<RunningJobs>,
    /// Held during a manual compaction of a range.
    pub manual: Mutex<()>,
    pub strategy: Policy,
    pub abandoned: Abandoned,
    /// Set when the keyspace was dropped, after which its handles fail.
    pub dropped: AtomicBool,
}

impl KeyspaceState {
    /// Checks that the keyspace still exists. Errors: [`Error::NotFound`] if it was dropped.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.dropped.load(Relaxed) { Err(self.dropped_error()) } else { Ok(()) }
    }

    #[cold]
    fn dropped_error(&self) -> Error {
        Error::NotFound { what: format!("keyspace {:?} was dropped", self.name) }
    }

    /// Creates the state of an opened keyspace. Errors: [`Error::Invalid`] for invalid settings of
    /// the strategy.
    pub(crate) fn new(id: KeyspaceId, name: String, options: KeyspaceOptions, view: View) -> Result<Self> {
        debug_assert!(!name.is_empty(), "keyspace {} has no name", id.0);
        debug_assert!(view.is_empty(), "keyspace {name:?} has writes before it is open");
        debug_assert!(
            options.ttl.is_none() || options.blob_bytes_min.is_none(),
            "compactions would not see the age of values in blob files"
        );
        let strategy = options.compaction.build()?;
        let (view, dropped) = (Swap::new(view), AtomicBool::new(false));
        let (running, manual) = (Mutex::default(), Mutex::default());
        let abandoned = Abandoned::default();
        Ok(KeyspaceState { id, name, options, view, strategy, abandoned, dropped, running, manual })
    }
}
