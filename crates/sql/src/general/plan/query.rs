//! Queries of the general path.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_table::Canceller;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use cairn_vfs::sync::{Arc, Mutex, lock};
use datafusion::common::metadata::{FieldMetadata, ScalarAndMetadata};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ParamValues, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream};
use futures_util::StreamExt;
use sqlparser::ast::Statement as Tree;

use super::names::Names;
use super::on_disk::{self, Operators};
use super::panics::caught;
use super::plan_cache::{CachedPlan, RunToken};
use super::views;
use crate::batch::{data_type, element_of, field, kind_of};
use crate::column::Column;
use crate::datum::{Datum, DatumRef};
use crate::error::{Error, Result};
use crate::expr::Context;
use crate::general::engine::release_view;
use crate::general::errors::datafusion_error;
use crate::general::functions::list_markers::{self, ListUse};
use crate::general::functions::sequences::Counting;
use crate::general::functions::{LOCAL, NOW, STATEMENT};
use crate::general::internal_names::shown;
use crate::general::operators::shared_cte::{CteResults, RunCteResults};
use crate::general::operators::yielding::StopFlag;
use crate::general::rewrite::{Lookup, result_names, rewrite};
use crate::general::rules::zone_marks;
use crate::general::run::batches::{Batches, Stops};
use crate::general::run::materialize::materialized_stream;
use crate::general::scan::provider::Provider;
use crate::general::tree::values::{parameter_type, scalar};
use crate::general::tree::walk::{Walk, WalkPlan};
use crate::pg_catalog::{self, World};
use crate::session::{Session, ViewColumns};
use crate::sqlstate::UNDEFINED_PARAMETER;
use crate::syntax::{MAX_LEVELS, levels, planning, too_deep, too_involved};

/// The least scale of a decimal parameter, whatever the scale of the operand beside it.
const OPEN_SCALE: i8 = 10;

/// A planned query.
#[derive(Debug)]
pub(crate) struct Query {
    plan: LogicalPlan,
    /// List parameters, whose items are put into the plan of each run.
    lists: Vec<ListUse>,
    /// The plan has been optimized completely, because it does not wait for parameters.
    optimized: bool,
    /// Runs of the query differ only by the contents of the tables.
    is_fixed: bool,
    /// The cached physical plan of an earlier run.
    cached: Mutex<Option<CachedPlan>>,
    parameters: Vec<ColumnType>,
    pub kinds: Vec<ColumnType>,
    pub verb: &'static str,
    /// Approximate depth of the plan, from the query's text and its views.
    levels: usize,
}

/// A planned query, with the types of its parameters and its columns.
pub(crate) type Planned = (Query, Vec<Option<ColumnType>>, Vec<Column>);

/// Folds an expression to a literal, for the arguments of table functions.
pub(crate) fn literal(expr: Expr, state: &SessionState) -> datafusion::error::Result<Expr> {
    let context = SimplifyContext::builder().with_config_options(Arc::clone(state.config_options())).build();
    let simplifier = ExprSimplifier::new(context);
    let schema = DFSchema::empty();
    simplifier.simplify(simplifier.coerce(expr, &schema)?)
}

/// Folds the counts of LIMIT and OFFSET to the literals that DataFusion's operators require, where
/// they are known. DataFusion itself does not fold nested casts.
fn with_counts(plan: LogicalPlan, state: &SessionState) -> datafusion::error::Result<LogicalPlan> {
    let counted = |expr: Box<Expr>| {
        let waits = expr.holds(|expr| Ok(matches!(expr, Expr::Placeholder(_))))?;
        if waits || matches!(*expr, Expr::Literal(..)) {
            return Ok(expr);
        }
        let count = datafusion::logical_expr::Cast::new(expr, DataType::Int64);
        literal(Expr::Cast(count), state).map(Box::new)
    };
    let changed = plan.walk_up_with_subqueries(|plan| {
        let LogicalPlan::Limit(mut limit) = plan else { return Ok(Transformed::no(plan)) };
        limit.skip = limit.skip.map(counted).transpose()?;
        limit.fetch = limit.fetch.map(counted).transpose()?;
        Ok(Transformed::yes(LogicalPlan::Limit(limit)))
    })?;
    Ok(changed.data)
}

