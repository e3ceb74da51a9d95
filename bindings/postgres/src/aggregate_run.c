/*
 * Runs aggregates over compressed pages.
 *
 * Rows of pages count without a look into the heap if every page of the heap is all-visible: first, when the scan has ended, and if
 * VACUUM has removed no row from the index in between. The order matters: a row that a page of the index held when it was read and
 * that the map calls visible afterwards is visible to our snapshot, unless VACUUM has taken it away meanwhile, which the sequence in
 * the meta page tells. If any of this fails, the scan starts again and asks the map about each leaf's heap pages, with the leaf
 * pinned; then VACUUM waits for us. Of a leaf that the map does not vouch for, rows are asked about one by one, and those of
 * pages that are not all-visible are looked up in the heap.
 */
#include "aggregate_state.h"

#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
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
	uint64		vouched[CAIRN_MASK_WORDS(CAIRN_BATCH)];

	for (uint32 start = from; start < to; start += CAIRN_BATCH)
	{
		uint32		count = Min(CAIRN_BATCH, to - start);
		uint64	   *part = mask + (start - from) / 64;

		CHECK_FOR_INTERRUPTS();
		cairn_aggregate_checked(state, cairn_leaf_tids(state->leaf, start, count, tids));
		cairn_rows_visible(&state->walk, tids, count, state->heap, &state->map, vouched);
		for (uint32 word = 0; word < CAIRN_MASK_WORDS(count); word++)
			for (uint64 bits = part[word] & ~vouched[word]; bits != 0; bits &= bits - 1)
			{
				int			bit = pg_rightmost_one_pos64(bits);

				if (!is_visible(state, &tids[word * 64 + bit]))
					part[word] &= ~(UINT64CONST(1) << bit);
			}
	}
}

/* Sets the bits of `count` rows and a word behind them to shift from. */
static void
set_all(uint64 *mask, uint32 count)
{
	uint32		words = CAIRN_MASK_WORDS(count);

	memset(mask, 0xff, words * sizeof(uint64));
	mask[words] = 0;
	if (count % 64 != 0)
		mask[words - 1] = (UINT64CONST(1) << (count % 64)) - 1;
}

/* The rows that each FILTER leaves of those in `mask`, or of all. */
static void
fill_filters(AggregateState *state, uint32 from, uint32 to, const uint64 *mask)
{
	uint32		words = CAIRN_MASK_WORDS(to - from);

	for (int i = 0; i < state->filter_count; i++)
	{
		uint64	   *own = state->filters[i].mask;

		if (mask == NULL)
			set_all(own, to - from);
		else
			memcpy(own, mask, (words + 1) * sizeof(uint64));
		if (state->filters[i].conditions.never)
			memset(own, 0, words * sizeof(uint64));
		else
			(void) cairn_filter_rows(&state->filters[i].conditions, &state->walk, from, to - from, own);
	}
}

/* What is wanted of the current leaf. */
static void
add_leaf(AggregateState *state, uint32 from, uint32 to)
{
	uint64	   *mask = NULL;
	bool		look_up = state->careful && !cairn_leaf_visible(&state->walk, from, to, state->heap, &state->map);

	state->leaves++;
	state->rows += to - from;
	if (state->conditions.filter_count > 0 || look_up)
	{
		mask = state->mask;
		set_all(mask, to - from);
		if (!cairn_filter_rows(&state->conditions, &state->walk, from, to - from, mask))
			return;
		if (look_up)
			keep_visible(state, from, to, mask);
	}
	fill_filters(state, from, to, mask);
	state->filter_from = from;
	if (state->grouped)
		cairn_groups_add_rows(state, from, to, mask);
	else
		cairn_totals_add_rows(state, from, to, mask);
}

