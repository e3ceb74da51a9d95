//! Physical plans that outlive a run, so that a repeated query is not planned again.
//!
//! DataFusion's plans serve a single run: operators hold its state, and our scans hold a view of
//! the database. The plan cache keeps the plan as it was before the run, with its scans *at rest*:
//! they hold no view, so that neither vacuum nor schema changes wait for them. Each run gets its
//! own operators, and scans with the view of its statement. Planning takes one to ten milliseconds,
//! preparing a cached plan some tens of microseconds.
//!
//! The values of scalar subqueries are stored where the expressions of the plan find them, and all
//! runs would share them. Therefore such a plan has one run at a time. A run that starts meanwhile
//! is planned anew.

use cairn_table::View;
use cairn_vfs::sync::Arc;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;

use crate::general::operators::aggregate_scan::AggregateScan;
use crate::general::operators::yielding::YieldExec;
use crate::general::rules::aggregate_scans::aggregate_scans;
use crate::general::rules::grouping_orders::Unordered;
use crate::general::rules::join_filters::{push_join_filters, without_join_keys};
use crate::general::rules::shared_totals::share_totals;
use crate::general::scan::TableScan;
use crate::general::tree::walk::Walk;

type Plan = Arc<dyn ExecutionPlan>;

/// A cached plan.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    plan: Plan,
    /// A token that runs hold as well, if they would share the values of scalar subqueries.
    shared: Option<RunToken>,
}

/// Held by a run as long as it may return rows.
pub(crate) type RunToken = Arc<()>;

impl CachedPlan {
    /// Caches a plan that is about to run. `None` for a plan with operators that may keep state
    /// from a run.
    ///
    /// Errors: those of rebuilding the operators.
    pub fn of(plan: &Plan) -> Result<Option<CachedPlan>> {
        let has_values = plan.holds(|plan| Ok(plan.is::<ScalarSubqueryExec>()))?;
        let shared = has_values.then(RunToken::default);
        Ok(at_rest(plan)?.map(|plan| CachedPlan { plan, shared }))
    }

    /// Returns the token that the run must hold, if any.
    pub fn run_token(&self) -> Option<RunToken> {
        self.shared.clone()
    }

    /// Returns the plan for a run with the given view. `None` when the query must be planned anew:
    /// tables have changed a lot, or the plan allows one run at a time and has one.
    ///
    /// Errors: those of dividing tables into partitions.
    pub fn awake(&self, view: &View) -> Result<Option<Plan>> {
        match &self.shared {
            Some(shared) if Arc::strong_count(shared) > 1 => Ok(None),
            _ => awake(&self.plan, view),
        }
    }
}

