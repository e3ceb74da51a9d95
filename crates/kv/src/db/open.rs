//! Opening a store: lock, manifest, keyspaces, leftovers, log, threads.

use std::path::Path;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use cairn_vfs::sync::{Arc, Line, Mutex, OnceLock, RwLock};
use cairn_vfs::{Clock, ErrorKind, File, Fs, OpenOptions, Rng, SeededRng, SystemRng};
use cairn_wal::Lsn;

use crate::admin::ReadOnly;
use crate::batch::DEFAULT;
use crate::compaction::strategy::StrategyOptions;
use crate::db::background::Background;
use crate::db::builder::Builder;
use crate::db::controller::Controller;
use crate::db::core::Core;
use crate::db::inner::{Commit, Given, Inner, KeyspaceState};
use crate::db::keyspace::Db;
use crate::db::limiter::Limiter;
use crate::db::order::Order;
use crate::db::recovery;
use crate::db::stats::Counters;
use crate::db::stored_options::StoredOptions;
use crate::db::tables::Tables;
use crate::db::view::View;
use crate::memtable::Memtable;
use crate::options::{KeyspaceOptions, Options};
use crate::swap::Swap;
use crate::txn::LockTable;
use crate::version::{KeyspaceId, NewKeyspace, VersionEdit, VersionSet};
use crate::{Error, Result};

/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_NAME: &str = "default";

/// The file whose lock says that the store is open.
pub(crate) const LOCK_NAME: &str = "LOCK";

pub(crate) fn open(builder: Builder, fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> Result<Db> {
    let Builder { path, options, default, keyspaces: named, seed, .. } = builder;
    let mut rng: Box<dyn Rng> = match seed {
        Some(seed) => Box::new(SeededRng::new(seed)),
        None => Box::new(
            SystemRng::new()
                .map_err(|error| Error::invalid(format!("the system gave no random numbers: {error}")))?,
        ),
    };
    options.check()?;
    default.check()?;
    for (at, (name, options)) in named.iter().enumerate() {
        options.check()?;
        if named.iter().take(at).any(|(other, _)| other == name) {
            return Err(Error::invalid(format!("a keyspace named {name:?}: it is given options twice")));
        }
        if name.is_empty() || name == DEFAULT_NAME {
            let what =
                format!("a keyspace named {name:?}: give the default keyspace's options to default_keyspace");
            return Err(Error::invalid(what));
        }
    }

    let exists = prepare_directory(&fs, &path, &options)?;
    if options.read_only {
        return ReadOnly { path, fs, clock, options, default, named }.open(None);
    }
    let lock_file = Some(take_lock(&fs, &path)?);
    let versions = if exists {
        VersionSet::open(&fs, &path)?
    } else {
        let mut edit = VersionEdit::default();
        edit.created.push(new_keyspace(DEFAULT, DEFAULT_NAME, &default));
        VersionSet::create(&fs, &path, rng.next_u64(), &edit)?
    };
    create_missing(&versions, &named)?;
    remove_leftovers(&*fs, &versions, &path)?;

    let tables = Tables::new(Arc::clone(&fs), Arc::new(path), &options);
    let inner = assemble(fs, clock, options, lock_file, versions, &default, &named, Arc::new(tables))?;
    let inner = Arc::new(inner);
    // ORDER: before anything can be merged that only this operator reads.
    keep_operators(&inner)?;
    recovery::recover(&inner, &mut *rng)?;
    let default = inner.keyspace(DEFAULT)?;
    // ORDER: before the first thread. It ends them, should the system refuse a later one: they hold the store, and so its lock.
    let core = Arc::new(Core { inner });
    Background::start(&core.inner)?;
    core.inner.work_is_due(&default)?;
    Ok(Db::new(core, default))
}

/// Makes the directory where that is asked for. Says whether there is a store in it.
fn prepare_directory(fs: &Arc<dyn Fs>, path: &Path, options: &Options) -> Result<bool> {
    let exists = fs.exists(path)? && VersionSet::exists(fs, path)?;
    if exists && options.error_if_exists {
        return Err(Error::invalid(format!("{} holds a store already", path.display())));
    }
    if !exists && (options.read_only || !options.create_if_missing) {
        return Err(Error::NotFound { what: format!("there is no store in {}", path.display()) });
    }
    if !exists {
        fs.create_dir_all_durably(path)?;
    }
    Ok(exists)
}

/// Errors: [`Error::Busy`] when a process has the store open.
pub(crate) fn take_lock(fs: &Arc<dyn Fs>, path: &Path) -> Result<Box<dyn File>> {
    let file = fs.open(&path.join(LOCK_NAME), OpenOptions::create())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == ErrorKind::Busy => Err(Error::Busy {
            what: format!(
                "the store in {} is open already, in another process or in this one",
                path.display()
            ),
        }),
        Err(error) => Err(error.into()),
    }
}

fn new_keyspace(id: KeyspaceId, name: &str, options: &KeyspaceOptions) -> NewKeyspace {
    NewKeyspace { id, name: name.to_owned(), options: StoredOptions::of(options).encode() }
}

