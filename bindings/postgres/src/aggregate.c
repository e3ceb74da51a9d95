/*
 * Plans aggregates over one table as a scan of compressed pages: count, sum, min, max and avg, of all rows or by the first column
 * of the index, with conditions on its columns. Anything else is left to PostgreSQL.
 */
#include "aggregate_request.h"

#include "cairn.h"

#include <math.h>

#include "access/nbtree.h"
#include "access/skey.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "rewrite/rewriteManip.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

static bool enable_aggregate = true;
static create_upper_paths_hook_type next_hook = NULL;

static Plan *plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *plans);

static const CustomPathMethods path_methods = {
	.CustomName = "Cairn Aggregate",
	.PlanCustomPath = plan_aggregate,
};

static const CustomScanMethods scan_methods = {
	.CustomName = "Cairn Aggregate",
	.CreateCustomScanState = cairn_aggregate_state,
};

/* Parameters of an outer query have no plan yet to be named after: they are shown by number, as those of a statement. */
static Node *
number_parameters(Node *node, void *context)
{
	if (node != NULL && IsA(node, Param))
	{
		Param	   *copy = copyObject((Param *) node);

		copy->paramkind = PARAM_EXTERN;
		return (Node *) copy;
	}
	return expression_tree_mutator(node, number_parameters, context);
}

/* For EXPLAIN, which makes text of them: few plans are shown. Null if there are none. */
static Node *
conditions_tree(CairnRequest *request, List *clauses)
{
	Node	   *all;

	if (clauses == NIL)
		return NULL;
	all = number_parameters((Node *) make_ands_explicit(clauses), NULL);
	/* The context that it is shown in knows one table, as number 1. */
	ChangeVarNodes(all, request->varno, 1, 0);
	return all;
}

static List *
conditions_trees(CairnRequest *request, RelOptInfo *rel)
{
	List	   *trees = list_make1(conditions_tree(request, extract_actual_clauses(rel->baserestrictinfo, false)));
	ListCell   *cell;

	foreach(cell, request->filters)
		trees = lappend(trees, conditions_tree(request, list_make1(lfirst(cell))));
	return trees;
}

/* What the plan needs to know, for a path of this role. */
static List *
private_of(PlannerInfo *root, RelOptInfo *rel, CairnRequest *request, CairnAggregateRole role, List *tlist)
{
	RangeTblEntry *rte = planner_rt_fetch(request->varno, root);
	List	   *shape = list_make3_int(request->grouped, role, request->where_keys);

	return list_make5(list_make2_oid(rte->relid, request->index->indexoid), request->output_info,
					  list_make2(request->keys, list_concat(shape, request->filter_keys)),
					  list_make3(tlist, request->arguments, role == CAIRN_PARTIAL ? NIL : request->having),
					  conditions_trees(request, rel));
}

/*
 * The column in which a process hands out its totals. The executor puts them there; this stands for it in the plan, where it has to be
 * an expression, and is never computed.
 */
static Expr *
totals_column(void)
{
	return (Expr *) makeFuncExpr(F_DECODE, BYTEAOID,
								 list_make2(makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum("totals"), false, false),
											makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum("escape"), false, false)),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/*
 * The share of the index that is read: what equalities on the first columns and a range on the one behind them leave, as cairn_conditions_bound() has it. How
 * many conditions are left, to be asked about each of those rows, is in `filters`.
 */
static double
share_read(PlannerInfo *root, CairnRequest *request, bool arrays_in_bounds, int *filters)
{
	List	   *bounds = NIL;
	bool		goes_on = true;

	for (int column = 0; column < request->index->nkeycolumns && goes_on; column++)
	{
		goes_on = false;
		for (int i = 0; i < request->where_keys; i++)
		{
			int			flags = list_nth_int(request->keys, 6 * i);

			if (list_nth_int(request->keys, 6 * i + 1) != column || ((flags & SK_SEARCHARRAY) != 0 && !arrays_in_bounds))
				continue;
			bounds = lappend(bounds, list_nth(request->where, i));
			goes_on |= (flags & SK_SEARCHNULL) != 0 || list_nth_int(request->keys, 6 * i + 2) == BTEqualStrategyNumber;
		}
	}
	*filters = list_length(request->keys) / 6 - list_length(bounds);
	return clauselist_selectivity(root, bounds, request->varno, JOIN_INNER, NULL);
}

/*
 * What it costs to look rows up in the heap, those on pages that are not all-visible, as PostgreSQL has it for index-only scans. Rows of the tail are among
 * them: nobody has vacuumed their pages since they came.
 */
static Cost
visits_cost(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, double rows, double correlation)
{
	double		unseen = 1 - rel->allvisfrac;
	double		scattered = ceil(index_pages_fetched(rows, rel->pages, index->pages, root) * unseen);
	double		ordered = ceil(rows / Max(rel->tuples, 1) * rel->pages * unseen);
	Cost		most = scattered * random_page_cost;
	Cost		least = ordered < 1 ? 0 : random_page_cost + (ordered - 1) * seq_page_cost;

	return most + correlation * correlation * (least - most) + rows * unseen * (cpu_tuple_cost + cpu_operator_cost);
}

