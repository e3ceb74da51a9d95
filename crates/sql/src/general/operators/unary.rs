//! The methods of `ExecutionPlan` that all operators with one input share.

/// Methods of an operator with one input. It has a field `input`, and a method `with_input` that
/// returns the operator above another input.
macro_rules! unary {
    () => {
        fn children(&self) -> Vec<&std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn replace_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
            _: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> datafusion::error::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            let input = children.into_iter().next().ok_or_else(|| {
                let what = format!("{} has no input", datafusion::physical_plan::ExecutionPlan::name(&*self));
                datafusion::error::DataFusionError::Internal(what)
            })?;
            Ok(self.with_input(input))
        }

        fn with_new_children(
            self: std::sync::Arc<Self>,
            children: Vec<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>>,
        ) -> datafusion::error::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
            use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
        }

        fn statistics_from_inputs(
            &self,
            inputs: &[std::sync::Arc<datafusion::common::Statistics>],
            _: &datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> datafusion::error::Result<std::sync::Arc<datafusion::common::Statistics>> {
            let unknown = || {
                let schema = datafusion::physical_plan::ExecutionPlan::schema(self);
                std::sync::Arc::new(datafusion::common::Statistics::new_unknown(&schema))
            };
            Ok(inputs.first().map_or_else(unknown, std::sync::Arc::clone))
        }
    };
}

/// The method of an operator without expressions.
macro_rules! no_expressions {
    () => {
        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &std::sync::Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            )
                -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> datafusion::error::Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}

pub(crate) use {no_expressions, unary};
