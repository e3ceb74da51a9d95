//! Opening a store: lock, manifest, keyspaces, leftover files, log and threads.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, OnceLock, RwLock};
use cairn_vfs::{Clock, ErrorKind, File, Fs, OpenOptions, Rng, SeededRng, SystemRng};
use cairn_wal::{Known, Lsn};

use crate::admin::ReadOnly;
use crate::batch::DEFAULT;
use crate::compaction::strategy::StrategyOptions;
use crate::db::background::Background;
use crate::db::budget::Budget;
use crate::db::builder::Builder;
use crate::db::controller::Controller;
use crate::db::core::Core;
use crate::db::cross_check;
use crate::db::inner::{Commit, GivenOptions, Inner, KeyspaceState};
use crate::db::keyspace::Db;
use crate::db::limiter::Limiter;
use crate::db::recovery;
use crate::db::registry::Registry;
use crate::db::reserve::Reserve;
use crate::db::stats::Counters;
use crate::db::stored_options::StoredOptions;
use crate::db::tables::Tables;
use crate::db::view::View;
use crate::db::visibility_order::VisibilityOrder;
use crate::memtable::Memtable;
use crate::open_files::OpenFiles;
use crate::options::{KeyspaceOptions, Options};
use crate::txn::LockTable;
use crate::version::{KeyspaceId, NewKeyspace, VersionEdit, VersionSet};
use crate::{Error, Result};

/// The name of the keyspace that every store has.
pub(crate) const DEFAULT_NAME: &str = "default";

/// The file whose lock marks the store as open.
pub(crate) const LOCK_NAME: &str = "LOCK";

pub(crate) fn open(builder: Builder, fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> Result<Db> {
    let options = &builder.options;
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
    options.check()?;
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
    Background::start(&core.inner)?;
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
        fs.remove(&stray)?;
    }
    Ok(())
}

/// Returns the options for a keyspace that the caller did not name: those of the default keyspace,
/// except that it keeps its own TTL, merge operator and compaction strategy, and that no entry is
/// dropped unless its own options require it.
fn unnamed(default: KeyspaceOptions, kept: &StoredOptions) -> KeyspaceOptions {
    let ttl = (kept.ttl_secs > 0).then(|| Duration::from_secs(kept.ttl_secs));
    let compaction = kept.compaction.clone().unwrap_or(match default.compaction {
        StrategyOptions::Fifo(_) => StrategyOptions::default(),
        keeps => keeps,
    });
    KeyspaceOptions {
        ttl,
        merge_operator: default.merge_operator.filter(|it| it.name() == kept.merge_operator),
        compaction_filter: None,
        compaction,
        // A TTL and blob files exclude each other.
        blob_bytes_min: default.blob_bytes_min.filter(|_| ttl.is_none()),
        ..default
    }
}

pub(crate) fn assemble(
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    options: Options,
    reserve: Option<Reserve>,
    versions: VersionSet,
    given: GivenOptions,
    tables: Arc<Tables>,
) -> Result<Inner> {
    let path = Arc::clone(&tables.path);
    let recorded = versions.log().map_or(Lsn::ZERO, |log| log.reached);
    let mut keyspaces = Vec::new();
    let mut active = Vec::new();
    let by_name: HashMap<&str, &KeyspaceOptions> =
        given.named.iter().map(|(name, options)| (name.as_str(), options)).collect();
    for (id, stored) in versions.keyspaces() {
        let kept = StoredOptions::decode(&stored.options, &path)?;
        let mut opened = given.default.clone();
        if let Some(options) = by_name.get(stored.name.as_str()) {
            opened = (*options).clone();
        } else if id != DEFAULT {
            opened = unnamed(opened, &kept);
        } else if !given.is_default_given
            && let Some(compaction) = &kept.compaction
        {
            opened.compaction = compaction.clone();
        }
        kept.check(&stored.name, &StoredOptions::of(&opened))?;
        let memtable = Arc::new(Memtable::new());
        let at = id.0 as usize;
        assert!(active.len() <= at, "keyspaces are listed by id, each once");
        active.resize_with(at + 1, || None);
        active[at] = Some(Arc::clone(&memtable));
        let view = View { active: memtable, sealed: Vec::new(), version: stored.version };
        keyspaces.push(Arc::new(KeyspaceState::new(id, stored.name, opened, view)?));
    }
    Ok(Inner {
        path,
        fs,
        clock,
        reserve,
        commit: CacheAligned(Mutex::new(Commit {
            next_seqno: 1,
            active,
            end: Lsn::ZERO,
            noted: (Lsn::ZERO, Lsn::ZERO),
            appender: None,
        })),
        order: VisibilityOrder::new(0),
        log: OnceLock::new(),
        structure: RwLock::new(()),
        keyspaces: Registry::new(keyspaces),
        versions,
        snapshots: Arc::default(),
        locks: LockTable::default(),
        tables,
        controller: Controller::new(),
        background: Background::new(options.background),
        idle_at: AtomicU64::new(u64::MAX),
        counters: Counters::default(),
        limiter: Limiter::new(options.rate_limit_bytes),
        given,
        failure: OnceLock::new(),
        failed: AtomicBool::new(false),
        segment: AtomicU32::new(0),
        recorded: AtomicU64::new(recorded.get()),
        recording: Mutex::default(),
        out_of_space: Mutex::default(),
        is_out_of_space: AtomicBool::new(false),
        out_of_space_count: AtomicU64::new(0),
        #[cfg(test)]
        walks: AtomicU64::new(0),
        budget: options.memtable_bytes_max.map(Budget::new),
        options,
    })
}
