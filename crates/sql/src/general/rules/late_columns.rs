//! Columns that are fetched late: only for the rows of the result, not for all rows that were read.
//!
//! `SELECT c.id, c.name, c.address, sum(price) FROM customers c JOIN ... GROUP BY c.id, c.name,
//! c.address ORDER BY 4 DESC LIMIT 20` carries names and addresses through every join and groups by
//! them, for a result of twenty rows. But the primary key determines them. Therefore rows are
//! grouped by the key alone, and the first rows are joined with the table again by that key, which
//! takes twenty lookups ([`lookups`](crate::direct)). The idea is late materialization (Abadi,
//! Myers, DeWitt, Madden, ICDE 2007).
//!
//! ```text
//!   Sort, first 20                                       Sort
//!     Aggregate by id, name, address                       Join by id
//!       joins: all columns                                   Sort, first 20
//!                                                              Aggregate by id
//!                                                                joins: id
//!                                                            the table: id, name, address
//! ```

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Sort, TableScan, TableScanBuilder,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use cairn_vfs::sync::Arc;

use crate::general::scan::provider::Provider;

/// Rows that are worth looking up at most.
const ROWS: usize = 1_000;

/// The rule. It runs after the rule that prunes unused columns, which then runs again, and after
/// the rules that push row limits into sorts.
#[derive(Debug)]
pub(crate) struct LateColumns;

impl OptimizerRule for LateColumns {
    fn name(&self) -> &str {
        "cairn_late_columns"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Sort(sort) = &plan else { return Ok(Transformed::no(plan)) };
        if sort.fetch.is_none_or(|rows| rows > ROWS) {
            return Ok(Transformed::no(plan));
        }
        // A plan that cannot be rebuilt, for example because a name is taken, stays unchanged.
        Ok(match fetched_late(sort) {
            Ok(Some(late)) => Transformed::yes(late),
            Ok(None) | Err(_) => Transformed::no(plan),
        })
    }
}

/// A plan without the columns that are fetched late.
struct Early<'p> {
    plan: LogicalPlan,
    /// The source of each column of the original plan.
    sources: Vec<Source>,
    /// The primary key, as columns of the new plan.
    keys: Vec<Column>,
    /// The table that the late columns belong to.
    scan: &'p TableScan,
}

/// Where a column comes from.
#[derive(Clone)]
enum Source {
    Early(Column),
    /// A column of the table.
    Late(usize),
}

fn fetched_late(sort: &Sort) -> Result<Option<LogicalPlan>> {
    let Some(early) = early(&sort.input)? else { return Ok(None) };
    if sort.expr.iter().any(|by| early.is_late(&by.expr, &sort.input)) {
        return Ok(None);
    }
    let first =
        LogicalPlan::Sort(Sort { expr: sort.expr.clone(), input: Arc::new(early.plan), fetch: sort.fetch });
    let scan = early.scan;
    let schema = scan.source.schema();
    let Some(primary) = primary_key(scan) else { return Ok(None) };
    let late = early.sources.iter().filter_map(|source| match source {
        Source::Late(column) => Some(*column),
        Source::Early(_) => None,
    });
    let mut columns: Vec<usize> = primary.iter().copied().chain(late).collect();
    columns.sort_unstable();
    columns.dedup();
    // All result rows meet these filters. With them, the scan can use the same access path as
    // before.
    let filters = scan.filters.iter().filter(|filter| !filter.is_volatile()).cloned().collect();
    let table = TableScanBuilder::new(scan.table_name.clone(), Arc::clone(&scan.source))
        .with_projection(Some(columns))
        .with_filters(filters)
        .build()?;
    let name = format!("late columns of {}", scan.table_name);
    let table = LogicalPlanBuilder::from(LogicalPlan::TableScan(table)).alias(name.as_str())?.build()?;
    let of_table = |column: usize| Column::new(Some(name.as_str()), schema.field(column).name());
    let keys = primary.iter().map(|&column| of_table(column)).collect();
    let joined =
        LogicalPlanBuilder::from(first).join(table, JoinType::Inner, (early.keys, keys), None)?.build()?;
    let whole = sort.input.schema().iter().zip(early.sources).map(|((relation, field), source)| {
        let column = match source {
            Source::Early(column) => column,
            Source::Late(column) => of_table(column),
        };
        if column.relation.as_ref() == relation && column.name == *field.name() {
            Expr::Column(column)
        } else {
            Expr::Column(column).alias_qualified(relation.cloned(), field.name())
        }
    });
    let whole = Projection::try_new(whole.collect(), Arc::new(joined))?;
    let input = Arc::new(LogicalPlan::Projection(whole));
    Ok(Some(LogicalPlan::Sort(Sort { expr: sort.expr.clone(), input, fetch: None })))
}

impl Early<'_> {
    /// Whether an expression over the original plan refers to late columns.
    fn is_late(&self, expr: &Expr, whole: &LogicalPlan) -> bool {
        expr.column_refs()
            .into_iter()
            .any(|column| !matches!(self.source(column, whole), Some(Source::Early(_))))
    }

    fn source(&self, column: &Column, whole: &LogicalPlan) -> Option<&Source> {
        self.sources.get(whole.schema().maybe_index_of_column(column)?)
    }
}

/// Returns the plan without the columns that can be fetched late; `None` where there are none.
fn early(plan: &LogicalPlan) -> Result<Option<Early<'_>>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => early_groups(aggregate),
        LogicalPlan::Filter(filter) => {
            let Some(input) = early(&filter.input)? else { return Ok(None) };
            if input.is_late(&filter.predicate, &filter.input) {
                return Ok(None);
            }
            let kept = Filter::try_new(filter.predicate.clone(), Arc::new(input.plan))?;
            Ok(Some(Early { plan: LogicalPlan::Filter(kept), ..input }))
        }
        LogicalPlan::Projection(projection) => early_projection(projection),
        _ => Ok(None),
    }
}

