//! Names are looked up twice: before the schema is this session's, and once it is.

use cairn_table::{Error as TableError, Isolation};

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// What names stand for once the schema is this session's, until its transaction ends. `look`
    /// is called a second time then: others may have changed it while they were waited for. A first
    /// look that fails, or finds nothing to do (`None`), is the last one, and nobody is waited for.
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

    /// Makes the schema this session's. What was looked up before may be another thing afterwards.
    ///
    /// Errors: 40P01, 55P03, 57014.
    pub(super) fn lock_schema(&mut self) -> Result<()> {
        let (is_first, can_go_back) = self.place_in_transaction();
        let transaction = self.transaction()?;
        // Who is told that waiting has failed is rolled back, where there is no savepoint.
        let forgets = !can_go_back && (is_first || transaction.isolation() == Isolation::ReadCommitted);
        if forgets && is_first {
            return Ok(transaction.lock_schema_afresh()?);
        }
        // What a block has read is kept from others as long as that works: it goes first, as in
        // PostgreSQL.
        match transaction.lock_schema() {
            Err(TableError::Deadlock { .. }) if forgets => Ok(transaction.lock_schema_afresh()?),
            locked => Ok(locked?),
        }
    }
}
