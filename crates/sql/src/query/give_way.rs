//! Joins that let others run.
//!
//! A task gives way when it asks a scan for more: scans count how often they were asked. A join makes any number of rows of a batch that it was given, and whoever adds them up asks for the next at once. Without a
//! look in between, `SELECT count(*) FROM a, b, c` would keep a thread for as long as it takes, even after it was cancelled: no later query had a turn. DataFusion's own operator for this counts batches, of which some
//! have millions of rows.

use std::fmt;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use cairn_vfs::sync::Arc;
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures_util::{Stream, StreamExt, stream};

type Plan = Arc<dyn ExecutionPlan>;

/// Rows between two turns of others: a millisecond or less of most operators.
const ROWS: usize = 1 << 16;

/// Puts [`GiveWay`] on joins.
#[derive(Debug)]
pub(super) struct JoinsGiveWay;

impl PhysicalOptimizerRule for JoinsGiveWay {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let gives_way = |plan: Plan| {
            let is_join = plan.is::<CrossJoinExec>()
                || plan.is::<NestedLoopJoinExec>()
                || plan.is::<HashJoinExec>()
                || plan.is::<SortMergeJoinExec>();
            Ok(match is_join {
                true => Transformed::yes(Arc::new(GiveWay { input: plan }) as Plan),
                false => Transformed::no(plan),
            })
        };
        Ok(plan.transform_up(gives_way)?.data)
    }

    fn name(&self) -> &str {
        "cairn_give_way"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes batches on, and lets others run after some thousand rows.
#[derive(Debug)]
pub(super) struct GiveWay {
    input: Plan,
}

impl DisplayAs for GiveWay {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GiveWay")
    }
}

impl ExecutionPlan for GiveWay {
    fn name(&self) -> &str {
        "GiveWay"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(self: Arc<Self>, children: Vec<Plan>, _: ReplaceChildrenOptions) -> Result<Plan> {
        let input = children.into_iter().next();
        let input = input.ok_or_else(|| DataFusionError::Internal("nothing gives way".to_owned()))?;
        Ok(Arc::new(GiveWay { input }))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, giving_way(input))))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = || Arc::new(Statistics::new_unknown(&self.input.schema()));
        Ok(inputs.first().map_or_else(unknown, Arc::clone))
    }
}

fn giving_way(mut input: SendableRecordBatchStream) -> impl Stream<Item = Result<RecordBatch>> {
    let mut rows = 0;
    stream::poll_fn(move |context: &mut Context<'_>| {
        if rows >= ROWS {
            rows = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let next = input.poll_next_unpin(context);
        match &next {
            Poll::Ready(Some(Ok(batch))) => rows += batch.num_rows(),
            Poll::Ready(_) => {}
            // Others run now.
            Poll::Pending => rows = 0,
        }
        next
    })
}
