//! The state of an open store, shared by its handles and background threads.

use std::path::PathBuf;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use cairn_vfs::sync::{Arc, Line, Mutex, OnceLock, RwLock, lock};
use cairn_vfs::{Clock, Fs};
use cairn_wal::{Appender, Log, Lsn};

use crate::compaction::strategy::Strategy;
use crate::db::background::Background;
use crate::db::budget::Budget;
use crate::db::compact::RunningJobs;
use crate::db::controller::Controller;
use crate::db::given_up::GivenUp;
use crate::db::limiter::Limiter;
use crate::db::order::Order;
use crate::db::registry::Registry;
use crate::db::reserve::Reserve;
use crate::db::snapshots::{SnapshotGuard, Snapshots};
use crate::db::stats::Counters;
use crate::db::tables::Tables;
use crate::db::view::View;
use crate::kind::Seqno;
use crate::memtable::Memtable;
use crate::options::{KeyspaceOptions, Options};
use crate::swap::Swap;
use crate::ttl::Ttl;
use crate::txn::LockTable;
use crate::version::{KeyspaceId, VersionSet};
use crate::{Error, Result, foreign};

/// A keyspace of an open store.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub id: KeyspaceId,
    pub name: String,
    pub options: KeyspaceOptions,
    /// What readers read. Replaced under the commit lock when a memtable is sealed, under the
    /// version set's when its tables change.
    pub view: Swap<View>,
    /// Compactions under way.
    pub running: Mutex<RunningJobs>,
    /// Held by whoever compacts a range because the user asked for it.
    pub manual: Mutex<()>,
    pub strategy: Box<dyn Strategy>,
    pub given_up: GivenUp,
    /// Set when the keyspace was dropped: its handles fail.
    pub dropped: AtomicBool,
}

impl KeyspaceState {
    /// Errors: [`Error::NotFound`] once it was dropped.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.dropped.load(Relaxed) { Err(self.gone()) } else { Ok(()) }
    }

    #[cold]
    fn gone(&self) -> Error {
        Error::NotFound { what: format!("keyspace {:?} was dropped", self.name) }
    }

    /// Errors: [`Error::Invalid`] for settings of the strategy.
    pub(crate) fn new(id: KeyspaceId, name: String, options: KeyspaceOptions, view: View) -> Result<Self> {
        let strategy = options.compaction.build()?;
        let (view, dropped) = (Swap::new(view), AtomicBool::new(false));
        let (running, manual) = (Mutex::default(), Mutex::default());
        let given_up = GivenUp::default();
        Ok(KeyspaceState { id, name, options, view, strategy, given_up, dropped, running, manual })
    }
}

/// What the commit lock guards: the order of writes, and where they go.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The number of the next operation.
    pub next_seqno: Seqno,
    /// Active memtables, by keyspace id; `None` for ids that are not open.
    pub active: Vec<Option<Arc<Memtable>>>,
    /// Where the old log ended, or the replay is: what counts as the position while there is no
    /// appender.
    pub end: Lsn,
    /// Where the notes begin and end that were appended last ([`Inner::note_edit`]).
    pub noted: (Lsn, Lsn),
    /// Where records are appended. Empty together with [`Inner::log`].
    pub appender: Option<Appender>,
}

impl Commit {
    /// Behind the last record of the log.
    pub(crate) fn position(&self) -> Lsn {
        self.appender.as_ref().map_or(self.end, Appender::position)
    }
}

/// What the opener has said of keyspaces. Those that are open may have been given more, by what is
/// stored of them.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub default: KeyspaceOptions,
    /// Whether these were given as such. If not, the default keyspace is compacted as before.
    pub is_default_given: bool,
    /// Of others, by name.
    pub named: Vec<(String, KeyspaceOptions)>,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct Inner {
    pub path: Arc<PathBuf>,
    pub fs: Arc<dyn Fs>,
    pub clock: Arc<dyn Clock>,
    pub options: Options,
    /// For opening it again.
    pub given: Given,
    /// The store's lock, and room on its disk for when there is no other. Not in one that is open
    /// for reading only.
    pub reserve: Option<Reserve>,
    pub commit: Line<Mutex<Commit>>,
    pub order: Order,
    /// Empty in a store that is open for reading only, and until the old log is replayed.
    pub log: OnceLock<Log>,
    /// Taken for writing to create and drop keyspaces; for reading to install what a job has made,
    /// so that its keyspace is not dropped meanwhile.
    pub structure: RwLock<()>,
    /// Open keyspaces.
    pub keyspaces: Registry,
    pub versions: VersionSet,
    pub snapshots: Arc<Snapshots>,
    /// Of pessimistic transactions.
    pub locks: LockTable,
    pub tables: Arc<Tables>,
    pub controller: Controller,
    /// Where all memtables together are bounded.
    pub budget: Option<Budget>,
    pub background: Background,
    /// The last number when it was found that no writes come.
    pub idle_at: AtomicU64,
    pub counters: Counters,
    pub limiter: Limiter,
    /// The first failure that made the state of the files uncertain.
    pub failure: OnceLock<Arc<Error>>,
    pub failed: AtomicBool,
    /// The newest segment of the log that a write has come to.
    pub segment: AtomicU32,
    /// The position that the manifest knows the log to have reached.
    pub recorded: AtomicU64,
    /// Held by whoever tells it of a new segment.
    pub recording: Mutex<()>,
    /// The failure of the last job, when that was a full disk.
    pub full: Mutex<Option<Error>>,
    pub is_full: AtomicBool,
    /// How many jobs have found no room.
    pub full_count: AtomicU64,
    /// How often somebody has gone through all keyspaces.
    #[cfg(test)]
    pub walks: AtomicU64,
}

