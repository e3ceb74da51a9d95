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
use crate::database::{Durability, Inner, Isolation};
use crate::mvcc::{Canceller, Snapshot};
use crate::storage::Debt;

/// An ended transaction, for [`Database::begin_from`](crate::Database::begin_from). Holds no
/// snapshot, but keeps the database open.
#[derive(Debug)]
pub struct Spare(Box<Transaction>);

impl Transaction {
    /// Like [`Transaction::commit`], and returns the transaction for reuse; `None` if its views are
    /// still in use. If it cannot commit and is undone, calls `undoes` before its locks are
    /// released.
    ///
    /// Errors: as [`Transaction::commit`].
    pub fn commit_sparing(
        mut self: Box<Self>,
        durability: Durability,
        mut undoes: impl FnMut(),
    ) -> Result<Option<Spare>> {
        let has_committed = self.commit_here(durability, &mut undoes)?;
        self.spare(has_committed)
    }

    /// Like [`Transaction::rollback`], and returns the transaction for reuse; `None` if its views
    /// are still in use.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn rollback_sparing(mut self: Box<Self>) -> Result<Option<Spare>> {
        self.is_over = true;
        self.abort()?;
        self.spare(true)
    }

    /// Undoes its changes and releases everything that others may wait for, though it has not
    /// ended: for a transaction that can only be rolled back. It must not be read with afterwards.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn abandon(&mut self) -> Result<()> {
        self.is_over = true;
        self.abort()?;
        self.forget();
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => snapshot.let_go(),
            // Clones of its view are still in use; the last of them releases the snapshot.
            None => self.view.snapshot = Arc::new(Snapshot::none(&self.view.db.slots)),
        }
        self.view.db.tidy_up(CLEAN);
        Ok(())
    }

    fn spare(mut self: Box<Self>, tidies_up: bool) -> Result<Option<Spare>> {
        self.forget();
        let is_alone = Arc::get_mut(&mut self.view.snapshot).map(|snapshot| snapshot.let_go()).is_some();
        if !tidies_up {
            return Ok(is_alone.then_some(Spare(self)));
        }
        let db = Arc::clone(&self.view.db);
        let spare = is_alone.then_some(Spare(self));
        db.tidy_up(CLEAN);
        Ok(spare)
    }

    /// Resets an ended transaction to one that has done nothing.
    fn forget(&mut self) {
        // Each field by name, so that none is forgotten.
        let Transaction {
            view,
            isolation: _,
            state,
            writer,
            undo,
            debt,
            undone,
            claims,
            looked,
            ghosts,
            epoch,
            fixed,
            made,
            dropped,
            unmade,
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
        (view.own, view.reads, *state, *writer, *looked) = (None, None, None, None, None);
        (view.own_until, view.fixed, *fixed) = (u32::MAX, None, Weak::new());
        undo.clear();
        *debt = Debt::default();
        undone.clear();
        claims.clear();
        ghosts.clear();
        (*epoch, *counts_since) = (0, 0);
        made.clear();
        dropped.clear();
        unmade.clear();
        new_chains.clear();
        old_chains.clear();
        left_chains.clear();
        catalogs.clear();
        counts.clear();
        own_snapshots.clear();
        *statement = Statement::default();
        self.leave_schema();
    }

    /// Begins a transaction, reusing an ended one. Errors: as [`Transaction::begin`].
    pub(crate) fn begin_from(
        spare: Option<Spare>,
        db: &Arc<Inner>,
        isolation: Isolation,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Box<Transaction>> {
        let spare = spare.filter(|Spare(last)| Arc::ptr_eq(&last.view.db, db));
        let Some(Spare(mut next)) = spare else {
            return Transaction::begin(db, isolation, canceller.clone(), lock_timeout).map(Box::new);
        };
        next.look_anew(canceller, lock_timeout)?;
        if !db.catalog.is(&next.view.catalog) {
            next.use_catalog(db.catalog());
        }
        if !next.view.canceller.is_same(canceller) {
            next.view.canceller = canceller.clone();
        }
        next.view.reads = Transaction::reads_of(isolation);
        (next.isolation, next.lock_timeout, next.is_over) = (isolation, lock_timeout, false);
        Ok(next)
    }

    /// Takes its snapshot anew. Errors: as [`Transaction::begin`].
    fn look_anew(&mut self, canceller: &Canceller, lock_timeout: Option<Duration>) -> Result<()> {
        let db = &self.view.db;
        db.check()?;
        // A spare transaction is the only owner of its snapshot.
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => db.look(snapshot, canceller, lock_timeout),
            None => {
                self.view.snapshot = db.snapshot(canceller, lock_timeout)?;
                Ok(())
            }
        }
    }
}
