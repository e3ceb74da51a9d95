//! Waiting for others: for rows that they have.

use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::Ordering;

use super::{LOOK, Transaction};
use crate::catalog::{GHOST, Table};
use crate::database::Isolation;
use crate::mvcc::{Claim, Key, Mode, State};
use crate::storage::Tree;
use crate::view::RowBuf;
use crate::{Error, Result, hook};

/// Of a claim that concerns the row's key only, and not its other columns: readers of the key from
/// other tables and writers of other columns do not wait for each other. No tree has such a number:
/// files end before.
const KEY: u32 = 1 << 31;

/// A row that it has locked, as it is: who locks a row changes it next, as a rule, and need not
/// look for it once more.
#[derive(Debug)]
pub(super) struct Looked {
    tree: u32,
    pub(super) key: Key,
    pub(super) record: Vec<u8>,
}

/// What came of asking for a row.
enum Tried {
    /// Its key.
    Mine(Key),
    /// Those who have it.
    Held(Vec<Arc<State>>),
}

impl Transaction {
    /// Keeps others from changing a row. Waits for who has it. Errors: [`Error::Deadlock`],
    /// [`Error::LockTimeout`], [`Error::Cancelled`]; with `is_strict`,
    /// [`Error::SerializationFailure`] when somebody has changed it since the snapshot.
    pub(super) fn claim(&mut self, tree: u32, key: &[u8], mode: Mode, is_strict: bool) -> Result<Key> {
        let state = self.known();
        loop {
            match self.try_claim(&state, tree, key, mode, is_strict)? {
                Tried::Mine(key) => return Ok(key),
                Tried::Held(others) => {
                    let waited = self.wait_for(&state, &others);
                    waited.inspect_err(|_| self.view.db.rows.give_up(tree, key, &state))?;
                }
            }
        }
    }

    /// As [`Transaction::claim`], of a key that a record is to be put in at. One that somebody has
    /// put there since the snapshot is in its way, and whoever puts the record in finds that; where
    /// there is none, somebody has taken out what this transaction still sees, and it would have
    /// two of them. Errors: [`Error::SerializationFailure`] then; as [`Transaction::claim`].
    pub(super) fn claim_place(&mut self, tree: &Tree, key: &[u8]) -> Result<Key> {
        let claimed = self.claim(tree.root(), key, Mode::Exclusive, true);
        if !matches!(claimed, Err(Error::SerializationFailure { .. })) {
            return claimed;
        }
        // Nobody changes it from here on.
        let key = self.claim(tree.root(), key, Mode::Exclusive, false)?;
        if self.current(tree, &key)?.is_some() { Ok(key) } else { claimed }
    }

    /// As [`Transaction::claim`], without waiting: while others have the row, it is in line for it
    /// until it gives up. Errors: [`Error::SerializationFailure`] as of [`Transaction::claim`].
    #[inline]
    fn try_claim(
        &mut self,
        state: &Arc<State>,
        tree: u32,
        key: &[u8],
        mode: Mode,
        is_strict: bool,
    ) -> Result<Tried> {
        let snapshot =
            (is_strict && self.isolation != Isolation::ReadCommitted).then_some(self.view.snapshot.csn);
        match self.view.db.rows.claim(tree, key, state, mode, snapshot) {
            Claim::Mine { key, is_new } => {
                if is_new {
                    self.claims.push((tree, key.clone()));
                }
                Ok(Tried::Mine(key))
            }
            Claim::Wait(others) => Ok(Tried::Held(others)),
            Claim::Changed => {
                self.view.db.counts.conflicts.fetch_add(1, Ordering::Relaxed);
                Err(Error::SerializationFailure { what: "due to concurrent update" })
            }
        }
    }

    /// Keeps others from changing a row's key, or from relying on it, without keeping them from its
    /// other columns.
    pub(super) fn claim_key(&mut self, tree: u32, key: &[u8], mode: Mode) -> Result<()> {
        self.claim(tree | KEY, key, mode, false).map(|_| ())
    }

