//! The relations as DataFusion's tables: made when they are scanned.

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use cairn_table::Catalog;
use cairn_vfs::sync::Arc;
use datafusion::catalog::{MemTable, SchemaProvider, Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::SessionFacts;
use super::cell::{Cell, array};
use super::relations::{Relation, default, find, relations, shape};
use super::rows::rows;

/// `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(super) struct System {
    pub schema: &'static str,
    pub catalog: Arc<Catalog>,
    pub facts: Arc<SessionFacts>,
}

/// A relation of it.
#[derive(Debug)]
struct SystemTable {
    relation: &'static Relation,
    arrow: SchemaRef,
    catalog: Arc<Catalog>,
    facts: Arc<SessionFacts>,
}

#[async_trait::async_trait]
impl SchemaProvider for System {
    fn table_names(&self) -> Vec<String> {
        relations()
            .iter()
            .filter(|relation| relation.schema == self.schema)
            .map(|relation| relation.name.to_owned())
            .collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.find(name))
    }

    fn table_exist(&self, name: &str) -> bool {
        find(self.schema, name).is_some()
    }
}

impl System {
    /// A relation as a table.
    pub fn find(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let relation = find(self.schema, name)?;
        let (catalog, facts) = (Arc::clone(&self.catalog), Arc::clone(&self.facts));
        Some(Arc::new(SystemTable { relation, arrow: relation.arrow(), catalog, facts }))
    }
}

impl SystemTable {
    /// All its rows.
    fn batch(&self) -> Result<RecordBatch> {
        let rows = rows(self.relation.schema, self.relation.name, &self.catalog, &self.facts);
        let tableoid = self.relation.has_tableoid().then_some(("tableoid", "oid"));
        let columns = self.relation.columns.iter().copied().chain(tableoid).map(|(name, kind)| {
            let zero = default(self.relation, kind);
            // What is said last holds.
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
