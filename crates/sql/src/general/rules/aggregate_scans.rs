//! The optimizer rule that replaces partial aggregates by [`AggregateScan`] where possible, and the
//! translation of such an aggregate into the terms of the direct path.

use arrow::datatypes::{DataType, SchemaRef};
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, InListExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};

use crate::batch::data_type;
use crate::datum::pow10;
use crate::direct::{Access, Asked, Formulas, Gathering, Step};
use crate::expr::Node;
use crate::general::operators::aggregate_scan::AggregateScan;
use crate::general::scan::TableScan;
use crate::general::scan::filter::{comparison_of, one_of};
use crate::general::tree::values::datum;
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// Computes partial aggregates over tables while their leaves are read.
#[derive(Debug)]
pub(crate) struct AggregateScans;

impl PhysicalOptimizerRule for AggregateScans {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        aggregate_scans(plan)
    }

    fn name(&self) -> &str {
        "cairn_aggregate_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the plan with partial aggregates over tables replaced by [`AggregateScan`].
pub(crate) fn aggregate_scans(plan: Plan) -> Result<Plan> {
    let stand_in = |plan: Plan| {
        let instead = AggregateScan::instead_of(Arc::clone(&plan));
        let is_changed = !Arc::ptr_eq(&instead, &plan);
        Ok(Transformed::new_transformed(instead, is_changed))
    };
    Ok(plan.walk_up(stand_in)?.data)
}

/// How to compute partial totals from the columns of a table.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// The [`TableScan`].
    pub scan: Plan,
    /// The columns of the table that are read.
    pub columns: Vec<(usize, ColumnType)>,
    pub gathering: Gathering,
    /// Types of the grouping columns.
    pub keys: Vec<ColumnType>,
    /// The output columns after the grouping columns.
    pub states: Vec<State>,
    /// Schema of the partial totals.
    pub schema: SchemaRef,
}

/// An output column of partial totals. The numbers index the requested aggregates ([`Asked`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// The number of rows.
    Rows,
    /// The number of non-NULL values. [`State::Divisor`] is the same count for a mean, but NULL
    /// instead of 0.
    Values(usize),
    Divisor(usize),
    Sum(usize),
    Best(usize),
}

impl Recipe {
    /// Whether it computes the same totals as another recipe of the same plan, partition by
    /// partition.
    pub fn has_same_totals(&self, other: &Recipe) -> bool {
        let (Some(scan), Some(others)) =
            (self.scan.downcast_ref::<TableScan>(), other.scan.downcast_ref::<TableScan>())
        else {
            return false;
        };
        self.columns == other.columns
            && self.gathering == other.gathering
            && self.keys == other.keys
            && self.states == other.states
            && self.schema.fields() == other.schema.fields()
            && scan.has_rows_of(others)
    }

    /// Returns the recipe for a partial aggregate over a table. `None` for other operators, and for
    /// totals that cannot be computed in 64 bits.
    pub fn of(plan: &Plan) -> Option<Recipe> {
        let aggregate = plan.downcast_ref::<AggregateExec>()?;
        let groups = aggregate.group_expr();
        let is_plain = *aggregate.mode() == AggregateMode::Partial
            && *aggregate.input_order_mode() == InputOrderMode::Linear
            && aggregate.limit_options().is_none()
            && aggregate.filter_expr().iter().all(Option::is_none)
            && !groups.has_grouping_set()
            && (groups.is_empty() || groups.is_single());
        if !is_plain {
            return None;
        }
        let mut source = Source::of(aggregate.input())?;
        let keys = groups.expr().iter().map(|(expr, _)| source.column(expr)).collect::<Option<Vec<_>>>()?;
        let (mut asked, mut states) = (Vec::new(), Vec::new());
        let (schema, input) = (aggregate.schema(), aggregate.input().schema());
        let mut fields = schema.fields().iter().skip(keys.len()).map(|field| field.data_type());
        for function in aggregate.aggr_expr() {
            source.states_of((function, &input), &mut fields, &mut asked, &mut states)?;
        }
        if fields.next().is_some() {
            return None;
        }
        let mut columns = source.read;
        columns.extend(keys.iter().cloned());
        columns.sort_unstable_by_key(|(column, _)| *column);
        columns.dedup_by_key(|(column, _)| *column);
        // Counting all rows needs no columns, and the scan answers it without reading rows.
        if columns.is_empty() {
            return None;
        }
        let gathering = Gathering::new(&keys, source.formulas, asked)?;
        let keys = keys.into_iter().map(|(_, kind)| kind).collect();
        Some(Recipe { scan: source.scan, columns, gathering, keys, states, schema })
    }
}

