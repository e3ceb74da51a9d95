//! The schema lock. Names are looked up twice: before taking the lock, and while holding it.

use cairn_table::{Error as TableError, Isolation};

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// Looks names up under the schema lock, which is held until the transaction ends. `look` runs
    /// before and after taking the lock, because other sessions may change the schema during the
    /// wait. If the first run fails, or finds nothing to do (`None`), the lock is not taken.
    ///
    /// Errors: those of `look`; 40P01, 55P03, 57014 of waiting.
    pub(super) fn look_up<T>(
        &mut self,
        look: impl Fn(&mut Session) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let notices = self.notices.len();
        if look(self)?.is_none() {
            return Ok(None);
        }
        self.notices.truncate(notices);
        self.lock_schema()?;
        look(self)
    }

    /// Takes the schema lock. Results of earlier lookups may be stale afterwards.
    ///
    /// Errors: 40P01, 55P03, 57014.
    pub(super) fn lock_schema(&mut self) -> Result<()> {
        let (is_first, can_go_back) = self.place_in_transaction();
        let transaction = self.transaction()?;
        // The snapshot may be released during the wait only if a failed wait rolls the whole
        // transaction back, that is, without a savepoint.
        let forgets = !can_go_back && (is_first || transaction.isolation() == Isolation::ReadCommitted);
        if forgets && is_first {
            return Ok(transaction.lock_schema_and_reset()?);
        }
        // A block first tries to keep the snapshot of its earlier reads, which gives it precedence
        // over other sessions, as in PostgreSQL.
        match transaction.lock_schema() {
            Err(TableError::Deadlock { .. }) if forgets => Ok(transaction.lock_schema_and_reset()?),
            locked => Ok(locked?),
        }
    }
}
