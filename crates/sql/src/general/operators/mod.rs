//! The physical planner: DataFusion's, extended by our operators.

pub(crate) mod aggregate_scan;
pub(crate) mod join_filter;
pub(crate) mod shared_cte;
pub(crate) mod unary;
pub(crate) mod yielding;

use async_trait::async_trait;
use cairn_vfs::sync::Arc;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::general::rules::unknown_keys;

/// The planner.
#[derive(Debug)]
pub(crate) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![
            Arc::new(shared_cte::Planner),
            Arc::new(unknown_keys::Planner),
        ]);
        planner.create_physical_plan(plan, session).await
    }
}
