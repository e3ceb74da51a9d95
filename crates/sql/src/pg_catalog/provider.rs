//! Table providers for the system relations, whose rows are computed when they are scanned.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use cairn_vfs::sync::Arc;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::World;
use super::cell::{Cell, array};
use super::relations::{Relation, default, shape};
use super::rows::rows;

/// A relation of `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(super) struct SystemTable {
    relation: &'static Relation,
    arrow: SchemaRef,
    world: Arc<World>,
}

impl SystemTable {
    pub fn new(relation: &'static Relation, world: &Arc<World>) -> Self {
        SystemTable { relation, arrow: relation.arrow(), world: Arc::clone(world) }
    }

    /// Computes all rows.
    fn batch(&self) -> Result<RecordBatch> {
        let rows = rows(self.relation.schema, self.relation.name, &self.world.catalog, &self.world.facts);
        let tableoid = self.relation.has_tableoid().then_some(("tableoid", "oid"));
        let columns = self.relation.columns.iter().copied().chain(tableoid).map(|(name, kind)| {
            let zero = default(self.relation, kind);
            // The last entry for a column counts.
            let cell = |row: &super::rows::Row| {
                row.iter()
                    .rev()
                    .find(|(column, _)| *column == name)
                    .map_or_else(|| zero.clone(), |(_, cell)| cell.clone())
            };
            let cells: Vec<Cell> = rows.iter().map(cell).collect();
            array(shape(kind), &cells)
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.arrow), columns.collect(), &options)?)
    }
}

#[async_trait::async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.arrow)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = MemTable::try_new(Arc::clone(&self.arrow), vec![vec![self.batch()?]])?;
        table.scan(state, projection, filters, limit).await
    }
}
