//! Transactions.

mod autonomous;
mod bulk;
mod change;
mod ddl;
mod dml;
mod foreign_keys;
mod index_entry;
mod invariants;
mod locked_row;
mod locks;
mod pending;
mod reuse;
mod rules;
mod schema_lock;
mod statement;

use std::time::Duration;

use cairn_vfs::sync::atomic::Ordering;
use cairn_vfs::sync::{Arc, Mutex, Weak, lock};
use cairn_vfs::{Bug, ErrorKind};

use crate::catalog::{Catalog, Counters, ROOT, Table};
use crate::inner::Inner;
use crate::mvcc::{Canceller, Ended, Ghost, Key, ReadSet, Snapshot, State, Write, WriterSlot};
use crate::options::{Durability, Isolation};
use crate::storage::{DroppedTree, LongRecord, Reclaiming, Record, Tree, UndoReservation, free_chain};
use crate::view::{Fixed, View};
use crate::{Error, Result};

use index_entry::Entry;
use locked_row::LockedRow;
use pending::{Mark, Statement};

pub use bulk::{BulkInsert, BulkLoad};
pub(crate) use ddl::no_tree;
pub use reuse::ReusableTransaction;
pub use rules::Rules;

/// Number of ended transactions that an ending one cleans up after: more than one, so that they do
/// not accumulate.
const CLEAN: usize = 16;

/// A point in a transaction to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint {
    undo: usize,
    ghosts: usize,
    made: usize,
    dropped: usize,
    new_chains: usize,
    old_chains: usize,
    catalogs: usize,
    counts: usize,
    statement: Mark,
}

/// A transaction: reads and changes that take effect together or not at all. Dropping it undoes its
/// changes.
///
/// Only one thread at a time uses it; its [`View`] may be read by many.
#[derive(Debug)]
pub struct Transaction {
    view: View,
    isolation: Isolation,
    /// The transaction as others see it, from the first change or lock on.
    state: Option<Arc<State>>,
    writer: Option<WriterSlot>,
    undo: Vec<Arc<Write>>,
    /// The space needed to undo it.
    undo_space: UndoReservation,
    /// Undone changes. Others may have read their contents and look for the versions.
    undone: Vec<Arc<Write>>,
    /// Rows that it has locked, as tree and key, to be released when their versions are no longer
    /// needed.
    claims: Vec<(u32, Key)>,
    /// The row locked last, unless something was changed or undone since. No other transaction can
    /// change it.
    last_locked: Option<LockedRow>,
    /// Records that became ghosts, to be removed then.
    ghosts: Vec<Ghost>,
    /// Number of savepoints so far.
    epoch: u32,
    /// Alive as long as there are views fixed at this epoch. Changes made meanwhile belong to the
    /// next epoch.
    fixed: Weak<Fixed>,
    /// Trees to free unless it commits.
    made: Vec<u32>,
    /// Trees to free if it commits.
    dropped: Vec<u32>,
    /// Trees to free in either case, because a rollback to a savepoint undid their creation.
    uncreated: Vec<u32>,
    /// First pages of chains: those to free unless it commits, and those to free if it commits.
    new_chains: Vec<u32>,
    old_chains: Vec<u32>,
    /// First pages of chains to free in either case.
    left_chains: Vec<u32>,
    /// The catalogs before each schema change.
    catalogs: Vec<Arc<Catalog>>,
    /// Address of the last table found in the catalog, which keeps the table alive. 0 for none.
    checked: usize,
    /// Changes of row counts.
    counts: Vec<(Arc<Counters>, i64)>,
    /// Entries before this position belong to earlier savepoints.
    counts_since: usize,
    has_schema_lock: bool,
    /// Buffer for a log record.
    header: Vec<u8>,
    /// Buffer for a record that is inspected before it is changed.
    found: Vec<u8>,
    /// Buffer for the index entry of a row.
    entry: Entry,
    /// Snapshots of earlier statements, which clones of the view may still hold.
    own_snapshots: Vec<Weak<Snapshot>>,
    lock_timeout: Option<Duration>,
    /// Foreign key work that its changes have left to be done.
    statement: Statement,
    is_over: bool,
}

