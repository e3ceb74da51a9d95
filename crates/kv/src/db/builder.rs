//! How a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, Fs, StdFs, SystemClock};

use crate::Result;
use crate::db::keyspace::Db;
use crate::events::EventListener;
use crate::options::{Background, Durability, KeyspaceOptions, Options};

/// Options of a store to be opened. Each has a default that suits a machine of a few gigabytes.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fs: Option<Arc<dyn Fs>>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) seed: Option<u64>,
    pub(crate) options: Options,
    pub(crate) default: KeyspaceOptions,
    /// Whether [`Builder::default_keyspace`] was asked for these.
    pub(crate) is_default_given: bool,
    /// Options of other keyspaces, by name.
    pub(crate) keyspaces: Vec<(String, KeyspaceOptions)>,
}

impl Builder {
    pub(crate) fn new(path: &Path) -> Self {
        Builder {
            path: path.to_owned(),
            fs: None,
            clock: None,
            seed: None,
            options: Options::default(),
            default: KeyspaceOptions::default(),
            is_default_given: false,
            keyspaces: Vec::new(),
        }
    }

    /// The file system. Default: the machine's.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = Some(fs);
        self
    }

    /// The clock. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Seeds the few random numbers that a store needs (ids of stores and logs), so that equal runs
    /// write equal bytes. Default: the machine's random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// All options of the store at once.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Options of the default keyspace. Without them it is compacted as it was when the store was
    /// open the last time, and has the defaults for all else.
    #[must_use]
    pub fn default_keyspace(mut self, options: KeyspaceOptions) -> Self {
        self.default = options;
        self.is_default_given = true;
        self
    }

    /// Options of keyspace `name`, which is made when it is missing; each is named once. Keyspaces
    /// that are there and not named here are opened with the options of the default keyspace, but
    /// keep their own TTL and merge operator, are compacted as they were the last time, and get no
    /// compaction filter, which would drop entries of theirs.
    #[must_use]
    pub fn keyspace(mut self, name: impl Into<String>, options: KeyspaceOptions) -> Self {
        self.keyspaces.push((name.into(), options));
        self
    }

    /// See [`Options::create_if_missing`].
    #[must_use]
    pub fn create_if_missing(mut self, yes: bool) -> Self {
        self.options.create_if_missing = yes;
        self
    }

    /// See [`Options::error_if_exists`].
    #[must_use]
    pub fn error_if_exists(mut self, yes: bool) -> Self {
        self.options.error_if_exists = yes;
        self
    }

    /// See [`Options::read_only`].
    #[must_use]
    pub fn read_only(mut self, yes: bool) -> Self {
        self.options.read_only = yes;
        self
    }

    /// See [`Options::cache_bytes`].
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.options.cache_bytes = bytes;
        self
    }

    /// See [`Options::durability`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    /// See [`Options::sync_interval`].
    #[must_use]
    pub fn sync_interval(mut self, interval: Duration) -> Self {
        self.options.sync_interval = Some(interval);
        self
    }

    /// See [`Options::background`].
    #[must_use]
    pub fn background(mut self, background: Background) -> Self {
        self.options.background = background;
        self
    }

    /// See [`Options::rate_limit_bytes`].
    #[must_use]
    pub fn rate_limit_bytes(mut self, bytes_a_second: u64) -> Self {
        self.options.rate_limit_bytes = Some(bytes_a_second);
        self
    }

    /// See [`Options::listener`].
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn EventListener>) -> Self {
        self.options.listener = Some(listener);
        self
    }

    /// See [`KeyspaceOptions::memtable_bytes`]; of the default keyspace.
    #[must_use]
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.default.memtable_bytes = bytes;
        self
    }

    /// Opens the store, recovering it where needed.
    ///
    /// Costs the manifest and the log since the last flushes; no table is read.
    /// Errors: [`crate::Error::Busy`] when a process has it open, [`crate::Error::NotFound`] when
    /// it is not there and not to be made, [`crate::Error::Vfs`] of
    /// [`cairn_vfs::Operation::StartThread`] when the system has no more threads: it is closed
    /// again then, [`crate::Error::Corruption`] for damage below what was synced,
    /// [`crate::Error::Invalid`] for options that contradict themselves or the store.
    pub fn open(self) -> Result<Db> {
        let fs = self.fs.clone().unwrap_or_else(|| Arc::new(StdFs::new()));
        let clock = self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
        crate::db::open::open(self, fs, clock)
    }
}
