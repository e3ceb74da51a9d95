//! The interface of the general path to the rest of the crate.

use cairn_table::schema::ColumnType;
use sqlparser::ast::{Statement as Tree, With};

use super::change::Change;
use super::engine;
use super::plan::query::Query;
use crate::column::Column;
use crate::datum::Datum;
use crate::error::Result;
use crate::rows::{BatchSource, Source, StoredRows};
use crate::session::{Changed, GeneralChange, GeneralPath, GeneralQuery, Planned, Session};

/// The general path: DataFusion.
#[derive(Debug)]
pub(crate) struct DataFusion;

impl GeneralPath for DataFusion {
    fn plan(
        &self,
        session: &mut Session,
        tree: &Tree,
        types: &[Option<ColumnType>],
    ) -> Result<Planned<Box<dyn GeneralQuery>>> {
        let (query, types, columns) = Query::plan(session, tree, types)?;
        Ok((Box::new(query), types, columns))
    }

    fn plan_change(
        &self,
        session: &mut Session,
        tree: &Tree,
        with: Option<&With>,
        types: &[Option<ColumnType>],
    ) -> Result<Planned<Box<dyn GeneralChange>>> {
        let (change, types, columns) = Change::plan(session, tree, with, types)?;
        Ok((Box::new(change), types, columns))
    }

    fn check_view(&self, session: &mut Session, tree: &Tree) -> Result<()> {
        Query::check_view(session, tree)
    }

    fn materialize(
        &self,
        session: &mut Session,
        source: &mut Source,
        columns: &[Column],
    ) -> Result<Box<dyn StoredRows>> {
        Ok(Box::new(session.materialize_rows(source, columns)?))
    }

    fn release_view(&self, session: &Session) {
        engine::release_view(session);
    }
}

impl GeneralQuery for Query {
    fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(Query::run(self, session, params)?))
    }

    fn verb(&self) -> &'static str {
        self.verb
    }

    #[cfg(test)]
    fn is_cached(&self) -> bool {
        self.has_cached_plan()
    }
}

impl GeneralChange for Change {
    fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Changed> {
        Change::run(self, session, params)
    }

    fn verb(&self) -> &'static str {
        Change::verb(self)
    }

    fn tag(&self) -> &'static str {
        Change::tag(self)
    }

    fn returns(&self) -> bool {
        Change::returns(self)
    }
}