impl Transaction {
    pub(crate) fn begin(
        db: &Arc<Inner>,
        isolation: Isolation,
        canceller: Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<Transaction> {
        db.check()?;
        let snapshot = db.snapshot(&canceller, lock_timeout)?;
        let reads = Transaction::reads_of(isolation);
        let catalog = db.catalog();
        let view = View {
            db: Arc::clone(db),
            catalog,
            snapshot,
            own: None,
            own_until: u32::MAX,
            fixed: None,
            reads,
            canceller,
        };
        Ok(Transaction::new(view, isolation, lock_timeout))
    }

    /// Returns a read set if the isolation level needs one.
    fn reads_of(isolation: Isolation) -> Option<Arc<Mutex<ReadSet>>> {
        (isolation == Isolation::Serializable).then(|| Arc::new(Mutex::default()))
    }

    fn new(view: View, isolation: Isolation, lock_timeout: Option<Duration>) -> Transaction {
        debug_assert!(view.own.is_none() && view.fixed.is_none(), "a transaction begins with changes");
        debug_assert!(
            view.reads.is_some() == (isolation == Isolation::Serializable),
            "a transaction at level {isolation:?} records reads: {}",
            view.reads.is_some()
        );
        Transaction {
            view,
            isolation,
            state: None,
            writer: None,
            undo: Vec::new(),
            undo_space: UndoReservation::default(),
            undone: Vec::new(),
            claims: Vec::new(),
            last_locked: None,
            ghosts: Vec::new(),
            epoch: 0,
            fixed: Weak::new(),
            made: Vec::new(),
            dropped: Vec::new(),
            uncreated: Vec::new(),
            new_chains: Vec::new(),
            old_chains: Vec::new(),
            left_chains: Vec::new(),
            catalogs: Vec::new(),
            checked: 0,
            counts: Vec::new(),
            counts_since: 0,
            has_schema_lock: false,
            header: Vec::new(),
            found: Vec::new(),
            entry: Entry::default(),
            own_snapshots: Vec::new(),
            lock_timeout,
            statement: Statement::default(),
            is_over: false,
        }
    }

    /// Sets how long it waits for rows that another transaction has changed, and for schema
    /// changes; `None` for no limit.
    pub fn set_lock_timeout(&mut self, timeout: Option<Duration>) {
        self.lock_timeout = timeout;
    }

    /// Returns its number. It is assigned with the first change; before, this is 0.
    pub fn id(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.id)
    }

    /// Returns its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Returns whether it has changed or locked anything.
    pub fn has_written(&self) -> bool {
        debug_assert!(
            self.state.is_some() == self.view.own.is_some(),
            "the changes of transaction {} are not visible to itself",
            self.id()
        );
        self.state.is_some()
    }

    /// Returns the data that it sees now, including its own changes. A clone keeps seeing the data
    /// of this statement.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Fixes its view. Until [`Transaction::unfix_view`], clones keep seeing the current data and
    /// none of its later changes: for rows that are read while others, or the same ones, are
    /// changed. Cost: an allocation; a row that is changed again while there are such clones has a
    /// version for each.
    pub fn fix_view(&mut self) {
        // Changes are distinguished by the savepoint that they follow.
        self.view.own_until = self.epoch;
        let fixed = self.fixed.upgrade().unwrap_or_default();
        self.fixed = Arc::downgrade(&fixed);
        self.view.fixed = Some(fixed);
    }

    /// Makes new clones of its view see its own later changes again. Fixed clones stay fixed.
    pub fn unfix_view(&mut self) {
        (self.view.own_until, self.view.fixed) = (u32::MAX, None);
    }

    /// Begins an epoch, which distinguishes later changes from earlier ones.
    fn next_epoch(&mut self) {
        debug_assert!(self.epoch < u32::MAX - 1, "the savepoints of a transaction are used up");
        self.epoch += 1;
        self.fixed = Weak::new();
    }

    /// Returns the canceller that stops it.
    pub fn canceller(&self) -> &Canceller {
        &self.view.canceller
    }

