//! The system relations as tables of DataFusion.

use arrow::datatypes::SchemaRef;
use cairn_vfs::sync::Arc;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::pg_catalog::SystemTable;

/// A system relation.
#[derive(Debug)]
pub(crate) struct SystemProvider(pub SystemTable);

#[async_trait::async_trait]
impl TableProvider for SystemProvider {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
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
        let table = MemTable::try_new(self.schema(), vec![vec![self.0.batch()?]])?;
        table.scan(state, projection, filters, limit).await
    }
}
