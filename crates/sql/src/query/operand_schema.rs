//! The columns that the expressions of an operator may name.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::merge_schema;

/// The columns of an operator's inputs. A scan has none, and its conditions name the table's
/// columns.
///
/// Errors: the table has two columns of one name.
pub(super) fn operand_schema(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let own = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&own);
    }
    Ok(schema)
}