    /// Must be called before each statement. With read committed, the transaction then sees all
    /// current commits. Errors: [`Error::Busy`], [`Error::Failed`].
    pub fn begin_statement(&mut self) -> Result<()> {
        self.view.db.check()?;
        if self.isolation == Isolation::ReadCommitted { self.refresh_snapshot() } else { Ok(()) }
    }

    /// Takes a new snapshot of all current commits.
    fn refresh_snapshot(&mut self) -> Result<()> {
        debug_assert!(
            self.isolation == Isolation::ReadCommitted,
            "a transaction at level {:?} gets another snapshot",
            self.isolation
        );
        if self.view.snapshot.csn != self.view.db.slots.last() {
            let old = std::mem::replace(&mut self.view.snapshot, self.view.db.new_snapshot()?);
            debug_assert!(
                self.view.snapshot.csn >= old.csn,
                "a snapshot of commit {} is followed by one of {}",
                old.csn,
                self.view.snapshot.csn
            );
            if Arc::strong_count(&old) > 1 {
                self.own_snapshots.retain(|snapshot| snapshot.strong_count() > 0);
                self.own_snapshots.push(Arc::downgrade(&old));
            }
        }
        Ok(())
    }

    /// Creates a savepoint for [`Transaction::rollback_to`]. Cost: none, except that rows changed
    /// both before and after it have a version for each.
    pub fn savepoint(&mut self) -> Savepoint {
        self.next_epoch();
        self.counts_since = self.counts.len();
        Savepoint {
            undo: self.undo.len(),
            ghosts: self.ghosts.len(),
            made: self.made.len(),
            dropped: self.dropped.len(),
            new_chains: self.new_chains.len(),
            old_chains: self.old_chains.len(),
            catalogs: self.catalogs.len(),
            counts: self.counts.len(),
            statement: self.statement.mark(),
        }
    }

