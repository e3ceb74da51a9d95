//! The wait-for graph of transactions. A cycle is a deadlock, and is found when it closes.

use std::collections::{HashMap, HashSet};

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::state::State;

/// Waiting transactions by number, each with the transactions whose end it waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    edges: Mutex<HashMap<u64, Vec<u64>>>,
    /// Number of cycles found.
    pub(crate) deadlocks: AtomicU64,
}

impl Waits {
    /// Stands for all other transactions.
    pub(crate) const ALL: u64 = u64::MAX;

    /// Adds edges from a transaction to those it waits for. Returns the cycle that this would
    /// close, from the transaction to itself, as an error.
    pub(crate) fn begin(&self, one: u64, others: &[u64]) -> Result<(), Vec<u64>> {
        debug_assert!(one != 0 && one != Waits::ALL, "transaction {one} waits");
        debug_assert!(!others.is_empty(), "transaction {one} waits for no transaction");
        let mut edges = lock(&self.edges);
        if others.contains(&Waits::ALL)
            // It would wait for transactions that wait for it.
            && let Some(&waiter) = edges.keys().find(|&&waiter| {
                leads_to(&edges, waiter, one, &mut Vec::new(), &mut HashSet::new())
            })
        {
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            return Err(vec![one, waiter, one]);
        }
        for &other in others.iter().filter(|&&other| other != Waits::ALL) {
            let (mut path, mut seen) = (vec![one], HashSet::new());
            if leads_to(&edges, other, one, &mut path, &mut seen) {
                self.deadlocks.fetch_add(1, Ordering::Relaxed);
                debug_assert!(
                    path.first() == Some(&one)
                        && path.last().is_some_and(|end| [one, Waits::ALL].contains(end)),
                    "the circle {path:?} does not lead back to {one}"
                );
                return Err(path);
            }
        }
        let before = edges.insert(one, others.to_vec());
        debug_assert!(before.is_none(), "transaction {one} waits for {others:?}, and already for {before:?}");
        Ok(())
    }

    pub(crate) fn end(&self, one: u64) {
        let removed = lock(&self.edges).remove(&one);
        debug_assert!(removed.is_some(), "transaction {one} ends a wait that it has not begun");
    }

    /// Returns the number of waiting transactions.
    #[cfg(debug_assertions)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.edges).len()
    }
}

/// Finds a path from `from` to `to` and appends it to `path`. The recursion depth is at most the
/// number of waiting transactions, and so the number of threads.
fn leads_to(
    edges: &HashMap<u64, Vec<u64>>,
    from: u64,
    to: u64,
    path: &mut Vec<u64>,
    seen: &mut HashSet<u64>,
) -> bool {
    path.push(from);
    debug_assert!(path.len() <= edges.len() + 2, "{} transactions form the path {path:?}", edges.len());
    if from == to || from == Waits::ALL {
        return true;
    }
    if seen.insert(from) {
        for &next in edges.get(&from).into_iter().flatten() {
            if leads_to(edges, next, to, path, seen) {
                return true;
            }
        }
    }
    path.pop();
    false
}

/// Cancels the current operation of a connection from any thread: waits end at once, scans before
/// the next leaf.
#[derive(Debug, Clone, Default)]
pub struct Canceller {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_set: AtomicBool,
    /// The transaction whose end is being waited for.
    waits_for: Mutex<Option<Arc<State>>>,
}

impl Canceller {
    /// Creates a canceller, to be passed to transactions.
    pub fn new() -> Self {
        Canceller::default()
    }

    /// Returns whether two cancellers stop the same transactions.
    pub(crate) fn is_same(&self, other: &Canceller) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Cancels: calls fail with [`Error::Cancelled`](crate::Error::Cancelled) until
    /// [`Canceller::reset`].
    pub fn cancel(&self) {
        self.shared.is_set.store(true, Ordering::SeqCst);
        if let Some(state) = lock(&self.shared.waits_for).as_ref() {
            state.wake_waiters();
        }
    }

    /// Allows calls to proceed again.
    pub fn reset(&self) {
        // It is rarely set, and a load is cheaper than a store that invalidates every other CPU's
        // cache line.
        if self.is_cancelled() {
            self.shared.is_set.store(false, Ordering::SeqCst);
        }
    }

    /// Returns whether the canceller is set.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_set.load(Ordering::Relaxed)
    }

    pub(crate) fn waits_for(&self, state: Option<Arc<State>>) {
        *lock(&self.shared.waits_for) = state;
    }
}
