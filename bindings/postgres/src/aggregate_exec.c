/*
 * Runs aggregates over compressed pages.
 *
 * Rows of pages count without a look into the heap if every page of the heap is all-visible: first, when the scan has ended, and if
 * VACUUM has removed no row from the index in between. The order matters: a row that a page of the index held when it was read and
 * that the map calls visible afterwards is visible to our snapshot, unless VACUUM has taken it away meanwhile, which the sequence in
 * the meta page tells. If any of this fails, the scan starts again and asks the map, or the heap, for each row, with the leaf
 * pinned; then VACUUM waits for us.
 */
#include "aggregate_state.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "catalog/pg_type.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

static bool
is_visible(AggregateState *state, ItemPointer tid)
{
	ItemPointerData at = *tid;
	bool		again = false;
	bool		visible;

	state->heap_fetches++;
	visible = table_index_fetch_tuple(state->fetch, &at, state->css.ss.ps.state->es_snapshot, state->heap_slot, &again, NULL);
	ExecClearTuple(state->heap_slot);
	return visible;
}

/* Clears the bits of rows that the snapshot does not see. */
static void
keep_visible(AggregateState *state, uint32 from, uint32 to, uint64 *mask)
{
	ItemPointerData tids[CAIRN_BATCH];

	for (uint32 start = from; start < to; start += CAIRN_BATCH)
	{
		uint32		count = Min(CAIRN_BATCH, to - start);

		CHECK_FOR_INTERRUPTS();
		cairn_aggregate_checked(state, cairn_leaf_tids(state->leaf, start, count, tids));
		for (uint32 i = 0; i < count; i++)
		{
			uint32		bit = start - from + i;

			if ((mask[bit / 64] & (UINT64CONST(1) << (bit % 64))) == 0)
				continue;
			if (!VM_ALL_VISIBLE(state->heap, ItemPointerGetBlockNumber(&tids[i]), &state->map) && !is_visible(state, &tids[i]))
				mask[bit / 64] &= ~(UINT64CONST(1) << (bit % 64));
		}
	}
}

/* What is wanted of the current leaf. */
static void
add_leaf(AggregateState *state, uint32 from, uint32 to)
{
	uint64	   *mask = NULL;

	state->leaves++;
	state->rows += to - from;
	if (state->conditions.filter_count > 0 || state->careful)
	{
		uint32		words = (to - from + 63) / 64;

		mask = state->mask;
		memset(mask, 0xff, words * sizeof(uint64));
		mask[words] = 0;
		if ((to - from) % 64 != 0)
			mask[words - 1] = (UINT64CONST(1) << ((to - from) % 64)) - 1;
		cairn_filter_rows(&state->conditions, &state->walk, from, to - from, mask);
		if (state->careful)
			keep_visible(state, from, to, mask);
	}
	if (state->grouped)
		cairn_groups_add_rows(state, from, to, mask);
	else
		cairn_totals_add_rows(state, from, to, mask);
}

static void
add_ranges(AggregateState *state)
{
	cairn_conditions_first(&state->conditions, false);
	do
	{
		CairnArrival arrival = CAIRN_BY_SEARCH;

		if (!cairn_walk_seek(&state->walk, &state->conditions.lower))
			return;
		for (;; arrival = CAIRN_FROM_BEFORE)
		{
			uint32		from;
			uint32		to;

			cairn_walk_range(&state->walk, &state->conditions.lower, &state->conditions.upper, arrival, &from, &to);
			if (from < to)
				add_leaf(state, from, to);
			if (to < state->walk.rows || !cairn_walk_next(&state->walk))
				break;
		}
	} while (cairn_conditions_step(&state->conditions, false));
}

static void
take_tail_row(IndexTuple tuple, void *argument)
{
	AggregateState *state = argument;

	if (!cairn_conditions_tuple(&state->conditions, tuple))
		return;
	if (state->tail_count == state->tail_room)
	{
		state->tail_room = Max(state->tail_room * 2, 64);
		state->tail = state->tail == NULL ? palloc(state->tail_room * sizeof(IndexTuple))
			: repalloc_huge(state->tail, state->tail_room * sizeof(IndexTuple));
	}
	state->tail[state->tail_count++] = CopyIndexTuple(tuple);
}

static int
compare_tail(const void *a, const void *b, void *index)
{
	bool		a_null,
				b_null;
	Datum		x = index_getattr(*(IndexTuple const *) a, 1, ((CairnIndex *) index)->desc, &a_null);
	Datum		y = index_getattr(*(IndexTuple const *) b, 1, ((CairnIndex *) index)->desc, &b_null);

	return cairn_compare_datums(index, 0, x, a_null, y, b_null);
}