    /// Undoes everything since a savepoint, which remains valid. Rows locked since stay locked.
    /// Errors: [`Error::Invalid`] for a savepoint between the changes of a statement that has ended
    /// ([`Transaction::end_changes`]); the pool's and the log's, after which the database must be
    /// reopened.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let _reclaiming = Reclaiming::undo();
        self.statement.rollback_to(savepoint.statement)?;
        self.next_epoch();
        let undone = self.undo_since(savepoint.undo).inspect_err(|error| self.view.db.fail(error));
        undone?;
        self.ghosts.truncate(savepoint.ghosts);
        self.old_chains.truncate(savepoint.old_chains);
        self.counts.truncate(savepoint.counts);
        self.counts_since = self.counts.len();
        self.dropped.truncate(savepoint.dropped);
        self.uncreated.extend(self.made.drain(savepoint.made.min(self.made.len())..));
        // A scan of all pages holds a snapshot, and may have read a row before it was undone. The
        // row's pages then stay until every snapshot sees that.
        let kept = savepoint.new_chains.min(self.new_chains.len());
        let may_be_read = kept < self.new_chains.len() && self.view.db.slots.snapshots() > 1;
        for mut chain in self.new_chains.drain(kept..) {
            if may_be_read {
                self.left_chains.push(chain);
                continue;
            }
            // The rollback is complete even if this fails.
            if let Err(error) = free_chain(self.view.db.store.space(), &mut chain) {
                self.left_chains.extend((error.kind() != ErrorKind::Corruption).then_some(chain));
                self.view.db.defer_error(error);
            }
        }
        if let Some(catalog) = self.catalogs.get(savepoint.catalogs) {
            let catalog = Arc::clone(catalog);
            self.use_catalog(catalog);
            self.catalogs.truncate(savepoint.catalogs);
        }
        self.assert_is_back_at(&savepoint);
        Ok(())
    }

    /// Restores every row changed since, the last change first.
    fn undo_since(&mut self, at: usize) -> Result<()> {
        self.last_locked = None;
        while self.undo.len() > at {
            let Some(write) = self.undo.last() else { break };
            let tree = Tree::open(self.view.db.store.space(), write.tree);
            match &write.before {
                Some(before) => _ = tree.put(&write.key, before)?,
                None => _ = tree.remove(&write.key)?,
            }
            self.undone.extend(self.undo.pop());
        }
        debug_assert!(self.undo.len() <= at, "{} changes are left, expected {at}", self.undo.len());
        Ok(())
    }

    /// Makes its changes visible to others, with the requested durability. A serializable
    /// transaction that has read data changed by others meanwhile is undone and fails with
    /// [`Error::SerializationFailure`]. Cost with [`Durability::Sync`]: one sync of the log, shared
    /// by concurrent commits.
    ///
    /// Errors: those of [`Transaction::end_changes`], which runs first if it has not yet, after
    /// which the transaction is undone; the log's, after which only reopening the database shows
    /// whether it committed. Failures after the commit, in freeing space or releasing the log, are
    /// reported by the next [`Database::checkpoint`](crate::Database::checkpoint).
    pub fn commit(mut self, durability: Durability) -> Result<()> {
        if self.commit_in_place(durability, &mut || {})? {
            let db = Arc::clone(&self.view.db);
            drop(self);
            db.maintain(CLEAN);
        }
        Ok(())
    }

    /// Commits. Returns false if there was nothing to commit. Keeps its snapshot. If it must be
    /// undone instead, calls `undoes` first.
    fn commit_in_place(&mut self, durability: Durability, undoes: &mut dyn FnMut()) -> Result<bool> {
        self.end_changes().inspect_err(|_| undoes())?;
        if self.statement.has_work() {
            undoes();
            return Err(Bug::new(format!(
                "transaction {} commits without the foreign key work that it has left",
                self.id()
            ))
            .into());
        }
        self.is_over = true;
        let Some(state) = self.state.clone() else { return Ok(false) };
        let _reclaiming = Reclaiming::free_space();
        let lsn = match self.queue_commit(&state, undoes)? {
            Some(lsn) => lsn,
            None => {
                self.view.db.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                let what = "of read/write dependencies among transactions";
                return Err(Error::SerializationFailure { what });
            }
        };
        let db = Arc::clone(&self.view.db);
        if durability == Durability::Sync {
            db.store.sync_to(lsn).inspect_err(|error| db.fail(error))?;
        }
        db.commits.publish(&db.slots, lsn, Some(db.store.synced()));
        // An earlier commit may still be waiting for the disk.
        if !state.wait(Some(WAIT_CHECK_INTERVAL), || db.has_failed()) {
            return Err(Error::Failed { cause: "a commit before this one failed".into() });
        }
        debug_assert!(
            state.has_released_locks() && db.slots.last() >= state.commit(),
            "transaction {} has committed, and is not visible",
            state.id
        );
        self.assert_has_no_work();
        db.counts.commits.fetch_add(1, Ordering::Relaxed);
        for (counters, change) in &self.counts {
            counters.rows.fetch_add(*change, Ordering::Relaxed);
        }
        if !self.catalogs.is_empty() {
            db.set_catalog(&self.view.catalog);
        }
        self.unlock_schema();
        Ok(true)
    }

    /// Appends the commit record. Returns `None` if it may not commit; it has been undone then.
    fn queue_commit(
        &mut self,
        state: &Arc<State>,
        undoes: &mut dyn FnMut(),
    ) -> Result<Option<cairn_pool::Lsn>> {
        let (db, reads) = (Arc::clone(&self.view.db), self.view.reads.clone());
        let mut guard = reads.as_ref().map(|reads| lock(reads));
        if let Some(reads) = &mut guard {
            reads.sort();
        }
        let read = guard.as_ref().map(|reads| (&**reads, self.view.snapshot.csn));
        let line = db.commits.begin(read, || {
            // ORDER: before the commit record, and kept in the log as long as it, because recovery
            // frees these trees.
            for tree in self.trees_to_free(true) {
                db.store.append(&Record::Dropped { transaction: state.id, tree })?;
            }
            let lsn = db.store.append(&Record::Commit { transaction: state.id })?;
            Ok((lsn, self.ended(state, true), self.writer.take()))
        });
        drop(guard);
        match line {
            Ok(Some(lsn)) => Ok(Some(lsn)),
            Ok(None) => {
                undoes();
                self.abort()?;
                Ok(None)
            }
            Err(error) => {
                // Without the log nothing can be undone either. Waiting transactions learn that it
                // failed.
                self.view.db.fail(&error);
                state.wake_all();
                Err(error)
            }
        }
    }

    /// Returns the information that other transactions need after its end.
    fn ended(&mut self, state: &Arc<State>, commits: bool) -> Ended {
        use std::mem::take;
        debug_assert!(self.is_over, "transaction {} is taken apart before its end", state.id);
        debug_assert!(
            commits || self.undo.is_empty(),
            "{} changes of transaction {} were not undone",
            self.undo.len(),
            state.id
        );
        let trees = self.trees_to_free(commits);
        let (ghosts, old) = (take(&mut self.ghosts), take(&mut self.old_chains));
        let mut chains = take(&mut self.left_chains);
        chains.append(&mut if commits { old } else { take(&mut self.new_chains) });
        let mut writes = take(&mut self.undo);
        writes.append(&mut self.undone);
        self.undo_space = UndoReservation::default();
        Ended {
            csn: 0,
            state: Arc::clone(state),
            writes,
            claims: take(&mut self.claims),
            ghosts: if commits { ghosts } else { Vec::new() },
            trees,
            chains,
        }
    }

    /// Returns the trees to free at its end. Trees that it created and takes back have no long rows
    /// of their own, because those are among its chains.
    fn trees_to_free(&self, commits: bool) -> Vec<DroppedTree> {
        let (whole, rest) = if commits { (&self.dropped[..], &[][..]) } else { (&[][..], &self.made[..]) };
        let whole = whole.iter().map(|root| DroppedTree { root: *root, with_chains: true });
        let rest =
            rest.iter().chain(&self.uncreated).map(|root| DroppedTree { root: *root, with_chains: false });
        let trees: Vec<DroppedTree> = whole.chain(rest).collect();
        debug_assert!(
            trees.iter().all(|tree| tree.root > ROOT),
            "the catalog or page 0 is freed as a tree: {trees:?}"
        );
        debug_assert!(
            !self.made.iter().any(|root| self.uncreated.contains(root)),
            "a tree is created, and its creation undone: {:?} and {:?}",
            self.made,
            self.uncreated
        );
        trees
    }

    /// Undoes its changes. Errors: the pool's and the log's, after which the database must be
    /// reopened.
    pub fn rollback(mut self) -> Result<()> {
        self.is_over = true;
        self.abort()?;
        let db = Arc::clone(&self.view.db);
        drop(self);
        db.maintain(CLEAN);
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        debug_assert!(self.is_over, "transaction {} is undone before its end", self.id());
        let Some(state) = self.state.clone() else { return Ok(()) };
        let _reclaiming = Reclaiming::undo();
        let undone = match self.view.db.check() {
            Ok(()) => self.undo_since(0).and_then(|()| {
                self.view.db.store.append(&Record::Abort { transaction: state.id }).map(|_| ())
            }),
            Err(error) => Err(error),
        };
        if let Err(error) = undone {
            self.view.db.fail(&error);
            state.wake_all();
            self.unlock_schema();
            return Err(error);
        }
        let (ended, writer) = (self.ended(&state, false), self.writer.take());
        self.view.db.commits.abort(&self.view.db.slots, ended, writer);
        debug_assert!(state.has_released_locks(), "transaction {} still holds its locks", state.id);
        self.assert_has_no_work();
        self.view.db.counts.aborts.fetch_add(1, Ordering::Relaxed);
        self.unlock_schema();
        Ok(())
    }

    /// Switches to another catalog, and returns the previous one.
    fn use_catalog(&mut self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        self.checked = 0;
        std::mem::replace(&mut self.view.catalog, catalog)
    }

    /// Checks that a table is the one in the catalog. If it was planned with under a schema that
    /// was rolled back, its trees may have been reused. Errors: [`Error::StaleTable`].
    #[inline]
    fn check_table(&mut self, table: &Arc<Table>) -> Result<()> {
        if Arc::as_ptr(table).addr() == self.checked { Ok(()) } else { self.find_table(table) }
    }

    fn find_table(&mut self, table: &Arc<Table>) -> Result<()> {
        match self.view.catalog.table_by_id(table.id()) {
            Some(now) if Arc::ptr_eq(now, table) => {
                self.checked = Arc::as_ptr(table).addr();
                Ok(())
            }
            // Another version of the definition, perhaps with other statistics.
            Some(now) if now.roots() == table.roots() && now.def() == table.def() => Ok(()),
            _ => Err(Error::StaleTable { table: table.def().name.clone() }),
        }
    }

    /// Registers the transaction as a writer.
    fn register_writer(&mut self) -> Result<Arc<State>> {
        let state = self.register();
        if self.writer.is_none() {
            let db = &self.view.db;
            self.writer = Some(WriterSlot::take(&db.slots, || db.log_end())?);
        }
        Ok(state)
    }

    /// Registers the transaction, so that others can see it.
    fn register(&mut self) -> Arc<State> {
        if let Some(state) = &self.state {
            return Arc::clone(state);
        }
        debug_assert!(self.claims.is_empty() && self.undo.is_empty(), "locks are held without a number");
        debug_assert!(self.view.own.is_none(), "a transaction sees the changes of another one");
        let state = Arc::new(State::new(self.view.db.take_transaction_id()));
        self.view.own = Some(Arc::clone(&state));
        self.state = Some(Arc::clone(&state));
        state
    }

    /// Notes the chain of a replaced record, which is obsolete.
    fn note_old_chain(&mut self, before: &[u8]) {
        if let Some(LongRecord { first, .. }) = LongRecord::decode(before) {
            self.old_chains.push(first);
        }
    }

    fn count_rows(&mut self, table: &Table, change: i64) {
        debug_assert!(
            self.counts_since <= self.counts.len(),
            "counts of {} tables end before {}",
            self.counts.len(),
            self.counts_since
        );
        let since = self.counts.get_mut(self.counts_since..).unwrap_or_default();
        match since.iter_mut().find(|(counters, _)| Arc::ptr_eq(counters, &table.counters)) {
            Some((_, sum)) => *sum += change,
            None => self.counts.push((Arc::clone(&table.counters), change)),
        }
    }
}

