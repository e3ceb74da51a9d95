//! Opening a store: lock, manifest, keyspaces, leftover files, log and threads.

use std::collections::HashSet;
use std::path::Path;

use cairn_vfs::sync::Arc;
use cairn_vfs::{
    Clock, ErrorKind, File, Fs, OpenOptions, Rng, SeededRng, StdFs, SystemClock, SystemRng, ensure,
};
use cairn_wal::Known;

use crate::admin::ReadOnly;
use crate::batch::DEFAULT;
use crate::db::assemble::assemble;
use crate::db::builder::Builder;
use crate::db::core::Core;
use crate::db::cross_check;
use crate::db::inner::{GivenOptions, Inner};
use crate::db::keyspace::Db;
use crate::db::recovery;
use crate::db::reserve::{LOCK_NAME, Reserve};
use crate::db::stored_options::StoredOptions;
use crate::db::tables::Tables;
use crate::open_files::OpenFiles;
use crate::options::{KeyspaceOptions, Options};
use crate::version::{FileName, KeyspaceId, NewKeyspace, VersionEdit, VersionSet};
use crate::{Error, Result};

impl Builder {
    /// Opens the store, and recovers it if necessary.
    ///
    /// Reads the manifest and the log since the last flushes, but no tables.
    ///
    /// Errors:
    /// - [`crate::Error::Busy`] if the store is already open.
    /// - [`crate::Error::NotFound`] if the store does not exist and must not be created.
    /// - [`crate::Error::Vfs`] with [`cairn_vfs::Operation::StartThread`] if the system has no more
    ///   threads; the store is closed again.
    /// - [`crate::Error::Corruption`] if data is damaged that had been synced.
    /// - [`crate::Error::Invalid`] for options that contradict each other or the store.
    pub fn open(self) -> Result<Db> {
        let fs = self.fs.clone().unwrap_or_else(|| Arc::new(StdFs::new()));
        let clock = self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
        open(self, fs, clock)
    }
}

/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_NAME: &str = "default";

