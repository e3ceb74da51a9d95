//! Reuse of an ended transaction for the next one.
//!
//! A transaction holds references to the database, the catalog and the snapshots. Each is a
//! reference count that all threads share, so two CPUs that only begin and end transactions contend
//! for them. A thread that runs one transaction after another keeps the references and the memory.
//! Beginning then writes only to its own memory, and to one slot of the snapshots.

use std::time::Duration;

use cairn_vfs::sync::{Arc, Weak};

use super::{CLEAN, Statement, Transaction};
use crate::Result;
use crate::inner::Inner;
use crate::mvcc::{Canceller, Snapshot};
use crate::options::{Durability, Isolation};
use crate::storage::UndoReservation;

/// An ended transaction, for [`Database::begin_from`](crate::Database::begin_from). Holds no
/// snapshot, but keeps the database open.
#[derive(Debug)]
pub struct ReusableTransaction(Box<Transaction>);

impl Transaction {
    /// Like [`Transaction::commit`], and returns the transaction for reuse; `None` if its views are
    /// still in use. If it cannot commit and is undone, calls `undoes` before its locks are
    /// released.
    ///
    /// Errors: as [`Transaction::commit`].
    pub fn commit_reusable(
        mut self: Box<Self>,
        durability: Durability,
        mut undoes: impl FnMut(),
    ) -> Result<Option<ReusableTransaction>> {
        let has_committed = self.commit_in_place(durability, &mut undoes)?;
        self.into_reusable(has_committed)
    }

    /// Like [`Transaction::rollback`], and returns the transaction for reuse; `None` if its views
    /// are still in use.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn rollback_reusable(mut self: Box<Self>) -> Result<Option<ReusableTransaction>> {
        self.is_over = true;
        self.abort()?;
        self.into_reusable(true)
    }

    /// Undoes its changes and releases everything that others may wait for, though it has not
    /// ended: for a transaction that can only be rolled back. It must not be read with afterwards.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn abandon(&mut self) -> Result<()> {
        self.is_over = true;
        self.abort()?;
        self.reset();
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => snapshot.release(),
            // Clones of its view are still in use; the last of them releases the snapshot.
            None => self.view.snapshot = Arc::new(Snapshot::unset(&self.view.db.slots)),
        }
        self.view.db.maintain(CLEAN);
        Ok(())
    }

    fn into_reusable(mut self: Box<Self>, tidies_up: bool) -> Result<Option<ReusableTransaction>> {
        debug_assert!(self.is_over, "a running transaction is kept for reuse");
        self.reset();
        let is_alone = Arc::get_mut(&mut self.view.snapshot).map(|snapshot| snapshot.release()).is_some();
        if !tidies_up {
            return Ok(is_alone.then_some(ReusableTransaction(self)));
        }
        let db = Arc::clone(&self.view.db);
        let reusable = is_alone.then_some(ReusableTransaction(self));
        db.maintain(CLEAN);
        Ok(reusable)
    }

    /// Resets an ended transaction to one that has done nothing.
    fn reset(&mut self) {
        // Each field by name, so that none is forgotten.
        let Transaction {
            view,
            isolation: _,
            state,
            writer,
            undo,
            undo_space,
            undone,
            claims,
            last_locked,
            ghosts,
            epoch,
            fixed,
            made,
            dropped,
            uncreated,
            new_chains,
            old_chains,
            left_chains,
            catalogs,
            // Refers to the catalog, which stays.
            checked: _,
            counts,
            counts_since,
            has_schema_lock: _,
            header: _,
            found: _,
            entry: _,
            own_snapshots,
            lock_timeout: _,
            statement,
            is_over: _,
        } = self;
        (view.own, view.reads, *state, *writer, *last_locked) = (None, None, None, None, None);
        (view.own_until, view.fixed, *fixed) = (u32::MAX, None, Weak::new());
        undo.clear();
        *undo_space = UndoReservation::default();
        undone.clear();
        claims.clear();
        ghosts.clear();
        (*epoch, *counts_since) = (0, 0);
        made.clear();
        dropped.clear();
        uncreated.clear();
        new_chains.clear();
        old_chains.clear();
        left_chains.clear();
        catalogs.clear();
        counts.clear();
        own_snapshots.clear();
        *statement = Statement::default();
        self.unlock_schema();
        debug_assert!(self.is_over, "a running transaction is reset");
        debug_assert!(!self.has_schema_lock, "an ended transaction holds the schema");
    }

    /// Begins a transaction, reusing an ended one. Errors: as [`Transaction::begin`].
    pub(crate) fn begin_from(
        reusable: Option<ReusableTransaction>,
        db: &Arc<Inner>,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Box<Transaction>> {
        let reusable = reusable.filter(|ReusableTransaction(last)| Arc::ptr_eq(&last.view.db, db));
        let Some(ReusableTransaction(mut next)) = reusable else {
            return Transaction::begin(db, isolation, canceller.clone(), lock_timeout).map(Box::new);
        };
        next.retake_snapshot(canceller, lock_timeout)?;
        if !db.catalog.is(&next.view.catalog) {
            next.use_catalog(db.catalog());
        }
        if !next.view.canceller.is_same(canceller) {
            next.view.canceller = canceller.clone();
        }
        debug_assert!(next.is_over, "a running transaction begins again");
        debug_assert!(
            next.state.is_none() && next.undo.is_empty() && next.claims.is_empty(),
            "a transaction begins with the work of the one before it"
        );
        debug_assert!(
            next.made.is_empty() && next.dropped.is_empty() && next.catalogs.is_empty(),
            "a transaction begins with the schema changes of the one before it"
        );
        next.view.reads = Transaction::reads_of(isolation);
        (next.isolation, next.lock_timeout, next.is_over) = (isolation, lock_timeout, false);
        debug_assert!(next.own_snapshots.is_empty(), "a transaction begins with snapshots of another one");
        Ok(next)
    }

    /// Takes its snapshot again. Errors: as [`Transaction::begin`].
    fn retake_snapshot(&mut self, canceller: &Canceller, lock_timeout: Option<Duration>) -> Result<()> {
        let db = &self.view.db;
        db.check()?;
        // A reusable transaction is the only owner of its snapshot.
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => db.take_snapshot(snapshot, canceller, lock_timeout),
            None => {
                self.view.snapshot = db.snapshot(canceller, lock_timeout)?;
                Ok(())
            }
        }
    }
}
