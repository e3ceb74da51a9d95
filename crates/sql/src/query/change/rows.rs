//! Rows that a query has found, and that are locked and changed one after the other.

use std::collections::HashSet;

use cairn_table::{Isolation, RowBuf, RowRef, Table, Transaction};
use cairn_vfs::sync::Arc;

use crate::batch::BatchReader;
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::query::Batches;
use crate::session::{Session, SessionContext};

/// The rows of a table that are to be changed.
#[derive(Debug)]
pub(super) struct Rows {
    pub table: Arc<Table>,
    /// The query may give a row more than once: it is joined with others.
    pub may_repeat: bool,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Found<'r> {
    pub key: &'r [u8],
    /// As it is, locked.
    pub now: RowRef<'r>,
    /// What the query has given: this row of it, the key first.
    pub given: &'r BatchReader,
    pub at: usize,
}

impl Rows {
    /// Locks each row and does something with it that says whether it was there. Gives how many
    /// were; `None` when somebody has changed a row since the query has seen it.
    ///
    /// Errors: those of the query and of what is done; 57014.
    pub fn each(
        &self,
        session: &mut Session,
        mut batches: Batches,
        mut change: impl FnMut(&mut Transaction, &SessionContext, Found<'_>) -> Result<bool>,
    ) -> Result<Option<u64>> {
        let (transaction, context) = session.parts()?;
        let (mut seen, mut now) = (RowBuf::default(), RowBuf::default());
        // A row that is joined with several is changed once.
        let mut done = HashSet::new();
        let mut count = 0;
        while let Some(batch) = batches.next()? {
            let given = batches.reader(&batch)?;
            for at in 0..given.rows() {
                if transaction.canceller().is_cancelled() {
                    return Err(Error::from(cairn_table::Error::Cancelled));
                }
                let DatumRef::Blob(key) = given.get(at, 0) else { continue };
                if self.may_repeat && !done.insert(key.to_vec()) {
                    continue;
                }
                if !self.is_as_seen(transaction, key, &mut seen, &mut now)? {
                    return Ok(None);
                }
                let found = Found { key, now: now.row(&self.table), given: &given, at };
                count += u64::from(change(transaction, context, found)?);
            }
        }
        Ok(Some(count))
    }

    /// Locks a row and reads it. False when it is not what the statement sees any more. That was
    /// somebody else then: each row is changed once, and rows that follow because of a foreign key
    /// do so when the statement is through.
    fn is_as_seen(
        &self,
        transaction: &mut Transaction,
        key: &[u8],
        seen: &mut RowBuf,
        now: &mut RowBuf,
    ) -> Result<bool> {
        let table = &self.table;
        let there = transaction.lock(table, key, now)?;
        if transaction.isolation() != Isolation::ReadCommitted {
            return Ok(there);
        }
        let was = transaction.view().get(table, key, seen)?;
        if was != there {
            return Ok(false);
        }
        let (a, b) = (seen.row(table), now.row(table));
        Ok((0..table.def().columns.len()).all(|column| {
            let (a, b) = (a.get(column), b.get(column));
            a == b || a.order(&b).is_some_and(|order| order.is_eq())
        }))
    }
}
