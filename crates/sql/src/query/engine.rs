//! DataFusion, set up once for a database and once more for each connection that needs it.

use cairn_table::View;
use cairn_vfs::sync::{Arc, Mutex, lock};
use datafusion::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::optimizer::optimizer::Optimizer;
use datafusion::optimizer::{Analyzer, AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;

use super::aggregate_rule::AggregateScans;
use super::computed_groups::ComputedGroups;
use super::days::Days;
use super::first_rows::{self, FirstRows};
use super::functions;
use super::give_way::JoinsGiveWay;
use super::grouping_orders::GroupingOrders;
use super::guards::Guards;
use super::in_lists::InLists;
use super::inner_orders::InnerOrders;
use super::join_keys::TellKeys;
use super::join_orders::JoinOrders;
use super::late_columns::LateColumns;
use super::literals::Literals;
use super::memory::Memory;
use super::multisets::Multisets;
use super::numbers::Numbers;
use super::operators::Planner;
use super::outer_types::OuterTypes;
use super::read::ReadTexts;
use super::share::ShareTotals;
use super::sorted_once::{self, SortedOnce};
use super::spared_plans::spared;
use super::sums::WideSums;
use super::unknown_keys::HideKeys;
use super::unnest::Unnest;
use super::zeros::Zeros;
use super::zone_marks::ZoneMarks;
use crate::batch::BATCH_ROWS;
use crate::database::Shared;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::sqlstate::INTERNAL_ERROR;

/// What all connections have in common: functions, rules, memory.
#[derive(Debug)]
pub(crate) struct General(SessionState);

/// What tables are read as, while a statement is planned and run.
#[derive(Debug, Default)]
pub(super) struct Current {
    view: Mutex<Option<View>>,
}

impl Current {
    /// The view of the statement that runs.
    pub fn view(&self) -> Result<View, DataFusionError> {
        let view = lock(&self.view).clone();
        view.ok_or_else(|| DataFusionError::Internal("a table is read outside of a statement".to_owned()))
    }
}

/// A connection's.
#[derive(Debug)]
pub(crate) struct Engine {
    pub state: SessionState,
    current: Arc<Current>,
    /// Whether its plans are optimized: `cairn.optimizer`.
    optimizes: bool,
}

impl Engine {
    /// What plans and runs a query whose joins have not memory enough for hash tables: they sort.
    pub fn sorting(&self) -> SessionState {
        let mut state = self.state.clone();
        let config = self.state.config().clone();
        // One thread would have hash tables whatever is preferred.
        let threads = config.target_partitions().max(2);
        let mut config = config.with_target_partitions(threads);
        config.options_mut().optimizer.prefer_hash_join = false;
        *state.config_mut() = config;
        state
    }
}

impl General {
    fn new(shared: &Shared) -> Result<General> {
        let mut config = SessionConfig::new()
            .with_batch_size(BATCH_ROWS)
            .with_target_partitions(shared.threads)
            .with_information_schema(false)
            .with_create_default_catalog_and_schema(false);
        let options = config.options_mut();
        options.sql_parser.dialect = Dialect::PostgreSQL;
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.default_null_ordering = "nulls_max".to_owned();
        // The order of a subquery is that of the query around it where that has none of its own.
        options.sql_parser.enable_subquery_sort_elimination = false;
        // What a column's type does not say is in its metadata, and that is lost on the way through
        // expressions.
        options.execution.skip_physical_aggregate_schema_check = true;
        // The operator that keeps the first groups only does not know of NULL.
        options.optimizer.enable_topk_aggregation = false;
        // What a sort merges has a share of its own.
        options.execution.sort_spill_reservation_bytes = 0;
        let memory = usize::try_from(shared.memory_limit).unwrap_or(usize::MAX);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(std::sync::Arc::new(Memory::new(memory)))
            .with_disk_manager_builder(DiskManagerBuilder::default())
            .build_arc();
        let runtime = runtime.map_err(super::errors::datafusion_error)?;
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_analyzer_rules(analyzer_rules())
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules())
            .with_query_planner(Arc::new(Planner))
            .build();
        functions::register(&mut state).map_err(super::errors::datafusion_error)?;
        Ok(General(state))
    }
}

/// DataFusion's rules for what types there are, between ours.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let first: [Arc<dyn AnalyzerRule + Send + Sync>; 5] = [
        Arc::new(ComputedGroups),
        Arc::new(Literals),
        Arc::new(WideSums),
        Arc::new(OuterTypes),
        Arc::new(Multisets),
    ];
    let last: [Arc<dyn AnalyzerRule + Send + Sync>; 9] = [
        Arc::new(ZoneMarks),
        Arc::new(ReadTexts),
        Arc::new(Numbers),
        Arc::new(Zeros),
        Arc::new(InLists),
        Arc::new(Guards),
        Arc::new(InnerOrders),
        Arc::new(Unnest),
        Arc::new(HideKeys),
    ];
    first.into_iter().chain(Analyzer::new().rules).chain(last).collect()
}

