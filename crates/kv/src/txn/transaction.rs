//! A transaction, optimistic or pessimistic.

use std::time::Duration;

use cairn_vfs::sync::{Arc, Mutex, lock};

use crate::db::core::Core;
use crate::db::snapshots::SnapshotGuard;
use crate::db::{Db, Keyspace};
use crate::escape::printable;
use crate::iter::resolve::Resolver;
use crate::kind::Seqno;
use crate::options::Durability;
use crate::txn::lock_table::{Mode, Target, TransactionId};
use crate::txn::overlay::{Overlay, Pending};
use crate::txn::reads::Reads;
use crate::value::Value;
use crate::version::KeyspaceId;
use crate::{Error, Result};

/// Options of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionOptions {
    /// Takes locks during the transaction instead of checking for conflicts at the commit. Default:
    /// false.
    pub pessimistic: bool,
    /// Maximum time that a pessimistic transaction waits for one lock. Default: 1 second.
    pub lock_timeout: Duration,
    /// Durability of the commit. Default: `None`, that of the store.
    pub durability: Option<Durability>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        TransactionOptions { pessimistic: false, lock_timeout: Duration::from_secs(1), durability: None }
    }
}

/// Reads and writes that take effect together, as if nothing else ran meanwhile. Created by
/// [`crate::Db::transaction`].
///
/// Writes are buffered in memory and visible to the transaction's own reads. Dropping the
/// transaction without a commit discards them. Keyspaces of another store are refused
/// ([`Error::Invalid`]).
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
    pub(super) options: TransactionOptions,
    /// The state that optimistic reads see. It also keeps compactions from dropping the versions by
    /// which conflicts are detected.
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

    /// Returns the sequence number of the newest write that an optimistic transaction sees.
    pub fn seqno(&self) -> Seqno {
        self.snapshot.seqno()
    }

    pub(super) fn lock(&self, keyspace: KeyspaceId, target: Target<'_>, mode: Mode) -> Result<()> {
        if !self.options.pessimistic {
            return Ok(());
        }
        let inner = &self.core.inner;
        inner.locks.acquire(self.id, keyspace, target, mode, self.options.lock_timeout, &*inner.clock)
    }

    /// Returns the sequence number at which a read runs, `None` for the newest, and the one
    /// recorded for the conflict check. A pessimistic read may see a newer state than the recorded
    /// number, which is safe.
    fn read_number(&self) -> (Option<Seqno>, Seqno) {
        let (at, noted) = if self.options.pessimistic {
            (None, self.core.inner.order.visible())
        } else {
            (Some(self.snapshot.seqno()), self.snapshot.seqno())
        };
        // Compactions keep the numbers of later writes apart only from the snapshot on.
        debug_assert!(
            noted >= self.snapshot.seqno(),
            "a read as of {noted}, before the transaction began at {}",
            self.snapshot.seqno()
        );
        (at, noted)
    }

    /// Returns the value of `key`, including the transaction's own writes. The commit fails if
    /// another writer changes the key before.
    ///
    /// Errors of pessimistic transactions: [`Error::Busy`] if the lock cannot be acquired in time,
    /// [`Error::Conflict`] for a deadlock.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.read(keyspace, key.as_ref(), Mode::Shared)
    }

    /// Like [`Transaction::get`], for a key that the transaction is going to write. A pessimistic
    /// transaction takes the exclusive lock right away, which prevents a deadlock with others that
    /// do the same.
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

    /// Applies the transaction's own writes to the stored value.
    pub(super) fn apply(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        pending: &Pending,
        stored: Option<&[u8]>,
    ) -> Result<Option<Value>> {
        debug_assert!(pending.base.is_some() || !pending.operands.is_empty(), "a write without effect");
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

    /// Adds an operand for the keyspace's merge operator. Errors: [`Error::Invalid`] if the
    /// keyspace has none.
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

    /// Checks that `keyspace` belongs to this store. Errors: [`Error::Invalid`] if it belongs to
    /// another.
    pub(super) fn check_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        if Arc::ptr_eq(&self.core, &keyspace.core) {
            return Ok(());
        }
        Err(self.core.inner.wrong_store(&format!("keyspace {:?}", keyspace.name())))
    }

    /// Prepares a write of `key`. A pessimistic transaction locks the key and records it as read,
    /// so that a plain write to it before the commit is a conflict.
    fn will_write(&self, keyspace: &Keyspace, key: &[u8]) -> Result<()> {
        self.check_keyspace(keyspace)?;
        if self.options.pessimistic {
            self.lock(keyspace.id(), Target::Key(key), Mode::Exclusive)?;
            lock(&self.reads).key(keyspace.id(), key, self.core.inner.order.visible());
        }
        Ok(())
    }

    /// Makes all writes visible atomically, and durable according to the transaction's durability.
    ///
    /// Errors: [`Error::Conflict`] if another writer has changed data on which this transaction
    /// depends. Nothing was written; run the transaction again ([`Error::is_conflict`]).
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
            // A read-only optimistic transaction is serializable as of its snapshot. A pessimistic
            // one must check that plain writes have not changed its reads.
            return if self.options.pessimistic { check(None) } else { Ok(()) };
        }
        let batch = self.overlay.batch()?;
        debug_assert!(!batch.is_empty(), "writes without an operation");
        let durability = self.options.durability.unwrap_or(inner.options.durability);
        inner.write_batch_if(&batch, durability, Some(check))
    }

    /// Discards all writes, like dropping the transaction.
    pub fn rollback(self) {}
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.options.pessimistic {
            self.core.inner.locks.release(self.id);
        }
    }
}

impl Db {
    /// Begins an optimistic transaction.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(TransactionOptions::default())
    }

    /// Begins a transaction with `options`, optimistic or pessimistic.
    pub fn transaction_with(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(Arc::clone(&self.core), options)
    }
}
