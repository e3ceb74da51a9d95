//! Resolves the names in a query.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{DataType, SchemaRef};
use cairn_table::Catalog;
use cairn_table::schema::{ColumnType, ViewDef};
use cairn_vfs::sync::atomic::AtomicI64;
use cairn_vfs::sync::{Arc, Mutex, OnceLock, lock};
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::sql::planner::{NullOrdering, ParserOptions, SqlToRel};
use sqlparser::ast::Statement as Tree;

use super::enclosing::Enclosing;
use crate::batch::kind_of;
use crate::direct::table_of;
use crate::error::Error;
use crate::expr::functions;
use crate::general::errors::external;
use crate::general::functions::sequences::Counting;
use crate::general::functions::series;
use crate::general::functions::system_functions::system_function;
use crate::general::scan::provider::Provider;
use crate::general::scan::system_tables::SystemProvider;
use crate::pg_catalog::{self, SystemTable, World};
use crate::runtime::sequence::HIDDEN;
use crate::session::ViewColumns;
use crate::sqlstate::{INVALID_OBJECT_DEFINITION, UNDEFINED_TABLE};
use crate::syntax::{Plain, TableName, one, planning};

/// The tables, views and functions that a statement can refer to.
pub(crate) struct Names<'a> {
    pub state: &'a SessionState,
    pub catalog: &'a Arc<Catalog>,
    pub search_path: &'a [String],
    /// The table whose rows are to be changed.
    pub target: Option<u32>,
    pub world: Arc<World>,
    counting: Counting,
    /// Schema and name of the views being planned, outermost first.
    within: Vec<(String, String)>,
    /// The last number given to a query that is computed once. Views share the counter with the
    /// statement that uses them.
    numbers: Arc<AtomicI64>,
    sources: Mutex<HashMap<TableName, Arc<dyn TableSource>>>,
    /// The planners of the state, preceded by one that knows the tables of the statement.
    planners: OnceLock<Vec<Arc<dyn ExprPlanner>>>,
}

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("search_path", &self.search_path).finish_non_exhaustive()
    }
}

impl<'a> Names<'a> {
    pub fn new(
        state: &'a SessionState,
        catalog: &'a Arc<Catalog>,
        search_path: &'a [String],
        target: Option<u32>,
        world: Arc<World>,
        counting: Counting,
    ) -> Self {
        Names {
            state,
            catalog,
            search_path,
            target,
            world,
            counting,
            within: Vec::new(),
            numbers: Arc::default(),
            sources: Mutex::default(),
            planners: OnceLock::new(),
        }
    }

    /// Returns the unoptimized plan of a statement.
    ///
    /// Errors: those of planning the statement.
    pub fn plan(&self, tree: Tree) -> Result<LogicalPlan> {
        let options = ParserOptions {
            parse_float_as_decimal: true,
            default_null_ordering: NullOrdering::NullsMax,
            support_varchar_with_length: true,
            ..ParserOptions::new()
        };
        self.planners.get_or_init(|| {
            let enclosing = Enclosing::new(&tree, |name| self.table_source(name).ok());
            let first: Arc<dyn ExprPlanner> = Arc::new(enclosing);
            std::iter::once(first).chain(self.state.expr_planners().iter().cloned()).collect()
        });
        let planned = super::recursion::plan(tree, |tree| {
            SqlToRel::new_with_options(self, options).sql_statement_to_plan(tree)
        })?;
        crate::general::operators::shared_cte::share_ctes(planned, &self.numbers)
    }

