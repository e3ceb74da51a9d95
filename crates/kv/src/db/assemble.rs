//! Assembling the state of a store from its manifest and its options.

use std::collections::HashMap;
use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use cairn_vfs::sync::{Arc, CacheAligned, Mutex, OnceLock, RwLock};
use cairn_vfs::{Clock, Fs};
use cairn_wal::Lsn;

use crate::Result;
use crate::batch::DEFAULT;
use crate::compaction::strategy::StrategyOptions;
use crate::db::background::Background;
use crate::db::budget::Budget;
use crate::db::controller::Controller;
use crate::db::inner::{Commit, GivenOptions, Inner};
use crate::db::keyspace_state::KeyspaceState;
use crate::db::limiter::Limiter;
use crate::db::registry::Registry;
use crate::db::reserve::Reserve;
use crate::db::stats::Counters;
use crate::db::stored_options::StoredOptions;
use crate::db::tables::Tables;
use crate::db::view::View;
use crate::db::visibility_order::VisibilityOrder;
use crate::memtable::Memtable;
use crate::options::{KeyspaceOptions, Options};
use crate::txn::LockTable;
use crate::version::VersionSet;

/// Returns the options for a keyspace that the caller did not name: those of the default keyspace,
/// except that it keeps its own TTL, merge operator and compaction strategy, and that no entry is
/// dropped unless its own options require it.
fn unnamed(default: KeyspaceOptions, kept: &StoredOptions) -> KeyspaceOptions {
    let ttl = (kept.ttl_secs > 0).then(|| Duration::from_secs(kept.ttl_secs));
    let compaction = kept.compaction.clone().unwrap_or(match default.compaction {
        StrategyOptions::Fifo(_) => StrategyOptions::default(),
        keeps => keeps,
    });
    let is_fifo = |strategy: &StrategyOptions| matches!(strategy, StrategyOptions::Fifo(_));
    debug_assert!(
        !is_fifo(&compaction) || kept.compaction.as_ref().is_some_and(is_fifo),
        "a keyspace that the caller did not name would drop its oldest tables"
    );
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
    debug_assert_eq!(options.read_only, reserve.is_none(), "whoever writes holds the lock and the reserve");
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
    debug_assert_eq!(keyspaces.len(), active.iter().flatten().count(), "each keyspace has a memtable");
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
