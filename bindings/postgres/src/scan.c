/*
 * Scans: rows of the tree and rows of the tail, merged in the order of the index, forward and backward.
 *
 * The position is a gap between two rows, in the tree's batch and in the tail. A step takes the nearer row behind the gap (or before
 * it) and moves over it. Turning round first moves back over the row handed out last.
 */
#include "scan.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "batch.h"

IndexScanDesc
cairn_begin_scan(Relation rel, int keys, int order_bys)
{
	IndexScanDesc scan = RelationGetIndexScan(rel, keys, order_bys);
	/* All that the scan has goes with this at its end: a query may open one for each row that it writes. */
	MemoryContext home = AllocSetContextCreate(CurrentMemoryContext, "cairn scan", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(home);
	CairnScan  *state = palloc0(sizeof(CairnScan));

	state->index = cairn_index_open(rel);
	state->context = AllocSetContextCreate(home, "cairn conditions", ALLOCSET_SMALL_SIZES);
	state->row_context = AllocSetContextCreate(home, "cairn row", ALLOCSET_SMALL_SIZES);
	state->leaf = cairn_new_leaf(home);
	state->walk.leaf_buffer = state->walk.root_pin = InvalidBuffer;
	state->map = InvalidBuffer;
	scan->opaque = state;
	scan->xs_itupdesc = RelationGetDescr(rel);
	MemoryContextSwitchTo(old);
	return scan;
}

static void
forget_position(CairnScan *state)
{
	cairn_walk_release(&state->walk);
	state->started = state->placed = state->no_rows = state->ended = false;
	state->last = CAIRN_FROM_NONE;
	state->tail_count = state->tail_gap = 0;
	state->tail = NULL;
	state->tail_room = 0;
	state->mark.is_set = false;
	state->mark.key = NULL;
	state->mark.chosen = NULL;
	MemoryContextReset(state->context);
}

void
cairn_rescan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey order_bys, int order_by_count)
{
	CairnScan  *state = (CairnScan *) scan->opaque;

	forget_position(state);
	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	cairn_conditions_set(&state->conditions, state->index, scan->keyData, scan->numberOfKeys,
						 scan->parallel_scan == NULL, state->context);
}

void
cairn_end_scan(IndexScanDesc scan)
{
	CairnScan  *state = (CairnScan *) scan->opaque;

	forget_position(state);
	cairn_scan_visible_end(state);
	MemoryContextDelete(GetMemoryChunkContext(state));
}

/*
 * Fixes what the scan is going to see: the tree and the tail as they are under one lock of the meta page. A row that moves from the tail
 * into a newer tree afterwards is still in our copy of the tail, and our tree stays while its root is pinned.
 */
static void
start(IndexScanDesc scan, bool backward)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	Relation	rel = state->index->rel;
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	CairnMetaData meta = *cairn_meta(rel, BufferGetPage(buffer));

	bool		rows,
				tail;

	cairn_tail_seen(rel, meta.tail_pages);
	cairn_parallel_join(scan, &meta, backward, &rows, &tail);
	state->started = true;
	state->ended = false;
	state->batch_rows = CAIRN_FIRST_BATCH;
	/* Of the tail the meta page tells, whose sequence VACUUM steps before it removes a row. */
	TestForOldSnapshot(scan->xs_snapshot, rel, BufferGetPage(buffer));
	cairn_walk_begin(&state->walk, state->index, &meta, state->leaf);
	state->walk.snapshot = scan->xs_snapshot;
	state->no_rows = state->conditions.never || !rows || !BlockNumberIsValid(meta.root);
	if (!state->conditions.never && tail && meta.tail_pages > 0)
		cairn_scan_copy_tail(state, &meta);
	UnlockReleaseBuffer(buffer);
	cairn_scan_sort_tail(state);
	pgstat_count_index_scan(rel);
#if PG_VERSION_NUM >= 180000
	/* EXPLAIN's "Index Searches". */
	if (scan->instrument != NULL)
		scan->instrument->nsearches++;
#endif
}

/* Which rows of the leaf are within the range. The batch is empty, before them or behind. */
void
cairn_scan_enter_leaf(CairnScan *state, bool backward, CairnArrival arrival)
{
	MemoryContext old = MemoryContextSwitchTo(state->row_context);

	cairn_walk_range(&state->walk, &state->conditions.lower, &state->conditions.upper, arrival, &state->from, &state->to);
	MemoryContextSwitchTo(old);
	state->batch.start = backward ? state->to : state->from;
	state->batch.rows = 0;
	state->batch.count = 0;
	state->gap = 0;
	state->looked = false;
}

