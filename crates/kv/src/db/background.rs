//! Who does the flushes and compactions, and when.
//!
//! Threads look for work in this order: a flush of any keyspace, since writers wait for those
//! first; then a compaction. Of several threads one is kept free for flushes. Files that no version
//! has any more are removed by whoever has merged, or by a thread with nothing to do. Inline, the
//! writer whose write made work due does all of it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use cairn_vfs::Operation;
use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, lock, wait};
use cairn_vfs::thread::{self, JoinHandle};

use crate::db::compact::Claimed;
use crate::db::inner::{Inner, KeyspaceState};
use crate::events::Event;
use crate::version::KeyspaceId;
use crate::{Error, Result, foreign, options};

#[cfg(test)]
mod tests;

/// How often a thread without work looks whether writes still come.
const LOOK_FOR_WRITES: Duration = Duration::from_millis(500);

/// The state of the background work.
#[derive(Debug)]
pub(crate) struct Background {
    state: Mutex<State>,
    /// Signalled when work may have become due, when a job is done, and at the end.
    changed: Condvar,
    threads: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Goes up when work may have become due. A thread that finds nothing sleeps until it has.
    generation: u64,
    /// Keyspaces with a running flush.
    flushing: Vec<KeyspaceId>,
    /// Keyspaces of running compactions, each as often as it has some.
    compacting: Vec<KeyspaceId>,
    /// Keyspaces whose compactions are not started, each as often as somebody wants that.
    paused: Vec<KeyspaceId>,
    stopped: bool,
    handles: Vec<JoinHandle<()>>,
}

/// Runs a job. A panic in it is an error as any other: whoever waits for the job hears of it, and
/// the thread goes on. (Those of code that the store was given are caught where it is called.)
pub(crate) fn caught<T>(what: &str, job: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the job leaves half done is files without a name, which its guards remove.
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|panic| {
        Err(Error::invalid(format!("{what} panicked: {}", foreign::message(&*panic))))
    })
}

/// What a thread found to do.
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

    /// How many threads do the work; none when writers do it.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// True when writers do the work themselves.
    pub(crate) fn is_inline(&self) -> bool {
        self.threads == 0
    }

    /// Starts the threads of an opened store. They end with [`Background::stop`], also those that
    /// were started before an error.
    ///
    /// Errors: of the first thread that the system refuses.
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<()> {
        for index in 0..inner.background.threads {
            let shared = Arc::clone(inner);
            let work = move || shared.guarded(|| shared.work_until_stopped());
            let handle = thread::spawn(&format!("cairn-kv-{index}"), work);
            let handle = handle.map_err(|source| inner.no_thread(source))?;
            lock(&inner.background.state).handles.push(handle);
        }
        if let Some(interval) = inner.options.sync_interval.filter(|_| inner.log.get().is_some()) {
            let shared = Arc::clone(inner);
            let work = move || shared.guarded(|| shared.sync_until_stopped(interval));
            let handle = thread::spawn("cairn-kv-sync", work);
            let handle = handle.map_err(|source| inner.no_thread(source))?;
            lock(&inner.background.state).handles.push(handle);
        }
        Ok(())
    }

    /// Ends the threads; running jobs are finished first.
    pub(crate) fn stop(&self) {
        let handles = {
            let mut state = lock(&self.state);
            state.stopped = true;
            std::mem::take(&mut state.handles)
        };
        self.changed.notify_all();
        for handle in handles {
            // One that panicked has poisoned the store.
            let _ = handle.join();
        }
    }

    /// Errors: [`Error::Busy`] when the store is closing: the job is given up.
    pub(crate) fn check_running(&self, path: &Path) -> Result<()> {
        if lock(&self.state).stopped {
            return Err(Error::Busy { what: format!("the store in {} is closing", path.display()) });
        }
        Ok(())
    }

    /// Wakes those who wait for a job, and no thread that looks for one.
    fn job_is_over(&self) {
        // Who is about to sleep has looked at the state under this lock.
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    pub(crate) fn wake_all(&self) {
        lock(&self.state).generation += 1;
        self.changed.notify_all();
    }

    /// Keeps compactions of a keyspace from starting until the guard is dropped; waits for running
    /// ones.
    pub(crate) fn pause(&self, keyspace: KeyspaceId) -> PauseGuard<'_> {
        let mut state = lock(&self.state);
        state.paused.push(keyspace);
        while state.compacting.contains(&keyspace) {
            state = wait(&self.changed, state);
        }
        PauseGuard { background: self, keyspace }
    }

    /// Returns when `is_done` says so; asked after every job. Errors: the store's failure; that of
    /// a full disk, when a job has met one since there had been `full_before`, for it is not tried
    /// again before work is due again.
    pub(crate) fn wait_until(
        &self,
        inner: &Inner,
        full_before: u64,
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
                && inner.full_count.load(SeqCst) > full_before
                && let Some(error) = lock(&inner.full).clone()
            {
                return Err(error);
            }
            state = wait(&self.changed, state);
        }
    }
}