/// Makes the keyspaces that are named and not there.
fn create_missing(versions: &VersionSet, named: &[(String, KeyspaceOptions)]) -> Result<()> {
    for (name, options) in named {
        if versions.keyspaces().iter().any(|(_, state)| state.name == *name) {
            continue;
        }
        let mut edit = VersionEdit::default();
        let id = versions.next_keyspace_id();
        edit.created.push(new_keyspace(id, name, options));
        // Nothing of it is in the log so far. Without this the log would be needed from its beginning, which may have been released.
        edit.keyspace(id).log_start = versions.keyspaces().iter().map(|(_, state)| state.log_start).min();
        versions.log_and_apply(edit, |_, _| {})?;
    }
    Ok(())
}

/// Keeps the names of operators with keyspaces that were made without one: what they merge, nobody reads without them.
fn keep_operators(inner: &Inner) -> Result<()> {
    let mut edit = VersionEdit::default();
    for (id, stored) in inner.versions.keyspaces() {
        let kept = StoredOptions::decode(&stored.options, &inner.path)?;
        let given = StoredOptions::of(&inner.keyspace(id)?.options);
        if kept.merge_operator.is_empty() && !given.merge_operator.is_empty() {
            edit.options.push((id, given.encode()));
        }
    }
    if edit.options.is_empty() {
        return Ok(());
    }
    inner.versions.log_and_apply(edit, |_, _| {})
}

/// Errors: [`Error::Corruption`] when a file of the store is gone.
fn check_files(versions: &VersionSet, path: &Path) -> Result<Vec<std::path::PathBuf>> {
    let stray = versions.stray_files()?;
    match stray.missing.first() {
        None => Ok(stray.unreferenced),
        Some(name) => {
            let what = "it is missing, and the manifest refers to it";
            Err(Error::corruption(&name.path(path), 0, what))
        }
    }
}

/// Removes what a crash left of unfinished jobs.
fn remove_leftovers(fs: &dyn Fs, versions: &VersionSet, path: &Path) -> Result<()> {
    for stray in check_files(versions, path)? {
        fs.remove(&stray)?;
    }
    Ok(())
}

/// The options of a keyspace that nobody has said anything about: those of the default one, but it stays what it was made as, and
/// nothing in it is dropped that its own options did not ask for.
fn unnamed(default: KeyspaceOptions, kept: &StoredOptions) -> KeyspaceOptions {
    let ttl = (kept.ttl_secs > 0).then(|| Duration::from_secs(kept.ttl_secs));
    let drops = matches!(default.compaction, StrategyOptions::Fifo(_));
    KeyspaceOptions {
        ttl,
        merge_operator: default.merge_operator.filter(|it| it.name() == kept.merge_operator),
        compaction_filter: None,
        compaction: if drops { StrategyOptions::default() } else { default.compaction },
        // The two contradict each other.
        blob_bytes_min: default.blob_bytes_min.filter(|_| ttl.is_none()),
        ..default
    }
}

#[allow(clippy::too_many_arguments)] // each is a part of the store, given once
pub(crate) fn assemble(
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    options: Options,
    lock_file: Option<Box<dyn File>>,
    versions: VersionSet,
    default: &KeyspaceOptions,
    named: &[(String, KeyspaceOptions)],
    tables: Arc<Tables>,
) -> Result<Inner> {
    let path = Arc::clone(&tables.path);
    let mut keyspaces = Vec::new();
    let mut active = Vec::new();
    for (id, stored) in versions.keyspaces() {
        let kept = StoredOptions::decode(&stored.options, &path)?;
        let mut given = default.clone();
        if let Some((_, options)) = named.iter().find(|(name, _)| *name == stored.name) {
            given = options.clone();
        } else if id != DEFAULT {
            given = unnamed(given, &kept);
        }
        kept.check(&stored.name, &StoredOptions::of(&given))?;
        let memtable = Arc::new(Memtable::new());
        let at = id.0 as usize;
        keyspaces.resize_with(at + 1, || None);
        active.resize_with(at + 1, || None);
        active[at] = Some(Arc::clone(&memtable));
        let view = View { active: memtable, sealed: Vec::new(), version: stored.version };
        keyspaces[at] = Some(Arc::new(KeyspaceState::new(id, stored.name, given, view)?));
    }
    Ok(Inner {
        path,
        fs,
        clock,
        lock_file,
        commit: Line(Mutex::new(Commit { next_seqno: 1, active, end: Lsn::ZERO, appender: None })),
        order: Order::new(0),
        log: OnceLock::new(),
        structure: RwLock::new(()),
        keyspaces: Swap::new(keyspaces),
        versions,
        snapshots: Arc::default(),
        locks: LockTable::default(),
        tables,
        controller: Controller::new(),
        background: Background::new(options.background),
        idle_at: AtomicU64::new(u64::MAX),
        counters: Counters::default(),
        limiter: Limiter::new(options.rate_limit_bytes),
        given: Given { default: default.clone(), named: named.to_vec() },
        failure: OnceLock::new(),
        failed: AtomicBool::new(false),
        segment: AtomicU32::new(0),
        full: Mutex::default(),
        is_full: AtomicBool::new(false),
        full_count: AtomicU64::new(0),
        options,
    })
}
