//! Aggregates whose result is one of the values: what a field says of a column beyond its type, as that its timestamps are of UTC, is true of the result as well.
//! DataFusion forgets it.

use arrow::datatypes::{DataType, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use crate::batch::kind_of;

/// One of DataFusion's aggregates, but for that.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Keeps(Arc<AggregateUDF>);

/// The aggregate with what its argument's field says.
pub(super) fn keeping(of: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Keeps(of))
}

impl Keeps {
    fn inner(&self) -> &dyn AggregateUDFImpl {
        self.0.inner().as_ref()
    }
}

impl AggregateUDFImpl for Keeps {
    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner().return_field(args)?;
        // The longest text is a text, and the greatest numeric one with whatever digits, as in PostgreSQL.
        let says_type = |of: &&FieldRef| {
            let kind = kind_of(of);
            !of.metadata().is_empty() && kind.length.is_none() && kind.decimal.is_none()
        };
        Ok(match args.first().filter(says_type) {
            Some(of) => Arc::new(field.as_ref().clone().with_metadata(of.metadata().clone())),
            None => field,
        })
    }

    fn name(&self) -> &str {
        self.inner().name()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        self.inner().return_type(args)
    }

    fn is_nullable(&self) -> bool {
        self.inner().is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner().accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner().groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner().create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner().create_sliding_accumulator(args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = Arc::clone(self.0.inner()).with_beneficial_ordering(beneficial)?;
        Ok(inner.map(|inner| -> Arc<dyn AggregateUDFImpl> {
            Arc::new(Keeps(Arc::new(AggregateUDF::new_from_shared_impl(inner))))
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner().order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner().simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner().simplify_expr_op_literal(function, arg, op, literal, is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner().reverse_expr()
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner().is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner().value_from_stats(args)
    }

    fn default_value(&self, kind: &DataType) -> Result<ScalarValue> {
        self.inner().default_value(kind)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner().supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner().supports_within_group_clause()
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.inner().set_monotonicity(kind)
    }
}