fn early_projection(projection: &Projection) -> Result<Option<Early<'_>>> {
    let Some(input) = early(&projection.input)? else { return Ok(None) };
    let (mut kept, mut sources) = (Vec::new(), Vec::new());
    for (expr, (relation, field)) in projection.expr.iter().zip(projection.schema.iter()) {
        let passed = match unaliased(expr) {
            Expr::Column(column) => input.source(column, &projection.input),
            _ => None,
        };
        if let Some(late @ Source::Late(_)) = passed {
            sources.push(late.clone());
        } else if input.is_late(expr, &projection.input) {
            return Ok(None);
        } else {
            kept.push(expr.clone());
            sources.push(Source::Early(Column::new(relation.cloned(), field.name())));
        }
    }
    let mut keys = Vec::with_capacity(input.keys.len());
    for key in input.keys {
        let at =
            kept.iter().position(|expr| matches!(unaliased(expr), Expr::Column(column) if *column == key));
        keys.push(match at.and_then(|at| kept.get(at)) {
            Some(Expr::Alias(alias)) => Column::new(alias.relation.clone(), &alias.name),
            Some(_) => key,
            None => {
                kept.push(Expr::Column(key.clone()));
                key
            }
        });
    }
    let plan = LogicalPlan::Projection(Projection::try_new(kept, Arc::new(input.plan))?);
    Ok(Some(Early { plan, sources, keys, scan: input.scan }))
}

fn early_groups(aggregate: &Aggregate) -> Result<Option<Early<'_>>> {
    let origin_of = |expr: &Expr| match expr {
        Expr::Column(column) => {
            origin(&aggregate.input, aggregate.input.schema().maybe_index_of_column(column)?)
        }
        _ => None,
    };
    if aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
        return Ok(None);
    }
    let origins: Vec<Option<(&TableScan, usize)>> = aggregate.group_expr.iter().map(origin_of).collect();
    for (scan, _) in origins.iter().flatten() {
        let Some(primary) = primary_key(scan) else { continue };
        let column_of = |origin: &Option<(&TableScan, usize)>| {
            origin.filter(|(other, _)| std::ptr::eq(*other, *scan)).map(|(_, column)| column)
        };
        let places: Option<Vec<usize>> = primary
            .iter()
            .map(|key| origins.iter().position(|origin| column_of(origin) == Some(*key)))
            .collect();
        let Some(places) = places else { continue };
        let late = |origin| column_of(origin).filter(|column| !primary.contains(column));
        let schema = scan.source.schema();
        let is_wide = |column: usize| {
            let kind = schema.field(column).data_type();
            kind.is_string() || kind.is_binary()
        };
        // Carrying numbers along is cheaper than fetching them.
        if !origins.iter().filter_map(late).any(is_wide) {
            continue;
        }
        let groups = aggregate.group_expr.iter().zip(&origins).filter(|(_, origin)| late(origin).is_none());
        let groups = groups.map(|(expr, _)| expr.clone()).collect();
        let plan = Aggregate::try_new(Arc::clone(&aggregate.input), groups, aggregate.aggr_expr.clone())?;
        let names =
            aggregate.schema.iter().map(|(relation, field)| Column::new(relation.cloned(), field.name()));
        let names: Vec<Column> = names.collect();
        let late = origins.iter().map(late).chain(std::iter::repeat(None));
        let sources = names.iter().zip(late).map(|(name, late)| match late {
            Some(column) => Source::Late(column),
            None => Source::Early(name.clone()),
        });
        let sources = sources.collect();
        let keys = places.iter().filter_map(|place| names.get(*place).cloned()).collect();
        return Ok(Some(Early { plan: LogicalPlan::Aggregate(plan), sources, keys, scan }));
    }
    Ok(None)
}

fn unaliased(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        expr => expr,
    }
}

/// Returns the columns of a table's primary key; `None` where it has none.
fn primary_key(scan: &TableScan) -> Option<Vec<usize>> {
    let key = source_as_provider(&scan.source).ok()?.downcast_ref::<Provider>()?.primary_key();
    (!key.is_empty()).then_some(key)
}

/// Returns the table column that a column of a plan comes from, unchanged and never NULL-extended
/// by an outer join.
fn origin(plan: &LogicalPlan, at: usize) -> Option<(&TableScan, usize)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let column = scan.projection.as_ref().map_or(Some(at), |columns| columns.get(at).copied())?;
            Some((scan, column))
        }
        LogicalPlan::Projection(projection) => match unaliased(projection.expr.get(at)?) {
            Expr::Column(column) => {
                origin(&projection.input, projection.input.schema().maybe_index_of_column(column)?)
            }
            _ => None,
        },
        LogicalPlan::Filter(filter) => origin(&filter.input, at),
        LogicalPlan::SubqueryAlias(alias) => origin(&alias.input, at),
        LogicalPlan::Join(join) => {
            let left = join.left.schema().fields().len();
            match join.join_type {
                JoinType::Inner | JoinType::Left if at < left => origin(&join.left, at),
                JoinType::Inner | JoinType::Right if at >= left => origin(&join.right, at - left),
                JoinType::LeftSemi | JoinType::LeftAnti => origin(&join.left, at),
                JoinType::RightSemi | JoinType::RightAnti => origin(&join.right, at),
                _ => None,
            }
        }
        _ => None,
    }
}
