//! Scheduling of flushes and compactions.
//!
//! Threads look for work in this order: first a flush of any keyspace, because writers wait for
//! flushes; then a compaction. If there are several threads, one is kept free for flushes. Files
//! that no version contains any more are removed after each compaction, or by a thread without
//! work. Inline, the writer whose write made work due does all of it.

use std::io;
use std::time::Duration;

use cairn_vfs::Operation;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, MutexGuard, PoisonError, lock, wait};
use cairn_vfs::thread;

use crate::db::background::{JobGuard, State, catch_panic};
use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::running_jobs::Claimed;
use crate::events::Event;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

/// Interval at which a thread without work checks whether writes still arrive.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// A claimed job.
enum Work {
    Flush(Arc<KeyspaceState>),
    Compact(Arc<KeyspaceState>, Claimed),
}

impl Inner {
    /// Starts the threads of an opened store. They are ended by
    /// [`Background::stop`](crate::db::background::Background::stop), including those started
    /// before an error.
    ///
    /// Errors: that of the first thread that the system refuses.
    pub(crate) fn start_threads(self: &Arc<Self>) -> Result<()> {
        debug_assert!(lock(&self.background.state).handles.is_empty(), "the threads were started before");
        for index in 0..self.background.threads {
            let shared = Arc::clone(self);
            let work = move || shared.guarded(|| shared.work_until_stopped());
            let handle = thread::spawn(&format!("cairn-kv-{index}"), work);
            let handle = handle.map_err(|source| self.thread_error(source))?;
            lock(&self.background.state).handles.push(handle);
        }
        if let Some(interval) = self.options.sync_interval.filter(|_| self.log.get().is_some()) {
            let shared = Arc::clone(self);
            let work = move || shared.guarded(|| shared.sync_until_stopped(interval));
            let handle = thread::spawn("cairn-kv-sync", work);
            let handle = handle.map_err(|source| self.thread_error(source))?;
            lock(&self.background.state).handles.push(handle);
        }
        debug_assert!(
            lock(&self.background.state).handles.len() >= self.background.threads,
            "closing the store would not wait for all {} threads",
            self.background.threads
        );
        Ok(())
    }

    /// Waits until `is_done` returns true; it is called after every job.
    ///
    /// Errors: the store's failure. A full disk, if a job has met one since `count_before` was read
    /// from `out_of_space_count`, because the job is not retried before work becomes due again.
    pub(crate) fn wait_for_jobs(
        &self,
        count_before: u64,
        mut is_done: impl FnMut(bool) -> bool,
    ) -> Result<()> {
        let mut state = lock(&self.background.state);
        loop {
            let is_idle = state.flushing.is_empty() && state.compacting.is_empty();
            self.check_alive()?;
            if state.stopped || is_done(is_idle) {
                return Ok(());
            }
            if is_idle
                && self.out_of_space_count.load(SeqCst) > count_before
                && let Some(error) = lock(&self.out_of_space).clone()
            {
                return Err(error);
            }
            state = wait(&self.background.changed, state);
        }
    }

    /// Called after a memtable was sealed or a version installed: updates the write pressure and
    /// has due work done.
    pub(crate) fn work_is_due(self: &Arc<Self>, keyspace: &KeyspaceState) -> Result<()> {
        self.update_pressure(keyspace);
        if !self.background.is_inline() {
            self.background.wake_all();
            return Ok(());
        }
        while let Some(work) = self.find_work(lock(&self.background.state)) {
            match self.run(work) {
                // The write that made the work due has succeeded, and the work will be retried.
                Err(error) if error.is_retryable() => return Ok(()),
                result => result?,
            }
        }
        Ok(())
    }

    /// Returns the error for a thread that the system has refused to start.
    pub(crate) fn thread_error(&self, source: io::Error) -> Error {
        cairn_vfs::Error::new(Operation::StartThread, &self.path, source).into()
    }

    /// Runs the loop of a thread. A panic outside a job would leave nobody to run the jobs, so it
    /// poisons the store.
    fn guarded(&self, work: impl FnOnce()) {
        let work = || {
            work();
            Ok(())
        };
        if let Err(error) = catch_panic("a thread in the background", work) {
            self.poison(error);
        }
    }

