//! The general path.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::Statement as Tree;

use crate::batch::BatchReader;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::outcome::Column;
use crate::session::Session;
use crate::sqlstate::INTERNAL_ERROR;

#[derive(Debug)]
pub(crate) struct General;
#[derive(Debug)]
pub(crate) struct Engine;
#[derive(Debug)]
pub(crate) struct Query;
#[derive(Debug)]
pub(crate) struct Change;
#[derive(Debug)]
pub(crate) struct Batches;

pub(crate) fn arrow_error(error: ArrowError) -> Error {
    Error::new(INTERNAL_ERROR, error.to_string())
}

impl Query {
    pub fn plan(
        _: &mut Session,
        tree: &Tree,
        _: &[Option<ColumnType>],
    ) -> Result<(Query, Vec<Option<ColumnType>>, Vec<Column>)> {
        Err(Error::unsupported(tree))
    }
    pub fn run(&self, _: &mut Session, _: &[Datum]) -> Result<Batches> {
        Ok(Batches)
    }
    pub fn verb(&self) -> &'static str {
        "SELECT"
    }
}
impl Change {
    pub fn plan(
        _: &mut Session,
        tree: &Tree,
        _: &[Option<ColumnType>],
    ) -> Result<(Change, Vec<Option<ColumnType>>, Vec<Column>)> {
        Err(Error::unsupported(tree))
    }
    pub fn run(&self, _: &mut Session, _: &[Datum]) -> Result<(u64, Vec<Vec<Datum>>)> {
        Ok((0, Vec::new()))
    }
    pub fn verb(&self) -> &'static str {
        "SELECT"
    }
    pub fn tag(&self) -> &'static str {
        "SELECT"
    }
    pub fn returns(&self) -> bool {
        false
    }
}
impl Batches {
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
    pub fn reader(&self, batch: &RecordBatch) -> Result<BatchReader> {
        BatchReader::new(batch, &[]).map_err(arrow_error)
    }
}
