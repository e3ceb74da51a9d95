//! Joins a plan with the results of a subquery for each of its rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality, TableReference};
use datafusion::error::Result;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    Aggregate, Expr, FetchType, Filter, Join, JoinConstraint, JoinType, LogicalPlan, LogicalPlanBuilder,
    Projection, Subquery, SubqueryAlias, cast, lit, not, when,
};

use super::push::{Domain, Push};
use super::{Unnesting, columns_of, has, outer_columns, refused};
use crate::general::aggregates::keeping;
use crate::general::functions::single_value;

/// The results of a subquery for the values of a domain: the columns of the domain and its own, all
/// under unique names.
struct Computed {
    plan: LogicalPlan,
    /// The outer columns, each with the key column to compare it with. Without keys, the subquery
    /// has the same result for all rows.
    keys: Vec<(Expr, Expr)>,
    values: Vec<Column>,
}

impl Computed {
    fn key_columns(&self) -> Vec<Expr> {
        self.keys.iter().map(|(_, key)| key.clone()).collect()
    }
}

/// Returns the correlated subquery on the right of a lateral join, with its alias.
pub(super) fn lateral(plan: &LogicalPlan) -> Option<(&Subquery, Option<&TableReference>)> {
    match plan {
        LogicalPlan::Subquery(subquery) => Some((subquery, None)),
        LogicalPlan::SubqueryAlias(alias) => match &*alias.input {
            LogicalPlan::Subquery(subquery) => Some((subquery, Some(&alias.alias))),
            _ => None,
        },
        _ => None,
    }
}

impl Unnesting {
    /// Joins `input` with the result of the subquery in an expression, and returns the replacement
    /// of the expression. `base` contains the rows of `input` for which the subquery is computed.
    pub(super) fn attach(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        expr: Expr,
    ) -> Result<(LogicalPlan, Expr)> {
        match expr {
            Expr::ScalarSubquery(subquery) => self.attach_value(base, input, &subquery),
            Expr::Exists(exists) => {
                let (plan, found) = self.attach_mark(base, input, &exists.subquery)?;
                Ok((plan, if exists.negated { found.is_null() } else { found.is_not_null() }))
            }
            Expr::InSubquery(within) => {
                let (plan, found) = self.attach_member(base, input, &within.expr, &within.subquery)?;
                Ok((plan, if within.negated { not(found) } else { found }))
            }
            _ => Err(refused("ANY or ALL")),
        }
    }

    /// Turns a part of a condition into a semijoin or antijoin with `input`, if it is EXISTS or IN
    /// and its NULL results do not matter. Otherwise returns the part.
    pub(super) fn semi_join(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        part: Expr,
    ) -> Result<(LogicalPlan, Option<Expr>)> {
        let (part, opposite) = match part {
            Expr::Not(inner) if matches!(*inner, Expr::Exists(_)) => (*inner, true),
            part => (part, false),
        };
        let (computed, negated) = match &part {
            Expr::Exists(exists) => {
                (self.compute(base, &exists.subquery.subquery, false)?, exists.negated != opposite)
            }
            Expr::InSubquery(within) if !within.negated && !super::has_subquery(&within.expr) => {
                let mut computed = self.compute(base, &within.subquery.subquery, true)?;
                let value =
                    computed.values.first().cloned().map(Expr::Column).ok_or_else(|| refused("no column"))?;
                computed.plan = filtered(computed.plan, value.clone().is_not_null())?;
                computed.keys.push((Expr::clone(&within.expr), value));
                (computed, false)
            }
            _ => return Ok((input, Some(part))),
        };
        let kind = if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        Ok((joined(input, computed.plan, computed.keys, kind)?, None))
    }

