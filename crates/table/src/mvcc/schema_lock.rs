//! The schema lock (`transaction/schema_lock.rs`): a transaction that changes the schema runs
//! alone.

use cairn_vfs::sync::atomic::{AtomicU64, Ordering};
use cairn_vfs::sync::{Arc, Condvar, Mutex, lock};

use super::state::State;

/// The lock on the schema, held by the single transaction that changes it.
#[derive(Debug, Default)]
pub(crate) struct SchemaLock {
    /// The holder's number, or 0.
    holder_id: AtomicU64,
    pub(crate) holder: Mutex<Option<SchemaHolder>>,
    pub(crate) changed: Condvar,
}

/// The transaction that holds the schema, or waits to be alone with it.
#[derive(Debug)]
pub(crate) struct SchemaHolder {
    pub(crate) state: Arc<State>,
    /// It has neither a snapshot nor anything else, and is not alone yet: a transaction with a
    /// snapshot that asks goes first.
    pub(crate) yields: bool,
}

impl SchemaHolder {
    pub(crate) fn is(&self, state: &State) -> bool {
        self.state.id == state.id
    }
}

impl SchemaLock {
    /// Returns whether a transaction holds the schema or waits for it. No transaction begins
    /// meanwhile.
    pub(crate) fn is_held(&self) -> bool {
        self.holder_id.load(Ordering::SeqCst) != 0
    }

    pub(crate) fn set_holder(&self, holder: &mut Option<SchemaHolder>, state: &Arc<State>, yields: bool) {
        assert!(
            holder.as_ref().is_none_or(|other| other.yields && !other.is(state)),
            "transaction {} takes the schema from a holder that does not yield",
            state.id
        );
        *holder = Some(SchemaHolder { state: Arc::clone(state), yields });
        self.holder_id.store(state.id, Ordering::SeqCst);
        self.assert_invariants(holder);
    }

    /// Makes a transaction with a snapshot the holder, or returns the current holder.
    pub(crate) fn acquire(&self, state: &Arc<State>) -> Option<Arc<State>> {
        let mut holder = lock(&self.holder);
        match holder.as_ref().filter(|other| !other.yields) {
            Some(other) => Some(Arc::clone(&other.state)),
            None => {
                self.set_holder(&mut holder, state, false);
                None
            }
        }
    }

    /// Releases the schema if this transaction holds it.
    pub(crate) fn release(&self, id: u64) {
        let mut holder = lock(&self.holder);
        if holder.as_ref().is_some_and(|holder| holder.state.id == id) {
            self.assert_invariants(&holder);
            *holder = None;
            self.holder_id.store(0, Ordering::SeqCst);
        }
        self.assert_invariants(&holder);
        drop(holder);
        self.changed.notify_all();
    }

    /// Checks that the number that is read without the lock is that of the holder.
    fn assert_invariants(&self, holder: &Option<SchemaHolder>) {
        let id = holder.as_ref().map_or(0, |holder| holder.state.id);
        let published = self.holder_id.load(Ordering::SeqCst);
        debug_assert!(published == id, "transaction {id} holds the schema, but {published} is published");
        debug_assert!(
            holder.as_ref().is_none_or(|holder| holder.state.id != 0),
            "the holder of the schema has no number"
        );
    }
}
