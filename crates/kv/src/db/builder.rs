//! The builder with which a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{Clock, Fs};

use crate::Result;
use crate::db::keyspace::Db;
use crate::events::EventListener;
use crate::options::{Background, Durability, KeyspaceOptions, Options};

/// Options for opening a store. The defaults suit a machine with a few gigabytes of memory.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) fs: Option<Arc<dyn Fs>>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) seed: Option<u64>,
    pub(crate) options: Options,
    pub(crate) default: KeyspaceOptions,
    /// Whether the options were set by [`Builder::default_keyspace`].
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

    /// Sets the file system. Default: that of the machine.
    #[must_use]
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = Some(fs);
        self
    }

    /// Sets the clock. Default: that of the machine.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Seeds the few random numbers that a store needs (ids of stores and logs), so that equal runs
    /// write equal bytes. Default: random numbers of the operating system.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets all options of the store at once.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the options of the default keyspace. Without this call the keyspace keeps its last
    /// compaction strategy and uses the defaults for all other options.
    #[must_use]
    pub fn default_keyspace(mut self, options: KeyspaceOptions) -> Self {
        self.default = options;
        self.is_default_given = true;
        self
    }

    /// Sets the options of keyspace `name`, and creates the keyspace if it does not exist. A name
    /// can be given only once.
    ///
    /// An existing keyspace that is not named is opened with the options of the default keyspace,
    /// but keeps its own TTL, merge operator and compaction strategy. It gets no compaction filter,
    /// which could drop its entries.
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

    /// See [`KeyspaceOptions::memtable_bytes`]. Applies to the default keyspace.
    #[must_use]
    pub fn memtable_bytes(mut self, bytes: u64) -> Self {
        self.default.memtable_bytes = bytes;
        self
    }
}

impl Db {
    /// Returns a builder that opens or creates the store in the directory `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref())
    }

    /// Opens or creates the store in the directory `path` with default options.
    pub fn open(path: impl AsRef<Path>) -> Result<Db> {
        Db::builder(path).open()
    }
}