    /// Computes a subquery for all values that occur in the rows of `base`.
    fn compute(&mut self, base: &LogicalPlan, subquery: &LogicalPlan, with_value: bool) -> Result<Computed> {
        let mut outer = outer_columns(subquery)?;
        outer.retain(|column| has(base.schema(), column));
        let width = if with_value { 1 } else { 0 };
        let own: Vec<Column> = subquery.schema().columns().into_iter().take(width).collect();
        let (plan, found) = if outer.is_empty() {
            (subquery.clone(), Vec::new())
        } else {
            let domain = Domain::new(base, outer.clone())?;
            Push { names: self, domain: &domain }.push(subquery.clone())?
        };
        let mut exprs = Vec::new();
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (outer, key) in outer.into_iter().zip(found) {
            let name = self.name("key of subquery");
            exprs.push(Expr::Column(key).alias(&name));
            keys.push((Expr::Column(outer), Expr::Column(Column::new_unqualified(name))));
        }
        for column in own {
            let name = self.name("value of subquery");
            exprs.push(Expr::Column(column).alias(&name));
            values.push(Column::new_unqualified(name));
        }
        if exprs.is_empty() {
            exprs.push(lit(true).alias(self.name("row of subquery")));
        }
        let plan = LogicalPlanBuilder::from(plan).project(exprs)?.build()?;
        Ok(Computed { plan, keys, values })
    }

    fn attach_value(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        subquery: &Subquery,
    ) -> Result<(LogicalPlan, Expr)> {
        let is_single = has_one_row(&subquery.subquery)?;
        let computed = self.compute(base, &subquery.subquery, true)?;
        let mut value =
            computed.values.first().cloned().map(Expr::Column).ok_or_else(|| refused("no column"))?;
        let mut plan = computed.plan;
        if !is_single {
            let name = self.name("values of subquery");
            let all = keeping(array_agg_udaf()).call(vec![value]).alias(&name);
            let groups = computed.keys.iter().map(|(_, key)| key.clone()).collect();
            plan = LogicalPlan::Aggregate(Aggregate::try_new(plan.into(), groups, vec![all])?);
            value = single_value::single_value().call(vec![Expr::Column(Column::new_unqualified(name))]);
        }
        Ok((joined(input, plan, computed.keys, JoinType::Left)?, value))
    }

    /// Adds a column that is NULL where the subquery has no row.
    fn attach_mark(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        subquery: &Subquery,
    ) -> Result<(LogicalPlan, Expr)> {
        let computed = self.compute(base, &subquery.subquery, false)?;
        let name = self.name("mark of subquery");
        let groups = computed.key_columns();
        let mark = count(lit(1_i64)).alias(&name);
        let plan = Aggregate::try_new(computed.plan.into(), groups, vec![mark])?;
        let mut plan = LogicalPlan::Aggregate(plan);
        let mark = Expr::Column(Column::new_unqualified(name));
        if computed.keys.is_empty() {
            // A count without groups returns a row even for no input.
            plan = filtered(plan, mark.clone().gt(lit(0_i64)))?;
        }
        Ok((joined(input, plan, computed.keys, JoinType::Left)?, mark))
    }

    /// Tests whether a value is among those of a subquery. The result is NULL where it is unknown.
    fn attach_member(
        &mut self,
        base: &LogicalPlan,
        input: LogicalPlan,
        expr: &Expr,
        subquery: &Subquery,
    ) -> Result<(LogicalPlan, Expr)> {
        let computed = self.compute(base, &subquery.subquery, true)?;
        let value = computed.values.first().cloned().map(Expr::Column).ok_or_else(|| refused("no column"))?;
        let (rows, known, hit) =
            (self.name("rows of subquery"), self.name("known of subquery"), self.name("hit of subquery"));
        let column = |name: &str| Expr::Column(Column::new_unqualified(name));
        let counts = vec![count(lit(1_i64)).alias(&rows), count(value.clone()).alias(&known)];
        let plan = Arc::new(computed.plan.clone());
        let counted = LogicalPlan::Aggregate(Aggregate::try_new(plan, computed.key_columns(), counts)?);
        let input = joined(input, counted, computed.keys.clone(), JoinType::Left)?;
        // The key columns under other names, since both results are joined with the outer rows.
        let (mut keys, mut groups) = (Vec::new(), Vec::new());
        for (outer, key) in computed.keys {
            let name = self.name("key of subquery");
            groups.push(key.alias(&name));
            keys.push((outer, column(&name)));
        }
        let name = self.name("value of subquery");
        groups.push(value.clone().alias(&name));
        keys.push((expr.clone(), column(&name)));
        let there = filtered(computed.plan, value.is_not_null())?;
        let hits = vec![count(lit(1_i64)).alias(&hit)];
        let hits = LogicalPlan::Aggregate(Aggregate::try_new(there.into(), groups, hits)?);
        let plan = joined(input, hits, keys, JoinType::Left)?;
        let none = column(&rows).is_null().or(column(&rows).eq(lit(0_i64)));
        let unknown = expr.clone().is_null().or(column(&known).lt(column(&rows)));
        let found = when(column(&hit).is_not_null(), lit(true))
            .when(none, lit(false))
            .when(unknown, cast(lit(datafusion::common::ScalarValue::Null), DataType::Boolean))
            .otherwise(lit(false))?;
        Ok((plan, found))
    }

