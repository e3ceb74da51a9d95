//! DataFusion's aggregates, changed where PostgreSQL behaves differently.
//!
//! Where the result is one of the input values, the field metadata of the input column also applies
//! to the result, for example that timestamps are in UTC. DataFusion drops it. And where finite
//! numbers overflow their type, PostgreSQL raises an error, while DataFusion returns infinity or
//! wraps around ([`checked_sums`], [`statistics`]).

pub(crate) mod checked_sums;
mod extremes;
mod groups;
pub(crate) mod interval_extremes;
pub(crate) mod sliding;
pub(crate) mod statistics;
pub(crate) mod statistics_state;
pub(crate) mod string_agg;

use std::sync::LazyLock;

use arrow::datatypes::{DataType, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use crate::batch::kind_of;

/// Aggregates over squares and products, which overflow sooner than sums do.
pub(crate) const STATISTICS: [&str; 16] = [
    "var_samp",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// `sum`, for callers that do not resolve it by name.
static SUM: LazyLock<Arc<AggregateUDF>> =
    LazyLock::new(|| Arc::new(AggregateUDF::from(Altered { of: sum_udaf(), what: Alteration::Sum })));

/// One of DataFusion's aggregates and the part of it that is replaced.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Altered {
    of: Arc<AggregateUDF>,
    what: Alteration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Alteration {
    /// The metadata of the result field, and the order of floating-point numbers.
    Field,
    /// Overflow checks of sums.
    Sum,
    /// The whole computation, which involves squares and products.
    Spread,
}

/// Returns the aggregate with the field metadata of its argument kept.
pub(crate) fn keeping(of: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Altered { of, what: Alteration::Field })
}

/// Returns `sum` with overflow as an error.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::clone(&SUM)
}

/// Returns one of [`STATISTICS`], computed by [`statistics`].
pub(crate) fn statistics_of(of: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Altered { of, what: Alteration::Spread })
}

impl Altered {
    fn inner(&self) -> &dyn AggregateUDFImpl {
        self.of.inner().as_ref()
    }
}

impl AggregateUDFImpl for Altered {
    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner().return_field(args)?;
        if self.what != Alteration::Field {
            return Ok(field);
        }
        // As in PostgreSQL, `max` drops a declared length or precision: the result is plain text or
        // unconstrained numeric.
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
        match self.what {
            Alteration::Field => self.inner().accumulator(args),
            Alteration::Sum => checked_sums::accumulator(self.inner(), args),
            Alteration::Spread => statistics::accumulator(self.name(), &args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match self.what {
            Alteration::Spread => statistics::state_fields(self.name(), &args),
            Alteration::Field | Alteration::Sum => self.inner().state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        match self.what {
            Alteration::Spread => !args.is_distinct,
            Alteration::Field | Alteration::Sum => self.inner().groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match self.what {
            Alteration::Field => extremes::groups(self.inner(), args),
            Alteration::Sum => checked_sums::groups(self.inner(), args),
            Alteration::Spread => statistics::groups(self.name()),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match self.what {
            Alteration::Field => self.inner().create_sliding_accumulator(args),
            Alteration::Sum => checked_sums::sliding(self.inner(), args),
            Alteration::Spread => statistics::sliding(self.name(), &args),
        }
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = Arc::clone(self.of.inner()).with_beneficial_ordering(beneficial)?;
        Ok(inner.map(|inner| -> Arc<dyn AggregateUDFImpl> {
            let of = Arc::new(AggregateUDF::new_from_shared_impl(inner));
            Arc::new(Altered { of, what: self.what })
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
