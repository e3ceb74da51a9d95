//! Rows that a query has found, locked and changed one by one.

use std::collections::HashSet;

use cairn_table::{Isolation, RowBuf, RowRef, Table, Transaction};
use cairn_vfs::sync::Arc;

use crate::batch::BatchReader;
use crate::datum::DatumRef;
use crate::error::{Error, Result};
use crate::general::run::batches::Batches;
use crate::rows::BatchSource;
use crate::runtime::SessionContext;
use crate::session::Session;

/// The rows of a table that are to be changed.
#[derive(Debug)]
pub(super) struct Rows {
    pub table: Arc<Table>,
    /// Whether the query may return a row more than once, because it joins the target with other
    /// tables.
    pub may_repeat: bool,
}

/// A row to change.
#[derive(Debug)]
pub(super) struct Found<'r> {
    pub key: &'r [u8],
    /// The current row, locked.
    pub now: RowRef<'r>,
    /// The batch of the query, with the key in its first column, and the row's position in it.
    pub given: &'r BatchReader,
    pub at: usize,
}

impl Rows {
    /// Locks each row and calls `change` on it, which returns whether the row still existed.
    /// Returns the number of rows that did; `None` when another transaction has changed a row since
    /// the query saw it.
    ///
    /// Errors: those of the query and of `change`; 57014.
    pub fn each(
        &self,
        session: &mut Session,
        mut batches: Batches,
        mut change: impl FnMut(&mut Transaction, &SessionContext, Found<'_>) -> Result<bool>,
    ) -> Result<Option<u64>> {
        let (transaction, context) = session.parts()?;
        let (mut seen, mut now) = (RowBuf::default(), RowBuf::default());
        // A row that joins with several others is changed once.
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

    /// Locks a row and reads it. Returns false when it differs from the statement's snapshot. Only
    /// another transaction can have changed it: the statement changes each row once, and foreign
    /// key actions on other rows run after the statement.
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