/// The table under an aggregate, as the aggregate sees its rows.
struct Source {
    scan: Plan,
    formulas: Formulas,
    /// The meaning of each input column; `None` where it is not known.
    columns: Vec<Option<Known>>,
    /// The columns of the table that formulas read.
    read: Vec<(usize, ColumnType)>,
}

/// A column of the input.
#[derive(Debug, Clone)]
enum Known {
    Column(usize, ColumnType),
    Number(Number),
}

/// A computed number and its type.
#[derive(Debug, Clone)]
struct Number {
    step: usize,
    kind: DataType,
}

/// Returns the operands of a chain of ORs, left to right.
fn alternatives(expr: &Arc<dyn PhysicalExpr>) -> Vec<&Arc<dyn PhysicalExpr>> {
    let (mut left, mut parts) = (vec![expr], Vec::new());
    while let Some(expr) = left.pop() {
        match expr.downcast_ref::<BinaryExpr>() {
            Some(binary) if *binary.op() == Operator::Or => left.extend([binary.right(), binary.left()]),
            _ => parts.push(expr),
        }
    }
    parts
}

fn scale_of(kind: &DataType) -> Option<u32> {
    match kind {
        DataType::Decimal128(_, scale) => u32::try_from(*scale).ok(),
        _ => None,
    }
}

impl Source {
    /// Analyzes an input. `None` unless it reads one table through operators known here.
    fn of(plan: &Plan) -> Option<Source> {
        if let Some(scan) = plan.downcast_ref::<TableScan>() {
            let columns = &scan.access().table.def().columns;
            let known = |&column: &usize| {
                let kind = &columns.get(column)?.kind;
                Some(Known::Column(column, kind.clone()))
            };
            let is_read_by_leaves = scan.limit().is_none() && !scan.access().fetches;
            return is_read_by_leaves.then(|| Source {
                scan: Arc::clone(plan),
                formulas: Formulas::default(),
                columns: scan.projection().iter().map(known).collect(),
                read: Vec::new(),
            });
        }
        if plan.fetch().is_some() {
            return None;
        }
        if let Some(coop) = plan.downcast_ref::<CooperativeExec>() {
            return Source::of(coop.input());
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let mut source = Source::of(filter.input())?;
            if !source.chooses(filter.predicate()) {
                return None;
            }
            if let Some(projection) = filter.projection() {
                let columns = projection.iter().map(|&at| source.columns.get(at).cloned().flatten());
                source.columns = columns.collect();
            }
            return Some(source);
        }
        let projection = plan.downcast_ref::<ProjectionExec>()?;
        let mut source = Source::of(projection.input())?;
        let schema = projection.input().schema();
        let columns = projection.expr().iter().map(|of| match of.expr.downcast_ref::<Column>() {
            Some(column) => source.columns.get(column.index()).cloned().flatten(),
            None => source.number(&of.expr, &schema).map(Known::Number),
        });
        source.columns = columns.collect();
        Some(source)
    }

    /// Whether the scan itself already drops every row that the predicate rejects.
    fn chooses(&self, predicate: &Arc<dyn PhysicalExpr>) -> bool {
        let Some(scan) = self.scan.downcast_ref::<TableScan>() else { return false };
        let access: &Access = scan.access();
        let Some(residual) = access.residual.clone().filter(|_| access.conditions.is_some()) else {
            return false;
        };
        let known: Vec<String> = residual.conjuncts().iter().map(|node| format!("{node:?}")).collect();
        split_conjunction(predicate)
            .into_iter()
            .all(|part| self.condition(part).is_some_and(|node| known.contains(&format!("{node:?}"))))
    }

