//! Autonomous transactions: nested in another one, and committed independently.

use cairn_vfs::sync::Arc;

use super::Transaction;
use super::locks::deadlock;
use crate::Error;
use crate::options::{Durability, Isolation};
use crate::view::View;

impl Transaction {
    /// Runs `work` in a transaction of its own, with read committed, and commits it. Its changes
    /// persist whatever happens to this one, and its rows are released at once. After a crash they
    /// exist if this transaction's do. It does not see this one's changes, and must not lock its
    /// rows: that fails with [`Error::Deadlock`]. It has the same lock timeout and is cancelled
    /// together with this one.
    ///
    /// Errors: those of `work`, which is undone then, and those of beginning and committing.
    pub fn autonomous<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let db = Arc::clone(&self.view.db);
        db.check()?;
        // A schema change waits for this transaction, so it must let the nested one in.
        let snapshot = db.new_snapshot()?;
        let (catalog, canceller) = (db.catalog(), self.view.canceller.clone());
        let view = View {
            db: Arc::clone(&db),
            catalog,
            snapshot,
            own: None,
            own_until: u32::MAX,
            fixed: None,
            reads: None,
            canceller,
        };
        let mut other = Transaction::new(view, Isolation::ReadCommitted, self.lock_timeout);
        let (me, its) = (self.register(), other.register());
        debug_assert!(me.id != its.id, "a transaction and the one nested in it have number {}", me.id);
        // This lets deadlocks through both transactions be detected.
        db.waits.begin(me.id, &[its.id]).map_err(deadlock)?;
        let done = match work(&mut other) {
            Ok(value) => other.commit(Durability::Buffered).map(|()| value).map_err(E::from),
            Err(error) => {
                drop(other);
                Err(error)
            }
        };
        db.waits.end(me.id);
        done
    }
}