impl Query {
    /// Plans a query or EXPLAIN.
    ///
    /// Errors: those of planning the statement.
    pub fn plan(session: &mut Session, tree: &Tree, types: &[Option<ColumnType>]) -> Result<Planned> {
        Query::plan_for(session, tree.clone(), types, None)
    }

    /// Checks that a query can define a view, which adds one level of views. As in PostgreSQL, a
    /// view that refers to itself is detected only when it is used.
    ///
    /// Errors: 54001 where it is made of too many others.
    pub fn check_view(session: &mut Session, tree: &Tree) -> Result<()> {
        let catalog = Arc::clone(session.transaction()?.view().catalog());
        views::size_of(tree, &catalog, &session.context.settings.search_path, true).map(drop)
    }

    /// Like [`Query::plan`], with the row keys of one table as an additional column.
    pub(crate) fn plan_for(
        session: &mut Session,
        tree: Tree,
        types: &[Option<ColumnType>],
        target: Option<u32>,
    ) -> Result<Planned> {
        let catalog = Arc::clone(session.transaction()?.view().catalog());
        let size = views::size_of(&tree, &catalog, &session.context.settings.search_path, false)?;
        let levels = size.levels + levels(&tree)?;
        if levels > MAX_LEVELS {
            return Err(too_deep());
        }
        too_involved(&tree)?;
        session.levels = session.levels.max(levels);
        planning(levels, || caught(|| Query::plan_here(session, tree, types, target, levels)))
    }

    /// Like [`Query::plan_for`], called with enough stack for the given levels.
    fn plan_here(
        session: &mut Session,
        tree: Tree,
        types: &[Option<ColumnType>],
        target: Option<u32>,
        levels: usize,
    ) -> Result<Planned> {
        let mut tree = tree;
        let verb = if matches!(tree, Tree::Explain { .. }) { "EXPLAIN" } else { "SELECT" };
        let result_names = result_names(&tree);
        let catalog = Arc::clone(session.transaction()?.view().catalog());
        let search_path = session.context.settings.search_path.clone();
        let world = if pg_catalog::is_about(&tree) {
            let views = session.view_columns(&catalog)?;
            let world = World::new(session, views)?;
            pg_catalog::rewrite(&mut tree, &world);
            world
        } else {
            World::new(session, Arc::default())?
        };
        let lists =
            rewrite(&mut tree, types, Lookup { catalog: &catalog, search_path: &search_path, own: &[] })?;
        let counting = Counting::of(session);
        let engine = session.engine()?;
        let names = Names::new(&engine.state, &catalog, &search_path, target, Arc::new(world), counting);
        let plan = names.plan(tree).map_err(datafusion_error)?;
        let plan = with_time(plan).and_then(with_given_types).map_err(datafusion_error)?;
        let plan = with_counts(plan, &engine.state).map_err(datafusion_error)?;
        let (plan, types) = list_markers::types(plan, &lists, types).map_err(datafusion_error)?;
        let parameters = parameters(&plan, &types)?;
        let waits = !lists.is_empty() || has_placeholders(&plan).map_err(datafusion_error)?;
        let open_plan = (!lists.is_empty()).then(|| plan.clone());
        // The optimizer may be unable to handle a plan whose parameters are unknown.
        let (plan, optimized) = match engine.state.optimize(&plan) {
            Ok(optimized) => (optimized, true),
            Err(_) if waits => (plan, false),
            Err(error) => return Err(datafusion_error(error)),
        };
        let schema = Arc::clone(plan.schema());
        // The optimizer must see the items of a list, so it runs once they are known.
        let (plan, optimized) = match open_plan {
            Some(open_plan) => (open_plan, false),
            None => (plan, optimized),
        };
        let columns: Vec<Column> = schema
            .fields()
            .iter()
            .map(|field| Column {
                element: element_of(field),
                ..Column::new(shown(field.name()), kind_of(field))
            })
            .collect();
        let mut columns = columns;
        if let Some(names) = result_names.filter(|names| names.len() == columns.len()) {
            columns.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
        }
        let columns = if verb == "EXPLAIN" { explained(columns) } else { columns };
        let kinds = columns.iter().map(|column| column.kind.clone()).collect();
        let open = parameters.iter().cloned().map(Some).collect();
        let (is_fixed, cached) = (optimized && !waits, Mutex::new(None));
        let query = Query { plan, lists, optimized, is_fixed, cached, parameters, kinds, verb, levels };
        Ok((query, open, columns))
    }