/* Makes the row behind the gap, or before it, part of the batch. False when there is none. */
static bool
tree_peek(CairnScan *state, bool backward)
{
	CairnBatch *batch = &state->batch;

	if (state->no_rows)
		return false;
	for (;;)
	{
		if (!state->placed && state->parallel != NULL)
		{
			state->no_rows = !cairn_parallel_seek(state->parallel, &state->walk, &state->conditions.lower, &state->unit);
			if (state->no_rows)
				return false;
			state->placed = true;
			cairn_scan_enter_leaf(state, false, state->unit == 0 ? CAIRN_BY_SEARCH : CAIRN_FROM_BEFORE);
		}
		else if (!state->placed)
		{
			if (!cairn_walk_seek(&state->walk, backward ? &state->conditions.upper : &state->conditions.lower))
				return false;
			state->placed = true;
			cairn_scan_enter_leaf(state, backward, CAIRN_BY_SEARCH);
		}
		if (backward ? state->gap > 0 : state->gap < batch->count)
			return true;
		if (!backward && batch->start + batch->rows < state->to)
		{
			uint32		at = batch->start + batch->rows;

			cairn_batch_load(state, at, state->to, false);
			state->gap = 0;
		}
		else if (backward && batch->start > state->from)
		{
			cairn_batch_load(state, state->from, batch->start, true);
			state->gap = batch->count;
		}
		else if (state->parallel != NULL)
		{
			state->no_rows = state->to < state->walk.rows || !cairn_parallel_next(state->parallel, &state->walk, &state->unit);
			if (state->no_rows)
				return false;
			cairn_scan_enter_leaf(state, false, CAIRN_FROM_BEFORE);
		}
		else if (backward ? state->from == 0 && cairn_walk_previous(&state->walk)
				 : state->to == state->walk.rows && cairn_walk_next(&state->walk))
			cairn_scan_enter_leaf(state, backward, backward ? CAIRN_FROM_BEHIND : CAIRN_FROM_BEFORE);
		else if (cairn_conditions_step(&state->conditions, backward))
			state->placed = false;
		else
			return false;
	}
}

/* The row of the batch that a step in this direction would take. */
static int
tree_candidate(CairnScan *state, bool backward)
{
	return backward ? state->gap - 1 : state->gap;
}

static CairnSource
choose(CairnScan *state, bool backward)
{
	bool		tree = tree_peek(state, backward);
	bool		tail = backward ? state->tail_gap > 0 : state->tail_gap < state->tail_count;

	if (tree && tail)
	{
		IndexTuple	tuple = state->tail[backward ? state->tail_gap - 1 : state->tail_gap];
		MemoryContext old = MemoryContextSwitchTo(state->row_context);
		int			order = cairn_scan_compare_tail(state, tree_candidate(state, backward), tuple);

		MemoryContextSwitchTo(old);
		return (order < 0) != backward ? CAIRN_FROM_TREE : CAIRN_FROM_TAIL;
	}
	return tree ? CAIRN_FROM_TREE : tail ? CAIRN_FROM_TAIL : CAIRN_FROM_NONE;
}

static inline void
hand_out(IndexScanDesc scan, CairnScan *state, int at)
{
	CairnBatch *batch = &state->batch;

	scan->xs_heaptid = batch->tid[at];
	if (batch->has_tuples)
		scan->xs_itup = (IndexTuple) (batch->tuples + at * state->index->tuple_bytes);
	else if (scan->xs_want_itup)
		scan->xs_itup = cairn_batch_tuple(state, at);
}

/* Behind the last row: what stays pinned is waited for by VACUUM, for as long as somebody keeps the query open. */
static void
end_rows(CairnScan *state)
{
	cairn_walk_release(&state->walk);
	for (int i = 0; i < state->tail_count; i++)
		pfree(state->tail[i]);
	state->tail_count = state->tail_gap = 0;
	state->batch.rows = state->batch.count = state->gap = 0;
	state->placed = false;
	state->ended = true;
}

static void
begin_rows(IndexScanDesc scan, bool backward)
{
	CairnScan  *state = (CairnScan *) scan->opaque;

	start(scan, backward);
	state->tail_gap = backward ? state->tail_count : 0;
	/* A backward scan begins with the last range. */
	cairn_conditions_first(&state->conditions, backward);
}