/// Counts a job as under way until it is dropped, also by a panic; then wakes those who wait for
/// it.
struct UnderWay<'a> {
    background: &'a Background,
    keyspace: KeyspaceId,
    is_flush: bool,
}

impl Drop for UnderWay<'_> {
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

/// Takes `id` out of the list once.
fn remove_one(ids: &mut Vec<KeyspaceId>, id: KeyspaceId) {
    if let Some(at) = ids.iter().position(|other| *other == id) {
        ids.swap_remove(at);
    }
}

impl Inner {
    /// Something was sealed or installed: updates the pressure on writers and has due work done.
    pub(crate) fn work_is_due(self: &Arc<Self>, keyspace: &KeyspaceState) -> Result<()> {
        self.update_pressure(keyspace);
        if !self.background.is_inline() {
            self.background.wake_all();
            return Ok(());
        }
        while let Some(work) = self.find_work(lock(&self.background.state)) {
            match self.run(work) {
                // The write that made the work due is done, and the work is not lost.
                Err(error) if error.can_be_tried_again() => return Ok(()),
                result => result?,
            }
        }
        Ok(())
    }

    /// The error of a thread that the system has refused.
    pub(crate) fn no_thread(&self, source: io::Error) -> Error {
        cairn_vfs::Error::new(Operation::StartThread, &self.path, source).into()
    }

    /// The work of a thread. A panic outside of its jobs would leave nobody who does them, so it
    /// ends the store's.
    fn guarded(&self, work: impl FnOnce()) {
        let work = || {
            work();
            Ok(())
        };
        if let Err(error) = caught("a thread in the background", work) {
            self.poison(error);
        }
    }

    /// Syncs the log every `interval`, while there is something to sync.
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
                let waited = self.background.changed.wait_timeout(state, LOOK_FOR_WRITES);
                let (after, result) = waited.unwrap_or_else(PoisonError::into_inner);
                state = after;
                // Two looks without a write between them: the store has time.
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
                // The failure is latched: writers meet it.
                Some(work) => {
                    // Whatever has become due meanwhile is tried.
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

    /// Claims the most urgent work, if any is due.
    fn find_work(self: &Arc<Self>, mut state: MutexGuard<'_, State>) -> Option<Work> {
        if self.check_writable().is_err() {
            return None;
        }
        let keyspaces = self.all_keyspaces();
        let due = |keyspace: &&Arc<KeyspaceState>| {
            !state.flushing.contains(&keyspace.id) && !keyspace.view.load().sealed.is_empty()
        };
        // The one that has most waiting.
        let most = keyspaces.iter().filter(due).max_by_key(|keyspace| keyspace.view.load().sealed.len());
        if let Some(keyspace) = most {
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
                state.compacting.push(keyspace.id);
                return Some(Work::Compact(Arc::clone(keyspace), claimed));
            }
        }
        None
    }

    /// What the failure of a job means: a full disk is waited out, a job that the end of the store
    /// cut short is done again, and one that met a panic in the user's code is given up; anything
    /// else poisons the store.
    pub(crate) fn job_failed(&self, error: Error) -> Error {
        if error.can_be_tried_again() {
            return self.no_room(error);
        }
        if matches!(error, Error::Busy { .. } | Error::Panicked { .. }) { error } else { self.poison(error) }
    }

    /// A compaction was given up, and others go on. `Ok`, since all that was due of it is done for
    /// now.
    fn compaction_given_up(&self, keyspace: &KeyspaceState, error: Error) -> Result<()> {
        keyspace.given_up.note(error.clone());
        self.tell(|| Event::GivenUp { keyspace: keyspace.name.clone(), error });
        Ok(())
    }

    /// Does the work. A failure poisons the store, but for a full disk and panics in the user's
    /// code.
    fn run(self: &Arc<Self>, work: Work) -> Result<()> {
        let under_way = |keyspace, is_flush| UnderWay { background: &self.background, keyspace, is_flush };
        let (keyspace, result, compacting) = match work {
            Work::Flush(keyspace) => {
                let _flushing = under_way(keyspace.id, true);
                let result = caught("a flush", || self.flush_sealed(&keyspace));
                (keyspace, result, None)
            }
            Work::Compact(keyspace, claimed) => {
                let compacting = under_way(keyspace.id, false);
                let result = caught("a compaction", || self.compact(&keyspace, claimed));
                (keyspace, result, Some(compacting))
            }
        };
        let result = match result {
            Ok(()) => {
                self.disk_has_room();
                Ok(())
            }
            Err(error @ Error::Panicked { .. }) => self.compaction_given_up(&keyspace, error),
            Err(error) => Err(self.job_failed(error)),
        };
        self.update_pressure(&keyspace);
        // A file system may take milliseconds for each file. So who has flushed leaves that to
        // others: the next memtable may wait. And who has merged counts as at work until it is
        // done: else the last thread would merge meanwhile, and nobody flush.
        if compacting.is_some() || self.background.is_inline() {
            self.remove_obsolete();
        }
        drop(compacting);
        // What found no room is not due again by that: threads would send each other round in
        // circles.
        if result.is_err() {
            self.background.job_is_over()
        } else {
            self.background.wake_all()
        }
        result
    }
}
