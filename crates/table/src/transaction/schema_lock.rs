//! The schema: whoever changes it is alone until its end.
//!
//! Who asks becomes the holder, which keeps others from beginning, and waits until nobody else has
//! a snapshot. As long as it has one itself nobody else can be alone, so what it has looked up is
//! still so when it is. But two that have one each and ask both wait for one another. So who has
//! nothing yet that matters lets go of it while it waits, and looks everything up afterwards; and
//! whoever still has one, and asks as well, goes first.

use std::time::Duration;

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Condvar, Mutex, PoisonError, lock};

use super::locks::deadlock;
use super::{LOOK, Transaction};
use crate::database::{Inner, Isolation};
use crate::hook;
use crate::mvcc::{Canceller, State, Waits};
use crate::{Error, Result};

/// Who changes the schema, alone.
#[derive(Debug, Default)]
pub(crate) struct SchemaLock {
    /// The holder's number, or 0.
    holder_id: AtomicU64,
    holder: Mutex<Option<Holder>>,
    changed: Condvar,
}

/// Who has the schema, or waits until it is alone with it.
#[derive(Debug)]
struct Holder {
    state: Arc<State>,
    /// It has no snapshot and nothing else, and is not alone yet: whoever has one and asks goes
    /// first.
    gives_way: bool,
}

impl Holder {
    fn is(&self, state: &State) -> bool {
        self.state.id == state.id
    }
}

impl SchemaLock {
    /// Whether somebody has the schema, or waits for it: nobody begins meanwhile.
    pub(crate) fn is_held(&self) -> bool {
        self.holder_id.load(Ordering::SeqCst) != 0
    }

    fn put(&self, holder: &mut Option<Holder>, state: &Arc<State>, gives_way: bool) {
        *holder = Some(Holder { state: Arc::clone(state), gives_way });
        self.holder_id.store(state.id, Ordering::SeqCst);
    }

    /// Makes one that has a snapshot the holder; or gives the one that is.
    fn ask(&self, state: &Arc<State>) -> Option<Arc<State>> {
        let mut holder = lock(&self.holder);
        match holder.as_ref().filter(|other| !other.gives_way) {
            Some(other) => Some(Arc::clone(&other.state)),
            None => {
                self.put(&mut holder, state, false);
                None
            }
        }
    }

    /// One is not the holder any more, if it was.
    fn leave(&self, id: u64) {
        let mut holder = lock(&self.holder);
        if holder.as_ref().is_some_and(|holder| holder.state.id == id) {
            *holder = None;
            self.holder_id.store(0, Ordering::SeqCst);
        }
        drop(holder);
        self.changed.notify_all();
    }
}

impl Transaction {
    /// Keeps everybody else out until the end, and waits for those who are in. What it has looked
    /// up before is still so then. Changes of the schema begin with this by themselves.
    ///
    /// Errors: as [`Transaction::lock`] and [`Transaction::end_changes`]. With [`Error::Deadlock`]
    /// another one that has a snapshot has asked first.
    pub fn lock_schema(&mut self) -> Result<()> {
        // What was noted is about tables as they are before.
        self.settle()?;
        if self.has_schema_lock {
            return Ok(());
        }
        let state = self.known();
        let db = Arc::clone(&self.view.db);
        while let Some(other) = db.schema.ask(&state) {
            self.wait_for_holder(&state, &other)?;
        }
        self.has_schema_lock = true;
        let waited = self.wait_for_everybody(&state);
        if waited.is_err() {
            self.leave_schema();
        }
        waited?;
        if self.isolation == Isolation::ReadCommitted {
            // What those have committed who were waited for; and nothing of what they have left to
            // be given back is kept for this one's sake.
            self.look_again()?;
        }
        Ok(())
    }

    /// As [`Transaction::lock_schema`], for one that looks everything up afterwards: it lets go of
    /// what it sees while it waits, and sees then what there is, at every level of isolation. So
    /// two that ask do not wait for each other, and whoever it waits for goes first if they ask
    /// too. Where it has changed or locked anything, or clones of its views are in use, it keeps
    /// what it sees.
    ///
    /// Errors: as [`Transaction::lock_schema`], and it can only be rolled back then.
    pub fn lock_schema_afresh(&mut self) -> Result<()> {
        self.settle()?;
        if self.has_schema_lock || !self.let_go() {
            return self.lock_schema();
        }
        let state = self.known();
        let done = self.wait_outside(&state).and_then(|()| self.look_afresh());
        if done.is_err() {
            self.has_schema_lock = false;
            self.view.db.schema.leave(state.id);
            self.abandon()?;
        }
        done
    }

