//! Makes `sum(bigint)` a numeric, as in PostgreSQL. DataFusion's sum would wrap around.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, WindowFunctionDefinition};
use datafusion::optimizer::AnalyzerRule;

use super::quotients::exactly;
use crate::general::tree::expression_types::type_of;
use crate::general::tree::walk::{Walk, WalkPlan};

/// Holds every bigint. The sum has ten digits more.
const WIDE: DataType = DataType::Decimal128(28, 0);

/// Casts the arguments of sums before the types of expressions are fixed, and then rewrites the
/// expressions that depend on the types of sums.
#[derive(Debug)]
pub(crate) struct WideSums;

impl AnalyzerRule for WideSums {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.walk_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            plan.inputs().iter().for_each(|input| schema.merge(input.schema()));
            let names = NamePreserver::new(&plan);
            let changed = plan.walk_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.walk_up(|expr| Ok(widened(expr, &schema)))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })?;
            // The operators above see other types now.
            changed.map_data(LogicalPlan::recompute_schema)
        })?;
        exactly(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_wide_sums"
    }
}

pub(crate) fn widened(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let arguments = match &mut expr {
        Expr::AggregateFunction(function) if function.func.name() == "sum" => &mut function.params.args,
        Expr::WindowFunction(function) => match &function.fun {
            WindowFunctionDefinition::AggregateUDF(of) if of.name() == "sum" => &mut function.params.args,
            _ => return Transformed::no(expr),
        },
        _ => return Transformed::no(expr),
    };
    match arguments.as_mut_slice() {
        [argument] if type_of(argument, schema) == Some(DataType::Int64) => {
            let narrow = std::mem::take(argument);
            *argument = Expr::Cast(Cast::new(Box::new(narrow), WIDE));
            Transformed::yes(expr)
        }
        _ => Transformed::no(expr),
    }
}