impl Inner {
    /// Errors: [`Error::Poisoned`] after a failure, [`Error::Unsupported`] in a store that is open
    /// for reading only.
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
            None => Error::unsupported(&self.path, "it is open for reading only and cannot be written"),
        }
    }

    /// Remembers that writing has failed, for good. Gives back the error for whoever met it first.
    pub(crate) fn poison(&self, error: Error) -> Error {
        // The log, or the manifest, may have failed where nobody was told of it, and says so now.
        let cause = match &error {
            Error::Poisoned { cause, .. } => Arc::clone(cause),
            error => Arc::new(error.clone()),
        };
        let is_first = self.failure.set(cause).is_ok();
        self.failed.store(true, SeqCst);
        if is_first {
            self.controller.wake();
            // Once: a thread that looks for work, meets the failure and wakes the threads that look
            // for work would have no end.
            self.background.wake_all();
            self.tell_failure(&error);
        }
        error
    }

    /// Tells the listener of a failure.
    pub(crate) fn tell_failure(&self, error: &Error) {
        self.tell(|| crate::events::Event::Failed { error: error.clone() });
    }

    /// Hands an event to the listener, when there is one.
    pub(crate) fn tell(&self, event: impl FnOnce() -> crate::events::Event) {
        if let Some(listener) = &self.options.listener {
            foreign::call_quietly(|| listener.on_event(&event()));
        }
    }

    /// When entries of `keyspace` expire, as of now.
    #[inline]
    pub(crate) fn ttl(&self, keyspace: &KeyspaceState) -> Option<Ttl> {
        let ttl = keyspace.options.ttl?;
        Some(Ttl { secs: ttl.as_secs(), now_secs: self.clock.wall().as_secs() })
    }

    /// Errors: [`Error::Invalid`] for a snapshot of another store, whose number means nothing here;
    /// also for one that was taken before a refresh: what it sees may be gone.
    pub(crate) fn check_snapshot(&self, snapshot: &SnapshotGuard) -> Result<()> {
        if snapshot.is_of(&self.snapshots) { Ok(()) } else { Err(self.of_another_store("the snapshot")) }
    }

    /// The error of a handle that was not made by this store.
    #[cold]
    pub(crate) fn of_another_store(&self, what: &str) -> Error {
        Error::invalid(format!(
            "{what} belongs to another open store, but is used with {}",
            self.path.display()
        ))
    }

    /// Errors: [`Error::Poisoned`] after a failure.
    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.failed.load(SeqCst) { Err(self.refuse_write()) } else { Ok(()) }
    }

    /// The open keyspace `id`.
    pub(crate) fn keyspace(&self, id: KeyspaceId) -> Result<Arc<KeyspaceState>> {
        match self.keyspaces.load().get(id) {
            Some(keyspace) => Ok(Arc::clone(keyspace)),
            None => Err(Error::NotFound {
                what: format!("keyspace {} is not open in {}", id.0, self.path.display()),
            }),
        }
    }

    /// All open keyspaces.
    pub(crate) fn all_keyspaces(&self) -> Vec<Arc<KeyspaceState>> {
        #[cfg(test)]
        self.walks.fetch_add(1, Relaxed);
        self.keyspaces.load().iter().cloned().collect()
    }

    /// True when no write came since [`Inner::declare_idle`].
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_at.load(Relaxed) == self.order.visible()
    }

    /// No writes come: time to do what costs writes and saves space. Says whether that is news.
    pub(crate) fn declare_idle(&self) -> bool {
        let last = self.order.visible();
        self.idle_at.swap(last, Relaxed) != last
    }

    /// The highest number that was given out.
    pub(crate) fn last_seqno(&self) -> Seqno {
        lock(&self.commit).next_seqno - 1
    }
}