    /// Lets go of what it sees; false where it has anything that others have to wait for, or
    /// somebody reads with its views.
    fn let_go(&mut self) -> bool {
        let has_nothing = self.writer.is_none() && self.claims.is_empty() && self.catalogs.is_empty();
        has_nothing
            && self.own_snapshots() == 1
            && Arc::get_mut(&mut self.view.snapshot).map(|snapshot| snapshot.let_go()).is_some()
    }

    /// Becomes the holder and is alone, without a snapshot. Nobody who has anything waits for it
    /// meanwhile, so there is no circle.
    fn wait_outside(&mut self, state: &Arc<State>) -> Result<()> {
        let db = &*self.view.db;
        db.wait_at_schema(&self.view.canceller, self.lock_timeout, |holder| {
            if holder.is_none() {
                db.schema.put(holder, state, true);
            }
            let own = holder.as_mut().filter(|holder| holder.is(state));
            // ORDER: the holder first, and then the look at the snapshots: see `Inner::look`.
            own.filter(|_| db.slots.snapshots() == 0).map(|own| own.gives_way = false).is_some()
        })?;
        self.has_schema_lock = true;
        Ok(())
    }

    /// Sees what there is now that it is alone, and has read nothing of what there was before.
    fn look_afresh(&mut self) -> Result<()> {
        let db = Arc::clone(&self.view.db);
        self.view.snapshot = db.another_snapshot()?;
        self.view.reads = Transaction::reads_of(self.isolation);
        self.use_catalog(db.catalog());
        Ok(())
    }

    fn wait_for_holder(&self, state: &State, other: &State) -> Result<()> {
        let db = &self.view.db;
        db.waits.begin(state.id, &[other.id]).map_err(deadlock)?;
        // Until it is not the holder any more, which it may cease to be before its end.
        let waited = db.wait_at_schema(&self.view.canceller, self.lock_timeout, |holder| {
            holder.as_ref().is_none_or(|holder| !holder.is(other))
        });
        db.waits.end(state.id);
        waited
    }

    fn wait_for_everybody(&self, state: &State) -> Result<()> {
        if self.is_alone() {
            return Ok(());
        }
        let circle = |_| Error::Deadlock {
            detail: "a change of the schema waits for transactions that wait for its own changes".to_owned(),
        };
        let db = &self.view.db;
        db.waits.begin(state.id, &[Waits::EVERYBODY]).map_err(circle)?;
        let waited = db.wait_at_schema(&self.view.canceller, self.lock_timeout, |_| {
            hook::at("waits for everybody");
            self.is_alone()
        });
        db.waits.end(state.id);
        waited
    }

    /// Whether all snapshots are its own.
    fn is_alone(&self) -> bool {
        // ORDER: first all of them, and then its own, which only become fewer here. A view that
        // goes meanwhile may then be missing among its own, and is waited for once more; the other
        // way round a stranger's snapshot would pass for it.
        let all = self.view.db.slots.snapshots();
        all <= self.own_snapshots()
    }

    /// How many snapshots its own views hold: scans of earlier statements may still have theirs.
    fn own_snapshots(&self) -> usize {
        self.own_snapshots.iter().filter(|snapshot| snapshot.strong_count() > 0).count() + 1
    }

    pub(super) fn leave_schema(&mut self) {
        if std::mem::take(&mut self.has_schema_lock) {
            self.view.db.schema.leave(self.id());
        }
    }
}

impl Inner {
    /// Waits while somebody changes the schema. Who begins has nothing that anybody could wait for,
    /// so there is no circle; unless its thread has another transaction open, of which nobody knows
    /// that it waits here. Then the canceller and the timeout end it.
    pub(super) fn wait_for_schema(
        &self,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<()> {
        self.wait_at_schema(canceller, lock_timeout, |holder| holder.is_none())
    }

    fn wait_at_schema(
        &self,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
        mut is_over: impl FnMut(&mut Option<Holder>) -> bool,
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
            holder = self.schema.changed.wait_timeout(holder, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}
