//! User requests to the background work: flush, compact, wait, write pressure and statistics.

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, lock};
use cairn_wal::Appender;

use crate::Result;
use crate::db::controller::Pressure;
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::stats::{KeyspaceStats, LevelStats, Stats};

/// Maximum number of failed jobs to ignore because they may have started before the call.
const STALE_JOBS_MAX: usize = 4;

impl Inner {
    /// Seals the active memtable, and waits until it and all earlier ones are in tables.
    pub(crate) fn flush(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>) -> Result<()> {
        self.with_reserve(|| self.flush_once(keyspace))
    }

    fn flush_once(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>) -> Result<()> {
        self.check_writable()?;
        keyspace.check_open()?;
        self.seal(keyspace, None)?;
        // The memtables sealed so far. Later ones are not this call's concern.
        let sealed = keyspace.view.load().sealed.clone();
        self.wait_for_work(keyspace, |_| {
            let view = keyspace.view.load();
            // Also true if the keyspace was dropped meanwhile, as its view then has no memtables.
            sealed.iter().all(|mine| view.sealed.iter().all(|other| !Arc::ptr_eq(mine, other)))
        })
    }

    /// Waits until no work is due, including the work that is done only in an idle store.
    pub(crate) fn wait_idle(self: &Arc<Self>) -> Result<()> {
        self.declare_idle();
        for keyspace in self.all_keyspaces() {
            self.wait_for_work(&keyspace, |is_idle| is_idle && !self.is_work_due())?;
        }
        // Work that was abandoned is not due, but it is not done either.
        if let Some(error) = self.all_keyspaces().iter().find_map(|keyspace| keyspace.abandoned.error()) {
            return Err(error);
        }
        self.remove_obsolete();
        self.shrink_log()
    }

    /// Releases the log space kept for later writes, and the whole log if everything is in tables.
    /// Errors: a failure of the log, which poisons the store.
    pub(crate) fn shrink_log(&self) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        // Space that cannot be released now is released at the next call or the next open.
        let _ = log.trim();
        let needed = self.skip_notes(self.versions.log_start());
        {
            let mut commit = lock(&self.commit);
            let is_over = commit.position() <= needed;
            let _ = commit.appender.as_mut().filter(|_| is_over).map(Appender::rotate);
        }
        // Also needed if this call did not rotate the log: another thread may have rotated it and
        // not got this far, or an earlier call may have failed here.
        let _ = log.release_before(needed);
        log.check().map_err(|error| self.poison(error.into()))
    }

    /// Closes the log when no writer is left. This makes its content durable, lets recovery
    /// distinguish damage from a crash, and releases preallocated space.
    pub(crate) fn close_log(&self) {
        let mut commit = lock(&self.commit);
        debug_assert!(commit.end <= commit.position(), "the log ends before its old end {}", commit.end);
        commit.end = commit.position();
        if let (Some(log), Some(appender)) = (self.log.get(), commit.appender.take()) {
            // No caller is left to report an error to. Data that cannot be synced is with the
            // kernel, as before. Space that cannot be released is released when the store is next
            // opened for writing.
            if log.close(appender).is_ok() {
                drop(commit);
                self.record_end();
            }
        }
    }

    /// Has due work done until `is_done` returns true. `is_done` is called after every job, with
    /// true if no job is running.
    ///
    /// Errors: the store's failure, and a full disk.
    pub(super) fn wait_for_work(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        mut is_done: impl FnMut(bool) -> bool,
    ) -> Result<()> {
        let mut wait = || {
            let count_before = self.out_of_space_count.load(SeqCst);
            self.work_is_due(keyspace)?;
            self.wait_for_jobs(count_before, &mut is_done)
        };
        // The error may come from jobs that started before the call, one per thread, when there was
        // less space than now.
        let mut left = self.background.threads().min(STALE_JOBS_MAX);
        loop {
            match wait() {
                Err(error) if error.is_retryable() && left > 0 => left -= 1,
                result => return result,
            }
        }
    }

    /// Returns true if a flush or a compaction could start.
    pub(super) fn is_work_due(&self) -> bool {
        self.all_keyspaces()
            .iter()
            .any(|keyspace| !keyspace.view.load().sealed.is_empty() || self.is_compaction_due(keyspace))
    }

    /// Sets the write speed according to the backlog of background work.
    pub(crate) fn update_pressure(&self, _changed: &KeyspaceState) {
        if self.background.is_inline() {
            return;
        }
        let _measuring = lock(&self.controller.measuring);
        let mut pressures = Vec::new();
        for keyspace in self.all_keyspaces() {
            let view = keyspace.view.load();
            let (sealed, allowed) = (view.sealed.len(), keyspace.options.sealed_memtables_max);
            pressures.push(Pressure::of_memtables(sealed, allowed, self.controller.flush_speed()));
            pressures.extend(self.compaction_pressure(&keyspace, &view));
        }
        self.controller.set(&pressures);
    }

    /// Returns statistics of the store.
    pub(crate) fn stats(&self) -> Stats {
        let cache = self.tables.cache.stats();
        let mut stats = Stats {
            last_seqno: self.last_seqno(),
            keyspaces: self.all_keyspaces().iter().map(|keyspace| self.keyspace_stats(keyspace)).collect(),
            snapshots: self.snapshots.len(),
            cache_bytes: (cache.capacity_bytes, cache.used_bytes),
            cache_hits_misses: (cache.hits, cache.misses),
            data_hits_misses: (cache.data_hits, cache.data_misses),
            filters_skipping: cache.filters_skipping,
            stalls: self.controller.stalls(),
            ..Stats::default()
        };
        self.counters.fill(&mut stats);
        stats
    }

    fn keyspace_stats(&self, keyspace: &KeyspaceState) -> KeyspaceStats {
        let view = keyspace.view.load();
        let sealed_bytes: usize = view.sealed.iter().map(|sealed| sealed.memtable.allocated_bytes()).sum();
        let levels = view.version.levels().iter().map(|level| LevelStats {
            runs: level.runs().len(),
            tables: level.tables().count(),
            bytes: level.bytes(),
            entries: level.tables().map(|table| table.meta.entries).sum(),
        });
        let levels: Vec<LevelStats> = levels.collect();
        debug_assert!(
            levels.iter().all(|level| level.runs <= level.tables),
            "a run without tables: {levels:?}"
        );
        KeyspaceStats {
            name: keyspace.name.clone(),
            memtable_bytes: (view.active.allocated_bytes() + sealed_bytes) as u64,
            sealed_memtables: view.sealed.len(),
            levels,
            blob_bytes: view.version.blobs().iter().map(|blob| blob.file.meta.bytes).sum(),
            blob_garbage_bytes: view.version.blobs().iter().map(|blob| blob.garbage_bytes).sum(),
            pending_compaction_bytes: self.pending_compaction_bytes(keyspace, &view),
        }
    }
}