    /// Waits until one of some others has ended; all of them stand in the way.
    pub(super) fn wait_for(&self, me: &Arc<State>, others: &[Arc<State>]) -> Result<()> {
        self.view.db.check()?;
        let Some(other) = others.first() else { return Ok(()) };
        let ids: Vec<u64> = others.iter().map(|other| other.id).collect();
        self.view.db.waits.begin(me.id, &ids).map_err(deadlock)?;
        let canceller = &self.view.canceller;
        canceller.waits_for(Some(Arc::clone(other)));
        hook::at("waits for somebody's end");
        let clock = &self.view.db.options.clock;
        let end = self.lock_timeout.map(|time| clock.now() + time);
        let mut why = None;
        let db = &self.view.db;
        let has_ended = other.wait(Some(LOOK), || {
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

    /// Keeps others from changing a row until this transaction ends, and reads it as it is now;
    /// false when it is gone. Waits for who is changing it.
    ///
    /// With read committed the row may be another one than the snapshot's: whoever wanted it for a
    /// condition looks at that again. Otherwise it is an error, [`Error::SerializationFailure`],
    /// when somebody has changed it since the snapshot. Further errors: [`Error::Deadlock`],
    /// [`Error::LockTimeout`], [`Error::Cancelled`], [`Error::StaleTable`].
    pub fn lock(&mut self, table: &Arc<Table>, key: &[u8], row: &mut RowBuf) -> Result<bool> {
        self.check_table(table)?;
        let key = self.claim(table.tree.root(), key, Mode::Exclusive, true)?;
        self.locked(table, key, row)
    }

    /// As [`Transaction::lock`], and waits for nobody: `None` when somebody else has the row.
    pub fn try_lock(&mut self, table: &Arc<Table>, key: &[u8], row: &mut RowBuf) -> Result<Option<bool>> {
        self.check_table(table)?;
        let (state, tree) = (self.known(), table.tree.root());
        match self.try_claim(&state, tree, key, Mode::Exclusive, true)? {
            Tried::Mine(key) => self.locked(table, key, row).map(Some),
            Tried::Held(_) => {
                self.view.db.rows.give_up(tree, key, &state);
                Ok(None)
            }
        }
    }

    fn locked(&mut self, table: &Table, key: Key, row: &mut RowBuf) -> Result<bool> {
        let Some(bytes) = self.current(&table.tree, &key)? else { return Ok(false) };
        let whole = self.whole(&bytes)?;
        row.set(&key, whole.as_deref().unwrap_or(&bytes));
        self.looked = Some(Looked { tree: table.tree.root(), key, record: bytes });
        Ok(true)
    }

    /// Keeps others from changing a row, as [`Transaction::lock`], and gives it as it is now;
    /// `None` when it is gone. The row that was locked last is known.
    pub(super) fn claim_row(&mut self, table: &Table, key: &[u8]) -> Result<Option<Looked>> {
        let tree = table.tree.root();
        let looked = self.looked.take_if(|looked| looked.tree == tree && *looked.key == *key);
        if looked.is_some() {
            return Ok(looked);
        }
        let key = self.claim(tree, key, Mode::Exclusive, true)?;
        Ok(self.current(&table.tree, &key)?.map(|record| Looked { tree, key, record }))
    }

    /// The record at a key that it has claimed, as the tree has it; `None` for none and for a
    /// ghost.
    pub(super) fn current(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let found = tree.get(key, &mut bytes)? && bytes.first().is_some_and(|flags| flags & GHOST == 0);
        Ok(found.then_some(bytes))
    }

    /// The whole of a long row; `None` when the record is the row.
    pub(super) fn whole(&self, record: &[u8]) -> Result<Option<Vec<u8>>> {
        match crate::view::long_place(record) {
            Some(_) => crate::view::long_row(&self.view.db.store, record).map(Some),
            None => Ok(None),
        }
    }
}

pub(super) fn deadlock(circle: Vec<u64>) -> Error {
    let circle: Vec<String> = circle.iter().map(u64::to_string).collect();
    Error::Deadlock { detail: format!("transactions wait for each other: {}", circle.join(" -> ")) }
}
