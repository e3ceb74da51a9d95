//! Rows, read one after the other or in batches.

use arrow::array::RecordBatch;
use cairn_vfs::sync::Arc;

use super::{Column, CommandTag, RowView, Source};
use crate::error::{Error, Result};
use crate::session::Session;

/// The rows of a result. The connection is theirs until they are dropped; a statement that reads
/// only ends there.
#[derive(Debug)]
pub struct Rows<'c> {
    session: &'c mut Session,
    /// Where the source does not know them.
    columns: Option<Arc<[Column]>>,
    source: Source,
    verb: &'static str,
    count: u64,
    /// The statement has not ended.
    open: bool,
}

impl<'c> Rows<'c> {
    pub(crate) fn new(
        session: &'c mut Session,
        columns: Option<Arc<[Column]>>,
        source: Source,
        verb: &'static str,
        open: bool,
    ) -> Self {
        Rows { session, columns, source, verb, count: 0, open }
    }

    /// What columns they have.
    pub fn columns(&self) -> &[Column] {
        self.columns.as_ref().or_else(|| self.source.columns()).map_or(&[], |columns| columns)
    }

    /// Whether they are FETCHed from a cursor that was declared BINARY: a client that says nothing
    /// else gets the binary form of their values.
    pub fn is_binary(&self) -> bool {
        match &self.source {
            Source::Cursor(walk) => {
                self.session.cursors.get(&walk.name).is_some_and(|cursor| cursor.facts.declared.is_binary)
            }
            _ => false,
        }
    }

    /// The next row; `None` after the last one.
    ///
    /// Errors: whatever computing it met. There are no more rows then.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "what it lends ends with the next call")]
    pub fn next(&mut self) -> Result<Option<RowView<'_>>> {
        if self.source.step() {
            self.count += 1;
            return Ok(Some(RowView::of(&self.source)));
        }
        self.next_elsewhere()
    }

    /// As [`Rows::next`], wherever the next row is. Not inlined, so that a step within a leaf is.
    #[inline(never)]
    fn next_elsewhere(&mut self) -> Result<Option<RowView<'_>>> {
        match self.source.advance(&self.session.context) {
            Ok(true) => {
                self.count += 1;
                self.source.view().map(Some)
            }
            Ok(false) => {
                self.end(true)?;
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        let error = self.session.explain(error);
        self.source = Source::datums(Vec::new());
        // The first error is the one to tell.
        let _ = self.end(false);
        error
    }

    fn end(&mut self, succeeded: bool) -> Result<()> {
        if matches!(self.source, Source::Cursor(_)) {
            let source = std::mem::replace(&mut self.source, Source::datums(Vec::new()));
            if let Source::Cursor(walk) = source {
                self.session.cursors.give_back(*walk);
            }
        }
        if std::mem::take(&mut self.open) { self.session.end_statement(succeeded) } else { Ok(()) }
    }

    /// Up to 8192 rows at once, by column; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let columns = self.columns.as_ref().or_else(|| self.source.columns()).map(Arc::clone);
        match self.source.next_batch(&self.session.context, &columns.unwrap_or_default()) {
            Ok(Some(batch)) => {
                self.count += batch.num_rows() as u64;
                Ok(Some(batch))
            }
            Ok(None) => {
                self.end(true)?;
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// How many were read.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What PostgreSQL would say after the last row: `SELECT 5`, `INSERT 0 3`, `SHOW`. Counts the
    /// rows that were read.
    pub fn tag(&self) -> CommandTag {
        match self.verb {
            "SHOW" | "EXPLAIN" => CommandTag::new(self.verb),
            verb => CommandTag::of_rows(verb, self.count),
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        if let Source::Point { row, .. } = &mut self.source {
            self.session.row = std::mem::take(row);
        }
        // What was read is read: a transaction of its own has nothing to lose.
        let _ = self.end(true);
    }
}