    /// Returns a table or view. All references to it share one source.
    fn table_source(&self, name: &TableName) -> Result<Arc<dyn TableSource>> {
        if let Some(source) = lock(&self.sources).get(name) {
            return Ok(Arc::clone(source));
        }
        let Some(source) = self.source(name)? else {
            return Err(external(Error::new(UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))));
        };
        lock(&self.sources).insert(name.clone(), Arc::clone(&source));
        Ok(source)
    }

    fn source(&self, name: &TableName) -> Result<Option<Arc<dyn TableSource>>> {
        if let Some(table) =
            table_of(self.catalog, self.search_path, name).filter(|table| table.def().schema != HIDDEN)
        {
            let provider = Provider::new(table, self.target == Some(table.id()));
            return Ok(Some(provider_as_source(Arc::new(provider))));
        }
        let schemas: Vec<&str> = match &name.schema {
            Some(schema) => vec![schema],
            None => self.search_path.iter().map(String::as_str).collect(),
        };
        if let Some(view) = schemas.iter().find_map(|schema| self.catalog.view(schema, &name.name)) {
            return self.view(view).map(Some);
        }
        Ok(SystemTable::named(name, &self.world)
            .map(|table| provider_as_source(Arc::new(SystemProvider(table)))))
    }

    /// Plans a view. DataFusion also looks up a view where a WITH query has the same name, and then
    /// ignores the error.
    fn view(&self, view: &Arc<ViewDef>) -> Result<Arc<dyn TableSource>> {
        if self.within.iter().any(|(schema, name)| *schema == view.schema && *name == view.name) {
            let what = format!("infinite recursion detected in rules for relation \"{}\"", view.name);
            return Err(external(Error::new(INVALID_OBJECT_DEFINITION, what)));
        }
        // A view is planned while the query above it is being planned, so it needs stack space for
        // its own text.
        let plan = planning(0, || self.view_plan(view))?;
        Ok(provider_as_source(Arc::new(ViewTable::new(plan, Some(view.query.clone())))))
    }

    /// Plans the query of a view. The number of nested views has been checked before, and that none
    /// of them refers to itself ([`size_of`](super::views::size_of)).
    fn view_plan(&self, view: &ViewDef) -> Result<LogicalPlan> {
        let parsed = one(&view.query).map_err(external)?;
        let Plain::Tree(tree) = &*parsed.statement else { return plan_err!("a view is no query") };
        let mut tree = tree.clone();
        if pg_catalog::is_about(&tree) {
            pg_catalog::rewrite(&mut tree, &self.world);
        }
        // The names in a view are resolved in the schema where it was created.
        let path = [view.schema.clone(), cairn_table::PUBLIC.to_owned()];
        let lookup = crate::general::rewrite::Lookup { catalog: self.catalog, search_path: &path, own: &[] };
        crate::general::rewrite::rewrite(&mut tree, &[], lookup).map_err(external)?;
        let mut within = self.within.clone();
        within.push((view.schema.clone(), view.name.clone()));
        let inner = Names {
            state: self.state,
            catalog: self.catalog,
            search_path: &path,
            target: None,
            world: Arc::clone(&self.world),
            counting: self.counting.clone(),
            within,
            numbers: Arc::clone(&self.numbers),
            sources: Mutex::default(),
            planners: OnceLock::new(),
        };
        let plan = inner.plan(tree)?;
        let names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        if view.columns.is_empty() || view.columns == names {
            return Ok(plan);
        }
        // A table may have gained columns since the view expanded its `*`.
        let places: Option<Vec<usize>> = match names.len() > view.columns.len() {
            true => view.columns.iter().map(|own| names.iter().position(|name| name == own)).collect(),
            false => Some((0..names.len()).collect()),
        };
        let Some(places) = places else {
            let what =
                format!("view \"{}\", which expands * over a table that has gained columns,", view.name);
            return Err(external(Error::unsupported(what)));
        };
        let columns = plan.schema().columns();
        let renamed = places.into_iter().enumerate().filter_map(|(at, place)| {
            let column = columns.get(place)?.clone();
            let name = view.columns.get(at).cloned().unwrap_or_else(|| column.name.clone());
            Some(Expr::Column(column).alias(name))
        });
        let renamed: Vec<Expr> = renamed.collect();
        LogicalPlanBuilder::from(plan).project(renamed)?.build()
    }

    /// Returns the columns of all views. A view that can no longer be planned is left out.
    pub fn view_columns(&self) -> ViewColumns {
        let columns = |view: &ViewDef| -> Option<Vec<(String, ColumnType)>> {
            let size = super::views::size_of_view(self.catalog, view).ok()?;
            planning(size.levels, || {
                let plan = self.view_plan(view).ok()?;
                // The analyzer determines the types.
                let analyzed = self.state.analyzer().execute_and_check(plan, self.options(), |_, _| {});
                let plan = analyzed.ok()?;
                let fields = plan.schema().fields();
                Some(fields.iter().map(|field| (field.name().clone(), kind_of(field))).collect())
            })
        };
        self.catalog.views().filter_map(|(id, view)| Some((id, columns(view)?))).collect()
    }
}

/// DataFusion's functions that rewritten statements call by other names than PostgreSQL's, those of
/// its grammar, and those that return sets, which the table of functions does not list.
const INTERNAL: [&str; 8] = [
    "array_element",
    "array_remove_all",
    "array_replace_all",
    "array_sort",
    "generate_series",
    "row",
    "struct",
    "uuid",
];

