//! Going on while the disk is full: jobs that wait for space, writers that wait for them, and the
//! reserve with which deletions make room.

use cairn_vfs::sync::atomic::Ordering::*;
use cairn_vfs::sync::{Arc, lock};

use crate::db::inner::Inner;
use crate::db::keyspace_state::KeyspaceState;
use crate::db::reserve::Reserve;
use crate::events::Event;
use crate::{Error, Result};

impl Inner {
    /// Handles a job that failed because the disk was full or no more files could be opened. No
    /// data is lost: the memtables and the log hold what the job was to write. The job is retried
    /// when work next becomes due. Until one succeeds, writers that would have to wait for it fail
    /// with `error`.
    pub(crate) fn note_out_of_space(&self, error: Error) -> Error {
        debug_assert!(error.is_retryable(), "{error} does not pass by itself");
        *lock(&self.out_of_space) = Some(error.clone());
        self.is_out_of_space.store(true, SeqCst);
        self.out_of_space_count.fetch_add(1, SeqCst);
        // Removing obsolete files makes room for the retry.
        self.remove_obsolete();
        self.controller.wake();
        self.notify_failure(&error);
        error
    }

    /// Clears the full-disk state after a job succeeded.
    pub(crate) fn clear_out_of_space(&self) {
        if self.is_out_of_space.swap(false, SeqCst) {
            *lock(&self.out_of_space) = None;
        }
    }

    /// Stalls the writer while background work is too far behind.
    ///
    /// Errors: a full disk, if the awaited work cannot be done because of it.
    #[inline]
    pub(crate) fn admit(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>, bytes: usize) -> Result<()> {
        if self.is_out_of_space.load(Relaxed) {
            self.admit_out_of_space(keyspace)?;
        }
        let abandon = || self.failed.load(SeqCst) || self.is_out_of_space.load(SeqCst);
        if let Some((cause, waited)) = self.controller.admit(bytes, &*self.clock, abandon) {
            if waited.as_millis() >= 1 {
                self.notify(|| Event::Stalled { keyspace: keyspace.name.clone(), cause, waited });
            }
            self.check_writable()?;
            if self.is_out_of_space.load(SeqCst) {
                self.admit_out_of_space(keyspace)?;
            }
        }
        Ok(())
    }

    /// Lets the writer continue while memory lasts, and has the failed work retried.
    #[cold]
    fn admit_out_of_space(self: &Arc<Self>, keyspace: &Arc<KeyspaceState>) -> Result<()> {
        let has_memory = || {
            keyspace.view.load().sealed.len() < keyspace.options.sealed_memtables_max
                && !self.controller.is_stopped()
        };
        let result = self.work_is_due(keyspace);
        if has_memory() {
            return Ok(());
        }
        result?;
        if !self.background.is_inline() {
            // There may be space again by now. The retried job decides.
            let is_over =
                |is_idle: bool| !self.is_out_of_space.load(SeqCst) || is_idle && !self.is_work_due();
            let waited = self.wait_for_work(keyspace, is_over);
            if has_memory() {
                // An error of an unrelated job does not matter, since there is memory again.
                return Ok(());
            }
            waited?;
        }
        match lock(&self.out_of_space).clone() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Checks whether a write may take disk space: yes as long as the reserve exists or can be
    /// restored. `frees` tells whether the write frees space in the end; such a write is always
    /// allowed.
    ///
    /// Errors: a full disk.
    #[inline]
    pub(crate) fn check_reserve(&self, frees: impl FnOnce() -> bool) -> Result<()> {
        match &self.reserve {
            Some(reserve) if reserve.is_short.load(Relaxed) && !frees() => reserve.restore(),
            _ => Ok(()),
        }
    }

    /// Runs `work`, which frees space in the end. If the disk is full, releases the reserve and
    /// runs it again.
    pub(crate) fn with_reserve<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if self.releases_reserve(&error) => work(),
            result => result,
        }
    }

    fn releases_reserve(&self, error: &Error) -> bool {
        error.is_full() && self.reserve.as_ref().is_some_and(Reserve::release)
    }

    /// Leaves a reserve for the next open. The last step of closing a store.
    pub(crate) fn leave_reserve(&self) {
        if let Some(reserve) = &self.reserve {
            reserve.restore_in_part();
        }
    }
}
