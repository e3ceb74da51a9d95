//! Row locks, and waiting for them.

use cairn_vfs::ensure;
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering;

use super::locked_row::LockedRow;
use super::{Transaction, WAIT_CHECK_INTERVAL};
use crate::catalog::{GHOST, ROOT, Table};
use crate::mvcc::{Claim, Key, Mode, State};
use crate::options::Isolation;
use crate::storage::{LongRecord, Tree};
use crate::view::RowBuf;
use crate::{Error, Result, hook};

/// Marks a claim on the row's key only, not on its other columns. Readers of the key from other
/// tables and writers of other columns thus do not conflict. No tree has this bit in its number,
/// because files cannot be that large.
const KEY: u32 = 1 << 31;
const _: () = assert!(ROOT < KEY);

/// The outcome of trying to lock a row.
enum LockAttempt {
    /// Locked; the row's key.
    Mine(Key),
    /// Not locked; the transactions that hold it.
    Held(Vec<Arc<State>>),
}

impl Transaction {
    /// Locks a row. Waits for its holders. Errors: [`Error::Deadlock`], [`Error::LockTimeout`],
    /// [`Error::Cancelled`]; with `is_strict`, [`Error::SerializationFailure`] if the row was
    /// changed since the snapshot.
    pub(super) fn claim(&mut self, tree: u32, key: &[u8], mode: Mode, is_strict: bool) -> Result<Key> {
        let state = self.register();
        loop {
            match self.try_claim(&state, tree, key, mode, is_strict)? {
                LockAttempt::Mine(key) => return Ok(key),
                LockAttempt::Held(others) => {
                    let waited = self.wait_for(&state, &others);
                    waited.inspect_err(|_| self.view.db.rows.stop_waiting(tree, key, &state))?;
                }
            }
        }
    }

    /// Like [`Transaction::claim`], for a key at which a record is to be inserted. A record that
    /// was inserted there since the snapshot is a conflict, which the insertion reports. If there
    /// is none, a record that this transaction still sees was deleted, and inserting would give it
    /// two of them. Errors: [`Error::SerializationFailure`] then; as [`Transaction::claim`].
    pub(super) fn claim_place(&mut self, tree: &Tree, key: &[u8]) -> Result<Key> {
        let claimed = self.claim(tree.root(), key, Mode::Exclusive, true);
        if !matches!(claimed, Err(Error::SerializationFailure { .. })) {
            return claimed;
        }
        // The record cannot change from here on.
        let key = self.claim(tree.root(), key, Mode::Exclusive, false)?;
        if self.current(tree, &key)?.is_some() { Ok(key) } else { claimed }
    }

    /// Like [`Transaction::claim`], without waiting. While others hold the row, the transaction is
    /// queued for it until it gives up. Errors: [`Error::SerializationFailure`] as for
    /// [`Transaction::claim`].
    #[inline]
    fn try_claim(
        &mut self,
        state: &Arc<State>,
        tree: u32,
        key: &[u8],
        mode: Mode,
        is_strict: bool,
    ) -> Result<LockAttempt> {
        debug_assert!(!self.is_over, "transaction {} locks a row after its end", state.id);
        debug_assert!(tree != 0, "a row of page 0 is locked");
        let snapshot =
            (is_strict && self.isolation != Isolation::ReadCommitted).then_some(self.view.snapshot.csn);
        match self.view.db.rows.claim(tree, key, state, mode, snapshot) {
            Claim::Mine { key, is_new } => {
                if is_new {
                    self.claims.push((tree, key.clone()));
                }
                Ok(LockAttempt::Mine(key))
            }
            Claim::Wait(others) => Ok(LockAttempt::Held(others)),
            Claim::Changed => {
                self.view.db.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                Err(Error::SerializationFailure { what: "due to concurrent update" })
            }
        }
    }

    /// Locks a row's key against changes, or against new references to it, without locking its
    /// other columns.
    pub(super) fn claim_key(&mut self, tree: u32, key: &[u8], mode: Mode) -> Result<()> {
        ensure!(tree & KEY == 0, "the tree on page {tree} has the number of another one's keys");
        self.claim(tree | KEY, key, mode, false).map(|_| ())
    }

