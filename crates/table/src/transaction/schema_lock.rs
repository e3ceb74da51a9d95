//! The schema lock: a transaction that changes the schema runs alone until its end.
//!
//! A transaction that asks for the lock becomes its holder, which keeps others from beginning, and
//! waits until no other transaction has a snapshot. While it keeps its own snapshot, no other can
//! be alone, so everything it has looked up remains valid. But two transactions with snapshots that
//! both ask would wait for each other. So a transaction that has done nothing yet releases its
//! snapshot while it waits, and looks everything up afterwards; a transaction that still has one,
//! and asks too, goes first.

use std::time::Duration;

use cairn_vfs::sync::{Arc, PoisonError, lock};

use super::locks::deadlock;
use super::{Transaction, WAIT_CHECK_INTERVAL};
use crate::hook;
use crate::inner::Inner;
use crate::mvcc::{Canceller, SchemaHolder, State, Waits};
use crate::options::Isolation;
use crate::{Error, Result};

impl Transaction {
    /// Excludes all other transactions until its end, and waits for the running ones. Everything
    /// that it has looked up before remains valid. Schema changes call this themselves.
    ///
    /// Errors: as [`Transaction::lock`] and [`Transaction::end_changes`]. [`Error::Deadlock`] means
    /// that another transaction with a snapshot has asked first.
    pub fn lock_schema(&mut self) -> Result<()> {
        // Pending foreign key work refers to the tables before the change.
        self.settle()?;
        if self.has_schema_lock {
            return Ok(());
        }
        let state = self.register();
        let db = Arc::clone(&self.view.db);
        while let Some(other) = db.schema.acquire(&state) {
            self.wait_for_holder(&state, &other)?;
        }
        debug_assert!(db.schema.is_held(), "transaction {} holds the schema, and it is free", state.id);
        self.has_schema_lock = true;
        let waited = self.wait_for_all(&state);
        if waited.is_err() {
            self.unlock_schema();
        }
        waited?;
        if self.isolation == Isolation::ReadCommitted {
            // Sees the commits of the transactions waited for, and holds back none of the space
            // that they leave to be freed.
            self.refresh_snapshot()?;
        }
        Ok(())
    }

    /// Like [`Transaction::lock_schema`], for a transaction that looks everything up afterwards. It
    /// releases its snapshot while it waits and then sees the current state, at every isolation
    /// level. So two that ask do not wait for each other, and a transaction that it waits for goes
    /// first if it asks too. If it has changed or locked anything, or clones of its views are in
    /// use, it keeps its snapshot.
    ///
    /// Errors: as [`Transaction::lock_schema`]; then it can only be rolled back.
    pub fn lock_schema_and_reset(&mut self) -> Result<()> {
        self.settle()?;
        if self.has_schema_lock || !self.release_snapshot() {
            return self.lock_schema();
        }
        let state = self.register();
        let done = self.wait_without_snapshot(&state).and_then(|()| self.reset_view());
        if done.is_err() {
            self.has_schema_lock = false;
            self.view.db.schema.release(state.id);
            self.abandon()?;
        }
        done
    }

    /// Releases its snapshot. Returns false if it holds anything that others may wait for, or if
    /// its views are in use.
    fn release_snapshot(&mut self) -> bool {
        let has_nothing = self.writer.is_none() && self.claims.is_empty() && self.catalogs.is_empty();
        has_nothing
            && self.own_snapshots() == 1
            && Arc::get_mut(&mut self.view.snapshot).map(|snapshot| snapshot.release()).is_some()
    }

    /// Becomes the holder, and alone, without a snapshot. It holds nothing that others wait for
    /// meanwhile, so there is no deadlock.
    fn wait_without_snapshot(&mut self, state: &Arc<State>) -> Result<()> {
        let db = &*self.view.db;
        db.wait_for_schema_until(&self.view.canceller, self.lock_timeout, |holder| {
            if holder.is_none() {
                db.schema.set_holder(holder, state, true);
            }
            let own = holder.as_mut().filter(|holder| holder.is(state));
            // ORDER: set the holder first, then check the snapshots: see `Inner::take_snapshot`.
            debug_assert!(own.as_ref().is_none_or(|own| own.yields), "a holder that waits does not yield");
            own.filter(|_| db.slots.snapshots() == 0).map(|own| own.yields = false).is_some()
        })?;
        debug_assert!(self.view.db.schema.is_held(), "transaction {} waited for a free schema", state.id);
        self.has_schema_lock = true;
        Ok(())
    }