    /// Runs the query.
    ///
    /// Errors: those of physical planning; others are returned with the rows.
    pub fn run(&self, session: &mut Session, params: &[Datum]) -> Result<Batches> {
        self.run_with(session, params, false)
    }

    /// Like [`Query::run`], but reads everything before it returns the first batch.
    ///
    /// Errors: as for [`Query::run`].
    pub(crate) fn run_materialized(&self, session: &mut Session, params: &[Datum]) -> Result<Batches> {
        self.run_with(session, params, true)
    }

    /// Runs the query. If memory does not suffice for a hash table of a join or for a top-N sort,
    /// it runs again with operators that spill. That happens before the first row, when the only
    /// visible effect is the numbers taken from sequences. For a cursor nothing waits for the first
    /// row, so its run fails with 53200 instead.
    fn run_with(&self, session: &mut Session, params: &[Datum], materializes: bool) -> Result<Batches> {
        let start = |session: &mut Session, operators| {
            planning(self.levels, || caught(|| self.start(session, params, materializes, operators)))
        };
        let (mut batches, on_disk_helps) = start(session, Operators::Fast)?;
        if on_disk_helps && session.cursor_canceller.is_none() && batches.ran_out_of_memory() {
            batches.abort_and_wait();
            drop(batches);
            (batches, _) = start(session, Operators::OnDisk)?;
        }
        Ok(batches)
    }

    /// Starts a run. Also returns whether [`Operators::OnDisk`] would plan other operators.
    fn start(
        &self,
        session: &mut Session,
        params: &[Datum],
        materializes: bool,
        operators: Operators,
    ) -> Result<(Batches, bool)> {
        // Each run has its own canceller, which is set when the run is given up. A statement may
        // have several runs.
        let own_canceller = session.cursor_canceller.as_mut().map(|canceller| {
            *canceller = Canceller::new();
            canceller.clone()
        });
        let (physical, run_token) = self.physical(session, params, operators)?;
        let on_disk_helps = on_disk::helps(&physical).map_err(datafusion_error)?;
        let handle = session.shared.runtime()?;
        let engine = session.engine()?;
        let stopped = Arc::new(StopFlag::default());
        let config = match operators {
            Operators::Fast => engine.state.config().clone(),
            Operators::OnDisk => engine.sorting().config().clone(),
        };
        let cte_results = Arc::new(CteResults::default());
        let config = config
            .with_extension(Arc::clone(&stopped))
            .with_extension(Arc::new(RunCteResults::new(&cte_results)));
        let context = Arc::new(TaskContext::from(&engine.state).with_session_config(config));
        release_view(session);
        let stream = {
            let _within = handle.enter();
            let runtime = context.runtime_env();
            let stream = execute_stream(physical, context).map_err(datafusion_error)?;
            let stream = if materializes { materialized_stream(stream, runtime) } else { stream };
            holding(stream, (run_token, cte_results))
        };
        let timers = session.shared.timers()?;
        let stops = Stops { asked: session.canceller.clone(), own: own_canceller, stopped };
        Ok((Batches::new(stream, self.kinds.clone(), handle, stops, timers), on_disk_helps))
    }

