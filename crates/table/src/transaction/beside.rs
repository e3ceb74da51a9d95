//! Transactions beside another one.

use cairn_vfs::sync::Arc;

use super::Transaction;
use super::locks::deadlock;
use crate::Error;
use crate::database::{Durability, Isolation};
use crate::view::View;

impl Transaction {
    /// Does something in a transaction of its own, with read committed, and commits it: that holds
    /// whatever becomes of this one, and nobody waits for its rows any longer. After a crash it is
    /// there if this one is. It sees nothing of what this one has done, and must not want its rows:
    /// that is [`Error::Deadlock`]. It waits as long as this one does, and is cancelled with it.
    ///
    /// Errors: those of `work`, which is undone then, and those of beginning and committing.
    pub fn beside<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let db = Arc::clone(&self.view.db);
        db.check()?;
        // Whoever changes the schema waits for this one, and so lets the other one in.
        let snapshot = db.another_snapshot()?;
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
        let (me, its) = (self.known(), other.known());
        // Circles through both are found.
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