    /// Takes a view of the current state, now that it is alone, with an empty read set.
    fn reset_view(&mut self) -> Result<()> {
        let db = Arc::clone(&self.view.db);
        debug_assert!(self.has_schema_lock, "a view is replaced while others may change the schema");
        debug_assert!(
            self.claims.is_empty() && self.undo.is_empty() && self.catalogs.is_empty(),
            "a transaction with changes forgets what it has seen"
        );
        self.view.snapshot = db.new_snapshot()?;
        self.view.reads = Transaction::reads_of(self.isolation);
        self.use_catalog(db.catalog());
        Ok(())
    }

    fn wait_for_holder(&self, state: &State, other: &State) -> Result<()> {
        debug_assert!(
            state.id != other.id,
            "transaction {} waits for itself to release the schema",
            state.id
        );
        let db = &self.view.db;
        db.waits.begin(state.id, &[other.id]).map_err(deadlock)?;
        // Until it is no longer the holder, which may be before its end.
        let waited = db.wait_for_schema_until(&self.view.canceller, self.lock_timeout, |holder| {
            holder.as_ref().is_none_or(|holder| !holder.is(other))
        });
        db.waits.end(state.id);
        waited
    }

    fn wait_for_all(&self, state: &State) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let circle = |_| Error::Deadlock {
            detail: "a schema change waits for transactions that wait for it".to_owned(),
        };
        let db = &self.view.db;
        db.waits.begin(state.id, &[Waits::ALL]).map_err(circle)?;
        let waited = db.wait_for_schema_until(&self.view.canceller, self.lock_timeout, |_| {
            hook::at("waits for all");
            self.is_alone()
        });
        db.waits.end(state.id);
        waited
    }

    /// Returns whether all snapshots are its own.
    fn is_alone(&self) -> bool {
        // ORDER: first count all, then its own, which can only decrease here. If a view is dropped
        // in between, it is missing among its own, and the wait lasts one more round. In the
        // opposite order, another transaction's snapshot would be taken for it.
        let all = self.view.db.slots.snapshots();
        all <= self.own_snapshots()
    }

    /// Returns the number of snapshots that its own views hold. Scans of earlier statements may
    /// still have theirs.
    fn own_snapshots(&self) -> usize {
        self.own_snapshots.iter().filter(|snapshot| snapshot.strong_count() > 0).count() + 1
    }

    pub(super) fn unlock_schema(&mut self) {
        if std::mem::take(&mut self.has_schema_lock) {
            debug_assert!(self.id() != 0, "a transaction without a number holds the schema");
            self.view.db.schema.release(self.id());
        }
    }
}

impl Inner {
    /// Waits while the schema is being changed. A transaction that begins holds nothing that others
    /// wait for, so there is no deadlock, unless its thread has another transaction open, which is
    /// not known to wait here. Then the canceller or the timeout ends the wait.
    pub(super) fn wait_for_schema(
        &self,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<()> {
        self.wait_for_schema_until(canceller, lock_timeout, |holder| holder.is_none())
    }

    fn wait_for_schema_until(
        &self,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
        mut is_over: impl FnMut(&mut Option<SchemaHolder>) -> bool,
    ) -> Result<()> {
        let clock = &self.options.clock;
        let end = lock_timeout.map(|time| clock.now() + time);
        let mut holder = lock(&self.schema.holder);
        while !is_over(&mut holder) {
            self.check()?;
            if canceller.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if end.is_some_and(|end| clock.now() >= end) {
                return Err(Error::LockTimeout);
            }
            holder = self
                .schema
                .changed
                .wait_timeout(holder, WAIT_CHECK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(())
    }
}
