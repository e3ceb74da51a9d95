/*
 * Rows by batches. Visibility is asked for before rows leave, as the rule for index-only scans wants it: while the leaf is pinned. The answer
 * for all heap pages that a leaf points into is one look at a stretch of the visibility map.
 */
#include "batch.h"
#include "rows.h"
#include "visible.h"

#include "access/genam.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "executor/nodeIndexonlyscan.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/predicate.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/ruleutils.h"

typedef struct RowsState
{
	CustomScanState css;
	IndexOnlyScanState *only;	/* has the conditions and the scan; never run */
	int			column_count;
	int		   *columns;		/* of the index, for each column of the scan's slot */
	bool		wanted[INDEX_MAX_KEYS];
	bool		backward;
	bool		started;
	bool		by_batches;		/* rows come with the tail's in between if not */
	bool		has_nulls;
	bool		is_cursor;		/* WHERE CURRENT OF may ask for the row id of the row handed out last */
	const ItemPointerData *tids;	/* of the batch's rows, for a cursor; null for others */
	int			at;				/* rows handed out of `count` */
	int			count;
	uint16	   *visible;		/* which of the batch's rows they are; null: all */
	uint16		visible_rows[CAIRN_BATCH];
	Datum	   *values[INDEX_MAX_KEYS]; /* of each column of the slot */
	uint64	   *nulls[INDEX_MAX_KEYS];
	Datum	   *made[INDEX_MAX_KEYS];	/* room for those that are not integers as the codec has them */
	MemoryContext context;		/* of what the batch's datums point to */
} RowsState;

/* Whether all rows of the leaf within the range are visible: then their row ids are not unpacked. */
static bool
leaf_visible(CairnScan *scan, void *argument)
{
	RowsState  *state = argument;
	IndexOnlyScanState *only = state->only;

	return !state->is_cursor &&
		cairn_leaf_visible(&scan->walk, scan->from, scan->to, only->ss.ss_currentRelation, &only->ioss_VMBuffer);
}

/* Whether the snapshot sees a row. Its row id becomes that of the version that is seen. */
static bool
in_heap(RowsState *state, ItemPointer tid)
{
	IndexOnlyScanState *only = state->only;

	InstrCountTuples2(&state->css, 1);
	only->ioss_ScanDesc->xs_heaptid = *tid;
	if (!index_fetch_heap(only->ioss_ScanDesc, only->ioss_TableSlot))
		return false;
	*tid = only->ioss_ScanDesc->xs_heaptid;
	ExecClearTuple(only->ioss_TableSlot);
	return true;
}

static void
start(RowsState *state)
{
	IndexOnlyScanState *only = state->only;
	EState	   *estate = state->css.ss.ps.state;

	if (only->ioss_NumRuntimeKeys != 0 && !only->ioss_RuntimeKeysReady)
		ExecReScan(&only->ss.ps);
	if (only->ioss_ScanDesc == NULL)
	{
		only->ioss_ScanDesc = index_beginscan(only->ss.ss_currentRelation, only->ioss_RelationDesc, estate->es_snapshot,
#if PG_VERSION_NUM >= 180000
											  &only->ioss_Instrument,
#endif
											  only->ioss_NumScanKeys, only->ioss_NumOrderByKeys);
		only->ioss_ScanDesc->xs_want_itup = true;
		only->ioss_VMBuffer = InvalidBuffer;
		index_rescan(only->ioss_ScanDesc, only->ioss_ScanKeys, only->ioss_NumScanKeys, only->ioss_OrderByKeys, only->ioss_NumOrderByKeys);
	}
	/* Rows that the map vouches for are not looked at in the heap, so nobody would see there that they were read. */
	PredicateLockRelation(only->ss.ss_currentRelation, estate->es_snapshot);
	state->by_batches = cairn_scan_by_batches(only->ioss_ScanDesc, state->backward, state->wanted, leaf_visible, state);
	state->started = true;
}

/* Datums of a column that are not what the codec has. Equal neighbours share one. */
static void
make_datums(RowsState *state, CairnScan *scan, int column, const uint64 *integers, const uint64 *nulls, Datum *out)
{
	const CairnColumn *info = &scan->index->column[column];
	const uint64 *known = NULL;

	for (int row = 0; row < scan->batch.count; row++)
	{
		out[row] = (Datum) 0;
		if (nulls != NULL && nulls[row] != 0)
			continue;
		if (info->byval)
			out[row] = cairn_from_integer(info, integers[row]);
		else if (known != NULL && *known == integers[row])
			out[row] = out[known - integers];
		else
		{
			const uint8_t *bytes;
			size_t		count;
			int			code = cairn_leaf_string(scan->leaf, column, integers[row], &bytes, &count);

			if (code < 0)
				cairn_codec_failed(scan->index->rel, BufferGetBlockNumber(scan->walk.leaf_buffer), scan->leaf, code);
			out[row] = cairn_from_string(info, bytes, count);
			known = &integers[row];
		}
	}
}