/* What of an aggregate several processes can share: reading, and adding up. How many pages are read is in `pages`. */
static Cost
work_cost(PlannerInfo *root, RelOptInfo *rel, CairnRequest *request, double correlation, bool arrays_in_bounds, double *pages)
{
	IndexOptInfo *index = request->index;
	int			filters;
	double		read = share_read(root, request, arrays_in_bounds, &filters);
	double		rows = clauselist_selectivity(root, request->where, request->varno, JOIN_INNER, NULL) * index->tuples;

	*pages = read * index->pages;
	/* Pages are read in order. A value costs a fraction of what an operator does, one that is asked about as one that is added up. */
	return *pages * seq_page_cost + read * index->tuples * cpu_operator_cost * 0.1 * (1 + filters) +
		rows * cpu_operator_cost * 0.1 * list_length(request->outputs) + visits_cost(root, rel, index, rows, correlation);
}

/* What a scan costs before its first row, the tail's pages among it, and how far the order of the index is that of the heap. */
static Cost
start_cost(PlannerInfo *root, IndexOptInfo *index, double *correlation)
{
	IndexPath  *all = makeNode(IndexPath);
	Cost		startup;
	Cost		total;
	Selectivity selectivity;
	double		pages;

	all->path.pathtype = T_IndexOnlyScan;
	all->path.parent = index->rel;
	all->indexinfo = index;
	cairn_cost_estimate(root, all, 1, &startup, &total, &selectivity, correlation, &pages);
	pfree(all);
	return startup;
}

/*
 * `serial` by several processes: each adds up what it reads, and one adds that up. All but handing out the groups is done before the first of them, by each
 * process and by the one.
 */
static void
offer_parallel(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *output, CairnRequest *request, const CustomPath *serial, Cost start,
			   double correlation, double groups)
{
	double		pages;
	Cost		work = work_cost(root, rel, request, correlation, false, &pages);
	int			workers = compute_parallel_worker(rel, -1, pages, max_parallel_workers_per_gather);
	double		processes = workers + (parallel_leader_participation ? Max(1 - 0.3 * workers, 0) : 0);
	double		parts;
	PathTarget *target;
	CustomPath *part;
	CustomPath *whole;
	Path	   *gather;

	if (workers <= 0 || !rel->consider_parallel || !is_parallel_safe(root, (Node *) request->arguments))
		return;
	/* A group is handed up by each process that meets it. It lies in one place: more than one process does only where one page ends and another begins. */
	parts = clamp_row_est(Min(groups * (workers + 1), groups + pages));
	target = create_empty_pathtarget();
	add_column_to_pathtarget(target, totals_column(), 0);
	part = makeNode(CustomPath);
	*part = *serial;
	part->path.pathtarget = target;
	part->path.parallel_aware = part->path.parallel_safe = true;
	part->path.parallel_workers = workers;
	part->path.rows = clamp_row_est(parts / processes);
	part->path.startup_cost = start + work / processes;
	part->path.total_cost = part->path.startup_cost + part->path.rows * cpu_tuple_cost;
	part->path.pathkeys = NIL;
	part->custom_private = private_of(root, rel, request, CAIRN_PARTIAL, list_make1(makeTargetEntry(totals_column(), 1, NULL, false)));
	gather = (Path *) create_gather_path(root, output, &part->path, target, NULL, &parts);
	whole = makeNode(CustomPath);
	*whole = *serial;
	whole->custom_paths = list_make1(gather);
	/* They are sorted, as PostgreSQL's estimates have it, and added up. */
	whole->path.startup_cost = gather->total_cost + 2 * cpu_operator_cost * parts * log(Max(parts, 2)) / log(2) +
		parts * cpu_operator_cost * list_length(request->outputs) + serial->path.pathtarget->cost.startup;
	whole->path.total_cost = whole->path.startup_cost + (serial->path.total_cost - serial->path.startup_cost);
	add_path(output, &whole->path);
}

