/*
 * Plans aggregates over one table as a scan of compressed pages: count, sum, min, max and avg, of all rows or by the first column
 * of the index, with conditions on its columns. Anything else is left to PostgreSQL.
 */
#include "aggregate.h"

#include "access/nbtree.h"
#include "access/skey.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
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
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

static bool enable_aggregate = true;
static create_upper_paths_hook_type next_hook = NULL;

/* What a query asks for, in terms of an index. */
typedef struct Request
{
	IndexOptInfo *index;
	Index		varno;
	List	   *outputs;		/* Aggref and Var, each once */
	List	   *output_info;	/* three integers each */
	List	   *keys;			/* six integers each */
	List	   *arguments;		/* of the conditions */
	bool		grouped;
	List	   *having;			/* conditions on groups */
} Request;

/* The index column that a Var is, or -1. */
static int
column_of(Request *request, Node *node)
{
	Var		   *var = (Var *) node;

	while (node != NULL && IsA(node, RelabelType))
	{
		node = (Node *) ((RelabelType *) node)->arg;
		var = (Var *) node;
	}
	if (node == NULL || !IsA(node, Var) || var->varno != (int) request->varno || var->varlevelsup != 0)
		return -1;
	for (int i = 0; i < request->index->ncolumns; i++)
		if (request->index->indexkeys[i] == var->varattno && var->varattno > 0)
			return i;
	return -1;
}

/* Types whose values the codec orders and adds as integers. */
static bool
is_number(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

static bool
is_ordered(Oid type)
{
	return is_number(type) || type == DATEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID;
}

static bool
add_output(Request *request, Node *node, CairnAggregateKind kind, int column, Oid type)
{
	request->outputs = lappend(request->outputs, node);
	request->output_info = lappend_int(request->output_info, kind);
	request->output_info = lappend_int(request->output_info, column);
	request->output_info = lappend_int(request->output_info, (int) type);
	return true;
}

static bool
take_aggregate(Request *request, Aggref *aggregate)
{
	Node	   *argument;
	int			column;
	Oid			type;
	char	   *name;

	if (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL || aggregate->aggfilter != NULL ||
		aggregate->aggdirectargs != NIL || aggregate->aggvariadic || aggregate->agglevelsup != 0 ||
		aggregate->aggsplit != AGGSPLIT_SIMPLE || aggregate->aggfnoid >= FirstNormalObjectId)
		return false;
	name = get_func_name(aggregate->aggfnoid);
	if (aggregate->args == NIL)
		return strcmp(name, "count") == 0 &&
			add_output(request, (Node *) aggregate, CAIRN_COUNT_ROWS, -1, INT8OID);
	if (list_length(aggregate->args) != 1)
		return false;
	argument = (Node *) ((TargetEntry *) linitial(aggregate->args))->expr;
	column = column_of(request, argument);
	if (column < 0 || IsA(argument, RelabelType))
		return false;
	type = exprType(argument);
	if (strcmp(name, "count") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_COUNT_VALUES, column, type);
	if (is_number(type) && strcmp(name, "sum") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_SUM, column, type);
	if (is_number(type) && strcmp(name, "avg") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_AVERAGE, column, type);
	if (is_ordered(type) && strcmp(name, "min") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_LEAST, column, type);
	if (is_ordered(type) && strcmp(name, "max") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_GREATEST, column, type);
	return false;
}

/* Whether everything in the target is made of aggregates that can be had here and of the group's column. */
static bool
take_target(Request *request, List *exprs)
{
	List	   *parts = pull_var_clause((Node *) exprs, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
										PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, parts)
	{
		Node	   *part = lfirst(cell);

		if (list_member(request->outputs, part))
			continue;
		if (IsA(part, Aggref) ? take_aggregate(request, (Aggref *) part)
			: IsA(part, Var) && request->grouped && column_of(request, part) == 0 &&
			add_output(request, part, CAIRN_GROUP_KEY, 0, exprType(part)))
			continue;
		return false;
	}
	return true;
}

static void
add_key(Request *request, int flags, int column, int strategy, Oid subtype, Oid collation, Oid function, Node *argument)
{
	request->keys = lappend_int(request->keys, flags);
	request->keys = lappend_int(request->keys, column);
	request->keys = lappend_int(request->keys, strategy);
	request->keys = lappend_int(request->keys, (int) subtype);
	request->keys = lappend_int(request->keys, (int) collation);
	request->keys = lappend_int(request->keys, (int) function);
	request->arguments = lappend(request->arguments, argument);
}

static bool
is_constant(Node *node)
{
	return !contain_var_clause(node) && !contain_volatile_functions(node) && !contain_subplans(node);
}

static Oid
column_type(Request *request, int column)
{
	return exprType((Node *) list_nth_node(TargetEntry, request->index->indextlist, column)->expr);
}

/* column op constant, with an operator of the column's family. */
static bool
take_operator(Request *request, Oid operator, Oid collation, Node *left, Node *right, bool is_array)
{
	int			column = column_of(request, left);
	int			strategy;
	Oid			left_type,
				right_type;
	Oid			family;

	if (column < 0 || !is_constant(right))
	{
		operator = get_commutator(operator);
		if (is_array || !OidIsValid(operator) || !is_constant(left))
			return false;
		column = column_of(request, right);
		right = left;
	}
	if (column < 0)
		return false;
	/* A column that is carried along has no order in the index: its values are compared as its type is, whatever the collation. */
	if (column >= request->index->nkeycolumns)
		family = lookup_type_cache(column_type(request, column), TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	else
	{
		family = request->index->opfamily[column];
		if (OidIsValid(request->index->indexcollations[column]) && request->index->indexcollations[column] != collation)
			return false;
	}
	if (!OidIsValid(family) || get_op_opfamily_strategy(operator, family) == 0)
		return false;
	get_op_opfamily_properties(operator, family, false, &strategy, &left_type, &right_type);
	if (is_array && strategy != BTEqualStrategyNumber)
		return false;
	add_key(request, is_array ? SK_SEARCHARRAY : 0, column, strategy, right_type, collation, get_opcode(operator), right);
	return true;
}

static bool
take_condition(Request *request, Node *clause)
{
	if (IsA(clause, OpExpr) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr	   *expr = (OpExpr *) clause;

		return take_operator(request, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args), false);
	}
	if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *expr = (ScalarArrayOpExpr *) clause;

		return take_operator(request, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args), true);
	}
	if (IsA(clause, NullTest) && !((NullTest *) clause)->argisrow)
	{
		NullTest   *test = (NullTest *) clause;
		int			column = column_of(request, (Node *) test->arg);

		if (column < 0)
			return false;
		add_key(request, SK_ISNULL | (test->nulltesttype == IS_NULL ? SK_SEARCHNULL : SK_SEARCHNOTNULL), column,
				InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
				(Node *) makeNullConst(INT4OID, -1, InvalidOid));
		return true;
	}
	return false;
}