/* The next batch, its rows that are visible, and its columns as datums. False behind the last. */
static bool
next_batch(RowsState *state)
{
	CairnScan  *scan = (CairnScan *) state->only->ioss_ScanDesc->opaque;
	CairnBatch *batch = cairn_scan_next_batch(state->only->ioss_ScanDesc, state->backward);
	MemoryContext old;

	state->at = state->count = 0;
	if (batch == NULL)
	{
		/* The page of the table that was asked last is not to be waited for either. */
		if (state->only->ioss_ScanDesc->xs_heapfetch != NULL)
			table_index_fetch_reset(state->only->ioss_ScanDesc->xs_heapfetch);
		return false;
	}
	state->visible = NULL;
	state->count = batch->count;
	if (!batch->without_tids)
	{
		uint64		mask[CAIRN_MASK_WORDS(CAIRN_BATCH)];

		state->count = 0;
		state->visible = state->visible_rows;
		cairn_rows_visible(&scan->walk, batch->tid, batch->count, state->only->ss.ss_currentRelation, &state->only->ioss_VMBuffer, mask);
		for (int row = 0; row < batch->count; row++)
			if ((mask[row / 64] & (UINT64CONST(1) << (row % 64))) != 0 || in_heap(state, &batch->tid[row]))
				state->visible[state->count++] = row;
	}
	state->has_nulls = batch->has_nulls;
	state->tids = state->is_cursor ? batch->tid : NULL;
	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	for (int i = 0; i < state->column_count; i++)
	{
		int			column = state->columns[i];
		uint64	   *integers = batch->integers[column];

		state->nulls[i] = batch->has_nulls ? batch->nulls[column] : NULL;
		state->values[i] = (Datum *) integers;
		if (state->made[i] != NULL)
		{
			make_datums(state, scan, column, integers, state->nulls[i], state->made[i]);
			state->values[i] = state->made[i];
		}
		state->css.ss.ss_ScanTupleSlot->tts_isnull[i] = false;
	}
	MemoryContextSwitchTo(old);
	return true;
}

/*
 * Whether a row that came one by one is visible. On a standby the access method has asked already, in the only order that is right there;
 * asking again changes nothing.
 */
static bool
row_visible(RowsState *state, ItemPointer tid)
{
	IndexOnlyScanState *only = state->only;

	return VM_ALL_VISIBLE(only->ss.ss_currentRelation, ItemPointerGetBlockNumber(tid), &only->ioss_VMBuffer) || in_heap(state, tid);
}

/* A row of a scan that has the tail's among its rows. */
static bool
next_merged(RowsState *state, TupleTableSlot *slot)
{
	IndexScanDesc scan = state->only->ioss_ScanDesc;
	ItemPointer tid;

	do
	{
		CHECK_FOR_INTERRUPTS();
		tid = index_getnext_tid(scan, state->backward ? BackwardScanDirection : ForwardScanDirection);
		if (tid == NULL)
			return false;
	} while (!row_visible(state, tid));
	for (int i = 0; i < state->column_count; i++)
		slot->tts_values[i] = index_getattr(scan->xs_itup, state->columns[i] + 1, scan->xs_itupdesc, &slot->tts_isnull[i]);
	slot->tts_tid = scan->xs_heaptid;
	return true;
}

/* Puts the next row into the scan's slot. */
static inline bool
next_row(RowsState *state, TupleTableSlot *slot)
{
	while (unlikely(state->at == state->count))
	{
		if (!state->started)
			start(state);
		if (!state->by_batches)
		{
			if (!next_merged(state, slot))
				return false;
			break;
		}
		if (!next_batch(state))
			return false;
	}
	if (state->by_batches)
	{
		int			row = state->backward ? state->count - 1 - state->at : state->at;

		state->at++;
		if (state->visible != NULL)
			row = state->visible[row];
		for (int i = 0; i < state->column_count; i++)
			slot->tts_values[i] = state->values[i][row];
		if (unlikely(state->tids != NULL))
			slot->tts_tid = state->tids[row];
		if (unlikely(state->has_nulls))
			for (int i = 0; i < state->column_count; i++)
				slot->tts_isnull[i] = state->nulls[i][row] != 0;
	}
	/* As ExecStoreVirtualTuple() does, without its call. */
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_nvalid = slot->tts_tupleDescriptor->natts;
	return true;
}

