//! The seam between the general path and the rest of the crate.
//!
//! Statements that the direct path does not handle are planned and run by the general path. This is
//! all that the rest asks of it, and the interface that another engine would implement. No code
//! outside of `general/` uses DataFusion's crate; `batch` only recognizes the texts of its errors.

use std::fmt;

use cairn_table::schema::ColumnType;
use sqlparser::ast::{Statement as Tree, With};

use super::Session;
use crate::column::Column;
use crate::datum::Datum;
use crate::error::Result;
use crate::rows::{BatchSource, Source, StoredRows};

/// A plan, with the types of its parameters and its columns.
pub(crate) type Planned<P> = (P, Vec<Option<ColumnType>>, Vec<Column>);

/// The number of changed rows, and the rows of RETURNING.
pub(crate) type Changed = (u64, Vec<Vec<Datum>>);

/// The general path.
pub(crate) trait GeneralPath: fmt::Debug + Send + Sync {
    /// Plans a query or EXPLAIN.
    ///
    /// Errors: those of planning the statement.
    fn plan(
        &self,
        session: &mut Session,
        tree: &Tree,
        types: &[Option<ColumnType>],
    ) -> Result<Planned<Box<dyn GeneralQuery>>>;

    /// Plans a change whose rows come from a query, with the WITH before it.
    ///
    /// Errors: those of planning the statement.
    fn plan_change(
        &self,
        session: &mut Session,
        tree: &Tree,
        with: Option<&With>,
        types: &[Option<ColumnType>],
    ) -> Result<Planned<Box<dyn GeneralChange>>>;

    /// Checks that a query can define a view, which adds one level of views.
    ///
    /// Errors: 54001 where it is made of too many others.
    fn check_view(&self, session: &mut Session, tree: &Tree) -> Result<()>;

    /// Materializes the remaining rows of a source, in the memory for queries or in files.
    ///
    /// Errors: those of the rows; those of the disk.
    fn materialize(
        &self,
        session: &mut Session,
        source: &mut Source,
        columns: &[Column],
    ) -> Result<Box<dyn StoredRows>>;

    /// Releases the view of the last statement. Schema changes wait for it.
    fn release_view(&self, session: &Session);
}

/// A planned query. It can run any number of times, also concurrently.
pub(crate) trait GeneralQuery: fmt::Debug + Send + Sync {
    /// Runs the query. The session's canceller stops it.
    ///
    /// Errors: those of physical planning; others are returned with the rows.
    fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Box<dyn BatchSource>>;

    /// The verb of the command tag: `SELECT` or `EXPLAIN`.
    fn verb(&self) -> &'static str;

    /// Whether its physical plan is cached.
    #[cfg(test)]
    fn is_cached(&self) -> bool;
}

/// A planned change whose rows come from a query.
pub(crate) trait GeneralChange: fmt::Debug + Send + Sync {
    /// Runs the change.
    ///
    /// Errors: those of the query, and of changing the rows.
    fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Changed>;

    /// The verb of the statement.
    fn verb(&self) -> &'static str;

    /// The verb of the command tag.
    fn tag(&self) -> &'static str;

    /// Whether it has a RETURNING clause.
    fn returns(&self) -> bool;
}
