//! Result rows, read one by one or in batches.

use arrow::array::RecordBatch;
use cairn_vfs::sync::Arc;

use crate::column::Column;
use crate::command_tag::CommandTag;
use crate::error::{Error, Result};
use crate::rows::{RowView, Source};
use crate::session::{Session, StatementGuard};

/// The rows of a result. They borrow the connection until they are dropped, which ends a statement
/// that only reads.
#[derive(Debug)]
pub struct Rows<'c> {
    statement: StatementGuard<'c>,
    /// `None` if the source knows its columns.
    columns: Option<Arc<[Column]>>,
    source: Source,
    verb: &'static str,
    count: u64,
}

impl<'c> Rows<'c> {
    pub(crate) fn new(
        session: &'c mut Session,
        columns: Option<Arc<[Column]>>,
        source: Source,
        verb: &'static str,
        open: bool,
    ) -> Self {
        Rows { statement: StatementGuard::new(session, open), columns, source, verb, count: 0 }
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &[Column] {
        self.columns.as_ref().or_else(|| self.source.columns()).map_or(&[], |columns| columns)
    }

    /// Whether the rows come from a FETCH on a BINARY cursor. A client that does not choose a
    /// format gets the binary form of their values.
    pub fn is_binary(&self) -> bool {
        match &self.source {
            Source::Cursor(walk) => self.statement.is_binary(&walk.name),
            _ => false,
        }
    }

    /// Returns the next row; `None` after the last one.
    ///
    /// Errors: any error of computing the row. There are no more rows after it.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "what it lends ends with the next call")]
    pub fn next(&mut self) -> Result<Option<RowView<'_>>> {
        if self.source.step() {
            self.count += 1;
            return Ok(Some(RowView::of(&self.source)));
        }
        self.next_elsewhere()
    }

    /// Like [`Rows::next`], for any next row. It is not inlined, so that a step within a leaf is.
    #[inline(never)]
    fn next_elsewhere(&mut self) -> Result<Option<RowView<'_>>> {
        match self.source.advance(self.statement.context()) {
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
        let error = self.statement.explain(error);
        self.source = Source::datums(Vec::new());
        // The first error is the one to report.
        let _ = self.end(false);
        error
    }

    fn end(&mut self, succeeded: bool) -> Result<()> {
        if matches!(self.source, Source::Cursor(_)) {
            let source = std::mem::replace(&mut self.source, Source::datums(Vec::new()));
            if let Source::Cursor(walk) = source {
                self.statement.give_back(*walk);
            }
        }
        self.statement.end(succeeded)
    }

    /// Returns up to 8192 rows as a batch of columns; `None` after the last one.
    ///
    /// Errors: as [`Rows::next`].
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let columns = self.columns.as_ref().or_else(|| self.source.columns()).map(Arc::clone);
        match self.source.next_batch(self.statement.context(), &columns.unwrap_or_default()) {
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

    /// The number of rows read.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The command tag that PostgreSQL sends after the last row: `SELECT 5`, `INSERT 0 3`, `SHOW`.
    /// It counts the rows read.
    pub fn tag(&self) -> CommandTag {
        match self.verb {
            "SHOW" | "EXPLAIN" => CommandTag::new(self.verb),
            verb => CommandTag::of_rows(verb, self.count),
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        self.statement.recycle(&mut self.source);
        // The rows have been read, and an implicit transaction has nothing to lose.
        let _ = self.end(true);
    }
}