static TupleTableSlot *
next(CustomScanState *node)
{
	RowsState  *state = (RowsState *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ExprContext *context = node->ss.ps.ps_ExprContext;
	ExprState  *qual = node->ss.ps.qual;
	ProjectionInfo *projection = node->ss.ps.ps_ProjInfo;

	for (;;)
	{
		/* Somebody above may have made the row its own. */
		if (unlikely(TTS_SHOULDFREE(slot)))
			ExecClearTuple(slot);
		if (!next_row(state, slot))
		{
			/* The next call is not to go on where there is nothing. */
			ExecClearTuple(slot);
			return projection != NULL ? ExecClearTuple(projection->pi_state.resultslot) : slot;
		}
		if (qual == NULL && projection == NULL)
			return slot;
		if (qual == NULL && node->ss.ps.plan->targetlist == NIL)
		{
			/* Rows without columns are all the same. */
			slot = projection->pi_state.resultslot;
			return TTS_EMPTY(slot) ? ExecStoreVirtualTuple(slot) : slot;
		}
		ResetExprContext(context);
		context->ecxt_scantuple = slot;
		if (qual == NULL || ExecQual(qual, context))
			return projection != NULL ? ExecProject(projection) : slot;
		InstrCountFiltered1(node, 1);
	}
}

static void
begin(CustomScanState *node, EState *estate, int flags)
{
	RowsState  *state = (RowsState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	TupleDesc	desc = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	ListCell   *cell;
	CairnIndex *index;
	int			i = 0;

	state->only = castNode(IndexOnlyScanState, ExecInitNode(linitial(plan->custom_plans), estate, flags));
	state->backward = ScanDirectionIsBackward(((IndexOnlyScan *) linitial(plan->custom_plans))->indexorderdir);
	state->column_count = list_length(plan->custom_private);
	state->columns = palloc(Max(state->column_count, 1) * sizeof(int));
	/* Only cursors have portals with names. */
	state->is_cursor = ActivePortal != NULL && ActivePortal->name[0] != '\0';
	node->ss.ss_ScanTupleSlot->tts_tableOid = RelationGetRelid(node->ss.ss_currentRelation);
	/* The slot of rows without columns has one all the same. */
	for (int column = 0; column < desc->natts; column++)
	{
		node->ss.ss_ScanTupleSlot->tts_values[column] = (Datum) 0;
		node->ss.ss_ScanTupleSlot->tts_isnull[column] = true;
	}
	if (flags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	state->context = AllocSetContextCreate(CurrentMemoryContext, "cairn batch", ALLOCSET_DEFAULT_SIZES);
	index = cairn_index_open(state->only->ioss_RelationDesc);
	foreach(cell, plan->custom_private)
	{
		Form_pg_attribute own = TupleDescAttr(RelationGetDescr(state->only->ioss_RelationDesc), lfirst_int(cell));
		Form_pg_attribute shown = TupleDescAttr(desc, i);

		if (own->attlen != shown->attlen || own->attbyval != shown->attbyval)
			elog(ERROR, "column %d of index \"%s\" is not of the table's type", lfirst_int(cell) + 1,
				 RelationGetRelationName(state->only->ioss_RelationDesc));
		state->columns[i] = lfirst_int(cell);
		state->wanted[lfirst_int(cell)] = true;
		if (!own->attbyval || index->column[lfirst_int(cell)].is_unsigned64)
			state->made[i] = palloc(CAIRN_BATCH * sizeof(Datum));
		i++;
	}
}

static void
rescan(CustomScanState *node)
{
	RowsState  *state = (RowsState *) node;

	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(&state->only->ss.ps, node->ss.ps.chgParam);
	ExecReScan(&state->only->ss.ps);
	state->at = state->count = 0;
	state->started = false;
}

static void
end(CustomScanState *node)
{
	ExecEndNode(&((RowsState *) node)->only->ss.ps);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *context)
{
	ExecIndexOnlyScanEstimate(((RowsState *) node)->only, context);
	return sizeof(uint64);
}

static void
begin_shared(CustomScanState *node, ParallelContext *context, void *coordinate)
{
	ExecIndexOnlyScanInitializeDSM(((RowsState *) node)->only, context);
}

static void
begin_shared_again(CustomScanState *node, ParallelContext *context, void *coordinate)
{
	ExecIndexOnlyScanReInitializeDSM(((RowsState *) node)->only, context);
}

static void
begin_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	ParallelWorkerContext context = {.seg = NULL, .toc = toc};

	ExecIndexOnlyScanInitializeWorker(((RowsState *) node)->only, &context);
}

static void
explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	RowsState  *state = (RowsState *) node;
	IndexOnlyScan *plan = (IndexOnlyScan *) state->only->ss.ps.plan;

	ExplainPropertyText("Index", get_rel_name(plan->indexid), es);
	if (plan->indexqual != NIL)
	{
		List	   *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

		ExplainPropertyText("Index Cond", deparse_expression((Node *) make_ands_explicit(plan->indexqual), context,
															 list_length(es->rtable) > 1 || es->verbose, false), es);
	}
	if (ScanDirectionIsBackward(plan->indexorderdir))
		ExplainPropertyText("Scan Direction", "Backward", es);
	if (es->analyze && node->ss.ps.instrument != NULL)
		ExplainPropertyFloat("Heap Fetches", NULL, node->ss.ps.instrument->ntuples2, 0, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Cairn Scan",
	.BeginCustomScan = begin,
	.ExecCustomScan = next,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = begin_shared,
	.ReInitializeDSMCustomScan = begin_shared_again,
	.InitializeWorkerCustomScan = begin_worker,
	.ExplainCustomScan = explain,
};

Node *
cairn_rows_state(CustomScan *plan)
{
	RowsState  *state = (RowsState *) newNode(sizeof(RowsState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}
