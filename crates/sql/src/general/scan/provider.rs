//! Our tables as DataFusion table providers.

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use cairn_table::Table;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, DFSchema, Statistics};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;

use super::filter::{condition, taken};
use crate::batch::field;
use crate::direct::{Access, Wanted};
use crate::expr::Node;
use crate::general::scan::TableScan;
use crate::general::scan::current_view::Current;
use crate::general::tree::values::scalar_of;

/// The column that identifies a row, for statements that change rows.
pub(crate) const ROW_KEY: &str = "ctid";

/// A table. It declares no constraints, because DataFusion derives more from them than they imply
/// (`rewrite/dependents.rs`).
#[derive(Debug)]
pub(crate) struct Provider {
    table: Arc<Table>,
    schema: SchemaRef,
}

impl Provider {
    /// `with_key`: adds the row keys as a column.
    pub fn new(table: &Arc<Table>, with_key: bool) -> Self {
        let def = table.def();
        let mut fields: Vec<Field> =
            def.columns.iter().map(|column| field(&column.name, &column.kind, column.nullable)).collect();
        if with_key {
            fields.push(Field::new(ROW_KEY, DataType::BinaryView, false));
        }
        Provider { table: Arc::clone(table), schema: Arc::new(Schema::new(fields)) }
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(taken(&self.table, filters))
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics(&self.table, &self.schema))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let current = state.config().get_extension::<Current>();
        let current = current
            .ok_or_else(|| DataFusionError::Internal("a table is read outside of a session".to_owned()))?;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all).clone();
        // An accepted filter may have been rewritten since: `x IN (1, NULL)` becomes `x = 1 OR
        // NULL`.
        let (taken, strange): (Vec<Expr>, Vec<Expr>) =
            filters.iter().cloned().partition(|filter| condition(filter, &self.table).is_some());
        if let Some(strange) = conjunction(strange) {
            return self.scan_and_filter(state, projection, &taken, strange).await;
        }
        let conditions = filters.iter().filter_map(|filter| condition(filter, &self.table));
        let conjuncts: Vec<Node> = conditions.flat_map(Node::conjuncts).collect();
        let own = self.table.def().columns.len();
        let mut columns: Vec<usize> = projection.iter().copied().filter(|&column| column < own).collect();
        conjuncts.iter().for_each(|node| {
            node.walk(&mut |node| {
                if let Node::Slot { slot, .. } = node {
                    columns.push(*slot);
                }
            });
        });
        let (access, _) = Access::plan(&self.table, conjuncts, &Wanted { columns: &columns, order: &[] });
        let kinds = projection.iter().map(|&column| self.kind(column)).collect();
        let schema = Arc::new(self.schema.project(&projection)?);
        let statistics = statistics(&self.table, &self.schema).project(Some(&projection));
        let scan = TableScan::new(
            current.view()?,
            access,
            projection,
            kinds,
            schema,
            limit,
            statistics,
            state.config().target_partitions(),
        )?;
        Ok(Arc::new(scan))
    }
}

impl Provider {
    /// A scan with a filter on top, for conditions that the scan cannot handle.
    async fn scan_and_filter(
        &self,
        state: &dyn Session,
        projection: Vec<usize>,
        taken: &[Expr],
        filter: Expr,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wider = projection.clone();
        for column in filter.column_refs() {
            let column = self.schema.index_of(&column.name)?;
            if !wider.contains(&column) {
                wider.push(column);
            }
        }
        let scan = self.scan(state, Some(&wider), taken, None).await?;
        let schema = DFSchema::try_from(scan.schema())?;
        let filter = FilterExecBuilder::new(state.create_physical_expr(filter, &schema)?, scan);
        let filter = filter.apply_projection(Some((0..projection.len()).collect()))?;
        Ok(Arc::new(filter.build()?))
    }

    pub fn table_id(&self) -> u32 {
        self.table.id()
    }

    /// Returns the columns of the table's primary key.
    pub fn primary_key(&self) -> Vec<usize> {
        self.table.def().primary_key.iter().map(|key| key.column).collect()
    }

    fn kind(&self, column: usize) -> ColumnType {
        self.table.def().columns.get(column).map_or_else(|| Type::Blob.into(), |column| column.kind.clone())
    }
}

/// Returns the statistics of a table. All of them are estimates.
fn statistics(table: &Table, schema: &Schema) -> Statistics {
    let rows = table.rows() as usize;
    let mut width = 0;
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (at, _) in schema.fields().iter().enumerate() {
        let known = table.statistics().and_then(|statistics| statistics.columns.get(at));
        let kind = table.def().columns.get(at).map(|column| &column.kind);
        let mut column = ColumnStatistics::new_unknown();
        width += kind
            .and_then(|kind| kind.kind.width())
            .or(known.map(|known| known.average_width as usize))
            .unwrap_or(24);
        if let (Some(known), Some(kind)) = (known, kind) {
            column.null_count = Precision::Inexact(known.nulls as usize);
            column.distinct_count = Precision::Inexact(known.distinct as usize);
            let end = |value: &Option<cairn_table::OwnedValue>| match value {
                Some(value) => scalar_of(value.value(), kind).map_or(Precision::Absent, Precision::Inexact),
                None => Precision::Absent,
            };
            (column.min_value, column.max_value) = (end(&known.min), end(&known.max));
        }
        columns.push(column);
    }
    Statistics {
        num_rows: Precision::Inexact(rows),
        total_byte_size: Precision::Inexact(rows * width),
        column_statistics: columns,
    }
}
