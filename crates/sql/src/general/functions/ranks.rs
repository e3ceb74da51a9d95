//! `row_number`, `rank`, `dense_rank` and `ntile` with the result types of PostgreSQL. DataFusion
//! returns unsigned integers, which SQL does not have.

use std::ops::Range;

use arrow::array::ArrayRef;
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;

/// The functions and their result types.
pub(crate) const RANKS: [(&str, DataType); 4] = [
    ("row_number", DataType::Int64),
    ("rank", DataType::Int64),
    ("dense_rank", DataType::Int64),
    ("ntile", DataType::Int32),
];

/// A window function with another result type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Rank {
    of: Arc<WindowUDF>,
    kind: DataType,
}

/// Wraps one of DataFusion's [`RANKS`].
pub(crate) fn rank(of: Arc<WindowUDF>, kind: DataType) -> WindowUDF {
    WindowUDF::from(Rank { of, kind })
}

impl WindowUDFImpl for Rank {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn aliases(&self) -> &[String] {
        self.of.aliases()
    }

    fn signature(&self) -> &Signature {
        self.of.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.of.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let of = self.of.partition_evaluator_factory(args)?;
        Ok(Box::new(Evaluator { of, kind: self.kind.clone() }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.of.field(args)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(self.kind.clone())))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.of.sort_options()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.of.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.of.reverse_expr() {
            ReversedUDWF::Reversed(other) => ReversedUDWF::Reversed(Arc::new(rank(other, self.kind.clone()))),
            same => same,
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.of.documentation()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.of.inner().limit_effect(args)
    }
}

#[derive(Debug)]
struct Evaluator {
    of: Box<dyn PartitionEvaluator>,
    kind: DataType,
}

impl PartitionEvaluator for Evaluator {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.of.memoize(state)
    }

    fn get_range(&self, at: usize, rows: usize) -> Result<Range<usize>> {
        self.of.get_range(at, rows)
    }

    fn is_causal(&self) -> bool {
        self.of.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(cast(&self.of.evaluate_all(values, rows)?, &self.kind)?)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.of.evaluate(values, range)?.cast_to(&self.kind)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        Ok(cast(&self.of.evaluate_all_with_rank(rows, ranks)?, &self.kind)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.of.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.of.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.of.include_rank()
    }
}
