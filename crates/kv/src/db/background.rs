//! Scheduling of flushes and compactions.
//!
//! Threads look for work in this order: first a flush of any keyspace, because writers wait for
//! flushes; then a compaction. If there are several threads, one is kept free for flushes. Files
//! that no version contains any more are removed after each compaction, or by a thread without
//! work. Inline, the writer whose write made work due does all of it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, lock, wait};
use cairn_vfs::thread::{self, JoinHandle};
use cairn_vfs::{Bug, Operation};

use crate::db::compact::Claimed;
use crate::db::inner::{Inner, KeyspaceState};
use crate::events::Event;
use crate::version::KeyspaceId;
use crate::{Error, Result, options, user_code};

#[cfg(test)]
mod tests;

/// Interval at which a thread without work checks whether writes still arrive.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The state of the background work.
#[derive(Debug)]
pub(crate) struct Background {
    state: Mutex<State>,
    /// Signalled when work may have become due, when a job is done, and when the store closes.
    changed: Condvar,
    threads: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Incremented when work may have become due. A thread that finds none sleeps until it changes.
    generation: u64,
    /// Keyspaces with a running flush.
    flushing: Vec<KeyspaceId>,
    /// Keyspaces with running compactions, one element per compaction.
    compacting: Vec<KeyspaceId>,
    /// Keyspaces whose compactions must not start, one element per [`PauseGuard`].
    paused: Vec<KeyspaceId>,
    stopped: bool,
    handles: Vec<JoinHandle<()>>,
}

/// Runs a job and turns a panic in it into an error. Callers that wait for the job get the error,
/// and the thread continues. (Panics of user code are caught where the code is called.)
pub(crate) fn catch_panic<T>(what: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    // `AssertUnwindSafe` holds: a job interrupted by a panic leaves only files that belong to no
    // version, which its guards remove.
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| {
        Err(Bug::new(format!("{what} panicked: {}", user_code::message(&*panic))).into())
    })
}

/// A claimed job.
enum Work {
    Flush(Arc<KeyspaceState>),
    Compact(Arc<KeyspaceState>, Claimed),
}

impl Background {
    pub(crate) fn new(background: options::Background) -> Self {
        let threads = match background {
            options::Background::Threads(count) => count,
            options::Background::Inline => 0,
        };
        Background { state: Mutex::default(), changed: Condvar::new(), threads }
    }

    /// Returns the number of background threads; 0 if writers do the work.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns true if writers do the work themselves.
    pub(crate) fn is_inline(&self) -> bool {
        self.threads == 0
    }

    /// Starts the threads of an opened store. [`Background::stop`] ends them, including those
    /// started before an error.
    ///
    /// Errors: that of the first thread that the system refuses.
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<()> {
        debug_assert!(lock(&inner.background.state).handles.is_empty(), "the threads were started before");
        for index in 0..inner.background.threads {
            let shared = Arc::clone(inner);
            let work = move || shared.guarded(|| shared.work_until_stopped());
            let handle = thread::spawn(&format!("cairn-kv-{index}"), work);
            let handle = handle.map_err(|source| inner.thread_error(source))?;
            lock(&inner.background.state).handles.push(handle);
        }
        if let Some(interval) = inner.options.sync_interval.filter(|_| inner.log.get().is_some()) {
            let shared = Arc::clone(inner);
            let work = move || shared.guarded(|| shared.sync_until_stopped(interval));
            let handle = thread::spawn("cairn-kv-sync", work);
            let handle = handle.map_err(|source| inner.thread_error(source))?;
            lock(&inner.background.state).handles.push(handle);
        }
        Ok(())
    }

    /// Stops the threads after their running jobs.
    pub(crate) fn stop(&self) {
        let handles = {
            let mut state = lock(&self.state);
            state.stopped = true;
            std::mem::take(&mut state.handles)
        };
        self.changed.notify_all();
        for handle in handles {
            // A thread that panicked has poisoned the store.
            let _ = handle.join();
        }
    }

    /// Checks that the store is not closing. Errors: [`Error::Busy`] if it is, so that the job must
    /// be abandoned.
    pub(crate) fn check_running(&self, path: &Path) -> Result<()> {
        if lock(&self.state).stopped {
            return Err(Error::Busy { what: format!("the store in {} is closing", path.display()) });
        }
        Ok(())
    }

    /// Wakes the threads that wait for a job to end, but none that looks for work.
    fn wake_waiters(&self) {
        // A thread that is about to sleep checks the state under this lock.
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    pub(crate) fn wake_all(&self) {
        lock(&self.state).generation += 1;
        self.changed.notify_all();
    }

    /// Prevents compactions of a keyspace from starting until the guard is dropped. Waits for
    /// running ones.
    pub(crate) fn pause(&self, keyspace: KeyspaceId) -> PauseGuard<'_> {
        let mut state = lock(&self.state);
        state.paused.push(keyspace);
        while state.compacting.contains(&keyspace) {
            state = wait(&self.changed, state);
        }
        debug_assert!(state.paused.contains(&keyspace), "the pause ended before its guard");
        PauseGuard { background: self, keyspace }
    }

    /// Waits until `is_done` returns true; it is called after every job.
    ///
    /// Errors: the store's failure. A full disk, if a job has met one since `count_before` was read
    /// from `out_of_space_count`, because the job is not retried before work becomes due again.
    pub(crate) fn wait_until(
        &self,
        inner: &Inner,
        count_before: u64,
        mut is_done: impl FnMut(bool) -> bool,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        loop {
            let is_idle = state.flushing.is_empty() && state.compacting.is_empty();
            inner.check_alive()?;
            if state.stopped || is_done(is_idle) {
                return Ok(());
            }
            if is_idle
                && inner.out_of_space_count.load(SeqCst) > count_before
                && let Some(error) = lock(&inner.out_of_space).clone()
            {
                return Err(error);
            }
            state = wait(&self.changed, state);
        }
    }
}

/// Counts a job as running until it is dropped, also by a panic. Then wakes the threads that wait
/// for the job.
struct JobGuard<'a> {
    background: &'a Background,
    keyspace: KeyspaceId,
    is_flush: bool,
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.background.state);
            let jobs = if self.is_flush { &mut state.flushing } else { &mut state.compacting };
            remove_one(jobs, self.keyspace);
        }
        self.background.changed.notify_all();
    }
}

/// See [`Background::pause`].
#[derive(Debug)]
pub(crate) struct PauseGuard<'a> {
    background: &'a Background,
    keyspace: KeyspaceId,
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        remove_one(&mut lock(&self.background.state).paused, self.keyspace);
        self.background.wake_all();
    }
}

/// Removes one occurrence of `id` from the list.
fn remove_one(ids: &mut Vec<KeyspaceId>, id: KeyspaceId) {
    let found = ids.iter().position(|other| *other == id);
    debug_assert!(found.is_some(), "keyspace {} is not in the list of jobs or pauses", id.0);
    if let Some(at) = found {
        ids.swap_remove(at);
    }
}

impl Inner {
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
