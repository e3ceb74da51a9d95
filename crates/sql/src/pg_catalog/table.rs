//! System relations, whose rows are computed when they are scanned.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use cairn_vfs::sync::Arc;

use super::World;
use super::cell::{Cell, array};
use super::relations::{self, Relation, default, shape};
use super::rows::rows;
use crate::syntax::TableName;

/// A relation of `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(crate) struct SystemTable {
    relation: &'static Relation,
    arrow: SchemaRef,
    world: Arc<World>,
}

impl SystemTable {
    /// Returns a system relation; `None` if there is none of this name.
    pub fn named(name: &TableName, world: &Arc<World>) -> Option<SystemTable> {
        let relation = relations::find(name.schema.as_deref().unwrap_or("pg_catalog"), &name.name)?;
        Some(SystemTable { relation, arrow: relation.arrow(), world: Arc::clone(world) })
    }

    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    /// Computes all rows.
    ///
    /// Errors: none known.
    pub fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let rows = rows(self.relation.schema, self.relation.name, &self.world.catalog, &self.world.facts);
        let tableoid = self.relation.has_tableoid().then_some(("tableoid", "oid"));
        let columns = self.relation.columns.iter().copied().chain(tableoid).map(|(name, kind)| {
            let zero = default(self.relation, kind);
            // The last entry for a column counts.
            let cell = |row: &super::row::Row| {
                row.iter()
                    .rev()
                    .find(|(column, _)| *column == name)
                    .map_or_else(|| zero.clone(), |(_, cell)| cell.clone())
            };
            let cells: Vec<Cell> = rows.iter().map(cell).collect();
            array(shape(kind), &cells)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns.collect(), &options)
    }
}