    /// Returns the physical plan of a run, and the token that the run must hold.
    fn physical(
        &self,
        session: &mut Session,
        params: &[Datum],
        operators: Operators,
    ) -> Result<(Arc<dyn ExecutionPlan>, Option<RunToken>)> {
        if operators == Operators::Fast
            && let Some(cached) = &*lock(&self.cached)
        {
            let view = session.view_to_read()?;
            if let Some(plan) = cached.awake(&view).map_err(datafusion_error)? {
                return Ok((plan, cached.run_token()));
            }
        }
        let values = self.values(session, params)?;
        let handle = session.shared.runtime()?;
        let engine = session.engine()?;
        let plan =
            list_markers::spell_out(self.plan.clone(), &self.lists, params).map_err(datafusion_error)?;
        let plan = plan.with_param_values(values).map_err(datafusion_error)?;
        let plan = with_counts(plan, &engine.state).map_err(datafusion_error)?;
        let plan =
            if self.optimized { plan } else { engine.state.optimize(&plan).map_err(datafusion_error)? };
        let _within = handle.enter();
        let sorting;
        let state = match operators {
            Operators::Fast => &engine.state,
            Operators::OnDisk => {
                sorting = engine.sorting();
                &sorting
            }
        };
        let planned = state.query_planner().create_physical_plan(&plan, state);
        let planned = futures_executor::block_on(planned).map_err(datafusion_error)?;
        let planned = match operators {
            Operators::Fast => planned,
            Operators::OnDisk => on_disk::whole_sorts(planned).map_err(datafusion_error)?,
        };
        let mut run_token = None;
        if self.is_fixed && operators == Operators::Fast {
            let cached = CachedPlan::of(&planned).map_err(datafusion_error)?;
            run_token = cached.as_ref().and_then(CachedPlan::run_token);
            *lock(&self.cached) = cached;
        }
        Ok((planned, run_token))
    }

    fn values(&self, session: &Session, params: &[Datum]) -> Result<ParamValues> {
        let mut values: HashMap<String, ScalarAndMetadata> = HashMap::new();
        for (at, kind) in self.parameters.iter().enumerate() {
            // The items of a list are already in the plan.
            if !self.has_place(at) {
                continue;
            }
            let value = params.get(at).map_or(DatumRef::Null, Datum::borrow);
            values.insert((at + 1).to_string(), scalar(value, kind).map_err(datafusion_error)?.into());
        }
        let zoned = field("", &ColumnType::zoned(), true);
        let time = |micros| {
            let value = ScalarValue::TimestampMicrosecond(Some(micros), None);
            ScalarAndMetadata::new(value, Some(FieldMetadata::new_from_field(&zoned)))
        };
        values.insert(NOW.to_owned(), time(session.context.transaction_time()));
        values.insert(STATEMENT.to_owned(), time(session.context.statement_time()));
        Ok(ParamValues::Map(values))
    }

    /// Whether a parameter occurs in the plan other than as a list of [`Query::lists`].
    fn has_place(&self, parameter: usize) -> bool {
        let is_list = self.lists.iter().any(|list| list.parameter == parameter);
        let name = format!("${}", parameter + 1);
        !is_list || self.plan.get_parameter_fields().is_ok_and(|fields| fields.contains_key(&name))
    }

    /// Whether its physical plan is cached.
    #[cfg(test)]
    pub(in crate::general) fn has_cached_plan(&self) -> bool {
        lock(&self.cached).is_some()
    }

