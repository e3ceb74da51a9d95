/*
 * Rows of the tail in a scan: a copy of those that meet its conditions, in the order of the index, to be merged with the tree's.
 */
#include "scan.h"

#include "batch.h"

static void
take_tail_row(IndexTuple tuple, void *argument)
{
	CairnScan  *state = argument;
	IndexTuple	copy;
	MemoryContext old;

	if (!cairn_conditions_tuple(&state->conditions, tuple))
		return;
	old = MemoryContextSwitchTo(state->context);
	if (state->tail_count == state->tail_room)
	{
		state->tail_room = Max(state->tail_room * 2, 64);
		state->tail = state->tail == NULL ? palloc(state->tail_room * sizeof(IndexTuple))
			: repalloc_huge(state->tail, state->tail_room * sizeof(IndexTuple));
	}
	copy = CopyIndexTuple(tuple);
	state->tail[state->tail_count++] = copy;
	MemoryContextSwitchTo(old);
}

static int
compare_tuples(CairnIndex *index, IndexTuple a, IndexTuple b)
{
	for (int i = 0; i < index->keys; i++)
	{
		bool		a_null,
					b_null;
		Datum		x = index_getattr(a, i + 1, index->desc, &a_null);
		Datum		y = index_getattr(b, i + 1, index->desc, &b_null);
		int			order = cairn_compare_datums(index, i, x, a_null, y, b_null);

		if (order != 0)
			return order;
	}
	return ItemPointerCompare(&a->t_tid, &b->t_tid);
}

static int
compare_tail(const void *a, const void *b, void *index)
{
	return compare_tuples(index, *(IndexTuple const *) a, *(IndexTuple const *) b);
}

/* Under the lock of the meta page that says which tail there is. */
void
cairn_scan_copy_tail(CairnScan *state, const CairnMetaData *meta)
{
	cairn_visit_tail(state->index->rel, meta->frozen_head, take_tail_row, state);
	cairn_visit_tail(state->index->rel, meta->tail_head, take_tail_row, state);
}

/* Needs no lock: the rows are copies. */
void
cairn_scan_sort_tail(CairnScan *state)
{
	if (state->tail_count > 1)
		qsort_arg(state->tail, state->tail_count, sizeof(IndexTuple), compare_tail, state->index);
}

/* The order of a row of the batch and one of the tail. */
int
cairn_scan_compare_tail(CairnScan *state, int at, IndexTuple tuple)
{
	CairnIndex *index = state->index;
	uint32		row = state->batch.start + cairn_batch_row(&state->batch, at);

	for (int i = 0; i < index->keys; i++)
	{
		bool		b_null;
		Datum		a;
		bool		a_null = cairn_leaf_datum(&state->walk, i, row, &a);
		Datum		b = index_getattr(tuple, i + 1, index->desc, &b_null);
		int			order = cairn_compare_datums(index, i, a, a_null, b, b_null);

		if (order != 0)
			return order;
	}
	return ItemPointerCompare(&state->batch.tid[at], &tuple->t_tid);
}
