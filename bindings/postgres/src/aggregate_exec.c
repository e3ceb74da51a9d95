/* The plan node of aggregates over compressed pages: what the executor and EXPLAIN call. */
#include "aggregate_state.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

static void
evaluate_arguments(AggregateState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	ListCell   *cell;
	int			i = 0;

	foreach(cell, state->arguments)
	{
		ScanKey		key = &state->keys[i++];
		bool		is_null;
		Datum		datum;

		if (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
			continue;
		datum = ExecEvalExprSwitchContext(lfirst(cell), context, &is_null);
		/* Once here instead of in each comparison, as PostgreSQL does for its scans. */
		if (!is_null && get_typlen(exprType((Node *) ((ExprState *) lfirst(cell))->expr)) == -1)
		{
			MemoryContext old = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);

			datum = PointerGetDatum(PG_DETOAST_DATUM(datum));
			MemoryContextSwitchTo(old);
		}
		key->sk_argument = datum;
		key->sk_flags = (key->sk_flags & ~SK_ISNULL) | (is_null ? SK_ISNULL : 0);
	}
}

static void
begin(CustomScanState *node, EState *estate, int flags)
{
	AggregateState *state = (AggregateState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	List	   *relations = linitial(plan->custom_private);
	List	   *info = lsecond(plan->custom_private);
	List	   *keys = linitial((List *) lthird(plan->custom_private));
	List	   *shape = lsecond((List *) lthird(plan->custom_private));

	state->grouped = linitial_int(shape) != 0;
	state->is_part = lsecond_int(shape) == CAIRN_PARTIAL;
	if (plan->custom_plans != NIL)
	{
		state->parts = ExecInitNode(linitial(plan->custom_plans), estate, flags);
		node->custom_ps = list_make1(state->parts);
	}
	state->where = linitial((List *) lfourth(plan->custom_private));
	state->filter_trees = list_copy_tail((List *) lfourth(plan->custom_private), 1);
	state->heap = table_open(linitial_oid(relations), AccessShareLock);
	state->rel = index_open(lsecond_oid(relations), AccessShareLock);
	state->map = InvalidBuffer;
	/* As PostgreSQL's own scans do, for which it opens the table. */
	if ((flags & (EXEC_FLAG_EXPLAIN_ONLY | EXEC_FLAG_WITH_NO_DATA)) == 0 && !RelationIsScannable(state->heap))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("materialized view \"%s\" has not been populated", RelationGetRelationName(state->heap)),
				 errhint("Use the REFRESH MATERIALIZED VIEW command.")));
	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->index = cairn_index_open(state->rel);
	state->leaf = cairn_new_leaf(CurrentMemoryContext);
	state->output_count = list_length(info) / 4;
	state->output = palloc(Max(state->output_count, 1) * sizeof(Output));
	state->totals = palloc0(Max(state->output_count, 1) * sizeof(Total));
	for (int i = 0; i < state->output_count; i++)
	{
		state->output[i].kind = list_nth_int(info, 4 * i);
		state->output[i].column = list_nth_int(info, 4 * i + 1);
		state->output[i].type = (Oid) list_nth_int(info, 4 * i + 2);
		state->output[i].filter = list_nth_int(info, 4 * i + 3);
	}
	state->key_count = list_nth_int(shape, 2);
	state->filter_count = list_length(shape) - 3;
	state->filters = palloc0(Max(state->filter_count, 1) * sizeof(CairnFilter));
	for (int i = 0; i < state->filter_count; i++)
		state->filters[i].key_count = list_nth_int(shape, i + 3);
	state->keys = palloc0(Max(list_length(keys) / 6, 1) * sizeof(ScanKeyData));
	for (int i = 0; i < list_length(keys) / 6; i++)
	{
		int			key_flags = list_nth_int(keys, 6 * i);
		Oid			function = (Oid) list_nth_int(keys, 6 * i + 5);

		ScanKeyEntryInitialize(&state->keys[i], key_flags, list_nth_int(keys, 6 * i + 1) + 1, list_nth_int(keys, 6 * i + 2),
							   (Oid) list_nth_int(keys, 6 * i + 3), (Oid) list_nth_int(keys, 6 * i + 4), function, (Datum) 0);
	}
	state->arguments = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
	state->context = AllocSetContextCreate(CurrentMemoryContext, "cairn aggregate", ALLOCSET_DEFAULT_SIZES);
	state->group_context = AllocSetContextCreate(CurrentMemoryContext, "cairn group", ALLOCSET_SMALL_SIZES);
	state->heap_slot = table_slot_create(state->heap, NULL);
#if PG_VERSION_NUM >= 190000
	state->fetch = table_index_fetch_begin(state->heap, 0);
#else
	state->fetch = table_index_fetch_begin(state->heap);
#endif
	state->results = tuplestore_begin_heap(false, false, work_mem);
	state->stored = MakeSingleTupleTableSlot(node->ss.ss_ScanTupleSlot->tts_tupleDescriptor, &TTSOpsMinimalTuple);
}

