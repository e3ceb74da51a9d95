/* What PostgreSQL asks an access method for, its options, and its estimates. */
#include "cairn.h"

#include "catalog/pg_opclass.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "aggregate.h"
#include "phases.h"
#include "rows.h"

PG_MODULE_MAGIC;

static relopt_kind cairn_options_kind;

void		_PG_init(void);

void
_PG_init(void)
{
	cairn_options_kind = add_reloption_kind();
	add_int_reloption(cairn_options_kind, "page_rows", "Most rows in a page", CAIRN_MAX_ROWS, 64, CAIRN_MAX_ROWS,
					  AccessExclusiveLock);
	add_int_reloption(cairn_options_kind, "tail_limit", "Longest tail in kB that inserts leave unmerged, 0 for no limit", -1, -1, MAX_KILOBYTES,
					  ShareUpdateExclusiveLock);
	DefineCustomIntVariable("cairn.tail_limit", "Sets the longest tail that inserts leave unmerged; 0 for no limit.", NULL, &cairn_tail_limit, 4096, 0,
							MAX_KILOBYTES, PGC_USERSET, GUC_UNIT_KB, NULL, NULL, NULL);
	cairn_aggregate_init();
	cairn_rows_init();
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved("cairn");
#endif
}

static bytea *
options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt table[] = {
		{"page_rows", RELOPT_TYPE_INT, offsetof(CairnOptions, page_rows)},
		{"tail_limit", RELOPT_TYPE_INT, offsetof(CairnOptions, tail_limit)},
	};

	return (bytea *) build_reloptions(reloptions, validate, cairn_options_kind, sizeof(CairnOptions), table, lengthof(table));
}

/* Every column is stored as it is. */
static bool
can_return(Relation rel, int attribute)
{
	return true;
}

static char *
phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case CAIRN_PHASE_SCAN:
			return "scanning table";
		case CAIRN_PHASE_SORT:
			return "sorting rows";
		case CAIRN_PHASE_WRITE:
			return "packing pages";
		default:
			return NULL;
	}
}

static bool
validate(Oid opclass)
{
	/* The classes are made from those of btree, by the extension's script; PostgreSQL checks the signatures there. */
	return SearchSysCacheExists1(CLAOID, ObjectIdGetDatum(opclass));
}

#if PG_VERSION_NUM >= 180000
/* Whether a clause leaves one value of its column, or one at a time. */
static bool
is_equality(const IndexOptInfo *index, const IndexClause *clause)
{
	ListCell   *cell;

	foreach(cell, clause->indexquals)
	{
		Expr	   *qual = lfirst_node(RestrictInfo, cell)->clause;
		Oid			operator = InvalidOid;

		if (IsA(qual, NullTest) && ((NullTest *) qual)->nulltesttype == IS_NULL)
			return true;
		if (IsA(qual, OpExpr))
			operator = ((OpExpr *) qual)->opno;
		else if (IsA(qual, ScalarArrayOpExpr))
			operator = ((ScalarArrayOpExpr *) qual)->opno;
		if (OidIsValid(operator) &&
			get_op_opfamily_strategy(operator, index->opfamily[clause->indexcol]) == BTEqualStrategyNumber)
			return true;
	}
	return false;
}

/* The clauses that bound what a scan reads; they come in the order of columns. */
static List *
bounding_clauses(const IndexPath *path)
{
	List	   *bounds = NIL;
	int			column = -1;
	bool		is_equal = true;	/* the columns so far */
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol != column)
		{
			if (!is_equal || clause->indexcol != column + 1)
				break;
			column++;
			is_equal = false;
		}
		bounds = lappend(bounds, clause);
		is_equal |= is_equality(path->indexinfo, clause);
	}
	return bounds;
}
#endif

/*
 * The estimate for a btree of the same columns. Since PostgreSQL 18 that one skips over values of a column without an equality if conditions on later ones
 * make it worth its while. We do not: such conditions are asked of every row in bounds.
 */