bool
cairn_get_tuple(IndexScanDesc scan, ScanDirection direction)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	bool		backward = ScanDirectionIsBackward(direction);

	scan->xs_recheck = false;
	/* Most rows: the next of the batch, with nothing to merge. */
	if (state->last == CAIRN_FROM_TREE && state->tail_count == 0 && state->direction == direction && !backward &&
		state->gap < state->batch.count && !state->walk.copies)
	{
		hand_out(scan, state, state->gap);
		state->gap++;
		return true;
	}
	if (state->ended && state->direction == direction)
		return false;
	/* Who turns round at the end begins there as a new scan does: the snapshot sees the same rows. */
	if (!state->started || state->ended)
	{
		cairn_batch_prepare(state, scan->xs_want_itup);
		begin_rows(scan, backward);
	}
	else if (state->last != CAIRN_FROM_NONE && ScanDirectionIsBackward(state->direction) != backward)
	{
		if (state->last == CAIRN_FROM_TREE)
			state->gap += backward ? -1 : 1;
		else
			state->tail_gap += backward ? -1 : 1;
	}
	state->direction = direction;
	for (;;)
	{
		MemoryContextReset(state->row_context);
		state->last = choose(state, backward);
		if (state->last == CAIRN_FROM_NONE)
		{
			/* Who has marked a row wants to come back to it. */
			if (!state->mark.is_set)
				end_rows(state);
			return false;
		}
		if (state->last == CAIRN_FROM_TREE)
		{
			int			at = tree_candidate(state, backward);

			state->gap += backward ? -1 : 1;
			if (!cairn_scan_tree_row_visible(scan, at))
				continue;
			hand_out(scan, state, at);
			return true;
		}
		else
		{
			IndexTuple	tuple = state->tail[backward ? --state->tail_gap : state->tail_gap++];

			if (!cairn_scan_tail_row_visible(scan, tuple))
				continue;
			scan->xs_heaptid = tuple->t_tid;
			/*
			 * Somebody whose snapshot does not hold VACUUM off may find another row in this place. The planner, which looks for the ends of a column, takes
			 * the index's word for it, and gives up where it is to check rows.
			 */
			scan->xs_recheck = scan->numberOfKeys > 0 && scan->xs_snapshot != NULL && !IsMVCCSnapshot(scan->xs_snapshot) &&
				scan->xs_snapshot->snapshot_type != SNAPSHOT_NON_VACUUMABLE;
			if (scan->xs_want_itup)
				scan->xs_itup = tuple;
			return true;
		}
	}
}

/*
 * Begins a scan whose rows are taken by batches, of the columns that are wanted. False if it cannot be: rows of the tail come in between, one
 * by one. Then rows are to be had as from any index-only scan.
 */
bool
cairn_scan_by_batches(IndexScanDesc scan, bool backward, const bool *wanted, CairnLook look, void *argument)
{
	CairnScan  *state = (CairnScan *) scan->opaque;

	bool		batches;

	begin_rows(scan, backward);
	batches = state->tail_count == 0;
	/* Arrays that were made for one kind of rows do not serve the other. */
	if (batches != (state->look != NULL))
		cairn_batch_free(&state->batch);
	state->look = batches ? look : NULL;
	state->look_argument = argument;
	cairn_batch_prepare(state, true);
	state->batch.with_tuples = !batches;
	state->batch.wanted = batches ? wanted : NULL;
	return batches;
}

/* The next rows, or null behind the last. The batch holds until the next call, or the next rescan. */
CairnBatch *
cairn_scan_next_batch(IndexScanDesc scan, bool backward)
{
	CairnScan  *state = (CairnScan *) scan->opaque;

	state->gap = backward ? 0 : state->batch.count;
	do
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(state->row_context);
		if (state->ended || !tree_peek(state, backward))
		{
			if (!state->ended)
				end_rows(state);
			return NULL;
		}
	} while (state->batch.count == 0);
	pgstat_count_index_tuples(scan->indexRelation, state->batch.count);
	return &state->batch;
}

/* A row id that no table has is an error of the bitmap's too, which does not say whose it is. */
static void
check_row_ids(Relation rel, const ItemPointerData *tid, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (!cairn_is_row_id(&tid[i]))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("index \"%s\" is damaged: a row has offset %u in its page, expected 1 to %d",
							RelationGetRelationName(rel), ItemPointerGetOffsetNumberNoCheck(&tid[i]), MaxHeapTuplesPerPage),
					 errhint("Please REINDEX it.")));
	}
}

int64
cairn_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	int64		rows = 0;

	cairn_batch_prepare(state, false);
	start(scan, false);
	cairn_conditions_first(&state->conditions, false);
	while (tree_peek(state, false))
	{
		CairnBatch *batch = &state->batch;

		CHECK_FOR_INTERRUPTS();
		check_row_ids(scan->indexRelation, batch->tid, batch->count);
		tbm_add_tuples(bitmap, batch->tid, batch->count, false);
		rows += batch->count;
		state->gap = batch->count;
		MemoryContextReset(state->row_context);
	}
	for (int i = 0; i < state->tail_count; i++)
		tbm_add_tuples(bitmap, &state->tail[i]->t_tid, 1, false);
	rows += state->tail_count;
	end_rows(state);
	return rows;
}
