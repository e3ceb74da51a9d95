//! The state of the background work: the threads, the running jobs and those that wait for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cairn_vfs::Bug;
use cairn_vfs::sync::{Condvar, Mutex, lock, wait};
use cairn_vfs::thread::JoinHandle;

use crate::version::KeyspaceId;
use crate::{Error, Result, options, user_code};

/// The state of the background work.
#[derive(Debug)]
pub(crate) struct Background {
    pub(super) state: Mutex<State>,
    /// Signalled when work may have become due, when a job is done, and when the store closes.
    pub(super) changed: Condvar,
    pub(super) threads: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Incremented when work may have become due. A thread that finds none sleeps until it changes.
    pub(super) generation: u64,
    /// Keyspaces with a running flush.
    pub(super) flushing: Vec<KeyspaceId>,
    /// Keyspaces with running compactions, one element per compaction.
    pub(super) compacting: Vec<KeyspaceId>,
    /// Keyspaces whose compactions must not start, one element per [`PauseGuard`].
    pub(super) paused: Vec<KeyspaceId>,
    pub(super) stopped: bool,
    pub(super) handles: Vec<JoinHandle<()>>,
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

impl Background {
    pub(crate) fn new(background: options::Background) -> Self {
        let threads = match background {
            options::Background::Threads(count) => count,
            options::Background::Inline => 0,
        };
        debug_assert_eq!(threads == 0, background == options::Background::Inline, "{threads} threads");
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

    /// Stops the threads after their running jobs.
    pub(crate) fn stop(&self) {
        let handles = {
            let mut state = lock(&self.state);
            state.stopped = true;
            std::mem::take(&mut state.handles)
        };
        self.changed.notify_all();
        debug_assert!(
            handles.len() <= self.threads + 1,
            "{} threads: {} for jobs and one that syncs",
            handles.len(),
            self.threads
        );
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
    pub(super) fn wake_waiters(&self) {
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
}

/// Counts a job as running until it is dropped, also by a panic. Then wakes the threads that wait
/// for the job.
pub(super) struct JobGuard<'a> {
    pub(super) background: &'a Background,
    pub(super) keyspace: KeyspaceId,
    pub(super) is_flush: bool,
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