static bool
take_conditions(Request *request, RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (info->pseudoconstant)
			return false;
		/* A condition that the predicate of a partial index implies holds for all of its rows. */
		if (list_member(request->index->indpred, info->clause))
			continue;
		if (!take_condition(request, (Node *) info->clause))
			return false;
	}
	return true;
}

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

/* For EXPLAIN, which makes text of them: few plans are shown. */
static Node *
conditions_tree(Request *request, RelOptInfo *rel)
{
	List	   *clauses = extract_actual_clauses(rel->baserestrictinfo, false);
	Node	   *all;

	if (clauses == NIL)
		return NULL;
	all = number_parameters((Node *) make_ands_explicit(clauses), NULL);
	/* The context that it is shown in knows one table, as number 1. */
	ChangeVarNodes(all, request->varno, 1, 0);
	return all;
}

/* A path over `request->index`, in `output`. */
static void
offer(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *output, Request *request, PathTarget *target, double groups)
{
	CustomPath *path = makeNode(CustomPath);
	IndexOptInfo *index = request->index;
	RangeTblEntry *rte = planner_rt_fetch(request->varno, root);
	double		share = clauselist_selectivity(root, rel->baserestrictinfo, request->varno, JOIN_INNER, NULL);
	double		rows = share * index->tuples;
	ListCell   *cell;
	List	   *tlist = NIL;

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	/* A condition on groups keeps about a third of them, as PostgreSQL supposes of one that it knows nothing of. */
	path->path.rows = request->having == NIL ? groups : clamp_row_est(groups / 3);
	/* Pages are read in order. A value costs a fraction of what an operator does; a row that is not all-visible costs a visit. */
	path->path.startup_cost = 10 * cpu_operator_cost;
	path->path.total_cost = path->path.startup_cost + share * index->pages * seq_page_cost +
		rows * cpu_operator_cost * 0.1 * (1 + list_length(request->outputs)) +
		rows * (1 - rel->allvisfrac) * (cpu_tuple_cost + cpu_operator_cost) + groups * cpu_tuple_cost + target->cost.startup +
		target->cost.per_tuple * groups;
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
	path->custom_private = list_make5(list_make2_oid(rte->relid, index->indexoid), request->output_info,
									  list_make2(request->keys, list_make1_int(request->grouped)),
									  list_make3(tlist, request->arguments, request->having),
									  conditions_tree(request, rel));
	add_path(output, &path->path);
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
	Oid			am = get_am_oid("cairn", true);
	ListCell   *cell;

	if (!OidIsValid(am) || !is_plain_table(root, rel) || root->rowMarks != NIL || parse->hasTargetSRFs ||
		parse->commandType != CMD_SELECT || RecoveryInProgress())
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
		Request		request = {0};

		request.index = lfirst_node(IndexOptInfo, cell);
		request.varno = rel->relid;
		request.grouped = group != NULL;
		request.having = stage == UPPERREL_GROUP_AGG ? (List *) parse->havingQual : NIL;
		if (request.index->relam != am || request.index->hypothetical || (request.index->indpred != NIL && !request.index->predOK))
			continue;
		if (group != NULL)
		{
			TargetEntry *entry = get_sortgroupclause_tle(group, root->processed_tlist);

			/* The column's own equality, so that groups are the index's. */
			if (!IsA(entry->expr, Var) || column_of(&request, (Node *) entry->expr) != 0 || !is_ordered(exprType((Node *) entry->expr)) ||
				get_op_opfamily_strategy(group->eqop, request.index->opfamily[0]) != BTEqualStrategyNumber)
				continue;
			if (stage == UPPERREL_DISTINCT && !equal(linitial(exprs), entry->expr))
				continue;
		}
		if (take_target(&request, exprs) && take_target(&request, request.having) && take_conditions(&request, rel))
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
