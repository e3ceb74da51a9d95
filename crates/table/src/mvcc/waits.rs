//! Who waits for whom: a circle is a deadlock, and is found when it closes.

use std::collections::{HashMap, HashSet};

use cairn_vfs::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Mutex, lock};

use super::state::State;

/// Transactions that wait, by their numbers, each with those whose end it waits for.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    edges: Mutex<HashMap<u64, Vec<u64>>>,
    /// How many circles were found.
    pub(crate) deadlocks: AtomicU64,
}

impl Waits {
    /// Stands for all the others.
    pub(crate) const EVERYBODY: u64 = u64::MAX;

    /// Notes that one waits for others; or gives the circle that this would close, from the one to
    /// itself.
    pub(crate) fn begin(&self, one: u64, others: &[u64]) -> Result<(), Vec<u64>> {
        let mut edges = lock(&self.edges);
        if others.contains(&Waits::EVERYBODY)
            // It would wait for those who wait for it.
            && let Some(&waiter) = edges.keys().find(|&&waiter| {
                leads_to(&edges, waiter, one, &mut Vec::new(), &mut HashSet::new())
            })
        {
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
            return Err(vec![one, waiter, one]);
        }
        for &other in others.iter().filter(|&&other| other != Waits::EVERYBODY) {
            let (mut path, mut seen) = (vec![one], HashSet::new());
            if leads_to(&edges, other, one, &mut path, &mut seen) {
                self.deadlocks.fetch_add(1, Ordering::Relaxed);
                return Err(path);
            }
        }
        edges.insert(one, others.to_vec());
        Ok(())
    }

    pub(crate) fn end(&self, one: u64) {
        lock(&self.edges).remove(&one);
    }
}

/// Finds a way from `from` to `to`, which it appends to `path`. As deep as there are transactions
/// that wait, which is as deep as there are threads.
fn leads_to(
    edges: &HashMap<u64, Vec<u64>>,
    from: u64,
    to: u64,
    path: &mut Vec<u64>,
    seen: &mut HashSet<u64>,
) -> bool {
    path.push(from);
    if from == to || from == Waits::EVERYBODY {
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

/// Stops what a connection is doing, from any thread: waits end at once, scans before the next
/// leaf.
#[derive(Debug, Clone, Default)]
pub struct Canceller {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_set: AtomicBool,
    /// Whose end is waited for.
    waits_for: Mutex<Option<Arc<State>>>,
}

impl Canceller {
    /// One of its own, to be given to transactions.
    pub fn new() -> Self {
        Canceller::default()
    }

    /// Whether the two stop the same transactions.
    pub(crate) fn is_same(&self, other: &Canceller) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Stops it: calls end with [`Error::Cancelled`](crate::Error::Cancelled) until
    /// [`Canceller::reset`].
    pub fn cancel(&self) {
        self.shared.is_set.store(true, Ordering::SeqCst);
        if let Some(state) = lock(&self.shared.waits_for).as_ref() {
            state.nudge();
        }
    }

    /// Lets it go on from the next call on.
    pub fn reset(&self) {
        // It seldom is, and a look is cheaper than a write that all see.
        if self.is_cancelled() {
            self.shared.is_set.store(false, Ordering::SeqCst);
        }
    }

    /// Whether it is to stop.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.shared.is_set.load(Ordering::Relaxed)
    }

    pub(crate) fn waits_for(&self, state: Option<Arc<State>>) {
        *lock(&self.shared.waits_for) = state;
    }
}