static TupleTableSlot *
next_result(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ExprContext *context = node->ss.ps.ps_ExprContext;

	if (!state->done)
	{
		evaluate_arguments(state);
		/* The index holds no row that a transaction could write without being seen by these. */
		PredicateLockRelation(state->heap, node->ss.ps.state->es_snapshot);
		PredicateLockRelation(state->rel, node->ss.ps.state->es_snapshot);
		pgstat_count_index_scan(state->rel);
		state->leaves = state->rows = state->heap_fetches = 0;
		if (state->parts != NULL)
			cairn_aggregate_combine(state);
		else if (state->is_part)
		{
			cairn_aggregate_run(state, !cairn_aggregate_all_visible(state));
			if (state->shared != NULL)
				cairn_aggregate_account(state);
		}
		else if (!cairn_aggregate_all_visible(state) || !cairn_aggregate_run(state, false))
			cairn_aggregate_run(state, true);
		/* The page of the table that was asked last is not to be waited for by VACUUM. */
		table_index_fetch_reset(state->fetch);
		state->done = true;
	}
	for (;;)
	{
		ResetExprContext(context);
		ExecClearTuple(slot);
		if (!tuplestore_gettupleslot(state->results, true, false, state->stored))
			return node->ss.ps.ps_ProjInfo ? ExecClearTuple(node->ss.ps.ps_ProjInfo->pi_state.resultslot) : slot;
		slot_getallattrs(state->stored);
		for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
		{
			slot->tts_values[i] = state->stored->tts_values[i];
			slot->tts_isnull[i] = state->stored->tts_isnull[i];
		}
		ExecStoreVirtualTuple(slot);
		context->ecxt_scantuple = slot;
		if (node->ss.ps.qual == NULL || ExecQual(node->ss.ps.qual, context))
			return node->ss.ps.ps_ProjInfo == NULL ? slot : ExecProject(node->ss.ps.ps_ProjInfo);
		InstrCountFiltered1(node, 1);
	}
}

static void
rescan(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;

	state->done = false;
	tuplestore_clear(state->results);
	if (state->parts == NULL)
		return;
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(state->parts, node->ss.ps.chgParam);
	/* With changed parameters it is done when the first row is asked for. */
	if (state->parts->chgParam == NULL)
		ExecReScan(state->parts);
}

static void
end(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;

	if (state->parts != NULL)
		ExecEndNode(state->parts);
	if (state->fetch != NULL)
		table_index_fetch_end(state->fetch);
	if (state->index != NULL)
	{
		cairn_walk_release(&state->walk);
		ExecDropSingleTupleTableSlot(state->heap_slot);
		ExecDropSingleTupleTableSlot(state->stored);
		tuplestore_end(state->results);
	}
	if (BufferIsValid(state->map))
		ReleaseBuffer(state->map);
	index_close(state->rel, NoLock);
	table_close(state->heap, NoLock);
}

static char *
condition_text(AggregateState *state, Node *condition)
{
	return deparse_expression(condition, deparse_context_for(RelationGetRelationName(state->heap), RelationGetRelid(state->heap)), false, false);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	AggregateState *state = (AggregateState *) node;
	List	   *filters = NIL;
	ListCell   *cell;

	ExplainPropertyText("Index", RelationGetRelationName(state->rel), es);
	ExplainPropertyText("Table", RelationGetRelationName(state->heap), es);
	if (state->where != NULL)
		ExplainPropertyText("Index Cond", condition_text(state, state->where), es);
	foreach(cell, state->filter_trees)
		filters = lappend(filters, condition_text(state, lfirst(cell)));
	if (filters != NIL)
		ExplainPropertyList("Aggregate Filter", filters, es);
	if (state->grouped)
		ExplainPropertyText("Group", "first column", es);
	/* What several processes do is shown where they do it. */
	if (es->analyze && (state->parts == NULL || state->ran))
	{
		ExplainPropertyText("Visibility", state->was_careful ? "page by page" : "whole table", es);
		ExplainPropertyInteger("Leaves", NULL, state->leaves, es);
		ExplainPropertyInteger("Index Rows", NULL, state->rows, es);
		ExplainPropertyInteger("Heap Fetches", NULL, state->heap_fetches, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Cairn Aggregate",
	.BeginCustomScan = begin,
	.ExecCustomScan = next_result,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = cairn_aggregate_estimate_shared,
	.InitializeDSMCustomScan = cairn_aggregate_begin_shared,
	.ReInitializeDSMCustomScan = cairn_aggregate_begin_shared_again,
	.InitializeWorkerCustomScan = cairn_aggregate_begin_worker,
	.ShutdownCustomScan = cairn_aggregate_shut_down,
	.ExplainCustomScan = explain,
};

Node *
cairn_aggregate_state(CustomScan *plan)
{
	AggregateState *state = (AggregateState *) newNode(sizeof(AggregateState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
