//! The state of an open store, shared by its handles and background threads.

use std::path::PathBuf;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, OnceLock, RwLock, lock};
use cairn_vfs::{Clock, Fs};
use cairn_wal::{Appender, Log, Lsn};

use crate::db::background::Background;
use crate::db::budget::Budget;
use crate::db::controller::Controller;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::limiter::Limiter;
use crate::db::registry::Registry;
use crate::db::reserve::Reserve;
use crate::db::snapshots::{SnapshotGuard, Snapshots};
use crate::db::stats::Counters;
use crate::db::tables::Tables;
use crate::db::visibility_order::VisibilityOrder;
use crate::kind::{SEQNO_MAX, Seqno};
use crate::memtable::Memtable;
use crate::options::{KeyspaceOptions, Options};
use crate::ttl::Ttl;
use crate::txn::LockTable;
use crate::version::{KeyspaceId, VersionSet};
use crate::{Error, Result, user_code};

/// The state guarded by the commit lock: the order of writes and their destinations.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The sequence number of the next operation.
    pub next_seqno: Seqno,
    /// Active memtables, indexed by keyspace id; `None` for ids that are not open.
    pub active: Vec<Option<Arc<Memtable>>>,
    /// The end of the old log, or the position of the replay. Serves as the log position while
    /// there is no appender.
    pub end: Lsn,
    /// Start and end of the most recently appended run of notes ([`Inner::note_edit`]).
    pub noted: (Lsn, Lsn),
    /// Appends log records. `None` as long as [`Inner::log`] is empty.
    pub appender: Option<Appender>,
}

impl Commit {
    /// Returns the position after the last record of the log.
    pub(crate) fn position(&self) -> Lsn {
        let position = self.appender.as_ref().map_or(self.end, Appender::position);
        debug_assert!(position >= self.end, "the log ends at {position}, before its old end {}", self.end);
        position
    }
}

/// Keyspace options as given by the caller of the open. The options in effect may also include
/// options stored with the keyspace.
#[derive(Debug, Clone)]
pub(crate) struct GivenOptions {
    pub default: KeyspaceOptions,
    /// Whether `default` was given explicitly. If not, the default keyspace keeps its stored
    /// compaction strategy.
    pub is_default_given: bool,
    /// Options of other keyspaces, by name.
    pub named: Vec<(String, KeyspaceOptions)>,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub path: Arc<PathBuf>,
    pub fs: Arc<dyn Fs>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    /// Kept to open the store again.
    pub given: GivenOptions,
    /// The store's lock and its reserve of disk space. `None` in a read-only store.
    pub reserve: Option<Reserve>,
    pub commit: CacheAligned<Mutex<Commit>>,
    pub order: VisibilityOrder,
    /// Empty in a read-only store, and until the old log has been replayed.
    pub log: OnceLock<Log>,
    /// Held for writing to create and drop keyspaces. Held for reading to install the output of a
    /// job, so that its keyspace is not dropped meanwhile.
    pub structure: RwLock<()>,
    /// The open keyspaces.
    pub keyspaces: Registry,
    pub versions: VersionSet,
    pub snapshots: Arc<Snapshots>,
    /// Key locks of pessimistic transactions.
    pub locks: LockTable,
    pub tables: Arc<Tables>,
    pub controller: Controller,
    /// Set if the memory of all memtables together is limited.
    pub budget: Option<Budget>,
    pub background: Background,
    /// The last visible sequence number when the store was found idle.
    pub idle_at: AtomicU64,
    pub counters: Counters,
    pub limiter: Limiter,
    /// The first failure that left the state of the files uncertain.
    pub failure: OnceLock<Arc<Error>>,
    pub failed: AtomicBool,
    /// The newest log segment that a write has reached.
    pub segment: AtomicU32,
    /// The durable log position that the manifest records.
    pub recorded: AtomicU64,
    /// Held while the manifest is told of a new log segment.
    pub recording: Mutex<()>,
    /// The error of the last job, if it was a full disk or the limit of open files.
    pub out_of_space: Mutex<Option<Error>>,
    pub is_out_of_space: AtomicBool,
    /// Number of jobs that failed for lack of disk space or descriptors.
    pub out_of_space_count: AtomicU64,
    /// Number of iterations over all keyspaces.
    #[cfg(test)]
    pub walks: AtomicU64,
}

impl Inner {
    /// Returns the log. Errors: [`Error::Poisoned`] after a failure, [`Error::Unsupported`] in a
    /// read-only store.
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<&Log> {
        match self.log.get() {
            Some(log) if !self.failed.load(Relaxed) => Ok(log),
            _ => Err(self.refuse_write()),
        }
    }

