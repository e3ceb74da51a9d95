//! Sets up DataFusion: once per database, and once more for each connection that uses it.

use cairn_table::View;
use cairn_vfs::sync::Arc;
use datafusion::config::Dialect;
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

use crate::batch::BATCH_ROWS;
use crate::error::{Error, Result};
use crate::general::errors::datafusion_error;
use crate::general::functions::register::register;
use crate::general::operators::Planner;
use crate::general::operators::yielding::YieldInJoins;
use crate::general::rules::aggregate_scans::AggregateScans;
use crate::general::rules::computed_groups::ComputedGroups;
use crate::general::rules::date_comparisons::DateComparisons;
use crate::general::rules::duplicate_sort_keys::{self, DuplicateSortKeys};
use crate::general::rules::grouping_orders::GroupingOrders;
use crate::general::rules::guarded_rules::guarded;
use crate::general::rules::guards::Guards;
use crate::general::rules::hidden_sorts::{self, HideSorts};
use crate::general::rules::in_lists::InLists;
use crate::general::rules::inner_orders::InnerOrders;
use crate::general::rules::join_filters::PushJoinFilters;
use crate::general::rules::join_orders::JoinOrders;
use crate::general::rules::late_columns::LateColumns;
use crate::general::rules::literals::Literals;
use crate::general::rules::multisets::Multisets;
use crate::general::rules::normalize::NormalizeFloats;
use crate::general::rules::numbers::Numbers;
use crate::general::rules::outer_types::OuterTypes;
use crate::general::rules::shared_totals::ShareTotals;
use crate::general::rules::text_casts::TextCasts;
use crate::general::rules::unknown_keys::HideKeys;
use crate::general::rules::unnest::Unnest;
use crate::general::rules::wide_sums::WideSums;
use crate::general::rules::zone_marks::ZoneMarks;
use crate::general::run::memory::Memory;
use crate::general::scan::current_view::Current;
use crate::runtime::Shared;
use crate::session::Session;
use crate::sqlstate::INTERNAL_ERROR;

/// The state shared by all connections: functions, rules, memory.
#[derive(Debug)]
struct General(SessionState);

/// The DataFusion state of one connection.
#[derive(Debug)]
pub(super) struct Engine {
    pub state: SessionState,
    current: Arc<Current>,
    /// Whether plans are optimized: the setting `cairn.optimizer`.
    optimizes: bool,
}

impl Engine {
    /// Returns a state for a query whose hash tables do not fit into memory: it prefers sort-merge
    /// joins.
    pub fn sorting(&self) -> SessionState {
        let mut state = self.state.clone();
        let config = self.state.config().clone();
        // With a single partition DataFusion ignores the preference and plans hash joins.
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
        // An outer query without ORDER BY keeps the order of its subquery, so the sort must stay.
        options.sql_parser.enable_subquery_sort_elimination = false;
        // Part of a column's type is in its metadata, which DataFusion loses in expressions, so the
        // check would fail.
        options.execution.skip_physical_aggregate_schema_check = true;
        // The operator that keeps only the top groups does not handle NULL.
        options.optimizer.enable_topk_aggregation = false;
        // The merge phase of a sort has a reservation of its own.
        options.execution.sort_spill_reservation_bytes = 0;
        let memory = usize::try_from(shared.memory_limit).unwrap_or(usize::MAX);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(std::sync::Arc::new(Memory::new(memory)))
            .with_disk_manager_builder(DiskManagerBuilder::default())
            .build_arc();
        let runtime = runtime.map_err(datafusion_error)?;
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_analyzer_rules(analyzer_rules())
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_rules())
            .with_query_planner(Arc::new(Planner))
            .build();
        register(&mut state).map_err(datafusion_error)?;
        Ok(General(state))
    }
}

/// Returns the analyzer rules: DataFusion's, mainly type coercion, between ours.
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
        Arc::new(TextCasts),
        Arc::new(Numbers),
        Arc::new(NormalizeFloats),
        Arc::new(InLists),
        Arc::new(Guards),
        Arc::new(InnerOrders),
        Arc::new(Unnest),
        Arc::new(HideKeys),
    ];
    first.into_iter().chain(Analyzer::new().rules).chain(last).collect()
}

/// Returns the logical optimizer rules. [`DateComparisons`] follows constant folding, so that its
/// comparisons can still be pushed down to the tables. [`LateColumns`] is last, when unused columns
/// have been pruned.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules: Vec<_> = Optimizer::new().rules.into_iter().map(guarded).collect();
    let constants = rules.iter().position(|rule| rule.name() == "simplify_expressions");
    rules.insert(constants.map_or(0, |at| at + 1), Arc::new(DateComparisons));
    if let Some(sorts) = rules.iter_mut().find(|rule| rule.name() == duplicate_sort_keys::INSTEAD_OF) {
        *sorts = Arc::new(DuplicateSortKeys);
    }
    rules.push(Arc::new(LateColumns));
    rules
}