/// Interval at which a waiting transaction checks whether it should continue.
const WAIT_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            self.is_over = true;
            // An error marks the database as failed, and the next call reports it.
            let _ = self.abort();
            self.view.db.maintain(CLEAN);
        }
        self.unlock_schema();
    }
}

impl Inner {
    /// Returns a snapshot for a new transaction. Waits while the schema is being changed.
    fn snapshot(&self, canceller: &Canceller, lock_timeout: Option<Duration>) -> Result<Arc<Snapshot>> {
        let mut snapshot = Snapshot::unset(&self.slots);
        self.take_snapshot(&mut snapshot, canceller, lock_timeout)?;
        Ok(Arc::new(snapshot))
    }

    /// Takes a snapshot for a new transaction, as [`Inner::snapshot`] does.
    fn take_snapshot(
        &self,
        snapshot: &mut Snapshot,
        canceller: &Canceller,
        lock_timeout: Option<Duration>,
    ) -> Result<()> {
        loop {
            snapshot.take(|| self.log_end())?;
            debug_assert!(
                snapshot.csn <= self.slots.last(),
                "a snapshot sees commit {}, which is not visible",
                snapshot.csn
            );
            // ORDER: take the slot, then check the schema lock. A schema change takes the lock
            // first and checks the slots afterwards.
            if !self.schema.is_held() {
                return Ok(());
            }
            snapshot.release();
            self.wait_for_schema(canceller, lock_timeout)?;
        }
    }

    /// Returns a snapshot for a transaction that already has one.
    fn new_snapshot(&self) -> Result<Arc<Snapshot>> {
        let mut snapshot = Snapshot::unset(&self.slots);
        snapshot.take(|| self.log_end())?;
        debug_assert!(
            snapshot.csn <= self.slots.last(),
            "a snapshot sees commit {}, which is not visible",
            snapshot.csn
        );
        Ok(Arc::new(snapshot))
    }

    fn set_catalog(&self, catalog: &Arc<Catalog>) {
        let mut catalog = Catalog::clone(catalog);
        // Only one transaction at a time changes the schema.
        debug_assert!(self.schema.is_held(), "the schema is changed by a transaction that does not hold it");
        catalog.set_version(self.catalog.load().version() + 1);
        self.catalog.store(Arc::new(catalog));
    }
}