    #[cold]
    pub(crate) fn refuse_write(&self) -> Error {
        match self.failure.get() {
            Some(cause) => Error::Poisoned { path: self.path.to_path_buf(), cause: Arc::clone(cause) },
            None => Error::unsupported(&self.path, "the store is read-only"),
        }
    }

    /// Poisons the store because of `error`, and returns `error` to the caller that met it.
    pub(crate) fn poison(&self, error: Error) -> Error {
        // The log or the manifest may have been poisoned earlier without a report, and returns that
        // failure only now.
        let cause = match &error {
            Error::Poisoned { cause, .. } => Arc::clone(cause),
            error => Arc::new(error.clone()),
        };
        let is_first = self.failure.set(cause).is_ok();
        debug_assert!(self.failure.get().is_some(), "a failure without a cause");
        self.failed.store(true, SeqCst);
        if is_first {
            self.controller.wake();
            // Only for the first failure: otherwise a thread that looks for work would meet the
            // failure and wake the other such threads, without end.
            self.background.wake_all();
            self.notify_failure(&error);
        }
        error
    }

    /// Reports a failure to the listener.
    pub(crate) fn notify_failure(&self, error: &Error) {
        self.notify(|| crate::events::Event::Failed { error: error.clone() });
    }

    /// Passes an event to the listener, if there is one.
    pub(crate) fn notify(&self, event: impl FnOnce() -> crate::events::Event) {
        if let Some(listener) = &self.options.listener {
            user_code::call_quietly(|| listener.on_event(&event()));
        }
    }

    /// Returns the TTL of `keyspace` together with the current time, or `None` if its entries do
    /// not expire.
    #[inline]
    pub(crate) fn ttl(&self, keyspace: &KeyspaceState) -> Option<Ttl> {
        let ttl = keyspace.options.ttl?;
        debug_assert!(ttl.as_secs() > 0, "entries would expire when they are written");
        Some(Ttl { secs: ttl.as_secs(), now_secs: self.clock.wall().as_secs() })
    }

    /// Checks that a snapshot is of this store. Errors: [`Error::Invalid`] for a snapshot of
    /// another store, whose sequence number has no meaning here, and for one taken before a
    /// refresh, whose data may be gone.
    pub(crate) fn check_snapshot(&self, snapshot: &SnapshotGuard) -> Result<()> {
        if snapshot.is_of(&self.snapshots) { Ok(()) } else { Err(self.wrong_store("the snapshot")) }
    }

    /// Returns the error for a handle of another store.
    #[cold]
    pub(crate) fn wrong_store(&self, what: &str) -> Error {
        Error::invalid(format!(
            "{what} belongs to another open store, but is used with {}",
            self.path.display()
        ))
    }

    /// Checks that the store has not failed. Errors: [`Error::Poisoned`] after a failure.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.failed.load(SeqCst) { Err(self.refuse_write()) } else { Ok(()) }
    }

    /// Returns the open keyspace `id`.
    pub(crate) fn keyspace(&self, id: KeyspaceId) -> Result<Arc<KeyspaceState>> {
        match self.keyspaces.load().get(id) {
            Some(keyspace) => {
                debug_assert_eq!(keyspace.id, id, "the registry has another keyspace here");
                Ok(Arc::clone(keyspace))
            }
            None => Err(Error::NotFound {
                what: format!("keyspace {} is not open in {}", id.0, self.path.display()),
            }),
        }
    }

    /// Returns all open keyspaces.
    pub(crate) fn all_keyspaces(&self) -> Vec<Arc<KeyspaceState>> {
        #[cfg(test)]
        self.walks.fetch_add(1, Relaxed);
        self.keyspaces.load().iter().cloned().collect()
    }

    /// Returns true if nothing was written since [`Inner::declare_idle`].
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_at.load(Relaxed) == self.order.visible()
    }

    /// Declares the store idle, so that work is done that costs writes and saves space. Returns
    /// false if it was idle already.
    pub(crate) fn declare_idle(&self) -> bool {
        let last = self.order.visible();
        self.idle_at.swap(last, Relaxed) != last
    }

    /// Returns the highest sequence number assigned so far.
    pub(crate) fn last_seqno(&self) -> Seqno {
        let next = lock(&self.commit).next_seqno;
        debug_assert!(next > 0, "numbers begin at 1");
        debug_assert!(next - 1 <= SEQNO_MAX, "number {} was given out", next - 1);
        next - 1
    }
}
