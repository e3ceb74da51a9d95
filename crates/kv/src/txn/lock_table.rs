//! Locks of pessimistic transactions: on keys and ranges, shared or exclusive.
//!
//! The table consists of ordered maps under one mutex. A lock is granted if no other transaction
//! holds a conflicting one; otherwise the transaction waits. The table keeps a graph of which
//! transaction waits for which. A wait that would close a cycle is refused at once (deadlock), so
//! the last transaction to join the cycle gives way.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;
use std::time::Duration;

use cairn_vfs::Clock;
use cairn_vfs::sync::{Condvar, Mutex, PoisonError, lock};

use crate::escape::printable;
use crate::iter::visible::Bounds;
use crate::version::KeyspaceId;
use crate::{Error, Result};

#[cfg(all(test, cairn_shuttle))]
mod shuttle;

/// Identifies a running transaction.
pub(crate) type TransactionId = u64;

/// Interval at which a sleeping waiter checks its deadline.
const LOOK: Duration = Duration::from_millis(20);

/// The access that a lock denies to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Denies writing.
    Shared,
    /// Denies writing, and reading under a lock.
    Exclusive,
}

#[derive(Debug, Default)]
struct Holders {
    exclusive: Option<TransactionId>,
    shared: Vec<TransactionId>,
}

impl Holders {
    fn is_free(&self) -> bool {
        debug_assert!(
            self.exclusive.is_none_or(|writer| self.shared.iter().all(|reader| *reader == writer)),
            "a writer beside readers: {self:?}"
        );
        self.exclusive.is_none() && self.shared.is_empty()
    }

    /// Adds to `out` the other transactions whose locks conflict with `mode` for `id`.
    fn conflicts(&self, id: TransactionId, mode: Mode, out: &mut HashSet<TransactionId>) {
        out.extend(self.exclusive.filter(|holder| *holder != id));
        if mode == Mode::Exclusive {
            out.extend(self.shared.iter().copied().filter(|holder| *holder != id));
        }
    }
}

/// A range that a transaction has read.
#[derive(Debug)]
struct RangeLock {
    keyspace: KeyspaceId,
    bounds: Bounds,
    holder: TransactionId,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<(KeyspaceId, Vec<u8>), Holders>,
    ranges: Vec<RangeLock>,
    /// The keys that each transaction has locked.
    held: HashMap<TransactionId, Vec<(KeyspaceId, Vec<u8>)>>,
    /// The transactions for which each waiting transaction waits.
    waits: HashMap<TransactionId, HashSet<TransactionId>>,
    next_id: TransactionId,
}

/// All locks of a store.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    state: Mutex<State>,
    released: Condvar,
}

