//! What one transaction leaves to the next one.
//!
//! A transaction takes handles on the database, the catalog and the snapshots. Each is a count in
//! memory that all threads share, so two processors that only begin and end transactions wait for
//! each other. Who runs one transaction after the other keeps the handles, and the memory: then
//! beginning writes to memory of its own, and to one slot of the table of snapshots.

use std::time::Duration;

use cairn_vfs::sync::{Arc, Weak};

use super::{CLEAN, Statement, Transaction};
use crate::Result;
use crate::database::{Durability, Inner, Isolation};
use crate::mvcc::{Canceller, Snapshot};
use crate::storage::Debt;

/// A transaction that is over, for [`Database::begin_from`](crate::Database::begin_from). Holds
/// nobody back. As long as it lives the database stays open.
#[derive(Debug)]
pub struct Spare(Box<Transaction>);

impl Transaction {
    /// As [`Transaction::commit`], and gives what the next transaction can be made of; `None` where
    /// views of this one are still in use. Where it cannot commit and is undone, `undoes` is called
    /// before others get what it has.
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

    /// As [`Transaction::rollback`], and gives what the next transaction can be made of; `None`
    /// where views of this one are still in use.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn rollback_sparing(mut self: Box<Self>) -> Result<Option<Spare>> {
        self.is_over = true;
        self.abort()?;
        self.spare(true)
    }

    /// Undoes its changes and lets go of all that others wait for, though it is not ended yet: for
    /// one that can only be rolled back. It is not to be read with after this.
    ///
    /// Errors: as [`Transaction::rollback`].
    pub fn abandon(&mut self) -> Result<()> {
        self.is_over = true;
        self.abort()?;
        self.forget();
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => snapshot.let_go(),
            // Clones of its view are still in use: it goes with the last of them.
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

    /// Makes it one that has done nothing. It is over.
    fn forget(&mut self) {
        // Each field by name, so that none is left out.
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
            // Of the catalog, which stays.
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

    /// Begins one with what another one has left. Errors: as [`Transaction::begin`].
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

    /// Takes its snapshot again. Errors: as [`Transaction::begin`].
    fn look_anew(&mut self, canceller: &Canceller, lock_timeout: Option<Duration>) -> Result<()> {
        let db = &self.view.db;
        db.check()?;
        // A spare one is alone with it.
        match Arc::get_mut(&mut self.view.snapshot) {
            Some(snapshot) => db.look(snapshot, canceller, lock_timeout),
            None => {
                self.view.snapshot = db.snapshot(canceller, lock_timeout)?;
                Ok(())
            }
        }
    }
}
