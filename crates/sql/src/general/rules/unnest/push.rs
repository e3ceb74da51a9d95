//! Computes a subquery for all values of a domain together.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::builder::unnest_with_options;
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{
    Aggregate, Distinct, DistinctOn, Expr, ExprFunctionExt, Filter, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, Projection, Sort, SubqueryAlias, Union, Values, Window, binary_expr, lit,
};

use super::attach::joined;
use super::{Unnesting, columns_of, named, outer_columns, refused};
use crate::general::tree::walk::{Walk, WalkPlan};

/// The distinct combinations of outer values for which a subquery is computed.
#[derive(Debug)]
pub(super) struct Domain {
    plan: LogicalPlan,
    outer: Vec<Column>,
}

impl Domain {
    /// Returns the combinations of these columns in the rows of `base`.
    pub fn new(base: &LogicalPlan, outer: Vec<Column>) -> Result<Self> {
        let mut is_volatile = false;
        base.look_with_subqueries(|plan| {
            plan.look_at_expressions(|expr| {
                is_volatile |= expr.is_volatile();
                Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
            })
        })?;
        if is_volatile {
            return Err(refused("random values around it"));
        }
        let plan = LogicalPlanBuilder::from(base.clone())
            .project(outer.iter().cloned().map(Expr::Column))?
            .distinct()?
            .build()?;
        Ok(Domain { plan, outer })
    }
}

/// The rewrite of one subquery.
pub(super) struct Push<'a> {
    pub names: &'a mut Unnesting,
    pub domain: &'a Domain,
}

/// A plan with its own columns and those of the domain, and the latter columns.
type Pushed = (LogicalPlan, Vec<Column>);

/// Returns a test for equality of two values, with NULLs as equal.
fn same(left: &Column, right: &Column) -> Expr {
    let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
    binary_expr(left, Operator::IsNotDistinctFrom, right)
}

fn pairs(left: &[Column], right: &[Column]) -> Vec<(Expr, Expr)> {
    let pair = |(left, right): (&Column, &Column)| (Expr::Column(left.clone()), Expr::Column(right.clone()));
    left.iter().zip(right).map(pair).collect()
}

fn as_columns(columns: &[Column]) -> impl Iterator<Item = Expr> + '_ {
    columns.iter().cloned().map(Expr::Column)
}