fn open(builder: Builder, fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> Result<Db> {
    let options = &builder.options;
    options.check()?;
    let files = OpenFiles::new(fs, options.open_files_max, options.read_only);
    let fs = files.reclaiming();
    let again = builder.clone();
    match open_once(builder, Arc::clone(&files), Arc::clone(&clock)) {
        // A store that has filled its disk must still open, so that it can be read and emptied.
        // Giving up the reserve makes room for that.
        Err(error)
            if error.is_full() && !again.options.read_only && Reserve::release_closed(&fs, &again.path) =>
        {
            open_once(again, files, clock)
        }
        result => result,
    }
}

fn open_once(builder: Builder, files: Arc<OpenFiles>, clock: Arc<dyn Clock>) -> Result<Db> {
    let fs = files.reclaiming();
    let Builder { path, options, default, is_default_given, keyspaces: named, seed, .. } = builder;
    let mut rng: Box<dyn Rng> = match seed {
        Some(seed) => Box::new(SeededRng::new(seed)),
        None => Box::new(SystemRng::new().map_err(|error| {
            Error::invalid(format!("cannot get random numbers from the system: {error}"))
        })?),
    };
    default.check()?;
    let mut names = HashSet::new();
    for (name, options) in &named {
        options.check()?;
        if !names.insert(name) {
            return Err(Error::invalid(format!("keyspace {name:?}: options are specified twice")));
        }
        if name.is_empty() || name == DEFAULT_NAME {
            let what = format!(
                "keyspace {name:?}: use Builder::default_keyspace for the options of the default keyspace"
            );
            return Err(Error::invalid(what));
        }
    }

    let exists = prepare_directory(&fs, &path, &options)?;
    if options.read_only {
        let given = GivenOptions { default, is_default_given, named };
        return ReadOnly { path, fs, files, clock, options, given }.open(None);
    }
    let reserve = Some(Reserve::new(take_lock(&fs, &path)?));
    let new_log = Known { log_id: rng.next_u64().max(1), ..Known::default() };
    let versions = if exists {
        // ORDER: before anything is written. If files belong to another store, the open must not
        // continue with them, nor remove other files because of them.
        let log = cross_check::check(&fs, &path, new_log)?;
        VersionSet::open(&fs, &path, log)?
    } else {
        let mut edit = VersionEdit { log: Some(new_log), ..VersionEdit::default() };
        edit.created.push(new_keyspace(DEFAULT, DEFAULT_NAME, &default));
        VersionSet::create(&fs, &path, rng.next_u64(), &edit)?
    };
    create_missing(&versions, &named)?;
    remove_leftovers(&*fs, &versions)?;

    let tables = Tables::new(files, Arc::new(path), &options);
    let given = GivenOptions { default, is_default_given, named };
    let inner = assemble(fs, clock, options, reserve, versions, given, Arc::new(tables))?;
    let inner = Arc::new(inner);
    // ORDER: before anything can be merged, because only this operator can read merged entries.
    keep_options(&inner)?;
    recovery::recover(&inner, &mut *rng)?;
    let default = inner.keyspace(DEFAULT)?;
    // ORDER: before the first thread starts. The threads hold the store and thus its lock. If the
    // system refuses a later thread, dropping `core` stops the earlier ones.
    let core = Arc::new(Core { inner });
    core.inner.start_threads()?;
    if let Some(reserve) = &core.inner.reserve {
        // Without the reserve, puts are refused until there is room for it.
        let _ = reserve.restore();
    }
    core.inner.work_is_due(&default)?;
    Ok(Db::new(core, default))
}

/// Creates the directory if the options allow it. Returns true if it holds a store.
fn prepare_directory(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<bool> {
    let exists = fs.exists(path)? && VersionSet::exists(fs, path)?;
    if exists && options.error_if_exists {
        return Err(Error::invalid(format!("{} already holds a store", path.display())));
    }
    if !exists && (options.read_only || !options.create_if_missing) {
        return Err(Error::NotFound { what: format!("there is no store in {}", path.display()) });
    }
    if !exists {
        fs.create_dir_all_durably(path)?;
    }
    Ok(exists)
}

/// Locks the store in `path`. Errors: [`Error::Busy`] if the store is already open.
pub(crate) fn take_lock(fs: &Arc<dyn Fs>, path: &Path) -> Result<Box<dyn File>> {
    let file = fs.open(&path.join(LOCK_NAME), OpenOptions::create())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == ErrorKind::Busy => Err(Error::Busy {
            what: format!("the store in {} is already open in this or another process", path.display()),
        }),
        Err(error) => Err(error.into()),
    }
}

fn new_keyspace(id: KeyspaceId, name: &str, options: &KeyspaceOptions) -> NewKeyspace {
    NewKeyspace { id, name: name.to_owned(), options: StoredOptions::of(options).encode() }
}

/// Creates the named keyspaces that do not exist yet.
fn create_missing(versions: &VersionSet, named: &[(String, KeyspaceOptions)]) -> Result<()> {
    let stored = versions.keyspaces();
    let names: HashSet<&str> = stored.iter().map(|(_, state)| state.name.as_str()).collect();
    // The log contains nothing of the new keyspaces yet. Without a start position, they would
    // require the log from its beginning, which may have been released.
    let log_start = stored.iter().map(|(_, state)| state.log_start).min();
    let mut edit = VersionEdit::default();
    let mut id = versions.next_keyspace_id();
    // A single edit for all, because each edit costs a sync.
    for (name, options) in named.iter().filter(|(name, _)| !names.contains(name.as_str())) {
        edit.created.push(new_keyspace(id, name, options));
        edit.keyspace(id).log_start = log_start;
        id = KeyspaceId(id.0.saturating_add(1));
    }
    if edit.created.is_empty() { Ok(()) } else { versions.log_and_apply(edit, |_, _| {}) }
}

/// Stores the options with which keyspaces were opened: the operator names of keyspaces created
/// without an operator, because merged entries cannot be read without it, and the strategies, for
/// later opens that do not name the keyspace.
fn keep_options(inner: &Inner) -> Result<()> {
    let mut edit = VersionEdit::default();
    for (id, stored) in inner.versions.keyspaces() {
        let kept = StoredOptions::decode(&stored.options, &inner.path)?;
        let given = StoredOptions::of(&inner.keyspace(id)?.options);
        let merge_operator = match kept.merge_operator.is_empty() {
            true => given.merge_operator,
            false => kept.merge_operator.clone(),
        };
        let wanted = StoredOptions { merge_operator, compaction: given.compaction, ..kept.clone() };
        if wanted != kept {
            edit.options.push((id, wanted.encode()));
        }
    }
    if edit.options.is_empty() {
        return Ok(());
    }
    inner.versions.log_and_apply(edit, |_, _| {})
}

/// Removes the files of unfinished jobs that a crash left behind.
fn remove_leftovers(fs: &dyn Fs, versions: &VersionSet) -> Result<()> {
    for stray in versions.stray_files()?.unreferenced {
        ensure!(FileName::parse(&stray).is_some(), "{} is not a file of a store", stray.display());
        fs.remove(&stray)?;
    }
    Ok(())
}