fn at_rest(plan: &Plan) -> Result<Option<Plan>> {
    let mut can_be_cached = true;
    plan.look(|plan| {
        can_be_cached &= plan.is::<TableScan>() || instead_of(plan).is_some() || begins_anew(plan);
        Ok(if can_be_cached { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    if !can_be_cached {
        return Ok(None);
    }
    let rests = Arc::clone(plan).walk_up(|plan| {
        Ok(match (plan.downcast_ref::<TableScan>(), instead_of(&plan)) {
            (Some(scan), _) => Transformed::yes(Arc::new(scan.at_rest()) as Plan),
            (None, Some(input)) => Transformed::yes(input),
            // The first run must not share anything with the cached plan: a join that is never
            // polled would keep its scans, and thus their view, as long as the plan exists.
            (None, None) => Transformed::yes(plan.reset_state()?),
        })
    })?;
    Ok(Some(rests.data))
}

fn awake(plan: &Plan, view: &View) -> Result<Option<Plan>> {
    let mut fits = true;
    let run = Arc::clone(plan).walk_up(|plan| {
        let Some(scan) = plan.downcast_ref::<TableScan>() else {
            return plan.reset_state().map(Transformed::yes);
        };
        Ok(match scan.with_view(view)? {
            Some(scan) => Transformed::yes(Arc::new(scan) as Plan),
            None => {
                fits = false;
                Transformed::new(plan, false, TreeNodeRecursion::Stop)
            }
        })
    })?;
    if fits { share_totals(push_join_filters(aggregate_scans(run.data)?)?).map(Some) } else { Ok(None) }
}

/// Returns the plan under an operator that the last rules have added; `None` for other operators.
/// Each run adds these operators again.
fn instead_of(plan: &Plan) -> Option<Plan> {
    let aggregate = plan.downcast_ref::<AggregateScan>().map(|scan| Arc::clone(scan.input()));
    aggregate.or_else(|| without_join_keys(plan))
}

/// Operators that keep nothing of a run after [`ExecutionPlan::reset_state`].
fn begins_anew(plan: &Plan) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<UnionExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<YieldExec>()
        || plan.is::<Unordered>()
        || plan.is::<ScalarSubqueryExec>()
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;

    use super::*;
    use crate::executor::Plan as Planned;
    use crate::{Connection, Database};

    fn rows(connection: &mut Connection, sql: &str) -> Vec<String> {
        let mut rows = connection.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut all = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let columns: Vec<String> = (0..row.len()).map(|column| row.get(column).to_string()).collect();
            all.push(columns.join("|"));
        }
        all.sort_unstable();
        all
    }

    fn is_cached(connection: &mut Connection, sql: &str) -> bool {
        match &connection.prepare(sql).unwrap().planned().plan {
            Planned::Query(query) => query.is_cached(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Queries of the general path, and whether their plans are cached.
    const QUERIES: [(&str, bool); 17] = [
        (
            "select a.id, b.v from a join b on b.r = a.id where b.v > (select avg(v) * 1.9 from b) and b.v < (select max(v) from b where id < (select min(id) + 500 from a))",
            true,
        ),
        (
            "select g, sum(id), avg(id::decimal(12, 2)) from a where id > (select min(r) from b) group by g",
            true,
        ),
        ("select a.g, count(*), sum(b.v) from a join b on b.r = a.id group by a.g", true),
        ("select a.id from a where exists (select 1 from b where b.r = a.id and b.v > 50)", true),
        ("select a.id from a where id not in (select r from b where v < 90)", true),
        (
            "select a.id, b.v from a left join b on b.r = a.id and b.v % 7 = 0 order by a.id, b.v limit 60",
            true,
        ),
        ("select a.id, c.id from a cross join (select id from b where v = 3) as c where a.g = 2", true),
        ("select a.id from a join b on a.id < b.v and a.g = 3 and b.id < 20", true),
        ("select g from a union all select v from b where v < 4", true),
        ("select distinct g, v from a join b on b.r = a.id where v < 9", true),
        (
            "select g, max(v) from a join b on b.r = a.id group by g having count(*) > 3 order by 2 desc, 1",
            true,
        ),
        // The inner join is never polled, since the outer side has no rows to compare.
        ("select a.id from a left join b on a.g = b.v where a.g in (select null::int from b)", true),
        ("select id, row_number() over (partition by g order by id) from a", false),
        ("select id + x from a, generate_series(1, 3) as s(x)", false),
        (
            "with recursive r(n) as (select min(id) from a union all select n + 1 from r where n < 5) select n from r",
            false,
        ),
        ("explain select a.id from a join b on a.id = b.r", false),
        ("select count(*), now() > timestamp '2000-01-01' from a join b on a.id = b.r", false),
    ];

    /// Goal: a cached plan returns what a new plan would return, and blocks nobody.
    /// Method: queries of all kinds, repeatedly, while rows come and go, in transactions with an
    /// older snapshot, after schema changes, and after a table has grown many times over. A
    /// connection that has not seen the query before gives the expected rows.
    #[test]
    fn runs_of_kept_plans() {
        let database = Database::builder()
            .fs(Arc::new(MemFs::new()))
            .cache_bytes(16 << 20)
            .threads(2)
            .open("k.db")
            .unwrap();
        let (mut writer, mut reader, mut old) = (database.connect(), database.connect(), database.connect());
        let mut run = |sql: &str| writer.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        run("create table a (id int primary key, g int, t text)");
        run("create table b (id int primary key, r int not null, v int)");
        run("insert into a select i, i % 5, 't' || i from generate_series(1, 100) as s(i)");
        run("insert into b select i, i % 120 + 1, i % 101 from generate_series(1, 1000) as s(i)");
        run("analyze");
        let mut before = Vec::new();
        old.execute("begin isolation level repeatable read", &[]).unwrap();
        for (sql, expected) in QUERIES {
            let found = rows(&mut reader, sql);
            assert_eq!(is_cached(&mut reader, sql), expected, "{sql}");
            assert_eq!(rows(&mut reader, sql), found, "{sql}");
            assert_eq!(rows(&mut old, sql), found, "{sql}");
            before.push(found);
        }
        let changes = [
            "insert into b select i, i % 90 + 1, i % 77 from generate_series(2001, 2600) as s(i)",
            "delete from a where id % 4 = 1",
            "update b set v = v + 1 where id % 3 = 0",
            "insert into a select i, i % 5, 't' || i from generate_series(1001, 17000) as s(i)",
            "insert into b select i, i % 16000 + 1, i % 20000 from generate_series(5001, 25000) as s(i)",
            "delete from b where id > 300",
        ];
        for change in changes {
            run(change);
            let mut fresh = database.connect();
            for ((sql, _), before) in QUERIES.iter().zip(&before) {
                // EXPLAIN shows the current plan, which may differ between the connections.
                if !sql.starts_with("explain") {
                    assert_eq!(rows(&mut reader, sql), rows(&mut fresh, sql), "after {change}: {sql}");
                    assert_eq!(&rows(&mut old, sql), before, "before {change}: {sql}");
                }
            }
        }
        old.execute("commit", &[]).unwrap();
        // Two overlapping runs of one query each have their own subquery values.
        let (sql, _) = QUERIES[0];
        let planned = reader.prepare(sql).unwrap().planned();
        let Planned::Query(query) = &planned.plan else { panic!("{planned:?}") };
        let expected = rows(&mut reader, sql).len();
        reader.execute("begin", &[]).unwrap();
        // Opens a view.
        reader.execute("select count(*) from a, b where a.id = b.r", &[]).unwrap();
        for _ in 0..3 {
            let mut runs = reader.run_twice(&**query);
            let mut counts = [0; 2];
            let mut are_over = false;
            while !are_over {
                are_over = true;
                for (batches, count) in runs.iter_mut().zip(&mut counts) {
                    if let Some(batch) = batches.next().unwrap() {
                        *count += batch.num_rows();
                        are_over = false;
                    }
                }
            }
            assert_eq!(counts, [expected; 2]);
        }
        reader.execute("commit", &[]).unwrap();
        assert!(is_cached(&mut reader, sql));
        // Plans at rest hold no view, so a schema change does not wait.
        run("set lock_timeout = '1s'");
        run("alter table b add column w int default 5");
        run("vacuum");
        let sql = "select a.g, sum(b.w) from a join b on b.r = a.id group by a.g";
        assert_eq!(rows(&mut reader, sql), rows(&mut database.connect(), sql));
        for (sql, _) in QUERIES.iter().filter(|(sql, _)| !sql.starts_with("explain")) {
            assert_eq!(rows(&mut reader, sql), rows(&mut database.connect(), sql), "{sql}");
        }
    }
}