/* The leaves of this process, of those that several go through. */
static void
add_units(AggregateState *state)
{
	CairnParallel *units = &state->shared->units;
	CairnWalk  *walk = &state->walk;
	uint32		unit;
	bool		more = cairn_parallel_seek(units, walk, &state->conditions.lower, &unit);
	CairnArrival arrival = unit == 0 ? CAIRN_BY_SEARCH : CAIRN_FROM_BEFORE;

	while (more)
	{
		uint32		from;
		uint32		to;

		cairn_walk_range(walk, &state->conditions.lower, &state->conditions.upper, arrival, &from, &to);
		if (from < to)
			add_leaf(state, from, to);
		more = to == walk->rows && cairn_parallel_next(units, walk, &unit);
		arrival = CAIRN_FROM_BEFORE;
	}
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

/*
 * The tree and the tail of one moment, as scans take them. Rows of the tail are looked up in the heap after the lock is gone. False if other
 * processes read all the leaves.
 */
static bool
take_snapshot(AggregateState *state)
{
	Buffer		buffer = cairn_read(state->rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	int			kept = 0;
	bool		rows = true;
	bool		tail = true;

	state->meta = *cairn_meta(state->rel, BufferGetPage(buffer));
	cairn_tail_seen(state->rel, state->meta.tail_pages);
	if (state->shared != NULL)
		cairn_aggregate_join(state, &rows, &tail);
	TestForOldSnapshot(state->css.ss.ps.state->es_snapshot, state->rel, BufferGetPage(buffer));
	cairn_walk_begin(&state->walk, state->index, &state->meta, state->leaf);
	state->walk.snapshot = state->css.ss.ps.state->es_snapshot;
	if (tail)
	{
		cairn_visit_tail(state->rel, state->meta.frozen_head, take_tail_row, state);
		cairn_visit_tail(state->rel, state->meta.tail_head, take_tail_row, state);
	}
	UnlockReleaseBuffer(buffer);
	for (int i = 0; i < state->tail_count; i++)
		if (is_visible(state, &state->tail[i]->t_tid))
			state->tail[kept++] = state->tail[i];
	state->tail_count = kept;
	if (kept > 1)
		qsort_arg(state->tail, kept, sizeof(IndexTuple), compare_tail, state->index);
	return rows;
}

/* Whether the map says so of the whole table. */
bool
cairn_aggregate_all_visible(AggregateState *state)
{
	BlockNumber visible;

	/* ORDER: the length after the map. A page that comes in between would stand for one that is not all-visible. */
	visibilitymap_count(state->heap, &visible, NULL);
	return visible >= RelationGetNumberOfBlocks(state->heap);
}

/* Whether rows that were counted unseen, since VACUUM's sequence was this, are all visible. */
bool
cairn_aggregate_holds(AggregateState *state, uint64 vacuum_seq)
{
	/* ORDER: the map is asked after the last page has been read. */
	return cairn_aggregate_all_visible(state) && vacuum_seq % 2 == 0 && cairn_read_meta(state->rel).vacuum_seq == vacuum_seq;
}

/* One run over the index. False if it has to be done again with care. */
bool
cairn_aggregate_run(AggregateState *state, bool careful)
{
	MemoryContext old;
	bool		sound = true;

	MemoryContextReset(state->context);
	old = MemoryContextSwitchTo(state->context);
	state->careful = state->was_careful = careful;
	state->ran = true;
	state->tail = NULL;
	state->tail_count = state->tail_room = state->tail_at = 0;
	state->open = false;
	state->mask = palloc(MASK_WORDS * sizeof(uint64));
	state->part = palloc(2 * MASK_WORDS * sizeof(uint64));
	state->kept = palloc(MASK_WORDS * sizeof(uint64));
	tuplestore_clear(state->results);
	cairn_conditions_set(&state->conditions, state->index, state->keys, state->key_count, state->shared == NULL, state->context);
	cairn_filters_set(state);
	cairn_totals_begin(state);
	if (!state->conditions.never)
	{
		bool		rows = take_snapshot(state);

		if (rows && state->shared != NULL)
			add_units(state);
		else if (rows)
			add_ranges(state);
		cairn_groups_add_tail(state, true, (Datum) 0, false);
		if (!careful && !state->is_part)
			sound = cairn_aggregate_holds(state, state->meta.vacuum_seq);
		cairn_walk_release(&state->walk);
	}
	if (sound && cairn_group_is_worth_a_row(state))
		cairn_group_put(state);
	MemoryContextSwitchTo(old);
	return sound;
}