/* The tree and the tail of one moment, as scans take them. Rows of the tail are looked up in the heap after the lock is gone. */
static void
take_snapshot(AggregateState *state)
{
	Buffer		buffer = cairn_read(state->rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	int			kept = 0;

	state->meta = *cairn_meta(state->rel, BufferGetPage(buffer));
	cairn_walk_begin(&state->walk, state->index, &state->meta, state->leaf);
	cairn_visit_tail(state->rel, state->meta.frozen_head, take_tail_row, state);
	cairn_visit_tail(state->rel, state->meta.tail_head, take_tail_row, state);
	UnlockReleaseBuffer(buffer);
	for (int i = 0; i < state->tail_count; i++)
		if (is_visible(state, &state->tail[i]->t_tid))
			state->tail[kept++] = state->tail[i];
	state->tail_count = kept;
	if (kept > 1)
		qsort_arg(state->tail, kept, sizeof(IndexTuple), compare_tail, state->index);
}

static bool
all_visible(AggregateState *state)
{
	BlockNumber visible;
	BlockNumber blocks = RelationGetNumberOfBlocks(state->heap);

	visibilitymap_count(state->heap, &visible, NULL);
	return visible >= blocks;
}

/* One run over the index. False if it has to be done again with care. */
static bool
run(AggregateState *state, bool careful)
{
	MemoryContext old;
	bool		sound = true;

	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	state->careful = state->was_careful = careful;
	state->tail = NULL;
	state->tail_count = state->tail_room = state->tail_at = 0;
	state->open = false;
	state->mask = palloc(MASK_WORDS * sizeof(uint64));
	state->part = palloc(2 * MASK_WORDS * sizeof(uint64));
	if (state->results != NULL)
		tuplestore_clear(state->results);
	cairn_conditions_set(&state->conditions, state->index, state->keys, state->key_count, true, state->context);
	cairn_totals_begin(state);
	if (!state->conditions.never)
	{
		take_snapshot(state);
		add_ranges(state);
		cairn_groups_add_tail(state, true, (Datum) 0, false);
		/* ORDER: the map is asked after the last page has been read. */
		if (!careful)
			sound = all_visible(state) && state->meta.vacuum_seq % 2 == 0 &&
				cairn_read_meta(state->rel).vacuum_seq == state->meta.vacuum_seq;
		cairn_walk_release(&state->walk);
	}
	if (sound && cairn_group_is_worth_a_row(state))
		cairn_group_put(state);
	MemoryContextSwitchTo(old);
	return sound;
}

static void
evaluate_arguments(AggregateState *state)
{
	ListCell   *cell;
	int			i = 0;

	foreach(cell, state->arguments)
	{
		ScanKey		key = &state->keys[i++];
		bool		is_null;
		Datum		datum;

		if (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
			continue;
		datum = ExecEvalExprSwitchContext(lfirst(cell), state->css.ss.ps.ps_ExprContext, &is_null);
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

	state->grouped = linitial_int((List *) lsecond((List *) lthird(plan->custom_private))) != 0;
	state->condition = lfourth(plan->custom_private);
	state->heap = table_open(linitial_oid(relations), AccessShareLock);
	state->rel = index_open(lsecond_oid(relations), AccessShareLock);
	state->map = InvalidBuffer;
	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->index = cairn_index_open(state->rel);
	state->leaf = cairn_new_leaf(CurrentMemoryContext);
	state->output_count = list_length(info) / 3;
	state->output = palloc(Max(state->output_count, 1) * sizeof(Output));
	state->totals = palloc0(Max(state->output_count, 1) * sizeof(Total));
	for (int i = 0; i < state->output_count; i++)
	{
		state->output[i].kind = list_nth_int(info, 3 * i);
		state->output[i].column = list_nth_int(info, 3 * i + 1);
		state->output[i].type = (Oid) list_nth_int(info, 3 * i + 2);
	}
	state->key_count = list_length(keys) / 6;
	state->keys = palloc0(Max(state->key_count, 1) * sizeof(ScanKeyData));
	for (int i = 0; i < state->key_count; i++)
	{
		int			key_flags = list_nth_int(keys, 6 * i);
		Oid			function = (Oid) list_nth_int(keys, 6 * i + 5);

		ScanKeyEntryInitialize(&state->keys[i], key_flags, list_nth_int(keys, 6 * i + 1) + 1, list_nth_int(keys, 6 * i + 2),
							   (Oid) list_nth_int(keys, 6 * i + 3), (Oid) list_nth_int(keys, 6 * i + 4), function, (Datum) 0);
	}
	state->arguments = ExecInitExprList(plan->custom_exprs, &node->ss.ps);
	state->context = AllocSetContextCreate(CurrentMemoryContext, "cairn aggregate", ALLOCSET_DEFAULT_SIZES);
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
		if (!all_visible(state) || !run(state, false))
			run(state, true);
		state->done = true;
	}
	for (;;)
	{
		ResetExprContext(context);
		ExecClearTuple(slot);
		if (!tuplestore_gettupleslot(state->results, true, false, state->stored))
			return node->ss.ps.ps_ProjInfo ? ExecClearTuple(node->ss.ps.ps_ProjInfo->pi_state.resultslot) : slot;
		slot_getallattrs(state->stored);
		for (int i = 0; i < state->output_count; i++)
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
}

static void
end(CustomScanState *node)
{
	AggregateState *state = (AggregateState *) node;

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

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	AggregateState *state = (AggregateState *) node;

	ExplainPropertyText("Index", RelationGetRelationName(state->rel), es);
	ExplainPropertyText("Table", RelationGetRelationName(state->heap), es);
	if (state->condition != NULL)
	{
		List	   *context = deparse_context_for(RelationGetRelationName(state->heap), RelationGetRelid(state->heap));

		ExplainPropertyText("Index Cond", deparse_expression(state->condition, context, false, false), es);
	}
	if (state->grouped)
		ExplainPropertyText("Group", "first column", es);
	if (es->analyze)
	{
		ExplainPropertyText("Visibility", state->was_careful ? "row by row" : "whole table", es);
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
	.ExplainCustomScan = explain,
};

Node *
cairn_aggregate_state(CustomScan *plan)
{
	AggregateState *state = (AggregateState *) newNode(sizeof(AggregateState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