/// Whether a statement may call a function: one of the table of functions, or one that rewritten
/// statements call. DataFusion has others, whose results nobody has compared with PostgreSQL's.
fn may_call(name: &str) -> bool {
    functions::has(name) || INTERNAL.contains(&name) || name.starts_with("cairn_")
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.table_source(&TableName {
            schema: name.schema().map(str::to_owned),
            name: name.table().to_owned(),
        })
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let Some(function) = self.state.table_functions().get(name).filter(|_| name == series::NAME) else {
            return Err(external(Error::new(
                crate::sqlstate::UNDEFINED_FUNCTION,
                format!("function {name} does not exist"),
            )));
        };
        let typed = args
            .iter()
            .cloned()
            .map(crate::general::rules::literals::narrow_in)
            .collect::<Result<Vec<_>>>()?;
        let args =
            if name == series::NAME { typed.iter().cloned().map(series::wide).collect() } else { args };
        let args = args
            .into_iter()
            .map(|arg| crate::general::plan::query::literal(arg, self.state))
            .collect::<Result<Vec<_>>>()?;
        let arguments = datafusion::catalog::TableFunctionArgs::new(&args, self.state);
        let source = provider_as_source(function.create_table_provider_with_args(arguments)?);
        if name == series::NAME { series::table(source, &typed) } else { Ok(source) }
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.planners.get().map_or(self.state.expr_planners(), Vec::as_slice)
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.state.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        None
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        system_function(name, &self.world)
            .or_else(|| self.counting.function(name, &self.world))
            .or_else(|| self.state.scalar_functions().get(name).filter(|_| may_call(name)).cloned())
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).filter(|_| may_call(name)).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).filter(|_| may_call(name)).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).filter(|_| may_call(name)).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().filter(|name| may_call(name)).cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().filter(|name| may_call(name)).cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().filter(|name| may_call(name)).cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().filter(|name| may_call(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::execution::SessionStateBuilder;

    use super::*;

    /// DataFusion's functions that no statement can call, because PostgreSQL has none of their
    /// names. A new version of DataFusion may bring others: they belong here or into the table.
    const REFUSED: &str = "any_value approx_distinct approx_median approx_percentile_cont \
        approx_percentile_cont_with_weight array_add array_any_value array_avg array_compact \
        array_concat array_contains array_distance array_distinct array_empty array_except \
        array_extract array_has array_has_all array_has_any array_indexof array_intersect \
        array_join array_max array_min array_normalize array_pop_back array_pop_front \
        array_product array_push_back array_push_front array_remove_n array_repeat \
        array_replace_n array_resize array_reverse array_scale array_slice array_subtract \
        array_sum array_union arrays_overlap arrays_zip arrow_cast arrow_field arrow_metadata \
        arrow_try_cast arrow_typeof cast_to_type contains cosine_distance covar date_format \
        datepart datetrunc dot_product element_at empty ends_with file_row_index find_in_set \
        flatten from_unixtime get_field ifnull inner_product input_file_name instr isnan iszero \
        levenshtein list_add list_any_value list_append list_avg list_cat list_compact \
        list_concat list_contains list_dims list_distance list_distinct list_element list_empty \
        list_except list_extract list_has list_has_all list_has_any list_indexof list_intersect \
        list_join list_length list_max list_ndims list_normalize list_pop_back list_pop_front \
        list_position list_positions list_prepend list_product list_push_back list_push_front \
        list_remove list_remove_all list_remove_n list_repeat list_replace list_replace_all \
        list_replace_n list_resize list_reverse list_scale list_slice list_sort list_subtract \
        list_sum list_to_string list_union list_zip log2 make_array make_list map map_entries \
        map_extract map_keys map_values mean median named_struct nanvl nvl nvl2 position \
        quantile_cont rand range signum string_to_list substr_index substring_index \
        to_local_time to_time to_timestamp_micros to_timestamp_millis to_timestamp_nanos \
        to_timestamp_seconds to_unixtime today try_cast_to_type union_extract union_tag var \
        var_population var_sample version with_metadata";

    /// Goal: no function of PostgreSQL's is refused by an oversight.
    /// Method: the names that DataFusion registers, against a list that was compared with the
    /// catalog of PostgreSQL 15.
    #[test]
    fn only_foreign_functions_are_refused() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let scalars = state.scalar_functions().keys();
        let names = scalars.chain(state.aggregate_functions().keys()).chain(state.window_functions().keys());
        let refused: BTreeSet<&str> = names.map(String::as_str).filter(|name| !may_call(name)).collect();
        assert_eq!(refused.into_iter().collect::<Vec<_>>().join(" "), REFUSED);
    }
}
