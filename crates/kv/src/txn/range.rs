//! A transaction's view of a range: stored entries merged with its own writes.

use std::iter::Peekable;
use std::vec::IntoIter;

use cairn_vfs::sync::{Arc, lock};

use crate::Result;
use crate::db::Keyspace;
use crate::db::key_range::KeyRange;
use crate::db::range::{DbCursor, Pair, RangeMaker, half_open};
use crate::iter::visible::Bounds;
use crate::options::ReadOptions;
use crate::txn::lock_table::{Mode, Target};
use crate::txn::overlay::Pending;
use crate::txn::transaction::Transaction;

/// An iterator over entries in key order. Created by [`Transaction::range`]; ends after an error.
#[derive(Debug)]
pub struct TransactionRange<'a> {
    transaction: &'a Transaction,
    keyspace: Keyspace,
    cursor: DbCursor,
    own: Peekable<IntoIter<(Vec<u8>, Pending)>>,
    bounds: Bounds,
    /// The index of this range in the transaction's reads.
    place: usize,
    is_over: bool,
}

impl Transaction {
    /// Returns the entries of a range, including the transaction's own writes. Everything that the
    /// iterator passes counts as read, including absent keys. A pessimistic transaction locks the
    /// whole range.
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
        // Nothing of the range has been read yet. The iterator widens the recorded range as it
        // advances.
        let start = bounds.lower.clone().unwrap_or_default();
        let none = Bounds { lower: Some(start.clone()), upper: Some(start) };
        let place = lock(&self.reads).range(keyspace.id(), none, noted);
        TransactionRange::new(self, keyspace.clone(), maker, bounds, place)
    }
}

impl<'a> TransactionRange<'a> {
    pub(super) fn new(
        transaction: &'a Transaction,
        keyspace: Keyspace,
        maker: RangeMaker,
        bounds: Bounds,
        place: usize,
    ) -> Result<Self> {
        debug_assert!(
            Arc::ptr_eq(&transaction.core, &keyspace.core) && Arc::ptr_eq(&maker.keyspace, &keyspace.state),
            "a range of another store, or of another keyspace than {:?}",
            keyspace.name()
        );
        let mut cursor = maker.cursor()?;
        cursor.seek_first()?;
        let own = transaction.overlay.range(keyspace.id(), &bounds).into_iter().peekable();
        Ok(TransactionRange { transaction, keyspace, cursor, own, bounds, place, is_over: false })
    }

    /// Records everything up to `key`, or up to the end if `None`, as read.
    fn note(&self, key: Option<&[u8]>) {
        let upper = match key {
            None => self.bounds.upper.clone(),
            Some(key) => {
                let mut after = key.to_vec();
                after.push(0);
                Some(after)
            }
        };
        lock(&self.transaction.reads).widen(self.place, Bounds { lower: self.bounds.lower.clone(), upper });
    }

    fn step(&mut self) -> Result<Option<Pair>> {
        loop {
            let stored = self.cursor.valid().then(|| self.cursor.key());
            let next_own = self.own.peek().map(|(key, _)| key.as_slice());
            let (takes_own, takes_stored) = match (next_own, stored) {
                (None, None) => {
                    self.note(None);
                    return Ok(None);
                }
                (Some(_), None) => (true, false),
                (None, Some(_)) => (false, true),
                (Some(own), Some(stored)) => (own <= stored, stored <= own),
            };
            debug_assert!(takes_own || takes_stored, "neither side has the next key");
            let base = takes_stored.then(|| (self.cursor.key().to_vec(), self.cursor.value().to_vec()));
            if takes_stored {
                self.cursor.next()?;
            }
            let own = if takes_own { self.own.next() } else { None };
            let Some((key, pending)) = own else {
                if let Some((key, _)) = &base {
                    self.note(Some(key));
                }
                return Ok(base);
            };
            self.note(Some(&key));
            debug_assert!(base.as_ref().is_none_or(|(stored, _)| *stored == key), "two keys make one entry");
            let stored = base.as_ref().map(|(_, value)| value.as_slice());
            if let Some(value) = self.transaction.apply(&self.keyspace, &key, &pending, stored)? {
                return Ok(Some((key, value.into_vec())));
            }
        }
    }
}

impl Iterator for TransactionRange<'_> {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let item = self.step().transpose();
        self.is_over = !matches!(item, Some(Ok(_)));
        item
    }
}

impl std::iter::FusedIterator for TransactionRange<'_> {}
