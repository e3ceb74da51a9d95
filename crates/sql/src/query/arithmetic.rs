//! Whole numbers that do not fit are an error, as in PostgreSQL: DataFusion's begin again at the other end.

use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::DataType;
use cairn_vfs::sync::Arc;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

/// Addition and the like that look whether the result fits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: Operator,
    name: &'static str,
    signature: Signature,
}

impl Checked {
    fn new(operator: Operator) -> Option<ScalarUDF> {
        let name = match operator {
            Operator::Plus => "cairn_plus",
            Operator::Minus => "cairn_minus",
            Operator::Multiply => "cairn_times",
            _ => return None,
        };
        let signature = Signature::any(2, Volatility::Immutable);
        Some(ScalarUDF::from(Checked { operator, name, signature }))
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        args.first().cloned().ok_or_else(|| DataFusionError::Internal("arithmetic with nothing".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("arithmetic with nothing".to_owned()));
        };
        match self.operator {
            Operator::Plus => apply(left, right, add),
            Operator::Minus => apply(left, right, sub),
            _ => apply(left, right, mul),
        }
    }
}

/// Puts them in the place of DataFusion's, once it is known what types there are.
#[derive(Debug)]
pub(super) struct CheckArithmetic;

impl AnalyzerRule for CheckArithmetic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            plan.inputs().iter().for_each(|input| schema.merge(input.schema()));
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(|expr| Ok(checked(expr, &schema)))?;
                Ok(changed.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &str {
        "cairn_check_arithmetic"
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Transformed::no(expr) };
    let kind = |expr: &Expr| expr.get_type(schema).ok().filter(DataType::is_signed_integer);
    let same = kind(&left).is_some_and(|of| Some(of) == kind(&right));
    match Checked::new(op).filter(|_| same) {
        Some(function) => Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
            Arc::new(function),
            vec![*left, *right],
        ))),
        None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}