/// DataFusion's rules for what a query does, and ours: behind the one that computes constants,
/// since what it leaves is still to be moved to the tables, and last, when nothing is left that
/// nobody asks for.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules: Vec<_> = Optimizer::new().rules.into_iter().map(spared).collect();
    let constants = rules.iter().position(|rule| rule.name() == "simplify_expressions");
    rules.insert(constants.map_or(0, |at| at + 1), Arc::new(Days));
    if let Some(sorts) = rules.iter_mut().find(|rule| rule.name() == sorted_once::INSTEAD_OF) {
        *sorts = Arc::new(SortedOnce);
    }
    rules.push(Arc::new(LateColumns));
    rules
}

/// The rules for plans of operators, without the ones that move filters down. They tell the columns
/// of a join's sides apart by name, so that of two columns with one name the wrong side gets the
/// filter: `a RIGHT JOIN b ... WHERE a.x IS NULL` loses rows. Filters were moved before, when
/// columns still had their table's name.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
    if let Some(at) = rules.iter().position(|rule| rule.name() == first_rows::INSTEAD_OF) {
        let requirements = rules.remove(at);
        rules.insert(at, Arc::new(FirstRows(requirements)));
        rules.insert(at, Arc::new(JoinOrders));
    }
    // Before any other looks at orders.
    rules.insert(0, Arc::new(GroupingOrders));
    rules.push(Arc::new(JoinsGiveWay));
    rules.push(Arc::new(AggregateScans));
    rules.push(Arc::new(TellKeys));
    rules.push(Arc::new(ShareTotals));
    rules
}

/// Rules of the optimizer without which some plans have no operators.
const NEEDED: [&str; 6] = [
    // Joins that have to tell NULL from no match (`NOT IN`) find it by their keys alone.
    "extract_equijoin_predicate",
    "rewrite_set_comparison",
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
];

/// The same for plans of operators: what makes them read their inputs in the order and in the
/// partitions that they need, and ours that let a query be stopped.
const NEEDED_OPERATORS: [&str; 7] = [
    "OutputRequirements",
    first_rows::INSTEAD_OF,
    "EnsureCooperative",
    "SanityCheckPlan",
    "cairn_grouping_orders",
    "cairn_join_orders",
    "cairn_give_way",
];

/// A state whose plans are as they were written, as far as they can be run so.
///
/// Errors: none that are known of.
fn unoptimized(template: &SessionState) -> datafusion::error::Result<SessionState> {
    let state = template.clone();
    let mut logical = state.optimizers().to_vec();
    logical.retain(|rule| NEEDED.contains(&rule.name()));
    let mut physical = state.physical_optimizers().to_vec();
    physical.retain(|rule| NEEDED_OPERATORS.contains(&rule.name()));
    let config = state.config().clone().with_target_partitions(1);
    let mut state = SessionStateBuilder::new_from_existing(state)
        .with_config(config)
        .with_optimizer_rules(logical)
        .with_physical_optimizer_rules(physical)
        .build();
    // The builder takes functions in no order. Those of DataFusion that ours took the place of are
    // still there under their other names, and would take their first names back.
    for (name, function) in template.scalar_functions() {
        if name == function.name() {
            state.register_udf(Arc::clone(function))?;
        }
    }
    for (name, function) in template.aggregate_functions() {
        if name == function.name() {
            state.register_udaf(Arc::clone(function))?;
        }
    }
    for (name, function) in template.window_functions() {
        if name == function.name() {
            state.register_udwf(Arc::clone(function))?;
        }
    }
    Ok(state)
}

impl Session {
    /// The connection's DataFusion, looking at what the open statement sees.
    ///
    /// Errors: what setting it up met.
    pub(super) fn engine(&mut self) -> Result<&Engine> {
        let optimizes = self.context.settings.optimizer;
        if self.engine.as_ref().is_none_or(|engine| engine.optimizes != optimizes) {
            if self.shared.general.get().is_none() {
                let general = General::new(&self.shared)?;
                // Somebody else may have been faster: theirs is as good.
                let _ = self.shared.general.set(general);
            }
            let Some(General(template)) = self.shared.general.get() else {
                return Err(Error::new(INTERNAL_ERROR, "the general path is not set up"));
            };
            let current = Arc::new(Current::default());
            let mut state = match optimizes {
                true => template.clone(),
                false => unoptimized(template).map_err(super::errors::datafusion_error)?,
            };
            state.config_mut().set_extension(Arc::clone(&current));
            self.engine = Some(Engine { state, current, optimizes });
        }
        let view = self.view_to_read()?;
        match &self.engine {
            Some(engine) => {
                *lock(&engine.current.view) = Some(view);
                Ok(engine)
            }
            None => Err(Error::new(INTERNAL_ERROR, "the general path is not set up")),
        }
    }

    /// What the queries of the open statement read.
    ///
    /// Errors: there is no transaction.
    pub(super) fn view_to_read(&mut self) -> Result<View> {
        let apart = self.apart.clone();
        let view = self.transaction()?.view().clone();
        Ok(match apart {
            Some(canceller) => view.stopped_by(canceller),
            None => view,
        })
    }

    /// Lets go of what the last statement saw: changes of the schema wait for that.
    pub(crate) fn leave_engine(&self) {
        if let Some(engine) = &self.engine {
            *lock(&engine.current.view) = None;
        }
    }
}
