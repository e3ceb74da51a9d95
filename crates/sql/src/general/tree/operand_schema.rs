//! The columns that the expressions of an operator may refer to.

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::merge_schema;

/// Returns the columns of an operator's inputs. A scan has no inputs; its conditions refer to the
/// table's columns.
///
/// Errors: the table has two columns of one name.
pub(crate) fn operand_schema(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let own = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&own);
    }
    Ok(schema)
}