    /// Syncs the log every `interval` if there were new writes.
    fn sync_until_stopped(&self, interval: Duration) {
        debug_assert!(!interval.is_zero(), "an interval of 0 would sync without a pause");
        let mut state = lock(&self.background.state);
        let mut due = self.clock.now().saturating_add(interval);
        let mut synced = 0;
        while !state.stopped {
            let left = due.saturating_sub(self.clock.now());
            if !left.is_zero() {
                let waited = self.background.changed.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            let visible = self.order.visible();
            debug_assert!(visible >= synced, "the visible mark goes back from {synced} to {visible}");
            if visible > synced && self.sync_all().is_ok() {
                synced = visible;
            }
            due = self.clock.now().saturating_add(interval);
            state = lock(&self.background.state);
        }
    }

    fn work_until_stopped(self: &Arc<Self>) {
        let mut seen = None;
        loop {
            let mut state = lock(&self.background.state);
            let mut last = None;
            while !state.stopped && seen == Some(state.generation) {
                let waited = self.background.changed.wait_timeout(state, IDLE_CHECK_INTERVAL);
                let (after, result) = waited.unwrap_or_else(PoisonError::into_inner);
                state = after;
                // No write arrived between two checks, so the store is idle.
                let visible = self.order.visible();
                if result.timed_out() && last.replace(visible) == Some(visible) && self.declare_idle() {
                    break;
                }
            }
            if state.stopped {
                return;
            }
            let generation = state.generation;
            match self.find_work(state) {
                // The error need not be handled here: a failure is recorded in the store, and
                // writers get it.
                Some(work) => {
                    // After a failure, sleep unless more work has become due meanwhile.
                    if self.run(work).is_err() {
                        seen = Some(generation);
                    }
                }
                None => {
                    seen = Some(generation);
                    if lock(&self.background.state).compacting.is_empty() {
                        self.remove_obsolete();
                    }
                    if self.is_idle() {
                        let _ = self.shrink_log();
                    }
                }
            }
        }
    }

    /// Claims the most urgent work that is due, if any.
    fn find_work(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Option<Work> {
        if self.check_writable().is_err() {
            return None;
        }
        let keyspaces = self.all_keyspaces();
        let due = |keyspace: &&Arc<KeyspaceState>| {
            !state.flushing.contains(&keyspace.id) && !keyspace.view.load().sealed.is_empty()
        };
        // The keyspace with the most sealed memtables first.
        let most = keyspaces.iter().filter(due).max_by_key(|keyspace| keyspace.view.load().sealed.len());
        if let Some(keyspace) = most {
            debug_assert!(!state.flushing.contains(&keyspace.id), "a keyspace runs one flush at a time");
            state.flushing.push(keyspace.id);
            return Some(Work::Flush(Arc::clone(keyspace)));
        }
        let free = self.background.threads.max(2) - 1;
        debug_assert!(
            state.compacting.len() <= free,
            "{} compactions, at most {free}",
            state.compacting.len()
        );
        if state.compacting.len() >= free {
            return None;
        }
        for keyspace in &keyspaces {
            if state.paused.contains(&keyspace.id) {
                continue;
            }
            if let Some(claimed) = self.claim_compaction(keyspace) {
                debug_assert!(state.compacting.len() < free, "no thread is left for flushes");
                debug_assert!(!state.paused.contains(&keyspace.id), "compactions of the keyspace are paused");
                state.compacting.push(keyspace.id);
                return Some(Work::Compact(Arc::clone(keyspace), claimed));
            }
        }
        None
    }

    /// Handles the failure of a job. A full disk is waited out, a job interrupted because the store
    /// closes is done again after the next open, and one that met a panic in user code is
    /// abandoned. Any other error poisons the store.
    pub(crate) fn job_failed(&self, error: Error) -> Error {
        if error.is_retryable() {
            return self.note_out_of_space(error);
        }
        if matches!(error, Error::Busy { .. } | Error::Panicked { .. }) { error } else { self.poison(error) }
    }

    /// Records that a compaction was abandoned. Others continue. Returns `Ok`, because no more work
    /// on it is due for now.
    fn compaction_abandoned(&self, keyspace: &KeyspaceState, error: Error) -> Result<()> {
        keyspace.abandoned.note(error.clone());
        self.notify(|| Event::Abandoned { keyspace: keyspace.name.clone(), error });
        Ok(())
    }

    /// Runs a job. A failure poisons the store, except for a full disk and a panic in user code.
    fn run(self: &Arc<Self>, work: Work) -> Result<()> {
        let job_guard = |keyspace, is_flush| JobGuard { background: &self.background, keyspace, is_flush };
        let (keyspace, result, compacting) = match work {
            Work::Flush(keyspace) => {
                let _flushing = job_guard(keyspace.id, true);
                let result = catch_panic("a flush", || self.flush_sealed(&keyspace));
                (keyspace, result, None)
            }
            Work::Compact(keyspace, claimed) => {
                let compacting = job_guard(keyspace.id, false);
                let result = catch_panic("a compaction", || self.compact(&keyspace, claimed));
                (keyspace, result, Some(compacting))
            }
        };
        let result = match result {
            Ok(()) => {
                self.clear_out_of_space();
                Ok(())
            }
            Err(error @ Error::Panicked { .. }) => self.compaction_abandoned(&keyspace, error),
            Err(error) => Err(self.job_failed(error)),
        };
        self.update_pressure(&keyspace);
        // Deleting a file may take milliseconds. A thread that has flushed leaves the deletion to
        // others, because the next memtable may be waiting. A thread that has compacted still
        // counts as compacting while it deletes; otherwise the last free thread would start a
        // compaction, and none would be left for flushes.
        if compacting.is_some() || self.background.is_inline() {
            self.remove_obsolete();
        }
        drop(compacting);
        // A failed job does not make its own retry due: threads would wake one another endlessly.
        if result.is_err() {
            self.background.wake_waiters()
        } else {
            self.background.wake_all()
        }
        result
    }
}
