//! A transaction of either kind.

use std::time::Duration;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::db::Keyspace;
use crate::db::core::Core;
use crate::db::key_range::KeyRange;
use crate::db::range::{RangeMaker, half_open};
use crate::db::snapshots::SnapshotGuard;
use crate::iter::resolve::{Resolver, printable};
use crate::iter::visible::Bounds;
use crate::kind::Seqno;
use crate::options::{Durability, ReadOptions};
use crate::txn::lock_table::{Mode, Target, TransactionId};
use crate::txn::overlay::{Overlay, Pending};
use crate::txn::range::TransactionRange;
use crate::txn::reads::Reads;
use crate::value::Value;
use crate::version::KeyspaceId;
use crate::{Error, Result};

/// How a transaction runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Takes locks as it goes instead of looking for conflicts at the end. Default: false.
    pub pessimistic: bool,
    /// How long a pessimistic transaction waits for one lock. Default: 1 second.
    pub lock_timeout: Duration,
    /// Durability of the commit. Default: `None`, the store's.
    pub durability: Option<Durability>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions { pessimistic: false, lock_timeout: Duration::from_secs(1), durability: None }
    }
}

/// Reads and writes that take effect together, as if nothing else ran meanwhile. Made by
/// [`crate::Db::transaction`].
///
/// Writes are buffered in memory and seen by the transaction's own reads. Dropping it without a
/// commit undoes everything. Keyspaces of another store are refused ([`Error::Invalid`]).
///
/// ```
/// # fn main() -> cairn_kv::Result<()> {
/// # let fs = std::sync::Arc::new(cairn_vfs::MemFs::new());
/// # let db = cairn_kv::Db::builder("/store").fs(fs).open()?;
/// # db.put("alice", "10")?;
/// loop {
///     let mut transaction = db.transaction();
///     let before = transaction.get(&db, "alice")?.unwrap();
///     let amount: u64 = std::str::from_utf8(&before).unwrap().parse().unwrap();
///     transaction.put(&db, "alice", (amount - 3).to_string())?;
///     transaction.put(&db, "bob", "3")?;
///     match transaction.commit() {
///         Err(error) if error.is_conflict() => continue,
///         result => break result?,
///     }
/// }
/// assert_eq!(db.get("alice")?.as_deref(), Some(&b"7"[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    pub(super) core: Arc<Core>,
    options: TransactionOptions,
    /// What optimistic reads see; keeps what conflicts are found by.
    pub(super) snapshot: SnapshotGuard,
    id: TransactionId,
    pub(super) overlay: Overlay,
    pub(super) reads: Arc<Mutex<Reads>>,
}

impl Transaction {
    pub(crate) fn new(core: Arc<Core>, options: TransactionOptions) -> Self {
        let inner = &core.inner;
        let (snapshot, id) = (inner.snapshots.take(&inner.order), inner.locks.begin());
        Transaction { options, snapshot, id, overlay: Overlay::default(), reads: Arc::default(), core }
    }

    /// The number of the newest write that an optimistic transaction sees.
    pub fn seqno(&self) -> Seqno {
        self.snapshot.seqno()
    }

    fn lock(&self, keyspace: KeyspaceId, target: Target<'_>, mode: Mode) -> Result<()> {
        if !self.options.pessimistic {
            return Ok(());
        }
        let inner = &self.core.inner;
        inner.locks.acquire(self.id, keyspace, target, mode, self.options.lock_timeout, &*inner.clock)
    }

    /// As of which number a read sees, and what it is noted under. Pessimistic ones see the newest;
    /// noting an older number is safe.
    fn read_number(&self) -> (Option<Seqno>, Seqno) {
        if self.options.pessimistic {
            (None, self.core.inner.order.visible())
        } else {
            (Some(self.snapshot.seqno()), self.snapshot.seqno())
        }
    }