impl Push<'_> {
    /// Returns a plan that computes the rows of `plan` for each combination of the domain.
    pub fn push(&mut self, plan: LogicalPlan) -> Result<Pushed> {
        if !self.is_asked(&plan)? {
            let (domain, keys) = self.instance()?;
            let plan = match plan {
                LogicalPlan::EmptyRelation(empty)
                    if empty.produce_one_row && empty.schema.fields().is_empty() =>
                {
                    domain
                }
                plan => LogicalPlanBuilder::from(domain).cross_join(plan)?.build()?,
            };
            return Ok((plan, keys));
        }
        match plan {
            LogicalPlan::Filter(filter) => {
                let (input, keys) = self.push(LogicalPlan::clone(&filter.input))?;
                let predicate = self.inside(filter.predicate, &keys)?;
                Ok((LogicalPlan::Filter(Filter::try_new(predicate, input.into())?), keys))
            }
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::SubqueryAlias(alias) => {
                let (input, keys) = self.push(LogicalPlan::clone(&alias.input))?;
                let plan = SubqueryAlias::try_new(input.into(), alias.alias.clone())?;
                let rename = |key: Column| Column::new(Some(alias.alias.clone()), key.name);
                Ok((LogicalPlan::SubqueryAlias(plan), keys.into_iter().map(rename).collect()))
            }
            LogicalPlan::Subquery(subquery) => self.push(LogicalPlan::clone(&subquery.subquery)),
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => self.totals(aggregate),
            LogicalPlan::Aggregate(aggregate) => self.groups(aggregate),
            LogicalPlan::Window(window) => self.window(window),
            LogicalPlan::Sort(sort) => self.sort(sort),
            LogicalPlan::Limit(limit) => self.limit(limit),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (input, keys) = self.push(LogicalPlan::clone(&input))?;
                Ok((LogicalPlan::Distinct(Distinct::All(input.into())), keys))
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.distinct_on(distinct),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::Unnest(unnest) => {
                let schema = Arc::clone(&unnest.schema);
                let (input, keys) = self.push(LogicalPlan::clone(&unnest.input))?;
                let plan = unnest_with_options(input, unnest.exec_columns, unnest.options)?;
                self.under_names(plan, &schema, &keys)
            }
            LogicalPlan::RecursiveQuery(_) => Err(refused("WITH RECURSIVE")),
            _ => Err(refused("this operator")),
        }
    }

    fn is_asked(&self, plan: &LogicalPlan) -> Result<bool> {
        Ok(outer_columns(plan)?.iter().any(|column| self.domain.outer.contains(column)))
    }

    /// Returns the domain with its columns under unique names.
    fn instance(&mut self) -> Result<Pushed> {
        let names: Vec<String> = self.domain.outer.iter().map(|_| self.names.name("outer value")).collect();
        let exprs = self.domain.outer.iter().zip(&names);
        let exprs: Vec<Expr> = exprs.map(|(column, name)| Expr::Column(column.clone()).alias(name)).collect();
        let plan = LogicalPlanBuilder::from(self.domain.plan.clone()).project(exprs)?.build()?;
        Ok((plan, names.into_iter().map(Column::new_unqualified).collect()))
    }

    /// Replaces the outer references in an expression by columns of the domain.
    fn inside(&self, expr: Expr, keys: &[Column]) -> Result<Expr> {
        let changed = expr.walk_up(|expr| {
            let at = match &expr {
                Expr::OuterReferenceColumn(_, column) => {
                    self.domain.outer.iter().position(|outer| outer == column)
                }
                _ => None,
            };
            Ok(match at.and_then(|at| keys.get(at)) {
                Some(key) => Transformed::yes(Expr::Column(key.clone())),
                None => Transformed::no(expr),
            })
        })?;
        Ok(changed.data)
    }

    fn all_inside(&self, exprs: Vec<Expr>, keys: &[Column]) -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| self.inside(expr, keys)).collect()
    }

    fn sorts_inside(&self, by: Vec<By>, keys: &[Column]) -> Result<Vec<By>> {
        let inside = |by: By| Ok(By { expr: self.inside(by.expr, keys)?, ..by });
        by.into_iter().map(inside).collect()
    }

    /// Renames the columns of a plan to the names of a schema, and keeps those of the domain.
    fn under_names(&self, plan: LogicalPlan, schema: &DFSchema, keys: &[Column]) -> Result<Pushed> {
        let own = plan.schema().columns().into_iter().filter(|column| !keys.contains(column));
        let mut exprs: Vec<Expr> =
            own.zip(schema.iter()).map(|(column, name)| named(Expr::Column(column), name)).collect();
        exprs.extend(as_columns(keys));
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?);
        Ok((plan, keys.to_vec()))
    }

    fn projection(&mut self, projection: Projection) -> Result<Pushed> {
        let (input, keys) = self.push(LogicalPlan::clone(&projection.input))?;
        let exprs = self.all_inside(projection.expr, &keys)?;
        let mut exprs: Vec<Expr> =
            exprs.into_iter().zip(projection.schema.iter()).map(|(expr, name)| named(expr, name)).collect();
        exprs.extend(as_columns(&keys));
        Ok((LogicalPlan::Projection(Projection::try_new(exprs, input.into())?), keys))
    }

    /// Rewrites an aggregate without groups, which returns a row for each combination even if there
    /// are no rows to aggregate. Such a combination has a single NULL-extended row from a left
    /// join, and a filter on each aggregate excludes that row.
    fn totals(&mut self, aggregate: Aggregate) -> Result<Pushed> {
        let (input, inner) = self.push(LogicalPlan::clone(&aggregate.input))?;
        let totals = self.all_inside(aggregate.aggr_expr, &inner)?;
        let found = self.names.name("found");
        let mut exprs = columns_of(&input);
        exprs.push(lit(true).alias(&found));
        let found = Expr::Column(Column::new_unqualified(found)).is_not_null();
        let input = LogicalPlan::Projection(Projection::try_new(exprs, input.into())?);
        let (domain, keys) = self.instance()?;
        let input = joined(domain, input, pairs(&keys, &inner), JoinType::Left)?;
        let filtered = |total: Expr| {
            let changed = total.walk_up(|expr| match expr {
                Expr::AggregateFunction(mut function) => {
                    let own = function.params.filter.take();
                    let both = match own {
                        Some(own) => found.clone().and(*own),
                        None => found.clone(),
                    };
                    function.params.filter = Some(Box::new(both));
                    Ok(Transformed::yes(Expr::AggregateFunction(function)))
                }
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(changed.data)
        };
        let totals = totals.into_iter().map(filtered).collect::<Result<Vec<_>>>()?;
        let groups = as_columns(&keys).collect();
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(input.into(), groups, totals)?);
        self.under_names(plan, &aggregate.schema, &keys)
    }

    fn groups(&mut self, aggregate: Aggregate) -> Result<Pushed> {
        if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
            return Err(refused("GROUPING SETS"));
        }
        let (input, keys) = self.push(LogicalPlan::clone(&aggregate.input))?;
        let mut groups = self.all_inside(aggregate.group_expr, &keys)?;
        groups.extend(as_columns(&keys));
        let totals = self.all_inside(aggregate.aggr_expr, &keys)?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(input.into(), groups, totals)?);
        self.under_names(plan, &aggregate.schema, &keys)
    }

    fn window(&mut self, window: Window) -> Result<Pushed> {
        let own = window.input.schema().columns();
        let (input, keys) = self.push(LogicalPlan::clone(&window.input))?;
        let width = input.schema().fields().len();
        let apart = |expr: Expr| {
            let changed = self.inside(expr, &keys)?.walk_up(|expr| match expr {
                Expr::WindowFunction(mut function) => {
                    let mut by: Vec<Expr> = as_columns(&keys).collect();
                    by.append(&mut function.params.partition_by);
                    function.params.partition_by = by;
                    Ok(Transformed::yes(Expr::WindowFunction(function)))
                }
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(changed.data)
        };
        let windows = window.window_expr.into_iter().map(apart).collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlan::Window(Window::try_new(windows, input.into())?);
        let results = plan.schema().columns().into_iter().skip(width);
        let names = window.schema.iter();
        let mut exprs: Vec<Expr> = own
            .into_iter()
            .chain(results)
            .zip(names)
            .map(|(column, name)| named(Expr::Column(column), name))
            .collect();
        exprs.extend(as_columns(&keys));
        Ok((LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?), keys))
    }

    fn sort(&mut self, sort: Sort) -> Result<Pushed> {
        if let Some(fetch) = sort.fetch {
            let fetch = i64::try_from(fetch).unwrap_or(i64::MAX);
            let input = LogicalPlan::Sort(Sort { fetch: None, ..sort });
            let fetch = Some(Box::new(lit(fetch)));
            return self.limit(Limit { skip: None, fetch, input: input.into() });
        }
        let (input, keys) = self.push(LogicalPlan::clone(&sort.input))?;
        let expr = self.sorts_inside(sort.expr, &keys)?;
        Ok((LogicalPlan::Sort(Sort { expr, input: input.into(), fetch: None }), keys))
    }

    /// Rewrites a limit to the first rows of each combination.
    fn limit(&mut self, limit: Limit) -> Result<Pushed> {
        match LogicalPlan::clone(&limit.input) {
            // Expressions on single rows can be computed after the limit.
            LogicalPlan::Projection(projection) => {
                let input = LogicalPlan::Limit(Limit { input: projection.input, ..limit });
                let expr = projection.expr;
                return self.projection(Projection::try_new_with_schema(
                    expr,
                    input.into(),
                    projection.schema,
                )?);
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = LogicalPlan::Limit(Limit { input: alias.input, ..limit });
                let plan = SubqueryAlias::try_new(input.into(), alias.alias)?;
                return self.push(LogicalPlan::SubqueryAlias(plan));
            }
            LogicalPlan::Subquery(subquery) => {
                return self.limit(Limit { input: subquery.subquery, ..limit });
            }
            _ => {}
        }
        let columns = columns_of(&limit.input);
        let (input, order) = match LogicalPlan::clone(&limit.input) {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (LogicalPlan::clone(&sort.input), sort.expr),
            input => (input, Vec::new()),
        };
        let (input, keys) = self.push(input)?;
        let order = self.sorts_inside(order, &keys)?;
        let name = self.names.name("number of row");
        let by: Vec<Expr> = as_columns(&keys).collect();
        let number = row_number().partition_by(by).order_by(order).build()?.alias(&name);
        let number_column = Expr::Column(Column::new_unqualified(name));
        let number_column = datafusion::logical_expr::cast(number_column, arrow::datatypes::DataType::Int64);
        let plan = LogicalPlanBuilder::from(input).window([number])?.build()?;
        let count = |expr: Option<Box<Expr>>| {
            let expr = expr.map(|expr| self.inside(*expr, &keys)).transpose()?;
            let as_number = |expr| datafusion::logical_expr::cast(expr, arrow::datatypes::DataType::Int64);
            Ok::<_, datafusion::error::DataFusionError>(expr.map(as_number))
        };
        let (skip, fetch) = (count(limit.skip)?, count(limit.fetch)?);
        // LIMIT NULL means no limit, and OFFSET NULL means no offset.
        let skip = skip.map(|skip| coalesce(vec![skip, lit(0_i64)]));
        let number = match &skip {
            Some(skip) => number_column.clone() - skip.clone(),
            None => number_column.clone(),
        };
        let mut condition = skip.map(|skip| number_column.gt(skip));
        if let Some(fetch) = fetch {
            let most = match fetch {
                Expr::Literal(ScalarValue::Int64(Some(_)), _) => number.lt_eq(fetch),
                fetch => fetch.clone().is_null().or(number.lt_eq(fetch)),
            };
            condition = Some(match condition {
                Some(condition) => condition.and(most),
                None => most,
            });
        }
        let plan = match condition {
            Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, plan.into())?),
            None => plan,
        };
        let mut exprs = columns;
        exprs.extend(as_columns(&keys));
        Ok((LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?), keys))
    }

    fn distinct_on(&mut self, distinct: DistinctOn) -> Result<Pushed> {
        let (input, keys) = self.push(LogicalPlan::clone(&distinct.input))?;
        let mut on: Vec<Expr> = as_columns(&keys).collect();
        on.extend(self.all_inside(distinct.on_expr, &keys)?);
        let mut select = self.all_inside(distinct.select_expr, &keys)?;
        select.extend(as_columns(&keys));
        let sort = match distinct.sort_expr {
            Some(sort) => {
                let mut by: Vec<By> = as_columns(&keys).map(|key| key.sort(true, false)).collect();
                by.extend(self.sorts_inside(sort, &keys)?);
                Some(by)
            }
            None => None,
        };
        let plan = DistinctOn::try_new(on, select, sort, input.into())?;
        self.under_names(LogicalPlan::Distinct(Distinct::On(plan)), &distinct.schema, &keys)
    }

    fn union(&mut self, union: Union) -> Result<Pushed> {
        let mut inputs = Vec::with_capacity(union.inputs.len());
        let mut all = Vec::new();
        for input in union.inputs {
            let columns = columns_of(&input);
            let (plan, keys) = self.push(LogicalPlan::clone(&input))?;
            let mut exprs = columns;
            if all.is_empty() {
                all = keys.clone();
            }
            exprs.extend(as_columns(&keys).zip(&all).map(|(key, name)| key.alias(&name.name)));
            inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?)));
        }
        let all: Vec<Column> = all.into_iter().map(|key| Column::new_unqualified(key.name)).collect();
        let plan = Union::try_new(inputs)?;
        let names = plan.schema.columns();
        let exprs = names.into_iter().zip(union.schema.iter());
        let mut exprs: Vec<Expr> = exprs.map(|(column, name)| named(Expr::Column(column), name)).collect();
        exprs.extend(as_columns(&all));
        let plan = LogicalPlan::Union(plan);
        Ok((LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?), all))
    }

    fn values(&mut self, values: Values) -> Result<Pushed> {
        let mut rows = Vec::with_capacity(values.values.len());
        for row in values.values {
            let none = LogicalPlanBuilder::empty(true).build()?;
            let row = row.into_iter().zip(values.schema.iter());
            let exprs: Vec<Expr> = row.map(|(expr, name)| named(expr, name)).collect();
            let schema = Arc::clone(&values.schema);
            rows.push(Projection::try_new_with_schema(exprs, none.into(), schema)?);
        }
        if rows.len() == 1 {
            return match rows.pop() {
                Some(row) => self.projection(row),
                None => Err(refused("VALUES without rows")),
            };
        }
        let inputs = rows.into_iter().map(|row| Arc::new(LogicalPlan::Projection(row))).collect();
        self.union(Union { inputs, schema: values.schema })
    }

    fn join(&mut self, join: Join) -> Result<Pushed> {
        let (left_asks, right_asks) = (self.is_asked(&join.left)?, self.is_asked(&join.right)?);
        let (to_left, to_right) = match join.join_type {
            JoinType::Inner => (left_asks || !right_asks, right_asks),
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => (true, right_asks),
            JoinType::Right => (left_asks, true),
            JoinType::Full => (true, true),
            _ => return Err(refused("this join")),
        };
        let side = |plan: &LogicalPlan, push: bool, this: &mut Self| match push {
            true => this.push(plan.clone()),
            false => Ok((plan.clone(), Vec::new())),
        };
        let (left, left_keys) = side(&join.left, to_left, self)?;
        let (right, right_keys) = side(&join.right, to_right, self)?;
        let keys = match join.join_type {
            JoinType::Right => &right_keys,
            _ if to_left => &left_keys,
            _ => &right_keys,
        };
        let inside = |expr: Expr| self.inside(expr, keys);
        let mut filter = join.filter.map(inside).transpose()?;
        let mut on = Vec::with_capacity(join.on.len());
        for (one, other) in join.on {
            on.push((inside(one)?, inside(other)?));
        }
        let mut null_equality = join.null_equality;
        if to_left && to_right {
            if on.is_empty() {
                null_equality = NullEquality::NullEqualsNull;
            }
            if null_equality == NullEquality::NullEqualsNull {
                on.extend(pairs(&left_keys, &right_keys));
            } else {
                let all = left_keys.iter().zip(&right_keys).map(|(left, right)| same(left, right));
                filter = filter.into_iter().chain(all).reduce(Expr::and);
            }
        }
        let plan = Join::try_new(
            left.into(),
            right.into(),
            on,
            filter,
            join.join_type,
            join.join_constraint,
            null_equality,
            join.null_aware,
        )?;
        let keys = keys.clone();
        let plan = LogicalPlan::Join(plan);
        let mut exprs: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        if join.join_type != JoinType::Full {
            exprs.extend(as_columns(&keys));
            return Ok((LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?), keys));
        }
        // A row without a partner has the outer values of its own side.
        let mut all = Vec::with_capacity(keys.len());
        for (left, right) in left_keys.into_iter().zip(right_keys) {
            let name = self.names.name("outer value");
            exprs.push(coalesce(vec![Expr::Column(left), Expr::Column(right)]).alias(&name));
            all.push(Column::new_unqualified(name));
        }
        Ok((LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?), all))
    }
}
