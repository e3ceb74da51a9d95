/*
 * Plans index-only scans of many rows as scans by batches: visibility is settled a leaf at a time, and rows come as columns, not as tuples that have to
 * be taken apart again. What the planner made of the conditions stays as it is, in a child that is never run.
 */
#include "rows.h"

#include "cairn.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "utils/guc.h"

/* Below this many rows that are read the second node costs more than it saves. */
#define ROWS_LEAST 128
/* What is left of the time that PostgreSQL's own node takes for these rows. */
#define ROWS_SHARE 0.6

static bool enable_scan = true;
static set_rel_pathlist_hook_type next_hook = NULL;

static Plan *plan_rows(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *plans);

static const CustomPathMethods path_methods = {
	.CustomName = "Cairn Scan",
	.PlanCustomPath = plan_rows,
};

static const CustomScanMethods scan_methods = {
	.CustomName = "Cairn Scan",
	.CreateCustomScanState = cairn_rows_state,
};

/* The index column that a column of the table is, or -1. */
static int
column_of(IndexOptInfo *index, Var *var)
{
	for (int i = 0; i < index->ncolumns; i++)
		if (var->varattno > 0 && index->indexkeys[i] == var->varattno)
			return i;
	return -1;
}

/* The columns that a list of expressions reads, each once, added to `vars`. False if one of them is not in the index. */
static bool
add_vars(List *exprs, IndexOptInfo *index, List **vars)
{
	List	   *found = pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, found)
	{
		Var		   *var = lfirst_node(Var, cell);

		if (var->varlevelsup != 0 || var->varno != (int) index->rel->relid || column_of(index, var) < 0)
			return false;
		*vars = list_append_unique(*vars, var);
	}
	return true;
}

/* The path by batches that does what an index-only scan does; null if there is none. */
static CustomPath *
path_of(PlannerInfo *root, RelOptInfo *rel, Path *only)
{
	IndexPath  *index_path = (IndexPath *) only;
	IndexPath  *child;
	CustomPath *path;
	List	   *vars = NIL;

	if (only->pathtype != T_IndexOnlyScan || !cairn_is_own(index_path->indexinfo) || only->param_info != NULL ||
		index_path->indexselectivity * index_path->indexinfo->tuples < ROWS_LEAST || index_path->indexorderbys != NIL || !add_vars(rel->reltarget->exprs, index_path->indexinfo, &vars))
		return NULL;
	path = makeNode(CustomPath);
	path->path = *only;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.total_cost = only->startup_cost + (only->total_cost - only->startup_cost) * ROWS_SHARE;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	/* A copy, for the planner frees what a better path replaces. */
	child = makeNode(IndexPath);
	*child = *index_path;
	path->custom_paths = list_make1(child);
	path->methods = &path_methods;
	return path;
}

static Plan *
plan_rows(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *plans)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *child = linitial(plans);
	IndexOnlyScan *only;
	IndexOptInfo *index = ((IndexPath *) linitial(path->custom_paths))->indexinfo;
	List	   *vars = NIL;
	List	   *columns = NIL;
	ListCell   *cell;

	/* Conditions that need no row, such as two constants that differ, are a node above the child, and will be one above this scan too. */
	if (IsA(child, Result) && child->lefttree != NULL)
		child = child->lefttree;
	if (!IsA(child, IndexOnlyScan))
		elog(ERROR, "a scan by batches stands for a plan of type %d", (int) nodeTag(child));
	only = (IndexOnlyScan *) child;
	/* In the order of the target first, so that rows need no projection if they are not computed with. */
	if (!add_vars(rel->reltarget->exprs, index, &vars) || !add_vars(only->scan.plan.qual, index, &vars))
		elog(ERROR, "an index-only scan reads columns that its index does not have");
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = only->scan.plan.qual;
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	scan->custom_plans = list_make1(only);
	foreach(cell, vars)
	{
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(copyObject(lfirst(cell)), list_length(columns) + 1, NULL, false));
		columns = lappend_int(columns, column_of(index, lfirst_node(Var, cell)));
	}
	/* A row without columns: any column stands for it. */
	if (vars == NIL)
	{
		TargetEntry *first = linitial_node(TargetEntry, index->indextlist);

		scan->custom_scan_tlist = list_make1(makeTargetEntry(copyObject(first->expr), 1, NULL, false));
	}
	scan->custom_private = columns;
	only->scan.plan.qual = NIL;
	only->scan.plan.targetlist = NIL;
	return &scan->scan.plan;
}

static void
add_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	List	   *found = NIL;
	List	   *partial = NIL;
	ListCell   *cell;

	if (next_hook != NULL)
		next_hook(root, rel, rti, rte);
	/* Rows that are locked or looked at again have to come from PostgreSQL's own nodes. */
	if (!enable_scan || !IS_SIMPLE_REL(rel) || rte->rtekind != RTE_RELATION || rel->indexlist == NIL || root->rowMarks != NIL)
		return;
	foreach(cell, rel->pathlist)
	{
		CustomPath *path = path_of(root, rel, lfirst(cell));

		if (path != NULL)
			found = lappend(found, path);
	}
	foreach(cell, rel->partial_pathlist)
	{
		CustomPath *path = path_of(root, rel, lfirst(cell));

		if (path != NULL)
			partial = lappend(partial, path);
	}
	foreach(cell, found)
		add_path(rel, lfirst(cell));
	foreach(cell, partial)
		add_partial_path(rel, lfirst(cell));
}

void
cairn_rows_init(void)
{
	DefineCustomBoolVariable("cairn.enable_scan", "Enables the planner's use of scans by batches in place of index-only scans.", NULL,
							 &enable_scan, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	RegisterCustomScanMethods(&scan_methods);
	next_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = add_paths;
}