    /// Whether the query reads a table.
    pub(crate) fn reads(&self, table: u32) -> bool {
        let mut reads = false;
        let looked = self.plan.look_with_subqueries(|plan| {
            if let LogicalPlan::TableScan(scan) = plan {
                reads |= source_as_provider(&scan.source)?
                    .downcast_ref::<Provider>()
                    .is_some_and(|provider| provider.table_id() == table);
            }
            Ok(if reads { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        });
        // On an error, assume that it does.
        reads || looked.is_err()
    }
}

impl Session {
    /// Returns the columns of all views, which only planning can determine. Cached per catalog
    /// version.
    ///
    /// Errors: those of reading sequences, and of setting up the general path.
    pub(crate) fn view_columns(&mut self, catalog: &Arc<cairn_table::Catalog>) -> Result<Arc<ViewColumns>> {
        let known_of = (catalog.version(), self.context.settings.version);
        if let Some((of, columns)) = &self.view_columns
            && *of == known_of
        {
            return Ok(Arc::clone(columns));
        }
        let world = Arc::new(World::new(self, Arc::default())?);
        let counting = Counting::of(self);
        let engine = self.engine()?;
        let columns = Names::new(&engine.state, catalog, &[], None, world, counting).view_columns();
        let columns = Arc::new(columns);
        self.view_columns = Some((known_of, Arc::clone(&columns)));
        Ok(columns)
    }
}

/// Returns batches that keep `what` alive until they are dropped.
fn holding(batches: SendableRecordBatchStream, what: impl Send + 'static) -> SendableRecordBatchStream {
    let schema = batches.schema();
    let batches = batches.map(move |batch| {
        let _held = &what;
        batch
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Renames the column of EXPLAIN as in PostgreSQL.
fn explained(columns: Vec<Column>) -> Vec<Column> {
    columns
        .into_iter()
        .map(|column| match column.name.as_str() {
            "plan" => Column::new("QUERY PLAN", column.kind),
            _ => column,
        })
        .collect()
}

/// Replaces the time of the transaction and of the statement by placeholders, since a plan outlives
/// both.
fn with_time(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let changed = plan.walk_up_with_subqueries(|plan| {
        // Keep the names of expressions, because others refer to them.
        let names = NamePreserver::new(&plan);
        let changed = plan.walk_expressions(|expr| {
            let name = names.save(&expr);
            let done = expr.walk_up(|expr| Ok(placed(expr)))?;
            Ok(done.update_data(|expr| name.restore(expr)))
        })?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    })?;
    Ok(changed.data)
}

/// Returns the placeholder for an expression that asks for a time.
fn placed(expr: Expr) -> Transformed<Expr> {
    let Expr::ScalarFunction(function) = &expr else { return Transformed::no(expr) };
    let place = |name: &str| {
        let field: FieldRef = Arc::new(field(name, &ColumnType::zoned(), true));
        Expr::Placeholder(Placeholder::new_with_field(format!("${name}"), Some(field)))
    };
    Transformed::yes(match function.func.name() {
        name @ (NOW | STATEMENT) => place(name),
        LOCAL => zone_marks::plain(place(NOW)),
        "current_date" => {
            Expr::Cast(datafusion::logical_expr::Cast::new(Box::new(place(NOW)), DataType::Date32))
        }
        _ => return Transformed::no(expr),
    })
}

/// Returns the type of parameter values for an operand of the given type. Decimals get a larger
/// scale, because a column's type would round them.
fn given_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Decimal128(precision, scale) if *precision < 38 || *scale < OPEN_SCALE => {
            DataType::Decimal128(38, OPEN_SCALE.max(*scale))
        }
        // Items of lists are written out in the type of the operand.
        kind if kind.is_decimal() || kind.is_nested() || kind.is_null() => kind.clone(),
        kind => data_type(&parameter_type(kind)),
    }
}

/// Gives parameters the types of their values, so that the optimizer sees where these differ from
/// the operands: texts of catalogs and of functions have another representation than texts of
/// tables.
fn with_given_types(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let given = |expr: Expr| match expr {
        Expr::Placeholder(Placeholder { id, field: Some(field) }) => {
            let kind = given_type(field.data_type());
            if kind == *field.data_type() {
                return Transformed::no(Expr::Placeholder(Placeholder { id, field: Some(field) }));
            }
            // Without the operand's metadata: a parameter beside two numbers of different scales is
            // still a single parameter.
            let field = Arc::new(Field::new(field.name(), kind, true));
            Transformed::yes(Expr::Placeholder(Placeholder { id, field: Some(field) }))
        }
        other => Transformed::no(other),
    };
    let changed = plan.walk_up_with_subqueries(|plan| {
        let changed = plan.walk_expressions(|expr| expr.walk_up(|expr| Ok(given(expr))))?;
        if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
    })?;
    Ok(changed.data)
}

fn has_placeholders(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    Ok(!plan.get_parameter_fields()?.is_empty())
}

/// Returns the types of `$1`, `$2` and so on.
fn parameters(plan: &LogicalPlan, given: &[Option<ColumnType>]) -> Result<Vec<ColumnType>> {
    let fields = plan.get_parameter_fields().map_err(datafusion_error)?;
    let mut parameters: Vec<Option<ColumnType>> = given.to_vec();
    for (name, field) in fields {
        let Some(number) = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok()) else {
            continue;
        };
        let at = number
            .checked_sub(1)
            .ok_or_else(|| Error::new(UNDEFINED_PARAMETER, "there is no parameter $0"))?;
        if parameters.len() <= at {
            parameters.resize(at + 1, None);
        }
        if let Some(place @ None) = parameters.get_mut(at) {
            *place = field.map(|field| parameter_type(field.data_type()));
        }
    }
    Ok(parameters.into_iter().map(|kind| kind.unwrap_or_else(|| Type::Text.into())).collect())
}