static void
btree_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total, Selectivity *selectivity,
		   double *correlation, double *pages)
{
#if PG_VERSION_NUM >= 180000
	List	   *bounds = bounding_clauses(path);
	int			asked = list_length(path->indexclauses) - list_length(bounds);
#endif

	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
#if PG_VERSION_NUM >= 180000
	if (asked > 0)
	{
		IndexPath	bounded = *path;
		Selectivity read;

		bounded.indexclauses = bounds;
		btcostestimate(root, &bounded, loop_count, startup, total, &read, correlation, pages);
		*total += read * path->indexinfo->rel->tuples * cpu_operator_cost * asked;
	}
#endif
}

/*
 * A cairn index is walked as a btree is, over fewer pages, and a row costs about half of what it costs there. Rows of the tail are
 * read by every scan.
 */
void
cairn_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					Selectivity *selectivity, double *correlation, double *pages)
{
	Relation	rel = index_open(path->indexinfo->indexoid, NoLock);
	uint32		tail_pages = cairn_tail_pages(rel, path->indexinfo->pages);
	double		tail;

	index_close(rel, NoLock);
	btree_cost(root, path, loop_count, startup, total, selectivity, correlation, pages);
	*total = *startup + (*total - *startup) * 0.75;
	tail = tail_pages * 100 * cpu_operator_cost;
	*startup += tail;
	*total += tail;
}

/* Whether an index is of this access method, which its own estimates tell the planner's hooks without a look into the catalogs. */
bool
cairn_is_own(const IndexOptInfo *index)
{
	return index->amcostestimate == cairn_cost_estimate;
}

#if PG_VERSION_NUM >= 180000
/* Strategies are numbered as btree's are. */
static CompareType
translate_strategy(StrategyNumber strategy, Oid family)
{
	switch (strategy)
	{
		case BTLessStrategyNumber:
			return COMPARE_LT;
		case BTLessEqualStrategyNumber:
			return COMPARE_LE;
		case BTEqualStrategyNumber:
			return COMPARE_EQ;
		case BTGreaterEqualStrategyNumber:
			return COMPARE_GE;
		case BTGreaterStrategyNumber:
			return COMPARE_GT;
		default:
			return COMPARE_INVALID;
	}
}

static StrategyNumber
translate_compare_type(CompareType type, Oid family)
{
	switch (type)
	{
		case COMPARE_LT:
			return BTLessStrategyNumber;
		case COMPARE_LE:
			return BTLessEqualStrategyNumber;
		case COMPARE_EQ:
			return BTEqualStrategyNumber;
		case COMPARE_GE:
			return BTGreaterEqualStrategyNumber;
		case COMPARE_GT:
			return BTGreaterStrategyNumber;
		default:
			return InvalidStrategy;
	}
}
#endif

PG_FUNCTION_INFO_V1(cairn_handler);

Datum
cairn_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = BTNProcs;
	am->amoptsprocnum = 0;
	am->amcanorder = true;
#if PG_VERSION_NUM >= 180000
	am->amconsistentequality = true;
	am->amconsistentordering = true;
	am->amtranslatestrategy = translate_strategy;
	am->amtranslatecmptype = translate_compare_type;
#endif
	am->amcanbackward = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->amclusterable = true;
	am->amcanparallel = true;
	am->amcanunique = true;
#if PG_VERSION_NUM >= 170000
	am->amcanbuildparallel = true;
#endif
	am->amcaninclude = true;
	am->amusemaintenanceworkmem = true;
	am->amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL;
	am->amkeytype = InvalidOid;

	am->ambuild = cairn_build;
	am->ambuildempty = cairn_build_empty;
	am->aminsert = cairn_insert;
	am->ambulkdelete = cairn_bulk_delete;
	am->amvacuumcleanup = cairn_vacuum_cleanup;
	am->amcanreturn = can_return;
	am->amcostestimate = cairn_cost_estimate;
	am->amoptions = options;
	am->ambuildphasename = phase_name;
	am->amvalidate = validate;
	am->ambeginscan = cairn_begin_scan;
	am->amrescan = cairn_rescan;
	am->amgettuple = cairn_get_tuple;
	am->amgetbitmap = cairn_get_bitmap;
	am->amendscan = cairn_end_scan;
	am->ammarkpos = cairn_mark_position;
	am->amrestrpos = cairn_restore_position;
	am->amestimateparallelscan = cairn_estimate_parallel;
	am->aminitparallelscan = cairn_init_parallel;
	am->amparallelrescan = cairn_rescan_parallel;
	PG_RETURN_POINTER(am);
}