    /// Waits until one of several transactions has ended. All of them block this one.
    pub(super) fn wait_for(&self, me: &Arc<State>, others: &[Arc<State>]) -> Result<()> {
        self.view.db.check()?;
        debug_assert!(
            !others.iter().any(|other| Arc::ptr_eq(other, me)),
            "transaction {} waits for its own end",
            me.id
        );
        let Some(other) = others.first() else { return Ok(()) };
        let ids: Vec<u64> = others.iter().map(|other| other.id).collect();
        self.view.db.waits.begin(me.id, &ids).map_err(deadlock)?;
        let canceller = &self.view.canceller;
        canceller.waits_for(Some(Arc::clone(other)));
        hook::at("waits for a lock");
        let clock = &self.view.db.options.clock;
        let end = self.lock_timeout.map(|time| clock.now() + time);
        let mut why = None;
        let db = &self.view.db;
        let has_ended = other.wait(Some(WAIT_CHECK_INTERVAL), || {
            why = if canceller.is_cancelled() {
                Some(Error::Cancelled)
            } else if end.is_some_and(|end| clock.now() >= end) {
                Some(Error::LockTimeout)
            } else {
                db.check().err()
            };
            why.is_some()
        });
        canceller.waits_for(None);
        self.view.db.waits.end(me.id);
        match why {
            Some(error) if !has_ended => Err(error),
            _ => self.view.db.check(),
        }
    }

    /// Locks a row until this transaction ends, and reads its current contents. Returns false if it
    /// no longer exists. Waits for a transaction that is changing it.
    ///
    /// With read committed, the row may differ from that in the snapshot, so callers that chose it
    /// by a condition must check the condition again. At other levels, a row changed since the
    /// snapshot is an error, [`Error::SerializationFailure`]. Further errors: [`Error::Deadlock`],
    /// [`Error::LockTimeout`], [`Error::Cancelled`], [`Error::StaleTable`].
    pub fn lock(&mut self, table: &Arc<Table>, key: &[u8], row: &mut RowBuf) -> Result<bool> {
        self.check_table(table)?;
        let key = self.claim(table.tree.root(), key, Mode::Exclusive, true)?;
        self.locked(table, key, row)
    }

    /// Like [`Transaction::lock`], without waiting: returns `None` if another transaction holds the
    /// row.
    pub fn try_lock(&mut self, table: &Arc<Table>, key: &[u8], row: &mut RowBuf) -> Result<Option<bool>> {
        self.check_table(table)?;
        let (state, tree) = (self.register(), table.tree.root());
        match self.try_claim(&state, tree, key, Mode::Exclusive, true)? {
            LockAttempt::Mine(key) => self.locked(table, key, row).map(Some),
            LockAttempt::Held(_) => {
                self.view.db.rows.stop_waiting(tree, key, &state);
                Ok(None)
            }
        }
    }

    fn locked(&mut self, table: &Table, key: Key, row: &mut RowBuf) -> Result<bool> {
        let Some(bytes) = self.current(&table.tree, &key)? else { return Ok(false) };
        let whole = self.whole(&bytes)?;
        row.set(&key, whole.as_deref().unwrap_or(&bytes));
        self.last_locked = Some(LockedRow { tree: table.tree.root(), key, record: bytes });
        Ok(true)
    }

    /// Locks a row as [`Transaction::lock`] does, and returns its current contents; `None` if it no
    /// longer exists. The row locked last is remembered.
    pub(super) fn claim_row(&mut self, table: &Table, key: &[u8]) -> Result<Option<LockedRow>> {
        let tree = table.tree.root();
        let last_locked =
            self.last_locked.take_if(|last_locked| last_locked.tree == tree && *last_locked.key == *key);
        if last_locked.is_some() {
            return Ok(last_locked);
        }
        let key = self.claim(tree, key, Mode::Exclusive, true)?;
        Ok(self.current(&table.tree, &key)?.map(|record| LockedRow { tree, key, record }))
    }

    /// Returns the record at a claimed key from the tree; `None` for a ghost or no record.
    pub(super) fn current(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let found = tree.get(key, &mut bytes)? && bytes.first().is_some_and(|flags| flags & GHOST == 0);
        Ok(found.then_some(bytes))
    }

    /// Returns the whole of a long row; `None` if the record itself is the row.
    pub(super) fn whole(&self, record: &[u8]) -> Result<Option<Vec<u8>>> {
        match LongRecord::decode(record) {
            Some(long) => self.view.db.store.long_row(&long).map(Some),
            None => Ok(None),
        }
    }
}

pub(super) fn deadlock(circle: Vec<u64>) -> Error {
    debug_assert!(circle.len() > 1, "the circle {circle:?} leads nowhere");
    let circle: Vec<String> = circle.iter().map(u64::to_string).collect();
    Error::Deadlock { detail: format!("transactions wait for each other: {}", circle.join(" -> ")) }
}