/* Paths over `request->index`, in `output`. */
static void
offer(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *output, CairnRequest *request, PathTarget *target, double groups)
{
	CustomPath *path = makeNode(CustomPath);
	IndexOptInfo *index = request->index;
	double		correlation;
	Cost		start = start_cost(root, index, &correlation);
	double		pages;
	CustomPath	serial;
	ListCell   *cell;
	List	   *tlist = NIL;

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	/* A condition on groups keeps about a third of them, as PostgreSQL supposes of one that it knows nothing of. */
	path->path.rows = request->having == NIL ? groups : clamp_row_est(groups / 3);
	/* Everything is added up before the first group is handed out. */
	path->path.startup_cost = start + work_cost(root, rel, request, correlation, true, &pages) + target->cost.startup;
	path->path.total_cost = path->path.startup_cost + groups * (cpu_tuple_cost + target->cost.per_tuple);
	if (request->grouped && list_length(root->group_pathkeys) == 1 && !index->reverse_sort[0] && !index->nulls_first[0])
	{
		PathKey    *key = linitial(root->group_pathkeys);

		if (!key->pk_nulls_first && key->pk_opfamily == index->sortopfamily[0] &&
#if PG_VERSION_NUM >= 180000
			key->pk_cmptype == COMPARE_LT
#else
			key->pk_strategy == BTLessStrategyNumber
#endif
			)
			path->path.pathkeys = root->group_pathkeys;
	}
	foreach(cell, request->outputs)
		tlist = lappend(tlist, makeTargetEntry(copyObject(lfirst(cell)), list_length(tlist) + 1, NULL, false));
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	path->custom_private = private_of(root, rel, request, CAIRN_WHOLE, tlist);
	/* The planner frees a path that another is better than. */
	serial = *path;
	add_path(output, &path->path);
	offer_parallel(root, rel, output, request, &serial, start, correlation, groups);
}

static Plan *
plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *plans)
{
	CustomScan *scan = makeNode(CustomScan);
	List	   *trees = lfourth(path->custom_private);

	scan->scan.plan.targetlist = tlist;
	scan->scan.scanrelid = 0;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	scan->custom_scan_tlist = linitial(trees);
	scan->custom_exprs = lsecond(trees);
	scan->custom_plans = plans;
	scan->scan.plan.qual = lthird(trees);
	scan->custom_private = list_make4(linitial(path->custom_private), lsecond(path->custom_private),
									  lthird(path->custom_private), list_nth(path->custom_private, 4));
	return &scan->scan.plan;
}

/* The rows of one table, as a scan of all of it would give them. */
static bool
is_plain_table(PlannerInfo *root, RelOptInfo *rel)
{
	RangeTblEntry *rte;

	if (rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION || !bms_is_empty(rel->lateral_relids))
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	return !rte->inh && rte->tablesample == NULL && (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW);
}

static void
offer_all(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *rel, RelOptInfo *output)
{
	Query	   *parse = root->parse;
	List	   *exprs;
	PathTarget *target;
	SortGroupClause *group = NULL;
	ListCell   *cell;

	if (!is_plain_table(root, rel) || root->rowMarks != NIL || parse->hasTargetSRFs ||
		parse->commandType != CMD_SELECT)
		return;
	if (stage == UPPERREL_GROUP_AGG)
	{
		if (parse->groupingSets != NIL || list_length(parse->groupClause) > 1)
			return;
		if (parse->groupClause != NIL)
			group = linitial(parse->groupClause);
		target = root->upper_targets[UPPERREL_GROUP_AGG];
	}
	else
	{
		if (parse->hasDistinctOn || list_length(parse->distinctClause) != 1 || parse->hasAggs || parse->groupClause != NIL ||
			parse->hasWindowFuncs)
			return;
		group = linitial(parse->distinctClause);
		target = rel->reltarget;
		if (list_length(target->exprs) != 1)
			return;
	}
	exprs = target->exprs;
	foreach(cell, rel->indexlist)
	{
		CairnRequest request = {0};

		request.index = lfirst_node(IndexOptInfo, cell);
		request.varno = rel->relid;
		request.grouped = group != NULL;
		request.having = stage == UPPERREL_GROUP_AGG ? (List *) parse->havingQual : NIL;
		if (!cairn_is_own(request.index) || request.index->hypothetical || (request.index->indpred != NIL && !request.index->predOK))
			continue;
		if (group != NULL)
		{
			TargetEntry *entry = get_sortgroupclause_tle(group, root->processed_tlist);

			/* The column's own equality, so that groups are the index's. */
			if (!IsA(entry->expr, Var) || cairn_request_column(&request, (Node *) entry->expr) != 0 || !cairn_request_orders(exprType((Node *) entry->expr)) ||
				get_op_opfamily_strategy(group->eqop, request.index->opfamily[0]) != BTEqualStrategyNumber)
				continue;
			if (stage == UPPERREL_DISTINCT && !equal(linitial(exprs), entry->expr))
				continue;
		}
		if (cairn_request_conditions(&request, rel) && cairn_request_target(&request, exprs) && cairn_request_target(&request, request.having))
			offer(root, rel, output, &request, target, group == NULL ? 1 :
				  estimate_num_groups(root, list_make1(get_sortgroupclause_tle(group, root->processed_tlist)->expr),
									  Max(rel->rows, 1), NULL, NULL));
	}
}

static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	if (next_hook != NULL)
		next_hook(root, stage, input, output, extra);
	if (enable_aggregate && (stage == UPPERREL_GROUP_AGG || stage == UPPERREL_DISTINCT))
		offer_all(root, stage, input, output);
}

void
cairn_aggregate_init(void)
{
	DefineCustomBoolVariable("cairn.enable_aggregate",
							 "Lets the planner answer aggregates from the compressed pages of cairn indexes.",
							 NULL, &enable_aggregate, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
	next_hook = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths;
}