/// Returns the physical optimizer rules without those that push filters down. They tell the columns
/// of the two join sides apart by name only, and of two columns with one name the wrong side may
/// get the filter: `a RIGHT JOIN b ... WHERE a.x IS NULL` loses rows. The logical rules have
/// already pushed filters down, while columns still had their table qualifier.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
    if let Some(at) = rules.iter().position(|rule| rule.name() == hidden_sorts::INSTEAD_OF) {
        let requirements = rules.remove(at);
        rules.insert(at, Arc::new(HideSorts(requirements)));
        rules.insert(at, Arc::new(JoinOrders));
    }
    // Before any rule that looks at orderings.
    rules.insert(0, Arc::new(GroupingOrders));
    rules.push(Arc::new(YieldInJoins));
    rules.push(Arc::new(AggregateScans));
    rules.push(Arc::new(PushJoinFilters));
    rules.push(Arc::new(ShareTotals));
    rules
}

/// Logical rules without which some plans have no physical operators.
const NEEDED: [&str; 6] = [
    // Null-aware joins (`NOT IN`) require their condition as join keys.
    "extract_equijoin_predicate",
    "rewrite_set_comparison",
    "replace_distinct_aggregate",
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
];

/// The corresponding physical rules: those that provide the required ordering and partitioning of
/// inputs, and ours that make a query cancellable.
const NEEDED_OPERATORS: [&str; 7] = [
    "OutputRequirements",
    hidden_sorts::INSTEAD_OF,
    "EnsureCooperative",
    "SanityCheckPlan",
    "cairn_grouping_orders",
    "cairn_join_orders",
    "cairn_give_way",
];

/// Returns a state whose plans stay as written, as far as such plans can run.
///
/// Errors: none known.
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
    // The builder adds functions in no particular order. DataFusion's functions that ours replaced
    // are still registered under their aliases, and would take their primary names back. One that
    // kept its primary name may have an alias that is ours, so functions with aliases come first.
    let own = template.scalar_functions().iter().filter(|(name, function)| *name == function.name());
    let mut own: Vec<_> = own.map(|(_, function)| function).collect();
    own.sort_by_key(|function| (function.aliases().is_empty(), function.name().to_owned()));
    for function in own {
        state.register_udf(Arc::clone(function))?;
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

/// Returns the session's DataFusion state, once it has been set up.
fn engine_of(session: &Session) -> Option<&Engine> {
    session.general_state.as_ref().and_then(|state| state.downcast_ref())
}

fn not_set_up() -> Error {
    Error::new(INTERNAL_ERROR, "the general path is not set up")
}

/// Returns the state shared by all connections, and sets it up at the first call.
fn template(shared: &Shared) -> Result<&SessionState> {
    if shared.general.get().is_none() {
        let general = General::new(shared)?;
        // Another connection may have set it up first. Its state is equivalent.
        let _ = shared.general.set(Box::new(general));
    }
    let general = shared.general.get().and_then(|general| general.downcast_ref());
    general.map(|General(template)| template).ok_or_else(not_set_up)
}

impl Session {
    /// Returns the connection's DataFusion state, set to the view of the open statement.
    ///
    /// Errors: those of setting it up.
    pub(super) fn engine(&mut self) -> Result<&Engine> {
        let optimizes = self.context.settings.optimizer;
        if engine_of(self).is_none_or(|engine| engine.optimizes != optimizes) {
            let template = template(&self.shared)?;
            let current = Arc::new(Current::default());
            let mut state = match optimizes {
                true => template.clone(),
                false => unoptimized(template).map_err(datafusion_error)?,
            };
            state.config_mut().set_extension(Arc::clone(&current));
            self.general_state = Some(Box::new(Engine { state, current, optimizes }));
        }
        let view = self.view_to_read()?;
        let engine = engine_of(self).ok_or_else(not_set_up)?;
        engine.current.set(Some(view));
        Ok(engine)
    }

    /// Returns the view that the queries of the open statement read.
    ///
    /// Errors: there is no transaction.
    pub(super) fn view_to_read(&mut self) -> Result<View> {
        let canceller = self.cursor_canceller.clone();
        let view = self.transaction()?.view().clone();
        Ok(match canceller {
            Some(canceller) => view.with_canceller(canceller),
            None => view,
        })
    }
}

/// Releases the view of the last statement. Schema changes wait for it.
pub(super) fn release_view(session: &Session) {
    if let Some(engine) = engine_of(session) {
        engine.current.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::names_for_general_path;

    /// Goal: without the optimizer, a name stands for the same function as with it.
    /// Method: several states, because the order in which a builder adds functions is random.
    #[test]
    fn unoptimized_plans_call_the_same_functions() {
        let mut template = SessionStateBuilder::new().with_default_features().build();
        register(&mut template).unwrap();
        for _ in 0..20 {
            let state = unoptimized(&template).unwrap();
            for name in names_for_general_path() {
                let [own, other] = [&template, &state].map(|state| &state.scalar_functions()[name]);
                assert_eq!(own, other, "{name}");
            }
        }
    }
}