    /// The value of `key`, own writes included. The commit fails if somebody changes it before.
    ///
    /// Errors of pessimistic transactions: [`Error::Busy`] when the lock cannot be had in time,
    /// [`Error::Conflict`] for a deadlock.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(keyspace, key.as_ref(), Mode::Shared)
    }

    /// As [`Transaction::get`], for a key that is going to be written: a pessimistic transaction
    /// takes the exclusive lock at once, which spares a deadlock with others that do the same.
    pub fn get_for_update(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(keyspace, key.as_ref(), Mode::Exclusive)
    }

    fn read(&self, keyspace: &Keyspace, key: &[u8], mode: Mode) -> Result<Option<Value>> {
        self.check_keyspace(keyspace)?;
        let pending = self.overlay.get(keyspace.id(), key);
        if let Some(Pending { base: Some(value), operands }) = pending
            && operands.is_empty()
        {
            return Ok(value.as_deref().map(Value::copy));
        }
        self.lock(keyspace.id(), Target::Key(key), mode)?;
        let (at, noted) = self.read_number();
        lock(&self.reads).key(keyspace.id(), key, noted);
        let stored = self.core.inner.get(&keyspace.state, key, at)?;
        match pending {
            None => Ok(stored),
            Some(pending) => self.apply(keyspace, key, pending, stored.as_deref()),
        }
    }

    /// What own writes make of the value that is stored.
    pub(super) fn apply(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        pending: &Pending,
        stored: Option<&[u8]>,
    ) -> Result<Option<Value>> {
        let base = match &pending.base {
            Some(own) => own.as_deref(),
            None => stored,
        };
        if pending.operands.is_empty() {
            return Ok(base.map(Value::copy));
        }
        let operands = pending.operands.iter().rev().cloned().collect();
        let operator = &keyspace.state.options.merge_operator;
        let place = (self.core.inner.path.as_path(), keyspace.name());
        let merged = Resolver::from_operands(operands).merge(key, base, operator, place)?;
        Ok(Some(Value::owned(merged)))
    }

    /// Sets a key.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        crate::batch::Operation::Put { key, value }.check()?;
        self.will_write(keyspace, key)?;
        self.overlay.set(keyspace.id(), key, Some(value));
        Ok(())
    }

    /// Removes a key.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        crate::batch::Operation::Delete { key }.check()?;
        self.will_write(keyspace, key)?;
        self.overlay.set(keyspace.id(), key, None);
        Ok(())
    }

    /// Adds an operand for the keyspace's merge operator. Errors: [`Error::Invalid`] without one.
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        crate::batch::Operation::Merge { key, operand }.check()?;
        if keyspace.state.options.merge_operator.is_none() {
            return Err(Error::invalid(format!("keyspace {:?} has no merge operator", keyspace.name())));
        }
        self.will_write(keyspace, key)?;
        self.overlay.merge(keyspace.id(), key, operand);
        Ok(())
    }

    /// Errors: [`Error::Invalid`] for a keyspace of another store.
    fn check_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.core, &keyspace.core) {
            return Ok(());
        }
        Err(self.core.inner.of_another_store(&format!("keyspace {:?}", keyspace.name())))
    }

    /// A pessimistic transaction locks what it writes; plain writes to it before the commit are
    /// then a conflict.
    fn will_write(&self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        self.check_keyspace(keyspace)?;
        if self.options.pessimistic {
            self.lock(keyspace.id(), Target::Key(key), Mode::Exclusive)?;
            lock(&self.reads).key(keyspace.id(), key, self.core.inner.order.visible());
        }
        Ok(())
    }

    /// The entries of a range, own writes included. What it passes counts as read, what is not
    /// there included; a pessimistic transaction locks the whole range.
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyRange) -> Result<TransactionRange<'_>> {
        self.check_keyspace(keyspace)?;
        let bounds = half_open(&range);
        self.lock(keyspace.id(), Target::Range(&bounds), Mode::Shared)?;
        let inner = &self.core.inner;
        let (snapshot, noted) = if self.options.pessimistic {
            let noted = inner.order.visible();
            (inner.snapshots.take(&inner.order), noted)
        } else {
            (self.snapshot.clone(), self.snapshot.seqno())
        };
        let maker = RangeMaker {
            core: Arc::clone(&self.core),
            keyspace: Arc::clone(&keyspace.state),
            bounds: bounds.clone(),
            options: ReadOptions::default(),
            snapshot,
        };
        // Nothing of it has been read yet; the iterator widens it as it goes.
        let start = bounds.lower.clone().unwrap_or_default();
        let none = Bounds { lower: Some(start.clone()), upper: Some(start) };
        let place = lock(&self.reads).range(keyspace.id(), none, noted);
        TransactionRange::new(self, keyspace.clone(), maker, bounds, place)
    }

    /// Makes all writes visible and, by the durability asked for, durable: all or none.
    ///
    /// Errors: [`Error::Conflict`] when somebody has changed what this transaction depends on:
    /// nothing was written, run it again ([`Error::is_conflict`]).
    pub fn commit(self) -> Result<()> {
        let inner = &self.core.inner;
        let reads = lock(&self.reads);
        let check = |after: Option<Seqno>| match reads.changed(inner, after)? {
            None => Ok(()),
            Some((keyspace, key)) => {
                let (key, name) = (printable(&key), &keyspace.name);
                Err(Error::Conflict {
                    what: format!("key {key} of keyspace {name:?} was changed by another writer"),
                })
            }
        };
        if self.overlay.is_empty() {
            // A reader at a snapshot stands for that moment. One that read under locks saw nothing
            // change either.
            return if self.options.pessimistic { check(None) } else { Ok(()) };
        }
        let batch = self.overlay.batch()?;
        let durability = self.options.durability.unwrap_or(inner.options.durability);
        inner.write_batch_if(&batch, durability, Some(check))
    }

    /// Forgets all writes; the same as dropping it.
    pub fn rollback(self) {}
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.options.pessimistic {
            self.core.inner.locks.release(self.id);
        }
    }
}