    /// Rewrites a lateral join.
    pub(super) fn lateral_join(&mut self, join: Join) -> Result<LogicalPlan> {
        let Some((subquery, alias)) = lateral(&join.right) else { return Ok(LogicalPlan::Join(join)) };
        let inner = LogicalPlan::clone(&subquery.subquery);
        let mut outer = outer_columns(&inner)?;
        outer.retain(|column| has(join.left.schema(), column));
        if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || !join.on.is_empty() {
            return Err(refused("a RIGHT or FULL join around it"));
        }
        let (plan, found) = if outer.is_empty() {
            (inner.clone(), Vec::new())
        } else {
            let domain = Domain::new(&join.left, outer.clone())?;
            Push { names: self, domain: &domain }.push(inner.clone())?
        };
        let mut exprs = columns_of(&inner);
        let mut renames = Vec::new();
        for (outer, key) in outer.into_iter().zip(found) {
            let name = self.name("key of subquery");
            exprs.push(Expr::Column(key).alias(&name));
            let relation = alias.cloned();
            renames.push((Expr::Column(outer), Expr::Column(Column::new(relation, name))));
        }
        let mut plan = LogicalPlan::Projection(Projection::try_new(exprs, plan.into())?);
        if let Some(alias) = alias {
            plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(plan.into(), alias.clone())?);
        }
        let columns = join.schema.columns().into_iter().map(Expr::Column);
        // The condition of an outer join must be part of the join, together with the keys.
        let (on_filter, above) = match join.join_type {
            JoinType::Left => (join.filter, None),
            _ => (None, join.filter),
        };
        let nulls = nulls_of(&renames);
        let joined = Join::try_new(
            join.left,
            plan.into(),
            renames,
            on_filter,
            join.join_type,
            JoinConstraint::On,
            nulls,
            false,
        )?;
        let joined = match above {
            Some(filter) => {
                let filter = Filter::try_new(filter, LogicalPlan::Join(joined).into())?;
                self.filter(filter)?
            }
            None => LogicalPlan::Join(joined),
        };
        LogicalPlanBuilder::from(joined).project(columns)?.build()
    }
}

fn filtered(plan: LogicalPlan, predicate: Expr) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Filter(Filter::try_new(predicate, plan.into())?))
}

/// Returns whether a join on outer values takes NULLs for equal. One without any does not: the
/// optimizer may add keys from the statement's own conditions, whose NULLs are not equal.
fn nulls_of(keys: &[(Expr, Expr)]) -> NullEquality {
    if keys.is_empty() { NullEquality::NullEqualsNothing } else { NullEquality::NullEqualsNull }
}

/// Joins on equal values, with NULLs as equal.
pub(super) fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    keys: Vec<(Expr, Expr)>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    let filter = keys.is_empty().then(|| lit(true));
    let nulls = nulls_of(&keys);
    let join =
        Join::try_new(left.into(), right.into(), keys, filter, kind, JoinConstraint::On, nulls, false)?;
    Ok(LogicalPlan::Join(join))
}

/// Whether a query returns at most one row, whatever its tables contain.
fn has_one_row(plan: &LogicalPlan) -> Result<bool> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => Ok(aggregate.group_expr.is_empty()),
        LogicalPlan::Limit(limit) => {
            Ok(matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0 | 1)))
                || has_one_row(&limit.input)?)
        }
        LogicalPlan::EmptyRelation(_) => Ok(true),
        LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Subquery(_) => match plan.inputs().first() {
            Some(input) => has_one_row(input),
            None => Ok(false),
        },
        _ => Ok(false),
    }
}