/// The object of a lock.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    /// One key, present or absent.
    Key(&'a [u8]),
    /// All keys within the bounds, present or absent. Always shared.
    Range(&'a Bounds),
}

impl State {
    fn conflicts(
        &self,
        id: TransactionId,
        keyspace: KeyspaceId,
        target: Target<'_>,
        mode: Mode,
    ) -> HashSet<TransactionId> {
        let mut out = HashSet::new();
        match target {
            Target::Key(key) => {
                if let Some(holders) = self.keys.get(&(keyspace, key.to_vec())) {
                    holders.conflicts(id, mode, &mut out);
                }
                if mode == Mode::Exclusive {
                    let others = self.ranges.iter().filter(|range| {
                        range.keyspace == keyspace && range.holder != id && range.bounds.contains(key)
                    });
                    out.extend(others.map(|range| range.holder));
                }
            }
            Target::Range(bounds) => {
                let lower = (keyspace, bounds.lower.clone().unwrap_or_default());
                for ((_, key), holders) in self
                    .keys
                    .range((Bound::Included(lower), Bound::Unbounded))
                    .take_while(|((other, key), _)| {
                        *other == keyspace && bounds.upper.as_ref().is_none_or(|upper| key < upper)
                    })
                {
                    debug_assert!(bounds.contains(key));
                    holders.conflicts(id, Mode::Shared, &mut out);
                }
            }
        }
        out
    }

    fn grant(&mut self, id: TransactionId, keyspace: KeyspaceId, target: Target<'_>, mode: Mode) {
        debug_assert!(
            self.conflicts(id, keyspace, target, mode).is_empty(),
            "a lock on {target} beside another"
        );
        match target {
            Target::Range(bounds) => {
                debug_assert!(mode == Mode::Shared, "ranges are locked for reading");
                self.ranges.push(RangeLock { keyspace, bounds: bounds.clone(), holder: id });
            }
            Target::Key(key) => {
                let holders = self.keys.entry((keyspace, key.to_vec())).or_default();
                if holders.exclusive != Some(id) && !holders.shared.contains(&id) {
                    self.held.entry(id).or_default().push((keyspace, key.to_vec()));
                }
                match mode {
                    Mode::Exclusive => holders.exclusive = Some(id),
                    Mode::Shared if !holders.shared.contains(&id) => holders.shared.push(id),
                    Mode::Shared => {}
                }
                debug_assert!(
                    holders.exclusive.is_none_or(|writer| holders.shared.iter().all(|it| *it == writer)),
                    "a writer came in beside readers of {target}: {holders:?}"
                );
                debug_assert!(self.held.contains_key(&id), "nothing of transaction {id} would be released");
            }
        }
    }

    /// Returns true if a transaction in `from` waits for `id`, directly or indirectly.
    fn reaches(&self, from: &HashSet<TransactionId>, id: TransactionId) -> bool {
        debug_assert!(!from.is_empty(), "transaction {id} would wait for nobody");
        let mut seen: HashSet<TransactionId> = HashSet::new();
        let mut next: Vec<TransactionId> = from.iter().copied().collect();
        while let Some(at) = next.pop() {
            if at == id {
                return true;
            }
            if seen.insert(at) {
                next.extend(self.waits.get(&at).into_iter().flatten());
            }
        }
        false
    }
}

impl LockTable {
    /// Returns an id for a new transaction.
    pub(crate) fn begin(&self) -> TransactionId {
        let mut state = lock(&self.state);
        state.next_id += 1;
        debug_assert!(!state.held.contains_key(&state.next_id), "transaction {} holds locks", state.next_id);
        state.next_id
    }

    /// Acquires a lock for `id`, waiting at most `timeout`. A transaction may lock a key again, or
    /// with a stronger mode.
    ///
    /// Errors: [`Error::Conflict`] if waiting would be a deadlock, [`Error::Busy`] after `timeout`.
    pub(crate) fn acquire(
        &self,
        id: TransactionId,
        keyspace: KeyspaceId,
        target: Target<'_>,
        mode: Mode,
        timeout: Duration,
        clock: &dyn Clock,
    ) -> Result<()> {
        let mut state = lock(&self.state);
        let mut deadline = None;
        loop {
            let others = state.conflicts(id, keyspace, target, mode);
            if others.is_empty() {
                state.waits.remove(&id);
                state.grant(id, keyspace, target, mode);
                return Ok(());
            }
            debug_assert!(!others.contains(&id), "a transaction waits for itself");
            if state.reaches(&others, id) {
                state.waits.remove(&id);
                let what = format!("deadlock over {}: another transaction waits for this one", target);
                return Err(Error::Conflict { what });
            }
            let deadline = *deadline.get_or_insert_with(|| clock.now().saturating_add(timeout));
            if clock.now() >= deadline {
                state.waits.remove(&id);
                let what = format!(
                    "timed out after {timeout:?} waiting for the lock on {target}, \
                     held by another transaction"
                );
                return Err(Error::Busy { what });
            }
            state.waits.insert(id, others);
            let result = self.released.wait_timeout(state, LOOK.min(timeout));
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Releases all locks of `id`.
    pub(crate) fn release(&self, id: TransactionId) {
        let mut state = lock(&self.state);
        for key in state.held.remove(&id).unwrap_or_default() {
            debug_assert!(state.keys.contains_key(&key), "a lock of transaction {id} is gone");
            if let Some(holders) = state.keys.get_mut(&key) {
                debug_assert!(
                    holders.exclusive == Some(id) || holders.shared.contains(&id),
                    "transaction {id} gives back a lock of others: {holders:?}"
                );
                holders.exclusive = holders.exclusive.filter(|holder| *holder != id);
                holders.shared.retain(|holder| *holder != id);
                if holders.is_free() {
                    state.keys.remove(&key);
                }
            }
        }
        state.ranges.retain(|range| range.holder != id);
        state.waits.remove(&id);
        drop(state);
        self.released.notify_all();
    }

    /// Returns true while `id` waits for a lock.
    #[cfg(test)]
    pub(crate) fn is_waiting(&self, id: TransactionId) -> bool {
        lock(&self.state).waits.contains_key(&id)
    }

    /// Returns true if no lock is held or awaited.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let state = lock(&self.state);
        state.keys.is_empty() && state.ranges.is_empty() && state.held.is_empty() && state.waits.is_empty()
    }
}

impl std::fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Key(key) => write!(f, "key {}", printable(key)),
            Target::Range(_) => f.write_str("a range of keys"),
        }
    }
}
