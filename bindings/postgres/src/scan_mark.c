/*
 * Marks of merge joins. A mark holds while VACUUM and merges go on: the walk's pin may be given up, so the place is kept as a row's key and
 * row id, which are looked for again if the leaf is not the one that has been pinned ever since.
 */
#include "scan.h"

#include "batch.h"

/* The row before the gap or behind it, in words that hold when the leaf has lost rows: its key and its tid. */
void
cairn_mark_position(IndexScanDesc scan)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	CairnPosition *mark = &state->mark;
	MemoryContext old;

	if (mark->key != NULL)
		pfree(mark->key);
	mark->key = NULL;
	mark->is_set = true;
	mark->tail_gap = state->tail_gap;
	mark->last = state->last;
	mark->direction = state->direction;
	if (mark->chosen == NULL)
		mark->chosen = MemoryContextAlloc(state->context, Max(state->conditions.array_count, 1) * sizeof(int));
	for (int i = 0; i < state->conditions.array_count; i++)
		mark->chosen[i] = state->conditions.arrays[i]->chosen;
	mark->block = InvalidBlockNumber;
	/* A walk stops at a leaf without rows, which VACUUM leaves, only if nothing comes after it. */
	mark->at_end = state->placed && state->walk.rows == 0;
	if (!state->placed || mark->at_end)
		return;
	mark->block = BufferGetBlockNumber(state->walk.leaf_buffer);
	mark->row = state->gap < state->batch.count
		? state->batch.start + cairn_batch_row(&state->batch, state->gap)
		: state->batch.start + state->batch.rows;
	old = MemoryContextSwitchTo(state->context);
	mark->behind = mark->row >= state->walk.rows;
	mark->key = cairn_row_tuple(state, Min(mark->row, state->walk.rows - 1));
	MemoryContextSwitchTo(old);
}

/* The gap before `row` of the leaf. */
static void
place_gap(CairnScan *state, uint32 row)
{
	cairn_scan_enter_leaf(state, false, CAIRN_BY_SEARCH);
	state->batch.start = Min(Max(row, state->from), state->to);
}

void
cairn_restore_position(IndexScanDesc scan)
{
	CairnScan  *state = (CairnScan *) scan->opaque;
	CairnPosition *mark = &state->mark;
	bool		same_range = true;

	if (!mark->is_set)
		return;
	for (int i = 0; i < state->conditions.array_count; i++)
	{
		same_range &= state->conditions.arrays[i]->chosen == mark->chosen[i];
		state->conditions.arrays[i]->chosen = mark->chosen[i];
	}
	cairn_conditions_bound(&state->conditions);
	state->tail_gap = mark->tail_gap;
	state->direction = mark->direction;
	/* The gap is where it was, but whether the row before it is in the batch is not known: nothing to turn back over. */
	state->last = mark->last == CAIRN_FROM_TREE ? CAIRN_FROM_NONE : mark->last;
	if (mark->at_end)
	{
		bool		backward = ScanDirectionIsBackward(mark->direction);

		state->placed = cairn_walk_seek(&state->walk, backward ? &state->conditions.lower : &state->conditions.upper);
		place_gap(state, backward ? 0 : CAIRN_MAX_ROWS);
		return;
	}
	if (mark->key == NULL)
	{
		state->placed = false;
		return;
	}
	if (state->placed && same_range && BufferIsValid(state->walk.leaf_buffer) &&
		BufferGetBlockNumber(state->walk.leaf_buffer) == mark->block)
	{
		/* Pinned ever since, so its rows are the same. Batch and gap may be, too. */
		uint32		start = state->batch.start;

		if (state->batch.all && mark->row >= start && mark->row <= start + state->batch.rows)
			state->gap = mark->row - start;
		else
			place_gap(state, mark->row);
	}
	else
	{
		/* VACUUM may have packed the leaf anew meanwhile: pinned from here on, it is known by where the row is now. */
		mark->row = cairn_seek_tuple(state, mark->key, mark->behind);
		mark->block = BufferGetBlockNumber(state->walk.leaf_buffer);
		place_gap(state, mark->row);
	}
	state->placed = true;
}