    /// Translates a condition on one or two columns into the form in which scans hold it.
    fn condition(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Node> {
        let slot = |expr: &Arc<dyn PhysicalExpr>| match self.known(expr)? {
            Known::Column(slot, kind) => {
                let scale = kind.decimal.map_or(0, |(_, scale)| scale);
                Some((Node::Slot { slot: *slot, scale }, kind))
            }
            Known::Number(_) => None,
        };
        let value = |expr: &Arc<dyn PhysicalExpr>, kind: &ColumnType| {
            datum(expr.downcast_ref::<Literal>()?.value(), kind).map(Node::Const)
        };
        if let Some(list) = expr.downcast_ref::<InListExpr>() {
            let (operand, kind) = slot(list.expr())?;
            let values = list.list().iter().map(|item| value(item, kind)).collect::<Option<_>>()?;
            let negated = list.negated();
            return Some(Node::In { operand: Box::new(operand), list: values, negated });
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        if *binary.op() == Operator::Or {
            return one_of(alternatives(expr).into_iter().map(|part| self.condition(part)));
        }
        let comparison = comparison_of(*binary.op())?;
        if let (Some((left, _)), Some((right, _))) = (slot(binary.left()), slot(binary.right())) {
            return Some(Node::Compare(comparison, Box::new([left, right])));
        }
        let (column, other, comparison) = match slot(binary.left()) {
            Some(column) => (column, binary.right(), comparison),
            None => (slot(binary.right())?, binary.left(), comparison.flipped()),
        };
        Some(Node::Compare(comparison, Box::new([column.0, value(other, column.1)?])))
    }

    fn known(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<&Known> {
        self.columns.get(expr.downcast_ref::<Column>()?.index())?.as_ref()
    }

    /// Returns the table column that an expression names.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, ColumnType)> {
        match self.known(expr)? {
            Known::Column(column, kind) => Some((*column, kind.clone())),
            Known::Number(_) => None,
        }
    }

    /// Translates an expression into a formula over integers. `None` where that is impossible.
    fn number(&mut self, expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Number> {
        if expr.is::<Column>() {
            return match self.known(expr)?.clone() {
                Known::Number(number) => Some(number),
                Known::Column(column, kind) => self.number_of(column, kind),
            };
        }
        if let Some(literal) = expr.downcast_ref::<Literal>() {
            let ScalarValue::Decimal128(Some(value), _, _) = literal.value() else { return None };
            let step = self.formulas.step(Step::Constant(i64::try_from(*value).ok()?));
            return Some(Number { step, kind: literal.value().data_type() });
        }
        let kind = expr.data_type(schema).ok()?;
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let of = self.number(cast.expr(), schema)?;
            return self.cast(of, kind);
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let (left, right) = (self.number(binary.left(), schema)?, self.number(binary.right(), schema)?);
        let (left_scale, right_scale) = (scale_of(&left.kind)?, scale_of(&right.kind)?);
        let scale = scale_of(&kind)?;
        let step = match binary.op() {
            Operator::Multiply if left_scale + right_scale == scale => Step::Multiply(left.step, right.step),
            Operator::Plus => Step::Add(
                self.raised(left.step, left_scale, scale)?,
                self.raised(right.step, right_scale, scale)?,
            ),
            Operator::Minus => Step::Subtract(
                self.raised(left.step, left_scale, scale)?,
                self.raised(right.step, right_scale, scale)?,
            ),
            _ => return None,
        };
        Some(Number { step: self.formulas.step(step), kind })
    }

    fn number_of(&mut self, column: usize, kind: ColumnType) -> Option<Number> {
        let is_whole = matches!(
            kind.kind,
            Type::SmallInt
                | Type::Int
                | Type::BigInt
                | Type::Decimal
                | Type::Date
                | Type::Time
                | Type::Timestamp
        );
        is_whole.then(|| {
            let number = Number { step: self.formulas.step(Step::Column(column)), kind: data_type(&kind) };
            self.read.push((column, kind));
            number
        })
    }

    /// Rescales a number to more digits after the decimal point.
    fn raised(&mut self, step: usize, from: u32, to: u32) -> Option<usize> {
        if from == to {
            return Some(step);
        }
        let by = self.formulas.step(Step::Constant(i64::try_from(pow10(to.checked_sub(from)?)?).ok()?));
        Some(self.formulas.step(Step::Multiply(step, by)))
    }

    /// Translates a cast. `None` unless it is lossless.
    fn cast(&mut self, of: Number, to: DataType) -> Option<Number> {
        let digits = |kind: &DataType| match kind {
            DataType::Int16 => Some(5),
            DataType::Int32 => Some(10),
            DataType::Int64 => Some(19),
            _ => None,
        };
        match (&of.kind, &to) {
            (from, to) if from == to => Some(of),
            (DataType::Int16, DataType::Int32 | DataType::Int64) | (DataType::Int32, DataType::Int64) => {
                Some(Number { step: of.step, kind: to })
            }
            (from, DataType::Decimal128(precision, _)) => {
                let scale = scale_of(&to)?;
                let (whole, own_scale) = match from {
                    DataType::Decimal128(precision, _) => {
                        let own = scale_of(from)?;
                        (u32::from(*precision).checked_sub(own)?, own)
                    }
                    other => (digits(other)?, 0),
                };
                if u32::from(*precision).checked_sub(scale)? < whole {
                    return None;
                }
                let step = self.raised(of.step, own_scale, scale)?;
                Some(Number { step, kind: to })
            }
            _ => None,
        }
    }

    /// Adds the states that one aggregate keeps per group. `fields` yields the types of its state
    /// columns.
    fn states_of<'f>(
        &mut self,
        (function, schema): (&AggregateFunctionExpr, &SchemaRef),
        fields: &mut impl Iterator<Item = &'f DataType>,
        asked: &mut Vec<Asked>,
        states: &mut Vec<State>,
    ) -> Option<()> {
        if function.is_distinct() || !function.order_bys().is_empty() {
            return None;
        }
        let [argument] = &function.expressions()[..] else { return None };
        let mut ask = |asking: Asked| {
            asked.iter().position(|known| *known == asking).unwrap_or_else(|| {
                asked.push(asking);
                asked.len() - 1
            })
        };
        let name = function.fun().name();
        if name == "count"
            && let Some(literal) = argument.downcast_ref::<Literal>()
        {
            let is_count = !literal.value().is_null() && *fields.next()? == DataType::Int64;
            states.push(is_count.then_some(State::Rows)?);
            return Some(());
        }
        let Number { step, kind } = self.number(argument, schema)?;
        let sum = Asked { step, sum: true, greatest: None };
        // A sum of decimals keeps the scale of its operand. For other numbers only a sum of bigints
        // has the same type.
        let is_sum_of = |field: &DataType| match (field, &kind) {
            (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale), DataType::Decimal128(..)) => {
                u32::try_from(*scale).ok() == scale_of(&kind)
            }
            (DataType::Int64, DataType::Int64) => true,
            _ => false,
        };
        match name {
            "count" => {
                let is_count = *fields.next()? == DataType::Int64;
                let values = ask(Asked { step, sum: false, greatest: None });
                states.push(is_count.then_some(State::Values(values))?);
            }
            "sum" => {
                let sum = fields.next().filter(|field| is_sum_of(field)).map(|_| ask(sum))?;
                states.push(State::Sum(sum));
            }
            "avg" => {
                let is_count = *fields.next()? == DataType::UInt64;
                let sum = fields.next().filter(|field| is_count && is_sum_of(field)).map(|_| ask(sum))?;
                states.extend([State::Divisor(sum), State::Sum(sum)]);
            }
            "min" | "max" => {
                let is_same = *fields.next()? == kind;
                let best = Asked { step, sum: false, greatest: Some(name == "max") };
                states.push(State::Best(is_same.then(|| ask(best))?));
            }
            _ => return None,
        }
        Some(())
    }
}
